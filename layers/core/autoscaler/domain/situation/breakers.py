"""Breakers: boots and steps that keep failing are tried less often, and a person is told.

A pool whose agents do not boot is paused, longer each time, then tried with one agent until one connects. A step in Jenkins that an
account without a right, or a login proxy, refuses each minute for ever is tried again now and then, and nobody counts on it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from autoscaler.domain.facts.fleet import CORDONED_LABEL, Pool
from autoscaler.domain.facts.memory import Failing, Memory, Trial
from autoscaler.domain.facts.plan import (
    BootFailure,
    Cordon,
    CreateBeacon,
    DeleteNode,
    FinishRotation,
    FreeSlot,
    Held,
    Lend,
    Relabel,
    RemoveBeacon,
    Step,
    Stop,
    TakeBack,
    Uncordon,
)
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import ControllerView, differ
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.trials import BOOT_PAUSES, by_pool, due_at, failed_once_more, of_boot
from autoscaler.domain.wording import duration

# A pool counts as broken after so many failures in a row, or so many boots that failed.
BREAKER_FAILURES = 3
# Boots that were launched within so long of each other are one trial: what one of them shows, the others show again.
TOGETHER_SECONDS = 60.0
FAILED_BOOTS_KEPT = 20
# How the causes of failed boots begin of which only the machine knows more.
MISSED, BY_EC2 = "it did not ", "EC2 says "
_AGENT_SAYS = "autoscaler-agent: "  # what its lines begin with
# Of a console's line so much is kept: enough to know the cause by.
LINE_CHARACTERS = 200
# Jenkins may refuse a step once by chance; so often in a row it lacks a right, or something is in its way. It is then tried at this pace.
FAILING_TRIES = 3
FAILING_TRY_AGAIN_SECONDS = 300.0
# A machine that EC2 refused to start is remembered for so long: jobs may come seldom.
REFUSED_KEPT_SECONDS = 86_400.0
# A failing step that nobody has wanted for so long is over.
FAILING_FORGOTTEN_SECONDS = 900.0


def note_connected(known: frozenset[str], agents: Collection[Agent]) -> frozenset[str]:
    """Note which agents were seen connected, as long as they are there."""
    ready = {agent.record.life_id for agent in agents if agent.phase is Phase.READY}
    return (known | ready) & {agent.record.life_id for agent in agents}


def still_open(memory: Memory, agents: Iterable[Agent], current: Mapping[str, str]) -> dict[str, Trial]:
    """Close the trials of pools of which an agent connected for the first time, or that launch another version now.

    ``current``: the version that each pool launches. Boots of an old one say nothing of the new one.
    """
    ready = [agent for agent in agents if agent.phase is Phase.READY]
    healed = {agent.pool.name for agent in ready if agent.record.life_id not in memory.connected}
    return {
        of_boot(pool): replace(trial, failures=0, until_at=0.0, version=current[pool])
        if differ(trial.version, current.get(pool, ""))
        else trial
        for pool, trial in by_pool(memory, of_boot).items()
        if pool not in healed
    }


def note_failed(
    known: Mapping[str, Trial], failures: Iterable[BootFailure], versions: Mapping[str, str], pools: Mapping[str, Pool], now: float
) -> dict[str, Trial]:
    """Count boots that failed: those of one look once, and those that were launched with one that counted not again.

    ``versions``: what each pool launches now. A boot of another version is noted, and counts for nothing.
    """
    trials, of_pool = dict(known), dict[str, list[BootFailure]]()
    for failure in failures:
        of_pool.setdefault(failure.pool, []).append(failure)
    for name, mine in of_pool.items():
        current = versions.get(name, "")
        before = trials.get(of_boot(name)) or Trial(failures=0, since_at=now, failed_at=now, until_at=0.0, why="", version=current)
        count = [failure for failure in mine if not (failure.beside or differ(failure.version, current) or _began_with(before, failure))]
        trial = _counted(before, count[-1], pools.get(name), current, now) if count else before
        ids = (*before.failed, *(failure.instance_id for failure in mine))
        trials[of_boot(name)] = replace(trial, failed=ids[-FAILED_BOOTS_KEPT:])
    return trials


def _counted(before: Trial, last: BootFailure, pool: Pool | None, current: str, now: float) -> Trial:
    """Count one more failure. However often it failed, a pool is tried every two boot timeouts."""
    trial = failed_once_more(before, BOOT_PAUSES, last.why, now)
    until_at = min(trial.until_at, due_at(trial, pool)) if pool else trial.until_at
    return replace(trial, until_at=until_at, version=current or before.version, launched_at=last.launched_at, launch=last.launch)


def _began_with(trial: Trial, failure: BootFailure) -> bool:
    """Tell whether a boot began together with the last one that counted: before that one was known to fail."""
    if not trial.is_open or failure.launched_at >= trial.failed_at:
        return False
    of_one_launch = bool(failure.launch) and failure.launch == trial.launch
    return of_one_launch or abs(failure.launched_at - trial.launched_at) <= TOGETHER_SECONDS


def note_consoles(known: Mapping[str, Trial], consoles: Mapping[str, str]) -> dict[str, Trial]:
    """Keep the last line that the last failed boot of a scope wrote on its console. ``consoles``: by instance id."""
    return {scope: _with_console(trial, consoles.get(trial.failed[-1]) if trial.failed else None) for scope, trial in known.items()}


def _with_console(trial: Trial, console: str | None) -> Trial:
    return trial if console is None else replace(trial, said=_last_line(console))


def _last_line(console: str) -> str:
    """Return the last line that the agent's service wrote, or the last of any."""
    lines = [line.strip() for line in console.splitlines() if line.strip()]
    of_agent = [line[line.index(_AGENT_SAYS) :] for line in lines if _AGENT_SAYS in line]
    return (of_agent or lines or [""])[-1][:LINE_CHARACTERS]


def is_tripped(trial: Trial | None) -> bool:
    """Tell whether so many boots of a pool failed that a person must see to it."""
    return trial is not None and trial.is_open and (trial.failures >= BREAKER_FAILURES or len(trial.failed) >= BREAKER_FAILURES)


def boots_failed(trial: Trial) -> int:
    """Count the boots that failed; of those that were launched together each, as far as they are remembered."""
    return max(trial.failures, len(trial.failed))


def told_last(trial: Trial) -> str:
    """Say why the last boot failed; "" if nobody knows. Unless Jenkins is the cause, what stands on the machine's console may be it."""
    is_known = bool(trial.why) and not trial.why.startswith((MISSED, BY_EC2))
    console = f"its console ended: {trial.said}" if trial.said and not is_known else ""
    return "; ".join(filter(None, (trial.why, console)))


def told_boots(trial: Trial) -> str:
    """Say how often boots failed in a row, and why the last one did, if known."""
    boots = boots_failed(trial)
    failed = "the last boot failed" if boots == 1 else f"{boots} boots in a row failed"
    return failed + (f" ({trial.why})" if trial.why else "")


_UNCORDON = "uncordon"
CREATE_BEACON = "create-beacon"
START = "start"
_ACTIONS: Mapping[type[Step | Held], str] = {
    Uncordon: _UNCORDON,
    Relabel: "relabel",
    Lend: "relabel",
    TakeBack: "relabel",
    Cordon: "cordon",
    DeleteNode: "delete-node",
    FinishRotation: "delete-node",
    FreeSlot: "free-slot",
    CreateBeacon: CREATE_BEACON,
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
    """Drop steps that nobody tries any more, or that came true by themselves: an online node is uncordoned, a beacon is there."""
    if not known:
        return {}
    nodes = [(view.name, node) for view in views if view.complete for node in view.nodes]
    done = {_key(CREATE_BEACON, controller, node.name) for controller, node in nodes}
    done |= {_key(_UNCORDON, controller, node.name) for controller, node in nodes if not node.offline and CORDONED_LABEL not in node.labels}
    return {key: step for key, step in known.items() if key not in done and now - step.tried_at < _kept_seconds(key, step)}


def _kept_seconds(key: str, failing: Failing) -> float:
    """Say for how long it is remembered. A machine that EC2 refuses to start may not be asked for again for hours."""
    is_start = key.startswith(f"{START}/") and not keeps_failing(failing)
    return REFUSED_KEPT_SECONDS if is_start else FAILING_FORGOTTEN_SECONDS


def cannot_come_back(memory: Memory, agent: Agent) -> Failing | None:
    """Tell whether uncordoning an agent failed when last tried: it is no supply until it succeeds."""
    return memory.failing.get(_key(_UNCORDON, agent.record.controller, agent.record.node or ""))


def failing_labels(memory: Memory, agent: Agent) -> Failing | None:
    """Tell whether giving an agent its labels back failed when last tried."""
    keys = (_key(action, agent.record.controller, agent.record.node or "") for action in (_ACTIONS[Relabel], _UNCORDON))
    return next((failing for key in keys if (failing := memory.failing.get(key))), None)


def keeps_failing(one: Failing | None) -> bool:
    """Tell whether a step failed often enough in a row to be held."""
    return one is not None and one.times >= FAILING_TRIES


def steps_that_keep_failing(memory: Memory) -> dict[str, Failing]:
    """Return the steps that a person must see to. A machine that does not start is terminated, and told by a message of its own."""
    return {key: step for key, step in memory.failing.items() if keeps_failing(step) and not key.startswith(START)}


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
