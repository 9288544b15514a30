"""Who goes first where a limit of a team or of the fleet keeps several waiting, and who makes room or hands over."""

from dataclasses import replace

from autoscaler.domain.facts.fleet import Ceilings
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.orders import Hold, Overrides, Scope
from autoscaler.domain.facts.plan import Cordon, Launch, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Wait
from support.builders import LONG_AGO, NOW, a_build, a_mark, a_pool, a_snapshot, a_view, a_window, an_agent, an_item, an_offering, cordoned
from support.decisions import scale_down, scale_up, steps_of
from support.team_fleets import GRAPHICS, WEB, by_pool, fleet_of, jobs, seen, spending, team, up

# Idle agents that make room.


def needed_lately(*pools):
    return {f"main/{pool}": a_window(peaks=((NOW - 60, 3),)) for pool in pools}


def gives_way(fleet, *agents, items):
    plan = scale_down(seen(*agents, items=items, windows=needed_lately("cpu", "gpu", "web")), fleet)
    return {step.node for step in steps_of(Cordon, plan) if step.reason is Reason.GIVES_WAY}


def test_under_a_teams_limit_an_idle_agent_of_that_team_makes_room_and_none_of_another():
    agents = an_agent(1), an_agent(2, pool="web")
    assert gives_way(fleet_of(replace(GRAPHICS, ceilings=Ceilings(max_agents=1)), WEB), *agents, items=jobs("gpu")) == {"cpu-1"}
    assert gives_way(fleet_of(team("graphics", "gpu", max_agents=0), WEB), *agents, items=jobs("gpu")) == set()


def test_under_a_pools_own_limit_of_dollars_an_idle_agent_of_another_pool_makes_no_room():
    pools = a_pool("cpu"), a_pool("gpu", ceilings=Ceilings(max_usd_per_hour=2.0))
    assert gives_way(fleet_of(GRAPHICS, pools=pools), an_agent(1), items=jobs("gpu")) == set()


def test_under_the_fleets_limit_an_idle_agent_of_any_team_makes_room():
    assert gives_way(fleet_of(GRAPHICS, WEB, max_agents=1), an_agent(2, pool="web"), items=jobs("gpu")) == {"web-2"}


def test_where_both_limits_are_reached_an_agent_that_counts_under_both_goes_first():
    fleet = fleet_of(replace(GRAPHICS, ceilings=Ceilings(max_agents=1)), WEB, max_agents=2)
    assert gives_way(fleet, an_agent(1), an_agent(2, pool="web"), items=jobs("gpu")) == {"cpu-1"}


# Whose turn it is.


def test_whoever_spent_the_fewest_dollars_goes_first_and_the_others_are_told_so():
    plan = up(fleet_of(team("graphics", "cpu"), WEB, max_agents=1), items=jobs("cpu", "web"), **spending(cpu=20.0, web=10.0))
    assert by_pool(plan) == {"web": 1}
    [held] = [held for held in plan.held if held.pool == "cpu" and held.limit_of]
    assert (held.reason, held.limit_of) == (Reason.NOT_ITS_TURN, "the fleet")
    assert "team web goes first, having spent the fewest dollars for its weight in the last 4 hours" in held.detail


def test_dollars_count_for_the_weight():
    fleet = fleet_of(team("graphics", "cpu", weight=3.0), WEB, max_agents=1)
    assert by_pool(up(fleet, items=jobs("web", "cpu"), **spending(cpu=20.0, web=10.0))) == {"cpu": 1}


def test_pools_of_no_team_are_together_one_more():
    fleet = fleet_of(team("graphics", "gpu"), max_agents=1)
    assert by_pool(up(fleet, items=jobs("gpu", "web"), **spending(gpu=10.0, web=4.0, cpu=5.0))) == {"web": 1}
    assert by_pool(up(fleet, items=jobs("gpu", "web"), **spending(gpu=10.0, web=4.0, cpu=7.0))) == {"gpu": 1}


def test_agents_are_handed_out_one_by_one_so_that_none_waits_for_all_of_another():
    plan = up(fleet_of(team("graphics", "cpu"), WEB, max_agents=4), items=jobs(*["cpu"] * 6, *["web"] * 6))
    assert by_pool(plan) == {"cpu": 1, "web": 3}  # one cpu agent costs as much as three for the web


def test_a_pool_of_a_higher_priority_goes_first_whatever_was_spent():
    pools = a_pool("cpu"), a_pool("web", priority=10)
    plan = up(fleet_of(team("graphics", "cpu"), WEB, pools=pools, max_agents=2), items=jobs("cpu", "cpu", "web"), **spending(web=99.0))
    assert by_pool(plan) == {"cpu": 1, "web": 1}
    [held] = [held for held in plan.held if held.pool == "cpu" and held.reason is Reason.NOT_ITS_TURN]
    assert held.detail == "pool web goes first (priority 10); the limit is 2 agents in the fleet"


def test_priority_needs_no_teams():
    pools = a_pool("cpu"), a_pool("web", priority=10)
    assert by_pool(up(fleet_of(pools=pools, max_agents=1), items=jobs("cpu", "cpu", "web"))) == {"web": 1}


def test_it_goes_before_on_every_controller_whichever_has_waited_longest():
    pools = [replace(pool, controllers=("main", "other")) for pool in (a_pool("cpu"), a_pool("web", priority=10))]
    views = a_view(items=jobs("cpu", "cpu")), a_view(name="other", items=(an_item(9, label="web", waiting_seconds=60.0),))
    plan = scale_up(a_snapshot(*views), fleet_of(pools=pools, max_agents=1))
    assert [(step.controller, step.pool) for step in steps_of(Launch, plan)] == [("other", "web")]


DEAR = a_pool("gpu", priority=1, offerings=(an_offering(usd_per_hour=12.0),))


def test_what_is_left_of_a_limit_is_saved_for_a_dear_agent_whose_turn_it_is():
    busy = an_agent(1, builds=(a_build(),))
    plan = up(fleet_of(pools=(a_pool("cpu"), DEAR), max_usd_per_hour=13.0), busy, items=jobs("cpu", "gpu"))
    assert by_pool(plan) == {}
    assert {held.reason for held in plan.held if held.limit_of} == {Reason.USD_PER_HOUR, Reason.NOT_ITS_TURN}


def test_and_not_for_one_that_would_never_fit():
    plan = up(fleet_of(pools=(a_pool("cpu"), DEAR), max_usd_per_hour=11.0), items=jobs("cpu", "gpu"))
    assert by_pool(plan) == {"cpu": 1}


def test_nor_of_the_months_money_which_only_gets_less():
    plan = up(fleet_of(pools=(a_pool("cpu"), DEAR), max_usd_per_month=8.0), items=jobs("cpu", "gpu"))
    assert by_pool(plan) == {"cpu": 1}


def test_a_minimum_waits_for_its_turn_like_jobs():
    pools = a_pool("cpu"), a_pool("web", priority=10, min_agents=1)
    assert by_pool(up(fleet_of(pools=pools, max_agents=1), items=jobs("cpu"))) == {"web": 1}


# Agents that are handed over to those that go first.


WEB_JOB, WEB_FIRST = jobs("web"), (a_pool("cpu"), a_pool("web", priority=10))


def hands_over(*agents, items=WEB_JOB, pools=WEB_FIRST, **facts):
    """Whose agents take no new builds where the fleet is full of them and a job of a higher priority waits."""
    snapshot = seen(*agents, items=items, windows=needed_lately("cpu", "web"))
    plan = scale_down(replace(snapshot, **facts), fleet_of(pools=pools, max_agents=len(agents)))
    return {step.node: step.mark.kind for step in steps_of(Cordon, plan) if step.reason is Reason.HANDS_OVER}


def busy(number, seconds=600.0, run="job/b/1", **facts):
    return an_agent(number, builds=(a_build(f"b{number}", elapsed_seconds=1.0, estimate_seconds=seconds, run=run),), **facts)


def test_the_agent_whose_builds_end_soonest_takes_no_new_ones_and_as_many_as_jobs_need():
    agents = busy(1, 900.0), busy(2, 60.0), busy(3, 300.0)
    assert hands_over(*agents) == {"cpu-2": MarkClass.HANDS_OVER}
    assert hands_over(*agents, items=jobs("web", "web")) == dict.fromkeys(("cpu-2", "cpu-3"), MarkClass.HANDS_OVER)


def test_one_that_leaves_already_is_enough():
    record, node = busy(1)
    assert hands_over((record, cordoned(node, a_mark(MarkClass.HANDS_OVER))), busy(2)) == {}


def test_an_idle_agent_that_nothing_needs_makes_room_first():
    assert hands_over(an_agent(1), busy(2)) == {}


def test_nobody_hands_over_to_a_lower_or_the_same_priority():
    assert hands_over(busy(1), pools=(a_pool("cpu", priority=10), a_pool("web", priority=9))) == {}
    assert hands_over(busy(1), pools=(a_pool("cpu", priority=10), a_pool("web", priority=10))) == {}


def test_what_a_person_keeps_or_holds_what_a_run_that_has_begun_waits_for_and_a_minimum_stay():
    record, node = busy(1)
    kept = replace(record, keep_until=NOW + 60.0), node
    begun = (*jobs("web"), an_item(9, run="job/p/1", why=Wait(for_executor=True, nodes=("cpu-1",))))
    hold = Hold(scope=Scope.POOL, name="cpu", since_at=LONG_AGO, until_at=None, by="ada", reason="r")
    assert hands_over(kept) == {}
    assert hands_over(busy(1), busy(2, run="job/p/1"), items=begun) == {"cpu-2": MarkClass.HANDS_OVER}
    assert hands_over(busy(1), overrides=Overrides(holds=(hold,))) == {}
    assert hands_over(busy(1), pools=(a_pool("cpu", min_agents=1), a_pool("web", priority=10))) == {}


def test_an_agent_that_jenkins_names_to_jobs_which_wait_hands_over_since_it_may_be_the_last_of_its_label_only():
    named = (*jobs("web"), an_item(9, label="cpu", why=Wait(for_executor=True, nodes=("cpu-1",)), waiting_seconds=60.0))
    assert hands_over(busy(1), items=named) == {"cpu-1": MarkClass.HANDS_OVER}


def test_and_who_waits_for_it_by_name_gets_it_before_it_goes():
    record, node = an_agent(1)
    handed_over = record, cordoned(node, a_mark(MarkClass.HANDS_OVER))
    named = an_item(9, why=Wait(for_executor=True, nodes=("cpu-1",)))
    snapshot = seen(handed_over, items=(*jobs("web"), named))
    plan = scale_down(snapshot, fleet_of(pools=WEB_FIRST, max_agents=1))
    assert [(step.node, step.reason) for step in steps_of(Uncordon, plan)] == [("cpu-1", Reason.PINNED)]
    plan = scale_down(seen(handed_over, items=jobs("web")), fleet_of(pools=WEB_FIRST, max_agents=1))
    assert steps_of(Uncordon, plan) == []


def test_under_a_teams_limit_only_that_team_hands_over():
    pools = a_pool("cpu"), a_pool("gpu", priority=10), a_pool("web", priority=-5)
    snapshot = seen(busy(1), busy(2, pool="web"), items=jobs("gpu"), windows=needed_lately("cpu", "web"))
    plan = scale_down(snapshot, fleet_of(replace(GRAPHICS, ceilings=Ceilings(max_agents=1)), WEB, pools=pools))
    assert [step.node for step in steps_of(Cordon, plan)] == ["cpu-1"]


def test_nothing_is_handed_over_where_it_would_not_be_enough():
    pools = a_pool("cpu"), a_pool("web", priority=10, offerings=(an_offering(usd_per_hour=12.0),))
    snapshot = seen(busy(1), items=jobs("web"), windows=needed_lately("cpu", "web"))
    assert steps_of(Cordon, scale_down(snapshot, fleet_of(pools=pools, max_usd_per_hour=11.0))) == []
