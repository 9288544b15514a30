"""Agents of one build that are stopped before it: which are launched for that, what they count as meanwhile, and what is never stopped."""

from dataclasses import replace

import pytest

from autoscaler.config import load_fleet
from autoscaler.domain.facts.fleet import Market, WarmPool
from autoscaler.domain.facts.memory import Month
from autoscaler.domain.facts.metering import month_name
from autoscaler.domain.facts.plan import FinishStop, Launch, Start, Stop, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState, RecordState
from autoscaler.domain.repair.two_looks import Condition
from autoscaler.domain.report.explain import explain
from autoscaler.domain.situation.trials import of_boot
from autoscaler.errors import ConfigError
from support.builders import (
    NOW,
    a_fleet,
    a_look,
    a_memory,
    a_node,
    a_pool,
    a_record,
    a_snapshot,
    a_view,
    an_empty_window,
    an_instance,
    an_intent,
    an_item,
    an_offering,
    boots_failed,
    cordoned,
)
from support.decisions import scale_down, scale_up

UNUSED = WarmPool(min_agents=2, max_agents=5, max_age_seconds=168 * 3600.0, unused_only=True)
OFFERING = an_offering(usd_per_hour=3.0, volume_usd_per_hour=0.1)
SPOT = an_offering(market=Market.SPOT, usd_per_hour=1.0)
OFF = {RecordState.STOPPED: InstanceState.STOPPED}
FILLS = Reason.FILLS_WARM_POOL


def fleet(warm=UNUSED, limits=None, **pool):
    return a_fleet(a_pool("cpu", **({"offerings": (OFFERING,), "warm_pool": warm, "max_builds": 1} | pool)), **(limits or {}))


def filler(number=1, state=RecordState.REQUESTED, **facts):
    """The record of an agent that was launched to be stopped."""
    given = {"state": state, "to_stop": True, "usd_per_hour": 3.1, "volume_usd_per_hour": 0.1, "changed_at": NOW - 3000.0 - number}
    return a_record(f"i-{number}", **(given | facts))


def used(number=1, state=RecordState.REGISTERED, **facts):
    """The record of an agent that has registered, launched or started for jobs."""
    return filler(number, state, node=f"cpu-{number}", to_stop=False, **facts)


def seen(*records, items=(), nodes=(), states=None, memory=None, **facts):
    """A look at these agents; EC2 says of each what its record does, unless told otherwise."""
    of = {r.instance_id: (states or {}).get(r.instance_id, OFF.get(r.state, InstanceState.RUNNING)) for r in records}
    instances = tuple(an_instance(i, state=state, **facts.pop(i, {})) for i, state in of.items())
    view = a_view(*nodes, items=tuple(items))
    given = {"instances": instances, "memory": a_memory(**({"windows": an_empty_window()} | (memory or {})))}
    return a_snapshot(view, records=records, **(given | facts))


def launches(snapshot, of=None):
    plan = scale_up(snapshot, of or fleet())
    return [(step.reason, step.count, step.to_stop) for step in plan.steps if isinstance(step, Launch)]


def down(snapshot, of=None):
    plan = scale_down(snapshot, of or fleet())
    return [(type(step), step.reason) for step in plan.steps if isinstance(step, Stop | Terminate | FinishStop | Start)]


# Launched to be stopped.


def test_as_many_as_are_wanted_stopped_are_launched_for_it():
    plan = scale_up(seen(), fleet())
    assert launches(seen()) == [(FILLS, 2, True)]
    [step] = plan.steps
    assert step.detail == "0 of 2 agents are stopped, or will be; it is stopped once it has booted, before any build"


def test_those_that_boot_for_it_and_those_that_are_stopped_count():
    assert launches(seen(filler(1), filler(2, RecordState.STOPPED))) == []
    assert launches(seen(filler(1), filler(2, RecordState.STOPPING))) == []
    assert launches(seen(filler(1))) == [(FILLS, 1, True)]


def test_those_whose_launch_is_not_answered_yet_count():
    assert launches(seen(intents=(an_intent(count=2, to_stop=True),))) == []
    assert launches(seen(intents=(an_intent(count=2),))) == [(FILLS, 2, True)], "those are agents, which are never stopped"


def test_agents_that_run_do_not_count_since_they_are_never_stopped():
    node = a_node("cpu-1", "cpu", "autoscaler-fleet-f")
    assert launches(seen(used(), nodes=(node,))) == [(FILLS, 2, True)]


def test_none_is_launched_to_be_stopped_while_jobs_wait_and_none_of_spot():
    assert launches(seen(items=[an_item(label="cpu")])) == [(Reason.NOBODY_CAN_SERVE, 1, False)]
    markets = [step.market for step in scale_up(seen(), fleet(offerings=(SPOT, OFFERING))).steps]
    assert markets == [Market.ON_DEMAND]


def test_minimum_and_stopped_agents_are_launched_apart_in_one_pass():
    assert launches(seen(), fleet(min_agents=1)) == [(Reason.MIN_AGENTS, 1, False), (FILLS, 2, True)]


def test_what_boots_to_be_stopped_is_no_agent_of_the_minimum():
    of = fleet(min_agents=1)
    for state in (RecordState.REQUESTED, RecordState.STOPPING):
        assert launches(seen(filler(1, state), filler(2, state)), of) == [(Reason.MIN_AGENTS, 1, False)]
    assert launches(seen(intents=(an_intent(count=2, to_stop=True),)), of) == [(Reason.MIN_AGENTS, 1, False)]


def test_no_job_waits_for_what_boots_to_be_stopped():
    items = [an_item(label="cpu")]
    assert launches(seen(filler(), filler(2), items=items)) == [(Reason.NOBODY_CAN_SERVE, 1, False)]
    assert launches(seen(items=items, intents=(an_intent(count=2, to_stop=True),))) == [(Reason.NOBODY_CAN_SERVE, 1, False)]


def test_what_boots_to_be_stopped_counts_in_every_limit():
    items = [an_item(label="cpu")]
    for limits in ({"max_agents": 1}, {"max_usd_per_hour": 6.0}, {"max_launches_per_hour": 1}):
        assert launches(seen(filler(), items=items), fleet(replace(UNUSED, min_agents=1), limits)) == [], limits


@pytest.mark.parametrize(
    "memory",
    [
        {"trials": {of_boot("cpu"): boots_failed(-1.0)}},
        {"proven": {"cpu": "1"}},
    ],
    ids=["after boots that failed", "a new version"],
)
def test_what_may_not_boot_is_tried_by_one_that_connects(memory):
    assert launches(seen(memory=memory, template_versions={"cpu": "2"})) == [(FILLS, 1, False)]


# Stopped once it has booted, and never later.


def test_what_has_booted_is_stopped_without_a_node_and_without_a_second_look():
    plan = scale_down(seen(filler(state=RecordState.STOPPING)), fleet())
    assert [(step.node, step.mark, step.reason) for step in plan.steps if isinstance(step, Stop)] == [(None, None, Reason.KEPT_STOPPED)]


def test_its_stop_is_finished_once_ec2_says_so():
    stopping = filler(state=RecordState.STOPPING, changed_at=NOW - 60.0)
    assert down(seen(stopping, states={"i-1": InstanceState.STOPPING})) == []
    assert down(seen(stopping, states={"i-1": InstanceState.STOPPED})) == [(FinishStop, Reason.HAS_STOPPED)]


@pytest.mark.parametrize(
    ("of", "facts"),
    [
        (fleet(None), {}),
        (fleet(), {"memory": {"unstoppable": frozenset({"i-1"})}}),
        (fleet(), {"i-1": {"keeps_disk": False}}),
        (fleet(), {"template_versions": {"cpu": "2"}, "i-1": {"template_version": "1"}, "memory": {"proven": {"cpu": "2"}}}),
    ],
    ids=["no warm pool any more", "EC2 does not stop it", "its disk would be lost", "outdated"],
)
def test_what_has_booted_and_cannot_be_kept_is_terminated(of, facts):
    assert down(seen(filler(state=RecordState.STOPPING), **facts), of) == [(Terminate, Reason.CONDEMNED)]


def test_what_boots_to_be_stopped_is_left_to_boot_and_terminated_once_that_takes_too_long():
    assert down(seen(filler())) == []
    memory = {"observations": {"i-1": a_look(Condition.OVERDUE, session="")}}
    assert down(seen(filler(launched_at=NOW - 7200.0), memory=memory)) == [(Terminate, Reason.BOOT_TIMEOUT)]


def test_what_boots_to_be_stopped_ends_with_the_months_money():
    memory = {"month": Month(name=month_name(NOW), usd=1e9, metered_at=NOW - 60)}
    assert down(seen(filler(), memory=memory)) == [(Terminate, Reason.USD_PER_MONTH)]


def test_an_agent_that_was_one_is_terminated_whether_or_not_it_had_its_build():
    node, memory = cordoned(a_node("cpu-1", "cpu", "autoscaler-fleet-f")), {"observations": {"i-1": a_look(Condition.DRAINED)}}
    assert down(seen(used(), nodes=(node,), memory=memory)) == [(Terminate, Reason.DRAINED)]


def test_an_agent_that_a_person_stopped_is_terminated():
    memory = {"observations": {"i-1": a_look(Condition.STOPPED, seconds_ago=86_400.0)}}
    node = a_node("cpu-1", "cpu", "autoscaler-fleet-f", offline=True)
    assert down(seen(used(), nodes=(node,), memory=memory, states={"i-1": InstanceState.STOPPED})) == [(Terminate, Reason.INSTANCE_STOPPED)]


def test_what_was_stopped_after_builds_is_terminated_once_each_agent_has_one_build():
    """The fleet file said ``reuse: always`` when it was stopped."""
    stopped = used(1, RecordState.STOPPED)
    assert down(seen(stopped)) == [(Terminate, Reason.WARM_POOL_OFF)]
    plan = scale_up(seen(stopped, items=[an_item(label="cpu")]), fleet())
    assert [type(step) for step in plan.steps] == [Launch]


def test_what_is_stopped_unused_is_started_for_a_job_and_stays_as_long_as_it_is_wanted():
    stopped = [filler(1, RecordState.STOPPED), filler(2, RecordState.STOPPED)]
    assert down(seen(*stopped)) == []
    plan = scale_up(seen(*stopped, items=[an_item(label="cpu")]), fleet())
    assert [(type(step), step.instance_ids) for step in plan.steps] == [(Start, ("i-1",))]


# What people are told.


def why(snapshot, subject):
    return explain(snapshot, fleet(), subject)


def test_a_person_is_told_that_an_agent_boots_to_be_stopped():
    first, *facts = why(seen(filler(1), filler(2)), "i-1")
    assert first.startswith("i-1 of cpu on main: to-stop; ")
    assert "it was launched to be stopped: it is, once it has booted, and takes no build before it is started again" in facts


def test_a_person_is_told_of_a_pool_which_agents_are_stopped():
    facts = why(seen(filler(1), filler(2)), "cpu")
    assert "agents are stopped only before their one build (reuse: never): they are launched for that while nothing waits" in facts
    assert "2 agents stopped or about to be, 2 worth having beside those that run (at least 2: warm_pool.min_agents)" in facts


def test_a_person_is_told_why_an_agent_is_not_stopped():
    facts = why(seen(used(), nodes=(a_node("cpu-1", "cpu", "autoscaler-fleet-f"),)), "cpu-1")
    assert any(fact.endswith("and not stopped: only agents that have had no build are stopped here (reuse: never)") for fact in facts)


# The fleet file.

FILE = """
fleet: f
limits: {max_agents: 10, max_launches_per_hour: 10, max_usd_per_hour: 100, max_usd_per_month: 1000}
controllers: {main: {url: "https://jenkins.example.org/"}}
defaults: {%s}
pools:
  cpu: {executors: 1, launch_template: cpu, instance_types: [c5.xlarge], max_agents: 5, reuse: never%s}
"""
NIGHT = "{from: 22:00, to: 06:00, time_zone: UTC, warm_pool: {min_agents: 3}}"


def warm_pools(tmp_path, defaults, pool=""):
    file = tmp_path / "fleet.yaml"
    file.write_text(FILE % (defaults, pool), encoding="utf-8")
    read = load_fleet(file).pools["cpu"]
    return [read.warm_pool, *(schedule.warm_pool for schedule in read.schedules)]


def test_agents_of_one_build_are_stopped_only_where_it_is_said_how_many(tmp_path):
    assert warm_pools(tmp_path, "", ", warm_pool: {min_agents: 2, max_agents: 5}") == [UNUSED]
    assert warm_pools(tmp_path, "warm_pool: {min_agents: 2}") == [UNUSED]
    assert warm_pools(tmp_path, "warm_pool: {}") == [None], "what the other pools of the file want"
    assert warm_pools(tmp_path, "", f", schedules: [{NIGHT}]") == [None, replace(UNUSED, min_agents=3)]


def test_a_warm_pool_of_as_many_as_pay_is_refused_for_agents_of_one_build(tmp_path):
    with pytest.raises(
        ConfigError, match=r"pools\.cpu\.warm_pool: .*\(reuse: never\) are stopped only before it, give min_agents of at least 1"
    ):
        warm_pools(tmp_path, "", ", warm_pool: {}")
