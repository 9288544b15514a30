"""Who an instance is, and what it is told: identity comes from AWS alone."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.snapshot import Binding, InstanceState, RecordState
from autoscaler.domain.report.registration import Caller, Granted, Identity, Refused, Status, Trust, authenticate, judge
from support.builders import NOW, a_fleet, a_pool, a_record

OURS = "arn:aws:iam::123456789012:instance-profile/agent"
TRUST = Trust(account="123456789012", profile_of_role={"AROAOURS": OURS, "AROAOTHER": f"{OURS}-2"})
CALLER = Caller(account="123456789012", role_id="AROAOURS", session="i-0123456789abcdef0")
FLEET = a_fleet(a_pool("cpu", executors=4))
IDENTITY = Identity(instance_id=CALLER.session, state=InstanceState.RUNNING, fleet="f", controller="main", profile=OURS)
RECORD = a_record(CALLER.session)


def told(identity=IDENTITY, record=RECORD, caller=CALLER, fleet=FLEET):
    return judge(caller, TRUST, identity, record, fleet)


@pytest.mark.parametrize(
    ("forged", "reason"),
    [
        ({"account": "999999999999"}, "the caller is of another account"),
        ({"role_id": "AROAFOREIGN"}, "the caller has none of the agent roles"),
        ({"session": "anna"}, "the caller's session is not that of an instance"),
        ({"session": "i-0123456789abcdef0\n"}, "the caller's session is not that of an instance"),
        ({"session": "i-0123456789abcdef0/../x"}, "the caller's session is not that of an instance"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_forged_identity_is_refused_before_ec2_is_asked(forged, reason):
    assert authenticate(replace(CALLER, **forged), TRUST) == Refused(status=Status.FORBIDDEN, reason=reason)


def test_an_instance_with_an_agent_role_may_be_asked_about():
    assert authenticate(CALLER, TRUST) is None


def test_an_instance_of_ours_becomes_a_node_of_its_pool():
    granted = told()
    assert isinstance(granted, Granted)
    assert (granted.spec.name, granted.spec.executors) == ("cpu-0123456789abcdef0", 4)
    assert granted.spec.labels == ("cpu", "autoscaler-fleet-f")


def test_pending_counts_as_running():
    assert isinstance(told(replace(IDENTITY, state=InstanceState.PENDING)), Granted)


def test_the_same_instance_gets_the_same_answer_again():
    registered = replace(RECORD.bound(node="cpu-0123456789abcdef0"), state=RecordState.REGISTERED)
    assert told(record=registered).spec == told().spec


@pytest.mark.parametrize(
    ("identity", "status"),
    [
        ({"fleet": "other"}, Status.FORBIDDEN),
        ({"fleet": ""}, Status.FORBIDDEN),
        ({"profile": f"{OURS}-2"}, Status.FORBIDDEN),
        ({"profile": ""}, Status.FORBIDDEN),
        ({"state": InstanceState.STOPPING}, Status.TOO_EARLY),
        ({"state": InstanceState.STOPPED}, Status.TOO_EARLY),
        ({"state": InstanceState.SHUTTING_DOWN}, Status.GONE),
        ({"state": InstanceState.TERMINATED}, Status.GONE),
    ],
    ids=str,
)
def test_what_is_not_ours_or_does_not_run_is_refused(identity, status):
    assert told(replace(IDENTITY, **identity)).status is status


def test_what_we_gave_up_is_told_to_shut_down():
    assert told(record=replace(RECORD, state=RecordState.CONDEMNED)) == Refused(status=Status.GONE, reason="the agent was given up")


@pytest.mark.parametrize(
    ("record", "instance", "status"),
    [
        (RecordState.STOPPING, InstanceState.RUNNING, Status.TOO_EARLY),
        (RecordState.STOPPING, InstanceState.STOPPING, Status.TOO_EARLY),
        (RecordState.STOPPED, InstanceState.STOPPING, Status.TOO_EARLY),
        (RecordState.STOPPED, InstanceState.STOPPED, Status.TOO_EARLY),
        (RecordState.STARTING, InstanceState.STOPPED, Status.TOO_EARLY),
        (RecordState.STOPPED, InstanceState.TERMINATED, Status.GONE),
        (RecordState.STARTING, InstanceState.SHUTTING_DOWN, Status.GONE),
        (RecordState.CONDEMNED, InstanceState.RUNNING, Status.GONE),
        (RecordState.GONE, InstanceState.RUNNING, Status.GONE),
    ],
)
def test_what_stops_or_has_stopped_is_told_to_ask_again_and_only_what_was_given_up_or_has_ended_to_power_off(record, instance, status):
    assert told(replace(IDENTITY, state=instance), replace(RECORD, state=record)).status is status


@pytest.mark.parametrize("state", [RecordState.STOPPED, RecordState.STARTING])
@pytest.mark.parametrize("instance", [InstanceState.PENDING, InstanceState.RUNNING])
def test_what_was_started_whoever_started_it_gets_the_node_that_it_had(state, instance):
    before = told().spec
    granted = told(replace(IDENTITY, state=instance), replace(RECORD.bound(node=before.name, life=1), state=state))
    assert (granted.spec, granted.record.life) == (before, 1)


def test_what_left_the_fleet_file_is_never_told_to_shut_down():
    """A build or a person may be on it: it is drained, or a person decides."""
    assert told(record=replace(RECORD, pool="gone")).status is Status.TOO_EARLY
    assert told(record=replace(RECORD, bindings=(Binding(controller="gone"),))).status is Status.TOO_EARLY


def test_what_is_not_known_yet_is_told_to_ask_again():
    assert told(record=None).status is Status.TOO_EARLY
    assert told(identity=None).status is Status.TOO_EARLY
    assert told(identity=None, record=None).status is Status.TOO_EARLY


def test_what_ec2_does_not_show_is_never_told_to_shut_down():
    """It signs with a role of ours, so that it runs: EC2's list may be empty for hours."""
    assert told(identity=None, record=replace(RECORD, launched_at=NOW - 86_400)).status is Status.TOO_EARLY
