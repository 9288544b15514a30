"""Graphics cards of a machine, as `gpu-lease` hands them out: one command a card, in the order of asking."""

from collections.abc import Callable
from dataclasses import dataclass

from autoscaler.domain.facts.telemetry import FREE, Device
from autoscaler_workbench.fakes.world.timeline import Timeline

# What a command left behind is killed before its card is free.
_CLEANS_UP_SECONDS = 2.0


@dataclass(eq=False, slots=True)
class Lease:
    """A command that asked for a card: it waits in line, and then holds one until it ends."""

    user: str
    begins: Callable[[], None]
    card: int | None = None


class Cards:
    """The cards of one machine, and whoever holds or waits for one."""

    def __init__(self, timeline: Timeline, count: int, kind: str = "gfx1030") -> None:
        """Have so many, all of them free. ``answers``: False, and the agent cannot tell of them."""
        self._timeline = timeline
        self._kind = kind
        self._holders: list[Lease | None] = [None] * count
        self._line: list[Lease] = []
        self.answers = True

    @property
    def now(self) -> float:
        """The time."""
        return self._timeline.now

    def ask(self, user: str, begins: Callable[[], None]) -> Lease:
        """Ask for a card; ``begins`` is called once it is there."""
        lease = Lease(user, begins)
        self._line.append(lease)
        self._grant()
        return lease

    def end(self, lease: Lease) -> None:
        """End a command, or take it out of the line."""
        if lease in self._line:
            self._line.remove(lease)
        elif lease in self._holders:
            self._timeline.after(_CLEANS_UP_SECONDS, lambda: self._free(lease))

    def power_fails(self) -> None:
        """Forget all of it: it stands in memory."""
        self._holders, self._line = [None] * len(self._holders), []

    def told(self) -> tuple[tuple[Device, ...], int]:
        """Tell which are held by whom, and how many wait; nothing where `gpu-lease` does not answer."""
        if not self.answers:
            return (), 0
        devices = (
            Device(id=str(number), kind=self._kind, state="held" if holder else FREE, user=holder.user if holder else "")
            for number, holder in enumerate(self._holders)
        )
        return tuple(devices), len(self._line)

    def holders(self) -> list[str]:
        """Say who holds a card."""
        return sorted(holder.user for holder in self._holders if holder)

    def _free(self, lease: Lease) -> None:
        if lease in self._holders:  # the power may have failed meanwhile
            self._holders[self._holders.index(lease)] = None
            self._grant()

    def _grant(self) -> None:
        while self._line and None in self._holders:
            lease = self._line.pop(0)
            lease.card = self._holders.index(None)
            self._holders[lease.card] = lease
            lease.begins()
