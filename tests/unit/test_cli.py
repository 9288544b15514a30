"""The command line: exit codes, and one clear line for what is refused."""

import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from autoscaler.config import load_settings
from autoscaler_workbench.cli import fleet_file
from autoscaler_workbench.cli import main as cli
from autoscaler_workbench.cli.demo import Show
from autoscaler_workbench.simulate.recording import StepTaken
from autoscaler_workbench.simulate.run import in_memory, prepare
from autoscaler_workbench.simulate.shared import Shared, difference
from autoscaler_workbench.simulate.traces import load_trace
from packaging_root import ROOT
from support.cli import autoscaler

DEMO = """
    trace pools passes jobs finished killed unservable wait_p50_s wait_p95_s wait_max_s agent_hours usd launches terminations
    leaked_instances leaked_nodes errors took_s
"""
SIMULATE = """
    trace policy setting seed jobs finished killed usd wait_hours total_usd wait_mean_s wait_p50_s wait_p95_s wait_p99_s agent_hours
    utilisation launches took_s
"""
FLEET = """
fleet: small
limits: {max_agents: 5, max_launches_per_hour: 20, max_usd_per_hour: 50, max_usd_per_month: 500}
controllers: {main: {url: "http://jenkins.invalid/"}}
pools:
  cpu: {executors: 2, launch_template: cpu, instance_types: [c5.large], platform: linux, max_agents: 3, idle_seconds: 120}
"""


@pytest.fixture
def small(tmp_path):
    """Options of a run of twelve minutes: four jobs on one pool, and one that nothing can serve."""
    fleet, trace = tmp_path / "fleet.yaml", tmp_path / "trace.csv"
    fleet.write_text(FLEET, encoding="utf-8")
    rows = [f"{100 + n * 20},60,{'cpu' if n else 'sparc'},job {n}" for n in range(5)]
    trace.write_text("queued_at,duration_s,label,job\n" + "\n".join(rows), encoding="utf-8")
    return ["--trace", trace, "--fleet", fleet, "--hours", "0.2", "--seed", "3"]


def test_the_installed_command_runs_as_a_process_of_its_own():
    command = [Path(sys.executable).parent / "autoscaler", "validate", ROOT / "nowhere.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)


def test_the_version_is_that_of_both_packages_and_of_the_newest_notes():
    [said] = autoscaler("--version").stdout.splitlines()
    projects = [tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"] for folder in ("", "layers/core")]
    [newest] = re.findall(r"^## \[?(\d[\d.]*)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[:1]
    assert {said.removeprefix("autoscaler "), *(project["version"] for project in projects)} == {newest}
    assert f"jenkins-autoscaler[aws-sdk]=={newest}" in projects[0]["dependencies"]


def test_a_valid_fleet_file():
    done = autoscaler("validate", "--json")
    assert done.returncode == 0
    assert list(json.loads(done.stdout)["pools"])[:2] == ["mxnetlinux-cpu", "mxnetlinux-gpu"]
    assert "mxnetlinux-gpu-p3" in autoscaler("validate").stdout


def test_match_says_who_serves_and_why_the_others_do_not():
    done = autoscaler("match", "mxnetlinux-cpu || utility", "--json")
    said = json.loads(done.stdout)
    assert (said["expression"], said["pools"]) == ("mxnetlinux-cpu||utility", ["mxnetlinux-cpu", "utility"])
    assert said["others"]["mxnetlinux-gpu"] == "has no label mxnetlinux-cpu"
    said = json.loads(autoscaler("match", "linux && !mxnetlinux-gpu", "--json").stdout)
    assert said["others"]["mxnetlinux-gpu"] == "has no label linux, has the label mxnetlinux-gpu"
    assert said["others"]["utility"] == "has no label linux"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["validate", "/nonexistent.yaml"], 1, "/nonexistent.yaml: cannot be read (No such file or directory)"),
        (["match", "a->b->c"], 1, "expression (a->b->c): column 5: '->' cannot be chained; use parentheses"),
        (["match", "!!a"], 1, "expression (!!a): column 2: '!' cannot follow '!'"),
        (["demo", "--broken", "nope"], 1, "--broken (nope): is not one of the pools (mxnetlinux-cpu"),
        (["demo", "--trace", "/nonexistent.csv"], 1, "/nonexistent.csv: cannot be read"),
        (["simulate", "--policy", "magic"], 1, "--policy (magic): must be one of autoscaler, mxnet-ci"),
        (["simulate", "--set", "idle"], 1, "--set idle: must be KEY=VALUE or POOL.KEY=VALUE"),
        (["simulate", "--set", "nope.min_agents=1"], 1, "--set nope.min_agents=1: nope is not one of the pools (mxnetlinux-cpu"),
        (["simulate", "--set", "wait_usd_per_hour=-1"], 1, "defaults.wait_usd_per_hour (-1): must be 0 or more"),
        (["simulate", "--hours", "0.05", "--out", "/proc/nowhere"], 1, "--out (/proc/nowhere): No such file or directory"),
        (["match"], 2, "Missing argument"),
        (["demo", "--hours", "-1"], 2, "--hours"),
        (["fly"], 2, "No such command"),
    ],
    ids=str,
)
def test_what_is_refused_is_said_in_one_line(arguments, code, said):
    done = autoscaler(*arguments)
    assert done.returncode == code
    assert said in done.stderr
    if code == 1:
        assert len(done.stderr.strip().splitlines()) == 1
        assert done.stdout == ""


def measured(*arguments):
    done = autoscaler(*arguments)
    assert done.returncode == 0, done.stderr
    [line] = done.stdout.splitlines()
    return json.loads(line)


@pytest.mark.long
def test_the_demo_prints_one_object_counted_from_the_worlds_truth(small):
    result = measured("demo", "--json", *small)
    assert set(DEMO.split()) <= set(result)
    assert (result["trace"], result["pools"], result["jobs"], result["finished"], result["unservable"]) == ("trace.csv", 1, 5, 4, 1)
    assert (result["killed"], result["leaked_instances"], result["leaked_nodes"], result["errors"]) == (0, 0, 0, 0)
    assert result["launches"] == result["terminations"] >= 1
    assert 0 < result["usd"] < 1


@pytest.mark.long
def test_a_simulation_measures_what_the_demos_handlers_do(small):
    demo, simulated = measured("demo", "--json", *small), measured("simulate", "--json", *small)
    assert set(SIMULATE.split()) <= set(simulated)
    handlers, mails = demo.pop("handlers"), demo.pop("mails")
    assert all(set(mail) == {"subject", "text"} for mail in mails)
    assert handlers.pop("same") is True
    assert {key: handlers[key] for key in handlers.keys() & simulated.keys()}.items() <= simulated.items()
    assert handlers["steps"] > 3
    assert {key: value for key, value in demo.items() if key != "took_s"}.items() <= simulated.items()
    assert simulated["total_usd"] == pytest.approx(simulated["usd"] + 20 * simulated["wait_hours"], abs=0.01)


def test_a_setting_changes_the_run(small):
    kept = measured("simulate", "--json", *small, "--set", "cpu.min_agents=2")
    assert (kept["setting"], kept["launches"] - kept["terminations"]) == ("cpu.min_agents=2", 2)


@pytest.mark.long
def test_looking_more_often_waits_less(small):
    """Over two hours, in which each job needs a boot: of four jobs, chance in the boots would decide."""
    rows = [f"{100 + n * 290},60,cpu,job {n}" for n in range(24)]
    small[1].write_text("queued_at,duration_s,label,job\n" + "\n".join(rows), encoding="utf-8")
    hours = [*small[:5], "2", *small[6:]]
    seldom, often = (measured("simulate", "--json", *hours, "--every", seconds) for seconds in ("120", "15"))
    assert often["wait_mean_s"] < seldom["wait_mean_s"]
    assert often["passes"] > 4 * seldom["passes"]


@pytest.mark.long
def test_a_run_leaves_its_report_where_it_was_told(small, tmp_path):
    measured("simulate", "--json", *small, "--out", tmp_path / "here")
    assert {path.name for path in (tmp_path / "here").iterdir()} == {"day.json.gz", "report.html", "report.png", "report.svg"}


def test_hours_that_two_ways_played_are_the_same_step_by_step_or_the_first_other_step_is_named():
    taken = StepTaken(at=0.0, step="launch", pool="cpu", count=1, node="", reason="r", detail="d", outcome="done")
    one = Shared(passes=1, seconds=60.0, measures={"jobs": 1}, steps=(taken, replace(taken, at=60.0)))
    assert difference(one, one) == ""
    assert (
        difference(one, replace(one, steps=(taken, replace(taken, at=60.0, count=2)))) == "at 00:01 launch 1 cpu (r), not launch 2 cpu (r)"
    )
    assert difference(one, replace(one, steps=(taken,))) == "2 steps, not 1"
    assert difference(one, replace(one, measures={"jobs": 2})) == "jobs 1, not 2"


@pytest.mark.long
def test_the_day_in_memory_publishes_what_the_handlers_publish(small, tmp_path):
    fleet, trace = small[3], load_trace(small[1], hours=0.2)
    settings, by_handlers, in_process = load_settings(fleet), [], []
    run = prepare(trace, settings.domain(), hours=0.2, seed=3)
    show = Show(run=run, settings=settings, fleet_file=fleet, log_file=tmp_path / "log", on_end=by_handlers.extend)
    passes = list(show.play())[-1].passes
    assert list(in_memory(prepare(trace, settings.domain(), hours=0.2, seed=3), published=in_process))[-1].passes == passes
    assert summed(in_process) == summed(by_handlers)


def test_a_day_in_memory_keeps_what_people_are_told(small):
    run, messages = prepare(load_trace(small[1], hours=1.0), load_settings(small[3]).domain(), hours=1.0, seed=3), []
    for _progress in in_memory(run, broken={"cpu"}, published=[], messages=messages):
        if messages:
            break
    assert "[small] jobs on main wait: agents of cpu do not come up" in [message.subject for message in messages]
    assert all("What to do: docs/operations.md#" in message.text for message in messages)


def summed(published):
    """Sum what was published, by name and dimensions."""
    sums = Counter()
    for _, datum in published:
        # How long a look takes is a matter of this machine.
        sums[datum.name, datum.dimensions] += 1 if datum.name == "ControllerResponseSeconds" else round(sum(datum.values), 2)
    return sums


def test_an_interrupt_anywhere_in_a_command_leaves_one_line(monkeypatch, capsys):
    def interrupted(_file):
        raise KeyboardInterrupt

    monkeypatch.setattr(fleet_file, "load_fleet", interrupted)
    monkeypatch.setattr(sys, "argv", ["autoscaler", "match", "linux"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert (ended.value.code, capsys.readouterr().err) == (130, "\rinterrupted\n")


def values(done):
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_what_is_piped_of_match_and_validate_is_tab_separated():
    header, *pools = values(autoscaler("validate"))
    assert header == ["pool", "labels", "executors", "instance_types", "usd_per_hour", "max_agents"]
    assert {len(pool) for pool in pools} == {len(header)}
    [gpu] = [pool for pool in pools if pool[0] == "mxnetlinux-gpu"]
    assert (gpu[2], gpu[3].split()[0], gpu[5]) == ("1", "g4dn.8xlarge", "20")
    header, *pools = values(autoscaler("match", "linux && !mxnetlinux-gpu"))
    assert header == ["pool", "serves it", "because"]
    assert {len(pool) for pool in pools} == {3}
