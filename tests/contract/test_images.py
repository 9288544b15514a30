"""The Images port: the adapter on the account of the world, directly and with real boto3 over HTTP, and on moto."""

from typing import Any

import boto3
import pytest
from moto import mock_aws

from autoscaler.adapters.account import SsmImages
from autoscaler.errors import TransientError
from autoscaler_workbench.fakes.http_fakes.clients import LocalSsmClient
from autoscaler_workbench.fakes.world.faults import Fault
from support.worlds import AWS, aws_over_http, stand


class World:
    """The account of the world."""

    def __init__(self, stood, kind: str) -> None:
        self.faults = stood.faults
        self._held = stood.world.ec2.account.parameters
        client: Any = aws_over_http("ssm", stood.server) if kind == "http" else LocalSsmClient(stood.ec2_face)
        self.images = SsmImages(lambda: client)

    def put(self, name: str, value: str) -> None:
        self._held[name] = value


class Moto:
    """An account of moto."""

    def __init__(self) -> None:
        self._client = boto3.client("ssm")
        self.images = SsmImages(lambda: self._client)

    def put(self, name: str, value: str) -> None:
        self._client.put_parameter(Name=name, Value=value, Type="String", Overwrite=True)


@pytest.fixture(params=["memory", "http"])
def world(request):
    with stand(request.param) as stood:
        yield World(stood, request.param)


@pytest.fixture(params=["memory", "http", "moto"])
def here(request, monkeypatch):
    if request.param != "moto":
        with stand(request.param) as stood:
            yield World(stood, request.param)
        return
    for name, value in AWS.items():
        monkeypatch.setenv(name, value)
    with mock_aws():
        yield Moto()


def test_a_parameter_tells_the_image_that_it_holds_now(here):
    here.put("/ci/linux-image", "ami-1")
    here.put("/ci/gpu-image", "ami-2")
    assert here.images.current(["/ci/linux-image"]) == {"/ci/linux-image": "ami-1"}
    here.put("/ci/linux-image", "ami-3")
    assert here.images.current(["/ci/linux-image", "/ci/gpu-image"]) == {"/ci/linux-image": "ami-3", "/ci/gpu-image": "ami-2"}


def test_a_parameter_that_is_unknown_or_holds_no_image_is_left_out_and_fails_no_other(here):
    here.put("/ci/linux-image", "ami-1")
    here.put("/ci/color", "blue")
    assert here.images.current(["/ci/linux-image", "/ci/color", "/ci/none"]) == {"/ci/linux-image": "ami-1"}


def test_more_parameters_than_one_call_takes_are_asked_for_with_several(here):
    names = [f"/ci/image-{n}" for n in range(23)]
    for name in names:
        here.put(name, f"ami-{name[-2:]}")
    assert set(here.images.current(names)) == set(names)


def test_where_systems_manager_does_not_answer_or_refuses_that_is_said(world):
    world.put("/ci/linux-image", "ami-1")
    for status, code in ((503, "InternalServerError"), (400, "AccessDeniedException")):
        world.faults.plan(Fault("ssm GetParameters", status=status, code=code))
        with pytest.raises(TransientError, match=f"GetParameters: {code}"):
            world.images.current(["/ci/linux-image"])
    assert world.images.current(["/ci/linux-image"]) == {"/ci/linux-image": "ami-1"}
