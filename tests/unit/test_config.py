"""The fleet file: what is accepted, and the one line in which the rest is refused."""

import hashlib
import json

import pytest

from autoscaler.config import load_fleet, load_settings
from autoscaler.domain.facts.fleet import Market, WarmPool
from autoscaler.domain.facts.job_settings import JobParameters
from autoscaler.domain.facts.started_builds import RerunPolicy
from autoscaler.errors import ConfigError

GOOD = """
fleet: f
limits: {max_agents: 10, max_launches_per_hour: 10, max_usd_per_hour: 100, max_usd_per_month: 1000}
controllers:
  main: {url: https://jenkins.example.org/}
pools:
  cpu:
    executors: 4
    launch_template: cpu
    instance_types: [c5.18xlarge]
    platform: linux
    max_agents: 5
"""


def load(tmp_path, text):
    path = tmp_path / "fleet.yaml"
    path.write_text(text, encoding="utf-8")
    return load_fleet(path)


def test_the_defaults_are_those_of_the_design(tmp_path):
    pool = load(tmp_path, GOOD).pools["cpu"]
    assert (pool.labels, pool.controllers, pool.launch_template_version) == (frozenset({"cpu"}), ("main",), "$Default")
    assert (pool.queue_maturity_seconds, pool.max_wait_seconds, pool.wait_usd_per_hour) == (0.0, 1800.0, 20.0)
    assert (pool.boot_seconds, pool.boot_timeout_seconds, pool.max_idle_seconds) == (180.0, 900.0, 7200.0)
    assert (pool.drain_settle_seconds, pool.spot_patience_seconds, pool.idle_seconds) == (5.0, 180.0, None)
    assert (pool.exclusive, pool.remote_dir, pool.offerings[0].usd_per_hour) == (True, "/home/jenkins/agent", 3.06)


@pytest.mark.parametrize(
    ("template", "written", "version"),
    [
        ("autoscaler-linux-f", "", "$Latest"),
        ("autoscaler-windows-f", "", "$Latest"),
        ("autoscaler-arm64-f", "", "$Latest"),
        ("autoscaler-linux-other", "", "$Default"),
        ("autoscaler-linux-f", "    launch_template_version: $Default\n", "$Default"),
        ("mine", "    launch_template_version: '3'\n", "3"),
    ],
)
def test_the_stacks_own_launch_templates_are_used_by_their_latest_version(tmp_path, template, written, version):
    text = GOOD.replace("launch_template: cpu", f"launch_template: {template}") + written
    assert load(tmp_path, text).pools["cpu"].launch_template_version == version


def test_words_that_only_old_yaml_takes_for_something_else_are_words(tmp_path):
    """YAML 1.1 reads off, no and on as booleans and 12:30 as 750; editors and people read YAML 1.2."""
    fleet = load(tmp_path, GOOD + "    quarantine: off\n    labels: [on, no, y]\n    boot_seconds: 1e2\n")
    assert (fleet.pools["cpu"].quarantine, fleet.pools["cpu"].labels) == ("off", {"on", "no", "y"})
    assert fleet.pools["cpu"].boot_seconds == 100
    with pytest.raises(ConfigError, match=r"boot_seconds \('12:30'\)"):
        load(tmp_path, GOOD + "    boot_seconds: 12:30\n")


@pytest.mark.parametrize("off", ["off", "false"])
def test_a_warm_pool_of_the_defaults_is_switched_off_in_a_pool(tmp_path, off):
    text = GOOD.replace("pools:", "defaults: {warm_pool: {min_agents: 2}}\npools:")
    assert load(tmp_path, text).pools["cpu"].warm_pool == WarmPool(min_agents=2, max_agents=5, max_age_seconds=168 * 3600.0)
    assert load(tmp_path, f"{text}    warm_pool: {off}\n").pools["cpu"].warm_pool is None


@pytest.mark.parametrize("off", ["off", "false"])
def test_lost_builds_are_run_again_where_the_file_says_so(tmp_path, off):
    assert (load(tmp_path, GOOD).pools["cpu"].rerun, load(tmp_path, GOOD).rerun_parameter) == (None, "AUTOSCALER_RUN_ID")
    assert load(tmp_path, GOOD + "    rerun: {}\n").pools["cpu"].rerun == RerunPolicy()
    text = GOOD.replace("pools:", "rerun_parameter: RUN\ndefaults: {rerun: {jobs: [a/*], lost: {times: 2, second: on-demand}}}\npools:")
    fleet = load(tmp_path, text)
    assert (fleet.pools["cpu"].rerun, fleet.rerun_parameter) == (RerunPolicy(times=2, then_on_demand=True, jobs=("a/*",)), "RUN")
    assert load(tmp_path, f"{text}    rerun: {off}\n").pools["cpu"].rerun is None


def test_parameters_tell_builds_apart_where_the_file_names_them(tmp_path):
    assert load(tmp_path, GOOD).job_parameters == JobParameters()
    text = GOOD.replace("pools:", "job_parameters: {nightly/*: [ARCH, SUITE], '*': [DEBUG]}\npools:")
    assert load(tmp_path, text).job_parameters == JobParameters(by_pattern=(("nightly/*", ("ARCH", "SUITE")), ("*", ("DEBUG",))))


def test_what_the_defaults_ask_of_on_demand_agents_is_left_out_where_a_pool_buys_none(tmp_path):
    text = GOOD.replace("pools:", "defaults: {rerun: {lost: {second: on-demand}}}\npools:") + "    market: spot\n"
    assert load(tmp_path, text).pools["cpu"].rerun == RerunPolicy()


def test_jobs_are_named_by_patterns():
    policy = RerunPolicy(jobs=("nightly/*", "*-deploy"))
    assert [policy.covers(job) for job in ("nightly/a/b", "x/y-deploy", "daily/a", "Nightly/a")] == [True, True, False, False]
    assert (RerunPolicy(times=2).most, RerunPolicy(times=2, then_on_demand=True).most) == (2, 3)


def test_a_pool_overrides_the_defaults(tmp_path):
    pool = load(
        tmp_path, GOOD.replace("pools:", "defaults: {boot_seconds: 60, max_wait_seconds: 7}\npools:") + "    boot_seconds: 90\n"
    ).pools["cpu"]
    assert (pool.boot_seconds, pool.max_wait_seconds) == (90.0, 7.0)


def test_offerings_are_types_by_subnets_and_spot_comes_first(tmp_path):
    extra = "    market: spot-then-on-demand\n    subnets: [subnet-a, subnet-b]\n    spot_discount: 0.5\n"
    offerings = load(tmp_path, GOOD + extra).pools["cpu"].offerings
    assert [(o.subnet, o.market) for o in offerings] == [
        ("subnet-a", Market.SPOT),
        ("subnet-b", Market.SPOT),
        ("subnet-a", Market.ON_DEMAND),
        ("subnet-b", Market.ON_DEMAND),
    ]
    assert [round(o.usd_per_hour, 2) for o in offerings] == [1.53, 1.53, 3.06, 3.06]


def test_a_windows_pool_has_windows_prices_and_folders(tmp_path):
    pool = load(tmp_path, GOOD.replace("platform: linux", "platform: windows")).pools["cpu"]
    assert (pool.offerings[0].usd_per_hour, pool.remote_dir) == (6.372, "C:\\jenkins")


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            "fleet: f\n",
            "fleet: f\nspeed: fast\n",
            (
                "known here: fleet, limits, controllers, kinds, defaults, pools, hosts, rerun_parameter, "
                "job_parameters, weights, ignore_labels, runs, teams"
            ),
        ),
        (
            "fleet: f\n",
            "fleet: f\nestimates: {public_addresses: true}\n",
            "estimates: unknown key, delete it: AWS Cost Explorer says what addresses and NAT gateways cost",
        ),
        ("fleet: f\n", "", "1:1: fleet: missing"),
        ("fleet: f\n", "fleet: F_1\n", "2:8: fleet ('F_1'): must be lower-case letters, digits and hyphens, at most 40"),
        ("executors: 4", "executors: 0", "8:16: pools.cpu.executors (0): must be 1 or more"),
        ("executors: 4", "executors: four", "8:16: pools.cpu.executors ('four'): must be a whole number"),
        ("executors: 4", "executors: true", "pools.cpu.executors (True): must be a whole number"),
        ("executors: 4", "executors: 4\n    executors: 5", "9:5: executors is written twice"),
        ("executors: 4", "executers: 4", "8:5: pools.cpu.executers: unknown key, did you mean executors?"),
        ("executors: 4", "numExecutors: 4", "8:5: pools.cpu.numExecutors: unknown key, did you mean executors?"),
        ("executors: 4", "wait_usd: 4\n    executors: 1", "8:5: pools.cpu.wait_usd: unknown key, did you mean wait_usd_per_hour?"),
        ("fleet: f\n", "fleet: f\nboot_seconds: 5\n", "3:1: boot_seconds: unknown key here, it belongs in defaults or a pool"),
        ("platform: linux", "platform: Linux", "11:15: pools.cpu.platform ('Linux'): must be linux or windows, did you mean linux?"),
        ("platform: linux", "platform: sunos", "pools.cpu.platform ('sunos'): must be linux or windows"),
        ("platform: linux", "market: cheap", "pools.cpu.market ('cheap'): must be on-demand, spot or spot-then-on-demand"),
        ("max_agents: 5", "max_agents: 5\n    min_agents: 6", "13:17: pools.cpu.min_agents (6) exceeds max_agents (5)"),
        ("max_agents: 5", "max_agents: 50", "12:17: pools.cpu.max_agents (50) exceeds limits.max_agents (10)"),
        ("max_agents: 5", "max_agents: 5\n    warm_executors: 21", "warm_executors (21) exceeds max_agents x executors (20)"),
        ("max_agents: 5", "max_agents: 5\n    controllers: [other]", "pools.cpu.controllers (other) is not one of the controllers (main)"),
        ("max_agents: 5", "max_agents: 5\n    controllers: [mian]", "is not one of the controllers (main), did you mean main?"),
        ("max_agents: 5", "max_agents: 5\n    boot_seconds: 900", "pools.cpu.boot_timeout_seconds (900) must exceed boot_seconds (900)"),
        ("max_agents: 5", "max_agents: 5\n    max_hours_per_day: 0.5", "13:24: pools.cpu.max_hours_per_day (0.5): must be 1 or more"),
        ("max_agents: 5", "max_agents: 5\n    labels: [a, a]", "13:5: pools.cpu.labels (a, a) names something twice"),
        ("max_agents: 5", "max_agents: 5\n    labels: [a b]", "13:14: pools.cpu.labels.0 ('a b'): must be one label: no blanks"),
        ("max_agents: 5", "max_agents: 5\n    labels: [7]", "pools.cpu.labels.0 (7): must be text, write it in quotes: '7'"),
        (
            "max_agents: 5",
            "max_agents: 5\n    subnets: [us-west-2a]",
            "pools.cpu.subnets (us-west-2a) is not a subnet's id, such as subnet-0",
        ),
        ("[c5.18xlarge]", "[c99.huge]", "pools.cpu.instance_types (c99.huge): no linux price is carried for it, set usd_per_hour"),
        ("[c5.18xlarge]", "[m5.lagre]", "set usd_per_hour, did you mean m5.large?"),
        ("[c5.18xlarge]", "[m5 large]", "pools.cpu.instance_types.0 ('m5 large'): must be an EC2 instance type, such as m7i.xlarge"),
        ("[c5.18xlarge]", "[]", "pools.cpu.instance_types ([]): must have 1 or more entries"),
        ("[c5.18xlarge]", "c5.18xlarge", "pools.cpu.instance_types ('c5.18xlarge'): must be a list, such as [a, b]"),
        ("[c5.18xlarge]", "[c7i.large, c7g.large]", "(c7g.large is arm64, c7i.large is x86_64): one image starts on one architecture only"),
        ("https://jenkins.example.org/", "jenkins", "5:15: controllers.main.url (jenkins) must be an http or https URL"),
        ("max_usd_per_hour: 100", "max_usd_per_hour: .nan", "limits.max_usd_per_hour (nan): "),
        (
            "max_agents: 5",
            "max_agents: 5\n    warm_pool: {}\n    controllers: [mian]",
            "pools.cpu.controllers (mian) is not one of the controllers (main)",
        ),
        ("max_agents: 5", "max_agents: 5\n    warm_pool: of", "13:16: pools.cpu.warm_pool ('of'): must be off, or keys and values"),
        ("max_agents: 5", "max_agents: 5\n    warm_pool: {min_agents: x}", "13:29: pools.cpu.warm_pool.min_agents ('x'): must be a whole"),
        ("max_agents: 5", "max_agents: 5\n    warm_pool: {min_agent: 1}", "warm_pool.min_agent: unknown key, did you mean min_agents?"),
        ("max_agents: 5", "max_agents: 5\n    rerun: on", "13:12: pools.cpu.rerun ('on'): must be off, or keys and values"),
        ("max_agents: 5", "max_agents: 5\n    rerun: {lost: {time: 2}}", "pools.cpu.rerun.lost.time: unknown key, did you mean times?"),
        ("max_agents: 5", "max_agents: 5\n    rerun: {lost: {times: 0}}", "pools.cpu.rerun.lost.times (0): must be 1 or more"),
        ("max_agents: 5", "max_agents: 5\n    rerun: {lost: {second: spot}}", "rerun.lost.second ('spot'): must be on-demand or off"),
        ("max_agents: 5", "max_agents: 5\n    rerun: {jobs: []}", "pools.cpu.rerun.jobs ([]): must have 1 or more entries"),
        (
            "max_agents: 5",
            "max_agents: 5\n    market: spot\n    rerun: {lost: {second: on-demand}}",
            "pools.cpu.rerun.lost.second (on-demand): the pool buys spot agents only (market), use spot-then-on-demand",
        ),
        ("pools:", "rerun_parameter: 1ST\npools:", "rerun_parameter ('1ST'): must be letters, digits and underscores"),
        ("pools:", "job_parameters: {a: [1ST]}\npools:", "job_parameters.a.0 ('1ST'): must be letters, digits and underscores"),
        ("pools:", "job_parameters: {a: []}\npools:", "job_parameters.a ([]): must have 1 or more entries"),
        ("pools:", "job_parameters: {a: ARCH}\npools:", "job_parameters.a ('ARCH'): must be a list"),
        ("pools:", "pools: [", "is not YAML ("),
        ("fleet: f", "fleet: f\n\tlimits: 3", "3:1: is not YAML (a tab stands here, YAML is indented by spaces)"),
    ],
    ids=lambda value: str(value).strip()[:30],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path, old, new, line):
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, GOOD.replace(old, new))
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        *("https://anna:hunter2@jenkins.example.org/", "https://hunter2@jenkins.example.org/", "https:anna:hunter2@jenkins.example.org"),
        *("https://anna:hunter2/x@jenkins.example.org/", "https://anna:h@hunter2@jenkins.example.org/", "ftp://anna:hunter2@jenkins/"),
        *("anna:hunter2@jenkins.example.org", "https://anna:hunter2@", "https://anna:#hunter2@jenkins.example.org/"),
    ],
)
def test_a_url_with_credentials_is_refused_without_showing_them(tmp_path, url):
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, GOOD.replace("https://jenkins.example.org/", f'"{url}"'))
    assert "controllers.main.url (" in str(refused.value)
    assert "hunter2" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_else_a_url_may_hold_is_no_credential(tmp_path):
    url = "https://jenkins.example.org:8443/a@b/"
    load(tmp_path, GOOD.replace("https://jenkins.example.org/", url))
    assert load_settings(tmp_path / "fleet.yaml").controllers["main"].url == url


def test_an_empty_file_and_a_missing_one_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"fleet.yaml:1:1: is empty, autoscaler init writes a first"):
        load(tmp_path, "")
    with pytest.raises(ConfigError, match=r"cannot be read \(No such file"):
        load_fleet(tmp_path / "none.yaml")


def test_an_own_price_needs_no_table(tmp_path):
    text = GOOD.replace("[c5.18xlarge]", "[c99.huge]") + "    usd_per_hour: 12.5\n"
    assert load(tmp_path, text).pools["cpu"].offerings[0].usd_per_hour == 12.5


def test_a_checked_json_is_believed_only_for_the_same_bytes(tmp_path):
    path = tmp_path / "fleet.yaml"
    path.write_text(GOOD, encoding="utf-8")
    other = json.loads(json.dumps({"fleet": "from-json", "limits": load_settings(path).limits.model_dump()}))
    other |= {"controllers": {"main": {"url": "http://j/"}}, "pools": {"p": {"executors": 1, "launch_template": "t"}}}
    other["pools"]["p"] |= {"instance_types": ["c5.large"], "platform": "linux", "max_agents": 1}
    checked = tmp_path / "fleet.json"
    checked.write_text(json.dumps({"sha256": "0" * 64, "fleet": other}), encoding="utf-8")
    assert load_fleet(path).name == "f"
    checked.write_text(json.dumps({"sha256": hashlib.sha256(GOOD.encode()).hexdigest(), "fleet": other}), encoding="utf-8")
    assert load_fleet(path).name == "from-json"


SPOT = "    market: spot-then-on-demand\n    volume_gib: 0\n"


def reserved(tmp_path, extra):
    """What each offering is expected to cost, and what the limits reserve for it."""
    offerings = load(tmp_path, GOOD + extra).pools["cpu"].offerings
    return [(round(o.billed_usd_per_hour, 3), round(o.reserved_usd_per_hour, 3)) for o in offerings]


def test_limits_reserve_spot_at_the_on_demand_price(tmp_path):
    assert reserved(tmp_path, SPOT) == [(1.071, 3.06), (3.06, 3.06)]


def test_limits_reserve_spot_at_the_maximum_that_is_sent(tmp_path):
    offerings = load(tmp_path, GOOD + SPOT + "    spot_max_usd_per_hour: 1.5\n").pools["cpu"].offerings
    assert [(o.reserved_usd_per_hour, o.spot_max_usd_per_hour) for o in offerings] == [(1.5, 1.5), (3.06, None)]
    assert reserved(tmp_path, SPOT + "    spot_max_usd_per_hour: 0.5\n")[0] == (0.5, 0.5)


def test_a_price_of_ones_own_for_spot_reserves_the_on_demand_price_where_that_is_known_and_higher(tmp_path):
    assert reserved(tmp_path, SPOT + "    usd_per_hour: 0.9\n") == [(0.9, 3.06), (0.9, 0.9)]


def test_a_root_volume_is_counted_beside_what_plans_go_by(tmp_path):
    [offering] = load(tmp_path, GOOD).pools["cpu"].offerings
    assert offering.usd_per_hour == 3.06
    assert offering.billed_usd_per_hour == pytest.approx(3.06 + 100 * 0.08 / 730)
    [large] = load(tmp_path, GOOD + "    volume_gib: 1000\n    volume_usd_per_gib_month: 0.1\n").pools["cpu"].offerings
    assert large.reserved_usd_per_hour == pytest.approx(3.06 + 100 / 730)


@pytest.mark.parametrize(("platform", "seconds"), [("linux", 900.0), ("windows", 2400.0)])
def test_a_windows_agent_has_longer_to_boot_unless_the_file_says_how_long(tmp_path, platform, seconds):
    text = GOOD.replace("platform: linux", f"platform: {platform}")
    assert load(tmp_path, text).pools["cpu"].boot_timeout_seconds == seconds
    assert load(tmp_path, text + "    boot_timeout_seconds: 600\n").pools["cpu"].boot_timeout_seconds == 600.0
