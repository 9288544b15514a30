"""What people were told of, the fleet's history, and who took an agent out of use."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from autoscaler.domain.facts.memory import Trial
from autoscaler.domain.facts.metering import DAY_SECONDS
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Node
from autoscaler.domain.situation.agents import MARKED_SECONDS, Agent, Phase
from autoscaler.domain.situation.bets import TrialOf, failing, trials_of
from autoscaler.domain.situation.looks import not_ahead
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import clock, counted, duration, lines_of, moment

# What people were told of, and one message to them. Data only: every function that reads the state reads this.


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Since when a condition is there, and when a look saw it last."""

    since_at: float
    seen_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble(Span):
    """Something that people were told of, and that is not over. ``title``: of the message that told them; ``told_at``: the last time."""

    title: str
    told_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What people were told of, by its name.

    ``spans``: conditions that people are told of once they have lasted; ``month``: the last one whose costs they know, as 2026-10.
    """

    version: int = 0
    month: str = ""
    troubles: Mapping[str, Trouble] = field(default_factory=dict)
    spans: Mapping[str, Span] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message: a subject of ASCII, and lines of text. ``about``: the name of its trouble."""

    about: str
    subject: str
    text: str


# Troubles of this name have no end that anybody could be told of: what a person did about them is not known here.
LOST = "lost/"


@dataclass(frozen=True, slots=True)
class Seen:
    """A trouble that is there now. ``runbook``: page and heading; ``try_it``: a command that says more; ``daily``: told again each day.

    ``cure``: when to run which command that ends it at once; "" if there is none.
    """

    title: str
    text: str
    runbook: str
    try_it: str
    daily: bool = False
    cure: str = ""


# Messages noted by a clock that was ahead count as noted now. Otherwise nobody would be told of their end before that time.


def told_by_now(told: Told, now: float) -> Told:
    """Return what people were told of, none of it later than now."""
    return replace(told, troubles=not_ahead(told.troubles, now), spans=not_ahead(told.spans, now))


def told_again(told: Mapping[str, Trouble], place: str) -> Iterator[tuple[str, Seen]]:
    """Take what people were told of in this place as still there."""
    yield from ((name, Seen(trouble.title, "", "", "")) for name, trouble in told.items() if name.startswith(place))


# One event of the fleet's history: a step that was taken or failed, or an order of a person.


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What was done, by which function or person, and why. ``at``: when it was done; ``outcome``: done or failed."""

    at: float
    by: str
    what: str  # the step, or the action of a person
    where: str = ""  # controller/pool
    subject: str = ""  # node, instance, job or count
    reason: str = ""
    detail: str = ""
    outcome: str = "done"


# What people are told of a node that somebody took offline.


def told_offline(node: Node | None) -> str:
    """Say why a node is offline and, if Jenkins names the person, who took it offline; "" if Jenkins says neither."""
    if node is None or not node.offline or not (node.reason or node.offline_by):
        return ""
    reason = f"'{node.reason}'" if node.reason else "no reason given"
    return f"taken offline by {node.offline_by}: {reason}" if node.offline_by else f"offline, and not by us: {reason}"


# Who took an agent out of use, when and why: from the fleet's history, and as far as it goes from the mark on the node.


_CORDON = "cordon"  # the step in the history
_IDLE = "idle"
# What the outcome of a cordon adds to its reason: it was true at that moment.
_THEN = re.compile(rf"(; )?({_IDLE}|one build goes on|[\d,]+ builds go on)$")
_MEANS: dict[MarkClass, str] = {
    MarkClass.RETIRE: "it is not needed now",
    MarkClass.INTERRUPTED: "EC2 announced that it takes the instance back",
    MarkClass.QUARANTINE: "builds fail or hang on it, or it is not connected",
    MarkClass.MONITOR: "a monitor of Jenkins or of a plugin took it offline before",
    MarkClass.OUTDATED: "it is outdated, or left the fleet file",
    MarkClass.MONTH_LIMIT: "the month's money is spent",
    MarkClass.DAY_LIMIT: "the hours of the day are used",
    MarkClass.USED_UP: "it has had as many builds as are wanted on one agent",
    MarkClass.HANDS_OVER: "jobs wait that go before its own",
    MarkClass.ROTATE: "it goes to another controller",
    MarkClass.RESERVED: "a person reserved it",
    MarkClass.REFUSES: "it stood free beside waiting jobs and took none",
}


def at_work(node: Node) -> str:
    """Say whether a node that takes no new builds is idle, or how many go on."""
    if node.idle and not node.builds:
        return _IDLE
    return "one build goes on" if len(node.builds) <= 1 else f"{len(node.builds):,} builds go on"


def told_mark(situation: Situation, agent: Agent, events: Collection[Event]) -> str:
    """Say who set our mark on an agent, when and why; "" if it has none. ``events``: what was done with it lately, oldest first."""
    mark = agent.mark
    if mark is None:
        return ""
    here = [one for one in events if one.subject == agent.record.node and one.where == "/".join(agent.key)]
    cordons = [one for one in here if one.what == _CORDON and one.outcome == "done"]
    set_by = [one for one in cordons if (one.reason == Reason.MANUAL) is (mark.kind is MarkClass.OPERATOR)]
    if set_by:
        event = set_by[-1]
        reason = "" if event.reason == Reason.MANUAL else event.reason
        by = f"taken offline by {event.by} at {_time(event.at, situation.now)}"
        return ": ".join(filter(None, (by, reason, _THEN.sub("", event.detail))))
    since = situation.past(agent).draining_since
    when = f" at {_time(since, situation.now)} or before" if since is not None else ""
    if mark.kind is MarkClass.OPERATOR:
        return f"taken offline by a person who drains it{when}"
    return f"taken offline by the autoscaler{when}: {mark.written or _MEANS[mark.kind]}"


def _time(at: float, now: float) -> str:
    return clock(at) if now - at < DAY_SECONDS else moment(at)


# Marks of Jenkins' monitors as people see them: which agents they took offline, in the monitor's own words, and what follows.


_RUNBOOK = "operations.md#agents-marked"
_NAMED = 5


def marks_seen(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name the controllers of which most agents are marked, and elsewhere the pools with agents that are marked for a while."""
    for controller, trial in trials_of(situation.memory, TrialOf.MARKED).items():
        if trial.is_failing:
            text = (
                f"Monitors of Jenkins took {trial.said} agents of {controller} offline: {trial.why}\n"
                "So many at once share a cause: a clock, a plugin, or what the agents have in common.\n"
                f"If jobs wait, one agent is launched {_told_next(situation, trial)}, then one an hour, until monitors leave one alone."
            )
            title = f"Jenkins takes most agents of {controller} offline"
            yield f"most-marked/{controller}", Seen(title, text, _RUNBOOK, "autoscaler agents")
    for (controller, name), pool in situation.pools.items():
        if agents := [agent for agent in pool.agents if _is_told(situation, agent)]:
            marks = {agent.record.node: mark for agent in agents if (mark := situation.past(agent).mark)}
            are_hosts = {agent.record.is_host for agent in agents}
            lines = (
                f"Monitors of {controller} took {counted(len(marks), 'agent')} of {name} offline.",
                *lines_of([f"{node}, for {duration(situation.now - mark.since_at)}: {mark.words}" for node, mark in marks.items()], _NAMED),
                "They take no builds. Others are launched, and these end once idle." if False in are_hosts else "",
                "Hosts stay as they are: see to them." if True in are_hosts else "",
            )
            title, ask = f"Jenkins took agents of {name} offline", f"autoscaler why {next(iter(marks))}"
            yield f"marked/{controller}/{name}", Seen(title, "\n".join(filter(None, lines)), _RUNBOOK, ask)


def _is_told(situation: Situation, agent: Agent) -> bool:
    mark = situation.past(agent).mark
    if mark is None or agent.instance_ended or not agent.is_of_monitor:
        return False
    most_marked = failing(situation.memory, TrialOf.MARKED.scope(agent.record.controller))
    until_at = most_marked.since_at if most_marked else situation.now  # what comes after that is told of the controller
    return until_at - mark.since_at >= MARKED_SECONDS


def _told_next(situation: Situation, trial: Trial) -> str:
    """Say when the next agent is tried."""
    left = trial.until_at - situation.now
    return f"in {duration(left)}" if left > 0 else "now"


def told_marked(situation: Situation, agent: Agent) -> Iterator[str]:
    """Say of an agent which monitor took it offline, in its own words, and what becomes of it."""
    mark = situation.past(agent).mark
    if mark is None or not agent.is_of_monitor:
        return
    yield f"a monitor of Jenkins took it offline {duration(situation.now - mark.since_at)} ago: {mark.words}"
    most_marked = failing(situation.memory, TrialOf.MARKED.scope(agent.record.controller))
    if agent.phase is not Phase.MARKED:
        yield "it ends once it is idle"
    elif agent.record.is_host:
        yield "it is a host, and stays as it is until the monitor or a person brings it online"
    elif most_marked is not None:
        tried = f"one agent is tried {_told_next(situation, most_marked)} if jobs wait"
        yield f"so are {most_marked.said} agents of {agent.record.controller}: {tried}"
    elif (left := mark.since_at + MARKED_SECONDS - situation.now) > 0:
        yield f"it is used again if the monitor brings it online; else it ends, in {duration(left)} at the soonest"
