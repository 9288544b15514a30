"""What failed is tried again with one agent at a time: offerings, boots of a pool, connections."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum

from autoscaler.domain.facts.fleet import CORDONED_LABEL, Offering, Pool
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
from autoscaler.domain.facts.snapshot import ControllerView, RecordState, differ
from autoscaler.domain.grouping import grouped
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.wording import duration, moment

# Trials: what failed is tried again with one agent at a time, at growing intervals, and one success ends that.
#
# A trial has a scope: an offering of a pool, everything that a pool launches, the account. What EC2 refuses takes no room from anything
# else: a pool all of whose offerings have open trials launches nothing but the one agent that tries, and that one comes last.


# Seconds until it is tried again, after the first failure, the second, and so on; the last one goes on. What lacks capacity has some again
# within minutes, and a call is cheap. What needs a person is not mended by asking. An offering that a zone does not have gets none soon.
CAPACITY_PAUSES = (60.0, 120.0, 300.0)
PERSON_PAUSES = (300.0,)
UNSUPPORTED_PAUSES = (86_400.0,)
THROTTLE_PAUSES = (60.0,)
# Machines that EC2 takes back are likely to be taken back again for a while.
TAKEN_BACK_PAUSES = (180.0, 360.0, 600.0)
# People are told of what others end for a day after the last of it.
ENDED_PAUSES = (86_400.0,)
# One boot may fail by itself; three in a row are the image's, the network's or the template's doing.
BOOT_PAUSES = (0.0, 0.0, 300.0, 600.0, 1200.0, 2400.0, 3600.0)
# What Jenkins refuses one agent, it refuses all of them until a person mends it.
CONNECT_PAUSES = (300.0, 600.0, 1200.0, 2400.0, 3600.0)
# Three starts in a row that fail are the template's doing, or a right's that is missing. Launches go on meanwhile.
START_PAUSES = (0.0, 0.0, 600.0, 1200.0, 2400.0, 3600.0)
# Nothing waits for a new image: agents are launched from the one that booted before.
IMAGE_PAUSES = (300.0, 600.0, 1200.0, 2400.0, 3600.0)
# While jobs wait for nothing else, no pause is longer than so many boot timeouts.
MOST_BOOT_TIMEOUTS = 2.0
# A trial that limits have left no room for so long goes before other launches, as one agent.
NO_ROOM_SECONDS = 900.0
# A trial that nothing has wanted for so long, after its pause, is forgotten: the next failure is the first again.
_REMEMBERED_SECONDS = 3600.0
ACCOUNT = "account"


class TrialOf(StrEnum):
    """What a trial is about. With the name of a pool, an offering or a controller it is the trial's scope."""

    OFFERING = "offering"  # one offering of a pool
    POOL = "pool"  # everything that a pool launches
    STOPS = "stops"  # stopping a pool's agents
    DISKS = "disks"  # keeping the disks of a pool's agents
    TAKEN_BACK = "taken-back"  # machines of one offering that EC2 takes back: nothing failed, and it is only asked for last
    ENDED = "ended"  # agents that neither we nor their builds have ended: nothing is paused, and people are told
    BOOT = "boot"  # booting a pool's agents
    START = "start"  # starting a pool's stopped agents
    IMAGE = "image"  # booting a pool's new image
    CONNECT = "connect"  # connecting agents to a controller

    def scope(self, *names: str) -> str:
        """Name the scope: of a pool, of an offering by its pool and key, or of a controller."""
        return "/".join((self, *names))


def by_pool(memory: Memory, kind: TrialOf) -> dict[str, Trial]:
    """Return the trials of one kind of scope, by pool or controller."""
    prefix = kind.scope("")
    return {scope.removeprefix(prefix): trial for scope, trial in memory.trials.items() if scope.startswith(prefix)}


def boots_counted(memory: Memory) -> set[str]:
    """Name the instances whose failed boots, or starts, have counted."""
    return {
        instance_id
        for kind in (TrialOf.BOOT, TrialOf.IMAGE, TrialOf.START)
        for trial in by_pool(memory, kind).values()
        for instance_id in trial.failed
    }


def failed_once_more(known: Trial | None, pauses: tuple[float, ...], why: str, now: float) -> Trial:
    """Count one more failure, and say until when nothing is tried."""
    before = known.failures if known else 0
    since_at = known.since_at if known and known.is_open else now
    trial = known or Trial(failures=0, since_at=now, failed_at=now, until_at=now, why=why)
    pause = pauses[min(before, len(pauses) - 1)]
    return replace(trial, failures=before + 1, since_at=since_at, failed_at=now, until_at=now + pause, why=why, said="")


def close(known: Mapping[str, Trial], scopes: Iterable[str], now: float) -> dict[str, Trial]:
    """Note that these scopes work again."""
    worked = {scope: replace(known[scope], failures=0, until_at=now) for scope in scopes if scope in known and known[scope].is_open}
    return {**known, **worked}


def still_remembered(known: Mapping[str, Trial], now: float) -> dict[str, Trial]:
    """Leave out what EC2 refused long ago. Boots, starts and connections have ends of their own."""
    others = tuple(kind.scope("") for kind in (TrialOf.BOOT, TrialOf.START, TrialOf.IMAGE, TrialOf.CONNECT))
    kept = {scope: trial for scope, trial in known.items() if not scope.startswith(others)}
    return {scope: trial for scope, trial in kept.items() if now - trial.until_at < _REMEMBERED_SECONDS}


def open_trial(memory: Memory, scope: str) -> Trial | None:
    """Return the trial of a scope that failed and has not worked since; None where it works, as far as anybody knows."""
    trial = memory.trials.get(scope)
    return trial if trial and trial.is_open else None


def offered(pool: Pool, memory: Memory, now: float) -> tuple[Offering, ...]:
    """List what as many agents as are needed may be asked for: on each market where not everything has failed, what may work."""
    if pool.of_hosts or _wide(pool, memory):
        return ()
    if not memory.trials:
        return pool.offerings
    free = _free(pool, memory, now)
    return tuple(offering for offering in free if not is_taken_back(memory, pool.name, offering, now)) or free


def _free(pool: Pool, memory: Memory, now: float) -> tuple[Offering, ...]:
    """List the offerings whose pause has ended, or that work, on each market where any works."""
    failed = _failed(pool, memory)
    works = {offering.market for offering in pool.offerings if offering not in failed}
    pausing = {offering for offering, trial in failed.items() if now < trial.until_at}
    return tuple(offering for offering in pool.offerings if offering.market in works and offering not in pausing)


def is_taken_back(memory: Memory, pool: str, offering: Offering, now: float) -> bool:
    """Tell whether EC2 took machines of an offering back lately, so that it is asked for last."""
    trial = open_trial(memory, TrialOf.TAKEN_BACK.scope(pool, offering.key))
    return trial is not None and now < trial.until_at


def _failed(pool: Pool, memory: Memory) -> dict[Offering, Trial]:
    """Return the open trials of a pool's offerings."""
    return {
        offering: trial for offering in pool.offerings if (trial := open_trial(memory, TrialOf.OFFERING.scope(pool.name, offering.key)))
    }


def offerings_to_try(pool: Pool, memory: Memory, now: float) -> tuple[Offering, ...]:
    """List what one agent may try now: on each market where everything has failed, what its pause has ended for."""
    if pool.of_hosts or not memory.trials:
        return ()
    if any(is_pausing(memory, scope, pool, now) for scope in (TrialOf.POOL.scope(pool.name), ACCOUNT)):
        return ()
    failed = set(pool.offerings) if _wide(pool, memory) else set(_failed(pool, memory))
    works = {offering.market for offering in pool.offerings if offering not in failed}
    tried = (offering for offering in pool.offerings if offering.market not in works)
    return tuple(offering for offering in tried if not is_pausing(memory, TrialOf.OFFERING.scope(pool.name, offering.key), pool, now))


def is_pausing(memory: Memory, scope: str, pool: Pool, now: float) -> bool:
    """Tell whether nothing is tried in a scope now."""
    trial = open_trial(memory, scope)
    return trial is not None and now < due_at(trial, pool)


def due_at(trial: Trial, pool: Pool) -> float:
    """Say from when on one agent of a pool may try it again."""
    return min(trial.until_at, trial.failed_at + MOST_BOOT_TIMEOUTS * pool.boot_timeout_seconds)


def in_the_way(pool: Pool, memory: Memory) -> dict[str, Trial]:
    """Return the open trials because of which a pool launches no more than one agent, by scope; none where some market works."""
    if wide := _wide(pool, memory):
        return wide
    failed = _failed(pool, memory)
    if len(failed) < len(pool.offerings):
        return {}
    return {TrialOf.OFFERING.scope(pool.name, offering.key): trial for offering, trial in failed.items()}


def _wide(pool: Pool, memory: Memory) -> dict[str, Trial]:
    """Return the open trials that are about all offerings of a pool, by scope."""
    return {scope: trial for scope in (TrialOf.POOL.scope(pool.name), ACCOUNT) if (trial := open_trial(memory, scope))}


def told_refused(trials: Mapping[str, Trial], again_at: float | None, now: float) -> str:
    """Say what EC2 answers, since when, and when one agent tries again."""
    whys, since_at = ", ".join(sorted({trial.why for trial in trials.values()})), min(trial.since_at for trial in trials.values())
    times = max(trial.failures for trial in trials.values())
    often = f", {times} times in a row since {moment(since_at)}" if times > 1 else f" at {moment(since_at)}"
    if again_at is None:
        return f"{whys}{often}"
    again = f"at {moment(again_at)}" if again_at > now else "now if a job waits and the limits leave it room"
    return f"{whys}{often}; one agent is tried {again}"


def next_try_at(pool: Pool, memory: Memory) -> float | None:
    """Say from when on one agent may try what is in the way of a pool's launches; None where nothing is."""
    # A pool's pause and the account's both hold. Of several offerings the first may be tried alone.
    if wide := _wide(pool, memory):
        return max(due_at(trial, pool) for trial in wide.values())
    return min((due_at(trial, pool) for trial in in_the_way(pool, memory).values()), default=None)


# Breakers: boots and steps that keep failing are tried less often, and a person is told.
#
# A pool whose agents do not boot is paused, longer each time, then tried with one agent until one connects. A step in Jenkins that an
# account without a right, or a login proxy, refuses each minute for ever is tried again now and then, and nobody counts on it.


# A pool counts as broken after so many failures in a row, or so many boots that failed.
BREAKER_FAILURES = 3
# Boots that were launched within so long of each other are one trial: what one of them shows, the others show again.
TOGETHER_SECONDS = 60.0
FAILED_BOOTS_KEPT = 20
# How the causes of failed boots begin of which only the machine knows more.
MISSED, BY_EC2 = "it did not ", "EC2 says "
_AGENT_SAYS = "autoscaler-agent: "  # what its lines begin with
# So much of a console's line is kept: enough to know the cause by.
LINE_CHARACTERS = 200
# Jenkins may refuse a step once by chance; so often in a row it lacks a right, or something is in its way. It is then tried at this pace.
FAILING_TRIES = 3
FAILING_TRY_AGAIN_SECONDS = 300.0
# A machine that EC2 refused to start is remembered for so long: jobs may come seldom.
REFUSED_KEPT_SECONDS = 86_400.0
# A failing step that nobody has wanted for so long is over.
FAILING_FORGOTTEN_SECONDS = 900.0


def still_open(memory: Memory, agents: Iterable[Agent], current: Mapping[str, str]) -> dict[str, Trial]:
    """Close the trials of pools of which an agent connected for the first time, or that launch another version now.

    ``current``: the version that each pool launches. Boots of an old one say nothing of the new one.
    """
    ready = [agent for agent in agents if agent.phase is Phase.READY]
    healed = {agent.pool.name for agent in ready if not memory.has_connected(agent.record.life_id)}
    return {
        TrialOf.BOOT.scope(pool): replace(trial, failures=0, until_at=0.0, version=current[pool])
        if differ(trial.version, current.get(pool, ""))
        else trial
        for pool, trial in by_pool(memory, TrialOf.BOOT).items()
        if pool not in healed
    }


def note_failed(
    known: Mapping[str, Trial], failures: Iterable[BootFailure], versions: Mapping[str, str], pools: Mapping[str, Pool], now: float
) -> dict[str, Trial]:
    """Count boots that failed: those of one look once, and those that were launched with one that counted not again.

    ``versions``: what each pool launches now. A boot of another version is noted, and counts for nothing.
    """
    trials = dict(known)
    for name, mine in grouped((failure.pool, failure) for failure in failures).items():
        current = versions.get(name, "")
        before = trials.get(TrialOf.BOOT.scope(name)) or Trial(
            failures=0, since_at=now, failed_at=now, until_at=0.0, why="", version=current
        )
        count = [failure for failure in mine if not (failure.beside or differ(failure.version, current) or _began_with(before, failure))]
        trial = _counted(before, count[-1], pools.get(name), current, now) if count else before
        ids = (*before.failed, *(failure.instance_id for failure in mine))
        trials[TrialOf.BOOT.scope(name)] = replace(trial, failed=ids[-FAILED_BOOTS_KEPT:])
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
    with_console = {scope: trial for scope, trial in known.items() if trial.failed and trial.failed[-1] in consoles}
    return {**known, **{scope: replace(trial, said=_last_line(consoles[trial.failed[-1]])) for scope, trial in with_console.items()}}


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
    if action is None or isinstance(step, Held) or (isinstance(step, Cordon) and step.reason is Reason.INTERRUPTED):
        return None  # an interruption is announced once, and tried again by Lambda itself; nobody who heeds it holds the lease
    whom = step.spec.name if isinstance(step, CreateBeacon) else step.instance_id if isinstance(step, Stop) else step.node
    return _key(action, step.controller, whom or "")


def note_tried(known: Mapping[str, Failing], tried: Mapping[str, str | None], now: float) -> dict[str, Failing]:
    """Remember for each step that was tried why it failed; None: it did not."""
    failing = {key: one for key, one in known.items() if key not in tried}
    for key, why in tried.items():
        if why is not None:
            before = known.get(key)
            since_at, times = (before.since_at, before.times + 1) if before else (now, 1)
            failing[key] = Failing(times=times, since_at=since_at, tried_at=now, why=why)
    return failing


def still_failing(known: Mapping[str, Failing], view: ControllerView | None, now: float) -> dict[str, Failing]:
    """Drop steps that nobody tries any more, or that came true by themselves: an online node is uncordoned, a beacon is there."""
    nodes = [(view.name, node) for node in view.nodes] if view is not None and view.complete else []
    done = {_key(CREATE_BEACON, controller, node.name) for controller, node in nodes}
    done |= {_key(_UNCORDON, controller, node.name) for controller, node in nodes if not node.offline and CORDONED_LABEL not in node.labels}
    return {key: step for key, step in known.items() if key not in done and now - step.tried_at < _kept_seconds(key, step)}


def _kept_seconds(key: str, failing: Failing) -> float:
    """Say for how long it is remembered. A machine that EC2 refuses to start may not be asked for again for hours."""
    is_start = key.startswith(f"{START}/") and not keeps_failing(failing)
    return REFUSED_KEPT_SECONDS if is_start else FAILING_FORGOTTEN_SECONDS


def cannot_come_back(memory: Memory, agent: Agent) -> Failing | None:
    """Tell whether uncordoning an agent failed when last tried: it is no supply until it succeeds."""
    return memory.controller(agent.record.controller).failing.get(_key(_UNCORDON, agent.record.controller, agent.record.node or ""))


def failing_labels(memory: Memory, agent: Agent) -> Failing | None:
    """Tell whether giving an agent its labels back failed when last tried."""
    keys = (_key(action, agent.record.controller, agent.record.node or "") for action in (_ACTIONS[Relabel], _UNCORDON))
    return next((failing for key in keys if (failing := memory.controller(agent.record.controller).failing.get(key))), None)


def keeps_failing(one: Failing | None) -> bool:
    """Tell whether a step failed often enough in a row to be held."""
    return one is not None and one.times >= FAILING_TRIES


def steps_that_keep_failing(memory: Memory) -> dict[str, Failing]:
    """Return the steps that a person must see to. A machine that does not start is terminated, and told by a message of its own."""
    every = (step for past in memory.controllers.values() for step in past.failing.items())
    return {key: step for key, step in every if keeps_failing(step) and not key.startswith(START)}


def has_failed_often(memory: Memory, step: Step) -> bool:
    """Tell whether a step that has failed once more will not be tried again."""
    one = memory.controller(step.controller).failing.get(key_of(step) or "")
    return one is not None and one.times + 1 >= FAILING_TRIES


def hold_failing(memory: Memory, decided: Iterable[Step | Held], now: float) -> Iterator[Step | Held]:
    """Hold a step that keeps failing until it is time to try it again."""
    for step in decided:
        key = key_of(step)
        one = memory.controller(step.controller).failing.get(key) if key else None
        if one is None or not keeps_failing(one) or now - one.tried_at >= FAILING_TRY_AGAIN_SECONDS:
            yield step
        else:
            detail = told_failing(key or "", one, now)
            yield Held(pool=step.pool or "", controller=step.controller, reason=Reason.KEEPS_FAILING, detail=detail)


def told_failing(key: str, one: Failing, now: float) -> str:
    """Say which step keeps failing, for how long, why, and when it is tried again."""
    again = max(0.0, one.tried_at + FAILING_TRY_AGAIN_SECONDS - now)
    return f"{key} has failed {one.times} times in {duration(now - one.since_at)}, tried again in {duration(again)}: {one.why}"


def _key(what: str, controller: str, node: str) -> str:
    return f"{what} {controller}/{node}"


# Connections of new agents that a controller refuses to all of them: a right is missing, or a login page is in the way.
#
# Nothing is launched for that controller after the first such agent. It goes on asking, and so finds out when that is mended. Once it has
# ended, one agent at a time is launched, at growing intervals, until one connects.
#
# A beacon that Jenkins refuses for such a reason shows it before anything is launched: then nothing is, until Jenkins makes the beacon.


# A record's trouble begins with the name of an error; these are the same for every agent.
_FOR_ALL_AGENTS = ("LackingPermissionError", "RefusedCredentialsError", "RedirectedError", "InTheWayError", "DoubtfulError")
_LOGIN_PAGE = "login page"
_FAILED_KEPT = 20


def is_for_all_agents(trouble: str) -> bool:
    """Tell whether what keeps an agent from connecting keeps every other one of its controller, too."""
    return trouble.startswith(_FOR_ALL_AGENTS) or _LOGIN_PAGE in trouble


def why_no_node(failed: Mapping[str, str | None], controller: str) -> str:
    """Say why Jenkins refuses to make any node: it refused a beacon; "" if it refused none. ``failed``: by the key of a step."""
    key = f"{CREATE_BEACON} {controller}/"
    return next((why for name, why in failed.items() if why and name.startswith(key) and is_for_all_agents(why)), "")


def why_none_connects(memory: Memory, controller: str, no_node: str, now: float) -> str:
    """Say why nothing is launched for a controller now; "" if Jenkins refuses nothing. ``no_node``: why it makes none."""
    if no_node:
        return f"no node can be made on {controller} ({no_node}); a beacon tries again"
    refused = open_trial(memory, TrialOf.CONNECT.scope(controller))
    if refused is None or now >= refused.until_at:
        return ""
    return f"no new agent can connect to {controller} ({refused.why}); one is tried at {moment(refused.until_at)}"


def still_refused(memory: Memory, agents: Iterable[Agent], controllers: Collection[str], now: float) -> dict[str, Trial]:
    """Carry on which controllers refuse new agents: an agent that connects, or is refused no more, ends it."""
    living = (agent for agent in agents if agent.record.is_instance and not agent.instance_ended)
    of_each = grouped((agent.record.controller, agent) for agent in living)
    before = by_pool(memory, TrialOf.CONNECT)
    trials = {name: _next(before.get(name), memory, of_each.get(name, []), now) for name in controllers}
    return {TrialOf.CONNECT.scope(name): trial for name, trial in trials.items() if trial}


def _next(before: Trial | None, memory: Memory, agents: Collection[Agent], now: float) -> Trial | None:
    if any(_works(before, memory, agent) for agent in agents):
        return None
    counted = before.failed if before else ()
    refused = [
        agent
        for agent in agents
        if not memory.has_connected(agent.record.life_id)
        and is_for_all_agents(agent.record.trouble)
        and agent.record.instance_id not in counted
    ]
    if not refused:
        return before
    failed = (*counted, *(agent.record.instance_id for agent in refused))[-_FAILED_KEPT:]
    if before and all(agent.record.began_at < before.failed_at for agent in refused):
        trial = before  # they were launched before it was known
    else:
        trial = failed_once_more(before, CONNECT_PAUSES, refused[-1].record.trouble, now)
    until_at = min(trial.until_at, due_at(trial, refused[-1].pool))
    return replace(trial, until_at=until_at, why=refused[-1].record.trouble, failed=failed)


def _works(before: Trial | None, memory: Memory, agent: Agent) -> bool:
    """Tell whether an agent has connected for the first time, or what was refused has its node and its secret now."""
    record = agent.record
    if agent.phase is Phase.READY and not memory.has_connected(record.life_id):
        return True
    was_refused = before is not None and record.instance_id in before.failed
    return was_refused and record.state is RecordState.REGISTERED and not record.trouble
