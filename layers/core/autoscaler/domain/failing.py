"""Steps in Jenkins that fail again and again: nobody counts on them, they are tried at a pace, and a person is told.

An account that lacks a right, or a login proxy in front of Jenkins, refuses the same step each minute for ever.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from autoscaler.domain.agents import Agent
from autoscaler.domain.memory import Failing, Memory
from autoscaler.domain.model import CORDONED_LABEL
from autoscaler.domain.numbers import FAILING_FORGOTTEN_SECONDS, FAILING_TRIES, FAILING_TRY_AGAIN_SECONDS
from autoscaler.domain.plan import Cordon, CreateBeacon, DeleteNode, FreeSlot, Held, Relabel, Step, Uncordon
from autoscaler.domain.reasons import Reason
from autoscaler.domain.snapshot import ControllerView

_UNCORDON = "uncordon"


def key_of(step: Step | Held) -> str | None:
    """Name what a step does in Jenkins and to which node; None for what Jenkins alone cannot refuse."""
    match step:
        case Uncordon():
            return _key(_UNCORDON, step.controller, step.node)
        case Cordon(reason=Reason.INTERRUPTED | Reason.REBALANCE):
            return None  # announced once, and tried again by Lambda itself; nobody who heeds it holds the lease
        case Relabel():
            return _key("relabel", step.controller, step.node)
        case Cordon():
            return _key("cordon", step.controller, step.node)
        case DeleteNode():
            return _key("delete-node", step.controller, step.node)
        case FreeSlot():
            return _key("free-slot", step.controller, step.node)
        case CreateBeacon():
            return _key("create-beacon", step.controller, step.spec.name)
        case _:
            return None


def note_tried(memory: Memory, tried: Mapping[str, str | None], now: float) -> Memory:
    """Remember why each step failed that was tried; None: it did not."""
    failing = {key: known for key, known in memory.failing.items() if key not in tried}
    for key, why in tried.items():
        if why is not None:
            known = memory.failing.get(key)
            since_at, times = (known.since_at, known.times + 1) if known else (now, 1)
            failing[key] = Failing(times=times, since_at=since_at, tried_at=now, why=why)
    return memory if failing == memory.failing else replace(memory, failing=failing)


def still_failing(known: Mapping[str, Failing], views: Iterable[ControllerView], now: float) -> dict[str, Failing]:
    """Leave out what nobody tries any more, and what came about by itself or by a person: a node that is online needs no uncordon."""
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
    """Tell that bringing an agent back failed when it was last tried: it is no supply until it succeeds."""
    return memory.failing.get(_key(_UNCORDON, agent.record.controller, agent.record.node or ""))


def keeps_failing(one: Failing | None) -> bool:
    """Tell a step that fails for good from one that failed once."""
    return one is not None and one.times >= FAILING_TRIES


def at_a_pace(memory: Memory, decided: Iterable[Step | Held], now: float) -> Iterator[Step | Held]:
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
    return f"{key} has failed {one.times} times in {(now - one.since_at) / 60:.0f} min, tried again in {again:.0f} s: {one.why}"


def _key(what: str, controller: str, node: str) -> str:
    return f"{what} {controller}/{node}"
