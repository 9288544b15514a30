"""Time-lines of hosts whose builds take a card by a lease: who holds one, who waits, and what is believed after a power failure."""

import pytest

from autoscaler.domain.facts.fleet import Share
from autoscaler.domain.facts.plan import Launch, Terminate
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from support.builders import a_host, a_pool, a_pool_of_hosts
from support.cards import believed_free, give_cards, leased_at_once, submit
from support.reserving import reserve
from support.timeline import Day
from support.worlds import in_memory

LABEL = "amd64+gfx1030"
BOTH = {"controllers": ("main", "other"), "share": Share.COOPERATIVE, "labels": frozenset({LABEL, "gfx1030"})}


def a_day(*pools, cards=2, **facts):
    """A host with two cards that serves two controllers at once, with as many executors on each."""
    day = Day(in_memory(a_pool_of_hosts(**(BOTH | {"executors": 2} | facts)), *pools, hosts=(a_host(),)))
    day.other = day.world.controllers["other"]
    day.cards = give_cards(day.world, "rocm-1", cards)
    return day.minutes(3)


def jobs(controller, count, seconds=1800.0, **facts):
    return [submit(controller, f"{controller.name}-{n}", LABEL, seconds, **facts) for n in range(count)]


def power_fails(day):
    day.fleet.agents.power_fails(day.world.hosts["rocm-1"])


def power_returns(day):
    day.fleet.agents.power_returns(day.world.hosts["rocm-1"])


def test_the_agent_tells_which_cards_are_held_and_as_many_executors_count_as_free():
    day = a_day()
    assert believed_free(day) == {"main": 2, "other": 2}
    jobs(day.jenkins, 1)
    day.minutes(3)
    assert believed_free(day) == {"main": 1, "other": 1}
    jobs(day.other, 1)
    day.minutes(3)
    assert (day.cards.holders(), believed_free(day)) == (["jenkins-main", "jenkins-other"], {"main": 0, "other": 0})


def test_why_says_who_has_which_card_and_how_many_wait():
    day = a_day()
    jobs(day.jenkins, 1)
    jobs(day.other, 2)
    day.minutes(4)
    [told] = [line for line in day.why("rocm-1") if line.startswith("its devices")]
    assert (
        told == "its devices: 0 (gfx1030) held by jenkins-main, 1 (gfx1030) held by jenkins-other; 1 command waiting for one; told 60 s ago"
    )
    power_fails(day)
    day.minutes(6)
    [told] = [line for line in day.why("rocm-1") if line.startswith("its devices")]
    assert told.endswith("; told 7 min ago, too long ago to say anything of now")


def test_builds_wait_for_a_card_on_their_executor_in_the_order_of_asking_and_no_two_have_the_same():
    day = a_day()
    first = jobs(day.jenkins, 2, seconds=600.0)
    day.minutes(2)
    [second] = jobs(day.other, 1, seconds=600.0)
    day.minutes(1)
    [third] = jobs(day.other, 1, seconds=600.0)
    day.minutes(1)
    assert [build.started_at is not None for build in (second, third)] == [True, True]
    assert [build.leased_at for build in (second, third)] == [None, None]
    day.minutes(30)
    assert {build.ended for build in (*first, second, third)} == {Ended.FINISHED}
    assert second.leased_at <= third.leased_at
    assert leased_at_once(day.world) == 2


@pytest.mark.parametrize("kind", Kind, ids=str)
def test_a_host_that_dies_with_leases_held_loses_its_builds_and_no_other_and_comes_back_by_itself(kind):
    day = a_day()
    lost = [*jobs(day.jenkins, 1, seconds=3600.0, kind=kind), *jobs(day.other, 2, seconds=3600.0, kind=kind)]
    day.minutes(3)
    assert [build.leased_at is not None for build in lost] == [True, True, False]
    power_fails(day)
    [waits] = jobs(day.jenkins, 1, seconds=300.0)
    day.minutes(20)
    assert (believed_free(day), waits.started_at) == ({"main": 0, "other": 0}, None)
    power_returns(day)
    day.minutes(10)
    assert {build.ended for build in lost} == {Ended.KILLED}
    assert (waits.ended, day.done(Terminate), day.failed) == (Ended.FINISHED, [], 0)
    assert (leased_at_once(day.world), day.cards.holders(), believed_free(day)) == (2, [], {"main": 2, "other": 2})


@pytest.mark.parametrize("seconds", [30.0, 1200.0], ids=["for half a minute", "for twenty minutes"])
@pytest.mark.parametrize("held", [0, 2], ids=["all were free", "all were held"])
def test_back_from_a_power_failure_no_card_is_believed_free_until_the_machine_says_so(held, seconds):
    day = a_day()
    jobs(day.jenkins, held, seconds=3600.0)
    day.minutes(3)
    power_fails(day)
    day.world.move_to(day.world.timeline.now + seconds)
    day.cards.answers = False  # the driver is not there yet
    power_returns(day)
    day.minutes(1)
    assert {node.connected for node in (day.jenkins.nodes["rocm-1"], day.other.nodes["rocm-1"])} == {True}
    assert believed_free(day) == {"main": 0, "other": 0}
    day.cards.answers = True
    day.minutes(6)
    assert believed_free(day) == {"main": 2, "other": 2}


def test_a_machine_that_goes_on_and_does_not_tell_for_once_is_believed_as_it_told_last():
    day = a_day()
    day.cards.answers = False
    day.other.delete_node("rocm-1")  # it comes back, by an answer for which all is read anew
    seen = [believed_free(day.minutes(1))["main"] for _ in range(12)]
    assert (set(seen), day.other.nodes["rocm-1"].connected) == ({2}, True)


def test_where_gpu_lease_does_not_come_back_at_all_executors_count_after_some_minutes():
    day = a_day()
    power_fails(day)
    day.cards.answers = False
    power_returns(day)
    day.minutes(7)
    assert believed_free(day) == {"main": 2, "other": 2}


def test_while_it_is_off_jobs_go_elsewhere_where_they_can():
    day = a_day(a_pool("cloud", labels=frozenset({LABEL}), controllers=("main", "other")))
    lost = jobs(day.jenkins, 2, seconds=3600.0)
    day.minutes(3)
    power_fails(day)
    again = jobs(day.jenkins, 2, seconds=300.0)
    day.minutes(15)
    assert {build.ended for build in lost} == {Ended.KILLED}
    assert {build.ended for build in again} == {Ended.FINISHED}
    assert {step.pool for step in day.done(Launch)} == {"cloud"}


def test_a_person_reserves_one_card_and_has_it_for_as_long_as_they_wanted_while_builds_go_on():
    day = a_day()
    [result] = reserve(day, "rocm-1", hours=1.0).results
    assert result.outcome == "done"
    assert believed_free(day) == {"main": 1, "other": 1}  # from the order on
    day.minutes(3)
    assert day.cards.holders() == ["alice"]
    builds = [*jobs(day.jenkins, 1, seconds=300.0), *jobs(day.other, 1, seconds=300.0)]
    day.minutes(55)
    assert ({build.ended for build in builds}, day.cards.holders()) == ({Ended.FINISHED}, ["alice"])
    day.minutes(5)
    assert (day.cards.holders(), believed_free(day)) == ([], {"main": 2, "other": 2})


def test_a_reserved_card_stays_the_persons_though_the_machine_does_not_tell_of_its_cards_for_once():
    day = a_day()
    reserve(day, "rocm-1", hours=1.0)
    day.minutes(3)
    day.cards.answers = False
    seen = [day.minutes(1).cards.holders() for _ in range(8)]
    assert seen == [["alice"]] * 8


def test_after_a_power_failure_a_person_has_a_card_again():
    day = a_day()
    reserve(day, "rocm-1", hours=2.0)
    day.minutes(3)
    power_fails(day)
    assert day.cards.holders() == []
    day.minutes(10)
    power_returns(day)
    day.minutes(3)
    assert day.cards.holders() == ["alice"]


def test_a_person_in_a_shell_holds_a_card_and_builds_have_the_other():
    day = a_day()
    shell = day.cards.ask("alice", lambda: None)
    day.minutes(3)
    assert believed_free(day) == {"main": 1, "other": 1}
    builds = [*jobs(day.jenkins, 1, seconds=300.0), *jobs(day.other, 1, seconds=300.0)]
    day.minutes(15)
    assert {build.ended for build in builds} == {Ended.FINISHED}
    assert (leased_at_once(day.world), day.cards.holders()) == (1, ["alice"])
    day.cards.end(shell)
    day.minutes(3)
    assert believed_free(day) == {"main": 2, "other": 2}


@pytest.mark.parametrize("seconds", [60.0, 120.0, 150.0, 180.0, 210.0, 240.0])
def test_a_host_whose_power_fails_on_its_way_to_another_controller_arrives_once_it_is_back(seconds):
    day = Day(in_memory(a_pool_of_hosts(controllers=("main", "other"), share=Share.ROTATE), hosts=(a_host(),))).minutes(10)
    other = day.world.controllers["other"]
    build = other.submit("theirs", "rocm", 300.0)
    day.world.timeline.after(seconds, lambda: power_fails(day))
    day.minutes(20)
    assert build.ended is not Ended.FINISHED
    power_returns(day)
    again = other.submit("again", "rocm", 300.0)
    day.minutes(25)
    assert (again.ended, day.nodes(), day.failed) == (Ended.FINISHED, [], 0)
    assert [record.leaves for record in day.fleet.state.read().records] == [()]


def test_a_host_whose_power_fails_while_a_person_has_it_is_still_theirs_when_it_is_back():
    day = Day(in_memory(a_pool_of_hosts(), hosts=(a_host(),))).minutes(3)
    reserve(day, "rocm-1", hours=2.0)
    day.minutes(3)
    power_fails(day)
    day.minutes(30)
    power_returns(day)
    [build] = day.queue(1, label="rocm", seconds=300.0)
    day.minutes(60)
    assert (build.started_at, day.jenkins.nodes["rocm-1"].temporarily_offline) == (None, True)
    day.minutes(60)
    assert (build.ended, day.failed) == (Ended.FINISHED, 0)
