"""Messages about jobs that wait for longer than max_wait_seconds: one for each cause, in Jenkins', EC2's or a person's own words.

What has a message of its own is not told again: quiet mode, refused jobs, broken pools, marks of monitors, limits of fleet and teams.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from shlex import quote

from autoscaler.domain.facts.memory import Trial, patience_of
from autoscaler.domain.facts.orders import Hold, text_of
from autoscaler.domain.facts.plan import Held
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import ControllerView, Node, QueueItem
from autoscaler.domain.grouping import grouped
from autoscaler.domain.launch.backoff import held_by_what_is_stopped, lacks_capacity
from autoscaler.domain.launch.placement import QueuePlacement
from autoscaler.domain.launch.queue import launches_of
from autoscaler.domain.report.overdue import name_of_build, resume_option, told_takers
from autoscaler.domain.report.told import Seen, Trouble, told_again
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.bets import (
    ACCOUNT,
    TrialOf,
    at_once,
    boots_failed,
    due_at,
    failing,
    in_the_way,
    next_try_at,
    told_boots,
    told_last,
    told_refused,
)
from autoscaler.domain.situation.canary import few_at_once
from autoscaler.domain.situation.demand import Demand
from autoscaler.domain.situation.looks import EC2, elapsed_seconds
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.wants import Unmet, Want, ignored_label
from autoscaler.domain.wording import counted, duration, listed, resume_command

WAITS = "waits/"
_RUNBOOK = "operations.md#jobs-wait-too-long"
# A boot, or a build before it, is over for most jobs that have just become late.
_SOON_SECONDS = 240.0
DEFAULT_MAX_WAIT_SECONDS = 1800.0  # as in the fleet file; there is none to ask where it has no pool
# Looks that come minutes apart are passes, too, and a message of its own tells of them.
_NO_PASS_SECONDS = 900.0
_NAMED = 3
_WORDS_CHARACTERS = 80
# Reasons of which messages of their own tell, beside those of `_OF_POOLS`, and how the names of these begin.
_TOLD_BY = {
    Reason.MOST_MARKED: "most-marked/",
    **dict.fromkeys((Reason.FLEET_MAX_AGENTS, Reason.TEAM_MAX_AGENTS), "limit/agents"),
    **dict.fromkeys((Reason.LAUNCH_RATE, Reason.USD_PER_HOUR, Reason.HOURS_PER_DAY, Reason.NOT_ITS_TURN), "limit/"),
    Reason.OF_HOSTS: "host/",
}
_OF_POOLS = ("breaker", "image", "starts", "taken-back", "launches")
# EC2 refuses launches: one cause, whichever of them holds in this look.
_REFUSED = (Reason.NO_OFFERING, Reason.POOL_PAUSED, Reason.ACCOUNT_THROTTLED)
# Held for a broken pool, and told by what is said of its breaker.
OF_BREAKERS = (Reason.BREAKER_OPEN, Reason.ONE_TRIAL)
# Nothing keeps an agent from the job here: waiting, or another pool, is cheaper.
CHOICES = (Reason.WORTH_WAITING, Reason.NOT_LENT)
# Builds and boots that jobs wait for are told as one cause, and not while another cause was there a moment ago: it may explain both.
_AGENTS = "agents/"
_BOOT_TROUBLE = "boots/"


# What keeps jobs waiting: a name that is the same for all of them, and the message, without what is said of these jobs.
Cause = tuple[str, Seen]
# Name and title of such a cause are those of the message that reports this limit later on.
_LIMIT = "limit/"


def _cause(*, name: str, title: str, says: str, runbook: str = _RUNBOOK, cure: str = "") -> Cause:
    """Make a cause. ``says``: in the words of EC2, of Jenkins or of a person."""
    return name, Seen(title, says, runbook, "", cure=cure)


def waits_seen(situation: Situation, told: Mapping[str, Trouble], seen: Collection[str]) -> Iterator[tuple[str, Seen]]:
    """Name the causes for which jobs wait too long. ``told``: what people were told; ``seen``: names of all other messages now.

    While a controller cannot be read nobody knows whether its jobs still wait: nothing that was told of it is over.
    """
    for view in situation.snapshot.controllers.values():
        if not view.complete:
            yield from told_again(told, f"{WAITS}{view.name}/")
            continue
        place = f"{WAITS}{view.name}/"
        yield from _still_told(situation, view.name, told, seen)
        is_explained = any(name.startswith(place) and not is_slow(name) for name in told)
        causes = [pair for pair in _causes(situation, view, {*seen, *told}) if not (is_explained and pair[1][0].startswith(_AGENTS))]
        for name, alike in grouped((cause[0], (item, cause)) for item, cause in causes).items():
            yield name if name.startswith(_LIMIT) else f"{place}{name}", _seen(view.name, alike[0][1], [item for item, _ in alike])


def _still_told(situation: Situation, controller: str, told: Mapping[str, Trouble], seen: Collection[str]) -> Iterator[tuple[str, Seen]]:
    """Keep open what another message goes on to tell: Jenkins' words for a job that is refused, and first failed boots of a pool.

    Jenkins' words stay, too, while agents are tried for the jobs of which it says them.
    """
    place, demand = f"{WAITS}{controller}/", situation.demands[controller]
    if demand.refused:
        yield from told_again(told, f"{place}{Reason.UNCLEAR}/")
    for name in {_of_unknown(item)[0] for item in demand.unknown}:
        yield from told_again(told, f"{place}{name}")
    for pool in (name.partition("/")[2] for name in seen if name.startswith("breaker/")):
        yield from told_again(told, f"{place}{_BOOT_TROUBLE}{pool}")


def is_slow(name: str) -> bool:
    """Tell whether a message is told only once its cause has lasted: builds and boots that jobs wait for, and a place of bad boots.

    As an outage of all places ends, one of them boots before the others.
    """
    return name.startswith("place/") or (name.startswith(WAITS) and f"/{_AGENTS}" in name)


def _seen(controller: str, cause: Cause, items: list[QueueItem]) -> Seen:
    # Stages of one run, and builds of one job, are one entry.
    by_job = grouped((item.job, item) for item in sorted(items, key=lambda item: -item.waiting_seconds))
    several = {job: f" ({counted(len(of), 'stage' if of[0].run else 'build')})" * (len(of) > 1) for job, of in by_job.items()}
    jobs = listed([f"{job or 'a job'}{several[job]} for {duration(of[0].waiting_seconds)}" for job, of in by_job.items()], _NAMED)
    name, seen = cause
    text = f"{seen.text}\n{counted(len(by_job), 'job')} on {controller} wait for that too long (max_wait_seconds): {jobs}."
    title = seen.title if name.startswith(_LIMIT) else f"jobs on {controller} wait: {seen.title}"
    return replace(seen, title=title, text=text, try_it=f"autoscaler why {quote(next(iter(by_job)))}")


def _causes(situation: Situation, view: ControllerView, others: set[str]) -> Iterator[tuple[QueueItem, Cause]]:
    demand = situation.demands[view.name]
    for item, holds in demand.held:
        if _is_late(situation, view.name, item):
            yield item, _of_holds(situation, holds)
    for unmet in late_unmet(situation, view.name):
        if unmet.reason is Reason.JOB_TOO_LONG and _has_its_own(view.name, unmet, others):
            continue
        yield unmet.item, _of_unmet(view, unmet)
    wanted = {want.item.id for want in demand.wants} | {job.want.item.id for job in demand.refused}
    for item in demand.unknown:
        if item.id not in wanted:
            yield item, _of_unknown(item)
    if not view.quieting_down:
        yield from _of_wants(situation, view, demand, others)
        yield from _of_old_nodes(situation, view, demand)


def _has_its_own(controller: str, unmet: Unmet, others: Collection[str]) -> bool:
    """Tell whether a message of its own says that a job takes too long: only so many are sent."""
    from autoscaler.domain.report.declined import name_of_untaken  # noqa: PLC0415 - for fleets with max_job_seconds only

    return name_of_untaken(controller, unmet.item) in others


def late_unmet(situation: Situation, controller: str) -> list[Unmet]:
    """Find the items that no pool serves, each of which has waited for longer than anybody should: another cloud may serve younger ones."""
    return [unmet for unmet in situation.demands[controller].unmet if _is_late(situation, controller, unmet.item)]


def _is_late(situation: Situation, controller: str, item: QueueItem, pools: Collection[str] = (), soon: float = 0.0) -> bool:
    """Tell whether an item waits for longer than its pools let it; if it has none, than any of its controller, or of the fleet, does.

    Without any pool in the fleet file: than the default.
    """
    specs = [view.spec for name, view in situation.pools_of(controller).items() if not pools or name in pools]
    specs = specs or list((situation.fleet.pools or situation.fleet.left_pools).values())
    return item.waiting_seconds >= min((spec.max_wait_seconds for spec in specs), default=DEFAULT_MAX_WAIT_SECONDS) + soon


def _of_holds(situation: Situation, holds: tuple[Hold, ...]) -> Cause:
    """Name the hold that weighs most; say of each by whom it is and when it ends."""
    first = holds[0]
    place = f"{first.scope} {first.name}".strip()
    return _cause(
        name=f"held/{place}/{first.by}",
        title=f"{first.by} holds {place}",
        says=f"{text_of(holds, situation.now)}.",
        runbook="operations.md#budget" if first.is_budget else _RUNBOOK,
        cure=f"To end the hold now: autoscaler resume {resume_option(first)}",
    )


def _of_unmet(view: ControllerView, unmet: Unmet) -> Cause:
    wait = unmet.item.wait
    asked = unmet.item.asked_label or wait.named or ", ".join(wait.nodes) or "no label"
    titles = {
        Reason.WAITS_FOR_NODE: f"{asked} alone can take them",
        Reason.UNSERVABLE: f"no pool serves {asked}",
        Reason.JOB_TOO_LONG: f"they take too long for each pool that serves {asked}",
    }
    expression = unmet.expression
    takers = (node for node in view.nodes if node.name == asked or (expression is not None and expression.matches(node.labels)))
    nodes = list(filter(None, map(_state_of_node, takers)))
    return _cause(
        name=f"{unmet.reason}" if unmet.reason is Reason.LABEL_UNKNOWN else f"{unmet.reason}/{asked}",
        title=titles.get(unmet.reason, "Jenkins does not name their label"),
        says="; ".join([unmet.detail, *nodes[:_NAMED]]) + ".",
        runbook="operations.md#queue-unservable" if unmet.reason is Reason.UNSERVABLE else _RUNBOOK,
    )


def _state_of_node(node: Node) -> str:
    """Say what a node does, or why it is offline, in Jenkins' words."""
    if node.offline:
        return f"{node.name} is offline: {node.reason}" if node.reason else f"{node.name} is offline"
    return f"{node.name} is busy with {listed([name_of_build(build) for build in node.builds])}" if node.builds else ""


def _of_unknown(item: QueueItem) -> Cause:
    words = " ".join(item.wait.unclear.split())
    name = re.sub(r"\d+", "#", words)[:_WORDS_CHARACTERS]
    return _cause(name=f"{Reason.UNCLEAR}/{name}", title=words[:_WORDS_CHARACTERS], says=f"{Reason.UNCLEAR.meaning} Jenkins says: {words}")


def _of_old_nodes(situation: Situation, view: ControllerView, demand: Demand) -> Iterator[tuple[QueueItem, Cause]]:
    """Name the parts of pipelines that wait for the node that they had before a restart."""
    ids = {want.item.id for want in demand.wants} | {unmet.item.id for unmet in demand.unmet} | {job.want.item.id for job in demand.refused}
    ids |= {item.id for item, _ in demand.held} | {item.id for item in demand.unknown}
    nodes_by_name = {node.name: node for node in view.nodes}
    for item in view.items:
        if (
            item.starved
            and item.id not in ids
            and not ignored_label(situation.fleet, nodes_by_name, item)
            and _is_late(situation, view.name, item)
        ):
            nodes = listed([*item.wait.nodes, *filter(None, [item.wait.named])])
            yield item, _cause(name="old-node", title="the nodes that they had before a restart", says=f"They wait for {nodes}.")


def _of_wants(situation: Situation, view: ControllerView, demand: Demand, others: set[str]) -> Iterator[tuple[QueueItem, Cause]]:
    late = [want for want in demand.wants if _is_late(situation, view.name, want.item, [pool.name for pool in want.pools])]
    placement = launches_of(situation).placements.get(view.name) if late else None
    if placement is None:
        return
    for want in late:
        if (cause := _of_want(situation, placement, want, others)) is not None:
            yield want.item, cause


def _of_want(situation: Situation, placement: QueuePlacement, want: Want, others: set[str]) -> Cause | None:
    """Find what keeps an item that pools may serve; None if another message says it, or if it is about to begin."""
    names = {pool.name for pool in want.pools}
    held = [refusal for refusal in placement.purchase.held.values() if refusal.pool in names]
    told_by = tuple(_TOLD_BY[refusal.reason] for refusal in held if refusal.reason in _TOLD_BY)
    if any(name.startswith(told_by) for name in others) or _has_a_message(situation, placement.controller, want, others):
        return None
    if (cause := _of_people_or_ec2(situation, placement.controller, sorted(names))) is not None:
        return cause
    if (first := next((refusal for refusal in held if refusal.reason not in (*CHOICES, *_REFUSED)), None)) is not None:
        # Which boots failed is said before there are so many that they have a message of their own.
        trial = situation.memory.trials.get(TrialOf.BOOT.scope(first.pool)) if first.reason in OF_BREAKERS else None
        return _of_held(first) if trial is None else _of_failed_boots(first.pool, trial)
    return _of_agents(situation, placement, want, names)


def _of_people_or_ec2(situation: Situation, controller: str, pools: list[str]) -> Cause | None:
    """Name the person who holds one of these pools, or what EC2 answers instead of launching its agents, or that no pass is completed."""
    for name in pools:
        if holds := situation.overrides.holds_on(controller, name):
            return _of_holds(situation, holds)
        # What EC2 took back is told elsewhere.
        if refusals := ", ".join(sorted({trial.why for trial in in_the_way(situation.fleet.pools[name], situation.memory).values()})):
            title = f"EC2 refuses launches of {name}"
            return _cause(name=f"ec2/{name}", title=title, says=f"{title}: {refusals}.", runbook="operations.md#launches-refused")
    looks = situation.snapshot.memory.controller(EC2).looks
    if looks is not None and situation.now - looks.at > _NO_PASS_SECONDS:
        return _cause(
            name="no-pass",
            title="no pass is completed",
            says="Nothing is launched or terminated: scale_up and scale_down fail, as if EC2 cannot be read, or do not run.",
            runbook="operations.md#autoscaler-down",
        )
    return None


def _has_a_message(situation: Situation, controller: str, want: Want, others: set[str]) -> bool:
    """Tell whether a message says what is wrong with its pools or its controller, who refuses it, or how long it must wait."""
    of_pools = {f"{kind}/{pool.name}" for kind in _OF_POOLS for pool in want.pools}
    of_controller = {f"quiet/{controller}", f"connect/{controller}", "launches/account"}
    is_refused = any(ration.is_closed and want.item.job in ration.jobs for ration in situation.distrust[controller].rations.values())
    return is_refused or want.item.waiting_seconds < want.patience_seconds or not others.isdisjoint(of_pools | of_controller)


def _of_failed_boots(pool: str, trial: Trial) -> Cause:
    last = f", {trial.failed[-1]}" if trial.failed else ""
    few = f" Now {at_once(trial, 'one connects')}." if trial.is_closed else ""
    return _of_boot_trouble(pool, f"{pool}: {told_boots(trial)}{last}.{few}")


def _of_boot_trouble(pool: str, says: str) -> Cause:
    return _cause(name=f"{_BOOT_TROUBLE}{pool}", title=f"agents of {pool} do not come up", says=says, runbook="operations.md#breakers-open")


def _of_held(held: Held) -> Cause:
    if held.reason is Reason.USD_PER_MONTH:
        of, place = ("", "") if held.limit_of in ("", "the fleet") else (f" of {held.limit_of}", f"/{held.limit_of}")
        return _cause(
            name=f"limit/usd-per-month{place}",
            title=f"the month's limit{of} is reached",
            says=f"Jobs wait: {held.detail}.",
            runbook="operations.md#usd-per-month",
        )
    return _cause(
        name=f"{held.reason}/{held.pool}",
        title=f"{held.reason} of {held.pool}",
        says=f"{held.reason.meaning.removesuffix('.')}: {held.detail}.",
    )


def _of_agents(situation: Situation, placement: QueuePlacement, want: Want, names: set[str]) -> Cause | None:
    """Say which builds, or which boots, an item waits for."""
    agents = [agent for agent in situation.agents if agent.record.controller == placement.controller and agent.pool.name in names]
    pools = ", ".join(sorted(names))
    boots = [agent for agent in agents if agent.phase.boots]
    busy = [agent for agent in agents if agent.busy_executors and agent.phase is Phase.READY]
    if trouble := _boots_in_trouble(situation, boots, is_only_hope=not busy):
        return trouble
    if not _is_late(situation, placement.controller, want.item, names, _SOON_SECONDS):
        return None
    if busy:
        title, says = f"executors of {pools} are busy", f"The executors of {pools} are busy: {listed(_longest(situation, busy))}."
    elif boots:
        title, says = f"agents of {pools} boot", _of_boot(situation, boots)
    else:
        title, says = f"no executor of {pools} takes them", "No executor that is there or on its way takes them, and none is launched now."
    return _cause(name=f"{_AGENTS}{pools}", title=title, says=says)


def _boots_in_trouble(situation: Situation, boots: list[Agent], *, is_only_hope: bool) -> Cause | None:
    """Tell of a boot that takes too long, or that comes after one that failed and is all that the jobs wait for."""
    if late := [agent for agent in boots if _boots_too_long(situation, agent)]:
        return _of_boot_trouble(min(late, key=lambda agent: agent.record.began_at).pool.name, _of_boot(situation, late))
    for pool in sorted({agent.pool.name for agent in boots} if is_only_hope else ()):
        trial = situation.memory.trials.get(TrialOf.BOOT.scope(pool))
        if trial is not None and trial.failures:
            return _of_failed_boots(pool, trial)
    return None


def _boots_too_long(situation: Situation, agent: Agent) -> bool:
    """Tell whether a boot or a start takes twice as long as usual, or longer."""
    pool = situation.pools.get(agent.key)
    if pool is None:
        return False
    usual = pool.start_seconds if agent.record.starts else pool.boot_seconds
    return situation.seen_seconds(agent.record.controller, agent.record.began_at) > 2 * usual


def _of_boot(situation: Situation, agents: list[Agent]) -> str:
    """Name the agent that boots longest, and what keeps it."""
    first = min(agents, key=lambda agent: agent.record.began_at).record
    what = "starts" if first.starts else "boots"
    trouble = f"; {why}" if (why := first.trouble or first.problem) else ""
    return f"{first.node or first.instance_id} of {first.pool} {what} for {duration(situation.now - first.began_at)}{trouble}."


def _longest(situation: Situation, agents: list[Agent]) -> list[str]:
    """Name the builds that have run longest, each once, and where."""
    builds: dict[str, tuple[float, str]] = {}
    for agent in agents:
        learned = situation.snapshot.learned[agent.record.controller]
        for build in agent.node.builds if agent.node else ():
            seconds, name = elapsed_seconds(build, learned, situation.now), name_of_build(build)
            builds[name] = max(builds.get(name, (0.0, "")), (seconds, f"{name} on {agent.record.node} for {duration(seconds)}"))
    return [says for _, says in sorted(builds.values(), reverse=True)]


# Messages about jobs that free executors refuse, and about nodes that take nothing: one for each label, not one for each job.


_REFUSALS_RUNBOOK = "operations.md#free-executors-refuse"


def refusals_seen(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name the labels whose jobs wait for too long beside free executors, and the nodes that take no build."""
    for controller in situation.demands:
        distrust = situation.distrust[controller]
        for scope, ration in distrust.rations.items():
            # While an agent is tried no executor refuses the job: it waits for the same cause all the same.
            waiting = [want for want in situation.demands[controller].runnable if want.item.job in ration.jobs]
            limits = [min((pool.max_wait_seconds for pool in want.pools), default=0.0) for want in waiting]
            if ration.is_closed and any(want.item.waiting_seconds >= limit for want, limit in zip(waiting, limits, strict=True)):
                yield f"refused/{controller}/{scope}", _refused_jobs(situation, controller, scope, waiting)
        yield from _useless(situation, controller)


def _refused_jobs(situation: Situation, controller: str, scope: str, waiting: list[Want]) -> Seen:
    longest, jobs = max((want.item for want in waiting), key=lambda item: item.waiting_seconds), {want.item.job for want in waiting}
    waits, free = duration(longest.waiting_seconds), duration(situation.distrust[controller].patience_seconds)
    nodes = [name for name, node in situation.distrust[controller].nodes.items() if not jobs.isdisjoint(node.refused)]
    lines = (
        f"{counted(len(waiting), 'job')} for {scope or 'any label'} on {controller}: {longest.job} for {waits}.",
        f"{listed(nodes) or 'Agents that have ended since'} had a free executor for {free} and did not take them.",
        f"Jenkins says: {longest.wait.unclear}" if longest.wait.unclear else "",
        "" if scope else "No build has begun there meanwhile: Jenkins itself, a lock or a plugin keeps them.",
    )
    of_scope = f"free executors do not take jobs for {scope} on {controller}"
    title = of_scope if scope else f"{controller} starts no builds though executors are free"
    return Seen(title, "\n".join(filter(None, lines)), _REFUSALS_RUNBOOK, f"autoscaler why {quote(longest.job)}")


def _useless(situation: Situation, controller: str) -> Iterator[tuple[str, Seen]]:
    distrust = situation.distrust[controller]
    # What a label's jobs wait for is one cause: its own message names these nodes.
    refused = {job for ration in distrust.rations.values() if ration.is_closed for job in ration.jobs}
    useless = ((name, node) for name, node in distrust.nodes.items() if node.is_useless and node.since_at <= distrust.began_at)
    nodes = [name for name, node in useless if not node.refused.keys() <= refused]
    if nodes:
        jobs = sorted({job for name in nodes for job in distrust.nodes[name].refused})
        text = (
            f"{listed(nodes)} on {controller} had free executors for {listed(jobs)} and took no build, while other nodes did.\n"
            "These nodes count for nothing until they take a build. Idle agents are replaced, one after another."
        )
        yield f"refuses/{controller}", Seen(f"{listed(nodes, 2)} take no builds", text, _REFUSALS_RUNBOOK, f"autoscaler why {nodes[0]}")


# Messages about jobs that do not wait for agents: one for each label.


def patience_seen(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name the jobs that must wait until agents are launched for them, by controller, pools and label."""
    for controller, learned in situation.snapshot.learned.items():
        for label_set, left in learned.left_queue.items():
            pools, _, label = label_set.partition("\n")
            if (seconds := patience_of(left)) and not situation.pools_of(controller).keys().isdisjoint(pools.split(", ")):
                jobs, takers = f"jobs of {label or pools} on {controller}", told_takers(item.node for item in left)
                yield (
                    f"patience/{controller}/{pools}/{label}",
                    Seen(
                        f"{jobs} do not wait for agents",
                        f"Agents are launched for {jobs} only once these have waited {duration(seconds)}, since {takers}.\n"
                        "An agent that is launched sooner finds no job. Free executors take these jobs at once, as ever.",
                        "operations.md#patience",
                        "autoscaler queue",
                    ),
                )


# Launches that EC2 keeps refusing, for people: of which pool, with which code, since when, and when one agent tries again.


# Capacity that is back within minutes needs no person. What was refused once, and then not wanted, may be had again by now.
_LASTING_SECONDS = 170.0
_OFTEN = 2
_REFUSED_RUNBOOK = "operations.md#launches-refused"


def launches_seen(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name the pools whose launches EC2 keeps refusing, and the account if it is the cause."""
    account = failing(situation.memory, ACCOUNT)
    if account and _lasts(situation, {ACCOUNT: account}):
        again_at = min(due_at(account, pool) for pool in situation.fleet.pools.values())
        text = f"{told_refused({ACCOUNT: account}, again_at, situation.now)}.\nThis holds for launches of all pools."
        yield "launches/account", Seen("EC2 refuses launches of this account", text, _REFUSED_RUNBOOK, "autoscaler plan")
    for name, pool in situation.fleet.pools.items():
        trials = {scope: trial for scope, trial in in_the_way(pool, situation.memory).items() if scope != ACCOUNT}
        if _lasts(situation, trials):
            is_short = all(lacks_capacity(trial.code) for trial in trials.values())
            title = f"EC2 has no machines for {name}" if is_short else f"EC2 refuses launches of {name}"
            why = told_refused(trials, next_try_at(pool, situation.memory), situation.now)
            then = "Its jobs wait for that, unless another pool can take them. Launches of other pools go on."
            if any(held_by_what_is_stopped(trial.code) for trial in trials.values()):
                then = f"Stopped agents that no job waits for are terminated, since each holds one (makes-way).\n{then}"
            text = f"No agent of {name} can be had: {why}.\n{then}"
            yield f"launches/{name}", Seen(title, text, _REFUSED_RUNBOOK, f"autoscaler why {name}")


def why_no_agent(situation: Situation, pool: str) -> str:
    """Say why EC2 lets a pool have no agent, in the words of the message; "" if there is none."""
    messages = dict(launches_seen(situation))
    seen = messages.get(f"launches/{pool}") or messages.get("launches/account")
    return seen.text.splitlines()[0] if seen else ""


def _lasts(situation: Situation, trials: Mapping[str, Trial]) -> bool:
    often = max((trial.failures for trial in trials.values()), default=0) >= _OFTEN
    return often and situation.now - min(trial.since_at for trial in trials.values()) >= _LASTING_SECONDS


# Broken pools: since when their boots fail, why the last one did, and what is tried next.


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenPool:
    """A pool whose breaker is open, or that tries one agent after it was. ``why``: as far as Jenkins or the console told."""

    pool: str
    failures: int
    since_seconds: float
    instance_id: str  # of the last boot that failed
    why: str
    next: str

    def lines(self) -> Iterator[str]:
        """Tell it, a fact a line."""
        yield f"{self.pool} has been broken for {duration(self.since_seconds)}: its last {counted(self.failures, 'boot')} failed"
        if self.instance_id:
            yield f"the last was {self.instance_id}; {self.why or 'its console said nothing'}"
        yield f"next: {self.next}"
        yield f"once it is mended: {resume_command(self.pool)}"


def broken_pool(situation: Situation, pool: str) -> BrokenPool | None:
    """Describe the open breaker of a pool; None where it is closed."""
    breaker = situation.memory.trials.get(TrialOf.BOOT.scope(pool))
    if breaker is None or not breaker.is_broken:
        return None
    booting = [agent for agent in situation.agents if agent.pool.name == pool and agent.phase.boots and not agent.instance_ended]
    then = "one agent is tried as soon as jobs wait for it"
    if booting:
        last = max(booting, key=lambda agent: agent.record.launched_at).record
        these = f"{last.instance_id} boots" if len(booting) == 1 else f"{len(booting)} agents boot, {last.instance_id} the last"
        then = f"{these}, launched {duration(situation.now - last.launched_at)} ago; others follow once one connects"
    elif situation.now < breaker.until_at:
        then = f"one agent is tried in {duration(breaker.until_at - situation.now)}, if jobs wait for it then"
    return BrokenPool(
        pool=pool,
        failures=boots_failed(breaker),
        since_seconds=max(0.0, situation.now - breaker.since_at),
        instance_id=breaker.failed[-1] if breaker.failed else "",
        why=told_last(breaker),
        next=then,
    )


def why_paused(situation: Situation, pool: PoolView) -> str:
    """Say why nothing, or only one agent at a time, is launched in a pool: the reason, a colon, the details; "" where all may be."""
    broken = broken_pool(situation, pool.name)
    if pool.paused and not (broken and pool.paused is Reason.BREAKER_OPEN):
        return f"{pool.paused}: {pool.paused_detail}"
    if broken:
        reason = pool.paused or Reason.ONE_TRIAL
        why = f" ({broken.why})" if broken.why else ""
        return f"{reason}: its last {counted(broken.failures, 'boot')} failed{why}; {broken.next}"
    few = few_at_once(situation, pool.name)
    return f"{few[1]}: {few[2]}" if few else ""
