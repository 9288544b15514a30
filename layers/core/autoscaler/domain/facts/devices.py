"""Devices of a machine, as its agent tells when it asks: graphics cards that `gpu-lease` hands out, one command at a time."""

from dataclasses import dataclass

# An agent that has devices asks again after this long, 40 times an hour: what it says of them is soon out of date.
DEVICES_POLL_SECONDS = 90
# What was said so long ago says nothing any more: three questions were missed.
DEVICES_FRESH_SECONDS = 300.0
FREE = "free"


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device. ``state``: free, held, or in use without a lease; ``user``: whose process holds it, where one does."""

    id: str
    kind: str
    state: str
    user: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """All devices of a machine when it last said so. ``waiting``: how many wait for one there."""

    told_at: float
    devices: tuple[Device, ...]
    waiting: int = 0

    @property
    def free(self) -> int:
        """How many nobody holds or uses."""
        return sum(device.state == FREE for device in self.devices)

    def is_fresh(self, now: float) -> bool:
        """Tell whether what was said still says something."""
        return now - self.told_at <= DEVICES_FRESH_SECONDS
