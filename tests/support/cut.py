"""Cuts one call of a pass off, in every way."""

from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from math import ceil
from random import Random

from autoscaler_workbench.fakes.world.faults import ConnectionLostError, Fault, Faults, StatusError
from support.cutoffs import Died
from support.forks import ONE_IN

WAYS = ("an error is answered", "the answer is lost", "it dies before", "it dies after")


@dataclass(slots=True)
class Cut(Faults):
    """Cuts one call of a pass; counts them all."""

    armed: bool = False
    at: int = -1
    way: str = ""
    made: int = 0
    dead: bool = False

    @contextmanager
    def around(self, call):
        if self.dead:
            raise Died(call)
        is_it = self.armed and self.made == self.at
        self.made += self.armed
        if is_it and self.way == WAYS[0]:
            raise StatusError(Fault(call, status=503, code="Unavailable"))
        self.dead = is_it and self.way == WAYS[2]
        if self.dead:
            raise Died(call)
        yield
        if is_it and self.way == WAYS[1]:
            raise ConnectionLostError(call)
        self.dead = is_it and self.way == WAYS[3]
        if self.dead:
            raise Died(call)


def cuts(calls):
    """Which calls are cut off, and how: all of them, or of many alike some, other ones of each number of calls."""
    every = list(product(range(calls), WAYS))
    return Random(calls).sample(every, ceil(len(every) / int(ONE_IN)))
