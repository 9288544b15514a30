"""Which items of an old Jenkins' queue are followed, and for how long."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.queued_items import QueuedItem
from autoscaler.domain.facts.reruns import ItemFacts, RerunPolicy
from autoscaler.domain.facts.runs import Item, ItemState, Parameter, Waiting
from autoscaler.domain.learn import assess
from autoscaler.domain.repair.dropped_items import to_follow
from support.builders import NOW, a_fleet, a_memory, a_pool, a_snapshot, a_view, an_item

FLEET = a_fleet(a_pool("cpu", rerun=RerunPolicy()))
OLD = (2, 504, 3)
VIEW = a_view(version=OLD)
KNOWN = QueuedItem(
    controller="main",
    item=7,
    job="job/a",
    run="",
    pool="cpu",
    session=VIEW.session,
    at=NOW - 90.0,
    seen_at=NOW - 60.0,
    parameters=(),
)
MISSED = replace(KNOWN, missed_at=NOW - 60.0, seen_at=NOW - 120.0)


def followed(known=None, *, items=(), view=VIEW, **facts):
    memory = a_memory(queued={known.key: known} if known else {})
    snapshot = a_snapshot(replace(view, items=items), memory=memory, queued={"main#7": ItemFacts(**facts)} if facts else {})
    return list(assess(snapshot, FLEET).memory.queued.values())


def test_an_item_is_followed_with_what_it_was_asked_for_with():
    asked = Waiting(job="job/a%20b", at=NOW - 5.0, upstream=("job/up/1",))
    [one] = followed(items=(an_item(7, label="cpu"),), waiting=asked)
    assert (one.path, one.at, one.seen_at, one.upstream, one.missed_at) == ("job/a%20b/item-7", NOW - 5.0, NOW, ("job/up/1",), None)


@pytest.mark.parametrize(("run_id", "count"), [("run-0a1b.2.1", 0), ("job/a/7@1800000000~1", 1), ("by hand", 1)])
def test_an_item_of_an_order_is_followed_by_its_order_alone(run_id, count):
    asked = Waiting(job="job/a", at=NOW - 5.0, parameters=(Parameter(name=FLEET.rerun_parameter, value=run_id),))
    assert len(followed(items=(an_item(7, label="cpu"),), waiting=asked)) == count


def test_an_item_of_which_nothing_is_told_is_not_followed():
    assert followed(items=(an_item(7, label="cpu"), an_item(8, label="cpu")), item=Item(state=ItemState.WAITING)) == []


def test_an_item_that_is_in_the_queue_again_was_not_dropped():
    assert followed(MISSED, items=(an_item(7, label="cpu"),)) == [replace(KNOWN, seen_at=NOW)]


@pytest.mark.parametrize("facts", [{}, {"item": Item(state=ItemState.WAITING)}], ids=["not asked", "it waits"])
def test_an_item_of_which_nothing_new_is_known_is_followed_on(facts):
    assert followed(KNOWN, **facts) == [KNOWN]


@pytest.mark.parametrize("state", [ItemState.STARTED, ItemState.CANCELLED])
@pytest.mark.parametrize("known", [KNOWN, MISSED])
def test_an_item_that_began_or_was_cancelled_is_forgotten(known, state):
    assert followed(known, item=Item(state=state)) == []


@pytest.mark.parametrize(("ago", "missed_at"), [(239.0, NOW), (240.0, None)])
def test_an_item_is_missed_within_the_time_for_which_jenkins_would_tell_of_it(ago, missed_at):
    told = followed(replace(KNOWN, seen_at=NOW - ago), item=Item(state=ItemState.UNKNOWN))
    assert [one.missed_at for one in told] == ([missed_at] if missed_at else [])


@pytest.mark.parametrize("ago", [3600.0, 86_400.0])
def test_a_controller_that_cannot_be_read_keeps_its_items_for_a_day(ago):
    known = replace(KNOWN, seen_at=NOW - ago)
    assert followed(known, view=replace(VIEW, problem="no answer")) == ([known] if ago < 86_400.0 else [])


@pytest.mark.parametrize("view", [replace(VIEW, session="another"), replace(VIEW, version=(2, 517))])
def test_another_session_or_a_newer_version_forgets_its_items(view):
    assert followed(MISSED, view=view, item=Item(state=ItemState.UNKNOWN)) == []


def test_what_was_not_understood_and_what_no_pool_serves_is_not_followed():
    items = an_item(-1, label="cpu"), an_item(1, label="other"), an_item(2, label="cpu")
    assert list(to_follow(replace(VIEW, items=items), FLEET, ())) == [2]
