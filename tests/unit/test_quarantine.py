"""Which agents are taken out of use because builds fail on them, or never end."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import Quarantine
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Cordon, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.runs import BuildResult, Streak
from autoscaler.domain.learn import assess
from autoscaler.domain.lessons import learn_from_builds
from support.builders import (
    NOW,
    a_build,
    a_fleet,
    a_learned,
    a_memory,
    a_pool,
    a_sighting,
    a_snapshot,
    a_view,
    an_agent,
    an_instance,
    cordoned,
)
from support.builders import a_mark as mark_of
from support.decisions import scale_down
from support.remembered import tables

FAILED, SUCCEEDED = BuildResult.FAILED, BuildResult.SUCCEEDED
STREAK = Streak(failures=5, since_at=NOW - 600.0, jobs=("a", "b", "c", "d", "e"), pool="cpu")


def agents(count, **facts):
    pairs = [an_agent(number, **facts) for number in range(1, count + 1)]
    return [record for record, _ in pairs], [node for _, node in pairs]


def taken(learned, *, quarantine=Quarantine.REPLACE, count=3, builds=(), **memory):
    records, nodes = agents(count)
    if builds:
        nodes[0] = replace(nodes[0], builds=builds, idle=False)
    fleet = a_fleet(a_pool("cpu", min_agents=count, max_agents=100, quarantine=quarantine))
    instances = tuple(an_instance(record.instance_id) for record in records)
    connected = frozenset(record.instance_id for record in records)
    snapshot = a_snapshot(
        a_view(*nodes),
        records=tuple(records),
        instances=instances,
        memory=a_memory(connected=connected, **memory),
        learned={"main": learned},
    )
    plan = scale_down(snapshot, fleet)
    return [step for step in plan.steps if isinstance(step, Cordon) and step.mark.kind is MarkClass.QUARANTINE], plan


def learned_from(before, results, *running, gone=()):
    record, node = an_agent(1)
    node = replace(node, builds=running)
    sightings = {f"cpu-1/0/{run}": a_sighting(job=job, pool="cpu", since_at=NOW - 60, node="cpu-1", run=run) for job, run in gone}
    before = replace(before, running=sightings, seen_at=NOW - 60)
    snapshot = a_snapshot(a_view(node), records=(record,), learned={"main": before})
    return learn_from_builds(assess(snapshot, a_fleet()), "main", results)


def test_failures_in_a_row_are_counted_until_a_build_succeeds():
    first = learned_from(a_learned(), {"job/a/1": FAILED, "job/b/1": FAILED}, gone=[("a", "job/a/1"), ("b", "job/b/1")])
    assert first.learned.streaks == {"cpu-1": Streak(failures=2, since_at=NOW, jobs=("a", "b"), pool="cpu")}
    assert first.tallies == {"cpu": {FAILED: 2}}
    second = learned_from(first.learned, {"job/a/2": SUCCEEDED}, gone=[("a", "job/a/2")])
    assert (second.learned.streaks, second.learned.succeeded_at) == ({}, {"cpu": NOW})


def test_what_was_aborted_or_is_not_known_says_nothing():
    known = a_learned(streaks={"cpu-1": STREAK})
    assert learned_from(known, {}, gone=[("a", "job/a/1")]).learned.streaks == {"cpu-1": STREAK}


def test_the_streak_of_a_node_that_is_gone_is_forgotten():
    assert learned_from(a_learned(streaks={"cpu-9": STREAK}), {}).learned.streaks == {}


def test_a_machine_on_which_builds_fail_while_others_succeed_is_taken():
    [step], _ = taken(a_learned(streaks={"cpu-1": STREAK}, succeeded_at={"cpu": NOW - 60}))
    assert (step.node, step.reason) == ("cpu-1", Reason.FAILURE_STREAK)
    assert step.detail == "5 builds failed in a row on it within 10 min, of 5 jobs that fail on no other; others of its pool succeeded"


@pytest.mark.parametrize(
    "learned",
    [
        a_learned(streaks={"cpu-1": STREAK}),
        a_learned(streaks={"cpu-1": STREAK}, succeeded_at={"cpu": NOW - 700}),
        a_learned(streaks={"cpu-1": STREAK}, succeeded_at={"gpu": NOW - 60}),
        a_learned(streaks={"cpu-1": replace(STREAK, jobs=("a", "b", "c", "d"))}, succeeded_at={"cpu": NOW - 60}),
    ],
    ids=["nothing succeeds", "nothing has since", "only elsewhere", "too few"],
)
def test_where_the_code_may_be_to_blame_the_machine_stays(learned):
    assert taken(learned)[0] == []


def test_an_operator_may_want_no_quarantine():
    assert taken(a_learned(streaks={"cpu-1": STREAK}, succeeded_at={"cpu": NOW}), quarantine=Quarantine.OFF)[0] == []


def test_a_share_of_the_pool_is_taken_an_hour():
    learned = a_learned(streaks={f"cpu-{n}": STREAK for n in range(1, 9)}, succeeded_at={"cpu": NOW})
    steps, plan = taken(learned, count=10)
    assert len(steps) == 2
    assert "6 more agents are suspect; at most 20% of a pool, or one agent, are taken in an hour" in {h.detail for h in plan.held}
    assert taken(learned, count=10, taken={"quarantine/cpu": (NOW - 60, NOW - 60)})[0] == []
    assert tables(plan.memory).taken == {"quarantine/cpu": (NOW, NOW)}


@pytest.mark.parametrize(("elapsed", "samples", "is_taken"), [(7201.0, 5, True), (7199.0, 5, False), (7201.0, 4, False)])
def test_a_build_that_runs_ten_times_what_its_job_takes_makes_its_machine_suspect(elapsed, samples, is_taken):
    learned = a_learned(samples={"cpu\nslow": (720.0,) * samples})
    steps, _ = taken(learned, builds=(a_build("slow", elapsed_seconds=elapsed),))
    assert [step.detail for step in steps] == (
        ["slow has run on it for 2 h; the longest of its last builds took 12 min"] if is_taken else []
    )


def test_a_long_stage_among_short_ones_of_its_pipeline_is_no_hanging_build():
    learned = a_learned(samples={"cpu\npr-1": (10.0,) * 19 + (3000.0,)})
    assert taken(learned, builds=(a_build("pr-1", elapsed_seconds=9000.0),))[0] == []


def given_up(quarantine, **memory):
    record, node = an_agent(1)
    fleet = a_fleet(a_pool("cpu", quarantine=quarantine))
    snapshot = a_snapshot(
        a_view(cordoned(node, mark_of(MarkClass.QUARANTINE))),
        records=(record,),
        instances=(an_instance(record.instance_id),),
        memory=a_memory(connected=frozenset({record.instance_id}), **memory),
    )
    return scale_down(snapshot, fleet)


def test_what_an_operator_wants_to_look_at_is_kept_until_a_person_says():
    [step], plan = taken(a_learned(streaks={"cpu-1": STREAK}, succeeded_at={"cpu": NOW}), quarantine=Quarantine.KEEP)
    assert tables(plan.memory).kept == {"i-1"}
    later = given_up(Quarantine.KEEP, kept=frozenset({"i-1"}))
    assert [held.reason for held in later.held] == [Reason.KEPT]
    assert tables(later.memory).kept == {"i-1"}
    assert not any(isinstance(s, Terminate) for s in (step, *later.steps))


def test_a_machine_that_was_lost_is_not_kept():
    assert Reason.KEPT not in {held.reason for held in given_up(Quarantine.KEEP).held}


def test_what_is_kept_is_forgotten_when_it_is_back_in_use():
    _, plan = taken(a_learned(), quarantine=Quarantine.KEEP, kept=frozenset({"i-1", "i-gone"}))
    assert tables(plan.memory).kept == frozenset()
