"""The lines of a screen that say why: what is held now, and what was decided last. They are as wide as the screen, and never cut off."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.console import Console
from rich.text import Text

from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.wording import counted
from autoscaler_workbench.cli.terminal import plain
from autoscaler_workbench.simulate.drive import MINUTE
from autoscaler_workbench.simulate.recording import Recording, StepTaken

Mail = tuple[str, str]  # subject and text
_MOST_STEPS, _MOST_HELD, _LOOKED_BACK = 8, 2, 400
_INDENT = 7  # below the time
_BOOKKEEPING = "forget"
_PASSING = frozenset({Reason.SECOND_LOOK, Reason.STILL_BUSY})  # agents on their usual way out


@dataclass(slots=True)
class _Group:
    """Steps of one moment that differ in their agent only."""

    step: StepTaken
    agents: int
    times: int = 1


def reasons(recording: Recording, now: float, console: Console, width: int, rows: int) -> list[Text]:
    """Return at most so many rows: what is held now, then the steps that were taken last, the newest first."""
    lines: list[Text] = []
    for head, text in [*_held(recording, now), *_taken(recording)]:
        entry = _wrapped(head, text, console, width)
        if len(lines) + len(entry) > rows:
            return lines or entry[: max(rows, 0)]
        lines += entry
    return lines


def newest_mail(mails: Sequence[Mail]) -> tuple[str, ...]:
    """Return the lines of the newest mail that an operator would have got."""
    if not mails:
        return ()
    subject, text = mails[-1]
    return ("", f"{counted(len(mails), 'mail')} to the operator, the newest:", f"  {subject}", *(f"  {line}" for line in text.splitlines()))


def mail_lines(mails: Sequence[Mail], console: Console, width: int, rows: int) -> list[Text]:
    """Return the newest mail if so many rows hold it, else its subject, and nothing where not even that fits."""
    subject = ("", f"{counted(len(mails), 'mail')} to the operator, the newest: {mails[-1][0]}") if mails else ()
    for lines in (newest_mail(mails), subject):
        wrapped = wrapped_lines(lines, console, width)
        if len(wrapped) <= rows:
            return wrapped
    return []


def wrapped_lines(lines: Sequence[str], console: Console, width: int) -> list[Text]:
    """Return lines that stay in sight, each as many rows as it takes."""
    return [row for line in lines for row in (Text(plain(line), "bold").wrap(console, width) if line else [Text()])]


def _held(recording: Recording, now: float) -> Iterator[tuple[str, str]]:
    spans = [span for span in recording.held if now - span.last_at <= MINUTE and span.reason not in _PASSING]
    for span in sorted(spans, key=lambda span: span.first_at)[-_MOST_HELD:]:
        yield "held", f"{f'{span.pool}: ' if span.pool else ''}{span.detail} ({span.reason})"


def _taken(recording: Recording) -> Iterator[tuple[str, str]]:
    groups: dict[tuple[float, str, str, str, str], _Group] = {}
    for taken in reversed(recording.taken[-_LOOKED_BACK:]):
        if taken.step == _BOOKKEEPING:
            continue
        key = (taken.at // MINUTE, taken.step, taken.pool, taken.reason, _without_node(taken))
        if group := groups.get(key):
            group.agents += taken.count
            group.times += 1
        elif len(groups) == _MOST_STEPS:
            break
        else:
            groups[key] = _Group(step=taken, agents=taken.count)
    for group in groups.values():
        yield f"{datetime.fromtimestamp(group.step.at, UTC):%H:%M}", _said(group)


def _said(group: _Group) -> str:
    taken, detail = group.step, _without_node(group.step)
    if group.times > 1 and detail != taken.detail:
        detail = f"each {detail}"
    if taken.step in {"launch", "start"}:
        return f"{taken.step} {group.agents} {taken.pool}: {detail}"
    where = f"{group.agents} of {taken.pool}" if group.times > 1 and taken.pool else taken.node or taken.pool
    return f"{f'{taken.step} {where}'.strip()}: {detail}"


def _without_node(taken: StepTaken) -> str:
    """Return the reason's text; the agent that it begins with is named before it already."""
    return taken.detail.removeprefix(f"{taken.node} ") if taken.node else taken.detail


def _wrapped(head: str, text: str, console: Console, width: int) -> list[Text]:
    rows = Text(plain(text), "dim").wrap(console, max(width - _INDENT, 1))
    return [Text.assemble((f"{'' if number else head:<{_INDENT}}", "dim"), row) for number, row in enumerate(rows)]
