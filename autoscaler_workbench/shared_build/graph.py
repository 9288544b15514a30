"""The tasks of a build and what each needs: drawn from a seed, the same on every machine."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

TASKS = 600
_CHAINS = 3  # through all layers: their tasks have only each other to wait for
_WAIT_SECONDS = (0.02, 0.06)
_ROUNDS = (2_000, 6_000)  # half a millisecond to two of a core
_BYTES = (16_384, 81_920)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task, after all that it needs: it waits (a stand-in for its I/O), computes, and has an artifact."""

    name: str
    needs: tuple[str, ...]
    wait_seconds: float
    rounds: int
    size: int

    def artifact(self, inputs: Sequence[bytes]) -> bytes:
        """Compute the artifact: the same bytes from the same inputs, whoever does it."""
        read = hashlib.sha256(b"".join(hashlib.sha256(content).digest() for content in inputs)).digest()
        key = hashlib.pbkdf2_hmac("sha256", read, self.name.encode(), self.rounds)
        return hashlib.shake_256(key).digest(self.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How many tasks come one after the other before all else, and how many layers the others have."""

    head: int
    layers: int


SHAPES = {"wide": Shape(head=10, layers=8), "mixed": Shape(head=30, layers=14), "deep": Shape(head=90, layers=24)}


def draw(shape: Shape, seed: int, count: int, wait_factor: float) -> tuple[Task, ...]:
    """Draw the tasks, each after those that it needs. ``wait_factor``: 1 is as drawn."""
    random = Random(seed)  # noqa: S311
    return tuple(_task(random, name, needs, wait_factor) for name, needs in _edges(shape, random, count))


def artifacts(tasks: Sequence[Task]) -> dict[str, bytes]:
    """Compute all artifacts in one process, without a cache: what every build must come to."""
    made: dict[str, bytes] = {}
    for task in tasks:
        made[task.name] = task.artifact([made[name] for name in task.needs])
    return made


def digest(made: Mapping[str, bytes]) -> str:
    """Sum up all artifacts in one checksum."""
    total = hashlib.sha256()
    for name in sorted(made):
        total.update(name.encode() + b"\0" + hashlib.sha256(made[name]).digest())
    return total.hexdigest()


def _task(random: Random, name: str, needs: tuple[str, ...], wait_factor: float) -> Task:
    return Task(
        name=name,
        needs=needs,
        wait_seconds=random.uniform(*_WAIT_SECONDS) * wait_factor,
        rounds=random.randint(*_ROUNDS),
        size=random.randint(*_BYTES),
    )


def _edges(shape: Shape, random: Random, count: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    head = [f"head-{place:03}" for place in range(shape.head)]
    for place, name in enumerate(head):
        yield name, tuple(head[place - 1 : place])
    before, last = head[-1:], head[-1:]
    left = count - len(head)
    for layer in range(shape.layers):
        width = left // shape.layers + (layer < left % shape.layers)
        names = [f"layer-{layer:02}-{place:03}" for place in range(width)]
        for place, name in enumerate(names):
            if place < _CHAINS:
                yield name, (last[min(place, len(last) - 1)],)
            else:
                yield name, tuple(sorted({random.choice(last), *random.sample(before, k=min(len(before), random.randint(0, 3)))}))
        before, last = before + names, names
