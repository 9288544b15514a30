"""Time-lines of steps that Jenkins refuses again and again: nobody waits for them, and a person is told."""

from unittest import mock

import pytest

from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Cordon, DeleteNode, Launch, Terminate, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler_workbench.fakes.http_fakes.jenkins.api import BALANCER_REFUSES, LOGIN_PAGE, JenkinsApi
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from autoscaler_workbench.simulate.result import leaked_instances, leaked_nodes
from support.builders import a_mark, a_pool
from support.remembered import tables
from support.timeline import Day
from support.worlds import in_memory, now

CONNECT, DISCONNECT, DELETE = (f"hudson.model.Computer.{right}" for right in ("Connect", "Disconnect", "Delete"))


def a_day(**facts):
    """Agents settle for longer than an invocation lasts: what is cordoned is still there a minute later."""
    given = {"idle_seconds": 120.0, "drain_settle_seconds": 60.0} | facts
    return Day(in_memory(a_pool("cpu", **given)), by_adapters=True)


def tried(day, kind):
    results = [r for report in day.fleet.reports for r in report.results if isinstance(r.step, kind)]
    return [str(r.outcome) for r in results if r.outcome != "planned"]


def refused(day):
    """The account may not bring nodes online any more; an agent's secret is another call."""
    toggle = day.jenkins.toggle
    day.fleet.apis["main"].lacks.add(CONNECT)
    return toggle


def a_login_proxy(day):
    day.fleet.apis["main"].login_at = "https://sso.example.org/authorize"


def a_login_page(day):
    day.fleet.apis["main"].in_front["POST"] = LOGIN_PAGE


def a_balancer(day):
    day.fleet.apis["main"].in_front["POST"] = BALANCER_REFUSES


def an_error(day):
    day.fleet.faults.plan(Fault("jenkins toggleOffline", status=500, times=10**6))


def a_proxy_that_swallows_what_is_posted(day):
    """It answers as Jenkins does, and nothing comes of it."""
    day.jenkins.toggle = lambda *_: None


def one_that_retires(day):
    day.minutes(2).queue(1, seconds=60.0)
    while not day.done(Cordon):
        day.minutes(1)
    [name] = day.nodes()
    return name


@pytest.mark.parametrize("trouble", [refused, a_login_proxy, a_login_page, a_balancer, an_error, a_proxy_that_swallows_what_is_posted])
def test_a_job_does_not_wait_for_an_agent_that_cannot_be_brought_back(trouble):
    day = a_day()
    one_that_retires(day)
    trouble(day)
    before = len(day.done(Launch))
    [build] = day.queue(1, seconds=60.0)
    day.minutes(2)
    assert "failed" in tried(day, Uncordon)
    assert len(day.done(Launch)) == before + 1
    if trouble in {an_error, a_proxy_that_swallows_what_is_posted}:  # the others keep a new agent from registering, too
        day.minutes(8)
        assert build.started_at is not None


def test_other_steps_of_a_controller_are_taken_though_a_login_page_answers_what_is_posted():
    """The machine ends when it is idle and cordoned, which takes no POST. Its node stays until POSTs reach Jenkins."""
    day = a_day(drain_settle_seconds=120.0)
    one_that_retires(day)
    a_login_page(day)
    day.minutes(10)
    assert day.agents() == 0
    [said] = day.status().failing
    assert "a POST was answered 200 (Server nginx, page 'Sign in to Example')" in said
    day.fleet.apis["main"].in_front.clear()
    day.minutes(15)
    assert (leaked_instances(day.world), leaked_nodes(day.world), day.nodes()) == ([], [], [])


def test_a_mark_that_was_set_though_a_page_answered_is_read_and_no_second_request_is_sent():
    """A proxy that follows Jenkins' way back by itself answers with the page that it leads to."""
    day = a_day()
    day.minutes(2).queue(1, seconds=60.0)
    api = day.fleet.apis["main"]
    answer = api._answer  # what is behind the proxy

    def followed(request):
        behind = answer(request)
        return LOGIN_PAGE if behind.status == 302 and "Cause" in request.path else behind

    with mock.patch.object(JenkinsApi, "_answer", lambda _, request: followed(request)):
        day.minutes(12)
    assert tried(day, Cordon) == ["done"]


def test_where_the_limit_is_reached_what_cannot_be_brought_back_makes_room():
    """Of one node alone Jenkins tells its name instead of the label, and what is waited for by name is never given up."""
    day = a_day(max_agents=2, idle_seconds=3600.0)
    day.minutes(2).queue(2, seconds=60.0)
    day.minutes(8)
    for name in day.nodes():
        day.jenkins.set_offline(name, a_mark(MarkClass.RETIRE).text, "autoscaler")
    an_error(day)
    [build] = day.queue(1, seconds=60.0)
    day.minutes(15)
    assert len(day.done(Terminate)) >= 1
    assert build.ended is Ended.FINISHED


def test_what_failed_once_comes_back_the_next_time():
    day = a_day(max_agents=1)
    name = one_that_retires(day)
    day.fleet.faults.plan(Fault("jenkins toggleOffline", status=500))
    [build] = day.queue(1, seconds=60.0)
    day.minutes(3)
    assert build.node == name
    assert tables(day.fleet.state.memory).failing == {}


@pytest.mark.parametrize(("right", "kind"), [(DISCONNECT, Cordon), (DELETE, DeleteNode)])
def test_a_step_without_its_right_is_held_after_three_tries_named_and_rings_until_the_right_is_given(right, kind):
    day = a_day()
    api = day.fleet.apis["main"]
    api.lacks.add(right)
    day.minutes(2).queue(1, seconds=60.0)
    day.minutes(30)
    refusals = tried(day, kind)
    assert set(refusals) == {"failed"}
    assert 3 < len(refusals) <= 3 + 24 // 5
    assert now(day, "StepsFailing") == 1.0
    assert {h.reason for report in day.fleet.reports[-8:] for h in report.plan.held} >= {Reason.KEEPS_FAILING}
    [said] = day.status().failing
    assert f"the account lacks {right}" in said
    api.lacks.clear()
    day.minutes(15)
    assert now(day, "StepsFailing") == 0.0
    assert (leaked_instances(day.world), leaked_nodes(day.world), day.agents(), day.nodes()) == ([], [], 0, [])


def test_a_pipeline_that_waits_for_a_node_that_cannot_be_brought_back_gets_it_once_it_can():
    day = a_day(idle_seconds=3600.0)
    day.minutes(2)
    [build] = day.queue(1, seconds=1200.0, kind=Kind.PIPELINE)
    day.minutes(6)
    [name] = day.nodes()
    mark = f"autoscaler:f:operator:{day.fleet.invocation().request_id}"
    day.jenkins.set_offline(name, mark, "autoscaler")
    day.jenkins.restart()
    an_error(day)
    day.minutes(12)
    assert "failed" in tried(day, Uncordon)
    assert build.ended is None
    day.fleet.faults.planned.clear()
    day.minutes(30)
    assert build.ended is Ended.FINISHED
