"""Messages about what lasts: agents that stay in a row of the table of deadlines for too long, one message for a row and a pool.

Rows that have a message of their own are not told here. A message that was sent is over once none of its agents is in that row.
"""

from collections.abc import Collection, Iterator
from math import ceil

from autoscaler.domain.facts.metering import HOUR_SECONDS
from autoscaler.domain.facts.nodes import labels_to_lend
from autoscaler.domain.facts.snapshot import Build, Node
from autoscaler.domain.report.held_labels import held_labels_seen
from autoscaler.domain.report.keeping import why_kept
from autoscaler.domain.report.left_the_file import left_seen
from autoscaler.domain.report.offline import told_offline
from autoscaler.domain.report.stopped import usd_per_hour_of
from autoscaler.domain.report.told import Seen
from autoscaler.domain.scale_in.sides import devices_reserved
from autoscaler.domain.situation import deadlines
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.deadlines import Row
from autoscaler.domain.situation.rows import row_named, seen_seconds
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import counted, dollars, duration, listed, moment

LASTS = "lasts/"
_RUNBOOK = "operations.md#lasts-too-long"
_NAMED = 10
# The first look after an outage counts a minute less than the look before it.
_SLACK_SECONDS = 120.0
# Nothing is paid for these: the machine of another record, or one of the operator's own.
_TOLD_OF_OTHERS = (deadlines.PERSON, deadlines.KEPT, deadlines.LOST, deadlines.DRAINS, deadlines.BOUND)


def lasting_seen(situation: Situation, told: Collection[str]) -> Iterator[tuple[str, Seen]]:
    """Name the rows and pools with agents that stay there for too long. ``told``: names of what people were told."""
    lasting: dict[tuple[str, str], list[Agent]] = {}
    for agent in situation.agents:
        if (row := _row(situation, agent)) is not None and _lasts_too_long(situation, agent, row, told):
            lasting.setdefault((row.name, agent.pool.name), []).append(agent)
    for (name, pool), agents in lasting.items():
        row = row_named(name)
        if row is not None:
            yield _key(row, pool), _seen(situation, row, pool, agents)
    yield from _still_lent(situation)
    yield from held_labels_seen(situation)
    yield from _without_agents(situation)
    yield from left_seen(situation)


def told_row(situation: Situation, agent: Agent) -> Iterator[str]:
    """Say in which row an agent is, since when, until when at most, and what follows then."""
    past = situation.memory.rows.get(agent.record.instance_id)
    row = row_named(past.row) if past else None
    if past is None or row is None:
        return
    limit = row.limit(agent.pool, situation.fleet.resume_timeout(agent.record.controller)) if row.limit else None
    unseen = situation.now - past.since_at - seen_seconds(situation, agent, row, past.since_at)
    until = f"{moment(past.since_at + limit + unseen)} at the latest" if limit is not None else row.deadline
    # For how long an idle agent is kept depends on why: `why_kept` says it.
    yield f"{row.name} since {moment(past.since_at)}" + ("" if row is deadlines.IDLE else f"; deadline: {until}; then: {row.then}")


def _key(row: Row, pool: str) -> str:
    return f"{LASTS}{row.name}/{pool}"


def _row(situation: Situation, agent: Agent) -> Row | None:
    """Find the row of an agent, if people are told by this rule when it lasts."""
    past = situation.memory.rows.get(agent.record.instance_id)
    row = row_named(past.row) if past else None
    if row is None or row.told_after is None:
        return None
    return row if agent.record.is_instance or row in _TOLD_OF_OTHERS else None


def _lasts_too_long(situation: Situation, agent: Agent, row: Row, told: Collection[str]) -> bool:
    if row.told_after is None or _is_explained(situation, agent, row):
        return False
    slack = _SLACK_SECONDS if _key(row, agent.pool.name) in told else 0.0
    after = row.told_after(agent.pool, situation.fleet.resume_timeout(agent.record.controller))
    return _lasted(situation, agent, row) >= after - slack


def _lasted(situation: Situation, agent: Agent, row: Row) -> float:
    """How long an agent is in its row. A drain lasts from its mark on, whatever begins and ends on its executors meanwhile."""
    since_at = situation.memory.rows[agent.record.instance_id].since_at
    if row is deadlines.DRAINS:
        since_at = min(since_at, situation.memory.draining_since.get(agent.record.instance_id, since_at))
    if row is deadlines.DRAINED:  # until then a person had a device of it
        since_at = max([since_at, *(one.until_at for one in agent.record.devices_for)])
    return seen_seconds(situation, agent, row, since_at)


def _is_explained(situation: Situation, agent: Agent, row: Row) -> bool:
    """Tell whether settings or a person want an agent where it is: idle agents of a minimum, and one side of a busy machine."""
    if row in (deadlines.DRAINED, deadlines.IDLE) and devices_reserved(situation, agent.record.machine):
        return True
    others = situation.sides.get(agent.record.machine, ())
    if row in (deadlines.DRAINED, deadlines.IDLE) and any(not side.idle or side.mark is None for side in others if side is not agent):
        return True
    if row is not deadlines.IDLE:
        return False
    pool = agent.pool
    floor = max(pool.min_agents, ceil(pool.warm_executors / pool.executors))
    ready = sum(len(view.ready) for (_, name), view in situation.pools.items() if name == pool.name)
    return situation.now < agent.record.keep_until or ready <= floor


def _seen(situation: Situation, row: Row, pool: str, agents: list[Agent]) -> Seen:
    agents = sorted(agents, key=lambda agent: -_lasted(situation, agent, row))
    lines = [_line(situation, row, agent) for agent in agents[:_NAMED]]
    lines += [f"and {len(agents) - _NAMED} more"] if len(agents) > _NAMED else []
    usd = sum(usd_per_hour_of(situation, agent.record) for agent in agents)
    cost = f"{counted(len(agents), 'agent')} of {pool} cost {dollars(usd)} an hour." if usd else ""
    text = "\n".join(filter(None, [*lines, f"Deadline: {row.deadline}. Then: {row.then}.", cost]))
    names = [agent.record.node or agent.record.instance_id for agent in agents]
    title = f"{listed(names, 2)} of {pool}: {row.name} too long"
    return Seen(title, text, _RUNBOOK, f"autoscaler why {names[0]}", daily=row.daily)


def _line(situation: Situation, row: Row, agent: Agent) -> str:
    name = agent.record.instance_id if row.by_ec2 else agent.record.node or agent.record.instance_id
    causes = "; ".join(_causes(situation, row, agent))
    return f"{name} {row.says}, for {duration(_lasted(situation, agent, row))}" + (f": {causes}" if causes else "")


def _causes(situation: Situation, row: Row, agent: Agent) -> Iterator[str]:
    """Say what keeps an agent where it is, in the words of Jenkins, of EC2 or of a person as far as there are any."""
    record, node = agent.record, agent.node
    for hold in situation.overrides.holds_of_people_on(record.controller, record.pool):
        yield hold.text(situation.now)
    if node:
        yield from _on_node(agent, node)
    if record.trouble:
        yield record.trouble
    if record.instance_id in situation.memory.stuck:
        yield "EC2 does not let us terminate it"
    if reason := situation.no_giving_up(record.controller):
        yield f"nothing is terminated on {record.controller} now: {reason}"
    if row is deadlines.BOUND:
        yield from _bound_to(situation, agent)
    if row is deadlines.IDLE and (kept := why_kept(situation, agent)):
        yield kept
    yield from _failing_steps(situation, {record.node or "", record.instance_id})


def _on_node(agent: Agent, node: Node) -> Iterator[str]:
    if node.builds:
        yield f"busy with {listed(sorted({name_of_build(build) for build in node.builds}))}"
    if agent.mark is None and (offline := told_offline(node)):
        yield offline


def _failing_steps(situation: Situation, names: set[str]) -> Iterator[str]:
    return (failing.why for key, failing in situation.memory.failing.items() if names & {*key.split("/")})


def name_of_build(build: Build) -> str:
    """Name a build as Jenkins' pages do: release #12."""
    number = build.run.rstrip("/").rpartition("/")[2]
    return f"{build.job} #{number}" if number.isdigit() else build.job or build.run


def _bound_to(situation: Situation, agent: Agent) -> Iterator[str]:
    view, life = situation.snapshot.controllers.get(agent.record.controller), situation.memory.sessions.get(agent.record.controller)
    name = agent.record.node or ""
    yield from (f"{item.job} waits for it by name" for item in (view.items if view else ()) if name in (*item.wait.nodes, item.wait.named))
    if life and (runs := [run for run in life.suspects.get(name, ()) if run]):
        yield f"{listed(runs)} ran there before {agent.record.controller} restarted"


def _still_lent(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name the pools with agents that still have the labels of a loan an hour after its end: plain jobs go on beginning there."""
    pools: dict[str, list[Agent]] = {}
    for agent in situation.agents:
        if agent.node and _keeps_lent_labels(situation, agent, agent.node):
            pools.setdefault(agent.pool.name, []).append(agent)
    for pool, agents in pools.items():
        lines = [_still_lent_line(situation, agent) for agent in agents[:_NAMED]]
        text = "\n".join([*lines, "Jobs of the general kind go on beginning there. Each look asks Jenkins again for the labels to go."])
        names = [agent.record.node or "" for agent in agents]
        title = f"{listed(names, 2)} of {pool}: {deadlines.LENT.name} too long"
        yield _key(deadlines.LENT, pool), Seen(title, text, _RUNBOOK, f"autoscaler why {names[0]}")


def _keeps_lent_labels(situation: Situation, agent: Agent, node: Node) -> bool:
    """Tell whether a loan was over an hour ago, and its labels are there. On a node that a person marked nothing begins."""
    lent_until = agent.record.lent_until
    if not lent_until or node.temporarily_offline or not labels_to_lend(agent.record, situation.fleet) & node.labels:
        return False
    return seen_seconds(situation, agent, deadlines.LENT, lent_until) >= HOUR_SECONDS


def _still_lent_line(situation: Situation, agent: Agent) -> str:
    labels = " ".join(agent.record.lent_labels)
    ended = f"its loan to jobs that ask for {labels} ended {duration(situation.now - agent.record.lent_until)} ago"
    causes = "; ".join(_failing_steps(situation, {agent.record.node or ""}))
    return f"{agent.record.node}: {ended}" + (f": {causes}" if causes else "")


def _without_agents(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name instances without a record that EC2 does not end."""
    agents, row = {agent.record.instance_id for agent in situation.agents}, deadlines.SHUTS_DOWN
    pools: dict[str, list[str]] = {}
    for name, past in situation.memory.rows.items():
        is_late = past.row == row.name and situation.ec2_seen_seconds(past.since_at) >= deadlines.SHUTS_DOWN_SECONDS
        if is_late and name not in agents:
            pools.setdefault(past.pool, []).append(name)
    for pool, names in pools.items():
        yield f"{LASTS}{row.name}/{pool}", _shuts_down(situation, pool, names)


def _shuts_down(situation: Situation, pool: str, names: list[str]) -> Seen:
    row, rows = deadlines.SHUTS_DOWN, situation.memory.rows
    lines = [f"{name} {row.says}, for {duration(situation.now - rows[name].since_at)}" for name in names[:_NAMED]]
    text = "\n".join([*lines, f"Deadline: {row.deadline}. Then: {row.then}."])
    return Seen(f"{listed(names, 2)} of {pool}: {row.name} too long", text, _RUNBOOK, "autoscaler status", daily=True)
