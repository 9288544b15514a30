"""What all stores on the table promise alike: who was quicker wins, errors, throttling, expiry."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from botocore.stub import Stubber

from autoscaler.adapters.dynamodb import DynamoState
from autoscaler.adapters.stores import DynamoAsks, DynamoCosts, DynamoHistory, DynamoJobs, DynamoReruns, DynamoRunOrders, SqsSlots
from autoscaler.domain.facts.job_stats import JobTracker, Subject
from autoscaler.domain.facts.orders import Overrides
from autoscaler.domain.facts.snapshot import IntentState, RecordState
from autoscaler.domain.facts.started_builds import RerunState
from autoscaler.domain.facts.telemetry import Devices
from autoscaler.errors import ConflictError, TransientError, UnansweredError
from autoscaler.ports import StoredState
from autoscaler_workbench.cli.demo import TABLE
from contract.conftest import items
from contract.test_costs import a_batch, a_month
from contract.test_history import an_event
from contract.test_jobs import a_row
from contract.test_later_versions import KINDS
from contract.test_reruns import a_rerun
from contract.test_run_orders import an_order
from support.builders import a_record, an_intent

NOW, DAY = 1_800_000_000, 86_400
PAUSES = [0.1, 0.4]  # before each further try of a transaction
DEVICES = Devices(told_at=NOW, devices=())
ERRORS = [
    "InternalServerError",
    "AccessDeniedException",
    "ProvisionedThroughputExceededException",
    "TransactionCanceledException",
]
BOTH = pytest.mark.parametrize("only_in_message", [False, True])


@dataclass
class Call:
    """One call of a store, and the operation of DynamoDB that it needs.

    ``lost``: what it returns if somebody else was quicker; without, that is an error.
    """

    store: Any
    operation: str
    act: Any
    lost: Any = "an error"


QUERY, GET, PUT, ALL = "query", "batch_get_item", "put_item", "transact_write_items"
READS = {
    "the state": Call(DynamoState, QUERY, lambda s: s.read()),
    "a record": Call(DynamoState, QUERY, lambda s: s.record("i-1")),
    "notes of passes": Call(DynamoState, QUERY, lambda s: s.pass_notes("scale_up")),
    "rows": Call(DynamoJobs, GET, lambda s: s.rows("main", [Subject("job")])),
    "all rows": Call(DynamoJobs, QUERY, lambda s: s.all_rows()),
    "a tracker": Call(DynamoJobs, GET, lambda s: s.tracker("main")),
    "a batch": Call(DynamoCosts, GET, lambda s: s.batch()),
    "a month": Call(DynamoCosts, GET, lambda s: s.month("2026-11")),
    "reports": Call(DynamoAsks, QUERY, lambda s: s.latest()),
    "events": Call(DynamoHistory, QUERY, lambda s: s.since(NOW, NOW)),
    "open orders": Call(DynamoRunOrders, QUERY, lambda s: s.open_orders()),
    "an order": Call(DynamoRunOrders, QUERY, lambda s: s.order("r-1")),
    "ended orders": Call(DynamoRunOrders, QUERY, lambda s: s.ended(3)),
    "an answer": Call(DynamoReruns, QUERY, lambda s: s.rerun("k")),
}
SINGLE = {
    "add a record": Call(DynamoState, PUT, lambda s: s.add_record(a_record())),
    "settle a launch": Call(DynamoState, "delete_item", lambda s: s.remove_intent(an_intent())),
    "save orders": Call(DynamoState, PUT, lambda s: s.save_overrides(Overrides())),
    "acquire": Call(DynamoState, PUT, lambda s: s.acquire("a", now=0.0, until=9.0), lost=False),
    "release": Call(DynamoState, "delete_item", lambda s: s.release("a"), lost=None),
    "note devices": Call(DynamoState, PUT, lambda s: s.note_devices("i-1", DEVICES)),
    "save a tracker": Call(DynamoJobs, PUT, lambda s: s.save_tracker("main", JobTracker(), NOW)),
    "save a batch": Call(DynamoCosts, PUT, lambda s: s.book([], a_batch(), NOW)),
    "admit": Call(DynamoAsks, "update_item", lambda s: s.admit("i-1", now=NOW)),
    "note events": Call(DynamoHistory, PUT, lambda s: s.note([an_event("1 of 1", NOW)])),
    "change an answer": Call(
        DynamoReruns,
        PUT,
        lambda s: s.change_rerun(a_rerun(), expected=RerunState.WRITTEN),
    ),
    "take a slot": Call(SqsSlots, PUT, lambda s: s.take("slot#1", NOW)),
}
ORDERS = {
    "add an order": Call(DynamoRunOrders, ALL, lambda s: s.add_order(an_order())),
    "change an order": Call(DynamoRunOrders, ALL, lambda s: s.change_order(an_order())),
    "end an order": Call(DynamoRunOrders, ALL, lambda s: s.change_order(an_order(ended_at=NOW))),
}
TRANSACTIONS = ORDERS | {
    "add a record with a node": Call(
        DynamoState,
        ALL,
        lambda s: s.add_record(a_record(node="cpu-1")),
    ),
    "add a launch": Call(DynamoState, ALL, lambda s: s.add_intent(an_intent(), holder="a")),
    "add an answer": Call(DynamoReruns, ALL, lambda s: s.add_rerun(a_rerun(), holder="a")),
    "book costs": Call(DynamoCosts, ALL, lambda s: s.book([a_month()], a_batch(), NOW)),
    "admit and note devices": Call(
        DynamoAsks,
        ALL,
        lambda s: s.admit("i-1", now=NOW, devices=DEVICES),
    ),
}
WRITES = SINGLE | TRANSACTIONS


def opened(store, client, **more):
    if store is SqsSlots:
        return SqsSlots(lambda: None, "url", client, TABLE, "f")
    return store(client, TABLE, "f", **more)


def stored(dynamo):
    return {(item["fleet"]["S"], item["item"]["S"]): item for item in items(dynamo)}


# Versions.


@pytest.mark.parametrize("name", [name for name, (_, kind) in KINDS.items() if kind.is_versioned])
def test_of_two_that_replace_what_both_have_read_only_the_first_does(dynamo, name):
    store, kind = KINDS[name]
    kind.save(opened(store, lambda: dynamo))
    first, second = opened(store, lambda: dynamo), opened(store, lambda: dynamo)
    read = kind.read(first)
    kind.change(first, read)
    written = stored(dynamo)
    with pytest.raises(ConflictError):
        kind.change(second, read)
    with pytest.raises(ConflictError):
        kind.save(second)  # as if there were none
    assert stored(dynamo) == written


# Errors.


@pytest.mark.parametrize("name", READS | SINGLE | TRANSACTIONS)
def test_a_table_without_an_answer_leaves_open_whether_it_was_done(name):
    def gone():
        raise EndpointConnectionError(endpoint_url="https://dynamodb")

    call = (READS | WRITES)[name]
    with pytest.raises(UnansweredError, match=r"DynamoDB did not answer \(EndpointConnection"):
        call.act(opened(call.store, gone))


@pytest.mark.parametrize("code", ERRORS)
@pytest.mark.parametrize("name", READS | SINGLE | TRANSACTIONS)
def test_an_error_of_dynamodb_is_one_that_the_next_look_makes_good(dynamo, name, code):
    call = (READS | WRITES)[name]
    with Stubber(dynamo) as stub, pytest.raises(TransientError, match=code) as caught:
        stub.add_client_error(call.operation, code, http_status_code=400)
        call.act(opened(call.store, lambda: dynamo))
    assert type(caught.value) is TransientError


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize(
    ("code", "status"),
    [("InternalServerError", 500), ("TransactionInProgressException", 400)],
)
def test_a_write_of_an_order_that_dynamodb_may_have_made_is_unanswered(dynamo, name, code, status):
    with Stubber(dynamo) as stub, pytest.raises(UnansweredError):
        stub.add_client_error(ALL, code, http_status_code=status)
        ORDERS[name].act(opened(DynamoRunOrders, lambda: dynamo))


@pytest.mark.parametrize("name", WRITES)
def test_another_transaction_on_the_same_items_is_a_lost_race(dynamo, name):
    call = WRITES[name]
    with Stubber(dynamo) as stub:
        stub.add_client_error(call.operation, "TransactionConflictException", http_status_code=400)
        if call.lost != "an error":
            assert call.act(opened(call.store, lambda: dynamo)) is call.lost
        else:
            with pytest.raises(ConflictError, match="was changed by somebody else meanwhile"):
                call.act(opened(call.store, lambda: dynamo))


# Transactions that DynamoDB cancels: for throttling, which is no lost race, and is tried again; or
# since somebody else was quicker.


def cancelled(stub, *codes, only_in_message=False):
    reasons = [{"Code": code, "Message": "x"} for code in codes]
    message = f"Transaction cancelled, please refer cancellation reasons [{', '.join(codes)}]"
    more = {} if only_in_message else {"modeled_fields": {"CancellationReasons": reasons}}
    stub.add_client_error(ALL, "TransactionCanceledException", message, **more)


def act(name, client, sleep=lambda _: None):
    call = TRANSACTIONS[name]
    return call.act(opened(call.store, client, sleep=sleep))


@BOTH
@pytest.mark.parametrize(
    "code",
    ["ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded"],
)
@pytest.mark.parametrize("name", TRANSACTIONS)
def test_a_throttled_transaction_is_sent_again_a_little_later(dynamo, name, code, only_in_message):
    slept = []
    with Stubber(dynamo) as stub:
        for _ in PAUSES:
            cancelled(stub, code, "None", only_in_message=only_in_message)
        stub.add_response(ALL, {})
        act(name, lambda: dynamo, slept.append)
        stub.assert_no_pending_responses()
    assert slept == PAUSES


@pytest.mark.parametrize("name", TRANSACTIONS)
def test_one_that_is_throttled_each_time_says_so_and_is_no_lost_race(dynamo, name):
    says = r"throttled it \(ThrottlingError\), and nothing was written"
    with Stubber(dynamo) as stub, pytest.raises(TransientError, match=says) as caught:
        for _ in (*PAUSES, "the last try"):
            cancelled(stub, "None", "ThrottlingError")
        act(name, lambda: dynamo)
    assert type(caught.value) is TransientError


@pytest.mark.parametrize("name", sorted(TRANSACTIONS.keys() - {"admit and note devices"}))
@pytest.mark.parametrize("code", ["ConditionalCheckFailed", "TransactionConflict"])
def test_who_was_quicker_wins_though_it_was_throttled_too(dynamo, name, code):
    with Stubber(dynamo) as stub, pytest.raises(ConflictError):
        cancelled(stub, code, "ThrottlingError")
        act(name, lambda: dynamo)


@pytest.mark.parametrize("name", TRANSACTIONS)
def test_any_other_reason_is_named(dynamo, name):
    says = r"TransactionCanceledException \(ValidationError\)"
    with Stubber(dynamo) as stub, pytest.raises(TransientError, match=says) as caught:
        cancelled(stub, "ValidationError", "None")
        act(name, lambda: dynamo)
    assert type(caught.value) is TransientError


def test_if_the_second_try_is_not_answered_both_are_said(dynamo):
    clients = iter([dynamo])

    def client():
        if (found := next(clients, None)) is None:
            raise EndpointConnectionError(endpoint_url="https://dynamodb")
        return found

    says = "throttled a write, was asked again, and did not answer"
    with Stubber(dynamo) as stub, pytest.raises(UnansweredError, match=says):
        cancelled(stub, "ThrottlingError")
        act("add a record with a node", client)


def test_names_that_dynamodb_leaves_out_are_asked_for_again(dynamo):
    def answer(names, left):
        found = [{"fleet": {"S": "f#jobs"}, "item": {"S": name}} for name in names]
        again = {TABLE: {"Keys": [found[0]]}} if left else {}
        return {"Responses": {TABLE: found}, "UnprocessedKeys": again}

    with Stubber(dynamo) as stub:
        stub.add_response(GET, answer(["a"], left=True))
        stub.add_response(GET, answer(["b"], left=False))
        store = opened(DynamoJobs, lambda: dynamo)
        assert [item["item"]["S"] for item in store.get("#jobs", ["a", "b"])] == ["a", "b"]
        stub.assert_no_pending_responses()


# Where each thing stands, and how long: seconds from now; 0 of what stays.


ALSO = {
    "save rows": Call(DynamoJobs, PUT, lambda s: s.save_rows([a_row("job")], NOW)),
    "book a day": Call(
        DynamoCosts,
        ALL,
        lambda s: s.book([a_month("2026-11-27")], a_batch(), NOW),
    ),
}
STANDS = {
    "add a record": ("f", f"record#{a_record().instance_id}", 0),
    "save orders": ("f", "overrides", 0),
    "note devices": ("f", "devices#i-1", DAY),
    "save a tracker": ("f#jobs", "tracker#main", 7 * DAY),
    "save rows": ("f#jobs", "shard#", 90 * DAY),
    "save a batch": ("f#costs", "batch", 25 * 31 * DAY),
    "book costs": ("f#costs", "month#2026-11", 25 * 31 * DAY),
    "book a day": ("f#costs", "day#2026-11-27", 63 * DAY),
    "admit": ("f#asks", "i-1", DAY),
    "note events": ("f#events", "2027-01-15#", 15 * DAY),
    "add an order": ("f#open-runs", "id#r-1", 0),
    "change an order": ("f#open-runs", "id#r-1", 0),
    "end an order": ("f#runs", "at#", 90 * DAY),
    "add an answer": ("f#reruns", a_rerun().key, 90 * DAY),
    "take a slot": ("f#looks", "slot#1", 3600),
}


@pytest.mark.parametrize("name", STANDS)
def test_what_is_written_is_forgotten_in_time_and_no_pass_reads_what_is_not_its_own(dynamo, name):
    part, begins, seconds = STANDS[name]
    state, call = opened(DynamoState, lambda: dynamo), (WRITES | ALSO)[name]
    if name in {"change an order", "end an order"}:
        act("add an order", lambda: dynamo)
    state.acquire("a", now=0.0, until=9.0)
    call.act(opened(call.store, lambda: dynamo))
    written = [item for item in items(dynamo, part) if item["item"]["S"] != "lease"]
    named = [item for item in written if item["item"]["S"].startswith(begins)]
    until = {"N": str(NOW + seconds)} if seconds else None
    assert [item.get("expiration") for item in named] == [until]
    assert all(bool(item.get("expiration")) == bool(seconds) for item in written)
    assert (state.read() == StoredState()) is (part != "f")


def test_what_of_the_state_is_gone_leaves_nothing(dynamo):
    state = opened(DynamoState, lambda: dynamo)
    state.acquire("a", now=0.0, until=9.0)
    record, intent = a_record(node="cpu-1"), an_intent(state=IntentState.SETTLED)
    state.add_record(record)
    state.add_intent(intent, holder="a")
    state.change_record(replace(record, state=RecordState.GONE), expected=record.state)
    state.remove_intent(intent)
    state.release("a")
    assert items(dynamo) == []
