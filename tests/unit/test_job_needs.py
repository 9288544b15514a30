"""What builds used is noted once they have ended and their machine has told of it: of its own builds, and of those that looks followed."""

from dataclasses import dataclass, field, replace

from autoscaler.domain.facts.job_stats import JobTracker, RunningBuild, Subject
from autoscaler.domain.facts.telemetry import FRESH_SECONDS
from autoscaler.domain.forecast.durations import quantile
from autoscaler.domain.learn import assess
from autoscaler.domain.report.tracking import USES_FOLLOWED, EndedBuild, follow_uses, note_uses
from support.builders import GIB, NOW, a_build_use, a_fleet, a_sighting, a_telemetry, an_agent
from support.decisions import seen

KEY = "cpu-1/0/job/a/7"


def ended(key=KEY, node="cpu-1", signature=""):
    sighting = a_sighting(job="a", pool="cpu", since_at=NOW, node=node, run="job/a/7")
    build = RunningBuild(signature=signature, since_at=NOW, waited=None, on_time=None, duration=None)
    return EndedBuild(key=key, sighting=sighting, build=build, seen_seconds=600.0, gap_seconds=60.0)


@dataclass
class Followed:
    """A controller with one agent, whose machine told once, long ago."""

    now: float = NOW
    tracker: JobTracker = field(default_factory=JobTracker)
    rows: dict = field(default_factory=dict)
    reports: dict = field(default_factory=lambda: {"i-1": a_telemetry(told_at=NOW - 100.0)})

    def look(self, *builds, after=60.0):
        """Look a minute later, when these builds have ended; returns those of which it is known what they used."""
        self.now += after
        situation = assess(seen(an_agent(), taken_at=self.now), a_fleet())
        self.tracker, uses = follow_uses(self.tracker, builds, situation, self.reports)
        self.rows |= {(row.subject, row.pool): row for row in note_uses(self.rows, uses, "main", self.now)}
        return uses

    def tells(self, machine="i-1", **facts):
        """Let a machine tell now, between two looks, what build 7 of job a used."""
        self.reports[machine] = a_telemetry(told_at=self.now + 30.0, builds=(a_build_use("a", 7, **facts),))

    def memory(self, *subject):
        return quantile(self.rows[Subject(*subject), "cpu"].needs.alone.memory, 0.5) / GIB


def test_it_is_noted_once_when_a_report_after_its_end_tells_of_it():
    here = Followed()
    here.tells(memory=2 * GIB)
    assert here.look(ended()) == (), "that was told before its end"
    here.tells(memory=4 * GIB)
    assert len(here.look()) == 1
    here.tells(memory=4 * GIB)
    assert (here.look(), here.tracker.uses) == ((), {})
    assert 3.8 < here.memory("a") < 4.2


def test_a_stage_is_noted_for_itself_and_for_its_job():
    here = Followed()
    here.look(ended(signature="GPU tests"))
    here.tells(memory=4 * GIB)
    here.look()
    assert 3.8 < here.memory("a", "GPU tests") < 4.2
    assert 3.8 < here.memory("a") < 4.2


def test_where_no_report_comes_any_more_the_last_one_counts():
    here = Followed()
    here.tells(memory=2 * GIB)
    assert here.look(ended()) == ()
    assert len(here.look(after=FRESH_SECONDS + 60.0)) == 1
    assert here.tracker.uses == {}


def test_a_build_of_which_nobody_tells_is_not_waited_for_for_ever():
    here = Followed()
    here.look(ended())
    assert list(here.tracker.uses) == [KEY]
    assert (here.look(after=FRESH_SECONDS + 60.0), here.tracker.uses, here.rows) == ((), {}, {})


def test_a_machine_tells_of_its_own_builds_alone():
    here = Followed()
    here.look(ended())
    here.tells(machine="i-9", memory=99 * GIB)
    assert here.look() == ()


def test_what_no_look_followed_teaches_nothing():
    here = Followed()
    here.tells()
    assert (here.look(), here.tracker.uses) == ((), {})


def test_nothing_is_waited_for_on_a_machine_that_tells_nothing():
    here = Followed(reports={})
    here.look(ended(), ended(key="gone-1/0/job/a/7", node="gone-1"))
    assert here.tracker == JobTracker()


def test_a_build_that_was_hardly_sampled_is_not_noted():
    here = Followed()
    here.look(ended())
    here.tells(seconds=1.0)
    assert here.look() == ()


def test_of_very_many_builds_only_so_many_are_waited_for():
    here = Followed()
    here.look(*(replace(ended(), key=f"cpu-1/{number}/job/a/{number}") for number in range(USES_FOLLOWED + 50)))
    assert len(here.tracker.uses) == USES_FOLLOWED
