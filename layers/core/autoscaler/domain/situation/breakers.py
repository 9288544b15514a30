"""Breakers: boots and steps that keep failing are tried less often, and a person is told.

A pool whose agents do not boot is paused, longer each time, then tried with one agent until one connects. A step in Jenkins that an
account without a right, or a login proxy, refuses each minute for ever is tried again now and then, and nobody counts on it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from autoscaler.domain.facts.fleet import CORDONED_LABEL
from autoscaler.domain.facts.memory import Breaker, Failing, Memory
from autoscaler.domain.facts.plan import (
    BootFailure,
    Cordon,
    CreateBeacon,
    DeleteNode,
    FinishRotation,
    Forget,
    FreeSlot,
    Held,
    Lend,
    Relabel,
    RemoveBeacon,
    Step,
    Stop,
    TakeBack,
    Terminate,
    Uncordon,
)
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import ControllerView, Record, RecordState
from autoscaler.domain.facts.versions import differ
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.wording import duration

# One boot may fail by itself; three in a row are the image's, the network's or the template's doing. Launching on costs money for
# nothing, so a pool is paused, twice as long each time, and tried with one agent at a time until one connects.
BREAKER_FAILURES = 3
BREAKER_SECONDS, BREAKER_AT_MOST_SECONDS = 300.0, 3600.0
_DOUBLINGS = 20  # beyond the longest pause
FAILED_BOOTS_KEPT = 20
# Of a console's line so much is kept: enough to know the cause by.
LINE_CHARACTERS = 200
# Jenkins may refuse a step once by chance; so often in a row it lacks a right, or something is in its way. It is then tried at this pace.
FAILING_TRIES = 3
FAILING_TRY_AGAIN_SECONDS = 300.0
# A failing step that nobody has wanted for so long is over.
FAILING_FORGOTTEN_SECONDS = 900.0


def note_connected(known: frozenset[str], agents: Collection[Agent]) -> frozenset[str]:
    """Note which agents were seen connected, as long as they are there."""
    ready = {agent.record.life_id for agent in agents if agent.phase is Phase.READY}
    return (known | ready) & {agent.record.life_id for agent in agents}


def still_open(memory: Memory, agents: Iterable[Agent], current: Mapping[str, str]) -> dict[str, Breaker]:
    """Close the breakers of pools of which an agent connected for the first time, or that launch another version now.

    ``current``: the version that each pool launches. Boots of an old one say nothing of the new one.
    """
    ready = [agent for agent in agents if agent.phase is Phase.READY]
    healed = {agent.pool.name for agent in ready if agent.record.life_id not in memory.connected}
    return {
        pool: replace(breaker, failures=0, until_at=0.0, version=current[pool], opened_at=0.0)
        if _is_of_another(breaker, current.get(pool, ""))
        else breaker
        for pool, breaker in memory.breakers.items()
        if pool not in healed
    }


def failed_boots(
    memory: Memory, records: Iterable[Record], versions: Mapping[str, str], decided: Iterable[Step | Held]
) -> tuple[BootFailure, ...]:
    """Name the boots that this pass ends or finds ended, each once; ``versions``: by instance."""
    by_id = {record.instance_id: record for record in records}
    by_node = {(record.controller, record.node): record for record in by_id.values()}
    counted = {i for breaker in (*memory.breakers.values(), *memory.canaries.values()) for i in breaker.failed}
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
        if record.instance_id not in counted and record.is_instance
    )


def note_failed(
    known: Mapping[str, Breaker], failures: Iterable[BootFailure], versions: Mapping[str, str], now: float
) -> dict[str, Breaker]:
    """Count boots that failed, and open the breaker at the third in a row, and at each that follows.

    ``versions``: what each pool launches now. A boot of another version is noted, and counts for nothing.
    """
    breakers = dict(known)
    for failure in failures:
        current = versions.get(failure.pool, "")
        before = breakers.get(failure.pool, Breaker(failures=0, version=current))
        if differ(failure.version, current):
            breakers[failure.pool] = replace(before, failed=(*before.failed, failure.instance_id)[-FAILED_BOOTS_KEPT:])
            continue
        count = before.failures + 1
        pause = min(BREAKER_SECONDS * 2.0 ** min(count - BREAKER_FAILURES, _DOUBLINGS), BREAKER_AT_MOST_SECONDS)
        breakers[failure.pool] = Breaker(
            failures=count,
            until_at=now + pause if count >= BREAKER_FAILURES else 0.0,
            failed=(*before.failed, failure.instance_id)[-FAILED_BOOTS_KEPT:],
            why=failure.why,
            version=current or before.version,
            opened_at=(before.opened_at or now) if count >= BREAKER_FAILURES else 0.0,
        )
    return breakers


def note_consoles(known: Mapping[str, Breaker], consoles: Mapping[str, str]) -> dict[str, Breaker]:
    """Keep the last line that the last failed boot of a pool wrote on its console. ``consoles``: by instance id."""
    return {pool: _with_console(breaker, consoles.get(breaker.failed[-1]) if breaker.failed else None) for pool, breaker in known.items()}


def _with_console(breaker: Breaker, console: str | None) -> Breaker:
    return breaker if console is None else replace(breaker, said=_last_line(console))


def _last_line(console: str) -> str:
    lines = [line.strip() for line in console.splitlines() if line.strip()]
    return lines[-1][:LINE_CHARACTERS] if lines else ""


def is_tripped(breaker: Breaker | None) -> bool:
    """Tell whether a pool's boots failed so often in a row that it may try only one."""
    return breaker is not None and breaker.failures >= BREAKER_FAILURES


def _is_of_another(breaker: Breaker, current: str) -> bool:
    return differ(breaker.version, current)


def _never_was_one(record: Record) -> bool:
    asked_for = record.state in {RecordState.REQUESTED, RecordState.STARTING}
    return asked_for or (record.state is RecordState.REGISTERED and bool(record.trouble))


def _never_connected(record: Record, connected: Collection[str]) -> bool:
    """Tell whether an agent never connected. One that was made for a person is offline for builds, and nobody sees it connect."""
    return record.life_id not in connected and (record.reservation is None or bool(record.trouble))


def told_boots(breaker: Breaker) -> str:
    """Say how often boots failed in a row, and why the last one did, if known."""
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
            case Terminate(reason=Reason.NODE_GONE) if _never_connected(by_id[step.instance_id], connected):
                # Its node was never made, or was gone before it connected: the next one would fare as it did.
                yield by_id[step.instance_id]
            case Cordon(reason=Reason.BOOT_TIMEOUT):
                yield by_node[step.controller, step.node]
            case Forget() | DeleteNode() if step.instance_id in by_id and _never_was_one(by_id[step.instance_id]):
                # It ended before it was an agent: the bootstrap powers an instance off that cannot register.
                yield by_id[step.instance_id]
            case _:
                continue


_UNCORDON = "uncordon"
_ACTIONS: Mapping[type[Step | Held], str] = {
    Uncordon: _UNCORDON,
    Relabel: "relabel",
    Lend: "relabel",
    TakeBack: "relabel",
    Cordon: "cordon",
    DeleteNode: "delete-node",
    FinishRotation: "delete-node",
    FreeSlot: "free-slot",
    CreateBeacon: "create-beacon",
    RemoveBeacon: "delete-node",
    Stop: "stop",
}


def key_of(step: Step | Held) -> str | None:
    """Name a step's action and its node, or its instance; None for what is not given up however often it fails."""
    action = _ACTIONS.get(type(step))
    if action is None or (isinstance(step, Cordon) and step.reason is Reason.INTERRUPTED):
        return None  # an interruption is announced once, and tried again by Lambda itself; nobody who heeds it holds the lease
    whom = step.spec.name if isinstance(step, CreateBeacon) else step.instance_id if isinstance(step, Stop) else getattr(step, "node", "")
    return _key(action, step.controller, whom)


def note_tried(known: Mapping[str, Failing], tried: Mapping[str, str | None], now: float) -> dict[str, Failing]:
    """Remember for each step that was tried why it failed; None: it did not."""
    failing = {key: one for key, one in known.items() if key not in tried}
    for key, why in tried.items():
        if why is not None:
            before = known.get(key)
            since_at, times = (before.since_at, before.times + 1) if before else (now, 1)
            failing[key] = Failing(times=times, since_at=since_at, tried_at=now, why=why)
    return failing


def still_failing(known: Mapping[str, Failing], views: Iterable[ControllerView], now: float) -> dict[str, Failing]:
    """Drop steps that nobody tries any more, or that came true by themselves, such as uncordoning an online node."""
    if not known:
        return {}
    online = {
        _key(_UNCORDON, view.name, node.name)
        for view in views
        if view.complete
        for node in view.nodes
        if not node.offline and CORDONED_LABEL not in node.labels
    }
    return {key: one for key, one in known.items() if key not in online and now - one.tried_at < FAILING_FORGOTTEN_SECONDS}


def cannot_come_back(memory: Memory, agent: Agent) -> Failing | None:
    """Tell whether uncordoning an agent failed when last tried: it is no supply until it succeeds."""
    return memory.failing.get(_key(_UNCORDON, agent.record.controller, agent.record.node or ""))


def keeps_failing(one: Failing | None) -> bool:
    """Tell whether a step failed often enough in a row to be held."""
    return one is not None and one.times >= FAILING_TRIES


def has_failed_often(memory: Memory, step: Step) -> bool:
    """Tell whether a step that has failed once more will not be tried again."""
    one = memory.failing.get(key_of(step) or "")
    return one is not None and one.times + 1 >= FAILING_TRIES


def hold_failing(memory: Memory, decided: Iterable[Step | Held], now: float) -> Iterator[Step | Held]:
    """Hold a step that keeps failing until it is time to try it again."""
    for step in decided:
        key = key_of(step)
        one = memory.failing.get(key) if key else None
        if one is None or not keeps_failing(one) or now - one.tried_at >= FAILING_TRY_AGAIN_SECONDS:
            yield step
        else:
            pool = getattr(step, "pool", "")
            yield Held(
                pool=pool, controller=getattr(step, "controller", ""), reason=Reason.KEEPS_FAILING, detail=told_failing(key or "", one, now)
            )


def told_failing(key: str, one: Failing, now: float) -> str:
    """Say which step keeps failing, for how long, why, and when it is tried again."""
    again = max(0.0, one.tried_at + FAILING_TRY_AGAIN_SECONDS - now)
    return f"{key} has failed {one.times} times in {duration(now - one.since_at)}, tried again in {duration(again)}: {one.why}"


def _key(what: str, controller: str, node: str) -> str:
    return f"{what} {controller}/{node}"
