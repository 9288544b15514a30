"""What a person sees of a run, in a terminal of 80 by 24 and of 120 by 40 characters."""

import io
import re
from dataclasses import replace

import pyte
import pytest
from rich.console import Console
from rich.live import Live

from autoscaler.domain.facts.fleet import WarmPool
from autoscaler_workbench.cli.screen import Screen
from autoscaler_workbench.cli.story import reason_of_wait, story
from autoscaler_workbench.simulate.drive import Progress
from autoscaler_workbench.simulate.recording import HeldSpan
from autoscaler_workbench.simulate.run import in_memory, prepare
from autoscaler_workbench.simulate.traces import MXNET, MXNET_DAY, load_trace

HOURS = 5.0
BELOW = ("", "export AUTOSCALER_LOCAL=http://127.0.0.1:8646", "autoscaler status", "Ctrl-C ends it, and tells what came of it")
QUESTIONS = ["What ran?", "What did it cost?", "How long did people wait?", "What was proved?"]


class Terminal:
    """A terminal emulator with a console that writes to it."""

    def __init__(self, columns, rows):
        self.screen = pyte.HistoryScreen(columns, rows)
        self.written = io.StringIO()
        self.console = Console(file=self.written, force_terminal=True, width=columns, height=rows, color_system="standard")

    def lines(self):
        stream = pyte.Stream(self.screen)
        stream.feed(self.written.getvalue().replace("\n", "\r\n"))
        self.written.seek(0)
        self.written.truncate()
        return [line.rstrip() for line in self.screen.display]


@pytest.fixture(params=[(80, 24), (120, 40)], ids="{0[0]}x{0[1]}".format)
def terminal(request):
    return Terminal(*request.param)


def a_run(example_fleet, broken=frozenset(), hours=HOURS, until=None):
    run, last = prepare(load_trace(MXNET, hours=hours, start_at=MXNET_DAY), example_fleet, hours=hours, seed=1), Progress()
    for now in in_memory(run, broken=broken):
        last = now
        if until is not None and run.world.timeline.now >= run.trace.start_at + until * 3600:
            break
    return run, last


@pytest.fixture(scope="module")
def moment(example_fleet):
    """A moment at which five pools have agents."""
    return a_run(example_fleet, until=4.5)


@pytest.fixture(scope="module")
def earlier_moment(example_fleet):
    return a_run(example_fleet, until=3.2)


@pytest.fixture(scope="module")
def whole_day(example_fleet):
    return a_run(example_fleet, hours=4.0)


@pytest.fixture(scope="module")
def broken_day(example_fleet):
    return a_run(example_fleet, broken={"mxnetlinux-gpu"}, hours=4.0)


@pytest.fixture(scope="module")
def moment_of_stopped_agents(example_fleet):
    warm = {
        name: replace(pool, warm_pool=WarmPool(min_agents=1, max_agents=5, max_age_seconds=1e6))
        for name, pool in example_fleet.pools.items()
    }
    return a_run(replace(example_fleet, pools=warm), until=2.0)


def a_screen(moment, **options):
    run, last = moment
    return Screen(run=run, progress=last, hours=HOURS, part="1 of 2: the first 5 h, by the real Lambda handlers over HTTP", **options)


def test_each_heading_and_the_bar_have_a_line_of_their_own(terminal, moment):
    with Live(console=terminal.console, auto_refresh=False, transient=True) as view:
        view.update(a_screen(moment), refresh=True)
        first, bar, part, counts, empty, headings, *pools = terminal.lines()
    width = terminal.console.width
    assert (first.split()[:2], first[-20:]) == (["fleet", "mxnet-ci"], "2018-09-04 04:30 UTC")
    assert (set(bar) <= set("━╸╺"), len(bar)) == (True, width)
    assert part == "1 of 2: the first 5 h, by the real Lambda handlers over HTTP"
    assert "0 killed" in counts
    assert empty == ""
    assert headings.split() == ["pool", "queue", "booting", "busy", "idle", "draining", "limit"]
    assert [line.split()[0] for line in pools[:2]] == ["mxnetlinux-cpu", "mxnetlinux-gpu"]


def test_stopped_agents_have_a_column_where_pools_keep_them(terminal, moment_of_stopped_agents):
    with Live(console=terminal.console, auto_refresh=False, transient=True) as view:
        view.update(a_screen(moment_of_stopped_agents), refresh=True)
        lines = terminal.lines()
    headings = next(line for line in lines if line.startswith("pool"))
    assert headings.split() == ["pool", "queue", "booting", "busy", "idle", "draining", "stopped", "limit"]
    stopped = [line[: headings.index("stopped") + 7].rsplit(None, 1)[-1] for line in lines if line.startswith("mxnetlinux-")]
    assert all(count.isdigit() and int(count) >= 1 for count in stopped)
    assert stopped


def test_figures_stand_below_their_headings(terminal, moment):
    with Live(console=terminal.console, auto_refresh=False, transient=True) as view:
        view.update(a_screen(moment), refresh=True)
        lines = terminal.lines()
    headings = next(line for line in lines if line.startswith("pool"))
    limits = [line[: headings.index("limit") + 5].rsplit(None, 1)[-1] for line in lines if line.startswith("mxnetlinux-")]
    assert limits[:2] == ["20", "20"]


def test_a_moment_fits_the_terminal_and_the_next_one_takes_its_place(terminal, moment, earlier_moment):
    with Live(console=terminal.console, auto_refresh=False, transient=True) as view:
        view.update(a_screen(moment, below=BELOW), refresh=True)
        view.update(a_screen(earlier_moment, below=BELOW), refresh=True)
        lines = terminal.lines()
    assert sum(line.startswith("fleet") for line in lines) == 1
    assert [line for line in lines if line][-3:] == list(BELOW[1:])
    assert not terminal.screen.history.top


def shown(terminal, moment, **options):
    """The screen's lines, and its reasons: each in one line, however many rows it takes."""
    with Live(console=terminal.console, auto_refresh=False, transient=True) as view:
        view.update(a_screen(moment, **options), refresh=True)
        lines = terminal.lines()
    assert not terminal.screen.history.top
    text = "\n".join(lines)
    return lines, re.sub(r"\n {7}(?=\S)", " ", text).split("\n")


def test_decisions_are_told_with_their_whole_reasons(terminal, moment):
    run, _ = moment
    _, entries = shown(terminal, moment)
    decided = [entry for entry in entries if entry[2:3] == ":"]
    details = {step.detail.removeprefix(f"{step.node} ") for step in run.recording.taken}
    assert len(decided) >= (3 if terminal.console.height < 30 else 6)
    assert all(entry.split(": ", 1)[1].removeprefix("each ") in details for entry in decided)
    assert not any("…" in entry for entry in entries)


def test_steps_of_a_minute_that_differ_in_their_agent_only_share_a_line(terminal, moment):
    run, _ = moment
    *_, newest = (step for step in run.recording.taken if step.step == "cordon")
    alike = [replace(newest, at=newest.at + 600, node=f"{newest.pool}-{number}") for number in range(3)]
    later = replace(run, recording=replace(run.recording, taken=[*run.recording.taken, *alike]))
    _, entries = shown(terminal, (later, moment[1]))
    assert sum(entry.endswith(f"cordon 3 of {newest.pool}: {newest.detail}") for entry in entries) == 1


def test_what_is_held_now_is_told_first_with_its_whole_reason(terminal, moment):
    run, _ = moment
    now = run.world.timeline.now
    detail = "one more would make 21 agents" + ", the limit is 20" * 4
    held = HeldSpan(first_at=now - 600, last_at=now, pool="mxnetlinux-gpu", reason="max-agents", detail=detail)
    past = replace(held, last_at=now - 600, detail="this is over")
    usual = replace(held, reason="second-look", detail="waits for a second look")
    later = replace(run, recording=replace(run.recording, held=[past, held, usual]))
    _, entries = shown(terminal, (later, moment[1]))
    first = next(number for number, entry in enumerate(entries) if entry.startswith("held"))
    assert entries[first].split(None, 1)[1] == f"mxnetlinux-gpu: {held.detail} (max-agents)"
    assert entries[first + 1][2] == ":"
    assert not any("this is over" in entry or "second look" in entry for entry in entries)


MAILS = [
    ("[mxnet-ci] the limit max_launches_per_hour is reached", "Jobs wait.\n\nSee more:   autoscaler plan"),
    (
        "[mxnet-ci] jobs on main wait: max-agents of mxnetlinux-gpu",
        f"{'17 jobs wait for mxnetlinux-gpu. ' * 4}\n\nSee more:   autoscaler why x\nWhat to do: docs/operations.md#jobs-wait-too-long",
    ),
]


def test_the_newest_mail_is_shown_whole_where_there_is_room_and_its_subject_else(terminal, moment):
    lines, _ = shown(terminal, moment, below=BELOW, mails=MAILS)
    text = " ".join(" ".join(lines).split())
    assert "2 mails to the operator, the newest: [mxnet-ci] jobs on main wait: max-agents of mxnetlinux-gpu" in text
    assert ("What to do: docs/operations.md#jobs-wait-too-long" in text) == (terminal.console.height > 30)
    assert any(line[2:3] == ":" for line in lines)
    assert [line for line in lines if line][-3:] == list(BELOW[1:])


def test_commands_that_are_longer_than_the_screen_are_not_cut_off(terminal, moment):
    long = "/a/very/long/path/to/a/checkout/.venv/bin/autoscaler why mxnetlinux-gpu    # or a job, or a node; or: launch mxnetlinux-gpu 3"
    lines, _ = shown(terminal, moment, below=("", long))
    assert " ".join(long.split()) in " ".join(" ".join(lines).split())


@pytest.mark.parametrize(
    ("mails", "said"),
    [
        ([], "Nothing: no mail was due."),
        (MAILS[:1], "One mail: [mxnet-ci] the limit max_launches_per_hour is reached Jobs wait."),
        (
            [*MAILS, ("[mxnet-ci] over: jobs on main wait", "It is over.")],
            f"3 mails, one of them: {MAILS[1][0]} 17 jobs wait for mxnetlinux-gpu.",
        ),
    ],
    ids=len,
)
def test_the_last_screen_shows_a_mail_that_the_operator_would_have_got(terminal, whole_day, mails, said):
    run, last = whole_day
    terminal.console.print(story(run, run.result(last), "", mails))
    text = " ".join(" ".join(terminal.lines()).split())
    assert f"What would the operator have been told? {said}" in text
    assert ("What to do: docs/operations.md#jobs-wait-too-long" in text) == (len(mails) == 3)


def test_after_the_last_moment_nothing_of_it_is_left(terminal, moment):
    with Live(console=terminal.console, auto_refresh=False, transient=True) as view:
        view.update(a_screen(moment), refresh=True)
    assert not any(terminal.lines())


def told(terminal, run, last):
    terminal.console.print(story(run, run.result(last)))
    lines = terminal.lines()
    assert [line for line in lines if line in QUESTIONS] == QUESTIONS
    assert not terminal.screen.history.top
    text = " ".join(line.strip() for line in lines)
    return [
        text.split(question)[1].split(following)[0].strip() for question, following in zip(QUESTIONS, [*QUESTIONS[1:], "\0"], strict=True)
    ]


def test_the_last_screen_answers_four_questions(terminal, whole_day):
    ran, cost, waited, proved = told(terminal, *whole_day)
    assert ran == "All 85 jobs finished."
    assert cost.startswith("$")
    assert re.search(r"; (1 still works or is|\d+ still work or are) kept for the next jobs\.$", cost)
    assert "The longest wait was" in waited
    assert "its agent had to boot" in waited
    assert proved.startswith("0 builds killed, nothing was left over, 0 errors in ")


def test_a_wait_for_boots_that_failed_is_no_wait_for_a_boot(example_fleet):
    broken = {"mxnetlinux-gpu"}
    run = prepare(load_trace(MXNET, hours=4.0, start_at=MXNET_DAY), example_fleet, hours=4.0, seed=1)
    failed = run.world.ec2.instances
    for _ in in_memory(run, broken=broken):
        if any(machine.ended_at and machine.tags["autoscaler:pool"] == "mxnetlinux-gpu" for machine in failed.values()):
            broken.clear()  # somebody mends the image
    waited = [build for build in run.replay.builds if run.world.home_of(build).name == "mxnetlinux-gpu"]
    longest = max(waited, key=lambda build: build.started_at - build.buildable_at)
    reason = reason_of_wait(run, longest)
    assert reason == "mxnetlinux-gpu: 1 agent did not boot before"


@pytest.mark.long
def test_a_broken_day_is_told_as_broken(terminal, broken_day):
    run, last = broken_day
    ran, _, waited, proved = told(terminal, run, last)
    result = run.result(last)
    assert result["finished"] < result["jobs"] == len(run.trace.rows)
    assert f"{result['never_ran']} jobs never ran: {result['never_ran']} for mxnetlinux-gpu." in ran
    assert "and never ran): mxnetlinux-gpu: " in waited
    assert "boots in a row failed" in waited
    assert result["wait_max_s"] > 6 * 3600
    assert "nothing was left over" in proved


def test_in_the_middle_of_a_day_nothing_is_overdue_and_no_agent_is_left_over(terminal, moment):
    run, last = moment
    ran, _, _, proved = told(terminal, run, last)
    assert run.result(last)["jobs"] == len(run.replay.builds) < len(run.trace.rows)
    assert "that were due by 04:30 finished" in ran
    assert "nothing was left over" in proved
