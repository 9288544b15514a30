"""The command line against the real handlers, invoked as Lambda invokes them."""

import json
import re

import pytest
from rich.console import Console
from typer.testing import CliRunner

from autoscaler import bootstrap
from autoscaler.errors import ConfigError, TransientError
from autoscaler_workbench.cli import request
from autoscaler_workbench.cli.main import app
from autoscaler_workbench.cli.remote import Deployed
from autoscaler_workbench.cli.terminal import Table, plain
from autoscaler_workbench.fakes.world.world import break_boots
from support.asked import answered, command, served, told
from support.cli import autoscaler
from support.deployed import deployed_in_memory


@pytest.fixture
def here():
    with deployed_in_memory() as stood, served(stood, "scale_up", "scale_down", "operate"):
        yield stood


def submit(here, label, count=1):
    for number in range(count):
        here.world.controllers["main"].submit(f"job-{label}-{number}", label, 600.0)


def test_hold_status_resume(here):
    submit(here, "mxnetlinux-gpu")
    here.pass_minutes(1)
    held = command(here, "hold", "--pool", "mxnetlinux-gpu", "--reason", "driver update")
    assert held.stdout.startswith("pool mxnetlinux-gpu is on hold until 09:01 UTC, for another 1 h, by ")
    shown = command(here, "status").stdout
    assert "\nmxnetlinux-gpu\t1\t" in shown
    assert shown.startswith("pool mxnetlinux-gpu is on hold until 09:01 UTC, for another 1 h, by ")
    assert "1 of 60 agents" in shown
    assert told(here, "resume", "--pool", "mxnetlinux-gpu")["holds"] == []


def test_the_plan_says_what_would_be_done_and_does_nothing(here):
    submit(here, "mxnetlinux-gpu")
    here.world.move_to(here.world.timeline.now + 130)
    shown = command(here, "plan").stdout
    assert "launch" in shown
    assert "planned" in shown
    assert shown.splitlines()[-1].startswith("Plan: 2 to launch, 0 to terminate, ")
    assert here.world.alive() == []


def test_why_says_what_is_known_of_a_pool_and_refuses_what_is_not_there(here):
    shown = command(here, "why", "mxnetlinux-gpu").stdout
    assert "mxnetlinux-gpu on main: 0 jobs waiting for it; no agents; at most 20, at least 0" in shown
    nothing = command(here, "why", "nobody")
    assert (nothing.exit_code, str(nothing.exception)) == (
        1,
        "nobody: is no job that waits or runs, no node or instance and no pool of this fleet",
    )


def test_launch_is_done_once_for_each_request_and_within_the_limits(here):
    once = ("launch", "mxnetlinux-gpu", "2", "--request-id", "friday")
    assert [told(here, *once)["plan"]["steps"][0]["launched"], len(told(here, *once)["plan"]["steps"])] == [2, 0]
    assert told(here, "launch", "mxnetlinux-gpu", "2", "--dry-run")["plan"]["dry_run"]
    assert len(here.world.alive()) == 2
    beyond = told(here, "launch", "mxnetlinux-gpu", "999", "--yes", code=1)["plan"]["held"]
    assert {held["reason"] for held in beyond} == {"max-agents", "fewer-than-asked"}


def test_set_and_drain(here):
    assert told(here, "set", "utility", "--min-agents", "2", "--minutes", "5")["numbers"][0]["min_agents"] == 2
    here.pass_minutes(8)
    [name] = [node.name for node in here.world.controllers["main"].nodes.values() if node.name.startswith("utility")][:1]
    assert [step["step"] for step in told(here, "drain", name)["plan"]["steps"]] == ["cordon"]


def test_the_totals_of_a_plan_count_agents_and_what_is_not_done(here):
    submit(here, "mxnetlinux-gpu", count=25)
    here.world.move_to(here.world.timeline.now + 130)
    plan = told(here, "plan")["plan"]
    *_, last = command(here, "plan", columns=100).stdout.splitlines()
    launched = sum(step["count"] for step in plan["steps"] if step["step"] == "launch")
    others = sum(step["step"] != "launch" for step in plan["steps"])
    assert last == f"Plan: {launched} to launch, 0 to terminate, {others} other steps; {len(plan['held'])} not done."
    assert (launched > 1, plan["held"] != []) == (True, True)


def test_nothing_to_do_has_totals_too(here):
    here.pass_minutes(1)
    first, *_, last = command(here, "plan").stdout.splitlines()
    assert (first, last) == ("nothing to do", "Plan: 0 to launch, 0 to terminate; 1 not done.")


def test_wide_lists_show_age_type_and_price(here):
    command(here, "launch", "utility", "--keep-minutes", "300")
    here.pass_minutes(8)
    header, agent, *_ = re.sub(r"\x1b\[[0-9;]*m", "", command(here, "agents", "--wide", columns=160).stdout).splitlines()
    assert header.split() == ["agent", "state", "age", "type", "$/h", "doing"]
    entry = told(here, "agents")["agents"][0]
    assert f"8 min  {entry['instance_type']}" in agent
    assert f"  {entry['usd_per_hour']:.2f}  " in agent
    assert "$/h" not in command(here, "agents", columns=160).stdout.splitlines()[0]


def broken(here, jobs=3):
    """Jobs wait for a pool whose agents hang, until its breaker opens."""
    pools = {"mxnetlinux-gpu"}
    break_boots(here.world, pools)
    submit(here, "mxnetlinux-gpu", count=jobs)
    while not bootstrap.runtime().ports.state.read().memory.trials.get("boot/mxnetlinux-gpu"):
        here.pass_minutes(1)
    return pools


def test_a_broken_pool_stands_first_with_what_a_person_can_do(here):
    broken(here)
    first, last, following, mended, *_ = command(here, "status").stdout.splitlines()
    assert first == "mxnetlinux-gpu has been broken for 0 s: its last 3 boots failed"
    assert last.startswith("  the last was i-")
    assert last.endswith("; it did not register within 15 min; its console ended: dracut: FATAL: no root device found")
    assert following == "  next: one agent is tried as soon as jobs wait for it"
    assert mended == "  once it is mended: autoscaler resume --breaker mxnetlinux-gpu"
    [row] = [line for line in command(here, "status").stdout.splitlines() if line.startswith("mxnetlinux-gpu\t")]
    assert row.split("\t") == ["mxnetlinux-gpu", "3", "18 min", "1 booting, 2 ending of 20", "0/0", "2.19", "one-trial"]
    assert command(here, "why", "mxnetlinux-gpu").stdout.startswith(f"{first}\n- {last.strip()}\n")


def test_closing_a_breaker_says_what_follows_and_one_that_is_not_open_is_no_success(here):
    broken(here)
    closed = command(here, "resume", "--breaker", "mxnetlinux-gpu")
    assert (closed.exit_code, closed.stdout.splitlines()) == (
        0,
        [
            "the breaker of mxnetlinux-gpu is closed: within a minute agents are launched as the queue needs them",
            "1 agent launched before this may still fail, and counts until then",
            "to have others beside: autoscaler launch mxnetlinux-gpu 1",
        ],
    )
    again = command(here, "resume", "--breaker", "mxnetlinux-gpu")
    assert (again.exit_code, "the breaker of mxnetlinux-gpu is not open" in again.stdout) == (1, True)


def test_exit_codes_tell_refused_from_done(here):
    some = command(here, "launch", "mxnetlinux-gpu", "300", "--yes")
    assert (some.exit_code, some.stdout.splitlines()[0]) == (
        1,
        "20 of 300 agents of mxnetlinux-gpu launched; kept until 09:00 UTC (1 h), needed or not",
    )
    assert "max-agents\tmxnetlinux-gpu\tone more would make 21 agents in pool mxnetlinux-gpu" in some.stdout
    none = command(here, "launch", "mxnetlinux-gpu", "1", "--dry-run")
    assert (none.exit_code, none.stdout.splitlines()[0]) == (1, "0 of 1 agent of mxnetlinux-gpu would be launched")
    assert command(here, "launch", "utility", "--request-id", "a", "--keep-minutes", "0").stdout == (
        "1 of 1 agent of utility launched; kept only while needed\n$0.10 an hour, while they are needed\n"
    )
    again = command(here, "launch", "utility", "--request-id", "a")
    assert (again.exit_code, again.stdout) == (0, "this request was carried out before; nothing was launched now\n")
    drained = command(here, "drain", "nosuch")
    assert (drained.exit_code, "nosuch is no agent of this fleet that takes builds now" in drained.stdout) == (1, True)
    assert command(here, "resume", "--node", "nosuch").exit_code == 1
    assert command(here, "why", "nosuch").exit_code == 1


def test_an_order_about_everything_must_say_so(here):
    for verb in ("hold", "resume"):
        bare = command(here, verb)
        assert (bare.exit_code, f"give what to {verb}: --pool" in bare.output) == (2, True)
        assert command(here, verb, "--fleet", "--pool", "utility").exit_code == 2
    held = command(here, "hold", "--fleet", "--until-resumed", "--reason", "move").stdout
    assert held.startswith("the whole fleet is on hold until somebody resumes it, by ")
    assert command(here, "resume", "--fleet").stdout.startswith("nothing is on hold\n")


def test_set_says_what_is_now_true_and_until_when(here):
    assert command(here, "set", "utility", "--min-agents", "2").stdout == (
        "utility: at least 2 (fleet file: 1), at most 4, warm executors: 0; until 09:00 UTC, for another 1 h, then as in the fleet file"
        "; at least $0.19 an hour\n"
    )
    assert command(here, "set", "utility").stdout == "utility: at least 1, at most 4, warm executors: 0; as in the fleet file\n"
    assert command(here, "set", "utility", "--max-agents", "9", "--dry-run").stdout.startswith("dry run: nothing was changed")


def test_names_in_a_terminal_are_whole_and_without_the_only_controller(here):
    submit(here, "mxnetlinux-gpu")
    here.world.controllers["main"].submit("odd", "sparc", 600.0)
    here.pass_minutes(8)
    submit(here, "mxnetlinux-gpu", count=2)
    [node] = [name for name in here.world.controllers["main"].nodes if name.startswith("mxnetlinux-gpu")]
    listed = command(here, "agents", columns=60).stdout
    assert f"{node}  busy   job-mxnetlinux-gpu-0" in listed
    queue = command(here, "queue", columns=60).stdout
    assert [line.split() for line in queue.splitlines()[1:]] == [
        ["odd", "sparc", "8", "min", "unservable"],
        ["job-mxnetlinux-gpu-0", "mxnetlinux-gpu", "0", "s", "counts", "after", "2", "min"],
        ["job-mxnetlinux-gpu-1", "mxnetlinux-gpu", "0", "s", "counts", "after", "2", "min"],
    ]
    status = command(here, "status", columns=60).stdout
    assert "main" not in status + queue + listed
    assert "unused: mxnetlinux-cpu, mxnetlinux-gpu-p3" in status


def test_what_is_piped_has_a_line_of_tab_separated_values_for_each_thing(here):
    submit(here, "mxnetlinux-gpu")
    here.pass_minutes(8)
    header, *agents = (line.split("\t") for line in command(here, "agents").stdout.splitlines())
    assert {len(agent) for agent in agents} == {len(header)}
    assert sorted(agent[header.index("pool")] for agent in agents) == ["mxnetlinux-gpu", "utility"]
    assert command(here, "queue").stdout == "job\n"


def test_alarms_that_ring_are_named_with_their_runbook(here):
    here.pass_minutes(20)
    assert command(here, "alarms", columns=80).stdout.endswith(" alarms rings\n")
    broken(here)
    here.pass_minutes(3)
    ringing = command(here, "alarms").stdout
    assert "BreakersOpen\tALARM\tThe agents of a pool do not boot; one agent at a time is tried, at growing intervals." in ringing
    assert "#breakers-open" in command(here, "alarms", columns=80).stdout
    assert "LeaseHeld\tOK" in command(here, "alarms", "--all").stdout
    assert [alarm["alarm"] for alarm in told(here, "alarms")["alarms"]] == [line.split("\t")[0] for line in ringing.splitlines()[1:]]


def test_watching_asks_again_until_it_is_interrupted(here, monkeypatch):
    asked = []

    def sleep(seconds):
        asked.append(seconds)
        if len(asked) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(request.time, "sleep", sleep)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    watched = answered(here, lambda: autoscaler("queue", "--watch", "--local", here.server.url))
    assert (watched.returncode, watched.stdout.count("nothing waits"), watched.stderr) == (130, 3, "\rinterrupted\n")


def completed(here, line):
    words = {"_AUTOSCALER_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    runner = CliRunner()
    where = {"AUTOSCALER_LOCAL": here.server.url}
    return answered(here, lambda: runner.invoke(app, [], env=words | where, prog_name="autoscaler")).stdout.split()


def test_names_of_pools_and_nodes_are_completed(here):
    here.pass_minutes(5)
    [node] = [name for name in here.world.controllers["main"].nodes if name.startswith("utility")]
    assert completed(here, "autoscaler launch mxnetwindows-c") == ["mxnetwindows-cpu"]
    assert completed(here, "autoscaler hold --pool util") == ["utility"]
    assert completed(here, "autoscaler drain util") == [node]
    assert completed(here, "autoscaler why util") == ["utility", node]
    assert completed(here, "autoscaler hold --controller ") == ["main"]
    here.server.functions.names -= {"operate"}
    assert completed(here, "autoscaler why util") == []


def test_functions_of_another_version_are_named_as_the_cause(here, monkeypatch):
    monkeypatch.setattr(Deployed, "call", lambda *_: {"status": {}})
    ran = command(here, "status")
    assert (ran.exit_code, str(ran.exception)) == (
        1,
        "the deployed functions do not tell 'pools': are they of another version than this command?",
    )


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


def test_a_person_reserves_an_agent_sees_who_has_which_and_releases_it(here):
    here.pass_minutes(2)
    shown = command(here, "reserve", "mxnetlinux-gpu", "--hours", "2", "--for", "alice", "--reason", "a test hangs").stdout.splitlines()
    [instance] = [one.id for one in here.world.alive() if one.tags["autoscaler:pool"] == "mxnetlinux-gpu"]
    assert shown[0] == f"alice has {instance} until 10:02 UTC (2 h); it boots: a test hangs"
    assert shown[1].startswith(f"  aws ssm start-session --target {instance}")
    here.pass_minutes(8)
    [entry] = told(here, "reservations")["reservations"]
    assert (entry["person"], entry["instance_id"]) == ("alice", instance)
    header, row = command(here, "reservations").stdout.splitlines()
    assert dict(zip(header.split("\t"), row.split("\t"), strict=True))["node"] == entry["node"]
    assert "for another 1 h 52 min" in command(here, "why", entry["node"]).stdout
    longer = told(here, "reserve", entry["node"], "--hours", "5", "--for", "alice")
    assert [step["step"] for step in longer["plan"]["steps"]] == ["end-reservation"]
    assert [one["until_at"] for one in longer["reservations"]] == [here.world.timeline.now + 5 * 3600]
    refused = command(here, "reserve", entry["node"], "--for", "bob")
    assert (refused.exit_code, "is reserved for alice: a test hangs" in refused.stdout) == (1, True)
    assert told(here, "release", entry["node"], "--reason", "found it")["plan"]["steps"][0]["outcome"] == "done"
    here.pass_minutes(4)
    assert told(here, "reservations")["reservations"] == []
    assert command(here, "release", entry["node"]).exit_code == 1
