"""The LookSlots port on SQS and DynamoDB (moto, ministack), and in memory."""

import boto3
import pytest

from autoscaler.adapters.stores import SqsSlots
from autoscaler.errors import TransientError
from autoscaler_workbench.cli.demo import TABLE
from autoscaler_workbench.fakes.slots import InMemorySlots
from autoscaler_workbench.fakes.world.faults import Fault
from contract.conftest import STORES

NOW = 1_800_000_000.0


def on_aws(dynamo):
    queue = boto3.client("sqs")
    return SqsSlots(lambda: queue, queue.create_queue(QueueName="looks")["QueueUrl"], lambda: dynamo, TABLE, "f")


@pytest.fixture(params=STORES)
def slots(request):
    if request.param == "memory":
        return InMemorySlots(after=lambda _seconds, _do: None)
    return on_aws(request.getfixturevalue(request.param))


def test_a_slot_is_taken_by_whoever_asks_first(slots):
    assert [slots.take("slot#1", NOW), slots.take("slot#1", NOW), slots.take("slot#2", NOW)] == [True, False, True]


def test_as_many_messages_as_slots_are_sent_each_as_late_as_its_slot_is():
    sent = []

    class Queue:
        def send_message_batch(self, QueueUrl, Entries):  # noqa: N803 - boto3's names
            sent.append([(entry["DelaySeconds"], entry["MessageBody"]) for entry in Entries])
            return {"Successful": []}

    SqsSlots(Queue, "url", Queue, TABLE, "f").announce({f"slot#{n}": NOW + 5.0 * n for n in range(1, 12)}, NOW + 0.4)
    assert [len(batch) for batch in sent] == [10, 1]
    assert sent[0][0] == (5, '{"slot": "slot#1", "at": 1800000005.0}')
    assert sent[1][0][0] == 55


def test_what_the_queue_refuses_is_a_transient_error():
    class Queue:
        def send_message_batch(self, **_request):
            return {"Failed": [{"Id": "0", "Code": "InternalError", "SenderFault": False}]}

    with pytest.raises(TransientError, match="1 messages were refused"):
        SqsSlots(Queue, "url", Queue, TABLE, "f").announce({"slot#1": NOW}, NOW)


def test_no_slots_are_no_call():
    SqsSlots(lambda: None, "url", lambda: None, TABLE, "f").announce({}, NOW)


def test_slots_in_memory_that_do_not_answer_are_not_taken():
    memory = InMemorySlots(after=lambda _seconds, _do: None)
    memory.faults.plan(Fault("slots take"))
    with pytest.raises(TransientError):
        memory.take("slot#1", NOW)
