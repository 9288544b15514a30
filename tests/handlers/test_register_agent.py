"""``register_agent`` through its real handler: an instance asks over the function URL who it is."""

import io
import json
from contextlib import contextmanager
from dataclasses import replace

import pytest

from autoscaler import bootstrap
from autoscaler.adapters.jenkins.controller import JenkinsController
from autoscaler.domain.facts.snapshot import RecordState
from autoscaler.errors import ConfigError, TransientError
from autoscaler.telemetry import logger
from autoscaler_workbench.fakes.identity import function_url_event
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.nodes import secret_of
from support.by_hand import launched_by_hand
from support.deployed import deployed_in_memory, event
from support.worlds import environment


@pytest.fixture
def here():
    with deployed_in_memory() as stood:
        yield stood


@pytest.fixture
def instance(here):
    """The utility agent's instance, launched and not yet booted."""
    here.world.ec2.on_running = lambda _instance: None  # it asks only where a test lets it
    here.call("scale_up", event("tick"))
    [only] = here.world.ec2.instances.values()
    return only


def ask(here, instance_id, **iam):
    answer = here.call("register_agent", function_url_event(instance_id, **iam))
    return answer["statusCode"], json.loads(answer["body"]), answer["headers"]


@contextmanager
def logged():
    stream, before = io.StringIO(), logger.registered_handler.stream
    logger.registered_handler.setStream(stream)
    try:
        yield stream
    finally:
        logger.registered_handler.setStream(before)


def nodes(here):
    return [name for name in here.world.controllers["main"].nodes if not name.startswith("autoscaler-beacon")]


def test_an_instance_learns_who_it_is(here, instance):
    status, told, headers = ask(here, instance.id)
    name = f"utility-{instance.id.removeprefix('i-')}"
    assert (status, told["node"], told["executors"]) == (200, name, 30)
    assert told["labels"] == ["utility", "autoscaler-fleet-mxnet-ci"]
    url = "https://jenkins.example.org/"
    assert told["connections"] == [
        {"controller": "main", "url": url, "name": name, "life": 0, "secret": secret_of(name), "web_socket": True}
    ]
    assert (headers["Cache-Control"], headers["X-Autoscaler"]) == ("no-store", "registration")
    assert nodes(here) == [name]
    assert (instance.tags["Name"], instance.tags["autoscaler:node"]) == (name, name)


@pytest.mark.parametrize("sample", ["register_agent", "register_agent_http_api"])
def test_the_sample_event_is_understood_and_its_instance_unknown(here, sample):
    answer = here.call("register_agent", event(sample))
    assert (answer["statusCode"], answer["headers"]["Retry-After"]) == (425, "15")


def test_an_http_api_tells_of_the_caller_as_a_function_url_does_and_gets_the_same_answer(here, instance):
    asked = json.loads(json.dumps(event("register_agent_http_api")).replace("i-0123456789abcdef0", instance.id))
    answer = here.call("register_agent", asked)
    assert answer["statusCode"] == 200
    assert answer == here.call("register_agent", function_url_event(instance.id))


@pytest.mark.parametrize("authorizer", [{"jwt": {"claims": {}}}, {"lambda": {}}, {"iam": {"cognitoIdentity": {"amr": ["x"]}}}], ids=str)
def test_an_http_api_that_did_not_check_a_role_gets_nothing(here, instance, authorizer):
    asked = event("register_agent_http_api")
    asked["requestContext"]["authorizer"] = authorizer
    assert here.call("register_agent", asked)["statusCode"] == 403
    assert nodes(here) == []


def test_asking_again_gets_the_same_answer_and_no_second_node(here, instance):
    assert ask(here, instance.id) == ask(here, instance.id)
    assert len(nodes(here)) == 1


@pytest.mark.parametrize(
    "iam",
    [
        {"accountId": "999999999999"},
        {"userId": "AROAFOREIGN:{id}"},
        {"userId": "AROAEXAMPLEAGENTROLE1:i-0000000000000000f"},
        {"userArn": "arn:aws:iam::123456789012:user/anna"},
        {"userArn": "arn:aws:sts::123456789012:assumed-role/autoscaler-agent/i-0000000000000000f"},
    ],
    ids=["account", "role", "session", "user", "two sessions"],
)
def test_a_forged_identity_gets_nothing(here, instance, iam):
    status, told, _ = ask(here, instance.id, **{key: value.format(id=instance.id) for key, value in iam.items()})
    assert status == 403
    assert "secret" not in json.dumps(told)
    assert nodes(here) == []


@pytest.mark.parametrize("request_", [{}, [], None, "x", {"requestContext": {}}, {"requestContext": {"authorizer": {"iam": {}}}}], ids=str)
def test_what_is_no_signed_request_is_refused_in_one_line(here, request_):
    answer = here.call("register_agent", request_)
    assert (answer["statusCode"], json.loads(answer["body"])) == (403, {"message": "the request is not signed by an instance"})
    assert answer["headers"]["X-Autoscaler"] == "registration"


def test_a_stranger_with_our_role_gets_nothing(here, instance):
    instance.tags["autoscaler:fleet"] = "another"
    assert ask(here, instance.id)[0] == 403


def test_another_instances_profile_gets_nothing(here, instance):
    instance.profile = "arn:aws:iam::123456789012:instance-profile/admin"
    assert ask(here, instance.id)[0] == 403


@pytest.mark.parametrize("call", ["jenkins doCreateItem", "jenkins computer", "ec2 CreateTags", "ec2 DescribeInstances"])
@pytest.mark.parametrize("after", [False, True])
def test_whatever_fails_is_a_reason_to_ask_again_and_then_it_goes_on(here, instance, call, after):
    api = here.server.jenkins["main"] if call.startswith("jenkins") else here.server.ec2
    api.faults.plan(Fault(call, after=after, times=2))
    status, _, headers = ask(here, instance.id)
    assert status in {200, 503}
    assert status == 200 or headers["Retry-After"] == "15"
    while status != 200:
        status, *_ = ask(here, instance.id)
    assert len(nodes(here)) == 1


@pytest.mark.parametrize("on_tomcat", [False, True], ids=["Jetty", "Tomcat"])
def test_a_node_that_was_made_without_an_answer_is_its_own_in_every_container(here, instance, on_tomcat):
    api = here.server.jenkins["main"]
    api.on_tomcat = on_tomcat
    api.faults.plan(Fault("jenkins doCreateItem", after=True))
    assert ask(here, instance.id)[0] == 503
    assert ask(here, instance.id)[0] == 200
    assert len(nodes(here)) == 1


def test_a_controller_that_is_down_is_a_reason_to_ask_again(here, instance):
    here.world.controllers["main"].up = "starting"
    status, _, headers = ask(here, instance.id)
    assert (status, headers["Retry-After"]) == (503, "15")


@pytest.mark.parametrize("says", ["secret-host.internal refused", "ValueError: token 11aa"], ids=str)
def test_what_is_broken_here_is_in_the_log_and_not_told(here, instance, monkeypatch, says):
    def fail(*_):
        raise TransientError(says)

    monkeypatch.setattr(JenkinsController, "create_node", fail)
    with logged() as stream:
        status, told, _ = ask(here, instance.id)
    assert (status, told) == (503, {"message": "not now: ask again"})
    assert says in stream.getvalue()


def test_an_instance_that_asks_too_often_is_told_to_ask_less_and_costs_nothing_more(here, instance):
    for _ in range(60):
        assert ask(here, instance.id)[0] == 200
    here.server.ec2.faults.plan(Fault("ec2 DescribeInstances", status=500))
    with logged() as stream:
        status, told, headers = ask(here, instance.id)
    assert (status, told["message"]) == (429, "it asked more than 60 times within the hour")
    assert (headers["Retry-After"], headers["X-Autoscaler"]) == ("120", "registration")
    assert instance.id in stream.getvalue()
    here.server.ec2.faults.planned.clear()
    here.world.timeline.now += 3600.0
    assert ask(here, instance.id)[0] == 200


def test_a_node_that_a_person_deleted_is_not_made_again_within_one_life(here, instance):
    """Nor does one answer end the instance: whether its node is gone for good, scale_down finds out in two looks."""
    _, told, _ = ask(here, instance.id)
    here.world.controllers["main"].delete_node(told["node"])
    assert [ask(here, instance.id)[0] for _ in range(3)] == [503] * 3
    assert nodes(here) == []


def test_in_a_new_life_it_is(here, instance):
    _, told, _ = ask(here, instance.id)
    here.world.controllers["main"].delete_node(told["node"])
    state = bootstrap.runtime().ports.state
    [record] = state.read().records
    state.change_record(record.bound(node=record.node, life=record.life + 1), expected=record.state)
    told["connections"][0]["life"] = 1
    assert ask(here, instance.id)[:2] == (200, told)
    assert nodes(here) == [told["node"]]


def test_a_condemned_instance_is_told_to_shut_down(here, instance):
    here.world.ec2.end(instance)
    assert ask(here, instance.id)[0] == 410


def test_no_secret_is_logged(here, instance):
    with logged() as stream:
        _, told, _ = ask(here, instance.id)
    assert f'"node":"{told["node"]}"' in stream.getvalue()
    assert told["connections"][0]["secret"] not in stream.getvalue()


@pytest.mark.parametrize(
    ("roles", "said"),
    [("", "AGENT_ROLES: missing"), ("agent=x", "must be ROLE-ID=INSTANCE-PROFILE-ARN"), ("AROAX", "must be ROLE-ID=INSTANCE-PROFILE-ARN")],
    ids=str,
)
def test_roles_that_are_none_are_named(here, instance, roles, said):
    with environment(AGENT_ROLES=roles), pytest.raises(ConfigError, match=said):
        ask(here, instance.id)


def test_one_that_was_stopped_and_that_a_person_starts_becomes_the_same_node_in_its_next_life(here, instance):
    here.world.move_to(here.world.timeline.now + 60.0)
    before = ask(here, instance.id)
    state, jenkins = bootstrap.runtime().ports.state, here.world.controllers["main"]
    [record] = state.read().records
    jenkins.delete_node(record.node)
    stopping = state.change_record(replace(record, state=RecordState.STOPPING), expected=RecordState.REGISTERED)
    assert ask(here, instance.id)[0] == 425
    here.world.ec2.stop(instance.id)
    assert ask(here, instance.id)[0] == 425
    here.world.move_to(here.world.timeline.now + 90.0)
    state.change_record(replace(stopping, state=RecordState.STOPPED, registered_at=None), expected=RecordState.STOPPING)
    assert ask(here, instance.id)[0] == 425
    assert nodes(here) == []
    here.world.ec2.start(instance.id)
    before[1]["connections"][0]["life"] = 1
    assert ask(here, instance.id) == before
    assert nodes(here) == [record.node]
    [again] = state.read().records
    assert (again.state, again.life, again.node_life, len(again.starts)) == (RecordState.REGISTERED, 1, 1, 1)


def test_an_instance_that_nobody_but_a_person_launched_gets_nothing_whatever_its_tags_say(here, instance):
    """Launch more like this copies tags, role and user data: the copy asks who it is."""
    copied = {key: value for key, value in instance.tags.items() if not key.startswith("aws:")}
    copy = launched_by_hand(here.world, "mxnet-ci", days=0.001, tags=copied, profile=instance.profile)
    status, told, _ = ask(here, copy.id)
    assert (status, told["message"]) == (403, "the instance is none that fleet mxnet-ci launched")
    assert nodes(here) == []
