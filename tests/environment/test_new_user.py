"""The walk of a new user: a fresh clone, the demo, an interrupt, a kept demo that is broken and mended, and the way to a build."""

import json
import os
import re
import shutil
import socket
import subprocess

import pytest

from packaging_root import ROOT
from support.clones import clone_of_the_work_tree, status_of
from support.pseudo_terminal import CTRL_C, PseudoTerminal

QUESTIONS = ["What ran?", "What did it cost?", "How long did people wait?", "What was proved?"]
# On two idle cores it is 12 s and 50 s; these tests share theirs with others.
MOVES_WITHIN, TOLD_WITHIN = 90, 300
ONLY = {"HOME", "PATH", "LANG"}
FOR_NETWORK = ("PIP_", "UV_", "SSL_", "REQUESTS_", "HTTP", "http", "NO_PROXY", "no_proxy")


def environment():
    """What a new user has: nothing of ours."""
    return {name: value for name, value in os.environ.items() if name in ONLY or name.startswith(FOR_NETWORK)}


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """A fresh clone, for the first test."""
    return clone_of_the_work_tree(tmp_path_factory.mktemp("new"))


@pytest.fixture
def clone(fresh):
    """The same clone, once the demo was played in it."""
    subprocess.run(["make", ".venv/.demo"], cwd=fresh, env=environment(), check=True, timeout=300, capture_output=True)
    return fresh


def test_the_first_command_tells_its_story_and_nothing_else(fresh, record_property):
    with PseudoTerminal("make", "demo", cwd=fresh, env=environment()) as terminal:
        terminal.wait_for(r"^installing what the demo needs", 10)
        first = terminal.wait_for(r"2018-09-04 \d\d:\d\d UTC", MOVES_WITHIN)
        record_property("counted", ("seconds until the demo of a fresh clone moved", round(terminal.seconds)))
        terminal.wait_for(f"^(?!{re.escape(first)}).* UTC", 20)
        terminal.wait_for("^1 of 2: .* from the busiest hour on, by the real Lambda handlers over HTTP", 20)
        terminal.wait_for("^2 of 2: all 24 h, by the same code in memory", TOLD_WITHIN)
        assert terminal.wait_for_end(TOLD_WITHIN) == 0
        record_property("counted", ("seconds until it had told its story", round(terminal.seconds)))
        lines = terminal.all_lines()
    assert lines[:2] == ["installing what the demo needs into .venv ...", QUESTIONS[0]]
    assert [line for line in lines if line in QUESTIONS] == QUESTIONS
    assert [line.split(":")[0] for line in lines[-4:]] == ["report", "minute by minute", "dashboard and alarms", "the functions' log"]
    assert len(lines) < 30  # a mail among them
    text = " ".join(" ".join(lines).split())
    assert "All 1,280 jobs finished." in text
    assert "0 builds killed, nothing was left over, 0 errors" in text
    assert "the real handlers over HTTP took the same" in text
    shown = (ROOT / "docs" / "day.png").read_bytes()
    [figures] = re.findall(rb"tEXtTitle\x00.*?: (\d+) of \d+ jobs finished, (\d+) killed, (\$[\d,]+), wait p95 (\d+ min)", shown)
    jobs, killed, usd, waited = (figure.decode() for figure in figures)
    assert f"All {int(jobs):,} jobs finished." in text
    assert f"{killed} builds killed" in text
    assert f"{usd} for" in text, "the README's picture is of another day: make pictures ONLY=day.png"
    assert f"95 of 100 waited at most {waited}" in text
    pictures = {path.name: path.stat().st_size for path in (fresh / "out" / "demo").iterdir()}
    assert set(pictures) == {"day.json.gz", "report.html", "report.png", "report.svg", "dashboard.html"}
    assert min(pictures.values()) > 20_000
    assert status_of(fresh) == []


@pytest.mark.parametrize("moment", ["2018-09-04", None], ids=["while it plays", "while it starts"])
def test_an_interrupt_leaves_one_line(clone, moment):
    with PseudoTerminal("make", "demo", cwd=clone, env=environment()) as terminal:
        if moment:
            terminal.wait_for(moment, MOVES_WITHIN)
        else:
            subprocess.run(["sleep", "1"], check=True)
        terminal.press(CTRL_C)
        terminal.wait_for_end(60)
        assert [line for line in terminal.all_lines() if line != "^C"] in (["interrupted"], ["the demo was stopped before its end"])


def test_an_interrupt_while_it_installs_leaves_one_line_more(tmp_path):
    other = clone_of_the_work_tree(tmp_path)
    with PseudoTerminal("make", "demo", cwd=other, env=environment()) as terminal:
        terminal.wait_for("^installing", 20)
        subprocess.run(["sleep", "1.5"], check=True)
        terminal.press(CTRL_C)
        terminal.wait_for_end(60)
        assert terminal.all_lines()[1:] == ["interrupted: the same command goes on from here"]
    assert not (other / ".venv" / ".demo").exists()


def test_a_kept_demo_says_what_to_type_and_a_broken_pool_can_be_mended(clone):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with PseudoTerminal("make", "demo", "KEEP=1", f"PORT={port}", "BROKEN=mxnetlinux-gpu", cwd=clone, env=environment()) as terminal:
        address = re.search(r"AUTOSCALER_LOCAL=(\S+)", terminal.wait_for("^export AUTOSCALER_LOCAL=", MOVES_WITHIN))[1]
        terminal.wait_for(r"autoscaler demo mend mxnetlinux-gpu", 10)

        def autoscaler(*words):
            command = [".venv/bin/autoscaler", *words]
            there = environment() | {"AUTOSCALER_LOCAL": address}
            return subprocess.run(command, cwd=clone, env=there, capture_output=True, text=True, check=False, timeout=120)

        assert "mxnetlinux-cpu" in autoscaler("status", "--json").stdout
        assert autoscaler("why", "mxnetlinux-gpu").returncode == 0
        assert "mxnetlinux-gpu is mended" in autoscaler("demo", "mend", "mxnetlinux-gpu").stdout
        again = autoscaler("demo", "mend", "mxnetlinux-gpu")
        assert (again.returncode, again.stderr) == (1, "pool (mxnetlinux-gpu): is not broken; broken are: none\n")
        terminal.press(CTRL_C)
        assert terminal.wait_for_end(120) in (0, -2)
        lines = terminal.all_lines()
        assert [line for line in lines if line in QUESTIONS] == QUESTIONS
        assert " jobs that were due by " in " ".join(lines)


def test_the_way_to_a_build_changes_nothing_but_the_users_file(clone):
    def in_clone(*words):
        done = subprocess.run(words, cwd=clone, env=environment(), capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def digest():
        played = json.loads(in_clone(".venv/bin/autoscaler", "simulate", "--hours", "4", "--json"))
        return {name: value for name, value in played.items() if name != "took_s"}

    before = digest()
    page = (clone / "docs" / "deploy.md").read_text(encoding="utf-8")
    fleet = next(block for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "\npools:" in block)
    (clone / "fleet.yaml").write_text(fleet, encoding="utf-8")
    in_clone(".venv/bin/autoscaler", "validate", "fleet.yaml")
    in_clone(".venv/bin/autoscaler", "match", "linux && !gpu", "--fleet", "fleet.yaml")
    sam = ROOT / ".venv-sam"
    in_clone("make", "build", "FLEET=fleet.yaml", f"SAM_VENV={sam}", "--old-file", f"{sam}/.ready")
    built = json.loads((clone / ".aws-sam" / "build" / "FleetLayer" / "fleet.json").read_text(encoding="utf-8"))
    assert built["fleet"]["fleet"] == "my-ci"
    assert status_of(clone) == ["?? fleet.yaml"]
    assert digest() == before
    shutil.rmtree(clone / ".aws-sam")
