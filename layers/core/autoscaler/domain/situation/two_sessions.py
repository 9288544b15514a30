"""Two controllers behind one address: a session that was over is back, which no restart explains."""

from dataclasses import replace

from autoscaler.domain.facts.memory import ControllerSession
from autoscaler.domain.facts.snapshot import ControllerView

_REMEMBERED_SECONDS = 3600.0  # a load balancer that keeps to one of them for so long has taken the other out


def two_sessions(view: ControllerView, life: ControllerSession | None) -> tuple[str, str] | None:
    """Return the two sessions if this look, or one within the last hour, saw an earlier session again; else None."""
    for number, session in enumerate(view.sessions):
        between = [other for other in view.sessions[view.sessions.index(session) : number] if other != session]
        if between:
            first, second = sorted((session, between[0]))
            return first, second
    if life is None or not life.returned_at:
        return None
    first, second = sorted((life.session, life.before))
    return first, second


def carried(life: ControllerSession | None, seen: ControllerSession, now: float) -> ControllerSession:
    """Carry on which session was there before, and when it was seen again after another one."""
    if life is None:
        return seen
    if life.session == seen.session:
        recently = life.returned_at and now - life.returned_at < _REMEMBERED_SECONDS
        return replace(seen, before=life.before, returned_at=life.returned_at if recently else 0.0)
    return replace(seen, before=life.session, returned_at=now if seen.session == life.before else 0.0)
