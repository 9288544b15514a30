"""Messages about what lasts: agents too long in one row of the table of deadlines, left-over pools and sides, lost or held labels.

Rows that have a message of their own are not told here. A message that was sent is over once none of its agents is in that row.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from math import ceil
from shlex import quote

from autoscaler.domain.facts.fleet import CORDONED_LABEL, FULL_LABEL, HELD_LABEL, Fleet
from autoscaler.domain.facts.metering import HOUR_SECONDS
from autoscaler.domain.facts.nodes import labels_soon, labels_to_lend
from autoscaler.domain.facts.orders import Hold, Scope, single_label, text_of
from autoscaler.domain.facts.snapshot import Build, Node, QueueItem, Record
from autoscaler.domain.grouping import grouped
from autoscaler.domain.labels import as_told
from autoscaler.domain.repair.nodes import agents_unseen_for_ever, strays_unseen_for_ever
from autoscaler.domain.report.machines import usd_per_hour_together, why_kept
from autoscaler.domain.report.told import Seen, told_offline
from autoscaler.domain.scale_in.sides import devices_reserved
from autoscaler.domain.scale_in.surplus import told_hold, why_left
from autoscaler.domain.situation import states
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.bets import TrialOf, failing_labels, trials_of
from autoscaler.domain.situation.left import is_controller_left, is_on_hold, unseen_sides, why_not_wanted
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.states import FOREIGN, AgentState, in_state, seen_seconds, state_named
from autoscaler.domain.wording import clock, counted, dollars, duration, end_command, lines_of, listed, moment

# What a person decides: agents whose pool or controller left the fleet file, and machines with our tags that we did not launch.


_LEFT_RUNBOOK = "operations.md#left-the-fleet-file"
_NAMED = 10


def left_seen(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Tell of pools and controllers that left, with what they leave behind, and of instances that are not ours."""
    for pool, agents in grouped((agent.pool.name, agent) for agent in _there(situation) if agent.pool.has_left).items():
        becomes = dict.fromkeys(_what_becomes_of(situation, agent) for agent in agents)
        known = listed([_name(agent.record) for agent in agents], _NAMED)
        cost = dollars(usd_per_hour_together(situation, (agent.record for agent in agents)))
        text = (
            f"{why_left(situation, agents[0])}. Its agents: {known}.\nWhat becomes of them: {'; '.join(becomes)}.\n"
            f"They cost {cost} an hour until then. To keep them, put the pool back."
        )
        title, ask = f"agents of {pool} left the fleet file", f"autoscaler why {agents[0].record.node or pool}"
        yield f"left/pool/{pool}", Seen(title, text, _LEFT_RUNBOOK, ask)
    for (controller, pool), unseen in _unseen(situation).items():
        machines = dict(unseen)
        cost = dollars(usd_per_hour_together(situation, (record for record in situation.snapshot.living if record.machine in machines)))
        text = (
            f"{_nobody_sees(controller)}: {listed([name for _, name in unseen], _NAMED)}. They cost {cost} an hour.\n"
            f"Put the controller back, or end each one once nothing runs on it: {_end(unseen[0][0])}"
        )
        title, name = f"agents of {pool} left the fleet file", f"left/controller/{controller}/{pool}"
        yield name, Seen(title, text, _LEFT_RUNBOOK, "autoscaler status", daily=True)
    if ids := list(in_state(situation.memory, FOREIGN)):
        yield (
            FOREIGN,
            Seen(
                f"{listed(ids, 2)}: tags of fleet {situation.fleet.name}, and not launched by it",
                told_foreign(situation.fleet, ids),
                f"operations.md#{FOREIGN}",
                f"autoscaler why {ids[0]}",
                daily=True,
            ),
        )


def left_behind(situation: Situation) -> tuple[str, ...]:
    """Name each agent without a pool, each host and side that left, and each agent that nobody sees, a sentence each."""
    seen = _there(situation)
    of_left_pools = (f"{_name(agent.record)}: {line}" for agent in seen for line in told_left(situation, agent))
    others = ((agent, why) for agent in seen if not agent.pool.has_left and (why := why_not_wanted(situation, agent)))
    unwanted = (f"{_name(agent.record)}: {why}: {_what_becomes_of(situation, agent)}" for agent, why in others)
    places = _unseen(situation).items()
    unseen = (f"{name}: {_nobody_sees(controller)}; {_end(machine)}" for (controller, _), names in places for machine, name in names)
    return (*of_left_pools, *unwanted, *unseen, *(told_foreign(situation.fleet, [name]) for name in in_state(situation.memory, FOREIGN)))


def _there(situation: Situation) -> list[Agent]:
    """List the agents whose machines may be there, and which their controllers see."""
    there = (agent for agent in situation.agents if not agent.instance_ended)
    return [agent for agent in there if not is_controller_left(situation, agent.record.controller)]


def told_left(situation: Situation, agent: Agent) -> Iterator[str]:
    """Say that an agent's pool or controller left the fleet file, and what becomes of it."""
    controller = agent.record.controller
    if is_controller_left(situation, controller):
        yield f"{_nobody_sees(controller)}; put the controller back, or run: {_end(agent.record.machine)}"
    elif agent.pool.has_left:
        yield f"{why_left(situation, agent)}: {_what_becomes_of(situation, agent)}"


def told_foreign(fleet: Fleet, ids: Sequence[str]) -> str:
    """Say that instances with our tags are not ours, and how a person takes the tags off or ends them."""
    return (
        f"EC2 shows the tags of fleet {fleet.name} on {listed(ids, _NAMED)}, and not aws:ec2:fleet-id, which it alone writes: the fleet "
        f"did not launch this, and does nothing to it. Take the tag off: aws ec2 delete-tags --resources {' '.join(ids)} --tags "
        f"Key=autoscaler:fleet. Or end it: {end_command(ids)}"
    )


def told_stray(situation: Situation, name: str) -> Iterator[str]:
    """Say what a person can do about an instance without a record."""
    if name in in_state(situation.memory, FOREIGN):
        yield told_foreign(situation.fleet, [name])
    for instance in strays_unseen_for_ever(situation):
        if name in {instance.id, instance.node}:
            yield f"{_nobody_sees(instance.controller)}; put the controller back, or run: {_end(instance.id)}"


def told_left_pool(situation: Situation, name: str) -> Iterator[str]:
    """Say what becomes of the agents of a pool that left the fleet file."""
    agents = [agent for agent in situation.agents if agent.pool.name == name]
    if name in situation.fleet.left_pools and agents:
        yield f"pool {name} left the fleet file; {counted(len(agents), 'agent')} of it {'is' if len(agents) == 1 else 'are'} left"
        yield from (f"{_name(agent.record)}: {line}" for agent in agents[:_NAMED] for line in told_left(situation, agent))


def _what_becomes_of(situation: Situation, agent: Agent) -> str:
    if is_on_hold(situation, agent):
        return told_hold(situation)
    if agent.phase is Phase.SET_ASIDE:
        return f"{told_offline(agent.node)}; it stays until somebody brings it online, or deletes its node"
    if agent.phase is Phase.RESERVED and agent.record.reservation:
        return f"it stays until the reservation of {agent.record.reservation.person} ends"
    if situation.now < agent.record.keep_until:
        return f"a person wants it kept for another {duration(agent.record.keep_until - situation.now)}"
    return "it is drained, and its node goes once it is idle" if agent.record.is_host else "it is drained, and ends once it is idle"


def _unseen(situation: Situation) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Name what nobody sees by its controller and pool, each machine with its name for people."""
    records = (agent.record for agent in agents_unseen_for_ever(situation))
    agents = (((record.controller, record.pool), (record.machine, _name(record))) for record in records)
    instances = strays_unseen_for_ever(situation)
    strays = (((one.controller, one.pool), (one.id, f"{one.node or one.id} ({one.id})")) for one in instances)
    return grouped([*agents, *strays])


def _nobody_sees(controller: str) -> str:
    return f"controller {controller} left the fleet file, so nobody sees its builds and nothing is ended"


def _end(machine: str) -> str:
    return f"autoscaler end {machine} --yes"


def _name(record: Record) -> str:
    return f"{record.node} ({record.machine})" if record.node else record.machine


# Messages about machines that several controllers shared, of which one left the fleet file.


def left_sides_seen(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name each controller that left the fleet file while machines are shared with it, or one leaves it for another controller."""
    machines_there = dict.fromkeys(record.machine for record in situation.snapshot.records) if situation.left_controllers else ()
    unseen = (one for machine in machines_there for one in unseen_sides(situation, machine))
    # Else it is told as any agent of a controller that left.
    leaving = ((side.controller, (record, side)) for record, side in unseen if side in record.leaves)
    for controller, sides in grouped(leaving).items():
        machines = list(dict.fromkeys(record.machine for record, _ in sides))
        usd = usd_per_hour_together(situation, (record for record in situation.snapshot.living if record.machine in machines))
        cost = f" They cost {dollars(usd)} an hour." if usd else ""
        text = (
            f"Nobody sees what runs there on {listed([side.node or '' for _, side in sides], _NAMED)}.{cost}\n"
            f"Their other sides take no builds and are drained; hosts go on. The machines stay until you put {controller} back, or confirm "
            f"that nothing of it runs there: autoscaler end {machines[0]} --yes"
        )
        title = f"{controller} left the fleet file, and {counted(len(machines), 'machine')} shared with it stay"
        runbook = "operations.md#a-controller-that-shared-machines-left"
        yield f"left-side/{controller}", Seen(title, text, runbook, f"autoscaler why {machines[0]}", daily=True)


# Messages about agents whose labels we took, and which Jenkins has not let us give back for an hour: no job begins there.


_RUNBOOK = "operations.md#lasts-too-long"


def held_labels_seen(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name the pools with such agents, one message for a pool."""
    failing = ((agent, step) for agent in situation.agents if (step := failing_labels(situation.memory, agent)))
    lasting = ((agent, step) for agent, step in failing if situation.now - step.since_at >= HOUR_SECONDS)
    pools = grouped((agent.pool.name, (agent, step)) for agent, step in lasting if _is_without_labels(situation, agent))
    for pool, agents in pools.items():
        names = [agent.record.node or "" for agent, _ in agents]
        lines = [
            f"{agent.record.node}: its labels were to be given back {duration(situation.now - step.since_at)} ago: {step.why}"
            for agent, step in agents[:_NAMED]
        ]
        cost = dollars(usd_per_hour_together(situation, (agent.record for agent, _ in agents)))
        then = f"No job begins there, and they cost {cost} an hour. Jenkins is asked again now and then."
        yield f"lasts/labels/{pool}", _lasts(pool, names, "without labels too long", *lines, then)


def _is_without_labels(situation: Situation, agent: Agent) -> bool:
    """Tell whether a node carries our label in place of those that jobs ask for. On one that is marked offline nothing begins anyway."""
    node = agent.node
    if node is None or node.temporarily_offline:
        return False
    lacks = labels_soon(agent.record, node, situation.fleet) - node.labels  # what a person held, and nobody holds any more
    return bool(lacks) or not node.labels.isdisjoint((FULL_LABEL, CORDONED_LABEL))


# Messages about agents that stay in a row for too long.


LASTS = "lasts/"
# The first look after an outage counts a minute less than the look before it.
_SLACK_SECONDS = 120.0
# Nothing is paid for these: the machine of another record, or one of the operator's own.
_TOLD_OF_OTHERS = (states.PERSON, states.KEPT, states.LOST, states.DRAINS, states.BOUND)


def lasting_seen(situation: Situation, told: Collection[str]) -> Iterator[tuple[str, Seen]]:
    """Name the rows and pools with agents that stay there for too long. ``told``: names of what people were told."""
    lasting = ((row, agent) for agent in situation.agents if (row := _lasting_row(situation, agent, told)))
    for (row, pool), agents in grouped(((row, agent.pool.name), agent) for row, agent in lasting).items():
        agents.sort(key=lambda agent: -_lasted(situation, agent, row))
        lines = lines_of([_line(situation, row, agent) for agent in agents], _NAMED)
        is_gone = row in (states.NODE_LEFT, states.ENDED_BY_OTHERS)  # the look that tells people does not ask EC2
        usd = 0.0 if is_gone else usd_per_hour_together(situation, (agent.record for agent in agents))
        cost = f"{counted(len(agents), 'agent')} of {pool} cost {dollars(usd)} an hour." if usd else ""
        names = [agent.record.node or agent.record.instance_id for agent in agents]
        seen = _lasts(pool, names, row.title or f"{row.name} too long", *lines, f"Deadline: {row.deadline}. Then: {row.then}.", cost)
        yield _key(row, pool), replace(seen, daily=row.daily)


def _lasts(pool: str, names: Sequence[str], what: str, *lines: str) -> Seen:
    """Make the message of what lasts too long in a pool."""
    return Seen(f"{listed(names, 2)} of {pool}: {what}", "\n".join(filter(None, lines)), _RUNBOOK, f"autoscaler why {names[0]}")


def told_row(situation: Situation, agent: Agent) -> Iterator[str]:
    """Say in which row an agent is, since when, until when at most, and what follows then."""
    past = situation.past(agent).state
    row = state_named(past.state) if past else None
    if past is None or row is None:
        return
    limit = row.limit(agent.pool, situation.fleet.resume_timeout(agent.record.controller)) if row.limit else None
    unseen = situation.now - past.since_at - seen_seconds(situation, agent, row, past.since_at)
    until = f"{moment(past.since_at + limit + unseen)} at the latest" if limit is not None else row.deadline
    # For how long an idle agent is kept depends on why: `why_kept` says it.
    yield f"{row.name} since {moment(past.since_at)}" + ("" if row is states.IDLE else f"; deadline: {until}; then: {row.then}")


def _key(row: AgentState, pool: str) -> str:
    return f"{LASTS}{row.name}/{pool}"


def _lasting_row(situation: Situation, agent: Agent, told: Collection[str]) -> AgentState | None:
    """Find the row in which an agent is for too long, if people are told of it by this rule, and nothing explains it."""
    past = situation.past(agent).state
    row = state_named(past.state) if past else None
    if row is None or row.told_after is None or not (agent.record.is_instance or row in _TOLD_OF_OTHERS):
        return None
    slack = _SLACK_SECONDS if _key(row, agent.pool.name) in told else 0.0
    after = row.told_after(agent.pool, situation.fleet.resume_timeout(agent.record.controller))
    return row if not _is_explained(situation, agent, row) and _lasted(situation, agent, row) >= after - slack else None


def _lasted(situation: Situation, agent: Agent, row: AgentState) -> float:
    """How long an agent is in its row. A drain lasts from its mark on, whatever begins and ends on its executors meanwhile."""
    past = situation.past(agent)
    since_at = past.state.since_at if past.state else situation.now
    if row is states.DRAINS and past.draining_since is not None:
        since_at = min(since_at, past.draining_since)
    if row is states.DRAINED:  # until then a person had a device of it
        since_at = max([since_at, *(one.until_at for one in agent.record.devices_for)])
    return seen_seconds(situation, agent, row, since_at)


def _is_explained(situation: Situation, agent: Agent, row: AgentState) -> bool:
    """Tell whether settings or a person want an agent where it is: idle agents of a minimum, and one side of a busy machine."""
    others = [side for side in situation.sides.get(agent.record.machine, ()) if side is not agent]
    if row in (states.DRAINED, states.IDLE) and (
        devices_reserved(situation, agent.record.machine) or any(not side.idle or side.mark is None for side in others)
    ):
        return True
    if row is not states.IDLE:
        return False
    pool = agent.pool
    floor = max(pool.min_agents, ceil(pool.warm_executors / pool.executors))
    ready = sum(len(view.ready) for (_, name), view in situation.pools.items() if name == pool.name)
    return situation.now < agent.record.keep_until or ready <= floor


def _line(situation: Situation, row: AgentState, agent: Agent) -> str:
    name = agent.record.instance_id if row.by_ec2 else agent.record.node or agent.record.instance_id
    causes = "; ".join(_causes(situation, row, agent))
    return f"{name} {row.says}, for {duration(_lasted(situation, agent, row))}" + (f": {causes}" if causes else "")


def _causes(situation: Situation, row: AgentState, agent: Agent) -> Iterator[str]:
    """Say what keeps an agent where it is, in the words of Jenkins, of EC2 or of a person as far as there are any."""
    record = agent.record
    yield from (hold.text(situation.now) for hold in situation.overrides.holds_of_people_on(record.controller, record.pool))
    if agent.node and agent.node.builds:
        yield f"busy with {listed(sorted({name_of_build(build) for build in agent.node.builds}))}"
    yield from filter(None, ("" if agent.mark else told_offline(agent.node), record.trouble))
    if stuck := situation.memory.agent(record.instance_id).stuck:
        yield stuck.why
    if reason := situation.no_giving_up(record.controller):
        yield f"nothing is terminated on {record.controller} now: {reason}"
    if row is states.BOUND:
        yield from _bound_to(situation, agent)
    if row is states.IDLE and (kept := why_kept(situation, agent)):
        yield kept
    yield from _failing_steps(situation, {record.node or "", record.instance_id})


def _failing_steps(situation: Situation, names: set[str]) -> Iterator[str]:
    return (step.why for key, step in trials_of(situation.memory, TrialOf.STEP).items() if names & {*key.split("/")})


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


def still_lent_seen(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name the pools with agents that still have the labels of a loan an hour after its end: plain jobs go on beginning there."""
    nodes = ((agent, agent.node) for agent in situation.agents if agent.node)
    for pool, agents in grouped((agent.pool.name, agent) for agent, node in nodes if _keeps_lent_labels(situation, agent, node)).items():
        lines = [_still_lent_line(situation, agent) for agent in agents[:_NAMED]]
        then = "Jobs of the general kind go on beginning there. Each look asks Jenkins again for the labels to go."
        yield (
            _key(states.LENT, pool),
            _lasts(pool, [agent.record.node or "" for agent in agents], f"{states.LENT.name} too long", *lines, then),
        )


def _keeps_lent_labels(situation: Situation, agent: Agent, node: Node) -> bool:
    """Tell whether a loan was over an hour ago, and its labels are there. On a node that a person marked nothing begins."""
    lent_until = agent.record.lent_until
    if not lent_until or node.temporarily_offline or not labels_to_lend(agent.record, situation.fleet) & node.labels:
        return False
    return seen_seconds(situation, agent, states.LENT, lent_until) >= HOUR_SECONDS


def _still_lent_line(situation: Situation, agent: Agent) -> str:
    labels = " ".join(agent.record.lent_labels)
    ended = f"its loan to jobs that ask for {labels} ended {duration(situation.now - agent.record.lent_until)} ago"
    causes = "; ".join(_failing_steps(situation, {agent.record.node or ""}))
    return f"{agent.record.node}: {ended}" + (f": {causes}" if causes else "")


def without_agents_seen(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name instances without a record that EC2 does not end."""
    agents, row = {agent.record.instance_id for agent in situation.agents}, states.SHUTS_DOWN
    pasts = {name: past for name, past in in_state(situation.memory, row.name).items() if name not in agents}
    lasting = (name for name, past in pasts.items() if situation.ec2_seen_seconds(past.since_at) >= states.SHUTS_DOWN_SECONDS)
    for pool, names in grouped((pasts[name].pool, name) for name in lasting).items():
        lines = [f"{name} {row.says}, for {duration(situation.now - pasts[name].since_at)}" for name in names[:_NAMED]]
        seen = _lasts(pool, names, f"{row.name} too long", *lines, f"Deadline: {row.deadline}. Then: {row.then}.")
        yield _key(row, pool), replace(seen, try_it="autoscaler status", daily=True)


# Labels on hold for people: which jobs wait for the end of a hold, where Jenkins starts them all the same, which agents lack the label.


_JOBS_NAMED = 3


def told_holds(situation: Situation, controller: str, item: QueueItem, holds: Collection[Hold]) -> str:
    """Say what holds an item, by whom and until when; and where Jenkins starts it all the same."""
    return "; ".join([text_of(holds, situation.now), *_beyond(situation, controller, item, holds)])


def told_takers(nodes: Iterable[str]) -> str:
    """Say what takes jobs that do not wait for agents."""
    names = [f"node {name}" for name in dict.fromkeys(nodes) if name]
    return f"{listed(names, _NAMED)} took such jobs first" if names else "such jobs left the queue before an agent had booted"


def told_holds_of_job(situation: Situation, job: str) -> Iterator[str]:
    """Say of a job when what holds it ends, and where Jenkins starts it all the same, each once."""
    for controller, demand in situation.demands.items():
        for item, holds in demand.held:
            if item.job == job:
                yield from _beyond(situation, controller, item, holds)


def _beyond(situation: Situation, controller: str, item: QueueItem, holds: Collection[Hold]) -> Iterator[str]:
    for hold in holds:
        if hold.ends_at is not None:
            place = f"{hold.scope} {hold.name}".strip()
            yield f"the hold of {place} ends at {clock(hold.ends_at)}, or with: autoscaler resume {resume_option(hold)}"
    # A hold cannot keep Jenkins from starting it if no label can be taken for it, or a node's labels are not ours.
    nodes, held_labels = situation.snapshot.controllers[controller].nodes, situation.fleet.held_labels
    yield from _of_no_label(situation, nodes, [hold.name for hold in holds if hold.scope is Scope.LABEL])
    for agent in situation.agents:
        has_any = agent.node and not agent.node.offline and held_labels.intersection(agent.record.labels, agent.node.labels)
        if has_any and agent.record.controller == controller and (failing := failing_labels(situation.memory, agent)):
            yield f"Jenkins does not let us take the label from {agent.record.node}: {failing.why}"
    if item.asked_label is not None and (names := _others_with(situation, controller, nodes, item.asked_label)):
        yield f"the labels of {listed(names, _JOBS_NAMED)} are its operator's, so a free executor there still takes it"


def resume_option(hold: Hold) -> str:
    """Write the option of `resume` that ends a hold."""
    if hold.is_budget:
        return "--budget"
    return f"--{hold.scope} {quote(hold.name)}" if hold.name else f"--{hold.scope}"


def _of_no_label(situation: Situation, nodes: Collection[Node], held: Collection[str]) -> Iterator[str]:
    names = {node.name for node in nodes}
    for name in held:
        label = single_label(name)
        if label in names:
            yield f"{label} is a node, which keeps its own name: drain it, or it still takes such jobs"
        elif label not in situation.fleet.held_labels:
            yield f"{name} is not a label of its own, so free executors still take such jobs: hold a label that they need"


def _others_with(situation: Situation, controller: str, nodes: Collection[Node], asked: str) -> list[str]:
    """Name the nodes that are online, satisfy an expression, and have labels that are not ours to take."""
    ours = {agent.record.node for agent in situation.agents if agent.record.controller == controller and agent.record.labels}
    others = (node for node in nodes if not (node.name in ours or node.offline or situation.fleet.is_beacon(node.name)))
    return [node.name for node in others if as_told(asked).matches(node.labels)]


def told_held_labels(situation: Situation, agent: Agent) -> str:
    """Say which labels an agent is without while people hold them, or is about to lose or to get back; "" if it is about none."""
    held, node = situation.fleet.held_labels, agent.node
    if node is None or not (held or HELD_LABEL in node.labels):
        return ""
    taken = sorted(held.intersection(agent.record.labels))
    if not taken:
        return "the hold of its labels is over, and it gets them back" if HELD_LABEL in node.labels else ""
    what = "without" if HELD_LABEL in node.labels else "about to lose"
    return f"{what} {listed(taken)}: {text_of(situation.overrides.holds_of(taken), situation.now)}"
