"""Slots of looks in memory, as unkind as a standard queue: a message may come late, twice, out of order, or not at all."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

from autoscaler.errors import TransientError, UnansweredError
from autoscaler_workbench.fakes.world.faults import ConnectionLostError, Faults, StatusError

Wake = Callable[[dict[str, Any]], None]


def sqs_event(body: str, number: int = 0) -> dict[str, Any]:
    """What Lambda is invoked with for one message."""
    arn = "arn:aws:sqs:us-west-2:123456789012:looks"
    return {
        "Records": [{"messageId": f"m-{number}", "body": body, "eventSource": "aws:sqs", "eventSourceARN": arn, "awsRegion": "us-west-2"}]
    }


@dataclass(slots=True)
class InMemorySlots:
    """A queue on a time-line. ``wake`` gets the event of each message; ``late_share`` and ``twice_share``: of the messages.

    ``after``: calls something so many seconds from now.
    """

    after: Callable[[float, Callable[[], None]], None]
    wake: Wake = lambda _event: None
    chance: Random = field(default_factory=lambda: Random(1))  # noqa: S311 - a simulation's chance
    late_share: float = 0.0
    twice_share: float = 0.0
    late_seconds: float = 30.0
    faults: Faults = field(default_factory=Faults)
    taken: set[str] = field(default_factory=set)
    _numbers: Iterator[int] = field(default_factory=count)

    def announce(self, slots: Mapping[str, float], now: float) -> None:
        """Deliver a message at each slot."""
        with self._call("slots announce"):
            for name, at in slots.items():
                self._send(name, at, now)

    def take(self, slot: str, now: float) -> bool:
        """Take it, if nobody has."""
        del now
        with self._call("slots take"):
            is_free = slot not in self.taken
            self.taken.add(slot)
        return is_free

    def _send(self, name: str, at: float, now: float) -> None:
        body = json.dumps({"slot": name, "at": at})
        late = self.late_seconds if self.chance.random() < self.late_share else self.chance.uniform(0.0, 1.0)
        for _ in range(2 if self.chance.random() < self.twice_share else 1):
            event = sqs_event(body, next(self._numbers))
            self.after(max(0.0, at - now) + late, lambda event=event: self.wake(event))  # type: ignore[misc]

    @contextmanager
    def _call(self, name: str) -> Iterator[None]:
        try:
            with self.faults.around(name):
                yield
        except ConnectionLostError as error:
            raise UnansweredError(f"{name} was not answered") from error
        except StatusError as error:
            raise TransientError(f"{name} failed") from error
