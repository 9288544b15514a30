"""The sample events of events/, in a folder for each function."""

from pathlib import Path

from packaging_root import ROOT

_FOLDERS = {path.stem: path for path in sorted((ROOT / "events").rglob("*.json"))}
SAMPLES = sorted(_FOLDERS)
SCHEDULED = ("publish_metrics", "scale_up", "scale_down")


def path_of(sample: str) -> Path:
    """Return the file of a sample."""
    return _FOLDERS[sample]


def function_of(sample: str) -> str:
    """Return the function of a sample; a tick is for any that is scheduled."""
    return path_of(sample).parent.name


def samples_of(function: str) -> list[str]:
    """Return the samples for a function, ticks first."""
    ticks = ["tick"] if function in SCHEDULED else []
    return ticks + [sample for sample in SAMPLES if sample != "tick" and function_of(sample) == function]
