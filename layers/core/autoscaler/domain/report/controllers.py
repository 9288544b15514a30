"""Controllers that take no builds, or show nothing, for long: what people are told, and what `why` says."""

from collections.abc import Collection, Iterator

from autoscaler.domain.facts.snapshot import ControllerView
from autoscaler.domain.report.stopped import usd_per_hour_of
from autoscaler.domain.report.told import Seen
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import counted, dollars, duration, listed, moment

# What is paid and cannot be judged for so long is told, once a day.
UNREAD_SECONDS = 3600.0
UNREAD, QUIET, ENDED = "unread/", "quiet/", "ended/"
_NAMES = 10


def controllers_seen(situation: Situation, told: Collection[str]) -> Iterator[tuple[str, Seen]]:
    """Name the controllers that nobody can read while agents run there, those in long quiet modes, and those with zombies.

    ``told``: names of what people were told. Quiet mode is over when a look sees no quiet mode: not when a job has gone, nor when
    the controller cannot be read.
    """
    for view in situation.views():
        unread, quiet = f"{UNREAD}{view.name}", f"{QUIET}{view.name}"
        if not view.complete and _cost_of_unseen(situation, view.name):
            yield unread, _unread(situation, view)
        if ended := [name for name, one in situation.memory.asked.items() if one.over_at and name.startswith(f"{view.name}/")]:
            yield f"{ENDED}{view.name}", _ended(view, ended)
        if quiet in told if not view.complete else view.quieting_down and (quiet in told or _is_quiet_too_long(situation, view)):
            yield quiet, _quiet(situation, view)


def told_controller(situation: Situation, view: ControllerView) -> str:
    """Say why a controller neither takes builds nor can be judged, since when, and what follows; "" if all is well."""
    since = _since(situation, view)
    if not view.complete:
        return f"{view.name} could not be read completely{since}: {view.problem}; nothing is terminated or launched there"
    if view.quieting_down:
        return f"{in_quiet_mode(situation, view)}: it begins no build, and nothing is terminated there"
    if view.in_parts:
        return f"the queue of {view.name} was read in parts, so nothing is cordoned, stopped or terminated there: {view.in_parts}"
    reason = situation.no_giving_up(view.name)
    return f"nothing is terminated on {view.name}: {reason}" if reason else ""


def told_quiet(view: ControllerView) -> str:
    """Say what an item waits for while its controller is in quiet mode."""
    return f"it waits until {view.name} leaves quiet mode{_because(view)}"


def in_quiet_mode(situation: Situation, view: ControllerView) -> str:
    """Say why the jobs of a controller in quiet mode wait."""
    return f"{view.name} is in quiet mode{_since(situation, view)}{_because(view)}"


def _since(situation: Situation, view: ControllerView) -> str:
    at = _seen_at(situation, view.name)
    return f" since {moment(at)}" if at < situation.now else ""


def _because(view: ControllerView) -> str:
    return f" ({view.quiet_reason})" if view.quiet_reason else ""


def _seen_at(situation: Situation, controller: str) -> float:
    """When the controller was last read and took builds."""
    looks = situation.looks.get(controller)
    return looks.at if looks else situation.now


def _cost_of_unseen(situation: Situation, controller: str) -> float:
    """What agents that nobody can judge cost an hour, once that lasts for too long."""
    if situation.now - _seen_at(situation, controller) < UNREAD_SECONDS:
        return 0.0
    return sum(usd_per_hour_of(situation, record) for record in situation.snapshot.living if record.controller == controller)


def _unread(situation: Situation, view: ControllerView) -> Seen:
    agents = sum(record.controller == view.name for record in situation.snapshot.living)
    cost = dollars(_cost_of_unseen(situation, view.name))
    since = _seen_at(situation, view.name)
    text = f"It was last read at {moment(since)}, {duration(situation.now - since)} ago: {view.problem}.\n"
    then = f"{counted(agents, 'agent')} there cost {cost} an hour. Nobody can tell whether they are needed: none is launched or terminated."
    return Seen(f"controller {view.name} cannot be read", text + then, "operations.md#controller-unread", "autoscaler status", daily=True)


def _ended(view: ControllerView, names: list[str]) -> Seen:
    """Tell of builds that have ended. ``names``: the controller, the node, the executor and the run of each."""
    lines = [f"{run} on {node}" for node, _, run in (name.split("/", 3)[1:] for name in names[:_NAMES])]
    more = [f"and {len(names) - _NAMES} more"] if len(names) > _NAMES else []
    says = "Executors show builds whose own pages say that they have ended. They take no other build until their node is deleted."
    then = "Agents are drained, terminated and replaced by demand. On a host, or a static node, only a restart of Jenkins helps."
    text = "\n".join([says, *lines, *more, then])
    return Seen(f"executors of {view.name} show builds that have ended", text, "operations.md#builds-that-have-ended", "autoscaler plan")


def _is_quiet_too_long(situation: Situation, view: ControllerView) -> bool:
    """Tell whether a job waits for the end of quiet mode for longer than any pool there lets it, or agents are paid for nothing."""
    limits = [pool.spec.max_wait_seconds for pool in situation.pools_of(view.name).values()]
    waits = bool(limits) and any(item.in_quiet_mode and item.waiting_seconds >= min(limits) for item in view.items)
    return waits or bool(_paid_for_nothing(situation, view.name))


def _paid_for_nothing(situation: Situation, controller: str) -> list[Agent]:
    """List the agents that are idle in quiet mode, and cost something, once that has lasted for an hour."""
    if situation.now - _seen_at(situation, controller) < UNREAD_SECONDS:
        return []
    agents = (agent for agent in situation.agents if agent.record.controller == controller and agent.record.is_instance)
    return [agent for agent in agents if agent.idle and usd_per_hour_of(situation, agent.record)]


def _quiet(situation: Situation, view: ControllerView) -> Seen:
    waiting = [item for item in view.items if item.in_quiet_mode]
    longest = max(waiting, key=lambda item: item.waiting_seconds, default=None)
    jobs = f"{counted(len(waiting), 'job')} wait, {longest.job} for {duration(longest.waiting_seconds)}.\n" if longest else ""
    reason = f"Jenkins' reason: {view.quiet_reason}" if view.quiet_reason else "Jenkins names no reason"
    then = "It begins no build until somebody cancels that, under Manage Jenkins. Nothing is launched or terminated there meanwhile."
    text = f"{view.name} has been in quiet mode since {moment(_seen_at(situation, view.name))}. {reason}.\n"
    return Seen(
        f"{view.name} is in quiet mode, and {'jobs wait' if waiting else 'agents are idle'}",
        f"{text}{jobs}{_idle(situation, view)}{then}",
        "operations.md#quiet-mode",
        "autoscaler queue" if waiting else "autoscaler agents",
        daily=True,
    )


def _idle(situation: Situation, view: ControllerView) -> str:
    agents = _paid_for_nothing(situation, view.name)
    usd = dollars(sum(usd_per_hour_of(situation, agent.record) for agent in agents))
    names = listed([agent.record.node or agent.record.instance_id for agent in agents], _NAMES)
    return f"{counted(len(agents), 'idle agent')} cost {usd} an hour: {names}.\n" if agents else ""
