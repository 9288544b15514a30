"""Weights that are learned from what builds were seen to need."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.domain.facts.fleet import Machine
from autoscaler.domain.facts.job_settings import JobWeights, Source
from autoscaler.domain.facts.job_stats import EndedUse, JobRow, Machines, MachineSize, Needs, Spread, Subject, Used
from autoscaler.domain.facts.nodes import executors_at_first, with_known_weights
from autoscaler.domain.forecast.durations import note_value
from autoscaler.domain.report.jobs import WEIGHTS_KEPT, list_needs, next_weights
from autoscaler.domain.report.tracking import ToldUse, note_uses
from autoscaler.entry.function_url import read_telemetry
from autoscaler.errors import ConfigError
from support.builders import NOW, a_fleet, a_host, a_learned, a_pool, a_pool_of_hosts, an_offering

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
    ran_on = Machines(memory=spread(memory_gib * GIB, 5), cores=spread(16.0, 5))
    needs = Needs(alone=alone or Used(), beside=beside or Used(), ran_on=ran_on)
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


def test_the_smallest_machine_of_the_pool_counts_and_no_report_if_the_types_are_known():
    small, large = Machine(memory_gib=32.0, vcpu=16), Machine(memory_gib=128.0, vcpu=64)
    pool = a_pool("cpu", executors=8, offerings=(an_offering("m7i.16xlarge"), an_offering("m7i.2xlarge")))
    fleet = replace(FLEET, pools={"cpu": pool}, machines={"m7i.16xlarge": large, "m7i.2xlarge": small})
    assert next_weights({}, [row("link", alone=used(19.0))], fleet) == {"link": 5}
    unknown = replace(fleet, machines={"m7i.16xlarge": large})
    assert next_weights({}, [row("link", alone=used(19.0))], unknown) == {"link": 3}, "as reports are of 64 GiB"


def test_so_does_a_host_whose_memory_the_fleet_file_says():
    hosts = [a_host(f"rocm-{n}", machine=Machine(memory_gib=gib, vcpu=16)) for n, gib in enumerate((64.0, 32.0))]
    fleet = replace(a_fleet(a_pool_of_hosts(executors=8), hosts=hosts), weights=LEARNING)
    assert next_weights({}, [row("link", pool="rocm", alone=used(19.0))], fleet) == {"link": 5}


AMOUNTS = st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from([5e-324, 0.0, 1.0, 16e9, 1e18])


@given(*[AMOUNTS] * 6)
def test_whatever_reports_say_weights_are_weights(memory_total, cores, seconds, memory, cpu, gpu_memory):
    use = {"node": "n", "executor": "0", "run": "job/j/1", "seconds": seconds, "memory": memory, "cpu": cpu, "gpu_memory": gpu_memory}
    try:
        said = {"seconds": 300.0, "cores": cores, "memory_total": memory_total, "memory_available": 1e9, "builds": [use | {"gpu": True}]}
        told = read_telemetry(said)
    except ConfigError:
        return
    size = MachineSize(memory=told.memory_total, cores=told.cores, has_gpu=True)
    build = EndedUse(job="j", run="job/j/1", signature="", pool="cpu", machine="i-1", ended_at=NOW)
    rows = {}
    for _ in range(3):
        for noted in note_uses(rows, [ToldUse(build=build, use=told.builds[0], machine=size)], "main", NOW):
            rows[noted.subject, noted.pool] = noted
    assert all(1 < weight <= 8 for weight in next_weights({}, rows.values(), FLEET).values())
    [entry] = list_needs(rows.values(), FLEET, "*", 5).needs
    assert entry.share <= 1.1


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
    learned = {"main": a_learned(weights={"link": 3, "fixed/a": 7}), "other": a_learned(weights={"link": 5})}
    known = with_known_weights(FLEET, learned)
    assert [known.weights.of(job) for job in ("link", "fixed/a", "new")] == [5, 2, 1]
    assert executors_at_first(known.pools["cpu"], known) == 1
    assert FLEET.weights.of("link") == 1


@pytest.mark.parametrize("written", [JobWeights(), JobWeights(by_pattern=(("link", 2),))])
def test_where_nothing_is_to_be_learned_the_fleet_file_counts_alone(written):
    fleet = replace(FLEET, weights=written)
    assert with_known_weights(fleet, {"main": a_learned(weights={"link": 3})}) is fleet
