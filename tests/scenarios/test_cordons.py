"""Time-lines of cordons on a Jenkins that drops what it hands to a node in the instant of its mark (before 2.517)."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import CORDONED_LABEL
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Cordon, Relabel, Terminate, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from autoscaler_workbench.fakes.world.jenkins.controller import DROPS_BUILDS
from support.builders import a_pool
from support.remembered import tables
from support.timeline import Day
from support.worlds import in_memory

BARE = {"autoscaler-fleet-f", CORDONED_LABEL}
ALL = {"cpu", "autoscaler-fleet-f"}


def a_day(**facts):
    day = Day(in_memory(a_pool("cpu", **({"idle_seconds": 300.0} | facts))))
    day.jenkins.version = DROPS_BUILDS
    return day.minutes(2)


def with_an_agent(day, seconds=60.0):
    day.queue(1, seconds=seconds)
    day.minutes(6)
    [instance] = day.world.alive()
    return instance, day.jenkins.nodes[instance.tags["Name"]]


def until_cordoned(day, node):
    for _ in range(30):
        if CORDONED_LABEL in node.labels:
            return
        day.minutes(1)
    raise AssertionError("its labels were never taken")


def reasons(day, kind):
    return [step.reason for step in day.done(kind)]


def test_labels_go_first_the_mark_comes_after_two_idle_looks_and_only_then_the_machine_goes():
    day = a_day()
    instance, node = with_an_agent(day)
    until_cordoned(day, node)
    assert (set(node.labels), node.exclusive, node.temporarily_offline) == (BARE, True, False)
    assert instance.alive()
    day.minutes(3)
    assert reasons(day, Cordon) == [Reason.SURPLUS, Reason.LABELS_TAKEN]
    assert not instance.alive()
    assert day.nodes() == []


def test_a_build_that_is_handed_over_in_the_instant_of_the_cordon_is_not_lost():
    day = a_day()
    instance, node = with_an_agent(day)
    late = []

    def handed_over(call):
        if call.endswith(("changeOfflineCause", "config.xml")) and not late:
            late.extend(day.queue(1, seconds=1200.0, kind=Kind.PIPELINE))
            day.jenkins.schedule()

    day.fleet.faults.meanwhile = handed_over
    until_cordoned(day, node)
    day.minutes(10)
    assert late[0].ended is None
    assert instance.alive()
    day.minutes(30)
    assert late[0].ended is Ended.FINISHED
    assert not instance.alive()


def test_newer_versions_are_marked_at_once():
    day = a_day()
    day.jenkins.version = "2.528.1"
    instance, _ = with_an_agent(day)
    day.minutes(10)
    assert reasons(day, Cordon) == [Reason.SURPLUS]
    assert not instance.alive()


def test_demand_that_comes_back_gets_the_labels_back():
    day = a_day()
    instance, node = with_an_agent(day)
    until_cordoned(day, node)
    [build] = day.queue(1, seconds=600.0)
    day.minutes(3)
    assert build.node == node.name
    assert set(node.labels) == ALL
    assert day.agents() == 1
    assert day.done(Uncordon)
    assert instance.alive()


def test_what_a_person_has_marked_is_not_relabelled():
    day = a_day()
    instance, node = with_an_agent(day)
    until_cordoned(day, node)
    day.jenkins.set_offline(node.name, "disk swap, ask Anna", "anna")
    day.minutes(20)
    assert (node.reason, instance.alive()) == ("disk swap, ask Anna", True)
    day.jenkins.toggle(node.name, "", "anna")
    day.minutes(5)
    assert not instance.alive()


def test_labels_that_a_person_gave_stay_and_what_asks_for_them_brings_the_others_back():
    day = a_day()
    instance, node = with_an_agent(day)
    node.labels = (*node.labels, "annas-favourite")
    day.jenkins._matching.clear()
    until_cordoned(day, node)
    assert set(node.labels) == BARE | {"annas-favourite"}
    [build] = day.queue(1, label="annas-favourite", seconds=600.0)
    day.minutes(3)
    assert build.node == node.name
    day.minutes(20)
    assert build.ended is Ended.FINISHED
    assert not instance.alive()


def test_a_node_of_normal_mode_takes_no_job_without_a_label_while_it_drains_and_gets_its_mode_back():
    day = a_day(exclusive=False)
    _, node = with_an_agent(day)
    until_cordoned(day, node)
    assert node.exclusive
    day.queue(1, seconds=600.0)
    day.minutes(3)
    assert not node.exclusive


@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after it took effect"])
def test_a_cordon_that_is_cut_off_between_record_and_node_is_made_good(after):
    day = a_day()
    instance, node = with_an_agent(day)
    day.fleet.faults.plan(Fault("jenkins config.xml", after=after))
    day.minutes(12)
    assert day.fleet.faults.seen
    assert not instance.alive()
    assert day.nodes() == []
    assert bool(day.done(Relabel)) is not after
    assert node.name not in day.jenkins.nodes


def test_labels_that_could_not_be_given_back_are_given_back_by_the_next_pass():
    day = a_day()
    _, node = with_an_agent(day)
    until_cordoned(day, node)
    day.fleet.faults.plan(Fault("jenkins config.xml"))
    [build] = day.queue(1, seconds=600.0)
    day.minutes(4)
    assert set(node.labels) == ALL
    assert build.node == node.name


def test_without_the_right_to_configure_agents_the_mark_is_set_at_once_and_the_log_says_so():
    day = a_day()
    instance, _ = with_an_agent(day)
    day.fleet.apis["main"].lacks.add("hudson.model.Computer.Configure")
    day.minutes(10)
    assert not instance.alive()
    assert reasons(day, Cordon) == [Reason.SURPLUS]
    assert "cordoned_without_labels" in {event for event, _ in day.fleet.logged}


def test_a_lost_state_gives_the_labels_back():
    day = a_day()
    _, node = with_an_agent(day)
    until_cordoned(day, node)
    day.fleet.state.records.clear()
    day.fleet.state.memory = type(day.fleet.state.memory)(version=day.fleet.state.memory.version)
    [build] = day.queue(1, seconds=600.0)
    day.minutes(8)
    assert set(node.labels) == ALL
    assert build.started_at is not None


def test_an_operator_s_drain_waits_for_the_builds_and_never_comes_back():
    day = a_day()
    instance, node = with_an_agent(day, seconds=1800.0)
    [record] = day.fleet.state.records.values()
    taken = replace(record, cordon=f"autoscaler:f:{MarkClass.OPERATOR}:p")
    day.fleet.state.records[record.instance_id] = taken
    waiting = day.queue(1, seconds=60.0)
    day.minutes(5)
    assert set(node.labels) == BARE
    assert waiting[0].node != node.name
    day.minutes(40)
    assert not instance.alive()
    assert day.done(Terminate)


def test_a_build_is_not_lost_to_a_mark_that_follows_too_soon():
    """Labels are gone from the queue's view, and what was handed over before shows a moment later."""
    day = a_day()
    instance, node = with_an_agent(day)
    until_cordoned(day, node)
    assert day.done(Cordon)[-1].reason is Reason.SURPLUS
    assert not node.temporarily_offline
    assert instance.alive()


@pytest.mark.parametrize("label", ["!windows", "autoscaler-cordoned", "cpu || !windows"])
def test_what_waits_and_may_start_on_what_is_left_of_the_labels_keeps_the_mark_away(label):
    day = a_day()
    _, node = with_an_agent(day)
    until_cordoned(day, node)
    [build] = day.queue(1, label=label, seconds=900.0)
    build.blocked = True  # it waits for another job, and may start at any instant
    day.minutes(5)
    assert not node.temporarily_offline


def test_reloading_configuration_as_code_costs_no_build():
    day = a_day()
    [build] = day.queue(1, seconds=1800.0, kind=Kind.PIPELINE)
    day.minutes(8)
    day.jenkins.reload_configuration_as_code()
    day.minutes(60)
    assert build.ended is Ended.FINISHED
    assert day.nodes() == []


def test_what_a_person_configures_in_the_same_instant_is_seen_and_made_good_by_the_next_pass():
    day = a_day()
    instance, node = with_an_agent(day)
    written = []

    def meanwhile(call):
        if written[-1:] == ["jenkins config.xml"] and call == "jenkins computer" and "by hand" not in written:
            written.append("by hand")
            day.jenkins.configure(node.name, (*ALL, "annas-favourite"), exclusive=True, executors=node.executors)
        written.append(call)

    day.fleet.faults.meanwhile = meanwhile
    day.minutes(12)
    assert "by hand" in written
    assert day.done(Relabel)
    assert not instance.alive()


def test_labels_that_cannot_be_given_back_starve_no_job_and_are_told():
    """The right to configure was taken away in between: the agent is no supply, another one comes, and the step is named."""
    day = a_day()
    instance, node = with_an_agent(day)
    until_cordoned(day, node)
    day.fleet.apis["main"].lacks.add("hudson.model.Computer.Configure")
    [build] = day.queue(1, seconds=600.0)
    day.minutes(10)
    assert build.started_at is not None
    assert build.node != node.name
    assert any("Computer.Configure" in failing.why for failing in tables(day.fleet.state.memory).failing.values())
    day.minutes(40)
    assert not instance.alive()
    assert build.ended is Ended.FINISHED
