"""Breakers: a pool whose agents do not boot is paused, longer each time, then tried with one agent until one connects."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from autoscaler.domain.agents import Agent, Phase
from autoscaler.domain.memory import Breaker, Memory
from autoscaler.domain.numbers import BREAKER_AT_MOST_SECONDS, BREAKER_FAILURES, BREAKER_SECONDS, FAILED_BOOTS_KEPT
from autoscaler.domain.plan import BootFailure, Cordon, DeleteNode, Forget, Held, Step, Terminate
from autoscaler.domain.reasons import Reason
from autoscaler.domain.snapshot import Record, RecordState


def note_connected(memory: Memory, agents: Iterable[Agent]) -> Memory:
    """Close the breaker of each pool of which an agent connected for the first time."""
    agents = list(agents)
    ready = {agent.record.instance_id: agent.pool.name for agent in agents if agent.phase is Phase.READY}
    healed = {pool for instance_id, pool in ready.items() if instance_id not in memory.connected}
    known = {agent.record.instance_id for agent in agents}
    return replace(
        memory,
        connected=frozenset((memory.connected | ready.keys()) & known),
        breakers={pool: breaker for pool, breaker in memory.breakers.items() if pool not in healed},
    )


def forget_other_versions(memory: Memory, current: Mapping[str, str]) -> Memory:
    """Close the breakers of pools that launch another template version now: boots of the old one say nothing of it."""
    breakers = {
        pool: replace(breaker, failures=0, until_at=0.0, version=current[pool])
        if _is_of_another(breaker, current.get(pool, ""))
        else breaker
        for pool, breaker in memory.breakers.items()
    }
    return replace(memory, breakers=breakers)


def failed_boots(
    memory: Memory, records: Iterable[Record], versions: Mapping[str, str], decided: Iterable[Step | Held]
) -> tuple[BootFailure, ...]:
    """Name the boots that this pass gives up or finds ended, each once; ``versions``: of their launch template, by instance."""
    by_id = {record.instance_id: record for record in records}
    by_node = {(record.controller, record.node): record for record in by_id.values()}
    counted = {instance_id for breaker in memory.breakers.values() for instance_id in breaker.failed}
    failed = {record.instance_id: record for record in _failed(by_id, by_node, decided, memory.connected)}
    return tuple(
        BootFailure(
            controller=record.controller,
            pool=record.pool,
            instance_id=record.instance_id,
            why=record.trouble,
            version=versions.get(record.instance_id, ""),
        )
        for record in failed.values()
        if record.instance_id not in counted
    )


def note_failed(memory: Memory, failures: Iterable[BootFailure], versions: Mapping[str, str], now: float) -> Memory:
    """Count boots that failed, and open the breaker at the third in a row, and at each that follows.

    ``versions``: the launch template version of each pool now. A boot of another one is noted, and counts for nothing.
    """
    breakers = dict(memory.breakers)
    for failure in failures:
        current = versions.get(failure.pool, "")
        known = breakers.get(failure.pool, Breaker(failures=0, version=current))
        if failure.version and current and failure.version != current:
            breakers[failure.pool] = replace(known, failed=(*known.failed, failure.instance_id)[-FAILED_BOOTS_KEPT:])
            continue
        count = known.failures + 1
        pause = min(BREAKER_SECONDS * 2.0 ** (count - BREAKER_FAILURES), BREAKER_AT_MOST_SECONDS)
        breakers[failure.pool] = Breaker(
            failures=count,
            until_at=now + pause if count >= BREAKER_FAILURES else 0.0,
            failed=(*known.failed, failure.instance_id)[-FAILED_BOOTS_KEPT:],
            why=failure.why,
            version=current or known.version,
        )
    return replace(memory, breakers=breakers)


def is_tripped(breaker: Breaker | None) -> bool:
    """Tell whether a pool's boots failed so often in a row that it is not to be trusted with more than one."""
    return breaker is not None and breaker.failures >= BREAKER_FAILURES


def _is_of_another(breaker: Breaker, current: str) -> bool:
    return bool(breaker.version and current and breaker.version != current)


def _never_was_one(record: Record) -> bool:
    return record.state is RecordState.REQUESTED or (record.state is RecordState.REGISTERED and bool(record.trouble))


def told_boots(breaker: Breaker) -> str:
    """Say how often boots failed, and why the last one did, where it is known."""
    return f"{breaker.failures} boots in a row failed" + (f" ({breaker.why})" if breaker.why else "")


def _failed(
    by_id: dict[str, Record],
    by_node: dict[tuple[str, str | None], Record],
    decided: Iterable[Step | Held],
    connected: Collection[str],
) -> Iterator[Record]:
    for step in decided:
        match step:
            case Terminate(reason=Reason.BOOT_TIMEOUT):
                yield by_id[step.instance_id]
            case Terminate(reason=Reason.NODE_GONE) if step.instance_id not in connected:
                # Its node was never made, or was gone before it connected: the next one would fare as it did.
                yield by_id[step.instance_id]
            case Cordon(reason=Reason.BOOT_TIMEOUT):
                yield by_node[step.controller, step.node]
            case Forget() | DeleteNode() if step.instance_id in by_id and _never_was_one(by_id[step.instance_id]):
                # It ended before it was an agent: the bootstrap powers an instance off that cannot register.
                yield by_id[step.instance_id]
            case _:
                continue
