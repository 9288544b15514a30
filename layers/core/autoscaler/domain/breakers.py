"""Breakers: a pool whose agents do not boot is paused, longer each time, then tried with one agent until one connects."""

from collections.abc import Collection, Iterable, Iterator
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


def failed_boots(memory: Memory, records: Iterable[Record], decided: Iterable[Step | Held]) -> tuple[BootFailure, ...]:
    """Name the boots that this pass gives up or finds ended, each once."""
    by_id = {record.instance_id: record for record in records}
    by_node = {(record.controller, record.node): record for record in by_id.values()}
    counted = {instance_id for breaker in memory.breakers.values() for instance_id in breaker.failed}
    failed = {record.instance_id: record for record in _failed(by_id, by_node, decided, memory.connected)}
    return tuple(
        BootFailure(controller=record.controller, pool=record.pool, instance_id=record.instance_id, why=record.trouble)
        for record in failed.values()
        if record.instance_id not in counted
    )


def note_failed(memory: Memory, failures: Iterable[BootFailure], now: float) -> Memory:
    """Count boots that failed, and open the breaker at the third in a row, and at each that follows."""
    breakers = dict(memory.breakers)
    for failure in failures:
        known = breakers.get(failure.pool, Breaker(failures=0))
        count = known.failures + 1
        pause = min(BREAKER_SECONDS * 2.0 ** (count - BREAKER_FAILURES), BREAKER_AT_MOST_SECONDS)
        breakers[failure.pool] = Breaker(
            failures=count,
            until_at=now + pause if count >= BREAKER_FAILURES else 0.0,
            failed=(*known.failed, failure.instance_id)[-FAILED_BOOTS_KEPT:],
            why=failure.why,
        )
    return replace(memory, breakers=breakers)


def is_tripped(breaker: Breaker | None) -> bool:
    """Tell whether a pool's boots failed so often in a row that it is not to be trusted with more than one."""
    return breaker is not None and breaker.failures >= BREAKER_FAILURES


def _never_was_one(record: Record) -> bool:
    return record.state is RecordState.REQUESTED or (record.state is RecordState.REGISTERED and bool(record.trouble))


def told(breaker: Breaker) -> str:
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
