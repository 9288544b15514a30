"""Orders say what they cost and ask before a dear one, suggest the name that was meant, and files of events/ are sent to their function."""

import json

import pytest

from autoscaler.errors import ConfigError
from packaging_root import ROOT
from support.asked import command, served, told
from support.scene import Scene, scene

FLEET = (
    "pools: {gpu: {$pool, executors: 1, max_agents: 9, usd_per_hour: 3}, utility: {$pool, executors: 4, max_agents: 4, usd_per_hour: 0.1}}"
)


@pytest.fixture
def here():
    with scene(FLEET) as stood:
        stood.minutes(2)
        with served(stood.here, "operate", "scale_up", "scale_down"):
            yield stood


def ran(here: Scene, *words: str, given: str | None = None):
    return command(here.here, *words, given=given)


def error_of(done) -> str:
    return str(done.exception) if isinstance(done.exception, ConfigError) else done.stderr


def test_a_dear_launch_says_what_it_costs_and_is_carried_out_once_that_is_confirmed(here):
    refused = ran(here, "launch", "gpu", "5", "--keep-minutes", "120", given="n\n")
    assert (refused.exit_code, here.machines()) == (1, [])
    assert "launch 5 of 5 agents of gpu: $15.05 an hour; $30.11 for 2 h. Go on?" in refused.stderr
    confirmed = ran(here, "launch", "gpu", "5", "--keep-minutes", "120", given="y\n")
    assert (confirmed.exit_code, len(here.machines("gpu"))) == (0, 5)
    assert "$15.05 an hour; $30.11 for 2 h" in confirmed.stdout


def test_a_cheap_launch_says_what_it_costs_and_a_script_is_not_asked(here):
    cheap = ran(here, "launch", "utility", "1")
    assert (cheap.exit_code, "$0.11 an hour; $0.11 for 1 h" in cheap.stdout) == (0, True)
    assert ran(here, "launch", "gpu", "5", "--yes").exit_code == 0
    assert len(here.machines("gpu")) == 5


def test_a_dry_run_asks_nobody_and_says_what_it_would_cost(here):
    would = ran(here, "launch", "gpu", "300", "--dry-run")
    assert "9 of 300 agents of gpu would be launched" in would.stdout
    assert "$27.10 an hour" in would.stdout


def test_a_higher_minimum_says_what_it_costs_and_asks(here):
    assert ran(here, "set", "gpu", "--min-agents", "6", given="n\n").exit_code == 1
    assert here.order("status")["numbers"] == []
    done = ran(here, "set", "gpu", "--min-agents", "6", "--yes")
    assert "; at least $18.07 an hour" in done.stdout


def test_a_reservation_that_launches_says_what_it_costs(here):
    done = ran(here, "reserve", "gpu", "--hours", "2", "--for", "alice")
    assert "$3.01 an hour; $6.02 for 2 h" in done.stdout


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("launch", "gpuu"), "gpu"),
        (("hold", "--pool", "utilty"), "utility"),
        (("hold", "--controller", "mian"), "main"),
        (("why", "utillity"), "utility"),
        (("reserve", "utilit"), "utility"),
        (("drain", "--pool", "gpus"), "gpu"),
    ],
)
def test_a_name_that_is_not_there_is_answered_with_the_closest_one(here, words, meant):
    done = ran(here, *words)
    assert done.exit_code == 1
    assert f"did you mean {meant}?" in error_of(done)


def test_a_node_that_is_not_there_is_answered_with_the_closest_one(here):
    here.submit("app", "gpu", 60)
    here.minutes(5)
    [node] = here.ready("gpu")
    assert f"did you mean {node.name}?" in error_of(ran(here, "drain", f"{node.name}x"))


def test_a_name_that_is_like_none_gets_no_suggestion(here):
    assert "did you mean" not in error_of(ran(here, "launch", "windows-arm64"))


def test_a_file_of_events_is_sent_to_the_function_of_its_folder(here, tmp_path):
    status = ran(here, "invoke", str(ROOT / "events" / "operate" / "status.json"))
    assert json.loads(status.stdout)["status"]["agents"] == 0
    plan = json.loads(ran(here, "invoke", str(ROOT / "events" / "scale_up" / "dry_run.json")).stdout)
    assert plan["dry_run"] is True
    file = tmp_path / "mine.json"
    file.write_text('{"action": "names"}')
    assert "give --function, one of scale_up, scale_down, operate" in error_of(ran(here, "invoke", str(file)))
    assert json.loads(ran(here, "invoke", str(file), "--function", "operate").stdout)["names"]["pools"] == ["gpu", "utility"]
    file.write_text("[]")
    assert "must be a JSON object" in error_of(ran(here, "invoke", str(file), "--function", "operate"))


def test_costs_of_yesterday_or_of_a_date_are_of_that_day_alone(here):
    here.order("set", pool="gpu", min_agents=1, max_agents=1, minutes=10_000, reason="r")
    here.minutes(30)
    today = told(here.here, "costs", "--since", "1d")["usd"]
    here.world.move_to(here.now + 86_400.0)
    here.minutes(30)
    yesterday, both = told(here.here, "costs", "--day", "yesterday"), told(here.here, "costs", "--since", "2d")["usd"]
    assert 0 < today <= yesterday["usd"] < both
    assert yesterday == told(here.here, "costs", "--day", "2027-01-15")
    assert yesterday["month"] == "2027-01-15"
    assert told(here.here, "costs", "--day", "2026-01-15")["entries"] == []
    assert ran(here, "costs", "--day", "tomorrow").exit_code == 1
    assert ran(here, "costs", "--day", "yesterday", "--since", "2d").exit_code == 2
