"""Orders of a person beyond one pass: holds, pool overrides, purges; and questions about the fleet."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from autoscaler.control import passes
from autoscaler.control.apply import apply
from autoscaler.control.invocation import Invocation
from autoscaler.control.observe import observe, observe_without_instances
from autoscaler.control.report import Report
from autoscaler.domain import commands, decide
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.orders import Purge, Resume
from autoscaler.domain.facts.overrides import Hold, Overrides, PoolOverride, resume
from autoscaler.domain.learn import assess
from autoscaler.domain.report.explain import explain
from autoscaler.domain.report.status import Status, status_of
from autoscaler.errors import ConflictError
from autoscaler.ports import Ports

_TRIES_BEFORE_THE_LAST = 2


def change(ports: Ports, invocation: Invocation, changed: Callable[[Overrides], Overrides]) -> Overrides:
    """Change the overrides, and drop those that have ended. Of two people at once the second works on what the first one left."""
    for _ in range(_TRIES_BEFORE_THE_LAST):
        try:
            return _change_once(ports, invocation, changed)
        except ConflictError:
            ports.log("standing_changed_meanwhile")
    return _change_once(ports, invocation, changed)


def _change_once(ports: Ports, invocation: Invocation, changed: Callable[[Overrides], Overrides]) -> Overrides:
    overrides = changed(ports.state.read().overrides.at(ports.clock()))
    if not invocation.dry_run:
        ports.state.save_overrides(overrides)
    return overrides


def lift(ports: Ports, fleet: Fleet, invocation: Invocation, order: Resume) -> tuple[Overrides, list[Report]]:
    """Lift a hold, then bring back what was cordoned under it. Named nodes come back without lifting a hold."""
    if order.nodes:
        overrides = ports.state.read().overrides.at(ports.clock())
    else:
        overrides = change(ports, invocation, partial(resume, scope=order.scope, name=order.name))
    return overrides, [passes.one_pass(ports, fleet, invocation, partial(commands.bring_back_for_a_person, order=order))]


def purge(ports: Ports, fleet: Fleet, invocation: Invocation, order: Purge) -> list[Report]:
    """Cancel queue items. It needs no lease, since nothing else cancels any."""
    decision = partial(commands.purge_for_a_person, order=order)
    stored = ports.state.read()
    if invocation.dry_run:
        return [passes.plan_only(ports, fleet, invocation, decision, stored)]
    snapshot = observe_without_instances(ports, stored, invocation)
    return [apply(ports, fleet, snapshot, decision(snapshot, fleet), invocation.ends_at)]


def plan(ports: Ports, fleet: Fleet, invocation: Invocation) -> list[Report]:
    """Plan both passes, and do nothing."""
    stored, dry = ports.state.read(), replace(invocation, dry_run=True)
    return [passes.plan_only(ports, fleet, dry, decision, stored) for decision in (decide.scale_up, decide.scale_down)]


def status(ports: Ports, fleet: Fleet, invocation: Invocation) -> Status:
    """Return the state of the fleet."""
    snapshot = observe(ports, fleet, ports.state.read(), invocation)
    return status_of(assess(snapshot, fleet))


def why(ports: Ports, fleet: Fleet, invocation: Invocation, subject: str) -> list[str]:
    """Return the facts about a job, a node or a pool."""
    snapshot = observe(ports, fleet, ports.state.read(), invocation)
    return explain(snapshot, fleet, subject)


def as_json(overrides: Overrides) -> dict[str, Any]:
    """Write the overrides in force as an answer to a person."""
    return {"holds": [_hold_json(hold) for hold in overrides.holds], "numbers": [_numbers_json(numbers) for numbers in overrides.numbers]}


def _hold_json(hold: Hold) -> dict[str, Any]:
    where = {str(hold.scope): hold.name} if hold.name else {}
    return where | {"freeze": hold.freeze, "since_at": hold.since_at, "until_at": hold.until_at, "by": hold.by, "reason": hold.reason}


def _numbers_json(numbers: PoolOverride) -> dict[str, Any]:
    facts = {"since_at": numbers.since_at, "until_at": numbers.until_at, "by": numbers.by, "reason": numbers.reason}
    return {"pool": numbers.pool} | numbers.given | facts
