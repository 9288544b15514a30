"""The command line of a person who may only ask: AWS denies them `operate`, and the stack has a function that answers."""

import pytest
from typer.testing import CliRunner

from autoscaler.errors import AutoscalerError
from autoscaler_workbench.cli import request
from autoscaler_workbench.cli.main import app
from autoscaler_workbench.cli.remote import Deployed
from autoscaler_workbench.cli.ui import DeployedSource
from support.asked import answered, asked_of, deployed_stack
from support.deployed import deployed_in_memory

FUNCTIONS = ("operate", "scale_up", "ask")
NOTE = "answered by the stack's function Ask: you may ask, and order nothing (operate is denied to you)\n"
NO_ORDER = "is an order, and you may only ask: orders need the stack's OperatorPolicy"


@pytest.fixture
def here():
    with deployed_in_memory() as stood:
        stood.call("scale_up", {"pool": "utility", "count": 1, "keep_minutes": 600})
        stood.pass_minutes(6)
        yield stood


@pytest.fixture
def reader(here):
    """A stack whose ReaderPolicy the caller has."""
    with deployed_stack(here, *FUNCTIONS, denied=("operate", "scale_up")) as stack:
        yield stack


@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["agents", "--wide"],
        ["queue"],
        ["plan"],
        ["why", "utility"],
        ["events", "--hours", "1"],
        ["reservations"],
        ["jobs"],
        ["needs"],
        ["costs"],
        ["runs"],
    ],
    ids=" ".join,
)
def test_a_question_is_answered_and_one_line_says_by_whom(here, reader, words):
    done = asked_of(here, reader, *words, "--json")
    assert (done.exit_code, done.stderr) == (0, NOTE), done.output
    assert done.stdout.startswith("{")
    assert here.server.functions.asked == ["operate", "ask"]


@pytest.mark.parametrize(
    "words",
    [
        ["hold", "--fleet"],
        ["hold", "--fleet", "--dry-run"],
        ["resume", "--fleet"],
        ["set", "utility", "--max-agents", "1"],
        ["drain", "--fleet"],
        ["reserve", "utility"],
        ["release", "utility-1"],
        ["end", "i-0ab1c2d3e4f5a6b7c", "--yes"],
        ["purge", "utility"],
        ["run", "folder/job"],
        ["runs", "cancel", "run-1"],
    ],
    ids=" ".join,
)
def test_an_order_is_refused_in_one_line_that_says_why(here, reader, words):
    before = here.state.read()
    done = asked_of(here, reader, *words)
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", "")
    action = "cancel-run" if "cancel" in words else words[0]
    assert str(done.exception) == f"event refused: action ({action}): {NO_ORDER}"
    assert here.state.read() == before


def test_a_launch_is_refused_in_one_line_that_says_why(here, reader):
    done = asked_of(here, reader, "launch", "utility")
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", "")
    assert str(done.exception) == (
        "scale_up is denied to you (AccessDeniedException): orders need the stack's OperatorPolicy; with ReaderPolicy you may only ask"
    )


def test_the_doctor_examines_what_can_be_read_and_says_what_was_not_tried(here, reader):
    done = asked_of(here, reader, "doctor", "--json")
    assert done.stderr == NOTE
    assert '"answers, Overall/Read"' in done.stdout
    assert "Agent/Create" not in done.stdout
    assert '"about": "scale_up", "what": "answers", "fine": null, "detail": "not tried: scale_up is denied to you' in done.stdout


def test_who_watches_is_denied_once_and_told_once(here, reader, monkeypatch):
    looks = iter(range(3))

    def three_looks(_seconds):
        if next(looks, None) is None:
            raise KeyboardInterrupt

    monkeypatch.setattr(request.time, "sleep", three_looks)
    done = asked_of(here, reader, "status", "--watch")
    assert here.server.functions.asked == ["operate", "ask", "ask", "ask", "ask"]
    assert done.stderr.count(NOTE) == 1


def test_the_live_page_shows_everything_and_orders_nothing(here, reader):
    (_, stack, *_), variables = reader
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        source = DeployedSource(Deployed(stack=stack, region="us-west-2"), lambda: None, lambda: here.world.timeline.now)
        shown = answered(here, source.overview)
        assert (shown["status"]["pools"] != [], "by" in shown["costs"]) == (True, True)
        for verb in ("hold", "launch"):
            with pytest.raises(AutoscalerError, match="you may only ask"):
                answered(here, lambda verb=verb: source.order(verb, {"pool": "utility"}))


def test_completion_completes_and_says_nothing(here, reader):
    where, variables = reader
    words = f"autoscaler hold {' '.join(where)} --pool util"
    asked = variables | {"_AUTOSCALER_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    done = answered(here, lambda: CliRunner().invoke(app, [], prog_name="autoscaler", env=asked))
    assert (done.stdout.strip(), done.stderr) == ("utility", "")


def test_who_may_order_asks_operate_alone(here):
    with deployed_stack(here, *FUNCTIONS) as stack:
        done = asked_of(here, stack, "status", "--json")
        assert (done.exit_code, done.stderr, here.server.functions.asked) == (0, "", ["operate"])


def test_a_stack_of_an_older_version_has_no_such_function_and_the_line_of_aws_stays(here):
    with deployed_stack(here, *FUNCTIONS, denied=("operate", "scale_up"), without=("ask",)) as stack:
        for words, function in ((["status"], "operate"), (["hold", "--fleet"], "operate"), (["launch", "utility"], "scale_up")):
            done = asked_of(here, stack, *words)
            assert str(done.exception).startswith(f"{function} could not be invoked: An error occurred (AccessDeniedException)"), done
    with deployed_stack(here, *FUNCTIONS, denied=FUNCTIONS) as stack:
        done = asked_of(here, stack, "status")
        assert str(done.exception).startswith("operate could not be invoked: An error occurred (AccessDeniedException)")
