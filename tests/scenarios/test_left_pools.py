"""Pools that leave the fleet file while agents of theirs are there: wound down like any surplus, by their last definition."""

from dataclasses import replace

import pytest

from autoscaler.config.settings import TUNING_DEFAULTS
from autoscaler.domain.facts.fleet import Pool, WarmPool
from autoscaler.domain.facts.plan import Cordon, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.report.waiting import DEFAULT_MAX_WAIT_SECONDS
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from support.builders import a_pool, an_offering
from support.left_keys import deploy, with_pools, without_pools
from support.remembered import with_tables
from support.reserving import an_idle_day, reserve, reserved
from support.timeline import Day
from support.worlds import in_memory


def a_day(*more: Pool, busy: str = "gpu", seconds: float = 600.0, others: int = 4) -> Day:
    """Two agents of gpu, of which the first builds for longer, and more of cpu."""
    pools = [a_pool(name, idle_seconds=7200.0, max_agents=6, controllers=("main",)) for name in ("cpu", "gpu")]
    day = Day(in_memory(*pools, *more)).minutes(2)
    day.queue(others, "cpu", seconds=6 * 3600.0)
    day.queue(2, busy, seconds=seconds)
    day.minutes(12)
    assert (day.agents("cpu"), day.agents("gpu")) == (others, 2 * (busy == "gpu"))
    return day


def held(day: Day) -> set[str]:
    return {held.reason for report in day.fleet.reports[-2:] for held in report.plan.held}


def records_of(day: Day, pool: str) -> list:
    return [record for record in day.fleet.state.records.values() if record.pool == pool]


def test_its_agents_are_drained_and_their_builds_end_as_ever():
    day = a_day(seconds=3600.0)
    builds = [build for build in day.jenkins.builds if build.label == "gpu"]
    deploy(day.fleet, without_pools(day.fleet.fleet, "gpu"))
    day.minutes(10)
    assert day.agents("gpu") == 2
    assert {step.reason for step in day.done(Cordon)} == {Reason.POOL_LEFT}
    day.minutes(60)
    assert [build.ended for build in builds] == [Ended.FINISHED] * 2
    assert (day.agents("gpu"), records_of(day, "gpu")) == (0, [])
    assert day.agents("cpu") == 4


def test_it_needs_no_definition_that_was_kept():
    day = a_day()
    deploy(day.fleet, without_pools(day.fleet.fleet, "gpu"))
    day.fleet.state.memory = with_tables(day.fleet.state.memory, definitions={}, left_since={}, hold_until=0.0)
    day.minutes(20)
    assert (day.agents("gpu"), records_of(day, "gpu")) == (0, [])


def test_jobs_of_a_pool_of_another_name_get_agents_of_it():
    day = a_day()
    file = day.fleet.fleet
    pools = {name: pool for name, pool in file.pools.items() if name != "gpu"} | {"new": replace(file.pools["gpu"], name="new")}
    deploy(day.fleet, with_pools(file, pools))
    [build] = day.queue(1, "gpu")
    day.minutes(20)
    assert build.ended is not None or build.started_at is not None
    assert day.agents("gpu") == 0


def test_what_is_put_back_while_it_drains_is_used_again():
    day = a_day(seconds=3600.0)
    file = day.fleet.fleet
    deploy(day.fleet, without_pools(file, "gpu"))
    day.minutes(5)
    deploy(day.fleet, file)
    builds = day.queue(2, "gpu", seconds=60.0)
    day.minutes(70)
    assert all(build.ended for build in builds)
    assert len({instance.id for instance in day.world.ec2.instances.values() if instance.tags["autoscaler:pool"] == "gpu"}) <= 4


def test_a_wrong_file_drains_nothing_for_an_hour():
    day = a_day(others=1)
    file = day.fleet.fleet
    deploy(day.fleet, without_pools(file, "gpu"))
    day.minutes(55)
    assert day.agents("gpu") == 2
    assert Reason.MOST_POOLS_LEFT in held(day)
    assert not day.done(Cordon)
    day.minutes(20)
    assert (day.agents("gpu"), records_of(day, "gpu")) == (0, [])


def test_a_wrong_file_that_is_mended_within_the_hour_costs_no_agent():
    day = a_day(others=1)
    file = day.fleet.fleet
    deploy(day.fleet, without_pools(file, "gpu", "cpu"))
    day.minutes(50)
    deploy(day.fleet, file)
    day.minutes(20)
    assert (day.agents("gpu"), day.agents("cpu")) == (2, 1)
    assert not day.done(Terminate)


def test_agents_on_a_controller_that_their_pool_does_not_serve_any_more_are_drained():
    both = a_pool("both", controllers=("main", "other"), idle_seconds=7200.0)
    day = a_day(both)
    day.world.controllers["other"].submit("page", "both", 300.0)
    day.minutes(12)
    assert day.agents("both") == 1
    file = day.fleet.fleet
    deploy(day.fleet, with_pools(file, {**file.pools, "both": replace(both, controllers=("main",))}))
    day.minutes(15)
    assert (day.agents("both"), records_of(day, "both")) == (0, [])


def test_agents_that_boot_when_their_pool_leaves_come_up_and_go():
    day = a_day(busy="cpu", others=6)
    day.queue(2, "gpu")
    day.minutes(2)
    assert day.agents("gpu") == 2
    deploy(day.fleet, without_pools(day.fleet.fleet, "gpu"))
    day.minutes(40)
    assert (day.agents("gpu"), records_of(day, "gpu")) == (0, [])


def test_stopped_agents_of_it_go():
    warm = a_pool(
        "warm", controllers=("main",), idle_seconds=120.0, warm_pool=WarmPool(min_agents=1, max_agents=2, max_age_seconds=86_400.0)
    )
    day = a_day(warm)
    day.queue(1, "warm", seconds=60.0)
    day.minutes(60)
    [record] = records_of(day, "warm")
    assert record.state == "stopped"
    deploy(day.fleet, without_pools(day.fleet.fleet, "warm"))
    day.minutes(10)
    assert records_of(day, "warm") == []
    assert not [i for i in day.world.ec2.instances.values() if i.tags["autoscaler:pool"] == "warm" and i.alive()]


@pytest.mark.parametrize("state_is_lost", [False, True])
def test_an_instance_that_ended_meanwhile_is_closed_and_counts_no_more(state_is_lost):
    day = a_day()
    deploy(day.fleet, without_pools(day.fleet.fleet, "gpu"))
    for instance in day.world.alive():
        if instance.tags["autoscaler:pool"] == "gpu":
            day.world.ec2.end(instance)
    if state_is_lost:
        day.fleet.state.memory = with_tables(day.fleet.state.memory, terminated={})
    day.world.move_to(day.world.timeline.now + 2 * 3600.0)  # EC2 has forgotten them by now
    day.minutes(80)
    assert records_of(day, "gpu") == []
    spent = day.fleet.state.memory.month.by_pool.get("gpu", 0.0)
    day.minutes(60)
    assert day.fleet.state.memory.month.by_pool.get("gpu", 0.0) == spent


def test_an_unanswered_launch_of_it_is_settled():
    day = a_day(busy="cpu", others=6)
    day.queue(2, "gpu")
    day.fleet.faults.plan(Fault("ec2 CreateFleet", after=True))
    day.minutes(1)
    deploy(day.fleet, without_pools(day.fleet.fleet, "gpu"))
    day.minutes(40)
    assert not [intent for intent in day.fleet.state.intents.values() if intent.open]
    assert (day.agents("gpu"), records_of(day, "gpu")) == (0, [])


def test_an_instance_of_it_without_a_record_is_adopted_and_drained():
    day = a_day()
    deploy(day.fleet, without_pools(day.fleet.fleet, "gpu"))
    for record in records_of(day, "gpu"):
        del day.fleet.state.records[record.instance_id]
    day.minutes(30)
    assert (day.agents("gpu"), records_of(day, "gpu")) == (0, [])


def test_what_a_person_has_stays_until_their_reservation_ends_and_goes_then():
    day = an_idle_day(offerings=(an_offering(usd_per_hour=1.0),))
    other = replace(day.fleet.fleet.pools["cpu"], name="gpu")
    reserve(day, hours=2.0)
    deploy(day.fleet, replace(day.fleet.fleet, pools={"gpu": other}))
    day.minutes(110)
    assert (len(reserved(day)), day.agents("cpu")) == (1, 1)
    day.minutes(40)
    assert (reserved(day), day.agents("cpu"), records_of(day, "cpu")) == ([], 0, [])


def test_a_job_that_waits_for_an_agent_of_a_pool_that_does_not_serve_its_controller_any_more_stops_no_function():
    """The beacon of the pool's labels has gone, so Jenkins names the agent in place of a label."""
    day = Day(in_memory(a_pool("cpu", controllers=("main", "other"), max_agents=1))).minutes(2)
    other = day.world.controllers["other"]
    first, second = (other.submit(f"job-{number}", "cpu", 1800.0, kind=Kind.PIPELINE) for number in range(2))
    day.minutes(8)
    assert (first.started_at is None, second.started_at is None) == (False, True)
    pool = replace(day.fleet.fleet.pools["cpu"], controllers=("main",))
    deploy(day.fleet, replace(day.fleet.fleet, pools={"cpu": pool}))
    day.minutes(5)
    assert (second.started_at, day.failed) == (None, 0)


def test_an_agent_of_it_that_a_person_took_offline_stays_and_status_says_so():
    day = a_day()
    [first, _] = [name for name in day.nodes() if name.startswith("gpu")]
    day.jenkins.set_offline(first, "weird disk noise", "grace")
    deploy(day.fleet, without_pools(day.fleet.fleet, "gpu"))
    day.minutes(60)
    assert [record.node for record in records_of(day, "gpu")] == [first]
    [left] = day.status().left
    assert "pool gpu left the fleet file: taken offline by grace: 'weird disk noise'; it stays" in left
    day.jenkins.toggle(first, "", "grace")
    day.minutes(30)
    assert (day.agents("gpu"), records_of(day, "gpu")) == (0, [])


def test_people_are_told_of_jobs_that_no_pool_serves_on_a_controller_whose_last_pool_left():
    """The controller has no pool whose max_wait_seconds would say what is too long: any pool of the fleet says it."""
    pools = [a_pool("cpu", controllers=("main",)), a_pool("gpu", controllers=("other",), max_wait_seconds=1200.0)]
    day = Day(in_memory(*pools)).minutes(2)
    deploy(day.fleet, without_pools(day.fleet.fleet, "cpu"))
    day.queue(1, "cpu")
    told = [message.subject for message in day.minutes(19).fleet.notifier.sent]
    assert "[f] jobs on main wait: no pool serves cpu" not in told
    assert "[f] jobs on main wait: no pool serves cpu" in [message.subject for message in day.minutes(6).fleet.notifier.sent]


def test_people_are_told_of_jobs_that_wait_though_the_fleet_file_has_no_pool_at_all():
    day = Day(in_memory(a_pool("cpu"))).minutes(2)
    deploy(day.fleet, without_pools(day.fleet.fleet, "cpu"))
    day.queue(1, "cpu")
    told = [message.subject for message in day.minutes(36).fleet.notifier.sent]
    assert "[f] jobs on main wait: no pool serves cpu" in told


def test_without_any_pool_jobs_wait_too_long_after_what_the_fleet_file_has_by_default():
    assert TUNING_DEFAULTS["max_wait_seconds"] == DEFAULT_MAX_WAIT_SECONDS
