"""Takes down the looks of whatever runs in this process: the facts of each decision, what became of
its steps, what Jenkins answered."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from itertools import groupby
from typing import Any

from autoscaler.control import apply, measure
from autoscaler.domain import commands, decide
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.memory import Learned, Memory
from autoscaler.domain.facts.plan import Plan
from autoscaler.domain.facts.snapshot import Snapshot
from corpus.case import Answers, Asks, Case, Look
from corpus.outcomes import outcomes_of
from corpus.play import COMMANDS, as_stored

_MOST_LOOKS = 4000  # of one test: those that play weeks would fill the memory
_TICK = 60.0


@dataclass(frozen=True, slots=True)
class RawLook:
    """A look as it was, with what was remembered then. ``plan``: None of a measurement."""

    look: Look
    memory: Memory
    learned: Mapping[str, Learned]
    plan: Plan | None = None

    @property
    def at(self) -> float:
        return self.look.facts.taken_at

    def alone(self, name: str) -> Case:
        """Make it a case of one decision, with what is remembered as it is stored."""
        learned = {
            name: as_stored(learned=one) for name, one in self.learned.items() if one != Learned()
        }
        memory = as_stored(self.memory) if self.memory != Memory() else ""
        return Case(name=name, looks=(self.look,), memory=memory, learned=learned)


@dataclass(slots=True)
class Harvest:
    """The looks of one fleet after another."""

    taken: list[RawLook] = field(default_factory=list)
    _answers: dict[str, dict[str, Any]] = field(default_factory=dict)

    def install(self, put: Callable[[Any, str, Any], None] = setattr) -> None:
        """Stand between the passes and the decision. ``put``: sets a name of a module."""
        notes: list[tuple[Any, str, Callable[..., Any]]] = [
            (decide, "scale_up", self._decided(Asks.UP)),
            (decide, "scale_down", self._decided(Asks.DOWN)),
            (commands, "relabel_for_holds", self._decided(Asks.HOLDS)),
            (apply, "note_results", self._noted),
            (measure, "observe_without_instances", self._observed),
            (measure, "items_of", self._asked),
            (measure, "learn_from_builds", self._learned),
            (measure, "learned_weights", self._weights),
            (measure, "heavy_jobs", self._heavy),
            (measure, "next_short_of_disk", self._short),
        ]
        names = {command.__name__ for command in COMMANDS.values()}
        notes += [(commands, name, self._decided(Asks.ORDER)) for name in names]
        for module, name, note in notes:
            put(module, name, _noting(getattr(module, name), note))

    def take(self) -> list[RawLook]:
        """Return what was taken down since the last call."""
        self._close()
        taken, self.taken = self.taken, []
        return taken

    def _add(self, look: Look, snapshot: Snapshot, plan: Plan | None = None) -> None:
        if len(self.taken) < _MOST_LOOKS:
            self.taken.append(RawLook(look, snapshot.memory, snapshot.learned, plan))

    def _decided(self, asks: Asks) -> Callable[..., None]:
        def note(plan: Plan, snapshot: Snapshot, fleet: Fleet, *more: Any, **given: Any) -> None:
            self._close()
            order = (
                given.get("order", given.get("event", more[0] if more else None))
                if asks is Asks.ORDER
                else None
            )
            self._add(
                Look(asks=asks, facts=without_memory(snapshot), fleet=fleet, order=order),
                snapshot,
                plan,
            )

        return note

    def _noted(
        self, _memory: Memory, _before: Memory, _fleet: Fleet, effects: Any, now: float
    ) -> None:
        if self.taken and self.taken[-1].plan is not None:
            look = replace(self.taken[-1].look, outcomes=outcomes_of(effects), over_at=now)
            self.taken[-1] = replace(self.taken[-1], look=look)

    def _observed(self, snapshot: Snapshot, _ports: Any, fleet: Fleet, *_: Any) -> None:
        self._close()
        self._add(Look(asks=Asks.LEARN, facts=without_memory(snapshot), fleet=fleet), snapshot)

    def _asked(self, items: Any, _before: Any, view: Any, left: list[int], _now: float) -> None:
        self._answer(view.name, left=tuple(left))

    def _learned(
        self,
        _lesson: Any,
        _situation: Any,
        name: str,
        results: Any,
        graphs: Any = None,
        items: Any = None,
    ) -> None:
        self._answer(name, results=dict(results), graphs=graphs, items=dict(items.answers))

    def _weights(self, new: Any, _ports: Any, _fleet: Fleet, name: str, *_: Any) -> None:
        self._answer(name, weights=new)

    def _heavy(self, new: Any, _ports: Any, _fleet: Fleet, _port: Any, view: Any, *_: Any) -> None:
        self._answer(view.name, heavy_jobs=new)

    def _short(self, new: Any, _before: Any, _records: Any, name: str, *_: Any) -> None:
        self._answer(name, short_of_disk=frozenset(new))

    def _answer(self, name: str, **answers: Any) -> None:
        self._answers.setdefault(name, {}).update(answers)

    def _close(self) -> None:
        """Note the answers with the measurement that they belong to."""
        if self._answers and self.taken and self.taken[-1].look.asks is Asks.LEARN:
            answers = {name: Answers(**given) for name, given in self._answers.items()}
            self.taken[-1] = replace(
                self.taken[-1], look=replace(self.taken[-1].look, answers=answers)
            )
        self._answers = {}


def _noting(function: Callable[..., Any], note: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def noting(*args: Any, **given: Any) -> Any:
        value = function(*args, **given)
        note(value, *args, **given)
        return value

    return noting


def without_memory(snapshot: Snapshot) -> Snapshot:
    return replace(snapshot, memory=Memory(), learned={})


def ticks(taken: list[RawLook]) -> list[list[RawLook]]:
    """The looks of each minute. A preview goes if the pass itself follows."""
    minutes = [
        list(group) for _, group in groupby(taken, lambda one: one.look.facts.taken_at // _TICK)
    ]
    return [[*_without_previews(minute)] for minute in minutes]


def _without_previews(minute: list[RawLook]) -> Iterator[RawLook]:
    carried_out = {one.look.asks for one in minute if one.look.outcomes is not None}
    for one in minute:
        if (
            one.look.asks is Asks.LEARN
            or one.look.outcomes is not None
            or one.look.asks not in carried_out
        ):
            yield one


def spaced(minutes: list[list[RawLook]], seconds: float) -> list[list[RawLook]]:
    """Leave minutes out, so that those left are at most so far apart as they can be without a
    longer gap."""
    left: list[list[RawLook]] = []
    for this, following in zip(minutes, [*minutes[1:], None], strict=True):
        if not left or following is None or following[0].at - left[-1][0].at > seconds:
            left.append(this)
    return left


def series(name: str, minutes: list[list[RawLook]]) -> Case:
    return Case(name=name, looks=tuple(one.look for minute in minutes for one in minute))
