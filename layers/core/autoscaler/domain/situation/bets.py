"""Bets: what was lost is tried again, ever more rarely and with few at once, until it works: offerings, boots, steps in Jenkins."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from autoscaler.domain.facts.fleet import CORDONED_LABEL, Fleet, Offering, Pool
from autoscaler.domain.facts.memory import WIDER, Memory, Trial
from autoscaler.domain.facts.plan import (
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
from autoscaler.domain.facts.snapshot import ControllerView, Instance, Record, RecordState, differ
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.wording import duration, moment

# Bets: a launch, a start, a step in Jenkins, a request to EC2 is tried because something is believed. Whether it came true is noted in
# its scopes: an offering of a pool, the boots of a pool, the account. A scope in which more was lost than won is closed: then few are
# tried at once, ever more rarely, until one is won. What EC2 refuses takes no room from anything else: a pool all of whose offerings are
# closed launches nothing but the one agent that tries, and that one comes last.


# Seconds from one try to the next, the last one goes on. What lacks capacity has some again within minutes, and a call is cheap. What needs
# a person is not mended by asking. An offering that a zone does not have gets none soon.
CAPACITY_PAUSES = (60.0, 120.0, 300.0)
PERSON_PAUSES = (300.0,)
UNSUPPORTED_PAUSES = (86_400.0,)
THROTTLE_PAUSES = (60.0,)
# Machines that EC2 takes back are likely to be taken back again for a while.
TAKEN_BACK_PAUSES = (180.0, 360.0, 600.0)
# What costs a machine: from launch to launch, three in an hour at last.
_BOOT_PAUSES = (60.0, 300.0, 600.0, 1200.0)
_REFUSED_PAUSES = (600.0, 1200.0)
_HOUR_PAUSES = (3600.0,)
# People are told of what others end for a day after the last of it; for so long EC2 is not asked again to stop what it never stops.
_DAY_PAUSES = (86_400.0,)
# While jobs wait for nothing else, no pause is longer than so many boot timeouts.
MOST_BOOT_TIMEOUTS = 2.0
# A trial that limits have left no room for so long goes before other launches, as one agent.
NO_ROOM_SECONDS = 900.0
# What nothing has wanted for so long, after its pause, is forgotten: the next failure is the first again.
REMEMBERED_SECONDS = 3600.0
# Where agents are launched one by one, only this makes one of them try it again.
PLACE_REMEMBERED_SECONDS = 86_400.0
# So many failed boots are remembered by their instances, each of which counts once.
FAILED_KEPT = 20
_OUTCOMES_KEPT = 8
ACCOUNT = "account"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """How what belongs to a scope is tried again. ``pauses``: from one try to the next; ``least``: so many losses close it.

    ``by_share``: if they outnumber the wins among its last eight; else one win ends it all.
    """

    pauses: tuple[float, ...] = _BOOT_PAUSES
    least: int = 1
    by_share: bool = False


class TrialOf(StrEnum):
    """What a scope is about. With the name of a pool, an offering or a controller it is the scope's name."""

    OFFERING = "offering"  # one offering of a pool
    POOL = "pool"  # everything that a pool launches
    STOPS = "stops"  # stopping a pool's agents
    DISKS = "disks"  # keeping the disks of a pool's agents
    TAKEN_BACK = "taken-back"  # machines of one offering that EC2 takes back: nothing failed, and it is only asked for last
    ENDED = "ended"  # agents that neither we nor their builds have ended: nothing is paused, and people are told
    BOOT = "boot"  # booting a pool's agents
    PLACE = "place"  # booting them on one offering: a type, in a subnet, on a market
    START = "start"  # starting a pool's stopped agents
    IMAGE = "image"  # booting a pool's new image
    CONNECT = "connect"  # connecting agents to a controller
    MARKED = "marked"  # agents that monitors of a controller leave alone
    REFUSED = "refused"  # launching for jobs that free executors refuse
    STEP = "step"  # what is done in Jenkins to one node, or to start or stop one machine

    def scope(self, *names: str) -> str:
        """Name the scope: of a pool, of an offering by its pool and key, or of a controller."""
        return "/".join((self, *names))


# One boot may fail by itself, and so may one in twenty. An image that never booted, and what Jenkins refuses, are lost at once.
_RULES: Mapping[str, _Rule] = {
    TrialOf.BOOT: _Rule(least=3, by_share=True),
    TrialOf.PLACE: _Rule(least=3, by_share=True),
    TrialOf.START: _Rule(least=3, by_share=True),
    TrialOf.REFUSED: _Rule(pauses=_REFUSED_PAUSES, by_share=True),
    TrialOf.MARKED: _Rule(pauses=_HOUR_PAUSES),
    TrialOf.STOPS: _Rule(pauses=_DAY_PAUSES),
    TrialOf.ENDED: _Rule(pauses=_DAY_PAUSES),
    TrialOf.TAKEN_BACK: _Rule(pauses=TAKEN_BACK_PAUSES),
    # Jenkins may refuse a step once by chance; so often in a row it lacks a right, or something is in its way.
    TrialOf.STEP: _Rule(pauses=PERSON_PAUSES, least=3),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a bet ended for one of its scopes. ``at``: when it was launched, or asked for; None: just now; ``name``: of the machine.

    ``pauses``: by EC2's code; else by the kind of the scope. ``version``: that was tried; another one begins anew. ``counts``: False: it
    is noted, and says nothing of the scope. ``launch``: EC2 accepted it, and ended its machines while they were pending. ``said``: what
    people want to know beside why.
    """

    scope: str
    won: bool = False
    at: float | None = None
    why: str = ""
    name: str = ""
    version: str = ""
    pauses: tuple[float, ...] = ()
    counts: bool = True
    launch: str = ""
    said: str = ""


def note(known: Mapping[str, Trial], outcomes: Iterable[Outcome], now: float) -> dict[str, Trial]:
    """Note how bets ended, each machine once. A later outcome of the same machine takes the place of an earlier one."""
    trials = dict(known)
    for outcome in outcomes:
        before, rule = trials.get(outcome.scope), _RULES.get(outcome.scope.partition("/")[0], _Rule())
        if outcome.won:
            after = _won(before, outcome, rule, now) if before else None
        elif before and outcome.name and outcome.name in before.failed:
            continue
        else:
            after = _lost(before, outcome, rule, now)
        if after is None:
            trials.pop(outcome.scope, None)
        else:
            trials[outcome.scope] = after
    return trials


def _won(before: Trial, outcome: Outcome, rule: _Rule, now: float) -> Trial | None:
    """Note a win; None if no loss is left to remember. A win of what was launched before the last loss counts in the share alone."""
    if before.launch and not outcome.name:  # accepted once more: whether it stays is known once the machine runs
        return replace(before, until_at=now + CAPACITY_PAUSES[0])
    after = _with(before, outcome, rule)
    if not (after.is_closed and outcome.at is not None and outcome.at < before.failed_at):
        after = replace(after, failures=0, pauses=0, wins=before.wins + 1, until_at=min(before.until_at, now))
    return after if rule.by_share and not all(after.outcomes.values()) else None


def _lost(before: Trial | None, outcome: Outcome, rule: _Rule, now: float) -> Trial:
    """Note a loss. What was launched before the last one was known counts in the share alone: forty that fail together fail once."""
    if before is None or (outcome.version and differ(before.version, outcome.version)):
        before = Trial(failures=0, since_at=now, failed_at=0.0, until_at=now, why="", failed=before.failed if before else ())
    at = now if outcome.at is None else outcome.at
    names = (*before.failed, outcome.name)[-FAILED_KEPT:] if outcome.name else before.failed
    if not outcome.counts:
        return replace(before, failed=names)
    after = replace(
        before, why=outcome.why, said=outcome.said, failed=names, version=outcome.version or before.version, launch=outcome.launch
    )
    if at < before.failed_at:
        return _with(after, outcome, rule)
    after = _with(replace(after, failures=before.failures + 1, since_at=before.since_at if before.failures else now), outcome, rule)
    pauses = outcome.pauses or rule.pauses
    until_at = max(now, at + pauses[min(before.pauses, len(pauses) - 1)]) if after.is_closed else before.until_at
    return replace(after, failed_at=now, wins=0, pauses=before.pauses + after.is_closed, until_at=until_at)


def _with(trial: Trial, outcome: Outcome, rule: _Rule) -> Trial:
    """Add an outcome, and say whether the scope is closed now."""
    if not rule.by_share:
        return replace(trial, is_closed=trial.failures >= rule.least)
    name = outcome.name or f"{trial.failures}"  # what EC2 refuses whatever the machine is counts each time
    others = {other: won for other, won in trial.outcomes.items() if other != name}
    outcomes = dict([*others.items(), (name, outcome.won)][-_OUTCOMES_KEPT:])
    losses = list(outcomes.values()).count(False)
    return replace(trial, outcomes=outcomes, is_closed=losses >= rule.least and 2 * losses > len(outcomes))


def opened(known: Mapping[str, Trial], scopes: Iterable[str], late: Collection[str], now: float) -> dict[str, Trial]:
    """Open scopes, since a person says that they are mended. ``late``: machines that are known to fail by now, and count no more."""
    return {**known, **{scope: _opened(known[scope], late, now) for scope in scopes if scope in known}}


def _opened(before: Trial, late: Collection[str], now: float) -> Trial:
    failed = tuple(dict.fromkeys((*before.failed, *late)))[-FAILED_KEPT:]
    opened_now = replace(before, failures=0, pauses=0, wins=0, outcomes={}, is_closed=False)
    return replace(opened_now, failed_at=now, until_at=now, failed=failed)


def trials_of(memory: Memory, kind: TrialOf) -> dict[str, Trial]:
    """Return the trials of one kind of scope, by what follows the kind in its name."""
    prefix = kind.scope("")
    return {scope.removeprefix(prefix): trial for scope, trial in memory.trials.items() if scope.startswith(prefix)}


def boots_counted(memory: Memory) -> set[str]:
    """Name the instances whose failed boots, or starts, have counted."""
    return {
        instance_id
        for kind in (TrialOf.BOOT, TrialOf.IMAGE, TrialOf.START)
        for trial in trials_of(memory, kind).values()
        for instance_id in trial.failed
    }


def failing(memory: Memory, scope: str) -> Trial | None:
    """Return the trial of a scope that failed and has not worked since; None where it works, as far as anybody knows."""
    trial = memory.trials.get(scope)
    return trial if trial and trial.is_failing else None


def closed(memory: Memory, scope: str) -> Trial | None:
    """Return the trial of a scope in which few are tried at once; None where as many may be as are needed."""
    trial = memory.trials.get(scope)
    return trial if trial and trial.is_closed else None


def offered(pool: Pool, memory: Memory, now: float) -> tuple[Offering, ...]:
    """List what as many agents as are needed may be asked for: on each market where not everything has failed, what may work."""
    if pool.of_hosts or _wide(pool, memory):
        return ()
    if not memory.trials:
        return pool.offerings
    free = _free(pool, memory, now)
    good = [one for one in free if not (is_taken_back(memory, pool.name, one, now) or boots_badly(memory, pool.name, one))]
    # If one type boots badly in a subnet, so may others: the subnet may have no way out.
    lost = {one.subnet for one in pool.offerings if boots_badly(memory, pool.name, one)}
    return tuple([one for one in good if one.subnet not in lost] or good) or free


def _free(pool: Pool, memory: Memory, now: float) -> tuple[Offering, ...]:
    """List the offerings whose pause has ended, or that work, on each market where any works."""
    failed = _failed(pool, memory)
    works = {offering.market for offering in pool.offerings if offering not in failed}
    pausing = {offering for offering, trial in failed.items() if now < trial.until_at}
    return tuple(offering for offering in pool.offerings if offering.market in works and offering not in pausing)


def is_taken_back(memory: Memory, pool: str, offering: Offering, now: float) -> bool:
    """Tell whether EC2 took machines of an offering back lately, so that it is asked for last."""
    trial = failing(memory, TrialOf.TAKEN_BACK.scope(pool, offering.key))
    return trial is not None and now < trial.until_at


def boots_badly(memory: Memory, pool: str, offering: Offering) -> Trial | None:
    """Return the trial of an offering on which the last boot failed: it is asked for after those on which boots work."""
    return failing(memory, TrialOf.PLACE.scope(pool, offering.key))


def places_to_try(pool: Pool, memory: Memory, now: float, under_way: Collection[str]) -> tuple[Offering, ...]:
    """List what boots badly, and one of several agents may try again now: what was tried last comes last, and one is tried at a time.

    ``under_way``: scopes in which an agent is to connect yet.
    """
    lost = {one: trial for one in pool.offerings if (trial := boots_badly(memory, pool.name, one))}
    if any(not trial.width(now) or TrialOf.PLACE.scope(pool.name, one.key) in under_way for one, trial in lost.items()):
        return ()
    return tuple(sorted((one for one in _free(pool, memory, now) if one in lost), key=lambda one: lost[one].failed_at))


def _failed(pool: Pool, memory: Memory) -> dict[Offering, Trial]:
    """Return the open trials of a pool's offerings."""
    return {offering: trial for offering in pool.offerings if (trial := failing(memory, TrialOf.OFFERING.scope(pool.name, offering.key)))}


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


def offerings_of(record: Record, pool: Pool, instance: Instance | None) -> Iterator[Offering]:
    """Name the offerings of its pool that an agent may be of. EC2 lists no subnet of an instance that has ended."""
    for offering in pool.offerings:
        is_its_place = instance is None or (offering.market == instance.market and offering.subnet in {"", instance.subnet})
        if offering.instance_type == record.instance_type and is_its_place:
            yield offering


def places_of(record: Record, fleet: Fleet, instances: Mapping[str, Instance]) -> tuple[str, ...]:
    """Name the scopes of the type, subnet and market that an agent was launched on; of one that has ended EC2 tells no subnet."""
    pool, instance = fleet.pools.get(record.pool), instances.get(record.machine)
    if pool is None or instance is None:
        return ()
    offerings = offerings_of(record, pool, None if instance.state.ended else instance)
    return tuple(TrialOf.PLACE.scope(pool.name, offering.key) for offering in offerings)


def is_pausing(memory: Memory, scope: str, pool: Pool, now: float) -> bool:
    """Tell whether nothing is tried in a scope now."""
    trial = failing(memory, scope)
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
    return {scope: trial for scope in (TrialOf.POOL.scope(pool.name), ACCOUNT) if (trial := failing(memory, scope))}


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


# Boots and steps that keep failing are tried less often, and a person is told.
#
# A pool whose agents do not boot is paused, longer each time, then tried with one agent, with four once it connects, then with all. A step
# in Jenkins that an account without a right, or a login proxy, refuses each minute for ever is tried again now and then, and nobody counts
# on it.


# How the causes of failed boots begin of which only the machine knows more.
MISSED, BY_EC2 = "it did not ", "EC2 says "
_AGENT_SAYS = "autoscaler-agent: "  # what its lines begin with
# So much of a console's line is kept: enough to know the cause by.
LINE_CHARACTERS = 200
# A machine that EC2 refused to start is remembered for so long: jobs may come seldom.
REFUSED_KEPT_SECONDS = 86_400.0
# A failing step that nobody has wanted for so long is over.
FAILING_FORGOTTEN_SECONDS = 900.0


def note_consoles(known: Mapping[str, Trial], consoles: Mapping[str, str]) -> dict[str, Trial]:
    """Keep the last line that the last failed boot of a scope wrote on its console. ``consoles``: by instance id."""
    with_console = {scope: trial for scope, trial in known.items() if trial.failed and trial.failed[-1] in consoles}
    return {**known, **{scope: replace(trial, said=_last_line(consoles[trial.failed[-1]])) for scope, trial in with_console.items()}}


def _last_line(console: str) -> str:
    """Return the last line that the agent's service wrote, or the last of any."""
    lines = [line.strip() for line in console.splitlines() if line.strip()]
    of_agent = [line[line.index(_AGENT_SAYS) :] for line in lines if _AGENT_SAYS in line]
    return (of_agent or lines or [""])[-1][:LINE_CHARACTERS]


def boots_failed(trial: Trial) -> int:
    """Count the boots that failed; of those that were launched together each, as far as they are remembered."""
    return max(trial.failures, len(trial.failed))


def at_once(trial: Trial, then: str) -> str:
    """Say how many agents are tried at once, and until what."""
    agents = f"{WIDER**trial.wins:.0f} agents are" if trial.wins else "one agent is"
    return f"{agents} tried until {then}"


def told_last(trial: Trial) -> str:
    """Say why the last boot failed; "" if nobody knows. Unless Jenkins is the cause, what stands on the machine's console may be it."""
    is_known = bool(trial.why) and not trial.why.startswith((MISSED, BY_EC2))
    console = f"its console ended: {trial.said}" if trial.said and not is_known else ""
    return "; ".join(filter(None, (trial.why, console)))


def told_boots(trial: Trial) -> str:
    """Say how often boots failed, in a row unless others worked in between, and why the last one did, if known."""
    boots = boots_failed(trial)
    failed = "the last boot failed" if boots == 1 else f"{boots} boots{'' if any(trial.outcomes.values()) else ' in a row'} failed"
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


def step_trial(memory: Memory, key: str) -> Trial | None:
    """Return how often a step has failed in a row, by its key; None where it did not."""
    return memory.trials.get(TrialOf.STEP.scope(key))


def steps_done(view: ControllerView | None) -> set[str]:
    """Name the steps that came true by themselves: an online node is uncordoned, a beacon is there."""
    nodes = [(view.name, node) for node in view.nodes] if view is not None and view.complete else []
    done = {_key(CREATE_BEACON, controller, node.name) for controller, node in nodes}
    return done | {_key(_UNCORDON, name, node.name) for name, node in nodes if not node.offline and CORDONED_LABEL not in node.labels}


def step_kept_seconds(key: str, step: Trial) -> float:
    """Say for how long a step is remembered that nobody tries any more. A machine may not be asked to start again for hours."""
    return REFUSED_KEPT_SECONDS if key.startswith(f"{START}/") and not step.is_closed else FAILING_FORGOTTEN_SECONDS


def cannot_come_back(memory: Memory, agent: Agent) -> Trial | None:
    """Tell whether uncordoning an agent failed when last tried: it is no supply until it succeeds."""
    return step_trial(memory, _key(_UNCORDON, agent.record.controller, agent.record.node or ""))


def failing_labels(memory: Memory, agent: Agent) -> Trial | None:
    """Tell whether giving an agent its labels back failed when last tried."""
    keys = (_key(action, agent.record.controller, agent.record.node or "") for action in (_ACTIONS[Relabel], _UNCORDON))
    return next((step for key in keys if (step := step_trial(memory, key))), None)


def steps_that_keep_failing(memory: Memory) -> dict[str, Trial]:
    """Return the steps that a person must see to. A machine that does not start is terminated, and told by a message of its own."""
    return {key: step for key, step in trials_of(memory, TrialOf.STEP).items() if step.is_closed and not key.startswith(START)}


def has_failed_often(memory: Memory, step: Step) -> bool:
    """Tell whether a step that has failed once more will not be tried again."""
    before = step_trial(memory, key_of(step) or "")
    return before is not None and before.failures + 1 >= _RULES[TrialOf.STEP].least


def hold_failing(memory: Memory, decided: Iterable[Step | Held], now: float) -> Iterator[Step | Held]:
    """Hold a step that keeps failing until it is time to try it again."""
    for step in decided:
        key = key_of(step) or ""
        trial = step_trial(memory, key)
        if trial is None or trial.width(now):
            yield step
        else:
            yield Held(pool=step.pool or "", controller=step.controller, reason=Reason.KEEPS_FAILING, detail=told_failing(key, trial, now))


def told_failing(key: str, step: Trial, now: float) -> str:
    """Say which step keeps failing, for how long, why, and when it is tried again."""
    again = duration(max(0.0, step.until_at - now))
    return f"{key} has failed {step.failures} times in {duration(now - step.since_at)}, tried again in {again}: {step.why}"


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
    refused = failing(memory, TrialOf.CONNECT.scope(controller))
    if refused is None or now >= refused.until_at:
        return ""
    return f"no new agent can connect to {controller} ({refused.why}); one is tried at {moment(refused.until_at)}"


def connections(memory: Memory, agents: Iterable[Agent]) -> Iterator[Outcome]:
    """Say which new agents a controller refuses for what would keep all others from it, too, and which it has let connect since."""
    for agent in agents:
        record, scope = agent.record, TrialOf.CONNECT.scope(agent.record.controller)
        if not record.is_instance or agent.instance_ended:
            continue
        if scope in memory.trials and _works(memory.trials[scope], memory, agent):
            yield Outcome(scope=scope, won=True)
        elif record.trouble and is_for_all_agents(record.trouble) and not memory.has_connected(record.life_id):
            yield Outcome(scope=scope, at=record.began_at, why=record.trouble, name=record.instance_id)


def _works(before: Trial | None, memory: Memory, agent: Agent) -> bool:
    """Tell whether an agent has connected for the first time, or what was refused has its node and its secret now."""
    record = agent.record
    if agent.phase is Phase.READY and not memory.has_connected(record.life_id):
        return True
    was_refused = before is not None and record.instance_id in before.failed
    return was_refused and record.state is RecordState.REGISTERED and not record.trouble
