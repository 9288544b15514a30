"""The real handlers on a small world: in memory, or over HTTP and a local AWS, as the demo runs them."""

import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest import mock

from moto import mock_aws
from moto.core import DEFAULT_ACCOUNT_ID as MOTO_ACCOUNT
from moto.sns.models import sns_backends

from autoscaler import bootstrap
from autoscaler.config import FleetSettings, environment_name, load_settings
from autoscaler.config.problems import read_thresholds
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.report.datum import Datum
from autoscaler.errors import ConfigError
from autoscaler.telemetry import logger
from autoscaler_workbench.cli import demo
from autoscaler_workbench.fakes.http_fakes.aws.cloudwatch import published
from autoscaler_workbench.fakes.http_fakes.server import ApiServer
from autoscaler_workbench.fakes.identity import ask_handler
from autoscaler_workbench.fakes.state import InMemoryState
from autoscaler_workbench.fakes.world.agents import Agents
from autoscaler_workbench.fakes.world.world import World, build_world
from autoscaler_workbench.report.dashboard import cloudformation
from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET as EXAMPLE
from packaging_root import ROOT
from support.local_apis import LocalApis, apis_of
from support.samples import path_of
from support.stored import Stored
from support.template import TEMPLATE

NOON = 1_800_000_000.0  # 2027-01-15 08:00:00 UTC, as in events/scale_up/tick.json


@dataclass(slots=True)
class Deployed:
    """Handlers and the world they act on."""

    world: World
    fleet: Fleet
    server: ApiServer | LocalApis

    def call(self, function: str, event: Any, **context: Any) -> dict[str, Any]:
        """Invoke a function as the command line does: what it refuses is a `ConfigError`."""
        answer = self.invoke(function, event, **context)
        if "refused" in answer:
            raise ConfigError(answer["refused"])
        return answer

    def invoke(self, function: str, event: Any, **context: Any) -> dict[str, Any]:
        """Return a function's answer as Lambda does; what is raised is an error of the function."""
        folder, variables = _code_of(function)
        handler = demo.load_handler(folder / "app.py")
        given = demo.Context(function, context.get("request_id", f"r-{self.world.timeline.now}"), context.get("milliseconds", 55_000))
        # To keep and restore an environment takes a tenth of a pass.
        with mock.patch.dict(os.environ, variables) if variables else nullcontext():
            answer: dict[str, Any] = handler(event, given)
        return answer

    @property
    def metrics(self) -> list[tuple[float, Datum]]:
        """What was published, and when, oldest first."""
        return published()

    def told(self) -> list[tuple[str, str]]:
        """Subject and text of what people were sent."""
        topic = sns_backends[MOTO_ACCOUNT]["us-west-2"].topics[os.environ["ALARM_TOPIC"]]
        return [(str(subject), str(text)) for _, text, subject, *_ in topic.sent_notifications]

    def start_cold(self) -> None:
        """Forget what was wired, as after a deploy: the handlers read the fleet file and the environment anew, in the world's time."""
        bootstrap.reset()
        bootstrap.use_time(lambda: self.world.timeline.now, self.world.timeline.sleep)

    def pass_minutes(self, minutes: int) -> None:
        for _ in range(minutes):
            self.world.move_to(self.world.timeline.now + 60)
            for function in ("publish_metrics", "scale_up", "scale_down"):
                self.call(function, {})


@cache
def _code_of(function: str) -> tuple[Path, dict[str, str]]:
    """The folder of a function; of one that has the code of another, the template says which, and by what variables they differ."""
    if (folder := demo.FUNCTIONS / function).exists():
        return folder, {}
    written = TEMPLATE["Resources"][f"{function.title().replace('_', '')}Function"]["Properties"]
    variables = {name: value for name, value in written["Environment"]["Variables"].items() if isinstance(value, str)}
    return ROOT / written["CodeUri"], variables


def essential_environment() -> dict[str, str]:
    """The environment of functions at `MetricsLevel: essential`, with the template's own thresholds, as the template hands them on."""
    return cloudformation.essential_environment(TEMPLATE)


def essential_thresholds() -> Any:
    """The thresholds of a stack as it is deployed."""
    return read_thresholds(essential_environment())


@dataclass(slots=True)
class InMemory(Deployed):
    """Handlers that reach the world without sockets. ``logged``: name and facts of each line that the handlers log."""

    stored: Stored
    logged: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def state(self) -> InMemoryState:
        return self.stored.state

    @property
    def metrics(self) -> list[tuple[float, Datum]]:
        return self.stored.metrics.published

    def told(self) -> list[tuple[str, str]]:
        return [(message.subject, message.text) for message in self.stored.notifier.sent]


@contextmanager
def deployed_in_memory(fleet_file: Path | str = EXAMPLE, environment: Mapping[str, str] | None = None) -> Iterator[InMemory]:
    """Run the real handlers with a fleet file, or with its text, without sockets and without a local AWS.

    The handlers read the fleet file and the environment as in production. Only boto3, the Jenkins session and the stores are replaced.
    ``environment`` adds variables, such as those of `essential_environment`; without it every metric is published.
    """
    with ExitStack() as stack:
        file = fleet_file if isinstance(fleet_file, Path) else Path(stack.enter_context(TemporaryDirectory())) / "fleet.yaml"
        if isinstance(fleet_file, str):
            file.write_text(fleet_file, encoding="utf-8")
        settings = load_settings(file)
        fleet = settings.domain()
        world = build_world(fleet, start_at=NOON, seed=1)
        apis = _local_apis(world, settings)
        stored = Stored()
        here = InMemory(world, fleet, apis, stored)
        stack.enter_context(mock.patch.dict(os.environ, _environment(settings, file) | dict(environment or {})))
        stack.enter_context(_replaced(apis, stored))
        stack.enter_context(_kept_log(here.logged))
        _enter_world(stack, world)
        yield here


def _local_apis(world: World, settings: FleetSettings) -> LocalApis:
    urls = {name: controller.url for name, controller in settings.controllers.items()}
    apis = apis_of(world, urls, {demo.USER: demo.TOKEN})
    credentials = json.dumps({"username": demo.USER, "token": demo.TOKEN})
    apis.secrets |= {controller.secret: credentials for controller in settings.controllers.values() if controller.secret}
    apis.secrets[demo.WEBHOOK_SECRET] = json.dumps({"token": "a-token-of-twenty-four-characters"})
    return apis


def _environment(settings: FleetSettings, fleet_file: Path) -> dict[str, str]:
    environment = demo.functions_environment(fleet_file) | {"ALARM_TOPIC": "arn:aws:sns:us-west-2:123456789012:alarms"}
    for name, controller in settings.controllers.items():
        if controller.secret is None:
            override = environment_name(name)
            environment |= {f"JENKINS_USER_{override}": demo.USER, f"JENKINS_TOKEN_{override}": demo.TOKEN}
    return environment


@contextmanager
def _replaced(apis: LocalApis, stored: Stored) -> Iterator[None]:
    """Replace what leaves the process, and nothing else of `bootstrap`."""
    wire = bootstrap.runtime
    in_memory = cache(lambda: stored.wired(wire.__wrapped__))
    with (
        mock.patch.object(bootstrap, "runtime", in_memory),
        mock.patch.object(bootstrap, "boto3", SimpleNamespace(Session=lambda **_session: SimpleNamespace(client=apis.client))),
        mock.patch.object(bootstrap, "JenkinsSession", apis.session),
        mock.patch.object(bootstrap, "completed_requests", cache(lambda: stored.completed)),
    ):
        yield


@contextmanager
def _kept_log(kept: list[tuple[str, dict[str, Any]]]) -> Iterator[None]:
    """Keep each log line as its name and its facts."""
    handler = logging.Handler()
    handler.emit = lambda record: kept.append((record.getMessage(), {k: v for k, v in vars(record).items() if k not in _OF_EACH_RECORD}))
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


_OF_EACH_RECORD = frozenset({*vars(logging.makeLogRecord({})), "message"})


def _enter_world(stack: ExitStack, world: World) -> None:
    """Wire the handlers to the world's time, and let its instances register through the handler."""
    bootstrap.reset()
    stack.callback(bootstrap.reset)
    bootstrap.use_time(lambda: world.timeline.now, world.timeline.sleep)
    handler = demo.load_handler(demo.FUNCTIONS / "register_agent" / "app.py")
    Agents(world, ask_handler(lambda event: handler(event, demo.Context("register_agent", "r-register")), lambda: world.usage))


@contextmanager
def deployed(fleet_file: Path = EXAMPLE, environment: Mapping[str, str] | None = None):
    settings = load_settings(fleet_file)
    fleet = settings.domain()
    world = build_world(fleet, start_at=NOON, seed=1)
    with ExitStack() as stack:
        server = stack.enter_context(ApiServer())
        demo.serve(server, world)
        stack.enter_context(demo.environment(server, settings, fleet_file))
        os.environ |= environment or {}  # until `demo.environment` ends
        stack.enter_context(mock_aws())
        demo.create_table()
        demo.create_secrets(settings)
        os.environ["ALARM_TOPIC"] = demo.create_topic(demo.ON_CALL)  # until `environment` ends
        _enter_world(stack, world)
        yield Deployed(world, fleet, server)


def event(name: str) -> Any:
    return json.loads(path_of(name).read_text(encoding="utf-8"))
