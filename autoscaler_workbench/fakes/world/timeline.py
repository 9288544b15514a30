"""The world's time: events in order, and a clock that moves only when told."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count


class Timeline:
    """Simulated time in epoch seconds; due events happen in order while time advances."""

    def __init__(self, start_at: float) -> None:
        """Begin at an instant."""
        self.now = start_at
        self.happened = 0  # how many things have
        self._order = count()
        self._due: list[tuple[float, int, Callable[[], None]]] = []

    def at(self, when: float, happen: Callable[[], None]) -> None:
        """Let something happen then, or at once if that is past."""
        heappush(self._due, (max(when, self.now), next(self._order), happen))

    def after(self, seconds: float, happen: Callable[[], None]) -> None:
        """Let something happen later."""
        self.at(self.now + seconds, happen)

    def move_to(self, when: float) -> None:
        """Move on to an instant, through everything that is due until then."""
        while self._due and self._due[0][0] <= when:
            at, _, happen = heappop(self._due)
            self.now = at
            self.happened += 1
            happen()
        self.now = max(self.now, when)

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.move_to(self.now + seconds)
