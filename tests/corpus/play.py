"""Plays a case: decides look by look, with nothing carried on but what the code under test
remembers itself."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from autoscaler.adapters.dynamodb import _ENTRY, _Entry
from autoscaler.domain import commands, decide
from autoscaler.domain.facts import orders
from autoscaler.domain.facts.memory import Learned, Memory
from autoscaler.domain.facts.plan import Plan
from autoscaler.domain.facts.snapshot import Snapshot
from autoscaler.domain.learn import assess, note_results
from autoscaler.domain.lessons import Lesson, learn_from_builds
from autoscaler.domain.lifecycle import InstanceEvent
from autoscaler.domain.situation.builds import items_of
from autoscaler.domain.situation.situation import Situation
from corpus.case import Answers, Asks, Case, Look
from corpus.neutral import lines_of, lines_of_lesson

COMMANDS: dict[type, Callable[..., Plan]] = {
    orders.LaunchSome: commands.launch_some,
    orders.DrainSome: commands.drain_for_a_person,
    orders.DrainNodes: commands.drain_for_a_person,
    orders.DrainAll: commands.drain_for_a_person,
    orders.Reserve: commands.reserve_for_a_person,
    orders.Release: commands.release_for_a_person,
    orders.EndInstance: commands.end_for_a_person,
    orders.Resume: commands.bring_back_for_a_person,
    orders.CloseBreaker: commands.close_breaker_for_a_person,
    orders.Purge: commands.purge_for_a_person,
    InstanceEvent: commands.handle,
}


@dataclass(slots=True)
class Carried:
    """What the code under test remembers between two looks."""

    memory: Memory = field(default_factory=Memory)
    learned: dict[str, Learned] = field(default_factory=dict)

    def at(self, look: Look) -> Snapshot:
        """The facts of a look, with what is remembered."""
        learned = {name: self.learned.get(name, Learned()) for name in look.facts.controllers}
        return replace(look.facts, memory=self.memory, learned=learned)


def begin(case: Case) -> Carried:
    """Read what a case has to remember, by the reader of stored data."""
    carried = Carried(
        learned={name: stored(body).learned or Learned() for name, body in case.learned.items()}
    )
    carried.memory = (stored(case.memory).memory if case.memory else None) or Memory()
    return carried


def stored(body: str) -> _Entry:
    return _ENTRY.load_what_can_be_read(body.encode()).value


def as_stored(memory: Memory | None = None, learned: Learned | None = None) -> str:
    """Write what is remembered as it is stored."""
    return str(_ENTRY.body(_Entry(memory=memory, learned=learned))[0])


def play(case: Case, carried: Carried | None = None) -> Iterator[list[str]]:
    """Decide look by look. ``carried``: is changed, and holds in the end what is remembered
    then."""
    carried = carried or begin(case)
    for look in case.looks:
        if look.asks is Asks.LEARN:
            yield learn(look, carried)
        else:
            decided = decide_on(look, carried.at(look))
            remember(look, decided, carried)
            yield lines_of(decided)


def decide_on(look: Look, snapshot: Snapshot) -> Plan:
    match look.asks:
        case Asks.UP:
            return decide.scale_up(snapshot, look.fleet)
        case Asks.DOWN:
            return decide.scale_down(snapshot, look.fleet)
        case Asks.HOLDS:
            return commands.relabel_for_holds(snapshot, look.fleet)
        case _:
            return COMMANDS[type(look.order)](snapshot, look.fleet, look.order)


def remember(look: Look, decided: Plan, carried: Carried) -> None:
    """Carry on what a pass saves: what it decided, and what became of its steps."""
    if look.outcomes is None:
        return
    effects = list(look.outcomes.effects())
    memory = note_results(decided.memory, look.fleet, effects, look.over_at)
    if decided.remember or memory != decided.memory:
        carried.memory = memory


def learn(look: Look, carried: Carried) -> list[str]:
    """Learn as a measurement does. Return what it tells."""
    snapshot, told = carried.at(look), list[str]()
    situation = assess(snapshot, look.fleet)
    for name, answers in look.answers.items():
        lesson = _lesson(situation, snapshot, name, answers)
        told += lines_of_lesson(name, lesson)
        learned = replace(
            lesson.learned,
            weights=answers.weights,
            heavy_jobs=answers.heavy_jobs,
            short_of_disk=answers.short_of_disk,
        )
        if not learned.tells_what(snapshot.learned[name]):
            carried.learned[name] = learned
    return told


def _lesson(situation: Situation, snapshot: Snapshot, controller: str, answers: Answers) -> Lesson:
    before, view = snapshot.learned[controller], snapshot.controllers[controller]
    items = items_of(before, view, answers.left, snapshot.taken_at)
    for item in items.to_ask():
        if item not in answers.items:
            break
        items.answers[item] = answers.items[item]
    return learn_from_builds(situation, controller, answers.results, answers.graphs, items)
