"""Every command of the pages: run where that needs no network, else checked as far as its program's own description goes.

A new command in a page runs, or needs a rule here that says why it cannot; one that is neither fails.
"""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import islice
from pathlib import Path

import pytest
import tree_sitter_powershell
import typer
import yaml
from tree_sitter import Language, Parser
from typer.testing import CliRunner

from autoscaler.config import check
from autoscaler.config.load import architecture
from autoscaler_workbench.cli.demo import MEND, TOKEN
from autoscaler_workbench.cli.demo_command import PORT
from autoscaler_workbench.cli.main import app
from autoscaler_workbench.fakes.http_fakes.aws.cloudwatch import as_json, published
from autoscaler_workbench.fakes.http_fakes.aws.functions import LambdaApi
from autoscaler_workbench.fakes.http_fakes.jenkins.jobs import Job
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET
from autoscaler_workbench.simulate.traces import MXNET
from benchmarks.__main__ import SECTIONS
from packaging_root import ROOT
from support.cli import autoscaler
from support.deployed import deployed
from support.images import TEMPLATE as IMAGES
from support.page_commands import DATA, PAGES, blocks_of, commands_of
from support.page_rules import NOT_RUN, PLACEHOLDERS, of_program, reason_not_to_run, starts
from support.template import TEMPLATE

UsageError = typer.BadParameter.__base__  # which typer does not export
PROGRAMS = {"autoscaler", "make", "aws", "sam", "export", "$EDITOR", "run()", "run"}
ELSEWHERE = {"gpu-lease"}  # tests/walks/test_docs_devices.py runs them
# Long plays are made short: the last value of an option counts.
SHORT = ["--seeds", "1", "--jobs", "1"]
SHORTENED = {
    # In this part of an hour the carried traces begin.
    "compare": [*SHORT, "--hours", "0.2", "--skip", "0.7", "--lead-in", "0", "--no-sweep"],
    "tune": [*SHORT, "--hours", "0.1"],
    "simulate": ["--hours", "0.2", "--json"],
    "demo": ["--hours", "0.1", "--json"],
}
ORDER = "run-0a1b2c3d4e"
# What a page says that comes of it: the command's first words, its exit code, and what it prints.
ENDS = {
    "validate fleet.yaml": (0, "fleet my-ci: valid"),
    "match linux && !gpu": (0, "yes"),
    "doctor": (0, "ok"),
    "status": (0, "agents"),
    "plan": (0, ""),
    "why linux-gpu-": (0, "linux-gpu-"),
    "hold --pool linux-gpu": (0, "pool linux-gpu is on hold"),
    "launch linux-gpu 3": (0, "3 of 3 agents of linux-gpu launched"),
    "purge": (0, "1"),
    "end i-": (1, "is no instance of this fleet"),
    "dashboard": (0, "dashboard.html"),
    "run nightly/kernel --vary kind --runs 3 --on gpu --dry-run": (0, "3 to be started"),
    f"runs {ORDER}": (6, "linux+t4"),
    "runs cancel": (0, "its end was ordered"),
    "run --file": (0, "the nightly gate"),
    "init http://127.0.0.1:8646/jenkins/main/": (0, "first.yaml: "),
    "validate first.yaml": (0, "valid"),
    "demo mend": (0, "mxnetlinux-gpu is mended"),
}
NODE, BROKEN = "linux-gpu-0ab1", "mxnetlinux-gpu"
ANSWERS = {"purge": "y\n", "init": "y\n" + "\n" * 30}
FREESTYLE = "<project><assignedNode>{}</assignedNode><builders><hudson.tasks.Shell><command>sleep 60</command></hudson.tasks.Shell>"
FREESTYLE += "</builders></project>"


pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@pages
def test_every_command_is_one_that_is_run_or_says_why_it_cannot_be(page):
    strange = [str(c) for c in commands_of(page) if c.program not in PROGRAMS | ELSEWHERE and reason_not_to_run(c) is None]
    assert strange == []
    makes = [c for c in commands_of(page) if c.program == "make" and c.words[0] != "help"]
    assert [str(command) for command in makes if reason_not_to_run(command) is None] == []


def test_no_rule_is_left_of_a_command_that_no_page_has_any_more():
    everything = [command for page in PAGES for command in commands_of(page)]
    assert [start for start in NOT_RUN if not any(starts(command, start) for command in everything)] == []
    asked = [" ".join(command.words) for command in everything if command.program == "autoscaler"]
    assert [start for start in ENDS if not any(words.startswith(start) for words in asked)] == []


@pages
def test_blocks_that_are_no_commands_are_well_formed(page):
    for block in blocks_of(page):
        assert block.language in {"", *DATA}, f"{block.page}:{block.line}: which language is {block.language}?"
        if block.language == "json":
            json.loads(block.text)
        if block.language == "powershell":
            assert not Parser(Language(tree_sitter_powershell.language())).parse(block.text.encode()).root_node.has_error, block.text
        if block.language == "yaml":
            read = yaml.safe_load(block.text)
            if "fleet" in read:
                check(read, f"{block.page}:{block.line}")


WITH_SCRIPTS = [page for page in PAGES if any(block.language == "sh" for block in blocks_of(page))]


@pytest.mark.needs("shellcheck")
@pytest.mark.parametrize("page", WITH_SCRIPTS, ids=lambda page: page.stem)
def test_shell_scripts_pass_shellcheck(page):
    for block in (block for block in blocks_of(page) if block.language == "sh"):
        done = subprocess.run(["shellcheck", "-"], input=block.text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_every_price_of_the_walks_is_one_that_a_command_prints_or_the_page_of_costs_has():
    walks = [page for page in PAGES if page.stem.startswith("deploy")]
    printed = {figure for page in walks for command in commands_of(page) for figure in re.findall(r'"(\d[\d.]*)"', command.says)}
    measured = set(re.findall(r"\$(\d[\d.,]*\d)", (ROOT / "docs" / "cost.md").read_text(encoding="utf-8")))
    said = {figure for page in walks for figure in re.findall(r"\$(\d[\d.,]*\d)", page.read_text(encoding="utf-8"))}
    assert {"0.202", "32.85"} <= said
    assert said - printed - measured == {"33"}  # 32.85, rounded


# What programs know: names of commands, options, targets, parameters.


@pages
def test_every_autoscaler_command_parses(page):
    for command in of_program(page, "autoscaler", spoken=True):
        words = [PLACEHOLDERS.get(word, word) for word in command.words]
        if ">" in words:
            words = words[: words.index(">")]
        try:
            parse(typer.main.get_command(app), words, mentioned=len(words) == 1)
        except UsageError as error:
            pytest.fail(f"{command}: {error.format_message()}")


def parse(command, words, *, mentioned, parent=None):
    """Take the words apart as the command line would, without doing anything. A command that is only mentioned may lack arguments."""
    if parent is None and (not words or words[0].startswith("--")):
        assert {*words} <= {option for parameter in command.params for option in parameter.opts}, words
        return
    context = command.make_context(command.name, list(words), parent=parent, resilient_parsing=mentioned and parent is not None)
    with context:
        rest = [*context._protected_args, *context.args]
        if hasattr(command, "resolve_command") and rest:
            _, chosen, after = command.resolve_command(context, rest)
            parse(chosen, after, mentioned=mentioned, parent=context)


def test_the_first_walk_sets_up_before_it_types_and_deploys_before_it_explains_roles():
    page = ROOT / "docs" / "deploy.md"
    [setup] = [command.line for command in commands_of(page) if command.program == "make" and command.words == ("setup",)]
    typed = of_program(page, "autoscaler", spoken=True)
    later = {("why",), ("doctor",), ("validate",), ()}  # what the page says that they will tell
    early = [str(command) for command in typed if command.line < setup and command.words[:1] not in later]
    assert early == []
    assert min(command.line for command in commands_of(page) if command.program == "autoscaler") > setup
    headings = re.findall(r"^##+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    steps = [heading for heading in headings if heading[0].isdigit()]
    assert headings[: len(steps)] == steps
    assert [step.partition(".")[0] for step in steps] == [str(number) for number in range(len(steps))]


def test_a_wrong_option_would_be_noticed():
    with pytest.raises(UsageError):
        parse(typer.main.get_command(app), ["hold", "--poool", "x"], mentioned=False)
    with pytest.raises(UsageError):
        parse(typer.main.get_command(app), ["demo", "mendd"], mentioned=False)


@pages
def test_every_make_command_names_a_target_and_variables_that_the_makefile_has(page):
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):.*## ", text, re.MULTILINE))
    for command in of_program(page, "make", spoken=True):
        given = dict(word.split("=", 1) for word in command.words if "=" in word)
        assert {word for word in command.words if "=" not in word} <= targets, str(command)
        assert [name for name in given if f"$({name})" not in text and f"$({name}:" not in text and f"{name} ?=" not in text] == [], str(
            command
        )
        if command.words[:1] == ("bench",) and "ONLY" in given:
            assert given["ONLY"] in SECTIONS, str(command)


@cache
def sam_options(command):
    sam = shutil.which("sam", path=str(ROOT / ".venv-sam" / "bin"))
    assert sam, "run the tests with `make test`: it installs the SAM command line beside them"
    environment = os.environ | {"SAM_CLI_TELEMETRY": "0"}
    done = subprocess.run([sam, command, "--help"], capture_output=True, text=True, check=True, timeout=60, env=environment)
    return set(re.findall(r"--[a-z0-9-]+", done.stdout))


@pages
def test_every_sam_command_has_options_and_parameters_that_exist(page):
    for command in of_program(page, "sam", spoken=True):
        options = {word for word in command.words if word.startswith("--")}
        assert not options or options <= sam_options(command.words[0]), str(command)


@pages
def test_every_parameter_of_the_stack_that_a_page_sets_may_be_set_so(page):
    """In commands, in their comments, and as `Name=value` in a sentence."""
    text = page.read_text(encoding="utf-8")
    lines = [command.text for command in of_program(page, "sam", "$EDITOR")]
    found = [pair for line in lines for pair in re.findall(r"\b([A-Z][a-z]\w+)=([^\s\"]+)", line)]
    found += re.findall(r"`([A-Z][a-z]\w+)=([^\s`]+)`", text)
    network = {"WayOut"}
    for name, value in found:
        if name in network:
            continue
        rules = TEMPLATE["Parameters"].get(name) or IMAGES["Parameters"].get(name)
        assert rules, f"{page.name}: neither template.yaml nor image.yaml has a parameter {name}"
        allowed = [str(one) for one in rules.get("AllowedValues", [])]
        assert not allowed or all(one in allowed for one in value.split("|")), f"{page.name}: {name}={value}"


# Those that run.


class Reader:
    """Somebody who types what a page says, beside a demo that is kept; what the page writes about is there."""

    def __init__(self, here):
        self.here, self.typed = here, 0
        here.server.functions = LambdaApi(frozenset({"scale_up", "scale_down", "operate", MEND}))
        here.server.published = lambda: as_json(published())

    def call(self, function, event):
        if function == MEND:
            return {"pool": event["pool"], "broken": []}
        return self.here.invoke(function, event)

    def node(self):
        names = [name for name in self.here.world.controllers["main"].nodes if name.startswith("linux-gpu-")]
        return names[0]

    def order(self):
        """The order that was made last: it stands after those before it."""
        return [one["id"] for one in self.here.call("operate", {"action": "runs"})["runs"] if one["outcome"] is None][-1]

    def filled_in(self, word):
        self.typed += 1
        if word == ORDER:
            return self.order()
        word = word.replace("https://jenkins.example.org/", f"{self.here.server.url}/jenkins/main/")
        word = word.replace(f"http://127.0.0.1:{PORT}", self.here.server.url)
        if word == NODE:
            return self.node()
        return f"out/{self.typed}" if word == "DIR" else word

    def types(self, command):
        """Run one command; return its exit code and what it said."""
        words = [self.filled_in(word) for word in command.words]
        shortened = [] if words[:2] == ["demo", "mend"] else SHORTENED.get(words[0], [])
        if shortened:
            return self._plays([*words, *shortened])
        environment = {"AUTOSCALER_LOCAL": self.here.server.url, "JENKINS_USER": "autoscaler", "JENKINS_TOKEN": TOKEN}
        with ThreadPoolExecutor(1) as pool:
            asking = pool.submit(lambda: CliRunner().invoke(app, words, env=environment, input=ANSWERS.get(words[0])))
            while not asking.done():
                self.here.server.functions.serve(self.call, 0.02)
        ran = asking.result()
        return ran.exit_code, f"{ran.output}{ran.exception or ''}"

    def _plays(self, words):
        """The demo deploys a local AWS of its own, and so needs a process of its own."""
        if words[0] == "demo":
            command = [str(Path(sys.executable).parent / "autoscaler"), *words]
            ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        else:
            ran = autoscaler(*words)
        return ran.returncode, ran.stdout + ran.stderr


def lay_out(folder, page):
    """The files that a reader has: the checkout, a trace, and a fleet file, which is the page's own where it has one."""
    (folder / "autoscaler_workbench").symlink_to(ROOT / "autoscaler_workbench")
    with gzip.open(MXNET, "rt", encoding="utf-8") as rows:
        some = "".join(islice(rows, 30))
    for name in ("jobs.csv.gz", "vllm_buildkite.csv.gz"):
        (folder / name).write_bytes(gzip.compress(some.encode()))
    needs = [{"job": "nightly/all", "pool": "mxnetlinux-cpu", "memory_gib": 26, "cores": 4, "hours": 80}]
    (folder / "needs.json").write_text(json.dumps(needs), encoding="utf-8")
    (folder / "my").mkdir()
    shutil.copy(EXAMPLE_FLEET, folder / "my-fleet.yaml")
    for block in blocks_of(page):
        if block.language == "yaml" and block.text.startswith("- job:"):
            (folder / "orders.yaml").write_text(block.text, encoding="utf-8")
    if own := own_fleet(page):
        (folder / "fleet.yaml").write_text(own, encoding="utf-8")


def own_fleet(page):
    """The whole fleet file that a page shows; "" where it shows parts of one."""
    whole = (block.text for block in blocks_of(page) if block.language == "yaml" and "\npools:" in block.text)
    return next((text for text in whole if text.startswith("fleet:") or "\nfleet:" in text), "")


def fleet_of(page, commands):
    """The fleet that is deployed where the page is read: its own, or the example's, with the pool that it talks of."""
    text = own_fleet(page) or EXAMPLE_FLEET.read_text(encoding="utf-8")
    return text.replace(BROKEN, "linux-gpu") if any("linux-gpu" in command.words for command in commands) else text


RUN_HERE = [page for page in PAGES if any(reason_not_to_run(command) is None for command in of_program(page, "autoscaler", "run"))]


@pytest.mark.long
@pytest.mark.parametrize("page", RUN_HERE, ids=lambda page: page.stem)
def test_the_commands_of_a_page_run_in_their_order_and_end_as_it_says(page, tmp_path, monkeypatch, record_property):
    commands = [command for command in of_program(page, "autoscaler", "run") if reason_not_to_run(command) is None]
    lay_out(tmp_path, page)
    monkeypatch.chdir(tmp_path)
    fleet_file = tmp_path / "deployed.yaml"
    fleet_file.write_text(fleet_of(page, commands), encoding="utf-8")
    failed = []
    with deployed(fleet_file) as here:
        reader = Reader(here)
        busy(here)
        for command in commands:
            code, said = handler_called(reader, command) if command.program == "run" else reader.types(command)
            expected, words = next((end for start, end in ENDS.items() if " ".join(command.words).startswith(start)), (0, ""))
            if code != expected or any(word not in said for word in (words, *re.findall(r'"([^"]+)"', command.says))):
                failed.append(f"{command}\n  exit code {code}: {said[-600:]}")
    assert failed == [], "\n".join(failed)
    record_property("counted", (f"commands of {page.name} that were run", len(commands)))


def handler_called(reader, command):
    function, payload = command.words
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", function.strip("<>")).lower()
    answer = reader.here.call(name, json.loads(payload.replace(NODE, reader.node())))
    return 0, json.dumps(answer)


def busy(here):
    """Jobs run, one waits for what no pool has, and ten minutes have passed; images are for what the pools launch."""
    if any(architecture(offering.instance_type) == "arm64" for pool in here.fleet.pools.values() for offering in pool.offerings):
        for image in here.world.ec2.account.images.values():
            image["Architecture"] = "arm64"
    jenkins, label = here.world.controllers["main"], "linux-gpu" if "linux-gpu" in here.fleet.pools else BROKEN
    jobs = here.server.jenkins["main"].jobs
    jobs.create("", "unit", FREESTYLE.format(label).encode())
    jobs.build("unit")
    for controller in here.server.jenkins.values():
        declares = dict.fromkeys(("AGENT_LABEL", "AUTOSCALER_RUN_ID", "REF"), "")
        controller.jobs.jobs["nightly/kernel"] = Job(Kind.PIPELINE, None, 600.0, declares, label_parameter="AGENT_LABEL")
    jenkins.submit("nightly", label, 3600.0)
    jenkins.submit("driver-tests", "gfx1030", 600.0)
    here.pass_minutes(12)


def test_make_help_lists_the_targets():
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert "make demo" in done.stdout
