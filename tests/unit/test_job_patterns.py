"""Learn which jobs follow other jobs, and which come at the same time again and again."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import Fleet, WarmPool
from autoscaler.domain.facts.memory import Arrivals, Follower
from autoscaler.domain.facts.plan import Cordon, Launch
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState, RecordState
from autoscaler.domain.forecast.job_patterns import Arrival, note_arrivals
from autoscaler.domain.learn import assess
from autoscaler.domain.lessons import learn_from_builds
from autoscaler.domain.memo import Memo
from support.builders import (
    NOW,
    a_fleet,
    a_learned,
    a_memory,
    a_pool,
    a_record,
    a_snapshot,
    a_view,
    an_agent,
    an_empty_window,
    an_instance,
    an_item,
)
from support.decisions import scale_down, scale_up

CPU, GPU = a_pool("cpu"), a_pool("gpu")
FLEET = a_fleet(CPU, GPU)
HOUR, DAY = 3600.0, 86_400.0
POOLS = {name: pool.costs for name, pool in assess(a_snapshot(a_view()), FLEET).pools_of("main").items()}


def at_price(usd_per_hour: float) -> Fleet:
    return a_fleet(CPU, replace(GPU, offerings=tuple(replace(offering, usd_per_hour=usd_per_hour) for offering in GPU.offerings)))


AT_13_DOLLARS = at_price(13.0)


def after(*arrivals: tuple[str, float], pools=POOLS):
    """What is learned from jobs that came then, in seconds before now; all need the gpu pool."""
    learned = a_learned(seen_at=1.0)
    for job, ago in sorted(arrivals, key=lambda arrival: -arrival[1]):
        learned = note(learned, job, NOW - ago, pools)
    return learned


def note(learned, job: str, at: float, pools=POOLS):
    arrivals, followers, schedules = note_arrivals(learned, [Arrival(job=job, pool="gpu", at=at)], pools, at)
    return replace(learned, arrivals=arrivals, followers=followers, schedules=schedules)


def each(seconds: float, times: int, *, until: float = 0.0) -> Iterable[float]:
    """So many times that far apart, the last one ``until`` seconds ago."""
    return [until + seconds * number for number in range(times)]


def now_and_then(times: int, *, until: float) -> list[float]:
    """So many times, with no two the same time apart."""
    return [until + number * HOUR + number * number * 400.0 for number in range(times)]


def builds_and_tests(times: int, *, delay: float = 600.0, each_followed: int = 1, until: float = HOUR) -> list[tuple[str, float]]:
    """Builds now and then, and tests that follow each of them, or each second, ..."""
    began = now_and_then(times, until=until)
    return [*(("build", ago) for ago in began), *(("tests", ago - delay) for ago in began[::each_followed])]


def foreseen(learned, fleet=FLEET, now: float = NOW, memo: Memo | None = None) -> dict[str, tuple[int, str]]:
    situation = assess(replace(a_snapshot(a_view(), learned={"main": learned}), taken_at=now), fleet, memo)
    return {pool: (due.executors, due.why) for pool, due in situation.forecasts("main").items()}


# Jobs that follow others.


def test_an_arrival_that_is_told_of_late_takes_its_place_among_the_others():
    learned = note(note(a_learned(seen_at=1.0), "tests", NOW - 60), "tests", NOW - 90)
    assert learned.arrivals["tests"].times == (NOW - 90, NOW - 60)


def test_a_job_that_comes_after_another_one_is_learned_to_follow_it():
    assert after(*builds_and_tests(8)).followers == {"tests": Follower(after="build", delays=(600.0,) * 8, missed=0)}


def test_five_times_are_needed():
    assert after(*builds_and_tests(4)).followers == {}


def test_a_job_that_follows_less_often_than_not_is_not_counted_on():
    assert after(*builds_and_tests(16, each_followed=2)).followers == {}


@pytest.mark.parametrize("delay", [30.0, 2000.0])
def test_what_comes_together_or_half_an_hour_apart_is_no_follower(delay):
    assert "tests" not in after(*builds_and_tests(8, delay=delay)).followers


def test_it_must_have_paid_in_the_earlier_half_and_in_the_later_one():
    """The first six were followed, then every second one: at $30 an hour that paid on the whole, but not lately."""
    began = now_and_then(11, until=HOUR)
    followed = {*began[5:], *began[1:5:2]}
    arrivals = [*(("build", ago) for ago in began), *(("tests", ago - 600.0) for ago in followed)]
    assert "tests" in after(*arrivals).followers
    dear = {"gpu": replace(POOLS["gpu"], usd_per_hour=30.0)}
    assert "tests" not in after(*arrivals, pools=dear).followers


@pytest.mark.parametrize(("usd_per_hour", "pays"), [(13.3, True), (13.4, False)])
def test_an_announcer_pays_up_to_the_price_at_which_idling_costs_what_the_waiting_is_worth(usd_per_hour, pays):
    """In each half of the times tests come 120, 120, 300 and 420 s after a build, at $20 an hour of waiting; a boot takes 180 s.

    Agents that are asked for at once are there a boot and a look later, after 240 s: they spare the first two 60 s each, and the others
    180 s, so 480 s; they idle for 60 and 180 s, and for the doubt once for a boot and the 300 s until the last would have come: 720 s.
    """
    began = now_and_then(8, until=HOUR)
    delays = [120.0, 120.0, 300.0, 420.0] * 2
    arrivals = [*(("build", ago) for ago in began), *(("tests", ago - delay) for ago, delay in zip(began, delays, strict=True))]
    assert ("tests" in after(*arrivals, pools={"gpu": replace(POOLS["gpu"], usd_per_hour=usd_per_hour)}).followers) is pays


def test_the_job_is_foreseen_a_boot_and_a_look_before_it_may_come():
    known = note(after(*builds_and_tests(8)), "build", NOW)
    assert foreseen(known, now=NOW + 600.0 - 180.0 - 61.0) == {}
    assert foreseen(known, now=NOW + 600.0 - 180.0 - 59.0) == {"gpu": (1, "tests follows build")}


def test_two_builds_announce_two_of_it():
    known = note(note(after(*builds_and_tests(8)), "build", NOW), "build", NOW + 20.0)
    assert foreseen(known, now=NOW + 400.0)["gpu"][0] == 2


def test_a_memo_does_not_hold_what_was_foreseen_before_other_jobs_came():
    known, memo = note(after(*builds_and_tests(8)), "build", NOW), Memo()
    assert foreseen(known, now=NOW + 400.0, memo=memo)["gpu"][0] == 1
    more = replace(known, arrivals=note(known, "build", NOW + 20.0).arrivals)
    assert foreseen(more, now=NOW + 400.0, memo=memo)["gpu"][0] == 2


def test_what_has_come_is_not_foreseen_any_more():
    known = note(note(after(*builds_and_tests(8)), "build", NOW), "tests", NOW + 380.0)
    assert foreseen(known, now=NOW + 400.0) == {}


def test_what_is_later_than_it_ever_was_is_not_expected_any_more():
    assert foreseen(note(after(*builds_and_tests(8)), "build", NOW), now=NOW + 601.0) == {}


def test_where_waiting_is_cheap_no_machine_idles_for_a_guess():
    patient = a_fleet(CPU, replace(GPU, wait_usd_per_hour=0.01))
    assert foreseen(note(after(*builds_and_tests(8)), "build", NOW), patient, now=NOW + 400.0) == {}


# Jobs that come at the same time.


def test_a_job_of_every_day_is_expected_tomorrow():
    [expected] = after(*(("nightly", ago) for ago in each(DAY, 3))).arrivals["nightly"].expected
    assert (expected.at, expected.period_seconds, expected.share) == (NOW + DAY, DAY, 0.75)


def test_a_new_job_that_came_twice_a_day_apart_is_expected_tomorrow():
    [expected] = after(*(("nightly", ago) for ago in each(DAY, 2))).arrivals["nightly"].expected
    assert (expected.at, expected.share) == (NOW + DAY, 2 / 3)


def test_once_is_no_schedule():
    assert after(("nightly", 0.0)).arrivals["nightly"].expected == ()


def test_one_day_at_the_same_time_is_chance_if_the_job_is_known_for_two():
    """It was pushed at another time first, then yesterday at this time, and now."""
    assert after(("pushed", 2.5 * DAY), ("pushed", DAY), ("pushed", 0.0)).arrivals["pushed"].expected == ()


def test_a_job_that_comes_at_any_time_has_no_schedule():
    assert after(*(("busy", ago) for ago in each(600.0, 20))).arrivals["busy"].expected == ()


def test_a_job_of_every_six_hours_is_expected_at_each_of_them_once():
    known = after(*(("checks", ago) for ago in each(6 * HOUR, 16))).arrivals["checks"]
    assert [e.at - NOW for e in known.expected] == pytest.approx([6 * HOUR, 12 * HOUR, 18 * HOUR, DAY])


@pytest.mark.parametrize(("stopped", "executors"), [(0, 3), (1, 3), (3, 0)])
def test_where_fewer_are_stopped_than_come_a_boot_is_allowed_for(stopped, executors):
    nightly = after(*((name, ago) for name in ("one", "two", "three") for ago in each(DAY, 5, until=DAY)))
    records = [a_record(f"i-{n}", pool="gpu", node=f"gpu-{n}", state=RecordState.STOPPED) for n in range(stopped)]
    instances = [an_instance(record.instance_id, state=InstanceState.STOPPED) for record in records]
    seen = a_snapshot(a_view(), records=tuple(records), instances=tuple(instances), learned={"main": nightly})
    of_gpu = a_pool("gpu", warm_pool=WarmPool(min_agents=0, max_agents=5, max_age_seconds=DAY))
    situation = assess(replace(seen, taken_at=NOW - 200.0), a_fleet(CPU, of_gpu))
    assert sum(due.executors for due in situation.forecasts("main").values()) == executors


def test_an_agent_is_worth_having_just_before():
    nightly = after(*(("nightly", ago) for ago in each(DAY, 5, until=DAY)))
    assert foreseen(nightly, now=NOW - 180.0 - 120.0) == {}
    assert foreseen(nightly, now=NOW - 180.0) == {"gpu": (1, "nightly comes at this time")}


def test_what_did_not_come_is_looked_for_a_period_later_with_less_hope():
    known = note(after(*(("nightly", ago) for ago in each(DAY, 5, until=DAY))), "other", NOW + 121.0)
    [expected] = known.arrivals["nightly"].expected
    assert (expected.at, expected.share) == (NOW + DAY, pytest.approx(5 / 6 * 0.7))


def test_what_never_comes_again_is_forgotten():
    known = after(*(("nightly", ago) for ago in each(DAY, 5, until=DAY)))
    for days in range(12):
        known = note(known, "other", NOW + days * DAY + 600.0)
    assert known.arrivals["nightly"].expected == ()


@pytest.mark.parametrize(("times", "share"), [(3, 3 / (4 + 8)), (4, (3 + 8) / (4 + 8))])
def test_a_guess_by_the_clock_is_trusted_as_far_as_others_of_its_kind_came_true(times, share):
    """Eight jobs came so many times an hour apart, and no more; after three each was expected once more. Now a ninth came three times."""
    others = [(f"job {day}", ago) for day in range(1, 9) for ago in each(HOUR, times, until=day * DAY)]
    [expected] = after(*others, *(("ninth", ago) for ago in each(HOUR, 3))).arrivals["ninth"].expected
    assert expected.share == pytest.approx(share, abs=0.03)


def test_a_burst_after_several_builds_is_one_occasion():
    builds = [("build", 900.0 + 120.0 * number) for number in range(8)]
    assert after(*builds, *(("tests", 600.0 - number) for number in range(8))).followers == {}


def test_what_was_announced_before_the_jobs_first_time_is_of_no_occasion():
    """Two bursts followed two pairs of builds; what came before them, too early to announce anything, must not count as a third."""
    early = [("build", ago) for ago in (30_000.0, 25_000.0, 20_000.0)]
    bursts = [
        (job, at - ago) for at in (9000.0, 4200.0) for job, times in (("build", (0, 90, 180)), ("tests", (600, 602, 604))) for ago in times
    ]
    assert after(*early, *bursts).followers == {}


def test_builds_that_no_tests_follow_any_more_are_believed_less_each_time():
    """Tests followed eight builds. Then they stop: at $13 an hour an agent is still launched for the first builds, for the last none."""
    known = after(*builds_and_tests(8, until=DAY))
    expected = []
    for number in range(12):
        known = note(known, "build", NOW + number * 900.0)
        expected.append(bool(foreseen(known, AT_13_DOLLARS, now=NOW + number * 900.0 + 400.0)))
    assert expected[0]
    assert expected == sorted(expected, reverse=True)
    assert not expected[-1]


def test_one_that_tests_follow_again_does_not_make_the_others_forgotten():
    known = after(*builds_and_tests(8, until=DAY))
    for number in range(12):
        known = note(known, "build", NOW + number * 900.0)
    known = note(note(known, "tests", NOW + 12 * 900.0 - 300.0), "build", NOW + 12 * 900.0)
    assert foreseen(known, AT_13_DOLLARS, now=NOW + 12 * 900.0 + 400.0) == {}


def test_where_guesses_came_to_nothing_no_dear_machine_is_launched_for_one():
    in_vain = [(f"job {day}", ago) for day in range(1, 9) for ago in each(HOUR, 3, until=day * DAY)]
    known = after(*in_vain, *(("ninth", ago) for ago in each(HOUR, 3, until=HOUR)))
    assert [foreseen(known, fleet, now=NOW - 180.0) for fleet in (FLEET, at_price(30.0))] == [{"gpu": (1, "ninth comes at this time")}, {}]


def test_one_job_that_is_announced_twice_over_comes_once():
    known = note(after(*builds_and_tests(8, until=DAY), *(("tests", ago) for ago in each(DAY, 5, until=DAY - 400.0))), "build", NOW - 200.0)
    assert known.arrivals["tests"].expected
    assert foreseen(known, now=NOW + 200.0) == {"gpu": (1, "tests follows build")}


# From looks.


def test_an_item_arrives_once_when_it_became_buildable():
    before = a_learned(seen_at=NOW - 60.0, waiting={"1\nold": 100.0})
    items = (an_item(1, label="cpu", job="old"), an_item(2, label="cpu", job="new", waiting_seconds=25.0))
    learned = learn_from_builds(assess(a_snapshot(a_view(items=items), learned={"main": before}), FLEET), "main", {}).learned
    assert learned.arrivals == {"new": Arrivals(pool="cpu", times=(NOW - 25.0,), count=1)}


def test_the_first_look_cannot_tell_what_is_new():
    items = (an_item(1, label="cpu"),)
    first = a_snapshot(a_view(items=items), memory=a_memory(sessions={}))
    assert learn_from_builds(assess(first, FLEET), "main", {}).learned.arrivals == {}


# What follows from it.


def test_an_agent_is_launched_for_what_is_foreseen_and_the_plan_says_for_what():
    known = note(after(*builds_and_tests(8)), "build", NOW - 400.0)
    [launch] = [s for s in scale_up(a_snapshot(a_view(), learned={"main": known}), FLEET).steps if isinstance(s, Launch)]
    assert (launch.pool, launch.count, launch.reason) == ("gpu", 1, Reason.FORESEEN)
    assert launch.detail == "1 executor for what is to come: tests follows build"


def test_a_launch_for_what_waits_says_how_many_of_its_agents_are_for_what_is_foreseen():
    """Of twelve agents eleven were guesses, and the plan said of all that a job had waited too long."""
    known = note(after(*builds_and_tests(8)), "build", NOW - 400.0)
    view = a_view(items=(an_item(1, label="gpu", job="other", waiting_seconds=300.0),))
    [launch] = [s for s in scale_up(a_snapshot(view, learned={"main": known}), FLEET).steps if isinstance(s, Launch)]
    assert (launch.count, launch.reason) == (2, Reason.NOBODY_CAN_SERVE)
    assert launch.detail.endswith("; 1 of 2 agents: 1 executor for what is to come: tests follows build")


def test_an_agent_is_kept_for_what_is_foreseen_and_no_longer():
    record, node = an_agent(pool="gpu")
    memory = a_memory(windows=an_empty_window(pool="gpu"))
    for ago, goes in ((400.0, False), (700.0, True)):
        known = note(after(*builds_and_tests(8)), "build", NOW - ago)
        snapshot = a_snapshot(a_view(node), records=(record,), memory=memory, learned={"main": known})
        assert any(isinstance(step, Cordon) for step in scale_down(snapshot, FLEET).steps) == goes


@pytest.mark.parametrize(("seconds_to_go", "launched"), [(180.0, 1), (60.0, 1), (-60.0, 0)])
def test_an_agent_is_kept_for_a_late_job_but_none_is_launched_that_would_come_later_still(seconds_to_go, launched):
    """A job of each night, at $13.50 an hour: who is there spares it a boot; a minute late, one that is launched spares half a look."""
    fleet = a_fleet(CPU, replace(GPU, offerings=tuple(replace(offering, usd_per_hour=13.5) for offering in GPU.offerings)))
    known = after(*(("nightly", ago) for ago in each(DAY, 5, until=DAY - seconds_to_go)))
    launches = [s.count for s in scale_up(a_snapshot(a_view(), learned={"main": known}), fleet).steps if isinstance(s, Launch)]
    record, node = an_agent(pool="gpu")
    memory = a_memory(windows=an_empty_window(pool="gpu"))
    there = scale_down(a_snapshot(a_view(node), records=(record,), memory=memory, learned={"main": known}), fleet)
    assert (sum(launches), [step for step in there.steps if isinstance(step, Cordon)]) == (launched, [])


def test_as_many_agents_are_kept_for_what_is_foreseen_as_it_fills():
    """One job is foreseen, and two agents of four executors are idle."""
    fleet = a_fleet(CPU, replace(GPU, executors=4))
    agents = [an_agent(number, pool="gpu") for number in (1, 2)]
    known = note(after(*builds_and_tests(8)), "build", NOW - 400.0)
    snapshot = a_snapshot(
        a_view(*(replace(node, executors=4) for _, node in agents)),
        records=tuple(record for record, _ in agents),
        memory=a_memory(windows=an_empty_window(pool="gpu")),
        learned={"main": known},
    )
    assert sum(isinstance(step, Cordon) for step in scale_down(snapshot, fleet).steps) == 1
