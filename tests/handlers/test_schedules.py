"""What plan, status, why and set say of a pool's schedules: those that hold, and those that are to begin."""

import time

import pytest

from autoscaler.errors import ConfigError
from autoscaler_workbench.cli import answers
from autoscaler_workbench.ui.view import pool_rows
from support.deployed import deployed_in_memory, event

# The day begins on Friday, 15 January 2027, at 08:00 UTC: 09:00 in Berlin, 03:00 in New York.
FLEET = """
fleet: f
limits: {max_agents: 10, max_launches_per_hour: 10, max_usd_per_hour: 100, max_usd_per_month: 10000}
controllers:
  main: {url: https://jenkins.example.org/}
pools:
  cpu:
    executors: 2
    launch_template: cpu
    instance_types: [c5.xlarge]
    max_agents: 6
    schedules:
      - {days: [mon, tue, wed, thu, fri], from: 08:00, to: 18:00, time_zone: Europe/Berlin, min_agents: 1, warm_executors: 4}
      - {days: [fri], from: 08:30, to: 12:00, time_zone: Europe/Berlin, min_agents: 2}
      - {days: [sat, sun], from: 00:00, to: 24:00, time_zone: Europe/Berlin, max_agents: 2, warm_pool: {max_agents: 3}}
  gpu:
    executors: 1
    launch_template: gpu
    instance_types: [c5.xlarge]
    max_agents: 4
    schedules: [{from: 00:00, to: 24:00, time_zone: UTC, warm_pool: off}]
"""
WORDS = [
    "cpu: warm_executors 4 by schedule until 18:00 Europe/Berlin (12:00 EST), for another 9 h",
    "cpu: min_agents 2 by schedule until 12:00 Europe/Berlin (06:00 EST), for another 3 h",
    "cpu: max_agents 2, warm_pool of 0 to 3 stopped agents by schedule from Sat 16 Jan 00:00 Europe/Berlin (18:00 EST), in 15 h",
    "gpu: warm_pool off by schedule at all hours",
]


@pytest.fixture
def here(tmp_path):
    (tmp_path / "fleet.yaml").write_text(FLEET, encoding="utf-8")
    with deployed_in_memory(tmp_path / "fleet.yaml") as stood:
        yield stood


@pytest.fixture
def in_new_york(monkeypatch):
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def asked(here, action, **facts):
    return here.call("operate", event(action) | facts)


@pytest.mark.usefixtures("in_new_york")
@pytest.mark.parametrize(("action", "show"), [("plan", answers.print_plan), ("status", answers.print_status)])
def test_plan_and_status_say_what_holds_and_what_begins_next_in_its_own_time_zone_and_the_readers(here, action, show, capsys):
    show(asked(here, action))
    assert [line for line in capsys.readouterr().out.splitlines() if "by schedule " in line] == WORDS


def test_a_reader_whose_clocks_show_the_same_is_told_the_time_once(here, monkeypatch, capsys):
    monkeypatch.setenv("TZ", "Europe/Paris")
    time.tzset()
    answers.print_plan(asked(here, "plan"))
    monkeypatch.undo()
    time.tzset()
    assert "cpu: min_agents 2 by schedule until 12:00 Europe/Berlin, for another 3 h" in capsys.readouterr().out.splitlines()


@pytest.mark.usefixtures("in_new_york")
def test_the_live_page_says_it_of_each_pool_that_it_shows(here):
    here.world.controllers["main"].submit("job", "cpu", 600.0)
    here.world.move_to(here.world.timeline.now + 60)
    [row] = pool_rows(asked(here, "overview"))
    assert [f"cpu: {line}".rpartition(",")[0] for line in row.schedules] == [words.rpartition(",")[0] for words in WORDS[:3]]


def test_the_plan_launches_for_the_schedule_and_says_so(here):
    [launch] = [step for step in asked(here, "plan")["plan"]["steps"] if step["step"] == "launch"]
    assert (launch["count"], launch["detail"]) == (2, "0 of 2 agents, by its schedule until 12:00 Europe/Berlin")


def test_why_says_how_long_before_a_schedule_its_agents_are_launched(here):
    facts = asked(here, "why", subject="cpu")["facts"]
    assert "min_agents 2 by schedule until 12:00 Europe/Berlin (11:00 UTC), for another 3 h" in facts
    assert "agents for a schedule are launched or started 4 min before it begins" in facts
    assert "agents for a schedule" not in " ".join(asked(here, "why", subject="gpu")["facts"])


def test_an_order_is_measured_against_what_holds_now_and_says_what_it_changes(here, capsys):
    answer = asked(here, "set", pool="cpu", min_agents=3, max_agents=None, warm_executors=None)
    answers.print_order(answer)
    assert "cpu: at least 3 (fleet file: 2), at most 6, warm executors: 4; until" in capsys.readouterr().out
    here.world.move_to(here.world.timeline.now + 86_400)
    with pytest.raises(ConfigError, match=r"min_agents \(3\): must be at most max_agents \(2\)"):
        asked(here, "set", pool="cpu", min_agents=3, max_agents=None, warm_executors=None)
