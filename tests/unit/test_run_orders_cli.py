"""The commands that order builds of a job, and tell what has become of them."""

import json
import re

import pytest
import typer
from typer.testing import CliRunner

from autoscaler.domain.facts.started_builds import TryState, Until, Verdict
from autoscaler.errors import ConfigError, TransientError
from autoscaler_workbench.cli.main import app
from autoscaler_workbench.cli.request import Request
from autoscaler_workbench.cli.run_waiting import show_end, until_ended
from support.asked import answered, command
from support.cli import autoscaler
from support.ordered import a_part, an_order, answering, refused, told

PASSED, FAILED = a_part(Verdict.PASSED), a_part(Verdict.FAILED, value="T4", why="2 tests failed")
OPEN = an_order(PASSED, a_part(state=TryState.RUNNING, value="T4"))
MANY_OPTIONS = (
    "run nightly/kernel --param K=V --param L= --on linux&&gpu --where vcpu>=8 --where gpu=A10G --vary kind --runs 3 --strict "
    "--choose cheapest --resubmit 2 --controller main --reason why --request-id r-1"
)


def shown_lines(ran):
    """What a person reads, without colours and without what makes columns of it."""
    return [" ".join(line.split()) for line in re.sub(r"\x1b\[[\d;]*m", "", ran.stdout).splitlines()]


@pytest.mark.parametrize(
    ("words", "sent"),
    [
        ("run nightly/kernel", {}),
        ("run nightly/kernel --runs 3 --same", {"runs": 3, "same": True}),
        ("run nightly/kernel --runs 3 --vary pool", {"runs": 3, "vary": "pool"}),
        ("run nightly/kernel --gang 4", {"runs": 4, "until": "all", "replace": 4}),
        ("run nightly/kernel --gang 4 --until first-success --replace 0", {"runs": 4, "until": "first-success", "replace": 0}),
        (
            MANY_OPTIONS,
            {"parameters": {"K": "V", "L": ""}, "on": "linux&&gpu", "where": ["vcpu>=8", "gpu=A10G"], "vary": "kind", "runs": 3}
            | {"strict": True, "choose": "cheapest", "resubmit": 2, "controller": "main", "reason": "why", "request_id": "r-1"},
        ),
    ],
)
def test_the_options_of_an_order_are_the_fields_of_its_event(words, sent):
    with answering(told(OPEN)) as here:
        assert command(here, *words.split()).exit_code == 0
        [event] = here.asked
    assert event.pop("by")
    assert event.pop("request_id").startswith("r-1" if "request_id" in sent else "cli-")
    plain = {"action": "run", "job": "nightly/kernel", "parameters": {}, "strict": False, "same": False, "choose": "soonest"}
    plain |= {"dry_run": False, "reason": "no reason was given"}
    assert event == {name: value for name, value in (plain | sent).items() if name != "request_id"}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("run", 2, "give a job, or --file"),
        ("run a --gang 2 --runs 2", 2, "without --runs"),
        ("run a --until all", 2, "give --gang"),
        ("run a --replace 1", 2, "give --gang"),
        ("run a --same --vary pool", 2, "without --vary pool"),
        ("run a --strict", 2, "needs --vary"),
        ("run a --vary colour", 2, "colour"),
        ("run a --file orders.yaml --on x", 2, "without a, --on"),
        ("run --file orders.yaml --request-id x", 2, "--request-id"),
        ("run a --param K", 1, "--param (K): must be NAME=VALUE"),
        ("run a --param =V", 1, "--param (=V): must be NAME=VALUE"),
        ("run a --param K=1 --param K=2", 1, "--param (K=2): K is given twice"),
        ("run --file nowhere.yaml", 1, "--file (nowhere.yaml): cannot be read (No such file or directory)"),
        ("runs a b", 2, "unexpected extra argument"),
        ("runs cancel", 2, "Missing argument"),
    ],
)
def test_what_is_no_order_is_refused_before_anybody_is_asked(words, code, said):
    done = autoscaler(*words.split(), "--local", "http://127.0.0.1:9")
    assert (done.returncode, done.stdout) == (code, "")
    assert said in " ".join(done.stderr.replace("│", " ").split())


def test_a_refused_order_is_one_line_and_exit_code_1():
    with answering(refused("vary (pool): only 2 of 3 pools serve it")) as here:
        done = answered(here, lambda: autoscaler("run", "a", "--vary", "pool", "--runs", "3", "--local", here.server.url))
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "event refused: vary (pool): only 2 of 3 pools serve it\n")


def test_one_order_is_a_sentence_a_table_and_on_request_why_these_places():
    with answering(told(an_order(PASSED, FAILED))) as here:
        shown = command(here, "run", "nightly/kernel", "--ranking", columns=140)
        without = command(here, "run", "nightly/kernel", columns=140)
    lines = shown_lines(shown)
    assert lines == [
        "run-1: nightly/kernel on main, ordered by alice 10 min ago: 1 of 2 failed, on T4",
        "K=V; flaky?",
        "run where state node build waited took why",
        "1 A10G (gpu-a10g) passed gpu-0ab1 job/kernel/7 100 s 7 min 20 s",
        "2 T4 (gpu-t4) failed gpu-0ab1 job/kernel/7 100 s 7 min 20 s 2 tests failed",
        "- gpu-a10g: starts at once",
    ]
    assert shown.exit_code == 0, "ordered"
    assert "starts at once" not in without.stdout


def test_a_dry_run_says_what_would_be_started_where_and_why_there():
    planned = told(an_order(a_part(), a_part(value="T4", controller="other")), dry_run=True)
    with answering(planned) as here:
        shown = command(here, "run", "nightly/kernel", "--dry-run", "--wait", columns=140)
        assert [event["dry_run"] for event in here.asked] == [True]
    lines = shown_lines(shown)
    assert lines == [
        "dry run: nothing was changed; this would be so",
        "nightly/kernel: 2 to be started",
        "K=V; flaky?",
        "run where label state",
        "1 A10G (main/gpu-a10g) gpu-a10g to be started",
        "2 T4 (other/gpu-t4) gpu-t4 to be started",
        "- gpu-a10g: starts at once",
    ]


def test_a_build_that_was_started_again_says_which_try_it_is():
    again = a_part(Verdict.PASSED, tries=2)
    with answering(told(an_order(again))) as here:
        assert "passed, try 2" in command(here, "runs", "run-1", columns=200).stdout


def test_orders_are_listed_in_a_line_each_and_piped_with_all_that_is_known():
    listed = told(OPEN, an_order(PASSED, id_="run-0"), action="runs")
    with answering(listed) as here:
        shown = command(here, "runs", columns=140)
        piped = command(here, "runs", "--most", "7")
        assert [event.get("most") for event in here.asked] == [50, 7]
    lines = shown_lines(shown)
    assert lines[1:] == [
        "run-1 nightly/kernel alice 10 min ago open 1 passed, 1 runs",
        "run-0 nightly/kernel alice 10 min ago passed 1 of 1 passed",
    ]
    header, first, _ = (line.split("\t") for line in piped.stdout.splitlines())
    told_ = dict(zip(header, first, strict=True))
    assert (told_["id"], told_["parameters"], told_["outcome"]) == ("run-1", "K=V", "")
    assert shown.exit_code == piped.exit_code == 0


def test_nothing_ordered_is_said():
    with answering(told(action="runs")) as here:
        assert command(here, "runs", columns=100).stdout == "nothing was ordered; autoscaler run JOB orders builds\n"
        assert command(here, "runs").stdout == "id\n"
        assert json.loads(command(here, "runs", "--json").stdout)["runs"] == []


@pytest.mark.parametrize(
    ("order", "code"),
    [
        (an_order(PASSED), 0),
        (an_order(PASSED, FAILED), 3),
        (an_order(PASSED, a_part(Verdict.UNSTABLE)), 3),
        (an_order(FAILED, a_part(Verdict.LOST)), 3),
        (an_order(PASSED, a_part(Verdict.LOST)), 4),
        (an_order(a_part(Verdict.REFUSED)), 4),
        (an_order(a_part(Verdict.IN_DOUBT)), 4),
        (an_order(PASSED, a_part(Verdict.STOPPED), cancelled_by="bob"), 5),
        (an_order(PASSED, a_part(Verdict.STOPPED), until=Until.FIRST_SUCCESS), 0),
        (OPEN, 6),
    ],
)
def test_the_exit_code_tells_how_an_order_ended(order, code):
    with answering(told(order, action="runs")) as here:
        assert command(here, "runs", "run-1", "--json").exit_code == code
        assert command(here, "runs", "--json", "run-1").exit_code == code
        assert {json.dumps(event) for event in here.asked} == {'{"action": "runs", "id": "run-1"}'}


def test_waiting_leaves_with_the_exit_code_of_the_end_and_ordering_alone_with_0():
    ended = told(an_order(PASSED, FAILED))
    with answering(ended) as here:
        assert command(here, "run", "nightly/kernel", "--wait").exit_code == 3
        assert command(here, "runs", "run-1", "--watch").exit_code == 3
        assert command(here, "run", "nightly/kernel").exit_code == 0


def test_an_order_is_asked_for_until_it_has_ended_even_where_an_answer_fails(capsys):
    answers = [told(OPEN), TransientError("no answer"), told(an_order(PASSED, FAILED))]
    slept, asked = [], []

    def ask(id_):
        asked.append(id_)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    last = until_ended(told(OPEN, an_order(PASSED, id_="run-0")), ask, slept.append)
    assert [(entry["id"], entry["outcome"]) for entry in last["runs"]] == [("run-1", "failed"), ("run-0", "passed")]
    assert (asked, slept) == (["run-1"] * 3, [5.0] * 3)
    assert capsys.readouterr().err.splitlines() == [
        "run-1: 1 passed, 1 runs",
        "run-0: 1 of 1 passed",
        "no answer; asked again in 5 s",
    ], "each change once"


def test_where_an_order_is_not_there_any_more_waiting_ends():
    with pytest.raises(ConfigError):
        until_ended(told(OPEN), lambda _: (_ for _ in ()).throw(ConfigError("id (run-1): there is no such run")), lambda _: None)


def test_who_stops_waiting_is_told_that_the_builds_go_on_and_how_to_look(capsys):
    def interrupted(_seconds):
        raise KeyboardInterrupt

    with pytest.raises(typer.Exit) as left:
        show_end(Request(), told(OPEN), interrupted, ranking=False)
    assert left.value.exit_code == 130
    assert capsys.readouterr().err.splitlines()[-1] == "the builds go on; how far they are: autoscaler runs run-1"


def test_an_order_is_cancelled_by_its_id():
    with answering(told(OPEN, action="cancel-run")) as here:
        done = command(here, "runs", "cancel", "run-1", "--reason", "enough")
        [event] = here.asked
    assert done.exit_code == 0
    assert "run-1: nightly/kernel" in done.stdout
    assert {name: event[name] for name in ("action", "id", "reason", "dry_run")} == {
        "action": "cancel-run",
        "id": "run-1",
        "reason": "enough",
        "dry_run": False,
    }


def test_help_names_the_exit_codes_and_how_to_cancel():
    for words in (["run", "--help"], ["runs", "--help"]):
        said = " ".join(autoscaler(*words).stdout.split())
        assert "3 at least one failed" in said
    assert "autoscaler runs cancel ID" in said
    assert "show" not in said.split("Options")[0], "the command that nobody names"


def test_ids_and_the_command_to_cancel_are_completed():
    with answering(told(OPEN, an_order(PASSED, id_="other"), action="runs")) as here:
        where = {"AUTOSCALER_LOCAL": here.server.url}

        def completed(line):
            words = {"_AUTOSCALER_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
            return answered(here, lambda: CliRunner().invoke(app, [], env=words | where, prog_name="autoscaler")).stdout.split()

        assert completed("autoscaler runs r") == ["run-1"]
        assert completed("autoscaler runs cancel ") == ["run-1", "other"]
        assert "--watch" in completed("autoscaler runs --w")
        here.answers[:] = [refused("no")]
        assert completed("autoscaler runs r") == []


# A file of orders.


FILE = """
- job: nightly/kernel
  parameters: {K: V}
  on: linux
  vary: kind
  runs: 3
- job: unit
  reason: its own
"""


def ordered(here, tmp_path, text, *options):
    (tmp_path / "orders.yaml").write_text(text, encoding="utf-8")
    file = str(tmp_path / "orders.yaml")
    return answered(here, lambda: autoscaler("run", "--file", file, "--local", here.server.url, *options))


def test_the_orders_of_a_file_are_tried_first_and_then_sent_each(tmp_path):
    with answering(told(an_order(a_part(), id_="run-1")), told(an_order(a_part(), id_="run-2"))) as here:
        done = ordered(here, tmp_path, FILE, "--reason", "all of them", "--json")
        asked = here.asked
    assert [(event["job"], event["dry_run"]) for event in asked] == [
        (job, dry) for dry in (True, False) for job in ("nightly/kernel", "unit")
    ]
    assert asked[2] == asked[0] | {"dry_run": False}
    assert {name: asked[0][name] for name in ("parameters", "on", "vary", "runs", "reason")} == {
        "parameters": {"K": "V"},
        "on": "linux",
        "vary": "kind",
        "runs": 3,
        "reason": "all of them",
    }
    assert asked[1]["reason"] == "its own"
    assert len({event["request_id"] for event in asked}) == 2
    assert len(json.loads(done.stdout)["runs"]) == 2


def test_a_dry_run_of_a_file_starts_nothing(tmp_path):
    with answering(told(an_order(a_part()), dry_run=True)) as here:
        assert ordered(here, tmp_path, FILE, "--dry-run").returncode == 0
        assert [event["dry_run"] for event in here.asked] == [True, True]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("job: a", ":1:1: must be a list of orders, such as [{job: nightly}]"),
        ("[]", ":1:1: must be a list of orders, such as [{job: nightly}]"),
        ("- nightly", ":1:3: order 1: must be keys and values, such as {job: nightly}"),
        ("- {on: linux}", ":1:3: order 1: job: missing"),
        ("- {job: a}\n- {job: b, vary: pol}", ":2:18: order 2: vary ('pol'): must be "),
        ("- {job: a, parameter: {K: V}}", ":1:12: order 1: parameter: unknown key, did you mean parameters?"),
        ("- {job: a, parameters: {K: 1}}", ":1:28: order 1: parameters.K (1): must be text, write it in quotes: '1'"),
        ("- {job: a, runs: 0}", ":1:18: order 1: runs (0): must be 1 or more"),
        ("- {job: a, dry_run: true}", ":1:12: order 1: dry_run: unknown key"),
        ("- {job: a, job: b}", ":1:12: job is written twice"),
        ("- {job: a", ": is not YAML"),
    ],
)
def test_a_wrong_file_says_where_and_asks_nobody(tmp_path, text, line):
    with answering(told()) as here:
        done = ordered(here, tmp_path, text)
        assert here.asked == []
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert line in done.stderr
    assert done.stderr.startswith(str(tmp_path / "orders.yaml"))


def test_where_one_order_of_a_file_is_refused_none_is_started(tmp_path):
    with answering(told(OPEN), refused("on (linux): no pool serves it")) as here:
        done = ordered(here, tmp_path, FILE)
        assert [event["dry_run"] for event in here.asked] == [True, True]
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"{tmp_path / 'orders.yaml'}:7:3: order 2: on (linux): no pool serves it\n"


def test_where_one_fails_after_all_those_before_it_are_named(tmp_path):
    with answering(told(OPEN), told(OPEN), told(OPEN), TransientError("no answer")) as here:
        done = ordered(here, tmp_path, FILE)
    assert done.returncode == 1
    assert done.stderr == "order 2 of 2 (unit): no answer; those before it were ordered: run-1\n"


def test_of_several_orders_the_worst_one_makes_the_exit_code(tmp_path):
    with answering(told(an_order(PASSED)), told(an_order(PASSED)), told(an_order(PASSED)), told(an_order(FAILED))) as here:
        assert ordered(here, tmp_path, FILE, "--wait").returncode == 3
