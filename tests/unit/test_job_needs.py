"""What builds use, followed from report to report: whose it is, when it is over, and what teaches nothing."""

from dataclasses import dataclass, field, replace

from autoscaler.domain.facts.job_stats import JobTracker, Subject
from autoscaler.domain.facts.telemetry import FRESH_SECONDS
from autoscaler.domain.forecast.spread import quantile
from autoscaler.domain.learn import assess
from autoscaler.domain.report.job_needs import USES_FOLLOWED, follow_uses, note_uses
from support.builders import GIB, NOW, a_build, a_build_use, a_fleet, a_snapshot, a_telemetry, a_view, an_agent

A_BUILD = a_build("a", key="cpu-1/0/job/a/7", run="job/a/7")


@dataclass
class Followed:
    """A controller with one agent, looked at once a minute."""

    now: float = NOW
    tracker: JobTracker = field(default_factory=JobTracker)
    rows: dict = field(default_factory=dict)

    def look(self, *builds, reports=None, complete=True, after=60.0):
        """Look at these builds, and at what machines told; returns the builds that were found to have ended."""
        self.now += after
        record, node = an_agent(builds=builds, executors=4)
        view = a_view(node) if complete else replace(a_view(), problem="it did not answer")
        situation = assess(a_snapshot(view, records=(record,), taken_at=self.now), a_fleet())
        told = {machine: replace(report, told_at=self.now) for machine, report in (reports or {}).items()}
        uses = follow_uses(self.tracker, situation, "main", told or {"i-9": a_telemetry(told_at=1.0), "i-1": a_telemetry(told_at=1.0)})
        self.tracker = uses.tracker
        self.rows |= {(row.subject, row.pool): row for row in note_uses(self.rows, uses.ended, "main", self.now)}
        return uses.ended

    def told(self, *builds, machine="i-1", **facts):
        """One report of a machine, whose builds used this."""
        return {machine: a_telemetry(builds=(a_build_use("a", 7, **facts),))}

    def memory(self, job="a"):
        row = self.rows.get((Subject(job), "cpu"))
        return None if row is None else quantile(row.needs.alone.memory, 0.5)


def test_a_build_is_noted_once_with_the_last_that_was_told_of_it():
    here = Followed()
    here.look(A_BUILD, reports=here.told(memory=GIB))
    here.look(A_BUILD, reports=here.told(memory=3 * GIB))
    assert here.look(reports=here.told(memory=3 * GIB, gone=10.0)) == ()
    [ended] = here.look(reports=here.told(memory=4 * GIB, gone=70.0))
    assert (ended.job, ended.pool, ended.use.memory) == ("a", "cpu", 4 * GIB)
    assert here.look(reports=here.told(memory=4 * GIB, gone=370.0)) == (), "it is told of twice"
    assert 0.96 < here.memory() / (4 * GIB) < 1.04
    assert here.tracker.uses == {}


def test_a_build_that_ended_between_two_reports_is_known_by_the_look_that_showed_it():
    here = Followed()
    here.look(A_BUILD)
    here.look()
    assert len(here.look(reports=here.told(gone=100.0), after=200.0)) == 1


def test_what_no_look_showed_teaches_nothing():
    here = Followed()
    assert here.look(reports=here.told(gone=100.0)) == ()
    assert here.tracker.uses == {}


def test_a_machine_tells_of_its_own_builds_alone():
    here = Followed()
    here.look(A_BUILD)
    here.look(A_BUILD, reports=here.told(machine="i-9", memory=99 * GIB))
    here.look(reports=here.told(machine="i-9", memory=99 * GIB, gone=100.0))
    assert here.look(after=FRESH_SECONDS + 60.0) == ()
    assert here.rows == {}


def test_the_last_that_was_told_counts_where_no_further_report_comes():
    here = Followed()
    here.look(A_BUILD, reports=here.told(memory=2 * GIB))
    assert here.look() == ()
    assert len(here.look(after=FRESH_SECONDS + 60.0)) == 1


def test_while_a_controller_cannot_be_read_nothing_has_ended():
    here = Followed()
    here.look(A_BUILD, reports=here.told())
    for _ in range(20):
        assert here.look(reports=here.told(gone=100.0), complete=False) == ()
    here.look(A_BUILD, reports=here.told())
    assert list(here.tracker.uses) == [A_BUILD.key]


def test_a_build_that_is_shown_again_goes_on():
    """A pipeline's step may have no process while Jenkins restarts it."""
    here = Followed()
    here.look(A_BUILD, reports=here.told(gone=100.0))
    here.look()
    here.look(A_BUILD)
    assert here.tracker.uses[A_BUILD.key].left_at is None


def test_a_build_that_was_hardly_sampled_is_not_noted():
    here = Followed()
    here.look(A_BUILD, reports=here.told(seconds=1.0))
    assert here.look(reports=here.told(seconds=1.0, gone=40.0)) == ()
    assert (here.rows, here.tracker.uses) == ({}, {})


def test_of_very_many_builds_only_so_many_are_followed():
    here = Followed()
    many = [a_build("a", key=f"cpu-1/{n}/job/a/{n}", run=f"job/a/{n}") for n in range(USES_FOLLOWED + 50)]
    here.look(*many)
    assert len(here.tracker.uses) == USES_FOLLOWED
