"""Lost builds through the real handlers: run again, and told of."""

import pytest

from autoscaler_workbench.fakes.http_fakes.jenkins.jobs import Job
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from support.asked import command, served, told
from support.deployed import event
from support.ringing import ringing_in

FLEET = """
fleet: mxnet-ci
limits: {max_agents: 10, max_launches_per_hour: 40, max_usd_per_hour: 80, max_usd_per_month: 12000}
controllers: {main: {url: "https://jenkins.example.org/", secret: jenkins/main}}
defaults: {queue_maturity_seconds: 0, rerun: {}}
pools:
  cpu: {executors: 1, launch_template: t, instance_types: [c5.large], max_agents: 5, usd_per_hour: 1}
"""


def running(here, *declares, hides=()):
    jobs = here.server.jenkins["main"].jobs
    jobs.jobs["job"] = Job(Kind.FREESTYLE, "cpu", 900.0, declares=dict.fromkeys(declares, ""), hides=frozenset(hides))
    build = jobs.build("job", dict.fromkeys(declares, "x") if declares else None, "somebody")
    here.pass_minutes(8)
    assert build.node
    return build


def lose(here, build):
    for instance in here.world.ec2.instances.values():
        if instance.tags.get("autoscaler:node") == build.node:
            here.world.ec2.end(instance)


def ended(here):
    return [build.ended for build in here.world.controllers["main"].builds_of["job"]]


def why(here):
    return "\n".join(here.call("operate", {"action": "why", "subject": "job"})["facts"])


def test_a_lost_build_is_run_again_and_why_and_events_tell_of_it(here):
    lose(here, running(here, "REF"))
    here.pass_minutes(3)
    assert "job/job/1 was lost, and was run again" in why(here)
    told = here.call("operate", {"action": "events", "hours": 1})["events"]
    [again] = [one for one in told if one["what"] == "run-again"]
    assert (again["where"], again["subject"], again["reason"]) == ("main/cpu", "job", "lost-build")
    here.pass_minutes(25)
    assert ended(here) == [Ended.KILLED, Ended.FINISHED]
    assert ringing_in(here) == set()


def test_a_lost_build_that_is_left_rings_and_is_told_of_once(here):
    lose(here, running(here, "REF", "TOKEN", hides=("TOKEN",)))
    here.pass_minutes(6)
    assert ringing_in(here) == {"BuildsLeft"}
    [(subject, text)] = [(subject, text) for subject, text in here.told() if "lost build" in subject]
    assert subject == "[mxnet-ci] a lost build of job is left to you"
    assert "job/job/1 on main: Jenkins does not show TOKEN" in text
    assert "docs/operations.md#builds-left" in text
    assert "is left to a person: Jenkins does not show TOKEN" in why(here)
    here.pass_minutes(5)
    assert len([subject for subject, _ in here.told() if "lost build" in subject]) == 1


def test_lost_lists_the_builds_that_were_lost_and_what_became_of_each(here):
    with served(here, "operate"):
        assert told(here, "lost") == {"lost": []}
        assert "no lost build is known" in command(here, "lost", columns=120).stdout
    lose(here, running(here, "REF"))
    here.pass_minutes(3)
    with served(here, "operate"):
        [lost] = told(here, "lost")["lost"]
        assert (lost["what"], lost["subject"]) == ("run-again", "job")
        assert "run again" in command(here, "lost", columns=120).stdout


def test_the_doctor_tries_the_permission_to_build_and_starts_nothing(here):
    running(here, "REF")
    before = len(here.world.controllers["main"].builds)

    def found():
        findings = here.call("operate", event("doctor"))["findings"]
        return [(one["fine"], one["detail"]) for one in findings if one["what"].startswith("Job/Build")]

    assert found() == [(True, "")]
    here.server.jenkins["main"].lacks = {"hudson.model.Item.Build"}
    [(fine, detail)] = found()
    assert (fine, "lacks hudson.model.Item.Build" in detail) == (False, True)
    assert len(here.world.controllers["main"].builds) == before


@pytest.mark.parametrize("declares", [(), ("REF",)])
def test_the_doctor_starts_nothing_whatever_parameters_a_job_has(here, declares):
    running(here, *declares)
    here.call("operate", event("doctor"))
    assert len(here.world.controllers["main"].builds_of["job"]) == 1


def test_without_a_build_to_try_it_on_the_doctor_does_not_know(here):
    findings = here.call("operate", event("doctor"))["findings"]
    assert [one["fine"] for one in findings if one["what"].startswith("Job/Build")] == [None]
