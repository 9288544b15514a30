"""Time-lines of agents that do not come up: breakers, canaries, and what is kept of a failed boot."""

from autoscaler.domain.facts.plan import Launch, Terminate
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory, now


def a_day(**facts):
    return Day(in_memory(a_pool("cpu", **({"idle_seconds": 600.0, "boot_timeout_seconds": 300.0} | facts))))


def break_the_image(day):
    """Instances run, and nothing on them ever asks who it is."""
    day.world.ec2.on_running = lambda _instance: None


def launched(day):
    return len(day.world.ec2.instances)


def metric(day, name):
    return [value for _, datum in day.fleet.metrics.published if datum.name == name for value in datum.values]


def reasons(day):
    return [str(held.reason) for report in day.fleet.reports[-2:] for held in report.plan.held]


def test_a_broken_image_does_not_launch_for_ever():
    """Peers boot a broken image again and again; ours: three, then one at a time, three an hour at last."""
    day = a_day()
    break_the_image(day)
    day.minutes(2).queue(3)
    day.minutes(9)
    assert launched(day) == 3 + 1
    day.minutes(8 * 60 - 9)
    assert launched(day) <= 3 + 4 + 8 * 3
    most_at_once = max(
        sum(one.launched_at <= at < (one.ended_at or at + 1) for one in day.world.ec2.instances.values())
        for at in range(int(day.world.timeline.now) - 7 * 3600, int(day.world.timeline.now), 60)
    )
    assert most_at_once == 1
    assert {"breaker-open"} & set(reasons(day)) or {"one-trial"} & set(reasons(day))
    assert metric(day, "BreakersOpen")[-1] >= 1


def test_once_an_agent_connects_the_others_follow_and_the_pool_is_broken_no_more():
    day = a_day()
    heal = day.world.ec2.on_running
    break_the_image(day)
    day.minutes(2)
    builds = day.queue(3)
    day.minutes(30)
    assert day.fleet.state.memory.trials["boot/cpu"].is_broken
    assert metric(day, "BreakersOpen")[-1] == 1
    day.world.ec2.on_running = heal
    day.minutes(90)
    assert not day.fleet.state.memory.trials["boot/cpu"].is_broken
    assert [build.ended for build in builds] == [Ended.FINISHED] * 3


def test_what_a_failed_boot_wrote_to_its_console_is_in_the_log_before_it_is_terminated():
    day = a_day()
    break_the_image(day)
    day.minutes(2).queue(1)
    day.minutes(3)
    [instance] = day.world.ec2.instances.values()
    instance.console = "dracut: no root device"
    day.minutes(8)
    assert not instance.alive()
    logged = [facts for event, facts in day.fleet.logged if event == "boot_failed"]
    assert [(facts["instance_id"], facts["console"]) for facts in logged] == [(instance.id, "dracut: no root device")]


def test_an_agent_that_dies_once_its_boot_is_over_is_replaced_at_once_and_drained_after_five_minutes():
    """It took a build and was counted as booting until its deadline: the next job waited for it for a quarter of an hour."""
    day = a_day(boot_timeout_seconds=1800.0, boot_seconds=60.0)
    day.minutes(2).queue(1, seconds=60.0)
    day.minutes(9)
    [node] = day.nodes()
    assert day.jenkins.builds[0].ended is Ended.FINISHED
    day.jenkins.disconnect(node)
    [build] = day.queue(1, seconds=60.0)
    day.minutes(5)
    assert build.started_at is not None
    day.minutes(5)
    assert node not in day.nodes()


def test_an_instance_that_powers_itself_off_before_it_registered_is_a_failed_boot_too():
    day = a_day()
    break_the_image(day)
    day.minutes(2).queue(1)
    day.minutes(3)
    for instance in day.world.alive():
        day.world.ec2.end(instance)
    day.minutes(2)
    assert day.fleet.state.memory.trials["boot/cpu"].failures == 1
    assert [event for event, _ in day.fleet.logged].count("boot_failed") == 1


def test_an_agent_that_registers_and_never_connects_is_a_failed_boot_too():
    day = a_day()
    day.jenkins.connect = lambda _name: None
    day.minutes(2).queue(1)
    day.minutes(40)
    assert day.fleet.state.memory.trials["boot/cpu"].failures >= 1
    assert day.done(Terminate)


def test_a_new_version_of_the_launch_template_is_tried_with_one_agent_and_then_rolled_out_a_share_at_a_time():
    day = a_day(max_agents=30, idle_seconds=7200.0)
    day.minutes(2).queue(20, seconds=4 * 3600.0)
    day.minutes(10)
    assert versions(day)["1"] >= 15
    day.world.ec2.template_versions["cpu"] = 2
    day.queue(10, seconds=4 * 3600.0)
    day.minutes(3)
    assert versions(day)["2"] == 1
    day.minutes(10)
    assert versions(day)["2"] >= 5
    outdated = [node for node in day.jenkins.nodes.values() if ":outdated:" in node.reason]
    assert 1 <= len(outdated) <= 1 + 6
    assert all(node.builds for node in outdated)
    day.minutes(6 * 60)
    assert not day.fleet.world.controllers["main"].queue
    assert {build.ended for build in day.jenkins.builds} == {Ended.FINISHED}


def test_a_new_version_that_does_not_boot_takes_one_old_agent_and_no_more():
    day = a_day(min_agents=5, max_agents=10)
    day.minutes(10)
    assert versions(day) == {"1": 5}
    day.world.ec2.template_versions["cpu"] = 2
    break_the_image(day)
    day.minutes(3 * 60)
    assert versions(day)["1"] == 4
    assert versions(day).get("2", 0) <= 1


def test_an_agent_too_old_is_replaced_when_its_build_is_done():
    day = a_day(min_agents=1, max_agent_hours=2.0)
    day.minutes(10)
    [first] = day.world.alive()
    builds = day.queue(1, seconds=3 * 3600.0)
    day.minutes(150)
    assert first.alive()
    day.minutes(60)
    assert builds[0].ended is Ended.FINISHED
    assert not first.alive()
    assert len(day.world.alive()) == 1


def test_an_instance_that_may_not_be_terminated_is_asked_again_ever_more_rarely_and_told():
    day = a_day()
    day.minutes(2).queue(1, seconds=60.0)
    day.minutes(6)
    [instance] = day.world.alive()
    instance.protected = True
    day.minutes(70)
    refused = [report for report in day.fleet.reports for result in report.results if "StuckError" in result.detail]
    assert 1 <= len(refused) <= 8
    assert now(day, "AgentsStuck") == 1.0
    assert "stuck" in reasons(day)
    instance.protected = False
    day.minutes(70)
    assert day.agents() == 0
    assert day.nodes() == []
    assert now(day, "AgentsStuck") == 0.0


def test_a_drain_that_takes_too_long_is_told_and_never_ended():
    day = a_day(drain_timeout_seconds=1800.0)
    day.minutes(2)
    [build] = day.queue(1, seconds=3 * 3600.0)
    day.minutes(6)
    [node] = day.nodes()
    day.jenkins.set_offline(node, "autoscaler:f:operator:p", "bot")
    day.minutes(20)
    assert now(day, "DrainsOverdue") == 0.0
    day.minutes(20)
    assert now(day, "DrainsOverdue") == 1.0
    assert "drain-overdue" in reasons(day)
    while not build.ended:
        day.minutes(1)
    assert now(day, "DrainsOverdue") == 0.0  # nothing is overdue once its builds have ended
    day.minutes(10)
    assert (build.ended, day.agents()) == (Ended.FINISHED, 0)


def test_every_launch_of_a_day_without_failures_is_free_of_trials():
    day = a_day()
    day.minutes(2).queue(8, seconds=300.0)
    day.minutes(4)
    assert [step.count for step in day.done(Launch)] == [8]


def versions(day):
    counts = {}
    for instance in day.world.alive():
        version = instance.tags["aws:ec2launchtemplate:version"]
        counts[version] = counts.get(version, 0) + 1
    return counts


def test_jobs_that_wait_for_the_boot_after_a_failed_one_are_told_of_it_at_once():
    """Not only once that one takes twice as long as usual, too: ten minutes more, in which nobody knows."""
    day = a_day(boot_seconds=300.0, boot_timeout_seconds=600.0, max_wait_seconds=600.0)
    break_the_image(day)
    day.minutes(2).queue(1)
    day.minutes(15)
    assert "[f] jobs on main wait: agents of cpu do not come up" in [message.subject for message in day.fleet.notifier.sent]
