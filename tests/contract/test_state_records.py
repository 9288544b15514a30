"""Records of instances in the state store: what is kept of them, and who may change them."""

import threading
from dataclasses import MISSING, fields, replace

import pytest

from autoscaler.domain.facts.fleet import ReservedPrice
from autoscaler.domain.facts.snapshot import Binding, Record, RecordState
from autoscaler.errors import ConflictError
from support.builders import a_record, a_reservation

FULL = a_record(
    "i-1",
    node="cpu-1",
    life=2,
    node_life=1,
    labels=("cpu", "größe"),
    exclusive=False,
    cordon="autoscaler:f:retire:p",
    by_weight=True,
    reserved=ReservedPrice(id="cr-1", usd_per_hour=55.0, is_billed=True),
    lent_until=7.0,
    lent_labels=("amd64", "größe"),
    borrowers=("main/job/ü/1",),
    trouble="403 Forbidden",
    problem="Java ended with status 1",
    most_usd_per_hour=4.5,
    volume_usd_per_hour=0.01,
    started_for="r-1",
    starts=(5.0, 6.0),
    version="7 with ami-1",
    rotated_at=8.0,
    leaves=(Binding(controller="other", node="cpu-1", life=1), Binding(controller="third", node="日本")),
    role_id="AROA1",
    devices_for=(a_reservation("bob"),),
    reservation=a_reservation(person="Zoë"),
    interrupted_at=9.5,
    revision=3,
)


def test_the_record_that_is_tried_has_everything_that_a_record_can_hold():
    assert [one.name for one in fields(Record) if one.default is not MISSING and getattr(FULL, one.name) == one.default] == []


def test_a_record_comes_back_as_it_was_from_either_read(state):
    state.add_record(FULL)
    assert (state.read().records, state.record("i-1")) == ((FULL,), FULL)


@pytest.mark.parametrize(
    "changes",
    [{"reservation": None}, {"leaves": ()}, {"reservation": a_reservation(until_at=1.0, request="r-2")}, {"leaves": FULL.leaves[1:]}],
    ids=["released", "nothing left behind", "reserved anew", "one node less to delete"],
)
def test_what_a_person_has_and_what_it_leaves_behind_are_changed_with_the_record(state, changes):
    state.add_record(FULL)
    state.change_record(replace(FULL, **changes), expected=FULL.state)
    assert state.read().records == (replace(FULL, **changes),)


def test_an_instance_has_one_record(state):
    state.add_record(a_record("i-1"))
    with pytest.raises(ConflictError):
        state.add_record(a_record("i-1", pool="other"))
    assert state.read().records[0].pool == "cpu"
    assert (state.record("i-1"), state.record("i-2"), state.record("i-other")) == (a_record("i-1"), None, None)


def test_only_the_expected_state_is_changed(state):
    record = a_record("i-1")
    state.add_record(record)
    state.change_record(replace(record, state=RecordState.CONDEMNED), expected=RecordState.REQUESTED)
    with pytest.raises(ConflictError):
        state.change_record(replace(record, state=RecordState.REGISTERED), expected=RecordState.REQUESTED)
    assert state.read().records[0].state is RecordState.CONDEMNED


@pytest.mark.parametrize("changes", [{"trouble": "403"}, {"state": RecordState.CONDEMNED}, {"state": RecordState.GONE}], ids=str)
def test_who_has_not_read_the_last_change_changes_nothing(state, changes):
    record = a_record("i-1", state=RecordState.REGISTERED, node="cpu-1")
    state.add_record(record)
    reserved = state.change_record(replace(record, reservation=a_reservation()), expected=RecordState.REGISTERED)
    with pytest.raises(ConflictError):
        state.change_record(replace(record, **changes), expected=RecordState.REGISTERED)
    assert state.read().records == (reserved,) == (state.record("i-1"),)
    assert [state.record("i-1").revision, reserved.revision] == [1, 1]
    state.change_record(replace(reserved, **changes), expected=RecordState.REGISTERED)
    assert [known.trouble for known in state.read().records if known.state is RecordState.REGISTERED] == [
        known for known in [changes.get("trouble")] if known
    ]


def test_a_record_is_changed_under_the_lease_by_who_holds_it(state):
    record = a_record("i-1", state=RecordState.STOPPED)
    state.add_record(record)
    starting = replace(record, state=RecordState.STARTING)
    with pytest.raises(ConflictError):
        state.change_record(starting, expected=RecordState.STOPPED, holder="one")  # there is no lease at all
    assert state.acquire("one", now=0.0, until=70.0)
    with pytest.raises(ConflictError):
        state.change_record(starting, expected=RecordState.STOPPED, holder="other")
    assert state.read().records[0].state is RecordState.STOPPED
    starting = state.change_record(starting, expected=RecordState.STOPPED, holder="one")
    assert state.read().records[0].state is RecordState.STARTING
    with pytest.raises(ConflictError):
        state.change_record(starting, expected=RecordState.STOPPED, holder="one")  # the lease alone does not do
    state.release("one")
    with pytest.raises(ConflictError):
        state.change_record(replace(starting, state=RecordState.STOPPED), expected=RecordState.STARTING, holder="one")


def test_a_record_that_is_not_there_cannot_be_changed(state):
    with pytest.raises(ConflictError):
        state.change_record(a_record("i-1"), expected=RecordState.REQUESTED)


def test_a_record_that_is_gone_leaves_nothing(state):
    record = a_record("i-1", state=RecordState.CONDEMNED)
    state.add_record(record)
    state.change_record(replace(record, state=RecordState.GONE), expected=RecordState.CONDEMNED)
    assert state.read().records == ()


def test_registration_and_repair_cannot_both_win(state):
    record = a_record("i-1")
    state.add_record(record)
    won, barrier = [], threading.Barrier(2)

    def change(to):
        barrier.wait()
        try:
            state.change_record(replace(record, state=to), expected=RecordState.REQUESTED)
            won.append(to)
        except ConflictError:
            return

    threads = [threading.Thread(target=change, args=(to,)) for to in (RecordState.REGISTERED, RecordState.CONDEMNED)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert state.read().records[0].state is won[0]


def test_a_node_is_one_instances_until_that_one_is_gone(state):
    one, two = a_record("i-1"), a_record("i-2")
    state.add_record(one)
    state.add_record(two)
    registered = replace(one.bound(node="slot-1"), state=RecordState.REGISTERED)
    registered = state.change_record(registered, expected=RecordState.REQUESTED)
    late = replace(two.bound(node="slot-1"), state=RecordState.REGISTERED)
    with pytest.raises(ConflictError):
        state.change_record(late, expected=RecordState.REQUESTED)
    with pytest.raises(ConflictError):
        state.add_record(a_record("i-3", node="slot-1"))
    assert {(r.instance_id, r.node) for r in state.read().records} == {("i-1", "slot-1"), ("i-2", None)}
    state.change_record(
        replace(late, bindings=(Binding(controller="other", node="slot-1"),)), expected=RecordState.REQUESTED
    )  # a node of that name elsewhere is another one
    condemned = state.change_record(replace(registered, state=RecordState.CONDEMNED), expected=RecordState.REGISTERED)
    state.change_record(replace(condemned, state=RecordState.GONE), expected=RecordState.CONDEMNED)
    state.add_record(a_record("i-3", node="slot-1"))
    assert {(r.instance_id, r.node) for r in state.read().records} == {("i-2", "slot-1"), ("i-3", "slot-1")}
