"""What a command plays of a trace, how far a comparison is, and where a demo that is kept writes: each is said, or apart."""

import pytest

from autoscaler_workbench.cli import demo_command
from autoscaler_workbench.simulate.traces import MXNET
from support.cli import autoscaler

HOUR = 3600
QUICK = ("--seeds", "1", "--no-sweep", "--jobs", "1")


@pytest.fixture
def trace(tmp_path):
    rows = [f"{hour * HOUR},{hour * HOUR},60,linux-gpu,job-{hour}" for hour in range(0, 48, 2)]
    file = tmp_path / "mine.csv"
    file.write_text("\n".join(["queued_at,started_at,duration_s,label,job", *rows]) + "\n", encoding="utf-8")
    return file


@pytest.mark.parametrize("policy", ["autoscaler", "reactive"])
def test_simulate_says_which_part_of_a_trace_it_plays(trace, policy):
    ran = autoscaler("simulate", "--trace", trace, "--policy", policy, "--json")
    assert "mine.csv: 12 of 24 jobs: the first 24 h; --hours gives more" in ran.stderr


def test_a_trace_that_is_played_as_a_whole_needs_no_word(trace):
    assert "of 24 jobs" not in autoscaler("simulate", "--trace", trace, "--hours", "48", "--json").stderr


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--hours", "2"), "1 of 24 jobs: the first 2 h"),
        (("--hours", "2", "--skip", "8"), "1 of 24 jobs: hours 8 to 10"),
        (("--hours", "2", "--lead-in", "4"), "3 of 24 jobs: the first 6 h, of which the first 4 h are not measured"),
        (("--hours", "2", "--skip", "8", "--lead-in", "4"), "3 of 24 jobs: hours 8 to 14, of which the first 4 h are not measured"),
        (("--hours", "48"), ""),
    ],
)
def test_compare_says_which_part_of_a_trace_it_plays(trace, tmp_path, options, part):
    ran = autoscaler("compare", "--trace", trace, *options, "--policy", "reactive", *QUICK, "--out", tmp_path / "out", "--json")
    assert [line for line in ran.stderr.splitlines() if "jobs" in line] == ([f"mine.csv: {part}; --hours gives more"] if part else [])


def test_a_comparison_of_the_carried_traces_says_which_part_of_each_it_plays(tmp_path):
    ran = autoscaler("compare", "--hours", "1", "--policy", "reactive", *QUICK, "--out", tmp_path, "--json")
    said = [line.partition(":")[0] for line in ran.stderr.splitlines() if " jobs: the first 1 h;" in line]
    assert said == ["mxnet_stages.csv.gz", "linkerd_gha.csv.gz", "mxnet_jenkins.csv.gz"]


def test_a_comparison_in_a_pipe_prints_a_line_for_each_run(tmp_path):
    played = ("--trace", MXNET, "--hours", "1", "--seeds", "2", "--policy", "reactive", "--no-sweep", "--jobs", "1")
    ran = autoscaler("compare", *played, "--out", tmp_path, "--json")
    lines = [line for line in ran.stderr.splitlines() if line.endswith(" done")]
    assert lines[0].startswith("0 of ")
    assert (len(lines) > 1, len(set(lines))) == (True, len(lines))


@pytest.mark.parametrize(("keep", "folder"), [(["--keep"], "demo-kept"), ([], "demo")])
def test_a_demo_that_is_kept_leaves_the_report_of_another_alone(monkeypatch, tmp_path, keep, folder):
    written = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo_command, "_keep", lambda _asked, _port, directory, as_json: written.append(directory))
    monkeypatch.setattr(demo_command, "_play", lambda _asked, directory, as_json: written.append(directory))
    autoscaler("demo", *keep)
    assert [directory.name for directory in written] == [folder]
