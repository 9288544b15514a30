"""Features that people use: orders, reservations, runs, and builds that are started again.

Tried as in `test_features.py`: from the text of a fleet file to the effect, at the minute when it is due.
"""

import pytest

from autoscaler_workbench.fakes.world.cards import Cards
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from support.deployed import NOON, essential_environment, event
from support.scene import one_pool, scene

feature = pytest.mark.feature


# Orders, and their end


@feature("control/operate.py", "domain/commands.py", "domain/facts/orders.py")
def test_a_hold_keeps_its_pool_from_launching_until_the_minute_in_which_it_ends():
    pools = "pools: {cpu: {$pool, executors: 1, max_agents: 4}, gpu: {$pool, executors: 1, max_agents: 4}}"
    with scene(pools) as here:
        here.minutes(1)
        here.order("hold", pool="cpu", minutes=5)
        here.submit("job", "cpu", 1)
        here.submit("job", "gpu", 1)
        here.minutes(4)
        assert (here.machines("cpu"), len(here.machines("gpu"))) == ([], 1)
        here.minutes(1)
        assert len(here.machines("cpu")) == 1


@feature("control/operate.py", "domain/situation/demand.py")
def test_jobs_of_a_label_on_hold_get_no_agent_until_somebody_resumes():
    with scene(one_pool("labels: [x86, fast]")) as here:
        here.minutes(1)
        here.order("hold", label="fast", until_resumed=True)
        here.submit("job", "fast", 1)
        here.minutes(4)
        assert here.machines() == []
        here.order("resume", label="fast")
        here.minutes(1)
        assert len(here.machines()) == 1


@feature("control/operate.py", "domain/situation/situation.py")
def test_a_frozen_fleet_repairs_nothing_until_the_freeze_ends():
    with scene(one_pool("idle_seconds: 60")) as here:
        build = here.submit("job", "cpu", 30)
        here.until(lambda: build.started_at, within=5)
        here.order("hold", freeze=True, minutes=6)
        here.jenkins.delete_node(build.node)
        here.minutes(5)
        assert len(here.machines()) == 1
        here.minutes(2)
        assert here.machines() == []


@feature("control/operate.py", "domain/facts/orders.py", "domain/commands.py")
def test_a_minimum_that_a_person_sets_is_launched_at_the_next_look_and_gone_at_the_look_after_its_minutes():
    with scene(one_pool("idle_seconds: 60")) as here:
        here.minutes(1)
        here.order("set", pool="cpu", min_agents=2, minutes=6)
        here.minutes(1)
        assert len(here.machines()) == 2
        here.minutes(4)
        assert len(here.machines()) == 2
        here.minutes(1)
        assert here.machines() == []


@feature("entry/scheduled.py", "domain/commands.py", "domain/scale_in/surplus.py")
def test_agents_that_a_person_launches_are_kept_for_the_minutes_that_they_said():
    with scene(one_pool("idle_seconds: 60")) as here:
        here.minutes(1)
        here.here.call("scale_up", {"pool": "cpu", "count": 2, "keep_minutes": 10, "reason": "a release"})
        assert len(here.machines()) == 2
        here.minutes(9)
        assert len(here.machines()) == 2
        here.minutes(2)
        assert here.machines() == []


@feature("domain/commands.py", "domain/gate.py", "domain/report/problems.py")
def test_an_agent_that_a_person_drains_ends_after_its_build_and_people_are_told_once_it_takes_too_long():
    with scene(one_pool("drain_timeout_seconds: 300"), essential_environment()) as here:
        build = here.submit("job", "cpu", 20)
        here.until(lambda: build.started_at, within=5)
        here.order("drain", nodes=[build.node])
        assert here.node_of(here.machine_of(build)).temporarily_offline
        here.minutes(5)
        assert here.subjects() == []
        here.minutes(2)
        assert here.subjects() == [f"{build.node} of cpu: drains too long"]
        here.until(lambda: build.ended, within=20)
        here.minutes(2)
        assert (build.ended, here.machines()) == (Ended.FINISHED, [])


@feature("control/operate.py", "domain/commands.py")
def test_purged_items_are_out_of_the_queue_and_no_agent_is_launched_for_them():
    with scene(one_pool("labels: [cpu, old]")) as here:
        here.minutes(1)
        purged, kept = here.submit("old", "old", 1), here.submit("new", "cpu", 1)
        here.order("purge", controller="main", label="old")
        here.minutes(1)
        assert (here.jenkins.queue, len(here.machines())) == ([kept], 1)
        assert purged.ended is Ended.ABORTED


@feature("entry/instance_events.py", "control/outcomes.py")
def test_the_node_of_a_machine_that_somebody_terminated_is_deleted_when_ec2_announces_its_end():
    with scene(one_pool("min_agents: 1")) as here:
        here.minutes(4)
        [machine] = here.machines()
        here.world.ec2.end(machine)
        here.world.move_to(here.now + 25)
        notice = event("instance_terminated")
        here.here.call("instance_events", notice | {"detail": notice["detail"] | {"instance-id": machine.id}})
        assert here.nodes() == []


@feature("control/operate.py", "entry/events.py")
def test_once_the_aws_budget_is_spent_nothing_is_launched_until_somebody_resumes_the_budget():
    with scene(one_pool()) as here:
        here.minutes(1)
        here.here.call("operate", event("budget"))
        here.submit("job", "cpu", 1)
        here.minutes(4)
        assert here.machines() == []
        here.order("resume")
        here.minutes(1)
        assert here.machines() == []
        here.order("resume", budget=True)
        here.minutes(1)
        assert len(here.machines()) == 1


# Agents for a person


@feature("control/steps/cordons.py", "domain/scale_in/reserved.py", "domain/facts/snapshot.py", "domain/report/ordered.py")
def test_a_reserved_agent_takes_no_build_and_ends_with_a_warning_when_its_hours_are_over():
    with scene(one_pool("idle_seconds: 60")) as here:
        here.minutes(1)
        here.order("reserve", target="cpu", hours=0.6, person="alice", reason="a test hangs")
        [machine] = here.machines()
        here.minutes(3)
        build = here.submit("job", "cpu", 1)
        here.minutes(2)
        assert here.subjects() == []
        here.minutes(2)
        assert [f"{here.node_of(machine).name} is reserved for alice" in subject for subject in here.subjects()] == [True]
        here.until(lambda: here.now >= NOON + 36 * 60, within=30)
        assert (build.ended, here.machine_of(build) is machine, machine.alive()) == (Ended.FINISHED, False, True)
        here.minutes(3)
        assert not machine.alive()


@feature("control/steps/cordons.py", "domain/scale_in/reserved.py")
def test_an_idle_agent_is_reserved_at_once_and_ends_within_three_minutes_of_its_release():
    with scene(one_pool("min_agents: 1")) as here:
        here.minutes(4)
        [machine] = here.machines()
        here.minutes(1)
        here.order("set", pool="cpu", min_agents=0, minutes=60)
        here.order("reserve", target="cpu", hours=4, person="alice", reason="a test hangs")
        assert here.node_of(machine).temporarily_offline
        here.minutes(20)
        assert machine.alive()
        here.order("release", target=here.node_of(machine).name)
        here.minutes(3)
        assert not machine.alive()


@feature("control/steps/cordons.py", "domain/scale_in/reserved.py")
def test_an_agent_that_is_reserved_while_it_builds_ends_its_build_and_takes_no_other_whoever_brings_it_online():
    with scene(one_pool("min_agents: 1")) as here:
        here.minutes(4)
        build = here.submit("job", "cpu", 4)
        here.order("set", pool="cpu", min_agents=0, minutes=60)
        here.order("reserve", target=build.node, hours=1, person="alice", reason="what is on its disk?")
        node = here.node_of(here.machine_of(build))
        here.until(lambda: build.ended, within=5)
        here.minutes(2)
        assert (build.ended, node.temporarily_offline) == (Ended.FINISHED, True)
        here.jenkins.toggle(node.name, "", "bob")
        here.minutes(2)
        assert (node.temporarily_offline, here.machine_of(build).alive()) == (True, True)


@feature("domain/scale_in/sides.py", "control/steps/cordons.py", "control/registration.py")
def test_one_card_of_a_host_that_two_controllers_share_is_a_persons_and_builds_go_on_beside_them():
    controllers = "controllers: {main: {url: 'http://main/', secret: jenkins/main}, other: {url: 'http://other/', secret: jenkins/other}}\n"
    with scene(
        controllers + "pools: {box: {executors: 2, share: cooperative}}\nhosts: {box-1: {pool: box, role_id: AROAHOSTBOX1}}"
    ) as here:
        here.world.hosts["box-1"].cards = cards = Cards(here.world.timeline, 2)
        here.minutes(4)
        here.order("reserve", target="box", hours=0.25, person="alice", reason="a kernel hangs")
        here.minutes(2)
        assert len(cards.holders()) == 1
        build = here.submit("job", "box", 2)
        build.takes_card = True
        here.minutes(3)
        assert (build.ended, len(cards.holders())) == (Ended.FINISHED, 1)
        here.until(lambda: here.now >= NOON + 18 * 60, within=12)
        assert len(cards.holders()) == 1
        here.minutes(4)
        assert cards.holders() == []


# Builds that are lost with their machine


@feature("domain/repair/lost_builds.py", "control/observe.py", "config/sections.py")
def test_a_lost_build_runs_again_within_two_minutes_then_on_demand_and_then_a_person_is_told():
    rerun = "market: spot-then-on-demand, rerun: {lost: {times: 1, second: on-demand}}"
    with scene(one_pool(rerun)) as here:
        here.define("job", "cpu", 20, "REF")
        here.start("job", REF="main")
        markets = []
        for number in range(3):
            build = here.builds_of("job")[number]
            here.until(lambda build=build: build.started_at, within=5)
            markets.append(here.machine_of(build).market)
            here.minutes(1)
            here.lose(build)
            here.minutes(2)
            assert len(here.builds_of("job")) == min(number + 2, 3)
        assert markets == ["spot", "spot", "on-demand"]
        assert {dict(build.started_with.parameters)["REF"] for build in here.builds_of("job")} == {"main"}
        here.minutes(1)
        assert here.subjects() == ["a lost build of job is left to you"]


@feature("domain/repair/lost_builds.py", "config/sections.py")
@pytest.mark.parametrize("key", ["rerun: {jobs: [nightly/*]}", "rerun: off", ""])
def test_a_lost_build_that_the_file_does_not_name_is_not_run_again(key):
    with scene(one_pool(key)) as here:
        here.define("job", "cpu", 20, "REF")
        build = here.start("job", REF="main")
        here.until(lambda: build.started_at, within=5)
        here.minutes(1)
        here.lose(build)
        here.minutes(6)
        assert here.builds_of("job") == [build]


# Builds that people order


def a_job_to_order(here, minutes):
    here.define("nightly", None, minutes, "AGENT_LABEL", "AUTOSCALER_RUN_ID", label_parameter="AGENT_LABEL")


def parts(here):
    [order] = here.order("runs")["runs"]
    return order["outcome"], sorted((part["pool"], part["state"]) for part in order["parts"])


_TWO_POOLS = "runs: {}\npools: {a: {$pool, executors: 1, max_agents: 3}, b: {$pool, executors: 1, max_agents: 3}}"


@feature("domain/run_orders/choice.py", "control/operate.py", "control/run_steps.py", "domain/run_orders/carrying_on.py")
def test_an_order_runs_a_build_on_each_pool_and_has_passed_at_the_look_after_the_last_one():
    with scene(_TWO_POOLS) as here:
        a_job_to_order(here, 4)
        here.minutes(1)
        here.order("run", job="nightly", runs=2, vary="pool")
        here.minutes(1)
        assert (len(here.machines("a")), len(here.machines("b"))) == (1, 1)
        here.until(lambda: all(build.ended for build in here.builds_of("nightly")), within=8)
        here.minutes(1)
        assert parts(here) == ("passed", [("a", "passed"), ("b", "passed")])


@feature("domain/run_orders/carrying_on.py", "control/run_steps.py")
def test_the_first_build_of_a_race_that_passes_stops_the_others_within_two_minutes():
    with scene(_TWO_POOLS) as here:
        a_job_to_order(here, 5)
        here.order("set", pool="a", min_agents=1, minutes=60)
        here.minutes(4)
        here.order("run", job="nightly", runs=2, vary="pool", until="first-success")
        builds = here.builds_of("nightly")
        here.until(lambda: any(build.ended for build in builds), within=8)
        here.minutes(2)
        assert sorted(build.ended for build in builds) == [Ended.ABORTED, Ended.FINISHED]
        assert parts(here) == ("passed", [("a", "passed"), ("b", "stopped")])


@feature("domain/run_orders/carrying_on.py", "domain/repair/lost_builds.py")
def test_a_build_of_an_order_that_is_lost_with_its_machine_is_started_again_within_three_minutes():
    with scene("runs: {}\n" + one_pool()) as here:
        a_job_to_order(here, 5)
        here.minutes(1)
        here.order("run", job="nightly", runs=1)
        [build] = here.builds_of("nightly")
        here.until(lambda: build.started_at, within=5)
        here.minutes(1)
        here.lose(build)
        here.minutes(3)
        assert len(here.builds_of("nightly")) == 2
        here.until(lambda: here.builds_of("nightly")[1].ended, within=10)
        here.minutes(1)
        assert parts(here) == ("passed", [("cpu", "passed")])


@feature("control/operate.py", "control/run_steps.py")
def test_builds_of_an_order_that_is_cancelled_are_out_of_the_queue_within_two_minutes():
    with scene(_TWO_POOLS) as here:
        a_job_to_order(here, 5)
        here.minutes(1)
        [order] = here.order("run", job="nightly", runs=2, vary="pool")["runs"]
        assert len(here.jenkins.queue) == 2
        here.order("cancel-run", id=order["id"])
        here.minutes(2)
        assert (here.jenkins.queue, parts(here)[0]) == ([], "cancelled")
