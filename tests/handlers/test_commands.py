"""The command line against the real handlers, invoked as Lambda invokes them."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from rich.console import Console
from typer.testing import CliRunner

from autoscaler.errors import ConfigError, TransientError
from autoscaler_workbench.cli.main import app
from autoscaler_workbench.cli.remote import Deployed
from autoscaler_workbench.cli.terminal import Table, plain
from autoscaler_workbench.fakes.http_fakes.aws.functions import LambdaApi
from support.deployed import deployed


@pytest.fixture
def here():
    with deployed() as stood:
        stood.server.functions = LambdaApi(frozenset({"scale_up", "scale_down", "operate"}))
        yield stood


def answered(here, act):
    """Run what asks in a thread of its own, as a person is; the handlers run in this one, with the world."""
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(act)
        while not asking.done():
            here.server.functions.serve(here.call, 0.02)
    return asking.result()


def command(here, *arguments, given=None):
    runner, where = CliRunner(), ["--local", here.server.url]
    return answered(here, lambda: runner.invoke(app, [*arguments, *where], input=given, env={"COLUMNS": "200"}))


def told(here, *arguments):
    ran = command(here, *arguments, "--json")
    assert ran.exit_code == 0, ran.output
    return json.loads(ran.stdout)


def submit(here, label, count=1):
    for number in range(count):
        here.world.controllers["main"].submit(f"job-{label}-{number}", label, 600.0)


def test_hold_status_resume(here):
    submit(here, "mxnetlinux-gpu")
    here.pass_minutes(1)
    held = command(here, "hold", "--pool", "mxnetlinux-gpu", "--reason", "driver update")
    assert "pool mxnetlinux-gpu is on hold, by" in held.stdout
    shown = command(here, "status").stdout
    assert "main/mxnetlinux-gpu" in shown
    assert "held: pool mxnetlinux-gpu is on hold for another 1 h" in shown
    assert "1 of 60 agents" in shown
    assert told(here, "resume", "--pool", "mxnetlinux-gpu")["holds"] == []


def test_the_plan_says_what_would_be_done_and_does_nothing(here):
    submit(here, "mxnetlinux-gpu")
    here.world.move_to(here.world.timeline.now + 130)
    shown = command(here, "plan").stdout
    assert "launch" in shown
    assert "planned" in shown
    assert here.world.alive() == []


def test_why_says_what_is_known_of_a_pool_and_refuses_what_is_not_there(here):
    shown = command(here, "why", "mxnetlinux-gpu").stdout
    assert "- mxnetlinux-gpu on main: 0 jobs waiting for it; no agents; at most 20, at least 0" in shown
    nothing = command(here, "why", "nobody")
    assert (nothing.exit_code, str(nothing.exception)) == (1, "nobody: is no job that waits or runs, no node and no pool of this fleet")


def test_launch_is_done_once_for_each_request_and_within_the_limits(here):
    once = ("launch", "mxnetlinux-gpu", "2", "--request-id", "friday")
    assert [told(here, *once)["plan"]["steps"][0]["launched"], len(told(here, *once)["plan"]["steps"])] == [2, 0]
    assert told(here, "launch", "mxnetlinux-gpu", "2", "--dry-run")["plan"]["dry_run"]
    assert len(here.world.alive()) == 2
    beyond = told(here, "launch", "mxnetlinux-gpu", "999")["plan"]["held"]
    assert {held["reason"] for held in beyond} == {"max-agents", "fewer-than-asked"}


def test_set_and_drain(here):
    assert told(here, "set", "utility", "--min-agents", "2", "--minutes", "5")["numbers"][0]["min_agents"] == 2
    here.pass_minutes(8)
    [name] = [node.name for node in here.world.controllers["main"].nodes.values() if node.name.startswith("utility")][:1]
    assert [step["step"] for step in told(here, "drain", name)["plan"]["steps"]] == ["cordon"]


def test_purge_asks_first(here):
    submit(here, "mxnetwindows-gpu", count=2)
    here.call("scale_up", {})
    queue = here.world.controllers["main"].queue
    refused = command(here, "purge", "mxnetwindows-gpu", given="n\n")
    assert (refused.exit_code, len(queue)) == (1, 2)
    assert "cancel 2 items (job-mxnetwindows-gpu-0, job-mxnetwindows-gpu-1)?" in refused.output
    assert command(here, "purge", "mxnetwindows-gpu", given="y\n").exit_code == 0
    assert queue == []
    assert "nothing in the queue asks for" in command(here, "purge", "mxnetwindows-gpu").stdout


def test_a_refusal_of_the_functions_is_one_line(here):
    with pytest.raises(ConfigError, match=r"^event refused: pool \(nope\): is not one of the pools"):
        answered(here, lambda: Deployed(stack="", local=here.server.url).call("operate", {"action": "hold", "pool": "nope"}))
    with pytest.raises(TransientError, match=r"could not be invoked: .*Function not found: nothing"):
        answered(here, lambda: Deployed(stack="", local=here.server.url).call("nothing", {}))


def test_a_stack_that_is_not_there_or_not_ours_is_said_in_one_line(here):
    with pytest.raises(ConfigError, match=r"--stack \(mine\): .*"):
        Deployed(stack="mine").call("operate", {"action": "status"})


def test_the_doctor_shows_what_it_found_and_fails_where_something_is_wrong(here):
    here.pass_minutes(1)
    here.world.controllers["main"].submit("job", "utility", 600.0)
    here.pass_minutes(1)
    ran = command(here, "doctor")
    assert ran.exit_code == 0, ran.output
    assert "Agent/Create" in ran.stdout
    here.world.ec2.withdrawn.add("c5.18xlarge")
    ran = command(here, "doctor", "--json")
    assert ran.exit_code == 1
    assert any(finding["fine"] is False for finding in json.loads(ran.stdout))


def test_the_doctor_shows_what_one_function_found_where_the_other_fails(here):
    here.pass_minutes(1)
    here.server.functions.names -= {"scale_up"}
    findings = json.loads(command(here, "doctor", "--json").stdout)
    assert [finding["about"] for finding in findings if finding["what"] == "answers"] == ["scale_up"]
    assert any(finding["what"] == "Agent/Create" and finding["fine"] for finding in findings)


HOSTILE = "x[/x]\x1b]0;mine\x07\x1b[2J\u202e\x9b31m"


def test_names_that_others_chose_are_neither_markup_nor_control_sequences(here):
    """A job's name and its label reach plan, why, status and purge; none of them may move a cursor, set a title, or break the command."""
    jenkins = here.world.controllers["main"]
    jenkins.submit(f"job-{HOSTILE}", "[/x]", 600.0)
    jenkins.submit(f"gpu-{HOSTILE}", "mxnetlinux-gpu", 600.0)
    here.pass_minutes(1)
    commands = [["plan"], ["status"], ["why", "mxnetlinux-gpu"], ["why", f"gpu-{HOSTILE}"], ["why", f"job-{HOSTILE}"], ["doctor"]]
    commands += [["purge", "mxnetlinux-gpu", "--dry-run"], ["purge", "mxnetlinux-gpu"], ["hold", "--label", "[/x]", "--reason", "[/x]"]]
    shown = [command(here, *arguments, given="n\n").output for arguments in commands]
    assert "[/x]" in shown[0]
    assert "x[/x]?]0;mine??[2J??31m" in " ".join(shown)
    assert [text for text in shown if set(text) & set("\x1b\x07\u202e\x9b")] == []


def test_a_command_that_fails_says_why_without_anything_of_the_kind():
    assert plain(f"{HOSTILE} not\tfound\n") == "x[/x]?]0;mine??[2J??31m not found "


def test_a_table_keeps_its_lines_and_only_our_own_styles():
    table = Table("a", title="[/x]")
    table.add_row("[b]one[/b]\ntwo\x1b[1m")
    with (console := Console(width=40, force_terminal=False)).capture() as captured:
        console.print(table)
    assert [line.strip("│┃ ").rstrip() for line in captured.get().splitlines() if "o" in line] == ["[b]one[/b]", "two?[1m"]
    assert "[/x]" in captured.get()
