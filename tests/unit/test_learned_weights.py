"""Weights that are learned from what builds were seen to need."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.job_stats import JobRow, MachineSize, Needs, Spread, Subject, Used
from autoscaler.domain.facts.job_weights import JobWeights, Source
from autoscaler.domain.facts.memory import Learned
from autoscaler.domain.facts.room import executors_at_first, with_known_weights
from autoscaler.domain.forecast.spread import note_value
from autoscaler.domain.report.learned_weights import WEIGHTS_KEPT, next_weights
from support.builders import NOW, a_fleet, a_pool

GIB = 2.0**30
LEARNING = JobWeights(by_pattern=(("fixed/*", 2), ("*", Source.LEARNED)))
FLEET = replace(a_fleet(a_pool("cpu", executors=8), a_pool("big", executors=2)), weights=LEARNING)


def spread(value, count):
    found = Spread()
    for _ in range(count):
        found = note_value(found, value, NOW, 16)
    return found


def used(memory_gib, cores=1.0, count=5):
    return Used(memory=spread(memory_gib * GIB, count), cores=spread(cores, count))


def row(job, *, pool="cpu", alone=None, beside=None, signature="", memory_gib=64.0):
    size = MachineSize(memory=memory_gib * GIB, cores=16.0)
    needs = Needs(alone=alone or Used(), beside=beside or Used(), machine=size)
    return JobRow(controller="main", subject=Subject(job=job, signature=signature), pool=pool, first_at=NOW, seen_at=NOW, needs=needs)


def weights(*rows, known=None):
    return next_weights(known or {}, rows, FLEET)


def test_a_job_weighs_as_many_executors_as_its_memory_fills():
    assert weights(row("link", alone=used(20.0))) == {"link": 3}
    assert weights(row("lint", alone=used(2.0))) == {}


def test_a_job_weighs_as_many_executors_as_its_processors_fill_and_never_more_than_there_are():
    assert weights(row("make", alone=used(1.0, cores=7.0))) == {"make": 4}
    assert weights(row("all", alone=used(70.0, cores=40.0))) == {"all": 8}


def test_what_was_seen_alone_on_a_machine_is_believed_first_and_one_build_is_no_rule():
    assert weights(row("link", alone=used(20.0), beside=used(60.0))) == {"link": 3}
    assert weights(row("link", alone=used(20.0, count=1), beside=used(30.0))) == {"link": 4}
    assert weights(row("link", alone=used(20.0, count=2))) == {}


def test_stages_and_pools_that_are_not_there_any_more_teach_nothing():
    assert weights(row("link", alone=used(20.0), signature="Build"), row("old", pool="gone", alone=used(60.0))) == {}


def test_of_a_job_in_two_pools_the_larger_weight_counts():
    assert weights(row("link", alone=used(20.0)), row("link", pool="big", alone=used(20.0))) == {"link": 3}


def test_a_weight_that_was_learned_stays_until_its_job_is_seen_to_need_less():
    assert weights(known={"link": 3}) == {"link": 3}
    assert weights(row("link", alone=used(2.0)), known={"link": 3}) == {}


def test_only_of_jobs_whose_pattern_asks_for_it_weights_are_kept():
    assert weights(row("fixed/a", alone=used(60.0)), known={"fixed/b": 4}) == {}


def test_of_too_many_the_heaviest_are_kept():
    known = {f"job-{n}": 2 + n % 5 for n in range(WEIGHTS_KEPT + 100)}
    kept = weights(known=known)
    assert len(kept) == WEIGHTS_KEPT
    assert min(kept.values()) == 2
    assert sum(weight > 2 for weight in kept.values()) == sum(weight > 2 for weight in known.values())


def test_patterns_say_which_jobs_weights_are_learned():
    learned = {"main": Learned(weights={"link": 3, "fixed/a": 7}), "other": Learned(weights={"link": 5})}
    known = with_known_weights(FLEET, learned)
    assert [known.weights.of(job) for job in ("link", "fixed/a", "new")] == [5, 2, 1]
    assert executors_at_first(known.pools["cpu"], known) == 1
    assert FLEET.weights.of("link") == 1


@pytest.mark.parametrize("written", [JobWeights(), JobWeights(by_pattern=(("link", 2),))])
def test_where_nothing_is_to_be_learned_the_fleet_file_counts_alone(written):
    fleet = replace(FLEET, weights=written)
    assert with_known_weights(fleet, {"main": Learned(weights={"link": 3})}) is fleet
