"""Prints what jobs cost."""

from collections.abc import Iterator
from csv import writer
from io import StringIO
from typing import Any

from autoscaler.domain.wording import counted, dollars
from autoscaler_workbench.cli.tables import print_rows, say_beside
from autoscaler_workbench.cli.terminal import plain, say

Answer = dict[str, Any]
_FIGURES = ("dollars", "share", "builds", "idle", "hours")
_FIELDS = ("usd", "builds_usd", "idle_usd", "hours")


def print_costs(answer: Answer) -> None:
    """Print a line for each group, the dearest first, and the sum beside what the month's limit counted."""
    if not answer["entries"]:
        say(f"nothing was counted in {answer['month']}")
        return
    several = len({entry["controller"] for entry in answer["entries"]} - {""}) > 1
    headers = (answer["by"], *(("controller",) if several else ()), *_FIGURES)
    print_rows(headers, (_row(entry, answer["usd"], several) for entry in answer["entries"]), figures=_FIGURES)
    say_beside("builds: their time on their agents; idle: the part of boots, idle and stopped agents of their pools; hours: of executors")
    say_beside(_sum(answer))
    if days := answer.get("prices_listed_on"):  # which an earlier version does not tell
        say_beside(f"list prices of {' and '.join(days)}; spot as EC2 told it")
    if usd := answer.get("volumes_usd"):  # which an earlier version does not tell
        say_beside(f"by estimate, in that sum: volumes {dollars(usd)} (by their sizes and volume_usd_per_gib_month)")


def _sum(answer: Answer) -> str:
    """Say what all of it cost, and for what that is known."""
    total = f"all of {answer['month']} (UTC): {dollars(answer['usd'])}"
    days = answer.get("days", 0)  # functions of 0.3.0 tell none
    if not days:
        return f"{total}; the month's limit counted {dollars(answer['metered_usd'])}"
    known = answer["days_with_costs"]
    return total if known >= days else f"{total}; costs are kept for {known} of these {counted(days, 'day')}, and for what is not added yet"


def _row(entry: Answer, total: float, with_controller: bool) -> tuple[str, ...]:  # noqa: FBT001 - one of two ways to name a place
    return (
        entry["name"],
        *((entry["controller"],) if with_controller else ()),
        dollars(entry["usd"]),
        f"{entry['usd'] / total:.1%}" if total else "",
        dollars(entry["builds_usd"]),
        dollars(entry["idle_usd"]),
        f"{entry['hours']:,.1f}",
    )


def print_csv(answer: Answer) -> None:
    """Print lines of comma-separated values, with all digits."""
    for line in _csv(answer):
        print(line)


def _csv(answer: Answer) -> Iterator[str]:
    yield ",".join(("month", answer["by"], "controller", *_FIELDS))
    for entry in answer["entries"]:
        cells = StringIO()
        writer(cells, lineterminator="").writerow(
            (answer["month"], _harmless(entry["name"]), entry["controller"], *(f"{entry[name]:.6f}" for name in _FIELDS))
        )
        yield cells.getvalue()


def _harmless(name: str) -> str:
    """Keep a spreadsheet from taking a name for a formula, and a terminal for a command."""
    clean = plain(name)
    return f"'{clean}" if clean.startswith(("=", "+", "-", "@")) else clean
