"""Time-lines of what lasts too long: agents that stay in one row of the table of deadlines, and jobs that wait; each is told once."""

import pytest

from autoscaler.domain.facts.fleet import WarmPool
from autoscaler.domain.facts.orders import Overrides, Scope
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.nodes import Node
from support.builders import a_pool, an_offering
from support.timeline import Day
from support.worlds import in_memory

HOUR = 60


def a_day(**pool):
    return Day(in_memory(a_pool("cpu", **({"idle_seconds": 300.0, "max_agents": 5, "queue_maturity_seconds": 0.0} | pool)))).minutes(2)


def subjects(day):
    return [message.subject for message in day.fleet.notifier.sent]


def texts(day):
    return [message.text for message in day.fleet.notifier.sent]


def begin_hold(day, scope, name, **facts):
    day.hold(scope=scope, name=name, **facts)
    return day


@pytest.mark.long
def test_a_drain_of_13_hours_is_told_with_its_build_at_12_hours_and_once_more_a_day_later_and_is_over_once():
    day = a_day(max_agent_hours=1.0)
    day.queue(1, seconds=60 * 3600.0)
    day.hours(13)
    assert subjects(day) == []
    day.minutes(HOUR)
    [name] = day.nodes()
    assert subjects(day) == [f"[f] {name} of cpu: drains too long"]
    assert f"{name} drains, for 12 h" in texts(day)[0]
    assert "busy with job-0 #1" in texts(day)[0]
    day.hours(24)
    assert len(subjects(day)) == 2
    day.hours(30)
    assert subjects(day)[-1] == f"[f] over: {name} of cpu: drains too long"
    assert len(subjects(day)) in (3, 4)


def test_a_machine_that_is_gone_costs_nothing_while_jenkins_keeps_its_node():
    day = a_day()
    day.queue(1, seconds=300.0)
    day.minutes(8)
    [name] = day.nodes()
    day.fleet.faults.plan(Fault("jenkins doDelete", status=403, times=10**6))
    day.minutes(6 * HOUR)
    assert [text for text in texts(day) if "cost $" in text] == []
    assert any(fact.endswith(", $0.00 an hour") for fact in day.why(name))


@pytest.mark.long
def test_an_agent_that_a_person_took_offline_is_told_after_a_day_in_their_words_and_each_day():
    day = a_day()
    day.queue(1, seconds=300.0)
    day.minutes(8)
    [name] = day.nodes()
    node = day.jenkins.nodes[name]
    node.temporarily_offline, node.cause, node.reason = True, "hudson.slaves.OfflineCause$UserCause", "disk check"
    node.user = "alice"
    day.hours(23)
    assert subjects(day) == []
    day.minutes(2 * HOUR)
    assert subjects(day) == [f"[f] {name} of cpu: offline-by-a-person too long"]
    assert "taken offline by alice: 'disk check'" in texts(day)[0]
    day.hours(24)
    assert len(subjects(day)) == 2
    node.clear_mark()
    day.minutes(5)
    assert subjects(day)[2:] == [f"[f] over: {name} of cpu: offline-by-a-person too long"]


def test_an_instance_that_shuts_down_for_ever_is_told_after_half_an_hour_and_each_day_until_it_has_ended():
    day = a_day()
    day.queue(1, seconds=300.0)
    day.minutes(8)
    [instance] = day.world.alive()
    instance.hangs_in = "shutting-down"
    day.minutes(60)
    [subject] = subjects(day)
    assert subject.endswith("of cpu: shuts-down too long")
    assert f"{instance.id} shuts down, for 3" in texts(day)[0]
    day.hours(24)
    assert subjects(day) == [subject] * 2
    instance.state = "terminated"
    day.minutes(5)
    assert subjects(day)[2:] == [f"[f] over: {subject[4:]}"]


def test_what_ec2_never_stops_is_told_after_15_minutes_and_terminated_after_20():
    kept = WarmPool(min_agents=0, max_agents=5, max_age_seconds=168 * 3600.0)
    day = a_day(offerings=(an_offering(usd_per_hour=3.0, volume_usd_per_hour=0.01),), warm_pool=kept)
    day.queue(1, seconds=300.0)
    day.minutes(8)
    [instance] = day.world.alive()
    instance.hangs_in = "stopping"
    day.minutes(45)
    assert (instance.state, day.nodes()) == ("terminated", [])
    told, over = subjects(day)
    assert (told.endswith("of cpu: stopping too long"), over.startswith("[f] over: ")) == (True, True)


@pytest.mark.parametrize("place", [(Scope.POOL, "cpu"), (Scope.FLEET, ""), (Scope.LABEL, "cpu")])
def test_jobs_that_an_operator_holds_for_longer_than_max_wait_are_told_once_with_who_holds_them(place):
    day = begin_hold(a_day(max_wait_seconds=1200.0), *place)
    day.queue(3, seconds=60.0)
    day.minutes(15)
    assert subjects(day) == []
    day.minutes(10)
    assert [subject.partition(" wait: ")[2].split()[:2] for subject in subjects(day)] == [["ada", "holds"]]
    assert "upgrade" in texts(day)[0]
    assert "3 jobs" in texts(day)[0]
    day.minutes(6 * HOUR)
    assert len(subjects(day)) == 1
    day.fleet.state.save_overrides(Overrides(version=day.fleet.state.overrides.version))
    day.minutes(60)
    assert [subject[: len("[f] over: j")] for subject in subjects(day)] == ["[f] jobs on", "[f] over: j"]


def test_a_job_that_waits_for_a_node_which_is_offline_is_told_with_the_nodes_own_words():
    day = a_day(max_wait_seconds=1200.0)
    node = Node(name="mine", labels=("special",), executors=1, exclusive=True, description="", remote_dir="/srv")
    day.jenkins.add_node(node)
    node.temporarily_offline, node.cause, node.reason = True, "hudson.slaves.OfflineCause$UserCause", "gone fishing"
    day.jenkins.submit("job", "special", 60.0)
    day.minutes(40)
    [subject] = subjects(day)
    assert subject.startswith("[f] jobs on main wait: ")
    assert "gone fishing" in texts(day)[0]


def test_a_job_whose_label_no_pool_has_is_told_once():
    day = a_day(max_wait_seconds=1200.0)
    day.jenkins.submit("job", "nowhere", 60.0)
    day.jenkins.submit("other", "nowhere", 60.0)
    day.minutes(60)
    assert subjects(day) == ["[f] jobs on main wait: no pool serves nowhere"]


def test_jobs_that_ec2_has_no_machines_for_are_told_in_ec2s_code_and_by_one_message():
    day = a_day(max_wait_seconds=1200.0)
    day.fleet.faults.plan(Fault("ec2 CreateFleet", status=400, code="SomethingNew", times=10**9))
    day.queue(2, seconds=60.0)
    day.minutes(90)
    assert subjects(day) == ["[f] EC2 refuses launches of cpu"]
    assert "SomethingNew" in texts(day)[0]


def test_jobs_behind_builds_that_fill_their_pool_are_told_with_the_limit():
    day = a_day(max_wait_seconds=1200.0, max_agents=1)
    day.queue(2, seconds=3 * 3600.0)
    day.minutes(90)
    assert subjects(day) == ["[f] jobs on main wait: max-agents of cpu"]


def test_why_names_the_row_with_its_deadline_and_what_follows():
    day = a_day()
    day.queue(1, seconds=1200.0)
    day.minutes(10)
    [name] = day.nodes()
    [line] = [line for line in day.why(name) if line.startswith("works since ")]
    assert "UTC; deadline: " in line
    assert "; then: " in line
