"""Controllers that leave the fleet file while agents of theirs are there: nobody sees their builds, so nothing is ended."""

from dataclasses import replace

from autoscaler.control import passes
from autoscaler.control.operate import agents, status, why
from autoscaler.domain.facts.orders import EndInstance
from autoscaler.domain.facts.plan import Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from support.builders import a_pool
from support.deployed import essential_thresholds
from support.left_keys import deploy, without_controller
from support.reserving import refusals, release, reserve
from support.timeline import Day
from support.worlds import in_memory


def a_day() -> Day:
    """One agent on other, whose build runs for hours, beside two on main."""
    pools = [a_pool(name, idle_seconds=7200.0, controllers=(at,)) for name, at in (("cpu", "main"), ("web", "other"))]
    day = Day(in_memory(*pools, thresholds=essential_thresholds())).minutes(2)
    day.queue(2, "cpu", seconds=3600.0)
    day.world.controllers["other"].submit("page", "web", 3 * 3600.0)
    day.minutes(12)
    assert (day.agents("cpu"), day.agents("web")) == (2, 1)
    return day


def left(day: Day) -> Day:
    deploy(day.fleet, without_controller(day.fleet.fleet, "other"))
    return day


def the_web(day: Day):
    [instance] = [instance for instance in day.world.alive() if instance.tags["autoscaler:pool"] == "web"]
    return instance


def end(day: Day, target: str):
    ports, fleet = day.fleet.ports_of("operate"), day.fleet.fleet
    order = EndInstance(target=target, reason="nobody needs it")
    [report] = passes.carry_out(ports, fleet, replace(day.fleet.invocation(), by_a_person=True), order)
    return report


def asked(day: Day, question, *more):
    return question(day.fleet.ports_of("operate"), day.fleet.fleet, day.fleet.invocation(), *more)


def test_nothing_is_ended_and_the_agent_is_named_and_paid():
    day = left(a_day())
    instance = the_web(day)
    before = day.fleet.state.memory.month.by_pool["web"]
    day.minutes(5 * 60)
    assert instance.alive()
    assert [build.ended for build in day.world.controllers["other"].builds] == [Ended.FINISHED]
    assert day.fleet.state.memory.month.by_pool["web"] > before + 10.0
    told = asked(day, status)
    assert any(instance.id in line and f"autoscaler end {instance.id} --yes" in line for line in told.left)
    assert any("agents of web left the fleet file" in line for line in told.told)
    assert any("controller other left the fleet file" in line for line in asked(day, why, instance.id))
    assert any("controller other left the fleet file" in line for line in asked(day, why, instance.tags["autoscaler:node"]))
    assert instance.id in {entry.instance_id for entry in asked(day, agents)}
    [message] = [message for message in day.fleet.notifier.sent if "left the fleet file" in message.subject]
    assert (message.subject, instance.id in message.text) == ("[f] agents of web left the fleet file", True)


def test_it_does_not_power_off_when_it_asks_who_it_is():
    day = left(a_day())
    instance = the_web(day)
    day.fleet.agents.register(instance)
    assert instance.alive()


def test_what_is_put_back_goes_on_as_ever():
    day = a_day()
    file = day.fleet.fleet
    left(day).minutes(60)
    deploy(day.fleet, file)
    day.minutes(6 * 60)
    assert [build.ended for build in day.world.controllers["other"].builds] == [Ended.FINISHED]
    assert day.agents("web") == 0
    assert not [record for record in day.fleet.state.records.values() if record.pool == "web"]


def test_an_operator_ends_it():
    day = left(a_day()).minutes(2)
    instance = the_web(day)
    report = end(day, instance.id)
    assert [(type(result.step), result.outcome) for result in report.results] == [(Terminate, "done")]
    day.minutes(5)
    assert not instance.alive()
    assert not [record for record in day.fleet.state.records.values() if record.pool == "web"]


def test_what_a_person_has_is_not_ended_before_it_is_released():
    """As no other order takes it from them: neither drain, nor a reservation for somebody else."""
    day = a_day()
    instance = the_web(day)
    node = instance.tags["autoscaler:node"]
    reserve(day, node, hours=4.0)
    left(day).minutes(5)
    for target in (instance.id, node):
        [held] = end(day, target).plan.held
        assert (held.reason, f"for alice: a test hangs; autoscaler release {node}" in held.detail) == (Reason.RESERVED, True)
    assert instance.alive()
    release(day, node)
    assert refusals(end(day, node)) == []
    assert not instance.alive()


def test_what_a_person_had_is_ended_once_their_time_is_over():
    day = a_day()
    instance = the_web(day)
    reserve(day, instance.tags["autoscaler:node"], hours=0.5)
    left(day).minutes(40)
    assert instance.alive()
    assert refusals(end(day, instance.id)) == []
    assert not instance.alive()


def test_what_a_controller_of_the_file_sees_is_drained_instead():
    day = a_day()
    instance = the_web(day)
    report = end(day, instance.id)
    assert not report.results
    [held] = report.plan.held
    assert held.reason is Reason.STILL_SEEN
    assert f"autoscaler drain {instance.tags['autoscaler:node']}" in held.detail
    assert [held.reason for held in end(day, "i-0123456789abcdef0").plan.held] == [Reason.NOT_FOUND]


def test_an_instance_without_a_record_is_named_and_kept_and_may_be_ended():
    day = left(a_day())
    instance = the_web(day)
    del day.fleet.state.records[instance.id]
    day.minutes(30)
    assert instance.alive()
    assert instance.id not in day.fleet.state.records
    assert any(instance.id in line for line in asked(day, status).left)
    assert any("controller other left" in line for line in asked(day, why, instance.id))
    end(day, instance.id)
    day.minutes(5)
    assert not instance.alive()


def test_what_ended_meanwhile_is_closed_and_its_node_is_named():
    day = left(a_day())
    instance = the_web(day)
    node = instance.tags["autoscaler:node"]
    day.world.ec2.end(instance)
    day.world.move_to(day.world.timeline.now + 2 * 3600.0)  # EC2 has forgotten it by now
    day.minutes(80)
    assert instance.id not in day.fleet.state.records
    spent = day.fleet.state.memory.month.by_pool["web"]
    day.minutes(60)
    assert day.fleet.state.memory.month.by_pool["web"] == spent
    assert any(f"{node} may still be on other" in line for line in asked(day, why, instance.id))


def test_what_boots_for_ever_on_it_keeps_no_agent_from_being_tried_elsewhere():
    """Nobody sees them connect or fail, so that they would be the four agents that are tried after the first has connected, for ever."""
    pool = a_pool("cpu", controllers=("main", "other"), queue_maturity_seconds=0.0, boot_timeout_seconds=600.0, max_agents=20)
    day = Day(in_memory(pool)).minutes(3)
    comes_up = day.world.ec2.on_running
    day.world.ec2.on_running = lambda _instance: None
    day.queue(5)
    day.minutes(2)
    deploy(day.fleet, without_controller(day.fleet.fleet, "main"))
    pages = [day.world.controllers["other"].submit(f"page-{number}", "cpu", 6000.0) for number in range(3)]
    day.minutes(25)
    assert day.fleet.state.memory.trials["boot/cpu"].is_closed
    day.world.ec2.on_running = comes_up
    day.minutes(60)
    assert [page.started_at is None for page in pages] == [False] * 3
