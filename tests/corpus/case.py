"""A case: looks in a row, each with its facts and without any memory. The code under test carries
its own memory from look to look."""

import json
import lzma
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.job_settings import PluginWeight
from autoscaler.domain.facts.orders import (
    CloseBreaker,
    DrainAll,
    DrainNodes,
    DrainSome,
    EndInstance,
    LaunchSome,
    Purge,
    Release,
    Reserve,
    Resume,
)
from autoscaler.domain.facts.runs import BuildResult, Graphs, Item
from autoscaler.domain.facts.snapshot import Snapshot
from autoscaler.domain.lifecycle import InstanceEvent
from corpus.forms import Forms
from corpus.outcomes import Outcomes

LAYER = Path(__file__).parents[2] / "layers" / "core" / "autoscaler"
RECORDED = Path(__file__).parent / "recorded"
Orders = (
    LaunchSome
    | DrainSome
    | DrainNodes
    | DrainAll
    | Reserve
    | Release
    | EndInstance
    | Resume
    | CloseBreaker
    | Purge
    | InstanceEvent
    | None
)


class Asks(StrEnum):
    """What a look was for."""

    UP = "up"
    DOWN = "down"
    LEARN = "learn"  # a measurement, which decides nothing
    ORDER = "order"  # of a person, or an announcement of EC2
    HOLDS = "holds"  # of labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What Jenkins answered to the questions of one look at a controller, and what else was read
    for it."""

    results: Mapping[str, BuildResult] = field(default_factory=dict)  # by run
    graphs: Graphs = field(default_factory=Graphs)
    left: tuple[int, ...] = ()  # queue items of builds that have ended
    items: Mapping[int, Item] = field(default_factory=dict)
    weights: Mapping[str, int] = field(default_factory=dict)  # of jobs
    heavy_jobs: Mapping[str, PluginWeight] = field(default_factory=dict)
    short_of_disk: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One decision, or one measurement. ``facts``: without memory; ``outcomes``: None if nothing
    was carried out."""

    asks: Asks
    facts: Snapshot
    fleet: Fleet
    order: Orders = None
    outcomes: Outcomes | None = None
    over_at: float = 0.0  # when the last step was over
    answers: Mapping[str, Answers] = field(default_factory=dict)  # by controller; of a measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """``memory``, ``learned`` (by controller): as they were stored, to begin with; "" and none:
    nothing is remembered."""

    name: str
    looks: tuple[Look, ...]
    memory: str = ""
    learned: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Recorded:
    """A case and what was decided: lines for each look, and what people were told after the last
    one."""

    case: Case
    decided: list[list[str]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)


@cache
def _forms() -> Forms:
    """Prepare for cases, once a process: that takes a second."""
    forms = Forms()
    forms.tag(Orders)
    return forms


def written(recorded: Recorded) -> str:
    """Return a case as one line of JSON."""
    with _forms().of_case() as parts:
        case = _forms().write(recorded.case, Case)
        whole = {"parts": parts, "case": case, "decided": recorded.decided, "words": recorded.words}
        return json.dumps(whole, separators=(",", ":"))


def read(line: str) -> Recorded:
    whole: dict[str, Any] = json.loads(line)
    with _forms().of_case(whole["parts"]):
        case = _forms().read(whole["case"], Case)
    return Recorded(case=case, decided=whole["decided"], words=whole["words"])


def archives() -> list[Path]:
    """The archives, one for each source."""
    return sorted(RECORDED.glob("*.xz"))


def lines_of(archive: Path) -> list[str]:
    return lzma.decompress(archive.read_bytes()).decode().splitlines()


def write_archive(archive: Path, lines: Iterable[str]) -> None:
    archive.parent.mkdir(exist_ok=True)
    text = "".join(f"{line}\n" for line in lines)
    archive.write_bytes(lzma.compress(text.encode(), preset=lzma.PRESET_EXTREME | 6))
