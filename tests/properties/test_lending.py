"""Lending over random days: plain jobs use a rare machine only on loan, its own jobs wait for one build at most, everything comes back."""

from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.domain.facts.fleet import Lending
from autoscaler.domain.facts.plan import Lend, TakeBack
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from autoscaler_workbench.fakes.world.physics import CALM
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory

PLAIN, RARE = "amd64", "gfx1030"
# Two looks: what is decided in one that sees a job may be cut off, and is made good by the next.
TWO_LOOKS_SECONDS = 125.0
CALLS = ("jenkins config.xml", "state change_record", "jenkins computer", "jenkins queue")


@dataclass(frozen=True)
class Event:
    """What happens in a minute: jobs of a label that take so long, or a call that fails."""

    minute: int
    label: str = ""
    jobs: int = 0
    seconds: float = 60.0
    fault: Fault | None = None


JOBS = st.builds(
    Event,
    minute=st.integers(0, 60),
    label=st.sampled_from((PLAIN, PLAIN, RARE)),
    jobs=st.integers(1, 3),
    seconds=st.sampled_from((20.0, 200.0, 1500.0)),
)
FAULTS = st.builds(Event, minute=st.integers(0, 60), fault=st.builds(Fault, st.sampled_from(CALLS), after=st.booleans()))
DAYS = st.lists(st.one_of(JOBS, JOBS, FAULTS), min_size=2, max_size=12)


def lived(events, lend, late):
    """Live a day of these events, and then until everything has ended."""
    physics = replace(CALM, scheduling_seconds=late)
    plain = a_pool("cpu", labels=frozenset({PLAIN}), max_agents=1)
    rare = a_pool("gpu", labels=frozenset({RARE}), lent_labels=frozenset({PLAIN}), lend=lend, min_agents=1, max_agents=2, executors=2)
    day, builds = Day(in_memory(plain, rare, physics=physics)), []
    day.minutes(6)
    for minute in range(61):
        for event in (event for event in events if event.minute == minute):
            if event.fault:
                day.fleet.faults.plan(replace(event.fault))
            builds += day.queue(event.jobs, label=event.label, seconds=event.seconds) if event.jobs else []
        day.minutes(1)
    day.fleet.faults.planned.clear()
    for _ in range(300):
        if all(build.ended for build in builds):
            break
        day.minutes(1)
    return day.minutes(5), builds


def loans(day):
    """When each node was lent: from the look that did it, to the look that took it back, or saw that its time was over."""
    spans = []
    for report in day.fleet.reports:
        for result in report.results:
            if isinstance(result.step, Lend):  # whatever became of it
                spans.append([result.step.node, report.plan.taken_at, result.step.until_at + TWO_LOOKS_SECONDS])
            if isinstance(result.step, TakeBack) and result.outcome == "done":
                for span in spans:
                    if span[0] == result.step.node:
                        span[2] = min(span[2], report.plan.taken_at + 5.0)
    return spans


@settings(max_examples=settings().max_examples // 5)
@given(DAYS, st.sampled_from((Lending.IDLE, Lending.ALWAYS)), st.sampled_from((0.0, 30.0)))
def test_on_loan_alone_for_one_build_at_most_and_everything_comes_back(events, lend, late):
    day, builds = lived(events, lend, late)
    spans, on_rare = loans(day), [b for b in builds if b.label == PLAIN and (b.node or "").startswith("gpu-")]
    for build in on_rare:
        assert any(node == build.node and begins <= build.started_at <= ends for node, begins, ends in spans), build
    for special in (build for build in builds if build.label == RARE):
        seen_at = special.queued_at + TWO_LOOKS_SECONDS
        assert [b for b in on_rare if seen_at < b.started_at < special.started_at] == [], special
    assert {build.ended for build in builds} <= {Ended.FINISHED}
    assert [name for name, node in day.jenkins.nodes.items() if name.startswith("gpu-") and PLAIN in node.labels] == []
    assert [record for record in day.fleet.state.read().records if record.is_lent(day.world.timeline.now)] == []


@settings(max_examples=settings().max_examples // 15)
@given(DAYS)
def test_what_is_never_lent_runs_no_plain_job(events):
    _, builds = lived(events, Lending.NEVER, 0.0)
    assert [build for build in builds if build.label == PLAIN and (build.node or "").startswith("gpu-")] == []
