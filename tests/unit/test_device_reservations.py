"""One device of a machine that serves several controllers at once, for a person: which they get, when not, and how it ends."""

from dataclasses import replace

import pytest

from autoscaler.domain.commands import release_for_a_person, reserve_for_a_person
from autoscaler.domain.facts.orders import Release, Reserve
from autoscaler.domain.facts.plan import Cordon, EndReservation, ReserveDevice, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.learn import assess
from autoscaler.domain.report.messages import write_messages
from autoscaler.domain.report.ordered import Access, list_reservations, reserved_by
from autoscaler.domain.report.told import Told
from support.builders import NOW, a_fleet, a_host, a_reservation, an_item, cordoned
from support.sides import DRAINED, NAME, POOL, a_side, down, free, gpu_node, seen, steps, told

ACCESS = Access(allowed=True, templates=frozenset({"gpu"}))


def asked(target="gpu", person="alice", request="r-9"):
    return Reserve(target=target, controller=None, seconds=3600.0, person=person, by="ada", reason="it hangs", request_id=request)


def reserving(snapshot, order=None):
    return reserve_for_a_person(snapshot, a_fleet(POOL), order or asked())


def with_device_for(*people, since=NOW - 600.0, until=NOW + 3600.0):
    mine = tuple(a_reservation(person, since_at=since, until_at=until, request=f"r-{person}") for person in people)
    return (replace(a_side("main"), devices_for=mine), a_side("other"))


@pytest.mark.parametrize("target", ["gpu", NAME, "i-1"])
def test_a_person_gets_a_device_and_builds_go_on(target):
    plan = reserving(seen(gpu_node(1), gpu_node(), devices=told("free", "held")), asked(target))
    [step] = plan.steps
    assert isinstance(step, ReserveDevice)
    assert (step.instance_id, step.controller, step.reservation.person, step.reservation.until_at) == ("i-1", "main", "alice", NOW + 3600.0)


@pytest.mark.parametrize(
    ("snapshot", "reason"),
    [
        (seen(gpu_node(), gpu_node(), devices=told("held", "in use")), Reason.NO_FREE_DEVICE),
        (seen(gpu_node(), gpu_node()), Reason.NO_FREE_DEVICE),
        (seen(gpu_node(), gpu_node(), devices=told("free", seconds_ago=900.0)), Reason.NO_FREE_DEVICE),
        (seen(gpu_node(), gpu_node(), devices=told("free"), items=(an_item(label="gpu"),)), Reason.CI_FIRST),
        (seen(gpu_node(), gpu_node(), devices=told("free"), records=with_device_for("bob", since=NOW - 10.0)), Reason.NO_FREE_DEVICE),
    ],
    ids=["none is free", "it says nothing", "it said so long ago", "a job waits", "the last one was given to somebody since"],
)
def test_none_is_reserved_where(snapshot, reason):
    plan = reserving(snapshot)
    assert (plan.steps, [held.reason for held in plan.held]) == ((), [reason])


def test_asked_again_for_the_same_person_it_ends_later():
    [step] = reserving(seen(gpu_node(), gpu_node(), devices=told("held"), records=with_device_for("alice"))).steps
    assert isinstance(step, EndReservation)
    assert (step.person, step.until_at) == ("alice", NOW + 3600.0)


def test_the_same_request_reserves_once():
    plan = reserving(seen(gpu_node(), gpu_node(), devices=told("free"), records=with_device_for("bob")), asked(request="r-bob"))
    assert [held.reason for held in plan.held] == [Reason.ALREADY_DONE]


def test_until_its_agent_has_said_that_it_is_held_it_counts_as_taken():
    assert free(seen(gpu_node(), gpu_node(), devices=told("free", "free"), records=with_device_for("alice", since=NOW - 10.0))) == {
        "main": 1,
        "other": 1,
    }
    assert free(seen(gpu_node(), gpu_node(), devices=told("held", "free"), records=with_device_for("alice")))["main"] == 1


def test_a_machine_of_which_somebody_has_a_device_is_neither_surplus_nor_terminated_until_that_is_over():
    assert steps(down(seen(gpu_node(), gpu_node(), records=with_device_for("alice"))), Cordon) == []
    gone = cordoned(gpu_node())
    drained = down(seen(gone, gone, looks=DRAINED, records=with_device_for("alice")))
    assert steps(drained, Terminate) == []
    assert Reason.RESERVED in {held.reason for held in drained.held}
    over = with_device_for("alice", until=NOW)
    assert [step.reason for step in steps(down(seen(gone, gone, looks=DRAINED, records=over)), Terminate)] == [Reason.DRAINED]


def releasing(*people, person=None):
    snapshot = seen(gpu_node(), gpu_node(), records=with_device_for(*people))
    return release_for_a_person(snapshot, a_fleet(POOL), Release(target=NAME, reason="done", person=person))


def test_released_it_ends_now():
    [step] = releasing("alice").steps
    assert (step.person, step.until_at) == ("alice", NOW)


def test_where_several_have_devices_of_it_one_of_them_is_to_be_named():
    plan = releasing("bob", "alice")
    assert plan.steps == ()
    assert "alice, bob have devices of gpu-1: say whose is to end (person)" in plan.held[0].detail
    [step] = releasing("bob", "alice", person="bob").steps
    assert step.person == "bob"


def test_a_person_without_a_device_is_told_who_has_one():
    plan = releasing("alice", person="bob")
    assert (plan.steps, plan.held[0].reason) == ((), Reason.RESERVED)
    assert plan.held[0].detail == "bob has no device of gpu-1; alice has"


def test_who_has_none_is_told_so():
    assert [held.reason for held in releasing(person="alice").held] == [Reason.NOT_FOUND]


def test_people_see_who_has_one_and_how_to_get_in():
    snapshot = seen(gpu_node(), gpu_node(), records=with_device_for("alice"))
    [entry] = list_reservations(assess(snapshot, a_fleet(POOL)), ACCESS)
    assert (entry.person, entry.what, entry.instance_id, entry.state) == ("alice", "device", "i-1", "has a device of it")
    assert entry.get_in == "aws ssm start-session --target i-1, then: . /run/autoscaler-agent/people/alice"
    [mine] = reserved_by(a_fleet(POOL), snapshot.records, (), asked(), ACCESS)
    assert mine == entry


def test_into_a_host_they_get_by_its_address_or_by_asking_whose_it_is():
    record = replace(a_side("main"), instance_id="host-rocm-1@main", pool="gpu")
    known = a_fleet(POOL, hosts=(a_host("rocm-1", "gpu", address="rocm-1.example.org", owner="the ROCm team"),))
    assert ACCESS.get_in(known, record) == "ssh rocm-1.example.org"
    assert ACCESS.get_in(a_fleet(POOL, hosts=(a_host("rocm-1", "gpu", owner="the ROCm team"),)), record) == "ask the ROCm team"
    assert "names neither its address nor its owner" in ACCESS.get_in(a_fleet(POOL), record)


def test_half_an_hour_before_its_end_a_message_says_so():
    soon = seen(gpu_node(), gpu_node(), records=with_device_for("alice", until=NOW + 1700.0))
    _, [message] = write_messages(Told(), assess(soon, a_fleet(POOL)), "docs")
    assert message.subject.startswith("[f] alice has a device of gpu-1 until ")
    _, none = write_messages(Told(), assess(seen(gpu_node(), gpu_node(), records=with_device_for("alice")), a_fleet(POOL)), "docs")
    assert none == []
