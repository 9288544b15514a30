"""Queues that do not fit in one answer: what is read of them, in which order, and what follows from it."""

import json
from dataclasses import replace

import pytest

from autoscaler.adapters.jenkins import controller
from autoscaler.adapters.jenkins.parse import read_date, read_queue
from autoscaler.adapters.jenkins.session import Answer, TooLargeError
from autoscaler.domain import decide
from autoscaler.domain.commands import purge_for_a_person
from autoscaler.domain.facts.orders import Purge
from autoscaler.domain.facts.plan import Cordon, Launch, Stop, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.errors import NoAnswerError, TransientError
from autoscaler_workbench.fakes.http_fakes.jenkins.tree import parse_tree, prune
from support.builders import NOW, a_fleet, a_mark, a_memory, a_pool, a_snapshot, a_view, an_agent, an_item, cordoned
from support.decisions import steps_of
from support.told import explain

DATE = "Fri, 20 Nov 2026 21:28:40 GMT"
PIPELINE = "org.jenkinsci.plugins.workflow.support.steps.ExecutorStepExecution$PlaceholderTask"


def freestyle(number, label):
    return entry(
        number, {"_class": "hudson.model.FreeStyleProject", "name": f"j{number}", "url": f"job/j{number}/", "labelExpression": label}
    )


def step(number):
    return entry(number, {"_class": PIPELINE, "name": f"part of p #{number}", "url": f"job/p/{number}/"})


def entry(number, task, why="", **facts):
    why = why or f"There are no nodes with the label ‘label-{number}’"
    about = {"id": number, "why": why, "task": task, "buildable": True, "pending": False, "blocked": False}
    return about | {"inQueueSince": 1_795_209_000_000, "buildableStartMilliseconds": 1_795_209_000_000} | facts


class Queue:
    """A session that shows these items, next first; ``whole``: no answer with reasons and fields of jobs is small enough."""

    def __init__(self, *items, before_part=lambda _: None):
        self.items, self.asked, self.now, self.before_part = list(items), [], 0.0, before_part

    def allow_seconds(self, seconds):
        pass

    def get(self, path, tree, patience=None):
        assert path == "queue/api/json"
        self.asked.append(tree)
        if "why" in tree and "task" in tree:
            raise TooLargeError("Jenkins' answer is larger than 7 bytes")
        if "why" in tree:
            self.before_part(self)
        body = json.dumps(prune({"items": list(reversed(self.items))}, parse_tree(tree))).encode()
        if patience is not None and len(body) >= patience.most_bytes:
            raise TooLargeError("Jenkins' answer is too large")
        return Answer(200, {"X-Jenkins-Session": "s1", "Date": DATE}, body)


def read(session, until=15.0):
    answer = controller.read_whole_or_in_parts(session, lambda: session.now, until, with_parameters=False)
    items, aside = read_queue(answer.body, read_date(DATE), (), whys=answer.whys)
    assert aside == []
    assert answer.in_parts
    return items


def labels(items):
    return {item.id: item.asked_label for item in items if item.starved}


def small_parts(monkeypatch, items=2):
    """Parts of so many items."""
    size = len(json.dumps({"items": [{"id": 10, "why": step(10)["why"]}]}))  # of a part of one item
    monkeypatch.setattr(controller, "_PART_BYTES", items * size)
    monkeypatch.setattr(controller, "WHOLE_BYTES", 1)
    monkeypatch.setattr(controller, "_LEAST_ITEM_BYTES", size)


def test_no_reason_is_read_for_jobs_that_tell_their_label_or_that_they_have_none():
    session = Queue(freestyle(1, "cpu"), freestyle(2, None), freestyle(3, "gpu"))
    items = read(session)
    assert [(item.id, item.label, item.labelless, item.starved) for item in items] == [
        (1, "cpu", False, True),
        (2, None, True, True),
        (3, "gpu", False, True),
    ]
    assert len(session.asked) == 2


def test_the_reasons_of_pipelines_parts_are_read_in_parts_the_next_first(monkeypatch):
    small_parts(monkeypatch)
    session = Queue(*(step(number) for number in range(10, 20)))
    assert labels(read(session)) == {number: f"label-{number}" for number in range(10, 20)}
    parts = [tree.removeprefix("items[id,why]") for tree in session.asked[2:]]
    assert parts == ["{8,}", "{6,8}", "{4,6}", "{2,4}", "{0,2}"]


def test_who_is_not_free_to_run_needs_no_reason_and_is_no_demand():
    blocked, pending = entry(1, {"_class": PIPELINE}, buildable=False, blocked=True), entry(2, {"_class": PIPELINE}, pending=True)
    session = Queue(blocked, pending, freestyle(3, "cpu"))
    assert labels(read(session)) == {3: "cpu"}
    assert len(session.asked) == 2


def test_what_there_is_no_time_for_is_no_demand_in_this_look(monkeypatch):
    small_parts(monkeypatch)

    def takes_three_seconds(session):
        session.now += 3.0

    session = Queue(*(step(number) for number in range(10, 20)), before_part=takes_three_seconds)
    items = read(session)
    assert len(items) == 10
    assert labels(items) == {number: f"label-{number}" for number in (10, 11, 12, 13, 14, 15, 16, 17)}  # until 10 s are over


def test_a_part_that_is_not_answered_ends_the_reading_and_not_the_look(monkeypatch):
    small_parts(monkeypatch)

    def stops_answering(session):
        if len(session.asked) > 4:
            raise NoAnswerError("Jenkins was too slow")

    assert labels(read(Queue(*(step(number) for number in range(10, 20)), before_part=stops_answering))).keys() == {10, 11, 12, 13}


def test_a_controller_that_restarts_in_between_is_no_part():
    def starts(_session):
        raise TransientError("Jenkins is starting up (503)")

    with pytest.raises(TransientError):
        read(Queue(step(1), before_part=starts))


@pytest.mark.parametrize("moves", ["more come", "some leave", "the order changes"])
def test_an_item_is_there_once_whatever_happens_to_the_queue_between_the_parts(monkeypatch, moves):
    small_parts(monkeypatch)
    new = iter(range(100, 200))

    def change(session):
        if moves == "more come":
            session.items += [step(next(new)), step(next(new)), step(next(new))]
        elif moves == "some leave":
            del session.items[len(session.items) // 2]
        else:
            session.items = session.items[1:] + session.items[:1]

    session = Queue(*(step(number) for number in range(10, 30)), before_part=change)
    items = read(session)
    assert [item.id for item in items] == list(range(10, 30))
    told = labels(items)
    assert all(label == f"label-{number}" for number, label in told.items())
    if moves == "more come":
        assert len(told) == 20
    else:
        assert len(told) >= 10


def test_reasons_that_are_larger_than_expected_are_read_in_smaller_parts(monkeypatch):
    monkeypatch.setattr(controller, "_MOST_PART_BYTES", 400)
    monkeypatch.setattr(controller, "_PART_BYTES", 4000)
    session = Queue(*(step(number) for number in range(10, 14)))
    assert labels(read(session)).keys() == {10, 11, 12, 13}


def test_a_single_reason_that_is_too_large_is_left():
    session = Queue(entry(1, {"_class": PIPELINE}, why="x" * 20_000_000))
    assert labels(read(session)) == {}


@pytest.mark.parametrize("broken", [{"id": "x"}, {"id": 3, "task": 9, "buildable": True}, {"id": None, "buildable": True}], ids=repr)
def test_entries_that_are_not_understood_break_nothing(broken):
    answer = controller.read_whole_or_in_parts(Queue(broken, step(10)), lambda: 0.0, 15.0, with_parameters=False)
    items, _ = read_queue(answer.body, read_date(DATE), (), whys=answer.whys)
    assert labels(items) == {10: "label-10"}


# What follows.


def in_parts(*agents, items=(), **facts):
    view = a_view(*(node for _, node in agents), items=items, in_parts="larger than 7 bytes")
    return a_snapshot(view, records=tuple(record for record, _ in agents), memory=a_memory(**facts))


IDLE = {"idle_since": {"i-1": NOW - 90_000.0, "i-2": NOW - 90_000.0}}


def test_nothing_ends_on_a_controller_whose_queue_was_read_in_parts_and_why_says_so():
    record, node = an_agent(1)
    leaves = record, cordoned(node, a_mark())
    snapshot, fleet = in_parts(leaves, an_agent(2), **IDLE), a_fleet(a_pool("cpu"))
    plan = decide.scale_down(snapshot, fleet)
    assert [one for kind in (Cordon, Terminate, Stop) for one in steps_of(kind, plan)] == []
    [held] = [held for held in plan.held if held.reason is Reason.QUEUE_IN_PARTS]
    assert (held.controller, held.detail) == ("main", "larger than 7 bytes")
    assert any("nothing is cordoned, stopped or terminated there: larger than 7 bytes" in line for line in explain(snapshot, fleet, "cpu"))


def test_agents_are_launched_for_it_as_ever():
    snapshot = in_parts(items=(an_item(1, label="cpu"),))
    assert [step.count for step in steps_of(Launch, decide.scale_up(snapshot, a_fleet(a_pool("cpu"))))] == [1]


def test_no_item_of_it_is_cancelled_since_it_may_wait_for_a_node_by_name():
    order = Purge(label="cpu", controller=None, reason="r")
    snapshot = in_parts(items=(an_item(1, label="cpu"),))
    assert [held.reason for held in purge_for_a_person(snapshot, a_fleet(a_pool("cpu")), order).held] == [Reason.QUEUE_IN_PARTS]
    whole = replace(snapshot, controllers={"main": replace(snapshot.controllers["main"], in_parts="")})
    assert len(purge_for_a_person(whole, a_fleet(a_pool("cpu")), order).steps) == 1
