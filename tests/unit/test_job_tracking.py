"""Items and builds followed from look to look for the job statistics: what counts as begun and ended, and what is noted of it."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from autoscaler.domain.facts.job_stats import Estimate, JobRow, JobTracker, RunningBuild, Subject, WaitingItem
from autoscaler.domain.facts.runs import BuildResult, RunEnd
from autoscaler.domain.facts.snapshot import LOOK_GAP_SECONDS
from autoscaler.domain.forecast.durations import quantile
from autoscaler.domain.learn import assess
from autoscaler.domain.lessons import learn_from_builds
from autoscaler.domain.report.tracking import BUILDS_FOLLOWED, ITEMS_FOLLOWED, BegunBuild, Changes, changes_of, ends_of, note_changes
from support.builders import (
    NOW,
    a_build,
    a_fleet,
    a_learned,
    a_memory,
    a_session,
    a_sighting,
    a_snapshot,
    a_view,
    an_agent,
    an_item,
)

FLEET = a_fleet()
MINUTE = 60.0


@dataclass
class Followed:
    """A controller that is looked at once a minute, with the statistics that the looks leave."""

    now: float = NOW
    tracker: JobTracker = field(default_factory=JobTracker)
    learned: Any = field(default_factory=lambda: a_learned(seen_at=NOW - MINUTE))
    rows: dict[tuple[Subject, str], JobRow] = field(default_factory=dict)
    session: Any = field(default_factory=a_session)

    def look(self, *builds, items=(), after=MINUTE, ends=None, recorded=True):
        """Look at these builds and items so many seconds after the last look; returns what it showed."""
        self.now += after
        record, node = an_agent(builds=builds, executors=8)
        memory = a_memory(sessions={"main": self.session})
        snapshot = a_snapshot(
            a_view(node, items=items),
            records=(record,) if recorded else (),
            learned={"main": self.learned},
            memory=memory,
            taken_at=self.now,
            look_every_seconds=MINUTE,
        )
        situation = assess(snapshot, FLEET)
        lesson = learn_from_builds(situation, "main", {})
        changes = changes_of(self.tracker, situation, "main", lesson.learned)
        self.tracker, rows = note_changes(changes, self.rows, situation, "main", ends or {})
        self.learned = lesson.learned
        self.rows |= {(row.subject, row.pool): row for row in rows}
        return changes

    def row(self, job="job", signature=""):
        """The statistics of a job in the only pool; None: nothing was noted."""
        return self.rows.get((Subject(job, signature), "cpu"))


def building(key="a", job="job", **facts):
    return a_build(job, key=key, run=f"job/{job}/{key}", **facts)


def waiting(number=1, job="job", seconds=40.0, **facts):
    return an_item(number, label="cpu", job=job, waiting_seconds=seconds, **facts)


def median(spread):
    return quantile(spread, 0.5)


def test_a_build_counts_from_the_middle_before_its_first_look_to_the_middle_after_its_last():
    here = Followed()
    here.look()
    for _ in range(5):
        here.look(building())
    assert here.row() is None, "it still runs"
    here.look()
    assert here.row().runs == 1
    assert median(here.row().durations) == pytest.approx(5 * MINUTE, rel=0.03)


def test_a_build_whose_age_jenkins_tells_counts_from_its_very_beginning():
    here = Followed()
    here.look()
    here.look(building(elapsed_seconds=10.0))
    here.look(building(elapsed_seconds=70.0))
    here.look()
    assert median(here.row().durations) == pytest.approx(10.0 + 1.5 * MINUTE, rel=0.03)


@pytest.mark.parametrize(("told", "noted"), [(75.0, 75.0), (3000.0, 120.0), (None, 120.0)])
def test_jenkins_own_duration_counts_where_it_is_what_was_seen_and_not_that_of_a_whole_pipeline(told, noted):
    here = Followed()
    here.look()
    here.look(building())
    here.look(building())
    here.look(ends={"job/job/a": RunEnd(result=BuildResult.SUCCEEDED, seconds=told)})
    assert median(here.row().durations) == pytest.approx(noted, rel=0.03)
    assert (here.row().results.true, here.row().results.false) == (1.0, 0.0)


def test_a_build_whose_result_nobody_told_counts_neither_as_good_nor_as_bad():
    here = Followed()
    here.look()
    here.look(building())
    here.look()
    assert here.row().runs == 1
    assert (here.row().results.true, here.row().results.false) == (0.0, 0.0)


def test_a_build_that_ran_before_the_first_look_teaches_nothing():
    here = Followed(learned=a_learned(), session=a_session())
    here.look(building())
    here.look()
    assert here.rows == {}


@pytest.mark.parametrize("gap", [LOOK_GAP_SECONDS + 1.0, LOOK_GAP_SECONDS])
def test_what_ends_in_a_gap_between_looks_teaches_nothing(gap):
    here = Followed()
    here.look()
    here.look(building())
    here.look(after=gap)
    assert (here.row() is None) == (gap > LOOK_GAP_SECONDS)
    assert here.tracker.running == {}


def test_what_ends_while_a_controller_restarts_teaches_nothing():
    here = Followed()
    here.look()
    here.look(building())
    here.session = a_session(since_at=here.now, restarted=True)
    here.look()
    assert here.rows == {}
    assert here.tracker.running == {}


def test_a_build_whose_agent_has_no_record_for_a_while_is_one_build_from_its_beginning_to_its_end():
    here = Followed()
    here.look()
    here.look(building())
    for recorded in (True, False, False, True, True):
        here.look(building(), recorded=recorded)
        assert here.rows == {}, "it still runs"
    here.look()
    assert here.row().runs == 1
    assert median(here.row().durations) == pytest.approx(6 * MINUTE, rel=0.03)


def test_a_build_that_ends_while_its_agent_has_no_record_teaches_nothing():
    here = Followed()
    here.look()
    here.look(building())
    here.look(building(), recorded=False)
    here.look(recorded=False)
    here.look()
    assert here.rows == {}
    assert here.tracker.running == {}


def test_a_build_waited_until_it_began_and_its_item_is_followed_no_more():
    here = Followed()
    here.look()
    here.look(items=[waiting(seconds=40.0)])
    assert here.tracker.waiting.keys() == {"1"}
    here.look(building(elapsed_seconds=20.0))
    assert here.tracker.waiting == {}
    assert here.tracker.running["a"].waited == pytest.approx(40.0 + 40.0)
    here.look()
    assert median(here.row().waits) == pytest.approx(80.0, rel=0.03)


def test_a_build_that_was_never_seen_in_the_queue_says_nothing_of_waiting():
    here = Followed()
    here.look()
    here.look(building())
    here.look()
    assert (here.row().runs, here.row().waits.count) == (1, 0)


def test_of_several_items_of_a_job_the_oldest_has_begun_and_each_is_taken_once():
    here = Followed()
    here.look()
    here.look(items=[waiting(1, seconds=10.0), waiting(2, seconds=50.0)])
    here.look(building("a"), building("b"))
    assert sorted(build.waited for build in here.tracker.running.values()) == [10.0 + MINUTE / 2, 50.0 + MINUTE / 2]
    assert here.tracker.running["a"].waited == 50.0 + MINUTE / 2


def test_a_build_that_tells_its_stage_is_no_older_item_of_another_stage():
    here = Followed()
    here.look()
    here.look(items=[waiting(1, seconds=50.0, signature="Lint"), waiting(2, seconds=10.0, signature="Tests")])
    here.look(building(signature="Tests"), items=[waiting(3, job="other")])
    assert here.tracker.running["a"].signature == "Tests"
    assert here.tracker.running["a"].waited == 10.0 + MINUTE / 2


def test_a_build_that_tells_no_stage_has_that_of_its_item_and_counts_in_both_rows():
    here = Followed()
    here.look()
    here.look(items=[waiting(signature="Lint")])
    here.look(building())
    here.look()
    assert here.row("job", "Lint").runs == here.row("job").runs == 1


def test_an_item_of_another_job_is_not_what_a_build_was():
    here = Followed()
    here.look()
    here.look(items=[waiting(job="another")])
    here.look(building())
    assert here.tracker.running["a"].waited is None


def test_a_duration_is_judged_by_what_was_predicted_before_it_ended():
    here = Followed()
    here.look()
    for key in ("a", "b"):
        here.look(building(key))
        for _ in range(4 if key == "a" else 40):
            here.look(building(key))
        here.look()
    assert here.row().runs == 2
    assert (here.row().ranges.true, here.row().ranges.false) == (0.0, 1.0), "the first was not predicted, and ten times it not either"
    assert here.row().skill.weight == 1.0


def test_whether_a_build_began_when_it_was_predicted_is_noted_with_it():
    here = Followed()
    here.look()
    here.look(items=[waiting()])
    predicted = here.tracker.waiting["1"]
    assert predicted.start.low <= MINUTE / 2 <= predicted.start.high, "an executor is free"
    here.look(building())
    assert here.tracker.running["a"].on_time is True
    late = replace(here.tracker.running["a"], on_time=False)
    here.tracker = replace(here.tracker, running={"a": late})
    here.look()
    assert (here.row().starts.true, here.row().starts.false) == (0.0, 1.0)


def test_a_prediction_stands_from_when_an_item_came_and_is_not_made_anew():
    here = Followed()
    here.look()
    here.look(items=[waiting(seconds=40.0)])
    first = here.tracker.waiting["1"]
    here.look(items=[waiting(seconds=100.0)])
    assert here.tracker.waiting["1"] == first
    assert first.asked_at == here.now - MINUTE


def test_only_so_many_items_are_followed_at_once():
    item = WaitingItem(signature="", asked_at=NOW)
    numbers = range(1000, 1000 + ITEMS_FOLLOWED - 1)
    here = Followed(tracker=JobTracker(waiting={str(number): item for number in numbers}))
    here.look(items=[*map(waiting, numbers), waiting(1), waiting(2)])
    assert here.tracker.waiting.keys() == {*map(str, numbers), "1"}


def test_only_so_many_builds_are_followed_at_once():
    build = RunningBuild(signature="", since_at=NOW, waited=None, on_time=None, duration=None)
    followed = {f"long {number}": build for number in range(BUILDS_FOLLOWED - 1)}
    begun = {key: BegunBuild(sighting=a_sighting(job="job", pool="cpu", since_at=NOW), build=build) for key in ("a", "b")}
    changes = Changes(tracker=JobTracker(running=followed), begun=begun)
    tracker, _ = note_changes(changes, {}, assess(a_snapshot(), FLEET), "main", {})
    assert tracker.running.keys() == {*followed, "a"}


def test_ends_are_predicted_of_builds_whose_duration_is_known_and_not_of_those_that_hang():
    takes = Estimate(low=300.0, mid=600.0, high=1200.0)

    def begun(seconds_ago, duration):
        return RunningBuild(signature="", since_at=NOW - seconds_ago, waited=None, on_time=None, duration=duration)

    running = {"young": begun(100.0, takes), "hangs": begun(10_000.0, takes), "unknown": begun(100.0, None)}
    assert ends_of(JobTracker(running=running), NOW) == {"young": pytest.approx(500.0)}
