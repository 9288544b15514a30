"""autoscaler init: caps, bids and operating systems of clouds are carried over; what is not sure is marked TODO."""

import pytest
import yaml

from autoscaler.config import check, load_fleet
from autoscaler.config.yaml_file import parse
from autoscaler.domain.facts.fleet import Market
from autoscaler_workbench.cli.init_draft import draft_pools
from autoscaler_workbench.cli.init_pool import guess_platform
from autoscaler_workbench.cli.init_read import Machine, Seen
from autoscaler_workbench.cli.init_text import FirstFile, text_of
from autoscaler_workbench.fakes.http_fakes.jenkins.clouds import exported_cloud
from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET, says_windows


def drafted(*clouds, agents=()):
    drafts = draft_pools(Seen(version="2", machines=tuple(agents), clouds=clouds, asked_for=frozenset(), unknown=()))
    first = FirstFile(fleet="f", url="https://x/", secret="jenkins/x", pools=drafts.pools, head=[], caps=drafts.caps)
    text = text_of(first)
    return check(parse(text), "it").domain(), text


def ec2(*templates, **more):
    return ("amazonEC2", {"name": "production", "templates": list(templates)} | more)


def template(labels, **more):
    return {"labelString": labels, "type": "m6i.large", "amiType": {"unixData": None}} | more


def test_the_cap_of_a_whole_cloud_holds_for_its_pools_together():
    fleet, text = drafted(ec2(template("a", instanceCapStr="12"), template("b", instanceCapStr="15"), instanceCapStr="20"))
    assert [pool.max_agents for pool in fleet.pools.values()] == [12, 15]
    assert fleet.limits.max_agents == 20
    assert "max_agents: 20 # the cap of cloud production" in text


def test_beside_other_pools_the_cap_of_a_cloud_is_a_team():
    agents = [Machine(name="pi", labels=("arm",), executors=1, system="Linux (aarch64)")]
    fleet, _ = drafted(ec2(template("a", instanceCapStr="12"), template("b"), instanceCapStr="20"), agents=agents)
    assert {name: (team.ceilings.max_agents, team.pools) for name, team in fleet.teams.items()} == {"production": (20, {"a", "b"})}
    assert (fleet.pools["b"].max_agents, fleet.limits.max_agents) == (20, 21)


@pytest.mark.parametrize(
    ("own", "cloud", "most"), [("30", "20", 20), (None, "20", 20), ("2147483647", 7, 7), (5, "", 5), (2000, None, 2000)]
)
def test_a_pool_has_at_most_what_its_cloud_may_have(own, cloud, most):
    fleet, text = drafted(ec2(template("a", instanceCapStr=own), instanceCapStr=cloud))
    assert (fleet.pools["a"].max_agents, fleet.limits.max_agents, list(fleet.teams)) == (most, most, [])
    assert ("TODO: the template has no cap; that of its cloud is 20" in text) == (own is None)


def test_minima_that_a_cloud_s_cap_does_not_allow_are_cut_to_it():
    each = {"minimumNumberOfInstances": 3, "instanceCapStr": "4"}
    fleet, _ = drafted(ec2(template("a", **each), template("b", **each), instanceCapStr="5"))
    assert [pool.min_agents for pool in fleet.pools.values()] == [3, 2]


@pytest.mark.parametrize(
    ("spot", "market", "bid", "doubt"),
    [
        ({"useBidPrice": True, "spotMaxBidPrice": "0.15", "fallbackToOndemand": True}, "spot-then-on-demand", 0.15, ""),
        ({"useBidPrice": True, "spotMaxBidPrice": 0.05}, "spot", 0.05, ""),
        ({"spotMaxBidPrice": "0.07"}, "spot", 0.07, ""),
        ({"useBidPrice": False, "spotMaxBidPrice": "0.15"}, "spot", None, ""),
        ({"useBidPrice": True, "spotMaxBidPrice": ""}, "spot", None, "highest bid is empty"),
        ({"useBidPrice": True, "spotMaxBidPrice": "${BID}"}, "spot", None, "highest bid is ${BID}"),
        ({"useBidPrice": True, "spotMaxBidPrice": "nan"}, "spot", None, "highest bid is nan"),
    ],
)
def test_the_highest_spot_bid_is_carried_over(spot, market, bid, doubt):
    fleet, text = drafted(ec2(template("a", spotConfig=spot)))
    spots = [offering for offering in fleet.pools["a"].offerings if offering.market is Market.SPOT]
    assert {offering.spot_max_usd_per_hour for offering in spots} == {bid}
    assert f"market: {market}" in text
    assert doubt in text if doubt else "bid" not in text


@pytest.mark.parametrize(
    ("uses", "most", "todo"),
    [
        (1, 1, "one build an agent, as maxTotalUses says"),
        ("1", 1, "one build an agent"),
        (0, 1, "one build an agent"),
        (5, 5, ""),
        (-1, None, ""),
        ("-1", None, ""),
        (None, None, ""),
        ("${USES}", 1, "maxTotalUses is ${USES}, which is no number"),
    ],
)
@pytest.mark.parametrize("kind", ["ec2", "fleet"])
def test_how_many_builds_an_agent_may_have_is_carried_over(kind, uses, most, todo):
    more = {} if uses is None else {"maxTotalUses": uses}
    fleets = ("eC2Fleet", {"name": "a", "fleet": "asg-1", "labelString": "a", "maxSize": 3} | more)
    fleet, text = drafted(ec2(template("a", **more)) if kind == "ec2" else fleets)
    assert fleet.pools["a"].max_builds == most
    assert "".join(text.split()).count("".join(f"TODO: {todo}".replace("\n", "").split())) >= 1 if todo else "maxTotalUses" not in text
    if most == 1:
        assert "reuse: never" in text
        assert not fleet.pools["a"].warm_pool


@pytest.mark.parametrize(
    ("more", "is_carried"), [({}, True), ({"disableTaskResubmit": False}, True), ({"disableTaskResubmit": True}, False)]
)
def test_builds_that_the_fleet_plugin_ran_again_are_run_again(more, is_carried):
    fleet, text = drafted(("eC2Fleet", {"name": "a", "fleet": "asg-1", "labelString": "a", "maxSize": 3} | more))
    assert (fleet.pools["a"].rerun is not None, "TODO: the cloud ran builds again" in text) == (is_carried, is_carried)


@pytest.mark.parametrize(
    ("kind", "most", "doubt"), [("eC2Fleet", 90, ""), ("ec2Fleet", 0, "maximum size 0"), ("eC2Fleet", None, "no maximum size")]
)
def test_the_largest_size_of_an_ec2_fleet(kind, most, doubt):
    settings = {"name": "f", "labelString": "gpu linux", "maxSize": most, "numExecutors": 1}
    fleet, text = drafted((kind, settings))
    assert fleet.pools["gpu-linux"].max_agents == (most or {0: 1, None: 10}[most])
    assert ("TODO: the cloud has" in text, doubt in text) == (bool(doubt), True)


def test_fleets_without_labels_stay_apart_and_are_marked():
    one = {"name": "Fleet A", "maxSize": 3, "numExecutors": 2}
    fleet, text = drafted(("eC2Fleet", one), ("eC2Fleet", one | {"name": "fleet b", "labelString": " ", "restrictUsage": True}))
    assert {name: (pool.labels, pool.exclusive) for name, pool in fleet.pools.items()} == {
        "fleet-a": ({"fleet-a"}, False),
        "fleet-b": ({"fleet-b"}, True),
    }
    plain = " ".join(text.replace("#", "").split())
    assert plain.count("TODO: the fleet has no label") == 2
    assert "and takes any job without a label; name the labels that jobs ask for labels: [fleet-a]" in plain


def test_templates_and_agents_without_labels_are_marked_too():
    agent = Machine(name="old", labels=(), executors=1, system="Linux (amd64)")
    assert "TODO: the template has no label" in drafted(ec2(template("")))[1]
    assert "TODO: these agents have no label" in drafted(agents=[agent])[1]


@pytest.mark.parametrize(
    ("names", "root", "platform", "sure"),
    [
        (["win"], None, "windows", True),
        (["Win10"], None, "windows", True),
        (["build-win-2019"], None, "windows", True),
        (["mxnetwindows-gpu"], None, "windows", True),
        (["win_x64"], None, "windows", True),
        (["winserver"], None, "windows", True),
        (["build"], "C:\\jenkins", "windows", True),
        (["linux", "ubuntu"], None, "linux", True),
        (["build"], "/home/jenkins", "linux", True),
        (["winter", "twin", "darwin"], None, "linux", False),
        (["linux", "win-cross"], None, "windows", False),
        (["gpu"], None, "linux", False),
    ],
)
def test_the_operating_system_that_names_speak_of(names, root, platform, sure):
    guess, doubt = guess_platform(names, root)
    assert (guess, doubt == "") == (platform, sure)


@pytest.mark.parametrize(
    ("more", "platform", "doubt"),
    [
        ({"amiType": {"windowsData": None}}, "windows", ""),
        ({"amiType": {"windowsSSHData": None}}, "windows", ""),
        ({"amiType": {"unixData": None}}, "linux", ""),
        ({"amiType": {"unixData": None}, "description": "win-builder"}, "windows", "the template says Unix"),
        ({"amiType": None, "ami": "win-2022-golden"}, "windows", ""),
        ({"amiType": None}, "linux", "no name says which operating system"),
    ],
)
def test_the_operating_system_of_a_template(more, platform, doubt):
    fleet, text = drafted(ec2(template("build", **more)))
    assert str(fleet.pools["build"].platform) == platform
    assert ("TODO: a guess: " in text, doubt in text) == (bool(doubt), True)


def test_an_agent_that_says_its_system_ends_the_doubt_about_its_cloud():
    cloud = ("eC2Fleet", {"name": "f", "labelString": "build", "maxSize": 4})
    for system, platform in (("Windows Server 2022 (amd64)", "windows"), ("Linux (amd64)", "linux")):
        fleet, text = drafted(cloud, agents=[Machine(name="i-1", labels=("build",), executors=1, system=system)])
        assert [(str(pool.platform), pool.max_agents) for pool in fleet.pools.values()] == [(platform, 4)]
        assert "no name says" not in text


def test_an_agent_of_a_system_that_is_not_launched_is_marked():
    text = drafted(agents=[Machine(name="bsd", labels=("build",), executors=1, system="FreeBSD (amd64)")])[1]
    assert "TODO: Jenkins says FreeBSD (amd64); the autoscaler launches Linux and Windows" in text


def test_the_simulator_s_guess_knows_the_same_words():
    assert [says_windows(name) for name in ("win", "mswin", "windows-x", "Win32", "winter", "cygwinless")] == [
        True,
        True,
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("templates", [None, "x", ["x"], [{}], {"a": 1}], ids=repr)
def test_a_cloud_of_which_little_is_understood_gives_what_is_there(templates):
    fleet, _ = drafted(("amazonEC2", {"cloudName": "c", "templates": templates}), ("eC2Fleet", {"labelString": "linux"}))
    assert "linux" in fleet.pools


def test_the_demo_s_cloud_comes_back_as_the_demo_s_pools():
    before = load_fleet(EXAMPLE_FLEET)
    export = yaml.safe_load(exported_cloud(before, "main"))["jenkins"]["clouds"]
    after, _ = drafted(*((kind, cloud) for entry in export for kind, cloud in entry.items()))
    for name, pool in before.pools.items():
        other = after.pools[name]
        assert (other.labels, other.executors, other.max_agents, other.min_agents) == (
            pool.labels,
            pool.executors,
            pool.max_agents,
            pool.min_agents,
        )
        assert (other.platform, other.offerings[0].instance_type) == (pool.platform, pool.offerings[0].instance_type)
    assert after.limits.max_agents == before.limits.max_agents
