"""A memo changes nothing: with one that has seen other looks, each plan is what it would be without, whatever changed since, time too."""

from dataclasses import replace
from random import Random

from hypothesis import given, settings

from autoscaler.domain import decide
from autoscaler.domain.facts.job_settings import JobWeights, Source
from autoscaler.domain.facts.memory import Trial
from autoscaler.domain.facts.nodes import with_known_weights
from autoscaler.domain.facts.plan import Launch
from autoscaler.domain.facts.snapshot import RecordState
from autoscaler.domain.learn import assess
from autoscaler.domain.memo import Memo
from autoscaler.domain.situation.bets import TrialOf
from support.fleets import SEEDS, learned, looks, queue_item
from support.remembered import with_tables

# Back, on by one look, and past every deadline that an agent, a pool or a hold may have.
LATER_SECONDS = (0.0, 0.0, 5.0, 60.0, 125.0, 301.0, 1800.0, 90_000.0, -30.0, -2000.0)


def one_of(chance, things):
    return chance.randrange(len(things)) if things else None


def replaced(things, place, new):
    return (*things[:place], *(() if new is None else (new,)), *things[place + 1 :])


def change_node(chance, snapshot, _plan):
    name = chance.choice(sorted(snapshot.controllers))
    view = snapshot.controllers[name]
    if (place := one_of(chance, view.nodes)) is None:
        return snapshot
    node = view.nodes[place]
    new = chance.choice([None, replace(node, offline=not node.offline), replace(node, idle=not node.idle), replace(node, builds=())])
    changed = replace(view, nodes=replaced(view.nodes, place, new))
    return replace(snapshot, controllers={**snapshot.controllers, name: changed})


def change_record(chance, snapshot, _plan):
    if (place := one_of(chance, snapshot.records)) is None:
        return snapshot
    record = snapshot.records[place]
    new = chance.choice(
        [None, replace(record, state=chance.choice(list(RecordState))), replace(record, launched_at=snapshot.taken_at - 600)]
    )
    return replace(snapshot, records=replaced(snapshot.records, place, new))


def change_instances(chance, snapshot, _plan):
    return replace(snapshot, instances=chance.choice([(), snapshot.instances[1:]]))


def change_memory(chance, snapshot, plan):
    memory = snapshot.memory
    lost = with_tables(memory, connected=frozenset()), replace(memory, sessions={}), with_tables(memory, windows={})
    return replace(snapshot, memory=chance.choice([plan.memory, *lost]))


def change_boots(chance, snapshot, _plan):
    boots = {record.pool: tuple(chance.choice([60.0, 200.0, 900.0]) for _ in range(chance.choice([3, 12]))) for record in snapshot.records}
    return replace(snapshot, memory=with_tables(snapshot.memory, boots=boots))


def change_what_is_refused(chance, snapshot, plan):
    offerings = [
        TrialOf.OFFERING.scope(step.pool, offering.key) for step in plan.steps if isinstance(step, Launch) for offering in step.offerings
    ]
    until_at = snapshot.taken_at + chance.choice([30.0, 400.0])
    now = snapshot.taken_at
    trials = {key: Trial(failures=1, since_at=now, failed_at=now, until_at=until_at, why="refused") for key in offerings}
    return replace(snapshot, memory=replace(snapshot.memory, trials=trials))


def change_how_often_is_looked(chance, snapshot, _plan):
    return replace(snapshot, look_every_seconds=chance.choice([5.0, 60.0]))


def change_what_is_learned(chance, snapshot, _plan):
    views = snapshot.controllers.items()
    return replace(snapshot, learned={name: learned(chance, [node.name for node in view.nodes]) for name, view in views})


def change_queue(chance, snapshot, _plan):
    name = chance.choice(sorted(snapshot.controllers))
    view = snapshot.controllers[name]
    items = tuple(queue_item(chance, number, [node.name for node in view.nodes]) for number in range(chance.randint(0, 4)))
    return replace(snapshot, controllers={**snapshot.controllers, name: replace(view, items=items)})


def change_view(chance, snapshot, _plan):
    name = chance.choice(sorted(snapshot.controllers))
    view = snapshot.controllers[name]
    new = chance.choice([replace(view, problem="503"), replace(view, session="s9"), replace(view, quieting_down=not view.quieting_down)])
    return replace(snapshot, controllers={**snapshot.controllers, name: new})


CHANGES = (
    *(lambda _chance, snapshot, _plan: snapshot,) * 4,
    change_node,
    change_record,
    change_instances,
    change_memory,
    change_boots,
    change_what_is_refused,
    change_how_often_is_looked,
    change_what_is_learned,
    change_queue,
    change_view,
)


WEIGHTS = tuple(JobWeights(by_pattern=(("*", source),)) for source in Source)


def change_fleet(chance, fleet):
    if chance.random() < 0.1:
        return replace(fleet, weights=chance.choice([JobWeights(), *WEIGHTS]))
    if chance.random() < 0.8:
        return fleet
    name = chance.choice(sorted(fleet.pools))
    pool = replace(
        fleet.pools[name],
        boot_timeout_seconds=chance.choice([60.0, 900.0]),
        max_agents=chance.randint(1, 9),
        boot_seconds=chance.choice([60.0, 300.0]),
        wait_usd_per_hour=chance.choice([0.5, 20.0]),
    )
    return replace(fleet, pools={**fleet.pools, name: pool})


def plans(snapshot, fleet, memo):
    return decide.scale_up(snapshot, fleet, memo), decide.scale_down(snapshot, fleet, memo)


def costs(snapshot, fleet, memo):
    return {key: (pool.costs, pool.offerings) for key, pool in assess(snapshot, fleet, memo).pools.items()}


def weights(snapshot, fleet, memo):
    return assess(snapshot, fleet, memo).fleet.weights


@settings(deadline=None)
@given(looks(), SEEDS)
def test_every_plan_is_the_same_with_and_without_a_memo_of_what_was_before(look, seed):
    chance, memo, snapshot, fleet = Random(seed), Memo(), look.snapshot, look.fleet
    for number in range(8):
        fresh = plans(snapshot, fleet, Memo())
        assert plans(snapshot, fleet, memo) == fresh
        assert plans(snapshot, fleet, memo) == fresh
        assert costs(snapshot, fleet, memo) == costs(snapshot, fleet, Memo())
        assert weights(snapshot, fleet, memo) == with_known_weights(fleet, snapshot.learned).weights
        changed = chance.choice(CHANGES)(chance, snapshot, fresh[chance.random() < 0.5])
        at = snapshot.taken_at + chance.choice(LATER_SECONDS)
        snapshot = replace(
            changed, taken_at=at, pass_id=chance.choice([snapshot.pass_id, f"p{number}"]), request_id=chance.choice(["now", f"i{number}"])
        )
        fleet = change_fleet(chance, fleet)


def test_a_memo_spares_most_of_the_work_where_little_changes(record_property):
    memo, chance = Memo(), Random(1)

    @settings(max_examples=40, deadline=None, database=None, derandomize=True)
    @given(looks())
    def run(look):
        snapshot = look.snapshot
        for _ in range(6):
            plans(snapshot, look.fleet, memo)
            snapshot = replace(change_node(chance, snapshot, None), taken_at=snapshot.taken_at + 5.0)

    run()
    record_property("counted", ("values found in a memo, percent", round(100 * memo.found / memo.asked)))
    assert memo.found > memo.asked / 2
