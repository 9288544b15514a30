"""Reserved agents: which one a person gets, how its builds are kept away, and how it ends.

No build begins on an agent that is reserved, and nobody else's rule touches it: neither demand nor surplus, quarantine or age. It ends by
itself. Then it goes the way of every drained agent, and is terminated: a person was on the machine, so that no build may ever be again.
"""

from collections.abc import Iterator
from dataclasses import replace

from autoscaler.domain.facts.fleet import Market
from autoscaler.domain.facts.nodes import Mark, MarkClass, drops_handed_builds, may_start_on
from autoscaler.domain.facts.plan import Cordon, EndReservation, Held, Reserve, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Reservation
from autoscaler.domain.scale_in.make_room import what_holds
from autoscaler.domain.scale_in.sides import devices_reserved, told_people
from autoscaler.domain.scale_in.surplus import least_missed
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.situation import Decided, Situation, cordon, end_reservation, hold_back, terminate
from autoscaler.domain.situation.states import is_unlabelled_twice
from autoscaler.domain.wording import duration

# A person is warned so long before the end: enough to save what they have, or to ask for more.
WARNING_SECONDS = 1800.0
# What EC2 takes away anyway is nobody's to reserve, nor what another controller waits for.
_LOST = (MarkClass.INTERRUPTED, MarkClass.ROTATE)


_Kept = Cordon | Terminate | EndReservation | Held


def keep_reserved(situation: Situation, controller: str, _decided: Decided) -> Iterator[_Kept]:
    """Keep builds away from the reserved agents of a controller, and end their reservations once the month's money is spent."""
    for agent in situation.agents:
        reservation = agent.record.reservation
        if reservation and agent.record.controller == controller and agent.phase is Phase.RESERVED and not agent.instance_ended:
            yield from _keep(situation, agent, reservation)


def _keep(situation: Situation, agent: Agent, reservation: Reservation) -> Iterator[_Kept]:
    if agent.record.state.is_asked_for:  # it has no node, and nobody is on it yet
        if why := _why_over(situation, agent.pool.name, reservation):
            yield replace(terminate(agent, *why), node=None, mark=None)
        return
    level = situation.stopped_by(agent.pool.name)
    if level is not None and reservation.until_at > situation.now + WARNING_SECONDS:
        yield end_reservation(agent, situation.now + WARNING_SECONDS, Reason.USD_PER_MONTH, what_holds(situation, level))
    yield from _keep_builds_away(situation, agent, reservation)


def _why_over(situation: Situation, pool: str, reservation: Reservation) -> tuple[Reason, str] | None:
    """Say why a reservation is over before its agent has booted; None where it is not."""
    if reservation.is_over(situation.now):
        return Reason.RESERVATION_OVER, f"the reservation for {reservation.person} is over before it has booted"
    level = situation.stopped_by(pool)
    return None if level is None else (Reason.USD_PER_MONTH, what_holds(situation, level))


def _keep_builds_away(situation: Situation, agent: Agent, reservation: Reservation) -> Iterator[Cordon | Held]:
    """Mark its node offline where a pass was cut off before that, or somebody brought it online.

    A pipeline that ran there when its controller restarted, and waits for that very node, resumes first.
    """
    node, view = agent.node, situation.snapshot.controllers[agent.record.controller]
    if node is None or node.temporarily_offline or situation.waits_to_resume(agent):
        name, left = agent.record.node or agent.record.instance_id, duration(reservation.until_at - situation.now)
        yield hold_back(agent, Reason.RESERVED, f"{name} is reserved for {reservation.person}, for another {left}")
    elif not agent.by_labels or not drops_handed_builds(view):
        yield cordon(situation, agent, MarkClass.RESERVED, Reason.RESERVED, f"{node.name} is reserved, and its node takes builds")
    elif is_unlabelled_twice(situation, agent) and not any(may_start_on(item, node) for item in view.items):
        # No build can be handed to it in the instant of its mark.
        yield _marked(situation, agent)


def _marked(situation: Situation, agent: Agent) -> Cordon:
    """Mark an agent without labels offline; with the mark that its record has, so that they need not be taken once more."""
    detail = f"the labels of {agent.record.node} were taken, and it was idle in two looks since"
    step = cordon(situation, agent, MarkClass.RESERVED, Reason.LABELS_TAKEN, detail)
    return replace(step, mark=agent.mark) if agent.mark and agent.mark.kind is MarkClass.RESERVED else step


def reserve(situation: Situation, agent: Agent, reservation: Reservation, *, though_busy: bool) -> Reserve:
    """Reserve an agent that has a node. ``though_busy``: its builds go on."""
    if agent.node is None:
        raise ValueError(f"{agent.record.instance_id} has no node to cordon")
    return Reserve(
        controller=agent.record.controller,
        pool=agent.pool.name,
        node=agent.node.name,
        instance_id=agent.record.instance_id,
        reservation=reservation,
        mark=Mark(fleet=situation.fleet.name, kind=MarkClass.RESERVED, pass_id=situation.snapshot.pass_id),
        replaces=agent.mark,
        though_busy=though_busy,
        reason=Reason.RESERVED,
        detail=f"for {reservation.person}: {reservation.reason}",
    )


def idle_to_reserve(situation: Situation, pool: str, controller: str | None) -> Agent | None:
    """Choose the idle agent of a pool that builds miss least: none that they wait for, and none of its minimum."""
    idle: list[Agent] = []
    for (name, of), view in situation.pools.items():
        waits = situation.starved[name].get(of, 0)
        if of == pool and controller in {None, name} and not waits and not situation.no_giving_up(name):
            idle += [agent for agent in view.ready if _is_free(situation, agent)]
    if not idle or is_for_builds(situation, pool):
        return None
    chosen = least_missed(situation, idle)
    spot = {instance.id for instance in situation.snapshot.instances if instance.market == Market.SPOT}
    return next((agent for agent in chosen if agent.record.instance_id not in spot), chosen[0])


def _is_free(situation: Situation, agent: Agent) -> bool:
    """Tell whether an agent is idle, and neither a build nor a person counts on it."""
    record, now = agent.record, situation.now
    if devices_reserved(situation, record.machine):
        return False
    return agent.idle and not (situation.protected(agent) or record.is_lent(now) or now < record.keep_until or agent.instance_ended)


def is_for_builds(situation: Situation, pool: str) -> bool:
    """Tell whether builds would have fewer than the pool's minimum if they had one agent less."""
    ready = sum(agent.pool.name == pool and agent.phase is Phase.READY and not agent.instance_ended for agent in situation.agents)
    spec = situation.fleet.pools.get(pool)
    return spec is not None and ready <= spec.min_agents


def _why_others_need_it(situation: Situation, agent: Agent, name: str) -> tuple[Reason, str] | None:
    """Say which build or person has an agent that reads idle."""
    if situation.protected(agent):
        return Reason.PINNED, f"a build may be bound to {name}: an item waits for it by name, or it was busy before a restart"
    of_devices = devices_reserved(situation, agent.record.machine)
    return (Reason.RESERVED, told_people(of_devices, name)) if of_devices else None


def why_not_reserved(situation: Situation, agent: Agent) -> tuple[Reason, str] | None:
    """Say why a named agent cannot be reserved; None where it can. Builds on it go on, and what drains is as good as any."""
    name, controller = agent.record.node or agent.record.instance_id, agent.record.controller
    if reason := situation.no_giving_up(controller):
        return reason, f"nothing is cordoned on {controller} now"
    if agent.node is None or agent.instance_ended or agent.phase not in {Phase.READY, Phase.RETIRING, Phase.DRAINING}:
        return Reason.NOT_FOUND, f"{name} is {agent.phase}, and no agent that can be reserved now"
    if agent.record.reservation or (agent.mark and agent.mark.kind in _LOST):
        return Reason.NOT_FOUND, f"{name} is about to end or to be given to others, and can be reserved no more"
    if why := _why_others_need_it(situation, agent, name):
        return why
    if agent.phase is Phase.READY and is_for_builds(situation, agent.pool.name):
        least = agent.pool.min_agents
        return Reason.CI_FIRST, f"{name} is one of the {least} agents that {agent.pool.name} keeps for builds (min_agents)"
    return None
