"""The decision: snapshot and settings in, plan out. Lambda, the simulator and the tests all call these two functions.

An agent is launched by `scale_up`: for the queue where waiting would cost more than the agent, for an item that no
executor can ever take, for what is foreseen, for a pool's minimum and its warm executors, or at a person's wish; where
it is needed now and would be kept, since it is needed again so soon; and beside those for the queue a few more, where
it pays that nobody waits for the slowest boot; never beyond a limit.

An agent is given up by `scale_down` in three steps, none of which a build can be killed by:
1. *cordon* what was not needed at any time inside the break-even window, and what stands idle in the way of jobs that wait;
   builds on it go on, demand brings it back;
2. *look again*: it carries our mark, is idle, was idle in an earlier look, and no queue item waits for that very node;
3. *terminate* then, after `control` has read that one node once more.
Once the month's money is spent, all agents are cordoned and go this way, until the month ends or its limit is raised.
Where a controller was not read completely, restarted lately or is about to shut down, none of the three happens.
"""

from dataclasses import replace

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.plan import Cordon, Held, Plan, Step
from autoscaler.domain.facts.snapshot import Snapshot
from autoscaler.domain.forecast.forecast import NOTHING
from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.launch.queue import controllers_in_turn, launch_for_queue
from autoscaler.domain.learn import remember
from autoscaler.domain.repair.bring_back import bring_back_pinned, drain_again, let_resume
from autoscaler.domain.repair.heal import keep_beacon, relabels, repairs, what_is_seen
from autoscaler.domain.repair.orphans import left_the_fleet_file
from autoscaler.domain.repair.two_looks import next_observations
from autoscaler.domain.scale_in.make_room import give_way
from autoscaler.domain.scale_in.month_limit import stop_for_month_limit
from autoscaler.domain.scale_in.reclaim import drained, unfinished
from autoscaler.domain.scale_in.replace import outdated, quarantine
from autoscaler.domain.scale_in.surplus import idle_beyond_need, surplus, watch
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.breakers import failed_boots, hold_failing
from autoscaler.domain.situation.situation import assess
from autoscaler.domain.situation.steps import Decided, plan_of, without_frozen


def scale_up(snapshot: Snapshot, fleet: Fleet) -> Plan:
    """Decide what to bring back and what to launch. What it sees of the world, `scale_down` sees too, and remembers."""
    situation = assess(snapshot, fleet)
    room = Budget(situation)
    decided: list[Step | Held] = []
    for controller in controllers_in_turn(situation):
        decided += keep_beacon(situation, controller)
        decided += bring_back_pinned(situation, controller)
        decided += launch_for_queue(situation, controller, room)
    decided = list(hold_failing(situation.memory, decided, situation.now))
    return replace(plan_of(situation, decided, situation.memory), remember=False)


def scale_down(snapshot: Snapshot, fleet: Fleet) -> Plan:
    """Decide what to cordon, what to give up, and what to repair."""
    situation = assess(snapshot, fleet)
    seen = next_observations(situation.memory.observations, what_is_seen(situation), situation.now, snapshot.invocation)
    foreseen = {controller: situation.forecasts(controller) for controller in snapshot.controllers}
    watched = {key: pool for name in snapshot.controllers for key, pool in watch(situation, name, foreseen[name]).items()}
    windows = {**situation.memory.windows, **{key: pool.window for key, pool in watched.items()}}
    returns = {**situation.memory.idle_returns, **{key: pool.idle_returns for key, pool in watched.items() if pool.idle_returns}}
    growths = {**situation.memory.growths, **{key: pool.growths for key, pool in watched.items() if pool.growths}}
    memory = replace(situation.memory, observations=seen, windows=windows, idle_returns=returns, growths=growths)
    decided: list[Step | Held] = []
    idle: list[Agent] = []
    for controller in snapshot.controllers:
        decided += bring_back_pinned(situation, controller)
        decided += let_resume(situation, controller)
        if reason := situation.no_giving_up(controller):
            problem = snapshot.controllers[controller].problem or situation.disagreement or "nothing is given up meanwhile"
            decided.append(Held(pool="", controller=controller, reason=reason, detail=problem))
            continue
        pools = {} if situation.stopped else situation.pools_of(controller)
        for name, pool in pools.items():
            due = foreseen[controller].get(name, NOTHING)
            decided += surplus(situation, pool, windows, due)
            idle += idle_beyond_need(situation, pool, windows, due)
        decided += drain_again(situation, controller, _cordons(decided))
        decided += quarantine(situation, controller, _cordons(decided))
        decided += outdated(situation, controller, _cordons(decided))
        decided += stop_for_month_limit(situation, controller, _cordons(decided)) if situation.stopped else ()
    decided += give_way(situation, idle, _cordons(decided))
    decided += relabels(situation)
    decided += left_the_fleet_file(situation)
    decided += drained(situation, seen)
    decided += repairs(situation, seen)
    decided += unfinished(situation, seen)
    decided = list(hold_failing(memory, without_frozen(situation, decided), situation.now))
    failures = failed_boots(memory, snapshot.records, situation.versions, decided)
    return replace(plan_of(situation, decided, remember(memory, situation, decided, failures)), boot_failures=failures)


def _cordons(decided: Decided) -> list[Cordon]:
    return [step for step in decided if isinstance(step, Cordon)]
