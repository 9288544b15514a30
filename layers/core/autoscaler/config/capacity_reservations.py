"""The keys of a Capacity Reservation or a Capacity Block that a pool launches into."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from math import inf
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints

from autoscaler.config.basics import Section
from autoscaler.domain.facts.fleet import CapacityReservation, Offering

if TYPE_CHECKING:
    from autoscaler.config.settings import FleetSettings, PoolSettings

KEY = "capacity_reservation"


def _instant(text: str) -> str:
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"({text}) is no date and time such as 2026-12-01T11:30Z") from error
    if at.tzinfo is None:
        raise ValueError(f"({text}) has no time zone, write 2026-12-01T11:30Z for UTC")
    return text


_Instant = Annotated[str, AfterValidator(_instant)]


class CapacityReservationSettings(Section):
    """Capacity that is paid for whether or not it is used. The pool's launch_template names it, max_agents says of how many machines."""

    id: Annotated[str, StringConstraints(pattern=r"^cr-[0-9a-f]{8,17}$")] = Field(description="Its id, as the launch template names it.")
    kind: Literal["reservation", "block"] = Field(
        "reservation",
        description="block: a Capacity Block. EC2 ends its machines 30 minutes before its end, and agents take no new builds for as long "
        "before that as 95 % of builds take. reservation: an On-Demand Capacity Reservation; at its end agents take no new builds.",
    )
    starts_at: _Instant | None = Field(None, description="When it begins, such as 2026-12-01T11:30Z. Default: it has begun.")
    ends_at: _Instant | None = Field(None, description="When it ends, likewise. A block must have it; without it a reservation goes on.")


CapacityReservationKey = Annotated[
    CapacityReservationSettings | None,
    Field(
        description="A Capacity Reservation or a Capacity Block that the pool's agents are launched into. It is paid for anyway: in "
        "decisions its agents cost nothing, so that they go before those of other pools with the same labels. The month counts "
        "max_agents machines at the pool's price, used or not."
    ),
]


def with_capacity(pool: "PoolSettings", offerings: tuple[Offering, ...]) -> dict[str, Any]:
    """Translate what is launched into reserved capacity: machines that cost nothing more."""
    given = pool.capacity_reservation
    if given is None or not offerings:
        return {"offerings": offerings}
    capacity = CapacityReservation(
        id=given.id,
        count=pool.max_agents or 0,
        usd_per_hour=offerings[0].usd_per_hour,
        block=given.kind == "block",
        starts_at=_at(given.starts_at, 0.0),
        ends_at=_at(given.ends_at, inf),
    )
    return {"offerings": tuple(replace(one, usd_per_hour=0.0) for one in offerings), "capacity": capacity}


def of_capacity(settings: "FleetSettings", name: str, pool: "PoolSettings") -> Iterator[tuple[str, str]]:
    """Yield the key and the text of what is wrong with a pool of reserved capacity."""
    given = pool.capacity_reservation
    if given is None:
        return
    if given.kind == "block" and given.ends_at is None:
        yield KEY, f"{KEY}.ends_at: missing, a block has an end"
    if given.starts_at and given.ends_at and _at(given.starts_at, 0.0) >= _at(given.ends_at, inf):
        yield KEY, f"{KEY}.ends_at ({given.ends_at}) must be after starts_at ({given.starts_at})"
    if pool.market != "on-demand":
        yield "market", f"market ({pool.market}): what is launched into a {given.kind} is on-demand"
    if len(pool.instance_types or ()) != 1 or len(pool.subnets) > 1:
        yield KEY, f"{KEY}: it is of one instance type in one subnet, name one of each"
    if settings.tuned("warm_pool", name):
        yield KEY, f"{KEY}: its agents are not stopped, stopping would save nothing; set warm_pool: off"


def _at(text: str | None, otherwise: float) -> float:
    return otherwise if text is None else datetime.fromisoformat(text).timestamp()
