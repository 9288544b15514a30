"""The Linux agent's service tells the autoscaler what its machine uses, and nothing about that can hold it up."""

import json
import shlex

from agent.test_polling import names, told

MEMINFO = "MemTotal: 16000000 kB\nMemFree: 10000 kB\nMemAvailable: {} kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n"


def reports(around):
    return [said["telemetry"] for body in around.bodies if "telemetry" in (said := json.loads(body))]


def test_each_question_tells_what_the_machine_and_its_builds_use(around):
    environment = "BUILD_URL=https://j/job/a/job/b%20c/7/ NODE_NAME=main-1 EXECUTOR_NUMBER=0"
    around.builds_run(f"env {environment} timeout 20 sh -c 'while :; do :; done'")
    around.answers = [told(around, "main")]
    around.run(seconds=4, SAMPLE_SECONDS="0.3")
    report = reports(around)[-1]
    assert 0 < report["memory_available"] < report["memory_total"]
    [build] = report["builds"]
    assert (build["node"], build["executor"], build["run"]) == ("main-1", "0", "job/a/job/b%20c/7")
    assert build["memory"] > 0
    assert build["cpu"] > 0.1


def test_a_driver_that_never_answers_and_cannot_be_ended_holds_nothing_up(around):
    driver = around.directory / "nvidia-smi"
    driver.write_text(
        f"#!/bin/sh\necho x >>{shlex.quote(str(around.directory))}/seen\ntrap '' TERM\nfor _ in $(seq 30); do sleep 1; done\n",
        encoding="utf-8",
    )
    driver.chmod(0o755)
    around.builds_run("sleep 60")
    around.answers = [told(around, "main")]
    around.run(seconds=4, SAMPLE_SECONDS="0.2")
    assert len(around.asked) >= 3
    assert names(around) == ["main-1"]
    assert around.directory.joinpath("seen").read_text(encoding="utf-8").split() == ["x"]


def test_memory_that_gets_short_is_told_at_once_and_not_when_it_is_time(around):
    proc = around.directory / "proc"
    (proc / "net").mkdir(parents=True)
    for name, text in {
        "meminfo": MEMINFO.format(9_000_000),
        "stat": "cpu 1 0 0 9 0 0 0 0\n",
        "net/dev": "a\nb\n",
    }.items():
        (proc / name).write_text(text, encoding="utf-8")
    around.builds_run(f"sleep 1.5; echo '{MEMINFO.format(900_000)}' >{proc}/meminfo; sleep 60")
    (proc / "meminfo").chmod(0o666)
    around.answers = [told(around, "main", poll_seconds=600)]
    around.run(seconds=4, SAMPLE_SECONDS="0.2", PROC=str(proc))
    assert [report["memory_available"] // 1000 for report in reports(around)[-1:]] == [900_000 * 1024 // 1000]
    assert len(around.asked) <= 3


def test_what_cannot_be_read_is_said_once_and_the_agent_connects_all_the_same(around):
    around.builds_run("sleep 60")
    around.answers = [told(around, "main")]
    said = around.run(seconds=3, SAMPLE_SECONDS="0.2", PROC=str(around.directory / "nothing"))
    assert (names(around), reports(around)) == (["main-1"], [])
    assert said.count("what this machine uses cannot be read: FileNotFoundError") == 1


def test_the_machine_of_a_controller_tells_what_it_uses_connects_to_nothing_and_is_never_powered_off(around):
    around.answers = [(403, {"message": "no"}), (200, {"controller": "main", "connections": [], "poll_seconds": 1})]
    said = around.run(
        seconds=4, SAMPLE_SECONDS="0.2", CONTROLLER="yes", BOOT_TIMEOUT_SECONDS="1", BLOCK_INSTANCE_METADATA="no", FIRST_PAUSE_SECONDS="1"
    )
    assert len(around.asked) >= 1
    assert set(around.asked) == {""}
    assert (around.java_calls(), around.powered_off) == ([], False)
    assert "was answered 403 no" in said
