"""What was sent to the local CloudWatch, as it was sent: its own statistics know no percentiles."""

import json
from typing import Any

from autoscaler.domain.report.datum import Datum

Published = list[tuple[float, Datum]]


def published() -> Published:
    """Everything that was put there in this process, oldest first."""
    from moto.cloudwatch.models import cloudwatch_backends  # noqa: PLC0415 - the local AWS is an extra

    backends = [backend for regions in cloudwatch_backends.values() for backend in regions.values()]
    return [(one.timestamp.timestamp(), _datum(one)) for backend in backends for one in list(backend.metric_data)]


def _datum(one: Any) -> Datum:
    dimensions = tuple((dimension.name, dimension.value) for dimension in one.dimensions)
    return Datum(name=one.name, values=(one.value,), unit=one.unit, dimensions=dimensions)


def as_json(data: Published) -> bytes:
    """For another process."""
    return json.dumps([[at, datum.name, datum.values, datum.unit, datum.dimensions] for at, datum in data]).encode()


def from_json(body: bytes) -> Published:
    """From another process."""
    rows = json.loads(body)
    return [
        (at, Datum(name=name, values=tuple(values), unit=unit, dimensions=tuple((key, value) for key, value in dimensions)))
        for at, name, values, unit, dimensions in rows
    ]
