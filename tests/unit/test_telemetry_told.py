"""What people are told of an agent's machine: what is left, how old that is, what its builds use, and who tells nothing."""

from dataclasses import replace

import pytest

from autoscaler.domain.learn import assess
from autoscaler.domain.report.listing import figures_of, list_agents, silent, told_of
from autoscaler.domain.report.status import status_of
from autoscaler.domain.wording import size
from autoscaler_workbench.cli.answers import flat, told_uses
from support.builders import GIB, NOW, a_build, a_build_use, a_fleet, a_gpu_use, a_pool, a_telemetry, an_agent
from support.decisions import seen


def situation(*agents):
    return assess(seen(*(agents or (an_agent(),))), a_fleet(a_pool("cpu")))


@pytest.mark.parametrize(("amount", "text"), [(0, "0 MiB"), (5e8, "477 MiB"), (2**30, "1.0 GiB"), (12.34 * GIB, "12.3 GiB")])
def test_sizes_are_written_as_people_say_them(amount, text):
    assert size(amount) == text


def test_an_agent_is_listed_with_what_is_left_and_how_old_that_is():
    [entry] = list_agents(situation(), {"i-1": a_telemetry(told_at=NOW - 120.0, gpus=(a_gpu_use(),))})
    assert entry.telemetry.text() == (
        "12.0 GiB of 16.0 GiB memory available, disk 40.0 GiB free, GPU 15.0 GiB free, 40 % busy, 1.5 of 4 cores used; told 2 min ago"
    )


def test_memory_that_falls_is_told_as_it_will_be():
    told = figures_of(a_telemetry(memory_ahead=9 * GIB), NOW).text()
    assert told.startswith("12.0 GiB of 16.0 GiB memory available, 9.0 GiB in 3 min as it falls, disk")


def test_what_was_short_for_a_while_is_told():
    """A build that swaps, or took nearly all memory a minute ago, is why others were slow."""
    told = figures_of(a_telemetry(memory_least=GIB, swap_used=3 * GIB), NOW).text()
    assert told.startswith("12.0 GiB of 16.0 GiB memory available, 1.0 GiB at the least, 3.0 GiB swapped, disk")
    assert (
        figures_of(a_telemetry(memory_least=11.9 * GIB, swap_used=0.1 * GIB), NOW)
        .text()
        .startswith("12.0 GiB of 16.0 GiB memory available, disk")
    )


def test_an_agent_that_tells_nothing_is_listed_without():
    [entry] = list_agents(situation())
    assert (entry.telemetry, told_uses({"telemetry": None}), told_uses({})) == (None, "", "")


def test_a_program_is_given_each_figure():
    assert flat({"age_seconds": 3.0, "disk_free": None, "memory_total": 1.5}) == "age_seconds=3 memory_total=1.50"


@pytest.mark.parametrize(
    ("facts", "lines"),
    [
        ({}, ()),
        ({"memory_available": GIB}, ("cpu-1 is short of memory: 1.0 GiB of 16.0 GiB available",)),
        ({"memory_ahead": 0.0}, ("cpu-1 is short of memory: 0 MiB of 16.0 GiB available",)),
        ({"work_free": 2 * GIB}, ("cpu-1 is short of disk: 2.0 GiB free",)),
        ({"memory_available": GIB, "told_at": NOW - 700.0}, ()),
    ],
    ids=["well", "memory", "falling", "disk", "long ago"],
)
def test_the_status_names_agents_that_are_short_now(facts, lines):
    [pool] = status_of(situation(), {"i-1": a_telemetry(**facts)}).pools
    assert pool.short == lines


def test_why_tells_what_its_builds_use_and_how_that_is_known():
    agent = an_agent(builds=(a_build("a", key="cpu-1/0/job/a/7"), a_build("b", key="cpu-1/1/job/b/1")), executors=2)
    uses = (
        a_build_use("a", 7, memory=3 * GIB, cpu=1200.0),
        a_build_use("b", 1, executor="1", alone=False, gpu=True, gpu_memory=GIB),
        a_build_use("gone", 1),
    )
    _, first, second = told_of(situation(agent), "cpu-1", {"i-1": a_telemetry(builds=uses)})
    assert first == "a has used 3.0 GiB memory and 2.0 cores"
    assert second == "b has used 2.0 GiB memory and 1.5 cores, 1.0 GiB of a GPU, by its own processes, beside others"


def test_why_says_of_one_that_tells_nothing_that_it_does():
    [line] = told_of(situation(), "i-1", {})
    assert "tells nothing" in line
    assert list(told_of(situation(), "cpu-9", {})) == []


def test_those_that_are_connected_for_long_and_tell_nothing_are_named():
    record, node = an_agent(2)
    new = replace(record, registered_at=NOW - 60.0), node
    told = situation(an_agent(1), new, an_agent(3))
    assert silent(told, {"i-3": a_telemetry()}, 900.0) == (["cpu-1"], 2)
