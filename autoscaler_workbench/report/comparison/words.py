"""A comparison in words: who is cheapest on each trace, by how much, and where it is not ours, why that may be."""

from collections.abc import Iterator, Mapping
from typing import Any

from autoscaler.domain.wording import counted, dollars
from autoscaler_workbench.experiment.compare import Row

_WEEK_HOURS = 168.0
# So near to each other one seed tells nobody who is cheaper: seeds differ by 1 to 3 per cent.
_CHANCE_OF_ONE_SEED = 0.05


def impression(verdict: Mapping[str, Any], hours: float | None, lead_in_hours: float | None) -> str:
    """Say who is cheapest on a trace. ``hours``: how long it was measured, if that is known."""
    ours, best = verdict["ours"], verdict["best"]
    if ours is None or best is None:
        return f"{verdict['trace']}: ours and a rival at their defaults were not both played."
    told = f"{verdict['trace']}: ours costs {dollars(ours['total_usd'])}, the best rival ({best['policy']}) {dollars(best['total_usd'])}"
    if ours["total_usd"] < best["total_usd"]:
        return f"{told}: ours is {_percent(1 - ours['total_usd'] / best['total_usd'])} cheaper."
    if ours["total_usd"] == best["total_usd"]:
        return f"{told}: the same."
    return " ".join([f"{told}: ours is {_percent(_dearer(ours, best))} dearer.", *_why(ours, best, hours, lead_in_hours)])


def _why(ours: Row, best: Row, hours: float | None, lead_in_hours: float | None) -> Iterator[str]:
    yield _parts(ours, best)
    if (chance := _chance(ours, best)) is not None:
        yield chance
    if lead_in_hours is not None and hours is not None and lead_in_hours < _WEEK_HOURS:
        yield _learned(hours, lead_in_hours)
    yield "Loads on which others stay better are in docs/comparison.md, “Where others are better”."


def _parts(ours: Row, best: Row) -> str:
    bill = ours["usd"] - best["usd"]
    waiting = ours["total_usd"] - best["total_usd"] - bill
    return f"Its bill is {_more(bill)}, its jobs' waiting {_more(waiting)}."


def _more(usd: float) -> str:
    return f"{dollars(abs(usd))} {'more' if usd > 0 else 'less'}" if abs(usd) >= 0.005 else "the same"


def _chance(ours: Row, best: Row) -> str | None:
    """Tell whether the difference may be chance."""
    seeds, spread = min(ours["seeds"], best["seeds"]), max(ours["spread"], best["spread"])
    if seeds == 1:
        near = _dearer(ours, best) < _CHANCE_OF_ONE_SEED
        return "One seed cannot tell so small a difference from chance: --seeds 5 can." if near else None
    if ours["total_usd"] - best["total_usd"] < spread:
        return f"That is less than totals differ from seed to seed (± {dollars(spread)}): it may be chance."
    return None


def _learned(hours: float, lead_in_hours: float) -> str:
    knew = "nothing" if not lead_in_hours else f"what {counted(round(lead_in_hours), 'hour')} had taught it"
    before = f"before these {counted(round(hours), 'hour')} it knew {knew}"
    return (
        f"Ours learns boots, builds and the hours at which jobs come while it plays; {before}. "
        f"--lead-in {_WEEK_HOURS:g} shows what it does after a first week."
    )


def _dearer(ours: Row, best: Row) -> float:
    return float(ours["total_usd"] / best["total_usd"] - 1) if best["total_usd"] else 1.0


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"
