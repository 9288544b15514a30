"""Fleets as they are found in practice, drawn at random: what the promises are tried on.

Each agent is one of the stories of `support/stories.py`; queues, limits, orders and doubts about controllers are drawn around them.
"""

from dataclasses import dataclass, replace
from random import Random

from hypothesis import strategies as st

from autoscaler.domain.facts.fleet import AtMonthLimit, Ceilings, Fleet, Market, Team, WarmPool
from autoscaler.domain.facts.job_settings import PluginWeight
from autoscaler.domain.facts.memory import Learned, Memory, Missing, Spending, SpotPrices
from autoscaler.domain.facts.orders import Hold, Overrides, Scope
from autoscaler.domain.facts.runs import Streak
from autoscaler.domain.facts.snapshot import InstanceState, Intent, QueueItem, Wait
from autoscaler.domain.situation.bets import TrialOf
from support.builders import (
    LONG_AGO,
    MONTH,
    NOW,
    a_fleet,
    a_month,
    a_pool,
    a_session,
    a_snapshot,
    a_trial,
    a_view,
    a_window,
    an_intent,
    an_item,
    an_offering,
    key_of,
    with_beacons,
)
from support.looks import Look
from support.remembered import with_tables
from support.stories import EXECUTORS, POOL_LABELS, STORIES, USD_PER_HOUR, Drawn, Story, agent

WARM = WarmPool(min_agents=0, max_agents=2, max_age_seconds=86_400.0)
FILLED = WarmPool(min_agents=1, max_agents=3, max_age_seconds=86_400.0)
_BY_FREQUENCY = [story for story in STORIES.values() for _ in range(story.often)]
# Now and then all are at work, most on every executor, and jobs wait.
_ALL_AT_WORK = [STORIES["busy"], Story(builds=(4,))]
# Or most have been stopped, and are started for these jobs; of one or another EC2 says that it runs.
_MOST_STOPPED = [*[STORIES["stopped"]] * 3, STORIES["stopped, and it runs"], *_ALL_AT_WORK]


@dataclass(slots=True, kw_only=True)
class Doubt:
    """What is wrong with what one controller shows; mostly nothing."""

    problem: str | None = None
    quieting_down: bool = False
    session: str = "s1"
    known_for: float = 100_000.0


SOUND = Doubt()
DOUBTS = (
    *(SOUND,) * 9,
    Doubt(problem="503"),
    Doubt(quieting_down=True),
    Doubt(session="s2"),  # restarted since the last look
    Doubt(known_for=100.0),  # restarted lately
)


def waits(chance: Random, names: list[str]) -> Wait:
    if names and chance.randint(0, 4) == 0:
        name = chance.choice(names)
        return Wait(**chance.choice([{"nodes": (name,)}, {"named": name}]), for_executor=chance.random() < 0.7)
    label = chance.choice(["cpu", "cpu", "gpu", "gpu", "utility", "linux", "cpu||gpu", "linux&&!gpu", "sparc", None])
    return Wait(for_executor=True, label=label)


def queue_item(chance: Random, number: int, names: list[str]) -> QueueItem:
    waiting_seconds = chance.choice([1.0, 120.0, 5000.0, 5000.0])
    # Now and then a part of a run that goes on, whose end nobody can tell; else of a run that is to begin.
    run = chance.choice([0, 1, 2, 3, *range(4, 20)])
    return an_item(number, why=waits(chance, names), run=f"job/r{run}/1", waiting_seconds=waiting_seconds)


def intent(chance: Random, number: int) -> Intent:
    return an_intent(f"on-its-way-{number}", pool=chance.choice(list(EXECUTORS)), count=chance.randint(1, 3))


def fleet_file(chance: Random, controllers: tuple[str, ...]) -> Fleet:
    spot = an_offering(market=Market.SPOT, usd_per_hour=1.0, most_usd_per_hour=3.0)
    warm = {name: chance.choice([None, None, None, WARM, WARM, FILLED]) for name in USD_PER_HOUR}
    pools = [
        a_pool(
            name,
            labels=frozenset(POOL_LABELS[name]),
            controllers=controllers,
            executors=EXECUTORS[name],
            max_agents=chance.choice([1, 6, 20, 20]),
            min_agents=chance.choice([0, 0, 0, 0, 0, 1]),
            warm_executors=chance.choice([0, 0, 0, 0, 0, 2]),
            wait_usd_per_hour=chance.choice([20.0, 0.5, 0.5]),
            idle_seconds=chance.choice([None, 60.0]),
            warm_pool=warm[name],
            offerings=(*((spot,) if name == "cpu" else ()), an_offering(usd_per_hour=usd)),
        )
        for name, usd in USD_PER_HOUR.items()
    ]
    return a_fleet(
        *pools,
        max_agents=chance.choice([6, 100, 100]),
        max_launches_per_hour=chance.choice([2, 100, 100]),
        max_usd_per_hour=chance.choice([20.0, 40.0, 1e6]),
        max_usd_per_month=chance.choice([100.0, 130.0, 1e9, 1e9]),
        at_month_limit=chance.choice(list(AtMonthLimit)),
    )


def orders(chance: Random) -> Overrides:
    """Mostly none; else a pool on hold, or frozen."""
    name = chance.choice([""] * 5 + ["cpu", "cpu", "gpu"])
    on_hold = Hold(scope=Scope.POOL, name=name, since_at=LONG_AGO, until_at=None, by="ada", reason="r", freeze=chance.random() < 0.5)
    return Overrides(holds=(on_hold,) if name else ())


def memory(chance: Random, drawn: list[Drawn], doubts: dict[str, Doubt]) -> Memory:
    sessions = {}
    for controller, doubt in doubts.items():
        names = [one.node.name for one in drawn if one.node and one.controller == controller]
        suspects = [chance.choice(names)] if names and chance.randint(0, 3) == 0 else []
        sessions[controller] = a_session(
            session="s1",
            since_at=NOW - (600.0 if suspects and doubt is SOUND else doubt.known_for),
            restarted=bool(suspects),
            suspects=dict.fromkeys(suspects, ("job/lost/1",)),
        )
    ids = [one.instance.id for one in drawn]
    missing = chance.choice([60.0, 8000.0, 90_000.0])
    needed = {f"{controller}/{pool}": chance.choice([0, 0, 0, 1, 3]) for controller in doubts for pool in EXECUTORS}
    return with_tables(
        Memory(),
        sessions=sessions,
        windows={key: a_window(peaks=((NOW - 60, most),)) for key, most in needed.items()},
        observations={one.subject: one.look for one in drawn if one.look},
        idle_since={instance_id: NOW - chance.choice([60.0, 9000.0]) for instance_id in ids},
        connected=frozenset(one.instance.id for one in drawn if one.connected),
        booted=frozenset(ids),
        missing={instance_id: Missing(since_at=NOW - missing, asked_at=NOW - missing / 2) for instance_id in ids},
        month=a_month(name=MONTH, usd=chance.choice([0.0, 0.0, 90.0, 110.0]), metered_at=NOW - 60),
        spot_prices=SpotPrices(asked_at=NOW),
        proven=chance.choice([{}, {"cpu": "2"}]),
    )


def learned(chance: Random, names: list[str]) -> Learned:
    failing = chance.choice(names) if names and chance.randint(0, 5) == 0 else ""
    weight = chance.choice([1, 2, 4])
    return Learned(
        weights={"job": weight},
        heavy_jobs={"job": PluginWeight(weight=weight, read_at=NOW)},
        samples={key_of(pool): (chance.choice([60.0, 9000.0, 9000.0]),) for pool in ("cpu", "gpu")},
        streaks={failing: Streak(failures=9, since_at=NOW - 3000, jobs=tuple("abcde"))} if failing else {},
        succeeded_at={"cpu": NOW - 60, "gpu": NOW - 60, "utility": NOW - 60},
    )


# Each agent and each item is made from a number of its own: what does not matter to a failure is left out of what hypothesis shows.
SEEDS = st.integers(0, 2**24)


@st.composite
def looks(draw) -> Look:
    """A snapshot of a fleet in the middle of its life, and its fleet file."""
    chance = Random(draw(SEEDS))
    controllers = chance.choice([("main",), ("main",), ("main", "other")])
    stories = chance.choice([*[_BY_FREQUENCY] * 6, _ALL_AT_WORK, _ALL_AT_WORK, _MOST_STOPPED])
    drawn = [agent(Random(seed), number, controllers, stories) for number, seed in enumerate(draw(st.lists(SEEDS, max_size=8)))]
    some = st.lists(SEEDS, min_size=1, max_size=9)
    queue = draw(some if stories is not _BY_FREQUENCY else st.just([]) | some)
    doubts = {controller: chance.choice(DOUBTS) for controller in controllers}
    views, taught = [], {}
    for controller, doubt in doubts.items():
        nodes = {one.node.name: one.node for one in drawn if one.node and one.controller == controller}
        items = [queue_item(Random(seed), number, list(nodes)) for number, seed in enumerate(queue)]
        unread = {chance.choice(list(nodes))} if nodes and chance.randint(0, 9) == 0 else set()
        seen = [node for name, node in nodes.items() if name not in unread]
        facts = {"problem": doubt.problem, "quieting_down": doubt.quieting_down, "session": doubt.session}
        views.append(a_view(*seen, items=tuple(items), name=controller, unread=frozenset(unread), **facts))
        taught[controller] = learned(chance, list(nodes))
    states = {one.instance.id: one.instance.state for one in drawn}
    not_listed = {InstanceState.NOT_FOUND, InstanceState.TERMINATED}
    snapshot = a_snapshot(
        *views,
        records=tuple(one.record for one in drawn if one.record),
        instances=tuple(one.instance for one in drawn if one.instance.state not in not_listed),
        fates={instance_id: state for instance_id, state in states.items() if state in not_listed},
        unknown_alone=frozenset(i for i, state in states.items() if state is InstanceState.NOT_FOUND and chance.random() < 0.5),
        intents=tuple(intent(chance, number) for number in range(chance.choice([0, 0, 0, 1, 2]))),
        memory=memory(chance, drawn, doubts),
        learned=taught,
        overrides=orders(chance),
        template_versions=chance.choice([{}, {}, {}, {"cpu": "2"}]),
    )
    fleet = fleet_file(chance, controllers)
    # Now and then somebody has deleted the beacons that carry labels.
    seen = with_beacons(snapshot, fleet) if chance.randint(0, 4) else snapshot
    return with_teams(chance, with_images(chance, Look(seen, fleet)))


def with_images(chance: Random, look: Look) -> Look:
    """Let a parameter name the image of a pool, sometimes: a new one, the one that agents have, or none that is known."""
    if chance.randint(0, 3):
        return look
    cpu = replace(look.fleet.pools["cpu"], image_parameter="/ci/image")
    known = {"template_versions": {"cpu": "2"}, "images": chance.choice([{}, {"cpu": "ami-1"}, {"cpu": "ami-2"}, {"cpu": "ami-2"}])}
    trials = chance.choice([{}, {}, {TrialOf.IMAGE.scope("cpu"): a_trial(60.0, version="2 with ami-2")}])
    memory = with_tables(look.snapshot.memory, proven=chance.choice([{}, {"cpu": "2 with ami-1"}]), trials=trials)
    fleet = replace(look.fleet, pools={**look.fleet.pools, "cpu": cpu})
    return Look(replace(look.snapshot, memory=memory, **known), fleet)


def with_teams(chance: Random, look: Look, one_in: int = 3) -> Look:
    """Let pools have teams, priorities and limits of their own, sometimes."""
    if chance.randint(1, one_in) > 1:
        return look
    pools = {
        name: replace(pool, ceilings=ceilings(chance, 2.0), priority=chance.choice([0, 0, 0, 5])) for name, pool in look.fleet.pools.items()
    }
    names = {name: chance.choice(["a", "a", "b", ""]) for name in pools}
    teams = {
        name: Team(
            name=name,
            pools=frozenset(pool for pool, its in names.items() if its == name),
            weight=chance.choice([1.0, 1.0, 3.0]),
            ceilings=ceilings(chance, 0.7),
        )
        for name in sorted({*names.values()} - {""})
    }
    memory = look.snapshot.memory
    by_pool = {name: memory.month.usd * chance.choice([0.0, 0.2, 0.5, 1.0]) for name in pools}
    lately = tuple(
        Spending(since_at=NOW - ago, by_pool={name: chance.choice([0.0, 5.0, 50.0]) for name in pools}) for ago in (9000.0, 60.0)
    )
    memory = with_tables(memory, month=replace(memory.month, by_pool=by_pool), lately=lately)
    return Look(replace(look.snapshot, memory=memory), replace(look.fleet, pools=pools, teams=teams))


def ceilings(chance: Random, unlimited: float) -> Ceilings:
    """Limits, each of which is there or not. ``unlimited``: how much likelier it is not."""
    limits = {"max_agents": (3, 6), "max_launches_per_hour": (2, 5), "max_usd_per_hour": (6.0, 20.0), "max_usd_per_month": (40.0, 100.0)}
    return Ceilings(**{key: chance.choice(some) for key, some in limits.items() if chance.random() * (1 + unlimited) > unlimited})
