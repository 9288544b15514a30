"""Where a metric of the whole fleet comes from: the names of agents, pools, controllers and steps behind it."""

from collections.abc import Sequence

from autoscaler.domain.facts.metering import LevelKind
from autoscaler.domain.facts.snapshot import Snapshot
from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.report.datum import Datum
from autoscaler.domain.report.limits import agents_used, held_back
from autoscaler.domain.scale_in.reclaim import is_drain_overdue
from autoscaler.domain.situation.breakers import by_pool, is_tripped, of_boot, of_connections, of_image, steps_that_keep_failing
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import dollars


def places_of(situation: Situation, data: Sequence[Datum]) -> dict[str, list[str]]:
    """Name them by metric; idle agents by pool, the dearest first."""
    idle = {dict(one.dimensions)["Pool"]: sum(one.values) for one in data if one.name == "IdleUsdPerHour" and len(one.dimensions) > 2}
    return {
        **_of_agents(situation),
        **_of_controllers(situation),
        "StateUnread": told_unread(situation.snapshot),
        "TeamsHeldBack": [use.level.text for use in held_back(situation) if use.level.kind is LevelKind.TEAM],
        "AgentsLimitUsedPercent": [
            f"{level.text} (max_agents {level.ceilings.max_agents:g})"
            for level, percent in agents_used(situation, Budget(situation))
            if percent >= 100.0
        ],
        "IdleUsdPerHour": [f"pool {pool} ({dollars(usd)} an hour)" for pool, usd in sorted(idle.items(), key=lambda of: -of[1]) if usd],
    }


def told_unread(snapshot: Snapshot) -> list[str]:
    """Name what this version cannot read of our own state, and say why not, as far as it can tell."""
    told = {f"record#{instance_id}": why.text for instance_id, why in snapshot.unread_records.items() if why.state}
    return [f"{name} ({told[name]})" if name in told else name for name in snapshot.unread]


def _of_agents(situation: Situation) -> dict[str, list[str]]:
    memory = situation.memory
    pools = {record.instance_id: record.pool for record in situation.snapshot.records}
    tripped = [pool for kind in (of_boot, of_image) for pool, trial in by_pool(memory, kind).items() if is_tripped(trial)]
    refusing = [controller for controller, trial in by_pool(memory, of_connections).items() if trial.is_open]
    return {
        "DrainsOverdue": [f"{one.record.node} of pool {one.pool.name}" for one in situation.agents if is_drain_overdue(situation, one)],
        "AgentsStuck": [f"{name} of pool {pools.get(name, '?')}" for name in memory.stuck],
        "BreakersOpen": [*(f"pool {name}" for name in tripped), *(f"controller {name}" for name in refusing)],
    }


def _of_controllers(situation: Situation) -> dict[str, list[str]]:
    views = list(situation.views())
    return {
        "StepsFailing": [*steps_that_keep_failing(situation.memory)],
        "ControllersUnread": [f"controller {view.name} ({view.problem})" for view in views if not view.complete],
        "ControllersWithoutJobs": [f"controller {view.name}" for view in views if not view.shows_jobs],
    }
