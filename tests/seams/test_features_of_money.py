"""Features that limit what is launched, and that decide how machines are bought.

Tried as in `test_features.py`: from the text of a fleet file to the effect, at the minute when it is due.
"""

import pytest

from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from support.deployed import event
from support.scene import limits, scene

feature = pytest.mark.feature


# Limits


@feature("domain/launch/budget.py", "config/sections.py")
def test_a_teams_limit_holds_its_jobs_alone():
    pools = "{a: {$pool, executors: 1, max_agents: 5}, b: {$pool, executors: 1, max_agents: 5}}"
    with scene(f"teams: {{red: {{pools: [a], max_agents: 1}}}}\npools: {pools}") as here:
        for number in range(3):
            here.submit(f"a-{number}", "a", 20)
            here.submit(f"b-{number}", "b", 20)
        here.minutes(3)
        assert (len(here.machines("a")), len(here.machines("b"))) == (1, 3)
        assert here.subjects() == ["the limit max_agents of team red is reached"]


@feature("domain/launch/turns.py", "config/sections.py")
def test_a_team_of_twice_the_weight_gets_twice_the_agents():
    pools = "{a: {$pool, executors: 1, max_agents: 6}, b: {$pool, executors: 1, max_agents: 6}}"
    teams = "{red: {pools: [a], weight: 2}, blue: {pools: [b]}}"
    with scene(limits(max_agents=6) + f"teams: {teams}\npools: {pools}") as here:
        for name in ("b", "a"):
            for number in range(6):
                here.submit(f"{name}-{number}", name, 20)
        here.minutes(1)
        assert (len(here.machines("a")), len(here.machines("b"))) == (4, 2)


@feature("domain/launch/turns.py", "domain/scale_in/make_room.py")
def test_an_agent_of_a_lower_priority_hands_over_at_the_first_look_and_goes_once_its_build_has_ended():
    pools = "{a: {$pool, executors: 1, max_agents: 2}, b: {$pool, executors: 1, max_agents: 2, priority: 5}}"
    with scene(limits(max_agents=2) + f"pools: {pools}") as here:
        slow = [here.submit(f"a-{number}", "a", 6) for number in range(6)]
        here.minutes(4)
        urgent = here.submit("b", "b", 1)
        here.minutes(1)
        [leaving] = [node for node in here.nodes() if node.temporarily_offline]
        here.until(lambda: not leaving.builds, within=7)
        assert all(build.ended is not Ended.KILLED for build in slow)
        here.minutes(2)
        assert len(here.machines("b")) == 1
        here.minutes(2)
        assert urgent.started_at


@feature("domain/facts/metering.py", "domain/launch/budget.py", "domain/scale_in/make_room.py")
def test_once_the_hours_of_a_day_are_used_an_agent_takes_no_other_build_and_its_build_goes_on():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 2, max_hours_per_day: 1}}") as here:
        builds = [here.submit(f"job-{number}", "cpu", 25) for number in range(4)]
        here.minutes(60)
        assert [node.offline for node in here.nodes()] == [False]
        here.minutes(2)
        assert [node.offline for node in here.nodes()] == [True]
        assert here.subjects()[-1] == "the day's hours of pool cpu are used"
        here.until(lambda: builds[2].ended, within=20)
        here.minutes(2)
        assert (builds[2].ended, builds[3].node, here.machines()) == (Ended.FINISHED, None, [])


@feature("domain/facts/metering.py", "domain/launch/budget.py", "domain/scale_in/make_room.py", "config/prices.py")
def test_once_a_teams_money_is_spent_its_agents_take_no_other_build_and_those_of_others_do():
    red = "{red: {pools: [a], max_usd_per_month: 6.1}}"
    pools = "{a: {$pool, executors: 1, max_agents: 1, usd_per_hour: 6, volume_gib: 0}, b: {$pool, executors: 1, max_agents: 1}}"
    with scene(f"teams: {red}\npools: {pools}") as here:
        for name in ("a", "b"):
            here.submit(name, name, 66)
        here.minutes(61)
        assert {node.name[0]: node.offline for node in here.nodes()} == {"a": False, "b": False}
        here.minutes(2)
        assert {node.name[0]: node.offline for node in here.nodes()} == {"a": True, "b": False}
        assert here.subjects() == ["the month's limit of team red is reached"]


@feature("domain/facts/metering.py", "domain/launch/budget.py", "domain/scale_in/make_room.py")
@pytest.mark.parametrize("what", ["stop", "launch-nothing"])
def test_once_the_months_money_is_spent_nothing_is_launched_and_agents_leave_or_stay_in_use_as_the_file_says(what):
    """A launch reserves an hour: here it is all of the month's money, less some cents."""
    money = limits(max_usd_per_month=6.1, at_month_limit=what)
    with scene(f"{money}pools: {{cpu: {{$pool, executors: 1, max_agents: 2, usd_per_hour: 6, volume_gib: 0, idle_seconds: 300}}}}") as here:
        first = here.submit("first", "cpu", 64)
        here.minutes(61)
        assert [node.offline for node in here.nodes()] == [False]
        here.minutes(2)
        assert [node.offline for node in here.nodes()] == [what == "stop"]
        assert "the month's limit is reached" in here.subjects()
        second = here.submit("second", "cpu", 2)
        here.until(lambda: first.ended, within=8)
        here.minutes(2)
        assert (first.ended, len(here.ever())) == (Ended.FINISHED, 1)
        assert (len(here.machines()), bool(second.started_at)) == ((0, False) if what == "stop" else (1, True))


# Purchases


@feature("domain/launch/purchase.py", "domain/situation/pool_view.py", "domain/launch/backoff.py")
def test_on_demand_is_not_asked_for_before_a_job_has_waited_for_the_patience_after_its_maturity():
    market = "market: spot-then-on-demand, queue_maturity_seconds: 30, spot_patience_seconds: 240"
    with scene(f"pools: {{cpu: {{$pool, executors: 1, max_agents: 4, {market}}}}}") as here:
        here.world.ec2.capacity["c5.xlarge//spot"] = 0
        here.submit("job", "cpu", 5)
        here.minutes(4)
        assert here.machines() == []
        here.minutes(1)
        assert [machine.market for machine in here.machines()] == ["on-demand"]


@feature("domain/launch/purchase.py", "domain/situation/pool_view.py")
@pytest.mark.parametrize(("minutes", "market"), [(2, "spot"), (6, "on-demand")])
def test_a_job_that_waited_for_longer_than_its_maturity_and_the_patience_gets_an_on_demand_agent(minutes, market):
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 4, market: spot-then-on-demand, spot_patience_seconds: 180}}") as here:
        here.minutes(1)
        here.order("hold", pool="cpu", minutes=minutes)
        here.submit("job", "cpu", 5)
        here.minutes(minutes)
        assert [machine.market for machine in here.machines()] == [market]


@feature("domain/launch/purchase.py", "domain/situation/pool_view.py")
def test_spot_is_asked_for_first_and_on_demand_is_there_for_a_job_that_spot_cannot_serve():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 4, market: spot-then-on-demand, spot_patience_seconds: 90}}") as here:
        here.submit("job", "cpu", 20)
        here.minutes(1)
        assert [machine.market for machine in here.machines()] == ["spot"]
        here.world.ec2.capacity["c5.xlarge//spot"] = 0
        here.submit("job", "cpu", 20)
        here.minutes(2)
        assert [machine.market for machine in here.machines()] == ["spot", "on-demand"]


@feature("control/outcomes.py", "domain/repair/boots.py", "entry/instance_events.py")
def test_an_agent_that_ec2_takes_back_is_cordoned_at_once_and_its_build_runs_again_elsewhere():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 4, market: spot, rerun: {}}}") as here:
        here.define("job", "cpu", 20, "REF")
        first = here.start("job", REF="main")
        here.minutes(4)
        machine = here.machine_of(first)
        here.world.ec2.interrupt(machine)
        notice = event("spot_interruption")
        here.here.call("instance_events", notice | {"detail": notice["detail"] | {"instance-id": machine.id}})
        assert here.node_of(machine).temporarily_offline
        here.until(lambda: first.ended, within=3)
        here.minutes(2)
        [_, again] = here.builds_of("job")
        assert dict(again.started_with.parameters) == {"REF": "main"}
        here.minutes(4)
        assert again.started_at


@feature("domain/situation/pool_view.py", "adapters/ec2.py")
@pytest.mark.parametrize(("allocation", "first"), [("in-order", "c5.2xlarge"), ("by-price", "c5.xlarge")])
def test_the_instance_type_is_the_first_one_written_or_the_cheapest_one(allocation, first):
    pool = (
        f"launch_template: t, instance_types: [c5.2xlarge, c5.xlarge], executors: 1, max_agents: 4, market: spot, allocation: {allocation}"
    )
    with scene(f"pools: {{cpu: {{{pool}}}}}") as here:
        here.submit("job", "cpu", 5)
        here.minutes(1)
        assert [machine.instance_type for machine in here.machines()] == [first]


@feature("domain/launch/backoff.py")
def test_if_ec2_lacks_a_machine_the_next_offering_is_asked_for_and_the_first_one_again_some_minutes_later():
    with scene("pools: {cpu: {launch_template: t, instance_types: [c5.xlarge, m5.xlarge], executors: 1, max_agents: 4}}") as here:
        here.world.ec2.capacity["c5.xlarge//on-demand"] = 0
        here.submit("job", "cpu", 30)
        here.minutes(1)
        here.submit("job", "cpu", 30)
        here.minutes(1)
        here.world.ec2.capacity.clear()
        assert [machine.instance_type for machine in here.machines()] == ["m5.xlarge", "m5.xlarge"]
        here.minutes(3)
        here.submit("job", "cpu", 30)
        here.minutes(1)
        assert [machine.instance_type for machine in here.machines()] == ["m5.xlarge", "m5.xlarge", "c5.xlarge"]


_RESERVED = "labels: [gpu], executors: 1, usd_per_hour: 30, launch_template: b, instance_types: [p4d.24xlarge]"
_BOUGHT = "gpu: {executors: 1, usd_per_hour: 30, launch_template: g, instance_types: [p4d.24xlarge], max_agents: 2}"


@feature("config/prices.py", "domain/situation/pool_view.py")
def test_machines_that_are_paid_for_anyway_are_used_before_others_are_bought():
    capacity = "capacity_reservation: {id: cr-0123456789abcdef0}"
    with scene(f"pools: {{paid: {{{_RESERVED}, max_agents: 1, {capacity}}}, {_BOUGHT}}}") as here:
        here.minutes(1)
        for number in range(2):
            here.submit(f"job-{number}", "gpu", 30)
        here.minutes(1)
        assert (len(here.machines("paid")), len(here.machines("gpu"))) == (1, 1)


@feature("domain/situation/pool_view.py", "domain/scale_in/surplus.py", "domain/learn.py")
def test_a_block_takes_builds_until_its_end_is_as_near_as_its_builds_were_long_and_none_is_lost_with_it():
    """EC2 ends its machines at 09:14. Until a build has ended, builds are assumed to take an hour: the block would close at 08:14."""
    capacity = "capacity_reservation: {id: cr-0123456789abcdef0, kind: block, ends_at: '2027-01-15T09:44Z'}"
    with scene(f"pools: {{block: {{{_RESERVED}, max_agents: 1, idle_seconds: 7200, {capacity}}}, {_BOUGHT}}}") as here:
        here.minutes(1)
        builds = []
        for _ in range(7):
            builds.append(here.submit("job", "gpu", 4))
            here.minutes(9)
        assert {build.node for build in builds} == {builds[0].node}
        assert here.machine_of(builds[0]).tags["autoscaler:pool"] == "block"
        here.minutes(5)
        assert [node.offline for node in here.nodes()] == [False]
        here.minutes(2)
        assert [reason for reason, _ in here.steps("cordon")] == ["capacity-ends"]
        last = here.submit("job", "gpu", 4)
        here.minutes(5)
        assert here.machine_of(last).tags["autoscaler:pool"] == "gpu"
        assert not any(build.killed_by for build in here.jenkins.builds)


@feature("domain/scale_in/surplus.py", "domain/situation/pool_view.py", "config/prices.py")
def test_a_reservation_is_launched_into_from_its_first_minute_and_takes_no_build_from_its_last_one_on():
    capacity = "capacity_reservation: {id: cr-0123456789abcdef0, starts_at: '2027-01-15T08:05Z', ends_at: '2027-01-15T08:12Z'}"
    with scene(f"pools: {{paid: {{{_RESERVED}, max_agents: 1, {capacity}}}}}") as here:
        build = here.submit("job", "gpu", 10)
        here.minutes(4)
        assert here.machines() == []
        here.minutes(1)
        assert len(here.machines()) == 1
        here.minutes(6)
        assert [node.offline for node in here.nodes()] == [False]
        here.minutes(1)
        assert [reason for reason, _ in here.steps("cordon")] == ["capacity-ends"]
        here.until(lambda: build.ended, within=8)
        here.minutes(2)
        assert (build.ended, here.machines()) == (Ended.FINISHED, [])
