"""Time-lines of teams whose shares are smaller than an agent, and of room that is kept for somebody who goes first."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import Team
from autoscaler.domain.facts.plan import Cordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from support.builders import a_pool, an_offering
from support.reserving import reserve
from support.timeline import Day
from support.worlds import a_world_node, in_memory

CPU, WEB, OPS = "cpu", "web", "ops"
NONE_DIFFER: dict[str, float] = {}


def a_day(*pools, weights=NONE_DIFFER, **limits):
    """Each pool is of a team of its own; a person has a node of each label, offline, so that Jenkins names labels to jobs that wait."""
    fleet = in_memory(*pools, **limits)
    teams = {name: Team(name=name, pools=frozenset({name}), weight=(weights or {}).get(name, 1.0)) for name in fleet.fleet.pools}
    fleet.fleet = replace(fleet.fleet, teams=teams if weights is not None else {})
    day = Day(fleet)
    for pool in pools:
        day.jenkins.nodes[f"old-{pool.name}"] = a_world_node(f"old-{pool.name}", pool.name, connected=False)
    return day


def a_pool_of(name, usd=3.0, **facts):
    offering = an_offering(f"{name}.large", usd_per_hour=usd)
    return a_pool(name, offerings=(offering,), queue_maturity_seconds=0.0, boot_seconds=120.0, idle_seconds=300.0, **facts)


def keep_queued(day, builds, label, seconds, count=3):
    """There is always more of it."""
    while sum(build.started_at is None for build in builds) < count:
        builds += day.queue(1, label, seconds=seconds)


def longest_wait(day, builds):
    return max((build.started_at or day.world.timeline.now) - build.queued_at for build in builds)


def not_killed(day):
    assert {build.killed_by for build in day.jenkins.builds} == {""}


def handed_over(day):
    return sum(step.reason is Reason.HANDS_OVER for step in day.done(Cordon))


@pytest.mark.parametrize(
    ("usd", "limits"), [(3.0, {"max_agents": 1}), (6.0, {"max_usd_per_hour": 6.5})], ids=["one agent", "one as dear as two"]
)
@pytest.mark.long
def test_a_team_whose_share_is_smaller_than_an_agent_gets_its_turn_within_the_hour(usd, limits):
    day = a_day(a_pool_of(CPU), a_pool_of(WEB, usd), **limits)
    cpu, web = [], []
    for minute in range(8 * 60):
        keep_queued(day, cpu, CPU, 900.0)
        web += day.queue(1, WEB, seconds=300.0) if minute % 60 == 20 else []
        day.minutes(1)
    assert longest_wait(day, web) < 3600.0
    assert sum(build.ended is Ended.FINISHED for build in cpu) > 20
    not_killed(day)


@pytest.mark.long
def test_two_teams_whose_queues_never_end_take_turns_of_half_an_hour_and_no_faster():
    day = a_day(a_pool_of(CPU), a_pool_of(WEB), max_agents=1)
    cpu, web, hours = [], [], 10
    for minute in range(hours * 60):
        keep_queued(day, cpu, CPU, 300.0)
        keep_queued(day, web, WEB, 300.0) if minute >= 60 else None
        day.minutes(1)
    done = [sum(build.ended is Ended.FINISHED for build in builds) for builds in (cpu, web)]
    assert min(done) > 0.3 * sum(done)
    assert (hours - 1) <= handed_over(day) <= 2 * (hours - 1)
    assert max(longest_gap(builds, day) for builds in (cpu[12:], web)) < 3600.0
    not_killed(day)


def longest_gap(builds, day):
    """How long none of these ran."""
    times = sorted(build.started_at for build in builds if build.started_at)
    return max(after - before for before, after in zip(times, [*times[1:], day.world.timeline.now], strict=True))


@pytest.mark.long
def test_three_teams_that_share_one_agent_take_turns():
    day = a_day(a_pool_of(CPU), a_pool_of(WEB), a_pool_of(OPS), max_agents=1)
    builds = {CPU: [], WEB: [], OPS: []}
    for _ in range(9 * 60):
        for label, mine in builds.items():
            keep_queued(day, mine, label, 300.0)
        day.minutes(1)
    done = {label: sum(build.ended is Ended.FINISHED for build in mine) for label, mine in builds.items()}
    assert min(done.values()) > 0.2 * sum(done.values())
    not_killed(day)


@pytest.mark.long
def test_a_team_of_twice_the_weight_keeps_its_turn_for_twice_as_long():
    day = a_day(a_pool_of(CPU), a_pool_of(WEB), weights={CPU: 2.0}, max_agents=1)
    cpu, web = [], []
    for _ in range(12 * 60):
        keep_queued(day, cpu, CPU, 300.0)
        keep_queued(day, web, WEB, 300.0)
        day.minutes(1)
    cpu_done, web_done = (sum(build.ended is Ended.FINISHED for build in builds) for builds in (cpu, web))
    assert 1.4 < cpu_done / web_done < 2.6


def test_the_only_agent_of_a_label_is_handed_over_to_a_higher_priority():
    day = a_day(a_pool_of(CPU), a_pool_of(WEB, priority=10), weights=None, max_agents=1)
    cpu, web = [], []
    for minute in range(4 * 60):
        keep_queued(day, cpu, CPU, 900.0)
        web += day.queue(1, WEB, seconds=300.0) if minute % 60 == 20 else []
        day.minutes(1)
    assert longest_wait(day, web) < 1800.0
    assert sum(build.ended is Ended.FINISHED for build in cpu) > 8
    not_killed(day)


def small_builds(day, hours=3):
    builds = []
    for _ in range(hours * 60):
        keep_queued(day, builds, CPU, 1200.0, count=7)
        day.minutes(1)
    return sum(build.ended is Ended.FINISHED for build in builds)


@pytest.mark.parametrize("priority", [0, 5])
@pytest.mark.parametrize("stays", ["minimum", "warm", "reserved"])
def test_no_room_is_kept_for_what_cannot_fit_beside_what_stays(stays, priority):
    base = {"minimum": {"min_agents": 1}, "warm": {"warm_executors": 1}, "reserved": {}}[stays]
    pools = a_pool_of("base", **base), a_pool_of("gpu", 8.0, priority=priority), a_pool_of(CPU, 1.0)
    day = a_day(*pools, weights=None if priority else NONE_DIFFER, max_usd_per_hour=10.0, max_launches_per_hour=1000).minutes(5)
    if stays == "reserved":
        reserve(day, "base", hours=48.0)
        day.minutes(6)
    [big] = day.queue(1, "gpu", seconds=600.0)
    assert small_builds(day) > 40
    assert big.started_at is None or stays == "warm"  # an idle agent is handed over: what is warm waits for its turn


def test_room_is_kept_for_what_fits_beside_what_stays():
    pools = a_pool_of("base", min_agents=1), a_pool_of("gpu", 7.0), a_pool_of(CPU, 1.0)
    day = a_day(*pools, max_usd_per_hour=10.0, max_launches_per_hour=1000).minutes(5)
    early = day.queue(7, CPU, seconds=1200.0)
    day.minutes(5)
    [big] = day.queue(1, "gpu", seconds=600.0)
    assert small_builds(day) > 30
    assert big.ended is Ended.FINISHED
    assert {build.ended for build in early} == {Ended.FINISHED}
