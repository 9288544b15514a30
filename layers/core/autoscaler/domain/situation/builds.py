"""Compare the builds and queue items of this look with those of the last one: what began, what came, how long it waited."""

from collections.abc import Iterable, Mapping

from autoscaler.domain.facts.memory import Learned, Sighting
from autoscaler.domain.facts.snapshot import MINUTE_SECONDS
from autoscaler.domain.forecast.job_patterns import Arrival, Present, presents
from autoscaler.domain.situation.disks import nodes_counted
from autoscaler.domain.situation.situation import Situation

Begun = list[tuple[Sighting, float | None]]  # builds that began, and how long each had waited; None: it was never seen waiting


def last_look_at(situation: Situation, controller: str) -> float | None:
    """Return when the look before this one was; None: nobody has looked before, and what is there may be of any age.

    A look that sees no build and no waiting item is not saved, except the first one: it notes the controller's session.
    """
    before = situation.snapshot.learned[controller]
    if before.running or before.waiting or before.runs:
        return before.seen_at
    return situation.now - situation.snapshot.look_every_seconds if before.seen_at else None


def builds_had(situation: Situation, controller: str, nodes: Iterable[str]) -> dict[str, int]:
    """Count the builds that began on nodes of pools that allow only so many, for as long as their agents are there, in all their lives."""
    known = situation.snapshot.learned[controller].builds
    had = {node: known.get(node, 0) for node in nodes_counted(situation, controller)}
    for node in nodes:
        if node in had:
            had[node] += 1
    return {node: count for node, count in had.items() if count}


def running_builds(situation: Situation, controller: str, before: Learned) -> tuple[dict[str, Sighting], dict[str, Sighting]]:
    """Find the builds on our executors: those that the last look did not see, and all."""
    fresh: dict[str, Sighting] = {}
    running: dict[str, Sighting] = {}
    agents = (agent for pool in situation.pools_of(controller).values() for agent in pool.agents)
    for node, pool in ((agent.node, agent.pool.name) for agent in agents if agent.node):
        for build in node.builds:
            since_at = situation.now - (build.elapsed_seconds or 0.0)
            known = before.running.get(build.key)
            running[build.key] = known or Sighting(job=build.job, pool=pool, since_at=since_at, node=node.name, run=build.run)
            if known is None:
                fresh[build.key] = running[build.key]
    return fresh, running


def runs_present(situation: Situation, controller: str) -> dict[str, Present]:
    """Find what every run has in the queue and on our executors."""
    wants = situation.demands[controller].wants
    items = [(want.item.run, want.item.job, want.item.id, want.pools[0].name) for want in wants if want.item.run]
    agents = [agent for pool in situation.pools_of(controller).values() for agent in pool.agents if agent.node]
    builds = [(b.run, b.job, b.key, agent.pool.name) for agent in agents if agent.node for b in agent.node.builds if b.run]
    return presents(items, builds)


def begun_builds(fresh: Iterable[Sighting], before: Learned, waiting: Mapping[str, float]) -> Begun:
    """Match each build that began to an item of its job that left the queue: how long that had waited; None: it was never seen waiting."""
    left: dict[str, list[float]] = {}
    for item, waited in before.waiting.items():
        if item not in waiting:
            left.setdefault(item.split("\n", 1)[1], []).append(waited)
    for waits in left.values():
        waits.sort()
    return [(sighting, left[sighting.job].pop() if left.get(sighting.job) else None) for sighting in fresh]


def arrivals_of(situation: Situation, controller: str, begun: Begun) -> list[Arrival]:
    """Find what was asked for since the last look: new items, builds never seen waiting, and of a pipeline its beginning."""
    before, now = situation.snapshot.learned[controller], situation.now
    if last_look_at(situation, controller) is None:
        return []
    arrived = {
        sighting.run: Arrival(job=sighting.job, pool=sighting.pool, at=sighting.since_at)
        for sighting, waited in begun
        if waited is None and sighting.run not in before.runs
    }
    for want in situation.demands[controller].wants:
        item = want.item
        if f"{item.id}\n{item.job}" not in before.waiting and item.run not in before.runs:
            arrived[item.run or str(item.id)] = Arrival(job=item.job, pool=want.pools[0].name, at=now - item.waiting_seconds)
    return sorted(arrived.values(), key=lambda arrival: arrival.at)


def job_waits(situation: Situation, controller: str, begun: Begun) -> dict[str, tuple[float, ...]]:
    """Tell how long the builds that began had waited, by pool; one never seen waiting came and went between two looks."""
    last_at = last_look_at(situation, controller)
    if last_at is None:
        return {}
    half_gap = min(situation.now - last_at, MINUTE_SECONDS) / 2
    found: dict[str, list[float]] = {}
    for sighting, waited in begun:
        found.setdefault(sighting.pool, []).append(half_gap + (waited or 0.0))
    return {pool: tuple(waits) for pool, waits in found.items()}
