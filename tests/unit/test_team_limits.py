"""Limits of teams and of pools: what counts against them, what they stop, and what people are told of them."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import Ceilings
from autoscaler.domain.facts.memory import Spending
from autoscaler.domain.facts.metering import SHARE_SECONDS, Spent, launched_lately, meter, note_spending, spent_lately
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Cordon, Terminate, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState, Wait
from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.learn import assess
from autoscaler.domain.report.messages import write_messages
from autoscaler.domain.report.metrics import held_by_teams, measure
from autoscaler.domain.report.status import status_of
from autoscaler.domain.report.told import Told
from support.builders import (
    MONTH,
    NOW,
    a_build,
    a_mark,
    a_memory,
    a_month,
    a_pool,
    a_record,
    a_snapshot,
    an_agent,
    an_item,
    cordoned,
    with_beacons,
)
from support.decisions import scale_down, steps_of
from support.team_fleets import GRAPHICS, WEB, by_pool, fleet_of, jobs, seen, spending, team, up
from support.told import explain

# What each limit is about.


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ({"max_agents": 2}, Reason.TEAM_MAX_AGENTS),
        ({"max_launches_per_hour": 2}, Reason.LAUNCH_RATE),
        ({"max_usd_per_hour": 6.0}, Reason.USD_PER_HOUR),
        ({"max_usd_per_month": 6.0}, Reason.USD_PER_MONTH),
    ],
    ids=str,
)
def test_a_teams_limit_stops_that_team_in_all_its_pools_and_nobody_else(limit, reason):
    plan = up(fleet_of(team("graphics", "cpu", "gpu", **limit), WEB), items=jobs("cpu", "gpu", "gpu", "web", "web", "web"))
    counts = by_pool(plan)
    assert (counts["web"], counts.get("cpu", 0) + counts.get("gpu", 0)) == (3, 2)
    [held] = [held for held in plan.held if held.limit_of]
    assert (held.reason, held.limit_of) == (reason, "team graphics")
    assert "in team graphics, the limit is" in held.detail


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ({"max_launches_per_hour": 1}, Reason.LAUNCH_RATE),
        ({"max_usd_per_hour": 3.0}, Reason.USD_PER_HOUR),
        ({"max_usd_per_month": 3.0}, Reason.USD_PER_MONTH),
    ],
    ids=str,
)
def test_a_pools_own_limit_stops_that_pool(limit, reason):
    plan = up(fleet_of(pools=(a_pool("cpu", ceilings=Ceilings(**limit)), a_pool("gpu"))), items=jobs("cpu", "cpu", "gpu", "gpu"))
    assert by_pool(plan) == {"cpu": 1, "gpu": 2}
    assert {(held.reason, held.limit_of) for held in plan.held if held.limit_of} == {(reason, "pool cpu")}


def test_the_fleets_limit_stops_all_whatever_the_teams_may():
    plan = up(fleet_of(replace(GRAPHICS, ceilings=Ceilings(max_agents=9)), WEB, max_agents=1), items=jobs("cpu", "gpu", "web"))
    assert sum(by_pool(plan).values()) == 1
    assert {held.limit_of for held in plan.held} == {"the fleet"}


def test_an_agent_whose_record_cannot_be_read_takes_room_in_each_pool_and_team_at_its_dearest_price():
    snapshot = replace(seen(), unread=("record#i-9", "intent#l-1"))
    room = Budget(assess(snapshot, fleet_of(GRAPHICS, WEB)))
    assert {use.level.text: (use.agents, use.usd_per_hour) for use in room.levels} == {
        "pool cpu": (2, 6.0),
        "pool gpu": (2, 6.0),
        "pool web": (2, 2.0),
        "team graphics": (2, 6.0),
        "team web": (2, 2.0),
        "the fleet": (2, 6.0),
    }


def test_a_launch_of_an_agent_that_is_gone_counts_in_its_pool_and_where_nobody_noted_the_pool_in_each():
    memory = a_memory(gone={"i-1": NOW - 60, "i-1@5": NOW - 30, "i-2": NOW - 60}, gone_from={"i-1": "cpu", "i-1@5": "cpu"})
    assert launched_lately(a_snapshot(), memory) == {"cpu": 2, "": 1}
    room = Budget(assess(a_snapshot(memory=memory), fleet_of(GRAPHICS, WEB)))
    assert {use.level.text: use.launched for use in room.levels if use.level.kind != "pool"} == {
        "team graphics": 3,
        "team web": 1,
        "the fleet": 3,
    }


def test_the_pool_of_a_launch_is_noted_as_long_as_it_counts():
    gone = a_record("i-7", pool="gpu", node=None, launched_at=NOW - 100.0)
    snapshot = replace(seen(records=(gone,), gone={"i-1": NOW - 3599}, gone_from={"i-1": "cpu", "i-0": "cpu"}), instances=())
    ended = replace(snapshot, fates={"i-7": InstanceState.TERMINATED})
    memory = scale_down(ended, fleet_of()).memory
    assert (memory.gone, memory.fleet.gone_from) == ({"i-1": NOW - 3599, "i-7": NOW - 100.0}, {"i-1": "cpu", "i-7": "gpu"})


# What is metered.


def test_the_months_dollars_are_kept_by_pool_beside_those_of_the_fleet():
    before = a_month(name=MONTH, usd=100.0, metered_at=NOW - 1800, by_pool={"cpu": 4.0, "left": 5.0})
    after = meter(before, Spent(by_pool={"cpu": 1.0, "gpu": 3.0}), NOW)
    assert (after.usd, after.by_pool) == (104.0, {"cpu": 5.0, "left": 5.0, "gpu": 3.0})


def test_a_month_that_was_metered_before_pools_were_told_apart_goes_on():
    after = meter(a_month(name=MONTH, usd=100.0, metered_at=NOW - 3600), Spent(by_pool={"cpu": 2.0}), NOW)
    assert (after.usd, after.by_pool) == (102.0, {"cpu": 2.0})


def test_a_new_month_begins_at_nothing():
    assert (
        meter(a_month(name="2026-12", usd=9.0, metered_at=NOW - 60, by_pool={"cpu": 9.0}), Spent(by_pool={"cpu": 2.0}), NOW).by_pool == {}
    )


def test_what_was_spent_lately_is_remembered_for_four_hours_in_a_few_steps():
    lately = ()
    for minute in range(1, 12 * 60 + 1):
        now = NOW + 60.0 * minute
        lately = note_spending(lately, {"cpu": 6.0 / 60, "web": 1.0 / 60}, now)
        assert len(lately) <= SHARE_SECONDS / 900 + 1
    assert spent_lately(lately, {"cpu"}) == pytest.approx(4 * 6.0, rel=0.1)
    assert spent_lately(lately, {"cpu", "web"}) == pytest.approx(4 * 7.0, rel=0.1)


def test_without_teams_nothing_is_remembered_of_the_last_hours():
    lately = (Spending(since_at=NOW - 60, by_pool={"cpu": 1.0}),)
    assert scale_down(seen(lately=lately), fleet_of()).memory.fleet.lately == ()
    assert scale_down(seen(lately=lately), fleet_of(WEB)).memory.fleet.lately != ()


# The month of a team.


def spent(**by_pool):
    return {"month": a_month(name=MONTH, usd=50.0, metered_at=NOW, by_pool=by_pool)}


def down(*agents, fleet=None, **facts):
    fleet = fleet or fleet_of(team("graphics", "cpu", "gpu", max_usd_per_month=40.0), WEB)
    return scale_down(seen(*agents, **{**spent(cpu=30.0, gpu=10.0), **facts}), fleet)


def test_once_a_teams_money_of_the_month_is_spent_its_agents_are_cordoned_and_no_others():
    plan = down(an_agent(1, builds=(a_build(),)), an_agent(2, pool="gpu"), an_agent(3, pool="web"), records=(a_record("i-9", pool="gpu"),))
    cordons = {step.node: (step.mark.kind, step.reason) for step in steps_of(Cordon, plan)}
    assert cordons == dict.fromkeys(("cpu-1", "gpu-2"), (MarkClass.MONTH_LIMIT, Reason.USD_PER_MONTH))
    assert [step.instance_id for step in steps_of(Terminate, plan)] == ["i-9"]
    assert "$40.00 of $40.00 are spent this month by team graphics: nothing new of it starts" in steps_of(Cordon, plan)[0].detail


def test_a_pools_own_month_stops_that_pool_alone():
    pools = a_pool("cpu", ceilings=Ceilings(max_usd_per_month=30.0)), a_pool("gpu")
    plan = down(an_agent(1), an_agent(2, pool="gpu"), fleet=fleet_of(pools=pools))
    assert [step.node for step in steps_of(Cordon, plan)] == ["cpu-1"]


def test_a_cent_below_the_limit_nothing_is_stopped():
    assert steps_of(Cordon, down(an_agent(1, builds=(a_build(),)), **spent(cpu=30.0, gpu=9.99))) == []


def test_what_was_stopped_comes_back_once_the_teams_limit_is_raised():
    record, node = an_agent(1)
    stopped = record, cordoned(node, a_mark(MarkClass.MONTH_LIMIT))
    fleets = [fleet_of(team("graphics", "cpu", max_usd_per_month=limit)) for limit in (30.0, 31.0)]
    plans = [scale_down(seen(stopped, **spent(cpu=30.0)), fleet) for fleet in fleets]
    assert [[step.node for step in steps_of(Uncordon, plan)] for plan in plans] == [[], ["cpu-1"]]


def test_a_job_that_is_to_begin_keeps_no_node_of_a_team_whose_money_is_spent_and_keeps_one_of_another_team():
    items = tuple(
        an_item(number, why=Wait(for_executor=True, nodes=(name,)), waiting_seconds=4000.0)
        for number, name in enumerate(("cpu-1", "web-2"))
    )
    fleet = fleet_of(team("g", "cpu", max_usd_per_month=40.0))
    situation = assess(with_beacons(seen(an_agent(1), an_agent(2, pool="web"), items=items, **spent(cpu=40.0)), fleet), fleet)
    assert {agent.node.name for agent in situation.agents if situation.protected(agent)} == {"web-2"}


def test_status_and_why_and_one_message_say_whose_money_is_spent():
    fleet, snapshot = fleet_of(team("graphics", "cpu", "gpu", max_usd_per_month=40.0), WEB), seen(an_agent(1), **spent(cpu=40.0))
    situation = assess(snapshot, fleet)
    assert "by team graphics" in status_of(situation).stopped
    assert any("by team graphics" in line for line in explain(snapshot, fleet, "cpu"))
    [message] = write_messages(Told(), situation, "docs")[1]
    assert (message.about, message.subject) == ("limit/usd-per-month/team graphics", "[f] the month's limit of team graphics is reached")
    assert "In team graphics: $40.00 of $40 are spent." in message.text


# What people and metrics are told.


def test_status_tells_the_limits_of_teams_and_of_pools_that_have_their_own_and_whose_turn_it_is():
    pools = a_pool("cpu", ceilings=Ceilings(max_usd_per_hour=9.0)), a_pool("gpu")
    fleet = fleet_of(team("graphics", "cpu", weight=2.0, max_agents=4, max_usd_per_month=90.0), pools=pools)
    told = status_of(assess(seen(an_agent(1), **spent(cpu=30.0), **spending(cpu=5.0)), fleet))
    assert [(one.whose, one.agents, one.max_agents, one.max_usd_per_hour) for one in told.limits] == [
        ("pool cpu", 1, 10, 9.0),
        ("team graphics", 1, 4, None),
    ]
    assert (told.limits[1].usd_in_the_month, told.limits[1].max_usd_per_month) == (30.0, 90.0)
    assert told.limits[1].share == "$5.00 in the last 4 h, $2.50 for its weight of 2"
    assert told.turns == ("the pools of no team together", "team graphics")


def test_without_teams_and_own_limits_status_tells_none():
    told = status_of(assess(seen(an_agent(1)), fleet_of()))
    assert (told.limits, told.turns) == ((), ())


def test_metrics_tell_the_dollars_of_each_team_and_how_often_its_limit_held_a_launch():
    fleet = fleet_of(team("graphics", "cpu", max_usd_per_hour=6.0, max_usd_per_month=60.0), WEB)
    situation = assess(seen(an_agent(1), items=jobs("cpu", "cpu"), **spent(cpu=30.0)), fleet)
    told = {
        (d.dimensions[1][1], d.name): d.values[0] for d in measure(situation, {}, {}) if d.dimensions[1:2] and d.dimensions[1][0] == "Team"
    }
    assert told == {
        ("graphics", "UsdPerHour"): 3.0,
        ("graphics", "UsdMonth"): 30.0,
        ("graphics", "UsdPerHourUsedPercent"): 50.0,
        ("graphics", "UsdMonthUsedPercent"): 50.0,
        ("web", "UsdPerHour"): 0.0,
        ("web", "UsdMonth"): 0.0,
    }
    held = up(fleet, an_agent(1, builds=(a_build(),)), items=jobs("cpu", "cpu", "cpu")).held
    assert [(datum.dimensions[1], datum.values) for datum in held_by_teams(fleet, held)] == [(("Team", "graphics"), (1.0,))]


@pytest.mark.parametrize(
    ("limit", "waiting", "held"),
    [
        ({"max_agents": 1}, ("cpu",), 1.0),
        ({"max_agents": 2}, ("cpu",), None),
        ({"max_usd_per_hour": 5.9}, ("cpu",), 1.0),
        ({"max_usd_per_month": 30.0}, ("cpu",), 1.0),
        ({"max_launches_per_hour": 0}, ("cpu",), 1.0),
        ({"max_agents": 1}, ("web",), None),
        ({"max_agents": 1}, (), None),
    ],
    ids=str,
)
def test_a_team_is_counted_as_held_back_where_its_limit_leaves_its_own_waiting_jobs_no_room(limit, waiting, held):
    snapshot = seen(an_agent(1, builds=(a_build(),)), items=jobs(*waiting), **spent(cpu=29.0))
    told = {datum.name: datum.values[0] for datum in measure(assess(snapshot, fleet_of(team("graphics", "cpu", **limit))), {}, {})}
    assert told.get("TeamsHeldBack") == held


def test_jobs_that_wait_for_agents_that_boot_are_not_held_back():
    boots = an_agent(1, builds=(a_build(),)), (a_record("i-2", node=None, launched_at=NOW - 60.0), None)
    snapshot = seen(boots[0], items=jobs("cpu"), records=(boots[1][0],))
    told = [datum.name for datum in measure(assess(snapshot, fleet_of(team("graphics", "cpu", max_agents=2))), {}, {})]
    assert "TeamsHeldBack" not in told
