"""Explain one job, node or pool: the chain of facts from the decision itself."""

from collections.abc import Callable, Collection, Iterable, Iterator

from autoscaler.domain import decide
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.plan import Held, Plan, Step
from autoscaler.domain.facts.snapshot import QueueItem, Snapshot
from autoscaler.domain.launch.queue import expected_starts
from autoscaler.domain.learn import assess
from autoscaler.domain.scale_in.month_limit import what_holds
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.demand import Want
from autoscaler.domain.situation.situation import Situation

Meant = Callable[[Step | Held], bool]


def explain(snapshot: Snapshot, fleet: Fleet, subject: str) -> list[str]:
    """Say what is known of a job, a node (or instance id) or a pool; empty if nothing has that name."""
    situation = assess(snapshot, fleet)
    plans = decide.scale_up(snapshot, fleet), decide.scale_down(snapshot, fleet)
    found = [*_of_pool(situation, plans, subject), *_of_node(situation, plans, subject), *_of_job(situation, plans, subject)]
    return found and [*_of_controllers(situation), *found]


def _of_controllers(situation: Situation) -> Iterator[str]:
    if situation.stopped:
        yield what_holds(situation)
    for view in situation.views():
        if not view.complete:
            yield f"{view.name} could not be read completely: {view.problem}; nothing is given up or launched there"
        elif reason := situation.no_giving_up(view.name):
            yield f"nothing is given up on {view.name}: {reason}"
        if not view.shows_jobs:
            yield f"{view.name} shows not a single job: without Job/Read the queue looks empty"


def _of_pool(situation: Situation, plans: Iterable[Plan], subject: str) -> Iterator[str]:
    for (controller, name), pool in situation.pools.items():
        if name != subject:
            continue
        starved = situation.starved_by_pool(controller).get(name, 0)
        phases = [str(agent.phase) for agent in pool.agents]
        agents = ", ".join(f"{phases.count(phase)} {phase}" for phase in sorted(set(phases))) or "no agents"
        least, most, worth = pool.spec.min_agents, pool.spec.max_agents, pool.spec.wait_usd_per_hour
        yield f"{name} on {controller}: {starved} items wait for it; {agents}; at most {most}, at least {least}"
        yield f"an agent costs ${pool.usd_per_hour:.2f} an hour, boots in {pool.boot_seconds:.0f} s; waiting is worth ${worth:g} an hour"
        if pool.short_seconds >= 1:
            yield f"machines were short: agents are kept as if one more took {pool.short_seconds:.0f} s longer to be had"
        if pool.paused:
            yield f"nothing is launched there: {pool.paused_detail}"
    yield from _decided(plans, _of_pools({subject}))


def _of_node(situation: Situation, plans: Iterable[Plan], subject: str) -> Iterator[str]:
    for agent in situation.agents:
        if subject in {agent.record.node, agent.record.instance_id}:
            yield from _of_agent(situation, agent)
            yield from _decided(plans, _about(agent))


def _of_agent(situation: Situation, agent: Agent) -> Iterator[str]:
    record, now = agent.record, situation.now
    age = (now - record.launched_at) / 60
    yield f"{record.node or record.instance_id} of {record.pool} on {record.controller}, launched {age:.0f} min ago: {agent.phase}"
    if agent.node and agent.node.builds:
        yield f"it runs {', '.join(sorted(build.job for build in agent.node.builds))}"
    if agent.mark:
        yield f"it was marked by pass {agent.mark.pass_id}: {agent.mark.kind}"
    elif agent.node and agent.node.offline and agent.node.reason:
        yield f"it is offline, and not by us: {agent.node.reason}"
    if (since := situation.memory.idle_since.get(record.instance_id)) is not None:
        yield f"it has been idle for {(now - since) / 60:.0f} min"
    if now < record.keep_until:
        yield f"a person wants it kept for {(record.keep_until - now) / 60:.0f} more min"
    if situation.protected(agent):
        yield "a build may be bound to it: a queue item waits for it by name, or it was busy before a restart"


def _of_job(situation: Situation, plans: Iterable[Plan], subject: str) -> Iterator[str]:
    for controller, demand in situation.demands.items():
        starts = expected_starts(situation, controller)
        for want in (want for want in demand.wants if want.item.job == subject):
            yield from _of_want(situation, controller, want, starts)
            yield from _decided(plans, _of_pools({pool.name for pool in want.pools}))
        yield from _of_others(situation, controller, subject)
    for agent in situation.agents:
        if agent.node and subject in {build.job for build in agent.node.builds}:
            yield f"{subject} runs on {agent.record.node} of {agent.pool.name}"


def _of_others(situation: Situation, controller: str, subject: str) -> Iterator[str]:
    """List items of the job that are no demand for any pool."""
    demand = situation.demands[controller]
    for unmet in (unmet for unmet in demand.unmet if unmet.item.job == subject):
        yield f"{_waits(unmet.item, controller)}; {unmet.reason}: {unmet.detail}"
    for item, hold in ((item, hold) for item, hold in demand.held if item.job == subject):
        yield f"{_waits(item, controller)}; {hold.text(situation.now)}"
    for item in situation.snapshot.controllers[controller].items:
        if item.job == subject and not item.starved:
            words = f"; Jenkins says: {item.wait.unclear}" if item.unclear else ""
            yield f"{subject} is in the queue of {controller}, and waits for something else than an executor{words}"


def _of_want(situation: Situation, controller: str, want: Want, starts: dict[int, tuple[str, float]]) -> Iterator[str]:
    pools = ", ".join(pool.name for pool in want.pools)
    yield f"{_waits(want.item, controller)}; {pools} may serve it"
    if not want.mature:
        seconds = min(pool.queue_maturity_seconds for pool in want.pools)
        yield f"it counts once it has waited {seconds:.0f} s (queue_maturity_seconds)"
    elif want.item.id in starts:
        server, free = starts[want.item.id]
        boots = min(situation.pools[controller, pool.name].boot_seconds for pool in want.pools)
        when = f"would start in {free:.0f} s" if free else "would start at once"
        yield f"it {when} on an executor of {server.splitlines()[0] if server else 'another node'}; a new agent takes {boots:.0f} s to boot"
    else:
        yield "no executor that is there or on its way will ever take it"


def _waits(item: QueueItem, controller: str) -> str:
    label = f" for {item.asked_label}" if item.asked_label else ""
    return f"{item.job} waits{label} on {controller} since {item.waiting_seconds:.0f} s"


def _decided(plans: Iterable[Plan], meant: Meant) -> Iterator[str]:
    for plan in plans:
        for step in plan.steps:
            if meant(step):
                yield f"now to be done: {type(step).__name__}, {step.reason}: {step.detail}"
        for held in plan.held:
            if meant(held):
                yield f"not done: {held.reason}: {held.detail}"


def _of_pools(names: Collection[str]) -> Meant:
    return lambda step: getattr(step, "pool", "") in names


def _about(agent: Agent) -> Meant:
    names = {agent.record.node, agent.record.instance_id}
    return lambda step: bool({getattr(step, "node", ""), getattr(step, "instance_id", "")} & names)
