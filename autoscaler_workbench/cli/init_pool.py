"""One pool of a first fleet file, and what Jenkins' settings say about it: labels, numbers, the operating system."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from autoscaler.config.settings import LABEL, REMOTE_DIRS
from autoscaler_workbench.simulate.fleets import says_windows

MOST_EXECUTORS = 1000
MOST_AGENTS = 100_000  # that a fleet file may name
_NO_CAP = 2**31 - 1  # how the EC2 plugin spells that there is none
_LINUX = re.compile(r"linux|ubuntu|debian|centos|rhel|redhat|fedora|rocky|alma|suse|alpine|amzn|amazon|unix", re.IGNORECASE)
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


@dataclass(slots=True, kw_only=True)
class Draft:
    """One pool to be written. ``todo``: by key, what a person must check; ``about``: where the pool comes from."""

    name: str
    labels: list[str]
    executors: int
    instance_types: list[str]
    max_agents: int
    platform: str = "linux"
    min_agents: int = 0
    warm_executors: int = 0
    subnets: list[str] = field(default_factory=list)
    market: str = "on-demand"
    spot_max_usd_per_hour: float | None = None
    remote_dir: str | None = None
    exclusive: bool = True
    usd_per_hour: float | None = None
    max_builds: int | None = None  # of one agent
    runs_again: bool = False  # builds that were lost with their agent
    about: list[str] = field(default_factory=list)
    todo: dict[str, str] = field(default_factory=dict)

    @property
    def reuse(self) -> str | None:
        """How often an agent is used: once, or what the fleet file says by default."""
        return "never" if self.max_builds == 1 else None


@dataclass(slots=True, kw_only=True)
class Cap:
    """The most machines that a cloud of Jenkins may have, over all of its pools; in the fleet file a team's limit."""

    name: str
    max_agents: int
    pools: list[Draft]


def guess_platform(names: Iterable[str], root: Any = None) -> tuple[str, str]:
    """Guess the operating system from labels, names and a root directory; the second text is the doubt, empty if there is none."""
    text = " ".join(names)
    windows = says_windows(text) or bool(_DRIVE.match(str(root or "")))
    linux = bool(_LINUX.search(text)) or str(root or "").startswith("/")
    if windows and linux:
        return "windows", "a guess: the names speak of Windows and of Linux"
    if windows or linux:
        return "windows" if windows else "linux", ""
    return "linux", "a guess: no name says which operating system this is"


def usable(labels: Iterable[str]) -> list[str]:
    """Keep labels that a fleet file may have; those in quotation marks it may not."""
    return [label for label in labels if re.fullmatch(LABEL, label) and label.isprintable() and len(label) <= 200]


def other_root(told: Any, platform: str) -> str | None:
    """Return a root directory that is not the platform's default."""
    return str(told) if told and str(told) != REMOTE_DIRS[platform] and str(told).isprintable() else None  # type: ignore[index]


def number(told: Any) -> int | None:
    """Read a whole number, which the plugins export as text at times; None: there is none, or it stands for *no limit*."""
    try:
        return int(told) if 0 <= int(told) < _NO_CAP else None
    except (TypeError, ValueError, OverflowError):
        return None


def count(settings: Mapping[str, Any], key: str, otherwise: int, most: int = MOST_AGENTS) -> int:
    """Read a number of agents or executors, within what a fleet file may name."""
    read = number(settings.get(key))
    return otherwise if read is None else min(max(read, min(otherwise, 1)), most)
