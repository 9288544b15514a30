"""Time-lines of agents of one build that boot, are stopped before it, and are started for it."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import WarmPool
from autoscaler.domain.facts.plan import FinishStop, Launch, Start, Stop, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import RecordState
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from autoscaler_workbench.simulate.result import leaked_instances, leaked_nodes
from support.builders import a_pool, an_offering
from support.timeline import Day
from support.warm import starts_proven
from support.worlds import in_memory

OFFERING = an_offering(usd_per_hour=3.0, volume_usd_per_hour=0.01)
UNUSED = WarmPool(min_agents=2, max_agents=5, max_age_seconds=168 * 3600.0, unused_only=True)


def a_day(warm=UNUSED, **facts):
    limits = {key: facts.pop(key) for key in ("max_agents", "max_launches_per_hour") if key in facts}
    pool = {"offerings": (OFFERING,), "idle_seconds": 300.0, "warm_pool": warm, "max_builds": 1, "max_agents": 6} | facts
    return starts_proven(Day(in_memory(a_pool("cpu", **pool), **limits)))


def states(day):
    return sorted(instance.state for instance in day.world.alive())


def disks(day):
    """The builds that each disk has seen, by instance."""
    seen = {}
    for build in day.jenkins.builds:
        if build.node:
            seen.setdefault(build.node, []).append(build)
    return seen


def filled(**facts):
    """A day on which two agents have booted and were stopped, and nothing was built."""
    day = a_day(**facts)
    day.minutes(12)
    assert states(day) == ["stopped", "stopped"]
    return day


def test_a_pool_is_filled_without_any_node():
    day, nodes = a_day(), set()
    for _ in range(12):
        day.minutes(1)
        nodes |= set(day.nodes())
    assert (states(day), nodes, day.failed) == (["stopped", "stopped"], set(), 0)
    assert [(step.count, step.to_stop, step.reason) for step in day.done(Launch)] == [(2, True, Reason.FILLS_WARM_POOL)]
    assert (len(day.done(Stop)), len(day.done(FinishStop)), day.done(Terminate)) == (2, 2, [])
    assert {(record.state, record.node) for record in day.fleet.state.records.values()} == {(RecordState.STOPPED, None)}
    day.minutes(180)
    assert (states(day), len(day.done(Launch)), day.done(Terminate)) == (["stopped", "stopped"], 1, []), "they stay"


def test_a_job_gets_one_that_was_stopped_sooner_than_a_boot_takes_and_each_disk_sees_one_build():
    day = filled()
    first = {instance.id for instance in day.world.alive()}
    builds = day.queue(2, seconds=300.0)
    day.minutes(4)
    assert all(build.started_at is not None for build in builds)
    assert {day.world.node_of(instance).name for instance in day.world.alive() if instance.id in first} == {build.node for build in builds}
    later = day.queue(1, seconds=300.0)
    day.minutes(60)
    assert [build.ended for build in (*builds, *later)] == [Ended.FINISHED] * 3
    assert {len(builds) for builds in disks(day).values()} == {1}
    assert (states(day), first & {instance.id for instance in day.world.alive()}) == (["stopped", "stopped"], set()), "filled anew"
    assert (leaked_instances(day.world), leaked_nodes(day.world), day.failed) == ([], [], 0)


def test_an_agent_that_was_started_and_had_no_build_is_terminated_and_never_stopped_again():
    day = filled()
    build, *_ = day.queue(1, seconds=300.0)
    day.minutes(1)
    assert len(day.done(Start)) == 1
    day.jenkins.abort(build)
    day.world.ec2.refuse = "InsufficientInstanceCapacity", "so that no other one takes its place meanwhile"
    day.minutes(30)
    assert (len(day.done(Stop)), len(day.done(Terminate)), states(day)) == (2, 1, ["stopped"])


def test_a_job_that_comes_while_the_pool_is_filled_gets_an_agent_of_its_own():
    day = a_day()
    day.minutes(1)
    [build] = day.queue(1, seconds=300.0)
    day.minutes(8)
    assert build.started_at is not None
    assert [(step.count, step.to_stop) for step in day.done(Launch)] == [(2, True), (1, False)]
    day.minutes(30)
    assert (build.ended, states(day), {len(builds) for builds in disks(day).values()}) == (Ended.FINISHED, ["stopped", "stopped"], {1})


def test_what_ec2_does_not_stop_is_terminated_and_the_pool_is_not_filled_for_a_while():
    day = a_day(replace(UNUSED, min_agents=1))
    day.minutes(1)
    [instance] = day.world.alive()
    instance.stop_protected = True
    day.minutes(60)
    assert (states(day), len(day.done(Launch)), len(day.done(Terminate))) == ([], 1, 1)


def test_one_that_never_asks_is_a_boot_that_failed():
    day = a_day(replace(UNUSED, min_agents=1), boot_timeout_seconds=300.0)
    day.world.ec2.on_running = lambda _instance: None
    day.minutes(8)
    assert [step.reason for step in day.done(Terminate)] == [Reason.BOOT_TIMEOUT]
    assert day.fleet.state.memory.trials["boot/cpu"].failures >= 1


def test_a_new_version_is_tried_by_an_agent_that_connects_before_others_are_launched_to_be_stopped():
    day = filled()
    [build] = day.queue(1, seconds=60.0)
    day.minutes(20)
    assert (build.ended, states(day)) == (Ended.FINISHED, ["stopped", "stopped"])
    assert "cpu" in day.fleet.state.memory.proven, "one that was started has shown that version 1 boots"
    day.world.ec2.template_versions["cpu"] = 2
    before = len(day.done(Launch))
    day.fleet.fleet = replace(
        day.fleet.fleet, pools={"cpu": replace(day.fleet.fleet.pools["cpu"], warm_pool=replace(UNUSED, min_agents=3))}
    )
    day.minutes(40)
    launched = [(step.count, step.to_stop) for step in day.done(Launch)[before:]]
    assert launched == [(1, False), (1, True), (1, True), (2, True)], (
        "one shows that it boots, one that it starts; then the old ones are replaced"
    )
    assert (states(day), day.failed) == (["stopped"] * 3, 0)


@pytest.mark.parametrize("call", ["state change_record", "ec2 StopInstances"])
@pytest.mark.parametrize("after", [False, True], ids=["fails", "is done, and the answer is lost"])
def test_a_write_or_a_stop_that_fails_is_made_good_by_the_next_ask_or_pass(call, after):
    day = a_day(replace(UNUSED, min_agents=1))
    day.minutes(1)
    failed = []

    def fails_once(made):
        if made == call and not failed:
            failed.append(made)
            return Fault(made, after=after)
        return None

    day.fleet.faults.dice = fails_once
    day.minutes(15)
    assert (failed, states(day), day.nodes()) == ([call], ["stopped"], [])
    assert (day.done(Terminate), sum(step.count for step in day.done(Launch))) == ([], 1)


def test_one_whose_record_is_lost_becomes_an_agent_like_any_other():
    day = a_day(replace(UNUSED, min_agents=1))
    day.minutes(1)
    [instance] = day.world.alive()
    day.fleet.state.records.clear()
    day.fleet.state.intents.clear()
    day.minutes(6)
    assert day.nodes() == [f"cpu-{instance.id.removeprefix('i-')}"]
    day.minutes(30)
    assert (states(day), instance.alive(), day.nodes()) == (["stopped"], False, [])
