"""Restarts of a controller make busy agents look idle, some for many minutes, so its view is doubted.

A pipeline that goes on after a restart asks for its node again only once Jenkins has loaded it: within seconds, or
minutes later where builds are loaded in the background. Until then nothing in Jenkins shows that the node is waited for.
So a node that was busy when last seen is a *suspect* until each run that was on it is seen there again, or is known to
have ended. A node that took builds when last seen may have been given one more just before the restart: it is a suspect
for as long as that one may take to resume.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from autoscaler.domain.facts.memory import ControllerSession, Looks
from autoscaler.domain.facts.snapshot import Build, ControllerView, Node
from autoscaler.domain.situation.looks import blind_seconds
from autoscaler.domain.situation.two_sessions import carried

# After a controller restart every agent looks offline and idle for some seconds, and resumed builds are invisible (recorded: f21).
RESTART_GRACE_SECONDS = 120.0
# A pipeline that began after the last look before a restart is known to nobody here until it resumes: twenty minutes was the slowest seen.
UNSEEN_RESUME_SECONDS = 1800.0
# Each costs a small request; a controller that restarted with more busy nodes than this is asked for the others in the next looks.
RUNS_ASKED_A_LOOK = 30
# A run that nobody here saw, or that Jenkins did not name.
_UNKNOWN = ""


def next_session(
    life: ControllerSession | None,
    view: ControllerView,
    ended: Collection[str],
    now: float,
    timeout_seconds: float,
    looks: Looks | None = None,
) -> ControllerSession | None:
    """Carry a controller's session on; an incomplete view changes nothing.

    ``ended``: runs that Jenkins said have ended. ``timeout_seconds``: after a restart no node is a suspect for longer, as long as
    the controller could be seen.
    """
    if not view.complete:
        return life
    nodes = {node.name: node for node in view.nodes if node.agent}
    met = ControllerSession(
        session=view.session,
        since_at=now,
        busy=_but_empty({name: _runs_on(node) for name, node in nodes.items()}),
        marked=_marked(nodes),
    )
    seen = carried(life, met, now)
    if life is None:
        # Met for the first time, or the state was lost: there may have been a restart that nobody saw.
        return replace(seen, suspects=dict.fromkeys(nodes, (_UNKNOWN,)))
    if life.session != view.session:
        return replace(
            seen, began_at=life.began_at, restarted=True, suspects=_but_empty({name: _may_be_missing(life, name) for name in nodes})
        )
    still = {name: _still_missing(runs, nodes[name], ended) for name, runs in life.suspects.items() if name in nodes}
    seen_seconds = now - life.since_at - blind_seconds(looks, life.since_at, now)
    left = _but_empty({name: _in_time(runs, seen_seconds, timeout_seconds) for name, runs in still.items()})
    began_at = now if begun_since(life, view) else life.began_at
    return replace(seen, since_at=life.since_at, began_at=began_at, restarted=life.restarted, suspects=left)


def begun_since(life: ControllerSession | None, view: ControllerView) -> dict[str, list[Build]]:
    """Find the builds that have begun on agents since the last look, by node; none that anybody knows of after a restart.

    A step that takes no executor is no such build: each pipeline has one on the controller itself, for as long as it runs or waits.
    """
    if life is None or life.session != view.session:
        return {}
    agents = (node for node in view.nodes if node.agent)
    begun = {
        node.name: [build for build in node.builds if not build.is_one_off and build.run not in life.busy.get(node.name, ())]
        for node in agents
    }
    return {name: builds for name, builds in begun.items() if builds}


def _marked(nodes: Mapping[str, Node]) -> tuple[str, ...]:
    return tuple(sorted(name for name, node in nodes.items() if node.temporarily_offline))


def _but_empty(runs: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {name: those for name, those in runs.items() if those}


def next_sessions(
    sessions: Mapping[str, ControllerSession],
    looks: Mapping[str, Looks],
    views: Iterable[ControllerView],
    ended: Mapping[str, Collection[str]],
    now: float,
    timeout_seconds: Callable[[str], float],
) -> dict[str, ControllerSession]:
    """Carry every controller's session on. ``looks`` and ``ended``: by controller; ``timeout_seconds``: of one of them."""
    noted = dict(sessions)
    for view in views:
        life = next_session(sessions.get(view.name), view, ended.get(view.name, ()), now, timeout_seconds(view.name), looks.get(view.name))
        if life is not None:
            noted[view.name] = life
    return noted


def runs_to_ask_for(life: ControllerSession | None, view: ControllerView) -> tuple[str, ...]:
    """Name the runs that were on a suspect before the restart and are not shown now; they may have ended."""
    if life is None or not view.complete or life.session != view.session:
        return ()
    nodes = {node.name: node for node in view.nodes}
    queued = {item.run for item in view.items}
    missing = {run for name, runs in life.suspects.items() if name in nodes for run in _still_missing(runs, nodes[name], ())}
    return tuple(sorted(missing - queued - {_UNKNOWN}))


def in_grace(life: ControllerSession | None, now: float) -> bool:
    """Tell whether nothing destructive may be done on this controller: it is new to us, or restarted lately."""
    return life is None or now - life.since_at < RESTART_GRACE_SECONDS


def is_recovering(life: ControllerSession | None, now: float) -> bool:
    """Tell whether it restarted so lately that its agents are still coming back and are not to be replaced."""
    return life is not None and life.restarted and in_grace(life, now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumption:
    """What a restart of a controller may have left: pipelines that ask for their node by its name. ``life`` None: it was never seen."""

    life: ControllerSession | None
    now: float
    timeout_seconds: float
    recovering: bool = False  # it restarted so lately that its agents are still coming back
    blind: tuple[tuple[float, float], ...] = ()  # spans in which nobody could see it: from, to

    def may_wait_for(self, node: str, waiting_seconds: float) -> bool:
        """Tell whether an item that Jenkins names this node to may have run there.

        It waits since a restart, since a gap in our looks, or since we look at all.
        """
        if self.life is None or node in self.life.suspects:
            return True
        began_at, doubtful = self.now - waiting_seconds, (*self.blind, (0.0, self.life.since_at))
        return any(from_at <= began_at < to_at + self.timeout_seconds for from_at, to_at in doubtful)


def waits_to_resume(life: ControllerSession | None, node: str) -> bool:
    """Tell whether a build that was on this node before a restart is neither seen there again nor known to have ended."""
    return life is not None and bool(life.suspects.get(node))


def _runs_on(node: Node) -> tuple[str, ...]:
    if node.idle and not node.builds:
        return ()
    return tuple(build.run for build in node.builds) or (_UNKNOWN,)


def _may_be_missing(life: ControllerSession, node: str) -> tuple[str, ...]:
    """Name the runs that may be bound to a node after a restart. A node that was marked offline took no others."""
    runs = (*life.suspects.get(node, ()), *life.busy.get(node, ()))
    return runs if node in life.marked or _UNKNOWN in runs else (*runs, _UNKNOWN)


def _still_missing(runs: tuple[str, ...], node: Node, ended: Collection[str]) -> tuple[str, ...]:
    """Name the runs that have not ended and are not seen on the node, once for each of their executors."""
    if not runs:
        return ()
    there = [build.run for build in node.builds if build.run != _UNKNOWN]
    missing: list[str] = []
    for run in runs:
        if run in there:
            there.remove(run)
        elif run not in ended:
            missing.append(run)
    return tuple(missing)


def _in_time(missing: tuple[str, ...], seconds: float, timeout_seconds: float) -> tuple[str, ...]:
    """Keep the runs that may still resume so long after the restart."""
    limits = {_UNKNOWN: min(UNSEEN_RESUME_SECONDS, timeout_seconds)}
    return tuple(run for run in missing if seconds < limits.get(run, timeout_seconds))
