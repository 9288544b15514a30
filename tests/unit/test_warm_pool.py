"""Agents that are stopped and started again: which, for how long, and what a start takes of the limits."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from autoscaler.domain.commands import launch_some
from autoscaler.domain.facts.fleet import Market, WarmPool
from autoscaler.domain.facts.memory import IdleReturns
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.orders import LaunchSome
from autoscaler.domain.facts.plan import FinishStop, Launch, Start, Stop, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState, RecordState
from autoscaler.domain.forecast.keeping import STOPPED_EDGES, Costs, Keeping, KeepingStopped
from autoscaler.domain.situation.bets import TrialOf
from support.builders import (
    NOW,
    a_build,
    a_fleet,
    a_look,
    a_mark,
    a_memory,
    a_node,
    a_pool,
    a_record,
    a_snapshot,
    a_trial,
    a_view,
    a_window,
    an_empty_window,
    an_instance,
    an_intent,
    an_item,
    an_offering,
    cordoned,
)
from support.decisions import scale_down, scale_up

WARM = WarmPool(min_agents=0, max_agents=3, max_age_seconds=168 * 3600.0)
OFFERING = an_offering(usd_per_hour=3.0, volume_usd_per_hour=0.1)
SPOT = an_offering(market=Market.SPOT, usd_per_hour=1.0)
OFF = {RecordState.STOPPED: InstanceState.STOPPED, RecordState.STOPPING: InstanceState.STOPPED, RecordState.STARTING: InstanceState.STOPPED}
# Agents come back after hours, so that each is worth its disk, and its machine no more; one was needed an hour ago.
_HOURS = (0.0,) * STOPPED_EDGES.index(14_400.0) + (90.0,) + (0.0,) * (len(STOPPED_EDGES) - STOPPED_EDGES.index(14_400.0))
RETURNS = {"main/cpu": {level: IdleReturns(times=_HOURS, jobs=_HOURS) for level in ("1", "2", "3", "4")}}
NEEDED = {"main/cpu": a_window(opened_at=NOW - 90_000, seen_at=NOW - 60, peaks=((NOW - 3600, 1), (NOW - 60, 0)))}


def fleet(warm=WARM, limits=None, **pool):
    return a_fleet(a_pool("cpu", **({"offerings": (OFFERING,), "warm_pool": warm, "idle_seconds": 300.0} | pool)), **(limits or {}))


def one(number=1, state=RecordState.STOPPED, **facts):
    """The record of an agent; those that are off have no node."""
    given = {"state": state, "usd_per_hour": 3.1, "volume_usd_per_hour": 0.1, "node": f"cpu-{number}", "changed_at": NOW - 3000.0 - number}
    return a_record(f"i-{number}", **(given | facts))


def seen(*records, items=(), nodes=(), **facts):
    """A look at these agents; EC2 says of each what its record does, unless told otherwise."""
    states = facts.pop("states", {})
    of = {record.instance_id: states.get(record.instance_id, OFF.get(record.state, InstanceState.RUNNING)) for record in records}
    instances = tuple(an_instance(i, state=state, **facts.pop(i, {})) for i, state in of.items())
    memory = facts.pop("memory", {})
    views = facts.pop("views", None) or (facts.pop("view", None) or a_view(*nodes, items=tuple(items)),)
    return a_snapshot(
        *views,
        records=records,
        **({"instances": instances, "memory": a_memory(**({"windows": NEEDED, "idle_returns": RETURNS} | memory))} | facts),
    )


def drained(**facts):
    """An agent that carries our mark and was seen idle before."""
    node = cordoned(a_node("cpu-1", "cpu", "autoscaler-fleet-f"))
    memory = {"observations": {"i-1": a_look("drained")}} | facts.pop("memory", {})
    return seen(one(state=RecordState.REGISTERED), nodes=(facts.pop("node", node),), memory=memory, **facts)


def told(plan, *kinds):
    return [(type(step), step.reason) for step in plan.steps if isinstance(step, kinds or (Stop, Terminate, FinishStop, Start, Launch))]


def down(snapshot, of=None):
    return told(scale_down(snapshot, of or fleet()), Stop, Terminate, FinishStop, Start)


# Stopped, or terminated?


@pytest.mark.parametrize(
    ("snapshot", "pools"),
    [
        (drained(), fleet(None)),
        (drained(), fleet(replace(WARM, max_agents=0))),
        (drained(**{"i-1": {"market": "spot"}}), fleet()),
        (drained(**{"i-1": {"keeps_disk": False}}), fleet()),
        (drained(memory={"unstoppable": frozenset({"i-1"})}), fleet()),
        (drained(memory={"windows": {}}), fleet()),
        (drained(node=cordoned(a_node("cpu-1", "cpu"), a_mark(MarkClass.OPERATOR))), fleet()),
        (drained(node=cordoned(a_node("cpu-1", "cpu"), a_mark(MarkClass.QUARANTINE))), fleet()),
        (drained(node=cordoned(a_node("cpu-1", "cpu"), a_mark(MarkClass.OUTDATED))), fleet()),
        (drained(template_versions={"cpu": "2"}, **{"i-1": {"template_version": "1"}}, memory={"proven": {"cpu": "2"}}), fleet()),
    ],
    ids=[
        *("no warm pool", "a warm pool of none", "a spot instance", "its disk would be lost", "EC2 does not stop it"),
        *("not needed again", "drained by a person", "quarantined", "drained as outdated", "outdated"),
    ],
)
def test_anything_else_is_terminated(snapshot, pools):
    assert down(snapshot, pools) == [(Terminate, Reason.DRAINED)]


def test_what_runs_though_its_record_says_that_it_is_stopped_is_not_terminated_as_that():
    assert down(seen(one()), fleet(None)) == [(Terminate, Reason.WARM_POOL_OFF)]
    assert down(seen(one(), states={"i-1": InstanceState.RUNNING}), fleet(None)) == []


def test_no_more_are_stopped_than_may_be_on_all_controllers_together():
    nodes = [cordoned(a_node(f"cpu-{n}", "cpu")) for n in (1, 2, 3)]
    records = [one(n, RecordState.REGISTERED) for n in (1, 2, 3)]
    window = {"main/cpu": replace(NEEDED["main/cpu"], peaks=((NOW - 3600, 9), (NOW - 60, 0)))}
    memory = {"observations": {f"i-{n}": a_look("drained") for n in (1, 2, 3)}, "windows": window}
    elsewhere = one(4, controller="other")
    both = fleet(controllers=("main", "other"))
    snapshot = seen(*records, elsewhere, memory=memory, views=(a_view(*nodes), a_view(name="other")))
    kinds = Counter(kind for kind, _ in down(snapshot, both))
    assert kinds == {Stop: 2, Terminate: 1}


def test_a_node_that_was_not_read_is_neither_deleted_nor_forgotten_by_a_stop():
    snapshot = seen(one(state=RecordState.STOPPING), view=a_view(unread=frozenset({"cpu-1"})))
    assert down(snapshot) == []


@pytest.mark.parametrize("doubt", [{"problem": "503"}, {"session": "s2"}, {"quieting_down": True}], ids=str)
def test_a_stop_is_not_finished_where_its_controller_is_not_believed(doubt):
    node = cordoned(a_node("cpu-1", "cpu"))
    assert down(seen(one(state=RecordState.STOPPING), view=a_view(node, **doubt))) == []
    assert down(seen(one(state=RecordState.STOPPING), view=a_view(node))) == [(FinishStop, Reason.HAS_STOPPED)]


@pytest.mark.parametrize("state", [RecordState.STOPPING, RecordState.STOPPED, RecordState.STARTING])
def test_one_that_ended_whatever_it_was_about_to_do_is_forgotten_without_a_step_in_ec2(state):
    assert down(seen(one(state=state), states={"i-1": InstanceState.TERMINATED})) == []


# For how long?


def brute_usd(counts, costs, stopped, stops_at, ends_at):
    """What returns cost, each by itself: thirty of them spread over each span between two edges."""
    usd = 0.0
    spans = [(0.0, 0.0), *pairwise(STOPPED_EDGES), (STOPPED_EDGES[-1], STOPPED_EDGES[-1] * 2)]
    for (low, high), (times, jobs) in zip(spans, counts, strict=True):
        for part in range(30):
            at = low + (high - low) * (part + 0.5) / 30
            if at <= stops_at:
                usd += times / 30 * at * costs.usd_per_second
            elif at <= ends_at:
                is_ready = at >= stops_at + stopped.stops_seconds
                usd += times / 30 * (stops_at * costs.usd_per_second + (at - stops_at) * stopped.usd_per_second)
                usd += times / 30 * (stopped.start_usd if is_ready else costs.boot_usd)
                usd += jobs / 30 * (stopped.wait_usd if is_ready else costs.wait_usd)
            else:
                usd += times / 30 * (stops_at * costs.usd_per_second + (ends_at - stops_at) * stopped.usd_per_second + costs.boot_usd)
                usd += jobs / 30 * costs.wait_usd
    return usd


@pytest.mark.parametrize("seed", range(40))
def test_the_two_times_are_the_cheapest_of_all_over_the_returns_seen(seed):
    chance = Random(seed)
    often = chance.choice([1.0, 1e3])
    counts = [(often * chance.random() ** 8 * 1e6, often * chance.random() ** 8 * 1e6) for _ in range(len(STOPPED_EDGES) + 1)]
    costs = Costs(usd_per_second=3.0 / 3600, boot_usd=chance.uniform(0.01, 0.5), wait_usd=chance.uniform(0.1, 3.0))
    part = chance.uniform(0.2, 1.1)
    stopped = KeepingStopped(
        usd_per_second=costs.usd_per_second * chance.uniform(0.005, 0.06),
        stops_seconds=chance.choice([0.0, 40.0]),
        start_usd=part * costs.boot_usd,
        wait_usd=part * costs.wait_usd,
        at_most_seconds=chance.choice([7200.0, 604_800.0]),
    )
    returns = {"1": IdleReturns(times=tuple(times for times, _ in counts), jobs=tuple(jobs for _, jobs in counts))}
    keeping = Keeping(idle_returns=returns, costs=costs, fixed_seconds=None, at_most_seconds=7200.0, stopped=stopped)
    pairs = [
        (stop, end)
        for stop in STOPPED_EDGES
        if stop <= 7200.0
        for end in STOPPED_EDGES
        if end == stop or stop < end <= stopped.at_most_seconds
    ]
    least = min(brute_usd(counts, costs, stopped, *pair) for pair in pairs)
    chosen = keeping.seconds(1), keeping.seconds_in_all(1)
    assert chosen in pairs
    assert brute_usd(counts, costs, stopped, *chosen) <= least * 1.01


def test_where_a_start_is_no_quicker_and_no_cheaper_than_a_boot_nothing_is_kept_stopped():
    costs = Costs(usd_per_second=3.0 / 3600, boot_usd=0.15, wait_usd=1.7)
    stopped = KeepingStopped(usd_per_second=1e-5, stops_seconds=40.0, start_usd=0.15, wait_usd=1.7, at_most_seconds=604_800.0)
    keeping = Keeping(idle_returns={}, costs=costs, fixed_seconds=None, at_most_seconds=7200.0, stopped=stopped)
    assert keeping.seconds_in_all(1) == keeping.seconds(1)


# How long one may stay stopped.


@pytest.mark.parametrize(
    ("snapshot", "pools", "reason"),
    [
        (seen(one()), fleet(None), Reason.WARM_POOL_OFF),
        (seen(one(changed_at=NOW - 700_000.0)), fleet(), Reason.WARM_POOL_AGE),
        (
            seen(one(), memory={"windows": {"main/cpu": replace(NEEDED["main/cpu"], opened_at=0.0, peaks=((NOW - 60, 0),))}}),
            fleet(),
            Reason.NOT_WORTH_KEEPING,
        ),
        (
            seen(one(), template_versions={"cpu": "2"}, memory={"proven": {"cpu": "2"}}, **{"i-1": {"template_version": "1"}}),
            fleet(),
            Reason.OUTDATED,
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, Reason) else "",
)
def test_a_stopped_agent_is_terminated(snapshot, pools, reason):
    assert down(snapshot, pools) == [(Terminate, reason)]


def test_a_stopped_agent_that_is_worth_its_disk_stays():
    assert down(seen(one())) == []


def test_of_too_many_those_that_were_stopped_first_go():
    plan = scale_down(seen(one(1), one(2), one(3), memory={"windows": {"main/cpu": replace(NEEDED["main/cpu"], opened_at=0.0)}}), fleet())
    assert [step.instance_id for step in plan.steps if isinstance(step, Terminate)] == ["i-3", "i-2"]


def test_where_all_that_are_too_many_are_only_about_to_stop_they_stop_first():
    window = {"main/cpu": a_window(opened_at=NOW - 600, seen_at=NOW - 60, peaks=((NOW - 60, 0),))}
    records = one(1, RecordState.STOPPING), one(2, RecordState.STOPPING)
    assert down(seen(*records, memory={"windows": window, "idle_returns": {}})) == [(FinishStop, Reason.HAS_STOPPED)] * 2
    too_old = one(3, changed_at=NOW - 700_000.0)
    plan = scale_down(seen(*records, too_old, memory={"windows": window, "idle_returns": {}}), fleet())
    assert told(plan) == [(Terminate, Reason.WARM_POOL_AGE), *[(FinishStop, Reason.HAS_STOPPED)] * 2]


# Started before one is launched.


def up(snapshot, of=None):
    return scale_up(snapshot, of or fleet())


def starts(plan):
    return [step.instance_ids for step in plan.steps if isinstance(step, Start)]


def launches(plan):
    return [step.count for step in plan.steps if isinstance(step, Launch)]


def test_the_one_that_was_stopped_last_is_started_first_and_what_is_missing_is_launched():
    items = [an_item(n, label="cpu", waiting_seconds=5000.0) for n in range(3)]
    plan = up(seen(one(1), one(2), items=items))
    assert (starts(plan), launches(plan)) == ([("i-1", "i-2")], [1])


def test_as_many_are_launched_instead_as_are_refused():
    [step] = [step for step in up(seen(one(), items=[an_item(label="cpu")])).steps if isinstance(step, Start)]
    assert (step.otherwise.count, step.otherwise.offerings, step.otherwise.intent_id) == (1, (OFFERING,), None)


@pytest.mark.parametrize("state", [InstanceState.STOPPING, InstanceState.RUNNING, InstanceState.TERMINATED])
def test_only_what_ec2_shows_stopped_is_started(state):
    plan = up(seen(one(), items=[an_item(label="cpu")], states={"i-1": state}))
    assert (starts(plan), launches(plan)) == ([], [1])


def test_what_ec2_has_no_machine_for_is_not_started_while_another_offering_is_free():
    other = an_offering("m5.18xlarge", usd_per_hour=3.5)
    refused = {TrialOf.OFFERING.scope("cpu", OFFERING.key): a_trial(300.0)}
    plan = up(seen(one(), items=[an_item(label="cpu")], memory={"trials": refused}), fleet(offerings=(OFFERING, other)))
    assert (starts(plan), launches(plan)) == ([], [1])


@pytest.mark.parametrize(
    ("limits", "pool", "reason"),
    [
        ({"max_agents": 1}, {}, Reason.FLEET_MAX_AGENTS),
        ({}, {"max_agents": 1}, Reason.MAX_AGENTS),
        ({"max_launches_per_hour": 1}, {}, Reason.LAUNCH_RATE),
        ({"max_usd_per_hour": 6.2}, {}, Reason.USD_PER_HOUR),
        ({"max_usd_per_month": 6.2}, {}, Reason.USD_PER_MONTH),
    ],
    ids=str,
)
def test_a_start_takes_room_in_each_limit_like_a_launch(limits, pool, reason):
    """One runs that was started within the hour, two are stopped: with its $3.10 and their $0.20, a start would make $6.30."""
    busy = one(9, RecordState.REGISTERED, starts=(NOW - 600.0,), life=1)
    records = one(1), one(2), busy
    node = a_node("cpu-9", "cpu", builds=(a_build("long", elapsed_seconds=1.0, estimate_seconds=90_000.0),))
    snapshot = seen(*records, nodes=(node,), items=[an_item(label="cpu")])
    plan = up(snapshot, fleet(limits=limits, **pool))
    assert (starts(plan), launches(plan), reason in {held.reason for held in plan.held}) == ([], [], True)
    roomier = {name: value + (1 if value < 6 else 0.2) for name, value in limits.items()}
    assert starts(up(snapshot, fleet(limits=roomier, **{name: value + 1 for name, value in pool.items()}))) == [("i-1",)]


def test_a_stopped_agent_takes_no_room_among_the_agents():
    snapshot = seen(one(1), one(2), items=[an_item(label="cpu", waiting_seconds=5000.0)])
    assert starts(up(snapshot, fleet(limits={"max_agents": 1}, max_agents=1))) == [("i-1",)]


def test_of_those_that_are_stopped_as_many_start_as_there_is_room_for():
    items = [an_item(n, label="cpu", waiting_seconds=5000.0) for n in range(3)]
    assert [len(ids) for ids in starts(up(seen(one(1), one(2), one(3), items=items), fleet(limits={"max_agents": 2})))] == [2]


def test_a_pool_that_is_paused_starts_nothing():
    refused = {TrialOf.POOL.scope("cpu"): a_trial(300.0)}
    assert starts(up(seen(one(), items=[an_item(label="cpu")], memory={"trials": refused}))) == []


def test_while_jobs_wait_none_is_launched_to_be_stopped():
    plan = up(seen(items=[an_item(label="cpu")]), fleet(replace(WARM, min_agents=3)))
    assert [(step.reason, step.count) for step in plan.steps if isinstance(step, Launch)] == [(Reason.NOBODY_CAN_SERVE, 1)]


def test_what_is_launched_to_be_stopped_and_not_answered_yet_is_not_launched_again():
    unanswered = seen(intents=(an_intent(count=2),))
    assert launches(up(unanswered, fleet(replace(WARM, min_agents=2)))) == []
    assert launches(up(unanswered, fleet(replace(WARM, min_agents=2), min_agents=1))) == [1]


@pytest.mark.parametrize(("least", "launched"), [(1, []), (2, [(Reason.FILLS_WARM_POOL, 1)])])
def test_an_agent_that_runs_will_be_stopped_and_so_none_is_launched_in_its_place(least, launched):
    """Its jobs are what it was started for: another one would be launched, stopped and terminated with each burst."""
    node = a_node("cpu-9", "cpu", builds=(a_build("long", elapsed_seconds=1.0, estimate_seconds=90_000.0),))
    busy = one(9, RecordState.REGISTERED, starts=(NOW - 600.0,), life=1)
    plan = up(seen(busy, nodes=(node,), memory={"windows": an_empty_window(most=1)}), fleet(replace(WARM, min_agents=least)))
    assert [(step.reason, step.count) for step in plan.steps if isinstance(step, Launch)] == launched


def test_agents_that_always_run_are_none_that_will_be_stopped():
    snapshot = seen(one(9, RecordState.REGISTERED), nodes=(a_node("cpu-9", "cpu"),))
    plan = up(snapshot, fleet(replace(WARM, min_agents=1), min_agents=1))
    assert [(step.reason, step.count) for step in plan.steps if isinstance(step, Launch)] == [(Reason.FILLS_WARM_POOL, 1)]


# A person's order.


def test_the_same_request_of_a_person_starts_once():
    order = LaunchSome(pool="cpu", count=1, controller="main", keep_seconds=600.0, reason="r", request_id="r-1")
    plan = launch_some(seen(one(), one(2)), fleet(), order)
    [step] = [step for step in plan.steps if isinstance(step, Start)]
    assert (step.instance_ids, step.keep_until, "r-1" in plan.memory.requests) == (("i-1",), NOW + 600.0, True)
    started = one(state=RecordState.STARTING, started_for=step.request, starts=(NOW,), life=1)
    for again in (seen(started, one(2)), seen(one(), one(2), memory={"requests": plan.memory.requests})):
        repeated = launch_some(again, fleet(), order)
        assert (repeated.steps, [held.reason for held in repeated.held]) == ((), [Reason.ALREADY_DONE])
