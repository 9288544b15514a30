"""Reservations for people: who has which agent, until when, what it does, and how to get in."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.metering import missing_of
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.orders import Reserve
from autoscaler.domain.facts.snapshot import InstanceState, Intent, Record, RecordState, Reservation
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.rows import lost_since
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import counted, duration

_OFF = (InstanceState.STOPPING, InstanceState.STOPPED)
_LAUNCHED = "is being launched"
_STARTS = {RecordState.REQUESTED: "boots", RecordState.STARTING: "starts"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationEntry:
    """One reservation. ``state``: what its agent does, in a few words; ``get_in``: a command, or what is missing for one.

    ``what``: the whole agent, or one device of it.
    """

    person: str
    reason: str
    by: str
    since_at: float
    until_at: float
    controller: str
    pool: str
    node: str
    instance_id: str
    instance_type: str
    state: str
    get_in: str
    what: str = "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What lets people into agents. ``templates``: the launch templates of this stack; ``allowed``: their role may use Session Manager."""

    allowed: bool
    templates: frozenset[str]

    def get_in(self, fleet: Fleet, record: Record) -> str:
        """Say how a person gets into an agent, or what is missing for that."""
        if record.is_host:
            return _into_host(fleet, record)
        pool, region = fleet.pools.get(record.pool), fleet.home.partition("/")[2]
        command = f"aws ssm start-session --target {record.machine}" + (f" --region {region}" if region else "")
        if pool is None or pool.launch_template not in self.templates:
            template = pool.launch_template if pool else "its launch template"
            return f"{command} (where the role of {template} and its image allow Session Manager)"
        if self.allowed:
            return command
        return "deploy the stack with AgentSessionManager=yes: the agents' role may not use Session Manager"


def _into_host(fleet: Fleet, record: Record) -> str:
    host = next((one for one in fleet.hosts.values() if one.id == record.machine), None)
    if host is None or not (host.address or host.owner):
        return "ask whose host it is: the fleet file names neither its address nor its owner"
    return f"ssh {host.address}" if host.address else f"ask {host.owner}"


def list_reservations(situation: Situation, access: Access) -> tuple[ReservationEntry, ...]:
    """List what is reserved now, and what is launched for people, by the end."""
    agents = [
        agent
        for agent in situation.agents
        if agent.record.reservation and (agent.phase is not Phase.CONDEMNED or lost_since(situation, agent))
    ]
    found = [_entry(agent.record, _state(situation, agent), access.get_in(situation.fleet, agent.record)) for agent in agents]
    devices = [_device(situation.fleet, record, one, access) for record, one in _of_devices(situation)]
    launches = [_entry(intent, _LAUNCHED) for intent in situation.snapshot.intents if intent.reservation and missing_of(intent)]
    return tuple(sorted([*found, *devices, *launches], key=lambda entry: (entry.until_at, entry.instance_id)))


def _of_devices(situation: Situation) -> Iterator[tuple[Record, Reservation]]:
    """Find the devices that people have now."""
    for agent in situation.agents:
        yield from ((agent.record, one) for one in agent.record.devices_for if not one.is_over(situation.now))


def reserved_by(
    fleet: Fleet, records: Iterable[Record], intents: Iterable[Intent], order: Reserve, access: Access
) -> list[ReservationEntry]:
    """List what a person has by one order, or had before of the agent that it names, from our own state alone."""
    mine = [record for record in records if _is_of(record, order)]
    under_way = [intent for intent in intents if _is_of(intent, order) and missing_of(intent)]
    known = [_entry(record, _STARTS.get(record.state, "is reserved"), access.get_in(fleet, record)) for record in mine]
    devices = [_device(fleet, record, one, access) for record in records for one in record.devices_for if _is_device_of(one, record, order)]
    return [*known, *devices, *(_entry(intent, _LAUNCHED) for intent in under_way)]


def _is_device_of(one: Reservation, record: Record, order: Reserve) -> bool:
    named = order.target in {record.pool, record.node, record.instance_id, record.machine}
    return one.person == order.person and (named or one.request == order.request_id)


def _device(fleet: Fleet, record: Record, reservation: Reservation, access: Access) -> ReservationEntry:
    """Describe a device that a person has: its agent writes down which one, once it is free."""
    file = "".join(letter if letter.isalnum() else "-" for letter in reservation.person)[:64]
    way = f"{access.get_in(fleet, record)}, then: . /run/autoscaler-agent/people/{file}"
    entry = _entry(replace(record, reservation=reservation), "has a device of it", way)
    return replace(entry, instance_id=record.machine, what="device")


def _entry(one: Record | Intent, state: str, get_in: str = "") -> ReservationEntry:
    """Describe what a person has by a record, or will have by a launch."""
    reservation = _reservation(one)
    node, instance_id, instance_type = (one.node or "", one.instance_id, one.instance_type) if isinstance(one, Record) else ("", "", "")
    return ReservationEntry(
        person=reservation.person,
        reason=reservation.reason,
        by=reservation.by,
        since_at=reservation.since_at,
        until_at=reservation.until_at,
        controller=one.controller,
        pool=one.pool,
        node=node,
        instance_id=instance_id,
        instance_type=instance_type,
        state=state,
        get_in=get_in,
    )


def _is_of(one: Record | Intent, order: Reserve) -> bool:
    if one.reservation is None or one.reservation.person != order.person:
        return False
    named = isinstance(one, Record) and order.target in {one.node, one.instance_id}
    return named or one.reservation.request == order.request_id


def _reservation(of: Record | Intent) -> Reservation:
    if of.reservation is None:
        raise ValueError("it is not reserved")
    return of.reservation


def _state(situation: Situation, agent: Agent) -> str:
    """Say in a few words what a reserved agent does."""
    if lost_since(situation, agent):
        return "its instance has ended: reserve another"
    if agent.record.reservation and agent.record.reservation.is_over(situation.now):
        return "is over, to begin anew" if agent.record.is_host else "is over, to be terminated"
    if agent.record.state in _STARTS:
        return _STARTS[agent.record.state]
    if agent.instance in _OFF:
        return f"is {agent.instance} in EC2"
    if agent.busy_executors:
        return f"has {counted(agent.busy_executors, 'build')} to end first"
    return "is reserved"


def told_reserved(situation: Situation, agent: Agent) -> str:
    """Say for whom an agent is reserved, for how long yet, and why; "" where it is not."""
    reservation = agent.record.reservation
    if reservation is None:
        return ""
    if reservation.is_over(situation.now):
        return f"was reserved for {reservation.person} until {duration(situation.now - reservation.until_at)} ago"
    left = duration(reservation.until_at - situation.now)
    return f"reserved for {reservation.person}, for another {left}: {reservation.reason}"


def reserved_now(situation: Situation) -> Iterator[tuple[Agent, Reservation]]:
    """Name the agents that are reserved now, be they lost, and those of which people have devices, with their reservations."""
    for agent in situation.agents:
        yield from ((agent, one) for one in agent.record.devices_for if not one.is_over(situation.now))
        reservation = agent.record.reservation
        if reservation and not reservation.is_over(situation.now):
            yield agent, reservation


def is_taken_away(agent: Agent, now: float) -> bool:
    """Tell whether EC2 has said that it takes the instance back. One that boots has no node yet that could carry the mark."""
    return agent.record.is_interrupted(now) or (agent.mark is not None and agent.mark.kind is MarkClass.INTERRUPTED)
