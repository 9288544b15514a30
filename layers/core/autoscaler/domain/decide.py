"""Decide what to launch, cordon, terminate and repair: snapshot and fleet file in, plan out.

An agent is launched by `scale_up`: for the queue where waiting would cost more than the agent, for an item that no
executor can ever take, for what is forecast, for a pool's minimum and its warm executors, or at a person's wish; where
it is needed now and would be kept, since it is needed again so soon; never beyond a limit.

`scale_down` terminates an agent in three steps, none of which can kill a build:
1. *cordon* what was not needed at any time inside the break-even window, and what stands idle in the way of jobs that wait;
   builds on it go on, demand brings it back;
2. *look again*: it carries our mark, is idle, was idle in an earlier look, and no queue item waits for that very node;
3. *terminate* then, after `control` has read that one node once more; or *stop*, where it is worth its disk: then its node goes,
   and an agent that is needed again is started before one is launched.
Once the month's money is spent, all agents are cordoned and go this way, until the month ends or its limit is raised; so do those of a
pool whose hours of the day are used, until midnight.
If a controller was not read completely, or its queue in parts, restarted lately or is about to shut down, none of the three happens.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.plan import Held, Plan, Step
from autoscaler.domain.facts.snapshot import Snapshot
from autoscaler.domain.gate import gate
from autoscaler.domain.launch.backoff import short_ends
from autoscaler.domain.launch.placement import take_back
from autoscaler.domain.launch.queue import launch_for_queue, launches_of
from autoscaler.domain.launch.turns import controllers_in_turn, has_lines
from autoscaler.domain.learn import assess, conclude, watch
from autoscaler.domain.lifecycle import cordon_interrupted, lifecycle
from autoscaler.domain.memo import FOR_EVER, Memo
from autoscaler.domain.repair.boots import failed_boots, taken_back
from autoscaler.domain.repair.lost_builds import run_again
from autoscaler.domain.repair.nodes import (
    bring_back_pinned,
    drain_again,
    keep_beacons,
    left_controllers,
    let_resume,
    relabels,
    relabels_for_holds,
)
from autoscaler.domain.scale_in.make_room import hand_over, let_bound_start, make_room, make_way, stop_for_month_limit
from autoscaler.domain.scale_in.replace import free_from_ended, replace_agents
from autoscaler.domain.scale_in.reserved import keep_reserved
from autoscaler.domain.scale_in.sides import drain_together, finish_rotations, left_the_file
from autoscaler.domain.scale_in.surplus import drain_left, not_worth_keeping, surplus, used_up
from autoscaler.domain.situation.agents import Phase, failed_by_marks
from autoscaler.domain.situation.situation import Decided, Situation, plan_of

# A rule looks at the situation and at what the rules before it have decided in this pass; it returns steps, and what is not done and why.
FleetRule = Callable[[Situation, Decided], Decided]
ControllerRule = Callable[[Situation, str, Decided], Decided]

UP: tuple[ControllerRule, ...] = (
    cordon_interrupted,  # what EC2 takes back takes no build
    keep_beacons,  # the nodes that make the queue name labels
    bring_back_pinned,  # what a build is bound to and was cordoned for now
    take_back,  # what was lent to jobs of a more general kind
    relabels_for_holds,  # labels that people hold, or held until now
    launch_for_queue,  # jobs that wait, forecasts, minimum, warm executors, what is kept: in the order of its LAUNCHES
)
RESUMING: tuple[ControllerRule, ...] = (
    bring_back_pinned,
    let_resume,  # what was drained for good and a resuming pipeline waits for
    let_bound_start,  # what has handed over and an item waits for by name
)
# Only where what is seen of a controller can be believed.
CORDONING: tuple[ControllerRule, ...] = (
    keep_reserved,  # what a person has takes no builds
    drain_left,  # its pool left the fleet file
    surplus,  # not needed at any time inside the break-even window
    drain_again,  # came back only for a pipeline that has resumed
    free_from_ended,  # its executors show builds that have ended
    replace_agents,  # suspect, refuses builds, marked by a monitor, or outdated: at most a share of a pool in an hour
    used_up,  # had as many builds as are wanted on one agent, or its capacity is about to end, and with it the machine
    stop_for_month_limit,  # the month's money is spent, or the hours of the day are used
    left_the_file,  # a host, or a further side of a machine, that the fleet file does not name any more
    drain_together,  # drained for good on another controller that its machine serves at once
    not_worth_keeping,  # stopped agents that are outdated, too old, or not needed for too long
)
REPAIRING: tuple[FleetRule, ...] = (
    make_room,  # idle agents that stand in the way of jobs which limits keep waiting
    make_way,  # stopped agents that hold the address or volume which a launch lacked
    hand_over,  # agents of those that come after the ones which limits keep waiting
    relabels,  # labels that a pass was cut off from changing
    left_controllers,  # agents and instances that nobody sees any more, for a person to see
    lifecycle,  # what follows from the state of each agent: drained, dead, lost, overdue, given up; and what has no record
    run_again,  # builds that were lost with their agent
    finish_rotations,  # nodes that agents have left for another controller
)

# Many rules are about things that few fleets have. A pass enters such a rule only if its condition holds.
ONLY_WHERE: Mapping[object, Callable[[Situation], bool]] = {
    **dict.fromkeys((bring_back_pinned, let_resume, let_bound_start), lambda situation: bool(situation.out_of_use)),
    keep_reserved: lambda situation: any(agent.phase is Phase.RESERVED for agent in situation.agents),
    drain_left: lambda situation: any(agent.pool.has_left for agent in situation.agents),
    drain_again: lambda situation: any(past.owed for past in situation.memory.agents.values()),
    free_from_ended: lambda situation: any(agent.node is not None and agent.node.ended for agent in situation.agents),
    used_up: lambda situation: any(pool.max_builds is not None or pool.capacity for pool in situation.fleet.pools.values()),
    stop_for_month_limit: lambda situation: bool(situation.stopped_levels),
    left_the_file: lambda situation: (
        bool(situation.left_controllers) or any(agent.pool.of_hosts or not agent.record.is_instance for agent in situation.agents)
    ),
    drain_together: lambda situation: bool(situation.sides),
    not_worth_keeping: lambda situation: any(agent.phase is Phase.STOPPED for agent in situation.agents),
    **dict.fromkeys((make_room, make_way), lambda situation: any(demand.wants for demand in situation.demands.values())),
    hand_over: lambda situation: has_lines(situation.fleet),
    left_controllers: lambda situation: (
        bool(situation.left_controllers)
        or any(instance.controller not in situation.snapshot.controllers for instance in situation.snapshot.instances)
    ),
    run_again: lambda situation: bool(situation.memory.lost),
    finish_rotations: lambda situation: any(record.leaves or record.is_host for record in situation.snapshot.records),
}
_Rule = TypeVar("_Rule", FleetRule, ControllerRule)


def _of_use(rules: Iterable[_Rule], situation: Situation) -> list[_Rule]:
    """Leave out the rules that have nothing to decide about."""
    return [rule for rule in rules if rule not in ONLY_WHERE or ONLY_WHERE[rule](situation)]


def scale_up(snapshot: Snapshot, fleet: Fleet, memo: Memo | None = None) -> Plan:
    """Decide what to bring back and what to launch. What it sees of the world, `scale_down` sees too, and remembers."""
    memo = Memo() if memo is None else memo
    # Under the lease the world is often what it was just before: then so is the plan.
    return memo.value("scale_up", (snapshot, fleet), snapshot.taken_at, lambda: (_scale_up(assess(snapshot, fleet, memo)), FOR_EVER))


def _scale_up(situation: Situation) -> Plan:
    decided: list[Step | Held] = [*launches_of(situation).tried_first]
    for controller in controllers_in_turn(situation):
        for rule in UP:
            decided += rule(situation, controller, decided)
    return plan_of(situation, gate(situation, [*decided, *launches_of(situation).tried_last]))


def scale_down(snapshot: Snapshot, fleet: Fleet, memo: Memo | None = None) -> Plan:
    """Decide what to cordon, what to give up, and what to repair."""
    situation = watch(assess(snapshot, fleet, memo))
    decided: list[Step | Held] = []
    resuming, cordoning = _of_use(RESUMING, situation), _of_use(CORDONING, situation)
    for controller in snapshot.controllers:
        for rule in resuming:
            decided += rule(situation, controller, decided)
        if reason := situation.no_giving_up(controller):
            view = snapshot.controllers[controller]
            problem = view.problem or view.in_parts or situation.disagreement or "nothing is given up meanwhile"
            decided.append(Held(pool="", controller=controller, reason=reason, detail=problem))
            continue
        for rule in cordoning:
            decided += rule(situation, controller, decided)
    for fleet_rule in _of_use(REPAIRING, situation):
        decided += fleet_rule(situation, decided)
    decided = gate(situation, decided)
    failures = failed_boots(situation, decided)
    if any(past.mark for past in situation.memory.agents.values()):
        failures += failed_by_marks(situation.memory, situation.agents, situation.versions)
    lost = taken_back(snapshot.records, snapshot.end_reasons).keys() | short_ends(snapshot)
    failures = tuple(failure for failure in failures if not (failure.instance_id in lost or situation.ended_unseen(failure.instance_id)))
    return plan_of(situation, decided, conclude(situation, decided, failures), failures)
