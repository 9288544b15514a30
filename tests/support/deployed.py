"""The real handlers on a small world over HTTP and a local AWS, as the demo runs them."""

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from moto import mock_aws
from moto.core import DEFAULT_ACCOUNT_ID as MOTO_ACCOUNT
from moto.sns.models import sns_backends

from autoscaler import bootstrap
from autoscaler.config import load_settings
from autoscaler.domain.facts.fleet import Fleet
from autoscaler_workbench.cli import demo
from autoscaler_workbench.fakes.http_fakes.server import ApiServer
from autoscaler_workbench.fakes.identity import ask_handler
from autoscaler_workbench.fakes.world.agents import Agents
from autoscaler_workbench.fakes.world.world import World, build_world
from autoscaler_workbench.report.dashboard.cloudformation import read_template
from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET as EXAMPLE
from packaging_root import ROOT

NOON = 1_800_000_000.0  # 2027-01-15 08:00:00 UTC, as in events/tick.json


@dataclass(slots=True)
class Deployed:
    """Handlers and the world they act on."""

    world: World
    fleet: Fleet
    server: ApiServer

    def call(self, function: str, event: Any, **context: Any) -> dict[str, Any]:
        handler = demo.load_handler(demo.FUNCTIONS / function / "app.py")
        given = demo.Context(function, context.get("request_id", f"r-{self.world.timeline.now}"), context.get("milliseconds", 55_000))
        answer: dict[str, Any] = handler(event, given)
        return answer

    def told(self) -> list[tuple[str, str]]:
        """Subject and text of what people were sent."""
        topic = sns_backends[MOTO_ACCOUNT]["us-west-2"].topics[os.environ["ALARM_TOPIC"]]
        return [(str(subject), str(text)) for _, text, subject, *_ in topic.sent_notifications]

    def pass_minutes(self, minutes: int) -> None:
        for _ in range(minutes):
            self.world.move_to(self.world.timeline.now + 60)
            for function in ("publish_metrics", "scale_up", "scale_down"):
                self.call(function, {})


def essential_environment() -> dict[str, str]:
    """The environment of functions at `MetricsLevel: essential`, with the template's own thresholds, as the template hands them on."""
    template = read_template(ROOT / "template.yaml")
    given = template["Resources"]["PublishMetricsFunction"]["Properties"]["Environment"]["Variables"]
    parameters = {name: parameter.get("Default") for name, parameter in template["Parameters"].items()}
    handed_on = {name: parameters[value["Ref"]] for name, value in given.items() if isinstance(value, dict) and value["Ref"] in parameters}
    return {"METRICS_LEVEL": "essential"} | {name: str(value) for name, value in handed_on.items()}


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
        os.environ["ALARM_TOPIC"] = boto3.client("sns").create_topic(Name="alarms")["TopicArn"]  # until `environment` ends
        bootstrap.reset()
        stack.callback(bootstrap.reset)
        bootstrap.use_time(lambda: world.timeline.now, world.timeline.sleep)
        handler = demo.load_handler(demo.FUNCTIONS / "register_agent" / "app.py")
        Agents(world, ask_handler(lambda event: handler(event, demo.Context("register_agent", "r-register")), lambda: world.usage))
        yield Deployed(world, fleet, server)


def event(name: str) -> Any:
    return json.loads((Path(__file__).parents[2] / "events" / f"{name}.json").read_text(encoding="utf-8"))
