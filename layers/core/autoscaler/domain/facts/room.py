"""The room that the builds on an agent leave, where jobs weigh more or less: how many more may begin, and so how many executors it shows.

Jenkins hands a build to any executor that is free, whatever the build weighs. So an agent shows no more executors than builds fit, each
taken to be as heavy as the heaviest that waits. One that has no room loses its labels; one executor stays free there, for what names the
node itself: a part of a build that already runs there would wait for ever. Once no job has a weight any more, an agent gets all its
executors back as soon as it is idle: a build that was heavy keeps its room until it ends.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from autoscaler.domain.facts.fleet import Fleet, Pool
from autoscaler.domain.facts.job_weights import Source
from autoscaler.domain.facts.memory import Learned
from autoscaler.domain.facts.snapshot import Node, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What the builds on an agent take of what it has, in executors, and how many executors its node is to have."""

    taken: int
    of: int
    executors: int
    is_full: bool

    def is_shown_by(self, node: Node) -> bool:
        """Tell whether a node has so many executors.

        If its labels are off, no build takes the executors beyond that: they are left until there is room.
        """
        return node.executors >= self.executors if self.is_full else node.executors == self.executors


def room_on(record: Record, node: Node, fleet: Fleet, weight: int = 1) -> Room | None:
    """Work out the room for builds of this weight; None if no job has one, or the node is its operator's own.

    Whatever its weight, an idle agent has room for one: it then runs alone.
    """
    pool = fleet.pools.get(record.pool)
    if not record.labels or pool is None:
        return None
    if not fleet.weights:
        is_to_give_back = record.by_weight and node.idle and not node.builds
        return Room(taken=0, of=pool.executors, executors=pool.executors, is_full=False) if is_to_give_back else None
    taken = executors_taken(node, fleet)
    if weight == 1 and taken == len(node.builds) <= pool.executors:  # nothing heavy runs or waits
        return Room(taken=taken, of=pool.executors, executors=pool.executors, is_full=False)
    more = (pool.executors - taken) // min(weight, pool.executors)
    return Room(taken=taken, of=pool.executors, executors=len(node.builds) + max(1, more), is_full=more < 1)


def executors_taken(node: Node, fleet: Fleet) -> int:
    """Count the executors that the builds on a node take by their weights; more than it has where the last one was too heavy."""
    return sum(fleet.weights.of_running(build.job) for build in node.builds)


def with_known_weights(fleet: Fleet, learned: Mapping[str, Learned]) -> Fleet:
    """Return the fleet with the weights that were learned or read on its controllers, where any are asked for."""
    weights = fleet.weights.knowing(Source.LEARNED, (one.weights for one in learned.values()))
    heavy = ({job: one.weight for job, one in each.heavy_jobs.items()} for each in learned.values())
    weights = weights.knowing(Source.PLUGIN, heavy)
    return fleet if weights is fleet.weights else replace(fleet, weights=weights)


def executors_at_first(pool: Pool, fleet: Fleet) -> int:
    """Say how many executors a new node shows until the first look at it: as many as builds fit that are as heavy as any."""
    return max(1, pool.executors // fleet.weights.heaviest)
