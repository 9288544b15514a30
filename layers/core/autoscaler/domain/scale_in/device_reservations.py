"""Devices that people have: of a machine that serves several controllers at once a person gets one device, and builds go on beside them.

It is kept in the record of the machine's first side. The agent hears of it when it asks, and holds a lease for the person until it is over.
"""

from collections.abc import Iterable, Iterator
from functools import partial

from autoscaler.domain.facts.fleet import Share
from autoscaler.domain.facts.orders import Release, Reserve
from autoscaler.domain.facts.plan import EndReservation, Held, ReserveDevice
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Reservation
from autoscaler.domain.facts.telemetry import FREE
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import end_reservation
from autoscaler.domain.wording import listed


def holders(situation: Situation) -> Iterator[Agent]:
    """The first side of each machine of which people may have devices, or have some, though its pool does not share it any more.

    What people have of the machine stands there.
    """
    found: dict[str, Agent] = {}
    taken = {agent.record.machine for agent in situation.agents if _reserved(situation, agent)}
    for agent in situation.agents:
        if agent.pool.share is Share.COOPERATIVE or agent.record.machine in taken:
            before = found.setdefault(agent.record.machine, agent)
            found[agent.record.machine] = min(before, agent, key=_place)
    yield from found.values()


def _place(agent: Agent) -> tuple[bool, int]:
    order = agent.pool.controllers
    name = agent.record.controller
    return not agent.record.is_instance, order.index(name) if name in order else len(order)


def devices_reserved(situation: Situation, machine: str) -> list[Reservation]:
    """What people have of a machine now."""
    sides = (agent for agent in situation.agents if agent.record.machine == machine)
    return [one for side in sides for one in _reserved(situation, side)]


def told_people(reserved: Iterable[Reservation], node: str | None) -> str:
    """Say who has devices of a machine."""
    people = sorted({one.person for one in reserved})
    return f"{listed(people)} {'have devices' if len(people) > 1 else 'has a device'} of {node}"


def _reserved(situation: Situation, side: Agent) -> list[Reservation]:
    return [one for one in side.record.devices_for if not one.is_over(situation.now)]


def has_device(situation: Situation, person: str, target: str) -> bool:
    """Tell whether a person has a device of the machine that they name."""
    machines = {agent.record.machine for agent in situation.agents if target in {agent.record.node, agent.record.machine}}
    return any(one.person == person for machine in machines for one in devices_reserved(situation, machine))


def free_devices(situation: Situation, machine: str) -> int | None:
    """Count the devices that are free, and not to be held for a person by now; None where the machine does not say."""
    told = situation.snapshot.devices.get(machine)
    if told is None or not told.is_fresh(situation.now):
        return None
    since = sum(one.since_at >= told.told_at for one in devices_reserved(situation, machine))
    return sum(device.state == FREE for device in told.devices) - since


def reserve_device(situation: Situation, order: Reserve, reservation: Reservation) -> list[ReserveDevice | EndReservation | Held]:
    """Choose the machine of which a person gets a device: the one with most that are free. Jobs that wait come first."""
    mine = [one for one in holders(situation) if order.target in {one.pool.name, one.record.node, one.record.machine}]
    if known := _people(situation, mine).get(order.person):
        told = f"a device for {order.person}, as {order.by} asked"
        return [end_reservation(known, reservation.until_at, Reason.RESERVED, told, person=order.person)]
    if first := _jobs_first(situation, mine):
        return [first]
    best = max(mine, key=partial(_free_for_people, situation), default=None)
    if best is None or not _free_for_people(situation, best):
        return [Held(pool=best.pool.name if best else "", reason=Reason.NO_FREE_DEVICE, detail=_why_none(situation, mine, order.target))]
    return [_step(best, reservation)]


def _jobs_first(situation: Situation, mine: list[Agent]) -> Held | None:
    for pool in dict.fromkeys(one.pool.name for one in mine):
        if waits := sum(situation.starved_by_pool(name).get(pool, 0) for name in situation.demands):
            return Held(pool=pool, reason=Reason.CI_FIRST, detail=f"{waits} jobs wait for {pool}: its devices are for them first")
    return None


def _free_for_people(situation: Situation, agent: Agent) -> int:
    """Count the devices of a machine that a person may have; none of one that is about to go."""
    return (free_devices(situation, agent.record.machine) or 0) if _is_usable(agent) else 0


def _is_usable(agent: Agent) -> bool:
    return agent.phase in {Phase.READY, Phase.RETIRING} and not agent.instance_ended


def _why_none(situation: Situation, mine: list[Agent], target: str) -> str:
    silent = sorted(one.record.machine for one in mine if free_devices(situation, one.record.machine) is None)
    if silent:
        return f"{', '.join(silent)} of {target}: no recent report of devices; the agent reports those that gpu-lease hands out"
    return f"no device of {target} is free"


def _people(situation: Situation, mine: Iterable[Agent]) -> dict[str, Agent]:
    """Find who has a device of these machines now, and the side in whose record that stands."""
    machines = {agent.record.machine for agent in mine}
    sides = (agent for agent in situation.agents if agent.record.machine in machines)
    return {one.person: side for side in sides for one in side.record.devices_for if not one.is_over(situation.now)}


def _step(agent: Agent, reservation: Reservation) -> ReserveDevice:
    return ReserveDevice(
        controller=agent.record.controller,
        pool=agent.pool.name,
        node=agent.record.node or "",
        instance_id=agent.record.instance_id,
        reservation=reservation,
        reason=Reason.RESERVED,
        detail=f"a device for {reservation.person}: {reservation.reason}",
    )


def release_device(situation: Situation, order: Release) -> list[EndReservation | Held] | None:
    """End what a person has of a machine; None where nobody has anything of what is named."""
    mine = [one for one in holders(situation) if order.target in {one.record.node, one.record.machine, one.record.instance_id}]
    people = _people(situation, mine)
    if not people:
        return None
    wanted = [order.person] if order.person else sorted(people)
    if not set(wanted) <= people.keys():
        detail = f"{order.person} has no device of {order.target}; {', '.join(sorted(people))} {'have' if len(people) > 1 else 'has'}"
        return [Held(pool=mine[0].pool.name, reason=Reason.RESERVED, detail=detail)]
    if len(wanted) > 1:
        detail = f"{', '.join(wanted)} have devices of {order.target}: say whose is to end (person)"
        return [Held(pool=mine[0].pool.name, reason=Reason.NOT_FOUND, detail=detail)]
    told = f"a device was reserved for {wanted[0]}; {order.reason}"
    return [end_reservation(people[wanted[0]], situation.now, Reason.MANUAL, told, person=wanted[0])]
