"""Time-lines of agents of a rarer kind that are lent to jobs of a general one."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import Lending
from autoscaler.domain.facts.plan import Launch, Lend, Relabel, TakeBack
from autoscaler.domain.facts.reasons import Reason
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from autoscaler_workbench.fakes.world.physics import CALM
from support.builders import a_pool, an_offering
from support.timeline import Day
from support.worlds import in_memory

OWN = frozenset({"amd64+gfx1030", "gfx1030"})


SLOW = replace(CALM, scheduling_seconds=200.0)  # until then nothing is matched


def a_day(lend=Lending.IDLE, jobs=0, physics=CALM, **facts):
    """A plain pool without an agent, and one agent of a speciality: always there, or launched for ``jobs`` of its own."""
    plain = a_pool("cpu", labels=frozenset({"amd64"}), max_agents=1)
    rare = {"labels": OWN, "lent_labels": frozenset({"amd64"}), "lend": lend, "offerings": (an_offering(usd_per_hour=15.0),)}
    day = Day(in_memory(plain, a_pool("gpu", **({"min_agents": 1, "max_agents": 2} | rare | facts)), physics=physics))
    day.queue(jobs, label="gfx1030", seconds=60.0)
    day.minutes(10)
    assert day.agents("gpu") == facts.get("min_agents", 1) or jobs
    return day


def rare_node(day):
    [node] = [node for name, node in day.jenkins.nodes.items() if name.startswith("gpu-")]
    return node


def is_lent(day):
    return "amd64" in rare_node(day).labels


def reasons(day, kind):
    return [step.reason for step in day.done(kind)]


def test_a_plain_job_borrows_the_idle_agent_at_once_and_the_labels_are_back_while_it_runs():
    day = a_day()
    [build] = day.queue(1, label="amd64", seconds=1800.0)
    day.minutes(3)
    assert (build.node, is_lent(day), day.done(Launch)[1:]) == (rare_node(day).name, False, [])
    assert (reasons(day, Lend), reasons(day, TakeBack)) == ([Reason.LENT], [Reason.LOAN_OVER])
    day.minutes(40)
    assert (build.ended, day.done(Relabel), day.failed) == (Ended.FINISHED, [], 0)


def test_a_plain_job_never_starts_on_an_agent_that_is_not_lent_even_where_the_plain_pool_is_full():
    day = a_day(lend=Lending.NEVER)
    builds = day.queue(3, label="amd64", seconds=1200.0)
    day.minutes(30)
    assert {build.node for build in builds if build.node} == {name for name in day.jenkins.nodes if name.startswith("cpu-")}
    assert (day.done(Lend), day.agents("gpu")) == ([], 1)


def test_a_job_that_needs_the_speciality_waits_no_longer_than_the_build_of_the_borrower():
    day = a_day(max_agents=1)
    [borrower] = day.queue(1, label="amd64", seconds=900.0)
    day.minutes(3)
    assert borrower.node == rare_node(day).name
    later = day.queue(2, label="amd64", seconds=900.0)
    [special] = day.queue(1, label="gfx1030", seconds=300.0)
    day.minutes(16)
    assert (borrower.ended, special.node) == (Ended.FINISHED, rare_node(day).name)
    assert all(build.node != rare_node(day).name for build in later)


def test_while_a_job_waits_that_needs_the_speciality_nothing_is_lent():
    day = a_day(max_agents=1)
    day.queue(1, label="gfx1030", seconds=1200.0)
    day.queue(1, label="gfx1030", seconds=1200.0)
    day.minutes(2)
    day.queue(2, label="amd64", seconds=600.0)
    day.minutes(30)
    assert day.done(Lend) == []


def test_of_two_that_are_idle_the_one_that_its_own_kind_waits_for_is_not_lent():
    day = a_day(min_agents=2, physics=SLOW)
    day.queue(1, label="gfx1030", seconds=300.0)
    day.queue(3, label="amd64", seconds=300.0)
    day.minutes(1)
    assert len(day.done(Lend)) == 1


def test_a_job_of_the_speciality_that_comes_before_a_borrower_has_begun_ends_the_loan():
    day = a_day(max_agents=1, physics=SLOW)
    [borrower] = day.queue(1, label="amd64", seconds=900.0)
    day.minutes(1)
    assert (is_lent(day), borrower.node) == (True, None)
    [special] = day.queue(1, label="gfx1030", seconds=300.0)
    day.minutes(1)
    assert (is_lent(day), reasons(day, TakeBack)) == (False, [Reason.NEEDED_BY_ITS_OWN])
    assert special.node is None


def test_once_the_jobs_have_left_the_queue_the_agent_is_taken_back():
    day = a_day(physics=SLOW)
    [build] = day.queue(1, label="amd64", seconds=900.0)
    day.minutes(1)
    assert is_lent(day)
    day.jenkins.abort(build)
    day.minutes(1)
    assert (is_lent(day), reasons(day, TakeBack)) == (False, [Reason.LOAN_OVER])


@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after it took effect"])
@pytest.mark.parametrize("call", [1, 2], ids=["lending", "taking back"])
def test_what_is_cut_off_between_record_and_node_is_made_good(call, after):
    day, seen = a_day(), []

    def meanwhile(what):
        if what == "jenkins config.xml":
            seen.append(what)
            if len(seen) == call:
                day.fleet.faults.plan(Fault(what, after=after))

    day.fleet.faults.meanwhile = meanwhile
    [build] = day.queue(1, label="amd64", seconds=600.0)
    day.minutes(20)
    assert day.fleet.faults.seen
    assert (build.ended, is_lent(day)) == (Ended.FINISHED, False)


def test_jobs_that_exclude_the_general_label_are_remembered_and_their_agents_are_lent_no_more():
    day = a_day(max_agents=1)
    [first, special] = day.queue(2, label="gfx1030&&!amd64", seconds=300.0)
    day.minutes(15)
    assert (first.ended, special.ended) == (Ended.FINISHED, Ended.FINISHED)
    day.queue(3, label="amd64", seconds=600.0)
    day.minutes(10)
    assert day.done(Lend) == []
    assert Reason.NOT_LENT in {held.reason for report in day.fleet.reports for held in report.plan.held}


def test_what_borrowers_do_keeps_no_agent_for_its_own_kind():
    day = a_day(min_agents=0, idle_seconds=900.0, jobs=1)
    [borrower] = day.queue(1, label="amd64", seconds=3000.0)
    day.minutes(3)
    assert borrower.node == rare_node(day).name
    day.minutes(20)
    assert (day.agents("gpu"), rare_node(day).temporarily_offline, borrower.ended) == (1, True, None)
    day.minutes(35)
    assert (day.agents("gpu"), borrower.ended) == (0, Ended.FINISHED)


def test_where_no_pool_is_of_the_general_kind_its_jobs_borrow_too():
    rare = a_pool("gpu", labels=OWN, lent_labels=frozenset({"amd64"}), lend=Lending.IDLE, min_agents=1)
    day = Day(in_memory(rare)).minutes(10)
    [build] = day.queue(1, label="amd64", seconds=300.0)
    day.minutes(10)
    assert (build.ended, is_lent(day), len(day.done(Launch))) == (Ended.FINISHED, False, 1)
