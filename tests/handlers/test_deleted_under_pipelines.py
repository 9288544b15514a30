"""Machines that go under a pipeline, through the real handlers: its node is deleted once, and Jenkins ends the pipeline by itself."""

from dataclasses import replace

import pytest

from autoscaler_workbench.fakes.http_fakes.jenkins.jobs import Job
from autoscaler_workbench.fakes.state import InMemoryState
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind, Stopper

FLEET = """
fleet: mxnet-ci
limits: {max_agents: 10, max_launches_per_hour: 40, max_usd_per_hour: 80, max_usd_per_month: 12000}
controllers: {main: {url: "https://jenkins.example.org/", secret: jenkins/main}}
defaults: {queue_maturity_seconds: 0, rerun: {}}
pools:
  cpu: {executors: 1, launch_template: t, instance_types: [c5.large], max_agents: 5, usd_per_hour: 1, idle_seconds: 1200}
"""
WITHOUT_RIGHTS = {"hudson.model.Computer.ExtendedRead", "hudson.model.Computer.Configure"}


@pytest.fixture
def deleted(here):
    """Names of the computers for which ``doDelete`` was sent, in order."""
    sent, jenkins = [], here.world.controllers["main"]
    delete = jenkins.delete_node
    jenkins.delete_node = lambda name: (sent.append(name), delete(name))
    return sent


def running(here):
    """A pipeline on its agent, and the instance of that."""
    jobs = here.server.jenkins["main"].jobs
    jobs.jobs["job"] = Job(Kind.PIPELINE, "cpu", 7200.0)
    build = jobs.build("job", None, "somebody")
    here.pass_minutes(8)
    assert build.node
    return build, next(one for one in here.world.ec2.instances.values() if one.tags.get("autoscaler:node") == build.node)


def minutes_until(here, is_so, at_most=40):
    for minute in range(at_most):
        if is_so():
            return minute
        here.pass_minutes(1)
    raise AssertionError(f"not within {at_most} minutes")


@pytest.mark.parametrize("lacks", [set(), WITHOUT_RIGHTS], ids=["all rights", "the recommended rights"])
def test_a_node_that_stays_listed_under_its_pipeline_is_deleted_once_and_the_pipeline_is_run_again(here, deleted, lacks):
    here.server.jenkins["main"].lacks |= lacks
    build, instance = running(here)
    here.world.ec2.end(instance)
    minutes_until(here, lambda: build.ended is not None)
    here.pass_minutes(15)
    assert deleted.count(instance.tags["autoscaler:node"]) == 1
    assert (build.ended, build.stopped_by) in {(Ended.KILLED, Stopper.REMOVED_NODE), (Ended.KILLED, Stopper.AGENT_AWAY)}
    assert [one.ended for one in here.world.controllers["main"].builds_of["job"]] == [Ended.KILLED, None]
    assert instance.id not in here.state.records


def waits_for_input(here):
    """A pipeline that waits for a person on its agent: Jenkins does not end it while its node is there."""
    build, instance = running(here)
    build.waits_for_input = True
    return build, instance


def test_what_waits_for_a_person_is_ended_by_the_deletion_alone(here, deleted):
    build, instance = waits_for_input(here)
    node = build.node
    here.world.ec2.end(instance)
    minutes_until(here, lambda: node in deleted)
    here.pass_minutes(1)
    told = "\n".join(here.call("operate", {"action": "why", "subject": node})["facts"])
    assert "its node is deleted" in told
    minutes_until(here, lambda: build.ended is not None, at_most=7)
    here.pass_minutes(15)
    assert (deleted.count(node), build.stopped_by) == (1, Stopper.REMOVED_NODE)
    assert [one.ended for one in here.world.controllers["main"].builds_of["job"]] == [Ended.KILLED, None]
    assert instance.id not in here.state.records
    assert here.world.controllers["main"].gone.stranded == []


def test_what_the_record_notes_is_not_deleted_again_though_jenkins_shows_executors(here, deleted):
    build, instance = waits_for_input(here)
    node = build.node
    here.world.ec2.end(instance)
    minutes_until(here, lambda: node in deleted)
    here.world.controllers["main"].gone.computers[node].executors = 1
    assert here.state.records[instance.id].bindings[0].deleted_at > 0
    minutes_until(here, lambda: build.ended is not None, at_most=7)
    assert (deleted.count(node), build.stopped_by) == (1, Stopper.REMOVED_NODE)


@pytest.mark.parametrize("lost", ["the answer of the deletion", "the note of it"])
def test_a_deletion_of_which_nothing_was_learned_is_not_repeated_while_the_pipeline_is_listed(here, deleted, lost, monkeypatch):
    build, instance = waits_for_input(here)
    node = build.node
    here.world.ec2.end(instance)
    if lost == "the answer of the deletion":
        here.server.jenkins["main"].faults.plan(Fault("jenkins doDelete", after=True))
    else:
        write = InMemoryState.change_record

        def forgets(state, record, **how):
            return write(state, replace(record, bindings=tuple(replace(one, deleted_at=0.0) for one in record.bindings)), **how)

        monkeypatch.setattr(InMemoryState, "change_record", forgets)
    minutes_until(here, lambda: build.ended is not None)
    here.pass_minutes(15)
    assert (deleted.count(node), build.stopped_by) == (1, Stopper.REMOVED_NODE)
    assert instance.id not in here.state.records
