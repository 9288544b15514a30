"""Canaries of images: one agent tries a new image, again a while after a failed boot; others are launched from the proven one."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from autoscaler.domain.facts.memory import Memory, Trial
from autoscaler.domain.facts.plan import BootFailure
from autoscaler.domain.facts.snapshot import RecordState
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.breakers import FAILED_BOOTS_KEPT
from autoscaler.domain.situation.situation import Look, Situation
from autoscaler.domain.situation.trials import IMAGE_PAUSES, by_pool, failed_once_more, of_image

_MAY_CONNECT = (RecordState.REQUESTED, RecordState.REGISTERED)


def still_tried(memory: Memory, look: Look, proven: Mapping[str, str]) -> dict[str, Trial]:
    """Forget the trials of images that have booted since, and of those that are not wanted any more. If that is not known, they stand."""
    return {
        of_image(pool): canary
        for pool, canary in by_pool(memory, of_image).items()
        if pool in look.fleet.pools and look.current.get(pool, canary.version) == canary.version != proven.get(pool)
    }


def note_failed_canaries(
    known: Mapping[str, Trial], failures: Iterable[BootFailure], to_try: Mapping[str, str], now: float
) -> dict[str, Trial]:
    """Note the boots that failed of what is tried."""
    trials = dict(known)
    for failure in failures:
        if is_of_canary(failure, to_try):
            scope = of_image(failure.pool)
            trials[scope] = _once_more(trials.get(scope), failure.version, failure.why, now, failure.instance_id)
    return trials


def note_refused_canaries(known: Mapping[str, Trial], refused: Iterable[tuple[str, str, str]], now: float) -> dict[str, Trial]:
    """Note the launches of what is tried that EC2 refused: pool, version, and why."""
    trials = dict(known)
    for pool, version, why in refused:
        trials[of_image(pool)] = _once_more(trials.get(of_image(pool)), version, why, now)
    return trials


def is_of_canary(failure: BootFailure, to_try: Mapping[str, str]) -> bool:
    """Tell whether a boot that failed was of what is tried: then it says nothing of what else is launched."""
    return bool(failure.version) and failure.version == to_try.get(failure.pool)


def to_begin(situation: Situation) -> set[str]:
    """Name the pools in which the next agent that is launched is to try a new image."""
    return {pool for pool in situation.to_try if _is_to_begin(situation, pool)}


def _is_to_begin(situation: Situation, pool: str) -> bool:
    """Tell whether no agent tries it now, and the last one that failed is long enough ago."""
    version, canary = situation.to_try[pool], situation.memory.trials.get(of_image(pool))
    if canary is not None and situation.now < canary.until_at:
        return False
    booting = [situation.version_of(agent) for agent in situation.agents if agent.pool.name == pool and _boots(situation, agent)]
    under_way = [*booting, *(intent.version for intent in situation.snapshot.intents if intent.pool == pool and intent.open)]
    # What nobody knows the version of may be it.
    return not {version, ""} & set(under_way)


def _boots(situation: Situation, agent: Agent) -> bool:
    record = agent.record
    is_tried = record.life_id not in situation.memory.connected and record.state in _MAY_CONNECT and not agent.instance_ended
    return is_tried and record.reservation is None  # which is offline for builds from its first minute, and proves nothing


def _once_more(before: Trial | None, version: str, why: str, now: float, instance_id: str = "") -> Trial:
    trial = failed_once_more(before if before and before.version == version else None, IMAGE_PAUSES, why, now)
    return replace(trial, version=version, failed=(*trial.failed, *([instance_id] if instance_id else []))[-FAILED_BOOTS_KEPT:])
