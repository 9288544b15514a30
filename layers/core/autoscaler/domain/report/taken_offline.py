"""Who took an agent out of use, when and why: from the fleet's history, and as far as it goes from the mark on the node."""

import re
from collections.abc import Collection

from autoscaler.domain.facts.metering import DAY_SECONDS
from autoscaler.domain.facts.nodes import Mark, MarkClass
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Node
from autoscaler.domain.report.event import Event
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import clock, moment

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
    if event := _set_by(mark, agent, events):
        why = _THEN.sub("", event.detail)
        reason = "" if event.reason == Reason.MANUAL else event.reason
        return ": ".join(filter(None, (f"taken offline by {event.by} at {_time(event.at, situation.now)}", reason, why)))
    since = situation.memory.draining_since.get(agent.record.instance_id)
    when = f" at {_time(since, situation.now)} or before" if since is not None else ""
    if mark.kind is MarkClass.OPERATOR:
        return f"taken offline by a person who drains it{when}"
    return f"taken offline by the autoscaler{when}: {mark.written or _MEANS[mark.kind]}"


def _set_by(mark: Mark, agent: Agent, events: Collection[Event]) -> Event | None:
    """Find the last event that set such a mark."""
    by_a_person = mark.kind is MarkClass.OPERATOR
    for event in reversed([*events]):
        is_here = event.subject == agent.record.node and event.where == "/".join(agent.key)
        if is_here and event.what == _CORDON and event.outcome == "done" and (event.reason == Reason.MANUAL) is by_a_person:
            return event
    return None


def _time(at: float, now: float) -> str:
    return clock(at) if now - at < DAY_SECONDS else moment(at)
