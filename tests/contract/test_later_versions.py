"""What later versions of the autoscaler have written is kept, whatever this one knows of it: functions of both take turns."""

import json
import zlib
from dataclasses import dataclass, replace

import pytest
from pydantic import TypeAdapter

from autoscaler.adapters.dynamodb import _KINDS, DynamoState, _Entry
from autoscaler.adapters.stores import DynamoCosts, DynamoJobs, DynamoReruns, DynamoRunOrders, _Batch, _Month
from autoscaler.domain.facts.job_settings import CostBatch, MonthCosts
from autoscaler.domain.facts.job_stats import JobRow, JobTracker
from autoscaler.domain.facts.memory import Learned, Memory
from autoscaler.domain.facts.orders import Overrides
from autoscaler.domain.facts.snapshot import Binding, Intent, Record, RecordState
from autoscaler.domain.facts.started_builds import LostBuild, Rerun, RunOrder
from autoscaler.domain.report.datum import PassNotes
from autoscaler.domain.report.told import Told
from autoscaler_workbench.cli.demo import TABLE
from contract.conftest import items
from support.builders import a_reservation
from support.filled import NEWS, filled, with_news
from support.remembered import tables, with_tables

# What machines tell is replaced by what they tell next, and events are never changed.
NEVER_CHANGED = {"devices"}


def first(of, **changes):
    """A filled value that was never saved."""
    value = filled(of)
    never_saved = {name: 0 for name in ("version", "revision") if isinstance(getattr(value, name, ""), int)}
    return replace(value, **never_saved, **changes)


@dataclass
class Kind:
    """How one kind is saved first, read, and saved again with something that is known changed.

    ``holds``: what its body is; ``is_versioned``: it is replaced in the version that was read.
    """

    item: str
    holds: object
    save: object = None
    read: object = None
    change: object = None
    partition: str = "f"
    is_versioned: bool = True

    def again(self, store):
        self.change(store, self.read(store))


def add_intent(store, intent):
    store.acquire("me", now=0.0, until=9.0)
    store.add_intent(intent, holder="me")


def add_rerun(store, rerun):
    DynamoState(store.client, TABLE, "f").acquire("me", now=0.0, until=9.0)
    store.add_rerun(rerun, holder="me")


RECORD = first(Record, state=RecordState.REGISTERED, bindings=(Binding(controller="main", node="n", life=2),))
INTENT, MEMORY, LEARNED = first(Intent, id="l-1"), first(Memory), first(Learned)
ORDERS, TOLD, NOTES = first(Overrides), first(Told), first(PassNotes)
RERUN, ORDER, TRACKER = first(Rerun), first(RunOrder, id="o-1", ended_at=None), first(JobTracker)
ROW, MONTH, BATCH = first(JobRow), MonthCosts(name="2026-11"), CostBatch()
STATE = {
    "record": Kind(
        f"record#{RECORD.instance_id}",
        _Entry(record=RECORD),
        lambda s: s.add_record(RECORD),
        lambda s: s.record(RECORD.instance_id),
        lambda s, record: s.change_record(replace(record, trouble="403"), expected=record.state),
    ),
    "intent": Kind(
        "intent#l-1",
        _Entry(intent=INTENT),
        lambda s: add_intent(s, INTENT),
        lambda s: s.read().intents[0],
        lambda s, intent: s.change_intent(replace(intent, count=4), expected=intent.state),
        is_versioned=False,
    ),
    "memory": Kind(
        "memory",
        _Entry(memory=MEMORY),
        lambda s: s.save_memory(MEMORY),
        lambda s: s.read().memory,
        lambda s, memory: s.save_memory(with_tables(memory, kept=frozenset({"i-9"}))),
    ),
    "learned": Kind(
        "learned#main",
        _Entry(learned=LEARNED, name="main"),
        lambda s: s.save_learned("main", LEARNED),
        lambda s: s.read().learned["main"],
        lambda s, learned: s.save_learned("main", replace(learned, seen_at=99.0)),
    ),
    "overrides": Kind(
        "overrides", _Entry(overrides=ORDERS), lambda s: s.save_overrides(ORDERS), lambda s: s.read().overrides, DynamoState.save_overrides
    ),
    "told": Kind("told", _Entry(told=TOLD), lambda s: s.save_told(TOLD), lambda s: s.read().told, DynamoState.save_told),
    "passes": Kind(
        "passes#scale_up",
        _Entry(passes=NOTES, name="scale_up"),
        lambda s: s.save_pass_notes("scale_up", NOTES),
        lambda s: s.pass_notes("scale_up"),
        lambda s, notes: s.save_pass_notes("scale_up", notes),
    ),
}
# By the store that keeps them.
KINDS = {name: (DynamoState, kind) for name, kind in STATE.items()} | {
    "rerun": (
        DynamoReruns,
        Kind(
            RERUN.key,
            RERUN,
            lambda s: add_rerun(s, RERUN),
            lambda s: s.rerun(RERUN.key),
            lambda s, rerun: s.change_rerun(replace(rerun, why="another"), expected=RERUN.state),
            "f#reruns",
            is_versioned=False,
        ),
    ),
    "order of runs": (
        DynamoRunOrders,
        Kind(
            "id#o-1",
            ORDER,
            lambda s: s.add_order(ORDER),
            lambda s: s.order("o-1"),
            lambda s, order: s.change_order(replace(order, cancelled_by="bob")),
            "f#open-runs",
        ),
    ),
    "tracker": (
        DynamoJobs,
        Kind(
            "tracker#main",
            TRACKER,
            lambda s: s.save_tracker("main", TRACKER, 0.0),
            lambda s: s.tracker("main"),
            lambda s, tracker: s.save_tracker("main", tracker, 1.0),
            "f#jobs",
        ),
    ),
    "rows": (
        DynamoJobs,
        Kind(
            None,
            [ROW],
            lambda s: s.save_rows([ROW], 0.0),
            lambda s: s.all_rows(),
            lambda s, rows: s.save_rows([replace(row, seen_at=row.seen_at + 1.0) for row in rows], 1.0),
            "f#jobs",
            is_versioned=False,  # the store reads a shard itself before it writes it
        ),
    ),
    "batch of costs": (
        DynamoCosts,
        Kind(
            "batch",
            filled(_Batch),
            lambda s: s.book([], BATCH, 0.0),
            lambda s: s.batch(),
            lambda s, batch: s.book([], replace(batch, seen_at=9.0), 1.0),
            "f#costs",
        ),
    ),
    "month of costs": (
        DynamoCosts,
        Kind(
            "month#2026-11",
            filled(_Month),
            lambda s: s.book([MONTH], s.batch(), 0.0),
            lambda s: s.month("2026-11"),
            lambda s, month: s.book([replace(month, metered_usd=9.0)], s.batch(), 1.0),
            "f#costs",
        ),
    ),
}


def body_of(item):
    body = item["body"]
    return json.loads(zlib.decompress(body["B"]) if "B" in body else body["S"])


def with_body(item, raw):
    text = json.dumps(raw).encode()
    return item | {"body": {"B": zlib.compress(text)} if "B" in item["body"] else {"S": text.decode()}}


def stored(client, kind):
    [item] = [item for item in items(client, kind.partition) if kind.item in (None, item["item"]["S"])]
    return item


def store_of(store, client):
    return store(lambda: client, TABLE, "f")


def test_each_kind_that_is_stored_and_changed_is_tried():
    assert {*KINDS} & _KINDS == _KINDS - NEVER_CHANGED


@pytest.mark.parametrize("name", KINDS)
def test_what_a_later_version_wrote_is_written_back_at_every_level(dynamo, name):
    store, kind = KINDS[name]
    kind.save(store_of(store, dynamo))
    count = write_news(dynamo, kind)
    saving = store_of(store, dynamo)
    for _ in range(2):
        kind.again(saving)
        assert json.dumps(body_of(stored(dynamo, kind))).count(NEWS) == count > 0


def write_news(client, kind):
    """Let a later version write what is stored, with something new in each object; count these."""
    item = stored(client, kind)
    is_as_saved = not isinstance(kind.holds, _Batch | _Month)  # costs are not written as they are held
    saved = body_of(item) if is_as_saved else json.loads(TypeAdapter(type(kind.holds)).dump_json(kind.holds))
    raw, count = with_news(kind.holds, saved)
    client.put_item(TableName=TABLE, Item=with_body(item, raw) | {"later": {"S": "version"}})
    return count


@pytest.mark.parametrize("name", ["record", "memory"])
def test_it_is_kept_by_a_process_that_writes_what_another_one_has_read(dynamo, name):
    store, kind = KINDS[name]
    kind.save(store_of(store, dynamo))
    count, read = write_news(dynamo, kind), store_of(store, dynamo).read()
    writing = store_of(store, dynamo)
    if name == "record":
        writing.change_record(read.records[0], expected=RECORD.state)
    else:
        writing.save_memory(read.memory)
    item = stored(dynamo, kind)
    assert json.dumps(body_of(item)).count(NEWS) == count
    assert item["later"] == {"S": "version"}


def test_it_goes_with_what_it_was_written_beside(dynamo):
    """What leaves a list, or moves to another one, takes it along; what takes its place has none of it."""
    bindings = (Binding(controller="main", node="n"),)
    devices_for = (a_reservation("bob"), a_reservation("eve"))
    kind = Kind(f"record#{RECORD.instance_id}", _Entry(record=replace(RECORD, bindings=bindings, leaves=(), devices_for=devices_for)))
    state = store_of(DynamoState, dynamo)
    state.add_record(kind.holds.record)
    write_news(dynamo, kind)
    [record] = state.read().records
    later = tuple(replace(reservation, until_at=1.0) for reservation in reversed(record.devices_for))
    state.change_record(
        replace(record, bindings=(Binding(controller="other"),), leaves=record.bindings, devices_for=(*later[:1], a_reservation("zoe"))),
        expected=record.state,
    )
    written = body_of(stored(dynamo, kind))["record"]
    assert [NEWS in part for part in written["bindings"] + written["leaves"]] == [False, True]
    assert [(part["person"], NEWS in part) for part in written["devices_for"]] == [("eve", True), ("zoe", False)]


def test_an_entry_that_is_taken_out_stays_out_though_a_later_version_wrote_into_it(dynamo):
    kind = Kind("memory", _Entry(memory=replace(MEMORY, lost={"main/a": filled(LostBuild), "main/b": filled(LostBuild)})))
    state = store_of(DynamoState, dynamo)
    state.save_memory(kind.holds.memory)
    write_news(dynamo, kind)
    memory = state.read().memory
    state.save_memory(replace(memory, lost={"main/b": memory.lost["main/b"]}))
    written = body_of(stored(dynamo, kind))["memory"]
    assert ([*written["lost"]], NEWS in written["lost"]["main/b"], NEWS in written) == (["main/b"], True, True)


def test_entries_of_the_memory_that_cannot_be_read_are_named_and_kept_and_the_rest_is_used(dynamo):
    memory = with_tables(MEMORY, lost={"main/a": filled(LostBuild), "main/b": filled(LostBuild)}, months=(), kept=frozenset({"i-7"}))
    kind = Kind("memory", _Entry(memory=memory))
    store_of(DynamoState, dynamo).save_memory(memory)
    item = stored(dynamo, kind)
    raw = body_of(item)
    raw["memory"]["lost"]["main/a"] = later = {"moved_to": "somewhere"}
    raw["memory"]["fleet"]["months"] = months = {"2027-01": {"usd": 3.0}}
    raw["memory"]["trials"]["x"]["failures"] = "very many"
    dynamo.put_item(TableName=TABLE, Item=with_body(item, raw))
    for kept in ("i-8", "i-9"):
        state = store_of(DynamoState, dynamo)
        read = state.read()
        assert read.unread == ("memory fleet/months", "memory lost/main/a", "memory trials/x")
        assert ([*read.memory.lost], read.memory.fleet.months, [*read.memory.trials], tables(read.memory).boots) == (
            ["main/b"],
            (),
            [],
            tables(memory).boots,
        )
        state.save_memory(with_tables(read.memory, kept=frozenset({kept})))
        state.save_memory(with_tables(read.memory, kept=frozenset({kept}), version=read.memory.version + 1))
        written = body_of(stored(dynamo, kind))["memory"]
        assert (written["lost"]["main/a"], written["fleet"]["months"]) == (later, months)
        assert [name for name, past in written["agents"].items() if past.get("is_kept")] == [kept]
        assert written["trials"]["x"]["failures"] == "very many"
    state.save_memory(replace(state.read().memory, lost={"main/a": filled(LostBuild)}))  # it was lost once more
    assert body_of(stored(dynamo, kind))["memory"]["lost"]["main/a"] != later


def test_a_memory_of_which_nothing_can_be_read_begins_anew(dynamo):
    kind = Kind("memory", None)
    store_of(DynamoState, dynamo).save_memory(MEMORY)
    item = stored(dynamo, kind)
    for raw in ({"memory": {**body_of(item)["memory"], "version": "later"}}, {"memory": []}, [], {}):
        dynamo.put_item(TableName=TABLE, Item=with_body(item, raw))
        read = store_of(DynamoState, dynamo).read()
        assert (read.unread, read.memory) == (("memory",), Memory(version=1))
