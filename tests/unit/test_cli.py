"""The command line: exit codes, and one clear line for what is refused."""

import json
import subprocess
import sys

import pytest

from packaging_root import ROOT

KEYS = (
    "trace pools passes jobs finished killed unservable wait_p50_s wait_p95_s wait_max_s agent_hours usd launches terminations "
    "leaked_instances leaked_nodes errors took_s"
).split()


def autoscaler(*arguments):
    command = [sys.executable, "-c", "from workbench.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)


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
        (["demo", "--trace", "/nonexistent.csv"], 1, "/nonexistent.csv: cannot be read"),
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


def test_the_demo_prints_one_object_counted_from_the_worlds_truth(tmp_path):
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(
        """
fleet: small
limits: {max_agents: 5, max_launches_per_hour: 20, max_usd_per_hour: 50, max_usd_per_month: 500}
controllers: {main: {url: "http://jenkins.invalid/"}}
pools:
  cpu: {executors: 2, launch_template: cpu, instance_types: [c5.large], platform: linux, max_agents: 3, idle_seconds: 120}
""",
        encoding="utf-8",
    )
    trace = tmp_path / "trace.csv"
    rows = [f"{100 + n * 20},60,{'cpu' if n else 'sparc'},job {n}" for n in range(5)]
    trace.write_text("queued_at,duration_s,label,job\n" + "\n".join(rows), encoding="utf-8")
    done = autoscaler("demo", "--json", "--trace", trace, "--fleet", fleet, "--hours", "0.2", "--seed", "3")
    assert done.returncode == 0, done.stderr
    [line] = done.stdout.splitlines()
    result = json.loads(line)
    assert list(result) == KEYS
    assert (result["trace"], result["pools"], result["jobs"], result["finished"], result["unservable"]) == ("trace.csv", 1, 5, 4, 1)
    assert (result["killed"], result["leaked_instances"], result["leaked_nodes"], result["errors"]) == (0, 0, 0, 0)
    assert result["launches"] == result["terminations"] >= 1
    assert 0 < result["usd"] < 1
