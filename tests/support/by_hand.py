"""Instances that people launched, and that carry the tags of a fleet: written by hand, or copied by "Launch more like this"."""

from typing import Any

from autoscaler_workbench.fakes.world.ec2.instance import Instance, Spell
from autoscaler_workbench.fakes.world.world import World

DAY_SECONDS = 86_400.0


def launched_by_hand(world: World, fleet: str, *, pool: str = "cpu", days: float = 400.0, tags: Any = (), **facts: Any) -> Instance:
    """A machine that runs, and that CreateFleet did not launch. Its tags are all that a person may write."""
    at = world.timeline.now - days * DAY_SECONDS
    given = {"Name": "orders-database", "autoscaler:fleet": fleet, "autoscaler:pool": pool, "autoscaler:controller": "main"}
    instance = Instance(
        id=f"i-0000000000000db{len(world.ec2.instances):02}",
        instance_type="r7i.4xlarge",
        subnet="subnet-prod",
        market="on-demand",
        template="",
        launched_at=at,
        visible_at=at,
        booted_at=at,
        **{"state": "running", "spells": [Spell(began_at=at)], "tags": {**given, **dict(tags)}, **facts},
    )
    world.ec2.instances[instance.id] = world.ec2.remembered[instance.id] = instance
    world.ec2.changes += 1
    return instance
