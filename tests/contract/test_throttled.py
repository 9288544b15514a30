"""Transactions that DynamoDB cancels: for throttling, which is no lost race, and is tried again; or since somebody else was quicker."""

import pytest
from botocore.exceptions import EndpointConnectionError
from botocore.stub import Stubber

from autoscaler.adapters.build_stores import DynamoReruns, DynamoRunOrders
from autoscaler.adapters.dynamodb import DynamoState
from autoscaler.adapters.stores import DynamoAsks, DynamoCosts
from autoscaler.adapters.table import PAUSES
from autoscaler.domain.facts.telemetry import Devices
from autoscaler.errors import ConflictError, TransientError, UnansweredError
from autoscaler_workbench.cli.demo import TABLE
from contract.test_costs import a_batch, a_month
from contract.test_reruns import a_rerun
from contract.test_run_orders import an_order
from support.builders import NOW, a_record

WRITES = {
    "state": lambda client, sleep: DynamoState(client, TABLE, "f", sleep=sleep).add_record(a_record(node="cpu-1")),
    "reruns": lambda client, sleep: DynamoReruns(client, TABLE, "f", sleep=sleep).add_rerun(a_rerun(), holder="p"),
    "orders": lambda client, sleep: DynamoRunOrders(client, TABLE, "f", sleep=sleep).add_order(an_order()),
}
ONCE = {
    "costs": lambda client, _sleep: DynamoCosts(client, TABLE, "f").book([a_month()], a_batch(), NOW),
    "asks": lambda client, _sleep: DynamoAsks(client, TABLE, "f").admit("i-1", now=NOW, devices=Devices(told_at=NOW, devices=())),
}


def cancelled(stub, *codes, only_in_message=False):
    reasons = [{"Code": code, "Message": "x"} for code in codes]
    message = f"Transaction cancelled, please refer cancellation reasons for specific reasons [{', '.join(codes)}]"
    more = {} if only_in_message else {"modeled_fields": {"CancellationReasons": reasons}}
    stub.add_client_error("transact_write_items", "TransactionCanceledException", message, **more)


@pytest.mark.parametrize("code", ["ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded"])
@pytest.mark.parametrize("only_in_message", [False, True])
@pytest.mark.parametrize("name", WRITES)
def test_a_throttled_transaction_is_sent_again_a_little_later(dynamo, name, code, only_in_message):
    slept = []
    with Stubber(dynamo) as stub:
        for _ in PAUSES:
            cancelled(stub, code, "None", only_in_message=only_in_message)
        stub.add_response("transact_write_items", {})
        WRITES[name](lambda: dynamo, slept.append)
        stub.assert_no_pending_responses()
    assert slept == list(PAUSES)


@pytest.mark.parametrize("name", WRITES | ONCE)
def test_one_that_is_throttled_each_time_says_so_and_is_no_lost_race(dynamo, name):
    with Stubber(dynamo) as stub:
        for _ in range(1 + len(PAUSES)):
            cancelled(stub, "None", "ThrottlingError")
        with pytest.raises(TransientError, match=r"throttled it \(ThrottlingError\), and nothing was written") as caught:
            (WRITES | ONCE)[name](lambda: dynamo, lambda _: None)
    assert type(caught.value) is TransientError


@pytest.mark.parametrize("name", WRITES | {"costs": ONCE["costs"]})
@pytest.mark.parametrize("code", ["ConditionalCheckFailed", "TransactionConflict"])
def test_if_somebody_else_was_quicker_it_is_a_lost_race_though_it_was_throttled_too(dynamo, name, code):
    with Stubber(dynamo) as stub:
        cancelled(stub, code, "ThrottlingError")
        with pytest.raises(ConflictError):
            (WRITES | ONCE)[name](lambda: dynamo, lambda _: None)


@pytest.mark.parametrize("name", WRITES)
def test_any_other_reason_is_named(dynamo, name):
    with Stubber(dynamo) as stub:
        cancelled(stub, "ValidationError", "None")
        with pytest.raises(TransientError, match=r"TransactionCanceledException \(ValidationError\)") as caught:
            WRITES[name](lambda: dynamo, lambda _: None)
    assert not isinstance(caught.value, ConflictError)


def test_if_the_second_try_is_not_answered_both_are_said(dynamo):
    clients = iter([dynamo])

    def client():
        if (found := next(clients, None)) is None:
            raise EndpointConnectionError(endpoint_url="https://dynamodb")
        return found

    with Stubber(dynamo) as stub:
        cancelled(stub, "ThrottlingError")
        with pytest.raises(UnansweredError, match="throttled a write, was asked again, and did not answer"):
            WRITES["state"](client, lambda _: None)
