"""Canaries of images: one agent tries a new image, again a while after a failed boot; others are launched from the proven one."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from autoscaler.domain.facts.memory import Breaker
from autoscaler.domain.facts.plan import BootFailure
from autoscaler.domain.facts.snapshot import RecordState
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.breakers import BREAKER_AT_MOST_SECONDS, BREAKER_SECONDS, FAILED_BOOTS_KEPT
from autoscaler.domain.situation.situation import Look, Situation

_MAY_CONNECT = (RecordState.REQUESTED, RecordState.REGISTERED)


def still_tried(known: Mapping[str, Breaker], look: Look, proven: Mapping[str, str]) -> dict[str, Breaker]:
    """Forget the canaries of what has booted since, and of what is not wanted any more. Where nobody knows what is, they stand."""
    return {
        pool: canary
        for pool, canary in known.items()
        if pool in look.fleet.pools and look.current.get(pool, canary.version) == canary.version != proven.get(pool)
    }


def note_failed_canaries(
    known: Mapping[str, Breaker], failures: Iterable[BootFailure], to_try: Mapping[str, str], now: float
) -> dict[str, Breaker]:
    """Note the boots that failed of what is tried."""
    canaries = dict(known)
    for failure in failures:
        if is_of_canary(failure, to_try):
            canaries[failure.pool] = _once_more(canaries.get(failure.pool), failure.version, failure.why, now, failure.instance_id)
    return canaries


def note_refused_canaries(known: Mapping[str, Breaker], refused: Iterable[tuple[str, str, str]], now: float) -> dict[str, Breaker]:
    """Note the launches of what is tried that EC2 refused: pool, version, and why."""
    canaries = dict(known)
    for pool, version, why in refused:
        canaries[pool] = _once_more(canaries.get(pool), version, why, now)
    return canaries


def is_of_canary(failure: BootFailure, to_try: Mapping[str, str]) -> bool:
    """Tell whether a boot that failed was of what is tried: then it says nothing of what else is launched."""
    return bool(failure.version) and failure.version == to_try.get(failure.pool)


def retried(canary: Breaker) -> Breaker:
    """Let a canary begin anew at once. Its failed boots stay named, so that none of them counts once more."""
    return replace(canary, failures=0, until_at=0.0)


def to_begin(situation: Situation) -> set[str]:
    """Name the pools in which the next agent that is launched is to try a new image."""
    return {pool for pool in situation.to_try if _is_to_begin(situation, pool)}


def _is_to_begin(situation: Situation, pool: str) -> bool:
    """Tell whether no agent tries it now, and the last one that failed is long enough ago."""
    version, canary = situation.to_try[pool], situation.memory.canaries.get(pool)
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


def _once_more(before: Breaker | None, version: str, why: str, now: float, instance_id: str = "") -> Breaker:
    before = before if before and before.version == version else Breaker(failures=0, version=version)
    pause = min(BREAKER_SECONDS * 2.0**before.failures, BREAKER_AT_MOST_SECONDS)
    return Breaker(
        failures=before.failures + 1,
        until_at=now + pause,
        failed=(*before.failed, *([instance_id] if instance_id else []))[-FAILED_BOOTS_KEPT:],
        why=why,
        version=version,
        opened_at=before.opened_at or now,
    )
