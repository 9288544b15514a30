"""The scenes in which functions are cut off. Each lives from its beginning to its end, and asserts there what must hold."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from autoscaler.domain.facts.started_builds import Until
from autoscaler_workbench.fakes.slots import InMemorySlots
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from autoscaler_workbench.simulate.drive import InMemory
from support import cutting, lost, ordering
from support.builders import a_fleet, a_pool
from support.busy import Hour, a_fleet_in_memory
from support.busy_shared import ASKS, ORDERS, SharedHour, a_shared_fleet
from support.cutting import Life, Scene
from support.deployed import essential_thresholds
from support.lost import RUN_ID
from support.timeline import Day
from support.worlds import a_world


def answer(name: str, part: int, parts: int) -> dict[str, Any]:
    """Try a part of a scene's cases, as a server of `support.forks`."""
    return cutting.try_out(SCENES[name], part, parts)


def hour(life: Life, hour: Callable[[Life], Hour]) -> None:
    """A busy hour: every function does all that it can do. Nothing is killed, nothing leaks, nothing is launched twice."""
    lived = hour(life)
    life.fleet, lived.around = lived.fleet, life.invoke
    lived.settle()
    lived.assert_whole()


def a_lost_build(life: Life, *declares: str) -> None:
    """The pass that answers for a lost build: the build runs again, once."""
    day = lost.a_day(faults=life)
    life.fleet = day.fleet
    job = lost.define(day, "job", *declares, seconds=600.0)
    _, instance = lost.running(day, job, given=dict.fromkeys(declares, "x") or None)
    day.world.ec2.end(instance)
    day.world.move_to(day.world.timeline.now + 60.0)
    assert day.fleet.state.memory.lost, "EC2's announcement is noted"
    cut_off_and_wait(life, day, day.fleet.scale_down)
    day.minutes(22)
    assert [build.ended for build in day.jenkins.builds_of["job"]] == [Ended.KILLED, Ended.FINISHED]
    assert lost.answers(day) == [("job/job/1", "started", 1)]


def a_minute_at_the_essential_level(life: Life) -> None:
    """A controller's disk is full and a job waits: people hear of the disk, and nothing is launched twice."""
    fleet = a_fleet(a_pool("cpu", executors=1, max_agents=5, queue_maturity_seconds=0.0))
    world = a_world(fleet)
    slots = InMemorySlots(after=world.timeline.after, chance=Random(3), faults=life)
    thresholds = essential_thresholds()
    life.fleet = functions = InMemory(world, fleet, life, look_every_seconds=20.0, slots=slots, thresholds=thresholds)
    slots.wake = lambda event: life.invoke("a look between two ticks", lambda: functions.wake_scale_up(event))
    world.controllers["main"].monitors.disk_bytes = 2**30
    for minute in range(9):
        world.move_to(world.timeline.now + 60.0)
        if minute == 2:
            world.controllers["main"].submit("job", "cpu", 36_000.0)
        for name in ("publish_metrics", "scale_up", "scale_down"):
            life.invoke(name if minute == 3 else f"{name} undisturbed", getattr(functions, name))
    subjects = [message.subject.removeprefix("[f] ") for message in functions.notifier.sent]
    assert 1 <= subjects.count("controller disk low: controller main") <= 2, subjects  # a message is sent again if its answer was lost
    assert [subject for subject in subjects if subject.startswith("autoscaler down")] == []
    assert len(world.alive()) == 1


def ordered_runs(life: Life) -> None:
    """A person orders two runs, and asks again with the same request."""
    day = ordering.a_day(faults=life)
    life.fleet = day.fleet
    ordering.define(day, seconds=300.0)
    ask = partial(ordering.order, day, ordering.asked(2, vary="pool"))
    cut_off_and_wait(life, day, ask)
    ask()
    assert_ended(day.minutes(25), Ended.FINISHED, Ended.FINISHED)


def a_lost_run(life: Life) -> None:
    """The pass that starts a run again whose machine is gone."""
    day = ordering.a_day(a_pool("cpu"), faults=life)
    life.fleet = day.fleet
    ordering.define(day, seconds=900.0)
    ordering.order(day, ordering.asked())
    day.minutes(8)
    day.world.ec2.end(ordering.instance_of(day, ordering.builds(day)[0]))
    day.minutes(1)
    cut_off_and_wait(life, day, day.fleet.scale_down)
    assert_ended(day.minutes(45), Ended.KILLED, Ended.FINISHED)


def a_first_success(life: Life) -> None:
    """The pass that ends the others of three runs once one of them has passed; one of them waits."""
    day = ordering.a_day(a_pool("cpu", max_agents=2), faults=life)
    life.fleet = day.fleet
    ordering.define(day, seconds=36_000.0)
    ordering.order(day, ordering.asked(3), until=Until.FIRST_SUCCESS)
    day.minutes(8)
    day.jenkins.end(ordering.builds(day)[0], succeeded=True)
    cut_off_and_wait(life, day, day.fleet.scale_down)
    assert_ended(day.minutes(8), Ended.FINISHED, Ended.ABORTED, Ended.ABORTED)


def cut_off_and_wait(life: Life, day: Day, act: Callable[[], object]) -> None:
    life.invoke("the pass", act)
    day.world.move_to(day.world.timeline.now + 120.0)  # its lease has expired


def assert_ended(day: Day, *ends: Ended) -> None:
    """Each run was started once and has ended, and the order has passed."""
    [kept] = day.fleet.run_orders.orders.values()
    assert [build.ended for build in ordering.builds(day)] == [*ends]
    assert ordering.told(day, kept.id).outcome == "passed"
    assert not day.jenkins.queue


# Invocations by hand, and those of agents, are alike but for when they happen: the first few are cut off.
BUSY = dict.fromkeys(("scale_up", "scale_down", "instance_events", "scale_up by hand", "scale_down by hand", "operate by hand"))
BUSY |= {"publish_metrics": 3, "register_agent": 3, "register_agent again": 3, "register_agent for a person": 2}
SHARED = {"scale_up": None, "scale_down": None, ASKS: 12, ORDERS: 2}
THE_PASS = {"the pass": 1}
SCENES = {
    "a busy hour": Scene(partial(hour, hour=lambda life: Hour(a_fleet_in_memory(life))), BUSY, most=20),
    "a busy hour of shared machines, hosts and runs": Scene(
        partial(hour, hour=lambda life: SharedHour(a_shared_fleet(life))), SHARED, most=10
    ),
    "a lost build without parameters": Scene(a_lost_build, THE_PASS, most=4),
    "a lost build with an id": Scene(lambda life: a_lost_build(life, RUN_ID), THE_PASS, most=4),
    "a lost build with another parameter": Scene(lambda life: a_lost_build(life, "REF"), THE_PASS, most=4),
    "a minute at the essential level": Scene(
        a_minute_at_the_essential_level, dict.fromkeys(("publish_metrics", "scale_up", "scale_down"), 1), most=6
    ),
    "ordered runs": Scene(ordered_runs, THE_PASS, most=4),
    "a lost run": Scene(a_lost_run, THE_PASS, most=4),
    "a first success": Scene(a_first_success, THE_PASS, most=4),
}
