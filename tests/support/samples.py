"""The sample events of events/, and the function that each is for."""

from packaging_root import ROOT

SAMPLES = sorted(path.stem for path in (ROOT / "events").glob("*.json"))
SCHEDULED = ("publish_metrics", "scale_up", "scale_down")
_OTHERS = {"dry_run": "scale_up", "now": "publish_metrics", "webhook": "webhook"}
_OTHERS |= dict.fromkeys(("spot_interruption", "instance_terminated", "instance_stopped"), "instance_events")


def function_of(sample: str) -> str:
    """Return the function of a sample; that of a tick is any that is scheduled."""
    scaled = next((function for function in ("scale_up", "scale_down", "register_agent") if sample.startswith(function)), None)
    return scaled or _OTHERS.get(sample, "operate")


def samples_of(function: str) -> list[str]:
    """Return the samples for a function, ticks first."""
    ticks = ["tick"] if function in SCHEDULED else []
    return ticks + [sample for sample in SAMPLES if sample != "tick" and function_of(sample) == function]
