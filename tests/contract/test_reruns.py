"""The store of what was answered for lost builds, on DynamoDB (moto, ministack) and in memory."""

from dataclasses import replace

import pytest

from autoscaler.adapters.dynamodb import DynamoState
from autoscaler.adapters.stores import DynamoReruns
from autoscaler.domain.facts.started_builds import Rerun, RerunState, origin_key, rerun_key, times_of
from autoscaler.errors import ConflictError, UnansweredError
from autoscaler_workbench.cli.demo import TABLE
from autoscaler_workbench.fakes.state import InMemoryState
from autoscaler_workbench.fakes.world.faults import Fault
from contract.conftest import STORES

OWNER = "scale_down/1"


def a_rerun(**facts):
    given = {"state": RerunState.WRITTEN, "times": 1, "on_demand": False, "created_at": 1_800_000_000.0}
    return Rerun(controller="main", run="job/größe%201/7", began_at=1_799_999_000.4, **(given | facts))


@pytest.fixture(params=STORES)
def store(request):
    client = None if request.param == "memory" else request.getfixturevalue(request.param)
    state = DynamoState(lambda: client, TABLE, "f") if client else InMemoryState()
    state.acquire(OWNER, now=0.0, until=70.0)
    return DynamoReruns(lambda: client, TABLE, "f") if client else state


def test_an_answer_is_read_back_as_it_was_written(store):
    assert store.rerun(a_rerun().key) is None
    store.add_rerun(a_rerun(), holder=OWNER)
    assert store.rerun(a_rerun().key) == a_rerun()
    started = a_rerun(state=RerunState.STARTED, item=17, on_demand=True)
    store.change_rerun(started, expected=RerunState.WRITTEN)
    assert store.rerun(a_rerun().key) == started


def test_each_lost_build_is_answered_for_once(store):
    store.add_rerun(a_rerun(), holder=OWNER)
    with pytest.raises(ConflictError):
        store.add_rerun(a_rerun(times=2), holder=OWNER)
    store.add_rerun(replace(a_rerun(), began_at=1.0), holder=OWNER)  # another build of that number, of a job that was made anew
    assert store.rerun(a_rerun().key).times == 1


def test_what_is_settled_is_not_changed_again(store):
    store.add_rerun(a_rerun(state=RerunState.LEFT, why="a password"), holder=OWNER)
    with pytest.raises(ConflictError):
        store.change_rerun(a_rerun(state=RerunState.STARTED, item=1), expected=RerunState.WRITTEN)
    with pytest.raises(ConflictError):
        store.change_rerun(replace(a_rerun(), began_at=1.0), expected=RerunState.WRITTEN)


def test_whoever_has_lost_the_lease_answers_for_nothing(store):
    with pytest.raises(ConflictError):
        store.add_rerun(a_rerun(), holder="another")
    assert store.rerun(a_rerun().key) is None


def test_an_answer_that_another_version_wrote_is_left_as_it_is(dynamo):
    key = {"fleet": {"S": "f#reruns"}, "item": {"S": a_rerun().key}}
    dynamo.put_item(TableName=TABLE, Item={**key, "body": {"S": "{}"}, "state": {"S": "paused"}})
    assert DynamoReruns(lambda: dynamo, TABLE, "f").rerun(a_rerun().key).state is RerunState.LEFT


def test_a_lost_answer_of_the_state_says_so():
    state = InMemoryState()
    state.acquire(OWNER, now=0.0, until=70.0)
    state.faults.plan(Fault("state add_rerun", after=True))
    with pytest.raises(UnansweredError):
        state.add_rerun(a_rerun(), holder=OWNER)
    assert state.rerun(a_rerun().key) == a_rerun()


def test_the_parameter_of_a_build_tells_how_often_it_was_run_again():
    assert times_of(a_rerun(times=3).id) == 3
    assert a_rerun(times=2).id == "job/größe%201/7@1799999000~2"
    assert [times_of(text) for text in ("", "7", "main~1", "a@b~", "a@b~x", "a@b~²")] == [0] * 6
    assert rerun_key("main", "job/a/7", 12.6) == "main#job/a/7@13"
    assert origin_key("main", a_rerun(times=2).id) == a_rerun().key
    assert [origin_key("main", text) for text in ("", "main~1", f"{'a' * 1100}@1~1")] == [None] * 3
