"""Builds that are followed since their agents have gone, until it is known what became of them.

A build is followed from the look that shows its agent's instance ended, stopped, or its connection lost while it was there. After a restart
of Jenkins, which knows of no connection that was lost before, all that were on agents that are not back yet are followed.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.snapshot import ControllerView, InstanceState, Node
from autoscaler.domain.facts.started_builds import LostBuild, LostFacts, RunOrder
from autoscaler.domain.repair.ran_again import is_covered, is_run_again
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.situation import Look

# A pipeline that waits for its agent for longer is not followed any more.
_FOLLOWED_SECONDS = 7 * 86_400.0
MOST_FOLLOWED = 500
_ENDED, _STOPPED = "its instance ended", "its instance was stopped"
_INTERRUPTED, _CUT_OFF = "EC2 took its instance back", "its agent is gone"
MISSING = "its agent has not come back since Jenkins restarted"
# A lost machine ends its builds the moment its connection is lost (recorded: 3 ms), or while it shuts down.
SLACK_SECONDS = 5.0


def next_lost(known: Mapping[str, LostBuild], look: Look) -> dict[str, LostBuild]:
    """Carry on which builds are followed since their agents have gone, and begin to follow those whose agents go now."""
    followed = _carried_on(known, look)
    for agent in look.agents:
        view = look.snapshot.controllers.get(agent.record.controller)
        if not (agent.pool.rerun or look.snapshot.run_orders) or view is None or not view.complete:
            continue
        if how := _how_it_went(agent) or _after_a_restart(agent, view, look):
            _follow(followed, agent, how, look)
    return dict(list(followed.items())[-MOST_FOLLOWED:])


def _carried_on(known: Mapping[str, LostBuild], look: Look) -> dict[str, LostBuild]:
    """Carry each one on by what Jenkins shows now; none for ever. If the fleet file asks for it no more, until no start is in doubt."""
    orders = look.snapshot.run_orders
    carried = [
        _seen_now(_with_its_node(lost, look), look.snapshot.controllers.get(lost.controller), look.snapshot.lost.get(lost.key))
        for lost in known.values()
        if (_is_wanted(lost, look) or orders is None or is_ordered(lost, orders)) and look.now - lost.since_at < _FOLLOWED_SECONDS
    ]
    return {lost.key: lost for lost in carried if lost}


def _is_wanted(lost: LostBuild, look: Look) -> bool:
    """Tell whether a lost build is to be run again, or may have been started: then that is settled, whatever the fleet file says now."""
    facts = look.snapshot.lost.get(lost.key)
    return is_run_again(look.fleet, lost) or facts is None or facts.may_have_been_started


def _follow(followed: dict[str, LostBuild], agent: Agent, how: str, look: Look) -> None:
    """Follow the builds of an agent that goes; those that only missed it know now how it went."""
    for key, lost in followed.items():
        if lost.how == MISSING and lost.instance_id == agent.record.instance_id:
            followed[key] = replace(lost, how=how)
    for lost in _of(agent, how, look):
        followed.setdefault(lost.key, lost)


def _how_it_went(agent: Agent) -> str | None:
    """Say how an agent went, where EC2 or Jenkins says that it did; None: it may be there."""
    if agent.instance_ended:
        return _INTERRUPTED if agent.mark is not None and agent.mark.kind is MarkClass.INTERRUPTED else _ENDED
    if agent.instance in (InstanceState.STOPPING, InstanceState.STOPPED):
        return _STOPPED
    is_cut_off = agent.node is not None and _is_disconnected(agent.node) and agent.node.lost_at is not None
    return _CUT_OFF if is_cut_off else None


def _after_a_restart(agent: Agent, view: ControllerView, look: Look) -> str | None:
    """Say that an agent is not there in the first look after a restart of Jenkins."""
    before = look.snapshot.memory.sessions.get(view.name)
    is_first = before is not None and before.session != view.session
    return MISSING if is_first and agent.node is not None and _is_disconnected(agent.node) else None


def _is_disconnected(node: Node) -> bool:
    return node.offline and not node.temporarily_offline


def _of(agent: Agent, how: str, look: Look) -> Iterator[LostBuild]:
    """Find the builds that were on an agent when it was last seen; after a restart of Jenkins those, too, that have not resumed."""
    controller, node, memory = agent.record.controller, agent.record.node or "", look.snapshot.memory
    session, window = memory.sessions.get(controller), memory.windows.get(f"{controller}/{agent.pool.name}")
    runs = {*session.busy.get(node, ()), *session.suspects.get(node, ())} - {""} if session and node else set()
    orders = look.snapshot.run_orders or ()
    for run in sorted(runs):
        if not (is_covered(agent.pool, run) or any(run in order.runs_on(controller) for order in orders)):
            continue
        yield LostBuild(
            controller=controller,
            run=run,
            pool=agent.pool.name,
            node=node,
            instance_id=agent.record.instance_id,
            how=how,
            since_at=look.now,
            seen_at=window.seen_at if window else 0.0,
            lost_at=agent.node.lost_at if agent.node else None,
            others=tuple(sorted(_elsewhere(run, node, look.snapshot.controllers[controller]))),
        )


def _elsewhere(run: str, node: str, view: ControllerView) -> set[str]:
    """Name what a run has on other nodes, and in the queue for others than this one."""
    builds = {build.key for other in view.nodes if other.name != node for build in other.builds if build.run == run}
    items = (item for item in view.items if item.run == run and node not in item.wait.nodes and item.wait.named != node)
    return builds | {f"item {item.id}" for item in items}


def _seen_now(lost: LostBuild, view: ControllerView | None, facts: LostFacts | None) -> LostBuild | None:
    """Carry one on by what Jenkins shows now; None: its agent has come back, and it goes on there or ended by itself."""
    if view is None or not view.complete:
        return lost
    node = next((node for node in view.nodes if node.name == lost.node), None)
    if node is not None and _is_back(lost, node, facts):
        return None
    lost_at = lost.lost_at if node is None or lost.lost_at is not None else node.lost_at
    begun = _elsewhere(lost.run, lost.node, view).difference(lost.others)
    return replace(lost, lost_at=lost_at, elsewhere=lost.elsewhere or bool(begun))


def _with_its_node(lost: LostBuild, look: Look) -> LostBuild:
    """Note since when its node is known to be gone: Jenkins answered that it has deleted it, or shows that there is none."""
    if lost.node_gone_at is not None:
        return lost
    records = [record for record in look.snapshot.records if record.instance_id == lost.instance_id]
    for record in records:
        for place in (*record.bindings, *record.leaves):
            if (place.controller, place.node) == (lost.controller, lost.node) and place.deleted_at:
                return replace(lost, node_gone_at=place.deleted_at)
    return replace(lost, node_gone_at=look.now) if _shows_no_node(look.snapshot.controllers.get(lost.controller), lost.node) else lost


def _shows_no_node(view: ControllerView | None, name: str) -> bool:
    if view is None or not view.complete or name in view.unread:
        return False
    return all(node.name != name or node.is_deleted for node in view.nodes)


def _is_back(lost: LostBuild, node: Node, facts: LostFacts | None) -> bool:
    """Tell whether an agent is back as it was: what it ran goes on. A machine that was stopped or ended has lost it whatever connects."""
    resumed = any(build.run == lost.run for build in node.builds) or _has_resumed_and_ended(lost, facts)
    return not node.offline and (lost.how == MISSING or (lost.how == _CUT_OFF and resumed))


def _has_resumed_and_ended(lost: LostBuild, facts: LostFacts | None) -> bool:
    """Tell whether a pipeline went on after the loss, and ended by itself: a step that cannot wait for its agent fails at once."""
    run = facts.run if facts else None
    if run is None or not run.is_pipeline or run.interruptions or run.ended_at is None or lost.lost_at is None:
        return False
    return run.ended_at > lost.lost_at + SLACK_SECONDS


def is_ordered(lost: LostBuild, orders: Iterable[RunOrder]) -> bool:
    """Tell whether a build is one of those that people ordered: what becomes of it is up to the order."""
    return any(lost.unit in order.runs_on(lost.controller) for order in orders)
