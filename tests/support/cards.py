"""Hosts with cards, and builds that take one by a lease."""

from autoscaler_workbench.fakes.world.cards import Cards
from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.fakes.world.jenkins.controller import Controller
from autoscaler_workbench.fakes.world.world import World


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
