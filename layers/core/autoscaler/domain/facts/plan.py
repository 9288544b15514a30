"""A plan is data: small steps, each safe to repeat and with a reason; those that were not taken; and what steps brought about."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from autoscaler.domain.facts.fleet import Market, NodeSpec, Offering
from autoscaler.domain.facts.memory import Memory
from autoscaler.domain.facts.nodes import Mark
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState, Reservation
from autoscaler.domain.facts.started_builds import Rerun
from autoscaler.domain.wording import LONGEST_DETAIL, shortened

# What all steps have in common. Each is a small subclass with what only it needs; `control.steps` carries them out.


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One small change of the world, safe to repeat. ``name``: what logs and the history call it; None: it is about none."""

    name: ClassVar[str]
    controller: str
    pool: str | None = None
    node: str | None = None
    instance_id: str | None = None
    reason: Reason
    detail: str

    def __init_subclass__(cls, name: str = "") -> None:
        """Keep the name. A dataclass with slots is made twice, and the second time without arguments."""
        if name:
            cls.name = name


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStep(Step):
    """A step of one pool."""

    pool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStep(PoolStep):
    """A step about a node of a pool."""

    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStep(NodeStep):
    """A step about an agent that has a node."""

    instance_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceStep(PoolStep):
    """A step about an agent that may have no node."""

    node: str | None
    instance_id: str


# Beacons, and items of the queue: they concern Jenkins alone.


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateBeacon(Step, name="create-beacon"):
    """Put a beacon on a controller."""

    spec: NodeSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveBeacon(Step, name="remove-beacon"):
    """Delete a beacon whose labels no pool gives any more."""

    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelItem(Step, name="cancel-item"):
    """Cancel a queue item, only on a person's order."""

    item: int
    job: str


# What keeps builds off an agent, and what gives it to others.


@dataclass(frozen=True, slots=True, kw_only=True)
class Cordon(NodeStep, name="cordon"):
    """Mark a node offline with our token. Its builds go on; it takes no new one.

    ``replaces``: the mark of ours that it carries. ``over_monitor``: it carries the mark of a monitor, which gives way.
    """

    mark: Mark
    replaces: Mark | None = None
    over_monitor: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncordon(NodeStep, name="uncordon"):
    """Bring a node back online, if it still carries exactly this mark of ours."""

    mark: Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Relabel(AgentStep, name="relabel"):
    """Set the labels that a node is to have: after a pass that was cut off in between, or since it is full, or has room again.

    ``weight``: of the heaviest build that waits for it.
    """

    weight: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Lend(AgentStep, name="lend"):
    """Lend an idle agent of a rarer kind to jobs of a general one: its node carries their labels until then."""

    until_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeBack(AgentStep, name="take-back"):
    """End a loan. What runs on the agent goes on; no other job of the general kind begins there."""


# What people have for a while: an agent, or a device of a machine.


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve(AgentStep, name="reserve"):
    """Reserve an agent for a person, and cordon it for good. ``though_busy``: its builds go on, the person has it after them.

    ``replaces``: the mark of ours that it carries.
    """

    reservation: Reservation
    mark: Mark
    replaces: Mark | None
    though_busy: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveDevice(AgentStep, name="reserve-device"):
    """Reserve one device of a machine for a person. Builds go on beside it."""

    reservation: Reservation


@dataclass(frozen=True, slots=True, kw_only=True)
class EndReservation(InstanceStep, name="end-reservation"):
    """Set when a reservation ends: now, sooner or later than before. ``person``: of a device; "": of the agent."""

    until_at: float
    person: str = ""


# New agents.


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch(PoolStep, name="launch"):
    """Ask EC2 once for ``count`` agents, on these offerings of one market in this order."""

    count: int
    market: Market
    offerings: tuple[Offering, ...]
    keep_until: float
    intent_id: str | None  # given: made from a person's request id, so that the same request launches once
    template_version: str = ""  # as this pass saw it: what is launched is what was decided on; "": as the fleet file says
    image: str = ""  # likewise; "": the launch template's
    tries: bool = False  # the first agent of an image that never booted, beside others of the one that did
    reservation: Reservation | None = None  # it is launched for a person


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt(InstanceStep, name="adopt"):
    """Write a record for an instance that carries our tags and has none: an answer was lost, or the state was."""


# Stopped agents.


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop(InstanceStep, name="stop"):
    """Stop an agent whose node still carries that mark and is idle. Its disk stays; it can be started again.

    ``node``, ``mark``: None where it never had a node.
    """

    mark: Mark | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForceStop(InstanceStep, name="force-stop"):
    """Stop an instance by force that EC2 has shown as stopping for too long. Nothing runs on it; its disk stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishStop(InstanceStep, name="finish-stop"):
    """Note that an instance has stopped, and delete the node that it had. ``failed``: EC2's code, where it was to start."""

    failed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start(PoolStep, name="start"):
    """Start stopped agents of one pool. If EC2 refuses some, ``spares`` are started, and as many as are still missing launched."""

    instance_ids: tuple[str, ...]
    spares: tuple[str, ...] = ()
    keep_until: float
    request: str = ""  # a person's, so that the same request starts once
    otherwise: Launch | None
    reservation: Reservation | None = None  # it is started for a person

    @property
    def count(self) -> int:
        """How many agents it is about."""
        return len(self.instance_ids)


# Agents that go from one controller to another.


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotate(AgentStep, name="rotate"):
    """Give a drained agent to another controller, while its node still carries that mark and is idle. Its machine runs on."""

    mark: Mark
    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishRotation(AgentStep, name="finish-rotation"):
    """Delete the node of an agent that serves another controller by now. ``is_bound``: a build may be bound to it, so the agent stays.

    If that controller left the fleet file, nobody can: then a person has confirmed that nothing of it runs there.
    """

    is_bound: bool = False


# The end of an agent, of its node and of its record.


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminate(InstanceStep, name="terminate"):
    """Terminate an agent. With ``mark``: only while its node still carries that mark and is idle; without: it has no node.

    ``ended``: keys of builds that have ended, and that executors of the node go on showing.
    """

    mark: Mark | None
    ended: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteNode(AgentStep, name="delete-node"):
    """Delete a node of ours whose instance has terminated, or is forgotten by EC2 (``fate`` NOT_FOUND).

    ``though_busy``: what seems to run there waits in vain for a machine that is gone for good; ``ended``: as of `Terminate`.
    """

    fate: InstanceState
    though_busy: bool = False
    ended: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeSlot(NodeStep, name="free-slot"):
    """Free a static node: uncordon it if it carries this mark. ``instance_id``: its former agent; ``fate``: as for `DeleteNode`."""

    instance_id: str | None
    fate: InstanceState | None
    mark: Mark | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget(InstanceStep, name="forget"):
    """Close the record of an instance that is gone and whose node is gone."""


# Lost builds.


@dataclass(frozen=True, slots=True, kw_only=True)
class LostStep(PoolStep):
    """A step that answers for a lost build."""

    job: str
    lost: str  # as `Memory.lost` names it
    rerun: Rerun


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAgain(LostStep, name="run-again"):
    """Start a lost build again. ``parameters``: None for a job that declares none; ``is_known``: its answer was written down before.

    ``found``: the queue item of an earlier start that was not answered; nothing is sent then. ``newest``: the newest queue item of its job
    that the look has shown; what has come since is looked at before anything is sent.
    """

    parameters: Mapping[str, str] | None
    is_known: bool = False
    found: int | None = None
    newest: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveLost(LostStep, name="leave-lost"):
    """Write down that a lost build is not run again, or not once more, and is a person's to see to, or was started again by a person."""

    is_known: bool = False


# What a plan says beside its steps.


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
    ``places``: scopes of the types and subnets that it may have been launched on; none where its controller is at fault.
    ``of_start``: it was an agent before, was stopped, and did not come back.
    """

    controller: str
    pool: str
    instance_id: str
    why: str = ""
    version: str = ""  # of its launch template; "" where EC2 does not say
    launched_at: float = 0.0
    beside: bool = False
    places: tuple[str, ...] = ()
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


# Effects: what the steps of a pass brought about. `learn` adds them to the memory. The effects of launches come first.


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One error of a launch. ``offering_key``: "" where EC2 did not say; ``asked``: all offerings of one market in it.

    ``in_doubt``: EC2 has an error of its own, or did not answer: the launch may have taken effect.
    """

    code: str
    offering_key: str
    asked: tuple[Offering, ...]
    had: frozenset[str] = frozenset()  # instance types that it got all the same
    met: bool = False  # it got as many as it asked for
    denied: str = ""  # the action for which IAM gives no permission
    in_doubt: bool = False

    @property
    def text(self) -> str:
        """Write EC2's code, and what is not allowed."""
        return f"{self.code} ({self.denied})" if self.denied else self.code


@dataclass(frozen=True, slots=True, kw_only=True)
class NotLaunched:
    """What EC2 refused of one launch."""

    pool: str
    refusals: tuple[Refusal, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRefused:
    """A launch that tries a new image, and that EC2 refused. ``why``: in its words."""

    pool: str
    version: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Had:
    """What one launch brought: a pool, the offerings that it asked for, and the instance types that it got."""

    pool: str
    asked: tuple[Offering, ...]
    types: frozenset[str]


# Effects of starts and stops.


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedStart:
    """A start that EC2 refused, that ended stopped again, or whose agent did not connect in time. ``why``: in EC2's or its own words.

    ``of_all``: whatever the machine is, EC2 would have said the same. Else each machine counts once.
    """

    pool: str
    instance_id: str
    why: str
    of_all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """EC2 stops an agent of this pool, as it was asked to."""

    pool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotStopped:
    """EC2 will never stop this instance. ``why``: in its words."""

    instance_id: str
    pool: str
    why: str


# Effects of ending an agent.


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminated:
    """EC2 terminates this instance, as it was asked to. ``refused``: in EC2's words, why it does not, and will not."""

    instance_id: str
    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleRead:
    """What an agent that did not boot has written on its console."""

    instance_id: str
    text: str


# Effects of any step.


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A step that is given up if it fails too often, by its name in what keeps failing. ``why``: None: it has not failed."""

    key: str
    why: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LostAnswer:
    """The answer for a lost build. ``lost``: its name in the memory."""

    lost: str
    rerun: Rerun


Effect = NotLaunched | ImageRefused | Had | FailedStart | Stopped | NotStopped | Terminated | ConsoleRead | Tried | LostAnswer
