"""The message at the beginning of a month: what the last one cost, by pool, job and label, and what nobody used."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.job_settings import MonthCosts
from autoscaler.domain.report.costs import By, CostEntry, list_costs
from autoscaler.domain.report.told import Message
from autoscaler.domain.wording import dollars

ABOUT = "month/"
_JOBS = 10
_LINES = 20  # of pools and of labels: a message is read on a telephone
_NAME_CHARACTERS = 60
_SUBJECT_CHARACTERS = 100  # SNS takes no more


def month_before(month: str) -> str:
    """Name the calendar month before one."""
    year, number = (int(part) for part in month.split("-"))
    return f"{year - (number == 1)}-{(number - 2) % 12 + 1:02}"


def write_summary(month: MonthCosts, before: MonthCosts, fleet: Fleet, runbooks: str) -> Message | None:
    """Write the message; None of a month in which nothing was paid for."""
    if not month.metered_usd:
        return None
    sections = (
        _section("By pool", list_costs(month, fleet, By.POOL).entries, month, _LINES, _usd_by_name(before, fleet, By.POOL)),
        _section("The dearest jobs", list_costs(month, fleet, By.JOB).entries, month, _JOBS, _usd_by_name(before, fleet, By.JOB)),
        _section("By labels", list_costs(month, fleet, By.LABEL).entries, month, _LINES, {}),
        _unused(month),
        _estimated(month),
    )
    total = f"{_named(month.name)} (UTC): {dollars(month.metered_usd)}, {_compared(month.metered_usd, before)}."
    more = f"See more:   autoscaler costs --month {month.name}\nWhat it is: {runbooks.rstrip('/')}/costs.md"
    told = ("\n".join(lines) for lines in ((total,), *sections, (more,)))
    text = "\n\n".join(part for part in told if part)
    subject = f"[{fleet.name}] {_named(month.name)}: {dollars(month.metered_usd)}, {_compared(month.metered_usd, before)}"
    return Message(about=ABOUT + month.name, subject=subject.encode("ascii", "replace").decode()[:_SUBJECT_CHARACTERS], text=text + "\n")


def _section(
    title: str, entries: Sequence[CostEntry], month: MonthCosts, most: int, before: Mapping[tuple[str, str], float]
) -> Iterator[str]:
    """Name the dearest, a line each, and say how many more there are."""
    yield f"{title}:"
    for entry in entries[:most]:
        known = before.get((entry.controller, entry.name))
        then = f"  ({dollars(known)} the month before)" if known is not None else ""
        yield f"  {dollars(entry.usd):>12} {entry.usd / month.metered_usd:>4.0%}  {_short(entry.name)}{then}"
    if rest := entries[most:]:
        yield f"  {dollars(sum(entry.usd for entry in rest)):>12} {'':>4}  {len(rest)} more"


def _unused(month: MonthCosts) -> Iterator[str]:
    """Say what nobody used: the metered time in which no build was seen on an executor."""
    unused, parts = sum(month.unused.values()), month.parts
    boots, stopped = min(parts.boot_usd, unused), min(parts.stopped_usd, unused)
    yield f"Nobody used {dollars(unused)} of it ({unused / month.metered_usd:.0%}):"
    for usd, what in ((boots, "boots"), (max(0.0, unused - boots - stopped), "idle executors"), (stopped, "disks of stopped agents")):
        yield f"  {dollars(usd):>12}       {what}"


def _estimated(month: MonthCosts) -> Iterator[str]:
    """Say how much of the sum volumes are."""
    if usd := month.parts.disk_usd:
        yield f"By estimate, in that sum: volumes {dollars(usd)} (by their sizes and volume_usd_per_gib_month)"


def _usd_by_name(month: MonthCosts, fleet: Fleet, by: By) -> dict[tuple[str, str], float]:
    return {(entry.controller, entry.name): entry.usd for entry in list_costs(month, fleet, by).entries}


def _compared(usd: float, before: MonthCosts) -> str:
    if not before.metered_usd:
        return "nothing is known of the month before"
    change = usd / before.metered_usd - 1
    if abs(change) < 0.005:
        return "as much as the month before"
    return f"{abs(change):.0%} {'more' if change > 0 else 'less'} than the month before ({dollars(before.metered_usd)})"


def _named(month: str) -> str:
    return f"{datetime.fromisoformat(f'{month}-01'):%B %Y}"


def _short(name: str) -> str:
    return name if len(name) <= _NAME_CHARACTERS else f"...{name[3 - _NAME_CHARACTERS :]}"
