"""Hosts in the fleet file: what makes a pool one of hosts, and what is refused, each in one line."""

import pytest

from autoscaler.config.load import load_fleet
from autoscaler.domain.facts.fleet import Host, Quarantine, Share
from autoscaler.errors import ConfigError
from autoscaler_workbench.advice import warnings_in

FILE = """fleet: f
limits: {max_agents: 5, max_launches_per_hour: 5, max_usd_per_hour: 50, max_usd_per_month: 500}
controllers: {main: {url: "https://main.example.org/"}, release: {url: "https://release.example.org/"}}
pools:
  cpu: {executors: 2, launch_template: linux, instance_types: [m7i.xlarge], max_agents: 2}
  rocm: {executors: 2, labels: [gfx1030]}
hosts:
  rocm-1: {pool: rocm, role_id: AROAEXAMPLEID12345678, owner: the ROCm team, address: rocm-1.example.org}
"""


def fleet_of(tmp_path, old="", new=""):
    assert old in FILE
    path = tmp_path / "fleet.yaml"
    path.write_text(FILE.replace(old, new, 1), encoding="utf-8")
    return load_fleet(path)


def test_a_pool_that_a_host_names_is_one_of_hosts(tmp_path):
    fleet = fleet_of(tmp_path)
    pool = fleet.pools["rocm"]
    assert (pool.of_hosts, pool.max_agents, pool.warm_pool, pool.quarantine) == (True, 1, None, Quarantine.KEEP)
    assert fleet.hosts["rocm-1"] == Host(
        name="rocm-1", pool="rocm", role_id="AROAEXAMPLEID12345678", owner="the ROCm team", address="rocm-1.example.org"
    )
    assert not fleet.pools["cpu"].of_hosts


def test_settings_for_all_pools_do_not_reach_hosts(tmp_path):
    fleet = fleet_of(tmp_path, "pools:\n", "defaults: {warm_pool: {}, max_builds: 7, max_agent_hours: 24}\npools:\n")
    pool = fleet.pools["rocm"]
    assert (pool.warm_pool, pool.max_builds, pool.max_agent_hours) == (None, None, None)
    assert fleet.pools["cpu"].max_builds == 7


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("pool: rocm,", "pool: rocn,", "hosts.rocm-1.pool (rocn) is not one of the pools (cpu, rocm), did you mean rocm?"),
        ("AROAEXAMPLEID12345678", "ci-host", "hosts.rocm-1.role_id ('ci-host'): must be the unique id of an IAM role"),
        (
            "hosts:\n",
            "hosts:\n  rocm-2: {pool: rocm, role_id: AROAEXAMPLEID12345678}\n",
            "hosts.rocm-1.role_id (AROAEXAMPLEID12345678): host rocm-2 has the same role, so nobody could tell which of them asks",
        ),
        ("labels: [gfx1030]", "max_agents: 3", "pools.rocm.max_agents: the pool is of hosts (rocm-1), which are not launched"),
        ("labels: [gfx1030]", "warm_pool: {}", "pools.rocm.warm_pool: the pool is of hosts (rocm-1), which are not launched"),
        ("launch_template: linux, ", "", "pools.cpu.launch_template: missing"),
        (", max_agents: 2}", "}", "pools.cpu.max_agents: missing"),
        ("owner: the", "owned_by: the", "hosts.rocm-1.owned_by: unknown key"),
        ('{url: "https://main.example.org/"}', '{url: "https://main.example.org/", nodes: slots}', "hosts do not take static nodes"),
    ],
    ids=str,
)
def test_what_cannot_be_is_said_in_one_line(tmp_path, old, new, said):
    with pytest.raises(ConfigError) as refused:
        fleet_of(tmp_path, old, new)
    [line] = [line for line in str(refused.value).splitlines() if said in line]
    assert line.startswith(str(tmp_path))


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("warm_pool: {}", "warm_pool: an agent of several controllers at once (share: cooperative) is not stopped"),
        ("max_builds: 3", "builds of several controllers share the machine, so max_builds and reuse: never cannot hold"),
        ("reuse: never", "builds of several controllers share the machine, so max_builds and reuse: never cannot hold"),
        ("platform: windows", "on Windows an agent connects to one controller"),
        ("controllers: [main]", "share (cooperative): the pool serves one controller only"),
    ],
    ids=str,
)
def test_what_an_agent_of_several_controllers_at_once_cannot_be_is_said_in_one_line(tmp_path, key, said):
    with pytest.raises(ConfigError, match="share") as refused:
        fleet_of(tmp_path, "max_agents: 2}", f"max_agents: 2, share: cooperative, {key}}}")
    assert said in str(refused.value)
    assert fleet_of(tmp_path, "max_agents: 2}", "max_agents: 2, share: cooperative}").pools["cpu"].share is Share.COOPERATIVE


NO_HOSTS = FILE[FILE.index("hosts:") :]


@pytest.mark.parametrize("more", ["", ", share: rotate", ", share: cooperative", ", exclusive: false"])
def test_a_pool_of_hosts_may_have_none_left_and_a_warning_says_that_nothing_serves_its_jobs(tmp_path, more):
    fleet = fleet_of(tmp_path, NO_HOSTS, "")
    assert (fleet.pools["rocm"].of_hosts, fleet.pools["rocm"].max_agents, fleet.hosts) == (True, 0, {})
    (tmp_path / "fleet.yaml").write_text(FILE.replace(NO_HOSTS, "").replace("[gfx1030]", f"[gfx1030]{more}"), encoding="utf-8")
    [warning] = [line for line in warnings_in(tmp_path / "fleet.yaml") if "pools.rocm" in line]
    assert "it has no host and no launch_template, so nothing serves its jobs" in warning


@pytest.mark.parametrize("key", ["launch_template: t", "instance_types: [c5.large]", "max_agents: 2", "warm_pool: {}", "min_agents: 1"])
def test_a_pool_with_some_keys_of_instances_needs_the_others(tmp_path, key):
    with pytest.raises(ConfigError, match=r"pools\.rocm\.(launch_template|instance_types|max_agents): missing"):
        fleet_of(tmp_path, f"executors: 2, labels: [gfx1030]}}\n{NO_HOSTS}", f"executors: 2, {key}}}\n")
