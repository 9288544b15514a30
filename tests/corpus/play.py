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
from autoscaler.domain.lessons import learn_from_builds
from autoscaler.domain.lifecycle import InstanceEvent
from autoscaler.domain.memo import Memo
from autoscaler.domain.scale_in.replace import gone_since
from autoscaler.domain.situation.builds import items_of
from corpus.case import Asks, Case, Look
from corpus.neutral import lines_of, lines_of_lesson, lines_of_questions

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
    """Decide look by look, with one memo as a run of passes has. ``carried``: is changed, and holds
    in the end what is remembered then."""
    carried, memo = carried or begin(case), Memo()
    for look in case.looks:
        if look.asks is Asks.LEARN:
            yield learn(look, carried, memo)
        else:
            decided = decide_on(look, carried.at(look), memo)
            remember(look, decided, carried)
            yield lines_of(decided)


def decide_on(look: Look, snapshot: Snapshot, memo: Memo | None = None) -> Plan:
    match look.asks:
        case Asks.UP:
            return decide.scale_up(snapshot, look.fleet, memo)
        case Asks.DOWN:
            return decide.scale_down(snapshot, look.fleet, memo)
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


def learn(look: Look, carried: Carried, memo: Memo | None = None) -> list[str]:
    """Learn as a measurement does. Return what it asks Jenkins, and what it tells."""
    snapshot, told = carried.at(look), list[str]()
    situation = assess(snapshot, look.fleet, memo)
    for name, answers in look.answers.items():
        before, view = snapshot.learned[name], snapshot.controllers[name]
        items, asked = items_of(before, view, answers.left, snapshot.taken_at), list[int]()
        for item in items.to_ask() if view.complete else ():
            asked.append(item)
            if item not in answers.items:
                break
            items.answers[item] = answers.items[item]
        results = [gone.run for gone in gone_since(before, view)]
        told += lines_of_questions(name, results=results, items=asked)
        lesson = learn_from_builds(situation, name, answers.results, answers.graphs, items)
        told += lines_of_lesson(name, lesson)
        learned = replace(
            lesson.learned,
            weights=answers.weights,
            heavy_jobs=answers.heavy_jobs,
            short_of_disk=answers.short_of_disk,
        )
        if not learned.tells_what(before):
            carried.learned[name] = learned
    return told
