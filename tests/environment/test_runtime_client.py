"""Each built function in AWS' own runtime client, with every sample event: what it answers can be written as Lambda writes it."""

import os
import time
from datetime import UTC, datetime

import boto3
import pytest

from autoscaler.config import load_settings
from autoscaler_workbench.cli import demo
from autoscaler_workbench.fakes.http_fakes.server import ApiServer
from autoscaler_workbench.fakes.world.world import build_world
from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET
from support.deployed import essential_environment, event
from support.runtime_api import running
from support.samples import SAMPLES, samples_of

# What is launched first is in the answers of the others.
FUNCTIONS = ["ScaleUp", "PublishMetrics", "ScaleDown", "InstanceEvents", "RegisterAgent", "Operate", "Webhook"]
FOLDERS = {name: "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).strip("_") for name in FUNCTIONS}


@pytest.fixture(scope="module")
def environment(local_aws):
    """What Lambda gives the functions: a world and a local AWS over HTTP, on the wall clock."""
    settings = load_settings(EXAMPLE_FLEET)
    with ApiServer() as server, demo.environment(server, settings, EXAMPLE_FLEET), pytest.MonkeyPatch.context() as patch:
        world = build_world(settings.domain(), start_at=time.time(), seed=1)
        world.controllers["main"].submit("folder/job", "utility", 600.0)
        demo.serve(server, world)
        patch.setenv("AWS_ENDPOINT_URL", local_aws)
        boto3.setup_default_session()
        demo.create_table()
        demo.create_secrets(settings)
        topic = demo.create_topic(demo.ON_CALL)
        queue = boto3.client("sqs").create_queue(QueueName="looks")["QueueUrl"]
        yield {**essential_environment(), **os.environ, "METRICS_LEVEL": "essential", "ALARM_TOPIC": topic, "LOOKS_QUEUE": queue}


def given(sample):
    """A sample as AWS would send it now: an old tick is skipped."""
    sent = event(sample)
    return sent | {"time": datetime.now(UTC).isoformat()} if "time" in sent else sent


def test_every_sample_is_for_one_of_the_functions():
    assert sorted(sample for name in FUNCTIONS for sample in samples_of(FOLDERS[name]) if sample != "tick") == sorted({*SAMPLES} - {"tick"})


@pytest.mark.parametrize("name", FUNCTIONS)
def test_whatever_sample_a_function_is_given_its_answer_is_json(built, environment, name):
    environment = environment | {"FLEET_CONFIG": str(built.fleet / "fleet.yaml")}
    with running(built.functions / f"{name}Function", built.core, built.python, environment) as lambda_:
        for sample in samples_of(FOLDERS[name]):
            answer = lambda_.invoke(given(sample))
            assert isinstance(answer, dict), sample
            assert answer, sample
            if (name, sample) == ("ScaleUp", "tick"):
                assert "launch" in {step["step"] for step in answer["steps"]}


def test_an_answer_that_cannot_be_written_would_be_noticed(built, environment, tmp_path):
    (tmp_path / "app.py").write_text("def handler(event, context):\n    return {'when': object()}\n", encoding="utf-8")
    with running(tmp_path, built.core, built.python, environment) as lambda_, pytest.raises(AssertionError, match="MarshalError"):
        lambda_.invoke({})
