"""The store of what jobs cost, on DynamoDB (moto, ministack) and in memory: what is kept, all or nothing, and how large it grows."""

from dataclasses import replace
from random import Random
from string import ascii_letters, digits

import pytest
from botocore.stub import Stubber

from autoscaler.adapters.stores import MOST_BYTES, DynamoCosts
from autoscaler.domain.facts.job_settings import CostBatch, CostKey, MonthCosts, MonthParts, Used
from autoscaler.domain.report.costs import ROWS_KEPT, bounded
from autoscaler.errors import ConflictError, TransientError, UnansweredError
from autoscaler_workbench.cli.demo import TABLE
from autoscaler_workbench.fakes.costs import InMemoryCosts
from autoscaler_workbench.fakes.world.faults import Fault
from contract.conftest import STORES, items, size_of

NOW = 1_800_000_000.0
DAY = 86_400.0
ITEM_BYTES = 400_000
A_JOB = CostKey("main", "cpu", "folder/ü job")


@pytest.fixture(params=STORES)
def kept(request):
    if request.param == "memory":
        return InMemoryCosts()
    return on_dynamo(request.getfixturevalue(request.param))


def on_dynamo(dynamo):
    return DynamoCosts(lambda: dynamo, TABLE, "f")


def a_month(name="2026-11", **facts):
    return MonthCosts(
        name=name,
        **(
            {"used": {A_JOB: Used(1.25, 0.5)}, "unused": {"cpu": 0.75}, "metered_usd": 2.0, "parts": MonthParts(boot_usd=0.5, disk_usd=1.5)}
            | facts
        ),
    )


def a_batch(**facts):
    seen = {
        "month": "2026-11",
        "seen_at": NOW,
        "opened_at": NOW - 60.0,
        "metered_at": NOW - 5.0,
        "metered": {"cpu": 2.0},
        "spent": {"cpu": 0.5},
    }
    return CostBatch(**(seen | {"used": {A_JOB: Used(0.5, 0.25)}, "unused": {"gpu": 0.125}} | facts))


def many(jobs, *, name="a folder of many words/project {:05}/job"):
    chance = Random(1)
    return {CostKey("main", "linux-cpu", name.format(number)): Used(chance.uniform(0, 90), chance.uniform(0, 90)) for number in range(jobs)}


def test_what_was_never_written_is_empty(kept):
    assert kept.batch() == CostBatch()
    assert kept.month("2026-11") == MonthCosts(name="2026-11")


def test_a_batch_and_months_are_read_back_as_they_were_written(kept):
    kept.book([], a_batch(), NOW)
    assert kept.batch() == a_batch(version=1)
    kept.book([a_month(), a_month("2026-12", metered_usd=3.0)], a_batch(version=1, used={}), NOW)
    assert kept.month("2026-11") == a_month(version=1)
    assert kept.month("2026-12") == a_month("2026-12", metered_usd=3.0, version=1)
    assert kept.batch() == a_batch(version=2, used={})


def test_of_two_that_replace_a_batch_only_one_does(kept):
    kept.book([], a_batch(), NOW)
    first, second = kept.batch(), kept.batch()
    kept.book([], first, NOW)
    with pytest.raises(ConflictError):
        kept.book([], second, NOW)
    with pytest.raises(ConflictError):
        kept.book([], CostBatch(), NOW)


@pytest.mark.parametrize("stale", ["batch", "month"])
def test_of_two_that_add_a_batch_to_its_month_the_second_changes_nothing_at_all(kept, stale):
    kept.book([a_month()], a_batch(), NOW)
    month, batch = kept.month("2026-11"), kept.batch()
    writes = replace(month, version=month.version - (stale == "month")), replace(batch, version=batch.version - (stale == "batch"))
    with pytest.raises(ConflictError):
        kept.book([replace(writes[0], metered_usd=99.0), a_month("2026-12")], replace(writes[1], used={}), NOW)
    assert (kept.month("2026-11"), kept.month("2026-12"), kept.batch()) == (month, MonthCosts(name="2026-12"), batch)


def test_a_day_is_kept_beside_its_month_and_forgotten_after_nine_weeks(dynamo):
    store = on_dynamo(dynamo)
    store.book([a_month(), a_month("2026-11-27", metered_usd=1.0)], a_batch(), NOW)
    assert store.month("2026-11-27") == replace(a_month("2026-11-27", metered_usd=1.0), version=1)
    [until] = [int(item["expiration"]["N"]) for item in items(dynamo) if item["item"]["S"] == "day#2026-11-27"]
    assert until == NOW + 63 * DAY


def test_five_thousand_jobs_keep_their_sum_in_one_item_far_below_its_limit(dynamo):
    store, rows = on_dynamo(dynamo), many(5000)
    store.book([a_month(used=bounded(rows))], a_batch(used=bounded(rows)), NOW)
    read = store.month("2026-11").used
    assert ROWS_KEPT * 0.8 < len(read) <= ROWS_KEPT
    assert sum(one.usd for one in read.values()) == pytest.approx(sum(one.usd for one in rows.values()), abs=0.01)
    assert max(map(size_of, items(dynamo))) < ITEM_BYTES / 5


def test_a_hundred_jobs_take_a_few_kilobytes(dynamo):
    on_dynamo(dynamo).book([a_month(used=many(100))], a_batch(used=many(20)), NOW)
    assert max(map(size_of, items(dynamo))) < 4096


def test_names_that_do_not_compress_are_folded_until_the_item_fits(dynamo):
    chance = Random(2)
    rows = {
        CostKey("main", "cpu", "".join(chance.choices(ascii_letters + digits, k=250))): Used(chance.random(), 1.0) for _ in range(ROWS_KEPT)
    }
    store = on_dynamo(dynamo)
    store.book([a_month(used=rows)], a_batch(used=rows), NOW)
    for read in (store.month("2026-11"), store.batch()):
        assert sum(one.usd for one in read.used.values()) == pytest.approx(sum(one.usd for one in rows.values()), abs=0.01)
        assert len(read.used) < ROWS_KEPT
    assert max(map(size_of, items(dynamo))) < MOST_BYTES + 1000


def test_what_another_version_wrote_begins_again(dynamo):
    store = on_dynamo(dynamo)
    for item in ("month#2026-11", "batch"):
        dynamo.put_item(TableName=TABLE, Item={"fleet": {"S": "f#costs"}, "item": {"S": item}, "body": {"B": b"?"}, "version": {"N": "7"}})
    assert store.month("2026-11") == MonthCosts(name="2026-11", version=7)
    assert store.batch() == CostBatch(version=7)
    store.book([a_month(version=7)], a_batch(version=7), NOW)
    assert store.month("2026-11") == a_month(version=8)


def test_a_throttled_read_is_a_transient_error_and_not_an_empty_month(dynamo):
    keys = {"Keys": [{"fleet": {"S": "f#costs"}, "item": {"S": "batch"}}], "ConsistentRead": True}
    with Stubber(dynamo) as stub, pytest.raises(TransientError, match="throttled"):
        stub.add_response("batch_get_item", {"Responses": {}, "UnprocessedKeys": {TABLE: keys}})
        on_dynamo(dynamo).batch()


@pytest.mark.parametrize(
    ("fault", "error", "done"),
    [
        (Fault("costs book", status=500), TransientError, False),
        (Fault("costs book"), UnansweredError, False),
        (Fault("costs book", after=True), UnansweredError, True),
    ],
)
def test_the_store_in_memory_fails_as_dynamodb_does(fault, error, done):
    store = InMemoryCosts()
    store.faults.plan(fault)
    with pytest.raises(error):
        store.book([], a_batch(), NOW)
    assert (store.batch() != CostBatch()) is done
