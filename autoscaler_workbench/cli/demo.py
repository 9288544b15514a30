"""The demo: the real handlers, minute by minute, against the world over HTTP and a local AWS."""

import gc
import importlib.util
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

import boto3
from moto import mock_aws
from moto.sns.models import sns_backends

from autoscaler import bootstrap
from autoscaler.config import FleetSettings, environment_name
from autoscaler.errors import AutoscalerError, ConfigError
from autoscaler.telemetry import logger
from autoscaler_workbench.fakes.http_fakes.aws.cloudwatch import Published, as_json, published
from autoscaler_workbench.fakes.http_fakes.aws.ec2 import Ec2Api
from autoscaler_workbench.fakes.http_fakes.aws.functions import LambdaApi
from autoscaler_workbench.fakes.http_fakes.jenkins.api import JenkinsApi
from autoscaler_workbench.fakes.http_fakes.jenkins.clouds import exported_cloud
from autoscaler_workbench.fakes.http_fakes.server import ApiServer
from autoscaler_workbench.fakes.identity import ask_handler, ec2_event, tick
from autoscaler_workbench.fakes.world.agents import Agents
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.ec2.region import ACCOUNT, AGENT_ROLE, AGENT_ROLE_ID, profile_arn
from autoscaler_workbench.fakes.world.world import World, break_boots
from autoscaler_workbench.simulate.drive import MINUTE, Progress, tick_once
from autoscaler_workbench.simulate.run import Run
from autoscaler_workbench.simulate.shipped import deployed

FUNCTIONS = deployed("functions")
TABLE = "autoscaler-demo"
WEBHOOK_SECRET = "demo/webhook"
MEND = "mend"  # no function of the deployment: what a person does to the image
_REGION = "us-west-2"
_FUNCTION_MILLISECONDS = 55_000
_MINUTE_TAKES_SECONDS = 1.0
USER, TOKEN = "autoscaler", "demo-token"
ON_CALL = "oncall@example.org"  # AlarmEmail


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A demo that goes on and takes commands at a port. ``warm_up``: minutes that are played as fast as can be before.

    Commands are served between any two steps, also while it warms up: on a slow machine its clock slows down, and nobody waits in vain.
    """

    port: int
    warm_up: int = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Show:
    """One demo: a run whose functions are the real handlers. ``log_file`` takes what they log.

    ``broken``: pools whose agents never come up, until a command mends them. ``on_end``: takes what CloudWatch was sent.
    ``mails``: subject and text of what an operator would have got, oldest first.
    ``kept``: after its warm-up a simulated minute takes a second, and the demo takes commands until it is interrupted.
    """

    run: Run
    settings: FleetSettings
    fleet_file: Path
    log_file: Path
    broken: set[str] = field(default_factory=set)
    kept: Kept | None = None
    on_end: Callable[[Published], None] = lambda _published: None
    mails: list[tuple[str, str]] = field(default_factory=list)

    def play(self) -> Iterator[Progress]:
        """Run it, yielding after each simulated minute."""
        world = self.run.world
        with ExitStack() as stack:
            # A day allocates much and forms few cycles; collecting seldom makes it a tenth shorter.
            stack.callback(gc.set_threshold, *gc.get_threshold())
            gc.set_threshold(200_000, 50, 50)
            server = stack.enter_context(ApiServer(self.kept.port if self.kept else 0))
            functions = server.functions = LambdaApi(frozenset({*names_of_functions(), MEND})) if self.kept else None
            serve(server, world)
            stack.enter_context(environment(server, self.settings, self.fleet_file))
            stack.enter_context(_logs_to(self.log_file))
            stack.enter_context(mock_aws(config={"core": {"mock_credentials": True, "passthrough": {"services": ["ec2"]}}}))
            stack.callback(lambda: self.on_end(published()))
            create_table()
            create_secrets(self.settings)
            os.environ["ALARM_TOPIC"] = create_topic(ON_CALL)  # until `environment` ends
            bootstrap.reset()
            stack.callback(bootstrap.reset)
            # Whatever happens while a function sleeps, happens in this thread: the server must not wait for it.
            bootstrap.use_time(lambda: world.timeline.now, world.timeline.sleep)
            handlers = Handlers(world, Random(self.run.seed))  # noqa: S311 - names of simulated invocations
            Agents(world, ask_handler(handlers.register_agent, lambda: world.usage))
            break_boots(world, self.broken)
            world.ec2.announce = handlers.instance_events
            if self.kept is None or functions is None:
                for progress in self.run.drive(handlers):
                    self.mails[:] = mails_sent()
                    yield progress
            else:
                server.published = lambda: as_json(published())
                yield from self._keep(functions, handlers, self.kept)

    def _keep(self, functions: LambdaApi, handlers: "Handlers", kept: Kept) -> Iterator[Progress]:
        answer = partial(self._answer, handlers)
        handlers.between_steps = partial(functions.serve_waiting, answer)
        minute_ends = 0.0
        for progress in self._endless(handlers):
            self.mails[:] = mails_sent()
            yield progress
            if progress.passes > kept.warm_up:
                minute_ends = max(minute_ends + _MINUTE_TAKES_SECONDS, monotonic())
                while (left := minute_ends - monotonic()) > 0:
                    functions.serve(answer, left)

    def _endless(self, handlers: "Handlers") -> Iterator[Progress]:
        progress = Progress()
        for progress in self.run.drive(handlers):
            yield progress
        while True:
            self.run.world.move_to(self.run.world.timeline.now + MINUTE)
            tick_once(handlers, progress)
            self.run.recording.note(progress)
            yield progress

    def _answer(self, handlers: "Handlers", function: str, event: Any) -> dict[str, Any]:
        return self._mend(**event) if function == MEND else handlers.call(function, event)

    def _mend(self, pool: str) -> dict[str, Any]:
        """Repair what was broken of a pool: agents that are launched from now on come up."""
        if pool not in self.broken:
            raise ConfigError(f"pool ({pool}): is not broken; broken are: {', '.join(sorted(self.broken)) or 'none'}")
        self.broken.remove(pool)
        return {"pool": pool, "broken": sorted(self.broken)}


class Handlers:
    """The real handlers, as Lambda calls them: with a scheduled event and a context.

    ``between_steps``: called before each step of the schedule and each registration, unless another handler runs.
    """

    def __init__(self, world: World, chance: Random) -> None:
        """Load the functions."""
        self._world = world
        self._chance = chance
        self._handlers = {name: load_handler(FUNCTIONS / name / "app.py") for name in names_of_functions()}
        self._running = 0
        self.between_steps: Callable[[], object] = lambda: None

    def call(self, function: str, event: Any) -> dict[str, Any]:
        """Invoke a function with an event of one's own."""
        self._running += 1
        try:
            return self._handlers[function](event, Context(function, self._new_id()))
        finally:
            self._running -= 1

    def publish_metrics(self) -> None:
        """Run one tick of it."""
        self._call("publish_metrics")

    def scale_up(self) -> dict[str, Any]:
        """Run one tick of it."""
        return self._call("scale_up")

    def scale_down(self) -> dict[str, Any]:
        """Run one tick of it."""
        return self._call("scale_down")

    def register_agent(self, event: Any) -> dict[str, Any]:
        """Answer one request to its function URL."""
        return self._step("register_agent", event)

    def instance_events(self, instance: Instance, what: str) -> None:
        """Handle an EC2 event; a failure is in the log, and the next scheduled pass repairs it."""
        with suppress(AutoscalerError):
            self._step("instance_events", ec2_event(instance.id, what))

    def _call(self, function: str) -> dict[str, Any]:
        return self._step(function, tick(self._world.timeline.now))

    def _step(self, function: str, event: Any) -> dict[str, Any]:
        if not self._running:  # a question in the middle of a pass would find its lease taken
            self.between_steps()
        return self.call(function, event)

    def _new_id(self) -> str:
        return f"{self._chance.getrandbits(64):016x}"


@dataclass(frozen=True, slots=True)
class Context:
    """What Lambda hands to a handler beside the event."""

    function_name: str
    aws_request_id: str
    remaining_milliseconds: int = _FUNCTION_MILLISECONDS
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:us-west-2:123456789012:function:demo"

    def get_remaining_time_in_millis(self) -> int:
        """Simulated time stands still while a handler runs; it never runs out."""
        return self.remaining_milliseconds


def names_of_functions() -> list[str]:
    """Return the names of all functions of the deployment."""
    return [path.parent.name for path in sorted(FUNCTIONS.glob("*/app.py"))]


@cache
def load_handler(path: Path) -> Callable[[Any, Any], dict[str, Any]]:
    """Load a function's handler from its file, as Lambda does."""
    name = f"functions.{path.parent.name}.app"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    handler: Callable[[Any, Any], dict[str, Any]] = module.handler
    return handler


def serve(server: ApiServer, world: World) -> None:
    """Serve the APIs of a world."""
    server.ec2 = Ec2Api(world.ec2)
    for name, controller in world.controllers.items():
        base = f"{server.url}/jenkins/{name}/"
        server.jenkins[name] = JenkinsApi(controller, base, accounts={USER: TOKEN}, casc_export=exported_cloud(world.fleet, name))


@contextmanager
def environment(server: ApiServer, settings: FleetSettings, fleet_file: Path) -> Iterator[None]:
    """Set the environment that the handlers read, and restore it afterwards."""
    before = dict(os.environ)
    os.environ |= functions_environment(fleet_file) | _endpoints(server)
    for name, controller in settings.controllers.items():
        override = environment_name(name)
        os.environ[f"JENKINS_URL_{override}"] = f"{server.url}/jenkins/{name}/"
        if controller.secret is None:
            os.environ[f"JENKINS_USER_{override}"] = USER
            os.environ[f"JENKINS_TOKEN_{override}"] = TOKEN
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= before


def functions_environment(fleet_file: Path) -> dict[str, str]:
    """Return the environment of the functions, without the addresses of AWS and Jenkins."""
    return {
        "FLEET_CONFIG": str(fleet_file),
        "STATE_TABLE": TABLE,
        "FLEET_HOME": f"{ACCOUNT}/{_REGION}",
        "METRIC_NAMESPACE": "JenkinsFleet",
        "METRICS_LEVEL": "full",  # its page has a graph for each pool
        "AWS_DEFAULT_REGION": _REGION,
        "AWS_ACCESS_KEY_ID": "demo",
        "AWS_SECRET_ACCESS_KEY": "demo",
        "AGENT_ACCOUNT": ACCOUNT,
        "AGENT_ROLES": f"{AGENT_ROLE_ID}={profile_arn(AGENT_ROLE)}",
        "WEBHOOK_SECRET": WEBHOOK_SECRET,
        "POWERTOOLS_SERVICE_NAME": "autoscaler",
    }


def _endpoints(server: ApiServer) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL_EC2": f"{server.url}/ec2/",
        "AWS_ENDPOINT_URL_SERVICE_QUOTAS": f"{server.url}/service-quotas/",
        "AWS_ENDPOINT_URL_IAM": f"{server.url}/iam/",
        "AWS_ENDPOINT_URL_SSM": f"{server.url}/ssm/",
        "AWS_ENDPOINT_URL_LAMBDA": f"{server.url}/lambda-settings/",
    }


@contextmanager
def _logs_to(path: Path) -> Iterator[None]:
    """Send the functions' log lines to a file: the screen belongs to the live view."""
    handler = logger.registered_handler
    if not isinstance(handler, logging.StreamHandler):
        raise TypeError("Powertools' logger writes to something that cannot be redirected")
    with path.open("w", encoding="utf-8") as stream:
        before = handler.setStream(stream)
        try:
            yield
        finally:
            handler.setStream(before or sys.stdout)


def create_topic(address: str) -> str:
    """Make the topic of alarms and messages as the template does with this `AlarmEmail`, and return its ARN."""
    sns = boto3.client("sns")
    topic = str(sns.create_topic(Name="alarms")["TopicArn"])
    sns.subscribe(TopicArn=topic, Protocol="email", Endpoint=address)
    return topic


def mails_sent() -> list[tuple[str, str]]:
    """Return subject and text of each message that the topic was sent, oldest first."""
    arn = os.environ["ALARM_TOPIC"]
    topic = sns_backends[arn.split(":")[4]][_REGION].topics[arn]
    return [(str(subject), str(text)) for _, text, subject, *_ in topic.sent_notifications]


def create_secrets(settings: FleetSettings) -> None:
    """Keep each controller's credentials where the fleet file says, and what the webhook is called with."""
    token = json.dumps({"token": "a-token-of-twenty-four-characters"})
    boto3.client("secretsmanager").create_secret(Name=WEBHOOK_SECRET, SecretString=token)
    for secret in {controller.secret for controller in settings.controllers.values() if controller.secret}:
        value = json.dumps({"username": USER, "token": TOKEN})
        boto3.client("secretsmanager").create_secret(Name=secret, SecretString=value)


def create_table(client: Any = None) -> None:
    """Make the state table as the template does."""
    (client or boto3.client("dynamodb")).create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "fleet", "KeyType": "HASH"}, {"AttributeName": "item", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("fleet", "item")],
        BillingMode="PAY_PER_REQUEST",
    )
