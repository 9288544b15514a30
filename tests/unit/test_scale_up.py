"""When an agent is launched, when one comes back, and what holds it."""

from dataclasses import replace

import pytest

from autoscaler.domain import commands
from autoscaler.domain.facts.fleet import Market
from autoscaler.domain.facts.orders import LaunchSome
from autoscaler.domain.facts.plan import CreateBeacon, Launch, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState, OfflineCause, Wait
from autoscaler.domain.situation.bets import TrialOf
from support.builders import (
    NOW,
    a_build,
    a_fleet,
    a_learned,
    a_memory,
    a_month,
    a_node,
    a_pool,
    a_record,
    a_session,
    a_snapshot,
    a_trial,
    a_view,
    an_agent,
    an_intent,
    an_item,
    an_offering,
    cordoned,
    key_of,
)
from support.decisions import decide_down, decide_up, held, launches, scale_up
from support.remembered import tables


def items(count, label="cpu", **facts):
    return tuple(an_item(number, label=label, **facts) for number in range(1, count + 1))


def learned_minutes(pool, minutes):
    return {"main": a_learned(samples={key_of(pool): (minutes * 60.0,) * 5})}


def test_launches_at_once_for_an_item_that_no_executor_can_ever_take():
    plan = scale_up(a_snapshot(a_view(items=items(1))), a_fleet())
    assert launches(plan) == [("cpu", 1, Reason.NOBODY_CAN_SERVE)]


def test_an_item_counts_once_it_is_mature():
    plan = scale_up(a_snapshot(a_view(items=items(1, waiting_seconds=29.0))), a_fleet())
    assert plan.steps == ()


def test_four_items_fill_one_agent_of_four_executors():
    fleet = a_fleet(a_pool("cpu", executors=4))
    assert launches(scale_up(a_snapshot(a_view(items=items(4))), fleet))[0][1] == 1


def test_does_not_launch_again_for_what_is_on_its_way():
    snapshot = a_snapshot(a_view(items=items(1)), records=(a_record("i-1"),))
    assert launches(scale_up(snapshot, a_fleet())) == []


def test_a_launch_without_answer_counts_as_on_its_way():
    snapshot = a_snapshot(a_view(items=items(2)), intents=(an_intent(count=2),))
    assert launches(scale_up(snapshot, a_fleet())) == []


def test_an_agent_past_its_boot_deadline_is_counted_on_no_longer_once_its_boot_counts_as_failed():
    late = a_snapshot(a_view(items=items(1)), records=(a_record("i-1", launched_at=NOW - 901),))
    assert launches(scale_up(late, a_fleet())) == []
    failed = replace(late, memory=a_memory(trials={"boot/cpu": a_trial(failed=("i-1",), is_closed=False)}))
    assert launches(scale_up(failed, a_fleet())) == [("cpu", 1, Reason.NOBODY_CAN_SERVE)]


def test_of_forty_boots_that_fail_together_none_is_waited_for_once_the_first_counts():
    """Only the last twenty that failed are remembered by their ids."""
    records = tuple(a_record(f"i-{number}", launched_at=NOW - 901.0) for number in range(40))
    known = a_trial(-1.0, failed=tuple(f"i-{number}" for number in range(20)), failed_at=NOW - 60.0, is_closed=True)
    late = a_snapshot(a_view(items=items(3)), records=records, memory=a_memory(trials={"boot/cpu": known}))
    assert launches(scale_up(late, a_fleet(a_pool(max_agents=100)))) == [("cpu", 1, Reason.NOBODY_CAN_SERVE)]


def test_an_agent_that_was_connected_and_is_gone_is_not_on_its_way_though_its_boot_deadline_is_far():
    record, node = an_agent()
    record, node = replace(record, launched_at=NOW - 300.0), replace(node, offline=True)
    young = a_snapshot(a_view(node, items=items(1)), records=(record,))
    assert launches(scale_up(young, a_fleet())) == []
    away = replace(young, memory=a_memory(connected=frozenset({"i-1"}), ready_since={"i-1": NOW - 200.0}))
    assert launches(scale_up(away, a_fleet())) == []  # it reboots, as first boots do
    lost = replace(young, memory=a_memory(connected=frozenset({"i-1"}), ready_since={"i-1": NOW - 300.0}))
    assert launches(scale_up(lost, a_fleet())) == [("cpu", 1, Reason.NOBODY_CAN_SERVE)]


def test_what_could_not_be_brought_back_is_tried_again_and_not_counted_on():
    agents = [an_agent(number) for number in (1, 2)]
    failing = {f"uncordon main/cpu-{n}": a_trial(why="403", is_closed=False) for n in (1, 2)}
    view = a_view(*(cordoned(node) for _, node in agents), items=items(1))
    snapshot = a_snapshot(view, records=tuple(record for record, _ in agents), memory=a_memory(failing=failing))
    plan = scale_up(snapshot, a_fleet())
    assert launches(plan) == [("cpu", 1, Reason.NOBODY_CAN_SERVE)]
    assert [step.node for step in plan.steps if isinstance(step, Uncordon)] == ["cpu-1", "cpu-2"]
    often = {key: replace(one, failures=3, is_closed=True) for key, one in failing.items()}
    plan = scale_up(replace(snapshot, memory=a_memory(failing=often)), a_fleet())
    assert [step for step in plan.steps if isinstance(step, Uncordon)] == []
    assert Reason.KEEPS_FAILING in held(plan)


def test_waits_for_a_busy_executor_when_that_is_cheaper_than_an_agent():
    record, node = an_agent(builds=(a_build(elapsed_seconds=None),))
    fleet = a_fleet(a_pool("cpu", wait_usd_per_hour=1.0))
    snapshot = a_snapshot(a_view(node, items=items(1)), records=(record,), learned=learned_minutes("cpu", 6))
    plan = scale_up(snapshot, fleet)
    assert launches(plan) == []
    assert Reason.WORTH_WAITING in held(plan)


@pytest.mark.parametrize(("waiting", "launched"), [(2, 0), (3, 1), (6, 3)])
def test_launches_when_the_items_together_would_wait_for_more_than_an_agent_costs(waiting, launched):
    fleet = a_fleet(a_pool("cpu", wait_usd_per_hour=0.1, max_wait_seconds=1e5))
    plan = decide_up(an_agent(builds=(a_build(),)), items=items(waiting), learned=learned_minutes("cpu", 30), fleet=fleet)
    assert launches(plan) == ([("cpu", launched, Reason.STARVED_QUEUE)] if launched else [])


def test_the_reason_tells_both_sides_in_dollars():
    record, node = an_agent(builds=(a_build(),))
    snapshot = a_snapshot(a_view(node, items=items(6)), records=(record,), learned=learned_minutes("cpu", 30))
    fleet = a_fleet(a_pool("cpu", max_wait_seconds=1e5))
    [step] = [s for s in scale_up(snapshot, fleet).steps if isinstance(s, Launch)]
    assert "would wait" in step.detail
    assert "for an agent of $" in step.detail


@pytest.mark.parametrize(("minutes_left", "count"), [(3.4, 0), (3.5, 1), (5.0, 1)])
def test_an_agent_costs_its_boot_and_not_what_it_may_idle_afterwards(minutes_left, count):
    """A boot of three minutes costs $0.15, as 27 seconds of waiting do; where an agent is kept after its work, that pays for itself."""
    record, node = an_agent(builds=(a_build(elapsed_seconds=0.0),))
    snapshot = a_snapshot(a_view(node, items=items(1)), records=(record,), learned=learned_minutes("cpu", minutes_left))
    assert sum(launched for _, launched, _ in launches(scale_up(snapshot, a_fleet()))) == count


def test_short_jobs_share_the_executor_that_is_free():
    record, node = an_agent()
    snapshot = a_snapshot(a_view(node, items=items(3)), records=(record,), learned=learned_minutes("cpu", 0.5))
    assert launches(scale_up(snapshot, a_fleet())) == []


def test_nobody_waits_beyond_max_wait_while_limits_allow():
    record, node = an_agent(builds=(a_build(),))
    fleet = a_fleet(a_pool("cpu", wait_usd_per_hour=0.0, max_wait_seconds=600.0))
    snapshot = a_snapshot(a_view(node, items=items(1)), records=(record,), learned=learned_minutes("cpu", 30))
    assert launches(scale_up(snapshot, fleet)) == [("cpu", 1, Reason.MAX_WAIT)]


def test_who_waits_too_long_gets_an_agent_beyond_those_that_others_ahead_of_it_take():
    fleet = a_fleet(a_pool("cpu", wait_usd_per_hour=0.1, max_wait_seconds=600.0))
    waited = tuple(an_item(number, label="cpu", waiting_seconds=seconds) for number, seconds in enumerate((3000.0, 60.0, 3000.0)))
    assert planned_then_again(a_snapshot(a_view(items=waited), learned=learned_minutes("cpu", 1)), fleet) == (3, 0)


def test_an_item_that_a_new_warm_executor_would_take_is_counted_against_it():
    record, node = an_agent(builds=(a_build(),))
    fleet = a_fleet(a_pool("cpu", warm_executors=2, wait_usd_per_hour=1.0, boot_seconds=150.0, max_wait_seconds=1e5))
    snapshot = a_snapshot(a_view(node, items=items(1)), records=(record,), learned=learned_minutes("cpu", 3))
    assert planned_then_again(snapshot, fleet) == (3, 0)


def planned_then_again(snapshot, fleet):
    """How many agents are launched, and how many more once these are on their way."""
    first = scale_up(snapshot, fleet)
    asked = tuple(an_intent(f"l-{n}", pool=pool, count=count, created_at=NOW) for n, (pool, count, _) in enumerate(launches(first)))
    again = scale_up(replace(snapshot, intents=asked), fleet)
    return sum(count for _, count, _ in launches(first)), sum(count for _, count, _ in launches(again))


def test_an_executor_whose_own_run_waits_in_the_queue_is_not_counted_on():
    record, node = an_agent(builds=(a_build(run="job/p/1"),))
    inner = an_item(1, label=None, why=Wait(for_executor=True, label="cpu"), run="job/p/1")
    snapshot = a_snapshot(a_view(node, items=(inner,)), records=(record,), learned=learned_minutes("cpu", 1))
    assert launches(scale_up(snapshot, a_fleet())) == [("cpu", 1, Reason.NOBODY_CAN_SERVE)]


def test_takes_the_cheaper_of_two_pools_that_could_serve():
    dear = a_pool("dear", labels=frozenset({"linux"}), offerings=(an_offering(usd_per_hour=9.0),))
    cheap = a_pool("cheap", labels=frozenset({"linux"}), offerings=(an_offering(usd_per_hour=1.0),))
    plan = scale_up(a_snapshot(a_view(items=items(1, "linux"))), a_fleet(dear, cheap))
    assert launches(plan) == [("cheap", 1, Reason.NOBODY_CAN_SERVE)]


def test_a_retiring_agent_comes_back_before_one_is_launched():
    record, node = an_agent()
    snapshot = a_snapshot(a_view(cordoned(node), items=items(1)), records=(record,))
    plan = scale_up(snapshot, a_fleet())
    assert [type(step) for step in plan.steps] == [Uncordon]
    assert plan.steps[0].reason is Reason.DEMAND_IS_BACK


def test_a_pinned_agent_comes_back_at_once_even_before_the_item_is_mature():
    record, node = an_agent()
    item = an_item(why=Wait(for_executor=True, nodes=(node.name,)), waiting_seconds=0.0)
    [step] = scale_up(a_snapshot(a_view(cordoned(node), items=(item,)), records=(record,)), a_fleet()).steps
    assert (type(step), step.reason) == (Uncordon, Reason.PINNED)


def test_an_agent_that_a_person_took_offline_is_not_counted_and_not_touched():
    record, node = an_agent()
    theirs = replace(cordoned(node), reason="disk swap")
    plan = scale_up(a_snapshot(a_view(theirs, items=items(1)), records=(record,)), a_fleet())
    assert [type(step) for step in plan.steps] == [Launch]


def test_a_node_of_somebody_else_that_can_serve_is_used_first():
    plan = scale_up(a_snapshot(a_view(a_node("static", "cpu"), items=items(1))), a_fleet())
    assert plan.steps == ()


def test_a_node_that_is_nobodys_serves_what_its_own_labels_match_whatever_a_pool_of_that_name_has():
    pool = a_pool("cpu", labels=frozenset({"cpu", "docker"}))
    for label, launched in (("cpu&&docker", [("cpu", 1, Reason.NOBODY_CAN_SERVE)]), ("cpu", [])):
        view = a_view(a_node("static", "cpu"), items=items(1, label=label))
        assert launches(scale_up(a_snapshot(view), a_fleet(pool))) == launched


def test_puts_the_beacon_back():
    view = replace(a_view(), nodes=())
    step, *others = scale_up(a_snapshot(view), a_fleet()).steps
    assert isinstance(step, CreateBeacon)
    assert [other.spec.name for other in others] == ["autoscaler-beacon-f~cpu", "autoscaler-beacon-f~~"]
    assert (step.spec.name, step.spec.executors, step.spec.exclusive) == ("autoscaler-beacon-f", 1, True)


@pytest.mark.parametrize(
    "view", [a_view(items=items(3), problem="503"), a_view(items=items(3), quieting_down=True)], ids=["incomplete", "quieting"]
)
def test_launches_nothing_for_a_controller_that_cannot_be_believed_or_takes_nothing(view):
    plan = scale_up(a_snapshot(view), a_fleet())
    assert launches(plan) == []
    assert held(plan) & {Reason.INCOMPLETE, Reason.QUIETING_DOWN}


def test_a_controller_that_is_down_does_not_stop_work_on_another():
    fleet = a_fleet(a_pool("cpu", controllers=("main", "other")))
    down = a_view(name="main", problem="ConnectTimeout")
    plan = scale_up(a_snapshot(down, a_view(name="other", items=items(1))), fleet)
    assert [(s.controller, s.pool) for s in plan.steps if isinstance(s, Launch)] == [("other", "cpu")]


def test_agents_that_are_missing_right_after_a_restart_are_not_replaced():
    record, node = an_agent()
    view = a_view(replace(node, offline=True), items=items(1), session="s2")
    memory = a_memory(sessions={"main": a_session(session="s2", since_at=NOW - 10, restarted=True)})
    assert launches(scale_up(a_snapshot(view, records=(record,), memory=memory), a_fleet())) == []


@pytest.mark.parametrize(
    ("pool", "limits", "reason"),
    [
        ({"max_agents": 2}, {}, Reason.MAX_AGENTS),
        ({}, {"max_agents": 2}, Reason.FLEET_MAX_AGENTS),
        ({}, {"max_launches_per_hour": 2}, Reason.LAUNCH_RATE),
        ({}, {"max_usd_per_hour": 7.0}, Reason.USD_PER_HOUR),
        ({}, {"max_usd_per_month": 7.0}, Reason.USD_PER_MONTH),
    ],
    ids=str,
)
def test_no_limit_is_exceeded_and_the_one_that_is_hit_is_named(pool, limits, reason):
    plan = scale_up(a_snapshot(a_view(items=items(5))), a_fleet(a_pool("cpu", **pool), **limits))
    assert sum(count for _, count, _ in launches(plan)) == 2
    assert reason in held(plan)


def test_limits_count_the_dearest_offering_that_is_asked_for():
    pool = a_pool("cpu", offerings=(an_offering(usd_per_hour=1.0), an_offering("c6i.16xlarge", usd_per_hour=5.0)))
    plan = scale_up(a_snapshot(a_view(items=items(5))), a_fleet(pool, max_usd_per_hour=10.0))
    assert sum(count for _, count, _ in launches(plan)) == 2


def test_the_month_already_spent_counts():
    memory = a_memory(month=a_month(name="2027-01", usd=98.0, metered_at=NOW))
    plan = scale_up(a_snapshot(a_view(items=items(1)), memory=memory), a_fleet(max_usd_per_month=100.0))
    assert Reason.USD_PER_MONTH in held(plan)


def test_keeps_the_minimum_and_the_warm_executors():
    fleet = a_fleet(a_pool("cpu", min_agents=2), a_pool("gpu", warm_executors=3, executors=2))
    assert launches(scale_up(a_snapshot(), fleet)) == [("cpu", 2, Reason.MIN_AGENTS), ("gpu", 2, Reason.WARM_EXECUTORS)]


def test_an_offering_without_capacity_gives_the_next_one_its_turn():
    first, second = an_offering(), an_offering("c6i.16xlarge")
    memory = a_memory(trials={TrialOf.OFFERING.scope("cpu", first.key): a_trial()})
    plan = scale_up(a_snapshot(a_view(items=items(1)), memory=memory), a_fleet(a_pool("cpu", offerings=(first, second))))
    assert [step.offerings for step in plan.steps] == [(second,)]


def test_when_every_offering_was_refused_nothing_is_asked_for():
    memory = a_memory(trials={TrialOf.OFFERING.scope("cpu", an_offering().key): a_trial()})
    plan = scale_up(a_snapshot(a_view(items=items(1)), memory=memory), a_fleet())
    assert (plan.steps, held(plan)) == ((), {Reason.NO_OFFERING})


def test_when_every_offering_was_refused_one_agent_tries_what_was_refused_longest_ago():
    first, second = an_offering(), an_offering("c6i.16xlarge")
    memory = a_memory(
        trials={TrialOf.OFFERING.scope("cpu", first.key): a_trial(-1.0), TrialOf.OFFERING.scope("cpu", second.key): a_trial()}
    )
    plan = scale_up(a_snapshot(a_view(items=items(3)), memory=memory), a_fleet(a_pool("cpu", offerings=(first, second))))
    assert [(step.offerings, step.count, step.reason) for step in plan.steps] == [((first,), 1, Reason.TRIES_AGAIN)]


def test_what_was_refused_a_while_ago_is_asked_for_beside_what_works():
    first, second = an_offering(), an_offering("c6i.16xlarge")
    memory = a_memory(trials={TrialOf.OFFERING.scope("cpu", first.key): a_trial(-1.0)})
    plan = scale_up(a_snapshot(a_view(items=items(3)), memory=memory), a_fleet(a_pool("cpu", offerings=(first, second))))
    assert [(step.offerings, step.count) for step in plan.steps] == [((first, second), 3)]


def test_a_market_that_was_refused_as_a_whole_is_tried_with_one_agent_beside_those_of_the_other_one():
    spot, firm = an_offering(market=Market.SPOT, usd_per_hour=1.0), an_offering()
    memory = a_memory(trials={TrialOf.OFFERING.scope("cpu", spot.key): a_trial(-1.0)})
    waited = a_snapshot(a_view(items=items(3, waiting_seconds=4000.0)), memory=memory)
    plan = scale_up(waited, a_fleet(a_pool("cpu", offerings=(spot, firm))))
    assert [(step.offerings, step.count) for step in plan.steps] == [((firm,), 3), ((spot,), 1)]


@pytest.mark.parametrize("scope", [TrialOf.POOL.scope("cpu"), "account"])
def test_after_its_pause_a_pool_that_was_refused_as_a_whole_is_tried_with_one_agent(scope):
    memory = a_memory(trials={scope: a_trial(-1.0, why="EC2 answered InvalidAMIID.NotFound")})
    plan = scale_up(a_snapshot(a_view(items=items(3)), memory=memory), a_fleet())
    assert [(step.count, step.reason) for step in plan.steps] == [(1, Reason.TRIES_AGAIN)]


def test_no_pause_is_longer_than_two_boot_timeouts_while_a_job_waits_for_nothing_else():
    fleet = a_fleet(a_pool("cpu", boot_timeout_seconds=25.0))
    memory = a_memory(trials={TrialOf.OFFERING.scope("cpu", an_offering().key): a_trial(86_000.0)})
    assert [step.count for step in scale_up(a_snapshot(a_view(items=items(1)), memory=memory), fleet).steps] == [1]


@pytest.mark.parametrize(("waiting", "market"), [(60.0, Market.SPOT), (300.0, Market.ON_DEMAND)])
def test_spot_then_on_demand_asks_for_on_demand_when_patience_is_over(waiting, market):
    offerings = (an_offering(market=Market.SPOT, usd_per_hour=1.0), an_offering())
    plan = scale_up(a_snapshot(a_view(items=items(1, waiting_seconds=waiting))), a_fleet(a_pool("cpu", offerings=offerings)))
    assert [(step.market, {o.market for o in step.offerings}) for step in plan.steps] == [(market, {market})]


def test_known_jobs_are_planned_with_their_own_duration():
    record, node = an_agent()
    known = a_learned(samples={key_of("cpu", "job-1"): (5.0,), key_of("cpu"): (7200.0,)})
    one, two = an_item(1, label="cpu"), an_item(2, label="cpu", job="job-1")
    snapshot = a_snapshot(a_view(node, items=(one, two)), records=(record,), learned={"main": known})
    assert launches(scale_up(snapshot, a_fleet())) == []


def test_a_dead_instance_is_not_counted_on():
    snapshot = a_snapshot(a_view(items=items(1)), records=(a_record("i-1"),), instances=(), fates={"i-1": InstanceState.TERMINATED})
    assert launches(scale_up(snapshot, a_fleet())) == [("cpu", 1, Reason.NOBODY_CAN_SERVE)]


def test_a_person_gets_what_the_limits_allow_and_is_told():
    order = LaunchSome(pool="cpu", count=5, controller=None, keep_seconds=600.0, reason="release", request_id="r1")
    plan = commands.launch_some(a_snapshot(), a_fleet(a_pool("cpu", max_agents=3)), order)
    [step] = plan.steps
    assert (step.count, step.reason, step.intent_id, step.keep_until) == (3, Reason.MANUAL, "manual-r1", NOW + 600)
    assert held(plan) == {Reason.MAX_AGENTS, Reason.FEWER_THAN_ASKED}


def test_the_same_request_launches_once():
    order = LaunchSome(pool="cpu", count=1, controller=None, keep_seconds=0.0, reason="r", request_id="r1")
    plan = commands.launch_some(a_snapshot(intents=(an_intent("manual-r1"),)), a_fleet(), order)
    assert (plan.steps, held(plan)) == ((), {Reason.ALREADY_DONE})


@pytest.mark.parametrize(
    ("pool", "limits", "reason"),
    [
        ({"max_agents": 3}, {}, Reason.MAX_AGENTS),
        ({}, {"max_agents": 3}, Reason.FLEET_MAX_AGENTS),
        ({}, {"max_launches_per_hour": 3}, Reason.LAUNCH_RATE),
        ({}, {"max_usd_per_hour": 9.5}, Reason.USD_PER_HOUR),
        ({}, {"max_usd_per_month": 9.5}, Reason.USD_PER_MONTH),
    ],
    ids=str,
)
def test_launches_under_way_count_against_every_limit(pool, limits, reason):
    fleet = a_fleet(a_pool("cpu", **pool), **limits)
    plan = scale_up(a_snapshot(a_view(items=items(5)), intents=(an_intent(count=2),), memory=a_memory()), fleet)
    assert launches(plan) == [("cpu", 1, Reason.NOBODY_CAN_SERVE)] or launches(plan) == [("cpu", 1, Reason.STARVED_QUEUE)]
    assert reason in held(plan)


def test_a_pool_that_is_full_leaves_its_items_to_another():
    cheap, dear = a_pool("cheap", labels=frozenset({"cpu"}), max_agents=1), a_pool("dear", labels=frozenset({"cpu", "more"}))
    record, node = an_agent(1, pool="cheap")
    theirs = replace(node, offline=True, temporarily_offline=True, cause=OfflineCause.PERSON, reason="disk swap")
    assert [pool for pool, _, _ in launches(decide_up((record, theirs), items=items(1), fleet=a_fleet(cheap, dear)))] == ["dear"]


def test_how_long_an_agent_booted_is_noted_once():
    record, node = an_agent()
    young = replace(record, launched_at=NOW - 300, registered_at=NOW - 100)
    memory = decide_down((young, node)).memory
    assert tables(memory).boots["cpu"] == (200.0,)
    assert tables(decide_down((young, node), memory=memory).memory).boots["cpu"] == (200.0,)


def test_an_agent_that_a_build_is_bound_to_and_that_cannot_be_brought_back_serves_no_other_job():
    record, node = an_agent()
    by_name = an_item(1, label="cpu-1", waiting_seconds=120.0, why=Wait(for_executor=True, nodes=("cpu-1",)))
    other = an_item(2, label="cpu", waiting_seconds=120.0)
    failing = {"uncordon main/cpu-1": a_trial(why="403", is_closed=False)}
    able, unable = (decide_up((record, cordoned(node)), items=(by_name, other), memory=a_memory(failing=known)) for known in ({}, failing))
    assert launches(able) == []
    assert [count for _, count, _ in launches(unable)] == [1]
