"""Comparing policies: what is played, what is kept, what is measured."""

import csv
import json
from dataclasses import replace

import joblib
import pytest
from typer.testing import CliRunner

from autoscaler.config import load_settings
from autoscaler.domain.facts.memory import Arrivals, Expected, Follower, Growth, IdleReturns, Memory, StageSeen
from autoscaler.errors import ConfigError
from autoscaler_workbench.cli.main import app
from autoscaler_workbench.experiment.ablation import PARTS, AblatedState
from autoscaler_workbench.experiment.compare import COLUMNS, FIXED, Workload, compare, entries, play_entry, read_rows
from autoscaler_workbench.experiment.experiment import POLICIES, Experiment, play, setting_text
from autoscaler_workbench.report.comparison.means import ablations, highest_drawn, highlighted, verdict
from autoscaler_workbench.report.comparison.words import impression
from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET, fleet_for
from autoscaler_workbench.simulate.new_fleet import as_shipped
from autoscaler_workbench.simulate.traces import MXNET, MXNET_DAY, judged_part, load_trace
from support.builders import a_learned
from support.remembered import tables, with_tables

LINKERD = MXNET.parent / "linkerd_gha.csv.gz"
TINY = Workload(file=LINKERD, hours=5.0)
# Settings of ours: dollars, p95 wait. The last is no frontier: the second is cheaper and faster.
OURS = [("", 100.0, 200.0), ("a=1", 200.0, 100.0), ("a=2", 400.0, 150.0)]
HEADER = "queued_at,duration_s,label,job\n"


def done(out, todo):
    return list(compare(todo, out, jobs=1))[-1]


def a_trace(tmp_path, *rows):
    file = tmp_path / "trace.csv"
    file.write_text(HEADER + "".join(f"{at},{seconds},{label},job\n" for at, seconds, label in rows), encoding="utf-8")
    return load_trace(file, hours=24)


def test_every_policy_finishes_a_quiet_trace():
    rows = [play_entry(entry) for entry in entries([TINY], POLICIES, 1, sweep=False)]
    kills = {"buildkite", "target-tracking"}  # they end machines without a look at what runs there
    assert [row["policy"] for row in rows if row["finished"] < row["jobs"] or row["killed"]] == [
        row["policy"] for row in rows if row["policy"] in kills and row["killed"]
    ]


def test_the_same_seed_is_the_same_run_to_the_cent():
    [*_, entry] = entries([TINY], ["autoscaler"], 1, sweep=False)
    first, second = (play_entry(entry) | {"took_s": 0} for _ in range(2))
    assert first == second


def test_results_have_the_columns_that_others_read_first(tmp_path):
    todo = entries([TINY], ["reactive"], 2, sweep=False)
    assert done(tmp_path, todo) == (2, 2)
    with (tmp_path / "results.csv").open(encoding="utf-8") as lines:
        assert tuple(next(csv.reader(lines)))[: len(COLUMNS)] == COLUMNS
    [first, _] = sorted(read_rows(tmp_path / "results.csv"), key=lambda row: row["seed"])
    assert first["total_usd"] == pytest.approx(first["usd"] + first["wait_hours"] * 20.0, abs=0.02)
    pools = read_rows(tmp_path / "pools.csv")
    assert sum(row["usd"] for row in pools if row["seed"] == 1) == pytest.approx(first["usd"], abs=0.01)


def test_a_comparison_that_was_stopped_goes_on_where_it_was(tmp_path):
    todo = entries([TINY], ["reactive", "karpenter"], 1, sweep=False)
    done(tmp_path, todo[:1])
    steps = list(compare(todo, tmp_path, jobs=1))
    assert steps == [(1, 2), (2, 2)]
    assert list(compare(todo, tmp_path, jobs=1)) == [(2, 2)]
    assert len(read_rows(tmp_path / "results.csv")) == 2


def test_a_directory_holds_one_comparison(tmp_path):
    done(tmp_path, entries([TINY], ["reactive"], 1, sweep=False))
    longer = Workload(file=LINKERD, hours=6.0)
    with pytest.raises(ConfigError, match=r"holds results of another linkerd_gha.csv.gz"):
        done(tmp_path, entries([longer], ["reactive"], 1, sweep=False))


def test_the_same_comparison_runs_on_dask(tmp_path):
    from distributed import Client, LocalCluster  # noqa: PLC0415 - nobody else needs it, and it takes half a second to import

    todo = entries([TINY], ["reactive", "gitlab"], 1, sweep=False)
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster),
        joblib.parallel_config("dask"),
    ):
        assert done(tmp_path, todo) == (2, 2)


def test_ours_is_played_as_shipped_first_and_rivals_that_stop_instances_beside_it():
    todo = entries([TINY], (), 1, sweep=False)
    ours = [entry.settings for entry in todo if entry.policy == "autoscaler"]
    assert ours == [{"as_shipped": 0.33}, {"as_shipped": 0.6}, {"as_shipped": 1.0}, dict(FIXED)]
    assert {"ec2-plugin-stops", "github-runners-warm", "buildkite-stack-warm"} < {entry.policy for entry in todo}


def test_as_shipped_stops_the_agents_that_a_new_file_would():
    shipped = as_shipped(load_settings(EXAMPLE_FLEET)).domain()
    assert {name for name, pool in shipped.pools.items() if pool.warm_pool} == {"mxnetlinux-cpu", "utility"}


def test_starts_that_take_longer_make_what_is_shipped_dearer():
    quick, _, slow, _ = (play_entry(entry) for entry in entries([TINY], ["autoscaler"], 1, sweep=False))
    assert (quick["setting"], slow["setting"]) == ("as_shipped=0.33", "as_shipped=1")
    assert quick["total_usd"] < slow["total_usd"]


def test_a_knob_is_turned_once_for_each_value_and_the_default_stands_by_itself():
    settings = [entry.settings for entry in entries([TINY], ["ec2-plugin"], 1, sweep=True)]
    assert settings == [{}, {"idle_minutes": 1}, {"idle_minutes": 5}, {"idle_minutes": 10}, {"idle_minutes": 60}]


def test_a_rival_that_beats_one_point_of_our_frontier_in_dollars_and_wait_is_named():
    ours = [{"policy": "autoscaler", "setting": s, "usd": usd, "wait_p95_s": wait, "killed": 0, "total_usd": 0.0} for s, usd, wait in OURS]
    cheaper_and_faster = {"policy": "x", "setting": "a=1", "usd": 90.0, "wait_p95_s": 150.0, "total_usd": 0.0, "killed": 0}
    beaten = {"policy": "y", "setting": "", "usd": 300.0, "wait_p95_s": 140.0, "total_usd": 0.0, "killed": 0}
    assert verdict("t", [*ours, cheaper_and_faster, beaten])["beyond"] == ["x a=1"]


@pytest.mark.parametrize(("ours", "theirs", "highest"), [(300.0, 200.0, 600.0), (10.0, 200.0, 400.0), (0.0, 0.0, float("inf"))])
def test_frontiers_are_drawn_up_to_twice_our_longest_wait_or_the_middle_one_of_all(ours, theirs, highest):
    waits = [("autoscaler", ours), ("gitlab", theirs), ("karpenter", theirs), ("mxnet-ci", 400_000.0 if theirs else 0.0)]
    assert highest_drawn([{"policy": policy, "wait_p95_s": wait} for policy, wait in waits]) == highest


def test_a_part_of_the_learning_is_worth_what_the_total_rises_without_it():
    (_, usd, wait), part = OURS[0], "without=stages"
    ours, without = (
        {"trace": "t", "policy": "autoscaler", "setting": s, "total_usd": usd * by, "wait_p95_s": wait * by}
        for s, by in ((setting_text(FIXED), 1), (part, 1.5))
    )
    assert list(ablations([ours, without])) == [{"trace": "t", "part": "stages", "total_percent": 50.0, "p95_s": 100.0}]


@pytest.mark.parametrize("part", PARTS)
def test_what_is_forgotten_is_never_there_again(part):
    state = AblatedState(part=part)
    seen = Arrivals(pool="cpu", times=(1.0,), count=1, expected=(Expected(at=9.0, period_seconds=8.0, share=0.5),))
    follower = Follower(after="i", delays=(60.0,), missed=0)
    learned = a_learned(samples={"k": (1.0,)}, stages={"s": StageSeen()}, arrivals={"j": seen}, followers={"j": follower})
    state.save_learned("main", learned)
    returns = {"main/cpu": {"1": IdleReturns(times=(1.0,), jobs=(1.0,))}}
    state.save_memory(
        with_tables(Memory(), boots={"cpu": (1.0,)}, idle_returns=returns, growths={"main/cpu": (Growth(steps=((0.0, 1),)),)})
    )
    stored = state.read()
    kept = stored.learned["main"]
    left = {
        "durations": kept.samples,
        "boots": tables(stored.memory).boots,
        "keeping": tables(stored.memory).idle_returns,
        "growth": tables(stored.memory).growths,
        "stages": kept.stages,
        "followers": kept.followers,
        "schedules": kept.arrivals["j"].expected,
    }
    assert [name for name, what in left.items() if not what] == [part]


def test_what_is_no_part_of_the_learning_cannot_be_left_out():
    with pytest.raises(ConfigError, match=r"without \(luck\): must be one of durations, boots, keeping"):
        AblatedState(part="luck")


def test_measures_count_what_happened(tmp_path):
    trace = a_trace(tmp_path, (0, 600, "cpu"), (0, 600, "cpu"), (7200, 60, "cpu"))
    row = play(Experiment(trace=trace, fleet=fleet_for(trace), hours=3.0, policy="karpenter"))
    assert (row["jobs"], row["finished"], row["launches"], row["killed"]) == (3, 3, 2, 0)
    assert row["late_share"] > 0
    assert row["utilisation"] == pytest.approx(1260 / (row["agent_hours"] * 3600 * 4), abs=1e-3)
    assert row["usd_per_busy_hour"] == pytest.approx(row["usd"] / (1260 / 3600), rel=0.02)
    assert row["early_terminations"] == 1  # the last job took a minute
    at, waiting, running, paid = next(point for point in row["timeline"] if point[2])
    assert (waiting, running, paid) == (0, 2, 4)
    assert trace.start_at < at < trace.start_at + 1200


def test_a_lead_in_is_played_and_not_measured(tmp_path):
    path = tmp_path / "trace.csv"
    a_trace(tmp_path, (0, 600, "cpu"), (0, 5400, "cpu"), (7200, 60, "cpu"))
    trace = load_trace(path, hours=3.0, lead_in_hours=1.0)
    led = play(Experiment(trace=trace, fleet=fleet_for(trace), hours=3.0, policy="karpenter"))
    whole = play(Experiment(trace=load_trace(path, hours=4.0), fleet=fleet_for(trace), hours=4.0, policy="karpenter"))
    assert (led["jobs"], led["finished"], led["launches"]) == (1, 1, 1)
    assert led["agent_hours"] == pytest.approx(whole["agent_hours"] - 1.0, abs=0.01)
    assert led["timeline"][0][0] == trace.judged_at


def test_the_bill_ends_with_the_trace_or_its_last_job(tmp_path):
    trace = a_trace(tmp_path, (0, 60, "cpu"))
    row = play(Experiment(trace=trace, fleet=fleet_for(trace), hours=2.0, policy="ec2-fleet-plugin"))
    assert row["agent_hours"] == pytest.approx(2.0, abs=0.01)


def test_a_stage_is_played_when_the_one_before_is_done():
    trace = load_trace(MXNET, hours=2.0, start_at=MXNET_DAY)
    row = play(Experiment(trace=trace, fleet=load_settings(EXAMPLE_FLEET), hours=2.0, policy="clairvoyant"))
    assert row["finished"] == row["jobs"] == 10


def test_a_guessed_fleet_has_a_pool_for_every_label(tmp_path):
    labels = ("gpu_4_queue", "amd_mi300_8", "arm64_cpu", "windows-gpu", "", "linux && cuda", "H200")
    fleet = fleet_for(a_trace(tmp_path, *((n, 60, label) for n, label in enumerate(labels)))).domain()
    types = {name: (pool.offerings[0].instance_type, pool.executors) for name, pool in fleet.pools.items()}
    assert types == {
        "gpu-4-queue": ("g6.12xlarge", 1),
        "amd-mi300-8": ("g6.48xlarge", 1),
        "arm64-cpu": ("c7g.4xlarge", 4),
        "windows-gpu": ("g4dn.8xlarge", 1),
        "any": ("c6i.4xlarge", 4),
        "linux-cuda": ("g6.4xlarge", 1),
        "h200": ("g6.4xlarge", 1),
    }
    assert fleet.pools["linux-cuda"].labels == {"linux", "cuda"}
    assert not fleet.pools["any"].exclusive


def test_the_command_writes_results_and_a_report(tmp_path):
    arguments = ["compare", "--trace", str(LINKERD), "--hours", "5", "--seeds", "1", "--policy", "reactive", "--policy", "autoscaler"]
    ran = CliRunner().invoke(app, [*arguments, "--no-sweep", "--jobs", "1", "--out", str(tmp_path), "--json"])
    assert ran.exit_code == 0, ran.output
    told = json.loads(ran.stdout)
    assert told["runs"] == 5
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "reactive" in page
    assert page.count('"run":') == 5, "a run's points must not each repeat its name"
    assert "https://cdn" not in page


@pytest.mark.parametrize(
    ("setting", "line"), [("idle_count=[1", "--set idle_count="), ("idle_count", "must be KEY=VALUE"), ("speed=1", "is no setting")]
)
def test_a_setting_that_cannot_be_read_is_refused_in_one_line(setting, line):
    with pytest.raises(ConfigError, match=line):
        CliRunner().invoke(app, ["simulate", "--policy", "gitlab", "--hours", "1", "--set", setting], catch_exceptions=False)


def test_the_command_can_begin_in_the_middle_of_a_trace(tmp_path):
    arguments = ["compare", "--trace", str(LINKERD), "--skip", "24", "--lead-in", "1", "--hours", "5", "--seeds", "1"]
    ran = CliRunner().invoke(app, [*arguments, "--policy", "reactive", "--no-sweep", "--jobs", "1", "--out", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    [row] = read_rows(tmp_path / "results.csv")
    assert row["jobs"] == len(judged_part(load_trace(LINKERD, hours=5, skip_hours=24, lead_in_hours=1)).rows) > 0


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--policy", "magic"], r"--policy \(magic\): must be one of autoscaler, mxnet-ci"),
        (["--trace", "/nonexistent.csv"], r"/nonexistent.csv: cannot be read"),
    ],
)
def test_what_is_refused_is_said_in_one_line(tmp_path, arguments, line):
    with pytest.raises(ConfigError, match=line):
        CliRunner().invoke(app, ["compare", "--out", str(tmp_path), "--seeds", "1", *arguments], catch_exceptions=False)


def test_limits_by_the_hour_hold_nobody_back_in_a_comparison(tmp_path):
    trace = a_trace(tmp_path, *((0, 600, label) for label in ("a", "b", "c")))
    fleet = fleet_for(trace)
    strict = fleet.model_copy(update={"limits": fleet.limits.model_copy(update={"max_launches_per_hour": 1})})
    assert play(Experiment(trace=trace, fleet=strict, hours=1.0))["launches"] == 3


def a_verdict(ours, best, spread=0.0, seeds=1):
    """Ours and the best rival: each a bill and a total."""
    rows = [
        {"policy": p, "usd": u, "total_usd": t, "spread": spread, "seeds": seeds} for p, (u, t) in (("autoscaler", ours), ("gitlab", best))
    ]
    return {"trace": "t", "ours": rows[0], "best": rows[1]}


def test_where_ours_is_cheaper_one_sentence_says_by_how_much():
    said = impression(a_verdict((10.0, 60.0), (20.0, 100.0)), 30.0, 0.0)
    assert said == "t: ours costs $60.00, the best rival (gitlab) $100.00: ours is 40 % cheaper."


@pytest.mark.parametrize(
    ("verdict_of", "lead_in", "says", "silent"),
    [
        (a_verdict((20.0, 102.0), (10.0, 100.0)), 0.0, ["2.0 % dearer", "One seed cannot tell", "it knew nothing"], ["seed to seed"]),
        (a_verdict((20.0, 140.0), (10.0, 100.0)), 24.0, ["40 % dearer", "it knew what 24 hours had taught it"], ["One seed"]),
        (a_verdict((20.0, 102.0), (10.0, 100.0), 3.0, 5), 168.0, ["differ from seed to seed (± $3.00)"], ["--lead-in", "One seed"]),
        (a_verdict((20.0, 110.0), (10.0, 100.0), 3.0, 5), 168.0, ["Its bill is $10.00 more, its jobs' waiting the same."], ["chance"]),
        (a_verdict((5.0, 110.0), (10.0, 100.0)), None, ["Its bill is $5.00 less, its jobs' waiting $15.00 more."], ["--lead-in"]),
    ],
)
def test_where_ours_is_dearer_the_first_impression_explains_itself(verdict_of, lead_in, says, silent):
    said = impression(verdict_of, 30.0, lead_in)
    assert [word for word in says if word not in said] == []
    assert [word for word in silent if word in said] == []
    assert "docs/comparison.md, “Where others are better”" in said


def test_at_most_five_policies_stand_out_by_themselves_and_the_cheapest_rivals_are_among_them():
    totals = {"autoscaler": 50.0, "clairvoyant": 10.0, "a": 90.0, "b": 60.0, "c": 70.0, "d": 80.0}
    rows = [
        {"trace": trace, "policy": name, "setting": "", "total_usd": usd * by}
        for name, usd in totals.items()
        for trace, by in (("t", 1), ("u", 9))
    ]
    knobs = [{"trace": "t", "policy": "a", "setting": "knob=1", "total_usd": 1.0}]
    assert highlighted([*rows, *knobs]) == ["autoscaler", "b", "c", "d", "clairvoyant"]
    assert highlighted(rows[:2]) == ["autoscaler"]


def test_a_fleet_with_hosts_is_refused_in_one_line(tmp_path):
    file = tmp_path / "fleet.yaml"
    hosts = "hosts:\n  rocm-1: {pool: rocm, role_id: AROAEXAMPLEID12345678}\n"
    text = EXAMPLE_FLEET.read_text(encoding="utf-8").replace("pools:\n", "pools:\n  rocm: {executors: 2}\n", 1)
    file.write_text(text + hosts, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"hosts \(rocm-1\): only what is launched can be compared"):
        play_entry(entries([replace(TINY, fleet=file)], ["autoscaler"], 1, sweep=False)[0])
