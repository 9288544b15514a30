"""Time-lines of held labels while passes are cut off, answers and state are lost, and what the hold rests upon leaves."""

from copy import deepcopy

import pytest

from autoscaler.domain.facts.fleet import HELD_LABEL
from autoscaler.domain.facts.orders import Overrides, unknown_orders
from autoscaler.domain.facts.plan import Launch
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from scenarios.test_held_labels import LABELS, a_day, agent_nodes, held, labels, released, told
from support.builders import a_pool
from support.file_changes import file_is_now, pool_is_now
from support.timeline import Day
from support.worlds import in_memory


def lose_state(day):
    state = day.fleet.state
    state.records.clear()
    state.intents.clear()
    state.learned.clear()
    state.memory = type(state.memory)(version=state.memory.version)


def forget_orders(day):
    day.fleet.state.overrides = Overrides(version=day.fleet.state.overrides.version)


@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after it took effect"])
@pytest.mark.parametrize("at_once", [True, False], ids=["by the order", "by the schedule"])
@pytest.mark.parametrize("call", [1, 2], ids=["taking", "giving back"])
def test_a_step_that_was_cut_off_is_made_good_and_the_job_waits_until_the_end(call, after, at_once):
    day, seen = a_day(), []

    def meanwhile(name):
        if name == "jenkins config.xml":
            seen.append(name)
            if len(seen) == call:
                day.fleet.faults.plan(Fault(name, after=after))

    day.fleet.faults.meanwhile = meanwhile
    held(day, at_once=at_once).minutes(3)
    [job] = day.queue(1, label="gpu")
    day.minutes(5)
    assert (job.started_at, HELD_LABEL in labels(day)) == (None, True)
    released(day, at_once=at_once).minutes(4)
    assert (job.started_at is not None, labels(day) & {*LABELS, HELD_LABEL}, len(day.done(Launch))) == (True, LABELS, 1)
    assert len(day.fleet.faults.seen) > 0


@pytest.mark.parametrize("are_orders_lost", [False, True], ids=["orders are kept", "orders are lost, too"])
def test_after_the_state_was_lost_the_label_comes_back_once_nobody_holds_it(are_orders_lost):
    day = held(a_day()).minutes(2)
    lose_state(day)
    if are_orders_lost:
        forget_orders(day)
    day.minutes(10)
    assert (HELD_LABEL in labels(day)) is not are_orders_lost
    forget_orders(day)
    day.minutes(3)
    assert labels(day) & {*LABELS, HELD_LABEL} == LABELS


def test_state_that_is_restored_and_knows_of_one_hold_of_two_gives_the_other_label_back():
    day = held(a_day()).minutes(2)
    kept = deepcopy(day.fleet.state.records), day.fleet.state.overrides
    held(day, "linux").minutes(2)
    assert labels(day) & LABELS == frozenset()
    day.fleet.state.records, day.fleet.state.overrides = kept
    day.minutes(3)
    assert labels(day) & {*LABELS, HELD_LABEL} == {"linux", HELD_LABEL}


def test_of_two_holds_each_ends_by_itself():
    day = held(held(a_day(), "gpu", minutes=30), "linux", minutes=10).minutes(2)
    assert labels(day) & LABELS == frozenset()
    day.minutes(10)
    assert labels(day) & {*LABELS, HELD_LABEL} == {"linux", HELD_LABEL}
    day.minutes(20)
    assert labels(day) & {*LABELS, HELD_LABEL} == LABELS


def test_while_nobody_knows_what_was_ordered_the_label_is_not_given_back():
    day = held(a_day()).minutes(2)
    day.fleet.state.overrides = unknown_orders(day.fleet.state.overrides.version)
    [job] = day.queue(1, label="gpu")
    day.minutes(10)
    assert (HELD_LABEL in labels(day), job.started_at) == (True, None)
    forget_orders(day)
    day.minutes(3)
    assert (labels(day) & LABELS, job.started_at is not None) == (LABELS, True)


@pytest.mark.parametrize("is_busy", [False, True])
def test_an_agent_whose_pool_left_the_file_gets_its_label_back(is_busy):
    day = Day(in_memory(a_pool("cpu", labels=LABELS, executors=1, min_agents=1, max_agents=1), a_pool("other"))).minutes(10)
    if is_busy:
        day.queue(1, label="gpu", seconds=7200.0)
        day.minutes(2)
    held(day, minutes=10).minutes(2)
    file_is_now(day, pools={name: pool for name, pool in day.fleet.fleet.pools.items() if name == "other"})
    day.minutes(20)
    assert [node.labels for node in agent_nodes(day) if HELD_LABEL in node.labels and not node.offline] == []
    if is_busy:
        assert [build.ended for build in day.jenkins.builds] == [None]
        assert labels(day) >= LABELS or agent_nodes(day)[0].temporarily_offline


def test_the_label_is_given_back_though_it_left_the_file_meanwhile():
    day = held(a_day()).minutes(2)
    pool_is_now(day, "cpu", labels=frozenset({"linux"}))
    day.minutes(2)
    released(day).minutes(3)
    assert all(HELD_LABEL not in node.labels for node in agent_nodes(day) if not node.offline)


def test_without_the_right_to_configure_why_says_so_and_a_label_that_cannot_be_given_back_is_told_after_an_hour():
    day = a_day()
    day.fleet.faults.plan(Fault("jenkins config.xml", status=403, times=10**6))
    held(day, at_once=False).minutes(2)
    day.queue(1, label="gpu", seconds=60.0)
    day.minutes(2)
    [job] = day.queue(1, label="gpu", seconds=600.0) and [day.jenkins.submit("late", "gpu && !arm", 60.0, quiet_seconds=0.0)]
    assert job.started_at is None
    assert "Jenkins does not let us take the label from" in told(day, "late")
    day.fleet.faults.planned.clear()
    day.minutes(15)
    assert HELD_LABEL in labels(day)
    day.fleet.faults.plan(Fault("jenkins config.xml", status=403, times=10**6))
    released(day, at_once=False).minutes(75)
    [node] = agent_nodes(day)
    subject = f"[f] {node.name} of cpu: without labels too long"
    assert subject in [message.subject for message in day.fleet.notifier.sent]
    day.fleet.faults.planned.clear()
    day.minutes(15)
    assert f"[f] over: {node.name} of cpu: without labels too long" in [message.subject for message in day.fleet.notifier.sent]
    assert labels(day) >= LABELS


def test_an_agent_that_shows_a_build_which_has_ended_loses_its_label_all_the_same():
    day = a_day(executors=2)
    [build] = day.queue(1, label="gpu", seconds=120.0)
    day.minutes(1)
    [node] = agent_nodes(day)
    shown = dict(node.builds)
    day.minutes(4)
    node.builds.update(shown)  # as an executor that goes on showing what has ended
    assert build.ended is Ended.FINISHED
    day.minutes(13)
    held(day).minutes(2)
    assert HELD_LABEL in labels(day)
