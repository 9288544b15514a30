"""Builds that have ended, and that Jenkins' executors show for ever: no work.

Such an executor takes no other build, its node never reads idle, and its drain never ends. The run itself knows better: it is asked
when its build runs for far too long. It has ended if its own page says so twice, ten minutes apart, while the same executor shows it. A
Jenkins that does not say whether a run is still in progress must say so for an hour. No answer, and none that is understood, proves
anything.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.memory import Learned, Memory
from autoscaler.domain.facts.runs import AskedRun, RunAnswer
from autoscaler.domain.facts.snapshot import Build, ControllerView, Node, Record, Snapshot
from autoscaler.domain.forecast.durations import job_key
from autoscaler.domain.situation.looks import blind_seconds
from autoscaler.domain.situation.remaining import elapsed_seconds

# A build is asked about when it has run for ten times what its job takes, and for an hour.
ASK_AFTER_TIMES, ASK_AFTER_AT_LEAST_SECONDS = 10.0, 3600.0
# Where nobody knows how long its job takes, or how long a drain may last.
ASK_AFTER_UNKNOWN_SECONDS = 12 * 3600.0
# One small request each; the others in the next looks.
RUNS_ASKED_A_LOOK = 20
ASK_AGAIN_SECONDS = 600.0
# How long a run must have said that it has ended. A build may end between two questions, and its executor be free a moment later.
ENDED_SECONDS, MAY_HAVE_ENDED_SECONDS = 600.0, 3600.0
# For so long after its executor has gone people may read of it.
TOLD_SECONDS = 3600.0
_MOST_REMEMBERED = 500


def name_of(controller: str, build: Build) -> str:
    """Name a build on its executor, on all controllers."""
    return f"{controller}/{build.key}"


def runs_to_ask(
    view: ControllerView, memory: Memory, records: Iterable[Record], learned: Learned, fleet: Fleet, now: float
) -> tuple[str, ...]:
    """Name the runs that are to be asked now whether they have ended: those that were asked longest ago, then those that run longest."""
    if not view.complete:
        return ()
    due: list[tuple[float, float, str]] = []
    for record, node in _nodes_of_ours(view, records):
        drains_too_long = _drains_too_long(memory, record, fleet, now)
        for build in filter(_may_be_asked, node.builds):
            asked, seconds = _of_session(memory.asked, view, build), elapsed_seconds(build, learned, now)
            is_too_long = drains_too_long or seconds >= _ask_after(build, record.pool, learned)
            if _is_due(asked, now, is_too_long=is_too_long):
                due.append((asked.asked_at if asked else 0.0, -seconds, build.run))
    return tuple(dict.fromkeys(run for *_, run in sorted(due)))[:RUNS_ASKED_A_LOOK]


def next_asked(before: Mapping[str, AskedRun], snapshot: Snapshot) -> dict[str, AskedRun]:
    """Carry on what runs said, as long as their executors show them in the same session of their controller."""
    asked = dict(_kept(before, snapshot)) if before else {}
    for view in snapshot.controllers.values():
        answers = snapshot.run_answers.get(view.name, {})
        if not (asked or answers):  # nearly always: no run was too long
            continue
        for build in (build for node in view.nodes for build in (*node.builds, *node.ended)):
            name, answer = name_of(view.name, build), answers.get(build.run)
            if answer is not None and _may_be_asked(build):
                asked[name] = _answered(_of_session(asked, view, build), answer, view.session, snapshot.taken_at)
            elif (run := _of_session(asked, view, build)) is not None:
                asked[name] = replace(run, seen_at=snapshot.taken_at)
    return dict(sorted(asked.items(), key=lambda item: item[1].asked_at)[-_MOST_REMEMBERED:])


def is_no_fault_of_its_machine(asked: Mapping[str, AskedRun], controller: str, build: Build) -> bool:
    """Tell whether a build runs for so long because it has ended, or waits for a person."""
    run = asked.get(name_of(controller, build))
    return run is not None and (run.ended_at is not None or run.waits_for_input)


def said_to_have_ended(asked: Mapping[str, AskedRun], controller: str) -> frozenset[str]:
    """Return the keys of the builds of which nobody saw when they ended: their executors showed them for longer."""
    place = f"{controller}/"
    return frozenset(name.removeprefix(place) for name, run in asked.items() if run.ended_at is not None and name.startswith(place))


def without_ended(snapshot: Snapshot) -> Snapshot:
    """Return what is to be seen without the builds that have ended: their executors are neither at work nor free."""
    asked = next_asked(snapshot.memory.asked, snapshot)
    over = {name: run.session for name, run in asked.items() if run.over_at is not None}
    if not over:
        return snapshot
    views = {
        view.name: replace(view, nodes=tuple(_without_ended(view, node, over) for node in view.nodes))
        for view in snapshot.controllers.values()
    }
    return replace(snapshot, controllers=views)


def _of_session(asked: Mapping[str, AskedRun], view: ControllerView, build: Build) -> AskedRun | None:
    run = asked.get(name_of(view.name, build))
    return run if run is not None and run.session == view.session else None


def _without_ended(view: ControllerView, node: Node, over: Mapping[str, str]) -> Node:
    ended = tuple(build for build in node.builds if over.get(name_of(view.name, build)) == view.session)
    if not ended:
        return node
    working = tuple(build for build in node.builds if build not in ended)
    return replace(node, builds=working, ended=(*node.ended, *ended), executors=max(0, node.executors - len(ended)), idle=not working)


def _is_due(asked: AskedRun | None, now: float, *, is_too_long: bool) -> bool:
    """Tell whether a run is to be asked; one that said once that it has ended is asked again, however long its job may take by now."""
    if asked is None:
        return is_too_long
    return asked.over_at is None and now - asked.asked_at >= ASK_AGAIN_SECONDS and (is_too_long or asked.ended_at is not None)


def _nodes_of_ours(view: ControllerView, records: Iterable[Record]) -> Iterator[tuple[Record, Node]]:
    nodes = {node.name: node for node in view.nodes}
    for record in records:
        if record.controller == view.name and record.node in nodes:
            yield record, nodes[record.node]


def _may_be_asked(build: Build) -> bool:
    """Tell whether a run's own page says anything about this executor: a one-off executor shows more than its run."""
    return bool(build.run) and not build.is_one_off


def _ask_after(build: Build, pool: str, learned: Learned) -> float:
    longest = max(learned.samples.get(job_key(build.job, pool), ()), default=build.estimate_seconds)
    if longest is None:
        return ASK_AFTER_UNKNOWN_SECONDS
    return max(ASK_AFTER_TIMES * longest, ASK_AFTER_AT_LEAST_SECONDS)


def _drains_too_long(memory: Memory, record: Record, fleet: Fleet, now: float) -> bool:
    since_at, pool = memory.draining_since.get(record.instance_id), fleet.pool_of(record.pool, record.controller)
    if since_at is None or pool is None:
        return False
    limit = ASK_AFTER_UNKNOWN_SECONDS if pool.drain_timeout_seconds is None else pool.drain_timeout_seconds
    return now - since_at - blind_seconds(memory.looks.get(record.controller), since_at, now) > limit


def _kept(before: Mapping[str, AskedRun], snapshot: Snapshot) -> Iterator[tuple[str, AskedRun]]:
    """Forget what is not shown any more, or was shown before a restart; what was over is remembered for people a while longer."""
    shown = {
        name_of(view.name, build): view.session
        for view in snapshot.controllers.values()
        for node in view.nodes
        for build in (*node.builds, *node.ended)
    }
    unread = tuple(f"{view.name}/" for view in snapshot.controllers.values() if not view.complete)
    for name, run in before.items():
        is_told = run.over_at is not None and snapshot.taken_at - run.seen_at < TOLD_SECONDS
        if shown.get(name) == run.session or name.startswith(unread) or is_told:
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
