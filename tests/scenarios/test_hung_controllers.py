"""One controller that hangs, or answers slowly, takes nothing from the others."""

import threading
from dataclasses import replace

import pytest

from autoscaler import bootstrap
from autoscaler.adapters.jenkins.controller import JenkinsController
from autoscaler.control import passes
from autoscaler.control.apply import apply
from autoscaler.control.observe import Invocation, look_at_controllers
from autoscaler.domain import decide
from autoscaler.domain.facts.plan import Cordon, Launch
from autoscaler.domain.facts.reasons import Reason
from autoscaler_workbench.fakes.world.faults import Fault
from support.builders import a_mark, a_pool
from support.timeline import Day
from support.worlds import a_world_node, in_memory

BOTH = ("main", "other")


@pytest.fixture
def day():
    return Day(in_memory(a_pool("cpu", controllers=BOTH, idle_seconds=120.0)), by_adapters=True)


@pytest.fixture
def looked(monkeypatch):
    """The controllers that were looked at, in turn."""
    names = []
    look = JenkinsController.look

    def looks(controller):
        names.append(controller.name)
        return look(controller)

    monkeypatch.setattr(JenkinsController, "look", looks)
    return names


def test_controllers_are_looked_at_side_by_side(day):
    """Each waits until the other is being looked at, too: one after another they would wait for ever."""
    both = threading.Barrier(2)

    class Waits:
        def __init__(self, controller):
            self.name, self._controller = controller.name, controller

        def look(self):
            both.wait(timeout=10)
            return self._controller.look()

    ports = day.fleet.ports
    ports = replace(ports, controllers=tuple(Waits(c) for c in ports.controllers), side_by_side=bootstrap.in_threads)
    views = look_at_controllers(ports)
    assert {name: view.problem for name, view in views.items()} == {"main": None, "other": None}


def test_a_look_that_breaks_in_a_thread_is_that_controller_s_own(day, monkeypatch):
    ports = replace(day.fleet.ports, side_by_side=bootstrap.in_threads)
    look = JenkinsController.look
    monkeypatch.setattr(JenkinsController, "look", lambda c: 1 / 0 if c.name == "main" else look(c))
    views = look_at_controllers(ports)
    assert "ZeroDivisionError" in views["main"].problem
    assert views["other"].complete


def test_the_second_look_of_scale_up_leaves_out_what_just_failed(day, looked):
    day.minutes(3)
    day.world.controllers["other"].up = "starting"
    day.queue(1)
    day.world.move_to(day.world.timeline.now + 60)
    looked.clear()
    reports = passes.scale_up(day.fleet.ports, day.fleet.fleet, day.fleet.invocation())
    assert [r.step.pool for report in reports for r in report.results if isinstance(r.step, Launch)] == ["cpu"]
    assert looked == ["main", "other", "main"]


def test_the_second_look_of_scale_down_leaves_out_what_just_failed(day, looked):
    day.minutes(3).queue(1, seconds=60.0)
    day.minutes(5)
    day.world.controllers["other"].up = "starting"
    while not day.done(Cordon):
        looked.clear()
        day.world.move_to(day.world.timeline.now + 60)
        day.fleet.scale_down()
    assert looked == ["main", "other", "main"]
    held = {h.reason for h in day.fleet.reports[-1].plan.held if h.controller == "other"}
    assert held == {Reason.INCOMPLETE}


def cordons(day, controllers):
    """A plan of three cordons on each of these controllers."""
    snapshot = passes.observe(day.fleet.ports, day.fleet.fleet, day.fleet.state.read(), day.fleet.invocation())
    steps = []
    for name in controllers:
        for number in range(3):
            day.world.controllers[name].add_node(a_world_node(f"{name}-{number}", "cpu"))
            mark = a_mark(pass_id="now")
            steps.append(Cordon(controller=name, pool="cpu", node=f"{name}-{number}", mark=mark, reason=Reason.SURPLUS, detail=""))
    return snapshot, replace(decide.scale_up(snapshot, day.fleet.fleet), steps=tuple(steps))


def outcomes(report):
    return [(r.step.controller, str(r.outcome)) for r in report.results]


def test_a_controller_that_does_not_answer_one_read_costs_no_more_time_in_this_pass(day):
    day.minutes(2)
    snapshot, plan = cordons(day, BOTH)
    day.fleet.faults.plan(Fault("jenkins computer"))
    report = apply(day.fleet.ports, day.fleet.fleet, snapshot, plan, Invocation(request_id="r", ends_at=day.world.timeline.now + 55))
    assert outcomes(report) == [("main", "failed"), ("main", "skipped"), ("main", "skipped"), *[("other", "done")] * 3]
    assert report.failed == {"main"}


def test_a_controller_whose_answers_are_slow_leaves_time_for_the_others(day):
    day.minutes(2)
    snapshot, plan = cordons(day, BOTH)
    slow = day.fleet.apis["main"].faults = type(day.fleet.faults)()
    slow.meanwhile = lambda _call: day.world.move_to(day.world.timeline.now + 4.0)
    report = apply(day.fleet.ports, day.fleet.fleet, snapshot, plan, Invocation(request_id="r", ends_at=day.world.timeline.now + 40))
    assert outcomes(report) == [("main", "done"), ("main", "skipped"), ("main", "skipped"), *[("other", "done")] * 3]
