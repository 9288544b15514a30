"""Time-lines of pipelines whose block was cancelled: by a person, or by Jenkins, which found it on no executor after a deletion."""

import pytest

from autoscaler.domain.facts.started_builds import RerunPolicy
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind, Stopper
from support.builders import a_pool
from support.lost import FIRM, a_day, answers, builds, define, running
from support.ordering import a_day as a_day_of_orders
from support.ordering import asked, instance_of, order, told
from support.ordering import builds as builds_of_order
from support.ordering import define as define_ordered


def a_pipeline():
    """A pipeline on an agent. It waits for a person there, so that Jenkins does not give it up before its node is deleted."""
    day = a_day(offerings=(FIRM,))
    day.jenkins.gone.are_cancelled = True
    pipeline, instance = running(day, define(day, kind=Kind.PIPELINE))
    pipeline.waits_for_input = True
    return day, pipeline, instance


def until(day, is_so):
    for _ in range(40):
        if is_so():
            return
        day.minutes(1)
    raise AssertionError("not within 40 minutes")


def somebody_deletes_its_computer(day, node):
    """A person tidies up: the second deletion, which ours is not."""
    until(day, lambda: node in day.jenkins.gone.computers)
    day.jenkins.delete_node(node)


def test_what_jenkins_cancels_after_its_node_was_deleted_is_lost_and_is_run_again():
    day, pipeline, instance = a_pipeline()
    day.world.ec2.end(instance)
    somebody_deletes_its_computer(day, pipeline.node)
    until(day, lambda: pipeline.ended is not None)
    assert pipeline.stopped_by is Stopper.CANCELLED_ITEM
    day.minutes(5)
    assert builds(day) == [(1, Ended.KILLED), (2, None)]
    assert answers(day) == [("job/job/1", "started", 1)]


def test_a_node_whose_executors_somebody_set_to_none_is_no_deleted_one():
    """It was believed to be deleted, so that nobody deleted it: its pipeline hung for ever, and its record stayed."""
    day, pipeline, instance = a_pipeline()
    day.jenkins.nodes[pipeline.node].executors = 0
    day.world.ec2.end(instance)
    until(day, lambda: pipeline.node in day.jenkins.gone.computers)
    until(day, lambda: pipeline.ended is not None)


def test_what_a_person_cancels_after_its_node_was_deleted_is_not_run_again_if_it_had_gone_on_elsewhere():
    day, pipeline, instance = a_pipeline()
    day.world.ec2.end(instance)
    day.minutes(3)
    retried = day.jenkins.submit("job", "gpu-that-nobody-has", 900.0, kind=Kind.PIPELINE, number=pipeline.number)
    until(day, lambda: pipeline.node in day.jenkins.gone.computers)
    pipeline.on_end = lambda build: setattr(build, "stopped_by", None)  # it is caught, and retried
    until(day, lambda: pipeline.ended is not None)
    day.jenkins.abort(retried, Stopper.CANCELLED_ITEM)
    day.minutes(10)
    assert answers(day) == []


@pytest.mark.parametrize("ends", [True, False], ids=["its machine has ended", "its agent is cut off"])
def test_what_a_person_takes_out_of_the_queue_before_its_node_is_deleted_is_not_run_again(ends):
    """After a restart of Jenkins it waits in the queue for its node, which is there until two looks saw its machine gone."""
    day, pipeline, instance = a_pipeline()
    day.world.ec2.end(instance) if ends else day.jenkins.disconnect(pipeline.node)
    day.jenkins.restart()
    day.minutes(2)
    assert pipeline in day.jenkins.queue
    assert pipeline.node in day.jenkins.nodes
    day.jenkins.abort(pipeline, Stopper.CANCELLED_ITEM)
    day.minutes(1)
    day.world.ec2.end(instance)
    day.minutes(20)
    assert pipeline.node not in day.jenkins.nodes
    assert (builds(day), answers(day)) == ([(1, Ended.ABORTED)], [])


@pytest.mark.parametrize("rerun", [None, RerunPolicy(times=3)], ids=["without rerun", "with rerun"])
def test_a_build_of_an_order_that_jenkins_cancels_after_its_node_was_deleted_is_started_again_by_its_order(rerun):
    day = a_day_of_orders(a_pool("cpu", rerun=rerun), a_pool("gpu"))
    day.jenkins.gone.are_cancelled = True
    define_ordered(day, kind=Kind.PIPELINE, seconds=900.0)
    entry = order(day, asked(on="cpu"))
    day.minutes(8)
    [pipeline] = builds_of_order(day)
    pipeline.waits_for_input = True
    day.world.ec2.end(instance_of(day, pipeline))
    somebody_deletes_its_computer(day, pipeline.node)
    day.minutes(60)
    entry = told(day, entry.id)
    assert [build.ended for build in builds_of_order(day)] == [Ended.KILLED, Ended.FINISHED]
    assert (entry.outcome, entry.parts[0].tries) == ("passed", 2)


def test_a_build_of_an_order_whose_block_a_person_takes_out_of_the_queue_was_aborted():
    day = a_day_of_orders()
    define_ordered(day, kind=Kind.PIPELINE)
    entry = order(day, asked(on="cpu"))
    day.minutes(1)
    [pipeline] = builds_of_order(day)
    assert pipeline in day.jenkins.queue
    day.jenkins.abort(pipeline, Stopper.CANCELLED_ITEM)
    day.minutes(5)
    assert told(day, entry.id).summary == "1 of 1 aborted"
    assert len(builds_of_order(day)) == 1
