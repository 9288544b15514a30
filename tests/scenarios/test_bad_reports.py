"""Time-lines on which an agent reports what no machine can have: no function stops, and what was learned of many builds stands."""

from dataclasses import fields, replace

import pytest

from autoscaler.domain.facts.fleet import Machine
from autoscaler.domain.facts.job_settings import JobWeights, Source
from autoscaler.domain.facts.telemetry import BuildUse, GpuUse, Telemetry
from autoscaler.entry.function_url import read_telemetry
from autoscaler.errors import ConfigError
from autoscaler_workbench.fakes.world.usage import GIB, Need, Size, Usage
from support.builders import a_build_use, a_pool, a_telemetry, an_offering
from support.deployed import essential_thresholds
from support.timeline import Day
from support.worlds import in_memory

THRESHOLDS = essential_thresholds()
WRONG = [5e-324, -1.0, 1e18, 1e308, float("nan"), float("inf")]
FIGURES = [one.name for one in fields(Telemetry) if one.name not in {"gpus", "builds", "told_at"}]


def with_wrong(value):
    """A report for each of its figures, with that one wrong."""
    yield from (a_telemetry(**{name: value}) for name in FIGURES)
    for name in ("memory", "used", "use"):
        yield a_telemetry(gpus=(replace(GpuUse(memory=16 * GIB, used=GIB), **{name: value}),))
    for name in ("seconds", "memory", "cpu", "gpu_memory"):
        yield a_telemetry(builds=(replace(a_build_use(), gpu=True, **{name: value}),))


def a_day(**machine):
    """One agent of eight executors, on which weights are learned, and 12 builds of 2 GiB each that have ended there."""
    day = Day(in_memory(a_pool("cpu", executors=8, min_agents=1, max_agents=1, boot_seconds=60.0, **machine), thresholds=THRESHOLDS))
    day.fleet.fleet = replace(day.fleet.fleet, weights=JobWeights(by_pattern=(("*", Source.LEARNED),)))
    day.world.usage = Usage(day.world.timeline, day.world.controllers, needs={"lint": Need(memory=3 * GIB)}, size=Size(memory=16 * GIB))
    day.minutes(5)
    for _ in range(3):
        lint(day, 4)
    return day


def lint(day, count=1):
    for _ in range(count):
        day.jenkins.submit("lint", "cpu", 200.0)
    day.minutes(12)


def weights(day):
    [tracker] = day.fleet.jobs.trackers.values()
    return dict(tracker.weights)


def report(day, telemetry):
    """The only machine has reported this a moment ago."""
    [machine] = day.world.alive()
    day.world.usage.silent.add(machine.id)
    day.fleet.state.reports[machine.id] = replace(telemetry, told_at=day.world.timeline.now)


@pytest.fixture(scope="module")
def learned():
    return a_day()


@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_a_report_of_what_no_machine_can_have_is_refused_or_stops_no_function(learned, value):
    for telemetry in with_wrong(value):
        said = {one.name: getattr(telemetry, one.name) for one in fields(telemetry)}
        said |= {"gpus": [as_json(gpu) for gpu in telemetry.gpus], "builds": [as_json(build) for build in telemetry.builds]}
        try:
            read_telemetry(said)
        except ConfigError as refused:
            assert str(refused).isprintable()
        report(learned, telemetry)
        learned.minutes(1)
        assert learned.failed == 0
        assert weights(learned) == {"lint": 2}


def as_json(figures: BuildUse | GpuUse):
    return {one.name: getattr(figures, one.name) for one in fields(figures)}


def test_a_stored_report_of_what_no_machine_can_have_is_dropped_with_a_line_in_the_log(learned):
    report(learned, a_telemetry(memory_total=5e-324))
    learned.fleet.logged.clear()
    learned.minutes(1)
    dropped = [facts for event, facts in learned.fleet.logged if event == "telemetry_dropped"]
    assert [facts["machine"] for facts in dropped] == [machine.id for machine in learned.world.alive()]
    assert dropped[0]["problem"].startswith("memory_total: must be from ")
    assert [facts for event, facts in learned.fleet.logged if event == "pool_measured"]


@pytest.mark.parametrize("smaller", [5e-324, 1.6 * GIB, 64 * GIB], ids=str)
def test_one_report_of_another_machine_leaves_a_weight_that_many_builds_taught(smaller):
    day = a_day()
    assert weights(day) == {"lint": 2}
    day.world.usage.size = Size(memory=smaller, idle=0.0, cache=0.0)
    lint(day)
    day.world.usage.size = Size(memory=16 * GIB)
    assert weights(day) == {"lint": 2}
    day.minutes(20)
    lint(day)
    assert weights(day) == {"lint": 2}


def test_a_need_is_divided_by_the_memory_of_the_machine_that_a_build_would_run_on():
    """Reports are of 16 GiB. The pool's types have 8 and 64 GiB now: a build may run on the smaller."""
    day = a_day(offerings=(an_offering("m7i.4xlarge"), an_offering("c7i.xlarge")))
    machines = {"m7i.4xlarge": Machine(memory_gib=64.0, vcpu=16), "c7i.xlarge": Machine(memory_gib=8.0, vcpu=4)}
    day.fleet.fleet = replace(day.fleet.fleet, machines=machines)
    lint(day)
    assert weights(day) == {"lint": 4}, "3 GiB of 8, in eighths"
