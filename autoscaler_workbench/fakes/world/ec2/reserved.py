"""Capacity Reservations and Capacity Blocks of the simulated EC2: launched into by a template that names one, and in no other way.

https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-launch.html, capacity-reservations-using.html: targeted ones, which
nothing else runs in.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from autoscaler.domain.facts.fleet import BLOCK_ENDS_EARLY_SECONDS

if TYPE_CHECKING:
    from autoscaler_workbench.fakes.world.ec2.instance import Instance
    from autoscaler_workbench.fakes.world.ec2.region import Ec2

FULL = "ReservationCapacityExceeded"
BLOCK = "capacity-block"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """Capacity that is kept: of how many machines of which type, in which subnet's zone, from when until when."""

    id: str
    instance_type: str
    subnet: str
    count: int
    block: bool
    starts_at: float
    ends_at: float

    @property
    def ends_machines_at(self) -> float:
        """When EC2 ends what runs in a block; what runs in a reservation goes on."""
        return self.ends_at - BLOCK_ENDS_EARLY_SECONDS if self.block else float("inf")


def named_by(data: dict[str, Any]) -> str:
    """The capacity that the data of a launch template names; "" where it names none."""
    return str(data.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget", {}).get("CapacityReservationId", ""))


def naming(reserved: Reserved) -> dict[str, Any]:
    """What a launch template says to launch into it."""
    target = {"CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": reserved.id}}}
    return target | ({"InstanceMarketOptions": {"MarketType": BLOCK}} if reserved.block else {})


def why_refused(reserved: Reserved | None, market: str, data: dict[str, Any]) -> tuple[str, str] | None:
    """Say with which code and message EC2 refuses a request for it as a whole; None where it does not."""
    if named_by(data) and reserved is None:
        return "InvalidCapacityReservationId.NotFound", f"The capacity reservation '{named_by(data)}' does not exist"
    is_block = reserved is not None and reserved.block
    if is_block != (market == BLOCK) or is_block != (data.get("InstanceMarketOptions", {}).get("MarketType") == BLOCK):
        return "InvalidParameterCombination", "A capacity block is launched into with the market type capacity-block, and nothing else is"
    return None


def room_in(ec2: "Ec2", reserved: Reserved, override: dict[str, Any]) -> int:
    """How many machines an offering of a request can still have in it now."""
    now = ec2.timeline.now
    fits = override["InstanceType"] == reserved.instance_type and override.get("SubnetId", "") == reserved.subnet
    if not fits or not reserved.starts_at <= now < min(reserved.ends_at, reserved.ends_machines_at):
        return 0
    return reserved.count - sum(one.alive() and one.reserved == reserved.id for one in ec2.remembered.values())


def end_in_time(ec2: "Ec2", reserved: Reserved, instance: "Instance") -> None:
    """Let EC2 end a machine half an hour before its block ends, whatever runs on it."""
    if reserved.block:
        ec2.timeline.at(reserved.ends_machines_at, lambda: ec2.end(instance))
