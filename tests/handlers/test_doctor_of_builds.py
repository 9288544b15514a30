"""What the doctor tries of the permissions that ordered runs need, through the real handler."""

import pytest

from autoscaler_workbench.fakes.http_fakes.jenkins.jobs import Job
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.deployed import event

FLEET = """
fleet: mxnet-ci
limits: {max_agents: 10, max_launches_per_hour: 40, max_usd_per_hour: 80, max_usd_per_month: 12000}
controllers: {main: {url: "https://jenkins.example.org/", secret: jenkins/main}}
defaults: {queue_maturity_seconds: 0, idle_seconds: 3600}
runs: {}
pools:
  cpu: {executors: 1, launch_template: t, instance_types: [c5.large], max_agents: 5, usd_per_hour: 1}
"""


def begin(here, *, kind=Kind.FREESTYLE, seconds=3600.0):
    """A build that runs on an agent."""
    jobs = here.server.jenkins["main"].jobs
    jobs.jobs["job"] = Job(kind, "cpu", seconds)
    build = jobs.build("job", None, "somebody")
    for _ in range(10):
        here.pass_minutes(1)
        if build.started_at is not None:
            return build
    raise AssertionError("it has not begun")


def found(here, permission):
    findings = here.call("operate", event("doctor"))["findings"]
    [one] = [one for one in findings if one["what"].split()[0] == permission]
    return one["fine"], one["detail"]


def lack(here, permission):
    here.server.jenkins["main"].lacks = {f"hudson.model.Item.{permission}"}


def test_the_permission_to_build_is_tried_for_ordered_runs_alone(here):
    begin(here)
    assert found(here, "Job/Build") == (True, "")
    lack(here, "Build")
    fine, detail = found(here, "Job/Build")
    assert (fine, "lacks hudson.model.Item.Build; runs needs it" in detail) == (False, True)


def test_the_permission_to_cancel_is_tried_on_an_item_that_has_left_and_cancels_nothing(here):
    build = begin(here)
    waits = here.world.controllers["main"].submit("waits", "nowhere", 1.0)
    assert found(here, "Job/Cancel") == (True, "")
    lack(here, "Cancel")
    fine, detail = found(here, "Job/Cancel")
    assert (fine, "the account lacks Job/Cancel" in detail) == (False, True)
    here.pass_minutes(1)
    assert (build.ended, waits in here.world.controllers["main"].queue) == (None, True)


def test_the_permission_to_cancel_is_tried_on_a_pipeline_that_has_ended_and_stops_none_that_runs(here):
    begin(here, kind=Kind.PIPELINE, seconds=60.0)
    here.pass_minutes(3)
    build = begin(here, kind=Kind.PIPELINE)
    here.pass_minutes(6)
    assert found(here, "Job/Cancel") == (True, "")
    lack(here, "Cancel")
    fine, detail = found(here, "Job/Cancel")
    assert (fine, "lacks hudson.model.Item.Cancel" in detail) == (False, True)
    here.pass_minutes(1)
    assert build.ended is None


def test_a_build_that_began_long_ago_tells_nothing_of_the_permission_to_cancel(here):
    """Jenkins has forgotten its item; of a freestyle build that has ended it asks for no permission, and one that runs is left alone."""
    build = begin(here)
    here.pass_minutes(6)
    lack(here, "Cancel")
    fine, detail = found(here, "Job/Cancel")
    assert (fine, detail.startswith("no build has begun in the last five minutes")) == (None, True)
    here.pass_minutes(1)
    assert build.ended is None


def test_where_nothing_runs_the_doctor_does_not_know(here):
    assert found(here, "Job/Cancel")[0] is found(here, "Job/Build")[0] is None


@pytest.mark.parametrize(("status", "said"), [(0, "connection to Jenkins failed"), (502, "Jenkins answered 502")])
def test_what_jenkins_does_not_answer_tells_nothing_of_the_permission_to_cancel(here, status, said):
    begin(here)
    here.server.jenkins["main"].faults.plan(Fault("jenkins cancelItem", status=status))
    fine, detail = found(here, "Job/Cancel")
    assert (fine, said in detail) == (None, True)
