"""What is to be built, written into the build's folder: whoever joins reads it there. And what each builder wrote down there."""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from autoscaler_workbench.shared_build.files import put_first
from autoscaler_workbench.shared_build.graph import SHAPES, TASKS, Task, draw

_ORDER, _LOGS = "order.json", "logs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A build. ``lease_seconds``: how long a killed builder's claim keeps others from its task; 0: no claims."""

    shape: str = "mixed"
    seed: int = 1
    tasks: int = TASKS
    lease_seconds: float = 2.0
    wait_factor: float = 1.0
    link_bytes_per_second: float = 32 * 1024 * 1024.0

    def graph(self) -> tuple[Task, ...]:
        """Draw its tasks."""
        return draw(SHAPES[self.shape], self.seed, self.tasks, self.wait_factor)

    def write(self, folder: Path) -> None:
        """Start a build in a folder that has none."""
        folder.mkdir(parents=True, exist_ok=True)
        if not put_first(folder / _ORDER, json.dumps(asdict(self)).encode(), partial=folder, durable=True):
            raise FileExistsError(f"{folder}: has a build already")

    @staticmethod
    def is_in(folder: Path) -> bool:
        """Tell whether the folder has a build."""
        return (folder / _ORDER).exists()

    @staticmethod
    def read(folder: Path) -> "Order":
        """Read which build the folder has."""
        return Order(**json.loads((folder / _ORDER).read_bytes()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A task that a builder has built: first or not, how long it took, and whose claim it took over."""

    builder: str
    task: str
    first: bool
    fetch_seconds: float
    build_seconds: float
    publish_seconds: float
    taken_over_from: str | None


class Log:
    """One file a builder, one line a task, one write a line: what a killed builder wrote is whole."""

    def __init__(self, folder: Path, builder: str) -> None:
        (folder / _LOGS).mkdir(exist_ok=True)
        self._file = os.open(folder / _LOGS / f"{builder}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def add(self, built: Built) -> None:
        """Write down a task."""
        os.write(self._file, json.dumps(asdict(built)).encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def read_logs(folder: Path) -> Iterator[Built]:
    """Read what all builders built."""
    for file in sorted((folder / _LOGS).glob("*.jsonl")):
        for line in file.read_bytes().splitlines():
            yield Built(**json.loads(line))
