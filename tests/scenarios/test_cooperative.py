"""Time-lines of machines that serve several controllers at once: a node on each, and an end only once all of them are drained."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import Share
from autoscaler.domain.facts.plan import Cordon, Launch, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import RecordState
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from autoscaler_workbench.simulate.result import leaked_instances, leaked_nodes
from support.builders import a_host, a_pool, a_pool_of_hosts
from support.left_keys import deploy
from support.reserving import reserve
from support.timeline import Day
from support.worlds import in_memory

BOTH = {"controllers": ("main", "other"), "share": Share.COOPERATIVE}


def a_day(hosts=(), **facts):
    given = BOTH | {"executors": 2, "max_agents": 2, "idle_seconds": 600.0} | facts
    pool = a_pool_of_hosts("gpu", **given) if hosts else a_pool("gpu", **given)
    day = Day(in_memory(pool, hosts=hosts))
    day.other = day.world.controllers["other"]
    return day.minutes(3)


def a_shared_day(**facts):
    """A day on which one machine was launched for a job of the first controller, and is idle on both."""
    day = a_day(**facts)
    [first] = day.queue(1, label="gpu", seconds=60.0)
    day.minutes(8)
    assert first.ended is Ended.FINISHED
    return day


def elsewhere(day, count=1, seconds=300.0):
    return [day.other.submit(f"theirs-{n}", "gpu", seconds) for n in range(count)]


def nodes_of(controller):
    return [name for name in controller.nodes if not name.startswith("autoscaler-beacon")]


def states(day):
    return sorted(str(record.state) for record in day.fleet.state.read().records)


def test_one_machine_is_a_node_on_both_and_takes_jobs_of_both():
    day = a_shared_day()
    assert nodes_of(day.jenkins) == nodes_of(day.other) != []
    [build] = elsewhere(day)
    day.minutes(2)
    assert build.started_at is not None
    assert build.started_at - build.queued_at < 60.0
    assert (len(day.done(Launch)), day.agents(), day.failed) == (1, 1, 0)


def test_idle_on_both_for_long_enough_it_goes_and_leaves_nothing():
    day = a_shared_day()
    day.minutes(60)
    assert (day.agents(), nodes_of(day.jenkins), nodes_of(day.other), states(day)) == (0, [], [], [])
    assert (leaked_instances(day.world), leaked_nodes(day.world), day.failed) == ([], [], 0)


def test_what_a_person_had_for_themselves_goes_though_it_serves_another_controller_by_now():
    day = a_day(share=Share.NONE, max_agents=1)
    reserve(day, "gpu")
    day.minutes(1)
    fleet = day.fleet.fleet
    deploy(day.fleet, replace(fleet, pools={"gpu": replace(fleet.pools["gpu"], share=Share.COOPERATIVE)}))
    elsewhere(day.minutes(6))
    [build] = day.queue(1, label="gpu", seconds=60.0)
    day.minutes(120)
    assert build.ended is Ended.FINISHED


def test_busy_on_one_it_stays_however_long_it_is_idle_on_the_other():
    day = a_shared_day()
    [build] = elsewhere(day, seconds=7200.0)
    day.minutes(90)
    assert (build.ended, day.agents()) == (None, 1)
    day.minutes(90)
    assert (build.ended, day.agents(), day.failed) == (Ended.FINISHED, 0, 0)


def test_a_build_that_slips_in_on_the_other_side_runs_to_its_end():
    """Somebody brings its node online there just when the machine is given up."""
    day = a_shared_day()
    [name] = nodes_of(day.jenkins)
    slipped = []

    def meanwhile(what):
        nodes = [controller.nodes.get(name) for controller in (day.jenkins, day.other)]
        if what == "state change_record" and not slipped and all(node and node.temporarily_offline for node in nodes):
            slipped.extend(elsewhere(day, seconds=1200.0))
            day.other.toggle(name, "", "anna")
            assert slipped[0].node == name

    day.fleet.faults.meanwhile = meanwhile
    day.minutes(90)
    assert [build.ended for build in slipped] == [Ended.FINISHED]
    assert day.failed == 0


def test_as_many_builds_as_it_has_executors_run_on_both_sides_together_before_another_is_launched():
    day = a_shared_day()
    day.queue(2, label="gpu", seconds=1800.0)
    day.minutes(2)
    elsewhere(day, 2, seconds=1800.0)
    day.minutes(8)
    assert len(day.done(Launch)) >= 1
    assert day.agents() in {1, 2}


def test_drained_for_good_on_one_side_it_takes_no_builds_on_the_other():
    day = a_shared_day()
    [long] = elsewhere(day, seconds=1800.0)
    day.minutes(2)
    [instance] = day.world.alive()
    day.world.ec2.interrupt(instance)
    instance.interrupted = True
    assert day.jenkins.nodes[nodes_of(day.jenkins)[0]].temporarily_offline
    day.minutes(1)
    assert day.other.nodes[long.node].temporarily_offline


def test_where_one_controller_cannot_be_read_the_machine_stays():
    day = a_shared_day()
    day.other.up = "starting"
    day.minutes(60)
    assert day.agents() == 1


def test_a_side_that_was_deleted_comes_back_and_the_other_goes_on():
    day = a_shared_day()
    [build] = day.queue(1, label="gpu", seconds=1800.0)
    day.minutes(2)
    [name] = nodes_of(day.other)
    day.other.delete_node(name)
    day.minutes(14)
    assert (build.ended, nodes_of(day.other)) == (None, [name])
    assert day.other.nodes[name].connected


def test_a_record_of_one_side_that_was_lost_keeps_the_machine_until_the_side_is_known_again():
    day = a_shared_day()
    [build] = elsewhere(day, seconds=3600.0)
    day.minutes(2)
    day.fleet.state.records = {key: one for key, one in day.fleet.state.records.items() if "@" not in key}
    day.minutes(70)
    assert build.ended is Ended.FINISHED
    assert day.failed == 0


@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after it took effect"])
@pytest.mark.parametrize(
    "call", ["state add_record", "state change_record", "jenkins doCreateItem", "jenkins doDelete", "ec2 TerminateInstances"]
)
@pytest.mark.parametrize("time", [1, 2, 3])
def test_cut_off_anywhere_it_serves_both_and_goes_in_the_end(call, after, time):
    day, seen = a_day(), []

    def meanwhile(what):
        if what == call:
            seen.append(what)
            if len(seen) == time:
                day.fleet.faults.plan(Fault(what, after=after))

    day.fleet.faults.meanwhile = meanwhile
    builds = [*day.queue(1, label="gpu", seconds=300.0), *elsewhere(day)]
    day.minutes(90)
    assert [build.ended for build in builds] == [Ended.FINISHED] * 2
    assert (day.agents(), leaked_nodes(day.world)) == (0, [])


def test_stopped_by_a_person_it_goes_though_all_records_are_lost():
    day = a_shared_day()
    [instance] = day.world.alive()
    day.world.ec2.stop(instance.id)
    day.fleet.state.records.clear()
    day.minutes(60)
    assert (day.world.alive(), nodes_of(day.jenkins), nodes_of(day.other), states(day)) == ([], [], [], [])


def test_taken_from_the_second_controller_it_is_drained_there_and_its_build_ends_first():
    day = a_shared_day()
    [build] = elsewhere(day, seconds=900.0)
    [mine] = day.queue(1, label="gpu", seconds=5400.0)
    day.minutes(2)
    pool = replace(day.fleet.fleet.pools["gpu"], share=Share.NONE, controllers=("main",))
    day.fleet.fleet = replace(day.fleet.fleet, pools={"gpu": pool})
    day.minutes(10)
    assert (build.ended, mine.ended) == (None, None)
    day.minutes(25)
    assert (build.ended, mine.ended, nodes_of(day.other)) == (Ended.FINISHED, None, [])
    assert [step.reason for step in day.done(Terminate)] == [Reason.LEFT_THE_FILE]
    assert states(day) == [RecordState.REGISTERED]


def test_a_host_serves_both_and_stays():
    day = a_day(hosts=(a_host("box", "gpu"),))
    [mine], [theirs] = day.queue(1, label="gpu", seconds=300.0), elsewhere(day)
    day.minutes(60)
    assert (mine.ended, theirs.ended) == (Ended.FINISHED, Ended.FINISHED)
    assert (nodes_of(day.jenkins), nodes_of(day.other), day.done(Cordon), day.failed) == (["box"], ["box"], [], 0)
