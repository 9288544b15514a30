"""Which jobs a pool declines, by what was learned, and what that means for orders that are announced and for promises."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.started_builds import Part, Target, Try, TryState
from autoscaler.domain.labels import one_label
from autoscaler.domain.learn import assess
from autoscaler.domain.situation.promises import _longest_waits
from autoscaler.domain.situation.situation import with_job_lengths
from autoscaler.domain.situation.wants import Want
from support.builders import NOW, a_fleet, a_learned, a_pool, a_snapshot, an_item
from unit.test_judging_runs import an_order

SHORT = a_pool("short", max_job_seconds=100.0)
BIG = a_pool("big")


def declines(samples, *, pool="short", job="job", controller="main", of_pipeline=False, pools=(SHORT, BIG)):
    fleet = with_job_lengths(
        a_fleet(*pools), {"main": a_learned(samples={f"{where}\n{name}": seen for (where, name), seen in samples.items()})}
    )
    return fleet.declines(controller, pool, job, of_pipeline=of_pipeline)


@pytest.mark.parametrize(
    ("samples", "seconds"),
    [
        ({}, None),
        ({("short", "job"): (100.0,)}, None),
        ({("short", "job"): (101.0,)}, 101.0),
        ({("short", "job"): (20.0, 20.0, 9000.0)}, None),  # one that hung
        ({("short", "job"): (20.0, 300.0, 200.0)}, 200.0),
        ({("short", "job"): (20.0,), ("big", "job"): (900.0,)}, None),  # its own builds count
        ({("short", "job"): (200.0,), ("big", "job"): (9.0,)}, 200.0),
        ({("big", "job"): (900.0,)}, 900.0),
        ({("big", "job"): (900.0,), ("gone", "job"): (50.0,)}, None),  # short in one of them
        ({("short", ""): (900.0,), ("short", "other"): (900.0,)}, None),  # of all builds of the pool, and of another job
    ],
)
def test_the_median_of_its_own_builds_counts_and_that_of_others_only_before_there_are_any(samples, seconds):
    decline = declines(samples)
    assert (decline and decline.seconds) == seconds
    assert declines(samples, pool="big") is None


def test_parts_of_pipelines_are_judged_by_builds_in_the_pool_itself():
    assert declines({("big", "job"): (900.0,)}, of_pipeline=True) is None
    assert declines({("short", "job"): (900.0,)}, of_pipeline=True).seconds == 900.0


def test_a_job_without_a_name_is_declined_by_nobody():
    assert declines({("short", ""): (900.0,)}, job="") is None


def test_another_controller_and_a_fleet_without_the_key_decline_nothing():
    samples = {("short", "job"): (900.0,)}
    assert declines(samples, controller="other") is None
    assert declines(samples, pools=(replace(SHORT, max_job_seconds=None), BIG)) is None


@pytest.mark.parametrize(("seconds", "coming"), [(50.0, 1), (900.0, 0)])
def test_an_order_is_not_announced_to_a_pool_that_declines_its_job(seconds, coming):
    target = Target(controller="main", pool="short", label="short", value="short")
    order = an_order(parts=(Part(target=target, tries=(Try(id="run-1.1.1", state=TryState.WRITTEN, at=NOW - 10.0),)),))
    learned = {"main": a_learned(samples={f"short\n{order.job}": (seconds,)})}
    situation = assess(a_snapshot(run_orders=(order,), learned=learned), a_fleet(SHORT))
    assert len(situation.demands["main"].announced) == coming


def test_items_of_one_label_that_other_pools_decline_do_not_stand_for_each_other():
    """A node is free for the one and not for the other."""
    items = [an_item(1, label="linux"), an_item(2, label="linux")]
    wants = [Want(item=item, pools=(BIG,), expression=one_label("linux")) for item in items]
    assert len(_longest_waits([replace(wants[0], declined_by=frozenset({"short"})), wants[1]])) == 2
