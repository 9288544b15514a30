"""Two stacks on one controller, each with an EC2 of its own: as in two regions."""

from dataclasses import replace
from random import Random

from autoscaler.domain.facts.fleet import Fleet
from autoscaler_workbench.fakes.world.faults import Faults
from autoscaler_workbench.fakes.world.world import World, build_world
from autoscaler_workbench.simulate.drive import InMemory
from support.timeline import MINUTE
from support.worlds import in_memory


class TwoFleets:
    """The first fleet's world has the controller; the second one launches elsewhere, and its agents connect there."""

    def __init__(self, *pools, other: Fleet, home: str = "") -> None:
        self.first = in_memory(*pools)
        self.first.deploy(replace(self.first.fleet, home=home))
        world = self.first.world
        elsewhere = build_world(other, start_at=world.timeline.now, seed=9).ec2
        elsewhere.timeline = world.timeline
        self.second = InMemory(World(other, world.timeline, world.controllers, elsewhere, Random(5)), other, Faults())
        self.world, self.jenkins = world, world.controllers["main"]

    def minutes(self, count: int) -> "TwoFleets":
        for _ in range(count):
            self.world.move_to(self.world.timeline.now + MINUTE)
            for fleet in (self.first, self.second):
                fleet.publish_metrics()
                fleet.scale_up()
                fleet.scale_down()
        return self

    def launched(self) -> list[int]:
        return [len(fleet.world.ec2.instances) for fleet in (self.first, self.second)]

    def sent(self) -> list[list[str]]:
        return [[message.subject for message in fleet.notifier.sent] for fleet in (self.first, self.second)]
