"""Time-lines of agents whose old node is in use again before it is deleted: they go back to it, and the next look decides anew."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.plan import FinishRotation, Launch, Rotate, Terminate
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from scenarios.test_rotation import a_day, elsewhere, nodes_of


def cut_off(times=1):
    """An agent that was given to the other controller, whose job waits; its old node could not be deleted, and is idle."""
    day = a_day()
    day.build = elsewhere(day)
    day.fleet.faults.plan(Fault("jenkins doDelete", times=times))
    day.minutes(1)
    [record] = day.fleet.state.read().records
    [left] = record.leaves
    assert (record.controller, left.controller, [left.node]) == ("other", "main", nodes_of(day.jenkins))
    day.name = left.node
    return day


def reloaded(day):
    day.jenkins.reload_configuration_as_code()


def by_a_person(day):
    day.jenkins.toggle(day.name, "", "anna")


@pytest.mark.parametrize("brought_online", [reloaded, by_a_person])
def test_an_agent_whose_old_node_was_brought_online_goes_back_to_it_and_then_where_jobs_wait(brought_online):
    day = cut_off()
    brought_online(day)
    day.minutes(1)
    [record] = day.fleet.state.read().records
    assert (record.controller, record.node, record.life, record.leaves) == ("main", day.name, 0, ())
    assert not record.is_measured  # no boot has ended
    day.minutes(20)
    assert (day.build.ended, nodes_of(day.jenkins), nodes_of(day.other)) == (Ended.FINISHED, [], [day.name])
    # The log says that the rotation which was cut off failed.
    assert (len(day.done(Launch)), len(day.done(Rotate)), day.done(Terminate)) == (1, 1, [])


def test_once_it_is_back_its_own_controllers_jobs_have_it():
    day = cut_off()
    reloaded(day)
    day.minutes(1)
    day.other.abort(day.build)
    [own] = day.queue(1, label="gpu", seconds=60.0)
    day.minutes(5)
    assert (own.ended, own.node, len(day.done(Launch))) == (Ended.FINISHED, day.name, 1)


def test_a_build_that_began_on_the_old_node_ends_there_though_the_agents_process_restarts():
    day = cut_off()
    reloaded(day)
    build = day.jenkins.submit("by-name", day.name, 600.0, kind=Kind.PIPELINE)
    day.minutes(2)
    assert build.node == day.name
    [instance] = day.world.alive()
    day.fleet.agents.restarts(instance)
    day.minutes(40)
    assert (build.ended, day.build.ended, len(day.done(Launch))) == (Ended.FINISHED, Ended.FINISHED, 1)


def test_a_pipeline_that_resumes_on_the_old_node_after_a_restart_of_jenkins_is_not_lost():
    day = cut_off()
    reloaded(day)
    build = day.jenkins.submit("by-name", day.name, 600.0, kind=Kind.PIPELINE)
    day.world.move_to(day.world.timeline.now + 20.0)
    assert build.node == day.name
    day.jenkins.restart()
    day.minutes(60)
    assert (build.ended, day.build.ended) == (Ended.FINISHED, Ended.FINISHED)


def test_a_job_that_asks_for_the_old_node_by_name_gets_it_before_it_is_deleted():
    day = cut_off()
    build = day.jenkins.submit("by-name", day.name, 60.0)
    day.minutes(30)
    assert (build.ended, day.build.ended, len(day.done(Launch))) == (Ended.FINISHED, Ended.FINISHED, 1)


def test_a_build_on_the_old_node_outlives_the_end_of_the_months_money():
    day = cut_off()
    reloaded(day)
    build = day.jenkins.submit("by-name", day.name, 300.0)
    day.fleet.fleet = replace(day.fleet.fleet, limits=replace(day.fleet.fleet.limits, max_usd_per_month=1e-6))
    day.minutes(20)
    assert (build.ended, day.world.alive(), nodes_of(day.jenkins)) == (Ended.FINISHED, [], [])


def test_once_its_instance_has_ended_its_old_node_goes_though_it_was_brought_online():
    day = cut_off()
    reloaded(day)
    for instance in day.world.alive():
        day.world.ec2.end(instance)
    day.minutes(40)
    assert nodes_of(day.jenkins) == []
    assert {record.instance_id for record in day.fleet.state.read().records} <= {instance.id for instance in day.world.alive()}


def test_a_build_that_begins_after_the_last_look_on_the_old_node_outlives_the_end_of_the_months_money():
    day = cut_off()
    builds = []

    def meanwhile(call):
        if call == "state change_record" and not builds:  # the record is condemned, then the nodes are read
            reloaded(day)
            builds.append(day.jenkins.submit("by-name", day.name, 300.0))
            day.jenkins.schedule()

    day.fleet.fleet = replace(day.fleet.fleet, limits=replace(day.fleet.fleet.limits, max_usd_per_month=1e-6))
    day.fleet.faults.meanwhile = meanwhile
    day.minutes(20)
    assert ([build.ended for build in builds], day.world.alive(), nodes_of(day.jenkins)) == ([Ended.FINISHED], [], [])


def test_as_long_as_its_old_node_cannot_be_deleted_and_is_out_of_use_it_does_not_go_back():
    day = cut_off(times=9)
    day.minutes(50)
    assert (day.build.ended, nodes_of(day.jenkins), day.done(FinishRotation) != []) == (Ended.FINISHED, [], True)
