"""The store of what people ordered to be run, on DynamoDB (moto, ministack) and in memory."""

import threading
import zlib
from dataclasses import replace
from random import Random

import pytest

from autoscaler.adapters.stores import MOST_ORDER_BYTES, MOST_ORDER_BYTES_NEW, DynamoRunOrders
from autoscaler.domain.facts.started_builds import Part, RunOrder, Target, Try, TryState, Until, Verdict
from autoscaler.errors import ConfigError, ConflictError, TransientError, UnansweredError
from autoscaler_workbench.cli.demo import TABLE
from autoscaler_workbench.fakes.run_orders import InMemoryRunOrders
from autoscaler_workbench.fakes.world.faults import Fault
from contract.conftest import STORES, items, size_of

NOW = 1_800_000_000.0
DAY = 86_400
ITEM_BYTES = 400_000
OPEN, ENDED = "f#open-runs", "f#runs"


def a_target(value="gfx1030", **facts):
    return Target(**({"controller": "main", "pool": "gpu", "label": f"gpu && {value}", "value": value} | facts))


def a_try(try_id="r-1.1.1", **facts):
    return Try(id=try_id, **({"state": TryState.WRITTEN, "at": NOW} | facts))


def an_order(order_id="r-1", **facts):
    given = {
        "job": "größe 1/job",
        "parameters": (("REF", "main & 'so' 日本"), ("EMPTY", "")),
        "label_parameter": "AGENT_LABEL",
        "run_parameter": "AUTOSCALER_RUN_ID",
        "by": "alice",
        "reason": "is it the card?",
        "created_at": NOW,
        "parts": (Part(target=a_target()), Part(target=a_target("gfx90a"))),
    }
    return RunOrder(id=order_id, **(given | facts))


def everything(order_id="r-1"):
    """An order in which no field is as it is without being given."""
    lost = a_try(state=TryState.ENDED, item=7, run="job/a/7", node="n-1", began_at=NOW + 9, ended_at=NOW + 99, verdict=Verdict.LOST)
    part = Part(target=a_target(), tries=(lost, a_try("r-1.1.2", state=TryState.RUNNING, item=8, run="job/a/8", why="lost")))
    return an_order(
        order_id,
        parts=(part,),
        until=Until.FIRST_SUCCESS,
        resubmit=3,
        replace=2,
        vary="gpu",
        ranking=("gpu: the fastest so far", "cpu: never tried"),
        cancelled_by="bob",
    )


@pytest.fixture(params=STORES)
def store(request):
    """A store that other fleets of the same table must not change."""
    if request.param == "memory":
        return InMemoryRunOrders()
    client = request.getfixturevalue(request.param)
    other = DynamoRunOrders(lambda: client, TABLE, "another-fleet")
    other.add_order(an_order("of-another"))
    other.add_order(an_order("ended-of-another"))
    other.change_order(an_order("ended-of-another", ended_at=NOW))
    return DynamoRunOrders(lambda: client, TABLE, "f")


@pytest.fixture
def table(dynamo):
    return DynamoRunOrders(lambda: dynamo, TABLE, "f")


def end(store, order_id, at):
    store.add_order(an_order(order_id))
    return store.change_order(an_order(order_id, ended_at=at))


def test_an_order_is_read_back_as_it_was_written(store):
    assert (store.order("r-1"), store.open_orders(), store.ended(10)) == (None, (), ())
    store.add_order(everything())
    assert store.order("r-1") == everything()
    assert store.open_orders() == (everything(),)
    assert store.ended(10) == ()


def test_a_change_is_of_the_next_version_and_says_so(store):
    store.add_order(an_order())
    written = replace(an_order(), parts=(Part(target=a_target(), tries=(a_try(),)),))
    first = store.change_order(written)
    assert first == replace(written, version=1)
    second = store.change_order(replace(first, cancelled_by="bob"))
    assert store.order("r-1") == second == replace(first, cancelled_by="bob", version=2)
    assert store.open_orders() == (second,)


def test_of_two_orders_with_one_id_the_second_is_refused_though_the_first_has_ended(store):
    store.add_order(an_order())
    for _ in ("open", "ended"):
        with pytest.raises(ConflictError):
            store.add_order(an_order(by="bob"))
        assert store.order("r-1").by == "alice"
        if store.order("r-1").is_open:
            store.change_order(an_order(ended_at=NOW))
    assert store.open_orders() == ()


def test_of_two_who_change_an_order_only_the_first_does(store):
    store.add_order(an_order())
    store.change_order(an_order(reason="the first"))
    for late in (an_order(reason="the second"), an_order(ended_at=NOW), an_order("r-2")):
        with pytest.raises(ConflictError):
            store.change_order(late)
    assert (store.order("r-1").reason, store.order("r-1").version, store.order("r-2")) == ("the first", 1, None)
    assert store.ended(10) == ()


def test_of_many_who_change_an_order_at_once_one_does(store):
    store.add_order(an_order())
    told = []

    def change(number):
        try:
            told.append(store.change_order(an_order(reason=f"{number}", ended_at=NOW if number % 2 else None)))
        except ConflictError:
            told.append(None)

    threads = [threading.Thread(target=change, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == len(threads)
    [winner] = [order for order in told if order]
    assert store.order("r-1") == winner
    assert len(store.open_orders()) + len(store.ended(10)) == 1


def test_an_order_that_ends_is_open_no_more_and_stays_as_it_is(store):
    store.add_order(everything())
    over = store.change_order(replace(everything(), ended_at=NOW + 500.25))
    assert over == replace(everything(), ended_at=NOW + 500.25, version=1)
    assert (store.open_orders(), store.ended(10), store.order("r-1")) == ((), (over,), over)
    for again in (over, replace(over, ended_at=None), replace(over, version=0)):
        with pytest.raises(ConflictError):
            store.change_order(again)
    assert (store.open_orders(), store.ended(10)) == ((), (over,))


def test_open_orders_come_oldest_first_whatever_they_are_called(store):
    for number, order_id in enumerate(["b", "a", "c"]):
        store.add_order(an_order(order_id, created_at=NOW + number))
    store.add_order(an_order("0", created_at=NOW + 1))
    assert [order.id for order in store.open_orders()] == ["b", "0", "a", "c"]


def test_ended_orders_come_newest_first_and_no_more_than_are_asked_for(store):
    ends = {"b": 900_000_000.5, "a": NOW, "d": NOW + 10_000.0, "c": NOW + 0.75}
    for order_id, at in ends.items():
        end(store, order_id, at)
    assert [order.id for order in store.ended(10)] == ["d", "c", "a", "b"]
    assert [order.id for order in store.ended(2)] == ["d", "c"]
    assert store.ended(0) == ()


def test_more_orders_than_a_page_holds_are_all_read(store):
    """DynamoDB answers with 1 MB at most: some six of these."""
    large = tuple((f"P{number}", Random(number).randbytes(40_000).hex()) for number in range(4))
    for number in range(14):
        store.add_order(an_order(f"r-{number:02}", parameters=large, created_at=NOW + number))
    assert [order.id for order in store.open_orders()] == [f"r-{number:02}" for number in range(14)]
    for number in range(14):
        store.change_order(an_order(f"r-{number:02}", parameters=large, created_at=NOW + number, ended_at=NOW + number))
    assert [order.id for order in store.ended(12)] == [f"r-{number:02}" for number in range(13, 1, -1)]
    assert store.open_orders() == ()


def test_of_an_order_that_is_deleted_after_three_months_nothing_is_left_to_read(dynamo, table):
    """DynamoDB deletes one item after the other."""
    end(table, "r-1", NOW)
    [name] = [item["item"] for item in items(dynamo, ENDED) if item["item"]["S"].startswith("at#")]
    dynamo.delete_item(TableName=TABLE, Key={"fleet": {"S": ENDED}, "item": name})
    assert (table.order("r-1"), table.ended(10)) == (None, ())


def write_as_another_version(store):
    """Let an open order and an ended one be what another version wrote."""
    if isinstance(store, InMemoryRunOrders):
        store.unreadable = {"open", "ended"}
        return
    dynamo = store.client()
    for item in items(dynamo, OPEN) + items(dynamo, ENDED):
        if item["item"]["S"].endswith(("#open", "#ended")):
            dynamo.put_item(TableName=TABLE, Item={**item, "body": {"B": zlib.compress(b'{"id": "open", "until": "never"}')}})


def test_what_another_version_wrote_is_left_out_and_is_neither_lost_nor_taken_for_nothing(store):
    store.add_order(an_order("open"))
    store.add_order(an_order("r-1"))
    end(store, "first", NOW)
    end(store, "ended", NOW + 1)
    write_as_another_version(store)
    assert [order.id for order in store.open_orders()] == ["r-1"]
    assert [order.id for order in store.ended(1)] == ["first"], "as many as are asked for"
    for order_id in ("open", "ended"):
        with pytest.raises(TransientError, match="another version"):
            store.order(order_id)
        with pytest.raises(ConflictError):
            store.add_order(an_order(order_id))


@pytest.mark.parametrize("body", [{"S": "{}"}, {"B": b"not packed"}, {"B": zlib.compress(b"[]")}, {"B": zlib.compress(b"{")}, None])
def test_nothing_that_stands_in_an_item_stops_a_pass(dynamo, table, body):
    table.add_order(an_order())
    item = {"fleet": {"S": OPEN}, "item": {"S": "id#odd"}, "version": {"N": "3"}, **({"body": body} if body else {})}
    dynamo.put_item(TableName=TABLE, Item=item)
    assert table.open_orders() == (an_order(),)


def widest(parts=100, tries=10):
    """As many runs as there may be, each started again and again, with times and names that do not repeat themselves."""
    chance = Random(1)

    def one(part, number):
        at = NOW + chance.uniform(0, DAY)
        return a_try(
            f"0123456789abcdef0123456789abcdef.{part}.{number}",
            state=TryState.ENDED,
            at=at,
            item=chance.randrange(10**6),
            run=f"job/a folder of many words/job/project/job/main/{chance.randrange(10**5)}",
            node=f"i-{chance.randrange(16**17):017x}",
            began_at=at + chance.uniform(0, 999),
            ended_at=at + chance.uniform(999, 9999),
            verdict=chance.choice([Verdict.LOST, Verdict.FAILED, Verdict.ABORTED]),
            why="its agent's instance ended: EC2 took it back (spot)",
        )

    targets = [a_target(f"gfx{chance.randrange(900, 1200)}", pool=f"mxnetlinux-gpu-{number}") for number in range(parts)]
    return an_order(parts=tuple(Part(target=target, tries=tuple(one(at, n) for n in range(tries))) for at, target in enumerate(targets)))


def test_an_order_of_a_hundred_runs_that_were_each_started_ten_times_is_far_from_the_limit_of_an_item(dynamo, table):
    table.add_order(widest(tries=0))
    table.change_order(widest())
    [item] = items(dynamo, OPEN)
    assert size_of(item) < ITEM_BYTES / 3
    over = table.change_order(replace(widest(), version=1, ended_at=NOW))
    assert table.ended(1) == (over,)
    assert table.order("r-1") == over


def of_bytes(count):
    """An order that takes so many bytes, or few more."""
    return an_order(parameters=(("P", Random(1).randbytes(count).hex()),))


def test_an_order_that_is_too_large_is_refused_in_a_line_before_it_is_written(dynamo, table):
    with pytest.raises(ConfigError, match=r"order r-1: 2\d\d,\d\d\d bytes in 2 runs; an order may take 195,000: order less at once"):
        table.add_order(of_bytes(MOST_ORDER_BYTES_NEW))
    assert items(dynamo, OPEN) == []


def test_what_was_started_for_a_large_order_still_has_room(dynamo, table):
    table.add_order(of_bytes(MOST_ORDER_BYTES_NEW * 6 // 7))
    grown = replace(widest(), parameters=of_bytes(MOST_ORDER_BYTES_NEW * 6 // 7).parameters)
    over = table.change_order(replace(grown, ended_at=NOW))
    assert table.ended(1) == (over,)
    with pytest.raises(ConfigError):
        table.change_order(of_bytes(MOST_ORDER_BYTES))
    assert max(map(size_of, items(dynamo, ENDED))) < ITEM_BYTES


def test_a_write_that_the_sdk_sends_twice_is_one(table, listen):
    """Both carry one token; without it, the second would lose the race against the first."""
    sent = []
    listen("before-call.dynamodb.TransactWriteItems", lambda params, **_: sent.append(params["body"]))
    table.add_order(an_order())
    assert all(b"ClientRequestToken" in body for body in sent)
    assert len(sent) == 1


def test_the_store_in_memory_loses_answers_and_calls_as_planned():
    store = InMemoryRunOrders()
    store.faults.plan(Fault("run_orders add_order", after=True))
    with pytest.raises(UnansweredError):
        store.add_order(an_order())
    assert store.order("r-1") == an_order()
    store.faults.plan(Fault("run_orders change_order", status=500))
    with pytest.raises(TransientError):
        store.change_order(an_order(ended_at=NOW))
    assert store.order("r-1").is_open
