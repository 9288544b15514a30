"""Time-lines of accounts that lack a right: neither money for nothing, nor silence."""

import pytest

from autoscaler.domain.facts.plan import Terminate
from autoscaler_workbench.fakes.http_fakes.jenkins.api import BALANCER_REFUSES, LOGIN_PAGE
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from support.builders import a_pool
from support.remembered import tables
from support.timeline import Day
from support.worlds import a_world_node, in_memory

CREATE, CONNECT, READ = "hudson.model.Computer.Create", "hudson.model.Computer.Connect", "hudson.model.Item.Read"


def a_day(**facts):
    return Day(
        in_memory(a_pool("cpu", **({"idle_seconds": 600.0, "boot_timeout_seconds": 300.0, "boot_seconds": 60.0} | facts))), by_adapters=True
    )


def metric(day, name):
    return [value for _, datum in day.fleet.metrics.published if datum.name == name for value in datum.values]


def logged(day, event):
    return [facts for name, facts in day.fleet.logged if name == event]


def lacks(day, right):
    day.fleet.apis["main"].lacks.add(right)


def test_the_agent_that_tries_a_broken_pool_is_not_the_one_that_tries_its_controller():
    """None ever connected, so that it stayed the one that was tried, and no other pool's jobs were served (hostile world 3300876)."""
    facts = {"idle_seconds": 600.0, "boot_timeout_seconds": 900.0, "boot_seconds": 60.0}
    day = Day(in_memory(a_pool("broken", **facts), a_pool("cpu", **facts)), by_adapters=True).minutes(2)
    boots = day.world.ec2.on_running
    day.world.ec2.on_running = lambda instance: instance.tags["autoscaler:pool"] == "broken" or boots(instance)
    day.queue(1, "broken")
    day.minutes(60)
    assert day.fleet.state.memory.trials["boot/broken"].is_closed
    lacks(day, CREATE)
    [build] = day.queue(1, "cpu")
    day.minutes(6)
    assert day.fleet.state.memory.trials["connect/main"].is_failing
    day.fleet.apis["main"].lacks.clear()
    for instance in day.world.alive():  # the one that was refused goes
        if instance.tags["autoscaler:pool"] == "cpu":
            day.world.ec2.end(instance)
    day.minutes(40)
    assert build.ended is Ended.FINISHED


@pytest.mark.parametrize("right", [CREATE, CONNECT])
def test_an_agent_that_may_not_be_made_or_connected_is_a_failed_boot_and_the_trial_names_the_right(right):
    """48 instances were launched for one job in 50 minutes, and nobody was told."""
    day = a_day()
    day.minutes(2)
    lacks(day, right)
    [build] = day.queue(1)
    day.minutes(120)
    assert len(day.world.ec2.instances) <= 1 + 120 / 10
    assert metric(day, "BreakersOpen")[-1] >= 1
    assert f"the account lacks {right}" in day.fleet.state.memory.trials["connect/main"].why
    assert {f"LackingPermissionError: Jenkins answered 403: the account lacks {right}"} == {
        facts["why"] for facts in logged(day, "boot_failed")
    }
    day.fleet.apis["main"].lacks.clear()
    day.minutes(75)
    assert build.ended is Ended.FINISHED
    assert not any(trial.is_failing for trial in day.fleet.state.memory.trials.values())


def a_login_proxy(day):
    day.fleet.apis["main"].login_at = "https://sso.example.org/authorize"


def without(right):
    return lambda day: lacks(day, right)


TROUBLES = {
    "Create": (without(CREATE), CREATE),
    "Connect": (without(CONNECT), CONNECT),
    "a login page": (a_login_proxy, "sso.example.org/authorize"),
}


def mend(day):
    day.fleet.apis["main"].lacks.clear()
    day.fleet.apis["main"].login_at = ""
    day.fleet.apis["main"].in_front.clear()


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.long
def test_what_jenkins_refuses_every_agent_stops_launches_after_the_first_ones_of_all_pools_and_is_told_once(trouble):
    """42 and 15 instances were launched for three jobs."""
    begin, named = TROUBLES[trouble]
    pools = (a_pool(name, idle_seconds=600.0, max_agents=20) for name in ("cpu", "gpu"))
    day = Day(in_memory(*pools), by_adapters=True).minutes(2)
    begin(day)
    first = day.queue(2)
    day.minutes(6)
    assert len(day.world.ec2.instances) <= 2
    others = day.queue(10, label="gpu") + day.queue(10)
    day.minutes(9)
    assert len(day.world.ec2.instances) <= 2 + 2
    lines = day.why("gpu")
    assert any(named in line for line in lines)
    day.minutes(5 * 60)
    assert len(day.world.ec2.instances) <= 2 + 3 + 5 * 60 / 20
    [message] = [message for message in day.fleet.notifier.sent if "connect" in message.subject or "boot" in message.subject]
    assert message.subject == "[f] no new agent can connect to main"
    assert named in message.text
    mend(day)
    day.minutes(2 * 30 + 15)
    assert all(build.started_at for build in first + others)
    assert [m.subject for m in day.fleet.notifier.sent].count("[f] over: no new agent can connect to main") == 1


STRANGERS = {
    "a login page": (LOGIN_PAGE, "Server nginx, page 'Sign in to Example'"),
    "a load balancer": (BALANCER_REFUSES, "Server awselb/2.0, page '403 Forbidden'"),
}


@pytest.mark.parametrize("stranger", STRANGERS)
def test_what_answers_in_jenkins_place_keeps_from_launching_more_and_is_named(stranger):
    answer, named = STRANGERS[stranger]
    day = Day(in_memory(a_pool("cpu", max_agents=20)), by_adapters=True).minutes(2)
    day.fleet.apis["main"].in_front["POST"] = answer
    builds = day.queue(1)
    day.minutes(5)
    builds += day.queue(5)
    day.minutes(12)
    assert len(day.world.ec2.instances) <= 3
    assert named in day.fleet.state.memory.trials["connect/main"].why
    mend(day)
    day.minutes(35)
    assert all(build.started_at for build in builds)


def test_an_agent_that_is_waiting_finds_out_at_once_that_the_right_was_given():
    day = Day(in_memory(a_pool("cpu", idle_seconds=600.0, max_agents=20)), by_adapters=True).minutes(2)
    lacks(day, CONNECT)
    builds = day.queue(3)
    day.minutes(8)
    mend(day)
    day.minutes(3)
    assert all(build.started_at for build in builds)


def test_any_lasting_failure_to_make_a_node_opens_the_breaker_and_is_told():
    day = a_day()
    day.minutes(2)
    day.fleet.faults.plan(Fault("jenkins doCreateItem", status=500, times=10**6))
    day.queue(1)
    day.minutes(60)
    assert len(day.world.ec2.instances) <= 3 + 5, "after three in a row, 1, 5, 10 and 20 minutes from launch to launch"
    [status] = day.status().pools
    assert "Jenkins answered 500" in day.fleet.state.memory.trials["boot/cpu"].why
    assert not status.paused or "Jenkins answered 500" in status.paused
    assert "could not be made: FailedRequestError: Jenkins answered 500" in day.done(Terminate)[-1].detail


def test_what_failed_for_a_while_is_in_no_trouble_once_it_registered():
    day = a_day()
    day.minutes(2)
    day.fleet.faults.plan(Fault("jenkins doCreateItem", status=500, times=2))
    [build] = day.queue(1, seconds=60.0)
    day.minutes(3)
    [record] = day.fleet.state.records.values()
    assert record.trouble == ""
    day.minutes(3)
    assert build.ended is Ended.FINISHED
    assert "boot/cpu" not in day.fleet.state.memory.trials


def test_without_the_right_to_see_jobs_every_pass_says_so():
    day = a_day()
    day.queue(1, seconds=60.0)
    day.minutes(2)
    assert logged(day, "no_job_shown") == []
    lacks(day, READ)
    day.fleet.logged.clear()
    day.minutes(1)
    assert [facts["controller"] for facts in logged(day, "no_job_shown")] == ["main"] * len(logged(day, "no_job_shown"))
    assert len(logged(day, "no_job_shown")) >= 3  # measuring, scaling up, scaling down
    assert metric(day, "ControllersWithoutJobs")[-1] == 1
    assert day.status().without_jobs == ("main",)
    assert any("shows not a single job" in fact for fact in day.why("cpu"))


def test_a_token_that_is_rotated_again_and_again_costs_nothing_though_each_function_has_its_own():
    day = a_day()
    day.fleet.rotate_token()
    day.minutes(2)
    builds = day.queue(3, seconds=60.0)
    for _ in range(15):
        day.fleet.rotate_token()
        day.minutes(1)
    assert {build.ended for build in builds} == {Ended.FINISHED}
    assert day.failed == 0
    assert [facts for event, facts in day.fleet.logged if event == "controller_incomplete"] == []


@pytest.mark.parametrize("trouble", ["Create", "a login page"])
def test_nothing_is_launched_for_a_controller_that_refuses_the_very_first_node(trouble):
    """Jenkins 2.504.3 refused the beacon, and the same pass launched two instances that could not register."""
    begin, named = TROUBLES[trouble]
    day = a_day()
    begin(day)
    builds = day.queue(3)
    day.minutes(5)
    [message] = day.fleet.notifier.sent
    assert message.subject == "[f] no new agent can connect to main"
    assert named in message.text
    lines = day.why("job-0")
    assert any("no node can be made on main" in line and named in line for line in lines)
    day.minutes(55)
    assert day.world.ec2.instances == {}
    mend(day)
    day.minutes(5 + 6)
    assert all(build.started_at for build in builds)
    day.minutes(20)
    assert [sent.subject for sent in day.fleet.notifier.sent].count("[f] over: no new agent can connect to main") == 1


def test_a_controller_that_refuses_nodes_keeps_no_other_one_from_its_agents():
    day = Day(in_memory(*(a_pool(name, controllers=(at,)) for name, at in (("cpu", "main"), ("web", "other")))), by_adapters=True)
    lacks(day, CREATE)
    day.queue(1)
    build = day.world.controllers["other"].submit("elsewhere", "web", 60.0)
    day.minutes(10)
    assert build.ended is Ended.FINISHED
    assert {instance.tags["autoscaler:controller"] for instance in day.world.ec2.instances.values()} == {"other"}


def test_static_nodes_need_no_right_to_make_nodes():
    """The beacon cannot be made, and the nodes are there already."""
    day = Day(in_memory(a_pool("cpu"), slots={"static-1": ("cpu",), "static-2": ("cpu",)}), by_adapters=True)
    lacks(day, CREATE)
    launched = []
    for _ in range(2):
        day.queue(1)
        launched.append(len(day.minutes(1).world.ec2.instances))
    assert launched == [1, 2]


def test_a_beacon_that_is_there_after_all_keeps_nothing_from_being_launched():
    """Something else answered in Jenkins' place after it had made the nodes."""
    day = a_day()
    day.minutes(1)
    beacons = list(day.jenkins.nodes)
    for name in beacons:
        day.jenkins.delete_node(name)
    lacks(day, CREATE)
    day.minutes(1)
    assert len(tables(day.fleet.state.memory).failing) == len(beacons)
    for name in beacons:
        day.jenkins.add_node(a_world_node(name, *name.split("~")[1:], connected=False))
    mend(day)
    [build] = day.queue(1)
    day.minutes(3)
    assert build.started_at
