"""Makes cases on purpose, of what recorded worlds show too seldom.

Each begins with looks of a recorded series in which an agent is in a row of the table of deadlines.
Then the world stands still until its deadline has passed; or Jenkins restarts, cannot be read,
shuts down, or names the agent's node; or nobody looks for a while.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from autoscaler.domain.facts.plan import Plan
from autoscaler.domain.facts.snapshot import ControllerView, QueueItem, Wait
from corpus.case import Asks, Case, Look
from corpus.neutral import lines_of, without_detail
from corpus.play import Carried, begin, decide_on, learn, remember
from support.remembered import tables

_BEFORE = 16  # looks of a prefix
_STILL = 60  # ticks in which the world stands still
_APART = 150.0
_AFTER = 6  # ticks after what happens once
_EDGE = 1.0
_LAUNCH = "launch-asked"


@dataclass(frozen=True, slots=True)
class Moment:
    """A look of a series in which an agent is in a row of the table of deadlines."""

    row: str
    series: Case
    number: int
    node: str
    controller: str

    def case(self, name: str, looks: Iterable[Look]) -> Case:
        """Make a case of the prefix and more; it remembers at first what the series does, if it
        begins with it."""
        begun = self.series if self.number < _BEFORE else Case(name="", looks=())
        return replace(
            begun, name=f"{name} while {self.row}: {self.series.name}", looks=(*self.prefix, *looks)
        )

    @property
    def prefix(self) -> tuple[Look, ...]:
        return self.series.looks[max(0, self.number + 1 - _BEFORE) : self.number + 1]

    @property
    def rest(self) -> tuple[Look, ...]:
        return self.series.looks[self.number + 1 : self.number + 1 + 3 * _AFTER]


def moments(case: Case) -> Iterator[Moment]:
    """The first look of a series at each row, played with nothing remembered but what the prefix
    teaches."""
    carried, known, asked = begin(case), set[str](), list[str]()
    for number, look in enumerate(case.looks):
        if look.asks is Asks.LEARN:
            learn(look, carried)
            continue
        plan = decide_on(look, carried.at(look))
        remember(look, plan, carried)
        if look.asks is Asks.UP:
            asked = [intent.controller for intent in look.facts.intents if intent.open]
        if look.asks is not Asks.DOWN:
            continue
        nodes = {record.instance_id: record for record in look.facts.records}
        if asked and _LAUNCH not in known:  # a row of no agent
            known.add(_LAUNCH)
            yield Moment(_LAUNCH, case, number, "", asked[0])
        for instance_id, row in tables(plan.memory).states.items():
            if row.row not in known and instance_id in nodes:
                known.add(row.row)
                record = nodes[instance_id]
                yield Moment(row.row, case, number, record.node or "", record.controller)


def cases_at(moment: Moment) -> Iterator[Case]:
    """Everything that may happen at a moment."""
    yield from still(moment)
    for happening in (restarts, cannot_be_read, is_asked_for, shuts_down, nobody_looks):
        yield moment.case(happening.__name__.replace("_", " "), happening(moment))


def still(moment: Moment) -> Iterator[Case]:
    """The world stands still. Beside each look in which something new is decided, one a second
    before its time, and one at it."""
    last = _last_tick(moment.prefix)
    looks: list[Look] = []
    for tick in range(1, _STILL + 1):
        looks += [_later(look, tick * _APART, f"still-{tick}") for look in last]
    case = moment.case("stands still", looks)
    yield case
    yield from edges(case, len(moment.prefix), len(last))


def edges(case: Case, begin_at: int, width: int) -> Iterator[Case]:
    """Find when the first new thing is decided, to a second, and look just before and just
    after."""
    carried, before = begin(case), None
    for number, look in enumerate(case.looks):
        if look.asks is Asks.LEARN:
            learn(look, carried)
            continue
        start = Carried(memory=carried.memory, learned=dict(carried.learned))
        plan = decide_on(look, carried.at(look))
        lines = _said(plan)
        if (
            look.asks is Asks.DOWN
            and number >= begin_at + width
            and before is not None
            and lines != before
        ):
            edge = _edge(look, start, before)
            looks = (
                *case.looks[:number],
                _at(look, edge - _EDGE, "before"),
                _at(look, edge + _EDGE, "after"),
            )
            yield replace(case, name=f"just before and after: {case.name}", looks=looks)
            return
        if look.asks is Asks.DOWN:
            before = lines
        remember(look, plan, carried)


def _edge(look: Look, start: Carried, before: set[str]) -> float:
    early, late = look.facts.taken_at - _APART, look.facts.taken_at
    while late - early > _EDGE / 2:
        middle = (early + late) / 2
        changed = _said(decide_on(at := _at(look, middle, "edge"), start.at(at))) != before
        early, late = (early, middle) if changed else (middle, late)
    return late


def _said(plan: Plan) -> set[str]:
    return {without_detail(line) for line in lines_of(plan)}


def restarts(moment: Moment) -> Iterable[Look]:
    """Jenkins of the agent's controller restarts: another session from now on."""
    return [
        _with_view(
            look, moment.controller, lambda view: replace(view, session=f"{view.session}-again")
        )
        for look in moment.rest
    ]


def cannot_be_read(moment: Moment) -> Iterable[Look]:
    """For three ticks the controller cannot be read."""
    last = _last_tick(moment.rest[: 3 * len(_last_tick(moment.prefix))] or moment.prefix)
    until = last[-1].facts.taken_at

    def nothing(view: ControllerView) -> ControllerView:
        return ControllerView.of_nothing(view.name, "it did not answer", 30.0)

    return [
        _with_view(look, moment.controller, nothing) if look.facts.taken_at <= until else look
        for look in moment.rest
    ]


def is_asked_for(moment: Moment) -> Iterable[Look]:
    """A part of a pipeline waits for the agent's node by its name."""
    return [
        _with_view(look, moment.controller, lambda view: _naming(view, moment.node))
        for look in moment.rest
    ]


def shuts_down(moment: Moment) -> Iterable[Look]:
    """Jenkins is about to shut down."""
    return [
        _with_view(look, moment.controller, lambda view: replace(view, quieting_down=True))
        for look in moment.rest
    ]


def nobody_looks(moment: Moment) -> Iterable[Look]:
    """An hour passes without a look."""
    return [_later(look, 3600.0, "late") for look in moment.rest]


def _naming(view: ControllerView, node: str) -> ControllerView:
    if not node or not view.complete:
        return view
    item = QueueItem(
        id=9_000_001,
        job="resumed",
        run="job/resumed/7/",
        label=None,
        labelless=False,
        wait=Wait(for_executor=False, nodes=(node,)),
        buildable=True,
        waiting_seconds=120.0,
    )
    return replace(view, items=(*view.items, item))


def _with_view(look: Look, name: str, changed: Callable[[ControllerView], ControllerView]) -> Look:
    views = {
        one: changed(view) if one == name else view for one, view in look.facts.controllers.items()
    }
    return replace(look, facts=replace(look.facts, controllers=views))


def _last_tick(looks: Sequence[Look]) -> list[Look]:
    """The decisions of the last minute, without what was carried out."""
    ups = [look for look in looks if look.asks is Asks.UP]
    downs = [look for look in looks if look.asks is Asks.DOWN]
    return [*ups[-1:], *downs[-1:]]


def _later(look: Look, seconds: float, name: str) -> Look:
    return _at(look, look.facts.taken_at + seconds, name)


def _at(look: Look, at: float, name: str) -> Look:
    facts = replace(
        look.facts,
        taken_at=at,
        pass_id=f"{look.facts.pass_id}-{name}",
        request_id=f"{look.facts.request_id}-{name}",
    )
    outcomes = look.outcomes and type(look.outcomes)()
    return replace(look, facts=facts, outcomes=outcomes, over_at=at)
