"""A life of a fleet through the real handlers, with every call to AWS and every log line written down, by function."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from autoscaler import bootstrap
from autoscaler.errors import AutoscalerError
from autoscaler.telemetry import logger
from autoscaler_workbench.fakes.http_fakes.jenkins.jobs import Job
from autoscaler_workbench.fakes.identity import ask_handler, ec2_event, function_url_event
from autoscaler_workbench.fakes.world.agents import Agents
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.deployed import EXAMPLE, Deployed, deployed


@dataclass(slots=True)
class Recorded:
    """``calls``: function, operation in boto3's words, parameters; ``log``: every line, of all functions."""

    calls: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    log: str = ""
    function: str = ""
    nodes: set[str] = field(default_factory=set)

    def called(self, params: dict[str, Any], model: Any, **_facts: Any) -> None:
        """boto3 is about to make a call."""
        service = model.service_model.service_name.replace("service-quotas", "servicequotas")  # as IAM spells it
        self.calls.append((self.function, f"{service}:{model.name}", dict(params)))


# The example fleet, and a pool of which one agent is kept stopped, and whose image a parameter names; people may order runs.
_WARM = """
  warm: {executors: 1, launch_template: warm, instance_types: [c5.xlarge], max_agents: 2, idle_seconds: 60, warm_pool: {min_agents: 1},
    image_parameter: /ci/warm-image}
runs: {}
"""


def record_a_life() -> Recorded:
    """Launch, register, build, stop, start, break a boot, interrupt, drain and hold by hand, refuse strangers, give everything up."""
    recorded, stream = Recorded(), io.StringIO()
    with TemporaryDirectory() as folder, deployed(_fleet_file(Path(folder))) as here, _listening(recorded), _logging_to(stream):
        _wire(here, recorded)
        jenkins = here.world.controllers["main"]
        here.world.ec2.account.parameters["/ci/warm-image"] = "ami-linux"
        _stop_and_start(here, recorded)
        jenkins.submit("job", "mxnetlinux-gpu", 600.0)
        _minutes(here, recorded, 6)
        _call(here, recorded, "scale_up", {"pool": "mxnetlinux-gpu", "count": 3, "reason": "a test", "keep_minutes": 0})
        hung = {instance.id for instance in sorted(here.world.alive(), key=lambda instance: instance.launched_at)[-3:]}
        for instance in here.world.alive():
            instance.console = "no root device" if instance.id in hung else ""
        running = here.world.ec2.on_running
        here.world.ec2.on_running = lambda instance: None if instance.id in hung else running(instance)
        _minutes(here, recorded, 4)
        busy = next(i for i in here.world.alive() if (node := here.world.node_of(i)) and node.builds)
        _poll(here, recorded, busy)
        here.world.ec2.interrupt(busy)
        _minutes(here, recorded, 25)
        for name in [name for name in jenkins.nodes if name.startswith("mxnetlinux")]:
            _call(here, recorded, "scale_down", {"nodes": [name], "reason": "a test"})
        for asked in (
            {"action": "hold", "pool": "utility", "request_id": "once"},
            {"action": "hold", "pool": "utility", "request_id": "once"},
            {"action": "reserve", "target": "mxnetwindows-gpu", "person": "alice"},
            {"action": "reservations"},
            {"action": "jobs"},
            {"action": "eta", "subject": "nightly"},
            {"action": "plan"},
            {"action": "why", "subject": "utility"},
            {"action": "doctor"},
            {"action": "resume"},
            {"action": "purge", "label": "none"},
        ):
            _call(here, recorded, "operate", asked)
        _order_runs(here, recorded)
        for question in ("status", "overview", "names", "events", "needs", "costs", "runs", "reservations", "jobs", "plan", "doctor"):
            _call(here, recorded, "ask", {"action": question})
        for question in ("why", "eta"):
            _call(here, recorded, "ask", {"action": question, "subject": "ordered"})
        _call(here, recorded, "ask", {"action": "drain", "fleet": True})
        _call(here, recorded, "scale_up", {"action": "doctor"})
        _call(here, recorded, "register_agent", function_url_event("i-00000000000000000"))
        _call(here, recorded, "register_agent", {"body": "x"})
        _minutes(here, recorded, 20)
        recorded.nodes |= set(jenkins.nodes)
    recorded.log = stream.getvalue()
    return recorded


def _order_runs(here: Deployed, recorded: Recorded) -> None:
    """Let a person order runs, ask how they fare, and end some: one waits for its agent then, another one is carried to its end."""
    declares = {"AGENT_LABEL": "", "AUTOSCALER_RUN_ID": ""}
    jenkins = here.server.jenkins["main"]
    jenkins.jobs.jobs["ordered"] = Job(Kind.PIPELINE, None, 120.0, declares=declares, label_parameter="AGENT_LABEL")
    order = {"action": "run", "job": "ordered", "on": "warm", "by": "alice", "reason": "a test"}
    orders = [_call(here, recorded, "operate", order | {"request_id": request})["runs"][0]["id"] for request in ("first", "second")]
    _minutes(here, recorded, 2)
    _call(here, recorded, "operate", {"action": "runs"})
    _call(here, recorded, "operate", {"action": "cancel-run", "id": orders[0], "by": "bob", "reason": "a test"})
    _minutes(here, recorded, 15)
    ended = _call(here, recorded, "operate", {"action": "runs"})["runs"]
    assert sorted(str(run["outcome"]) for run in ended) == ["cancelled", "passed"], ended


def _poll(here: Deployed, recorded: Recorded, instance: Instance) -> None:
    """Let an agent ask again while it is connected."""
    node = here.world.node_of(instance)
    body = json.dumps({"connected": [f"main/{node.name}"] if node else []})
    _call(here, recorded, "register_agent", function_url_event(instance.id) | {"body": body})


def _fleet_file(folder: Path) -> Path:
    file = folder / "fleet.yaml"
    file.write_text(EXAMPLE.read_text(encoding="utf-8") + _WARM, encoding="utf-8")
    return file


def _stop_and_start(here: Deployed, recorded: Recorded) -> None:
    """Let an agent be stopped, started for a job, stopped again, started by a person, so slowly that it is seen, and reserved."""
    _minutes_until_stopped(here, recorded)
    here.world.controllers["main"].submit("job", "warm", 60.0)
    _minutes(here, recorded, 4)
    by_hand, begun = _minutes_until_stopped(here, recorded), here.world.ec2.on_running
    here.world.ec2.on_running = lambda instance: None if instance.id == by_hand else begun(instance)
    here.world.ec2.start(by_hand)
    _minutes(here, recorded, 4)
    here.world.ec2.on_running = begun
    begun(here.world.ec2.instances[by_hand])
    for_alice = _minutes_until_stopped(here, recorded)
    _call(here, recorded, "operate", {"action": "reserve", "target": "warm", "person": "alice"})
    _minutes(here, recorded, 4)
    _call(here, recorded, "operate", {"action": "release", "target": for_alice})


def _minutes_until_stopped(here: Deployed, recorded: Recorded) -> str:
    for _ in range(30):
        _minutes(here, recorded, 1)
        if found := [instance.id for instance in here.world.alive() if instance.state == "stopped"]:
            return found[0]
    raise AssertionError("no agent was stopped")


def _wire(here: Deployed, recorded: Recorded) -> None:
    Agents(here.world, ask_handler(lambda event: _answer(here, recorded, event)))
    here.world.ec2.announce = lambda instance, what: _call(here, recorded, "instance_events", ec2_event(instance.id, what))


def _answer(here: Deployed, recorded: Recorded, event: Any) -> dict[str, Any]:
    answer = _call(here, recorded, "register_agent", event)
    recorded.nodes |= set(here.world.controllers["main"].nodes)
    return answer


def _minutes(here: Deployed, recorded: Recorded, count: int) -> None:
    for _ in range(count):
        here.world.move_to(here.world.timeline.now + 60)
        for function in ("publish_metrics", "scale_up", "scale_down"):
            _call(here, recorded, function, {})


def _call(here: Deployed, recorded: Recorded, function: str, event: Any) -> dict[str, Any]:
    before, recorded.function = recorded.function, function
    bootstrap.runtime.cache_clear()  # each function is a process of its own, and its cold starts read secrets
    try:
        return here.call(function, event)
    except AutoscalerError:
        return {}
    finally:
        recorded.function = before


@contextmanager
def _listening(recorded: Recorded) -> Iterator[None]:
    events = bootstrap._session().events
    events.register("before-parameter-build.*.*", recorded.called)
    try:
        yield
    finally:
        events.unregister("before-parameter-build.*.*", recorded.called)


@contextmanager
def _logging_to(stream: io.StringIO) -> Iterator[None]:
    before = logger.registered_handler.setStream(stream)
    try:
        yield
    finally:
        logger.registered_handler.setStream(before)
