"""Time-lines of agents that are stopped where nothing needs them, and started again."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import CORDONED_LABEL, Market, WarmPool
from autoscaler.domain.facts.plan import FinishStop, Launch, Start, Stop, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import RecordState
from autoscaler.domain.situation.bets import TrialOf
from autoscaler_workbench.fakes.world.ec2.stopping import NO_CAPACITY
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from autoscaler_workbench.fakes.world.jenkins.controller import DROPS_BUILDS
from autoscaler_workbench.simulate.result import dollars_an_hour, leaked_instances, leaked_nodes
from support.builders import a_pool, an_offering
from support.remembered import with_tables
from support.timeline import Day
from support.warm import starts_proven
from support.worlds import in_memory

OFFERING = an_offering(usd_per_hour=3.0, volume_usd_per_hour=0.01)
WARM = WarmPool(min_agents=0, max_agents=5, max_age_seconds=168 * 3600.0)


def a_warm_pool(warm=WARM, **facts):
    """A pool whose agents are stopped after five idle minutes, unless told otherwise."""
    return a_pool("cpu", **({"offerings": (OFFERING,), "idle_seconds": 300.0, "warm_pool": warm} | facts))


def a_day(warm=WARM, **limits):
    return starts_proven(Day(in_memory(a_warm_pool(warm), **limits)))


def with_one_stopped(warm=WARM, count=1, pool=None, **limits):
    """A day on which agents have worked and were stopped."""
    day = starts_proven(Day(in_memory(pool or a_warm_pool(warm), **limits)))
    day.minutes(1).queue(count, seconds=300.0)
    day.minutes(30)
    assert states(day) == ["stopped"] * count
    return day


def instances(day):
    return sorted(day.world.alive(), key=lambda instance: (instance.launched_at, instance.id))


def states(day):
    return [instance.state for instance in instances(day)]


def record(day):
    [found] = day.fleet.state.records.values()
    return found


def records(day):
    return sorted(str(found.state) for found in day.fleet.state.records.values())


def steps(day, kind, since=0):
    return [(step.instance_id, step.reason) for step in day.done(kind)[since:]]


def test_an_agent_that_nobody_needs_is_stopped_and_its_node_goes():
    day = a_day()
    day.minutes(1).queue(1, seconds=300.0)
    day.minutes(30)
    [instance] = instances(day)
    assert (instance.state, day.nodes(), record(day).state) == ("stopped", [], RecordState.STOPPED)
    assert (len(day.done(Stop)), len(day.done(FinishStop)), day.done(Terminate), day.failed) == (1, 1, [], 0)
    assert (leaked_instances(day.world), leaked_nodes(day.world)) == ([], [])


def test_a_stopped_agent_is_started_for_a_job_and_comes_back_under_its_name():
    day = with_one_stopped()
    [instance] = instances(day)
    name = record(day).node
    [build] = day.queue(1, seconds=120.0)
    day.minutes(4)
    assert (build.node, build.started_at is not None, day.nodes()) == (name, True, [name])
    assert (record(day).state, record(day).life, record(day).labels) == (RecordState.REGISTERED, 1, ("cpu", "autoscaler-fleet-f"))
    assert (len(day.done(Start)), len(day.done(Launch)), len(instance.spells)) == (1, 1, 2)
    day.minutes(30)
    assert (build.ended, states(day), record(day).life, day.failed) == (Ended.FINISHED, ["stopped"], 1, 0)


def test_a_stopped_agent_costs_its_disk_in_the_month_and_is_no_agent():
    day = with_one_stopped(max_agents=1)
    paid = day.fleet.state.memory.month.usd
    day.minutes(60)
    assert dollars_an_hour(day.world) == 0.01
    assert day.fleet.state.memory.month.usd - paid == pytest.approx(0.01)
    [build] = day.queue(1, seconds=60.0)
    day.minutes(5)
    assert build.ended is Ended.FINISHED


def test_where_ec2_refuses_to_start_one_another_is_launched_in_the_same_pass():
    elsewhere = an_offering("m5.18xlarge", usd_per_hour=3.2, volume_usd_per_hour=0.01)
    day = with_one_stopped(pool=a_warm_pool(offerings=(OFFERING, elsewhere)))
    day.world.ec2.capacity[OFFERING.key] = 0
    day.queue(1, seconds=60.0)
    day.minutes(2)
    report = next(report for report in day.fleet.reports for result in report.results if isinstance(result.step, Start))
    assert [(type(result.step), result.outcome, result.count) for result in report.results] == [(Start, "failed", 0), (Launch, "done", 1)]
    assert [instance.instance_type for instance in instances(day)] == [OFFERING.instance_type, elsewhere.instance_type]
    assert (records(day), TrialOf.OFFERING.scope("cpu", OFFERING.key) in day.fleet.state.memory.trials) == (["requested", "stopped"], True)


def test_a_start_for_which_machines_turn_out_short_leaves_the_job_to_a_launch_and_is_held_against_nobody():
    day = with_one_stopped()
    [instance] = instances(day)
    instance.fails_to_start = NO_CAPACITY
    [build] = day.queue(1, seconds=60.0)
    day.minutes(9)
    assert build.ended is Ended.FINISHED
    assert (instance.alive(), "start/cpu" in day.fleet.state.memory.trials) == (True, False)
    assert TrialOf.OFFERING.scope("cpu", OFFERING.key) not in day.fleet.state.memory.trials


def test_one_whose_every_start_fails_does_not_keep_jobs_waiting():
    day = with_one_stopped()
    [instance] = instances(day)
    instance.fails_to_start = "Client.InternalError"  # the key of its disk is gone
    [build] = day.queue(1, seconds=60.0)
    day.minutes(15)
    assert (build.ended, instance.alive()) == (Ended.FINISHED, False)


def test_one_that_ec2_never_shows_started_does_not_keep_jobs_waiting():
    day = with_one_stopped()
    [instance] = instances(day)
    day.fleet.faults.dice = lambda call: Fault(call, status=503, code="Unavailable") if call == "ec2 StartInstances" else None
    [build] = day.queue(1, seconds=60.0)
    day.minutes(40)
    assert (build.ended, instance.alive()) == (Ended.FINISHED, False)


@pytest.mark.parametrize(("boot_seconds", "noted"), [(60.0, []), (600.0, [Reason.STARTED_BY_HAND])], ids=["by itself", "by a look"])
def test_a_machine_that_a_person_starts_is_an_agent_again(boot_seconds, noted):
    day = with_one_stopped(pool=a_warm_pool(boot_seconds=boot_seconds))
    [instance] = instances(day)
    before = record(day).registered_at
    day.world.ec2.start(instance.id)
    day.minutes(6)
    assert (before, record(day).life, [step.reason for step in day.done(Start)]) == (None, 1, noted)
    day.minutes(12)
    assert (states(day), day.nodes(), day.failed) == (["stopped"], [], 0)
    assert (len(instance.spells), len(day.done(Launch)), len(day.done(Stop))) == (2, 1, 2)


def test_a_machine_that_a_person_starts_and_that_never_asks_is_given_up_after_its_boot_deadline():
    day = with_one_stopped()
    [instance] = instances(day)
    day.world.ec2.on_running = lambda _instance: None
    day.world.ec2.start(instance.id)
    day.minutes(10)
    assert record(day).state is RecordState.STARTING
    day.minutes(15)
    assert (instance.alive(), day.fleet.state.records) == (False, {})


def test_a_machine_that_a_person_stops_is_kept_and_its_node_goes():
    day = a_day()
    [build] = day.minutes(1).queue(1, seconds=300.0)
    day.minutes(10)
    [instance] = instances(day)
    assert build.ended is Ended.FINISHED
    day.world.ec2.stop(instance.id)
    day.minutes(6)
    assert (instance.state, record(day).state, day.nodes(), day.done(Stop)) == ("stopped", RecordState.STOPPED, [], [])


def test_a_machine_that_stops_for_ever_is_terminated_though_nobody_knows_who_stopped_it():
    day = a_day()
    day.minutes(1).queue(1, seconds=300.0)
    day.minutes(10)
    [instance] = instances(day)
    day.world.ec2.physics = replace(day.world.ec2.physics, stop_from_seconds=86_400.0, stop_to_seconds=86_400.0)
    day.world.ec2.stop(instance.id)
    day.minutes(15)
    assert instance.state == "stopping"
    day.minutes(15)
    assert (instance.alive(), day.nodes(), steps(day, Terminate)) == (False, [], [(instance.id, Reason.STOP_HANGS)])


def test_a_machine_that_a_person_stops_is_terminated_where_its_pool_keeps_none():
    day = a_day(warm=None)
    day.minutes(1).queue(1, seconds=300.0)
    day.minutes(10)
    [instance] = instances(day)
    day.world.ec2.stop(instance.id)
    day.minutes(6)
    assert (instance.alive(), day.nodes(), steps(day, Terminate)) == (False, [], [(instance.id, Reason.INSTANCE_STOPPED)])


@pytest.mark.parametrize("warm", [WARM, None], ids=["kept", "terminated"])
def test_a_machine_that_a_person_stops_before_it_connected_does_not_keep_a_job_waiting_for_ever(warm):
    """Its node is the only agent with the label; the beacons keep Jenkins from naming it to the job."""
    day = Day(in_memory(a_warm_pool(warm, max_agents=1)))
    [build] = day.minutes(1).queue(1, seconds=300.0)
    day.fleet.world.physics = replace(day.world.physics, connect_from_seconds=600.0, connect_to_seconds=600.0)
    while not day.nodes():
        day.minutes(1)
    [instance] = instances(day)
    day.world.ec2.stop(instance.id)
    day.minutes(60)
    assert build.ended is Ended.FINISHED
    assert f"cpu-{instance.id.removeprefix('i-')}" not in day.nodes()


def test_a_machine_whose_nodes_labels_were_taken_and_that_a_person_stops_is_not_left_over():
    day = a_day(warm=None)
    day.jenkins.version = DROPS_BUILDS
    day.minutes(1).queue(1, seconds=300.0)
    while not (node := day.jenkins.nodes.get(next(iter(day.nodes()), ""))) or CORDONED_LABEL not in node.labels:
        day.world.move_to(day.world.timeline.now + 5.0)
        day.fleet.scale_up()
        day.fleet.scale_down()
    assert node.temporarily_offline is False
    day.world.ec2.stop(instances(day)[0].id)
    day.minutes(20)
    assert (instances(day), day.nodes(), day.fleet.state.records) == ([], [], {})


def test_a_stopped_machine_that_a_person_terminates_is_forgotten():
    day = with_one_stopped()
    [instance] = instances(day)
    day.world.ec2.end(instance)
    day.minutes(3)
    assert (day.fleet.state.records, day.done(Terminate)) == ({}, [])
    [build] = day.queue(1, seconds=60.0)
    day.minutes(10)
    assert build.ended is Ended.FINISHED


def test_a_machine_that_a_person_terminates_while_it_starts_is_forgotten_and_another_is_launched():
    day = with_one_stopped()
    [instance] = instances(day)
    [build] = day.queue(1, seconds=60.0)
    while instance.state == "stopped":
        day.minutes(1)
    day.world.ec2.end(instance)
    day.minutes(10)
    assert (build.ended, instance.id in day.fleet.state.records, leaked_nodes(day.world)) == (Ended.FINISHED, False, [])


def test_stopped_machines_are_taken_in_again_after_the_state_was_lost():
    day = with_one_stopped(count=2)
    state = day.fleet.state
    state.records.clear()
    state.intents.clear()
    state.memory = type(state.memory)(version=state.memory.version)
    day.minutes(10)
    assert (states(day), records(day), day.done(Terminate)) == (["stopped"] * 2, ["stopped"] * 2, [])
    assert {found.volume_usd_per_hour for found in state.records.values()} == {OFFERING.volume_usd_per_hour}
    [build] = day.queue(1, seconds=60.0)
    day.minutes(5)
    assert (build.ended, len(day.done(Start)), len(instances(day))) == (Ended.FINISHED, 1, 2)


def test_stopped_machines_go_when_the_fleet_file_wants_none_any_more():
    day = with_one_stopped(count=2)
    day.fleet.fleet = day.world.fleet = replace(day.fleet.fleet, pools={"cpu": a_warm_pool(None)})
    day.minutes(3)
    assert (instances(day), {reason for _, reason in steps(day, Terminate)}) == ([], {Reason.WARM_POOL_OFF})
    day.minutes(3)
    assert day.fleet.state.records == {}


def test_a_machine_that_has_been_stopped_for_too_long_goes():
    day = with_one_stopped(replace(WARM, min_agents=1, max_age_seconds=7200.0))
    [instance] = instances(day)
    day.minutes(90)
    assert states(day) == ["stopped"]
    day.minutes(60)
    assert (steps(day, Terminate)[-1], states(day)) == ((instance.id, Reason.WARM_POOL_AGE), ["stopped"])


def test_a_machine_is_stopped_at_most_so_long_though_starts_of_it_are_refused():
    day = with_one_stopped(replace(WARM, max_age_seconds=7200.0))
    [instance] = instances(day)
    day.world.ec2.capacity[OFFERING.key] = 0
    day.queue(1, seconds=60.0)
    day.minutes(125)
    assert instance.alive() is False


def test_starts_that_ec2_refuses_are_no_launches():
    day = with_one_stopped(max_launches_per_hour=10)
    day.world.ec2.capacity[OFFERING.key] = 0
    [build] = day.queue(1, seconds=60.0)
    day.minutes(20)
    day.world.ec2.capacity.clear()
    day.minutes(9)
    assert (build.ended, len(instances(day)), len(record(day).starts)) == (Ended.FINISHED, 1, 1)


def test_no_more_are_stopped_than_the_pool_may_keep():
    day = a_day(replace(WARM, max_agents=1))
    day.minutes(1).queue(3, seconds=300.0)
    day.minutes(40)
    assert (states(day), len(day.done(Stop)), len(day.done(Terminate))) == (["stopped"], 1, 2)


def test_where_ec2_stops_none_of_them_they_are_terminated():
    day = a_day()
    day.minutes(1).queue(1, seconds=300.0)
    day.minutes(10)
    [instance] = instances(day)
    instance.stop_protected = True
    day.minutes(20)
    assert (instance.alive(), day.nodes(), [reason for _, reason in steps(day, Terminate)]) == (False, [], [Reason.DRAINED])


def test_machines_are_booted_in_quiet_times_to_be_stopped():
    day = a_day(replace(WARM, min_agents=2))
    day.minutes(20)
    assert (states(day), day.nodes(), len(day.done(Launch)), day.failed) == (["stopped", "stopped"], [], 1, 0)
    day.minutes(120)
    assert (states(day), len(day.done(Launch)), len(day.done(Start)), day.done(Terminate)) == (["stopped", "stopped"], 1, 0, [])


def test_machines_that_are_booted_to_be_stopped_are_no_spot_instances():
    spot = an_offering(market=Market.SPOT, usd_per_hour=1.0, volume_usd_per_hour=0.01)
    day = Day(in_memory(a_warm_pool(replace(WARM, min_agents=1), offerings=(spot, OFFERING))))
    day.minutes(60)
    assert (states(day), [instance.market for instance in instances(day)], len(day.done(Launch))) == (["stopped"], ["on-demand"], 1)


def test_where_ec2_stops_none_of_them_no_more_are_booted_to_be_stopped():
    day = a_day(replace(WARM, min_agents=1))
    for _ in range(180):
        day.minutes(1)
        for instance in instances(day):
            instance.stop_protected = True
    assert (instances(day), len(day.done(Launch)), len(day.done(Terminate))) == ([], 1, 1)


def test_one_that_was_started_is_stopped_again_once_its_job_is_done_and_none_was_launched_in_its_place():
    day = a_day(replace(WARM, min_agents=2))
    day.minutes(20)
    [build] = day.queue(1, seconds=1800.0)
    day.minutes(20)
    assert sorted(states(day)) == ["running", "stopped"]
    day.minutes(60)
    assert (build.ended, states(day), len(day.done(Launch)), day.done(Terminate)) == (Ended.FINISHED, ["stopped", "stopped"], 1, [])


def test_outdated_machines_are_not_kept_stopped():
    day = with_one_stopped()
    [instance] = instances(day)
    day.world.ec2.template_versions["cpu"] = 2
    day.fleet.state.memory = with_tables(day.fleet.state.memory, proven={"cpu": "2"})
    day.minutes(3)
    assert instance.alive() is False


def test_the_months_spent_money_ends_stopped_machines_too():
    day = with_one_stopped()
    fleet = day.fleet.fleet
    day.fleet.fleet = replace(fleet, limits=replace(fleet.limits, max_usd_per_month=1e-6))
    day.minutes(3)
    assert (instances(day), [reason for _, reason in steps(day, Terminate)]) == ([], [Reason.USD_PER_MONTH])


def test_a_start_counts_among_the_launches_of_the_hour():
    day = with_one_stopped(count=2, max_launches_per_hour=3)
    builds = day.queue(2, seconds=3000.0)
    day.minutes(10)
    assert [build.started_at is not None for build in builds] == [True, False]
    assert sorted(states(day)) == ["running", "stopped"]
    day.minutes(25)
    assert [build.started_at is not None for build in builds] == [True, True]


@pytest.mark.parametrize("kind", list(Kind))
def test_a_build_handed_over_while_the_last_read_is_made_keeps_the_machine_on(kind):
    day = a_day()
    day.minutes(1).queue(1, seconds=300.0)
    day.minutes(9)
    [instance] = instances(day)
    late = []

    def hands_over(call):
        if call == "state change_record" and not late and day.fleet.state.records[instance.id].state is RecordState.REGISTERED:
            late.append(day.jenkins.submit("late", "cpu", 300.0, kind=kind))
            day.jenkins.schedule()

    day.fleet.faults.meanwhile = hands_over
    day.minutes(60)
    assert ([build.ended for build in late], day.failed) == ([Ended.FINISHED], 0)
