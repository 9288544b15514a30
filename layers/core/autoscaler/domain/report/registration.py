"""Registration: which instance asks, and the answer. Identity comes from AWS alone, never from the caller."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from autoscaler.domain.facts.fleet import Fleet, NodeSpec, agent_spec
from autoscaler.domain.facts.snapshot import OFF, ON, InstanceState, Record, RecordState
from autoscaler.domain.facts.telemetry import Device, Telemetry

# An instance that is told to ask again does so after this long.
ASK_AGAIN_SECONDS = 15
# An agent that is connected asks again after this long.
POLL_SECONDS = 300
# An agent asks when it boots, when its connection has ended, and now and then: agent/ asks no more than this. A build with the role's
# credentials may.
MAX_REQUESTS_PER_HOUR = 60
REQUEST_WINDOW_SECONDS = 3600.0
TOO_MANY_REQUESTS_WAIT_SECONDS = 120
_INSTANCE_ID = re.compile(r"i-[0-9a-f]{8,17}")


class Status(IntEnum):
    """The answer to an instance, in HTTP's own numbers."""

    REGISTERED = 200
    FORBIDDEN = 403  # it is not ours: it need not ask again
    NO_SLOT = 409  # every slot of its pool is taken: it should ask again
    GONE = 410  # it was ours: it should shut down
    TOO_EARLY = 425  # AWS or our own state does not know it yet, or it stops: it should ask again
    TOO_MANY = 429  # it asked more often than an agent does: it should ask less
    UNAVAILABLE = 503  # something does not answer now: it should ask again


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The authenticated caller: account, unique id of the role, and session name, which anyone who assumes the role may choose."""

    account: str
    role_id: str
    session: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a machine says of itself, which nobody has verified. ``connected``: CONTROLLER/NODE/LIFE of each connection that it has.

    ``problem``: why its last connection failed. ``devices``: those that it hands out by leases; () where it hands out none. ``waiting``:
    how many wait for one. ``telemetry``: what it uses.
    """

    connected: tuple[str, ...] = ()
    problem: str = ""
    devices: tuple[Device, ...] = ()
    waiting: int = 0
    telemetry: Telemetry | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """The accounts and roles that we trust: our account, and the instance profile of each agent role."""

    account: str
    profile_of_role: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """An instance as EC2 shows it. ``fleet``, ``controller``, ``node``: its tags; ``profile``: ARN of its instance profile."""

    instance_id: str
    state: InstanceState
    fleet: str
    controller: str
    profile: str
    node: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Why an instance gets no identity, now or ever."""

    status: Status
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """The node that an instance is."""

    record: Record
    spec: NodeSpec


def authenticate_host(caller: Caller, trust: Trust) -> Refused | None:
    """Refuse a caller with the role of a host that is of another account. The host alone has that role."""
    return None if caller.account == trust.account else Refused(status=Status.FORBIDDEN, reason="the caller is of another account")


def authenticate(caller: Caller, trust: Trust) -> Refused | None:
    """Refuse a caller that cannot be one of our instances, before EC2 is asked about it."""
    if refused := authenticate_host(caller, trust):
        return refused
    if caller.role_id not in trust.profile_of_role:
        return Refused(status=Status.FORBIDDEN, reason="the caller has none of the agent roles")
    if not _INSTANCE_ID.fullmatch(caller.session):
        return Refused(status=Status.FORBIDDEN, reason="the caller's session is not that of an instance")
    return None


def judge(caller: Caller, trust: Trust, identity: Identity | None, record: Record | None, fleet: Fleet) -> Refused | Granted:
    """Identify an authenticated caller, by what EC2 shows of the claimed instance and by our own record."""
    if identity is None:
        # It is newer than what EC2 knows, or EC2 does not show it for the moment: it speaks with a role of ours, so it is there.
        return Refused(status=Status.TOO_EARLY, reason="EC2 does not show this instance")
    refusal = next(_refusals(trust.profile_of_role[caller.role_id], identity, record, fleet), None)
    if refusal is not None:
        return Refused(status=refusal[0], reason=refusal[1])
    if record is None:
        return Refused(status=Status.TOO_EARLY, reason="its launch is not written down yet")
    pool = fleet.pool_of(record.pool, record.controller)
    if pool is None:
        return Refused(status=Status.TOO_EARLY, reason=f"nobody knows its pool {record.pool}")
    return Granted(record=record, spec=agent_spec(fleet, pool, record.instance_id, record.controller))


def _refusals(profile: str, identity: Identity, record: Record | None, fleet: Fleet) -> Iterator[tuple[Status, str]]:
    """Say what speaks against an instance, the weightiest first."""
    if identity.fleet != fleet.name or identity.state is InstanceState.FOREIGN:
        yield Status.FORBIDDEN, f"the instance is none that fleet {fleet.name} launched"
    if identity.profile != profile:
        yield Status.FORBIDDEN, "the instance's profile is not that of the caller's role"
    # One that is to come back asks again: told to power off it would terminate itself.
    if identity.state in OFF:
        yield Status.TOO_EARLY, f"the instance is {identity.state}: it asks again once it is started"
    if record is not None and record.state is RecordState.STOPPING:
        yield Status.TOO_EARLY, "the agent is being stopped: it asks again once it is started"
    if record is not None and record.leaves:
        yield Status.TOO_EARLY, f"it leaves {record.leaves[0].controller} first"
    if identity.state not in ON:
        yield Status.GONE, f"the instance is {identity.state}"
    if record is not None and record.state in {RecordState.CONDEMNED, RecordState.GONE}:
        yield Status.GONE, "the agent was given up"
    # If its controller left the fleet file, a build may be on it, and a person decides.
    controller = record.controller if record else identity.controller
    if controller not in fleet.controllers:
        yield Status.TOO_EARLY, f"its controller {controller} is not in the fleet file any more, and nobody sees its builds"
