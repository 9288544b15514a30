"""`MetricsLevel: essential`: few metrics, alarms that ring on them, and messages that name pool, value and threshold."""

import pytest

from autoscaler import bootstrap
from autoscaler.control.outcomes import leave_note
from autoscaler.domain.report.datum import ESSENTIAL
from autoscaler.errors import ConfigError
from autoscaler_workbench.fakes.world.faults import Fault
from support.deployed import deployed_in_memory, essential_environment, event
from support.ringing import ringing_in

GPU = "mxnetlinux-gpu"


@pytest.fixture
def here():
    with deployed_in_memory(environment=essential_environment()) as stood:
        stood.call("scale_up", event("tick"))
        yield stood


def ringing(here):
    return ringing_in(here, MetricsLevel="essential")


def submit(here, count=1, label=GPU, seconds=600.0):
    for number in range(count):
        here.world.controllers["main"].submit(f"job-{number}", label, seconds)


def subjects(here):
    return [subject.removeprefix("[mxnet-ci] ") for subject, _ in here.told()]


def test_a_quiet_day_rings_nothing_and_sends_few_names_of_the_fleet_alone(here):
    submit(here, 3, seconds=200.0)
    here.pass_minutes(12)
    assert ringing(here) == set()
    assert subjects(here) == []
    sent = {(datum.name, datum.dimensions) for _, datum in here.metrics}
    assert {name for name, _ in sent} == ESSENTIAL - {"Problems", "BuildsFailed"}
    assert {dimensions for _, dimensions in sent} == {(("Fleet", "mxnet-ci"),)}


def test_what_a_fleet_is_there_for_is_sent_for_the_whole_fleet(here):
    """Queue length, free and busy executors, what running builds have left, and how builds ended."""
    jenkins = here.world.controllers["main"]
    submit(here, 3, seconds=200.0)
    jenkins.submit("long", GPU, 1200.0)
    jenkins.submit("for-nobody", "sparc", 60.0)
    while not (busy := [node for node in jenkins.nodes.values() if node.builds]):
        here.pass_minutes(1)
    busy[0].fails_builds = True
    here.pass_minutes(8)
    sent = {}
    for _, datum in here.metrics:
        sent.setdefault(datum.name, []).append(datum.values)
    assert sent["QueueLength"][-1] == (1.0,)
    assert sent["ExecutorsBusy"][-1] == (1.0,)
    assert sent["ExecutorsFree"][-1][0] >= 1.0
    [left] = sent["RemainingSeconds"][-1]
    assert 0.0 < left < 1200.0
    ended = [sum(value for (value,) in sent[name]) for name in ("BuildsSucceeded", "BuildsFailed")]
    assert min(ended) >= 1
    assert sum(ended) == 3


def test_one_function_calls_cloudwatch_and_once_a_minute(here):
    before = len({at for at, _ in here.metrics})
    here.pass_minutes(5)
    times = sorted({at for at, _ in here.metrics})
    assert len(times) - before == 5


def test_a_controller_that_cannot_be_read(here):
    here.world.controllers["main"].up = "starting"
    here.pass_minutes(6)
    assert ringing(here) == {"Problems"}
    assert any(subject.startswith("controller unread: controller main") for subject in subjects(here))
    [said] = here.call("operate", event("status"))["status"]["told"]
    assert said.startswith("controller unread: controller main")
    assert said.endswith("(for 2 min)")


def test_a_scaling_function_that_does_not_run_any_more_is_named(here):
    function = "scale_down"
    here.pass_minutes(2)
    for _ in range(6):
        here.world.move_to(here.world.timeline.now + 60)
        for name in sorted({"publish_metrics", "scale_up", "scale_down"} - {function}):
            here.call(name, {})
    assert ringing(here) == {"Problems"}
    assert subjects(here) == [f"autoscaler down: {function}"]


def test_the_function_that_watches_all_else_is_missed_when_it_is_silent(here):
    here.pass_minutes(2)
    for minute in range(5):
        assert ringing(here) == set(), minute
        here.world.move_to(here.world.timeline.now + 60)
        for name in ("scale_up", "scale_down"):
            here.call(name, {})
    assert ringing(here) == {"Heartbeat"}


def test_a_lease_that_somebody_else_holds(here):
    now = here.world.timeline.now
    here.pass_minutes(1)
    ports = bootstrap.runtime().ports
    for _ in range(10):
        leave_note(ports, "scale_up", {"LeaseHeld": 1}, {})
    assert ports.clock() > now
    here.pass_minutes(1)
    assert ringing(here) == {"Problems"}
    assert "lease held" in subjects(here)


def test_a_topic_that_is_gone_keeps_no_condition_from_lasting(here):
    here.stored.notifier.faults.plan(Fault("sns Publish", times=99, status=404, code="NotFound"))
    submit(here, 1, "sparc")
    here.pass_minutes(36)
    assert ringing(here) == {"Problems"}
    assert "message_failed" in dict(here.logged)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("METRICS_LEVEL", "some", r"METRICS_LEVEL \(some\): must be essential or full"),
        ("AGENT_DISK_ALARM_BYTES", "a lot", r"AGENT_DISK_ALARM_BYTES \(a lot\): must be a number, 0 or more"),
        ("AGENT_DISK_ALARM_BYTES", "nan", r"AGENT_DISK_ALARM_BYTES \(nan\): must be a number"),
        ("AGENT_DISK_ALARM_BYTES", "", r"AGENT_DISK_ALARM_BYTES \(missing\)"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_in_one_line(name, value, said):
    with deployed_in_memory(environment=essential_environment() | {name: value}) as here, pytest.raises(ConfigError, match=said):
        here.call("publish_metrics", {})
