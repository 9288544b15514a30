"""What the Linux agent samples of its machine and of its builds, from files as the kernel writes them, and from a real driver's words."""

import json
import os
from types import SimpleNamespace

import pytest

from autoscaler.entry.function_url import MOST_BYTES
from autoscaler_telemetry import MOST_BUILDS, SAMPLE_SECONDS, Gpus, Telemetry, Urgent, Window

GIB = 2**30
TICKS = 100


class Machine:
    """A machine whose kernel says so. Its telemetry takes a sample when it is told to."""

    def __init__(self, directory):
        self.directory, self.now, self.ticks, self.busy = directory, 1000.0, 0, 0
        self.urgent = 0
        self.telemetry = Telemetry(str(directory / "work" / "not" / "there"), self.is_urgent, proc=str(directory))
        self.telemetry.gpus = self
        self.cards, self.held = [], {}
        self.memory(available=12 * GIB)
        (directory / "net").mkdir()
        self.network(0)

    def is_urgent(self):
        self.urgent += 1

    def read(self):
        return self.cards, self.held

    def write(self, name, text):
        (self.directory / name).write_text(text, encoding="utf-8")

    def memory(self, available, free=GIB, cached=0, total=16 * GIB):
        told = {"MemTotal": total, "MemFree": free, "MemAvailable": available, "Cached": cached, "SwapTotal": GIB, "SwapFree": GIB - 4096}
        self.write("meminfo", "".join(f"{name}: {value // 1024} kB\n" for name, value in told.items()) + "HugePages_Total: 0\n")

    def network(self, sent):
        lines = [f"  {name}: 9 1 0 0 0 0 0 0 {sent} 1 0 0 0 0 0 0" for name in ("eth0", "lo", "docker0")]
        self.write("net/dev", "\n".join(["Inter-|", " face |", *lines]) + "\n")

    def process(self, pid, *, run="", parent=1, cpu=0.0, of_children=0.0, memory=0, shared=0, began=7, node="cpu-1", executor="0"):
        place = self.directory / str(pid)
        place.mkdir(exist_ok=True)
        mine = (
            f"JENKINS_URL=https://j/\0BUILD_URL=https://j/{run}/\0NODE_NAME={node}\0EXECUTOR_NUMBER={executor}\0" if run else "PATH=/bin\0"
        )
        (place / "environ").write_text(mine, encoding="utf-8")
        fields = ["S", str(parent), *["0"] * 9, str(int(cpu * TICKS)), "0", str(int(of_children * TICKS)), "0", *["0"] * 4, str(began), "0"]
        (place / "stat").write_text(f"{pid} (a (strange) name) {' '.join(fields)}\n", encoding="utf-8")
        (place / "status").write_text(f"Name:\tx\nRssAnon:\t{memory // 1024} kB\nRssShmem:\t{shared // 1024} kB\n", encoding="utf-8")

    def ends(self, *pids):
        for pid in pids:
            for file in (self.directory / str(pid)).iterdir():
                file.unlink()
            (self.directory / str(pid)).rmdir()

    def sample(self, *, cores_busy=0.0):
        self.now += SAMPLE_SECONDS
        self.busy += int(cores_busy * SAMPLE_SECONDS * TICKS)
        self.ticks += int((os.cpu_count() or 1) * SAMPLE_SECONDS * TICKS)
        idle = self.ticks - self.busy
        self.write("stat", f"cpu  {self.busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0 1 2 3\n")
        self.telemetry.sample(self.now)

    @property
    def report(self):
        return self.telemetry.report()["telemetry"]

    @property
    def build(self):
        [only] = self.report["builds"]
        return only


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_before_the_first_sample_there_is_nothing_to_tell(machine):
    assert machine.telemetry.report() == {}


def test_memory_is_what_is_available_and_not_what_is_free(machine):
    machine.memory(available=15 * GIB, free=GIB // 8, cached=14 * GIB)
    machine.sample()
    assert (machine.report["memory_available"], machine.report["memory_total"]) == (15 * GIB, 16 * GIB)
    assert machine.urgent == 0


def test_the_least_of_the_window_is_told_and_the_next_window_begins_once_somebody_got_it(machine):
    for available in (12, 4, 8):
        machine.memory(available=available * GIB)
        machine.sample()
    assert machine.report["memory_least"] == 4 * GIB
    assert machine.report["memory_least"] == 4 * GIB  # nobody got it
    machine.telemetry.was_told()
    machine.sample()
    assert machine.report["memory_least"] == 8 * GIB


def test_processors_network_swap_and_disks_are_told(machine):
    machine.sample()
    machine.network(sent=700)
    machine.sample(cores_busy=0.5)
    told = machine.report
    assert told["sent"] == 700
    assert told["cpu_mean"] == pytest.approx(0.5, abs=0.01)
    assert told["swap_used"] == 4096
    assert 0 < told["root_free"] <= told["root_total"]
    assert 0 < told["work_free"] <= told["work_total"]


def test_a_disk_whose_inodes_are_used_up_is_told_as_full(machine, monkeypatch):
    there = os.statvfs("/")
    few = SimpleNamespace(f_bavail=there.f_blocks, f_blocks=there.f_blocks, f_frsize=there.f_frsize, f_favail=1, f_files=100)
    monkeypatch.setattr(os, "statvfs", lambda _path: few)
    machine.sample()
    told = machine.report
    assert told["root_free"] == pytest.approx(told["root_total"] / 100)


def test_a_file_system_that_counts_no_inodes_is_told_by_its_bytes(machine, monkeypatch):
    few = SimpleNamespace(f_bavail=50, f_blocks=100, f_frsize=4096, f_favail=0, f_files=0)
    monkeypatch.setattr(os, "statvfs", lambda _path: few)
    machine.sample()
    assert machine.report["work_free"] == 50 * 4096


def test_a_build_alone_has_what_the_machine_uses_beyond_its_idle_state(machine):
    """Docker's memory is nobody's child, and counts all the same."""
    machine.sample()
    machine.process(10, run="job/a/7", memory=GIB)
    for available, cores in ((11, 0.0), (6, 1.5), (9, 0.5)):
        machine.memory(available=available * GIB)
        machine.sample(cores_busy=cores)
    assert (machine.build["run"], machine.build["node"], machine.build["executor"]) == ("job/a/7", "cpu-1", "0")
    assert (machine.build["memory"], machine.build["alone"]) == (6 * GIB, True)
    assert machine.build["cpu"] == pytest.approx(2 * SAMPLE_SECONDS, rel=0.01)
    assert machine.build["seconds"] == 3 * SAMPLE_SECONDS


def test_beside_another_build_each_has_what_its_own_processes_use(machine):
    machine.sample()
    machine.process(10, run="job/a/7", memory=2 * GIB, shared=GIB)
    machine.process(11, run="job/a/7", memory=GIB, shared=GIB, parent=10)
    machine.process(20, run="job/b/1", memory=3 * GIB, executor="1")
    machine.process(30, memory=5 * GIB)  # nobody's
    machine.memory(available=GIB)
    machine.sample()
    told = {one["run"]: (one["memory"], one["alone"]) for one in machine.report["builds"]}
    assert told == {"job/a/7": (4 * GIB, False), "job/b/1": (3 * GIB, False)}


def test_a_build_that_was_there_before_the_first_idle_moment_is_not_called_exact(machine):
    machine.process(10, run="job/a/7", memory=GIB)
    machine.memory(available=2 * GIB)
    machine.sample()
    assert (machine.build["memory"], machine.build["alone"]) == (GIB, False)


def test_compilers_that_live_for_less_than_a_sample_are_counted_by_their_parents_and_once(machine):
    machine.process(20, run="job/b/1", executor="1")
    machine.process(10, run="job/a/7", cpu=1.0)
    machine.process(11, run="job/a/7", cpu=8.0, parent=10)
    machine.sample()
    machine.ends(11)
    machine.process(10, run="job/a/7", cpu=2.0, of_children=8.0 + 2.0 + 30.0)  # 11 went on for 2 s, others came and went
    machine.sample()
    told = {one["run"]: one["cpu"] for one in machine.report["builds"]}
    assert told["job/a/7"] == pytest.approx(1.0 + 8.0 + 1.0 + 2.0 + 30.0)


def test_a_build_whose_processes_have_ended_is_told_of_until_two_reports_had_it(machine):
    machine.sample()
    machine.process(10, run="job/a/7", memory=GIB)
    machine.sample()
    machine.ends(10)
    for _ in range(int(600 / SAMPLE_SECONDS)):
        machine.sample()
    assert machine.build["seconds"] == SAMPLE_SECONDS
    for _ in range(int(120 / SAMPLE_SECONDS)):
        machine.sample()
    assert machine.report["builds"] == []


def test_of_very_many_builds_those_are_told_that_were_seen_last(machine):
    for number in range(100):
        machine.process(1000 + number, run=f"job/a/{number}", executor=str(number))
    machine.sample()
    machine.ends(*range(1000, 1090))
    machine.sample()
    told = [one["run"] for one in machine.report["builds"]]
    assert len(told) == 32
    assert {f"job/a/{number}" for number in range(90, 100)} <= set(told)


def test_builds_choose_what_they_are_called_and_leave_room_for_the_rest_of_a_report(machine):
    """What is larger than 64 KB is not read. A letter has up to twelve bytes in JSON."""
    for letter in ("\U0001f600", "\x01", "\\", '"', "'"):
        for number in range(40):
            machine.process(100 + number, run=f"job/{number}/{letter * 300}", node=letter * 300)
        machine.sample()
        assert len(machine.report["builds"]) == MOST_BUILDS
        devices = {"devices": [dict.fromkeys(("id", "kind", "state", "user"), "x" * 50)] * 64}
        said = {"connected": ["x" * 300] * 3, "problem": letter * 250}
        assert len(json.dumps(said | devices | machine.telemetry.report())) < MOST_BYTES


def test_the_memory_of_a_card_is_the_build_s_whose_process_has_it(machine):
    machine.process(10, run="job/a/7")
    machine.process(20, run="job/b/1", executor="1")
    machine.cards, machine.held = [{"id": "0", "memory": 16.0 * GIB, "used": 5.0 * GIB, "use": 90.0}], {10: 4.0 * GIB, 99: 1.0 * GIB}
    machine.sample()
    told = {one["run"]: (one["gpu_memory"], one["gpu"]) for one in machine.report["builds"]}
    assert told == {"job/a/7": (4 * GIB, True), "job/b/1": (0, False)}
    assert machine.report["gpus"] == [{"memory": 16 * GIB, "used": 5 * GIB, "use": 90.0}]


NVIDIA = """<?xml version="1.0" ?><!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd"><nvidia_smi_log>
<gpu id="00000000:00:1E.0"><fb_memory_usage><total>15360 MiB</total><reserved>449 MiB</reserved><used>1024 MiB</used></fb_memory_usage>
<utilization><gpu_util>37 %</gpu_util></utilization><processes>
<process_info><pid>4242</pid><used_memory>1000 MiB</used_memory>
</process_info><process_info><pid>4243</pid><used_memory>N/A</used_memory></process_info></processes></gpu>
<gpu id="00000000:00:1F.0"><fb_memory_usage><total>15360 MiB</total><used>0 MiB</used></fb_memory_usage>
<utilization><gpu_util>N/A</gpu_util>
</utilization><processes></processes></gpu></nvidia_smi_log>"""
ROCM = """
======================= ROCm System Management Interface =======================
GPU[0]\t\t: GPU use (%): 12
GPU[0]\t\t: VRAM Total Memory (B): 17163091968
GPU[0]\t\t: VRAM Total Used Memory (B): 10854400
GPU[1]\t\t: GPU use (%): 0
================================================================================
"""


def a_program(directory, name, script):
    (directory / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (directory / name).chmod(0o755)


@pytest.fixture
def programs(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def test_nvidia_s_cards_are_read_with_the_memory_of_each_process(programs):
    a_program(programs, "nvidia-smi", f"[ \"$*\" = '-q -x' ] && cat <<'E'\n{NVIDIA}\nE")
    cards, held = Gpus().read()
    assert [(card["id"], card["memory"], card["used"], card["use"]) for card in cards] == [
        ("00000000:00:1E.0", 15 * GIB, GIB, 37.0),
        ("00000000:00:1F.0", 15 * GIB, 0, 0.0),
    ]
    assert held == {4242: 1000 * 2**20, 4243: 0}


def test_amd_s_cards_are_read(programs):
    a_program(programs, "rocm-smi", f"cat <<'E'\n{ROCM}\nE")
    cards, held = Gpus().read()
    assert [(card["id"], card["memory"], card["used"], card["use"]) for card in cards] == [
        ("GPU[0]", 17163091968, 10854400, 12.0),
        ("GPU[1]", 0.0, 0.0, 0.0),
    ]
    assert held == {}


@pytest.mark.parametrize(
    "script", ["exit 9", "echo '<gpu'", "echo '<a><gpu><processes><process_info><pid>x</pid></process_info></processes></gpu></a>'"]
)
def test_a_driver_that_fails_or_talks_nonsense_has_no_cards(programs, script):
    a_program(programs, "nvidia-smi", script)
    assert Gpus().read() == ([], {})


def test_no_driver_is_no_card(programs):
    assert Gpus().read() == ([], {})


def shares(*values, every=SAMPLE_SECONDS):
    urgent, told = Urgent(), []
    for number, value in enumerate(values):
        if urgent.is_due(value, 1000.0 + number * every):
            told.append(value)
    return told


def test_what_is_short_is_told_at_once_and_again_when_it_is_much_worse_and_when_it_is_over():
    assert shares(0.9, 0.14, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.5, 0.5) == [0.14, 0.1, 0.5]


def test_what_wavers_asks_no_more_often_than_the_rate_allows():
    told = shares(*[0.1, 0.5] * 240, every=60.0)
    assert len(told) <= 12 + 480 * 60 / 3600 * 12


def test_a_gigabyte_a_minute_is_told_minutes_before_memory_is_used_up(machine):
    for number in range(40):
        machine.memory(available=int(12 * GIB - number * GIB / 4))
        machine.sample()
        if machine.urgent:
            break
    report = machine.report
    assert 4 * GIB < report["memory_available"] < 7 * GIB
    assert report["memory_ahead"] == pytest.approx(report["memory_available"] - 3 * GIB, rel=0.01)


def test_a_build_that_takes_its_memory_within_a_minute_and_keeps_it_is_no_decline(machine):
    for available in (12, 12, 12, 9, 6, 6, 6, 6, 6):
        machine.memory(available=available * GIB)
        machine.sample()
    assert ("memory_ahead" in machine.report, machine.urgent) == (False, 0)


def test_a_window_without_a_figure_leaves_it_out():
    window = Window(0.0)
    window.add({"sent": 5.0}, [])
    assert "memory_least" not in window.told(15.0)
