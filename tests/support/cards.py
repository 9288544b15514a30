"""Hosts with cards, and builds that take one by a lease."""

from autoscaler.control.observe import observe
from autoscaler.domain.learn import assess
from autoscaler.domain.situation.supply import free_executors
from autoscaler_workbench.fakes.world.cards import Cards
from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.fakes.world.jenkins.controller import Controller
from autoscaler_workbench.fakes.world.world import World
from support.timeline import Day


def give_cards(world: World, host: str, count: int) -> Cards:
    """Put so many cards into a host."""
    world.hosts[host].cards = cards = Cards(world.timeline, count)
    return cards


def submit(controller: Controller, job: str, label: str, seconds: float, **facts) -> Build:
    """Queue a build whose work is done with a card."""
    build = controller.submit(job, label, seconds, **facts)
    build.takes_card = True
    return build


def leased_at_once(world: World, node: str = "rocm-1") -> int:
    """Count the builds that held cards of a machine at the same time, at the most; a build counts until Jenkins says that it has ended."""
    builds = [build for one in world.controllers.values() for build in one.builds if build.node == node and build.leased_at is not None]
    changes = [(build.leased_at, 1) for build in builds]
    changes += [(build.ended_at if build.ended_at is not None else world.timeline.now, -1) for build in builds]
    most = held = 0
    for _, change in sorted(changes):
        held += change
        most = max(most, held)
    return most


def believed_free(day: Day) -> dict[str, int]:
    """What the functions count as free on each side of the only host, from what they can see."""
    ports, fleet = day.fleet.ports, day.fleet.fleet
    situation = assess(observe(ports, fleet, ports.state.read(), day.fleet.invocation()), fleet)
    online = {agent for agent in situation.agents if agent.node and not agent.node.offline}
    return {agent.record.controller: free_executors(situation, agent) if agent in online else 0 for agent in situation.agents}
