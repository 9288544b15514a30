"""How long builds take, and what is learned from one look to the next."""

from dataclasses import replace
from math import inf

import pytest

from autoscaler.domain.facts.snapshot import OfflineCause
from autoscaler.domain.forecast.durations import quantiles, quantiles_of, remaining_seconds
from autoscaler.domain.learn import assess
from autoscaler.domain.lessons import learn_from_builds
from support.builders import NOW, a_build, a_fleet, a_learned, a_memory, a_sighting, a_snapshot, a_view, an_agent, an_item, key_of


@pytest.mark.parametrize(
    ("elapsed", "job_p80", "remaining"),
    [
        (10.0, 100.0, 90.0),
        (100.0, 100.0, 1.0),
        (150.0, 100.0, 150.0),
        (101.0, 100.0, 101.0),
        (301.0, 100.0, inf),
        (5.0, None, 60.0),
        (90.0, None, 90.0),
    ],
    ids=["in time", "due now", "overdue", "just overdue, at least as long again", "never", "unknown and young", "unknown and old"],
)
def test_remaining(elapsed, job_p80, remaining):
    assert remaining_seconds(elapsed, job_p80, pool_p80_seconds=lambda: 60.0) == remaining


def test_quantiles_are_of_what_was_seen():
    assert quantiles((5.0, 1.0, 4.0, 2.0, 3.0)).p50_seconds == 3.0
    assert quantiles((5.0, 1.0, 4.0, 2.0, 3.0)).p80_seconds == 4.0


def test_an_unknown_job_takes_the_pools_durations_and_an_unknown_pool_what_is_assumed():
    learned = a_learned(samples={key_of("cpu"): (60.0,), key_of("cpu", "known"): (5.0,)})
    assert quantiles_of(learned, "known", "cpu").p50_seconds == 5.0
    assert quantiles_of(learned, "new", "cpu").p50_seconds == 60.0
    assert quantiles_of(learned, "new", "gpu").p50_seconds == 600.0


def looked_at(before, *builds, items=(), **memory):
    record, node = an_agent(builds=builds)
    snapshot = a_snapshot(a_view(node, items=items), records=(record,), learned={"main": before}, memory=a_memory(**memory))
    return learn_from_builds(assess(snapshot, a_fleet()), "main", {})


def test_a_build_that_ended_teaches_its_duration():
    before = a_learned(running={"k": a_sighting(job="job", pool="cpu", since_at=NOW - 330)}, seen_at=NOW - 60)
    learned = looked_at(before).learned
    assert learned.samples == {key_of("cpu", "job"): (300.0,), key_of("cpu"): (300.0,)}


def test_a_build_is_timed_from_when_it_was_first_seen():
    before = a_learned(running={"job/0": a_sighting(job="job", pool="cpu", since_at=NOW - 330)}, seen_at=NOW - 60)
    assert looked_at(before, a_build()).learned.running["job/0"].since_at == NOW - 330


@pytest.mark.parametrize(
    ("before", "elapsed", "begin_unknown"),
    [
        (a_learned(), None, True),
        (a_learned(waiting={"7\njob": 100.0}, seen_at=NOW - 1200), None, True),
        (a_learned(waiting={"7\njob": 100.0}, seen_at=NOW - 1200), 90.0, False),
        (a_learned(waiting={"7\njob": 100.0}, seen_at=NOW - 240), None, False),
    ],
    ids=["nobody looked before", "nobody looked for long", "Jenkins tells its age", "somebody looked"],
)
def test_a_build_that_nobody_saw_begin_teaches_no_duration(before, elapsed, begin_unknown):
    """After the state was restored two stages that had run for a quarter of an hour were noted with minutes, and `why` counted on that."""
    build = replace(a_build(), elapsed_seconds=elapsed)
    seen = replace(looked_at(before, build).learned, seen_at=NOW - 60)
    assert seen.running[build.key].begin_unknown is begin_unknown
    assert bool(looked_at(seen).learned.samples) is not begin_unknown


def test_a_build_that_ended_while_nobody_looked_teaches_no_duration():
    before = a_learned(running={"k": a_sighting(job="job", pool="cpu", since_at=NOW - 1800)}, seen_at=NOW - 1200)
    assert not looked_at(before).learned.samples


@pytest.mark.parametrize(
    "facts", [{"offline": True, "cause": OfflineCause.LOST}, {"is_deleted": True}], ids=["its agent is away", "its node was deleted"]
)
def test_a_build_that_was_lost_with_its_agent_teaches_no_duration(facts):
    """Agents rebooted a minute after they had connected: builds of 25 min were noted with 30 s, and `why` counted on that."""
    record, node = an_agent()
    before = a_learned(running={"k": a_sighting(job="job", pool="cpu", since_at=NOW - 90, node=node.name)}, seen_at=NOW - 60)
    snapshot = a_snapshot(a_view(replace(node, **facts)), records=(record,), learned={"main": before})
    assert not learn_from_builds(assess(snapshot, a_fleet()), "main", {}).learned.samples


def test_a_job_counts_its_wait_once_when_it_got_its_executor():
    before = a_learned(waiting={"7\njob": 100.0, "8\nother": 500.0}, seen_at=NOW - 60)
    assert looked_at(before, a_build("job")).job_waits == {"cpu": (130.0,)}


def test_a_job_never_seen_waiting_waited_less_than_a_look():
    assert looked_at(a_learned(seen_at=NOW - 60), a_build("job")).job_waits == {"cpu": (30.0,)}


def test_the_first_look_tells_no_waits():
    assert looked_at(a_learned(), a_build("job")).job_waits == {}


def test_an_incomplete_view_teaches_nothing():
    before = a_learned(running={"k": a_sighting(job="job", pool="cpu", since_at=NOW)}, seen_at=NOW - 60)
    snapshot = a_snapshot(a_view(problem="503"), learned={"main": before})
    assert learn_from_builds(assess(snapshot, a_fleet()), "main", {}).learned is before


def test_nothing_is_told_when_only_time_has_passed():
    assert looked_at(a_learned(seen_at=NOW - 60)).learned.tells_what(a_learned(seen_at=NOW - 60))
    waiting = looked_at(a_learned(seen_at=NOW - 60), items=(an_item(label="cpu"),)).learned
    assert not waiting.tells_what(replace(waiting, seen_at=0.0))
