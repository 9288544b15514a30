"""Moments of a scene: before a minute's passes the process forks, and each child lives on with another fact.

Run by a server of `support.forks`, or as a process of its own. A child that crashes or does not end shows nothing.
"""

import gc
import os
import pickle
import resource
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from inspect import getattr_static
from itertools import zip_longest
from traceback import extract_tb
from typing import Any

from autoscaler_workbench.simulate.drive import InMemory
from seams.altering import Alteration, Place, altered, alternatives, is_empty, places
from seams.doors import Seen, live
from seams.facts import classes, facts, hints

# The doors by what they do: decide, report, answer questions, carry out orders.
DECIDING, TELLING, ASKED, ORDERED = ("scale_up", "scale_down", "register_agent"), ("publish_metrics",), ("operate",), ("order",)
DOORS = (*DECIDING, *TELLING)
WINDOW_MINUTES = 2
_MOST_CPU_SECONDS = 20
_LAYER = "/autoscaler/"
_MOST_PLACES = 8
Places = dict[str, list[tuple[Place, Any]]]


class Moment:
    """One minute of a scene, before its passes."""

    def __init__(self, fleet: InMemory, doors: tuple[str, ...] = DOORS, minutes: int = WINDOW_MINUTES) -> None:
        self._fleet, self._doors, self._minutes = fleet, doors, minutes
        gc.freeze()  # what all children share is not gone through in each
        read = self._child(self._recorded)
        assert read is not None, "the undisturbed minutes crash"
        self.seen: Seen = read[0]
        self.places: Places = read[1]
        self.read: dict[str, set[str]] = read[2]  # the facts that our code reads at each door

    def tries(self, fact: str) -> Iterator[Alteration]:
        """Each alteration of a fact that is read here."""
        here = self.places.get(fact, ())
        kind = facts()[fact]
        hint = hints(kind)[fact.partition(".")[2]]
        others = [value for _, value in here]
        each = [[Alteration(place, other) for other in alternatives(value, hint, others)] for place, value in here]
        yield from (one for in_turn in zip_longest(*each) for one in in_turn if one is not None)

    def differs(self, alteration: Alteration, doors: Collection[str]) -> str:
        """The first of these doors at which the alteration is seen; "" where at none."""
        seen = self._child(partial(self._altered, alteration))
        if seen is None:
            return ""
        return next((door for door in doors if seen.get(door) != self.seen.get(door)), "")

    def problem_of(self, alteration: Alteration, but: type[Exception]) -> str:
        """Say what crashes with the alteration and where, or that it does not end; "" where nothing does, or what may."""

        def act() -> str:
            try:
                self._altered(alteration)
            except but:
                return ""
            except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
                inside = [frame for frame in extract_tb(error.__traceback__) if _LAYER in frame.filename]
                where = f"{inside[-1].filename.rpartition(_LAYER)[2]}:{inside[-1].lineno}" if inside else "outside of the layer"
                return f"{type(error).__name__}: {error} at {where}"
            return ""

        said = self._child(act)
        return "it does not end" if said is None else said

    def _recorded(self) -> tuple[Seen, Places, dict[str, set[str]]]:
        held: dict[str, dict[Place, Any]] = {}

        def record(source: str, answer: Any) -> Any:
            for place, value in places(answer, source):
                known = held.setdefault(place.fact, {})
                # One door may read a fact as empty where another one has its value: keep the value.
                if is_empty(known[place]) if place in known else len(known) < _MOST_PLACES:
                    known[place] = value
            return answer

        read: dict[str, set[str]] = defaultdict(set)
        door = ["register_agent"]

        def note(fact: str) -> None:
            read[door[0]].add(fact)

        trace(note)
        seen = live(self._fleet, self._minutes, record, self._doors, door)
        return seen, {fact: list(known.items()) for fact, known in held.items()}, dict(read)

    def _altered(self, alteration: Alteration) -> Seen:
        return live(self._fleet, self._minutes, lambda source, answer: altered(answer, source, alteration), self._doors)

    def _child(self, act: Callable[[], Any]) -> Any:
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read_end)
            resource.setrlimit(resource.RLIMIT_CPU, (_MOST_CPU_SECONDS, _MOST_CPU_SECONDS))
            try:
                said = pickle.dumps(act())
            except BaseException:  # noqa: BLE001 - the child's boundary: what crashes shows nothing
                said = b""
            with os.fdopen(write_end, "wb") as pipe:
                pipe.write(said)
            os._exit(0)
        os.close(write_end)
        with os.fdopen(read_end, "rb") as pipe:
            said = pipe.read()
        os.waitpid(pid, 0)
        return pickle.loads(said) if said else None  # noqa: S301 - our own child wrote it


def trace(note: Callable[[str], None]) -> None:
    """From now on, note each fact that code of the layer reads."""
    for name, kind in classes().items():
        for field in fields(kind):
            _trace(kind, field.name, f"{name}.{field.name}", note)


def _trace(kind: type, name: str, fact: str, note: Callable[[str], None]) -> None:
    slot = getattr_static(kind, name, None)  # it may be of a class that it extends

    def read(thing: Any) -> Any:
        if _LAYER in sys._getframe(1).f_code.co_filename:
            note(fact)
        return slot.__get__(thing) if hasattr(slot, "__get__") else thing.__dict__[name]

    def write(thing: Any, value: Any) -> None:
        if hasattr(slot, "__set__"):
            slot.__set__(thing, value)
        else:
            thing.__dict__[name] = value

    setattr(kind, name, property(read, write))


class SceneOverError(Exception):
    """No further moment of the scene is wanted."""


@contextmanager
def _at_each_minute(act: Callable[[InMemory, int], None]) -> Iterator[None]:
    publish, minute, process = InMemory.publish_metrics, 0, os.getpid()

    def publish_at_a_moment(fleet: InMemory) -> None:
        nonlocal minute
        if os.getpid() == process:  # a child lives on undisturbed
            minute += 1
            act(fleet, minute)
        publish(fleet)

    InMemory.publish_metrics = publish_at_a_moment
    try:
        yield
    finally:
        InMemory.publish_metrics = publish


def visit(scene: Callable[[], object], minutes: Collection[int] | None, act: Callable[[InMemory, int], None]) -> None:
    """Live a scene, and act at these minutes of it, or at each."""
    last = max(minutes) if minutes else 0

    def at(fleet: InMemory, minute: int) -> None:
        if minutes is None or minute in minutes:
            act(fleet, minute)
            if minute == last:
                raise SceneOverError

    with _at_each_minute(at):
        try:
            scene()
        except SceneOverError:
            return
        finally:
            gc.unfreeze()  # what this scene held may go
