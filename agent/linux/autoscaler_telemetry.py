"""Samples what this machine and its builds use, and makes one short report of it, for the autoscaler to be told with the next question.

Memory is what the kernel says is *available*: a page cache that is full is no lack of it. What a build uses is added up over the processes
that have Jenkins' environment of it. A build that was alone on the machine has used what the machine used beyond its idle state: that
is exact, and counts Docker's memory too.

Needs Python 3.9 or newer and nothing beside it. Nothing in here can hold up the service: it all happens in a thread of its own.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from typing import Any, Callable
from xml.etree import ElementTree

SAMPLE_SECONDS = float(os.environ.get("SAMPLE_SECONDS") or 15)
GPU_SECONDS = 5  # a driver that hangs is not waited for
MOST_BUILDS, MOST_GPUS = 32, 16
FORGET_SECONDS = 660.0  # a build that is gone is told of twice: one report may be lost
# An alarm takes three minutes from a sample to a person. A minute of steady decline is taken to go on for so long.
AHEAD_SECONDS, DECLINE_SECONDS = 180.0, 60.0
URGENT_SHARE, WORSE = 0.15, 0.8  # of the memory or a disk; of what was told last
URGENT_PAUSE_SECONDS, URGENT_AN_HOUR = 45.0, 12.0


def read(path: str) -> str:
    """Return a file of the kernel's; OSError."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


class Gpus:
    """The graphics cards, as their driver's program tells. One that hangs is left alone, and not started a second time."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def read(self) -> tuple[list[dict[str, Any]], dict[int, float]]:
        """Return each card, and the bytes of their memory that each process has; nothing where there are none, or nobody tells."""
        for command, understood in (
            (["nvidia-smi", "-q", "-x"], self._nvidia),
            (["rocm-smi", "--showuse", "--showmeminfo", "vram"], self._rocm),
        ):
            said = self._run(command)
            if said is not None:
                try:
                    return understood(said)
                except (ValueError, AttributeError, ElementTree.ParseError):
                    return [], {}
        return [], {}

    def _run(self, command: list[str]) -> str | None:
        if self.process is not None and self.process.poll() is None:
            return None  # killed, and still there: its driver hangs
        try:
            process = self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        except OSError:
            return None
        try:
            said, _ = process.communicate(timeout=GPU_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()  # and not waited for
            return None
        return said.decode(errors="replace") if process.returncode == 0 else None

    @staticmethod
    def _nvidia(said: str) -> tuple[list[dict[str, Any]], dict[int, float]]:
        cards: list[dict[str, Any]] = []
        held: dict[int, float] = {}
        for card in ElementTree.fromstring(said).findall("gpu")[:MOST_GPUS]:  # noqa: S314 - the driver's own
            memory = [_mebibytes(card.findtext(f"fb_memory_usage/{name}")) for name in ("total", "used")]
            use = (card.findtext("utilization/gpu_util") or "0").split()[0]
            cards.append(
                {"id": card.get("id", "")[:40], "memory": memory[0], "used": memory[1], "use": float(use) if use.isdigit() else 0.0}
            )
            for one in card.findall("processes/process_info"):
                pid = int(one.findtext("pid") or 0)
                held[pid] = held.get(pid, 0.0) + _mebibytes(one.findtext("used_memory"))
        return cards, held

    @staticmethod
    def _rocm(said: str) -> tuple[list[dict[str, Any]], dict[int, float]]:
        cards: dict[str, dict[str, Any]] = {}
        names = {"GPU use (%)": "use", "VRAM Total Memory (B)": "memory", "VRAM Total Used Memory (B)": "used"}
        for line in said.splitlines():
            place, _, rest = line.partition(":")
            name, _, value = rest.rpartition(":")
            if place.startswith("GPU[") and name.strip() in names:
                cards.setdefault(place.strip(), {"id": place.strip(), "memory": 0.0, "used": 0.0, "use": 0.0})[names[name.strip()]] = float(
                    value
                )
        return list(cards.values())[:MOST_GPUS], {}  # whose memory it is, nobody tells


def _mebibytes(text: str | None) -> float:
    number = (text or "").split()[:1]
    return float(number[0]) * 2**20 if number and number[0].isdigit() else 0.0


class Process:
    """What one process has used. ``build``: node, executor and run of the build that it belongs to."""

    def __init__(self, build: tuple[str, str, str], stat: list[str], memory: tuple[float, float]) -> None:
        self.build = build
        self.parent = int(stat[1])
        # With what its children used that have ended: compilers live for less than a sample.
        self.cpu = sum(map(int, stat[11:15])) / os.sysconf("SC_CLK_TCK")
        self.own, self.shared = memory


class Processes:
    """The processes that builds run, known by Jenkins' environment."""

    def __init__(self, proc: str) -> None:
        self.proc = proc
        self.builds: dict[tuple[int, str], tuple[str, str, str] | None] = {}  # by process and when it began

    def read(self) -> dict[int, Process]:
        """Return them, by their ids."""
        known, self.builds = self.builds, {}
        there = {pid: self._process(pid, known) for pid in map(int, filter(str.isdigit, os.listdir(self.proc)))}
        return {pid: process for pid, process in there.items() if process}

    def _process(self, pid: int, known: dict[tuple[int, str], tuple[str, str, str] | None]) -> Process | None:
        place = f"{self.proc}/{pid}"
        try:
            stat = read(f"{place}/stat").rpartition(")")[2].split()
            key = pid, stat[19]
            # What was no build's is asked again: a shell gets its environment a moment after it is there.
            build = self.builds[key] = known.get(key) or self._build(place)
            return Process(build, stat, self._memory(place)) if build else None
        except (OSError, ValueError, IndexError):
            return None  # it has ended

    @staticmethod
    def _build(place: str) -> tuple[str, str, str] | None:
        lines = (line.partition("=") for line in read(f"{place}/environ").split("\0"))
        # Builds choose what stands there. In JSON a letter that is not ASCII has up to twelve bytes, and of 64 KB nothing would be read.
        told = {name: ascii(value)[1:-1] for name, _, value in lines}
        _, job, run = told.get("BUILD_URL", "").partition("/job/")
        return (told.get("NODE_NAME", "")[:200], told.get("EXECUTOR_NUMBER", "")[:10], f"job/{run}".rstrip("/")[:300]) if job else None

    @staticmethod
    def _memory(place: str) -> tuple[float, float]:
        told = dict(line.split(":", 1) for line in read(f"{place}/status").splitlines() if ":" in line)
        own, shared = (float(told.get(name, "0").split()[0]) * 1024 for name in ("RssAnon", "RssShmem"))
        return own, shared


class Build:
    """What one build has used since it was first seen."""

    def __init__(self, now: float) -> None:
        self.began = self.seen = now
        self.memory = self.cpu = self.gpu_memory = 0.0
        self.gpu, self.alone = False, True

    def told(self, key: tuple[str, str, str]) -> dict[str, Any]:
        """Say it in the words of a report."""
        node, executor, run = key
        return {
            "node": node,
            "executor": executor,
            "run": run,
            "seconds": round(self.seen - self.began + SAMPLE_SECONDS, 1),
            "memory": round(self.memory),
            "cpu": round(self.cpu, 1),
            "gpu_memory": round(self.gpu_memory),
            "gpu": self.gpu,
            "alone": self.alone,
        }


class Builds:
    """What the builds on this machine use."""

    def __init__(self, proc: str) -> None:
        self.processes, self.known = Processes(proc), dict[tuple[str, str, str], Build]()
        self.before: dict[int, Process] = {}
        self.idle_memory: float | None = None  # used while no build ran
        self.idle_gpu_memory = 0.0

    def sample(self, now: float, memory: float, cpu: float, cards: list[dict[str, Any]], held: dict[int, float]) -> None:
        """Add up a sample. ``memory``: that the machine uses; ``cpu``: seconds that it has used since the last one."""
        there = self.processes.read()
        gpu_memory = sum(card["used"] for card in cards)
        if not there:
            self.idle_memory, self.idle_gpu_memory = memory, gpu_memory
        spent, running = self._spent(there), {process.build for process in there.values()}
        for key in running:
            build = self.known.setdefault(key, Build(now))
            build.seen, mine = now, {pid: process for pid, process in there.items() if process.build == key}
            build.alone = build.alone and len(running) == 1 and self.idle_memory is not None
            used = sum(one.own for one in mine.values()) + max((one.shared for one in mine.values()), default=0.0)
            used_gpu = sum(held.get(pid, 0.0) for pid in mine)
            if build.alone:
                used, used_gpu = max(used, memory - (self.idle_memory or 0.0)), max(used_gpu, gpu_memory - self.idle_gpu_memory)
                build.gpu = build.gpu or any(card["use"] > 0 for card in cards)
            build.memory, build.gpu_memory = max(build.memory, used), max(build.gpu_memory, used_gpu)
            build.cpu += max(spent.get(key, 0.0), cpu if build.alone and build.began != now else 0.0)
            build.gpu = build.gpu or used_gpu > 0
        self.before = there
        self.known = {key: build for key, build in self.known.items() if now - build.seen <= FORGET_SECONDS}

    def _spent(self, there: dict[int, Process]) -> dict[tuple[str, str, str], float]:
        """Return seconds of CPU by build since the last sample. A process that ended was counted before, and is in its parent's by now."""
        spent: dict[tuple[str, str, str], float] = {}
        for pid, process in there.items():
            before = self.before.get(pid)
            known = before.cpu if before and before.build == process.build else 0.0
            spent[process.build] = spent.get(process.build, 0.0) + process.cpu - known
        for pid, process in self.before.items():
            if pid not in there and process.parent in there and there[process.parent].build == process.build:
                spent[process.build] -= process.cpu
        return spent

    def told(self) -> list[dict[str, Any]]:
        """Tell of those that were seen last."""
        latest = sorted(self.known.items(), key=lambda one: -one[1].seen)
        return [build.told(key) for key, build in latest[:MOST_BUILDS]]


class Window:
    """What was sampled since the last report."""

    def __init__(self, now: float) -> None:
        self.began, self.samples = now, 0
        self.counts: dict[str, int] = {}
        self.sums: dict[str, float] = {}
        self.least: dict[str, float] = {}
        self.most: dict[str, float] = {}
        self.cards: dict[str, dict[str, float]] = {}

    def add(self, figures: dict[str, float], cards: list[dict[str, Any]]) -> None:
        """Add one sample."""
        self.samples += 1
        for name, value in figures.items():
            self.counts[name], self.sums[name] = self.counts.get(name, 0) + 1, self.sums.get(name, 0.0) + value
            self.least[name], self.most[name] = min(self.least.get(name, value), value), max(self.most.get(name, value), value)
        for card in cards:
            known = self.cards.setdefault(card["id"], {"memory": card["memory"], "used": 0.0, "sum": 0.0})
            known["used"], known["sum"] = max(known["used"], card["used"]), known["sum"] + card["use"]

    def told(self, now: float) -> dict[str, Any]:
        """Say it in the words of a report."""
        means = {name: value / self.counts[name] for name, value in self.sums.items()}
        cards = [
            {"memory": card["memory"], "used": card["used"], "use": round(card["sum"] / self.samples, 1)} for card in self.cards.values()
        ]
        said = {
            "seconds": now - self.began,
            "memory_least": self.least.get("available"),
            "swap_used": self.most.get("swap"),
            "cpu_mean": means.get("cpu"),
            "sent": self.sums.get("sent"),
        }
        return {name: round(value, 2) for name, value in said.items() if value is not None} | {"gpus": cards}


class Urgent:
    """Whether something is to be told at once, and not only when the next question is due. At most so often."""

    def __init__(self) -> None:
        self.left, self.at = URGENT_AN_HOUR, -URGENT_PAUSE_SECONDS
        self.told: float | None = None  # the share that was told last; None: nothing is short

    def is_due(self, share: float, now: float) -> bool:
        """Tell whether this share of memory or of a disk is worth a question of its own: it is short, worse, or short no more."""
        is_short = share < URGENT_SHARE
        is_news = (self.told is None) == is_short or (is_short and self.told is not None and share < WORSE * self.told)
        if not is_news or now - self.at < URGENT_PAUSE_SECONDS:
            return False
        self.left = min(URGENT_AN_HOUR, self.left + (now - self.at) * URGENT_AN_HOUR / 3600.0) - 1.0
        self.at, self.told = now, share if is_short else None
        return self.left >= 0.0


class Telemetry:
    """The figures of this machine, from the first sample on."""

    def __init__(self, work_directory: str, on_urgent: Callable[[], None], proc: str = "/proc") -> None:
        self.work_directory, self.on_urgent, self.proc = work_directory, on_urgent, proc
        self.lock, self.gpus, self.builds, self.urgent = threading.Lock(), Gpus(), Builds(proc), Urgent()
        self.window = self.sent = Window(time.monotonic())
        self.latest: dict[str, float] = {}
        self.before: dict[str, float] = {}
        self.lately: list[tuple[float, float]] = []  # when, and what memory was available

    def start(self, say: Callable[[str], None]) -> None:
        """Sample for ever, beside the service."""
        threading.Thread(target=self._run, args=(say,), daemon=True).start()

    def _run(self, say: Callable[[str], None]) -> None:
        told = ""
        while True:
            try:
                self.sample(time.monotonic())
            except (OSError, ValueError, KeyError, IndexError) as error:
                if told != (told := f"what this machine uses cannot be read: {type(error).__name__}: {error}"):
                    say(told)
            time.sleep(SAMPLE_SECONDS)

    def sample(self, now: float) -> None:
        """Take one sample."""
        figures, counters = self._figures(), self._counters()
        cards, held = self.gpus.read()
        grown = {name: value - self.before[name] for name, value in counters.items() if value >= self.before.get(name, float("inf"))}
        self.before = counters
        ticks = grown.pop("ticks", 0.0)
        if ticks:
            figures["cpu"] = grown["busy"] / ticks * (os.cpu_count() or 1)
        self.lately = [*(one for one in self.lately if now - one[0] <= DECLINE_SECONDS + SAMPLE_SECONDS / 2), (now, figures["available"])]
        spent = grown.pop("busy", 0.0) / os.sysconf("SC_CLK_TCK")
        with self.lock:
            self.builds.sample(now, figures["total"] - figures["available"], spent, cards, held)
            self.latest = figures
            self.window.add({**figures, **grown}, cards)
        shares = [self._ahead() / figures["total"], *(figures[f"{name}_free"] / figures[f"{name}_total"] for name in ("root", "work"))]
        if self.urgent.is_due(min(shares), now):
            self.on_urgent()

    def report(self) -> dict[str, Any]:
        """Return the report; nothing before the first sample. What it tells is told again until somebody got it."""
        with self.lock:
            if not self.window.samples:
                return {}
            now, latest, self.sent = time.monotonic(), self.latest, self.window
            said = {**self.window.told(now), "cores": os.cpu_count() or 1, "builds": self.builds.told()}
            said |= {f"memory_{name}": latest[name] for name in ("total", "available")}
            said |= {name: latest[name] for name in ("root_free", "root_total", "work_free", "work_total")}
            ahead = self._ahead()
            return {"telemetry": said | ({"memory_ahead": round(ahead)} if ahead < latest["available"] else {})}

    def was_told(self) -> None:
        """Begin the next report."""
        with self.lock:
            if self.sent is self.window:
                self.window = Window(time.monotonic())

    def _ahead(self) -> float:
        """Return the memory that will be available when an alarm rings: less, where it has only fallen for a minute."""
        (began, first), (ended, last) = self.lately[0], self.lately[-1]
        values = [value for _, value in self.lately]
        falls = ended - began >= DECLINE_SECONDS * 0.9 and all(later < former for former, later in zip(values, values[1:]))
        return max(0.0, last - (first - last) / (ended - began) * AHEAD_SECONDS) if falls else last

    def _figures(self) -> dict[str, float]:
        lines = (line.partition(":") for line in read(f"{self.proc}/meminfo").splitlines())
        memory = {name: float(value.split()[0]) * 1024 for name, _, value in lines if value.strip()}
        figures = {"total": memory["MemTotal"], "available": memory["MemAvailable"], "swap": memory["SwapTotal"] - memory["SwapFree"]}
        work = self.work_directory
        while not os.path.isdir(work):
            work = os.path.dirname(work) or "/"
        for name, path in (("root", "/"), ("work", work)):
            there = os.statvfs(path)
            total = float(there.f_blocks * there.f_frsize)
            # A disk without inodes takes no file, however much of it is free; some file systems count none.
            by_inodes = total * there.f_favail / there.f_files if there.f_files else total
            figures[f"{name}_free"], figures[f"{name}_total"] = min(float(there.f_bavail * there.f_frsize), by_inodes), total
        return figures

    def _counters(self) -> dict[str, float]:
        ticks = [float(number) for number in read(f"{self.proc}/stat").splitlines()[0].split()[1:9]]
        counters = {"ticks": sum(ticks), "busy": sum(ticks) - ticks[3] - ticks[4], "sent": 0.0}
        for line in read(f"{self.proc}/net/dev").splitlines()[2:]:
            name, _, numbers = line.partition(":")
            if not name.strip().startswith(("lo", "veth", "docker", "br-")):
                counters["sent"] += float(numbers.split()[8])
        return counters
