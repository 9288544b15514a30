"""Reserved agents: which one a person gets and why not, what nobody else does with it, and what people are told of it."""

from dataclasses import replace

import pytest

from autoscaler.domain.commands import handle, release_for_a_person, reserve_for_a_person
from autoscaler.domain.facts.fleet import CORDONED_LABEL, Market, Quarantine, WarmPool
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.orders import Release, Reserve
from autoscaler.domain.facts.plan import Cordon, EndReservation, Held, Launch, Start, Terminate
from autoscaler.domain.facts.plan import Reserve as ReserveStep
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState, RecordState, Wait
from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.learn import assess
from autoscaler.domain.lifecycle import Announced, InstanceEvent
from autoscaler.domain.report.metrics import measure
from autoscaler.domain.report.ordered import Access, list_reservations
from autoscaler.domain.situation.agents import Phase
from support.builders import (
    LONG_AGO,
    NOW,
    a_build,
    a_fleet,
    a_look,
    a_mark,
    a_node,
    a_pool,
    a_record,
    a_reservation,
    an_agent,
    an_instance,
    an_intent,
    an_item,
    cordoned,
    with_beacons,
)
from support.decisions import decide_down, decide_up, held, kinds, seen, steps_of
from support.remembered import tables, with_tables

BY_NAME = an_item(why=Wait(for_executor=True, nodes=("cpu-1",)))
ACCESS = Access(allowed=True, templates=frozenset({"cpu"}))


def asked(target="cpu", *, person="alice", request="r-9", seconds=3600.0):
    return Reserve(target=target, controller=None, seconds=seconds, person=person, by="ada", reason="it hangs", request_id=request)


def plan_for(*agents, fleet=None, order=None, **facts):
    fleet = fleet or a_fleet()
    return reserve_for_a_person(with_beacons(seen(*agents, **facts), fleet), fleet, order or asked())


def a_reserved_agent(number=1, *, offline=True, until_at=NOW + 3600.0, mark=MarkClass.RESERVED, **facts):
    record, node = an_agent(number, **facts)
    node = cordoned(node, a_mark(mark)) if offline else node
    return replace(record, reservation=a_reservation(until_at=until_at)), node


def phase(agent, **facts):
    [one] = assess(seen(agent, **facts), a_fleet()).agents
    return one.phase


def taken(plan):
    return [step.node for step in steps_of(ReserveStep, plan)]


def test_of_several_idle_agents_the_one_that_is_missed_least_is_taken():
    idle_since = {"i-1": NOW - 60.0, "i-2": NOW - 900.0}
    plan = plan_for(an_agent(1), an_agent(2), memory=with_tables(seen().memory, idle_since=idle_since))
    assert taken(plan) == ["cpu-2"]
    [step] = plan.steps
    assert (step.reservation.until_at, step.reservation.person, step.mark.kind) == (NOW + 3600.0, "alice", MarkClass.RESERVED)
    assert plan.memory.requests == {"r-9": NOW}


def test_one_on_demand_is_taken_before_one_that_ec2_may_take_back():
    instances = (an_instance("i-1", market=Market.SPOT), an_instance("i-2"))
    assert taken(plan_for(an_agent(1), an_agent(2), instances=instances)) == ["cpu-2"]
    assert taken(plan_for(an_agent(1), instances=instances[:1])) == ["cpu-1"]


@pytest.mark.parametrize(
    "agent",
    [
        an_agent(builds=(a_build(),)),
        (replace(an_agent()[0], keep_until=NOW + 60.0), an_agent()[1]),
        (replace(an_agent()[0], lent_until=NOW + 60.0), an_agent()[1]),
        (an_agent()[0], cordoned(an_agent()[1])),
    ],
    ids=["busy", "kept for a person", "lent", "on its way out"],
)
def test_what_somebody_counts_on_is_not_taken_and_one_is_launched(agent):
    assert kinds(plan_for(agent)) == [Launch]


def test_nothing_is_taken_from_a_pool_that_jobs_wait_for_nor_what_one_waits_for_by_its_name():
    assert kinds(plan_for(an_agent(), items=(an_item(label="cpu"),))) == [Launch]
    assert kinds(plan_for(an_agent(), items=(BY_NAME,))) == [Launch]


def test_where_the_controller_cannot_be_read_nothing_is_launched_beside_agents_that_may_be_idle():
    plan = plan_for(an_agent(), view={"problem": "503"})
    assert (plan.steps, held(plan)) == ((), {Reason.INCOMPLETE})


def test_a_stopped_agent_is_started_and_what_ec2_refuses_is_launched_for_the_same_person():
    fleet = a_fleet(a_pool(warm_pool=WarmPool(min_agents=0, max_agents=2, max_age_seconds=86_400.0)))
    stopped = a_record("i-1", node="cpu-1", state=RecordState.STOPPED, changed_at=NOW - 60.0)
    plan = plan_for((stopped, None), fleet=fleet, instances=(an_instance("i-1", state=InstanceState.STOPPED),))
    [start] = steps_of(Start, plan)
    assert (start.reservation.person, start.otherwise.reservation) == ("alice", start.reservation)


def test_a_named_agent_is_taken_though_it_is_busy_drained_or_in_quarantine_and_not_when_ec2_takes_it():
    kept = a_fleet(a_pool(quarantine=Quarantine.KEEP))
    assert taken(plan_for(an_agent(builds=(a_build(),)), order=asked("cpu-1"))) == ["cpu-1"]
    for kind in (MarkClass.RETIRE, MarkClass.QUARANTINE, MarkClass.OPERATOR, MarkClass.OUTDATED):
        record, node = an_agent()
        [step] = plan_for((record, cordoned(node, a_mark(kind))), order=asked("i-1"), fleet=kept).steps
        assert step.replaces == a_mark(kind)
    record, node = an_agent()
    assert held(plan_for((record, cordoned(node, a_mark(MarkClass.INTERRUPTED))), order=asked("cpu-1"))) == {Reason.NOT_FOUND}


def test_a_named_agent_is_refused_in_one_line_where_it_is_not_there_is_somebody_elses_or_its_controller_is_not_believed():
    assert [h.detail for h in plan_for(order=asked("nosuch")).held] == ["nosuch is no pool of this fleet, and no agent of it"]
    [theirs] = plan_for(a_reserved_agent(), order=asked("cpu-1", person="bob")).held
    assert (theirs.reason, theirs.detail) == (Reason.RESERVED, "cpu-1 is reserved for alice: a test hangs")
    assert held(plan_for(an_agent(), order=asked("cpu-1"), view={"quieting_down": True})) == {Reason.QUIETING_DOWN}
    assert held(plan_for(a_reserved_agent(until_at=NOW - 1.0), order=asked("cpu-1"))) == {Reason.NOT_FOUND}
    assert held(plan_for(an_agent(), order=asked("cpu-1"), items=(BY_NAME,))) == {Reason.PINNED}


def test_the_same_person_has_it_for_longer():
    [step] = plan_for(a_reserved_agent(), order=asked("cpu-1", seconds=7200.0)).steps
    assert isinstance(step, EndReservation)
    assert step.until_at == NOW + 7200.0


def test_a_request_is_known_by_the_record_the_launch_and_the_memory():
    done = [
        plan_for(a_reserved_agent(), order=asked(request="r-1")),
        plan_for(intents=(an_intent(reservation=a_reservation()),), order=asked(request="r-1")),
        plan_for(an_agent(), order=asked(request="r-1"), memory=replace(seen().memory, requests={"r-1": NOW - 60.0})),
    ]
    assert [(plan.steps, held(plan)) for plan in done] == [((), {Reason.ALREADY_DONE})] * 3


def test_what_is_reserved_is_no_supply_and_neither_surplus_nor_idle_nor_draining():
    busy = a_fleet(a_pool(queue_maturity_seconds=0.0))
    for agent in (a_reserved_agent(), (a_record("i-1", reservation=a_reservation()), None)):
        assert phase(agent) is Phase.RESERVED
        assert [type(s) for s in decide_up(agent, items=(an_item(label="cpu"),), fleet=busy).steps] == [Launch]
        assert decide_down(agent).steps == ()
        memory = assess(seen(agent), a_fleet()).memory
        assert (tables(memory).idle_since, tables(memory).draining_since) == ({}, {})
    on_its_way = an_intent(reservation=a_reservation())
    assert kinds(decide_up(items=(an_item(label="cpu"),), fleet=busy, intents=(on_its_way,))) == [Launch]


def test_the_phase_changes_when_the_time_is_over():
    over = {"until_at": NOW}
    assert phase(a_reserved_agent(**over)) is Phase.DRAINING
    assert phase(a_reserved_agent(**over, offline=False)) is Phase.RESERVED  # until it is marked
    record, _ = a_reserved_agent(**over)
    assert phase((record, None)) is Phase.NODELESS
    overdue = a_record("i-1", launched_at=LONG_AGO, reservation=a_reservation())
    assert phase((overdue, None)) is Phase.OVERDUE


def test_what_was_reserved_and_carries_the_mark_of_surplus_does_not_come_back_for_jobs():
    was = a_reserved_agent(until_at=NOW - 60.0, mark=MarkClass.RETIRE)
    assert phase(was) is Phase.DRAINING
    busy = a_fleet(a_pool(queue_maturity_seconds=0.0))
    assert [type(step) for step in decide_up(was, items=(an_item(label="cpu"),), fleet=busy).steps] == [Launch]


def test_one_that_takes_builds_is_marked_also_after_its_time():
    for until_at in (NOW + 60.0, NOW - 60.0):
        [step] = decide_down(a_reserved_agent(offline=False, until_at=until_at)).steps
        assert (type(step), step.mark.kind) == (Cordon, MarkClass.RESERVED)


def test_the_plan_says_for_whom_and_for_how_long():
    assert [h.detail for h in decide_down(a_reserved_agent()).held if isinstance(h, Held)] == [
        "cpu-1 is reserved for alice, for another 1 h"
    ]


def test_one_that_boots_yet_is_terminated_when_its_time_is_over():
    [step] = decide_down((a_record("i-1", reservation=a_reservation(until_at=NOW - 1.0)), None)).steps
    assert (type(step), step.reason) == (Terminate, Reason.RESERVATION_OVER)


def test_an_interruption_is_marked_so_that_the_person_is_told():
    event = InstanceEvent(kind=Announced.INTERRUPTION, instance_id="i-1")
    assert kinds(handle(seen(a_reserved_agent()), a_fleet(), event)) == [Cordon]


def test_release_ends_what_is_reserved_and_nothing_else():
    def released(agent):
        return release_for_a_person(seen(agent), a_fleet(), Release(target="cpu-1", reason="done"))

    [step] = released(a_reserved_agent()).steps
    assert (step.until_at, step.reason) == (NOW, Reason.MANUAL)
    assert held(released(an_agent())) == held(released(a_reserved_agent(until_at=NOW - 1.0))) == {Reason.NOT_FOUND}


def test_it_counts_in_the_limits_and_is_none_of_the_agents_that_builds_may_use():
    budget = Budget(assess(seen(a_reserved_agent(), an_agent(2), intents=(an_intent(reservation=a_reservation()),)), a_fleet()))
    assert (budget.fleet.agents, budget.levels_of("cpu")[0].agents, budget.agents_to_work_with("cpu")) == (3, 3, 1)


def test_the_list_says_what_each_agent_does_the_first_to_end_first():
    later, sooner = a_reserved_agent(1, builds=(a_build(),)), a_reserved_agent(2, until_at=NOW + 60.0)
    boots = (a_record("i-3", reservation=a_reservation(until_at=NOW + 90.0)), None)
    over = a_reserved_agent(4, until_at=NOW - 60.0)
    launched = an_intent(reservation=a_reservation(until_at=NOW + 120.0))
    off = a_reserved_agent(5, until_at=NOW + 7200.0)
    instances = (*(an_instance(f"i-{n}") for n in range(1, 5)), an_instance("i-5", state=InstanceState.STOPPED))
    situation = assess(seen(later, sooner, boots, over, off, intents=(launched,), instances=instances), a_fleet())
    assert [(one.instance_id, one.state) for one in list_reservations(situation, ACCESS)] == [
        ("i-4", "is over, to be terminated"),
        ("i-2", "is reserved"),
        ("i-3", "boots"),
        ("", "is being launched"),
        ("i-1", "has 1 build to end first"),
        ("i-5", "is stopped in EC2"),
    ]


def test_metrics_of_reservations_are_sent_only_while_there_are_any():
    def sent(*agents):
        data = measure(assess(seen(*agents), a_fleet()), {}, {})
        return {datum.name: datum.values for datum in data if datum.dimensions == (("Fleet", "f"),) and "eserv" in datum.name}

    assert sent(an_agent()) == {}
    assert sent(a_reserved_agent(1), a_reserved_agent(2, until_at=NOW + 60.0)) == {
        "AgentsReserved": (2,),
        "ReservationEndsSeconds": (60.0,),
    }


def test_what_has_registered_for_a_person_does_not_keep_others_of_a_new_version_from_booting():
    new = {"memory": with_tables(seen().memory, proven={"cpu": "1"}), "template_versions": {"cpu": "2"}}
    record, node = a_reserved_agent()
    instances = (an_instance("i-1", template_version="2"),)
    waits = {"items": (an_item(label="cpu"),), "instances": instances, **new}
    assert kinds(decide_up((record, node), **waits)) == [Launch]
    boots = replace(record, reservation=None, launched_at=NOW - 60.0)
    assert kinds(decide_up((boots, replace(node, temporarily_offline=False, reason="")), **waits)) == []


def test_nothing_that_is_launched_for_a_person_tries_a_new_image_and_nothing_waits_for_it():
    fleet = a_fleet(a_pool(image_parameter="/ci/image"))
    new = {
        "memory": with_tables(seen().memory, proven={"cpu": "1 with ami-1"}),
        "template_versions": {"cpu": "1"},
        "images": {"cpu": "ami-2"},
    }
    [launch] = plan_for(fleet=fleet, **new).steps
    assert (launch.image, launch.tries) == ("ami-1", False)
    nobody_knows = (an_instance("i-1", template_version=""),)
    [tries] = decide_up(a_reserved_agent(), items=(an_item(label="cpu"),), fleet=fleet, instances=nobody_knows, **new).steps
    assert (tries.image, tries.tries) == ("ami-2", True)


def test_what_was_reserved_gets_no_label_back_for_a_job_that_may_start_there_without():
    mark = a_mark(MarkClass.RESERVED)
    record = a_record("i-1", node="cpu-1", labels=("cpu",), cordon=mark.text, reservation=a_reservation(until_at=NOW - 60.0))
    node = a_node("cpu-1", CORDONED_LABEL, "autoscaler-fleet-f")
    memory = with_tables(seen().memory, observations={"i-1": a_look("unlabelled", seconds_ago=400.0)})
    plan = decide_down((record, node), items=(an_item(label="!gpu"),), memory=memory)
    assert (plan.steps, held(plan)) == ((), {Reason.SECOND_LOOK})
    [sealed] = decide_down((record, node), memory=memory).steps
    assert (sealed.mark, sealed.reason) == (mark, Reason.LABELS_TAKEN)


def test_one_whose_labels_were_taken_for_another_reason_is_marked_as_reserved():
    record, _ = a_reserved_agent()
    node = a_node("cpu-1", CORDONED_LABEL, "autoscaler-fleet-f")
    memory = with_tables(seen().memory, observations={"i-1": a_look("unlabelled", seconds_ago=400.0)})
    plan = decide_down((replace(record, labels=("cpu",)), node), memory=memory, view={"version": (2, 504)})
    assert [step.mark.kind for step in steps_of(Cordon, plan)] == [MarkClass.RESERVED]
