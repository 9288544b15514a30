"""Wires everything: the only place that knows concrete classes, the environment and the wall clock."""

from __future__ import annotations

import os
import time
import uuid
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from random import Random
from threading import Lock
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from autoscaler.adapters.account import AwsAccount, SsmImages
from autoscaler.adapters.aws import session_with_quick_times
from autoscaler.adapters.dynamodb import DynamoState
from autoscaler.adapters.ec2 import Ec2Compute
from autoscaler.adapters.jenkins.builds import JenkinsBuilds
from autoscaler.adapters.jenkins.controller import JenkinsController
from autoscaler.adapters.jenkins.session import JenkinsSession
from autoscaler.adapters.secrets import Credentials, SharedSecret
from autoscaler.adapters.stores import DynamoAsks, DynamoCosts, DynamoHistory, DynamoJobs, DynamoReruns, DynamoRunOrders, SqsSlots
from autoscaler.adapters.telling import CloudWatchMetrics, EssentialMetrics, SnsTopic
from autoscaler.config import FleetSettings, environment_name, load_settings, url_problem
from autoscaler.config.problems import read_thresholds, refused
from autoscaler.config.sections import job_parameters
from autoscaler.domain.report.ordered import Access
from autoscaler.domain.report.registration import Trust
from autoscaler.errors import ConfigError
from autoscaler.ports import Ports, one_by_one
from autoscaler.telemetry import log

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer

    from autoscaler.config import ControllerSettings
    from autoscaler.domain.facts.fleet import Fleet
    from autoscaler.domain.report.problems import Thresholds
    from autoscaler.ports import Account, Clock, SideBySide, Sleep, T

# Clients may be used by several threads, and be made by one at a time only.
_ONE_AT_A_TIME = Lock()
_SDK = Config(
    connect_timeout=3,
    read_timeout=10,
    # One retry by the SDK, with the same bytes and token; everything beyond that is the next pass's business.
    retries={"mode": "standard", "total_max_attempts": 2},
    # Our requests have one shape each, which the contract tests hold to; checking it again and again costs a fifth of a call,
    # and so does spelling out the machine in each user agent.
    parameter_validation=False,
    user_agent="jenkins-autoscaler",
)

# The next pass must know whether EC2 answered a launch; if the SDK repeats a call by itself, nobody knows.
_SDK_ONCE = _SDK.merge(Config(retries={"mode": "standard", "total_max_attempts": 1}))


# Looks wait for Jenkins, not for the processor; more controllers than this are seldom behind one fleet.
_THREADS = 16


def in_threads(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Make each call in a thread of its own; a single one needs none."""
    if len(calls) < 2:
        return one_by_one(calls)
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - a fleet of one controller spares itself the import

    with ThreadPoolExecutor(max_workers=min(len(calls), _THREADS)) as threads:
        return list(threads.map(lambda call: call(), calls))


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """The ports and the fleet of a function. ``essential``: it sends few metrics, and conditions are judged here instead of by alarms."""

    ports: Ports
    fleet: Fleet
    essential: bool


@dataclass(slots=True)
class _Time:
    """The source of time: the wall clock, or what `use_time` was given; then nothing runs in threads."""

    clock: Clock = time.time
    sleep: Sleep = time.sleep
    stopwatch: Clock = time.monotonic  # which no correction of the wall clock moves
    side_by_side: SideBySide = in_threads


_TIME = _Time()


def use_time(clock: Clock, sleep: Sleep) -> None:
    """Run everything on another clock: the real handlers then live a simulated day in seconds."""
    _TIME.clock, _TIME.sleep, _TIME.stopwatch, _TIME.side_by_side = clock, sleep, clock, one_by_one


def reset() -> None:
    """Forget what was wired, as a cold start does, and go back to the wall clock."""
    _TIME.clock, _TIME.sleep, _TIME.stopwatch, _TIME.side_by_side = time.time, time.sleep, time.monotonic, in_threads
    for cached in (runtime, thresholds, trust, webhook_secret, completed_requests, account, _cached_client, _session):
        cached.cache_clear()


@cache
def runtime() -> Runtime:
    """Wire everything from the environment; `ConfigError` says in one line what is missing or wrong."""
    settings = load_settings(Path(os.environ.get("FLEET_CONFIG", "/opt/fleet.yaml")))
    fleet = replace(settings.domain(), home=_required("FLEET_HOME"))
    if (deployed := os.environ.get("FLEET_NAME", fleet.name)) != fleet.name:
        raise refused("FLEET_NAME", deployed, f"the stack's FleetName must be the fleet file's name ({fleet.name})")
    controllers = tuple(_controller(name, settings) for name in settings.controllers)
    table = partial(_client, "dynamodb"), _required("STATE_TABLE"), fleet.name
    state, asks = DynamoState(*table, sleep=_sleep), DynamoAsks(*table, sleep=_sleep)
    topic, queue = os.environ.get("ALARM_TOPIC"), os.environ.get("LOOKS_QUEUE")
    is_essential = _one_of("METRICS_LEVEL", "essential", ("essential", "full")) == "essential"
    metrics = CloudWatchMetrics(partial(_client, "cloudwatch"), os.environ.get("METRIC_NAMESPACE", "JenkinsFleet"))
    ports = Ports(
        controllers=controllers,
        compute=Ec2Compute(partial(_client, "ec2"), fleet, partial(_client, "ec2", _SDK_ONCE)),
        images=SsmImages(partial(_client, "ssm")),
        state=state,
        rate_limiter=asks,
        lease=state,
        metrics=EssentialMetrics(metrics) if is_essential else metrics,
        history=DynamoHistory(*table),
        jobs=DynamoJobs(*table),
        costs=DynamoCosts(*table, sleep=_sleep),
        notifier=SnsTopic(partial(_client, "sns"), topic, os.environ.get("RUNBOOK_BASE_URL") or "docs") if topic else None,
        clock=lambda: _TIME.clock(),  # noqa: PLW0108 - `use_time` may come after the wiring
        sleep=_sleep,
        new_id=lambda: uuid.uuid4().hex,
        shuffled=lambda slots: Random().sample(slots, len(slots)),  # noqa: S311 - to seldom meet, not to be secret
        log=log,
        look_every_seconds=float(_one_of("LOOK_EVERY_SECONDS", "60", ("5", "10", "15", "20", "30", "60"))),
        slots=SqsSlots(partial(_client, "sqs"), queue, *table) if queue else None,
        side_by_side=lambda calls: _TIME.side_by_side(calls),  # noqa: PLW0108
        telemetry=asks,
        builds={controller.name: JenkinsBuilds(controller.connection) for controller in controllers},
        reruns=DynamoReruns(*table, sleep=_sleep),
        run_orders=DynamoRunOrders(*table, sleep=_sleep),
    )
    return Runtime(ports=ports, fleet=fleet, essential=is_essential)


def _sleep(seconds: float) -> None:
    _TIME.sleep(seconds)


@cache
def trust() -> Trust:
    """Read whom `register_agent` trusts: ``AGENT_ROLES`` is ``ROLE-ID=INSTANCE-PROFILE-ARN``, several separated by commas."""
    pairs = [pair.strip().partition("=") for pair in _required("AGENT_ROLES").split(",") if pair.strip()]
    for role, sign, profile in pairs:
        if not (role.startswith("AROA") and sign and ":instance-profile/" in profile):
            raise refused("AGENT_ROLES", f"{role}{sign}{profile}", "must be ROLE-ID=INSTANCE-PROFILE-ARN")
    return Trust(account=_required("AGENT_ACCOUNT"), profile_of_role={role: profile for role, _, profile in pairs})


def access() -> Access:
    """Read what lets people into agents: ``AGENT_SESSION_MANAGER`` is yes or no, of the launch templates that this stack has made."""
    templates = frozenset(f"autoscaler-{kind}-{runtime().fleet.name}" for kind in ("linux", "windows", "arm64"))
    return Access(allowed=_one_of("AGENT_SESSION_MANAGER", "no", ("yes", "no")) == "yes", templates=templates)


def refuses_orders() -> bool:
    """Read whether this function only answers: ``REFUSES_ORDERS`` is yes or no."""
    return _one_of("REFUSES_ORDERS", "no", ("yes", "no")) == "yes"


def _one_of(name: str, default: str, words: Sequence[str]) -> str:
    """Read a variable that is one of these words."""
    text = os.environ.get(name, default)
    if text not in words:
        raise refused(name, text, f"must be {', '.join(words[:-1])} or {words[-1]}")
    return text


@cache
def webhook_secret() -> SharedSecret:
    """Return the secret that controllers call the webhook with."""
    return SharedSecret(partial(_client, "secretsmanager"), _required("WEBHOOK_SECRET"), lambda: _TIME.clock())  # noqa: PLW0108


@cache
def account() -> Account:
    """Return what the doctor asks about the AWS account."""
    return AwsAccount(_client, runtime().fleet.launched, _number("PUBLIC_FUNCTIONS") or 1, _number("PUBLIC_CONCURRENCY"))


def _number(name: str) -> int | None:
    """Read a whole number; None where nobody says."""
    text = os.environ.get(name, "")
    if text and not text.isdecimal():
        raise refused(name, text, "must be a whole number, or empty")
    return int(text) if text else None


@cache
def completed_requests() -> DynamoDBPersistenceLayer:
    """Return the store of completed request ids: in the state table, under the fleet."""
    from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer as Layer  # noqa: PLC0415 - a scheduled pass needs none

    return Layer(
        table_name=_required("STATE_TABLE"),
        key_attr="fleet",
        sort_key_attr="item",
        static_pk_value=runtime().fleet.name,
        boto3_client=_client("dynamodb"),
    )


def _client(service: str, config: Config = _SDK) -> Any:
    with _ONE_AT_A_TIME:
        return _cached_client(service, config)


@cache
def _cached_client(service: str, config: Config) -> Any:
    return _session().client(service, config=config)  # type: ignore[call-overload]


@cache
def _session() -> boto3.Session:
    return boto3.Session(botocore_session=session_with_quick_times())


def _controller(name: str, settings: FleetSettings) -> JenkinsController:
    controller = settings.controllers[name]
    url = os.environ.get(f"JENKINS_URL_{environment_name(name)}", controller.url)
    connect = partial(_connect, name, url, controller)
    significant = job_parameters(settings.job_parameters)
    return JenkinsController(name, url, connect, _stopwatch, significant)


def _stopwatch() -> float:
    return _TIME.stopwatch()


def _connect(name: str, url: str, settings: ControllerSettings) -> JenkinsSession:
    override = environment_name(name)
    if problem := url_problem(url):
        raise ConfigError(f"environment variable JENKINS_URL_{override} {problem}")
    credentials = _credentials(override, settings)
    username, token = (credentials.username, credentials.token) if credentials else (None, None)
    bundle = os.environ.get("JENKINS_CA_BUNDLE", "")
    return JenkinsSession(url, username, token, _stopwatch, bundle)


def _credentials(override: str, settings: ControllerSettings) -> Credentials | None:
    user, token = os.environ.get(f"JENKINS_USER_{override}"), os.environ.get(f"JENKINS_TOKEN_{override}")
    if (user is None) != (token is None):
        raise ConfigError(f"JENKINS_USER_{override} and JENKINS_TOKEN_{override}: set both or neither")
    if user is not None and token is not None:
        return Credentials(username=user, token=token)
    return Credentials.read(partial(_client, "secretsmanager"), settings.secret) if settings.secret else None


@cache
def thresholds() -> Thresholds:
    """Read the numbers of the alarms; only `publish_metrics` is given them."""
    return read_thresholds(os.environ)


def _required(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise ConfigError(f"environment variable {name}: missing")
    return value
