"""A person on call: a deployment with its daily load and its small troubles, a terminal of 80 columns, the inbox and the runbook.

What the person reads and types is written down as a transcript. A kept transcript shows a walk as it was played; a later one is the
same walk if it differs in nothing but names, times and figures.
"""

import os
import re
import shlex
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random

from typer.testing import CliRunner

from autoscaler_workbench.cli.main import app
from autoscaler_workbench.fakes.http_fakes.aws.functions import LambdaApi
from autoscaler_workbench.fakes.http_fakes.server import ApiServer
from autoscaler_workbench.fakes.world.jenkins.builds import Build
from packaging_root import ROOT
from support.deployed import InMemory, deployed_in_memory, essential_environment

KEPT = ROOT / "tests" / "walks" / "transcripts"
TERMINAL = {"TTY_COMPATIBLE": "1", "NO_COLOR": "1", "COLUMNS": "80"}
# What differs from night to night: ids, moments, durations, amounts and counts.
_VARIES = re.compile(r"i-[0-9a-f]{17}|(?<=-)[0-9a-f]{17}|\d[\d.:,/-]*|(?<=# )(min|h|s)( # (min|s))?|\bin # left\b|[─━╭╮╰╯│]+| +")
_CONTROL = re.compile(r"\x1b\[[0-9;]*m")


class Night:
    """A deployment, its load, and whoever is on call. ``fleet_file`` is deployed, and the person may edit it."""

    def __init__(self, here: InMemory, server: ApiServer, fleet_file: Path) -> None:
        self.here, self.server, self.fleet_file = here, server, fleet_file
        self.jenkins = here.world.controllers["main"]
        self.transcript: list[str] = []
        self._read = 0
        self._number, self._chance = count(1), Random(5)

    def pass_minutes(self, minutes: int) -> None:
        """Let the deployment work under its load: a dozen jobs an hour for two other pools, and steps on the utility agent."""
        for _ in range(minutes):
            number = next(self._number)
            if number % 5 == 1:
                self.jenkins.submit(f"sanity/PR-{number}", "utility", 120.0)
                self.jenkins.submit(f"unix-cpu/PR-{number}", "mxnetlinux-cpu", self._chance.uniform(600.0, 1500.0))
            self.here.pass_minutes(1)

    def small_troubles(self) -> None:
        """What else is wrong at the same time, and is not the cause: a colleague's mark, a hung build, a label of nobody's, lost spot."""
        self.pass_minutes(10)
        busy = next(node.name for node in self.jenkins.nodes.values() if node.name.startswith("mxnetlinux-cpu-"))
        self.jenkins.set_offline(busy, "weird disk noise", "root")
        self.jenkins.submit("nightly/macos", "macos", 600.0)
        self.jenkins.submit("docs/publish", "mxnetlinux-cpu", 6 * 3600.0)

    def waits_for(self, subject: str, most: int = 60) -> tuple[str, str]:
        """Sleep until a message of this subject rings; return its subject and text. Others may have come before it."""
        for _ in range(most):
            for number, (told, text) in enumerate(self.here.told()[self._read :], self._read + 1):
                if re.search(subject, told):
                    self._read = number
                    self._write(f"The pager, message {number}:", f"Subject: {told}\n\n{text}")
                    return told, text
            self.pass_minutes(1)
        raise AssertionError(f"no message {subject}: {[told for told, _ in self.here.told()]}")

    def types(self, line: str, keep: str = "") -> str:
        """Run a command; return what it said. A command that fails, or that no program knows, is no walk. ``keep``: of which lines."""
        assert line.startswith("autoscaler "), line
        with ThreadPoolExecutor(1) as pool:
            environment = TERMINAL | {"AUTOSCALER_LOCAL": self.server.url}
            asking = pool.submit(lambda: CliRunner().invoke(app, shlex.split(line)[1:], env=environment))
            while not asking.done():
                self.server.functions.serve(self.here.invoke, 0.02)
        ran = asking.result()
        said = _CONTROL.sub("", ran.output)
        self._write(f"$ {line}", "\n".join(row.rstrip() for row in said.splitlines() if keep in row))
        assert ran.exit_code == 0, f"{line}: {said} {ran.exception}"
        return said

    def reads(self, place: str, about: str) -> str:
        """Read the runbook at a place that a message names; return the steps there that are about what was said."""
        page, _, heading = place.partition("#")
        section = section_of(ROOT / page, heading)
        chosen = [step for step in steps_of(section) if about in step]
        assert chosen, f"{place} does not say what to do about {about}:\n{section}"
        self._write(f"{place}, about {about}:", "\n".join(chosen))
        return "\n".join(chosen)

    def does(self, what: str, act: Callable[[], object]) -> None:
        """Do by hand what the runbook says, where no command of ours does it."""
        self._write(f"({what})", "")
        act()

    def edits(self, what: str, old: str, new: str) -> None:
        """Change the fleet file, have it checked, and deploy it, as the runbook says. What it says of old prices differs each day."""
        text = self.fleet_file.read_text(encoding="utf-8")
        assert old in text
        self.fleet_file.write_text(text.replace(old, new, 1), encoding="utf-8")
        self.does(f"{what} in the fleet file", lambda: None)
        said = self.types(f"autoscaler validate {self.fleet_file.name}", keep="valid")
        assert ": valid" in said
        self.does("make build, sam deploy", self.here.start_cold)

    def is_over(self, subject: str, most: int = 30) -> None:
        """Wait for the message that says so."""
        self.waits_for(rf"over: {subject}", most)

    def served(self, builds: list[Build], most: int = 40) -> None:
        """Wait until each of these builds has begun."""
        for _ in range(most):
            if all(build.started_at is not None for build in builds):
                return
            self.pass_minutes(1)
        raise AssertionError([build.started_at for build in builds])

    def _write(self, heading: str, text: str) -> None:
        self.transcript.append(f"{heading}\n{text}".rstrip() + "\n")


@contextmanager
def a_night(fleet_file: Path) -> Iterator[Night]:
    """Deploy a fleet file with the template's own thresholds, and serve the functions to a command line."""
    with deployed_in_memory(fleet_file, essential_environment()) as here, ApiServer() as server:
        server.functions = LambdaApi(frozenset({"scale_up", "scale_down", "operate"}))
        yield Night(here, server, fleet_file)


def see_more(text: str) -> str:
    """The command that a message names to see more."""
    return line_of(text, "See more:")


def runbook(text: str) -> str:
    """The place that a message names for what to do."""
    return line_of(text, "What to do:")


def line_of(text: str, begins: str) -> str:
    """What a message or an answer says behind these words."""
    [line] = {line.partition(begins)[2].strip() for line in text.splitlines() if begins in line}
    return line


def section_of(page: Path, heading: str) -> str:
    """The text below a heading, up to the next one of its level."""
    text = page.read_text(encoding="utf-8")
    start = text.find(f'<a id="{heading}"></a>')
    assert start >= 0, f"{page.name} has no {heading}"
    rest = text[text.index("\n", start) :]
    return rest[: match.start()] if (match := re.search(r"^#{2,3} ", rest, re.MULTILINE)) else rest


def steps_of(section: str) -> list[str]:
    """The paragraphs and points of a section, each on a line of its own."""
    points = re.split(r"\n\n|\n(?=\s*(?:- |\d+\. ))", section)
    return [" ".join(point.split()) for point in points if point.strip()]


def commands_in(steps: str) -> list[str]:
    """The commands of ours that steps of the runbook name."""
    return re.findall(r"`(autoscaler [^`]+)`", steps)


def is_as_kept(name: str, transcript: list[str]) -> None:
    """Compare a walk with the kept one; RECORD=1 keeps this one instead."""
    path, text = KEPT / f"{name}.txt", "\n".join(transcript)
    if os.environ.get("RECORD"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert same_walk(text) == same_walk(path.read_text(encoding="utf-8")), "if that is meant: RECORD=1 pytest tests/walks"


def same_walk(text: str) -> list[str]:
    """What stays the same from night to night."""
    return [" ".join(_VARIES.sub(lambda match: " " if match[0].isspace() else "#", line).split()) for line in text.splitlines()]
