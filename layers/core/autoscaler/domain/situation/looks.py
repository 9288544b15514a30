"""How far a look can be believed: gaps, clocks that were ahead, restarts, two controllers behind one address, builds that have ended."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.memory import (
    AgentPast,
    ControllerPast,
    ControllerSession,
    FleetPast,
    FreeNode,
    Learned,
    Looks,
    Memory,
    Observation,
    PoolPast,
)
from autoscaler.domain.facts.runs import AskedRun, RunAnswer
from autoscaler.domain.facts.snapshot import (
    CLOCKS_DIFFER_SECONDS,
    LOOK_GAP_SECONDS,
    MINUTE_SECONDS,
    Build,
    ControllerView,
    Node,
    Record,
    Snapshot,
)
from autoscaler.domain.forecast.durations import job_key, quantiles_of, quantiles_of_job, remaining_seconds

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


# Looks: seconds in which nobody could see count against nobody.
#
# A deadline counts the seconds between whole looks. A look at a controller is whole if it was read completely and takes builds; if it
# answers 401 to everybody, times out, shows a login page, restarts or is in quiet mode, its clock stands still. EC2 has a clock of its
# own, which stands still while no pass is completed.
#
# Of a gap that is too long one minute counts, that of the look before it. So a controller that is seen only now and then still reaches
# each deadline, later.


# The name under which looks at EC2 are kept; no controller has it.
EC2 = ""
# No deadline is longer than some days; of what was before, older spans say nothing.
SPANS_KEPT_SECONDS = 7 * 86_400.0
# A controller that is seen now and then leaves a span in every four minutes: the oldest are put together.
SPANS_KEPT = 40
Span = tuple[float, float]


def next_looks(snapshot: Snapshot) -> dict[str, Looks]:
    """Carry on when EC2 and each controller were last seen as a whole, and the spans in which they were not."""
    whole = {EC2: True, **{view.name: is_whole(view) for view in snapshot.controllers.values()}}
    return {name: _next(snapshot.memory.controller(name).looks, snapshot.taken_at, is_whole=is_whole) for name, is_whole in whole.items()}


def is_gap(memory: Memory, now: float) -> bool:
    """Tell whether nobody has looked at EC2 for a while, as far as is remembered, or the clock has gone back."""
    ec2 = memory.controller(EC2).looks
    return ec2 is None or abs(now - ec2.at) > LOOK_GAP_SECONDS


def is_whole(view: ControllerView) -> bool:
    """Tell whether a look proves what agents and builds could do. In quiet mode nothing begins, and pipelines stand still."""
    return view.complete and not view.quieting_down


def blind_seconds(looks: Looks | None, since_at: float, now: float) -> float:
    """Count the seconds since then in which nobody could see."""
    if looks is None or (not looks.blind and looks.at + MINUTE_SECONDS >= now):
        return 0.0
    spans = (*looks.blind, (looks.at + MINUTE_SECONDS, now))
    return sum(max(0.0, min(to_at, now) - max(from_at, since_at)) for from_at, to_at in spans)


def _next(looks: Looks | None, now: float, *, is_whole: bool) -> Looks:
    if looks is None:
        return Looks(at=now)
    # A span that ends later than now was seen by a wrong clock, and never was.
    blind = tuple(span for span in looks.blind if now - SPANS_KEPT_SECONDS < span[1] <= now)
    if not is_whole:
        return Looks(at=min(looks.at, now), blind=blind)
    if now - looks.at > LOOK_GAP_SECONDS:
        blind = (*blind, (looks.at + MINUTE_SECONDS, now))
    if len(blind) > SPANS_KEPT:  # the two oldest are put together, and last as long as before
        (from_at, to_at), (next_from_at, next_to_at), *rest = blind
        blind = (next_from_at - (to_at - from_at), next_to_at), *rest
    return Looks(at=now, blind=blind)


# Times noted by a clock that was ahead. Once it is right again, nothing must wait until those times come.
#
# Whatever lasts, or is retried after a pause, counts as noted now. What each look sees anew starts again, as after any gap: nobody knows
# how far apart those looks were, and they must not end anything. Launch times are corrected from EC2, which has its own clock.


_Past = TypeVar("_Past", bound="DataclassInstance")

# What has parts of its own, and the parts that have times: retries after a pause, questions that are repeated, what has to last.
_PARTS: Mapping[type, tuple[str, ...]] = {
    Memory: ("agents", "pools", "controllers", "fleet", "trials", "sessions", "lost"),
    AgentPast: ("state", "missing", "mark", "stuck", "look"),
    PoolPast: ("capacity", "taken", "never_lent_at"),
    ControllerPast: ("rations", "asked", "free_nodes", "beside"),
    FleetPast: ("spot_prices",),
    Learned: ("running", "runs", "streaks", "succeeded_at"),
}
_SEEN_ANEW = (Observation, FreeNode)
_PLANNED = "until_at"  # the only time of these that may be yet to come
_OF_CONTROLLER = "lost_at"  # by Jenkins' own clock, which may be ahead for good


def turned_back(snapshot: Snapshot) -> Snapshot:
    """Return a look as if all that a clock that was ahead has noted were noted now."""
    now, latest = snapshot.taken_at, snapshot.taken_at + CLOCKS_DIFFER_SECONDS
    learned = {name: _mended(one, {"seen_at": min(one.seen_at, now)}) for name, one in not_ahead(snapshot.learned, now).items()}
    mended: dict[str, Any] = {"memory": not_ahead(snapshot.memory, now), "learned": learned}
    if any(max(record.launched_at, record.changed_at, record.began_at) > latest for record in snapshot.records):
        mended["records"] = tuple(_records(snapshot, mended["memory"], latest))
    return _mended(snapshot, mended)


def not_ahead(noted: Any, now: float) -> Any:
    """Return what was noted, as if what a clock that was ahead has noted were noted now, with its pause from now on.

    Nearly always nothing is to be mended, and the very same comes back. Of many things those are left out that a look sees anew.
    """
    if isinstance(noted, float):
        return noted if noted - now <= CLOCKS_DIFFER_SECONDS else now
    if type(noted) in _PARTS:
        parts = {name: part for name in _PARTS[type(noted)] if (part := getattr(noted, name)) is not None}
        return _mended(noted, {name: not_ahead(part, now) for name, part in parts.items()})
    if is_dataclass(noted):
        return _as_of_now(noted, now)
    if isinstance(noted, tuple):
        mended: Any = tuple(at for at in noted if at - now <= CLOCKS_DIFFER_SECONDS)
    else:
        mended = {name: item for name, its in noted.items() if (item := not_ahead(its, now)) is not None}
    return noted if mended == noted else mended


def _as_of_now(noted: Any, now: float) -> Any:
    """Move all times that are yet to come by as much as the latest that was noted is ahead; None for what a look sees anew."""
    kind: Any = type(noted)
    times = _times(kind)
    ahead_seconds = max([at for name in times if name != _PLANNED and (at := getattr(noted, name)) is not None], default=now) - now
    if ahead_seconds <= CLOCKS_DIFFER_SECONDS:
        return noted
    if isinstance(noted, _SEEN_ANEW):
        return None
    return replace(noted, **{name: at - ahead_seconds for name in times if (at := getattr(noted, name)) is not None and at > now})


def _records(snapshot: Snapshot, memory: Memory, latest: float) -> Iterator[Record]:
    """Correct when agents were launched, by EC2, and when they were started or changed, by the look that saw the agent's state begin.

    Else a boot, a stop or the rest of a static node lasts until the time that was noted.
    """
    launched_at = {instance.id: instance.launched_at for instance in snapshot.instances}
    for record in snapshot.records:
        state = memory.agent(record.instance_id).state
        since_at = state.since_at if state else snapshot.taken_at
        mended: dict[str, Any] = {name: since_at for name in ("changed_at", "rotated_at") if getattr(record, name) > latest}
        mended["starts"] = tuple(since_at if at > latest else at for at in record.starts)
        if record.launched_at > latest and not record.starts:
            mended["launched_at"] = launched_at.get(record.instance_id, record.launched_at)
        yield _mended(record, mended)


def _mended(of: _Past, mended: Mapping[str, Any]) -> _Past:
    changed = {name: one for name, one in mended.items() if one != getattr(of, name)}
    return replace(of, **changed) if changed else of


@cache
def _times(kind: Any) -> tuple[str, ...]:
    """Name the times of something that are by our own clock."""
    times = (field for field in fields(kind) if field.name.endswith("_at") and field.name != _OF_CONTROLLER)
    return tuple(field.name for field in times if not str(field.type).startswith("tuple"))


# How long a build has run, how much longer it takes, and whether that is more than a guess.


def elapsed_seconds(build: Build, learned: Learned, now: float) -> float:
    """Return how long a build has had its executor: by Jenkins, if plausible, else since we first saw it."""
    if build.elapsed_seconds is not None:
        return build.elapsed_seconds
    seen = learned.running.get(build.key)
    return now - seen.since_at if seen else 0.0


def build_remaining_seconds(build: Build, pool: str, learned: Learned, now: float, queued_runs: frozenset[str]) -> float:
    """Estimate the end of one build; `inf` if its own run still waits in the queue."""
    if build.run and build.run in queued_runs:
        return inf
    elapsed, job_p80 = elapsed_seconds(build, learned, now), _job_p80(build, pool, learned)
    return remaining_seconds(elapsed, job_p80, lambda: quantiles_of(learned, "", pool).p80_seconds)


def ends_in_time(build: Build, pool: str, learned: Learned, now: float) -> bool:
    """Tell whether the end of a build is no mere guess: others of its job were seen, and it has taken no longer."""
    job_p80 = _job_p80(build, pool, learned)
    return job_p80 is not None and elapsed_seconds(build, learned, now) <= job_p80


def _job_p80(build: Build, pool: str, learned: Learned) -> float | None:
    known = quantiles_of_job(learned, build.job, pool)
    return known.p80_seconds if known else build.estimate_seconds


# Two controllers behind one address: a session that was over is back, which no restart explains.


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


# Restarts of a controller make busy agents look idle, some for many minutes, so its view is doubted.
#
# A pipeline that goes on after a restart asks for its node again only once Jenkins has loaded it: within seconds, or
# minutes later where builds are loaded in the background. Until then nothing in Jenkins shows that the node is waited for.
# So a node that was busy when last seen is a *suspect* until each run that was on it is seen there again, or is known to
# have ended. A node that took builds when last seen may have been given one more just before the restart: it is a suspect
# for as long as that one may take to resume.


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
    session = carried(life, _met(view.session, nodes, now), now)
    if life is None:
        # Met for the first time, or the state was lost: there may have been a restart that nobody saw.
        return replace(session, suspects=dict.fromkeys(nodes, (_UNKNOWN,)))
    if life.session != view.session:
        return replace(
            session,
            began_at=life.began_at,
            restarted=True,
            suspects={name: runs for name in nodes if (runs := _may_be_missing(life, name))},
        )
    seen_seconds = now - life.since_at - blind_seconds(looks, life.since_at, now)
    limits = {_UNKNOWN: min(UNSEEN_RESUME_SECONDS, timeout_seconds)}
    still = {
        name: tuple(run for run in _still_missing(runs, nodes[name], ended) if seen_seconds < limits.get(run, timeout_seconds))
        for name, runs in life.suspects.items()
        if name in nodes
    }
    began_at = now if begun_since(life, view) else life.began_at
    return replace(
        session,
        since_at=life.since_at,
        began_at=began_at,
        restarted=life.restarted,
        suspects={name: runs for name, runs in still.items() if runs},
    )


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


def _met(session: str, nodes: Mapping[str, Node], now: float) -> ControllerSession:
    """Note what each node runs, and which are marked offline, as if the session were met for the first time."""
    return ControllerSession(
        session=session,
        since_at=now,
        busy={name: tuple(one.run for one in node.builds) or (_UNKNOWN,) for name, node in nodes.items() if node.builds or not node.idle},
        marked=tuple(sorted(name for name, node in nodes.items() if node.temporarily_offline)),
    )


def _may_be_missing(life: ControllerSession, node: str) -> tuple[str, ...]:
    """Name the runs that may be bound to a node after a restart. A node that was marked offline took no others."""
    runs = (*life.suspects.get(node, ()), *life.busy.get(node, ()))
    return runs if node in life.marked or _UNKNOWN in runs else (*runs, _UNKNOWN)


def _still_missing(runs: tuple[str, ...], node: Node, ended: Collection[str]) -> tuple[str, ...]:
    """Name the runs that have not ended and are not seen on the node, once for each of their executors."""
    there = [build.run for build in node.builds if build.run != _UNKNOWN]
    missing: list[str] = []
    for run in runs:
        if run in there:
            there.remove(run)
        elif run not in ended:
            missing.append(run)
    return tuple(missing)


# Builds that have ended, and that Jenkins' executors show for ever: no work.
#
# Such an executor takes no other build, its node never reads idle, and its drain never ends. The run itself knows better: it is asked
# when its build runs for far too long. It has ended if its own page says so twice, ten minutes apart, while the same executor shows it. A
# Jenkins that does not say whether a run is still in progress must say so for an hour. No answer, and none that is understood, proves
# anything.


# A build is asked about when it has run for ten times what its job takes, and for an hour.
ASK_AFTER_TIMES, ASK_AFTER_AT_LEAST_SECONDS = 10.0, 3600.0
# Where nobody knows how long its job takes, or how long a drain may last.
ASK_AFTER_UNKNOWN_SECONDS = 12 * 3600.0
# One small request each; the others in the next looks.
ENDS_ASKED_A_LOOK = 20
ASK_AGAIN_SECONDS = 600.0
# How long a run must have said that it has ended. A build may end between two questions, and its executor be free a moment later.
ENDED_SECONDS, MAY_HAVE_ENDED_SECONDS = 600.0, 3600.0
# For so long after its executor has gone people may read of it.
TOLD_SECONDS = 3600.0
_MOST_REMEMBERED = 500


def runs_to_ask(
    view: ControllerView, memory: Memory, records: Iterable[Record], learned: Learned, fleet: Fleet, now: float
) -> tuple[str, ...]:
    """Name the runs that are to be asked now whether they have ended: those that were asked longest ago, then those that run longest."""
    if not view.complete:
        return ()
    due: list[tuple[float, float, str]] = []
    nodes = {node.name: node for node in view.nodes}
    for record in (record for record in records if record.controller == view.name and record.node in nodes):
        drains_too_long = _drains_too_long(memory, record, fleet, now)
        for build in filter(_may_be_asked, nodes[record.node or ""].builds):
            asked, seconds = _of_session(memory.controller(view.name).asked, view, build), elapsed_seconds(build, learned, now)
            is_too_long = drains_too_long or seconds >= _ask_after(build, record.pool, learned)
            if _is_due(asked, now, is_too_long=is_too_long):
                due.append((asked.asked_at if asked else 0.0, -seconds, build.run))
    return tuple(dict.fromkeys(run for *_, run in sorted(due)))[:ENDS_ASKED_A_LOOK]


def next_asked(memory: Memory, view: ControllerView, snapshot: Snapshot) -> dict[str, AskedRun]:
    """Carry on what runs said, as long as their executors show them in the same session of their controller."""
    before, answers = memory.controller(view.name).asked, snapshot.run_answers.get(view.name, {})
    if not (before or answers):  # nearly always: no run was too long
        return {}
    asked = dict(_kept(before, view, snapshot.taken_at))
    for build in (build for node in view.nodes for build in (*node.builds, *node.ended)):
        run, answer = _of_session(asked, view, build), answers.get(build.run)
        if answer is not None and _may_be_asked(build):
            asked[build.key] = _answered(run, answer, view.session, snapshot.taken_at)
        elif run is not None:
            asked[build.key] = replace(run, seen_at=snapshot.taken_at)
    return dict(sorted(asked.items(), key=lambda item: item[1].asked_at)[-_MOST_REMEMBERED:])


def is_no_fault_of_its_machine(memory: Memory, controller: str, build: Build) -> bool:
    """Tell whether a build runs for so long because it has ended, or waits for a person."""
    run = memory.controller(controller).asked.get(build.key)
    return run is not None and (run.ended_at is not None or run.waits_for_input)


def said_to_have_ended(asked: Mapping[str, AskedRun]) -> frozenset[str]:
    """Return the keys of the builds of which nobody saw when they ended: their executors showed them for longer."""
    return frozenset(name for name, run in asked.items() if run.ended_at is not None)


def without_ended(snapshot: Snapshot) -> Snapshot:
    """Return what is to be seen without the builds that have ended: their executors are neither at work nor free."""
    views = {**snapshot.controllers}
    for name, view in snapshot.controllers.items():
        runs = next_asked(snapshot.memory, view, snapshot)
        if over := {key for key, run in runs.items() if run.over_at is not None and run.session == view.session}:
            views[name] = replace(view, nodes=tuple(_without_ended(node, over) for node in view.nodes))
    return _mended(snapshot, {"controllers": views})


def _of_session(asked: Mapping[str, AskedRun], view: ControllerView, build: Build) -> AskedRun | None:
    run = asked.get(build.key)
    return run if run is not None and run.session == view.session else None


def _without_ended(node: Node, over: Collection[str]) -> Node:
    ended = tuple(build for build in node.builds if build.key in over)
    if not ended:
        return node
    working = tuple(build for build in node.builds if build not in ended)
    return replace(node, builds=working, ended=(*node.ended, *ended), executors=max(0, node.executors - len(ended)), idle=not working)


def _is_due(asked: AskedRun | None, now: float, *, is_too_long: bool) -> bool:
    """Tell whether a run is to be asked; one that said once that it has ended is asked again, however long its job may take by now."""
    if asked is None:
        return is_too_long
    return asked.over_at is None and now - asked.asked_at >= ASK_AGAIN_SECONDS and (is_too_long or asked.ended_at is not None)


def _may_be_asked(build: Build) -> bool:
    """Tell whether a run's own page says anything about this executor: a one-off executor shows more than its run."""
    return bool(build.run) and not build.is_one_off


def _ask_after(build: Build, pool: str, learned: Learned) -> float:
    longest = max(learned.samples.get(job_key(build.job, pool), ()), default=build.estimate_seconds)
    if longest is None:
        return ASK_AFTER_UNKNOWN_SECONDS
    return max(ASK_AFTER_TIMES * longest, ASK_AFTER_AT_LEAST_SECONDS)


def _drains_too_long(memory: Memory, record: Record, fleet: Fleet, now: float) -> bool:
    since_at, pool = memory.agent(record.instance_id).draining_since, fleet.pool_of(record.pool, record.controller)
    if since_at is None or pool is None:
        return False
    limit = ASK_AFTER_UNKNOWN_SECONDS if pool.drain_timeout_seconds is None else pool.drain_timeout_seconds
    return now - since_at - blind_seconds(memory.controller(record.controller).looks, since_at, now) > limit


def _kept(before: Mapping[str, AskedRun], view: ControllerView, now: float) -> Iterator[tuple[str, AskedRun]]:
    """Forget what is not shown any more, or was shown before a restart; what was over is remembered for people a while longer."""
    shown = {build.key for node in view.nodes for build in (*node.builds, *node.ended)}
    for name, run in before.items():
        is_told = run.over_at is not None and now - run.seen_at < TOLD_SECONDS
        if not view.complete or is_told or (name in shown and run.session == view.session):
            yield name, run


def _answered(before: AskedRun | None, answer: RunAnswer, session: str, now: float) -> AskedRun:
    """Note an answer. One that runs after all begins anew; no answer changes nothing but when it was asked."""
    asked = before or AskedRun(asked_at=now, seen_at=now, session=session)
    asked = replace(asked, asked_at=now, seen_at=now)
    if answer is RunAnswer.NOT_TOLD or asked.over_at is not None:
        return asked
    if answer in (RunAnswer.RUNS, RunAnswer.WAITS_FOR_INPUT):
        return replace(asked, ended_at=None, waits_for_input=answer is RunAnswer.WAITS_FOR_INPUT)
    ended_at = now if asked.ended_at is None else asked.ended_at
    is_over = now - ended_at >= (ENDED_SECONDS if answer is RunAnswer.ENDED else MAY_HAVE_ENDED_SECONDS)
    return replace(asked, ended_at=ended_at, over_at=now if is_over else None)
