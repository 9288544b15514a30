"""Prints what is known of jobs, and when they will start and end."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from autoscaler.domain.wording import counted, duration
from autoscaler_workbench.cli.answers import flat
from autoscaler_workbench.cli.tables import for_people, print_rows
from autoscaler_workbench.cli.terminal import say

Answer = dict[str, Any]


def print_jobs(answer: Answer) -> None:
    """Print a line for each job and pool, and for each stage or set of parameters. What is piped has all that is known."""
    jobs = answer["jobs"]
    if not for_people():
        headers = tuple(jobs[0]) if jobs else ("job",)
        print_rows(headers, ([_flat(job[header]) for header in headers] for job in jobs))
        return
    if not jobs:
        say("no build of such a job was seen from its beginning to its end yet")
        return
    several = len({job["controller"] for job in jobs}) > 1
    headers_ = ("job", "pool", "builds", "good", "waits", "takes", "the next takes", "held")
    print_rows(headers_, [_job_row(job, several) for job in jobs], figures=("builds", "good"))
    say(
        "waits, takes: half of the builds, and 95 in 100; the next: half, and four in five; held: how often that was right, and how far off"
    )
    if answer["left_out"]:
        say(f"{counted(answer['left_out'], 'line')} more: give a pattern, or --most")
    for figures in answer.get("blocks", ()):
        say(_blocks(figures))


_WHY_UNASSIGNED = {
    "ambiguous": "a name that several blocks have",
    "unmatched": "no block of that name, or no answer for an hour",
    "run_gone": "the run was deleted",
    "too_large": "more steps than are read",
}


def _blocks(figures: dict[str, Any]) -> str:
    """Say how many node blocks of pipelines have no result."""
    why = ", ".join(f"{figures[name]:.1%} {words}" for name, words in _WHY_UNASSIGNED.items() if figures[name])
    said = f"{figures['unassigned']:.1%} of the last {figures['blocks']} node blocks of pipelines on {figures['controller']}"
    return f"{said} count for no agent" + (f": {why}" if why else "")


def _flat(value: Any) -> str:
    return " ".join(f"{one:.1f}" for one in value.values()) if isinstance(value, dict) else flat(value)


def _job_row(job: dict[str, Any], with_controller: bool) -> tuple[str, ...]:  # noqa: FBT001 - one of two ways to name a place
    name = f"  {job['signature']}" if job["signature"] else job["job"]
    return (
        name,
        f"{job['controller']}/{job['pool']}" if with_controller else job["pool"],
        str(job["runs"]),
        _share(job["succeeded"]),
        _two(job["waits"]),
        _two(job["durations"]),
        _range(job["next"]),
        _share(job["held"]) + ("" if job["off_by"] is None else f", ±{job['off_by']:.0%}"),
    )


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _two(value: dict[str, float] | None) -> str:
    return "" if value is None else f"{duration(value['p50'])}, {duration(value['p95'])}"


def _range(value: dict[str, float] | None) -> str:
    return "" if value is None else f"{duration(value['mid'])} ({duration(value['low'])} to {duration(value['high'])})"


def print_eta(answer: Answer) -> None:
    """Say of each build when it starts and ends."""
    for build in answer["builds"]:
        for line in _told(build, answer["now_at"]):
            say(line)


def _told(build: dict[str, Any], now: float) -> Iterator[str]:
    of = f"{build['job']} ({build['signature']})" if build["signature"] else build["job"]
    item = f", item {build['item']}" if build["item"] is not None else ""
    yield {
        "waits": f"{of} waits on {build['controller']}{item}",
        "runs": f"{of} runs on {build['controller']}",
        "not queued": f"{of} does not wait or run on {build['controller']}; if it were queued now:",
    }[build["state"]]
    for what in ("starts", "ends"):
        if when := build[what]:
            spread = f"{duration(when['low'])} to {duration(when['high'])}"
            yield f"  {what} in {duration(when['mid'])}, at {_clock(now + when['mid'])}; four in five: in {spread}"
    yield f"  {build['detail']}"


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%H:%M} UTC"
