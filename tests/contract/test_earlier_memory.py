"""The memory that 0.3.0 wrote: what it held stands with each thing, and its tables go with the first write."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from autoscaler.adapters.dynamodb import DynamoState
from autoscaler.adapters.table import body_of
from autoscaler.domain.facts.memory import Memory, Trial
from autoscaler_workbench.cli.demo import TABLE
from support.full_memory import FULL_MEMORY
from support.remembered import with_tables

# As 0.3.0 wrote a memory that holds something of everything.
WRITTEN = json.loads(Path(__file__).with_name("memory_of_0_3_0.json").read_text(encoding="utf-8"))
NAMES_OF_NOW = {"agents", "pools", "controllers", "fleet"}
# What 0.3.0 could not know, or does not count.
RATION = replace(FULL_MEMORY.controller("main").rations["cpu"], pools=(), outcomes={"": False}, wins=0, most=0, is_cut_short=False)
BOOTS = replace(FULL_MEMORY.trials["boot/cpu"], outcomes={}, wins=0, pauses=0)
CLOSED = {"pool/cpu": replace(FULL_MEMORY.trials["pool/cpu"], is_closed=True), "boot/cpu": BOOTS}
NEW = {"ending": {}, "beside": {}, "hand_outs": {}, "hosts_off": {}, "started": {}}
NEW |= {"rations": {"main/cpu": RATION}, "trials": {**FULL_MEMORY.trials, **CLOSED}}


@pytest.fixture
def book(dynamo):
    return DynamoState(lambda: dynamo, TABLE, "f")


def write(dynamo, memory):
    item = {
        "fleet": {"S": "f"},
        "item": {"S": "memory"},
        "version": {"N": "1"},
        "body": {"S": json.dumps({"memory": memory | {"version": 1}})},
    }
    dynamo.put_item(TableName=TABLE, Item=item)


def written(dynamo):
    item = dynamo.get_item(TableName=TABLE, Key={"fleet": {"S": "f"}, "item": {"S": "memory"}})["Item"]
    return json.loads(body_of(item["body"]))["memory"]


def test_all_that_0_3_0_remembered_is_read(dynamo, book):
    write(dynamo, WRITTEN)
    expected = with_tables(FULL_MEMORY, **NEW)
    stuck = replace(expected.agents["i-3"], stuck=replace(expected.agents["i-3"].stuck, why=""))  # 0.3.0 did not note why
    assert replace(book.read().memory, version=0) == replace(expected, agents={**expected.agents, "i-3": stuck}, version=0)


def test_its_tables_go_with_the_first_write_and_what_it_reads_on_the_way_back_stays(dynamo, book):
    """On the way back it must not take what they held long ago for two looks."""
    write(dynamo, WRITTEN)
    memory = book.read().memory
    book.save_memory(replace(memory, requests={"r-2": 2.0}))
    kept = {"month", "sessions", "gone", "lost", "reruns"}
    assert written(dynamo).keys() - {"version"} == NAMES_OF_NOW | kept | {"requests", "trials"}
    assert {name: written(dynamo)[name] for name in kept} == {name: WRITTEN[name] for name in kept}
    for scope, before in WRITTEN["trials"].items():
        trial = written(dynamo)["trials"][scope]
        assert trial | {name: value for name, value in before.items() if name != "launched_at"} == trial


@pytest.mark.parametrize(
    ("scope", "failures", "is_closed"),
    [("boot/cpu", 1, True), ("start/cpu", 2, False), ("start/cpu", 3, True), ("account", 1, True), ("account", 0, False)],
)
def test_what_0_3_0_tried_one_at_a_time_is_tried_so_until_it_is_won(dynamo, book, scope, failures, is_closed):
    trial = {"failures": failures, "since_at": 1.0, "failed_at": 2.0, "until_at": 4.0, "why": "403"}
    write(dynamo, {"trials": {scope: trial | {"launched_at": 1.5}}})
    assert book.read().memory.trials[scope] == Trial(**trial, is_closed=is_closed)


@pytest.mark.parametrize(("times", "is_closed"), [(2, False), (3, True)])
def test_a_step_that_0_3_0_saw_failing_is_tried_again_five_minutes_after_it_failed(dynamo, book, times, is_closed):
    write(dynamo, {"failing": {"stop main/i-1": {"times": times, "since_at": 1.0, "tried_at": 2.0, "why": "403"}}})
    step = Trial(failures=times, since_at=1.0, failed_at=2.0, until_at=302.0, why="403", is_closed=is_closed)
    assert book.read().memory.trials == {"step/stop main/i-1": step}


def test_a_version_that_0_3_0_saw_start_again_is_proven(dynamo, book):
    trial = {"failures": 0, "since_at": 1.0, "failed_at": 1.0, "until_at": 1.0, "why": ""}
    write(dynamo, {"trials": {"start/cpu": trial | {"version": "7"}}})
    memory = book.read().memory
    assert (memory.pool("cpu").started, memory.trials["start/cpu"].version) == ("7", "")


def test_a_step_of_this_version_that_failed_once_is_given_up_no_sooner_for_what_else_is_read(dynamo, book):
    """What a later release wrote beside it is read like what 0.3.0 wrote."""
    trial = {"failures": 1, "since_at": 1.0, "failed_at": 2.0, "until_at": 1.0, "why": "403", "of_later": 1}
    write(dynamo, {"trials": {"step/stop main/i-1": trial}})
    assert not book.read().memory.trials["step/stop main/i-1"].is_closed


def test_what_this_version_kept_before_the_way_back_is_not_taken_for_what_0_3_0_saw_since(dynamo, book):
    older = {"i-7": {"idle_since": 1.0}, "i-1": {"is_kept": True}}
    write(dynamo, {"idle_since": {"i-1": 5.0}, "agents": older})
    assert book.read().memory.agents == with_tables(Memory(), idle_since={"i-1": 5.0}).agents


def test_a_table_in_another_form_is_a_memory_that_cannot_be_read(dynamo, book):
    write(dynamo, {"windows": 5})
    read = book.read()
    assert (read.memory, read.unread) == (Memory(version=1), ("memory",))
