"""Teams and own limits in the fleet file: what they become, and the one line in which the rest is refused."""

from math import inf

import pytest

from autoscaler.config import load_fleet
from autoscaler.domain.facts.fleet import Ceilings, Team
from autoscaler.errors import ConfigError
from autoscaler_workbench.advice import warnings_in

HEAD = """
fleet: f
limits: {max_agents: 30, max_launches_per_hour: 10, max_usd_per_hour: 100, max_usd_per_month: 1000}
controllers: {main: {url: https://jenkins.example.org/}}
"""
MACHINE = "executors: 1, launch_template: t, instance_types: [c5.large], usd_per_hour: 2, volume_gib: 0, max_agents: 5"


def load(tmp_path, teams, **pools):
    path = tmp_path / "fleet.yaml"
    lines = "".join(f"  {name}: {{{MACHINE}{more}}}\n" for name, more in ({"gpu": "", "cpu": ""} | pools).items())
    path.write_text(f"{HEAD}pools:\n{lines}{teams}", encoding="utf-8")
    return load_fleet(path)


def refused(tmp_path, teams, **pools):
    with pytest.raises(ConfigError) as error:
        load(tmp_path, teams, **pools)
    assert "\n" not in str(error.value)
    return str(error.value).removeprefix(f"{tmp_path}/fleet.yaml:")


def test_a_team_has_pools_a_weight_and_limits_and_what_is_not_written_is_no_limit(tmp_path):
    limits = "max_agents: 12, max_launches_per_hour: 60, max_usd_per_hour: 40, max_usd_per_month: 9000"
    fleet = load(tmp_path, f"teams: {{graphics: {{pools: [gpu], weight: 2, {limits}}}, web: {{pools: [cpu]}}}}")
    ceilings = Ceilings(max_agents=12, max_launches_per_hour=60, max_usd_per_hour=40.0, max_usd_per_month=9000.0)
    assert fleet.teams == {
        "graphics": Team(name="graphics", pools=frozenset({"gpu"}), weight=2.0, ceilings=ceilings),
        "web": Team(name="web", pools=frozenset({"cpu"})),
    }


def test_a_pool_has_limits_of_its_own_and_a_priority(tmp_path):
    fleet = load(tmp_path, "", gpu=", max_usd_per_hour: 30, max_usd_per_month: 900, max_launches_per_hour: 7, priority: -3")
    assert fleet.pools["gpu"].ceilings == Ceilings(max_launches_per_hour=7, max_usd_per_hour=30.0, max_usd_per_month=900.0)
    assert (fleet.pools["gpu"].priority, fleet.pools["cpu"].priority) == (-3, 0)
    assert (fleet.pools["cpu"].ceilings.max_usd_per_hour, fleet.teams) == (inf, {})


@pytest.mark.parametrize(
    ("teams", "line"),
    [
        ("teams: {a: {pools: [gpux]}}", "8:21: teams.a.pools (gpux) is not one of the pools (gpu, cpu), did you mean gpu?"),
        ("teams: {a: {pools: [gpu, gpu]}}", "teams.a.pools (gpu) is named twice"),
        ("teams: {a: {pools: [gpu]}, b: {pools: [gpu]}}", "teams.b.pools (gpu) is in team a, too: a pool is in one team at most"),
        ("teams: {a: {pools: []}}", "teams.a.pools ([]): must have 1 or more entries"),
        ("teams: {a: {}}", "teams.a.pools: missing"),
        ("teams: {a: {pools: [gpu], weight: 0}}", "teams.a.weight (0): must be more than 0"),
        ("teams: {a: {pools: [gpu], max_agents: 0}}", "teams.a.max_agents (0): must be 1 or more"),
        ("teams: {a: {pools: [gpu], max_usd_per_hour: 0}}", "teams.a.max_usd_per_hour (0): must be more than 0"),
        ("teams: {a: {pools: [gpu], wieght: 2}}", "teams.a.wieght: unknown key, did you mean weight?"),
        ("teams: {a: {pools: [gpu], executors: 2}}", "teams.a.executors: unknown key here, it belongs in a pool"),
        ('teams: {"a b": {pools: [gpu]}}', "must be letters, digits, dots, hyphens and underscores"),
        ("teams: [a]", "teams (['a']): must be keys and values"),
    ],
)
def test_what_is_wrong_with_a_team_is_said_in_one_line(tmp_path, teams, line):
    assert line in refused(tmp_path, teams)


@pytest.mark.parametrize(
    ("teams", "more", "line"),
    [
        ("", ", priority: high", "pools.gpu.priority ('high'): must be a whole number"),
        ("", ", priority: 1001", "pools.gpu.priority (1001): must be 1,000 or less"),
        ("", ", min_agents: 2, max_usd_per_hour: 3", "pools.gpu.max_usd_per_hour ($3.00): min_agents alone cost $4.00 an hour"),
        (
            "teams: {a: {pools: [gpu], max_agents: 1}}",
            ", min_agents: 2",
            "teams.a.max_agents (1): the min_agents of its pools (2) exceed it",
        ),
        (
            "teams: {a: {pools: [gpu, cpu], max_usd_per_hour: 3}}",
            ", min_agents: 2",
            "teams.a.max_usd_per_hour ($3.00): min_agents alone cost $4.00 an hour",
        ),
    ],
)
def test_what_cannot_be_is_said_in_one_line(tmp_path, teams, more, line):
    assert line in refused(tmp_path, teams, gpu=more)


def test_a_pool_that_is_wrong_is_told_alone_and_not_missed_in_its_team(tmp_path):
    told = refused(tmp_path, "teams: {a: {pools: [gpu]}}", gpu=", priority: high")
    assert "priority" in told
    assert "is not one of the pools" not in told


def test_a_limit_in_which_not_one_agent_fits_is_warned_of(tmp_path):
    load(tmp_path, "teams: {a: {pools: [gpu], max_usd_per_hour: 1.5}}", cpu=", max_usd_per_hour: 1")
    assert sorted(warning.partition(": ")[2] for warning in warnings_in(tmp_path / "fleet.yaml")) == [
        "pools.cpu: one agent costs $2.00 an hour, more than pools.cpu.max_usd_per_hour ($1.00)",
        "pools.gpu: one agent costs $2.00 an hour, more than teams.a.max_usd_per_hour ($1.50)",
    ]
