"""The count of questions and what machines tell with them, on DynamoDB (moto, ministack) and in memory."""

import threading
import zlib
from dataclasses import dataclass, replace
from typing import Any

import pytest

from autoscaler.adapters.dynamodb import DynamoState
from autoscaler.adapters.stores import DynamoAsks
from autoscaler.domain.facts.telemetry import MOST_BUILDS, MOST_GPUS, Device, Devices
from autoscaler.domain.report.registration import MAX_REQUESTS_PER_HOUR
from autoscaler.errors import TransientError
from autoscaler.ports import StoredState
from autoscaler_workbench.cli.demo import TABLE
from autoscaler_workbench.fakes.state import InMemoryState, InMemoryTelemetry
from autoscaler_workbench.fakes.world.faults import Fault
from contract.conftest import STORES, items
from support.builders import a_build_use, a_gpu_use, a_telemetry

AT = 1_800_000_000.0
DAY = 86_400
ITEM_BYTES = 400_000


@dataclass
class Kept:
    """The rate limiter, what machines told, and the state beside them."""

    limiter: Any
    telemetry: Any
    state: Any

    def admit(self, machine, **facts):
        return self.limiter.admit(machine, **({"now": AT} | facts))


@pytest.fixture(params=STORES)
def kept(request):
    if request.param == "memory":
        state = InMemoryState()
        return Kept(state, InMemoryTelemetry(state), state)
    client = request.getfixturevalue(request.param)
    DynamoAsks(lambda: client, TABLE, "another").admit("i-other", now=AT, telemetry=a_telemetry())
    asks = DynamoAsks(lambda: client, TABLE, "f")
    return Kept(asks, asks, DynamoState(lambda: client, TABLE, "f"))


def test_a_machine_may_ask_sixty_times_in_an_hour_and_then_again(kept):
    assert [kept.admit("i-1", now=AT + n) for n in range(60)] == [True] * 60
    assert not kept.admit("i-1", now=AT + 61.0)
    assert not kept.admit("i-1", now=AT + 3599.0)
    assert kept.admit("i-2", now=AT + 61.0)
    assert kept.admit("i-1", now=AT + 3600.0)


def test_asks_are_counted_together_wherever_they_are_answered(kept):
    admitted, barrier = [], threading.Barrier(4)
    kept.admit("i-1", now=1.0)

    def ask():
        barrier.wait()
        admitted.extend(kept.admit("i-1", now=2.0) for _ in range(20))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert admitted.count(True) == MAX_REQUESTS_PER_HOUR - 1


def test_asks_and_what_is_told_are_nothing_that_a_pass_reads(kept):
    kept.admit("i-1", telemetry=a_telemetry())
    assert kept.state.read() == StoredState()


def test_the_last_report_of_each_machine_is_kept_with_when_it_was_told(kept):
    first, second = (
        a_telemetry(memory_available=1.0),
        a_telemetry(memory_available=2.0, builds=(a_build_use(run="job/ü/7"),), gpus=(a_gpu_use(),)),
    )
    kept.admit("i-1", telemetry=first)
    kept.admit("i-1", now=AT + 300.0, telemetry=second)
    kept.admit("i-2", now=AT + 5.0, telemetry=first)
    kept.admit("i-3")
    assert kept.telemetry.latest() == {"i-1": replace(second, told_at=AT + 300.0), "i-2": replace(first, told_at=AT + 5.0)}


def test_a_question_without_a_report_leaves_the_last_one(kept):
    kept.admit("i-1", telemetry=a_telemetry())
    kept.admit("i-1", now=AT + 4000.0)
    assert kept.telemetry.latest()["i-1"].told_at == AT


def test_whoever_asks_too_often_tells_nothing_any_more(kept):
    for _ in range(MAX_REQUESTS_PER_HOUR):
        kept.admit("i-1")
    assert not kept.admit("i-1", telemetry=a_telemetry(), devices=Devices(told_at=AT, devices=(Device(id="0", kind="k", state="free"),)))
    assert (kept.telemetry.latest(), kept.state.read().devices) == ({}, {})


@pytest.mark.parametrize("before", [0, 1], ids=["the first question of an hour", "a later one"])
def test_devices_are_kept_in_the_state_by_the_same_write(kept, before):
    devices = Devices(told_at=AT, devices=(Device(id="0", kind="gfx1030", state="held", user="jenkins"),), waiting=2)
    for _ in range(before):
        kept.admit("i-1")
    assert kept.admit("i-1", telemetry=a_telemetry(), devices=devices)
    assert (kept.state.read().devices, kept.state.read().unread) == ({"i-1": devices}, ())
    assert list(kept.telemetry.latest()) == ["i-1"]


def test_a_report_is_one_write_and_expires_a_day_after_the_last_question(dynamo, listen):
    asks, calls = DynamoAsks(lambda: dynamo, TABLE, "f"), []
    asks.admit("i-1", now=AT)
    listen("before-call.dynamodb", lambda model, **_: calls.append(model.name))
    assert asks.admit("i-1", now=AT + 300.0, telemetry=a_telemetry())
    assert calls == ["UpdateItem"]
    calls.clear()
    assert asks.admit("i-1", now=AT + 300.0, telemetry=a_telemetry(), devices=Devices(told_at=AT, devices=()))
    assert calls == ["TransactWriteItems"]
    [row] = [item for item in items(dynamo) if item["item"]["S"] == "i-1"]
    assert (row["fleet"]["S"], row["expiration"]["N"]) == ("f#asks", str(int(AT) + 300 + DAY))


def test_the_largest_report_that_is_admitted_is_some_kilobytes(dynamo):
    builds = tuple(a_build_use(node=f"{n:0200}", run=f"job/{n:0296}", memory=1e11 / (n + 1), alone=True) for n in range(MOST_BUILDS))
    asks = DynamoAsks(lambda: dynamo, TABLE, "f")
    asks.admit("i-1", now=AT, telemetry=a_telemetry(builds=builds, gpus=tuple(a_gpu_use() for _ in range(MOST_GPUS))))
    [row] = items(dynamo)
    assert len(row["told"]["B"]) < 3000


@pytest.mark.parametrize("body", [b"x", zlib.compress(b"{"), zlib.compress(b'{"seconds": 1}')], ids=["no archive", "cut", "lacks figures"])
def test_what_another_version_wrote_is_left_out(dynamo, body):
    asks = DynamoAsks(lambda: dynamo, TABLE, "f")
    asks.admit("i-1", now=AT, telemetry=a_telemetry())
    dynamo.put_item(TableName=TABLE, Item={"fleet": {"S": "f#asks"}, "item": {"S": "i-2"}, "told": {"B": body}})
    assert list(asks.latest()) == ["i-1"]


def test_what_cannot_be_read_is_said():
    state = InMemoryState()
    telemetry = InMemoryTelemetry(state)
    telemetry.faults.plan(Fault("telemetry latest"))
    with pytest.raises(TransientError):
        telemetry.latest()
