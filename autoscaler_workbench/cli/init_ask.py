"""Asks a person for what a first fleet file needs; an answer that cannot be is asked for again, with the rule."""

import re
from collections.abc import Callable
from typing import TypeVar

import typer

from autoscaler.config import url_problem
from autoscaler.config.findings import PATTERNS
from autoscaler.config.load import architecture
from autoscaler.config.prices import carried_prices
from autoscaler.config.problems import meant
from autoscaler.config.settings import FLEET, LABEL
from autoscaler_workbench.cli.init_pool import Draft
from autoscaler_workbench.cli.init_text import FirstFile
from autoscaler_workbench.simulate.fleets import says_windows

T = TypeVar("T")
_ABOUT = "Written by `autoscaler init --interview`. All keys: docs/fleet-file.md"
_TYPES = {"linux": "m7i.xlarge m6i.xlarge", "windows": "m6i.xlarge m5.xlarge"}


def interview(fleet: str | None) -> FirstFile:
    """Ask; every question has a default that is valid."""
    name = _asked("Name of the fleet (lower-case letters, digits, hyphens)", fleet or "my-ci", _fleet)
    url = _asked("Address of Jenkins, as agents reach it", "https://jenkins.example.org/", _url)
    secret = _asked("Name of its secret in Secrets Manager", "jenkins/main", _text)
    pools = [_pool([])]
    while typer.confirm("Another kind of agent?", default=False, err=True):
        pools.append(_pool([draft.name for draft in pools]))
    worth = _asked("What is an hour of a job's waiting worth to you, in dollars?", "20", _dollars)
    month = _asked("What may all agents cost a month at most, in dollars?", "500", _dollars)
    return FirstFile(fleet=name, url=url, secret=secret, pools=pools, head=[_ABOUT], wait_usd_per_hour=worth, month=max(month, 1.0))


def _pool(taken: list[str]) -> Draft:
    labels = _asked("Labels of the agents, separated by blanks", "linux" if not taken else f"linux-{len(taken) + 1}", _labels)
    platform = _asked("Operating system: linux or windows", "windows" if says_windows(" ".join(labels)) else "linux", _platform)
    kinds = _asked("Instance types in order of preference, separated by blanks", _TYPES[platform], lambda text: _kinds(text, platform))
    executors = _asked("Builds that one agent runs at a time", "2", _whole)
    most = _asked("Agents at most", "3", _whole)
    stem = re.sub(r"[^a-z0-9-]+", "-", "-".join(labels).lower()).strip("-")[:32].strip("-") or "agents"
    name = next(name for name in (stem, *(f"{stem}-{n}" for n in range(2, len(taken) + 3))) if name not in taken)
    return Draft(name=name, labels=labels, executors=executors, instance_types=kinds, max_agents=most, platform=platform)


def _asked(question: str, default: str, read: Callable[[str], T]) -> T:
    return typer.prompt(question, default=default, value_proc=read, err=True)  # type: ignore[no-any-return]


def _fleet(text: str) -> str:
    if not re.fullmatch(FLEET, text):
        raise typer.BadParameter(PATTERNS[FLEET])
    return text


def _url(text: str) -> str:
    if problem := url_problem(text):
        raise typer.BadParameter(f"the address {problem}")
    return text


def _text(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise typer.BadParameter("must not be empty")
    return text.strip()


def _labels(text: str) -> list[str]:
    labels = list(dict.fromkeys(text.split()))
    if not labels or not all(re.fullmatch(LABEL, label) and label.isprintable() for label in labels):
        raise typer.BadParameter(PATTERNS[LABEL].replace("one label", "labels"))
    return labels


def _platform(text: str) -> str:
    if text.lower() not in _TYPES:
        raise typer.BadParameter("must be linux or windows")
    return text.lower()


def _kinds(text: str, platform: str) -> list[str]:
    kinds = list(dict.fromkeys(text.split()))
    priced = [kind for kind, prices in carried_prices().items() if prices.get(platform)]
    for kind in kinds:
        if kind not in priced:
            raise typer.BadParameter(f"no {platform} price is carried for {kind}{meant(kind, priced)}")
    if len({architecture(kind) for kind in kinds}) != 1:
        raise typer.BadParameter("all must have one processor architecture: x86 or arm64")
    return kinds


def _whole(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise typer.BadParameter("must be a whole number from 1 to 1,000")
    return int(text)


def _dollars(text: str) -> float:
    amount = text.strip().lstrip("$").replace(",", "")
    if not re.fullmatch(r"\d{1,7}(\.\d+)?", amount):
        raise typer.BadParameter("must be an amount, such as 500")
    return float(amount)
