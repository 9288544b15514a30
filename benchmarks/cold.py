"""What a cold start costs: each handler from a tree as it is deployed, against an empty one, in a bare interpreter."""

import compileall
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import time

from moto.server import ThreadedMotoServer

from autoscaler.config import load_settings
from autoscaler_workbench.cli import demo
from autoscaler_workbench.fakes.http_fakes.server import ApiServer
from autoscaler_workbench.fakes.world.world import build_world
from autoscaler_workbench.report.dashboard.cloudformation import essential_environment, read_template
from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET
from benchmarks.figures import Figures, seconds

ROOT = Path(__file__).parents[1]
_RUNS = 9
_EVENTS = {"webhook": "webhook", "instance_events": "spot_interruption", "register_agent": "register_agent", "operate": "plan"}
# Lambda's layers are read-only: what they lack in bytecode is compiled at every cold start.
_AS_IN_LAMBDA = {"PYDANTIC_DISABLE_PLUGINS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
_BASE = "empty: boto3 and Powertools"


def measure() -> Iterator[Figures]:
    """Measure the three handlers and the two they are compared with."""
    with TemporaryDirectory() as directory, surroundings() as environment:
        layer, runtime, fleet = _deploy(Path(directory))
        bare = _without_bytecode(layer, Path(directory) / "bare")
        functions = [path.parent for path in sorted(demo.FUNCTIONS.glob("*/app.py"))]
        handlers = {
            _BASE: (ROOT / "benchmarks" / "handlers" / "empty", layer),
            "one read from DynamoDB": (ROOT / "benchmarks" / "handlers" / "one_read", layer),
            **{path.name: (path, layer) for path in functions},
            _BASE + "; no bytecode": (ROOT / "benchmarks" / "handlers" / "empty", bare),
            "scale_up; no bytecode": (demo.FUNCTIONS / "scale_up", bare),
        }
        runs: dict[str, list[_Run]] = {name: [] for name in handlers}
        for number in range(_RUNS + 1):
            for name, (handler, dependencies) in handlers.items():
                paths = os.pathsep.join(str(part) for part in (handler, dependencies, runtime))
                run = _run(event_of(handler.name), environment | {"PYTHONPATH": paths, "FLEET_CONFIG": str(fleet)})
                if number:  # the first only warms the disk, and launches the example's one utility agent
                    runs[name].append(run)
    base = runs[_BASE]
    yield Figures(
        "Cold start",
        "Import of the handler and its first call, in a bare interpreter with the layer and boto3 beside it, as in Lambda; the "
        f"simulated Jenkins and EC2 and a local AWS (moto) answer on loopback. Medians of {_RUNS} runs, taken by turns. Goal: 1.5 times "
        "the empty one. "
        "The layer carries bytecode where the machine that built it has Lambda's Python; the last two rows are a layer without bytecode.",
        ("handler", "import", "first call", "together", "times the empty one", "import alone, times", "second call"),
        tuple(_row(name, taken, base) for name, taken in runs.items()),
    )


@dataclass(frozen=True, slots=True)
class _Run:
    imported: float
    first: float
    second: float


def _row(name: str, runs: list[_Run], base: list[_Run]) -> tuple[str, ...]:
    total, base_total = (median(run.imported + run.first for run in taken) for taken in (runs, base))
    imported, base_imported = (median(run.imported for run in taken) for taken in (runs, base))
    first, second = median(run.first for run in runs), median(run.second for run in runs)
    times = f"{total / base_total:.2f}", f"{imported / base_imported:.2f}"
    return name, seconds(imported), seconds(first), seconds(total), *times, seconds(second)


def event_of(function: str) -> str:
    """The sample event of a function that knows only its own; any other takes a pass, now."""
    [path] = (ROOT / "events").glob(f"*/{_EVENTS.get(function, 'now')}.json")
    return path.read_text(encoding="utf-8")


def _run(event: str, environment: dict[str, str]) -> _Run:
    took = start_cold(event, environment, "-S")["took"]
    return _Run(*(float(part) for part in took))


def start_cold(event: str, environment: dict[str, str], *options: str) -> dict[str, list[str]]:
    """Call a handler in an interpreter of its own; return what it printed of itself by the first word of each line."""
    command = [sys.executable, *options, str(ROOT / "benchmarks" / "cold_start.py"), event]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd="/")
    lines = [line.split() for line in done.stdout.splitlines()[-2:]]
    if done.returncode or [line[0] for line in lines] != ["loaded", "took"]:
        raise RuntimeError(f"the handler did not run: {done.stderr[-2000:]}")
    return {line[0]: line[1:] for line in lines}


def _deploy(directory: Path) -> tuple[Path, Path, Path]:
    """Lay out what `sam build` lays out, for this interpreter: the layer, the runtime's own boto3, the fleet file."""
    layer, runtime = (directory / name for name in ("layer", "runtime"))
    core = ROOT / "layers" / "core"
    uv = [str(Path(sys.executable).parent / "uv"), "pip", "install", "--quiet", "--python", sys.executable]
    subprocess.run([*uv, "--target", str(layer), "-r", str(core / "requirements.txt")], check=True)
    subprocess.run([*uv, "--target", str(runtime), "boto3"], check=True)
    shutil.copytree(core / "autoscaler", layer / "autoscaler", ignore=shutil.ignore_patterns("__pycache__"))
    for tree in (layer, runtime):
        compileall.compile_dir(tree, quiet=2)
    return layer, runtime, fleet_file(directory / "fleet")


def fleet_file(directory: Path) -> Path:
    """Write the example's fleet file as the fleet layer carries it, with its checked JSON beside it."""
    directory.mkdir()
    subprocess.run([sys.executable, "-m", "autoscaler.config", str(EXAMPLE_FLEET), str(directory)], check=True)
    return directory / EXAMPLE_FLEET.name


def _without_bytecode(layer: Path, target: Path) -> Path:
    shutil.copytree(layer, target, ignore=shutil.ignore_patterns("__pycache__"))
    return target


@contextmanager
def surroundings(fleet_file: Path = EXAMPLE_FLEET) -> Iterator[dict[str, str]]:
    """Serve a world and a local AWS on loopback, and yield the environment that points there."""
    settings = load_settings(fleet_file)
    world = build_world(settings.domain(), start_at=time(), seed=1)
    with ExitStack() as stack:
        server = stack.enter_context(ApiServer())
        demo.serve(server, world)
        logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line a request otherwise
        aws = ThreadedMotoServer(port=0, verbose=False)
        aws.start()
        stack.callback(aws.stop)
        stack.enter_context(demo.environment(server, settings, fleet_file))
        _, port = aws.get_host_and_port()
        os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{port}"
        demo.create_table()
        demo.create_secrets(settings)
        names = ("AGENT_", "AWS_", "FLEET_HOME", "STATE_", "METRIC_", "POWERTOOLS_", "JENKINS_", "WEBHOOK_")
        given = {key: value for key, value in os.environ.items() if key.startswith(names)}
        yield given | essential_environment(read_template(ROOT / "template.yaml")) | _AS_IN_LAMBDA
