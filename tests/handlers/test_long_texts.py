"""However long a text from outside is, what is said about it is one clear line."""

from pathlib import Path

import pytest

from autoscaler import bootstrap
from autoscaler.config import load_settings
from autoscaler.config.problems import read_thresholds
from autoscaler.control.outcomes import Outcome, Result, step_json
from autoscaler.domain.facts.fleet import NodeSpec
from autoscaler.domain.facts.plan import CreateBeacon, Held
from autoscaler.domain.facts.reasons import Reason
from autoscaler.errors import ConfigError
from autoscaler_workbench.cli.remote import Deployed
from support.cli import autoscaler
from support.deployed import deployed_in_memory
from support.worlds import environment

LONG = "x" * 100_000


@pytest.mark.parametrize(
    ("name", "rule"),
    [("LOOK_EVERY_SECONDS", "must be 5, 10, 15, 20, 30 or 60"), ("FLEET_NAME", "the stack's FleetName must be the fleet file's name")],
)
def test_a_long_variable_is_named_with_its_rule_in_one_short_line(name, rule):
    with environment(**{name: LONG}), pytest.raises(ConfigError) as refused, deployed_in_memory() as here:
        here.call("scale_up", {})
    assert_short(refused.value, name, "100,000 characters", rule)


def test_a_long_address_of_jenkins_is_held_in_one_short_line():
    with environment(JENKINS_URL_MAIN=LONG), deployed_in_memory() as here:
        [held] = here.call("scale_up", {})["held"]
    assert held["reason"] == "incomplete-snapshot"
    assert_short(held["detail"], "JENKINS_URL_MAIN", "100,000 characters", "must be an http or https URL")


def test_a_long_path_of_the_fleet_file_likewise():
    with pytest.raises(ConfigError) as refused:
        load_settings(Path(LONG))
    assert_short(refused.value, "100,000 characters", "cannot be read")


def test_long_roles_and_thresholds_and_access_likewise():
    with deployed_in_memory():
        bootstrap.trust.cache_clear()
        with environment(AGENT_ROLES=f"A{LONG}"), pytest.raises(ConfigError) as refused:
            bootstrap.trust()
        assert_short(refused.value, "must be ROLE-ID=INSTANCE-PROFILE-ARN")
        bootstrap.trust.cache_clear()
        with environment(AGENT_SESSION_MANAGER=LONG), pytest.raises(ConfigError) as refused:
            bootstrap.access()
        assert_short(refused.value, "AGENT_SESSION_MANAGER", "100,000 characters", "must be yes or no")
        bootstrap.runtime.cache_clear()
        with environment(METRICS_LEVEL=LONG), pytest.raises(ConfigError) as refused:
            bootstrap.runtime()
        assert_short(refused.value, "METRICS_LEVEL", "100,000 characters", "must be essential or full")
    with pytest.raises(ConfigError) as refused:
        read_thresholds({"JOB_WAIT_ALARM_SECONDS": LONG})
    assert_short(refused.value, "JOB_WAIT_ALARM_SECONDS", "100,000 characters", "must be a number, 0 or more")


def test_a_variable_with_line_breaks_is_one_line():
    with pytest.raises(ConfigError) as refused:
        read_thresholds({"JOB_WAIT_ALARM_SECONDS": "1\n2\x1b[31m"})
    assert r"(1\n2\x1b[31m)" in str(refused.value)


def test_the_address_of_a_demo_that_is_long_is_named_in_one_short_line():
    with pytest.raises(ConfigError) as refused:
        Deployed(stack="", local=LONG).call("operate", {})
    assert_short(refused.value, "is not an address such as http://127.0.0.1:8000")


def test_the_command_line_says_a_long_variable_in_one_short_line(tmp_path):
    done = autoscaler("init", f"ftp://{'x' * 60_000}/", "--out", tmp_path / "f.yaml")
    assert (done.returncode, done.stderr.count("\n"), len(done.stderr) < 600) == (1, 1, True)
    assert "must be an http or https URL" in done.stderr


def assert_short(error, *said):
    text = str(error)
    assert (len(text) < 600, "\n" in text) == (True, False), text[:300]
    assert all(words in text for words in said), text


@pytest.mark.parametrize("detail", [f"{LONG} waits for it", "EC2 says:\nno\x07capacity"])
def test_the_text_of_what_is_held_is_one_line_that_can_be_read(detail):
    held = Held(pool="cpu", reason=Reason.MAX_AGENTS, detail=detail)
    assert len(held.detail) < 600
    assert held.detail.isprintable()


def test_an_ordinary_text_of_what_is_held_stays_as_it_is():
    text = "one more would make 21 agents in pool größe, the limit is 20"
    assert Held(pool="cpu", reason=Reason.MAX_AGENTS, detail=text).detail == text


def test_the_text_of_a_step_in_answers_and_logs_is_short_too():
    step = CreateBeacon(
        controller="main",
        spec=NodeSpec(name="b", labels=(), executors=1, exclusive=True, remote_dir="", description=""),
        reason=Reason.SURPLUS,
        detail=LONG,
    )
    facts = step_json(Result(step=step, outcome=Outcome.FAILED, detail=LONG))
    assert len(facts["detail"]) < 600
    assert len(facts["result"]) < 2100
