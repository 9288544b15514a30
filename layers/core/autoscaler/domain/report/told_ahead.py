"""Messages noted by a clock that was ahead count as noted now. Otherwise nobody would be told of their end before that time."""

from dataclasses import replace

from autoscaler.domain.report.told import Told
from autoscaler.domain.situation.looks import not_ahead


def told_by_now(told: Told, now: float) -> Told:
    """Return what people were told of, none of it later than now."""
    return replace(told, troubles=not_ahead(told.troubles, now), spans=not_ahead(told.spans, now))
