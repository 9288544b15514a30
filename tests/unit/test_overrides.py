"""What operators order for a while: what a hold holds back, what it does not, and that all of it ends by itself."""

from dataclasses import replace
from datetime import datetime

import pytest

from autoscaler.domain import commands
from autoscaler.domain.facts.fleet import Ceilings, Team
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.orders import (
    BUDGET,
    DrainNodes,
    Hold,
    LaunchSome,
    Overrides,
    PoolOverride,
    Purge,
    Resume,
    Scope,
    TeamOverride,
    asks_for,
    hold,
    in_force,
    override_pool,
    override_team,
    resume,
    resume_budget,
)
from autoscaler.domain.facts.plan import Cordon, DeleteNode, Launch, Terminate, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState, RecordState, Wait
from autoscaler.domain.learn import assess
from autoscaler.domain.report.listing import list_queue
from support.builders import (
    NOW,
    a_fleet,
    a_look,
    a_mark,
    a_memory,
    a_pool,
    a_snapshot,
    a_view,
    an_agent,
    an_empty_window,
    an_instance,
    an_item,
    cordoned,
)
from support.decisions import kinds, scale_down, scale_up

FLEET = a_fleet(a_pool("cpu"), a_pool("gpu"))


def a_hold(scope=Scope.POOL, name="cpu", minutes=60.0, **facts):
    given = {"since_at": NOW - 60.0, "until_at": NOW - 60.0 + 60.0 * minutes, "by": "ada", "reason": "driver update"}
    return Hold(scope=scope, name=name, **(given | facts))


def numbers(pool="cpu", minutes=60.0, **given):
    return PoolOverride(pool=pool, since_at=NOW, until_at=NOW + 60.0 * minutes, by="ada", reason="release day", **given)


def seen(*agents, items=(), holds=(), given=(), memory=None, **facts):
    nodes = [node for _, node in agents if node]
    overrides = Overrides(holds=tuple(holds), numbers=tuple(given))
    everything = {"records": tuple(record for record, _ in agents), "memory": memory or a_memory(windows=an_empty_window())}
    return a_snapshot(a_view(*nodes, items=tuple(items)), overrides=overrides, **(everything | facts))


def held(plan):
    return {(h.pool, h.reason) for h in plan.held}


WAITING = (an_item(1, label="cpu"), an_item(2, label="gpu"))
HOLDS_ON_CPU = [a_hold(), a_hold(Scope.CONTROLLER, "main"), a_hold(Scope.FLEET, "")]


def test_without_a_hold_both_pools_launch():
    assert [step.pool for step in scale_up(seen(items=WAITING), FLEET).steps if isinstance(step, Launch)] == ["cpu", "gpu"]


def test_a_pool_on_hold_launches_nothing_and_says_until_when_and_why():
    plan = scale_up(seen(items=WAITING, holds=[a_hold()]), FLEET)
    assert [step.pool for step in plan.steps if isinstance(step, Launch)] == ["gpu"]
    [told] = [h for h in plan.held if h.reason is Reason.HELD]
    assert (told.pool, told.detail) == ("cpu", "pool cpu is on hold for another 59 min by ada: driver update")


@pytest.mark.parametrize("one", HOLDS_ON_CPU, ids=lambda one: str(one.scope))
def test_a_hold_of_a_pool_its_controller_or_the_fleet_keeps_its_agents_from_retiring(one):
    plan = scale_down(seen(an_agent(), holds=[one]), FLEET)
    assert (kinds(plan), ("cpu", Reason.HELD) in held(plan)) == ([], True)


def test_what_retires_does_not_come_back_while_it_is_on_hold():
    record, node = an_agent()
    agent = record, cordoned(node, a_mark(MarkClass.RETIRE))
    assert kinds(scale_up(seen(agent, items=WAITING[:1]), FLEET)) == [Uncordon]
    assert kinds(scale_up(seen(agent, items=WAITING[:1], holds=[a_hold()]), FLEET)) == []


def test_what_is_surely_gone_is_repaired_under_a_hold():
    memory = a_memory(windows=an_empty_window(), observations={"i-1": a_look("ended", session="")})
    ended = {"instances": (an_instance("i-1", state=InstanceState.TERMINATED),)}
    free = scale_down(seen(an_agent(), memory=memory, **ended), FLEET)
    under_hold = scale_down(seen(an_agent(), memory=memory, holds=[a_hold()], **ended), FLEET)
    assert kinds(free) == [DeleteNode]
    assert kinds(under_hold) == [DeleteNode]


def test_frozen_means_that_nothing_at_all_is_done():
    memory = a_memory(windows=an_empty_window(), observations={"i-1": a_look("drained")})
    record, node = an_agent()
    agent = record, cordoned(node)
    assert kinds(scale_down(seen(agent, memory=memory), FLEET)) == [Terminate]
    assert kinds(scale_down(seen(agent, memory=memory, holds=[a_hold()]), FLEET)) == [Terminate]
    plan = scale_down(seen(agent, memory=memory, holds=[a_hold(freeze=True)]), FLEET)
    assert (kinds(plan), ("cpu", Reason.FROZEN) in held(plan)) == ([], True)


def test_what_is_not_done_because_it_is_frozen_is_not_remembered_as_done():
    condemned = replace(an_agent()[0], state=RecordState.CONDEMNED, launched_at=NOW - 600.0)

    def forgotten(*holds):
        shown = seen((condemned, None), holds=holds)
        gone = replace(shown, instances=(), fates={condemned.instance_id: InstanceState.SHUTTING_DOWN})
        return scale_down(gone, FLEET).memory.gone

    assert (forgotten(), forgotten(a_hold(freeze=True))) == ({"i-1": condemned.launched_at}, {})


def test_items_of_a_held_label_are_no_demand_and_are_counted():
    items = (an_item(1, label="cpu"), an_item(2, label="cpu&&linux"), an_item(3, label="gpu"))
    plan = scale_up(seen(items=items, holds=[a_hold(Scope.LABEL, "cpu")]), FLEET)
    assert [step.pool for step in plan.steps if isinstance(step, Launch)] == ["gpu"]
    assert "2 items: label cpu is on hold for another 59 min by ada: driver update" in [h.detail for h in plan.held]


@pytest.mark.parametrize(
    ("expression", "label", "asks"),
    [
        ("cpu", "cpu", True),
        ("linux && cpu", "cpu", True),
        ("cpu&&linux", "cpu && linux", True),
        ("!cpu", "cpu", False),
        ("cpu || gpu", "cpu", False),  # the other one would do
        ("gpu", "cpu", False),
        (None, "cpu", False),
        ("a->b->c", "a->b->c", True),
    ],
)
def test_who_asks_for_a_label(expression, label, asks):
    assert asks_for(expression, label) is asks


def test_an_order_ends_by_itself():
    over = a_hold(minutes=1.0)
    plan = scale_up(seen(items=WAITING[:1], holds=[over], given=[numbers(minutes=0.0, max_agents=0)]), FLEET)
    assert kinds(plan) == [Launch]


def test_a_person_is_refused_a_launch_where_another_holds():
    order = LaunchSome(pool="cpu", count=1, controller=None, keep_seconds=0.0, reason="now", request_id=None)
    plan = commands.launch_some(seen(holds=[a_hold()]), FLEET, order)
    assert (kinds(plan), ("cpu", Reason.HELD) in held(plan)) == ([], True)


def test_a_person_may_drain_under_a_hold():
    _, node = an_agent()
    order = DrainNodes(nodes=(node.name,), reason="noises", request_id=None)
    assert kinds(commands.drain_for_a_person(seen(an_agent(), holds=[a_hold()]), FLEET, order)) == [Cordon]


def test_numbers_are_in_force_for_their_pool_and_end():
    overrides = Overrides(numbers=(numbers(min_agents=2, max_agents=8), numbers("not-there-any-more", min_agents=1)))
    pool = in_force(FLEET, overrides).pools["cpu"]
    assert (pool.min_agents, pool.max_agents, pool.warm_executors) == (2, 8, FLEET.pools["cpu"].warm_executors)
    assert in_force(FLEET, overrides.at(NOW + 3600.0)) is FLEET


def team_numbers(team="web", **given):
    return TeamOverride(team=team, since_at=NOW, until_at=NOW + 600.0, by="ada", reason="release day", **given)


def test_other_limits_of_a_team_are_in_force_for_it_and_end():
    web = Team(name="web", pools=frozenset({"cpu"}), weight=2.0, ceilings=Ceilings(max_agents=5, max_usd_per_month=90.0))
    fleet = replace(FLEET, teams={"web": web})
    overrides = Overrides(teams=(team_numbers(max_agents=0, max_usd_per_hour=4.5), team_numbers("not-there-any-more", max_agents=1)))
    then = in_force(fleet, overrides)
    assert then.teams == {"web": replace(web, ceilings=Ceilings(max_agents=0, max_usd_per_hour=4.5, max_usd_per_month=90.0))}
    assert then.pools == fleet.pools
    assert in_force(fleet, overrides.at(NOW + 600.0)) is fleet
    plan = scale_up(replace(seen(items=WAITING), overrides=overrides), fleet)
    launched = {step.pool for step in plan.steps if isinstance(step, Launch)}
    assert ("cpu" in launched, ("cpu", Reason.TEAM_MAX_AGENTS) in held(plan)) == (False, True)


def test_a_second_order_for_a_team_replaces_the_first_and_one_without_numbers_restores_the_fleet_file():
    overrides = override_team(override_team(Overrides(), team_numbers(max_agents=1)), team_numbers("other", max_agents=2))
    second = override_team(overrides, team_numbers(max_usd_per_hour=3.0))
    assert [one.given for one in second.teams] == [{"max_agents": 2}, {"max_usd_per_hour": 3.0}]
    assert [one.team for one in override_team(second, team_numbers()).teams] == ["other"]


def test_other_numbers_decide():
    plan = scale_up(seen(given=[numbers(min_agents=2)]), FLEET)
    assert [(step.count, step.reason) for step in plan.steps if isinstance(step, Launch)] == [(2, Reason.MIN_AGENTS)]
    none = scale_up(seen(items=WAITING[:1], given=[numbers(max_agents=0)]), FLEET)
    assert (kinds(none), ("cpu", Reason.MAX_AGENTS) in held(none)) == ([], True)


def test_a_second_hold_replaces_the_first_and_resume_lifts_that_one_only():
    first, second, other = a_hold(reason="one"), a_hold(reason="two"), a_hold(name="gpu")
    overrides = hold(hold(hold(Overrides(), first), other), second)
    assert overrides.holds == (other, second)
    assert resume(overrides, Scope.POOL, "cpu").holds == (other,)


def test_holds_of_others_and_of_another_kind_stand_beside_each_other_and_resume_lifts_them_all():
    holds = [a_hold(), a_hold(by="bob", until_at=None), a_hold(freeze=True), a_hold(Scope.FLEET, "", by=BUDGET)]
    overrides = Overrides()
    for each in holds:
        overrides = hold(overrides, each)
    assert overrides.holds == tuple(holds)
    assert resume(overrides, Scope.POOL, "cpu").holds == tuple(holds[3:])
    assert resume(overrides, Scope.FLEET, "").holds == tuple(holds)
    assert resume_budget(overrides).holds == tuple(holds[:3])


def test_what_lasts_longest_is_told_first():
    holds = (a_hold(minutes=5), a_hold(by="bob", until_at=None), a_hold(by="eve", minutes=90))
    assert [each.by for each in Overrides(holds=holds).holds_on("main", "cpu")] == ["bob", "eve", "ada"]


@pytest.mark.parametrize(
    ("since", "end"), [("2026-12-31T23:59", "2027-01-01"), ("2028-02-01T00:00", "2028-03-01"), ("2026-07-15T08:00", "2026-08-01")]
)
def test_the_budgets_hold_ends_with_its_month_whatever_was_stored(since, end):
    stored = a_hold(Scope.FLEET, "", by=BUDGET, since_at=datetime.fromisoformat(f"{since}+00:00").timestamp(), until_at=None)
    ends_at = datetime.fromisoformat(f"{end}T00:00+00:00").timestamp()
    overrides = Overrides(holds=(stored,))
    assert (stored.ends_at, overrides.at(ends_at - 1).holds, overrides.at(ends_at).holds) == (ends_at, (stored,), ())


def test_a_job_of_a_held_label_names_what_holds_the_whole_fleet_too():
    holds = (a_hold(Scope.LABEL, "cpu", minutes=5), a_hold(Scope.FLEET, "", by="bob", until_at=None), a_hold(name="gpu", by="eve"))
    [entry] = list_queue(assess(seen(items=WAITING[:1], holds=holds), FLEET))
    assert (entry.brief, entry.detail.count(" by ")) == ("held by ada and bob", 2)


def test_setting_no_numbers_brings_the_fleet_files_back():
    overrides = override_pool(Overrides(), numbers(min_agents=2))
    assert override_pool(overrides, numbers()).numbers == ()


@pytest.mark.parametrize(
    ("kind", "back"),
    [(MarkClass.OPERATOR, [Uncordon]), (MarkClass.QUARANTINE, [Uncordon]), (MarkClass.INTERRUPTED, []), (MarkClass.OUTDATED, [])],
)
def test_resume_brings_back_what_people_and_quarantine_took_out_of_use(kind, back):
    record, node = an_agent()
    snapshot = seen((record, cordoned(node, a_mark(kind))))
    for order in (
        Resume(scope=Scope.POOL, name="cpu", nodes=(), reason="done"),
        Resume(scope=Scope.FLEET, name="", nodes=(), reason="done"),
        Resume(scope=Scope.FLEET, name="", nodes=(node.name,), reason="done"),
    ):
        assert kinds(commands.bring_back_for_a_person(snapshot, FLEET, order)) == back
    elsewhere = Resume(scope=Scope.POOL, name="gpu", nodes=(), reason="done")
    assert kinds(commands.bring_back_for_a_person(snapshot, FLEET, elsewhere)) == []


def test_a_machine_that_has_ended_is_not_brought_back():
    record, node = an_agent()
    ended = {"instances": (an_instance("i-1", state=InstanceState.TERMINATED),)}
    snapshot = seen((record, cordoned(node, a_mark(MarkClass.OPERATOR))), **ended)
    assert kinds(commands.bring_back_for_a_person(snapshot, FLEET, Resume(scope=Scope.POOL, name="cpu", nodes=(), reason="done"))) == []


def test_resuming_a_node_that_is_not_cordoned_is_told():
    plan = commands.bring_back_for_a_person(seen(an_agent()), FLEET, Resume(scope=Scope.FLEET, name="", nodes=("cpu-9",), reason="done"))
    assert [h.reason for h in plan.held] == [Reason.NOT_FOUND]


def test_what_waits_for_a_node_by_its_name_is_never_purged():
    _, node = an_agent()
    resuming = an_item(1, label=None, wait=Wait(for_executor=True, nodes=(node.name,)))
    by_its_name = an_item(2, label=node.name)
    snapshot = seen(an_agent(), items=(resuming, by_its_name, an_item(3, label="cpu")))
    for label in ("cpu", node.name):
        plan = commands.purge_for_a_person(snapshot, FLEET, Purge(label=label, controller=None, reason="r"))
        assert [step.item for step in plan.steps] == ([3] if label == "cpu" else [])


def test_a_freeze_weighs_more_than_a_hold_beside_it():
    overrides = Overrides(holds=(a_hold(), a_hold(Scope.FLEET, "", freeze=True)))
    assert [hold.freeze for hold in overrides.holds_on("main", "cpu")] == [True, False]
    assert [hold.scope for hold in overrides.holds_on("main", "gpu")] == [Scope.FLEET]
    assert replace(overrides, holds=overrides.holds[:1]).holds_on("main", "gpu") == ()
