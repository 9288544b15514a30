"""The table of deadlines: one row fits each state of record, instance and node; every row is met, and says what it should."""

from dataclasses import replace
from itertools import product

import pytest

from autoscaler.domain.facts.memory import FreeNode, InState, Missing, Stuck
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.snapshot import InstanceState, OfflineCause, RecordState
from autoscaler.domain.learn import assess, watch
from autoscaler.domain.lifecycle import Announced, InstanceEvent, handle_event
from autoscaler.domain.report.overdue import left_seen
from autoscaler.domain.situation.states import OF_AGENTS, OF_OTHERS, state_of
from support.builders import (
    LONG_AGO,
    NOW,
    a_build,
    a_fleet,
    a_host,
    a_mark,
    a_memory,
    a_node,
    a_pool,
    a_pool_of_hosts,
    a_record,
    a_reservation,
    a_session,
    a_snapshot,
    a_view,
    an_instance,
    cordoned,
)
from support.remembered import tables, with_tables
from support.told import explain

FLEET = a_fleet(a_pool("cpu"), a_pool_of_hosts("rocm"), hosts=(a_host("rocm-1", "rocm"),))
NAME = "cpu-1"
ONLINE = a_node(NAME, "cpu")
BUSY = a_node(NAME, "cpu", builds=(a_build(),))
MARKED = {"offline": True, "temporarily_offline": True}
NODES = {
    "absent": None,
    "offline": replace(ONLINE, offline=True),
    "offline, busy": replace(BUSY, offline=True),
    "online": ONLINE,
    "busy": BUSY,
    "marked by us": cordoned(ONLINE),
    "marked by us, busy": cordoned(BUSY),
    "rotates": cordoned(ONLINE, a_mark(MarkClass.ROTATE)),
    "in quarantine": cordoned(ONLINE, a_mark(MarkClass.QUARANTINE)),
    "marked by a person": replace(ONLINE, **MARKED, cause=OfflineCause.PERSON, reason="disk check"),
    "marked by a person, busy": replace(BUSY, **MARKED, cause=OfflineCause.PERSON, reason="disk check"),
    "marked by a monitor": replace(ONLINE, **MARKED, cause=OfflineCause.OTHER, reason="disk low"),
}
STATES = [state for state in RecordState if state is not RecordState.GONE]
OURS = [state for state in InstanceState if state is not InstanceState.FOREIGN]  # what we did not launch is no agent
RESTARTED = a_session(since_at=NOW - 600.0, suspects={NAME: ("job/release/7/",)})
USELESS = FreeNode(since_at=NOW - 600.0, seen_at=NOW, looks=9, session="s1", labels=("cpu",), is_useless=True)
MISSING = {"i-1": Missing(since_at=LONG_AGO)}
AGES = {"young": NOW - 60.0, "old": LONG_AGO}


def look_at(state, fate, node, began_at, *, was_connected, complete=True, remembered=None, **facts):
    record = a_record("i-1", node=None if state is RecordState.REQUESTED else NAME, state=state, launched_at=began_at, **facts)
    memory = a_memory(
        connected=frozenset({record.life_id} if was_connected else ()), missing={"i-1": Missing(since_at=LONG_AGO)}, **remembered or {}
    )
    listed = (an_instance("i-1", state=fate),) if fate is not InstanceState.NOT_FOUND else ()
    fates = {} if listed else {"i-1": fate}
    view = a_view(*([node] if node else ()), problem=None if complete else "401")
    return a_snapshot(view, records=(record,), memory=memory, instances=listed, fates=fates)


def rows_met(**facts):
    met = set()
    for state, fate, node, began_at, was_connected in product(STATES, OURS, NODES.values(), AGES.values(), (False, True)):
        situation = assess(look_at(state, fate, node, began_at, was_connected=was_connected, **facts), FLEET)
        met |= {state_of(situation, agent).name for agent in situation.agents}
        for kind in Announced:  # whatever is announced, in whatever state
            list(handle_event(situation, InstanceEvent(kind=kind, instance_id="i-1")))
    return met


@pytest.mark.long
def test_one_row_fits_each_state_and_every_row_is_met():
    met = rows_met() | rows_met(lent_until=NOW + 60.0) | rows_met(interrupted_at=NOW - 60.0)
    met |= rows_met(reservation=a_reservation()) | rows_met(complete=False) | rows_met(remembered={"sessions": {"main": RESTARTED}})
    met |= rows_met(remembered={"stuck": {"i-1": Stuck(since_at=NOW, tried_at=NOW)}})
    met |= rows_met(remembered={"kept": frozenset({"i-1"})}) | rows_met(remembered={"free_nodes": {f"main/{NAME}": USELESS}})
    host = a_record("host-rocm-1", pool="rocm", node=None, state=RecordState.REQUESTED)
    situation = assess(a_snapshot(a_view(), records=(host,)), FLEET)
    met |= {state_of(situation, agent).name for agent in situation.agents if agent.record.is_host}
    ended = look_at(RecordState.REGISTERED, InstanceState.TERMINATED, ONLINE, LONG_AGO, was_connected=True)
    situation = assess(replace(ended, end_reasons={"i-1": "Client.UserInitiatedShutdown"}), FLEET)
    met |= {state_of(situation, agent).name for agent in situation.agents}
    rows = {row.name for row in OF_AGENTS}
    assert (met - rows, rows - met) == (set(), set())


@pytest.mark.parametrize("row", [*OF_AGENTS, *OF_OTHERS], ids=lambda row: row.name)
def test_each_agent_is_told_of_in_one_of_seven_words_and_nothing_else_is(row):
    assert (row.word is not None) == (row in OF_AGENTS)


@pytest.mark.parametrize("row", [*OF_AGENTS, *OF_OTHERS], ids=lambda row: row.name)
def test_a_row_has_words_for_everything_and_what_this_rule_tells_has_words_for_an_agent(row):
    assert all((row.recognised_by, row.ended_by, row.deadline, row.then, row.told))
    assert bool(row.says) == (row.told_after is not None)
    assert not row.daily or row.told_after is not None


def test_no_two_rows_have_one_name():
    names = [row.name for row in (*OF_AGENTS, *OF_OTHERS)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("node", "row"),
    [("busy", "works"), ("marked by a person", "offline-by-a-person"), ("marked by us, busy", "drains"), ("offline", "lost")],
)
def test_since_when_an_agent_is_in_its_row_is_remembered_until_the_row_changes(node, row):
    snapshot = look_at(RecordState.REGISTERED, InstanceState.RUNNING, NODES[node], LONG_AGO, was_connected=True)
    before = {"i-1": InState(state=row, since_at=NOW - 600.0)}
    known = replace(snapshot, memory=with_tables(snapshot.memory, states=before))
    assert tables(watch(assess(known, FLEET)).memory).states == before
    assert tables(watch(assess(snapshot, FLEET)).memory).states == {"i-1": InState(state=row, since_at=NOW)}


def test_what_ec2_or_jenkins_does_not_show_stays_in_its_row():
    before = {"i-1": InState(state="drains", since_at=NOW - 600.0)}
    for facts in ({"complete": False}, {"complete": True}):
        snapshot = look_at(RecordState.REGISTERED, InstanceState.RUNNING, ONLINE, LONG_AGO, was_connected=True, **facts)
        unseen = replace(snapshot, instances=()) if facts["complete"] else snapshot
        rows = tables(watch(assess(replace(unseen, memory=with_tables(snapshot.memory, states=before)), FLEET)).memory).states
        assert rows == before


def test_why_names_the_deadline_as_a_time():
    snapshot = look_at(RecordState.REGISTERED, InstanceState.RUNNING, NODES["marked by us, busy"], LONG_AGO, was_connected=True)
    snapshot = replace(snapshot, memory=with_tables(snapshot.memory, states={"i-1": InState(state="drains", since_at=NOW)}))
    [line] = [line for line in explain(snapshot, FLEET, "i-1") if line.startswith("drains since ")]
    assert "UTC at the latest; then: its runs are asked" in line


def test_an_agent_whose_controller_left_the_fleet_file_stops_no_pass_and_is_told_after_an_hour():
    record = a_record("i-9", controller="gone", node="cpu-9")
    snapshot = a_snapshot(a_view(), records=(record,))
    situation = watch(assess(snapshot, FLEET))
    assert tables(situation.memory).states == {"i-9": InState(state="left-the-file", since_at=NOW, pool="cpu")}
    memory = with_tables(snapshot.memory, states={"i-9": InState(state="left-the-file", since_at=NOW - 4000.0, pool="cpu")})
    told = dict(left_seen(watch(assess(replace(snapshot, memory=memory), FLEET))))
    assert [seen.title for seen in told.values()] == ["agents of cpu left the fleet file"]
