"""When items that wait are predicted to start: on which executor, what they wait for, and in which order."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.snapshot import Wait
from autoscaler.domain.launch.queue import WaitsFor, bare_starts
from autoscaler.domain.learn import assess
from support.builders import NOW, a_build, a_fleet, a_learned, a_node, a_pool, a_record, a_snapshot, a_view, an_agent, an_item, key_of

ONE_AGENT = a_fleet(a_pool("cpu", max_agents=1))
BOOT_SECONDS, LOOK_SECONDS = 180.0, 60.0


def starts_of(*items, agents=(), fleet=ONE_AGENT, ends=None, work=None, learned=None, nodes=(), problem=None):
    """Predict the starts of these items, next first, beside these agents."""
    view = a_view(*(node for _, node in agents if node), *nodes, items=items, problem=problem)
    records = tuple(record for record, _ in agents)
    snapshot = a_snapshot(view, records=records, learned={"main": learned or a_learned()}, look_every_seconds=LOOK_SECONDS)
    return bare_starts(assess(snapshot, fleet), "main", ends or {}, work or {})


def busy_agent(job="job", **facts):
    return an_agent(builds=(a_build(job, key="running", **facts),))


def an_item_of(number, job="job", **facts):
    return an_item(number, label="cpu", job=job, **facts)


def test_an_item_beside_a_free_executor_waits_for_jenkins_alone():
    found = starts_of(an_item_of(1), agents=[an_agent()])
    assert (found[1].seconds, found[1].waits_for, found[1].server) == (0.0, WaitsFor.JENKINS, "cpu")


def test_an_item_without_any_agent_waits_for_a_launch_and_a_whole_boot():
    found = starts_of(an_item_of(1))
    assert found[1].waits_for is WaitsFor.LAUNCH
    assert found[1].seconds == pytest.approx(BOOT_SECONDS, abs=LOOK_SECONDS / 2)


def test_an_item_for_which_an_agent_boots_waits_for_the_rest_of_that_boot():
    booting = a_record("i-1", launched_at=NOW - 100.0, changed_at=NOW - 100.0)
    found = starts_of(an_item_of(1), agents=[(booting, None)])
    assert found[1].waits_for is WaitsFor.BOOT
    assert found[1].seconds == pytest.approx(BOOT_SECONDS - 100.0, abs=1.0)


def test_an_item_behind_a_build_starts_when_that_is_predicted_to_end_and_not_when_its_job_usually_does():
    learned = a_learned(samples={key_of("cpu", "job"): (1000.0,) * 5})
    found = starts_of(an_item_of(1), agents=[busy_agent(elapsed_seconds=100.0)], ends={"running": 77.0}, learned=learned)
    assert (found[1].seconds, found[1].waits_for) == (77.0, WaitsFor.BUILD)


def test_a_build_whose_end_is_not_predicted_ends_as_its_job_usually_does():
    learned = a_learned(samples={key_of("cpu", "job"): (1000.0,) * 5})
    found = starts_of(an_item_of(1), agents=[busy_agent(elapsed_seconds=100.0)], ends={"another": 5.0}, learned=learned)
    assert (found[1].seconds, found[1].waits_for) == (900.0, WaitsFor.BUILD)


def test_the_second_item_waits_for_the_queue_for_as_long_as_the_first_is_predicted_to_take():
    found = starts_of(an_item_of(1), an_item_of(2), agents=[an_agent()], work={1: 240.0, 2: 9.0})
    assert [(found[item].seconds, found[item].waits_for) for item in (1, 2)] == [(0.0, WaitsFor.JENKINS), (240.0, WaitsFor.QUEUE)]


def test_items_take_executors_in_the_order_of_the_queue_and_not_of_their_numbers():
    found = starts_of(an_item_of(7), an_item_of(3), agents=[an_agent()], work={7: 100.0, 3: 100.0})
    assert (found[7].seconds, found[3].seconds) == (0.0, 100.0)


def test_an_item_of_unknown_work_takes_what_its_job_usually_takes():
    learned = a_learned(samples={key_of("cpu", "long"): (700.0,) * 5, key_of("cpu", "short"): (20.0,) * 5})
    for job, seconds in (("long", 700.0), ("short", 20.0)):
        found = starts_of(an_item_of(1, job), an_item_of(2), agents=[an_agent()], learned=learned)
        assert found[2].seconds == pytest.approx(seconds, rel=0.05)


def test_items_of_two_labels_do_not_wait_for_each_other():
    fleet = a_fleet(a_pool("cpu", max_agents=1), a_pool("gpu", max_agents=1))
    agents = [an_agent(1), an_agent(2, pool="gpu")]
    found = starts_of(an_item_of(1), an_item(2, label="gpu"), agents=agents, fleet=fleet, work={1: 500.0})
    assert [(found[item].seconds, found[item].server) for item in (1, 2)] == [(0.0, "cpu"), (0.0, "gpu")]


def test_an_item_that_does_not_count_yet_is_launched_for_by_a_look_after_it_does():
    counts, young = (starts_of(an_item_of(1, waiting_seconds=seconds))[1] for seconds in (31.0, 1.0))
    assert young.waits_for is WaitsFor.LAUNCH
    assert young.seconds == counts.seconds + LOOK_SECONDS


def test_a_pool_whose_items_count_later_launches_by_so_many_looks_later():
    slow = a_fleet(a_pool("cpu", max_agents=1, queue_maturity_seconds=200.0))
    counts, young = (starts_of(an_item_of(1, waiting_seconds=seconds), fleet=slow)[1] for seconds in (201.0, 1.0))
    assert young.seconds == counts.seconds + 3 * LOOK_SECONDS


def test_the_agent_of_an_item_that_counts_is_not_late_beside_one_that_does_not():
    two_agents = a_fleet(a_pool("cpu", max_agents=2))
    found = starts_of(an_item_of(1), an_item_of(2, waiting_seconds=1.0), fleet=two_agents, work={1: 9000.0, 2: 9000.0})
    assert found[2].seconds - found[1].seconds == LOOK_SECONDS


def test_nothing_is_said_of_an_item_that_no_executor_will_ever_take():
    found = starts_of(an_item(1, label="arm64"), an_item_of(2), agents=[an_agent()])
    assert found.keys() == {2}


def test_nothing_is_said_of_an_item_for_which_no_agent_may_be_launched():
    assert starts_of(an_item_of(1), fleet=a_fleet(a_pool("cpu"), max_usd_per_month=1e-9, max_agents=1, max_usd_per_hour=1e-9)) == {}


def test_an_executor_of_a_node_of_no_pool_is_told_from_those_of_pools():
    fleet = a_fleet(a_pool("cpu", labels=frozenset({"cpu", "linux"}), max_agents=1))
    found = starts_of(
        an_item(1, why=Wait(for_executor=True, label="linux"), label="linux"), nodes=[a_node("old-box", "linux")], fleet=fleet
    )
    assert found[1].waits_for is WaitsFor.JENKINS
    assert found[1].server != "cpu"


def test_nothing_is_said_of_a_controller_that_was_not_wholly_read():
    seen = {"agents": [an_agent()]}
    assert starts_of(an_item_of(1), **seen)
    assert starts_of(an_item_of(1), **seen, problem="it restarted while it was being read") == {}


def test_to_predict_leaves_the_facts_of_decisions_as_they_were():
    snapshot = a_snapshot(a_view(items=(an_item_of(1, waiting_seconds=1.0),)))
    situation = assess(snapshot, ONE_AGENT)
    before = replace(situation)
    bare_starts(situation, "main", {}, {1: 60.0})
    assert situation == before
    assert not situation.demands["main"].wants[0].mature
