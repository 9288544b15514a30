"""Time-lines of jobs that weigh more than one executor: agents take no further build that would not fit beside those they have."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import CORDONED_LABEL, FULL_LABEL
from autoscaler.domain.facts.job_settings import JobWeights, Source
from autoscaler.domain.facts.plan import Launch, Relabel
from autoscaler.domain.facts.reasons import Reason
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from autoscaler_workbench.simulate.drive import InMemory
from support.builders import a_fleet, a_pool
from support.timeline import Day
from support.worlds import a_world

WEIGHTS = JobWeights(by_pattern=(("heavy/*", 4), ("huge", 99)))


def a_day(weights=WEIGHTS, **facts):
    """Agents of eight executors: one that is always there, and as many more as may be launched."""
    fleet = replace(a_fleet(a_pool("cpu", **({"executors": 8, "min_agents": 1, "max_agents": 1} | facts))), weights=weights)
    day = Day(InMemory(a_world(fleet), fleet)).minutes(8)
    assert day.agents("cpu") == facts.get("min_agents", 1)
    return day


def submit(day, count, job="heavy/model", seconds=1800.0):
    return [day.jenkins.submit(job, "cpu", seconds) for _ in range(count)]


def node_of(day):
    [node] = [node for name, node in day.jenkins.nodes.items() if name.startswith("cpu-")]
    return node


def running(builds):
    return [build for build in builds if build.node and build.ended is None]


def labels_set(day):
    return [(step.reason, step.detail) for step in day.done(Relabel)]


def test_an_agent_whose_builds_weigh_as_much_as_it_has_takes_no_further_ones_until_one_ends():
    day = a_day()
    heavy = submit(day, 2, seconds=900.0)
    day.minutes(2)
    assert (len(running(heavy)), FULL_LABEL in node_of(day).labels, "cpu" in node_of(day).labels) == (2, True, False)
    light = submit(day, 3, job="light", seconds=60.0)
    day.minutes(5)
    assert (running(light), node_of(day).temporarily_offline, CORDONED_LABEL in node_of(day).labels) == ([], False, False)
    day.minutes(20)
    assert {build.ended for build in heavy + light} == {Ended.FINISHED}
    assert ("cpu" in node_of(day).labels, FULL_LABEL in node_of(day).labels) == (True, False)
    assert [reason for reason, _ in labels_set(day)] == [Reason.HAS_ROOM, Reason.FULL, Reason.HAS_ROOM]


def test_the_step_says_what_the_builds_weigh():
    day = a_day()
    submit(day, 2)
    day.minutes(2)
    [(_, at_first), (_, then)] = labels_set(day)
    assert at_first == f"the builds on {node_of(day).name} weigh 0 of 8: 8 executors"
    assert then == f"the builds on {node_of(day).name} weigh 8 of 8"


def test_while_a_heavy_build_waits_an_agent_without_room_for_it_takes_nothing_and_gives_it_the_room_that_comes():
    day = a_day()
    light = [build for n in range(8) for build in submit(day, 1, job="light", seconds=200.0 * (n + 1))]
    day.minutes(2)
    assert FULL_LABEL not in node_of(day).labels  # nothing heavy is there
    [heavy], later = submit(day, 1), submit(day, 4, job="light", seconds=600.0)
    for _ in range(13):
        day.minutes(1)
        weighs = len(running(light + later)) + 4 * len(running([heavy]))
        assert weighs <= 8
    assert (heavy.node, len(running(light)), running(later)) == (node_of(day).name, 4, [])
    day.minutes(50)
    assert {build.ended for build in [heavy, *light, *later]} == {Ended.FINISHED}


def test_what_weighs_more_than_an_agent_has_runs_there_alone():
    day = a_day()
    [huge] = submit(day, 1, job="huge", seconds=900.0)
    day.minutes(2)
    light = submit(day, 2, job="light", seconds=60.0)
    day.minutes(5)
    assert (huge.node, running(light)) == (node_of(day).name, [])
    day.minutes(20)
    assert {build.ended for build in [huge, *light]} == {Ended.FINISHED}


def test_agents_are_launched_for_what_waits_by_its_weight():
    day = a_day(min_agents=0, max_agents=10)
    builds = submit(day, 8, seconds=3000.0)
    day.minutes(4)  # before the first agent is there
    assert sum(step.count for step in day.done(Launch)) == 4
    day.minutes(16)
    assert len(running(builds)) == 8
    assert max(sum(build.node == name for build in running(builds)) for name in day.jenkins.nodes) == 2


def test_without_weights_agents_take_whatever_their_executors_hold():
    day = a_day(weights=JobWeights(), max_agents=1)
    builds = submit(day, 8)
    day.minutes(3)
    assert (len(running(builds)), day.done(Relabel)) == (8, [])


def test_once_weights_are_taken_out_of_the_fleet_file_a_full_agent_has_its_labels_back():
    day = a_day()
    submit(day, 2)
    day.minutes(2)
    day.fleet.fleet = replace(day.fleet.fleet, weights=JobWeights())
    day.minutes(2)
    assert ("cpu" in node_of(day).labels, FULL_LABEL in node_of(day).labels) == (True, False)


def test_a_full_agent_that_is_drained_is_cordoned_as_any_other():
    day = a_day(min_agents=0, max_agents=2, idle_seconds=120.0)
    builds = submit(day, 2, seconds=1200.0)
    day.minutes(45)
    assert ({build.ended for build in builds}, day.agents(), day.failed) == ({Ended.FINISHED}, 0, 0)


@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after it took effect"])
@pytest.mark.parametrize("call", [1, 2], ids=["taking the labels", "giving them back"])
def test_what_is_cut_off_is_made_good(call, after):
    day, seen = a_day(), []

    def meanwhile(what):
        if what == "jenkins config.xml":
            seen.append(what)
            if len(seen) == call:
                day.fleet.faults.plan(Fault(what, after=after))

    day.fleet.faults.meanwhile = meanwhile
    heavy = submit(day, 2, seconds=600.0)
    day.minutes(30)
    assert day.fleet.faults.seen
    assert ({build.ended for build in heavy}, "cpu" in node_of(day).labels) == ({Ended.FINISHED}, True)


def test_what_the_heavy_job_plugin_holds_together_is_planned_on_one_machine_and_left_to_jenkins():
    day = a_day(weights=JobWeights(by_pattern=(("*", Source.PLUGIN),)), min_agents=0, max_agents=10)
    day.jenkins.heavy = {"heavy/model": 4}
    submit(day, 1, seconds=2400.0)
    day.minutes(50)  # its weight was read
    assert {job: one.weight for job, one in day.fleet.state.read().learned["main"].heavy_jobs.items()} == {"heavy/model": 4}
    builds = submit(day, 6, seconds=3000.0)
    day.minutes(2)
    assert day.agents("cpu") == 3, "as soon as they wait, not once an agent turns out to be full"
    day.minutes(12)
    assert len(running(builds)) == 6
    assert max(sum(build.node == name for build in running(builds)) for name in day.jenkins.nodes) == 2
    light = submit(day, 1, job="light", seconds=60.0)
    day.minutes(5)
    assert [step.reason for step in day.done(Relabel)] == []
    day.minutes(60)
    assert {build.ended for build in [*builds, *light]} == {Ended.FINISHED}


def test_where_the_plugins_weights_cannot_be_read_jobs_weigh_one_and_are_read_once_they_can():
    day = a_day(weights=JobWeights(by_pattern=(("*", Source.PLUGIN),)), max_agents=1)
    day.jenkins.heavy = {"heavy/model": 4}
    [api] = day.fleet.apis.values()
    api.lacks = frozenset({"hudson.model.Item.ExtendedRead"})
    submit(day, 3, seconds=1200.0)
    day.minutes(3)
    assert "heavy_job_not_read" in {line["event"] if isinstance(line, dict) else line[0] for line in day.fleet.logged}
    assert not day.fleet.state.read().learned["main"].heavy_jobs
    api.lacks = frozenset()
    day.minutes(2)
    assert day.fleet.state.read().learned["main"].heavy_jobs["heavy/model"].weight == 4


def test_a_full_agent_whose_labels_jenkins_does_not_give_back_is_told_after_an_hour_and_once_it_has_them_it_is_over():
    day = a_day(idle_seconds=7200.0, max_idle_seconds=7200.0)
    submit(day, 2, seconds=300.0)
    day.minutes(2)
    assert FULL_LABEL in node_of(day).labels
    day.fleet.faults.plan(Fault("jenkins config.xml", status=403, times=10**6))
    name = node_of(day).name
    day.minutes(60)
    assert not [message for message in day.fleet.notifier.sent if "without labels" in message.subject]
    day.minutes(12)
    [told] = [message for message in day.fleet.notifier.sent if "without labels" in message.subject]
    assert (told.subject, "403" in told.text, name in told.text) == (f"[f] {name} of cpu: without labels too long", True, True)
    day.fleet.faults.planned.clear()
    day.minutes(15)
    assert f"[f] over: {name} of cpu: without labels too long" in [message.subject for message in day.fleet.notifier.sent]
    assert FULL_LABEL not in node_of(day).labels
