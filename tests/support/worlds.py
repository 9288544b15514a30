"""Worlds for tests: a fleet from a few words, and the apis in memory or over HTTP."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import boto3
from botocore.config import Config

from autoscaler.adapters.ec2 import Ec2Compute
from autoscaler.adapters.jenkins.controller import JenkinsController
from autoscaler.adapters.jenkins.session import JenkinsSession
from autoscaler.domain.facts.fleet import Fleet, Host
from autoscaler.domain.report.problems import Thresholds
from autoscaler.ports import Controller
from autoscaler_workbench.fakes.http_fakes.aws.ec2 import Ec2Api
from autoscaler_workbench.fakes.http_fakes.clients import LocalEc2Client, LocalSession
from autoscaler_workbench.fakes.http_fakes.jenkins.api import JenkinsApi
from autoscaler_workbench.fakes.http_fakes.server import ApiServer
from autoscaler_workbench.fakes.world.faults import Faults
from autoscaler_workbench.fakes.world.jenkins.nodes import Node
from autoscaler_workbench.fakes.world.physics import CALM, Physics
from autoscaler_workbench.fakes.world.world import World, build_world
from autoscaler_workbench.simulate.drive import InMemory
from support.builders import a_fleet, a_pool

START = 1_800_000_000.0
AWS = {"AWS_DEFAULT_REGION": "us-west-2", "AWS_ACCESS_KEY_ID": "t", "AWS_SECRET_ACCESS_KEY": "t"}


@dataclass(slots=True)
class Stand:
    """One controller of the world behind the Controller port, and EC2 behind the Compute port."""

    world: World
    fleet: Fleet
    faults: Faults
    api: JenkinsApi
    controller: Controller
    compute: Ec2Compute
    ec2_face: Ec2Api
    server: ApiServer

    @property
    def jenkins(self):
        return self.world.controllers["main"]


def a_world(fleet: Fleet | None = None, seed: int = 1, physics: Physics = CALM) -> World:
    return build_world(fleet or a_fleet(), start_at=START, seed=seed, physics=physics)


def a_world_node(name: str, *labels: str, connected: bool = True, **facts: Any) -> Node:
    given: dict[str, Any] = {"executors": 1, "exclusive": True, "description": "", "remote_dir": "/tmp"}  # noqa: S108
    return Node(name=name, labels=labels, connected=connected, **(given | facts))


@contextmanager
def stand(kind: str, fleet: Fleet | None = None, read_token: Callable[[], str] = lambda: "t", **accounts: Any) -> Iterator[Stand]:
    """``memory``: the adapters on the apis directly; ``http``: over sockets, with real requests and real boto3."""
    fleet = fleet or a_fleet(a_pool("cpu"), a_pool("gpu", controllers=("main",)))
    world, faults = a_world(fleet), Faults()
    with ApiServer() as server:
        api = JenkinsApi(world.controllers["main"], f"{server.url}/jenkins/main/", faults, **accounts)
        ec2_face = Ec2Api(world.ec2, faults)
        server.jenkins["main"], server.ec2 = api, ec2_face
        client: Any = LocalEc2Client(ec2_face)
        if kind == "http":
            client = aws_over_http("ec2", server)

        def connect() -> Any:
            if kind == "http":
                return JenkinsSession(f"{server.url}/jenkins/main/", "u", read_token(), lambda: 0.0)
            return LocalSession(api, "u", read_token())

        controller = JenkinsController("main", api.base, connect, lambda: 0.0)
        yield Stand(world, fleet, faults, api, controller, Ec2Compute(lambda: client, fleet, lambda: client), ec2_face, server)


def aws_over_http(service: Any, server: ApiServer, path: str = "") -> Any:
    config = Config(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=5)
    keys = {"aws_access_key_id": "t", "aws_secret_access_key": "t"}
    return boto3.client(service, region_name="us-west-2", endpoint_url=f"{server.url}/{path or service}/", config=config, **keys)


def in_memory(
    *pools: Any,
    seed: int = 1,
    slots: dict[str, tuple[str, ...]] | None = None,
    faults: Faults | None = None,
    physics: Physics = CALM,
    sdk_attempts: int = 1,
    hosts: tuple[Host, ...] = (),
    thresholds: Thresholds | None = None,
    **limits: Any,
) -> InMemory:
    """A whole fleet in memory: the real passes on the world. ``slots``: nodes that an operator made on main, with their labels.

    ``thresholds``: it runs at `MetricsLevel: essential`.
    """
    fleet = a_fleet(*(pools or (a_pool(),)), hosts=hosts, **limits)
    if slots is not None:
        fleet = replace(fleet, slot_controllers=frozenset({"main"}))
        made = InMemory(a_world(fleet, seed, physics), fleet, faults or Faults(), sdk_attempts=sdk_attempts)
        for name, labels in slots.items():
            made.world.controllers["main"].add_node(
                a_world_node(name, *labels, fleet.ownership_label, connected=False, survives_reload=True)
            )
        return made
    return InMemory(a_world(fleet, seed, physics), fleet, faults or Faults(), sdk_attempts=sdk_attempts, thresholds=thresholds)


@contextmanager
def environment(**values: str) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def now(day: Any, name: str) -> float:
    """Add up a metric as the last look has published it."""
    last = day.fleet.metrics.published[-1][0]
    return sum(value for at, datum in day.fleet.metrics.published if datum.name == name and at == last for value in datum.values)
