"""Each rival behaves as its source says, quirks included."""

import pytest

from autoscaler.domain.facts.fleet import Market
from autoscaler.errors import ConfigError
from autoscaler_workbench.experiment.policy.perfect_forecast import forecast_trace
from autoscaler_workbench.experiment.rivals import RIVALS
from autoscaler_workbench.simulate.traces import Row, Trace
from support.builders import an_offering
from support.rivalry import Alone


def a_trace(*rows):
    """Rows of (queued at, seconds)."""
    return Trace(
        name="t",
        start_at=0.0,
        judged_at=0.0,
        dropped=0,
        rows=tuple(Row(queued_at=at, duration_seconds=s, label="cpu", job="j", run="", stage="", depends_on="") for at, s in rows),
    )


# Replayed from NodeProvisioner's source: executors busy before, jobs, and when the first and the last agent is asked for.
BELIEVED = [(0, 1, 10, 10), (4, 1, 200, 200), (0, 5, 10, 160), (4, 5, 20, 170), (4, 10, 10, 160), (4, 50, 10, 150)]


@pytest.mark.parametrize(("online", "burst", "first", "last"), BELIEVED)
def test_jenkins_core_believes_a_queue_slowly(online, burst, first, last):
    alone = Alone("node-provisioner", online=online)
    alone.world.ec2.boot_seconds = lambda _template: 103.0  # 120 s until it is connected, as in the replay
    alone.submit(online)
    alone.submit(burst)
    alone.next_tick += 10.0
    alone.lives(300)
    assert alone.asked_at(1) == first
    assert alone.asked_at(burst) == pytest.approx(last, abs=20)


def test_the_original_handler_launches_nothing_while_one_node_is_idle():
    alone = Alone("mxnet-ci", online=1, executors=2, settings={"warm": 1})
    alone.jenkins.quieting_down = True  # so that the jobs wait beside an idle node
    alone.submit(10)
    assert alone.lives(601).launched == []


def test_the_original_handler_takes_what_is_idle_at_its_look_however_short():
    alone = Alone("mxnet-ci", online=3, settings={"warm": 0})
    assert alone.lives(1).agents == 0


def test_the_original_handler_loses_a_look_when_its_warm_pool_is_larger_than_what_is_idle():
    alone = Alone("mxnet-ci", online=3, executors=2, settings={"warm": 4})
    assert alone.lives(601).agents == 3


def test_the_original_handler_launches_twenty_a_look():
    alone = Alone("mxnet-ci")
    alone.submit(50)
    assert (len(alone.lives(301).launched), len(alone.lives(300).launched)) == (20, 40)


def test_buildkites_scaler_wants_what_is_scheduled_and_runs():
    alone = Alone("buildkite", executors=2)
    alone.submit(5)
    assert len(alone.lives(9).launched) == 3


def test_buildkites_scaler_takes_a_fleet_that_boots_for_one_that_does_not_report():
    alone = Alone("buildkite")
    alone.submit(3)
    assert len(alone.lives(90).launched) > 3


def test_buildkites_stack_waits_five_minutes_between_two_scale_outs():
    alone = Alone("buildkite-stack")
    alone.submit(1)
    alone.lives(15)
    alone.submit(3)
    alone.lives(400)
    assert alone.asked_at(1) == 0.0
    assert alone.asked_at(2) >= 300.0


def test_buildkites_stack_lets_agents_leave_after_ten_idle_minutes():
    alone = Alone("buildkite-stack", online=2)
    idle_already = alone.world.timeline.now - max(agent.node.idle_since for agent in alone.pool.agents.values())
    assert alone.lives(600 - idle_already - 1).agents > 0
    assert alone.lives(400).agents == 0


def test_a_runner_is_launched_for_every_job_that_still_waits_after_thirty_seconds():
    alone = Alone("github-runners", executors=4)
    alone.submit(3)
    alone.lives(60)
    assert alone.launched == [30.0, 30.0, 30.0]


def test_a_runner_that_was_taken_meanwhile_is_not_launched_for_again():
    alone = Alone("github-runners", online=1)
    alone.submit(1)
    assert alone.lives(60).launched == []


def test_the_idle_quota_is_used_up_by_busy_runners():
    alone = Alone("github-runners", online=4, settings={"idle_count": 2})
    alone.submit(4, seconds=1e6)
    alone.lives(1)
    newest = sorted(alone.pool.agents.values(), key=lambda agent: -agent.since)[:2]
    for agent in alone.pool.agents.values():
        if agent not in newest:
            alone.jenkins.abort(next(iter(agent.node.builds.values())))
    assert alone.lives(300).agents == 2


def test_the_ec2_plugin_divides_by_the_executors_and_rounds_down():
    alone = Alone("ec2-plugin", executors=2)
    alone.submit(5)
    assert alone.lives(15).launched == [0.0, 0.0, 10.0]  # the fifth job waits for the next look


def test_the_ec2_plugin_ends_what_was_idle_for_half_an_hour():
    alone = Alone("ec2-plugin", online=2)
    assert alone.lives(900).agents == 2
    assert alone.lives(1000).agents == 0


def test_the_ec2_fleet_plugin_never_scales_down_by_default():
    assert Alone("ec2-fleet-plugin", online=2).lives(20_000).agents == 2


def test_the_ec2_fleet_plugin_launches_twice_for_what_boots_slowly():
    alone = Alone("ec2-fleet-plugin", boot_seconds=400.0)
    alone.submit(1)
    assert alone.lives(185).launched == [0.0, 180.0]


def test_target_tracking_believes_three_minutes_and_shrinks_after_fifteen():
    alone = Alone("target-tracking")
    jobs = alone.submit(4)
    alone.lives(400)
    assert alone.asked_at(1) == 120.0
    for job in jobs:
        alone.jenkins.abort(job)
    assert alone.lives(8 * 60).agents == 4  # the backlog has been gone for some eleven minutes
    assert alone.lives(9 * 60).agents < 4


def test_target_tracking_may_kill_a_build():
    alone = Alone("target-tracking", online=6)
    alone.submit(6, seconds=3600.0)
    alone.lives(3600)
    assert alone.killed() > 0


def test_gitlab_makes_a_machine_for_every_job_and_drops_it_as_soon_as_it_is_idle():
    alone = Alone("gitlab", executors=4)
    alone.submit(3, seconds=30.0)
    assert len(alone.lives(1).launched) == 3
    assert alone.lives(600).agents == 0


def test_gitlab_keeps_idle_machines_and_never_looks_at_the_queue():
    alone = Alone("gitlab", settings={"idle_count": 2})
    assert alone.lives(400).agents == 2
    alone.submit(10)
    assert alone.lives(11).agents == 4  # two are busy now, two are to be idle; eight jobs wait


def test_the_cluster_autoscaler_scales_nothing_down_for_ten_minutes_after_a_scale_up():
    alone = Alone("cluster-autoscaler", online=3, settings={"unneeded_seconds": 60.0})
    alone.submit(4)
    alone.lives(5)
    for build in list(alone.jenkins.builds)[:3]:
        alone.jenkins.abort(build)
    assert alone.lives(590).agents == 4
    assert alone.lives(30).agents == 1


def test_karpenter_packs_and_ends_what_is_empty_a_tenth_at_a_time():
    alone = Alone("karpenter", executors=4)
    jobs = alone.submit(9)
    assert len(alone.lives(200).launched) == 3
    for job in jobs:
        alone.jenkins.abort(job)
    alone.lives(26)
    assert alone.agents == 1 or alone.lives(30).agents == 0


def test_reactive_has_as_many_executors_as_builds():
    alone = Alone("reactive", executors=2)
    alone.submit(5)
    assert len(alone.lives(1).launched) == 3
    assert len(alone.lives(600).launched) == 3


def test_a_static_fleet_is_a_share_of_the_peak():
    trace = a_trace((0, 100), (10, 100), (20, 100), (30, 100), (500, 100))
    alone = Alone("static", settings={"share": 0.5}, foreseen=forecast_trace(trace, {"cpu": "cpu"}))
    assert alone.lives(5000).agents == 2


def test_a_static_fleet_replaces_what_it_loses():
    alone = Alone("static", settings={"share": 1.0}, foreseen=forecast_trace(a_trace((0, 100), (10, 100)), {"cpu": "cpu"}))
    alone.world.ec2.end(next(iter(alone.world.ec2.instances.values())))
    assert alone.agents == 1
    assert alone.lives(600).agents == 2


def test_where_spot_is_short_a_rival_too_asks_for_what_its_pool_names_next():
    spot, demand = an_offering(market=Market.SPOT), an_offering()
    alone = Alone("karpenter", offerings=(spot, demand))
    alone.world.ec2.capacity[spot.key] = 2
    alone.submit(3)
    alone.lives(60)
    assert [instance.market for instance in alone.world.ec2.instances.values()] == ["spot", "spot", "on-demand"]


def test_the_clairvoyant_lets_nobody_wait():
    trace = a_trace((1_700_002_000.0, 100), (1_700_002_010.0, 300))
    alone = Alone("clairvoyant", foreseen=forecast_trace(trace, {"cpu": "cpu"}))
    alone.lives(1000)
    builds = alone.submit(1, seconds=100) + alone.submit(1, seconds=300)
    alone.lives(1)
    assert [build.started_at for build in builds] == [build.buildable_at for build in builds]
    assert alone.lives(2000).agents == 0


def test_the_clairvoyant_pays_for_nobody_long_before_a_pools_first_job():
    alone = Alone("clairvoyant", foreseen=forecast_trace(a_trace((1_700_003_000.0, 100)), {"cpu": "cpu"}))
    assert alone.lives(1000).agents == 0
    assert alone.lives(990).agents == 1


@pytest.mark.parametrize("name", list(RIVALS))
def test_every_rival_says_where_it_comes_from_and_has_a_knob(name):
    rival = RIVALS[name]
    field, values = rival.KNOB
    assert len(values) >= 4
    assert all(getattr(rival.of({field: value}, 1), field) == value for value in values)


def test_a_setting_that_a_rival_does_not_have_is_refused():
    with pytest.raises(ConfigError, match=r"--set speed: is no setting of gitlab \(idle_count, idle_seconds"):
        RIVALS["gitlab"].of({"speed": 1}, 1)


def test_what_a_rival_remembers_is_no_setting():
    with pytest.raises(
        ConfigError, match=r"--set _added_at: is no setting of cluster-autoscaler \(unneeded_seconds, delay_after_add_seconds\)"
    ):
        RIVALS["cluster-autoscaler"].of({"_added_at": 1}, 1)
