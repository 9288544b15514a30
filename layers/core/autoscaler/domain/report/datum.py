"""One metric at one instant."""

from dataclasses import dataclass

COUNT, SECONDS, PERCENT, BYTES, NONE = "Count", "Seconds", "Percent", "Bytes", "None"
Dimensions = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Datum:
    """One value, or the values of a distribution. ``unit``: CloudWatch's word."""

    name: str
    values: tuple[float, ...]
    unit: str
    dimensions: Dimensions


def one(name: str, value: float, unit: str, dimensions: Dimensions) -> Datum:
    """A metric with one value."""
    return Datum(name=name, values=(float(value),), unit=unit, dimensions=dimensions)
