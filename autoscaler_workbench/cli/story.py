"""The last screen of a run: what ran, what it cost, how long people waited and why, and what was proved."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from autoscaler.domain.wording import counted, duration
from autoscaler_workbench.cli.screen_reasons import Mail
from autoscaler_workbench.cli.terminal import plain
from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.simulate.drive import MINUTE
from autoscaler_workbench.simulate.result import wait_of
from autoscaler_workbench.simulate.run import Run

# What explains a wait is most of it; a hold that was over soon is no reason.
_MOST = 0.5
_OVER = "] over: "  # in the subject of a mail


def story(run: Run, result: dict[str, Any], proof: str = "", mails: Sequence[Mail] | None = None) -> RenderableType:
    """Draw the answers. ``proof``: what was proved beyond this run; ``mails``: what an operator would have got, None: nobody asked."""
    fine = not (result["killed"] or result["leaked_instances"] or result["leaked_nodes"] or result["errors"])
    answers = (
        ("What ran?", " ".join(_ran(run, result)), not result["never_ran"] and _left(result) == 0),
        ("What did it cost?", _cost(result), True),
        ("How long did people wait?", " ".join(_waited(run, result)), not result["never_ran"]),
        ("What was proved?", " ".join(filter(None, (_proved(result), proof))), fine),
    )
    drawn = [line for question, text, good in answers for line in _drawn(question, text, good=good)]
    return Group(*drawn, *(() if mails is None else _mailed(mails)))


def _mailed(mails: Sequence[Mail]) -> Iterator[RenderableType]:
    """Draw the newest mail that says what to do; one that says that something is over says less."""
    yield Text("What would the operator have been told?", "bold cyan")
    if not mails:
        yield Padding(Text("Nothing: no mail was due."), (0, 0, 0, 2))
        return
    subject, text = next((mail for mail in reversed(mails) if _OVER not in mail[0]), mails[-1])
    yield Padding(Text(f"{counted(len(mails), 'mail')}, one of them:" if len(mails) > 1 else "One mail:"), (0, 0, 0, 2))
    yield Padding(Text(plain(subject), "bold"), (0, 0, 0, 4))
    yield from (Padding(Text(plain(line)), (0, 0, 0, 4)) for line in text.splitlines())


def _drawn(question: str, text: str, *, good: bool) -> Iterator[RenderableType]:
    yield Text(question, "bold cyan")
    yield Padding(Text(plain(text), "" if good else "bold red"), (0, 0, 0, 2))


def _left(result: dict[str, Any]) -> int:
    return int(result["jobs"] - result["finished"] - result["unservable"])


def _ran(run: Run, result: dict[str, Any]) -> Iterator[str]:
    now = f"{datetime.fromtimestamp(run.world.timeline.now, UTC):%H:%M}"
    if result["finished"] == result["jobs"]:
        yield f"All {result['finished']:,} jobs finished."
    else:
        due = "" if run.over else f" that were due by {now}"
        yield f"{result['finished']:,} of {counted(result['jobs'], 'job')}{due} finished."
    running = sum(build.started_at is not None and build.ended is None for build in run.replay.builds)
    if running and not run.over:
        yield f"{counted(running, 'job')} still ran at {now}."
    yield from _did_not_run(run, result)


def _did_not_run(run: Run, result: dict[str, Any]) -> Iterator[str]:
    homes = (run.world.home_of(build) for build in run.replay.builds if build.started_at is None)
    waiting = Counter(pool.name for pool in homes if pool is not None)
    if waiting:
        where = ", ".join(f"{count:,} for {pool}" for pool, count in waiting.most_common(3))
        yield f"{counted(result['never_ran'], 'job')} {'never ran' if run.over else 'waited'}: {where}."
    behind = result["jobs"] - len(run.replay.builds)
    if behind:
        yield f"{counted(behind, 'job')} behind them never came up."
    if result["unservable"]:
        yield f"{counted(result['unservable'], 'job')} ask for labels that no pool has."


def _cost(result: dict[str, Any]) -> str:
    kept = result["launches"] - result["terminations"] - result["leaked_instances"]
    text = (
        f"${result['usd']:,.0f} for {result['agent_hours']:,.0f} agent hours. {counted(result['launches'], 'agent')} launched, "
        f"{result['terminations']:,} terminated"
    )
    in_use = "1 still works or is kept for the next jobs" if kept == 1 else f"{kept:,} still work or are kept for the next jobs"
    return f"{text}; {in_use}." if kept else f"{text}."


def _waited(run: Run, result: dict[str, Any]) -> Iterator[str]:
    now = run.world.timeline.now
    waits = [build for build in run.replay.builds if run.world.home_of(build) and build.buildable_at <= now]
    if not waits:
        return
    yield f"Half of the jobs {_at_most(result['wait_p50_s'])}, 95 of 100 {_at_most(result['wait_p95_s'])}."
    longest = max(waits, key=lambda build: wait_of(build, now))
    if wait_of(longest, now) < 1:
        return
    when = f"{datetime.fromtimestamp(longest.buildable_at, UTC):%H:%M}"
    still = "" if longest.started_at is not None else ", and never ran" if run.over else ", and still waits"
    yield f"The longest wait was {duration(wait_of(longest, now))} ({longest.job} at {when}{still}): {reason_of_wait(run, longest)}."


def _at_most(seconds: float) -> str:
    return "did not wait" if seconds < 1 else f"waited at most {duration(seconds)}"


def reason_of_wait(run: Run, build: Build) -> str:
    """Say what kept a build waiting: a hold of its pool for most of the wait, else boots that failed, or that of its agent."""
    home = run.world.home_of(build)
    until = build.started_at if build.started_at is not None else run.world.timeline.now
    lasted: Counter[str] = Counter()
    details: dict[str, str] = {}
    for span in run.recording.held:
        seconds = min(span.last_at + MINUTE, until) - max(span.first_at, build.buildable_at)
        if home is not None and span.pool in {home.name, ""} and seconds > 0:
            lasted[span.reason] += int(seconds)
            details[span.reason] = span.detail
    longest = max(lasted, key=lambda reason: lasted[reason], default=None)
    if home is not None and longest is not None and lasted[longest] >= (until - build.buildable_at) * _MOST:
        return f"{home.name}: {details[longest]} ({longest})"
    if home is not None and (failed := _failed_boots(run, home.name, build.buildable_at, until)):
        return f"{home.name}: {counted(failed, 'agent')} did not boot before"
    return "its agent had to boot" if build.started_at is not None else "no agent came up"


def _failed_boots(run: Run, pool: str, since: float, until: float) -> int:
    """Count the machines of a pool that ended in this time, and had never asked who they are."""
    ended = [machine for machine in run.world.ec2.instances.values() if since < (machine.ended_at or 0.0) <= until]
    return sum(machine.tags.get("autoscaler:pool") == pool and "autoscaler:node" not in machine.tags for machine in ended)


def _proved(result: dict[str, Any]) -> str:
    left = result["leaked_instances"], result["leaked_nodes"]
    over = f"{counted(left[0], 'instance')} and {counted(left[1], 'node')} left over" if any(left) else "nothing was left over"
    return f"{counted(result['killed'], 'build')} killed, {over}, {counted(result['errors'], 'error')} in {result['passes']:,} passes."
