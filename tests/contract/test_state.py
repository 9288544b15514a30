"""State store, lease and rate limiter, on DynamoDB (moto, ministack) and in memory."""

from dataclasses import replace
from random import Random

import pytest

from autoscaler.adapters.dynamodb import DynamoState
from autoscaler.domain.facts.job_settings import PluginWeight
from autoscaler.domain.facts.memory import Arrivals, Expected, Follower, LeftQueue, Memory, RunSeen, StageSeen, TrackRecord
from autoscaler.domain.facts.orders import Hold, Overrides, PoolOverride, Scope, TeamOverride, resume
from autoscaler.domain.facts.runs import BlockCounts, Blocks, CountedEnds, GoneBlock, PoolResults, ReadRun, SeenItems, Shown, Streak
from autoscaler.domain.facts.snapshot import IntentState
from autoscaler.domain.report.datum import Counted, PassNotes
from autoscaler.domain.report.told import Span, Told, Trouble
from autoscaler.errors import ConflictError
from autoscaler.ports import StoredState
from autoscaler_workbench.cli.demo import TABLE
from autoscaler_workbench.fakes.state import InMemoryState
from support.builders import a_learned, a_month, a_record, a_sighting, an_intent
from support.full_memory import FULL_MEMORY as MEMORY


def test_the_memory_that_is_tried_has_everything_that_a_memory_can_hold():
    empty = Memory()
    assert [name for name in Memory.__dataclass_fields__ if name != "version" and getattr(MEMORY, name) == getattr(empty, name)] == []


def add_intent(state, intent):
    assert state.acquire("a", now=0.0, until=70.0)
    state.add_intent(intent, holder="a")
    state.release("a")


def test_a_new_fleet_has_an_empty_book(state):
    assert state.read() == StoredState()


def test_what_is_written_is_read(state):
    record, intent = (
        a_record("i-1", node="cpu-1", most_usd_per_hour=4.5, version="7 with ami-1"),
        an_intent("l-1", count=3, version="7 with ami-2"),
    )
    state.add_record(record)
    add_intent(state, intent)
    stored = state.read()
    assert (stored.records, stored.intents) == ((record,), (intent,))


def test_an_intent_goes_forward_only_and_is_removed_when_settled(state):
    intent = an_intent("l-1", state=IntentState.WRITTEN)
    add_intent(state, intent)
    with pytest.raises(ConflictError):
        add_intent(state, intent)
    with pytest.raises(ConflictError):
        state.remove_intent(intent)
    state.change_intent(replace(intent, state=IntentState.SETTLED), expected=IntentState.WRITTEN)
    with pytest.raises(ConflictError):
        state.change_intent(replace(intent, state=IntentState.SENT), expected=IntentState.WRITTEN)
    state.remove_intent(intent)
    state.remove_intent(intent)
    assert state.read().intents == ()


def test_memory_comes_back_as_it_was_and_is_replaced_only_by_who_read_it(state):
    state.save_memory(MEMORY)
    read = state.read().memory
    assert replace(read, version=0) == MEMORY
    state.save_memory(replace(read, requests={}))
    with pytest.raises(ConflictError):
        state.save_memory(read)
    assert state.read().memory.requests == {}


def test_what_was_learned_is_kept_by_controller(state):
    learned = a_learned(
        samples={"cpu\njob": (1.0, 2.0)},
        running={"k": a_sighting(job="ü", pool="cpu", since_at=1.0, node="n", run="job/x/1")},
        streaks={"n": Streak(failures=2, since_at=1.0, jobs=("a", "ü"), pool="cpu", passed=("ü",))},
        succeeded_at={"cpu": 2.0},
        failing={"ü": "n", "b": ""},
        results={"cpu": PoolResults(succeeded=3.0, failed=1.5)},
        blocks=Blocks(
            running={"k": (Shown("ü", 7), Shown("b", 9))},
            gone=(GoneBlock(job="j", pool="cpu", node="n", run="job/j/1", since_at=1.0, gone_at=2.0, shown=(Shown("c"),)),),
            runs={"job/j/1": ReadRun(last=9, assigned=(7,))},
            counts=BlockCounts(assigned=2.0, ambiguous=1.0),
        ),
        builds={"n": 3},
        short_of_disk=frozenset({"i-1"}),
        ends=CountedEnds(day_at=1.0, ended=3, counted=2),
        waiting={"1\nj": 2.0},
        runs={"job/m/4": RunSeen(project="m", stage="cpu*2", since_at=1.0, left_at=3.0, items=(7,), builds={"k": "cpu"})},
        stages={"m\ncpu*2": StageSeen(followed=((60.0, {"gpu": 3}),), ended=(5.0,))},
        arrivals={
            "j": Arrivals(pool="cpu", times=(1.0, 2.0), count=2, expected=(Expected(at=9.0, period_seconds=8.0, share=0.5, kind="8 2/3"),))
        },
        schedules={"8 2/3": TrackRecord(true=1.0, false=2.0)},
        followers={"j": Follower(after="i", delays=(60.0, 90.0), missed=1)},
        weights={"j": 3},
        heavy_jobs={"j": PluginWeight(weight=4, read_at=5.0)},
        items=SeenItems(session="s", next=7, open=(4, 6)),
        label_sets={"1\nj": "cpu"},
        left_queue={"cpu": (LeftQueue(waited_seconds=60.0, node="n"),)},
        seen_at=3.0,
    )
    assert [
        name for name in a_learned().__dataclass_fields__ if name != "version" and getattr(learned, name) == getattr(a_learned(), name)
    ] == []
    state.save_learned("main", learned)
    state.save_learned("other-one", a_learned())
    stored = state.read()
    assert replace(stored.learned["main"], version=0) == learned
    with pytest.raises(ConflictError):
        state.save_learned("main", learned)


def test_orders_stand_until_they_are_replaced_and_the_second_of_two_writers_is_refused(state):
    hold = Hold(scope=Scope.LABEL, name="gpu && ü", since_at=1.0, until_at=2.0, by="ada", reason="ö", freeze=True)
    numbers = PoolOverride(pool="cpu", since_at=1.0, until_at=2.0, by="ada", reason="r", min_agents=1, max_agents=0, warm_executors=3)
    team = TeamOverride(
        team="ü", since_at=1.0, until_at=2.0, by="ada", reason="r", max_agents=1, max_launches_per_hour=2, max_usd_per_hour=0.5
    )
    state.save_overrides(Overrides(holds=(hold,), numbers=(numbers,), teams=(team,)))
    read = state.read().overrides
    assert (read.holds, read.numbers, read.teams) == ((hold,), (numbers,), (team,))
    state.save_overrides(replace(read, holds=()))
    with pytest.raises(ConflictError):
        state.save_overrides(read)
    assert state.read().overrides.holds == ()


def test_what_is_too_large_for_one_item_is_kept_whole_and_leaves_nothing_behind(state):
    chance = Random(1)
    running = {f"{chance.getrandbits(400):0100x}": a_sighting(job="j", pool="cpu", since_at=1.0) for _ in range(9000)}
    large = a_learned(running=running)
    state.save_learned("main", large)
    if isinstance(state, DynamoState):
        assert state.client().scan(TableName=TABLE, Select="COUNT")["Count"] > 3  # cut up
    once = state.read().learned["main"]
    assert once.running == running
    state.save_learned("main", replace(once, waiting={"1\nj": 2.0}))
    twice = state.read().learned["main"]
    assert (twice.running, twice.waiting) == (running, {"1\nj": 2.0})
    with pytest.raises(ConflictError):
        state.save_learned("main", once)
    assert state.read().learned["main"] == twice
    state.save_learned("main", replace(twice, running={}))
    assert state.read().learned["main"].running == {}
    if isinstance(state, DynamoState):
        kept = state.client().scan(TableName=TABLE)["Items"]
        assert [item["item"]["S"] for item in kept if item["fleet"]["S"] == "f"] == ["learned#main"]


def test_the_lease_is_held_by_one_until_it_is_given_up_or_expires(state):
    assert state.acquire("a", now=0.0, until=70.0)
    assert not state.acquire("b", now=69.0, until=139.0)
    assert state.acquire("a", now=69.0, until=139.0)
    state.release("b")
    assert not state.acquire("b", now=138.0, until=200.0)
    assert state.acquire("b", now=140.0, until=210.0)
    state.release("b")
    assert state.acquire("c", now=141.0, until=211.0)


def test_a_lease_that_a_clock_far_ahead_has_written_keeps_nobody_out(state):
    """Its holder was cut off, and no pass ran until the time that it had written was there."""
    assert state.acquire("ahead", now=7200.0, until=7270.0)
    assert state.acquire("right", now=60.0, until=130.0)
    state.release("ahead")
    assert not state.acquire("other", now=61.0, until=131.0)


def test_clocks_that_differ_by_no_more_than_two_minutes_do_not_take_the_lease_from_each_other(state):
    assert state.acquire("ahead", now=120.0, until=190.0)
    assert not state.acquire("right", now=0.0, until=70.0)


def test_the_lease_is_no_part_of_the_book(state):
    state.acquire("a", now=0.0, until=70.0)
    assert state.read() == StoredState()


def test_many_entries_are_read_whole(state):
    for number in range(120):
        state.add_record(a_record(f"i-{number}", launch="x" * 9000))
    assert len(state.read().records) == 120


def test_a_launch_is_written_down_only_by_who_still_holds_the_lease(state):
    state.acquire("a", now=0.0, until=70.0)
    with pytest.raises(ConflictError):
        state.add_intent(an_intent("l-1"), holder="b")
    state.acquire("b", now=71.0, until=141.0)
    with pytest.raises(ConflictError):
        state.add_intent(an_intent("l-1"), holder="a")
    state.release("b")
    with pytest.raises(ConflictError):
        state.add_intent(an_intent("l-1"), holder="b")
    assert state.read().intents == ()


def spoil(state, name, body='{"record": {"instance_id": 7}}'):
    """Let another version have written an item."""
    if isinstance(state, InMemoryState):
        state.unreadable.add(name)
        return
    key = {"fleet": {"S": "f"}, "item": {"S": name}}
    change = {"UpdateExpression": "SET body = :body", "ExpressionAttributeValues": {":body": {"S": body}}}
    state.client().update_item(TableName=TABLE, Key=key, **change)


@pytest.mark.parametrize("body", ['{"record": {"instance_id": 7}}', "no JSON", "{}", '{"record2": {}}'])
def test_a_record_that_cannot_be_read_is_named_and_the_others_are_read(state, body):
    state.add_record(a_record("i-1"))
    state.add_record(a_record("i-2"))
    state.save_memory(MEMORY)
    spoil(state, "record#i-1", body)
    stored = state.read()
    assert [record.instance_id for record in stored.records] == ["i-2"]
    assert stored.memory == replace(MEMORY, version=1)
    assert stored.unread == ("record#i-1",)
    with pytest.raises(ConflictError):
        state.add_record(a_record("i-1"))


def test_a_launch_that_cannot_be_read_is_named(state):
    assert state.acquire("me", now=1.0, until=100.0)
    state.add_intent(an_intent("l-1"), holder="me")
    spoil(state, "intent#l-1")
    assert (state.read().intents, state.read().unread) == ((), ("intent#l-1",))


def test_memory_that_cannot_be_read_is_replaced_at_the_next_save(state):
    state.save_memory(MEMORY)
    spoil(state, "memory", "{}")
    lost = state.read()
    assert (lost.memory, lost.unread) == (Memory(version=1), ("memory",))
    state.save_memory(replace(lost.memory, month=a_month(name="2027-01", usd=1.0, metered_at=1.0)))
    assert (state.read().memory.month.usd, state.read().unread) == (1.0, ())


def test_orders_that_cannot_be_read_hold_the_fleet_until_somebody_resumes(state):
    state.save_overrides(Overrides(holds=(Hold(scope=Scope.POOL, name="cpu", since_at=1.0, until_at=None, by="ada", reason="r"),)))
    spoil(state, "overrides")
    lost = state.read().overrides
    assert [(hold.scope, hold.until_at) for hold in lost.holds] == [(Scope.FLEET, None)]
    state.save_overrides(resume(lost, Scope.FLEET, ""))
    assert (state.read().overrides.holds, state.read().unread) == ((), ())


def test_what_was_learned_and_cannot_be_read_is_learned_anew(state):
    state.save_learned("main", a_learned(seen_at=5.0))
    spoil(state, "learned#main")
    lost = state.read()
    assert (lost.learned["main"], lost.unread) == (a_learned(version=1), ("learned#main",))
    state.save_learned("main", replace(lost.learned["main"], seen_at=6.0))
    assert state.read().learned["main"].seen_at == 6.0


def test_what_people_were_told_is_kept_and_one_of_two_writers_loses(state):
    told = Told(
        troubles={"breaker/cpu": Trouble(title="agents of cpu do not boot", since_at=1.0, seen_at=2.0, told_at=1.0)},
        spans={"problem/agents-stuck/": Span(since_at=1.0, seen_at=2.0)},
    )
    state.save_told(told)
    assert state.read().told == replace(told, version=1)
    with pytest.raises(ConflictError):
        state.save_told(told)


def test_the_notes_of_passes_are_kept_by_function_and_one_of_two_writers_loses(state):
    notes = PassNotes(completed=(1.0, 61.0), counts=(Counted(at=61.0, name="BootFailures", count=2, places=("pool cpu (i-1)",)),))
    assert state.pass_notes("scale_up") == PassNotes()
    state.save_pass_notes("scale_up", notes)
    assert state.pass_notes("scale_up") == replace(notes, version=1)
    assert state.read().passes == {"scale_up": replace(notes, version=1)}
    with pytest.raises(ConflictError):
        state.save_pass_notes("scale_up", notes)
    state.save_pass_notes("scale_down", PassNotes())
    assert state.read().passes.keys() == {"scale_up", "scale_down"}


def test_notes_that_cannot_be_read_are_named_and_replaced_at_the_next_save(state):
    state.save_pass_notes("scale_up", PassNotes())
    spoil(state, "passes#scale_up")
    assert state.read().unread == ("passes#scale_up",)
    assert state.read().passes == {}
    state.save_pass_notes("scale_up", replace(state.pass_notes("scale_up"), completed=(5.0,)))
    assert state.read().passes["scale_up"].completed == (5.0,)
