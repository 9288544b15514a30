"""What a machine can be: a report beyond that is no report. Data, and the one check of it, at the border and where it was stored."""

from collections.abc import Iterator, Mapping

from autoscaler.domain.facts.telemetry import Telemetry

_YEAR = 366 * 86_400.0
_PETABYTE = 2.0**50
_DISKS = 2.0**60
_MEMORY, _MEMORY_OF_A_MACHINE = (0.0, _PETABYTE), (2.0**24, _PETABYTE)
_CORES = 10_000.0

BOUNDS: Mapping[str, tuple[float, float]] = {
    "told_at": (0.0, 32_503_680_000.0),  # the year 3000
    "seconds": (0.0, _YEAR),
    "cores": (0.01, _CORES),
    "memory_total": _MEMORY_OF_A_MACHINE,
    "memory_available": _MEMORY,
    "memory_least": _MEMORY,
    "memory_ahead": _MEMORY,
    "swap_used": _MEMORY,
    "cpu_mean": (0.0, _CORES),
    "sent": (0.0, _DISKS),
    "root_free": (0.0, _DISKS),
    "root_total": (0.0, _DISKS),
    "work_free": (0.0, _DISKS),
    "work_total": (0.0, _DISKS),
}
_OF_A_CARD = {"memory": _MEMORY, "used": _MEMORY, "use": (0.0, 100.0)}
_OF_A_BUILD = {"seconds": (0.0, _YEAR), "memory": _MEMORY, "cpu": (0.0, _YEAR * _CORES), "gpu_memory": _MEMORY}


def out_of_bounds(report: Telemetry) -> str:
    """Say which figure no machine can have, and never what was reported; "" if there is none."""
    return next(_wrong(report), "")


def _wrong(report: Telemetry) -> Iterator[str]:
    yield from _wrong_of(report, BOUNDS, "")
    for number, card in enumerate(report.gpus):
        yield from _wrong_of(card, _OF_A_CARD, f"gpus.{number}.")
    for number, build in enumerate(report.builds):
        yield from _wrong_of(build, _OF_A_BUILD, f"builds.{number}.")


def _wrong_of(figures: object, bounds: Mapping[str, tuple[float, float]], place: str) -> Iterator[str]:
    for name, (least, most) in bounds.items():
        value = getattr(figures, name)
        if value is not None and not least <= value <= most:  # nor a value that is no number
            yield f"{place}{name}: must be from {least:g} to {most:g}"
