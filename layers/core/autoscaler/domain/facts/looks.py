"""When EC2 and the controllers could be seen."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """When EC2 or a controller was last seen as a whole, and the spans before that in which it was not: from, to."""

    at: float
    blind: tuple[tuple[float, float], ...] = ()
