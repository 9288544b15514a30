"""Writes drafts down as a fleet file with comments; what a person must check carries TODO."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from textwrap import wrap
from typing import Any

import yaml

from autoscaler.config import check
from autoscaler.config.load import architecture
from autoscaler.config.prices import cheapest
from autoscaler.config.settings import POINTER
from autoscaler.config.yaml_file import parse
from autoscaler.domain.facts.fleet import Fleet, has_instance_store
from autoscaler.domain.facts.pools import HOURS_A_MONTH
from autoscaler_workbench.advice import always_there
from autoscaler_workbench.cli.init_pool import Cap, Draft
from autoscaler_workbench.cli.terminal import plain
from autoscaler_workbench.simulate.new_fleet import LOOK_EVERY_SECONDS, why_not_stopped

_WIDTH = 118
_PLAIN = re.compile(r"^[A-Za-z][A-Za-z0-9_./$-]*$")
_SHARE_OF_MONTH = 0.25
_WAIT_USD = 20.0
_TOGETHER = "all pools together"
_UNLIMITED = {"max_agents": 100_000, "max_launches_per_hour": 100_000, "max_usd_per_hour": 10_000_000, "max_usd_per_month": 10_000_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstFile:
    """All that a first fleet file says. ``month``: the most dollars a month, or None: a share of all agents at all hours."""

    fleet: str
    url: str
    secret: str
    pools: Sequence[Draft]
    head: Sequence[str]
    unknown: Sequence[str] = ()
    caps: Sequence[Cap] = ()
    month: float | None = None
    wait_usd_per_hour: float | None = None


def text_of(first: FirstFile) -> str:
    """Write the file; `FleetFileError` where what was asked for cannot be."""
    raw: dict[str, Any] = {"fleet": first.fleet, "controllers": {"main": {"url": first.url, "secret": first.secret}}}
    raw |= {"limits": _UNLIMITED, "pools": {draft.name: _keys(first.fleet, draft) for draft in first.pools}}
    raw["teams"] = {cap.name: {"pools": [draft.name for draft in cap.pools], "max_agents": cap.max_agents} for cap in first.caps}
    limits = _limits(check(raw, "the first fleet file").domain(), first)
    check(raw | {"limits": {key: number for key, (number, _) in limits.items()}}, "the first fleet file").domain()
    return "\n".join(_lines(first, limits)) + "\n"


def decisions(pools: Sequence[Draft]) -> Iterator[str]:
    """Say what a new file decides for its owner, and why."""
    stopped = [draft.name for draft in pools if not why_not_stopped(draft)]
    if stopped:
        yield f"idle agents of {', '.join(stopped)} are stopped where that is cheaper than to end them (warm_pool): docs/warm-pool.md"
    if len(stopped) < len(pools):
        yield f"idle agents of {', '.join(draft.name for draft in pools if draft.name not in stopped)} are ended; the file says why"
    yield "a job counts as demand as soon as it waits (queue_maturity_seconds is 0 unless a pool says otherwise)"
    yield f"scale_up looks every {LOOK_EVERY_SECONDS:g} s (the stack's LookEverySeconds); a webhook is cheaper and faster: docs/network.md"


def _lines(first: FirstFile, limits: dict[str, tuple[float, str]]) -> Iterator[str]:
    yield POINTER
    for text in first.head:
        yield from _comment(text)
    yield from _list("It decided:", decisions(first.pools))
    yield from _list("It could not know:", first.unknown)
    yield from ("", f"fleet: {_scalar(first.fleet)} # samconfig.toml names it, too: FleetName={first.fleet}", "")
    yield from ("# Hard ceilings: nothing is launched beyond them. Small ones are a good beginning.", "limits:")
    yield from (
        f"  {key}: {number:g} # {why}" if number < 1e6 else f"  {key}: {number:.0f} # {why}" for key, (number, why) in limits.items()
    )
    yield from ("", "controllers:", "  main:", f"    url: {_scalar(first.url)}")
    yield f'    secret: {_scalar(first.secret)} # in Secrets Manager: {{"username": "...", "token": "..."}}'
    todo, worth = ("TODO: ", _WAIT_USD) if first.wait_usd_per_hour is None else ("", first.wait_usd_per_hour)
    yield from ("", "defaults:", f"  wait_usd_per_hour: {worth:g} # {todo}what an hour of a job's waiting is worth to you")
    yield from ("", "pools:")
    for draft in first.pools:
        yield from _pool(first.fleet, draft)
    yield from _teams([cap for cap in first.caps if not _is_whole_fleet(cap, first)])


def _list(title: str, texts: Iterable[str]) -> Iterator[str]:
    lines = [line for text in texts for line in _comment(f"- {text}", "  ")]
    yield from ("#", f"# {title}", *lines) if lines else ()


def _is_whole_fleet(cap: Cap, first: FirstFile) -> bool:
    """Whether the limit of the fleet says the same as a team would."""
    return len(cap.pools) == len(first.pools)


def _teams(caps: Sequence[Cap]) -> Iterator[str]:
    if caps:
        yield from ("# Caps of whole clouds. Pools of a team share its limit.", "teams:")
    for cap in caps:
        names = ", ".join(_scalar(draft.name) for draft in cap.pools)
        yield f"  {_scalar(cap.name)}: {{max_agents: {cap.max_agents}, pools: [{names}]}}"


def _pool(fleet: str, draft: Draft) -> Iterator[str]:
    for text in draft.about:
        yield from ("  " + line for line in _comment(text))
    yield f"  {_scalar(draft.name)}:"
    for key, value in _keys(fleet, draft).items():
        if key in draft.todo:
            yield from ("    " + line for line in _comment(f"TODO: {draft.todo[key]}"))
        yield f"    {key}: {_value(value)}"
    yield from _warm_pool(draft)
    yield ""


def _warm_pool(draft: Draft) -> Iterator[str]:
    if reason := why_not_stopped(draft):
        yield from ("    " + line for line in _comment(f"Off: {reason}."))
        yield f"    # warm_pool: {'{instance_stores: true}' if any(map(has_instance_store, draft.instance_types)) else '{}'}"
    else:
        yield "    warm_pool: {} # simulate and tune assume the size of volumes (volume_gib); the functions read the launch template"


def _kind(draft: Draft) -> str:
    """Return which of the stack's launch templates the pool takes."""
    return "arm64" if architecture(draft.instance_types[0]) == "arm64" else draft.platform


def _keys(fleet: str, draft: Draft) -> dict[str, Any]:
    """Return the keys to write: those that must be, and those that differ from their defaults."""
    keys = {
        "labels": draft.labels,
        "executors": draft.executors,
        "launch_template": f"autoscaler-{_kind(draft)}-{fleet}",
        "instance_types": draft.instance_types,
        "usd_per_hour": draft.usd_per_hour,
        "subnets": draft.subnets or None,
        "platform": draft.platform,
        "market": draft.market if draft.market != "on-demand" else None,
        "spot_max_usd_per_hour": draft.spot_max_usd_per_hour,
        "max_agents": draft.max_agents,
        "min_agents": draft.min_agents or None,
        "warm_executors": draft.warm_executors or None,
        "remote_dir": draft.remote_dir,
        "exclusive": None if draft.exclusive else False,
        "reuse": draft.reuse,
        "max_builds": draft.max_builds if draft.max_builds != 1 else None,
        "rerun": {} if draft.runs_again else None,
    }
    if draft.platform == "windows":
        keys |= {"boot_seconds": 480}
    return {key: value for key, value in keys.items() if value is not None}


def _limits(fleet: Fleet, first: FirstFile) -> dict[str, tuple[float, str]]:
    """Return limits that the pools just fit into, each with its reason."""
    agents, most = _all_at_once(fleet)
    usd = min(_rounded_up(most), 10_000_000)
    always = sum(always_there(pool) * cheapest(pool.offerings) for pool in fleet.pools.values())
    month = first.month or min(_rounded_up(max(usd * _SHARE_OF_MONTH, always) * HOURS_A_MONTH), 10_000_000)
    share = f"TODO: {month / (usd * HOURS_A_MONTH):.0%} of all agents at all hours; what may it cost?"
    return {
        "max_agents": (agents, next((f"the cap of cloud {cap.name}" for cap in first.caps if _is_whole_fleet(cap, first)), _TOGETHER)),
        "max_launches_per_hour": (min(max(agents, 10), 100_000), "stops what launches and dies again and again"),
        "max_usd_per_hour": (usd, "all agents at once, at their highest price"),
        "max_usd_per_month": (month, "as you said" if first.month else share),
    }


def _all_at_once(fleet: Fleet) -> tuple[int, float]:
    """Return how many agents there may be, and what they cost an hour at their highest price."""
    most_of = {name: (pool.max_agents, max(o.reserved_usd_per_hour for o in pool.offerings)) for name, pool in fleet.pools.items()}
    groups = [(team.ceilings.max_agents, [most_of.pop(name) for name in team.pools]) for team in fleet.teams.values()]
    groups += [(agents, [(agents, usd)]) for agents, usd in most_of.values()]
    return min(int(sum(cap for cap, _ in groups)), 100_000), sum(_dearest(cap, pools) for cap, pools in groups)


def _dearest(cap: float, pools: list[tuple[int, float]]) -> float:
    """Return what the dearest agents of some pools cost an hour, as many as their cap allows. ``pools``: agents, and dollars for each."""
    usd = 0.0
    for agents, each in sorted(pools, key=lambda pool: -pool[1]):
        usd += min(agents, cap) * each
        cap -= min(agents, cap)
    return usd


def _rounded_up(usd: float) -> float:
    """Round up to two figures."""
    unit = 10.0 ** (floor(log10(usd)) - 1)
    return round(ceil(usd / unit - 1e-9) * unit, 4)


def _comment(text: str, hang: str = "") -> Iterator[str]:
    yield from wrap(plain(text), _WIDTH, initial_indent="# ", subsequent_indent=f"# {hang}", break_on_hyphens=False)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_scalar(one) for one in value)}]"
    return _scalar(value) if isinstance(value, str) else json.dumps(value)


def _scalar(text: str) -> str:
    """Write a text so that YAML reads it as that text, YAML 1.1 (which takes yes for true), too."""
    return text if _PLAIN.match(text) and parse(text) == yaml.safe_load(text) == text else json.dumps(text, ensure_ascii=False)
