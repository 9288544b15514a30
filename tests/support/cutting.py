"""Cutting functions off anywhere: at each outside call, in each way in which a call can fail, one at a time.

A scene lives once undisturbed, which lists its cases. Then it lives again and forks at each case that is tried: the child cuts the call
off, lives the rest of the scene and says what does not hold. A scene asserts by itself what must hold in the end.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

from autoscaler_workbench.fakes.world.faults import ConnectionLostError, Fault, Faults, StatusError
from autoscaler_workbench.simulate.drive import InMemory
from support.busy import Invocation, ran
from support.forks import fork, leave, told
from support.sampling import some

READS = {
    *("state read", "state record", "state rerun", "jenkins queue", "jenkins computer", "jenkins api", "jenkins job"),
    *("run_orders open_orders", "run_orders order"),
    "ssm GetParameters",
    *(
        "ec2 DescribeInstances",
        "ec2 DescribeLaunchTemplates",
        "ec2 DescribeLaunchTemplateVersions",
        "ec2 DescribeImages",
        "ec2 DescribeSpotPriceHistory",
        "ec2 GetConsoleOutput",
    ),
}
HANGS_SECONDS = 50.0


class Way(StrEnum):
    """How a call fails."""

    FAILS = "an error is answered"
    LOST = "takes effect, and the answer is lost"
    DIES_BEFORE = "the process dies before"
    DIES_AFTER = "takes effect, and the process dies"
    HANGS = "hangs until the invocation is over, and the process dies"


class Died(BaseException):
    """The process is gone: nothing of it runs on, not even what would tidy up."""


class AllTried(BaseException):
    """No case is left: the parent need not live on."""


class Case(NamedTuple):
    """One call of one invocation, and how it fails."""

    invoked: str
    number: int
    at: int
    call: str
    way: Way

    def __str__(self) -> str:
        return f"{self.invoked} no. {self.number}, call {self.at} ({self.call}): {self.way}"


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """A life, and the invocations that are cut off in it.

    ``cut_off``: by name, how many of the first invocations; None for each one that acts and differs from those before. ``most``: how many
    cases `make test` tries.
    """

    lives: Callable[["Life"], None]
    cut_off: Mapping[str, int | None]
    most: int


@dataclass(slots=True)
class Process:
    """One invocation, as a process; a case may cut it off."""

    case: Case | None = None
    calls: list[str] = field(default_factory=list)
    dead: bool = False


@dataclass(slots=True)
class Life(Faults):
    """The faults of a scene's fleet. Invocations may overlap while one of them hangs."""

    fleet: InMemory | None = None
    chosen: list[Case] = field(default_factory=list)  # to be tried still, in their order
    forks: bool = False
    broken: list[str] = field(default_factory=list)
    made: dict[tuple[str, int], tuple[bool, list[str]]] = field(default_factory=dict)  # by invocation: whether it acted, its calls
    processes: list[Process] = field(default_factory=list)
    invocations: Counter[str] = field(default_factory=Counter)
    pipe: int | None = None  # of a child, to its parent
    case: Case | None = None  # of a child

    def invoke(self, name: str, invocation: Invocation) -> None:
        """Run an invocation, cut off if a case says so."""
        number = self.invocations[name]
        self.invocations[name] += 1
        process = Process(self._forked(name, number) if self.forks else None)
        self.made[name, number] = False, process.calls
        before, orders = len(self.fleet.reports), dict(self.fleet.run_orders.orders)
        self.processes.append(process)
        try:
            ran(invocation)
        except Died:
            pass
        finally:
            self.processes.pop()
        acted = any(report.results for report in self.fleet.reports[before:]) or orders != self.fleet.run_orders.orders
        self.made[name, number] = acted, process.calls
        if process.case:
            self.fleet.read_in_process()  # adapters are cut off; the passes that repair it may read the world in process, which is faster

    def _forked(self, name: str, number: int) -> Case | None:
        """Fork for each case of an invocation; return a child's case."""
        while self.chosen and (self.chosen[0].invoked, self.chosen[0].number) == (name, number):
            case = self.chosen.pop(0)
            self.pipe, said = fork()
            if self.pipe is not None:
                self.case, self.forks = case, False
                return case
            if said:
                self.broken.append(said)
        if not self.chosen:
            raise AllTried
        return None

    @contextmanager
    def around(self, call: str) -> Iterator[None]:
        """Run a call of the innermost invocation, or cut it off."""
        if not self.processes:
            yield
            return
        process = self.processes[-1]
        if process.dead:
            raise Died(call)
        process.calls.append(call)
        if process.case is None or len(process.calls) - 1 != process.case.at:
            yield
            return
        self._begin_to_fail(process, call)
        yield
        if process.case.way is Way.LOST:
            raise ConnectionLostError(call)
        process.dead = True
        raise Died(call)

    def _begin_to_fail(self, process: Process, call: str) -> None:
        match process.case.way:
            case Way.FAILS:
                raise StatusError(Fault(call, status=503, code="Unavailable"))
            case Way.DIES_BEFORE | Way.HANGS as way:
                process.dead = True
                self.fleet.world.timeline.sleep(HANGS_SECONDS if way is Way.HANGS else 0.0)
                raise Died(call)


def differs(calls: list[str], at: int, way: Way) -> bool:
    """Tell whether a case differs from all others of the invocation.

    A read takes no effect: its lost answer is a failed read, and a death after it is a death before it. A death before a call is a death
    after the call before. A hang in a read equals a hang in the read before it.
    """
    match way:
        case Way.FAILS:
            return True
        case Way.DIES_BEFORE:
            return at == 0
        case Way.HANGS:
            return not (at and calls[at] in READS and calls[at - 1] in READS)
        case _:
            return calls[at] not in READS


@cache
def cases_of(scene: Scene) -> list[Case]:
    """Live a scene undisturbed; list its cases in their order."""
    life = Life()
    scene.lives(life)
    cases: list[Case] = []
    cut_off: dict[str, list[list[str]]] = {name: [] for name in scene.cut_off}
    for (name, number), (acted, calls) in life.made.items():
        first, before = scene.cut_off.get(name), cut_off.get(name, [])
        if name in cut_off and calls and (len(before) < first if first else acted and calls not in before):
            before.append(calls)
            cases += [Case(name, number, at, call, way) for at, call in enumerate(calls) for way in Way if differs(calls, at, way)]
    return cases


def try_out(scene: Scene, part: int = 0, parts: int = 1) -> dict[str, Any]:
    """Try a sample of one part of a scene's cases. Return how many there are by invocation, how many were tried, and which broke."""
    every = cases_of(scene)
    mine = every[part::parts]
    chosen = {*some(map(str, mine), most=scene.most)}
    life = Life(chosen=[case for case in mine if str(case) in chosen], forks=True)
    return {
        "cases": len(mine),
        "tried": len(chosen),
        "by invocation": Counter(case.invoked for case in every),
        "broken": _live(scene, life),
    }


def _live(scene: Scene, life: Life) -> list[str]:
    """Live a scene until all its chosen cases are tried. A child ends here."""
    said = ""
    try:
        scene.lives(life)
    except AllTried:
        return life.broken
    except BaseException as error:
        if life.pipe is None:
            raise
        said = f"{life.case}: {told(error)}"
    if life.pipe is not None:
        leave(life.pipe, said)
    raise AssertionError(f"these cases were not met again: {life.chosen}")
