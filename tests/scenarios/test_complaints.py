"""What users of other autoscalers saw, and what happens here. Those that fit another file stand there: kills, leaks, boots, spot, slots."""

from autoscaler.domain.facts.plan import Launch
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory


def a_day(**facts):
    return Day(
        in_memory(a_pool("cpu", **({"idle_seconds": 600.0, "max_agents": 1000} | facts)), max_agents=1000, max_launches_per_hour=5000)
    )


def calls_of(day):
    calls = []
    day.fleet.faults.meanwhile = calls.append
    return calls


def test_a_hundred_builds_do_not_launch_five_hundred_nodes():
    """Booting, connecting and just connected agents count, at every minute of a slow boot."""
    day = a_day(boot_seconds=420.0)
    day.minutes(2)
    builds = day.queue(100, seconds=1800.0)
    day.minutes(15)
    assert len(day.world.ec2.instances) <= 100
    day.minutes(90)
    assert {build.ended for build in builds} == {Ended.FINISHED}


def test_a_burst_is_one_call_to_ec2_and_not_one_a_job():
    """A peer's 122 messages became 6,833 invocations and no instance."""
    day = a_day()
    day.minutes(2)
    calls = calls_of(day)
    day.queue(100)
    day.minutes(2)
    assert calls.count("ec2 CreateFleet") == 1


def test_a_throttled_account_is_left_alone_for_a_while():
    day = a_day()
    day.minutes(2)
    day.fleet.faults.plan(Fault("ec2 CreateFleet", status=503, code="RequestLimitExceeded"))
    calls = calls_of(day)
    builds = day.queue(20, seconds=60.0)
    day.minutes(1)
    assert calls.count("ec2 CreateFleet") == 1
    day.minutes(20)
    assert calls.count("ec2 CreateFleet") <= 3
    assert {build.ended for build in builds} == {Ended.FINISHED}


def test_a_missed_pass_costs_a_minute_and_never_a_job():
    """Peers that live on events lost 9 % of them in a week; a queue is still there at the next look."""
    day = a_day()
    day.minutes(2)
    builds = day.queue(5, seconds=60.0)
    for _ in range(10):  # ten minutes without any pass
        day.world.move_to(day.world.timeline.now + 60)
    day.minutes(12)
    assert {build.ended for build in builds} == {Ended.FINISHED}


def test_an_or_of_labels_scales_up():
    day = Day(in_memory(a_pool("cpu"), a_pool("gpu")))
    day.minutes(2)
    [build] = day.queue(1, label="gpu||tpu", seconds=60.0)
    day.minutes(8)
    assert (build.ended, day.done(Launch)[0].pool) == (Ended.FINISHED, "gpu")


def test_idle_executors_that_do_not_fit_keep_nobody_waiting():
    """A peer counted any idle executor of a shared label, and waited half an hour."""
    linux = a_pool("cpu", labels=frozenset({"linux"}), min_agents=2)
    day = Day(in_memory(linux, a_pool("gpu", labels=frozenset({"linux", "gpu"}))))
    day.minutes(8)
    [build] = day.queue(1, label="linux&&gpu", seconds=60.0)
    day.minutes(8)
    assert build.ended is Ended.FINISHED


def test_a_pool_that_leaves_the_fleet_file_is_named_and_its_builds_go_on():
    day = Day(in_memory(a_pool("cpu"), a_pool("old", idle_seconds=600.0)))
    day.minutes(2)
    [build] = day.queue(1, label="old", seconds=1200.0)
    day.minutes(8)
    day.fleet.fleet.pools.pop("old")
    day.minutes(20)
    assert build.ended is Ended.FINISHED
    assert "most-pools-left" in {str(held.reason) for held in day.fleet.reports[-1].plan.held}, "all agents lost their pool at once"


def test_when_nothing_happens_the_plan_says_why():
    """The most asked question of a peer's users: "why isn't it scaling up?" """
    day = Day(in_memory(a_pool("cpu", max_agents=1, executors=1)))
    day.minutes(2).queue(3, seconds=3600.0)
    day.queue(1, label="tpu")
    day.minutes(4)
    day.fleet.scale_up()
    held = {str(h.reason): h.detail for h in day.fleet.reports[-1].plan.held}
    assert held["max-agents"] == "one more would make 2 agents in pool cpu, the limit is 1"
    assert "no pool of main serves tpu" in held["unservable"]
