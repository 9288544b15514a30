"""What tests of the decision ask alike: decide for these agents and items, and what the plan says."""

from typing import Any

from autoscaler.domain import decide
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.plan import Launch, Plan
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Node, QueueItem, Record, Snapshot
from support.builders import a_fleet, a_memory, a_snapshot, a_view, an_empty_window, with_beacons


def seen(
    *agents: tuple[Record, Node | None], items: tuple[QueueItem, ...] = (), view: dict[str, Any] | None = None, **facts: Any
) -> Snapshot:
    """A snapshot with these agents, given as (record, node) or (record, None); nothing was needed lately."""
    nodes = [node for _, node in agents if node]
    given = {"records": tuple(record for record, _ in agents), "memory": a_memory(windows=an_empty_window())}
    return a_snapshot(a_view(*nodes, items=items, **(view or {})), **(given | facts))


def scale_up(snapshot: Snapshot, fleet: Fleet) -> Plan:
    """Decide on controllers that have all beacons."""
    return decide.scale_up(with_beacons(snapshot, fleet), fleet)


def scale_down(snapshot: Snapshot, fleet: Fleet) -> Plan:
    """Likewise."""
    return decide.scale_down(with_beacons(snapshot, fleet), fleet)


def decide_up(*agents: tuple[Record, Node | None], fleet: Fleet | None = None, **facts: Any) -> Plan:
    return scale_up(seen(*agents, **facts), fleet or a_fleet())


def decide_down(*agents: tuple[Record, Node | None], fleet: Fleet | None = None, **facts: Any) -> Plan:
    return scale_down(seen(*agents, **facts), fleet or a_fleet())


def kinds(plan: Plan) -> list[type]:
    return [type(step) for step in plan.steps]


def steps_of(kind: type, plan: Plan) -> list[Any]:
    return [step for step in plan.steps if isinstance(step, kind)]


def launches(plan: Plan) -> list[tuple[str, int, Reason]]:
    return [(step.pool, step.count, step.reason) for step in steps_of(Launch, plan)]


def held(plan: Plan) -> set[Reason]:
    return {h.reason for h in plan.held}
