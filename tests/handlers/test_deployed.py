"""The functions with their own adapters: over HTTP, with the real SDK and a local AWS.

The other handler tests run in memory. One story here runs both ways and has to be answered alike.
"""

import json
import os
import re
from collections import defaultdict

import boto3
import pytest
from botocore.exceptions import ClientError
from moto.core import DEFAULT_ACCOUNT_ID
from moto.sqs.models import sqs_backends

from autoscaler import bootstrap
from autoscaler.adapters.stores import DynamoCosts, DynamoJobs
from autoscaler.errors import ConfigError
from autoscaler_workbench.cli import demo
from autoscaler_workbench.cli.remote import Deployed
from autoscaler_workbench.fakes.http_fakes.jenkins.jobs import Job
from autoscaler_workbench.fakes.identity import ec2_event, function_url_event
from autoscaler_workbench.fakes.slots import sqs_event
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from packaging_root import ROOT
from support.deployed import EXAMPLE, NOON, deployed, deployed_in_memory, essential_environment, event

GPU = "mxnetlinux-gpu"
JOBS = 4
LOOKS = {"LOOK_EVERY_SECONDS": "15", "LOOKS_QUEUE": "https://sqs.us-west-2.amazonaws.com/123456789012/looks"}
# Pools that stop agents, an image that a parameter names, runs that people order, and builds that are run again.
MORE = """
  warm: {executors: 1, launch_template: warm, instance_types: [c5.xlarge], max_agents: 2, idle_seconds: 60, warm_pool: {min_agents: 1},
    image_parameter: /ci/warm-image, rerun: {}}
runs: {}
"""


@pytest.fixture
def here():
    with deployed() as running:
        yield running


# One story, both ways.


class Story:
    """The answers of the functions, without what differs between two runs: new ids, addresses, and the last digits of figures."""

    def __init__(self, here):
        self.here = here
        self.answers = []

    def call(self, function, asked):
        text = json.dumps(self.here.call(function, asked), default=str)
        text = re.sub(r"http://127[^\"]*/main/", "https://jenkins.example.org/", re.sub(r"[0-9a-f]{32}", "ID", text))
        self.answers.append((function, json.loads(text, parse_float=rounded)))

    def pass_minutes(self, minutes):
        for _ in range(minutes):
            self.here.world.move_to(self.here.world.timeline.now + 60)
            for function in ("publish_metrics", "scale_up", "scale_down"):
                self.call(function, {})


def rounded(number):
    return round(float(number), 3)


def play(here):
    """Call every function: launch, register, build, stop, interrupt, hold, reserve, order runs, and ask."""
    story, jenkins = Story(here), here.world.controllers["main"]
    here.world.ec2.account.parameters["/ci/warm-image"] = "ami-linux"
    declares = {"AGENT_LABEL": "", "AUTOSCALER_RUN_ID": ""}
    here.server.jenkins["main"].jobs.jobs["ordered"] = Job(Kind.PIPELINE, None, 120.0, declares=declares, label_parameter="AGENT_LABEL")
    story.call("scale_up", event("tick"))
    jenkins.submit("job", GPU, 600.0)
    story.pass_minutes(8)
    story.call("webhook", event("webhook"))
    [instance] = [one for one in here.world.alive() if one.tags["autoscaler:pool"] == GPU]
    story.call("register_agent", function_url_event(instance.id))
    story.call("instance_events", ec2_event(instance.id, "interruption"))
    for _ in range(2):
        story.call("scale_up", event("scale_up_once"))
    for _ in range(2):
        story.call("operate", event("reserve") | {"hours": 0.5})
    for name in ("hold", "set", "reservations", "jobs", "eta", "costs", "budget"):
        story.call("operate", event(name))
    for name in ("plan", "status", "agents", "queue", "names", "overview", "why", "events", "doctor", "resume"):
        story.call("operate", event(name))
    for _ in range(2):
        story.call("operate", {"action": "run", "job": "ordered", "on": "warm", "by": "alice", "reason": "a test", "request_id": "once"})
    story.call("scale_up", event("doctor"))
    story.pass_minutes(8)
    for name in ("runs", "overview", "needs"):
        story.call("operate", event(name))
    return story.answers


def values_of(metrics):
    """The values of each metric, whether they were sent one by one or together."""
    values = defaultdict(list)
    for _, datum in metrics:
        values[datum.name, tuple(sorted(datum.dimensions))] += map(rounded, datum.values)
    return {name: sorted(found) for name, found in values.items()}


@pytest.mark.parametrize("level", ["essential", "full"])
def test_in_memory_the_functions_answer_publish_and_tell_as_with_their_own_adapters(level, tmp_path):
    file = tmp_path / "fleet.yaml"
    file.write_text(EXAMPLE.read_text(encoding="utf-8") + MORE, encoding="utf-8")
    environment = LOOKS | {"full": {}, "essential": essential_environment()}[level]
    with deployed_in_memory(file, environment) as here:
        in_memory = play(here), values_of(here.metrics), here.told()
    with deployed(file, environment) as here:
        make_queue()
        in_the_local_aws = play(here), values_of(here.metrics), here.told()
    assert {function for function, _ in in_memory[0]} == {path.parent.name for path in (ROOT / "functions").glob("*/app.py")}
    assert in_memory == in_the_local_aws
    assert in_memory[-1], "people were told something"


def test_a_request_that_is_repeated_is_carried_out_once(here):
    for _ in range(2):
        plan = here.call("scale_up", event("scale_up_once"))
    assert (len(here.world.ec2.instances), [held["reason"] for held in plan["held"]]) == (3, ["already-done"])
    once = event("set") | {"request_id": "release-1"}
    first = here.call("operate", once)
    here.call("operate", event("set") | {"pool": once["pool"], "min_agents": 1})
    assert here.call("operate", once)["numbers"] == first["numbers"]
    assert [numbers["min_agents"] for numbers in here.call("operate", event("plan"))["numbers"]] == [1]


# EC2 and the SDK.


@pytest.fixture
def waiting(here):
    """Jobs wait for a pool that has no agent."""
    here.pass_minutes(2)
    for number in range(JOBS):
        here.world.controllers["main"].submit(f"job-{number}", GPU, 1800.0)
    return here


def launched(here):
    """All that was ever launched for the jobs; the pool for lifecycle steps has an agent of its own."""
    return [instance for instance in here.world.ec2.instances.values() if instance.tags["autoscaler:pool"] == GPU]


def test_a_launch_whose_answer_is_lost_and_whose_repetition_is_throttled_launches_once(waiting):
    waiting.server.ec2.faults.plan(Fault("ec2 CreateFleet", after=True))
    waiting.server.ec2.faults.plan(Fault("ec2 CreateFleet", status=503, code="RequestLimitExceeded"))
    waiting.pass_minutes(6)
    assert len(launched(waiting)) == JOBS


def test_the_sdk_does_not_send_a_launch_again_by_itself(waiting):
    waiting.server.ec2.faults.plan(Fault("ec2 CreateFleet", status=503, code="RequestLimitExceeded"))
    waiting.world.move_to(waiting.world.timeline.now + 180)
    [step] = waiting.call("scale_up", {})["steps"]
    assert (step["step"], step["outcome"]) == ("launch", "failed")
    assert waiting.server.ec2.faults.seen == ["ec2 CreateFleet before 503"]
    assert launched(waiting) == []


# The table.


@pytest.mark.parametrize("store", [DynamoCosts, DynamoJobs])
def test_the_table_of_a_fleet_without_the_new_right_stops_no_metric(here, monkeypatch, store):
    def refused(*_arguments, **_named):
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": ""}}, "BatchGetItem")

    here.world.controllers["main"].submit("folder/job", GPU, 300.0)
    here.pass_minutes(1)
    client = boto3.client("dynamodb")
    monkeypatch.setattr(client, "batch_get_item", refused)
    monkeypatch.setattr(store, "client", lambda _self: client, raising=False)
    assert here.call("publish_metrics", {})["metrics"] > 10


def test_an_item_of_the_state_that_this_version_cannot_read_is_named(here):
    unreadable = {"fleet": {"S": here.fleet.name}, "item": {"S": "record#i-0123456789abcdef0"}, "body": {"S": '{"record": {"new": 1}}'}}
    boto3.client("dynamodb").put_item(TableName=demo.TABLE, Item=unreadable)
    assert list(here.call("operate", event("status"))["status"]["unread"]) == ["record#i-0123456789abcdef0"]


def test_a_poll_with_a_report_is_one_read_of_its_own_record_and_one_write(here):
    here.world.ec2.on_running = lambda _instance: None
    here.call("scale_up", event("tick"))
    [instance] = here.world.ec2.instances.values()
    told = json.loads(here.call("register_agent", function_url_event(instance.id))["body"])
    report = {"seconds": 300, "cores": 4, "memory_total": 16e9, "memory_available": 9e9, "root_free": 5e9}
    said = {"connected": [f"main/{told['node']}/0"], "telemetry": report}
    asked, calls = len(here.server.requests), []
    bootstrap._client("dynamodb").meta.events.register("before-call.dynamodb", lambda model, **_: calls.append(model.name))
    answer = here.call("register_agent", function_url_event(instance.id) | {"body": json.dumps(said)})
    assert (answer["statusCode"], "secret" in json.loads(answer["body"])["connections"][0]) == (200, False)
    assert (calls, here.server.requests[asked:]) == (["UpdateItem", "Query"], [])
    kept = bootstrap.runtime().ports.telemetry.latest()[instance.id]
    assert (kept.memory_available, kept.root_free, kept.told_at) == (9e9, 5e9, here.world.timeline.now)


# The other services.


def make_queue():
    """Make the queue of `LOOKS`; return where it is."""
    return boto3.client("sqs").create_queue(QueueName="looks")["QueueUrl"]


def delays():
    """After how long each message of the queue may be received."""
    [queue] = sqs_backends[DEFAULT_ACCOUNT_ID]["us-west-2"].queues.values()
    return [round((message.delayed_until - message.sent_timestamp) / 1000) for message in queue._messages]


def test_a_tick_asks_the_queue_to_be_woken_and_each_message_is_one_look():
    with deployed(environment=LOOKS) as here:
        make_queue()
        here.call("scale_up", event("tick"))
        assert delays() == [15, 30, 45]
        here.world.move_to(NOON + 15)
        woken = sqs_event(json.dumps({"slot": "slot#1", "at": NOON + 15}))
        assert "steps" in here.call("scale_up", woken)
        assert here.call("scale_up", woken) == {"skipped": "slot-taken"}


def test_a_queue_that_is_gone_costs_looks_alone_and_is_told_who_notifies():
    with deployed(environment=LOOKS) as here:
        assert here.call("scale_up", event("tick"))["steps"]
        assert here.call("webhook", event("webhook"))["statusCode"] == 503


def test_a_topic_that_is_gone_costs_no_metric(here, caplog):
    boto3.client("sns").delete_topic(TopicArn=os.environ["ALARM_TOPIC"])
    here.call("operate", event("reserve") | {"hours": 0.5})
    here.pass_minutes(2)
    assert here.call("publish_metrics", {})["metrics"] > 10
    assert "message_failed" in caplog.text


def test_a_secret_that_is_not_there_is_named_and_nothing_is_done(here):
    boto3.client("secretsmanager").delete_secret(SecretId="jenkins/main", ForceDeleteWithoutRecovery=True)
    plan = here.call("scale_up", event("tick"))
    assert "secret jenkins/main: ResourceNotFoundException" in plan["held"][0]["detail"]
    assert (plan["steps"], here.world.controllers["main"].nodes) == ([], {})


def test_a_stack_that_is_not_there_or_not_ours_is_said_in_one_line(here):
    with pytest.raises(ConfigError, match=r"--stack \(mine\): .*"):
        Deployed(stack="mine").call("operate", {"action": "status"})
