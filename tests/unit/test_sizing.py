"""Pools sized by what jobs need: machines, executors, weights, pools of their own, and jobs that never use their GPU."""

import pytest

from autoscaler.config import check
from autoscaler.config.prices import shapes
from autoscaler.errors import ConfigError
from autoscaler_workbench.experiment.by_needs import read_needs, size_by_needs, told_gpus, told_sized
from autoscaler_workbench.experiment.sizing import JobNeed, size_pool, split_pool, without_gpu
from autoscaler_workbench.simulate.traces import Row, Trace

CPU = {"executors": 1, "launch_template": "t", "instance_types": ["m5.4xlarge"], "platform": "linux", "max_agents": 9}  # 16 vCPU, 64 GiB
ENUMERATED = list(enumerate(["lint", "link"]))
GPU = CPU | {"instance_types": ["g4dn.xlarge"]}


def fleet(**pools):
    raw = {
        "fleet": "f",
        "limits": {"max_agents": 99, "max_launches_per_hour": 99, "max_usd_per_hour": 999, "max_usd_per_month": 9999},
        "controllers": {"main": {"url": "http://main/"}},
        "pools": pools or {"cpu": CPU},
    }
    return check(raw, "fleet.yaml")


def need(job, memory_gib, cores=1.0, hours=100.0, pool="cpu", **facts):
    return JobNeed(job=job, pool=pool, memory_gib=memory_gib, cores=cores, hours=hours, **facts)


SMALL, LARGE = need("lint", 2.0, hours=900.0), need("link", 26.0, cores=4.0)


def test_executors_are_many_where_most_jobs_are_small_and_the_large_one_weighs_several():
    sizing = size_pool("cpu", fleet().pools["cpu"], [SMALL, LARGE])
    assert sizing.executors > 1
    assert sizing.weights == {"link": sizing.executors}


@pytest.mark.parametrize("jobs", [[SMALL], [LARGE], [SMALL, LARGE]])
def test_builds_that_fit_by_their_weights_fit_in_memory(jobs):
    sizing = size_pool("cpu", fleet().pools["cpu"], jobs)
    memory = shapes()[sizing.instance_type]["memory_gib"]
    for job in jobs:
        together = sizing.executors // sizing.weights.get(job.job, 1)
        assert together * job.memory_gib <= memory


def test_a_job_that_no_machine_alike_can_hold_sizes_nothing():
    assert size_pool("cpu", fleet().pools["cpu"], [need("huge", 10_000.0)]) is None
    assert split_pool("cpu", fleet().pools["cpu"], [need("huge", 10_000.0)]) == []


def test_where_nothing_is_known_of_a_pool_or_its_machine_nothing_is_proposed():
    assert size_pool("cpu", fleet().pools["cpu"], []) is None
    assert size_pool("cpu", fleet().pools["cpu"], [need("lint", 2.0, pool="other")]) is None
    priced = fleet(cpu=CPU | {"usd_per_hour": 1.0})
    assert size_pool("cpu", priced.pools["cpu"], [SMALL]) is None


def test_jobs_of_unlike_needs_get_pools_of_their_own_in_which_whatever_meets_fits():
    parts = split_pool("cpu", fleet().pools["cpu"], [LARGE, SMALL], same_machine=True)
    assert [(part.jobs, part.executors) for part in parts] == [(("lint",), 16), (("link",), 2)]


def test_a_pool_is_not_split_where_that_saves_little():
    alike = [need("a", 4.0), need("b", 4.2)]
    [part] = split_pool("cpu", fleet().pools["cpu"], alike)
    assert part.jobs == ("a", "b")


def test_machines_with_more_memory_for_a_processor_are_proposed_where_memory_is_what_is_short():
    [part] = split_pool("cpu", fleet().pools["cpu"], [need("link", 26.0, cores=1.0)])
    assert part.instance_type.startswith("r5.")


def test_jobs_that_never_use_a_gpu_are_named_with_the_cheapest_pool_without_one_that_holds_them():
    pools = fleet(gpu=GPU, cpu=CPU, small=CPU | {"instance_types": ["m5.large"]})
    unused = need("docs", 4.0, pool="gpu", uses_gpu=False)
    used, unknown = need("train", 4.0, pool="gpu", uses_gpu=True), need("new", 4.0, pool="gpu")
    greedy = need("pack", 40.0, pool="gpu", uses_gpu=False)
    told = {one.job: pool for one, pool in without_gpu(pools, [unused, used, unknown, greedy])}
    assert told == {"docs": "small", "pack": "cpu"}
    assert list(without_gpu(fleet(gpu=GPU), [unused])) == [(unused, "")]


def test_the_file_of_needs_is_what_the_command_prints(tmp_path):
    file = tmp_path / "needs.json"
    file.write_text('[{"job": "a", "pool": "cpu", "memory_gib": 2.5, "cores": 1, "hours": 3}]', encoding="utf-8")
    assert read_needs(file) == [need("a", 2.5, hours=3.0)]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "the file: Invalid JSON"),
        ('[{"job": "a"}]', "0.pool: Field required"),
        ('[{"job": 3}]', "0.job: Input should be a valid"),
    ],
)
def test_a_file_that_is_none_is_refused_in_one_line(tmp_path, text, line):
    file = tmp_path / "needs.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        read_needs(file)
    assert line in str(refused.value)
    with pytest.raises(ConfigError):
        read_needs(tmp_path / "not-there.json")


def test_both_ways_of_sizing_are_played_and_pools_of_their_own_change_the_labels_that_jobs_ask_for():
    rows = tuple(Row(queued_at=at, duration_seconds=60.0, label="cpu", job=job, run="", stage="", depends_on="") for at, job in ENUMERATED)
    trace, played = Trace(name="t", start_at=0.0, judged_at=0.0, rows=rows, dropped=0), []

    def play(name, fleet, trace):
        played.append((name, fleet, {row.job: row.label for row in trace.rows}))
        return {"usd": 1.0, "wait_p95_s": 30.0}

    weights, pools = size_by_needs(fleet(), trace, [SMALL, LARGE], play)
    assert [name for name, _, _ in played] == ["weights", "pools"]
    assert played[0][2] == {"lint": "cpu", "link": "cpu"}
    assert played[1][2] == {"lint": "cpu-1", "link": "cpu"}
    assert weights.fleet["weights"] == {"link": played[0][1].pools["cpu"].executors}
    assert set(pools.fleet["pools"]) == {"cpu-1", "cpu"}
    told = list(told_sized([weights, pools], {"usd": 9.0, "wait_p95_s": 60.0}))
    assert told[0] == "weights.yaml: a bill of $1.00 instead of $9.00; 95 of 100 jobs wait at most 30 s instead of 60 s."
    assert any(line.startswith("cpu-1: ") and line.endswith(", for lint.") for line in told)


def test_without_needs_nothing_is_played():
    assert size_by_needs(fleet(), None, [], None) == []


def test_jobs_that_keep_a_gpu_idle_are_told():
    unused = need("docs", 4.0, pool="gpu", uses_gpu=False)
    assert list(told_gpus(fleet(gpu=GPU, cpu=CPU), [unused])) == ["docs never used the GPU of gpu: cpu would hold it."]
