"""Weights of jobs: what they count for, how many executors a node shows, and what is told of it."""

from dataclasses import replace

import pytest

from autoscaler.config import FleetFileError, check
from autoscaler.domain.decide import scale_down
from autoscaler.domain.facts.fleet import FULL_LABEL
from autoscaler.domain.facts.job_settings import JobWeights, Source
from autoscaler.domain.facts.nodes import executors_at_first, room_on
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.learn import assess
from autoscaler.domain.situation.supply import build_supply, free_executors
from support.builders import a_build, a_fleet, a_memory, a_pool, a_snapshot, a_view, an_agent, an_empty_window, an_item
from support.told import explain

WEIGHTS = JobWeights(by_pattern=(("nightly/smoke", 1), ("nightly/*", 4), ("huge", 99)))
FLEET = replace(a_fleet(a_pool("cpu", executors=8, max_agents=5)), weights=WEIGHTS)


def running(*jobs, number=1):
    """An agent on which these jobs run."""
    builds = tuple(a_build(job, key=f"{number}/{at}") for at, job in enumerate(jobs))
    record, node = an_agent(number, builds=builds, executors=8)
    return replace(record, labels=("cpu",)), node


def room(*jobs, weight=1):
    record, node = running(*jobs)
    return room_on(record, node, FLEET, weight)


def test_of_the_patterns_that_match_the_first_counts_and_what_none_matches_weighs_one():
    assert [WEIGHTS.of(job) for job in ("nightly/smoke", "nightly/all", "nightly/a/b", "huge", "other")] == [1, 4, 4, 99, 1]


def test_light_builds_beside_a_heavy_one_get_as_many_executors_as_it_leaves():
    left = room("nightly/all", "other")
    assert (left.taken, left.of, left.executors, left.is_full) == (5, 8, 2 + 3, False)


def test_while_a_heavy_one_waits_there_are_as_many_executors_as_heavy_ones_fit():
    assert room(weight=4).executors == 2
    assert room("other", weight=4).executors == 1 + 1
    assert room("nightly/all", weight=4).executors == 1 + 1


def test_without_room_one_executor_stays_for_what_names_the_node():
    full = room("nightly/all", "nightly/all")
    assert (full.is_full, full.executors) == (True, 2 + 1)
    assert room(*["other"] * 5, weight=4).is_full


def test_while_nothing_heavy_runs_or_waits_a_node_shows_all_its_executors_though_all_are_busy():
    busy = room(*["other"] * 8)
    assert (busy.is_full, busy.executors) == (False, 8)


def test_an_idle_agent_has_room_for_one_build_whatever_it_weighs():
    assert (room(weight=99).is_full, room(weight=99).executors) == (False, 1)


def test_without_weights_and_on_nodes_of_an_operator_s_own_nothing_is_changed():
    record, node = running("nightly/all")
    assert room_on(record, node, replace(FLEET, weights=JobWeights())) is None
    assert room_on(replace(record, labels=()), node, FLEET) is None


def test_a_new_node_has_as_many_executors_as_the_heaviest_builds_fit_and_one_at_least():
    pool = FLEET.pools["cpu"]
    assert executors_at_first(pool, FLEET) == 1
    assert executors_at_first(pool, replace(FLEET, weights=JobWeights(by_pattern=(("a", 3),)))) == 2
    assert executors_at_first(pool, replace(FLEET, weights=JobWeights())) == 8


def situation_of(*jobs, items=()):
    record, node = running(*jobs)
    return assess(a_snapshot(a_view(node, items=items), records=(record,)), FLEET)


def test_the_executors_that_heavy_builds_take_are_not_free():
    situation = situation_of("nightly/all", "other")
    [agent] = situation.agents
    assert (agent.taken_executors, free_executors(situation, agent)) == (5, 3)


def test_a_build_that_is_too_heavy_leaves_nothing_free_until_others_fit_beside_it_again():
    situation = situation_of("huge", "other")
    [agent] = situation.agents
    assert free_executors(situation, agent) == 0
    assert len(build_supply(situation, "main").room(("cpu",), 8)) == 8


def test_a_heavy_item_gets_executors_of_one_machine_and_no_two_of_different_ones():
    first, second = running(*["other"] * 6), running(number=2)
    records, nodes = zip(first, second, strict=True)
    supply = build_supply(assess(a_snapshot(a_view(*nodes), records=records), FLEET), "main")
    together = supply.room(("cpu",), 4)
    assert {slot.machine for slot in together} == {second[0].machine}
    assert [slot.free_seconds for slot in together] == [0.0] * 4


@pytest.mark.parametrize(("job", "marked"), [("nightly/other", []), ("light", ["cpu-3"])])
def test_an_idle_agent_stays_for_a_heavy_job_that_fits_beside_no_builds_of_the_others(job, marked):
    """Packed, they would all fit on two agents. The third one was brought back for the job and marked again, minute after minute."""
    builds = [tuple(a_build("light", key=f"{number}/{at}") for at in range(busy)) for number, busy in enumerate((5, 5, 0))]
    records, (*nodes, idle) = zip(*(an_agent(number + 1, builds=mine, executors=8) for number, mine in enumerate(builds)), strict=True)
    full = replace(idle, labels=idle.labels - {"cpu"} | {FULL_LABEL})  # it has its labels back with the next look
    view = a_view(*nodes, full, items=(an_item(7, job=job, label="cpu", waiting_seconds=60.0),))
    snapshot = a_snapshot(
        view, records=tuple(replace(r, labels=("cpu",)) for r in records), memory=a_memory(windows=an_empty_window(most=2))
    )
    assert [step.node for step in scale_down(snapshot, FLEET).steps if step.reason is Reason.SURPLUS] == marked


def test_why_says_what_the_builds_of_an_agent_weigh():
    record, node = running("nightly/all", "other")
    snapshot = a_snapshot(a_view(node, items=(an_item(1, job="nightly/all", label="cpu"),)), records=(record,))
    assert "its builds weigh 5 of 8: 3 executors left" in explain(snapshot, FLEET, node.name)
    record, node = running("nightly/all", "nightly/b")
    assert "its builds weigh 8 of 8: it takes no further ones" in explain(a_snapshot(a_view(node), records=(record,)), FLEET, node.name)


RAW = {
    "fleet": "f",
    "limits": {"max_agents": 9, "max_launches_per_hour": 9, "max_usd_per_hour": 99, "max_usd_per_month": 999},
    "controllers": {"main": {"url": "http://main/"}},
    "pools": {"cpu": {"executors": 8, "launch_template": "t", "instance_types": ["c5.4xlarge"], "platform": "linux", "max_agents": 2}},
}


def test_weights_of_the_fleet_file_are_those_of_the_domain_in_its_order():
    assert check({**RAW, "weights": {"a": "learned"}}, "fleet.yaml").domain().weights.asks(Source.LEARNED)
    assert check({**RAW, "weights": {"a/*": 2, "*": 3}}, "fleet.yaml").domain().weights == JobWeights(by_pattern=(("a/*", 2), ("*", 3)))
    assert not check(RAW, "fleet.yaml").domain().weights


@pytest.mark.parametrize("weight", [0, -1, 1001, 1.5, "four"])
def test_a_weight_is_a_whole_number_of_executors(weight):
    with pytest.raises(FleetFileError) as refused:
        check({**RAW, "weights": {"a/*": weight}}, "fleet.yaml")
    assert "weights" in str(refused.value)
