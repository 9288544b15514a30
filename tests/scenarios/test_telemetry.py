"""Time-lines of what agents tell: a leak is known in time, a full cache is no lack of memory, and who tells nothing has no figure."""

import pytest

from autoscaler.control import operate
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.usage import GIB, Need, Size, Usage
from support.builders import a_pool
from support.deployed import essential_thresholds
from support.timeline import Day
from support.worlds import in_memory

THRESHOLDS = essential_thresholds()
MEMORY, DISK = "AgentMemoryAvailableBytes", "AgentDiskFreeBytes"


@pytest.fixture
def day():
    """A day at `MetricsLevel: essential` on which one agent with two executors builds, and tells what it uses."""
    fleet = in_memory(a_pool("cpu", executors=2, boot_seconds=60.0), thresholds=THRESHOLDS)
    fleet.world.usage = Usage(fleet.world.timeline, fleet.world.controllers)
    here = Day(fleet)
    here.queue(2, seconds=6 * 3600.0)
    return here.minutes(8)


def machine(day):
    [only] = day.world.alive()
    return only.id


def available(day):
    [node] = day.nodes()
    return day.world.usage.available(machine(day), [f"main/{node}/0"], day.world.timeline.now)


def measured(day, name):
    """The latest value of the pool's line in the log, and how many minutes ago; None: never."""
    lines = [facts for event, facts in day.fleet.logged if event == "pool_measured" and name in facts]
    return lines[-1][name] if lines else None


def messages(day, word):
    return [message for message in day.fleet.notifier.sent if word in message.text]


def test_what_is_available_is_what_the_machine_has_but_for_its_builds(day):
    day.minutes(10)
    assert measured(day, MEMORY) == pytest.approx(16 * GIB - GIB - 2 * GIB / 2, rel=0.1)
    assert messages(day, "memory") == []


def test_a_gigabyte_a_minute_of_leak_reaches_people_before_the_kernel_ends_a_build(day):
    day.minutes(10)
    day.world.usage.leaks[machine(day)] = day.world.timeline.now, GIB / 60.0
    while not messages(day, "memory") and available(day) > 0:
        day.minutes(1)
    [message] = messages(day, "memory")
    assert available(day) > 2 * GIB, "two minutes are left at least"
    assert "cpu" in message.text
    day.world.usage.leaks.clear()  # a person stopped the build
    day.minutes(4)
    assert measured(day, MEMORY) > 10 * GIB


def test_a_full_page_cache_rings_nothing(day):
    """Jenkins' own figure is what is free, and a healthy machine has none."""
    for node in day.jenkins.nodes.values():
        node.monitors.memory_bytes = 2**20
    day.minutes(30)
    assert messages(day, "memory") == []


def test_builds_that_take_much_memory_and_keep_it_ring_nothing(day):
    day.world.usage.needs |= {"job-0": Need(memory=6 * GIB), "job-1": Need(memory=6 * GIB)}
    day.minutes(30)
    assert measured(day, MEMORY) < 14 * GIB
    assert messages(day, "memory") == []


def test_a_report_that_is_missing_is_not_a_low_figure_and_an_old_one_is_none(day):
    day.world.usage.leaks[machine(day)] = day.world.timeline.now, 1.0
    day.minutes(10)
    day.world.usage.silent.add(machine(day))
    day.world.usage.leaks[machine(day)] = day.world.timeline.now, GIB
    day.minutes(13)
    day.fleet.logged.clear()
    day.minutes(3)
    assert measured(day, MEMORY) is None
    assert messages(day, "memory") == []


def test_of_who_tells_nothing_only_the_disk_that_jenkins_sees_counts(day):
    day.world.usage.silent.add(machine(day))
    day.minutes(12)
    day.fleet.logged.clear()
    [node] = [node for node in day.jenkins.nodes.values() if node.builds]
    node.monitors.disk_bytes = node.monitors.memory_bytes = 3 * 2**30
    day.minutes(5)
    assert (measured(day, DISK), measured(day, MEMORY)) == (3 * 2**30, None)
    assert len(messages(day, "disk")) == 1


def test_where_what_was_told_cannot_be_read_the_other_metrics_go_out(day):
    day.minutes(10).fleet.logged.clear()
    day.fleet.ports.telemetry.faults.plan(Fault("telemetry latest", times=2))
    day.minutes(2)
    assert [event for event, _ in day.fleet.logged if event == "telemetry_not_read"] == ["telemetry_not_read"] * 2
    assert (measured(day, "AgentsOnline"), measured(day, MEMORY)) == (1, None)


def test_the_worst_card_of_a_pool_is_told_only_where_there_are_cards(day):
    day.minutes(10)
    assert measured(day, "AgentGpuMemoryFreeBytes") is None
    day.world.usage.size = Size(gpu_memory=16 * GIB)
    day.world.usage.needs["job-0"] = Need(gpu_memory=5 * GIB)
    day.minutes(10)
    assert measured(day, "AgentGpuMemoryFreeBytes") == 11 * GIB


def test_people_are_shown_what_each_agent_told(day):
    day.minutes(10)
    asked = day.fleet.ports, day.fleet.fleet, day.fleet.invocation()
    [entry] = operate.agents(*asked)
    assert entry.telemetry.memory_available == pytest.approx(14 * GIB, rel=0.1)
    assert entry.telemetry.age_seconds <= 300.0
    facts = operate.why(*asked, entry.node)
    assert sum("memory available" in fact for fact in facts) == 1
    assert sum("has used" in fact for fact in facts) == 2


def test_no_decision_depends_on_what_agents_tell():
    """The same hours, once with agents that tell nothing, once with agents that tell of a machine without memory and disk."""
    days = [Day(in_memory(a_pool("cpu", executors=2, boot_seconds=60.0))) for _ in range(2)]
    told = Usage(days[1].world.timeline, days[1].world.controllers, size=Size(memory=1.0, disk=1.0))
    days[1].world.usage = told
    for day in days:
        for _ in range(3):
            day.queue(5, seconds=900.0)
            day.minutes(25)
        day.minutes(60)
    without, with_reports = ([(result.step, result.outcome) for report in day.fleet.reports for result in report.results] for day in days)
    assert days[1].fleet.state.reports
    assert with_reports == without
