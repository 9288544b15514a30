"""Capacity that AWS keeps for an operator, who pays for it whether or not anything runs."""

from dataclasses import dataclass
from math import inf

# EC2 ends the instances of a Capacity Block so long before the block ends:
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-blocks.html
BLOCK_ENDS_EARLY_SECONDS = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedPrice:
    """What an agent would cost by itself that was launched into this reservation. ``is_billed``: it does, and its record's price has it."""

    id: str
    usd_per_hour: float
    is_billed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityReservation:
    """A Capacity Reservation, or a Capacity Block, of so many machines of one type. Its pool launches into it and nowhere else."""

    id: str
    count: int
    usd_per_hour: float  # of one machine, used or not
    block: bool = False  # EC2 ends what runs in it; what runs in a reservation goes on, at the price on demand
    starts_at: float = 0.0
    ends_at: float = inf

    @property
    def leaves_at(self) -> float:
        """When its machines are not free any more: EC2 ends them, or they cost what others cost."""
        return self.ends_at - BLOCK_ENDS_EARLY_SECONDS if self.block else self.ends_at

    def paid_seconds(self, since: float, until: float) -> float:
        """How long it is paid for between two instants."""
        return max(0.0, min(until, self.ends_at) - max(since, self.starts_at))

    def unpaid_seconds(self, since: float, until: float) -> float:
        """How long what runs in it is billed by itself between two instants: after its end."""
        return max(0.0, until - max(since, self.ends_at))
