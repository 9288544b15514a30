"""Needs of jobs are learned from what agents tell: in the simulated world, where they are known, what is learned equals them."""

from collections import Counter
from dataclasses import replace
from random import Random
from types import SimpleNamespace

import pytest

from autoscaler.control.statistics import list_needs
from autoscaler.domain.facts.job_settings import JobWeights, Source
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from autoscaler_workbench.fakes.world.usage import GIB, Need, Size, Usage
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory

NEEDS = {
    "job-0": Need(memory=2 * GIB, hidden=GIB, cores=2.0),
    "job-1": Need(memory=6 * GIB, cores=0.5, gpu_memory=4 * GIB),
    "job-2": Need(memory=GIB / 4, cores=3.5),
}
NEAR = 0.04  # a step of a distribution is 3 %


def a_day(*, executors=1, size=None, **facts):
    fleet = in_memory(a_pool("cpu", executors=executors, boot_seconds=60.0, max_agents=3, **facts))
    fleet.world.usage = Usage(fleet.world.timeline, fleet.world.controllers, needs=dict(NEEDS), size=size or Size())
    return Day(fleet)


def work(day, rounds, *, chance=None):
    for _ in range(rounds):
        day.queue(3, seconds=chance.uniform(120.0, 900.0) if chance else 600.0)
        day.minutes(30)
    return day.minutes(15)


def needs(day, pattern="*"):
    return {entry.job: entry for entry in list_needs(day.fleet.ports, day.fleet.fleet, pattern, 100).needs}


@pytest.fixture(scope="module")
def alone():
    return work(a_day(size=Size(gpu_memory=16 * GIB)), 4, chance=Random(3))


def test_of_builds_that_are_alone_what_is_learned_is_exact(alone):
    for job, need in NEEDS.items():
        entry = needs(alone)[job]
        assert (entry.exact, entry.builds) == (True, 4), job
        assert entry.memory.p95 == pytest.approx(need.memory + need.hidden, rel=NEAR), job
        assert entry.cores.p50 == pytest.approx(need.cores, rel=0.15), job  # a sample more or less of a short build


def test_who_never_uses_the_gpu_of_its_machine_is_named(alone):
    found = needs(alone)
    assert {job for job, entry in found.items() if entry.never_gpu} == {"job-0", "job-2"}
    assert (found["job-1"].gpu_used, found["job-1"].gpu_memory.p95) == (1.0, pytest.approx(4 * GIB, rel=NEAR))


def test_nothing_is_heavy_that_has_the_machine_for_itself(alone):
    assert {entry.heavy for entry in needs(alone).values()} == {False}


def test_beside_others_it_is_what_its_own_processes_used_and_said_to_be_so():
    day = work(a_day(executors=4), 4)
    found = needs(day)
    assert {job: (entry.exact, entry.builds) for job, entry in found.items()} == dict.fromkeys(NEEDS, (False, 4))
    assert found["job-0"].memory.p95 == pytest.approx(2 * GIB, rel=NEAR), "what Docker has for it, nobody sees"
    assert {job for job, entry in found.items() if entry.heavy} == {"job-1"}, "6 of 16 GiB on a fourth of the machine"
    assert found["job-1"].gpu_used is None


def test_a_build_that_an_agent_tells_of_and_jenkins_does_not_show_teaches_nothing():
    day = a_day()
    day.queue(1, seconds=600.0)
    day.minutes(6)
    [build] = day.jenkins.builds
    other = replace(build, number=99)
    day.world.usage.controllers = {"main": SimpleNamespace(builds=[other])}  # what it tells of is no build of Jenkins'
    day.minutes(30)
    assert needs(day) == {}


def test_a_report_or_two_that_are_lost_cost_no_build():
    day = a_day()
    day.queue(3, seconds=1500.0)
    day.minutes(12)
    for machine in day.world.alive():
        day.world.usage.silent.add(machine.id)
    day.minutes(6)
    day.world.usage.silent.clear()
    day.minutes(30)
    assert {job: entry.builds for job, entry in needs(day).items()} == dict.fromkeys(NEEDS, 1)


def test_without_agents_that_tell_nothing_is_kept_and_no_more_is_read():
    day = a_day()
    day.world.usage = None
    work(day, 1)
    assert needs(day) == {}
    assert not any(tracker.uses for tracker in day.fleet.jobs.trackers.values())


def test_weights_that_are_to_be_learned_are_after_some_builds_and_then_agents_take_no_more_than_fits():
    day = a_day(executors=4, size=Size(memory=16 * GIB, cores=8.0))
    day.fleet.fleet = replace(day.fleet.fleet, weights=JobWeights(by_pattern=(("job-1", Source.LEARNED),)))
    day.world.usage.needs["job-1"] = Need(memory=7 * GIB, cores=0.5)
    work(day, 5)
    assert day.fleet.state.read().learned["main"].weights == {"job-1": 2}
    builds = [day.jenkins.submit("job-1", "cpu", 1800.0) for _ in range(5)]
    day.minutes(2)
    assert day.agents() == 3, "two builds fit on an agent: five of them need three agents, at once"
    for _ in range(60):
        day.minutes(1)
        running = Counter(build.node for build in builds if build.node and build.ended is None)
        assert max(running.values(), default=0) <= 2
    day.minutes(60)
    assert all(build.ended is Ended.FINISHED for build in builds)
