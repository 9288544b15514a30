"""Whose turn it is, and whose limits hold, over random fleets in which several teams want more than there is room for."""

from collections import Counter
from dataclasses import replace
from random import Random

from hypothesis import event, given
from hypothesis import strategies as st

from autoscaler.domain.facts.fleet import Ceilings
from autoscaler.domain.facts.metering import teams
from autoscaler.domain.facts.plan import Cordon, Launch, Start
from autoscaler.domain.facts.reasons import Reason
from support.builders import (
    MONTH,
    NOW,
    a_fleet,
    a_memory,
    a_month,
    a_pool,
    a_session,
    a_snapshot,
    a_view,
    an_instance,
    an_intent,
    an_item,
    an_offering,
)
from support.fleets import SEEDS, with_teams
from support.looks import Look
from support.reserved import by, no_more_agents_than_may_be, no_more_dollars_than_may_be, no_more_launches_than_may_be, usd_of
from support.stories import EXECUTORS, POOL_LABELS, STORIES, USD_PER_HOUR, agent

_OF_A_LIMIT = {Reason.TEAM_MAX_AGENTS, Reason.FLEET_MAX_AGENTS, Reason.LAUNCH_RATE, Reason.USD_PER_HOUR, Reason.NOT_ITS_TURN}


@st.composite
def crowded(draw, *, with_some=True):
    """Agents at work, jobs that have waited for long, each for one pool; launches under way, machines without a record, near limits."""
    chance = Random(draw(SEEDS))
    controllers = chance.choice([("main",), ("main", "other")])
    drawn = [agent(Random(seed), n, controllers, [STORIES["busy"]]) for n, seed in enumerate(draw(st.lists(SEEDS, max_size=4)))]
    strays = tuple(an_instance(f"i-stray-{n}", pool=chance.choice(list(EXECUTORS))) for n in range(chance.choice([0, 0, 1, 2])))
    intents = tuple(an_intent(f"new-{n}", pool=chance.choice(list(EXECUTORS)), count=1) for n in range(chance.choice([0, 0, 1])))
    labels = draw(st.lists(st.sampled_from(list(EXECUTORS)), min_size=1, max_size=12))
    items = [(chance.choice(controllers), an_item(n, label=label, waiting_seconds=5000.0 - n)) for n, label in enumerate(labels)]
    views = [
        a_view(*(one.node for one in drawn if one.controller == name), name=name, items=tuple(item for on, item in items if on == name))
        for name in controllers
    ]
    there = len(drawn) + len(strays) + sum(intent.count for intent in intents)
    snapshot = a_snapshot(
        *views,
        records=tuple(one.record for one in drawn),
        instances=(*(one.instance for one in drawn), *strays),
        intents=intents,
        memory=a_memory(
            sessions={name: a_session() for name in controllers},
            connected=frozenset(one.instance.id for one in drawn),
            month=a_month(name=MONTH, usd=chance.choice([0.0, 60.0, 100.0]), metered_at=NOW - 60),
        ),
    )
    pools = [
        a_pool(
            name,
            labels=frozenset(POOL_LABELS[name]),
            controllers=controllers,
            offerings=(an_offering(usd_per_hour=usd),),
            min_agents=chance.choice([0, 0, 0, 2]),
            max_wait_seconds=0.0,
        )
        for name, usd in USD_PER_HOUR.items()
    ]
    fleet = a_fleet(
        *pools,
        max_agents=there + chance.choice([1, 2, 4, 100]),
        max_launches_per_hour=there + chance.choice([3, 100, 100]),
        max_usd_per_hour=chance.choice([20.0, 40.0, 60.0, 1e6]),
    )
    look = Look(snapshot, fleet)
    return with_teams(chance, look, one_in=1) if with_some else look


@given(crowded())
def test_no_pool_no_team_and_no_fleet_gets_more_agents_than_it_may_have(look):
    no_more_agents_than_may_be(look)


@given(crowded())
def test_no_more_agents_are_launched_within_an_hour_than_may_be(look):
    no_more_launches_than_may_be(look)


@given(crowded())
def test_no_more_dollars_an_hour_and_in_the_month_are_reserved_than_may_be_spent(look):
    no_more_dollars_than_may_be(look)


def pools_left_out(look):
    """The pools of teams that have no agent, spent nothing for half an hour, and whose jobs have waited for as long (each for one pool)."""
    snapshot = look.snapshot
    there = {one.pool for one in (*snapshot.records, *snapshot.intents)}
    paid = {name for one in snapshot.memory.fleet.lately if one.since_at > NOW - 1800.0 for name, usd in one.by_pool.items() if usd}
    waits = {name for view in look.views for name in look.fleet.pools if any(item.label == name for item in view.items)}
    return {name for team in teams(look.fleet) if not team.pools & (there | paid) and team.pools & waits for name in team.pools}


def may_ever_fit(look, pool):
    """Tell whether an agent of a pool fits within all limits beside each pool's minimum, and beside what the month has cost."""
    usd, month, records = usd_per_hour(look, pool), look.up.memory.month, Counter(record.pool for record in look.snapshot.records)
    for level in (level for level in look.limited if pool in level.pools):
        stay = {name: min(records[name], look.fleet.pools[name].min_agents) for name in level.pools}
        most = usd + sum(count * usd_per_hour(look, name) for name, count in stay.items())
        spent = sum(month.by_pool.get(name, 0.0) for name in level.pools) if level.name else month.usd
        limits = level.ceilings
        if most > limits.max_usd_per_hour or spent + most > limits.max_usd_per_month or sum(stay.values()) >= limits.max_agents:
            return False
    return True


def usd_per_hour(look, pool):
    return max(offering.reserved_usd_per_hour for offering in look.fleet.pools[pool].offerings)


def kept_waiting(look):
    """Pools that a limit which they share lets launch no more, with that limit; not those of which no agent would ever fit."""
    shared = {f"team {one.name}" if one.name else "the fleet": one for one in look.limited if one.name not in look.fleet.pools}
    for held in look.up.held:
        if held.reason in _OF_A_LIMIT and held.limit_of in shared:
            whose = shared[held.limit_of]
            if may_ever_fit(look, held.pool):
                yield held.pool, whose


@given(crowded())
def test_where_a_limit_keeps_jobs_waiting_no_pool_of_a_lower_priority_gets_its_room(look):
    priority = {name: pool.priority for name, pool in look.fleet.pools.items()}
    served = {step.pool for step in by(Launch | Start, look.up)}
    for pool, whose in kept_waiting(look):
        event(f"{pool} waits and others are served: {bool(served & whose.pools)}")
        assert not {other for other in served & whose.pools if priority[other] < priority[pool]}, (pool, whose)


@given(crowded())
def test_where_a_limit_keeps_several_teams_waiting_none_gets_more_than_brings_it_level_with_the_others(look):
    look = replace(look, fleet=replace(look.fleet, pools={name: replace(pool, priority=0) for name, pool in look.fleet.pools.items()}))
    launches, spent, of_last = by(Launch | Start, look.up), Counter(), Counter()
    of_no_team = frozenset(look.fleet.pools).difference(*(team.pools for team in look.fleet.teams.values()))
    teams = [*((team.pools, team.weight) for team in look.fleet.teams.values()), (of_no_team, 1.0)]
    team_of = {pool: (pools, weight) for pools, weight in teams for pool in pools}
    for pools, weight in teams:
        spent[pools] = sum(usd for one in look.up.memory.fleet.lately for pool, usd in one.by_pool.items() if pool in pools) / weight
    for step in launches:
        pools, weight = team_of[step.pool]
        spent[pools] += usd_of(look, step) / weight
        of_last[pools] = max(of_last[pools], usd_of(look, step) / step.count / weight)
    for pool, whose in kept_waiting(look):
        for pools in {team_of[step.pool][0] for step in launches if step.pool in whose.pools} - {team_of[pool][0]}:
            event("another team is served")
            if pools & pools_left_out(look) and sum(step.count for step in launches if step.pool in pools) == 1:
                event("it was left out")
                continue
            assert spent[pools] - of_last[pools] <= spent[team_of[pool][0]] + 1e-6, (pool, whose)


@given(crowded())
def test_where_no_limit_keeps_anybody_waiting_teams_and_priorities_change_nothing(look):
    pools = {name: replace(pool, ceilings=Ceilings()) for name, pool in look.fleet.pools.items()}
    teams = {name: replace(team, ceilings=Ceilings()) for name, team in look.fleet.teams.items()}
    fleet, in_order = replace(look.fleet, pools=pools, teams=teams), {name: replace(pool, priority=0) for name, pool in pools.items()}
    alone = replace(look, fleet=replace(fleet, pools=in_order, teams={}))
    if not any(held.limit_of for held in alone.up.held):
        event("nobody waits")
        assert (alone.up.steps, alone.up.held) == (replace(look, fleet=fleet).up.steps, replace(look, fleet=fleet).up.held)


@given(crowded())
def test_whose_limit_it_was_is_said(look):
    for held in look.up.held:
        if held.reason in {*_OF_A_LIMIT, Reason.MAX_AGENTS, Reason.USD_PER_MONTH}:
            assert held.limit_of in held.detail
            assert held.limit_of


def handed_over(look):
    return [step for step in by(Cordon, look.down) if step.reason is Reason.HANDS_OVER]


def leaving(look):
    """What this pass takes out of use for other reasons."""
    return [step for step in by(Cordon, look.down) if step.reason is not Reason.HANDS_OVER]


def without(look, steps):
    """What is seen when these have left."""
    nodes = {(step.controller, step.node) for step in steps}
    gone = {record.instance_id for record in look.snapshot.records if (record.controller, record.node) in nodes}
    views = {v.name: replace(v, nodes=tuple(node for node in v.nodes if (v.name, node.name) not in nodes)) for v in look.views}
    records = tuple(record for record in look.snapshot.records if record.instance_id not in gone)
    instances = tuple(instance for instance in look.snapshot.instances if instance.id not in gone)
    memory = look.down.memory  # what launches next knows what was spent until now
    return replace(look, snapshot=replace(look.snapshot, controllers=views, records=records, instances=instances, memory=memory))


def launched(look):
    return Counter(step.pool for step in by(Launch, look.up) for _ in range(step.count))


@given(crowded())
def test_who_hands_over_comes_after_a_pool_that_then_gets_more(look):
    gone = handed_over(look)
    event(f"{min(len(gone), 3)} hand over")
    if not gone:
        return
    others = leaving(look)
    more = launched(without(look, [*gone, *others])) - launched(without(look, others))
    pools, lately = look.fleet.pools, look.down.memory.fleet.lately  # this look included
    team_of = {pool: team for team in teams(look.fleet) for pool in team.pools}
    spent = {pool: sum(one.by_pool.get(name, 0.0) for one in lately for name in team.pools) / team.weight for pool, team in team_of.items()}
    left_out = pools_left_out(look)
    turn = {name: (-pool.priority, name not in left_out, spent[name]) for name, pool in pools.items()}
    for step in gone:
        before = [pool for pool in more if turn[pool] < turn[step.pool]]
        assert before, (step, more)


@given(crowded())
def test_no_one_less_would_do_and_each_pool_keeps_its_minimum(look):
    gone = handed_over(look)
    ready = Counter(record.pool for record in look.snapshot.records)
    for pool, count in Counter(step.pool for step in gone).items():
        assert ready[pool] - count >= look.fleet.pools[pool].min_agents
    if len({pool.offerings[0].usd_per_hour for pool in look.fleet.pools.values()}) == 1 and gone:
        others = leaving(look)
        assert launched(without(look, [*gone, *others])).total() > launched(without(look, [*gone[1:], *others])).total()


@given(crowded(with_some=False))
def test_without_teams_and_priorities_nobody_hands_over(look):
    assert handed_over(look) == []
