"""Time-lines of agents whose jobs had weights, once the key `weights` has left the fleet file: they get their executors back when idle."""

import pytest

from autoscaler.domain.facts.fleet import FULL_LABEL
from autoscaler.domain.facts.job_settings import JobWeights
from autoscaler.domain.facts.plan import Relabel
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from scenarios.test_job_weights import WEIGHTS, a_day, node_of, running, submit
from support.file_changes import file_is_now

NO_WEIGHTS = JobWeights()


def without_weights(day):
    file_is_now(day, weights=NO_WEIGHTS)
    return day


def test_an_agent_that_was_made_for_heavy_jobs_gets_all_its_executors_though_the_key_leaves_before_it_connects():
    day = a_day(min_agents=0, idle_seconds=7200.0)
    light = submit(day, 1, job="light", seconds=300.0)
    while not any(name.startswith("cpu-") for name in day.nodes()):
        day.world.move_to(day.world.timeline.now + 5.0)
        if day.world.timeline.now % 60.0 < 5.0:
            day.minutes(1)
    assert node_of(day).executors == 1
    without_weights(day).minutes(20)
    assert (light[0].ended, node_of(day).executors) == (Ended.FINISHED, 8)


@pytest.mark.parametrize("heavy", [1, 2], ids=["some room is left", "it is full"])
def test_executors_are_given_back_when_the_heavy_builds_have_ended_and_not_before(heavy):
    day = a_day()
    builds = submit(day, heavy, seconds=1200.0) + submit(day, 1, job="light", seconds=300.0)
    day.minutes(4)
    shown = node_of(day).executors
    assert shown < 8 or heavy == 2
    without_weights(day).minutes(6)
    assert (len(running(builds[:heavy])), FULL_LABEL in node_of(day).labels, "cpu" in node_of(day).labels) == (heavy, False, True)
    assert node_of(day).executors == shown
    day.minutes(30)
    assert {build.ended for build in builds} == {Ended.FINISHED}
    assert node_of(day).executors == 8
    light = submit(day, 8, job="light", seconds=600.0)
    day.minutes(3)
    assert len(running(light)) == 8


@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after it took effect"])
@pytest.mark.parametrize("call", [1, 2, 3])
def test_what_was_cut_off_while_weights_were_there_is_made_good_without_them(call, after):
    day, seen = a_day(), []

    def meanwhile(what):
        if what == "jenkins config.xml":
            seen.append(what)
            if len(seen) == call:
                day.fleet.faults.plan(Fault(what, after=after))
                without_weights(day)

    day.fleet.faults.meanwhile = meanwhile
    builds = submit(day, 1, seconds=300.0)
    day.minutes(3)
    builds += submit(day, 2, seconds=300.0)
    day.minutes(40)
    without_weights(day).minutes(10)
    assert day.fleet.faults.seen
    assert {build.ended for build in builds} == {Ended.FINISHED}
    assert (node_of(day).executors, "cpu" in node_of(day).labels) == (8, True)


def test_a_person_who_gives_a_node_other_executors_afterwards_has_the_last_word():
    day = a_day()
    submit(day, 1, seconds=300.0)
    submit(day, 1, job="light", seconds=300.0)
    day.minutes(3)
    without_weights(day).minutes(15)
    node = node_of(day)
    assert node.executors == 8
    before = len(day.done(Relabel))
    day.jenkins.configure(node.name, tuple(node.labels), exclusive=node.exclusive, executors=3)
    day.minutes(10)
    assert (node_of(day).executors, len(day.done(Relabel))) == (3, before)


def test_once_the_key_is_back_jobs_have_their_weights_again():
    day = a_day()
    submit(day, 1, seconds=300.0)
    day.minutes(3)
    without_weights(day).minutes(15)
    file_is_now(day, weights=WEIGHTS)
    day.minutes(1)
    heavy = submit(day, 2, seconds=900.0)
    day.minutes(3)
    assert (len(running(heavy)), FULL_LABEL in node_of(day).labels) == (2, True)
