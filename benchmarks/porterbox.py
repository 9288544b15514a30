"""Two cards, two controllers and now and then a person: a host each, hosts that rotate, or cards that builds take by turns."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import pairwise
from random import Random
from statistics import fmean
from typing import Any

from joblib import Parallel, delayed

from autoscaler.config import check
from autoscaler.control import passes
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.orders import Reserve
from autoscaler_workbench.fakes.world.cards import Cards
from autoscaler_workbench.fakes.world.hosts import Host
from autoscaler_workbench.fakes.world.world import World, build_world
from autoscaler_workbench.simulate.drive import InProcess, Progress, tick_once
from benchmarks.figures import Figures

_CONTROLLERS, _LABEL, _LOTS, _DAYS = ("debian", "ubuntu"), "gfx1030", (1, 2), 7
_HOUR, _DAY, _LOOK_SECONDS = 3600.0, 86_400.0, 60.0
_MONDAY = 1_700_438_400.0  # midnight, UTC
_CARDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to share two cards. ``hosts``: the pool of each; ``leases``: builds take a card by a lease."""

    name: str
    pools: Mapping[str, Mapping[str, Any]]
    hosts: tuple[str, ...]
    cards: int = 1  # of each host

    @property
    def leases(self) -> bool:
        """Builds of several controllers take cards of the same machine, by leases."""
        return all(pool.get("share") == "cooperative" for pool in self.pools.values())


_EACH_ITS_OWN = {name: {"controllers": [name], "executors": 1} for name in _CONTROLLERS}
WAYS = (
    Way(name="exclusive, a box each", pools=_EACH_ITS_OWN, hosts=_CONTROLLERS),
    Way(name="rotate, two boxes", pools={"rocm": {"share": "rotate", "executors": 1}}, hosts=("rocm", "rocm")),
    Way(name="cooperative, two boxes", pools={"rocm": {"share": "cooperative", "executors": 1}}, hosts=("rocm", "rocm")),
    Way(name="cooperative, both in one box", pools={"rocm": {"share": "cooperative", "executors": _CARDS}}, hosts=("rocm",), cards=_CARDS),
)


@dataclass(frozen=True, slots=True, order=True)
class Ask:
    """What wants a card: a job of a controller, or a person (controller "")."""

    at: float
    seconds: float
    controller: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A card, from the asking to the end. ``person``: no job had it."""

    asked_at: float
    begins_at: float
    ends_at: float
    person: bool

    @property
    def waited(self) -> float:
        """Seconds until the card was there."""
        return self.begins_at - self.asked_at


@dataclass(slots=True)
class Visit:
    """A person on the box: since when they wait, and since when they have it."""

    ask: Ask
    host: Host | None = None
    since_at: float | None = None


@dataclass(slots=True)
class _Week:
    """One week in one way."""

    way: Way
    asks: list[Ask]
    world: World = field(init=False)
    functions: InProcess = field(init=False)
    builds: list[Any] = field(default_factory=list)
    visits: list[Visit] = field(default_factory=list)

    def __post_init__(self) -> None:
        fleet = _fleet(self.way)
        self.world = build_world(fleet, start_at=_MONDAY, seed=1)
        for host in self.world.hosts.values() if self.way.leases else ():
            host.cards = Cards(self.world.timeline, self.way.cards)
        self.functions = InProcess(self.world, fleet, look_every_seconds=_LOOK_SECONDS)
        for ask in self.asks:
            self.world.timeline.at(ask.at, lambda ask=ask: self._submit(ask) if ask.controller else self._visit(ask))  # type: ignore[misc]

    def play(self) -> "_Week":
        """Play it until the last job is done."""
        while len(self.builds) + len(self.visits) < len(self.asks) or any(build.ended is None for build in self.builds):
            self.world.move_to(self.world.timeline.now + _LOOK_SECONDS)
            tick_once(self.functions, Progress())
            for visit in self.visits:
                self._is_it_theirs(visit)
            for grows in (self.functions.reports, self.functions.logged, self.functions.metrics.published):
                grows.clear()
        return self

    def _submit(self, ask: Ask) -> None:
        build = self.world.controllers[ask.controller].submit("job", _LABEL, ask.seconds)
        build.takes_card = True
        self.builds.append(build)

    def _visit(self, ask: Ask) -> None:
        """Let a person ask for a card where fewest are before them, or for the host that has the fewest builds."""
        host = min(self.world.hosts.values(), key=lambda host: (self._busy(host), host.name))
        visit = Visit(ask, host)
        self.visits.append(visit)
        if host.cards is None:
            self._reserve(visit)
            return

        def granted() -> None:
            visit.since_at = self.world.timeline.now
            self.world.timeline.after(ask.seconds, lambda: cards.end(lease))

        cards = host.cards
        lease = cards.ask("alice", granted)

    def _busy(self, host: Host) -> int:
        if host.cards:
            devices, waiting = host.cards.told()
            return waiting + sum(device.state == "held" for device in devices)
        return sum(len(one.nodes[host.name].builds) for one in self.world.controllers.values() if host.name in one.nodes)

    def _reserve(self, visit: Visit) -> None:
        """Order the host for so long from now; a second time, once it is theirs, so that they have it for as long as they wanted."""
        assert visit.host is not None  # noqa: S101 - every visit has one
        order = Reserve(
            target=visit.host.name,
            controller=None,
            seconds=visit.ask.seconds,
            person="alice",
            by="alice",
            reason="a test fails here",
            request_id=f"{visit.ask.at}-{visit.since_at}",
        )
        invocation = replace(self.functions.invocation(), by_a_person=True)
        passes.carry_out(self.functions.ports, self.functions.fleet, invocation, order)

    def _is_it_theirs(self, visit: Visit) -> None:
        if visit.since_at is not None or visit.host is None or visit.host.cards:
            return
        reserved = any(one.machine == visit.host.id and one.reservation for one in self.functions.state.read().records)
        if not reserved:
            self._reserve(visit)  # it was on its way to another controller
        elif not self._busy(visit.host):
            visit.since_at = self.world.timeline.now
            self._reserve(visit)

    def measured(self) -> Mapping[str, float]:
        """Measure what jobs and people waited, and how much of the cards' time had work."""
        if killed := [build.killed_by for build in self.builds if build.killed_by]:
            raise AssertionError(f"{len(killed)} builds were killed: {killed[0]}")
        turns = [Turn(asked_at=b.queued_at, begins_at=b.leased_at, ends_at=b.ended_at, person=False) for b in self.builds]
        for visit in self.visits:
            if visit.since_at is not None:
                ends_at = visit.since_at + visit.ask.seconds
                turns.append(Turn(asked_at=visit.ask.at, begins_at=visit.since_at, ends_at=ends_at, person=True))
        return _measured(self.asks, turns)


def measure() -> Iterator[Figures]:
    """Play the week in every way, and compute what one queue over both cards would need."""
    asked = [(way, lot) for way in WAYS for lot in _LOTS]
    results = Parallel(n_jobs=-1)(delayed(_play)(way, lot) for way, lot in asked)
    by_way = {way.name: [one for (of, _), one in zip(asked, results, strict=True) if of is way] for way in WAYS}
    by_way["bound: one queue, nothing lost"] = [_bound(_asks(lot)) for lot in _LOTS]
    yield Figures(
        "Two cards, two controllers, and a person",
        "A week of jobs that need a card from beginning to end, of two controllers whose days begin five hours apart. On most days "
        "a person has a card, or the host that it is in, for one to four hours. The functions look once a minute; means of "
        f"{len(_LOTS)} random loads. Wait: until the card is there. Used: the share of both cards' time that had a job or a person, "
        "in all, and while anybody waited. The bound takes all in order of asking; else a person goes before jobs that wait in a "
        "queue of Jenkins.",
        ("", "jobs", "mean wait", "p95", "person's wait", "cards used", "used while anybody waits"),
        tuple(_row(name, ones) for name, ones in by_way.items()),
    )


def _play(way: Way, lot: int) -> Mapping[str, float]:
    return _Week(way, _asks(lot)).play().measured()


def _bound(asks: list[Ask]) -> Mapping[str, float]:
    """One queue over both cards, in order of asking, where nothing takes any time but the work."""
    free, turns = [_MONDAY] * _CARDS, []
    for ask in sorted(asks):
        begins = max(ask.at, heappop(free))
        heappush(free, begins + ask.seconds)
        turns.append(Turn(asked_at=ask.at, begins_at=begins, ends_at=begins + ask.seconds, person=not ask.controller))
    return _measured(asks, turns)


def _measured(asks: list[Ask], turns: list[Turn]) -> Mapping[str, float]:
    if len(turns) < len(asks):
        raise AssertionError(f"{len(asks) - len(turns)} of {len(asks)} never had a card")
    waits = sorted(turn.waited for turn in turns if not turn.person)
    return {
        "jobs": len(waits),
        "mean": fmean(waits),
        "p95": waits[int(0.95 * len(waits))],
        "person": fmean(turn.waited for turn in turns if turn.person),
        "used": sum(ask.seconds for ask in asks) / (_CARDS * (max(turn.ends_at for turn in turns) - _MONDAY)),
        "used_then": _used_while_anybody_waits(turns),
    }


def _used_while_anybody_waits(turns: list[Turn]) -> float:
    changes = sorted(
        change
        for turn in turns
        for change in ((turn.asked_at, 1, 0), (turn.begins_at, -1, 1), (turn.ends_at, 0, -1))  # when, who waits, who has a card
    )
    waiting = held = 0
    seconds = used = 0.0
    for (at, waits, holds), (until, _, _) in pairwise(changes):
        waiting, held = waiting + waits, held + holds
        if waiting:
            seconds, used = seconds + until - at, used + held * (until - at)
    return used / (_CARDS * seconds)


def _fleet(way: Way) -> Fleet:
    raw = {
        "fleet": "porterbox",
        "limits": {"max_agents": 10, "max_launches_per_hour": 10, "max_usd_per_hour": 10, "max_usd_per_month": 10},
        "controllers": {name: {"url": f"http://{name}.invalid/"} for name in _CONTROLLERS},
        "kinds": {"amd64+gfx1030": {}},
        "pools": {name: {"kind": "amd64+gfx1030", **pool} for name, pool in way.pools.items()},
        "hosts": {f"box-{number}": {"pool": pool, "role_id": f"AROAEXAMPLEBOX{number}"} for number, pool in enumerate(way.hosts, 1)},
    }
    return check(raw, "a shared fleet").domain()


def _asks(lot: int) -> list[Ask]:
    """What comes in a week: bursts of jobs by day; one controller's day begins five hours later; and a person on most days."""
    asks: list[Ask] = []
    for late, name in enumerate(_CONTROLLERS):
        chance = Random(f"{name}, {lot}")  # noqa: S311 - the same each time
        for day in range(_DAYS):
            at = day * _DAY + (8 + 5 * late) * _HOUR
            end = at + 10 * _HOUR
            while (at := at + chance.expovariate(1 / _HOUR)) < end:
                asks += (Ask(_MONDAY + at + chance.uniform(0, 600), chance.uniform(300, 2400), name) for _ in range(chance.randint(1, 3)))
    chance = Random(f"a person, {lot}")  # noqa: S311
    comes = [day for day in range(_DAYS) if chance.random() < 0.7]
    asks += (Ask(_MONDAY + day * _DAY + chance.uniform(9, 19) * _HOUR, chance.uniform(1, 4) * _HOUR) for day in comes)
    return sorted(asks)


def _row(name: str, results: list[Mapping[str, float]]) -> tuple[str, ...]:
    def mean(what: str) -> float:
        return fmean(result[what] for result in results)

    waits = (f"{mean(what) / 60.0:.0f} min" for what in ("mean", "p95", "person"))
    return name, f"{mean('jobs'):.0f}", *waits, f"{mean('used'):.0%}", f"{mean('used_then'):.0%}"
