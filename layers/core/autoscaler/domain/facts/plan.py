"""A plan is data: small steps, each safe to repeat and with a reason, and the steps that were not taken."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from autoscaler.domain.facts.fleet import Market, NodeSpec, Offering
from autoscaler.domain.facts.memory import Memory
from autoscaler.domain.facts.nodes import Mark
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState, Reservation
from autoscaler.domain.facts.started_builds import Rerun
from autoscaler.domain.wording import LONGEST_DETAIL, shortened

# Steps about what people have for a while: an agent, or a device of a machine.


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """Reserve an agent for a person, and cordon it for good. ``though_busy``: its builds go on, the person has it after them.

    ``replaces``: the mark of ours that it carries.
    """

    controller: str
    pool: str
    node: str
    instance_id: str
    reservation: Reservation
    mark: Mark
    replaces: Mark | None
    though_busy: bool
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveDevice:
    """Reserve one device of a machine for a person. Builds go on beside it."""

    controller: str
    pool: str
    node: str
    instance_id: str
    reservation: Reservation
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndReservation:
    """Set when a reservation ends: now, sooner or later than before. ``person``: of a device; "": of the agent."""

    controller: str
    pool: str
    node: str | None
    instance_id: str
    until_at: float
    person: str = ""
    reason: Reason
    detail: str


# A stop that EC2 makes without asking the machine's system, since that has not come to an end in time.


@dataclass(frozen=True, slots=True, kw_only=True)
class ForceStop:
    """Stop an instance by force that EC2 has shown as stopping for too long. Nothing runs on it; its disk stays."""

    controller: str
    pool: str
    instance_id: str
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateBeacon:
    """Put a beacon on a controller."""

    controller: str
    spec: NodeSpec
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveBeacon:
    """Delete a beacon whose labels no pool gives any more."""

    controller: str
    node: str
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Ask EC2 once for ``count`` agents, on these offerings of one market in this order."""

    controller: str
    pool: str
    count: int
    market: Market
    offerings: tuple[Offering, ...]
    keep_until: float
    intent_id: str | None  # given: made from a person's request id, so that the same request launches once
    template_version: str = ""  # as this pass saw it: what is launched is what was decided on; "": as the fleet file says
    image: str = ""  # likewise; "": the launch template's
    tries: bool = False  # the first agent of an image that never booted, beside others of the one that did
    reservation: Reservation | None = None  # it is launched for a person
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncordon:
    """Bring a node back online, if it still carries exactly this mark of ours."""

    controller: str
    pool: str
    node: str
    mark: Mark
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cordon:
    """Mark a node offline with our token. Its builds go on; it takes no new one.

    ``replaces``: the mark of ours that it carries. ``over_monitor``: it carries the mark of a monitor, which gives way.
    """

    controller: str
    pool: str
    node: str
    mark: Mark
    replaces: Mark | None = None
    over_monitor: bool = False
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Relabel:
    """Set the labels that a node is to have: after a pass that was cut off in between, or since it is full, or has room again.

    ``weight``: of the heaviest build that waits for it.
    """

    controller: str
    pool: str
    node: str
    instance_id: str
    reason: Reason
    detail: str
    weight: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Lend:
    """Lend an idle agent of a rarer kind to jobs of a general one: its node carries their labels until then."""

    controller: str
    pool: str
    node: str
    instance_id: str
    until_at: float
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeBack:
    """End a loan. What runs on the agent goes on; no other job of the general kind begins there."""

    controller: str
    pool: str
    node: str
    instance_id: str
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminate:
    """Terminate an agent. With ``mark``: only while its node still carries that mark and is idle; without: it has no node.

    ``ended``: keys of builds that have ended, and that executors of the node go on showing.
    """

    controller: str
    pool: str
    instance_id: str
    node: str | None
    mark: Mark | None
    reason: Reason
    detail: str
    ended: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Stop an agent whose node still carries that mark and is idle. Its disk stays; it can be started again.

    ``node``, ``mark``: None where it never had a node.
    """

    controller: str
    pool: str
    instance_id: str
    node: str | None
    mark: Mark | None
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishStop:
    """Note that an instance has stopped, and delete the node that it had. ``failed``: EC2's code, where it was to start."""

    controller: str
    pool: str
    instance_id: str
    node: str | None
    failed: str = ""
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Start stopped agents of one pool. If EC2 refuses some, ``spares`` are started, and as many as are still missing launched."""

    controller: str
    pool: str
    instance_ids: tuple[str, ...]
    spares: tuple[str, ...] = ()
    keep_until: float
    request: str = ""  # a person's, so that the same request starts once
    otherwise: Launch | None
    reservation: Reservation | None = None  # it is started for a person
    reason: Reason
    detail: str

    @property
    def count(self) -> int:
        """How many agents it is about."""
        return len(self.instance_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotate:
    """Give a drained agent to another controller, while its node still carries that mark and is idle. Its machine runs on."""

    controller: str
    pool: str
    node: str
    instance_id: str
    mark: Mark
    to: str
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishRotation:
    """Delete the node of an agent that serves another controller by now. ``is_bound``: a build may be bound to it, so the agent stays.

    If that controller left the fleet file, nobody can: then a person has confirmed that nothing of it runs there.
    """

    controller: str
    pool: str
    node: str
    instance_id: str
    is_bound: bool = False
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteNode:
    """Delete a node of ours whose instance has terminated, or is forgotten by EC2 (``fate`` NOT_FOUND).

    ``though_busy``: what seems to run there waits in vain for a machine that is gone for good; ``ended``: as of `Terminate`.
    """

    controller: str
    pool: str
    node: str
    instance_id: str
    fate: InstanceState
    though_busy: bool = False
    ended: tuple[str, ...] = ()
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeSlot:
    """Free a static node: uncordon it if it carries this mark. ``instance_id``: its former agent; ``fate``: as for `DeleteNode`."""

    controller: str
    pool: str
    node: str
    instance_id: str | None
    fate: InstanceState | None
    mark: Mark | None
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt:
    """Write a record for an instance that carries our tags and has none: an answer was lost, or the state was."""

    controller: str
    pool: str
    instance_id: str
    node: str | None
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """Close the record of an instance that is gone and whose node is gone."""

    controller: str
    pool: str
    instance_id: str
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelItem:
    """Cancel a queue item, only on a person's order."""

    controller: str
    item: int
    job: str
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAgain:
    """Start a lost build again. ``parameters``: None for a job that declares none; ``is_known``: its answer was written down before.

    ``found``: the queue item of an earlier start that was not answered; nothing is sent then. ``newest``: the newest queue item of its job
    that the look has shown; what has come since is looked at before anything is sent.
    """

    controller: str
    pool: str
    job: str
    lost: str  # as `Memory.lost` names it
    rerun: Rerun
    parameters: Mapping[str, str] | None
    is_known: bool = False
    found: int | None = None
    newest: int = -1
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveLost:
    """Write down that a lost build is not run again, or not once more, and is a person's to see to, or was started again by a person."""

    controller: str
    pool: str
    job: str
    lost: str
    rerun: Rerun
    is_known: bool = False
    reason: Reason
    detail: str


Step: TypeAlias = (
    CreateBeacon
    | RemoveBeacon
    | Launch
    | Uncordon
    | Cordon
    | Relabel
    | Lend
    | TakeBack
    | Reserve
    | ReserveDevice
    | EndReservation
    | Terminate
    | Stop
    | ForceStop
    | FinishStop
    | Start
    | Rotate
    | FinishRotation
    | DeleteNode
    | FreeSlot
    | Adopt
    | Forget
    | CancelItem
    | RunAgain
    | LeaveLost
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A step that was wanted and not taken, and why. ``limit_of``: whose limit it was, where it was one."""

    pool: str
    reason: Reason
    detail: str
    controller: str = ""
    limit_of: str = ""

    def __post_init__(self) -> None:
        """Keep one readable line: names of jobs and what others answered may be very long."""
        object.__setattr__(self, "detail", shortened(self.detail, LONGEST_DETAIL))


@dataclass(frozen=True, slots=True, kw_only=True)
class BootFailure:
    """An instance that never became an agent; its console is worth keeping. ``why``: where we know it.

    ``beside``: an agent that was launched with it or later has connected, so that only this machine is at fault; or its controller is.
    ``of_start``: it was an agent before, was stopped, and did not come back.
    """

    controller: str
    pool: str
    instance_id: str
    why: str = ""
    version: str = ""  # of its launch template; "" where EC2 does not say
    launched_at: float = 0.0
    launch: str = ""
    beside: bool = False
    of_start: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one pass decided, and what the next one should remember."""

    pass_id: str
    taken_at: float
    steps: tuple[Step, ...]
    held: tuple[Held, ...]
    memory: Memory
    boot_failures: tuple[BootFailure, ...] = ()  # that no earlier plan named
    remember: bool  # False: the memory holds nothing that the next pass does not see by itself
