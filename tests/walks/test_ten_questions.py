"""The ten questions of the person on call: each is asked by one command, and its answer is true of the fleet that is played.

The answers are kept as a transcript. The sentence that matters in each is compared with the world itself.
"""

import re
import shlex

import pytest

from autoscaler.domain.report.problems import Subscription
from autoscaler_workbench.fakes.http_fakes.jenkins.jobs import Job
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from packaging_root import ROOT
from support.asked import command, served
from support.deployed import NOON
from support.on_call import a_night, is_as_kept, section_of

OPERATIONS = ROOT / "docs" / "operations.md"

FLEET = """
fleet: small-ci
limits: {max_agents: 12, max_launches_per_hour: 60, max_usd_per_hour: 50, max_usd_per_month: 10000}
controllers: {main: {url: "https://jenkins.example.org/", secret: jenkins/main}}
defaults: {queue_maturity_seconds: 0, boot_seconds: 60, rerun: {}}
pools:
  cpu: {executors: 1, launch_template: cpu, instance_types: [c5.large], max_agents: 3, usd_per_hour: 1}
  gpu: {executors: 1, launch_template: gpu, instance_types: [g5.xlarge], max_agents: 6, usd_per_hour: 2}
"""
HOUR = 3600.0
MIDNIGHT = NOON + 16 * HOUR
USD_PER_HOUR = {"cpu": 1.01, "gpu": 2.01}  # with their disks
# Of the page, which thereby is true: each question, and its one command.
QUESTIONS = dict(re.findall(r"^\| ([A-Z][^|`]*[?.]) \| `(autoscaler [^`]+)` \|", section_of(OPERATIONS, "ten-questions"), re.MULTILINE))


@pytest.fixture
def night(tmp_path, monkeypatch):
    """A fleet at five past midnight: one pool is full, a GPU is reserved, and two builds were lost with their machines."""
    monkeypatch.setenv("LOGNAME", "ada")
    fleet_file = tmp_path / "fleet.yaml"
    fleet_file.write_text(FLEET, encoding="utf-8")
    with a_night(fleet_file) as night:
        night.here.world.move_to(MIDNIGHT - HOUR / 2)
        night.here.pass_minutes(1)
        lost = [started(night, "nightly/bench"), started(night, "nightly/publish", "TOKEN")]
        night.here.pass_minutes(5)
        for build in lost:
            night.here.world.ec2.end(machine_of(night, build.node))
        night.long = [night.jenkins.submit(f"unit/PR-{number}", "cpu", 2 * HOUR) for number in range(2)]
        night.training = night.jenkins.submit("train/resnet", "gpu", 2 * HOUR)
        reserve = {"action": "reserve", "target": "gpu", "hours": 4, "person": "alice", "reason": "a test hangs here only", "by": "ada"}
        night.here.call("operate", reserve)
        [night.reserved] = alive(night, "gpu")
        night.here.pass_minutes(30)
        night.usd_of_yesterday = sum(usd_of_yesterday(one) for one in night.here.world.ec2.instances.values())
        yield night


def started(night, job, *hidden):
    jobs = night.here.server.jenkins["main"].jobs
    jobs.jobs[job] = Job(Kind.FREESTYLE, "cpu", 3 * HOUR, declares=dict.fromkeys(hidden, ""), hides=frozenset(hidden))
    return jobs.build(job, dict.fromkeys(hidden, "x") or None, "somebody")


def machine_of(night, node):
    [machine] = [one for one in night.here.world.ec2.instances.values() if one.tags.get("autoscaler:node") == node]
    return machine


def usd_of_yesterday(machine):
    """What it cost up to the last look before midnight; the minute up to midnight is seen, and counted, on the new day."""
    return machine.spells[0].seconds(MIDNIGHT - 60) / HOUR * USD_PER_HOUR[machine.tags["autoscaler:pool"]]


def alive(night, pool):
    return [one for one in night.here.world.alive() if one.tags["autoscaler:pool"] == pool]


def asks(night, question, keep="", **places):
    """Type the command that the page has for a question, with what it is about filled in."""
    night.transcript.append(f"{question}\n")
    line = re.sub(r"\b[A-Z]+\b", lambda place: places.pop(place[0]), QUESTIONS[question])
    assert not places
    return night.types(line, keep)


def line_with(said, words):
    """The one line of an answer that has these words, its columns set apart by one blank."""
    [line] = [" ".join(line.split()) for line in said.splitlines() if words in line]
    return line


def says_why_a_job_waits(night):
    night.jenkins.submit("unit/PR-7", "cpu", 600.0)
    night.here.pass_minutes(1)
    said = asks(night, "Why does this job wait?", JOB="unit/PR-7")
    assert said.startswith("1 build waits: cpu is full (3 of 3 agents, max_agents).")
    assert [build.job for build in night.jenkins.queue] == ["unit/PR-7"]
    assert len(alive(night, "cpu")) == 3


def says_why_a_machine_is_here(night):
    node, machine = night.training.node, machine_of(night, night.training.node)
    said = asks(night, "Why is this machine here?", NODE=node)
    assert said.startswith(f"{node} ({machine.id}) of gpu on main: busy; g5.xlarge, $2.01 an hour")
    assert "- it runs train/resnet (for 28 min so far)" in said.splitlines()


def says_what_comes_next(night):
    night.jenkins.submit("train/bert", "gpu", 600.0)
    before = len(alive(night, "gpu"))
    said = asks(night, "What will you do next?")
    assert line_with(said, "Plan: ").startswith("Plan: 1 to launch, 0 to terminate")
    assert line_with(said, "max-agents") == "max-agents cpu one more would make 4 agents in pool cpu, the limit is 3"
    assert len(alive(night, "gpu")) == before
    night.here.pass_minutes(1)
    assert len(alive(night, "gpu")) == before + 1


def launches(night):
    before = alive(night, "gpu")
    said = asks(night, "One more GPU.", POOL="gpu")
    assert said.startswith("1 of 1 agent of gpu launched; kept until ")
    [kept] = [machine for machine in alive(night, "gpu") if machine not in before]
    night.here.pass_minutes(40)
    assert kept in alive(night, "gpu")
    assert len(alive(night, "gpu")) == len(before)  # another, which had no more work, is gone


def drains(night):
    build = night.long[0]
    drained = machine_of(night, build.node)
    said = asks(night, "Drain this.", NODE=build.node)
    assert f"{build.node} takes no new builds; once its 1 build ({build.job}) has ended, it is terminated" in said
    night.here.pass_minutes(5)
    assert (night.jenkins.nodes[build.node].offline, drained in night.here.world.alive(), build.ended) == (True, True, None)
    night.jenkins.finish(build)
    night.here.pass_minutes(5)
    assert (drained in night.here.world.alive(), build.ended) == (False, Ended.FINISHED)


def says_what_yesterday_cost(night):
    said = asks(night, "What did yesterday cost?")
    total = float(said.rpartition("all of 2027-01-15 (UTC): $")[2])
    assert total == pytest.approx(night.usd_of_yesterday, abs=0.01)
    assert line_with(said, "(reserved for alice)").startswith("(reserved for alice) $0.")
    assert line_with(said, "train/resnet").startswith("train/resnet $0.")


def says_who_reserved(night):
    said = asks(night, "Who reserved this?")
    assert f"alice  {night.reserved.tags['autoscaler:node']} ({night.reserved.id})  03:36 UTC" in said


def says_what_was_lost(night):
    said = asks(night, "Which builds were lost?")
    assert "nightly/publish left to you" in line_with(said, "nightly/publish ")
    assert "nightly/bench run again" in line_with(said, "nightly/bench ")
    runs = {job: night.jenkins.builds_of[job] for job in ("nightly/publish", "nightly/bench")}
    assert {job: (len(builds), builds[0].ended) for job, builds in runs.items()} == {
        "nightly/publish": (1, Ended.KILLED),
        "nightly/bench": (2, Ended.KILLED),
    }


def says_whether_anybody_is_told(night):
    said = asks(night, "Is anybody told?", keep="alarms")
    assert line_with(said, "alarms reach somebody") == "ok aws alarms reach somebody"


def stops_everything(night):
    said = asks(night, "Stop everything.", REASON="the region is unwell")
    assert said.startswith("the whole fleet is frozen until somebody resumes it, by ada: the region is unwell; since ")
    assert said.endswith("; to end it now: autoscaler resume --fleet\n")
    there = {one.id for one in night.here.world.alive()}
    for number in range(4):
        night.jenkins.submit(f"train/gpt-{number}", "gpu", 3 * HOUR)
    night.here.pass_minutes(60)
    assert night.jenkins.queue
    assert night.training.ended == Ended.FINISHED
    assert {one.id for one in night.here.world.alive()} == there


def test_each_question_is_one_command_whose_answer_is_true(night):
    says_why_a_job_waits(night)
    says_why_a_machine_is_here(night)
    says_what_comes_next(night)
    launches(night)
    drains(night)
    says_what_yesterday_cost(night)
    says_who_reserved(night)
    says_what_was_lost(night)
    says_whether_anybody_is_told(night)
    stops_everything(night)
    assert [entry.rstrip() for entry in night.transcript[::2]] == [*QUESTIONS]
    is_as_kept("ten_questions", night.transcript)


def test_where_no_alarm_reaches_anybody_the_same_command_says_so_and_how_to_cure_it(night):
    night.here.stored.notifier.subscribed = (Subscription(address="ada@example.org", confirmed=False),)
    with served(night.here, "scale_up", "scale_down", "operate"):
        ran = command(night.here, *shlex.split(QUESTIONS["Is anybody told?"])[1:])
    assert ran.exit_code == 1
    [line] = [line for line in ran.stdout.splitlines() if "alarms reach somebody" in line]
    assert "nobody receives the alarms: open the link in the mail that AWS sent to ada@example.org" in line
