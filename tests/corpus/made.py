"""Makes worlds for rows of the table of deadlines that recorded worlds do not show."""

from dataclasses import replace
from math import inf

import pytest

from autoscaler.domain.facts.snapshot import ControllerView, QueueItem, RecordState
from autoscaler_workbench.fakes.world.faults import Fault
from corpus.case import Asks, Case, Look
from corpus.harvest import Harvest, series, ticks
from support.builders import a_host, a_pool, a_pool_of_hosts
from support.timeline import Day
from support.worlds import in_memory

_LABELS = (
    *(
        "cpu",
        "cpu && cpu",
        "gpu || cpu",
        "gpu -> cpu",
        "cpu -> gpu",
        "cpu <-> cpu",
        "!gpu",
        "(cpu)",
    ),
    *(
        '"cpu',
        "cpu gpu",
        "cpu &&",
        "(cpu",
        "&& cpu",
        "cpu !gpu",
        "!!cpu",
        "gpu -> cpu -> a",
        "cpu)",
    ),
    *("", None),
)


def made() -> list[Case]:
    """A series of each."""
    harvest, cases = Harvest(), list[Case]()
    with pytest.MonkeyPatch.context() as patches:
        harvest.install(patches.setattr)
        for world in (a_host_has_no_power, ec2_forgets_what_ends, a_launch_has_no_answer):
            world()
            cases.append(series(world.__name__.replace("_", " "), ticks(harvest.take())))
    return [*cases, with_odd_labels(cases[-1])]


def a_host_has_no_power() -> None:
    day = Day(in_memory(a_pool_of_hosts(), hosts=(a_host(),))).minutes(3)
    day.queue(3, label="rocm", seconds=900.0)
    day.minutes(5)
    day.fleet.agents.power_fails(day.world.hosts["rocm-1"])
    day.minutes(25)
    day.fleet.agents.power_returns(day.world.hosts["rocm-1"])
    day.minutes(10)


def ec2_forgets_what_ends() -> None:
    """Once an agent is given up, no answer of EC2 has its instance any more."""
    day = Day(in_memory(a_pool("cpu", idle_seconds=300.0))).minutes(2)
    day.queue(1, seconds=300.0)
    while not any(one.state is RecordState.CONDEMNED for one in day.fleet.state.records.values()):
        day.minutes(1)
    for instance in day.world.ec2.instances.values():
        instance.visible_at = inf
    day.world.ec2.changes += 1
    day.minutes(15).hours(3)


def a_launch_has_no_answer() -> None:
    """EC2 has lost the token, and does not list what it launched."""
    day = Day(in_memory(a_pool("cpu"))).minutes(2)
    day.world.ec2.forgets_tokens = True
    day.world.ec2.lag_seconds = 900.0
    day.fleet.faults.plan(Fault("ec2 CreateFleet", times=12))
    day.queue(3)
    day.minutes(20)


def with_odd_labels(case: Case) -> Case:
    """All jobs that wait ask for one odd label after the other, some of which nobody can read."""
    waits = next(look for look in case.looks if look.asks is Asks.UP and _items(look))
    looks = [
        replace(waits, facts=replace(waits.facts, controllers=_asking(waits, label)))
        for label in _LABELS
    ]
    return Case(name=f"odd labels: {case.name}", looks=tuple(looks))


def _items(look: Look) -> list[QueueItem]:
    return [item for view in look.facts.controllers.values() for item in view.items]


def _asking(look: Look, label: str | None) -> dict[str, ControllerView]:
    return {
        name: replace(view, items=tuple(replace(item, label=label) for item in view.items))
        for name, view in look.facts.controllers.items()
    }
