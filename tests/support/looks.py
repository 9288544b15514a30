"""One look of a fleet, with what it decides and what a stranger can tell of it without asking the code that decides."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from hypothesis import event

from autoscaler.domain import decide
from autoscaler.domain.facts.fleet import AtMonthLimit, Ceilings, Fleet
from autoscaler.domain.facts.memory import Observation
from autoscaler.domain.facts.plan import Plan, Step
from autoscaler.domain.facts.snapshot import ControllerView, Instance, InstanceState, Node, QueueItem, Record, RecordState, Snapshot
from support.builders import NOW
from support.remembered import tables

# What the labels that are drawn ask for; anything else fits no pool.
SERVED_BY = {
    "cpu": {"cpu"},
    "gpu": {"gpu"},
    "utility": {"utility"},
    "linux": {"cpu", "gpu"},
    "cpu||gpu": {"cpu", "gpu"},
    "linux&&!gpu": {"cpu"},
}
OUR_MARK = "autoscaler:f:"
_MAY_SERVE = {RecordState.REQUESTED, RecordState.STARTING, RecordState.REGISTERED}
_ENDED = {InstanceState.TERMINATED, InstanceState.SHUTTING_DOWN}


class Limited(NamedTuple):
    """Pools that share limits. ``name``: "" of the fleet."""

    name: str
    pools: frozenset[str]
    ceilings: Ceilings


@dataclass(frozen=True)
class Look:
    """A snapshot of a fleet in the middle of its life, and its fleet file."""

    snapshot: Snapshot
    fleet: Fleet

    def __repr__(self) -> str:
        """Tell what was drawn, a line each, without all that is as ever."""
        look, memory = self.snapshot, self.snapshot.memory
        versions = look.template_versions, look.images, memory.proven
        pools = [f"{p.name} max {p.max_agents} min {p.min_agents} warm {p.warm_executors}" for p in self.fleet.pools.values()]
        lines = [f"{self.fleet.limits} {'; '.join(pools)} {memory.month} {look.overrides.holds} {versions}"]
        lines += [f"{team} {memory.fleet.lately}" for team in self.fleet.teams.values()]
        lines += [f"{name} {pool.ceilings} {pool.priority}" for name, pool in self.fleet.pools.items()] if self.fleet.teams else []
        for view in self.views:
            lines.append(f"{view.name}: {view.problem} {view.session} {view.quieting_down} {view.unread} {memory.sessions[view.name]}")
            lines += [f"  {node}" for node in view.nodes if not self.fleet.is_beacon(node.name)] + [f"  {item}" for item in view.items]
            lines += [f"  {key}: {window.peaks}" for key, window in tables(memory).windows.items() if key.startswith(view.name)]
            lines += [f"  {look.learned[view.name].samples} {look.learned[view.name].streaks}"]
        lines += [
            f"{r.instance_id} {r.state} {r.pool} {r.controller} {r.node} {NOW - r.began_at:g} s {r.cordon} {r.reservation or ''}"
            for r in look.records
        ]
        lines += [f"{i} {state}, seen {memory.agent(i).look}, connected {memory.has_connected(i)}" for i, state in self.states.items()]
        return "\n".join(["", *lines, *(f"{i.id} {i.pool} {i.controller} {i.count}" for i in look.intents)])

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:  # noqa: FBT001 - as hypothesis calls it
        printer.text(repr(self))

    @cached_property
    def up(self) -> Plan:
        return _told(decide.scale_up(self.snapshot, self.fleet))

    @cached_property
    def down(self) -> Plan:
        return _told(decide.scale_down(self.snapshot, self.fleet))

    @property
    def plans(self) -> tuple[Plan, Plan]:
        return self.up, self.down

    @cached_property
    def states(self) -> dict[str, InstanceState]:
        return dict(self.snapshot.fates) | {instance.id: instance.state for instance in self.snapshot.instances}

    @cached_property
    def records(self) -> dict[str, Record]:
        return {record.instance_id: record for record in self.snapshot.records}

    @property
    def views(self) -> list[ControllerView]:
        return list(self.snapshot.controllers.values())

    def with_views(self, **facts: Any) -> "Look":
        """The same look, where every controller shows something else."""
        views = {view.name: replace(view, **facts) for view in self.views}
        return replace(self, snapshot=replace(self.snapshot, controllers=views))

    def node_of(self, step: Step) -> Node | None:
        """The node that a step is about, as the controller shows it."""
        name = getattr(step, "node", None)
        return self.node(step.controller, name) if name else None

    def node(self, controller: str, name: str | None) -> Node | None:
        return next((node for node in self.snapshot.controllers[controller].nodes if node.name == name), None)

    def believed(self, controller: str) -> bool:
        """Tell whether the controller was read completely, in a session known for long enough, and does not shut down."""
        view, session = self.snapshot.controllers[controller], self.snapshot.memory.sessions[controller]
        known = view.session == session.session and session.since_at <= NOW - 120.0
        return view.problem is None and known and not view.quieting_down

    @cached_property
    def limited(self) -> list[Limited]:
        """All who have limits: each pool, each team, and the fleet."""
        limits, pools = self.fleet.limits, self.fleet.pools.values()
        return [
            *(Limited(pool.name, frozenset({pool.name}), replace(pool.ceilings, max_agents=pool.max_agents)) for pool in pools),
            *(Limited(team.name, team.pools, team.ceilings) for team in self.fleet.teams.values()),
            Limited(
                "",
                frozenset(self.fleet.pools),
                Ceilings(
                    max_agents=limits.max_agents,
                    max_launches_per_hour=limits.max_launches_per_hour,
                    max_usd_per_hour=limits.max_usd_per_hour,
                    max_usd_per_month=limits.max_usd_per_month,
                ),
            ),
        ]

    def spent_this_month(self, whose: Limited) -> float:
        month = self.snapshot.memory.month
        return sum(month.by_pool.get(pool, 0.0) for pool in whose.pools) if whose.name else month.usd

    @cached_property
    def stopped(self) -> frozenset[str]:
        """Pools in which nothing may start any more this month."""
        if self.fleet.limits.at_month_limit is not AtMonthLimit.STOP:
            return frozenset()
        spent = [one.pools for one in self.limited if self.spent_this_month(one) >= one.ceilings.max_usd_per_month]
        return frozenset().union(*spent)

    def bound(self, controller: str) -> set[str]:
        """Names of nodes that an item waits for by name, or that were busy before a restart and have not been seen so since.

        Jenkins names the only node of a label, too: unless a beacon has the same labels, its name says nothing.
        Once the month's money is spent, a job that is to begin keeps no node: only a part of a run that goes on does.
        """
        view = self.snapshot.controllers[controller]
        running = {build.run for node in view.nodes for build in node.builds}
        stopped = {record.node for record in self.snapshot.records if record.pool in self.stopped and record.controller == controller}
        is_all = self.stopped >= self.fleet.pools.keys()
        named = {(name, item.run in running) for item in view.items for name in (*item.wait.nodes, item.wait.named)}
        kept = {name for name, goes_on in named if goes_on or not (is_all or name in stopped)}
        beacons = {node.labels - {node.name} for node in view.nodes if self.fleet.is_beacon(node.name)}
        beside = {node.name for node in view.nodes if node.labels - {node.name} in beacons}
        return (kept & beside) | set(self.snapshot.memory.sessions[controller].suspects)

    def seen(self, subject: str) -> Observation | None:
        """What passes have seen of a subject, however far apart their looks are."""
        return self.snapshot.memory.agent(subject).look

    def seen_twice(self, subject: str, session: str = "") -> bool:
        """Tell whether an earlier invocation saw what this one sees, a minute ago at least, in the same session of the controller."""
        look = self.seen(subject)
        return look is not None and look.request_id != "now" and NOW - look.first_at >= 60.0 and look.session == session

    def frozen(self, pool: str) -> bool:
        return any(hold.freeze and hold.name == pool for hold in self.snapshot.overrides.holds)

    def on_hold(self, pool: str) -> bool:
        return any(hold.name == pool for hold in self.snapshot.overrides.holds)

    def reserved(self, record: Record) -> bool:
        """Tell whether a person has an agent now: it has registered, and their time is not over."""
        mine = record.reservation
        return record.state is RecordState.REGISTERED and mine is not None and mine.until_at > NOW

    def unread(self, controller: str, node: str | None) -> bool:
        return node in self.snapshot.controllers[controller].unread

    @cached_property
    def living(self) -> list[Record]:
        """Records of what may still cost money."""
        there = [record for record in self.snapshot.records if record.state is not RecordState.GONE]
        return [record for record in there if self.states.get(record.instance_id) not in _ENDED]

    def is_off(self, record: Record) -> bool:
        """Tell whether an agent is stopped, so that its disk alone costs money and no limit of agents counts it."""
        on = {InstanceState.PENDING, InstanceState.RUNNING}
        return record.state is RecordState.STOPPED and self.states.get(record.instance_id) not in on

    @cached_property
    def strays(self) -> list[Instance]:
        """Instances of ours that nothing written down accounts for."""
        return [one for one in self.snapshot.instances if one.id not in self.records and one.state not in _ENDED]

    def may_serve(self, record: Record) -> bool:
        """Tell whether an agent takes builds, will soon, or can be brought back for them."""
        out_of_use = record.state not in _MAY_SERVE or record.reservation is not None
        if self.states.get(record.instance_id) in _ENDED or out_of_use:
            return False
        node = self.node(record.controller, record.node)
        # One that is late is waited for until a second look has counted it as a boot that failed.
        is_late = not record.life and all(record.instance_id not in trial.failed for trial in self.snapshot.memory.trials.values())
        on_its_way = (is_late or record.began_at > NOW - 900.0) and not self.snapshot.memory.has_connected(record.life_id)
        if node is None:
            return on_its_way
        return not node.offline or node.reason.startswith(f"{OUR_MARK}retire") or (on_its_way and not node.temporarily_offline)

    def waiting(self, controller: str) -> list[tuple[QueueItem, set[str]]]:
        """Items that have waited long enough to count, with the pools that serve them; without those that name a node."""
        items = self.snapshot.controllers[controller].items
        return [(item, SERVED_BY[item.wait.label]) for item in items if item.wait.label in SERVED_BY and item.waiting_seconds >= 30.0]


def _told(plan: Plan) -> Plan:
    """Count the kinds of steps in hypothesis' statistics."""
    for kind in {type(step).__name__ for step in plan.steps}:
        event(kind)
    return plan


def machines(step: Step) -> tuple[str, ...]:
    """The instances that a step is about."""
    return getattr(step, "instance_ids", (getattr(step, "instance_id", ""),))
