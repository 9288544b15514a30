"""The gate: what keeps an agent from its end, and a plan from steps that cannot be undone, whatever rule wants them.

`why_not_yet` says what keeps an agent whose node is in Jenkins. `gate` is the last filter of each plan: it asks that of every step that
ends a machine, so that no rule has to remember to.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from math import ceil

from autoscaler.domain.facts.nodes import MarkClass, has_static_node, may_start_on
from autoscaler.domain.facts.plan import Cordon, DeleteNode, FinishRotation, Forget, Held, Relabel, Rotate, Step, Stop, Terminate, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import OFF, RecordState
from autoscaler.domain.launch.placement import may_come_back
from autoscaler.domain.repair.nodes import is_slot_left
from autoscaler.domain.scale_in.sides import why_used_elsewhere
from autoscaler.domain.scale_in.surplus import why_in_doubt
from autoscaler.domain.situation.agents import SETTLED_SECONDS, SWEEP_AT_LEAST, SWEEP_SHARE, Agent
from autoscaler.domain.situation.bets import TrialOf, cannot_come_back, hold_failing, trials_of
from autoscaler.domain.situation.left import is_controller_left, why_not_wanted
from autoscaler.domain.situation.situation import Decided, Situation, cordon, hold_back, hold_unread, uncordon, without_frozen
from autoscaler.domain.situation.states import is_settled, is_unlabelled_twice

# What keeps one agent. The order is that in which people are told.

_Answer = Cordon | Uncordon | Held | None
Guard = Callable[[Situation, Agent], _Answer]


def is_node_gone(situation: Situation, agent: Agent) -> bool:
    """Tell whether nothing of an agent is left in Jenkins: no node, or a static node as it was before."""
    record, view = agent.record, situation.snapshot.controllers.get(agent.record.controller)
    if record.node is None or (view is None and agent.machine_gone):
        return True  # nobody can delete a node on a controller that left the fleet file: it is named
    if view is None or not view.complete or record.node in view.unread:
        return False
    return agent.node is None or (has_static_node(record) and is_slot_left(agent))


def _bound(situation: Situation, agent: Agent) -> _Answer:
    """Keep what a build may be bound to, and say which job, or which restart, that is.

    What waits for the node of a machine that has ended waits in vain; only a machine that may still run is kept for it. One that was given
    up minutes ago, and whose end was lost, is brought back for it unless it was drained for good.
    """
    if not situation.protected(agent) or (agent.record.state.is_given_up and is_node_gone(situation, agent)):
        return None
    name, controller = agent.record.node or "", agent.record.controller
    why = f"{name} drains ({agent.mark.kind})" if agent.mark else f"{name} was given up"
    for item in situation.snapshot.controllers[controller].items:
        if name in (*item.wait.nodes, item.wait.named):
            detail = f"{why}, and {item.job or 'an item'} waits for it by name"
            is_lost = agent.record.state.is_given_up and situation.now - agent.record.changed_at >= SETTLED_SECONDS
            comes_back = is_lost and agent.mark is not None and agent.mark.kind is MarkClass.RETIRE
            return (uncordon if comes_back else hold_back)(agent, Reason.PINNED, detail)
    return hold_back(agent, Reason.BUSY_BEFORE_RESTART, f"{why}, and may hold a build of before {controller} restarted")


def _kept(situation: Situation, agent: Agent) -> _Answer:
    """Keep a suspect agent that its operator wants to look at."""
    if agent.record.state.is_given_up or not situation.is_kept(agent) or (agent.record.is_host and why_not_wanted(situation, agent)):
        return None
    return hold_back(agent, Reason.KEPT, f"{agent.record.node} is kept for a person to look at: resume it, or terminate its instance")


def _wanted_back(situation: Situation, agent: Agent) -> _Answer:
    """Keep what demand counts on; one that cannot be uncordoned goes, so that another may replace it."""
    wants = situation.demands[agent.record.controller].wants if not agent.record.state.is_given_up else ()
    if not wants or not may_come_back(situation, agent) or ((step := cannot_come_back(situation.memory, agent)) and step.is_closed):
        return None
    if situation.stopped_by(agent.pool.name) or not situation.is_waited_for(agent):
        return None
    return hold_back(agent, Reason.DEMAND_IS_BACK, f"{agent.record.node} is kept: an item waits that it may take")


def _without_labels(situation: Situation, agent: Agent) -> _Answer:
    """Mark an agent without labels offline, once it was idle in two looks and no waiting item may start on it."""
    node, mark = agent.node, agent.mark
    if not agent.by_labels or node is None or mark is None:
        return None
    if not agent.idle:
        return _busy(situation, agent)
    waits = (item.job for item in situation.snapshot.controllers[agent.record.controller].items if may_start_on(item, node))
    if job := next(waits, None):
        if agent.record.reservation:  # no label brings it more
            return hold_back(agent, Reason.SECOND_LOOK, f"{job} may start on {node.name} even without its labels, which was reserved")
        return uncordon(agent, Reason.LABELS_TO_GIVE_BACK, f"{job} may start on {node.name} even without its labels")
    if is_unlabelled_twice(situation, agent):
        detail = f"the labels of {node.name} were taken, and it was idle in two looks since"
        return replace(cordon(situation, agent, mark.kind, Reason.LABELS_TAKEN, detail), mark=mark)
    return hold_back(agent, Reason.SECOND_LOOK, f"the labels of {node.name} were taken, it waits for a second look")


def _online_again(situation: Situation, agent: Agent) -> _Answer:
    """Drain again what is to go and still runs: a person who brought it online may have given it builds."""
    node = agent.node
    if node is None or not agent.record.state.is_given_up:
        return None
    if not node.offline:
        return cordon(situation, agent, MarkClass.RETIRE, Reason.CONDEMNED, "it was given up, and somebody brought its node online")
    if agent.mark is None and node.temporarily_offline:
        return hold_back(agent, Reason.MARKED_BY_A_PERSON, f"{node.name} was given up, and somebody marked it offline: {node.reason}")
    return None


def _busy(situation: Situation, agent: Agent) -> _Answer:
    """Keep what builds run on, and say for how long it has drained if that is too long."""
    if agent.idle:
        return None
    builds = agent.node.builds if agent.node else ()
    if is_drain_overdue(situation, agent):
        jobs = ", ".join(sorted(build.job or "a build" for build in builds))
        minutes = (situation.now - (situation.past(agent).draining_since or situation.now)) / 60
        return hold_back(agent, Reason.DRAIN_OVERDUE, f"{agent.record.node} has been draining for {minutes:.0f} min, busy with {jobs}")
    running = "one build is still running" if len(builds) <= 1 else f"{len(builds)} builds are still running"
    return hold_back(agent, Reason.STILL_BUSY, f"{agent.record.node}: {running}")


def is_drain_overdue(situation: Situation, agent: Agent) -> bool:
    """Tell whether builds keep an agent draining for longer than its pool's operator allows. They go on; a person is told."""
    since, limit = situation.past(agent).draining_since, agent.pool.drain_timeout_seconds
    return not agent.idle and since is not None and limit is not None and situation.seen_seconds(agent.record.controller, since) > limit


def _seen_once(situation: Situation, agent: Agent) -> _Answer:
    """Keep what was not idle in an earlier look."""
    if is_settled(situation, agent):
        return None
    return hold_back(agent, Reason.SECOND_LOOK, f"{agent.record.node} is idle, waits for a second look")


GUARDS: tuple[Guard, ...] = (_bound, _kept, _wanted_back, _without_labels, _online_again, _busy, _seen_once)


def why_not_yet(situation: Situation, agent: Agent) -> _Answer:
    """Say what comes before an agent may end, or what keeps it; None: nothing does."""
    if agent.node is None:
        return None if is_node_gone(situation, agent) else hold_unread(agent)
    return next((answer for guard in GUARDS if (answer := guard(situation, agent))), None)


# What keeps steps of a plan from being taken.


# What follows from two looks at something broken: over a larger share of a pool it is more likely our own mistake than the world's.
_REPAIRS = frozenset(
    {
        *(Reason.BOOT_TIMEOUT, Reason.START_FAILED, Reason.NODE_GONE, Reason.INSTANCE_GONE),
        *(Reason.INSTANCE_STOPPED, Reason.STOP_HANGS, Reason.LEFT_THE_FILE),
    }
)


def gate(situation: Situation, decided: Decided) -> list[Step | Held]:
    """Leave out what must not be done, and what operators have frozen, and what keeps failing until it is time to try it again."""
    admitted = without_frozen(situation, _admitted(situation, decided))
    fails = trials_of(situation.memory, TrialOf.STEP)
    return list(hold_failing(situation.memory, admitted, situation.now)) if fails else admitted


def _admitted(situation: Situation, decided: Decided) -> Iterator[Step | Held]:
    """Go through the steps one after another, and know which agents end in this plan and how many repairs each pool had."""
    agents = {agent.record.instance_id: agent for agent in situation.agents}
    sizes = Counter(agent.pool.name for agent in situation.agents)
    ended, repaired = set[str](), Counter[str]()
    for step in decided:
        agent = agents.get(step.instance_id or "") if isinstance(step, Terminate | Stop | Rotate) else None
        if isinstance(step, Held | Forget):
            yield step
        elif not _is_left_out(situation, step, agent, ended):
            answer, pool = _why_not(situation, step, agent), step.pool or ""
            if answer is None and _is_repair(step, agent):
                repaired[pool] += 1
                if repaired[pool] > max(SWEEP_AT_LEAST, ceil(SWEEP_SHARE * sizes[pool])):
                    answer = Held(pool=pool, controller=step.controller, reason=Reason.SWEEP_LIMIT, detail=step.detail)
            if answer is None and agent is not None:
                ended.add(agent.record.instance_id)
            yield answer or step


def _is_left_out(situation: Situation, step: Step, agent: Agent | None, ended: Collection[str]) -> bool:
    """Tell whether a step is left out without a word: its agent ends already, or nobody sees the builds of its controller."""
    if is_controller_left(situation, step.controller) and (agent is None or agent.record.state is not RecordState.CONDEMNED):
        return True  # a person decides
    return agent is not None and agent.record.instance_id in ended


def _is_repair(step: Step, agent: Agent | None) -> bool:
    """Tell whether a step counts towards the share of a pool that goes at once. EC2 itself says which starts have failed."""
    is_told = step.reason is Reason.START_FAILED and agent is not None and agent.instance in OFF
    return isinstance(step, Terminate | DeleteNode) and step.reason in _REPAIRS and not is_told


def _why_not(situation: Situation, step: Step, agent: Agent | None) -> _Answer:
    """Say why a step is not admitted. What is seen of a node must be believed; EC2 itself says which machines it takes back."""
    if agent is not None:
        return _why_not_ended(situation, agent, step)
    needs_sight = isinstance(step, Cordon | Relabel | DeleteNode | FinishRotation) and step.reason is not Reason.INTERRUPTED
    return _unbelieved(situation, step) if needs_sight else None


def _unbelieved(situation: Situation, step: Step) -> Held | None:
    """Refuse what is done to a node of which what is seen cannot be believed now."""
    if reason := situation.no_giving_up(step.controller):
        return Held(pool=step.pool or "", controller=step.controller, reason=reason, detail=step.detail)
    return None


def _why_not_ended(situation: Situation, agent: Agent, step: Step) -> _Answer:
    """Say what keeps a machine from its end."""
    if kept := why_used_elsewhere(situation, agent) if not isinstance(step, Rotate) else None:
        return hold_back(agent, *kept)
    if kept := why_in_doubt(situation, agent) if agent.pool.has_left and not isinstance(step, Rotate) else None:
        return hold_back(agent, *kept)
    # Nothing runs on a machine that is off; and without a node of ours no build can be.
    if agent.instance in OFF or step.node is None or agent.node is None:
        return None
    return _unbelieved(situation, step) or why_not_yet(situation, agent)
