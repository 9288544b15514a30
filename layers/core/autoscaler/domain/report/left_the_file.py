"""What a person decides: agents whose pool or controller left the fleet file, and machines with our tags that we did not launch."""

from collections.abc import Iterable, Iterator, Sequence

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.snapshot import Record
from autoscaler.domain.repair.heal import agents_unseen_for_ever, strays_unseen_for_ever
from autoscaler.domain.report.offline import told_offline
from autoscaler.domain.report.stopped import usd_per_hour_of
from autoscaler.domain.report.told import Seen
from autoscaler.domain.scale_in.surplus import told_hold, why_left
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.deadlines import FOREIGN
from autoscaler.domain.situation.rows import is_controller_left, is_left, is_on_hold, why_not_wanted
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import counted, dollars, duration, end_command, listed

_RUNBOOK = "operations.md#left-the-fleet-file"
_NAMED = 10


def left_seen(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Tell of pools that left, and of controllers that left, with the agents that they leave behind."""
    pools: dict[str, list[Agent]] = {}
    for agent in situation.agents:
        if is_left(agent) and not agent.instance_ended and not is_controller_left(situation, agent.record.controller):
            pools.setdefault(agent.pool.name, []).append(agent)
    for pool, agents in pools.items():
        yield f"left/pool/{pool}", _pool_seen(situation, pool, agents)
    for (controller, pool), names in _unseen(situation).items():
        yield f"left/controller/{controller}/{pool}", _controller_seen(situation, controller, pool, names)
    if ids := _foreign(situation):
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
    drained = (agent for agent in situation.agents if is_left(agent) and not is_controller_left(situation, agent.record.controller))
    lines = [f"{_name(agent.record)}: {line}" for agent in drained if not agent.instance_ended for line in told_left(situation, agent)]
    lines += _hosts_and_sides(situation)
    for (controller, _), names in _unseen(situation).items():
        lines += [f"{name}: {_nobody_sees(controller)}; {_end(instance)}" for instance, name in names.items()]
    lines += [told_foreign(situation.fleet, [name]) for name in _foreign(situation)]
    return tuple(lines)


def _hosts_and_sides(situation: Situation) -> Iterator[str]:
    for agent in situation.agents:
        if is_left(agent) or agent.instance_ended or is_controller_left(situation, agent.record.controller):
            continue
        if why := why_not_wanted(situation, agent):
            yield f"{_name(agent.record)}: {why}: {_what_becomes_of(situation, agent)}"


def told_left(situation: Situation, agent: Agent) -> Iterator[str]:
    """Say that an agent's pool or controller left the fleet file, and what becomes of it."""
    controller = agent.record.controller
    if is_controller_left(situation, controller):
        yield f"{_nobody_sees(controller)}; put the controller back, or run: {_end(agent.record.machine)}"
    elif is_left(agent):
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
    if name in _foreign(situation):
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


def _unseen(situation: Situation) -> dict[tuple[str, str], dict[str, str]]:
    """Name what nobody sees by its controller and pool, then by its machine."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for agent in agents_unseen_for_ever(situation):
        found.setdefault((agent.record.controller, agent.pool.name), {})[agent.record.machine] = _name(agent.record)
    for instance in strays_unseen_for_ever(situation):
        found.setdefault((instance.controller, instance.pool), {})[instance.id] = f"{instance.node or instance.id} ({instance.id})"
    return found


def _foreign(situation: Situation) -> list[str]:
    return [name for name, past in situation.memory.rows.items() if past.row == FOREIGN]


def _pool_seen(situation: Situation, pool: str, agents: list[Agent]) -> Seen:
    becomes = dict.fromkeys(_what_becomes_of(situation, agent) for agent in agents)
    names = [_name(agent.record) for agent in agents]
    text = f"{why_left(situation, agents[0])}. Its agents: {listed(names, _NAMED)}.\nWhat becomes of them: {'; '.join(becomes)}."
    usd = f"They cost {_cost(situation, (agent.record for agent in agents))} an hour until then. To keep them, put the pool back."
    return Seen(f"agents of {pool} left the fleet file", f"{text}\n{usd}", _RUNBOOK, f"autoscaler why {agents[0].record.node or pool}")


def _controller_seen(situation: Situation, controller: str, pool: str, names: dict[str, str]) -> Seen:
    cost = _cost(situation, (record for record in situation.snapshot.living if record.machine in names))
    text = f"{_nobody_sees(controller)}: {listed([*names.values()], _NAMED)}. They cost {cost} an hour."
    then = f"Put the controller back, or end each one once nothing runs on it: {_end(next(iter(names)))}"
    return Seen(f"agents of {pool} left the fleet file", f"{text}\n{then}", _RUNBOOK, "autoscaler status", daily=True)


def _nobody_sees(controller: str) -> str:
    return f"controller {controller} left the fleet file, so nobody sees its builds and nothing is ended"


def _end(machine: str) -> str:
    return f"autoscaler end {machine} --yes"


def _name(record: Record) -> str:
    return f"{record.node} ({record.machine})" if record.node else record.machine


def _cost(situation: Situation, records: Iterable[Record]) -> str:
    return dollars(sum(usd_per_hour_of(situation, record) for record in records))
