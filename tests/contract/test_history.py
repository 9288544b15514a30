"""The history of what was done, on DynamoDB (moto, ministack) and in memory."""

from datetime import UTC, datetime

import pytest

from autoscaler.adapters import stores
from autoscaler.adapters.stores import DynamoHistory
from autoscaler.domain.report.told import Event
from autoscaler_workbench.cli.demo import TABLE
from autoscaler_workbench.fakes.state import InMemoryHistory
from contract.conftest import STORES

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()
DAY = 86_400.0


def an_event(subject, at=NOON):
    return Event(at=at, by="scale_up", what="launch", where="main/cpu", subject=subject, reason="starved-queue", detail="jobs wait")


def subjects(events):
    return [event.subject for event in events]


@pytest.fixture(params=STORES)
def kept(request):
    if request.param == "memory":
        return InMemoryHistory()
    client = request.getfixturevalue(request.param)
    return DynamoHistory(lambda: client, TABLE, "f")


def test_what_is_noted_is_read_back_as_it_was(kept):
    kept.note([an_event("1 of 1")])
    assert kept.since(NOON - 60, NOON) == [an_event("1 of 1")]


def test_events_of_several_days_are_read_oldest_first_and_from_an_instant_on(kept):
    for days in (2, 1, 0):
        kept.note([an_event(f"{days} days ago", NOON - days * DAY)])
    assert subjects(kept.since(NOON - 1.5 * DAY, NOON)) == ["1 days ago", "0 days ago"]
    assert subjects(kept.since(NOON - 40 * DAY, NOON)) == ["2 days ago", "1 days ago", "0 days ago"]


def test_events_around_midnight_go_to_their_own_days(kept):
    midnight = NOON + DAY / 2
    kept.note([an_event("before", midnight - 1), an_event("after", midnight)])
    assert subjects(kept.since(midnight, midnight + 60)) == ["after"]
    assert subjects(kept.since(midnight - 60, midnight + 60)) == ["before", "after"]


def test_events_of_one_instant_keep_their_order(kept):
    for number in range(12):
        kept.note([an_event(str(number))])
    assert subjects(kept.since(NOON, NOON)) == [str(number) for number in range(12)]


def test_noting_reads_nothing_and_writes_a_small_item_an_event(dynamo):
    kept, asked = DynamoHistory(lambda: dynamo, TABLE, "f"), []
    dynamo.meta.events.register("before-call.dynamodb.*", lambda model, **_: asked.append(model.name))
    kept.note([an_event("first"), an_event("second")])
    kept.note([an_event("second")])  # its answer was lost: it is there once
    assert asked == ["PutItem"] * 3
    assert subjects(kept.since(NOON, NOON)) == ["first", "second"]
    assert max(len(str(item)) for item in dynamo.scan(TableName=TABLE)["Items"]) < 1000


def test_of_a_day_with_very_many_the_last_are_kept(dynamo, monkeypatch):
    monkeypatch.setattr(stores, "EVENTS_A_DAY", 3)
    kept = DynamoHistory(lambda: dynamo, TABLE, "f")
    for number in range(5):
        kept.note([an_event(str(number), NOON + number)])
    assert subjects(kept.since(NOON, NOON + 5)) == ["2", "3", "4"]


def test_an_item_that_this_version_cannot_read_is_left_out(dynamo):
    kept = DynamoHistory(lambda: dynamo, TABLE, "f")
    dynamo.put_item(TableName=TABLE, Item={"fleet": {"S": "f#events"}, "item": {"S": "2026-03-01"}, "body": {"B": b"?"}})
    kept.note([an_event("new", NOON + 1)])
    assert subjects(kept.since(NOON, NOON + 1)) == ["new"]
