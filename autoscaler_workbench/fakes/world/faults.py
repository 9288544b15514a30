"""Planned faults: any call can fail before it takes effect, or after."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random


class ConnectionLostError(Exception):
    """The connection ends here: the caller never learns what became of the call."""


@dataclass(slots=True)
class Fault:
    """One kind of failure of one call: ``status`` 0 cuts the connection, otherwise that HTTP status is answered."""

    call: str
    after: bool = False  # it takes effect first
    status: int = 0
    code: str = ""
    times: int = 1


class StatusError(Exception):
    """The call is answered with this status."""

    def __init__(self, fault: Fault) -> None:
        """Keep which."""
        super().__init__(f"{fault.call}: {fault.status} {fault.code}")
        self.fault = fault


def failing(share: float, seed: int) -> Callable[[str], Fault | None] | None:
    """Draw faults: this share of calls loses its connection, half of them after taking effect; None for no share."""
    chance = Random(seed + 23)  # noqa: S311 - a simulation's chance

    def dice(call: str) -> Fault | None:
        drawn = chance.random()
        return Fault(call, after=drawn < share / 2) if drawn < share else None

    return dice if share else None


@dataclass(slots=True)
class Faults:
    """The faults that are still to come. ``dice`` may add to them, call by call; ``meanwhile`` happens just before a call arrives."""

    planned: list[Fault] = field(default_factory=list)
    dice: Callable[[str], Fault | None] | None = None
    meanwhile: Callable[[str], None] = lambda _call: None
    seen: list[str] = field(default_factory=list)

    def plan(self, fault: Fault) -> None:
        """Let a call fail, the next ``times`` times."""
        self.planned.append(fault)

    @contextmanager
    def around(self, call: str) -> Iterator[None]:
        """Run a call, and fail it as planned."""
        self.meanwhile(call)
        fault = self._next(call)
        if fault and not fault.after:
            self._strike(fault)
        yield
        if fault and fault.after:
            self._strike(fault)

    def _next(self, call: str) -> Fault | None:
        for fault in self.planned:
            if fault.call == call and fault.times > 0:
                fault.times -= 1
                return fault
        return self.dice(call) if self.dice else None

    def _strike(self, fault: Fault) -> None:
        self.seen.append(f"{fault.call} {'after' if fault.after else 'before'} {fault.status}")
        if fault.status:
            raise StatusError(fault)
        raise ConnectionLostError(fault.call)
