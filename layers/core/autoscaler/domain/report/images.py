"""Images for people and metrics: which runs where, which is launched, which is tried, and how long each takes to boot.

Only of pools whose image a parameter names; what launch templates name is theirs to tell.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from math import inf

from autoscaler.domain.facts.memory import Trial
from autoscaler.domain.facts.snapshot import parts_of, told_follows
from autoscaler.domain.report.datum import SECONDS, Datum
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.breakers import of_image, told_last
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import counted, duration

_BOOTING = (Phase.REQUESTED, Phase.CONNECTING)


def image_of(situation: Situation, agent: Agent) -> str:
    """The image that an agent runs; "" where nobody knows, or no parameter names it."""
    return parts_of(situation.version_of(agent))[1] if agent.pool.image_parameter else ""


def told_images(situation: Situation, pool: PoolView) -> Iterator[str]:
    """Say which images its agents run, which one is launched, and what becomes of a new one."""
    if not pool.spec.image_parameter:
        return
    there = Counter(image_of(situation, agent) or "an unknown image" for agent in pool.agents if not agent.instance_ended)
    run = ", ".join(f"{counted(count, 'agent')} of {image}" for image, count in sorted(there.items()))
    yield f"launched from {_launched(situation, pool)}" + (f"; {run}" if run else "")
    if pool.to_try:
        yield f"{told_follows(pool.to_try, pool.version)}: {_next(situation, pool)}"


def told_failed(canary: Trial) -> str:
    """Say how often a new image did not boot, and why the last time, as far as that is known."""
    why = told_last(canary)
    return f"{counted(canary.failures, 'try', 'tries')} of it failed" + (f" ({why})" if why else "")


def boots_of_images(situation: Situation, since: Mapping[str, float]) -> Iterator[Datum]:
    """Tell how long agents took to boot, by pool and image. ``since``: by controller, when it was last looked at; others tell nothing."""
    boots: dict[tuple[str, str], tuple[float, ...]] = {}
    for agent in situation.agents:
        record, image = agent.record, image_of(situation, agent)
        if image and not record.life and record.registered_at and record.registered_at > since.get(record.controller, inf):
            key = record.pool, image
            boots[key] = (*boots.get(key, ()), record.registered_at - record.launched_at)
    for (name, image), values in boots.items():
        dimensions = (("Fleet", situation.fleet.name), ("Pool", name), ("Image", image))
        yield Datum(name="ImageBootSeconds", values=values, unit=SECONDS, dimensions=dimensions)


def _launched(situation: Situation, pool: PoolView) -> str:
    image = parts_of(pool.version)[1] or "the launch template's image"
    if situation.current.get(pool.name):
        return image
    proven = ", which booted last" if pool.version else ""
    return f"{image}{proven}: what {pool.spec.image_parameter} names is not known"


def _next(situation: Situation, pool: PoolView) -> str:
    """Say who tries a new image, or when one does."""
    canary, now = situation.memory.trials.get(of_image(pool.name)), situation.now
    trying = [agent for agent in situation.agents if agent.pool.name == pool.name and agent.phase in _BOOTING]
    ids = [agent.record for agent in trying if situation.version_of(agent) == pool.to_try and not agent.instance_ended]
    failed = f"{told_failed(canary)}; " if canary and canary.failures else ""
    if ids:
        return f"{failed}{ids[0].instance_id} tries it, launched {duration(now - ids[0].launched_at)} ago"
    if canary and now < canary.until_at:
        return f"{failed}it is tried again in {duration(canary.until_at - now)}, with the first agent that is launched then"
    return f"{failed}the next agent that is launched tries it"
