"""Eventual consistency: the instances that DescribeInstances leaves out although they exist."""

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autoscaler_workbench.fakes.world.ec2.instance import Instance


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """How EC2 lists instances: by default all; the shares are of the spells in which it leaves one out."""

    empty_until: float = 0.0  # epoch seconds until which it shows nothing at all, however it is asked
    missing: float = 0.0  # from lists, such as those by tag
    missing_by_id: float = 0.0  # from answers to a question for this very instance
    spell_seconds: float = 60.0
    ended_seconds: float = 0.0  # for so long after its end it shows an instance as running: the view of a server that lags behind
    page: int = 1000  # instances in one answer at most; EC2's own limit

    def shown(self, instances: Iterable["Instance"], now: float, *, by_id: bool = False) -> Iterable["Instance"]:
        """Leave out hidden instances; the answer is the same for everybody within a spell."""
        if now < self.empty_until:
            return ()
        if self.ended_seconds:
            instances = [self._as_it_was(instance, now) for instance in instances]
        share = self.missing_by_id if by_id else self.missing
        if not share:
            return instances
        spell = f"{by_id}/{int(now // self.spell_seconds)}"
        return [i for i in instances if Random(f"{i.id}/{spell}").random() >= share]  # noqa: S311 - a simulation's chance

    def _as_it_was(self, instance: "Instance", now: float) -> "Instance":
        if instance.ended_at is None or now - instance.ended_at >= self.ended_seconds:
            return instance
        shown = copy(instance)
        shown.state = "running"
        return shown
