"""Cutting functions off: at each outside call of a busy hour, in each way in which a call can fail, one at a time.

The hour is lived once. Before an invocation that is to be cut off, the process forks once for each call of it and each way to
fail: the child cuts there, lives the rest of its hour, and says what it found in the end. Run as a process of its own:
``python -m support.cutoffs FUNCTION WAY,WAY ONE_IN`` cuts at one in so many of these calls; prints one JSON document, by way.
"""

import gc
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from autoscaler_workbench.fakes.world.faults import ConnectionLostError, Fault, Faults, StatusError
from support.busy import Hour, Invocation, a_fleet_in_memory, ran
from support.busy_shared import ASKS, ORDERS, SharedHour, a_shared_fleet
from support.forks import told

READS = {
    *("state read", "state record", "state rerun", "jenkins queue", "jenkins computer", "jenkins api", "jenkins job"),
    *("run_orders open_orders", "run_orders order"),
    "ssm GetParameters",
    *("ec2 DescribeInstances", "ec2 DescribeLaunchTemplates", "ec2 DescribeSpotPriceHistory", "ec2 GetConsoleOutput"),
}
HANGS_SECONDS = 50.0
# Alike but for when they happen: of these, the first few are cut off.
AS_MANY = {"publish_metrics": 3, "register_agent": 3, "register_agent again": 3, "register_agent for a person": 2, ASKS: 12, ORDERS: 2}
# The second busy hour.
SHARED = "shared"


class Way(StrEnum):
    """How a call fails."""

    FAILS = "fails"  # an error is answered, nothing happened
    LOST = "takes effect, and the answer is lost"
    DIES = "takes effect, and the process dies"
    HANGS = "hangs until the invocation is over, and the process dies"


class Died(BaseException):
    """The process is gone: nothing of it runs on, least of all what would tidy up."""


@dataclass(slots=True)
class Process:
    """One invocation, as a process that may be cut off at its ``at``-th call."""

    at: int | None = None
    way: Way = Way.FAILS
    calls: list[str] = field(default_factory=list)
    dead: bool = False


@dataclass(slots=True)
class CuttingFaults(Faults):
    """Faults that know whose call it is: invocations may overlap while one of them hangs."""

    hour: Hour | None = None
    processes: list[Process] = field(default_factory=list)

    @contextmanager
    def around(self, call: str) -> Iterator[None]:
        """Run a call of the innermost invocation, or cut it off there."""
        if not self.processes:
            yield
            return
        process = self.processes[-1]
        if process.dead:
            raise Died(call)
        process.calls.append(call)
        if len(process.calls) - 1 != process.at:
            yield
            return
        if process.way is Way.FAILS:
            raise StatusError(Fault(call, status=503, code="Unavailable"))
        if process.way is Way.HANGS:
            process.dead = True
            self.hour.world.timeline.sleep(HANGS_SECONDS)
            raise Died(call)
        yield
        if process.way is Way.LOST:
            raise ConnectionLostError(call)
        process.dead = True
        raise Died(call)


def hour_with(faults: CuttingFaults, scene: str = "") -> Hour:
    hour = SharedHour(a_shared_fleet(faults)) if scene == SHARED else Hour(a_fleet_in_memory(faults))
    faults.hour = hour
    return hour


def live(faults: CuttingFaults, process: Process, invocation: Invocation) -> None:
    """Let an invocation run as this process."""
    faults.processes.append(process)
    try:
        ran(invocation)
    except Died:
        return
    finally:
        faults.processes.pop()


@dataclass(slots=True)
class Tried:
    """How many calls there were to cut off in one way, how many were, and what was not made good."""

    met: int = 0
    cases: int = 0
    broken: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Cutting:
    """One busy hour that is cut off. In a forked child, ``case`` names the one cut, and ``pipe`` leads to who waits for its end."""

    function: str
    tried: dict[Way, Tried]
    cuts: dict[int, list[str]]  # calls to cut, by the number of the invocation
    one_in: int = 1
    scene: str = ""
    faults: CuttingFaults = field(default_factory=CuttingFaults)
    invocations: int = 0
    case: str = ""
    pipe: int = 0

    def live(self) -> None:
        """Live the hour to its end, and in each child the rest of its own."""
        hour = hour_with(self.faults, self.scene)
        hour.around = lambda name, invocation: self._invoked(hour, name, invocation)
        try:
            hour.settle()
            hour.assert_whole()
        except BaseException as error:
            self._leave(f"{self.case}: {told(error)}")
            raise
        self._leave("")

    def _invoked(self, hour: Hour, name: str, invocation: Invocation) -> None:
        process = Process()
        if name == self.function and not self.case:
            process = self._cut_in_each_way(hour.minute, self.cuts.get(self.invocations, []))
            self.invocations += 1
        live(self.faults, process, invocation)
        if process.at is not None:
            hour.fleet.read_in_process()  # what is cut off is cut off at the adapters; what makes it good may be quicker

    def _cut_in_each_way(self, minute: int, calls: list[str]) -> Process:
        for way in self.tried:
            process = self._cut(way, minute, calls)
            if process.at is not None:
                return process
        return Process()

    def _cut(self, way: Way, minute: int, calls: list[str]) -> Process:
        """Fork for each call; return how this process goes on.

        Dying after a read is like hanging in it, nothing took effect; an answer to a read that is lost is a read that fails; and hanging in
        one read is like hanging in the one before it.
        """
        tried = self.tried[way]
        for at, call in enumerate(calls):
            if call in READS and (way in {Way.DIES, Way.LOST} or (way is Way.HANGS and at and calls[at - 1] in READS)):
                continue
            tried.met += 1
            if (tried.met - 1) % self.one_in:
                continue
            tried.cases += 1
            if self._forked(f"{self.function}, minute {minute}, call {at} ({call}) {way}", tried):
                return Process(at=at, way=way)
        return Process()

    def _forked(self, case: str, tried: Tried) -> bool:
        """Fork, and wait for what the child says; true in the child."""
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read_end)
            self.case, self.pipe = case, write_end
            return True
        os.close(write_end)
        with os.fdopen(read_end, encoding="utf-8") as pipe:
            said = pipe.read()
        _, status = os.waitpid(pid, 0)
        if said or status:
            tried.broken.append(said or f"{case}: the process ended with {status}")
        return False

    def _leave(self, said: str) -> None:
        """In a child, say what was found, and end."""
        if self.case:
            os.write(self.pipe, said.encode())
            os._exit(0)


def to_cut(function: str, scene: str = "") -> dict[int, list[str]]:
    """Live the hour undisturbed: which of the function's invocations do something, and which calls each makes."""
    faults, calls = CuttingFaults(), []
    hour = hour_with(faults, scene)

    def around(name: str, invocation: Invocation) -> None:
        process, before, orders = Process(), len(hour.fleet.reports), dict(hour.fleet.run_orders.orders)
        live(faults, process, invocation)
        if name == function:
            acts = name in AS_MANY or orders != hour.fleet.run_orders.orders
            acts = acts or any(report.results for report in hour.fleet.reports[before:])
            calls.append(process.calls if acts else [])

    hour.around = around
    hour.settle()
    hour.assert_whole()
    acting = {number: made for number, made in enumerate(calls) if made}
    if function in AS_MANY:
        return dict(list(acting.items())[: AS_MANY[function]])
    # Those that make the same calls in the same order are one: the first of them is cut off.
    return {number: made for number, made in acting.items() if made not in calls[:number]}


def main(function: str, ways: str, one_in: str, scene: str = "") -> None:
    gc.freeze()  # what all children share is not gone through in each
    cutting = Cutting(function, {Way[way]: Tried() for way in ways.split(",")}, to_cut(function, scene), int(one_in), scene)
    cutting.live()
    print(json.dumps({way.name: asdict(tried) for way, tried in cutting.tried.items()}))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
