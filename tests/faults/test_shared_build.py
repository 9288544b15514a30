"""600 tasks, real processes, one cache, SIGKILL at random: nothing is lost, and little is built twice."""

import subprocess
import sys
from collections import Counter

import pytest

from autoscaler_workbench.shared_build.gang import BuilderFailedError, Gang, build, join_late
from autoscaler_workbench.shared_build.graph import TASKS, artifacts, digest
from autoscaler_workbench.shared_build.order import Order, read_logs
from support.sampling import some

KILLED = {"wide": (1, TASKS, 5), "mixed": (2, 200, 3), "deep": (3, 200, 3)}
SMALL = {"shape": "wide", "tasks": 120, "wait_factor": 0.2}


@pytest.mark.parametrize("shape", some(KILLED, most=1))
def test_builders_killed_at_random_lose_nothing_and_hardly_anything_is_built_twice(tmp_path, shape, record_property):
    seed, tasks, kills = KILLED[shape]
    order = Order(shape=shape, seed=seed, tasks=tasks, lease_seconds=0.5, wait_factor=0.2)
    outcome = build(order, Gang(instances=6, jobs=2, kills=kills, seed=seed), tmp_path / "build")
    assert len(outcome.killed) == kills
    assert outcome.published == tasks
    assert outcome.digest == digest(artifacts(order.graph()))
    assert len(outcome.duplicates) < 0.05 * tasks
    assert any(one.builder > "builder-06" for one in outcome.built), "who came in the place of a killed one has built, too"
    record_property("counted", ("real builders of a shared build killed", len(outcome.killed)))


def test_one_builder_alone_comes_to_the_same_bytes_and_a_late_one_leaves_by_itself(tmp_path):
    order = Order(**SMALL)
    outcome = build(order, Gang(instances=1, jobs=4), tmp_path / "build")
    assert outcome.digest == digest(artifacts(order.graph()))
    assert outcome.duplicates == []
    join_late(tmp_path / "build")
    assert tuple(read_logs(tmp_path / "build")) == outcome.built


def test_without_claims_builders_race_each_race_is_logged_and_the_result_is_the_same(tmp_path):
    order = Order(**SMALL, lease_seconds=0.0)
    outcome = build(order, Gang(instances=4, jobs=2), tmp_path / "build")
    firsts = Counter(one.task for one in outcome.built if one.first)
    assert set(firsts.values()) == {1}
    assert len(firsts) == outcome.published == order.tasks
    assert len(outcome.duplicates) > 0
    assert outcome.digest == digest(artifacts(order.graph()))


def test_a_builder_that_fails_is_told_and_no_process_stays(tmp_path):
    with pytest.raises(BuilderFailedError, match=r"builder-0\d: ended with 1: .*\n(.*\n)*KeyError: 'round'"):
        build(Order(shape="round"), Gang(instances=2, jobs=1), tmp_path / "build")


def test_builders_that_nobody_started_together_begin_one_build_and_all_leave(tmp_path):
    command = [sys.executable, "-m", "autoscaler_workbench.shared_build.join", "--begin", "120", str(tmp_path / "build")]
    builders = [subprocess.Popen([*command, name, "4"]) for name in ("one", "two")]
    assert [builder.wait(timeout=60) for builder in builders] == [0, 0]
    firsts = [built.task for built in read_logs(tmp_path / "build") if built.first]
    assert sorted(firsts) == sorted(task.name for task in Order(tasks=120).graph())
    assert {built.builder for built in read_logs(tmp_path / "build")} == {"one", "two"}


def test_a_builder_says_that_there_is_nothing_to_join(tmp_path):
    command = [sys.executable, "-m", "autoscaler_workbench.shared_build.join", str(tmp_path), "one", "4"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith(f"FOLDER ({tmp_path}): has no build; --begin 600 begins one")


def test_a_folder_has_one_build(tmp_path):
    Order().write(tmp_path / "build")
    with pytest.raises(FileExistsError, match="has a build already"):
        Order().write(tmp_path / "build")


def test_the_command_says_who_built_what():
    options = "--tasks 120 --shape wide --instances 2 --jobs 4 --kills 1 --lease 0.5".split()
    command = [sys.executable, "-m", "autoscaler_workbench.shared_build", *options]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert said[0].split("\t") == ["builder", "built", "duplicates", "taken over", "end"]
    assert Counter(line.split("\t")[-1] for line in said[1:-1]) == {"left": 2, "killed": 1}
    assert said[-1].startswith("120 of 120 tasks published in ")
    assert said[-1].endswith("bit for bit what one process builds")
