"""Why nobody can say when a job starts, though it has a place: what it counts on was refused, is broken, or is late."""

from autoscaler.domain.facts.snapshot import MINUTE_SECONDS
from autoscaler.domain.launch.placement import PlannedStart
from autoscaler.domain.launch.queue import BareStart
from autoscaler.domain.report.kept_by_weight import Doubt, why_kept
from autoscaler.domain.situation.breakers import in_the_way, is_tripped, of_boot, of_connections, open_trial
from autoscaler.domain.situation.distrust import BROKEN_SECONDS, Want, may_take
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.supply import ANY_MOMENT_SECONDS
from autoscaler.domain.wording import clock, duration


def why_uncertain(situation: Situation, controller: str, want: Want, start: PlannedStart | BareStart | None) -> Doubt | None:
    """Say why an item may not start as planned; None if nothing speaks against it. ``start``: None for never."""
    if start is None:
        return _why_broken(situation, controller, want, "", None)
    if start.bought and (refused := _refused_by_ec2(situation, controller, start.server)) is not None:
        return refused
    kept = why_kept(situation, controller, want, start.machine, start.seconds)
    broken = kept or _why_broken(situation, controller, want, start.server, start.seconds)
    return broken or _of_late_agent(situation, start) or _of_jenkins(want)


def _refused_by_ec2(situation: Situation, controller: str, pool: str) -> Doubt | None:
    """Say that EC2 refused to launch all that a pool may have: a stopped agent is asked for all the same, and may be refused, too."""
    view = situation.pools[controller, pool]
    if not in_the_way(view.spec, situation.memory):
        return None
    return "refused-by-ec2", "EC2 refuses", f"it starts once EC2 lets an agent of {pool} start again: {view.refused_detail}"


def _why_broken(situation: Situation, controller: str, want: Want, server: str, seconds: float | None) -> Doubt | None:
    """Say what was refused, is broken or is late. ``seconds``: in how many it takes an executor, None for never."""
    if seconds == 0.0:
        return _not_taken_yet(situation, controller, want)
    if situation.distrust(controller).scope_without_nodes(want) is not None:
        return "tried", "an agent is tried", "free executors did not take it; an agent is tried for it"
    pools = [server] if server else [pool.name for pool in want.pools]
    if broken := next((pool for pool in pools if is_tripped(situation.memory.trials.get(of_boot(pool)))), None):
        return "pool-broken", "pool is broken", f"it starts once an agent of {broken} boots"
    if refused := open_trial(situation.memory, of_connections(controller)):
        return "cannot-connect", "no agent can connect", f"it starts once a new agent can connect to {controller} ({refused.why})"
    if no_node := situation.no_node(controller):
        return "cannot-connect", "no agent can connect", f"it starts once nodes can be made on {controller} ({no_node})"
    return None


def _of_late_agent(situation: Situation, start: PlannedStart | BareStart) -> Doubt | None:
    """Say that an item waits for an agent that may come at any moment, for so long already: so do those that it takes after others."""
    if start.first_seconds != ANY_MOMENT_SECONDS or start.server not in situation.fleet.pools:
        return None
    timeout = duration(situation.fleet.pools[start.server].boot_timeout_seconds)
    return "late-agent", "agent is late", f"it waits for an agent of {start.server} that takes longer than usual; each has {timeout} in all"


def _of_jenkins(want: Want) -> Doubt | None:
    """Say that Jenkins, or a plugin, holds an item back in words of its own: nobody knows for how long."""
    detail = f"Jenkins holds it back: {want.item.wait.unclear}"
    return ("unclear", "Jenkins holds it", detail) if want.item.unclear else None


def _not_taken_yet(situation: Situation, controller: str, want: Want) -> Doubt | None:
    """Name a node that has stood free beside the item for a look or more: Jenkins gives it out within seconds."""
    pools = {agent.record.node: agent.pool.name for agent in situation.agents if agent.record.controller == controller}
    for node in situation.snapshot.controllers[controller].nodes:
        free = situation.memory.free_nodes.get(f"{controller}/{node.name}")
        if free is None or want.item.job in free.refused or free.is_useless or not may_take(want, node, pools.get(node.name)):
            continue
        since = min(situation.now - free.since_at, want.item.waiting_seconds)
        if since >= MINUTE_SECONDS and free.looks:
            until = clock(max(free.since_at + BROKEN_SECONDS, situation.now))
            detail = f"{node.name} has been free for {duration(since)} and has not taken it; from {until} on it does not count for it"
            return "not-taken", "not taken yet", detail
    return None
