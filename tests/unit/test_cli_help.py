"""The list of all commands: by what they are for, and without importing what only commands need."""

import json
import subprocess
import sys

import pytest
import typer

from autoscaler_workbench.cli.commands import GROUPS
from autoscaler_workbench.cli.main import app
from support.cli import autoscaler

# What takes long to import, or is of no use for a list of commands.
HEAVY = {
    "altair",
    "aws_lambda_powertools",
    "boto3",
    "botocore",
    "jenkins",
    "moto",
    "numpy",
    "pydantic",
    "requests",
    "rich",
    "starlette",
    "yaml",
}
ASKED = """
import json, sys
sys.argv = ["autoscaler", *{words!r}]
from autoscaler_workbench.cli.start import main
try:
    main()
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def imported(*words):
    done = subprocess.run([sys.executable, "-c", ASKED.format(words=words)], capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("words", [("--help",), ("--version",), ()], ids=str)
def test_the_list_of_commands_imports_nothing_heavy(words):
    modules = imported(*words)
    assert {name.partition(".")[0] for name in modules} & HEAVY == set()
    assert len([name for name in modules if name.startswith("autoscaler")]) <= 8
    assert len(modules) < 250


def test_looking_at_a_fleet_file_imports_no_aws():
    assert {name.partition(".")[0] for name in imported("match", "--help")} & {"boto3", "botocore", "starlette", "moto"} == set()


def test_the_groups_stand_in_the_order_of_a_day():
    shown = autoscaler("--help").stdout
    places = [shown.index(f"\n{group}:\n") for group in ("Look", "Ask", "Act", "Plan ahead", "Set up", "Experiment")]
    assert places == sorted(places)
    assert shown == autoscaler("-h").stdout
    assert max(map(len, shown.splitlines())) <= 80


def test_a_call_without_any_word_is_wrong_usage_and_shows_the_list():
    shown = autoscaler()
    assert (shown.returncode, shown.stdout) == (2, "")
    assert "\nLook:\n" in shown.stderr


def test_each_command_is_there_and_its_line_is_the_beginning_of_its_own_help():
    group, context = typer.main.get_command(app), None
    listed = {name: line for commands in GROUPS.values() for name, (_, line) in commands.items()}
    for name, line in listed.items():
        assert " ".join((group.get_command(context, name).help or "").split()).startswith(line), name


def test_no_module_has_a_command_that_the_list_lacks():
    modules = {module: set() for commands in GROUPS.values() for module, _ in commands.values()}
    for commands in GROUPS.values():
        for name, (module, _) in commands.items():
            modules[module].add(name)
    for module, names in modules.items():
        parent = typer.Typer()
        __import__(f"autoscaler_workbench.cli.{module}", fromlist=["add_commands"]).add_commands(parent)
        assert set(typer.main.get_group(parent).commands) == names, module


def test_a_typing_error_is_answered_with_the_name_that_was_meant():
    assert "Did you mean 'status'" in autoscaler("statsu").stderr
