"""Explain one job, node, instance or pool: the chain of facts from the decision itself, each fact once."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from math import inf

from autoscaler.domain import decide
from autoscaler.domain.facts.fleet import Fleet, Pool
from autoscaler.domain.facts.metering import LevelKind
from autoscaler.domain.facts.plan import Held, Launch, Plan, Start, Step, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Build, Snapshot
from autoscaler.domain.grouping import grouped
from autoscaler.domain.launch.budget import Budget, Usage
from autoscaler.domain.learn import assess
from autoscaler.domain.repair.boots import told_by_others
from autoscaler.domain.report.controllers import told_controller, told_others
from autoscaler.domain.report.eta import QueueEntry, from_to
from autoscaler.domain.report.limits import told_schedules
from autoscaler.domain.report.listing import list_queue, told_devices, told_weights, words_of
from autoscaler.domain.report.machines import (
    image_of,
    lending_of,
    of_stopped,
    stops_of,
    told_images,
    told_lent,
    told_starts,
    usd_per_hour_of,
    why_kept,
    why_never_stopped,
)
from autoscaler.domain.report.ordered import told_lost, told_reserved
from autoscaler.domain.report.overdue import told_held_labels, told_holds_of_job, told_left, told_left_pool, told_row, told_stray
from autoscaler.domain.report.told import Event, told_mark, told_marked, told_offline
from autoscaler.domain.report.waiting import CHOICES, OF_BREAKERS, broken_pool, patience_seen, why_no_agent
from autoscaler.domain.scale_in.make_room import told_hours, what_holds
from autoscaler.domain.scale_in.replace import told_ended
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.bets import TrialOf, failing, told_boots, told_last, trials_of
from autoscaler.domain.situation.left import told_unseen, unseen_sides, why_not_wanted
from autoscaler.domain.situation.looks import elapsed_seconds
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.states import state_of
from autoscaler.domain.wording import clock, counted, dollars, duration, listed

# What is known of the waiting and running builds of one job, each fact once however many wait.


# States of items that have a place in the plan: what they wait for is said beside the answer.
PLANNED = ("placed", "no-executor")
_STAGES_NAMED = 5
PLACES_NAMED = 3


def facts_of_waiting(entries: Sequence[QueueEntry]) -> Iterator[str]:
    """Say of items of one job what they wait for, beyond the answer; items that wait alike share a line."""
    alike = grouped(((entry.controller, entry.label, entry.pools, entry.state), entry) for entry in entries)
    for group in alike.values():
        yield _of_group(group, is_all=len(alike) == 1)
        if group[0].state not in PLANNED:
            continue
        soonest = sorted(group, key=lambda entry: (entry.starts_in_seconds is None, entry.starts_in_seconds or 0.0))
        details = list(dict.fromkeys(entry.detail for entry in soonest))
        if len(details) == 1:
            yield details[0]
        elif all(entry.starts_in_seconds is None for entry in group):
            yield f"for example: {details[0]}"
        else:
            yield f"the first of them: {details[0]}"
            yield f"the last of them: {details[-1]}"
    stages = list(dict.fromkeys(entry.stage for entry in entries if entry.stage))
    if len(stages) > 1:
        more = f" and {len(stages) - _STAGES_NAMED} more" if len(stages) > _STAGES_NAMED else ""
        yield f"they are: {', '.join(stages[:_STAGES_NAMED])}{more} (autoscaler queue lists all)"


def _of_group(group: Sequence[QueueEntry], *, is_all: bool) -> str:
    first, several = group[0], len(group) > 1
    who = ("they wait" if is_all else f"{len(group)} wait") if several else f"{first.job} waits"
    label = f" for {first.label}" if first.label else ""
    served = f"; {', '.join(first.pools)} may serve {'them' if several else 'it'}" if first.pools else ""
    return f"{who}{label} on {first.controller}, for {from_to([entry.waiting_seconds for entry in group])} so far{served}"


# Why a job waits, in one sentence: `why` begins with it. The facts behind it follow, each once.


# If several reasons keep agents from being launched, the first of these is the answer: what a person ordered, then what is broken.
_WEIGHTIEST = (
    Reason.FROZEN,
    Reason.HELD,
    Reason.USD_PER_MONTH,
    Reason.HOURS_PER_DAY,
    Reason.MAX_AGENTS,
    Reason.TEAM_MAX_AGENTS,
    Reason.FLEET_MAX_AGENTS,
    Reason.LAUNCH_RATE,
    Reason.USD_PER_HOUR,
    Reason.NOT_ITS_TURN,
)
# Choices come last.
_PLACE = {reason: place for place, reason in enumerate(_WEIGHTIEST)} | dict.fromkeys(CHOICES, inf)
_FULL = {
    Reason.MAX_AGENTS: (LevelKind.POOL, "max_agents"),
    Reason.TEAM_MAX_AGENTS: (LevelKind.TEAM, "max_agents of its team"),
    Reason.FLEET_MAX_AGENTS: (LevelKind.FLEET, "limits.max_agents"),
}


def _answer_of_waiting(situation: Situation, plans: Sequence[Plan], entries: Sequence[QueueEntry], running: int, of: str) -> str:
    """Say how many items of a job wait, why, and when the next one starts. ``of``: names the job, if it was asked for by another name."""
    by_number = Counter(
        _cause(situation, plans, entry) for entry in sorted(entries, key=lambda entry: -entry.waiting_seconds)
    ).most_common()
    because = by_number[0][0] if len(by_number) == 1 else "; ".join(f"{number} because {cause}" for cause, number in by_number)
    kinds = {entry.of_pipeline for entry in entries}
    nouns = "stage" if kinds == {True} else "item" if len(kinds) > 1 else "build"
    also = f" {counted(running, 'other')} {'runs' if running == 1 else 'run'}." if running else ""
    return f"{counted(len(entries), nouns)}{of} {'waits' if len(entries) == 1 else 'wait'}: {because}.{_next(situation, entries)}{also}"


def _answer_of_running(builds: Sequence[tuple[Agent, Build, float]], of: str) -> str:
    """Say where builds of a job run, and for how long."""
    places = [f"{agent.record.node} of {agent.pool.name} for {duration(elapsed)}" for agent, _, elapsed in builds]
    verb = "runs" if len(builds) == 1 else "run"
    return f"{counted(len(builds), 'build')}{of} {verb}, and none waits: on {listed(places, PLACES_NAMED)}."


def is_said(situation: Situation, refusal: Held, answer: str) -> bool:
    """Tell whether an answer has all that a refusal says."""
    has_figures = refusal.reason in (*_FULL, Reason.HELD, Reason.FROZEN)
    return (has_figures and _obstacle(situation, refusal) in answer) or bool(refusal.detail and refusal.detail in answer)


def _cause(situation: Situation, plans: Sequence[Plan], entry: QueueEntry) -> str:
    """Say why an item waits."""
    if entry.state == "pool-broken":
        broken = [pool for name in entry.pools if (pool := broken_pool(situation, name))]
        return "; ".join(f"agents of {pool.pool} do not boot (the last {counted(pool.failures, 'boot')} failed)" for pool in broken)
    if entry.state == "late-agent":
        return f"an agent of {listed(entry.pools)} takes longer than usual to boot"
    if entry.state not in PLANNED:
        return entry.because
    if entry.starts_in_seconds == 0:
        return f"an executor of {listed(entry.pools)} is free, and Jenkins starts it within seconds"
    if on_the_way := dict.fromkeys(_launched_now(plans, entry)):
        return " and ".join(on_the_way)
    # That `scale_down` ends no agent yet is no reason why `scale_up` launches none.
    refusals = [refusal for refusal in plans[0].held if refusal.controller in ("", entry.controller)]
    return "; ".join(dict.fromkeys(_why_not_in(situation, entry.controller, name, refusals) for name in entry.pools))


def _launched_now(plans: Iterable[Plan], entry: QueueEntry) -> Iterator[str]:
    """Say which agents the plan launches, starts or brings back for an item."""
    steps = (step for plan in plans for step in plan.steps if step.controller == entry.controller)
    for step in (step for step in steps if step.pool in entry.pools):
        if isinstance(step, Launch):
            yield f"{counted(step.count, 'agent')} of {step.pool} {_is(step.count)} launched now{_which_shows(step)}"
        elif isinstance(step, Start):
            count = len(step.instance_ids)
            yield f"{counted(count, 'stopped agent')} of {step.pool} {_is(count)} started now{_which_shows(step)}"
        elif isinstance(step, Uncordon):
            yield f"{step.node} of {step.pool} is brought back now"


def _which_shows(step: Launch | Start) -> str:
    """Say of an agent that EC2 may refuse again, as it refused the last ones, what is tried."""
    return f", which shows {step.detail}" if step.reason is Reason.TRIES_AGAIN else ""


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _why_not_in(situation: Situation, controller: str, pool: str, held: Collection[Held]) -> str:
    """Say what keeps agents of a pool from being launched; if nothing does, what jobs wait for."""
    view = situation.pools.get((controller, pool))
    booting = [agent for agent in view.agents if agent.phase.is_on_its_way] if view else []
    weightiest = min(
        (refusal for refusal in held if refusal.pool == pool),
        key=lambda refusal: _PLACE.get(refusal.reason, len(_WEIGHTIEST)),
        default=None,
    )
    if weightiest and (weightiest.reason not in CHOICES or not booting):
        return _obstacle(situation, weightiest)
    if len(booting) > 1:
        return f"{len(booting)} agents of {pool} are booting"
    if booting:
        return f"an agent of {pool} is booting ({booting[0].record.node or booting[0].record.instance_id})"
    return f"every executor of {pool} is busy or promised to jobs before it"


def _obstacle(situation: Situation, refusal: Held) -> str:
    """Say what keeps agents of a pool from being launched, with the figures of the limit."""
    levels = Budget(situation).levels_of(refusal.pool)
    kind = _FULL[refusal.reason][0] if refusal.reason in _FULL else None
    usage = next((use for use in levels if refusal.limit_of == use.level.text or (kind is not None and use.level.kind is kind)), None)
    if usage is not None and (limit := _limit(refusal, usage)):
        return limit
    match refusal.reason:
        case Reason.HELD | Reason.FROZEN:
            return refusal.detail
        case Reason.OF_HOSTS:
            return f"every host of {refusal.pool} is busy or offline, and hosts are not launched"
        case Reason.WORTH_WAITING:
            return f"a busy executor of {refusal.pool} will be free so soon that waiting for it costs less than another agent"
        case Reason.NO_OFFERING | Reason.POOL_PAUSED | Reason.ACCOUNT_THROTTLED:
            return f"EC2 launches no agent of {refusal.pool} ({refusal.detail})"
        case _:
            return f"no agent of {refusal.pool} is launched: {refusal.detail} ({refusal.reason})"


def _limit(refusal: Held, usage: Usage) -> str:
    """Say which limit is reached, and how much of it is used; "" if the refusal is for something else."""
    whose, ceilings = usage.level.text, usage.level.ceilings
    if refusal.reason in _FULL:
        full = refusal.pool if usage.level.kind is LevelKind.POOL else whose
        return f"{full} is full ({usage.agents} of {ceilings.max_agents:g} agents, {_FULL[refusal.reason][1]})"
    if refusal.reason is Reason.LAUNCH_RATE:
        return f"{whose} has launched {counted(usage.launched, 'agent')} within the hour (max_launches_per_hour)"
    if refusal.reason is Reason.USD_PER_HOUR:
        most = dollars(ceilings.max_usd_per_hour)
        return f"another agent of {refusal.pool} would cost more than {whose} may, {most} an hour (max_usd_per_hour)"
    return f"the month's money of {whose} is spent (max_usd_per_month)" if refusal.reason is Reason.USD_PER_MONTH else ""


def _next(situation: Situation, entries: Iterable[QueueEntry]) -> str:
    """Say when the first of these items would start."""
    planned = [entry for entry in entries if entry.state == "placed"]
    seconds = [entry.starts_in_seconds for entry in planned if entry.starts_in_seconds is not None]
    if not planned or 0 in seconds:
        return ""
    if not seconds:
        return " Nobody knows when the next executor is free."
    return f" The next executor is expected in about {duration(min(seconds))}, at {clock(situation.now + min(seconds))}."


# Explanations of jobs, nodes, instances and pools.


Meant = Callable[[Step | Held], bool]


def explain(snapshot: Snapshot, fleet: Fleet, subject: str, asked: str | None = None, events: Collection[Event] = ()) -> list[str]:
    """Say what is known of a job, a node (or instance id) or a pool; empty if nothing has that name.

    A job's answer comes first: why it waits, in one sentence. ``asked``: what a person typed instead of ``subject``, if that is different.
    ``events``: of the fleet's history, oldest first.
    """
    if not subject:
        return []
    situation, plans = assess(snapshot, fleet), (decide.scale_up(snapshot, fleet), decide.scale_down(snapshot, fleet))
    of_job = list(_of_job(situation, plans, subject, asked))
    found = [
        *_of_pool(situation, plans, fleet.pools.get(subject)),
        *told_left_pool(situation, subject),
        *_of_node(situation, plans, subject, events),
        *(_of_gone(situation, plans, subject) if not any(subject in _names(agent) for agent in situation.agents) else ()),
        *of_job[1:],
    ]
    if not (found or of_job):
        is_read = all(view.complete for view in situation.snapshot.controllers.values())
        return [] if is_read else _in_order(situation, subject, [], [unreadable(subject)])
    return _in_order(situation, subject, of_job, found)


def _in_order(situation: Situation, subject: str, of_job: Sequence[str], found: Iterable[str]) -> list[str]:
    """Put the answer about a job first, then what is wrong with controllers and the pool, each fact once."""
    broken, refused = broken_pool(situation, subject), why_no_agent(situation, subject) if subject in situation.fleet.pools else ""
    controllers = [line for line in _of_controllers(situation) if not any(line.partition(": ")[0] in answer for answer in of_job[:1])]
    return list(dict.fromkeys([*of_job[:1], *controllers, *(broken.lines() if broken else ()), *filter(None, [refused]), *found]))


def unreadable(subject: str) -> str:
    """Say that nothing is known of a name, and that it may be a job of a controller that cannot be read."""
    return f"whether {subject} waits or runs on a controller that cannot be read is not known"


def _of_controllers(situation: Situation) -> Iterator[str]:
    yield from (what_holds(situation, level) for level in situation.spent_levels)
    for view in situation.snapshot.controllers.values():
        if told := told_controller(situation, view):
            yield told
        yield from told_others(situation, view)
        if not view.shows_jobs:
            yield f"{view.name} shows not a single job: it has none yet, or our account lacks Job/Read there, and nothing is launched"


def _of_pool(situation: Situation, plans: Iterable[Plan], written: Pool | None) -> Iterator[str]:
    """Say what is known of a pool, as it is ``written`` in the fleet file."""
    if written is None:
        return
    broken, paused = broken_pool(situation, written.name), set()
    for pool in (pool for (_, name), pool in situation.pools.items() if name == written.name):
        if pool.paused and not (broken and pool.paused in OF_BREAKERS):
            paused.add(pool.paused_detail)
            yield f"nothing is launched there: {pool.paused_detail}"
        yield from _of_pool_view(situation, pool)
    if ended := failing(situation.memory, TrialOf.ENDED.scope(written.name)):
        yield told_by_others(ended)
    yield from (seen.text.partition(".\n")[0] for name, seen in patience_seen(situation) if written.name in name.split("/")[2].split(", "))
    yield from told_hours(situation, written.name)
    yield from told_schedules(situation, written)
    without = (*(OF_BREAKERS if broken else ()), *([Reason.NO_OFFERING] if why_no_agent(situation, written.name) else []))
    yield from _decided(plans, lambda step: step.pool == written.name, told=paused, without=without)


def _of_pool_view(situation: Situation, pool: PoolView) -> Iterator[str]:
    starved = situation.starved[pool.controller].get(pool.name, 0)
    agents = ", ".join(f"{count} {word}" for word, count in sorted(words_of(situation, pool.agents).items())) or "no agents"
    least, most, worth = pool.spec.min_agents, pool.spec.max_agents, pool.spec.wait_usd_per_hour
    yield f"{pool.name} on {pool.controller}: {counted(starved, 'job')} waiting for it; {agents}; at most {most}, at least {least}"
    yield f"an agent costs {dollars(pool.usd_per_hour)} an hour; an hour of waiting is worth {dollars(worth)}"
    yield _boots(pool)
    yield from told_images(situation, pool)
    yield from lending_of(situation, pool)
    if situation.fleet.declined is not None:
        from autoscaler.domain.report.declined import told_of_pool  # noqa: PLC0415 - for fleets with max_job_seconds only

        yield from told_of_pool(situation, pool.controller, pool.name)
    if warm := pool.spec.warm_pool:
        yield from stops_of(situation, pool, warm)
    for scope, trial in trials_of(situation.memory, TrialOf.PLACE).items():
        if trial.is_failing and scope.startswith(f"{pool.name}/"):
            yield f"{scope.removeprefix(f'{pool.name}/')} is asked for last: {told_boots(trial)}"
    if pool.short_seconds >= 1:
        yield f"machines were short: agents are kept as if one more took {duration(pool.short_seconds)} longer to be had"


def _boots(pool: PoolView) -> str:
    seen = len(pool.memory.pool(pool.name).boots)
    how = f"half of the last {seen}" if pool.boots else f"boot_seconds in the fleet file; {counted(seen, 'boot')} seen so far"
    return f"a boot of {pool.name} takes {duration(pool.boot_seconds)} ({how})"


def _of_node(situation: Situation, plans: Iterable[Plan], subject: str, events: Collection[Event]) -> Iterator[str]:
    for agent in situation.agents:
        if subject in _names(agent):
            decided = list(_decided(plans, _about(_names(agent))))
            yield from _of_agent(situation, agent, events)
            yield from told_row(situation, agent)
            if not any(line.startswith("now to be done") for line in decided) and (kept := why_kept(situation, agent)):
                yield kept
            yield from decided


def _of_agent(situation: Situation, agent: Agent, events: Collection[Event]) -> Iterator[str]:
    record = agent.record
    names = f"{record.node} ({record.instance_id})" if record.node else record.instance_id
    usd = dollars(0.0 if agent.instance_ended else usd_per_hour_of(situation, record))
    image = image_of(situation, agent)
    kind = f"{record.instance_type} of {image}" if image else record.instance_type
    yield f"{names} of {record.pool} on {record.controller}: {state_of(situation, agent).word}; {kind}, {usd} an hour"
    if situation.snapshot.is_off(record):
        yield from of_stopped(situation, agent)
        yield from told_left(situation, agent)
        return
    yield _boot(situation, agent)
    yield from told_left(situation, agent)
    if agent.phase.is_on_its_way:
        yield from _still_booting(situation, agent)
    yield from _at_work(situation, agent)
    yield from told_devices(situation, agent)
    yield from filter(None, (told_weights(situation, agent), told_lent(situation, agent)))
    if held := told_held_labels(situation, agent):
        yield f"it is {held}" if not held.startswith("the ") else held
    yield from _out_of_use(situation, agent, events)
    if why := why_not_wanted(situation, agent):
        yield f"it is let go once it is idle: {why}"
    yield from (told_unseen(one.machine, side) for one, side in unseen_sides(situation, record.machine))
    if why := why_never_stopped(situation, agent):
        yield f"once it is not needed any more it is terminated, and not stopped: {why}"


def _at_work(situation: Situation, agent: Agent) -> Iterator[str]:
    if agent.node and agent.node.builds:
        learned = situation.snapshot.learned[agent.record.controller]
        ran = [(build.job, elapsed_seconds(build, learned, situation.now)) for build in agent.node.builds]
        yield f"it runs {', '.join(sorted(f'{job} (for {duration(seconds)} so far)' for job, seconds in ran))}"
    if agent.node and agent.node.ended:
        yield f"{told_ended(agent)}: that is no work, and its executor takes no other build"


def _out_of_use(situation: Situation, agent: Agent, events: Collection[Event]) -> Iterator[str]:
    """Say who took it out of use, since when, and what may keep it all the same."""
    if reserved := told_reserved(situation, agent):
        yield f"it {'is ' * (agent.phase is Phase.RESERVED)}{reserved}"
    if marked := told_mark(situation, agent, events):
        yield marked
        if agent.mark and agent.mark.written:
            yield "another version set this mark, and this one does not know what it is for: the agent ends once it is idle"
    elif not agent.is_of_monitor and (offline := told_offline(agent.node)):
        yield f"it is {offline}"
    if agent.is_node_deleted:
        yield "its node is deleted: Jenkins lists it until it has ended what is on it, and nothing more is to be done"
    yield from told_marked(situation, agent)
    if agent.record.is_interrupted(situation.now):
        ago = duration(situation.now - agent.record.interrupted_at)
        yield f"EC2 announced {ago} ago that it takes it back: no job counts on it, and another one is launched for those that wait"
    if (since := situation.past(agent).draining_since) is not None:
        yield f"it takes no new builds, for {duration(situation.now - since)} by now"
    if agent.phase is not Phase.READY and situation.protected(agent):
        yield "a build may be bound to it: a queue item waits for it by name, or it was busy before a restart"


def _boot(situation: Situation, agent: Agent) -> str:
    """Say when it was launched, how long it took to register, and whether it ever connected."""
    record = agent.record
    launched = f"launched {duration(situation.now - record.launched_at)} ago"
    if record.life:
        launched += f", started again {duration(situation.now - record.began_at)} ago"
    if record.registered_at is None:
        return f"{launched}, and has not registered yet"
    took = f"{launched}, registered {duration(record.registered_at - record.began_at)} after that"
    # A monitor marks only what is connected, if it was for a moment.
    has_connected = situation.memory.has_connected(record.life_id) or agent.is_of_monitor
    return f"{took}, and {'has connected' if has_connected else 'has not connected yet'}"


def _still_booting(situation: Situation, agent: Agent) -> Iterator[str]:
    record, pool = agent.record, situation.pools.get(agent.key)
    if why := record.trouble or record.problem:
        yield f"what keeps it from becoming an agent: {why}"
    if pool is not None:
        yield told_starts(pool) if record.life else _boots(pool)
    seen, what = situation.seen_seconds(record.controller, record.began_at), "start" if record.life else "boot"
    left, unseen = agent.pool.boot_timeout_seconds - seen, situation.now - record.began_at - seen
    yield f"its {what} may take another {duration(left)} (boot_timeout_seconds)" if left > 0 else f"its {what} has timed out"
    if unseen:
        yield f"the {duration(unseen)} of its {what} in which {record.controller} could not be seen do not count"


def _of_gone(situation: Situation, plans: Iterable[Plan], subject: str) -> Iterator[str]:
    """Say what is still known of an instance, or a node, that is no agent of ours any more, or not yet."""
    if (launched_at := situation.memory.gone.get(subject)) is not None:
        yield f"{subject} is gone; it was launched {duration(situation.now - launched_at)} ago"
    for scope, trial in situation.memory.trials.items():
        if subject in trial.failed and scope.startswith(TrialOf.ENDED.scope("")):
            yield f"{subject} was ended by others; {told_by_others(trial)}"
        elif subject in trial.failed:
            said = told_last(trial) if subject == trial.failed[-1] else ""
            yield f"{subject} was an instance of {scope.partition('/')[2]} whose boot failed" + (f"; {said}" if said else "")
    for instance_id, unread in situation.snapshot.unread_records.items():
        if subject in {instance_id, unread.node}:
            yield f"the record of {instance_id} was written by another version, and nothing is done to the agent: {unread.text}"
    if instance := situation.instances.get(subject):
        yield f"{subject} is {instance.state} and carries the fleet's tag, and is no agent on record"
    yield from told_stray(situation, subject)
    yield from _decided(plans, _about({subject}))


def _of_job(situation: Situation, plans: Sequence[Plan], subject: str, asked: str | None) -> Iterator[str]:
    """Say why a job waits, or where it runs, in one sentence; then the facts behind it."""
    of = f" of {subject}" if asked not in {None, subject} else ""
    entries, builds = [entry for entry in list_queue(situation) if entry.job == subject], _builds_of(situation, subject)
    if entries:
        answer = _answer_of_waiting(situation, plans, entries, len(builds), of)
        yield answer
        yield from facts_of_waiting(entries)
        yield from told_holds_of_job(situation, subject)
        yield from _of_pools_for_it(situation, plans, sorted({pool for entry in entries for pool in entry.pools}), answer)
    elif builds:
        yield _answer_of_running(builds, of)
    if entries or len(builds) > PLACES_NAMED:
        for agent, build, elapsed in builds[:PLACES_NAMED]:
            yield f"{build.job} (for {duration(elapsed)} so far) runs on {agent.record.node} of {agent.pool.name}"
    if len(builds) > PLACES_NAMED:
        yield f"{len(builds) - PLACES_NAMED} more run (autoscaler agents lists all)"
    if len(builds) == 1:
        yield f"{builds[0][0].record.node} was {_boot(situation, builds[0][0])}"
    if situation.fleet.declined is not None:
        from autoscaler.domain.report.declined import told_of_job  # noqa: PLC0415 - for fleets with max_job_seconds only

        yield from told_of_job(situation, subject)
    yield from told_lost(situation, subject)


def _builds_of(situation: Situation, job: str) -> list[tuple[Agent, Build, float]]:
    """Find the builds of a job that run, the longest first, each with its agent and for how long it has run."""
    learned, nodes = situation.snapshot.learned, [(agent, agent.node) for agent in situation.agents if agent.node]
    builds = [(agent, build) for agent, node in nodes for build in node.builds if build.job == job]
    running = [(agent, build, elapsed_seconds(build, learned[agent.record.controller], situation.now)) for agent, build in builds]
    return sorted(running, key=lambda one: -one[2])


def _of_pools_for_it(situation: Situation, plans: Iterable[Plan], pools: Collection[str], answer: str) -> Iterator[str]:
    broken = [one for pool in pools if (one := broken_pool(situation, pool))]
    yield from (line for one in broken for line in one.lines())
    yield from _decided(
        plans,
        lambda step: step.pool in pools and not (isinstance(step, Held) and is_said(situation, step, answer)),
        without=OF_BREAKERS if broken else (),
    )


def _decided(plans: Iterable[Plan], meant: Meant, *, told: Collection[str] = (), without: Collection[Reason] = ()) -> Iterator[str]:
    """Say what is to be done about it now, and what is not, and why. ``told``: details that were told already."""
    for plan in plans:
        yield from (f"now to be done: {type(step).__name__}, {step.reason}: {step.detail}" for step in plan.steps if meant(step))
        held = (held for held in plan.held if meant(held) and held.detail not in told and held.reason not in without)
        yield from (f"not done: {one.reason}: {one.detail}" for one in held)


def _names(agent: Agent) -> set[str]:
    return {agent.record.node or "", agent.record.instance_id} - {""}


def _about(names: Collection[str]) -> Meant:
    return lambda step: isinstance(step, Step) and not {step.node, step.instance_id, *getattr(step, "instance_ids", ())}.isdisjoint(names)
