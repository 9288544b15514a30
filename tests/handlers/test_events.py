"""Every file of ``events/`` through the real handlers, and what they refuse."""

import json

import pytest

from autoscaler import bootstrap
from autoscaler.errors import ConfigError, EventRefusedError
from benchmarks.cold import event_of
from packaging_root import ROOT
from support.deployed import NOON, deployed_in_memory, event
from support.samples import SAMPLES, function_of, samples_of


@pytest.fixture
def here():
    with deployed_in_memory() as stood:
        yield stood


def steps(plan):
    return [(step["step"], step.get("pool"), step["reason"], step["outcome"]) for step in plan["steps"]]


FUNCTION_OF = {sample: function_of(sample) for function in ("scale_up", "scale_down") for sample in samples_of(function)} | {
    "now": "scale_down"
}


def test_every_sample_event_is_tested_here():
    elsewhere = {
        "hold",
        "hold_label",
        "freeze",
        "resume",
        "resume_breaker",
        "reserve",
        "release",
        "reservations",
        "agents",
        "queue",
        "names",
        "overview",
        "set",
        "set_team",
        "drain",
        "drain_fleet",
        "end",
        "purge",
        "plan",
        "status",
        "why",
        "events",
        "budget",
        "resume_budget",
        "doctor",
        "jobs",
        "needs",
        "eta",
        "costs",
        "costs_days",
        "run",
        "run_gang",
        "runs",
        "cancel_run",
        "register_agent",
        "register_agent_http_api",
        "register_agent_host",
        "register_agent_controller",
        "spot_interruption",
        "instance_terminated",
        "instance_stopped",
        "webhook",
    }  # in files of their own
    assert {*SAMPLES} == FUNCTION_OF.keys() | elsewhere


def test_every_sample_event_is_in_the_folder_of_a_function():
    assert {path.parent.name for path in (ROOT / "events").rglob("*.json")} == {
        path.name for path in (ROOT / "functions").iterdir() if path.is_dir()
    }


@pytest.mark.parametrize("name", sorted(FUNCTION_OF))
def test_every_sample_event_is_understood_and_answers_with_a_plan(here, name):
    plan = here.call(FUNCTION_OF[name], event(name))
    assert plan.keys() >= {"pass_id", "taken_at", "dry_run", "steps", "held"}
    assert plan["dry_run"] is bool(event(name).get("dry_run", False))


@pytest.mark.parametrize("function", ["publish_metrics", "scale_up", "scale_down"])
def test_a_stale_tick_does_nothing(here, function):
    here.world.move_to(NOON + 91)
    assert here.call(function, event("tick"))["skipped"] == "stale-tick"
    assert here.world.controllers["main"].nodes == {}


def test_the_first_pass_puts_the_beacon_and_the_minimum(here):
    *beacons, launch = steps(here.call("scale_up", event("tick")))
    assert launch == ("launch", "utility", "min-agents", "done")
    assert set(beacons) == {("create-beacon", None, "beacon-missing", "done")}
    names = list(here.world.controllers["main"].nodes)
    assert len(names) == len(beacons)
    assert {"autoscaler-beacon-mxnet-ci", "autoscaler-beacon-mxnet-ci~utility", "autoscaler-beacon-mxnet-ci~~"} < set(names)


def test_a_dry_run_tells_and_does_nothing(here):
    plan = here.call("scale_up", event("scale_up_dry_run"))
    assert steps(plan) == [("launch", "mxnetlinux-gpu", "manual", "planned")]
    assert here.world.ec2.instances == {}
    assert bootstrap.runtime().ports.state.read().intents == ()


def test_three_more_twice_means_six_but_the_same_request_only_three(here):
    for _ in range(2):
        here.call("scale_up", event("scale_up"))
    assert len(here.world.ec2.instances) == 6
    for _ in range(2):
        plan = here.call("scale_up", event("scale_up_once"))
    assert len(here.world.ec2.instances) == 9
    assert [held["reason"] for held in plan["held"]] == ["already-done"]


def test_a_person_drains_what_runs_and_the_schedule_gives_it_up(here):
    here.call("scale_up", event("scale_up") | {"keep_minutes": 600})
    here.pass_minutes(8)
    plan = here.call("scale_down", event("scale_down_count"))
    assert [step[0] for step in steps(plan)] == ["cordon", "cordon"]
    here.pass_minutes(3)
    gpu = [i for i in here.world.alive() if i.tags["autoscaler:pool"] == "mxnetlinux-gpu"]
    assert len(gpu) == 1


@pytest.mark.parametrize(
    ("function", "asked", "line"),
    [
        ("scale_up", {"pool": "gpu", "count": 1}, "pool (gpu): is not one of the pools (mxnetlinux-cpu, "),
        ("scale_up", {"pool": "utility"}, "count: missing"),
        ("scale_up", {"pool": "utility", "count": 0}, "count (0): must be 1 or more"),
        ("scale_up", {"pool": "utility", "count": "3"}, "count ('3'): must be a whole number"),
        ("scale_up", {"pool": "utility", "count": 1, "minutes": 3}, "minutes: unknown key"),
        ("scale_up", {"pool": "utility", "count": 1, "controller": "x"}, "controller (x): pool utility serves main"),
        ("scale_up", {"pool": "utility", "count": 1, "request_id": "a b"}, "request_id ('a b'): "),
        ("scale_up", [1], "event refused"),
        ("scale_up", "now", "event refused"),
        ("scale_down", {"nodes": []}, "nodes ([]): must have 1 or more entries"),
        ("scale_down", {"nodes": "a"}, "nodes ('a'): must be a list, such as [a, b]"),
        ("scale_down", {"pool": "utility", "count": 1, "keep_minutes": 1}, "keep_minutes: unknown key"),
        ("publish_metrics", {"pool": "utility"}, "pool: unknown key"),
        ("scale_up", {"detail-type": "Scheduled Event"}, "time: missing"),
        ("scale_up", {"dry_run": "yes"}, "dry_run ('yes'): must be true or false"),
    ],
    ids=str,
)
def test_a_malformed_event_is_refused_in_one_line_and_does_nothing(here, function, asked, line):
    with pytest.raises(ConfigError) as refused:
        here.call(function, asked)
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)
    assert here.server.requests == []


@pytest.mark.parametrize(
    ("function", "asked", "line"),
    [
        ("scale_up", {"pool": "gpu", "count": 1}, "event refused: pool (gpu): is not one of the pools"),
        ("scale_up", {"action": "docter"}, "event refused: action ('docter')"),
        ("scale_down", {"nodes": []}, "event refused: nodes ([]): must have 1 or more entries"),
        ("publish_metrics", {"pool": "utility"}, "event refused: pool: unknown key"),
        ("operate", {"action": "hold", "pool": "gpu"}, "event refused: pool (gpu): is not one of the pools"),
        ("operate", {"action": "stats"}, "event refused: action ('stats'): must be hold"),
        ("operate", {"action": "cancel-run", "id": "run-0"}, "event refused: id (run-0): there is no such run"),
        ("operate", None, "event refused: "),
    ],
    ids=str,
)
def test_a_persons_typo_is_answered_and_is_no_error_that_rings_an_alarm(here, function, asked, line):
    answer = here.invoke(function, asked)
    assert list(answer) == ["refused"]
    assert answer["refused"].startswith(line), answer
    assert here.logged[-1] == ("event_refused", {"error": answer["refused"]})


@pytest.mark.parametrize("asked", [{"detail-type": "Scheduled Event"}, {"Records": []}, {"Records": [{"body": "{}"}]}], ids=str)
@pytest.mark.parametrize("function", ["scale_up", "operate"])
def test_what_aws_sends_and_we_cannot_read_is_an_error(here, function, asked):
    with pytest.raises(EventRefusedError):
        here.invoke(function, asked)


def test_a_setting_that_is_wrong_is_an_error_whoever_asks(here, monkeypatch):
    monkeypatch.setenv("METRICS_LEVEL", "everything")
    here.start_cold()
    with pytest.raises(ConfigError, match="METRICS_LEVEL"):
        here.invoke("operate", {"action": "status"})


def test_a_missing_variable_is_named(here, monkeypatch):
    bootstrap.reset()
    monkeypatch.delenv("STATE_TABLE")
    with pytest.raises(ConfigError, match="environment variable STATE_TABLE: missing"):
        here.call("scale_up", event("tick"))


def test_half_a_credential_is_refused(here, monkeypatch):
    bootstrap.reset()
    bootstrap.use_time(lambda: here.world.timeline.now, here.world.timeline.sleep)
    monkeypatch.setenv("JENKINS_USER_MAIN", "somebody")
    plan = here.call("scale_up", event("tick"))
    assert "JENKINS_USER_MAIN and JENKINS_TOKEN_MAIN: set both or neither" in plan["held"][0]["detail"]


def test_a_url_that_is_none_is_named(here, monkeypatch):
    monkeypatch.setenv("JENKINS_URL_MAIN", "jenkins.example.org")
    plan = here.call("scale_up", event("tick"))
    assert "environment variable JENKINS_URL_MAIN (jenkins.example.org) must be an http or https URL" in plan["held"][0]["detail"]


def test_a_url_from_the_environment_with_credentials_is_refused_and_they_are_not_shown(here, monkeypatch):
    monkeypatch.setenv("JENKINS_URL_MAIN", "https://anna:hunter2@jenkins.example.org/")
    plan = here.call("scale_up", event("tick"))
    assert "environment variable JENKINS_URL_MAIN (https://***@jenkins.example.org/) must not hold credentials" in plan["held"][0]["detail"]
    assert "hunter2" not in json.dumps(plan)


def test_a_secret_that_is_not_there_is_named_and_nothing_is_done(here):
    del here.server.secrets["jenkins/main"]
    plan = here.call("scale_up", event("tick"))
    assert "secret jenkins/main: ResourceNotFoundException" in plan["held"][0]["detail"]
    assert (plan["steps"], here.world.controllers["main"].nodes) == ([], {})


def test_a_tick_that_meets_the_lease_says_so_and_a_person_is_told(here):
    ports = bootstrap.runtime().ports
    ports.lease.acquire("somebody", now=NOON, until=NOON + 100)
    assert here.call("scale_up", event("tick")) == {"skipped": "lease-held"}
    assert here.world.timeline.now == NOON + 25
    with pytest.raises(Exception, match="another pass held the lease for 45 s"):
        here.call("scale_up", event("scale_up"))


@pytest.mark.parametrize("name", sorted(path.parent.name for path in (ROOT / "functions").glob("*/app.py")))
def test_the_event_by_which_a_function_is_benchmarked_is_one_it_takes(here, name):
    assert here.call(name, json.loads(event_of(name)))
