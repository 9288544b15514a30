"""The Metrics port on CloudWatch (moto), and secrets."""

import json

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from autoscaler.adapters.secrets import Credentials
from autoscaler.adapters.telling import CloudWatchMetrics, EssentialMetrics
from autoscaler.domain.report.datum import Datum
from autoscaler.errors import ConfigError, TransientError
from autoscaler_workbench.fakes.state import InMemoryMetrics
from support.worlds import AWS


@pytest.fixture
def aws(monkeypatch):
    for name, value in AWS.items():
        monkeypatch.setenv(name, value)
    with mock_aws():
        yield


def a_datum(name="QueueWait", values=(1.0,)):
    return Datum(name=name, values=values, unit="Seconds", dimensions=(("Fleet", "f"), ("Pool", "cpu")))


@pytest.fixture(params=["cloudwatch", "memory"])
def sink(request, aws):
    """The port, and how to read back the sum of what it was given of one metric."""
    if request.param == "memory":
        metrics = InMemoryMetrics()
        return metrics, lambda name: sum(metrics.values(name, Fleet="f"))
    client = boto3.client("cloudwatch")

    def total(name):
        found = client.get_metric_statistics(
            Namespace="JenkinsFleet",
            MetricName=name,
            Dimensions=[{"Name": "Fleet", "Value": "f"}, {"Name": "Pool", "Value": "cpu"}],
            StartTime=1_799_999_940,
            EndTime=1_800_000_060,
            Period=120,
            Statistics=["Sum"],
        )["Datapoints"]
        return sum(point["Sum"] for point in found)

    return CloudWatchMetrics(lambda: client, "JenkinsFleet"), total


def test_what_is_published_can_be_read_back(sink):
    metrics, total = sink
    assert metrics.publish([a_datum("Launches", (2.0,)), a_datum("QueueWait", (1.0, 1.0, 5.0))], at=1_800_000_000.0) == 2
    assert (total("Launches"), total("QueueWait"), total("Terminations")) == (2.0, 7.0, 0)


def test_nothing_to_publish_is_nothing_published(sink):
    assert sink[0].publish([], at=1_800_000_000.0) == 0


@pytest.mark.usefixtures("aws")
def test_a_distribution_arrives_with_every_value():
    client = boto3.client("cloudwatch")
    values = tuple(float(n % 400) for n in range(1000))
    assert CloudWatchMetrics(lambda: client, "JenkinsFleet").publish([a_datum(values=values)], at=1_800_000_000.0) == 1
    [statistics] = client.get_metric_statistics(
        Namespace="JenkinsFleet",
        MetricName="QueueWait",
        Dimensions=[{"Name": "Fleet", "Value": "f"}, {"Name": "Pool", "Value": "cpu"}],
        StartTime=1_799_999_940,
        EndTime=1_800_000_060,
        Period=120,
        Statistics=["Sum", "Maximum", "SampleCount"],
    )["Datapoints"]
    assert (statistics["Sum"], statistics["Maximum"], statistics["SampleCount"]) == (sum(values), 399.0, 1000.0)


def test_no_call_is_larger_than_cloudwatch_takes():
    calls = []

    class Client:
        def put_metric_data(self, **request):
            calls.append(request["MetricData"])

    client = Client()
    CloudWatchMetrics(lambda: client, "n").publish([a_datum(values=tuple(map(float, range(150 * 1500))))], at=0.0)
    assert [len(data) for data in calls] == [1000, 500]
    assert max(len(datum["Values"]) for data in calls for datum in data) == 150


def test_of_few_metrics_only_those_are_sent_and_nothing_is_called_for_none():
    calls = []

    class Client:
        def put_metric_data(self, **request):
            calls.append([datum["MetricName"] for datum in request["MetricData"]])

    client = Client()
    metrics = EssentialMetrics(CloudWatchMetrics(lambda: client, "n"))
    beat = Datum(name="Heartbeat", values=(1.0,), unit="Count", dimensions=(("Fleet", "f"),))
    assert metrics.publish([a_datum(), a_datum("Launches")], at=0.0) == 0
    assert metrics.publish([a_datum(), beat], at=0.0) == 1
    assert calls == [["Heartbeat"]]


def test_a_failed_call_is_transient(monkeypatch):
    for name, value in AWS.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("cloudwatch")
    with Stubber(client) as stubber:
        stubber.add_client_error("put_metric_data", "InternalServiceFault", http_status_code=500)
        with pytest.raises(TransientError):
            CloudWatchMetrics(lambda: client, "n").publish([a_datum()], at=0.0)


@pytest.mark.usefixtures("aws")
def test_credentials_come_from_the_secret():
    client = boto3.client("secretsmanager")
    client.create_secret(Name="jenkins/main", SecretString=json.dumps({"username": "u", "token": "t", "note": "x"}))
    credentials = Credentials.read(lambda: client, "jenkins/main")
    assert (credentials.username, credentials.token) == ("u", "t")


@pytest.mark.usefixtures("aws")
@pytest.mark.parametrize("value", ["hush", '{"username": "hush"}', "[]"])
def test_a_secret_of_another_form_is_refused_without_telling_it(value):
    client = boto3.client("secretsmanager")
    client.create_secret(Name="jenkins/main", SecretString=value)
    with pytest.raises(ConfigError, match="must be JSON of the form") as refused:
        Credentials.read(lambda: client, "jenkins/main")
    assert "hush" not in str(refused.value)


@pytest.mark.usefixtures("aws")
def test_a_missing_secret_is_for_a_person_to_mend():
    client = boto3.client("secretsmanager")
    with pytest.raises(ConfigError, match="ResourceNotFoundException"):
        Credentials.read(lambda: client, "jenkins/none")
