"""Teams in the deployed functions: a fleet file with limits of teams, and what status, plan, why, the live page and metrics say of them."""

import pytest

from autoscaler.errors import ConfigError
from autoscaler_workbench.cli import answers
from autoscaler_workbench.ui.trouble import overrides_in_force
from autoscaler_workbench.ui.view import meters
from support.deployed import deployed_in_memory, event
from support.ringing import ringing_in

FLEET = """
fleet: f
limits: {max_agents: 10, max_launches_per_hour: 20, max_usd_per_hour: 100, max_usd_per_month: 10000}
controllers:
  main: {url: https://jenkins.example.org/}
defaults: {boot_seconds: 60, volume_gib: 0, max_wait_seconds: 60}
pools:
  gpu: {executors: 1, launch_template: t, instance_types: [c5.xlarge], usd_per_hour: 4, max_agents: 6}
  cpu: {executors: 1, launch_template: t, instance_types: [c5.xlarge], usd_per_hour: 1, max_agents: 6, max_launches_per_hour: 2}
teams:
  graphics: {pools: [gpu], weight: 2, max_usd_per_hour: 8, max_usd_per_month: 500}
"""


@pytest.fixture
def here(tmp_path):
    (tmp_path / "fleet.yaml").write_text(FLEET, encoding="utf-8")
    with deployed_in_memory(tmp_path / "fleet.yaml") as stood:
        jenkins = stood.world.controllers["main"]
        for number in range(4):
            jenkins.submit(f"render-{number}", "gpu", 7200.0)
            jenkins.submit(f"page-{number}", "cpu", 7200.0)
        stood.pass_minutes(12)
        yield stood


def asked(here, action, **facts):
    return here.call("operate", event(action) | facts)


def test_each_limit_stops_whom_it_is_about_and_plan_and_why_say_whose_it_was(here, capsys):
    launched = [instance.tags["autoscaler:pool"] for instance in here.world.alive()]
    assert (launched.count("gpu"), launched.count("cpu")) == (2, 2)
    answers.print_plan(asked(here, "plan"))
    told = capsys.readouterr().out.splitlines()
    assert "max-usd-per-hour of team graphics\tgpu\tone more would make 12 dollars per hour in team graphics, the limit is 8" in told
    assert "max-launches-per-hour of pool cpu\tcpu\tone more would make 3 launches within the hour in pool cpu, the limit is 2" in told
    [why] = [line for line in asked(here, "why", subject="gpu")["facts"] if "team graphics" in line]
    assert why.startswith("not done: max-usd-per-hour: one more would make 12 dollars per hour in team graphics")


def test_status_and_the_live_page_show_what_is_used_of_each_limit(here, capsys):
    answer = asked(here, "status")
    answers.print_status(answer)
    told = capsys.readouterr().out.splitlines()
    [graphics] = [line.split("\t") for line in told if line.startswith("team graphics\t")]
    assert graphics[1:4] == ["2", "2", "$8.00 of $8.00"]
    assert graphics[4].endswith(" of $500.00")
    assert "for its weight of 2" in graphics[5]
    assert any(line.startswith("pool cpu\t2 of 6\t2 of 2\t$2.00\t") for line in told)
    order = "the pools of no team together, team graphics"
    assert f"where a limit keeps several teams waiting, they go first in this order: {order}" in told
    shown = {meter.label: meter.text for meter in meters(answer["status"])}
    assert shown["team graphics: dollars an hour"] == "$8.00 of $8.00"


def test_metrics_of_a_team_are_published(here):
    told = {datum.name for _, datum in here.metrics if ("Team", "graphics") in datum.dimensions}
    assert told == {"UsdPerHour", "UsdMonth", "UsdPerHourUsedPercent", "UsdMonthUsedPercent", "LaunchesHeld"}


def test_a_limit_that_keeps_a_teams_jobs_waiting_rings_and_its_message_names_the_team(here):
    here.pass_minutes(12)
    assert "TeamLimits" in ringing_in(here)
    assert "[f] the limit max_usd_per_hour of team graphics is reached" in [subject for subject, _ in here.told()]
    jenkins = here.world.controllers["main"]
    for build in [build for build in jenkins.builds if build.job.startswith("render")]:
        jenkins.abort(build)
    here.pass_minutes(20)
    assert "TeamLimits" not in ringing_in(here)


def test_an_order_overrides_a_teams_limits_for_a_while_and_a_pools_and_the_fleets_still_hold(here, capsys):
    answers.print_order(asked(here, "set_team"))
    assert capsys.readouterr().out.splitlines()[0] == (
        "team graphics: agents: at most 3 (fleet file: no limit), an hour: at most $12.00 (fleet file: $8.00), "
        "in the month: at most $500.00; until 12:12 UTC, for another 4 h, then as in the fleet file"
    )
    here.pass_minutes(3)
    assert [instance.tags["autoscaler:pool"] for instance in here.world.alive()].count("gpu") == 3
    status = asked(here, "status")
    [graphics] = [one for one in status["status"]["limits"] if one["whose"] == "team graphics"]
    assert (graphics["max_agents"], graphics["max_usd_per_hour"]) == (3, 12.0)
    [order] = overrides_in_force(status)
    assert order.startswith("team graphics has max_agents 3, max_usd_per_hour 12 until 12:12 UTC")
    here.world.move_to(here.world.timeline.now + 4 * 3600.0)
    assert asked(here, "plan")["teams"] == []


def test_an_order_without_numbers_restores_a_teams_limits(here, capsys):
    asked(here, "set_team")
    answers.print_order(here.call("operate", {"action": "set", "team": "graphics"}))
    told = capsys.readouterr().out.splitlines()[0]
    assert told == "team graphics: an hour: at most $8.00, in the month: at most $500.00; as in the fleet file"
    with pytest.raises(ConfigError, match=r"team \(web\): is not one of the teams \(graphics\)"):
        here.call("operate", {"action": "set", "team": "web"})
    assert here.call("operate", event("names"))["names"]["teams"] == ["graphics"]
