"""Drafts pools from what was read of a Jenkins: one for each template of a cloud, and one for each set of labels of other agents."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from autoscaler_workbench.cli.init_clouds import of_clouds
from autoscaler_workbench.cli.init_pool import MOST_EXECUTORS, Cap, Draft, guess_platform, other_root, usable
from autoscaler_workbench.cli.init_read import Machine, Seen
from autoscaler_workbench.simulate.fleets import guess_machine

_MOST_NAME = 32
_ARM = re.compile(r"aarch64|arm", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafts:
    """All pools, and what of Jenkins became none. ``caps``: of clouds whose pools together would be more than the cloud may have."""

    pools: list[Draft]
    left_out: list[str]
    caps: list[Cap]


def draft_pools(seen: Seen) -> Drafts:
    """Draft the pools; names differ. Agents become a pool of their own unless a cloud has their labels."""
    left_out: list[str] = []
    caps = of_clouds(seen.clouds, left_out)
    pools = [draft for cap in caps for draft in cap.pools]
    for draft in _of_machines(seen.machines, left_out):
        of_cloud = next((pool for pool in pools if set(pool.labels) == set(draft.labels)), None)
        if of_cloud is None:
            pools.append(draft)
        else:
            _take_over(of_cloud, draft)
    _name_them(pools)
    for cap in caps:
        _keep_minima_below(cap)
    left_out += _unserved(seen, pools)
    tight = [cap for cap in caps if sum(draft.max_agents for draft in cap.pools) > cap.max_agents]
    _name_caps(tight)
    return Drafts(pools=pools, left_out=left_out, caps=tight)


def _unserved(seen: Seen, pools: list[Draft]) -> list[str]:
    served = {label for draft in pools for label in draft.labels}
    missing = sorted(seen.asked_for - served - {"built-in", "master"})
    return [f"label {label}: freestyle jobs ask for it, and no agent has it" for label in missing]


def _take_over(pool: Draft, agents: Draft) -> None:
    """Let a cloud's pool know what agents with the same labels show; the cloud's cap stays."""
    pool.about += agents.about
    if agents.max_agents > pool.max_agents:
        pool.todo.setdefault("max_agents", f"Jenkins has {agents.max_agents} agents with these labels")
    if "platform" not in pool.todo or "platform" in agents.todo:
        return
    if pool.platform == agents.platform:
        del pool.todo["platform"]
    elif "instance_types" in pool.todo:
        pool.platform, pool.instance_types, pool.usd_per_hour = agents.platform, agents.instance_types, None
        pool.todo["platform"] = f"the agents say {agents.platform}"
    else:
        pool.todo["platform"] += f"; the agents say {agents.platform}"


def _keep_minima_below(cap: Cap) -> None:
    left = cap.max_agents
    for draft in cap.pools:
        draft.min_agents = min(draft.min_agents, left)
        left -= draft.min_agents


def _of_machines(machines: Iterable[Machine], left_out: list[str]) -> Iterator[Draft]:
    groups: dict[tuple[str, ...], list[Machine]] = {}
    for machine in machines:
        groups.setdefault(tuple(usable(machine.labels)), []).append(machine)
    for labels, group in groups.items():
        system = Counter(machine.system for machine in group).most_common(1)[0][0]
        names = ", ".join(sorted(machine.name for machine in group)[:3]) + (", ..." if len(group) > 3 else "")
        if "mac" in system.lower():
            left_out.append(f"agents {names}: {system}; the autoscaler launches Linux and Windows")
            continue
        yield _of_group(labels, group, system, names)


def _of_group(labels: tuple[str, ...], group: list[Machine], system: str, names: str) -> Draft:
    roots = sorted({machine.remote_dir for machine in group if machine.remote_dir})
    platform, doubt = _platform_of(labels, group, system, roots)
    arm = "arm " if _ARM.search(system) else ""
    return Draft(
        name="",
        labels=list(labels),
        executors=min(Counter(machine.executors for machine in group).most_common(1)[0][0], MOST_EXECUTORS),
        instance_types=guess_machine(f"{arm}{platform} {' '.join(labels)}")["instance_types"],
        max_agents=len(group),
        platform=platform,
        remote_dir=other_root(roots[0] if roots else None, platform),
        exclusive=bool(labels),
        about=[f"{len(group)} agents in Jenkins: {names}" if len(group) > 1 else f"1 agent in Jenkins: {names}"],
        todo=dict(_doubts(group, labels, system, doubt)),
    )


def _platform_of(labels: tuple[str, ...], group: list[Machine], system: str, roots: list[str]) -> tuple[str, str]:
    """Return the operating system of agents, and why it is a guess; "" if the monitor of the agents says it."""
    if "windows" in system.lower():
        return "windows", ""
    if "linux" in system.lower():
        return "linux", ""
    if system:
        return "linux", f"Jenkins says {system}; the autoscaler launches Linux and Windows"
    guess, doubt = guess_platform((*labels, *(machine.name for machine in group)), roots[0] if roots else None)
    return guess, doubt or "a guess from the labels and names; Jenkins did not tell"


def _doubts(group: list[Machine], labels: tuple[str, ...], system: str, platform: str) -> Iterator[tuple[str, str]]:
    """Yield the keys of a pool made from agents that a person must check, and why."""
    image = "; arm64: deploy with Arm64Agents=yes, which makes its launch template" if _ARM.search(system) else ""
    yield "instance_types", f"a guess from the labels; Jenkins does not know the machine{image}"
    executors = {machine.executors for machine in group}
    if len(executors) > 1:
        yield "executors", f"agents have from {min(executors)} to {max(executors)}"
    if platform:
        yield "platform", platform
    if not labels:
        yield "labels", "these agents have no label; name the labels that jobs ask for"
        yield "exclusive", "these agents have no label; false lets jobs without a label run on the pool's"


def _name_them(pools: list[Draft]) -> None:
    taken: set[str] = set()
    for draft in pools:
        draft.name = _name(_stem("-".join(draft.labels)) or _stem(draft.name) or "agents", taken)
        draft.min_agents = min(draft.min_agents, draft.max_agents)
        draft.warm_executors = min(draft.warm_executors, draft.max_agents * draft.executors)
        draft.labels = list(dict.fromkeys(draft.labels)) or [draft.name]


def _name_caps(caps: list[Cap]) -> None:
    taken: set[str] = set()
    for cap in caps:
        cap.name = _name(_stem(cap.name) or "cloud", taken)


def _stem(text: str) -> str:
    return re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")[:_MOST_NAME].strip("-")


def _name(stem: str, taken: set[str]) -> str:
    """Return a name that is not taken, and take it."""
    name = next(name for name in (stem, *(f"{stem}-{n}" for n in range(2, len(taken) + 3))) if name not in taken)
    taken.add(name)
    return name
