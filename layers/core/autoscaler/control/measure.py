"""Measures: observes, learns from the changes since the last look, publishes metrics and tells people. Needs no lease."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from autoscaler.control.observe import Invocation, a_part_of, log_notes, observe_without_instances
from autoscaler.control.statistics import learned_weights, note_costs, note_jobs
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.job_settings import PluginWeight, Source
from autoscaler.domain.facts.metering import month_name
from autoscaler.domain.facts.runs import Graphs, RunEnd, RunGraph
from autoscaler.domain.facts.snapshot import ControllerView, Snapshot
from autoscaler.domain.facts.telemetry import Telemetry, out_of_bounds
from autoscaler.domain.learn import assess
from autoscaler.domain.lessons import Lesson, learn_from_builds
from autoscaler.domain.report.datum import COUNT, Datum, PassNotes, data_of_notes, lines_of, one, places_of_notes
from autoscaler.domain.report.limits import places_of
from autoscaler.domain.report.messages import ABOUT, is_worth_saving, month_before, untold, write_messages, write_summary
from autoscaler.domain.report.metrics import heartbeat, measure
from autoscaler.domain.report.problems import Problem, Thresholds, facts_of, judge, nobody_is_told, problems_datum, rules
from autoscaler.domain.report.told import Message, Told
from autoscaler.domain.scale_in.replace import RESULTS_SECONDS, gone_since
from autoscaler.domain.situation.builds import AskedItems, gone_blocks, items_of, runs_to_read
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.warm_pool import next_short_of_disk
from autoscaler.errors import AutoscalerError, ConfigError, ConflictError, NoAnswerError
from autoscaler.ports import Controller, Notifier, Ports, StoredState

# Reads the flow graphs of runs whose node blocks have left their executors. Who has no pipelines is asked for none.


# In one look at one controller. The next look reads the others.
MOST_REQUESTS, MOST_BYTES = 20, 200_000
# Of one run, a request each.
MOST_NODES = 5
# Of one run: a larger one is not read. A step takes some 160 bytes, more if its name is long.
MOST_STEPS, _BYTES_OF_A_STEP = 1000, 200


def read_graphs(ports: Ports, controller: Controller, runs: Iterable[str], until: float, unseen: Collection[str] = ()) -> Graphs:
    """Read the graphs of these runs in this order, as many as fit in the bounds.

    ``unseen``: runs whose blocks may have come and gone between two looks. The nodes of these are read, too, those that ended last first.
    """
    read: dict[str, RunGraph | None] = {}
    failed: set[str] = set()
    size = requests = 0
    for run in dict.fromkeys((*unseen, *runs)):
        steps = min(MOST_STEPS, (MOST_BYTES - size) // _BYTES_OF_A_STEP)
        if steps <= 0 or ports.clock() >= until or requests >= MOST_REQUESTS:
            break
        requests += 1
        try:
            graph = controller.graph(run, steps)
            if graph is not None and run in unseen:
                graph = _with_nodes(controller, run, graph)
                requests += MOST_NODES
        except AutoscalerError as error:
            ports.log("graph_not_read", controller=controller.name, run=run, error=f"{type(error).__name__}: {error}")
            failed.add(run)
            if isinstance(error, NoAnswerError):
                break
            continue
        if graph is not None:
            size += graph.size
            graph = replace(graph, too_large=graph.cut and steps == MOST_STEPS)
        read[run] = graph
    if read:
        ports.log("graphs_read", controller=controller.name, runs=len(read), bytes=size)
    return Graphs(read=read, failed=frozenset(failed))


def _with_nodes(controller: Controller, run: str, graph: RunGraph) -> RunGraph:
    """Read on which nodes the last blocks of a run ran that have ended."""
    ended = sorted((block for block in graph.blocks if block.end), key=lambda block: -block.ended_as)[:MOST_NODES]
    nodes = {block.asked_as: controller.node_of_block(run, block.asked_as) for block in ended}
    return replace(graph, blocks=tuple(replace(block, node=nodes.get(block.asked_as, "")) for block in graph.blocks))


# Reads what the Heavy Job plugin gives jobs, where the fleet file asks it: from each job's configuration, a few a look, once a day.


# Each is a request of its own; a configuration changes seldom.
READ_A_LOOK = 5
READ_AGAIN_SECONDS = 86_400.0
# Each pass reads them: those of jobs that have not waited for longest are left out.
JOBS_KEPT = 1000


def heavy_jobs(
    ports: Ports, fleet: Fleet, controller: Controller, view: ControllerView, before: Mapping[str, PluginWeight]
) -> Mapping[str, PluginWeight]:
    """Return the weights of jobs, those of some that wait read anew. What cannot be read is asked for again by the next look."""
    if not fleet.weights.asks(Source.PLUGIN):
        return {}
    known, now = dict(before), ports.clock()
    waiting = dict.fromkeys(item.job for item in view.items if item.job and fleet.weights.source_of(item.job) is Source.PLUGIN)
    due = [job for job in waiting if job not in known or now - known[job].read_at >= READ_AGAIN_SECONDS]
    # Others go first at each look: jobs whose configuration may not be read stay due, and must not keep the rest from their turn.
    for job in a_part_of(due, READ_A_LOOK, now):
        try:
            weight = controller.heavy_weight(job)
        except AutoscalerError as error:
            ports.log("heavy_job_not_read", controller=controller.name, job=job, error=f"{type(error).__name__}: {error}")
            if isinstance(error, ConfigError):
                continue  # of this job alone
            break
        known.pop(job, None)
        known[job] = PluginWeight(weight=weight, read_at=now)
    return dict(list(known.items())[-JOBS_KEPT:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one look saw, its metrics, what people had been told of before, and the notes that passes left, by function."""

    situation: Situation
    data: list[Datum]
    told: Told
    passes: Mapping[str, PassNotes]


def collect(ports: Ports, fleet: Fleet, invocation: Invocation) -> Measured:
    """Return the metrics of the fleet as it is now, and save what was learned on the way."""
    stored = ports.state.read()
    reports = telemetry_of(ports)
    situation, lessons = observe_and_learn(ports, fleet, stored, invocation, reports)
    if not invocation.dry_run:
        note_jobs(ports, situation, lessons, reports)
        note_costs(ports, situation, lessons)
    readable = [controller for controller in ports.controllers if situation.snapshot.controllers[controller.name].complete]
    # Node monitors change once an hour, so a failed read can wait for the next minute.
    healths = ports.side_by_side(
        [partial(ports.or_else, one.health, "health_not_read", otherwise=None, controller=one.name) for one in readable]
    )
    health = {controller.name: readings for controller, readings in zip(readable, healths, strict=True) if readings is not None}
    return Measured(situation=situation, data=measure(situation, lessons, health, reports), told=stored.told, passes=stored.passes)


def telemetry_of(ports: Ports) -> Mapping[str, Telemetry]:
    """Read what machines told last. Where that fails, the next minute reads it."""
    return ports.or_else(partial(believable_telemetry, ports), "telemetry_not_read", otherwise={})


def believable_telemetry(ports: Ports) -> Mapping[str, Telemetry]:
    """Read what machines told last. A report that no machine can have made, from before that was refused, is dropped."""
    reports = ports.telemetry.latest() if ports.telemetry else {}
    problems = {machine: problem for machine, report in reports.items() if (problem := out_of_bounds(report))}
    for machine, problem in problems.items():
        ports.log("telemetry_dropped", machine=machine, problem=problem)
    return {machine: report for machine, report in reports.items() if machine not in problems}


def observe_and_learn(
    ports: Ports, fleet: Fleet, stored: StoredState, invocation: Invocation, reports: Mapping[str, Telemetry] = MappingProxyType({})
) -> tuple[Situation, dict[str, Lesson]]:
    """Observe, and learn from the changes since the last look: durations, results and waits of jobs, and what ``reports`` say of disks."""
    snapshot = observe_without_instances(ports, fleet, stored, invocation)
    situation = assess(snapshot, fleet, invocation.memo)
    lessons: dict[str, Lesson] = {}
    ask_until = ports.clock() + RESULTS_SECONDS
    for port in ports.controllers:
        controller = port.name
        ends = _ends(ports, port, snapshot, ask_until)
        results = {run: end.result for run, end in ends.items() if end.result is not None}
        view, before = snapshot.controllers[controller], snapshot.learned[controller]
        items = items_of(before, view, [end.item for end in ends.values() if end.item], snapshot.taken_at)
        if view.complete and controller in ports.builds:
            _ask_items(ports, controller, items, ask_until)
        gone = gone_blocks(before, view, snapshot.taken_at)
        graphs = read_graphs(ports, port, runs_to_read(gone, before.blocks.runs, snapshot.taken_at), ask_until, items.runs)
        # How long pipelines took that have ended; results are those of their node blocks.
        of_pipelines = {run: RunEnd(result=None, seconds=graph.end.seconds) for run, graph in graphs.read.items() if graph and graph.end}
        lesson = replace(learn_from_builds(situation, controller, results, graphs, items), ends={**of_pipelines, **ends})
        _log_blocks(ports, controller, lesson)
        learned = replace(
            lesson.learned,
            weights=learned_weights(ports, fleet, controller, before.weights),
            heavy_jobs=heavy_jobs(ports, fleet, port, view, before.heavy_jobs),
            short_of_disk=next_short_of_disk(before.short_of_disk, stored.records, controller, reports),
        )
        lesson = lessons[controller] = replace(lesson, learned=learned)
        if not lesson.learned.tells_what(before):
            try:
                ports.state.save_learned(controller, lesson.learned)
            except ConflictError:
                # An invocation that overlapped this one learned the same first: its samples count, ours would be twice.
                ports.log("learned_elsewhere", controller=controller)
    log_notes(ports, snapshot)
    return situation, lessons


def _ask_items(ports: Ports, controller: str, items: AskedItems, ask_until: float) -> None:
    """Ask what became of queue items, until one question fails or the time is up; the next look asks about the rest."""
    try:
        for item in items.to_ask():
            if ports.clock() >= ask_until:
                break
            items.answers[item] = ports.builds[controller].item(item)
    except AutoscalerError as error:
        ports.log("item_not_read", controller=controller, error=f"{type(error).__name__}: {error}")


def _log_blocks(ports: Ports, controller: str, lesson: Lesson) -> None:
    for build in lesson.unseen:
        ports.log("build_ended", controller=controller, pool=build.pool, node=build.node, run=build.run, result=build.result)
    for block, end in lesson.blocks:
        where = {"controller": controller, "pool": block.pool, "node": block.node, "run": block.run}
        ports.log("block_ended", **where, block=block.signature, result=end)


def _ends(ports: Ports, controller: Controller, snapshot: Snapshot, ask_until: float) -> dict[str, RunEnd]:
    """Ask how builds ended that are gone since the last look, until one fails or the time is up; the rest stay unknown."""
    found: dict[str, RunEnd] = {}
    for gone in gone_since(snapshot.learned[controller.name], snapshot.controllers[controller.name]):
        if ports.clock() >= ask_until:
            ports.log("results_not_asked", controller=controller.name, seconds=RESULTS_SECONDS)
            break
        try:
            end = controller.result(gone.run)
        except AutoscalerError as error:
            ports.log("result_not_read", controller=controller.name, run=gone.run, error=f"{type(error).__name__}: {error}")
            break
        if end is not None:
            found[gone.run] = end
        if end is not None and end.result is not None:
            ports.log("build_ended", controller=controller.name, pool=gone.pool, node=gone.node, run=gone.run, result=end.result)
    return found


# Finds out whether people are still to be told what the last month cost.


def last_month(ports: Ports, told: Told, situation: Situation) -> tuple[str, Message | None]:
    """Return the month that people know of once this message is sent, if there is one.

    A month is reported once all of it is in its item: the first look of the next one adds the rest. Until then each look asks again.
    """
    last = month_before(month_name(situation.now))
    if ports.notifier is None or told.month >= last:
        return told.month, None
    try:
        open_month = ports.costs.batch().month
        if open_month and open_month <= last:
            return told.month, None
        month, before = ports.costs.month(last), ports.costs.month(month_before(last))
    except AutoscalerError as error:
        ports.log("month_not_told", month=last, error=f"{type(error).__name__}: {error}")
        return told.month, None
    return last, write_summary(month, before, situation.fleet, ports.notifier.runbooks)


# Tells people what begins and what is over, each once: sent first, remembered then, so that a message may come twice and is never lost.


# A message that nobody answers takes so long: two attempts of 13 s. With less time left it is sent at the next look.
SEND_SECONDS = 27.0


def notify(
    ports: Ports, told: Told, situation: Situation, ends_at: float, problems: Sequence[Problem] = (), now_seen: Told | None = None
) -> int:
    """Send what is to be told; return how many messages that were. What fails, or comes too late, is sent at the next look.

    ``problems``: what people are told of beside what is told always; ``now_seen``: what is remembered of these.
    """
    if ports.notifier is None and now_seen is None:
        return 0
    after, messages = write_messages(now_seen or told, situation, ports.notifier.runbooks if ports.notifier else "", problems)
    month, summary = last_month(ports, told, situation)
    # What people know once all of these messages are sent.
    after, messages = replace(after, month=month), [*messages, *([summary] if summary else [])]
    failed = {message.about for message in messages if not _sent(ports, ports.notifier, message, ends_at)}
    # What could not be sent stays untold, and keeps nothing else from being remembered as told.
    after = replace(after, troubles=untold(told, after, failed), month=told.month if ABOUT + after.month in failed else after.month)
    if len(messages) > len(failed) or is_worth_saving(told, after):
        ports.or_else(partial(ports.state.save_told, after), "message_failed", otherwise=None)
    return len(messages) - len(failed)


def why_nobody_is_told(notifier: Notifier | None) -> str:
    """Say that messages reach nobody, and what to do about it; "" if somebody gets them. `TransientError`."""
    return nobody_is_told(notifier.subscriptions() if notifier else ())


def _sent(ports: Ports, notifier: Notifier | None, message: Message, ends_at: float) -> bool:
    if notifier is None or ends_at - ports.clock() < SEND_SECONDS:
        return False
    if not ports.is_done(partial(notifier.send, message), "message_failed", subject=message.subject):
        return False
    ports.log("notified", subject=message.subject)
    return True


# Publishes what one look measured, and tells people of what begins and ends.


def publish_all(ports: Ports, fleet: str, measured: Measured, invocation: Invocation) -> int:
    """Send every metric, by pool and controller, too, for an alarm each to watch; return how many there were."""
    try:
        return ports.metrics.publish([*measured.data, heartbeat(fleet, "publish_metrics")], ports.clock())
    finally:
        # Last, since a topic that does not answer takes its time; and whether or not the metrics could be sent.
        notify(ports, measured.told, measured.situation, invocation.ends_at)


def publish_essential(ports: Ports, fleet: str, measured: Measured, invocation: Invocation, thresholds: Thresholds) -> int:
    """Send few metrics, log the rest, and judge here what an alarm each would; return how many metrics were sent."""
    situation = measured.situation
    data = [*measured.data, *data_of_notes(fleet, measured.passes, situation.now)]
    places = places_of(situation, measured.data) | places_of_notes(measured.passes, situation.now)
    judged = judge(measured.told, rules(thresholds), data, places, situation.now)
    for event, facts in lines_of(measured.data):
        ports.log(event, **facts)
    for problem in judged.began:
        ports.log("problem", **facts_of(problem))
    beat = one("Heartbeat", 1, COUNT, (("Fleet", fleet),))
    problems = [problems_datum(fleet, judged)] if judged.ringing else []  # a metric is billed by the hours in which it is sent
    try:
        return ports.metrics.publish([*measured.data, beat, *problems], ports.clock())
    finally:
        notify(ports, measured.told, situation, invocation.ends_at, judged.problems, replace(measured.told, spans=judged.spans))
