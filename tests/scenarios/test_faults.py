"""Time-lines in which something fails: nothing is killed, nothing leaks, the next passes repair it."""

from dataclasses import replace
from functools import partial

import pytest

from autoscaler.control import passes
from autoscaler.control.observe import Invocation
from autoscaler.domain.facts.memory import Memory
from autoscaler.domain.facts.plan import Cordon, Launch, Terminate
from autoscaler.errors import LeaseHeldError
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from autoscaler_workbench.simulate.result import leaked_instances, leaked_nodes
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory


def a_day(**facts):
    return Day(in_memory(a_pool("cpu", idle_seconds=600.0, **facts)), by_adapters=True)


def assert_whole(day):
    assert leaked_instances(day.world) == []
    assert leaked_nodes(day.world) == []
    assert [build for build in day.jenkins.builds if build.killed_by] == []


@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after it took effect"])
@pytest.mark.parametrize(
    "call",
    [
        "ec2 CreateFleet",
        "ec2 DescribeInstances",
        "ec2 TerminateInstances",
        "jenkins changeOfflineCause",
        "jenkins toggleOffline",
        "jenkins doDelete",
        "jenkins doCreateItem",
        "jenkins computer",
        "jenkins queue",
        "state add_intent",
        "state change_intent",
        "state add_record",
        "state change_record",
        "state remove_intent",
        "state save_memory",
        "state save_learned",
    ],
)
def test_any_call_may_fail_twice(call, after):
    day = a_day()
    day.fleet.faults.plan(Fault(call, after=after, times=2))
    tolerate(day, 2)
    builds = day.queue(3, seconds=300.0)
    tolerate(day, 70)
    assert [build.ended for build in builds] == [Ended.FINISHED] * 3
    assert (day.agents(), day.nodes(), dict(day.fleet.state.records), day.fleet.state.intents) == (0, [], {}, {})
    assert_whole(day)


def tolerate(day, minutes):
    """Run functions as Lambda does: one that fails is an error in the log, and the next tick comes all the same."""
    for _ in range(minutes):
        day.world.move_to(day.world.timeline.now + 60)
        for function in (day.fleet.publish_metrics, day.fleet.scale_up, day.fleet.scale_down):
            try:
                function()
            except Exception:  # noqa: BLE001 - Lambda's own boundary
                day.failed += 1


def test_a_lost_launch_is_found_by_its_tag_and_not_repeated():
    day = a_day()
    day.minutes(2).queue(1)
    day.fleet.faults.plan(Fault("ec2 CreateFleet", after=True))
    day.minutes(6)
    assert len(day.world.ec2.instances) == 1
    assert day.fleet.state.intents == {}


def test_a_lost_launch_that_no_list_shows_yet_is_sent_again_with_the_same_token():
    """Peers send it with a new one, and it is launched twice."""
    day = a_day()
    day.world.ec2.lag_seconds = 150.0
    day.minutes(2).queue(1)
    day.fleet.faults.plan(Fault("ec2 CreateFleet", after=True))
    day.minutes(1)
    assert len(day.world.ec2.instances) == 1
    day.minutes(8)
    assert len(day.world.ec2.instances) == 1
    assert day.fleet.state.intents == {}


def test_a_launch_that_never_took_effect_is_sent_again_with_the_same_token():
    day = a_day()
    day.minutes(2).queue(1)
    day.fleet.faults.plan(Fault("ec2 CreateFleet", times=3))
    day.minutes(10)
    assert len(day.world.ec2.instances) == 1


def test_a_launch_that_stays_without_answer_is_given_up_and_its_room_comes_back():
    day = a_day(max_agents=1)
    day.minutes(2).queue(1)
    day.fleet.faults.plan(Fault("ec2 CreateFleet", times=12))
    day.minutes(30)
    assert len(day.world.ec2.instances) == 1
    assert day.agents() == 1


def test_a_pool_for_which_there_is_no_capacity_at_all_asks_at_growing_intervals_and_serves_once_there_is_some():
    day = Day(in_memory(a_pool("cpu")))
    pool = day.fleet.fleet.pools["cpu"]
    day.world.ec2.capacity[pool.offerings[0].key] = 0
    [build] = day.minutes(2).queue(1)
    day.minutes(5)
    assert day.agents() == 0
    tried = [r.detail for report in day.fleet.reports for r in report.results if isinstance(r.step, Launch)]
    assert (len(tried), set(tried)) == (3, {"0 of 1: InsufficientInstanceCapacity"})
    day.world.ec2.capacity.clear()
    day.minutes(9)
    assert build.started_at is not None


def test_an_account_without_quota_is_not_asked_again_and_again():
    day = Day(in_memory())
    day.world.ec2.refuse = ("VcpuLimitExceeded", "no")
    day.minutes(2).queue(1)
    day.minutes(10)
    tried = [r for report in day.fleet.reports for r in report.results if isinstance(r.step, Launch)]
    assert len(tried) in {2, 3}


def test_a_drained_agent_whose_pipeline_goes_on_survives_a_restart_of_the_controller():
    """The trap recorded in f21: after the restart it reads idle, offline by us, without executable."""
    day = a_day(executors=1, min_agents=0)
    [build] = day.minutes(2).queue(1, seconds=3600.0, kind=Kind.PIPELINE)
    day.minutes(8)
    node = build.node
    day.jenkins.set_offline(node, "autoscaler:f:retire:some-pass", "autoscaler")
    day.minutes(2)
    day.jenkins.restart()
    day.minutes(10)
    assert not day.jenkins.nodes[node].offline
    day.minutes(80)
    assert build.ended is Ended.FINISHED
    assert_whole(day)


@pytest.mark.parametrize("kind", [Kind.PIPELINE, Kind.FREESTYLE])
def test_a_restart_in_the_middle_of_everything_kills_nothing_that_it_did_not_kill_itself(kind):
    day = a_day(executors=2)
    builds = day.minutes(2).queue(9, seconds=1500.0, kind=kind)
    day.minutes(12)
    day.jenkins.restart()
    day.minutes(120)
    allowed = {Ended.FINISHED} if kind is Kind.PIPELINE else {Ended.FINISHED, Ended.RESTARTED}
    assert {build.ended for build in builds} <= allowed
    assert (day.agents(), day.nodes()) == (0, [])
    assert_whole(day)


def test_quieting_down_launches_nothing_and_gives_nothing_up():
    day = a_day()
    day.minutes(2).queue(2, seconds=300.0)
    day.minutes(10)
    day.jenkins.quiet_down("upgrade")
    agents = day.agents()
    day.queue(5)
    day.minutes(30)
    assert day.agents() == agents
    day.jenkins.cancel_quiet_down()
    day.minutes(60)
    assert (day.agents(), day.nodes()) == (0, [])


def test_a_person_s_mark_is_never_overwritten_and_their_agent_never_touched():
    day = a_day()
    day.minutes(2).queue(1, seconds=60.0)
    day.minutes(6)
    [node] = day.nodes()
    day.jenkins.set_offline(node, "looking at a core dump", "anna")
    day.minutes(60)
    assert day.jenkins.nodes[node].reason == "looking at a core dump"
    assert day.agents() == 1


def test_an_instance_that_somebody_terminates_is_cleaned_up_in_jenkins():
    day = a_day()
    [build] = day.minutes(2).queue(1, seconds=1200.0)
    day.minutes(8)
    [instance] = day.world.alive()
    day.world.ec2.end(instance)
    day.minutes(12)
    assert instance.tags["autoscaler:node"] not in day.jenkins.nodes
    assert build.killed_by == f"{instance.id} was terminated"


def test_an_instance_that_never_boots_is_given_up_at_its_deadline():
    day = a_day()
    day.world.ec2.boot_seconds = lambda _template: 1e9
    day.minutes(2).queue(1)
    day.minutes(25)
    assert len(day.done(Terminate)) >= 1
    assert leaked_instances(day.world) == []


def test_a_lost_state_table_costs_no_build_and_leaks_nothing():
    day = a_day()
    builds = day.minutes(2).queue(3, seconds=2400.0)
    day.minutes(10)
    day.fleet.state.records.clear()
    day.fleet.state.intents.clear()
    day.fleet.state.memory = Memory(version=day.fleet.state.memory.version)
    day.minutes(120)
    assert [build.ended for build in builds] == [Ended.FINISHED] * 3
    assert (day.agents(), day.nodes()) == (0, [])
    assert_whole(day)


def test_a_beacon_that_somebody_deletes_is_put_back():
    day = a_day()
    day.minutes(1)
    day.jenkins.delete_node("autoscaler-beacon-f")
    day.minutes(1)
    assert "autoscaler-beacon-f" in day.jenkins.nodes


def test_two_passes_never_act_at_once():
    day = a_day()
    day.fleet.state.holder = ("somebody", day.world.timeline.now + 100)
    with pytest.raises(LeaseHeldError):
        day.fleet.scale_up()
    assert day.jenkins.nodes == {}


def test_an_event_that_is_delivered_twice_at_once_launches_once():
    """AWS may deliver one event twice, with one request id, and two containers then run it at the same time."""
    day = a_day()
    day.minutes(2).queue(6)
    day.world.move_to(day.world.timeline.now + 60)
    invocation, again = day.fleet.invocation(), []

    def deliver_again(call):
        if call == "state add_intent" and not again:
            again.append(invocation)
            with pytest.raises(LeaseHeldError):
                passes.scale_up(day.fleet.ports, day.fleet.fleet, invocation)

    day.fleet.faults.meanwhile = deliver_again
    passes.scale_up(day.fleet.ports, day.fleet.fleet, invocation)
    assert again
    assert len(day.world.ec2.instances) == 6


def test_a_lease_whose_holder_was_cut_off_is_taken_over():
    day = a_day()
    day.fleet.state.holder = ("cut off", day.world.timeline.now + 70)
    day.minutes(2)
    assert "autoscaler-beacon-f" in day.jenkins.nodes


def test_a_second_look_that_fails_does_not_hide_what_the_first_one_did():
    day = a_day()
    day.minutes(2).queue(1, seconds=60.0)
    day.minutes(14)
    day.world.move_to(day.world.timeline.now + 60)
    while day.agents():
        # Whatever is given up now: somebody else takes the lease while the first half settles.
        now = day.world.timeline.now
        day.world.timeline.at(now + 2, partial(setattr, day.fleet.state, "holder", ("somebody", now + 180)))
        reports = passes.scale_down(day.fleet.ports, day.fleet.fleet, day.fleet.invocation())
        day.fleet.state.holder = None
        if reports[0].results:
            break
        day.world.move_to(now + 60)
    assert [type(result.step) for result in reports[0].results] == [Cordon]
    assert len(reports) == 1
    assert "second_look_failed" in [event for event, _ in day.fleet.logged]


def test_with_no_time_left_no_step_is_begun():
    day = a_day()
    began = day.world.timeline.now
    looks = iter(range(1000))
    slow = replace(day.fleet.ports, clock=lambda: began + next(looks) * 0.15)
    invocation = Invocation(request_id="late", ends_at=began + 11.4)
    [report] = passes.scale_up(slow, day.fleet.fleet, invocation)
    assert {result.outcome for result in report.results} == {"skipped"}
    assert report.results


def test_what_ec2_takes_back_is_replaced_before_it_goes():
    day = Day(in_memory(a_pool("cpu", idle_seconds=600.0, executors=2)))
    day.minutes(1).queue(1, seconds=3600.0)
    day.minutes(6)
    [instance] = day.world.alive()
    [short] = day.queue(1, seconds=60.0)
    day.minutes(1)
    assert short.started_at is not None
    day.world.ec2.interrupt(instance)
    [next_one] = day.queue(1, seconds=60.0)
    day.minutes(1)
    assert len(day.world.alive()) == 2
    assert next_one.started_at is None  # the interrupted agent's free executor takes nothing new
    day.minutes(11)
    assert short.ended is Ended.FINISHED
    assert next_one.ended is Ended.FINISHED
    assert instance.tags["autoscaler:node"] not in day.nodes()


def test_what_somebody_terminates_by_hand_leaves_no_node_behind():
    day = Day(in_memory(a_pool("cpu", idle_seconds=600.0)))
    day.minutes(1).queue(1, seconds=60.0)
    day.minutes(8)
    [instance] = day.world.alive()
    day.world.ec2.end(instance)
    day.world.move_to(day.world.timeline.now + 25)
    assert day.nodes() == []


def test_a_pipeline_whose_machine_is_gone_keeps_its_node_no_longer_than_it_must():
    """After a restart it waits by name for a node that can never come back: without an end it would wait, and the node stay, for ever."""
    day = Day(in_memory(a_pool("cpu", idle_seconds=600.0)))
    [build] = day.minutes(1).queue(1, seconds=3600.0, kind=Kind.PIPELINE)
    day.minutes(8)
    [instance] = day.world.alive()
    day.jenkins.restart()
    day.world.ec2.end(instance)
    day.minutes(4)
    assert len(day.nodes()) == 1  # it may yet be seen to live
    day.minutes(30)
    assert (day.nodes(), build.ended) == ([], Ended.KILLED)


def test_deleting_a_dead_machines_node_is_gone_on_with_where_it_was_cut_off():
    day = Day(in_memory(a_pool("cpu", idle_seconds=600.0)))
    [build] = day.minutes(1).queue(1, seconds=3600.0, kind=Kind.PIPELINE)
    day.minutes(8)
    [instance] = day.world.alive()
    day.jenkins.restart()
    day.world.ec2.end(instance)
    day.minutes(6)
    day.fleet.faults.plan(Fault("jenkins doDelete", status=503))  # the record is condemned by then
    day.minutes(30)
    assert (instance.tags["autoscaler:node"] in day.nodes(), build.ended) == (False, Ended.KILLED)
