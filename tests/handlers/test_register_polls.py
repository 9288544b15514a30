"""An agent that is connected asks again now and then: answered from its own record, by no call to EC2 or Jenkins."""

import json
from base64 import b64encode
from dataclasses import replace

import pytest

from autoscaler import bootstrap
from autoscaler.domain.facts.snapshot import RecordState
from autoscaler.domain.facts.telemetry import DEVICES_POLL_SECONDS
from autoscaler.domain.report.registration import POLL_SECONDS
from autoscaler_workbench.fakes.identity import function_url_event
from support.builders import a_reservation
from support.deployed import deployed_in_memory, event


@pytest.fixture
def here():
    with deployed_in_memory() as stood:
        yield stood


@pytest.fixture
def instance(here):
    """The utility agent's instance, registered."""
    here.world.ec2.on_running = lambda _instance: None
    here.call("scale_up", event("tick"))
    [only] = here.world.ec2.instances.values()
    assert here.call("register_agent", function_url_event(only.id))["statusCode"] == 200
    return only


def poll(here, instance, *connected, body=None, **iam):
    said = json.dumps({"agent_version": "2", "boot_id": "b", "connected": list(connected)}) if body is None else body
    before = len(here.server.requests)
    answer = here.call("register_agent", function_url_event(instance.id, **iam) | {"body": said})
    return answer["statusCode"], json.loads(answer["body"]), here.server.requests[before:]


def named(instance):
    return f"main/{name_of(instance)}/0"


def name_of(instance):
    return f"utility-{instance.id.removeprefix('i-')}"


def test_what_is_as_it_should_be_is_told_so_without_its_secret_and_nobody_else_is_asked(here, instance):
    status, told, requests = poll(here, instance, named(instance))
    [connection] = told["connections"]
    assert (status, connection["name"], "secret" in connection) == (200, name_of(instance), False)
    assert (told["poll_seconds"], requests) == (POLL_SECONDS, [])


@pytest.mark.parametrize("connected", [(), ("other/utility-1",), ("main/utility-1",)], ids=str)
def test_what_is_not_connected_as_it_should_be_is_told_everything(here, instance, connected):
    status, told, _ = poll(here, instance, *connected)
    assert (status, "secret" in told["connections"][0]) == (200, True)


@pytest.mark.parametrize("body", ["", "{", "[]", '{"connected": 7}', '{"connected": ["' + "x" * 400 + '"]}', "null", 7, None], ids=repr)
def test_what_cannot_be_read_says_nothing(here, instance, body):
    answer = here.call("register_agent", function_url_event(instance.id) | {"body": body})
    assert (answer["statusCode"], "secret" in json.loads(answer["body"])["connections"][0]) == (200, True)


def test_a_body_in_base64_is_read_too(here, instance):
    body = b64encode(json.dumps({"connected": [named(instance)]}).encode()).decode()
    answer = here.call("register_agent", function_url_event(instance.id) | {"body": body, "isBase64Encoded": True})
    assert "secret" not in json.loads(answer["body"])["connections"][0]


def test_whoever_has_another_role_of_ours_is_not_believed_to_be_it(here, instance):
    state = bootstrap.runtime().ports.state
    [record] = state.read().records
    state.change_record(replace(record, role_id="AROAANOTHER"), expected=record.state)
    _, told, requests = poll(here, instance, named(instance))
    assert "secret" in told["connections"][0]
    assert requests


@pytest.mark.parametrize(("state", "status"), [(RecordState.STOPPING, 425), (RecordState.CONDEMNED, 410)], ids=str)
def test_what_is_given_up_or_stopped_hears_it_as_ever(here, instance, state, status):
    stored = bootstrap.runtime().ports.state
    [record] = stored.read().records
    stored.change_record(replace(record, state=state), expected=record.state)
    assert poll(here, instance, named(instance))[0] == status


def devices(*states):
    return [{"id": str(number), "kind": "gfx1030", "state": state} for number, state in enumerate(states)]


def test_what_it_says_of_its_devices_is_kept_and_it_is_asked_again_sooner(here, instance):
    body = json.dumps({"connected": [named(instance)], "devices": devices("free", "held"), "waiting": 2})
    status, told, requests = poll(here, instance, body=body)
    assert (status, told["poll_seconds"], requests, "people" in told) == (200, DEVICES_POLL_SECONDS, [], False)
    kept = bootstrap.runtime().ports.state.read().devices[instance.id]
    assert (kept.free, kept.waiting, [device.state for device in kept.devices]) == (1, 2, ["free", "held"])


def test_it_is_told_who_has_a_device_of_it_until_that_is_over(here, instance):
    state, now = bootstrap.runtime().ports.state, here.world.timeline.now
    [record] = state.read().records
    kept = tuple(a_reservation(person, until_at=now + left) for person, left in (("alice", 600.0), ("bob", -1.0)))
    state.change_record(replace(record, devices_for=kept), expected=record.state)
    body = json.dumps({"connected": [named(instance)], "devices": devices("free")})
    _, told, requests = poll(here, instance, body=body)
    assert (told["people"], requests) == ([{"person": "alice", "until": now + 600.0}], [])


@pytest.mark.parametrize("said", [[7], [{"id": 1}], devices("free") * 65, "x"], ids=["a number", "no state", "too many", "a text"])
def test_devices_that_make_no_sense_are_not_kept_and_it_is_told_who_it_is(here, instance, said):
    status, _, _ = poll(here, instance, body=json.dumps({"connected": [named(instance)], "devices": said}))
    assert (status, dict(bootstrap.runtime().ports.state.read().devices)) == (200, {})


def told_of(here, instance):
    return bootstrap.runtime().ports.telemetry.latest().get(instance.id)


A_REPORT = {
    "seconds": 300,
    "cores": 4,
    "memory_total": 16e9,
    "memory_available": 9e9,
    "root_free": 5e9,
    "gpus": [],
    "later": 1,
}


def test_a_poll_with_a_report_keeps_it_and_asks_nobody_else(here, instance):
    """`test_deployed.py` counts the reads and writes."""
    poll(here, instance, named(instance))
    status, told, requests = poll(here, instance, body=json.dumps({"connected": [named(instance)], "telemetry": A_REPORT}))
    assert (status, "secret" in told["connections"][0], requests) == (200, False, [])
    kept = told_of(here, instance)
    assert (kept.memory_available, kept.root_free, kept.told_at) == (9e9, 5e9, here.world.timeline.now)


def a_hostile_build(**facts):
    return A_REPORT | {"builds": [{"node": "x", "executor": "0", "run": "job/a/1", "seconds": 1, "memory": 1, "cpu": 1} | facts]}


HOSTILE = {
    "a number": 7,
    "a list": [A_REPORT],
    "nothing in it": {},
    "less than nothing": A_REPORT | {"memory_available": -1},
    "not a number": A_REPORT | {"memory_available": float("nan")},
    "endless": A_REPORT | {"cores": float("inf")},
    "a text": A_REPORT | {"memory_available": "9e9"},
    "too many builds": A_REPORT | {"builds": a_hostile_build()["builds"] * 33},
    "a long name": a_hostile_build(node="x" * 201),
    "no path of a run": a_hostile_build(run="../a"),
    "deep": json.loads('{"a":' * 50 + "1" + "}" * 50),
    "large": {"memory_total": "x" * 50_000},
}


@pytest.mark.parametrize("said", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_report_is_dropped_with_one_line_and_the_machine_is_told_who_it_is(here, instance, said, caplog):
    before = bootstrap.runtime().ports.state.read()
    caplog.clear()
    status, told, requests = poll(here, instance, body=json.dumps({"connected": [named(instance)], "telemetry": said}))
    assert (status, told["connections"][0]["name"], requests, told_of(here, instance)) == (200, name_of(instance), [], None)
    assert bootstrap.runtime().ports.state.read() == before
    [line] = [record for record in caplog.records if record.message == "telemetry_refused"]
    assert len(line.problem) < 400


def test_a_report_of_whoever_is_no_machine_of_ours_is_not_kept(here, instance):
    body = {"body": json.dumps({"telemetry": A_REPORT})}
    answer = here.call("register_agent", function_url_event(instance.id, role_id="AROAANOTHER") | body)
    assert (answer["statusCode"], told_of(here, instance)) == (403, None)
