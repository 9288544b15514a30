"""Shows orders of builds: how far each is, which build passed where, and what the exit code of a command says of it."""

from collections.abc import Callable, Iterable
from typing import Any

from autoscaler.domain.report.ordered import Outcome
from autoscaler.domain.wording import duration
from autoscaler_workbench.cli.answers import flat
from autoscaler_workbench.cli.request import NO_REASON
from autoscaler_workbench.cli.tables import for_people, print_rows
from autoscaler_workbench.cli.terminal import say

Entry = dict[str, Any]
STILL_OPEN = 6
# The worst first: of several orders it is the one that counts.
_CODES = {Outcome.FAILED: 3, Outcome.UNFINISHED: 4, Outcome.CANCELLED: 5, None: STILL_OPEN, Outcome.PASSED: 0}
_PROSE = ("why",)
_FIGURES = ("run", "waited", "took")


def exit_code(entries: Iterable[Entry]) -> int:
    """Say how orders ended, as an exit code: 0 where all passed."""
    outcomes = {entry["outcome"] for entry in entries}
    return next((code for outcome, code in _CODES.items() if outcome in outcomes), 0)


def print_list(answer: Entry) -> None:
    """Print a line for each order. What is piped has all that is known but of the single runs."""
    entries = answer["runs"]
    if not for_people():
        headers = tuple(name for name in entries[0] if name not in {"parts", "ranking"}) if entries else ("id",)
        print_rows(headers, ([_piped(entry[header]) for header in headers] for entry in entries))
        return
    if not entries:
        say("nothing was ordered; autoscaler run JOB orders builds")
        return
    rows = [
        (entry["id"], entry["job"], entry["by"], _ago(entry, answer["now_at"]), entry["outcome"] or "open", entry["summary"])
        for entry in entries
    ]
    print_rows(("id", "job", "by", "ordered", "outcome", "how far"), rows, prose=("how far",), figures=("ordered",))


def print_orders(answer: Entry, *, ranking: bool = False) -> None:
    """Print orders one by one: a sentence, a table of its runs, and where it is asked for why these places were chosen."""
    if answer["dry_run"]:
        say("dry run: nothing was changed; this would be so")
    for entry in answer["runs"]:
        say(f"{_job(entry)}: {entry['summary']}" if answer["dry_run"] else headline(entry, answer["now_at"]))
        if about := _about(entry):
            say(f"  {about}")
        _print_parts(entry["parts"])
        if ranking:
            _print_ranking(entry["ranking"])


def headline(entry: Entry, now: float) -> str:
    """Say of an order what it is, and how far."""
    return f"{entry['id']}: {_job(entry)}, ordered by {entry['by']} {_ago(entry, now)}: {entry['summary']}"


def _job(entry: Entry) -> str:
    """Name the job, and its controller where all builds are on one: else each of them says its own."""
    controllers = {part["controller"] for part in entry["parts"]}
    return f"{entry['job']} on {controllers.pop()}" if len(controllers) == 1 else str(entry["job"])


def _about(entry: Entry) -> str:
    parameters = ", ".join(f"{name}={value}" for name, value in entry["parameters"].items())
    return "; ".join(filter(None, (parameters, "" if entry["reason"] == NO_REASON else entry["reason"])))


def _print_parts(parts: list[Entry]) -> None:
    several = len({part["controller"] for part in parts}) > 1
    planned = all(not part["tries"] for part in parts)
    columns: dict[str, Callable[[Entry], str]] = {
        "run": lambda part: str(part["number"]),
        "where": lambda part: _place(part, with_controller=several),
        "label": lambda part: part["label"] if planned else "",
        "state": _state,
        "node": lambda part: part["node"],
        "build": lambda part: part["run"],
        "waited": lambda part: _span(part["waited_seconds"]),
        "took": lambda part: _span(part["took_seconds"]),
        "why": lambda part: part["why"],
    }
    rows = [{name: read(part) for name, read in columns.items()} for part in parts]
    shown = [name for name in columns if any(row[name] for row in rows)]
    print_rows(shown, ([row[name] for name in shown] for row in rows), prose=_PROSE, figures=_FIGURES)


def _print_ranking(lines: Iterable[str]) -> None:
    for line in lines:
        say(f"- {line}")


def _place(part: Entry, *, with_controller: bool) -> str:
    """Name where a run is: by what the runs vary, its pool, and its controller where there are several."""
    pool = f"{part['controller']}/{part['pool']}" if with_controller else part["pool"]
    return pool if part["value"] in {"", part["pool"], part["controller"]} else f"{part['value']} ({pool})"


def _state(part: Entry) -> str:
    state: str = part["state"]
    return state if part["tries"] < 2 else f"{state}, try {part['tries']}"


def _span(seconds: float | None) -> str:
    return "" if seconds is None else duration(seconds)


def _ago(entry: Entry, now: float) -> str:
    return f"{duration(now - entry['created_at'])} ago"


def _piped(value: Any) -> str:
    return " ".join(f"{name}={text}" for name, text in value.items()) if isinstance(value, dict) else flat(value)
