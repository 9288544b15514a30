"""Drafts pools from what was read of a Jenkins: one for each set of labels; a cloud's template tells more than its agents."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from autoscaler.config.price_list import carried_prices
from autoscaler.config.rules import architecture
from autoscaler.config.settings import LABEL, REMOTE_DIRS
from autoscaler_workbench.cli.init_read import Machine, Seen
from autoscaler_workbench.simulate.fleets import guess_machine

_MOST_NAME = 32
_NO_CAP = 2**31 - 1  # how the EC2 plugin spells that there is none
_DEFAULT_CAP = 10
_MOST = 1000  # executors or agents that a pool of a first file has
_ARM = re.compile(r"aarch64|arm", re.IGNORECASE)


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
    remote_dir: str | None = None
    exclusive: bool = True
    usd_per_hour: float | None = None
    about: list[str] = field(default_factory=list)
    todo: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafts:
    """All pools, and what of Jenkins became none."""

    pools: list[Draft]
    left_out: list[str]


def draft_pools(seen: Seen) -> Drafts:
    """Draft the pools; names differ, and each set of labels has one pool."""
    left_out: list[str] = []
    found = [*_of_clouds(seen, left_out), *_of_machines(seen.machines, left_out)]
    by_labels: dict[frozenset[str], Draft] = {}
    for draft in found:
        known = by_labels.setdefault(frozenset(draft.labels), draft)
        if known is not draft:
            known.about += draft.about
            known.max_agents = max(known.max_agents, draft.max_agents)
    pools = list(by_labels.values())
    _name_them(pools)
    served = {label for draft in pools for label in draft.labels}
    left_out += [
        f"label {label}: freestyle jobs ask for it, and no agent has it"
        for label in sorted(seen.asked_for - served - {"built-in", "master"})
    ]
    return Drafts(pools=pools, left_out=left_out)


def _of_machines(machines: Iterable[Machine], left_out: list[str]) -> Iterator[Draft]:
    groups: dict[tuple[str, ...], list[Machine]] = {}
    for machine in machines:
        groups.setdefault(tuple(_usable(machine.labels)), []).append(machine)
    for labels, group in groups.items():
        system = Counter(machine.system for machine in group).most_common(1)[0][0]
        names = ", ".join(sorted(machine.name for machine in group)[:3]) + (", ..." if len(group) > 3 else "")
        if "mac" in system.lower():
            left_out.append(f"agents {names}: {system}; the autoscaler launches Linux and Windows")
            continue
        yield _of_group(labels, group, system, names)


def _of_group(labels: tuple[str, ...], group: list[Machine], system: str, names: str) -> Draft:
    windows = "windows" in (system or " ".join(labels)).lower()
    platform = "windows" if windows else "linux"
    arm = "arm " if _ARM.search(system) else ""
    roots = sorted({machine.remote_dir for machine in group if machine.remote_dir})
    return Draft(
        name="",
        labels=list(labels),
        executors=min(Counter(machine.executors for machine in group).most_common(1)[0][0], _MOST),
        instance_types=guess_machine(f"{arm}{'windows ' if windows else ''}{' '.join(labels)}")["instance_types"],
        max_agents=min(len(group), _MOST),
        platform=platform,
        remote_dir=_other_root(roots[0] if roots else None, platform),
        exclusive=bool(labels),
        about=[f"{len(group)} agents in Jenkins: {names}" if len(group) > 1 else f"1 agent in Jenkins: {names}"],
        todo=dict(_doubts(group, has_labels=bool(labels), system=system)),
    )


def _doubts(group: list[Machine], *, has_labels: bool, system: str) -> Iterator[tuple[str, str]]:
    """Yield the keys of a pool made from agents that a person must check, and why."""
    image = "; arm64: deploy with Arm64Agents=yes, which makes its launch template" if _ARM.search(system) else ""
    yield "instance_types", f"a guess from the labels; Jenkins does not know the machine{image}"
    executors = {machine.executors for machine in group}
    if len(executors) > 1:
        yield "executors", f"agents have from {min(executors)} to {max(executors)}"
    if not system:
        yield "platform", "a guess from the labels; Jenkins did not tell"
    if not has_labels:
        yield "exclusive", "these agents have no label; false lets jobs without a label run on the pool's"


def _of_clouds(seen: Seen, left_out: list[str]) -> Iterator[Draft]:
    for kind, cloud in seen.clouds:
        name = cloud.get("name", kind)
        match kind:
            case "amazonEC2":
                for template in cloud.get("templates") or []:
                    yield from _of_template(str(name), template, left_out)
            case "eC2Fleet":
                yield _of_fleet(str(name), cloud)
            case "eC2FleetLabel":
                left_out.append(f"cloud {name}: an EC2 Fleet label cloud, whose pools stand in the labels of jobs")
            case _:
                left_out.append(f"cloud {name} ({kind}): not of the EC2 or EC2 Fleet plugin")


def _of_template(cloud: str, template: Mapping[str, Any], left_out: list[str]) -> Iterator[Draft]:
    """Draft a pool from a template of the EC2 plugin."""
    system = next(iter(template.get("amiType") or {"unixData": None}))
    title = template.get("description") or template.get("ami") or "a template"
    if system == "macData":
        left_out.append(f"cloud {cloud}, {title}: Mac; the autoscaler launches Linux and Windows")
        return
    platform = "windows" if system.startswith("windows") else "linux"
    executors = _count(template.get("numExecutors"), 1)
    draft = Draft(
        name="",
        labels=_usable(str(template.get("labelString") or "").split()),
        executors=executors,
        instance_types=[],
        max_agents=_count(template.get("instanceCapStr"), _DEFAULT_CAP),
        platform=platform,
        min_agents=_count(template.get("minimumNumberOfInstances"), 0),
        warm_executors=executors * _count(template.get("minimumNumberOfSpareInstances"), 0),
        subnets=[name for name in re.split(r"[\s,;]+", str(template.get("subnetId"))) if name.startswith("subnet-")],
        market=_market_of(template.get("spotConfig")),
        remote_dir=_other_root(template.get("remoteFS"), platform),
        exclusive=template.get("mode") == "EXCLUSIVE",
        about=[f"template of the EC2 plugin, cloud {cloud}: {title}"],
        todo={"launch_template": f"its image is {template.get('ami', 'not known')}; see docs/migrate.md"},
    )
    _set_type(draft, str(template.get("type") or ""))
    if not template.get("instanceCapStr"):
        draft.todo["max_agents"] = "the template has no cap"
    yield draft


def _market_of(spot: Mapping[str, Any] | None) -> str:
    if not spot:
        return "on-demand"
    return "spot-then-on-demand" if spot.get("fallbackToOndemand") else "spot"


def _of_fleet(cloud: str, settings: Mapping[str, Any]) -> Draft:
    """Draft a pool from a cloud of the EC2 Fleet plugin, whose machines stand in AWS."""
    labels = _usable(str(settings.get("labelString") or "").split())
    guess, executors = guess_machine(" ".join(labels)), _count(settings.get("numExecutors"), 1)
    draft = Draft(
        name="",
        labels=labels,
        executors=executors,
        instance_types=guess["instance_types"],
        max_agents=_count(settings.get("maxSize"), _DEFAULT_CAP),
        platform=guess["platform"],
        min_agents=_count(settings.get("minSize"), 0),
        warm_executors=executors * _count(settings.get("minSpareSize"), 0),
        remote_dir=_other_root(settings.get("fsRoot"), guess["platform"]),
        exclusive=bool(settings.get("restrictUsage", False)),
        about=[f"cloud {cloud} of the EC2 Fleet plugin: {settings.get('fleet', 'its fleet')} in {settings.get('region', 'its region')}"],
        todo={"instance_types": "a guess from the labels; those of the fleet or Auto Scaling group stand in AWS"},
    )
    if settings.get("executorScaler") not in (None, "noScaler"):
        draft.todo["executors"] = "the cloud scales executors by the machine's size; a pool has one number for all its types"
    return draft


def _set_type(draft: Draft, told: str) -> None:
    """Set the instance type; older versions of the plugin spell c5.18xlarge as C518xlarge."""
    known = {re.sub(r"[^a-z0-9]", "", kind): kind for kind in carried_prices()}
    kind = told if re.fullmatch(r"[a-z0-9-]+\.[a-z0-9-]+", told) else known.get(re.sub(r"[^a-z0-9]", "", told.lower()))
    if kind is None:
        draft.instance_types = guess_machine(f"{draft.platform} {' '.join(draft.labels)}")["instance_types"]
        draft.todo["instance_types"] = f"a guess from the labels; the template says {told or 'nothing'}"
        return
    draft.instance_types = [kind]
    if not carried_prices().get(kind, {}).get(draft.platform):
        draft.usd_per_hour = 1.0
        draft.todo["usd_per_hour"] = f"no {draft.platform} price is carried for {kind}"
    if architecture(kind) == "arm64":
        draft.todo["instance_types"] = "arm64: deploy with Arm64Agents=yes, which makes its launch template"


def _usable(labels: Iterable[str]) -> list[str]:
    """Keep labels that a fleet file may have; those in quotation marks it may not."""
    return [label for label in labels if re.fullmatch(LABEL, label) and label.isprintable() and len(label) <= 200]


def _other_root(told: Any, platform: str) -> str | None:
    return str(told) if told and str(told) != REMOTE_DIRS[platform] and str(told).isprintable() else None  # type: ignore[index]


def _count(told: Any, otherwise: int) -> int:
    """Read a number, which the plugins export as text at times."""
    try:
        return min(max(int(told), min(otherwise, 1)), _MOST) if int(told) < _NO_CAP else otherwise
    except (TypeError, ValueError):
        return otherwise


def _name_them(pools: list[Draft]) -> None:
    taken: set[str] = set()
    for draft in pools:
        stem = re.sub(r"[^a-z0-9-]+", "-", "-".join(draft.labels).lower()).strip("-")[:_MOST_NAME].strip("-") or "agents"
        draft.name = next(name for name in (stem, *(f"{stem}-{n}" for n in range(2, len(pools) + 2))) if name not in taken)
        draft.min_agents = min(draft.min_agents, draft.max_agents)
        draft.warm_executors = min(draft.warm_executors, draft.max_agents * draft.executors)
        draft.labels = list(dict.fromkeys(draft.labels)) or [draft.name]
        taken.add(draft.name)
