"""What a pass costs as the fleet grows: requests, bytes, time, memory; and the same look as python-jenkins offers it."""

import gc
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import log
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import jenkins

from autoscaler.adapters.dynamodb import DynamoState
from autoscaler.adapters.jenkins.controller import JenkinsController
from autoscaler.adapters.jenkins.parse import COMPUTER_TREE, QUEUE_TREE, ROOT_TREE
from autoscaler.adapters.jenkins.session import JenkinsSession
from autoscaler.control.observe import Invocation, observe
from autoscaler.domain import decide
from autoscaler_workbench.fakes.http_fakes.clients import LocalEc2Client, LocalSession
from autoscaler_workbench.fakes.http_fakes.server import ApiServer
from autoscaler_workbench.simulate.drive import InMemory
from benchmarks.canned import Cans, Client, open_cans, passes_of
from benchmarks.crowd import EXECUTORS, gather
from benchmarks.ec2_answers import xml_pages
from benchmarks.figures import Figures, count, megabytes, seconds, seconds_of

SIZES = (2_000, 10_000, 20_000)
_RUNS, _RUNS_OF_THE_SMALLEST = 3, 5
_TREES = {"queue/api/json": QUEUE_TREE, "computer/api/json": COMPUTER_TREE, "api/json": ROOT_TREE}


def measure() -> Iterator[Figures]:
    """Measure every size."""
    columns = [column(agents) for agents in SIZES]
    heads = ("figure", *(f"{count(agents)} agents" for agents in SIZES))
    yield Figures(
        "One pass, as the fleet grows",
        f"{EXECUTORS} executors an agent, nine of ten busy, ten pools; labels of up to four terms; one controller. Medians of "
        f"{_RUNS_OF_THE_SMALLEST} runs, of {_RUNS} from {count(SIZES[1])} on. "
        "“Without network”: the real adapters on recorded answers. It includes reading Jenkins' JSON, EC2's XML and our own "
        "state, and excludes sockets and the time that others take to answer. "
        "Goals at 2,000 agents: decide 0.5 s, a whole pass 2 s, memory 200 MB.",
        heads,
        tuple((name, *(column.shown.get(name, "not asked") for column in columns)) for name in columns[0].shown),
    )
    timed = [name for name in columns[0].seconds if columns[0].seconds[name] > 0.02]
    yield Figures(
        "Growth",
        "Multiples of the figure at 2,000 agents. n log n would be "
        f"{_n_log_n(SIZES[1]):.1f} times at {count(SIZES[1])} and {_n_log_n(SIZES[2]):.1f} times at {count(SIZES[2])}.",
        heads,
        tuple((name, *(f"{column.seconds[name] / columns[0].seconds[name]:.1f}" for column in columns)) for name in timed),
    )


@dataclass(frozen=True, slots=True)
class _Column:
    shown: dict[str, str]
    seconds: dict[str, float]


def column(agents: int) -> _Column:
    """Measure everything at one size."""
    fleet = gather(agents)
    cans = canned(fleet)
    ports = open_cans(cans)
    snapshot = observe(ports, cans.fleet, ports.state.read(), Invocation(request_id="i", ends_at=ports.clock() + 55.0))
    timed: dict[str, Callable[[], object]] = {
        "read EC2's instances (XML)": ports.compute.instances,
        "parse Jenkins' three answers": ports.controllers[0].look,
        "read our own state": ports.state.read,
        "decide: scale_up": lambda: decide.scale_up(snapshot, cans.fleet),
        "decide: scale_down": lambda: decide.scale_down(snapshot, cans.fleet),
    }
    timed |= {f"pass without network: {function}": act for function, act in passes_of(ports, cans.fleet).items()}
    gc.collect()
    gc.freeze()  # the world behind the cans is no part of a function's heap
    runs = _RUNS_OF_THE_SMALLEST if agents == SIZES[0] else _RUNS
    took = {name: seconds_of(act, runs=runs) for name, act in timed.items()}
    gc.unfreeze()
    shown = {"queue items": count(len(snapshot.controllers["main"].items)), "instances": count(len(snapshot.instances))}
    shown |= {name: seconds(value) for name, value in took.items()} | _memory(cans) | _over_http(fleet, with_theirs=agents == SIZES[0])
    return _Column(shown, took)


def canned(fleet: InMemory) -> Cans:
    """Record what one pass is answered."""
    session = LocalSession(fleet.apis["main"])
    state = _Table()
    table: Any = state
    stored = fleet.state.read()
    dynamodb = DynamoState(lambda: table, "table", fleet.fleet.name)
    for record in stored.records:
        dynamodb.add_record(record)
    dynamodb.save_memory(replace(stored.memory, version=0))
    for controller, learned in stored.learned.items():
        dynamodb.save_learned(controller, replace(learned, version=0))
    client = fleet.ports.compute.client()  # type: ignore[attr-defined]  # the world's EC2, in boto3's words
    filters = [{"Name": "tag:autoscaler:fleet", "Values": [fleet.fleet.name]}]
    assert isinstance(client, LocalEc2Client)  # noqa: S101
    instances = client.get_paginator("describe_instances").paginate(Filters=filters)
    named = [{"Name": "launch-template-name", "Values": [pool.launch_template for pool in fleet.fleet.pools.values()]}]
    templates = client.get_paginator("describe_launch_templates").paginate(Filters=named)
    return Cans(
        fleet=fleet.fleet,
        now=fleet.world.timeline.now,
        answers={path: session.get(path, tree) for path, tree in _TREES.items()},
        instances=xml_pages(raw for page in instances for reservation in page["Reservations"] for raw in reservation["Instances"]),
        templates=next(templates),
        items=list(state.items.values()),
    )


class _Table(Client):
    """Keeps the last of each item."""

    def __init__(self) -> None:
        super().__init__({})
        self.items: dict[str, dict[str, Any]] = {}

    def put_item(self, **request: Any) -> None:
        self.items[request["Item"]["item"]["S"]] = request["Item"]


def _memory(cans: Cans) -> dict[str, str]:
    """Peak memory of a fresh process, as Lambda would count it."""
    peaks: dict[str, str] = {}
    with TemporaryDirectory() as directory:
        path = Path(directory) / "cans"
        path.write_bytes(pickle.dumps(cans))
        for function in passes_of(open_cans(cans), cans.fleet):
            command = [sys.executable, "-m", "benchmarks.canned", str(path), function]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            before, peak = (int(part) for part in done.stdout.split())
            peaks[f"peak memory: {function}"] = f"{peak / 1e6:.0f} MB (of which imports {before / 1e6:.0f})"
    return peaks


def _over_http(fleet: InMemory, *, with_theirs: bool) -> dict[str, str]:
    """One look over sockets, ours and as python-jenkins offers it. The stand-in's own time is in both.

    python-jenkins asks for every node by itself: at 10,000 agents that takes the stand-in more than the client's minute for one answer.
    """
    with ApiServer() as server:
        server.jenkins["main"] = fleet.apis["main"]
        url = f"{server.url}/jenkins/main/"
        session = JenkinsSession(url, "u", "t", monotonic)
        controller = JenkinsController("main", url, lambda: session, monotonic)
        whole = not controller.look().problem
        ours = _watched(server, controller.look, runs=3)
        theirs = _watched(server, lambda: _as_python_jenkins_offers(url), runs=1) if with_theirs else None
    raw = sum(len(LocalSession(fleet.apis["main"]).get(path, tree).body) for path, tree in _TREES.items())
    shown = {
        "requests a pass and controller": count(ours.requests) if whole else "not told",
        "bytes over the wire (gzip)": megabytes(ours.bytes) if whole else "not told",
        "bytes unpacked": megabytes(raw),
        "one look over HTTP": seconds(ours.seconds) if whole else "given up: not read in time",
    }
    if theirs is None:
        return shown
    return shown | {
        "python-jenkins: requests": count(theirs.requests),
        "python-jenkins: bytes over the wire": megabytes(theirs.bytes),
        "python-jenkins: one look over HTTP": seconds(theirs.seconds),
        "python-jenkins takes, times ours": f"{theirs.seconds / ours.seconds:.0f}",
    }


@dataclass(frozen=True, slots=True)
class _Watched:
    requests: int
    bytes: int
    seconds: float


def _watched(server: ApiServer, act: Callable[[], object], *, runs: int) -> _Watched:
    server.requests.clear()
    took = seconds_of(act, runs=runs)
    return _Watched(len(server.requests) // runs, sum(sent for _, sent in server.requests) // runs, took)


def _as_python_jenkins_offers(url: str) -> None:
    """Queue, nodes, each node, running builds, by the calls that python-jenkins has for them."""
    server = jenkins.Jenkins(url, "u", "t", timeout=60)
    server.get_queue_info()
    for node in server.get_nodes():
        server.get_node_info("(master)" if node["name"] == "Built-In Node" else node["name"])
    server.get_running_builds()


def _n_log_n(agents: int) -> float:
    return agents * log(agents) / (SIZES[0] * log(SIZES[0]))
