"""What ``simulate``, ``tune`` and ``compare`` write of a fleet file and read again is the same fleet, with every key of it."""

import json

import pytest

from autoscaler.config import check, load_settings, prices
from autoscaler.config.yaml_file import parse
from autoscaler_workbench.cli.assignments import load_with
from autoscaler_workbench.experiment.tune import _everywhere
from seams.key_scenes import SCENES, changed
from seams.keys import CHANGES, GONE
from support.cli import autoscaler
from support.every_key import TEXT

OFFICE = """\
fleet: f
limits: {max_agents: 9, max_launches_per_hour: 9, max_usd_per_hour: 10, max_usd_per_month: 3000}
controllers: {main: {url: "https://jenkins.example.org/"}}
defaults: {idle_seconds: 60}
pools:
  cpu:
    executors: 4
    launch_template: x
    instance_types: [c5.large]
    max_agents: 5
    schedules: [{days: [thu], from: "00:00", to: "00:05", time_zone: UTC, min_agents: 1, warm_pool: off}]
"""
TRACE = """\
queued_at,duration_s,label,job,run
60,60,cpu,a,1
"""


def written(tmp_path, text):
    path = tmp_path / "fleet.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_with_every_key_is_the_same_fleet_after_it_was_written_and_read_again(tmp_path):
    path = written(tmp_path, TEXT)
    assert load_with(path, []).domain() == load_settings(path).domain()
    assert load_with(path, []) == load_settings(path)


def test_simulate_reads_a_file_with_schedules_and_changes_a_setting_of_it(tmp_path):
    [schedule] = load_with(written(tmp_path, OFFICE), ["cpu.max_idle_seconds=300"]).domain().pools["cpu"].schedules
    assert (schedule.min_agents, schedule.warm_pool, schedule.to_minute) == (1, False, 5)


@pytest.mark.parametrize("key", CHANGES)
def test_each_key_survives_being_written_and_read_again(key, monkeypatch):
    carried = prices.carried_prices()
    monkeypatch.setattr(prices, "carried_prices", lambda _region=prices.HOME: {k: p | {"rhel": 9.0} for k, p in carried.items()})
    change = CHANGES[key]
    settings = check(changed(SCENES[change.scene].fleet_file(), {change.path: change.value, **change.besides}, GONE), key)
    raw = settings.model_dump(mode="json", exclude_unset=True)
    assert check(raw, key) == settings
    assert check(json.loads(settings.model_dump_json(exclude_unset=True)), key).domain() == settings.domain()


@pytest.mark.long
@pytest.mark.parametrize(
    "command",
    [
        ("compare", "--policy", "autoscaler", "--no-sweep"),
        ("tune",),
    ],
    ids=lambda command: command[0],
)
def test_a_file_with_schedules_is_played(tmp_path, command):
    fleet, trace = written(tmp_path, OFFICE), tmp_path / "trace.csv"
    trace.write_text(TRACE, encoding="utf-8")
    briefly = ("--hours", 0.1, "--seeds", 1, "--jobs", 1, "--out", tmp_path / "out")
    done = autoscaler(*command, *briefly, "--trace", trace, "--fleet", fleet)
    assert done.returncode == 0, done.stderr


def test_tune_tries_no_setting_that_a_schedule_or_a_limit_forbids():
    raw = parse(OFFICE.replace("min_agents: 1, warm", "max_agents: 1, warm"))
    assert _everywhere(raw, "min_agents", 2) == raw
    assert _everywhere(raw, "min_agents", 1)["pools"]["cpu"]["min_agents"] == 1
    assert _everywhere({**raw, "limits": raw["limits"] | {"max_usd_per_hour": 0.1}}, "min_agents", 2)["pools"] == raw["pools"]
    hosts = {"pools": {**raw["pools"], "lab": {"executors": 1}}, "hosts": {"box": {"pool": "lab", "role_id": "AROAEXAMPLEID00000001"}}}
    assert _everywhere(raw | hosts, "warm_executors", 1)["pools"]["lab"] == {"executors": 1}
