"""Agents that may have only so many builds: counted as they begin, cordoned at once, and no supply for more."""

import pytest

from autoscaler.config import check
from autoscaler.config.problems import FleetFileError
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Cordon, Launch
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.learn import assess
from autoscaler.domain.lessons import learn_from_builds
from support.builders import NOW, a_build, a_fleet, a_learned, a_node, a_pool, a_record, a_sighting, a_snapshot, a_view, an_item
from support.decisions import scale_down, scale_up

ONCE = a_fleet(a_pool("cpu", max_builds=1))
THRICE = a_fleet(a_pool("cpu", max_builds=3, executors=2))


def seen(*builds, had=0, noted=(), items=(), executors=1):
    """One agent with these builds on it; ``had``: those that were counted, ``noted`` among them."""
    node = a_node("cpu-1", "cpu", builds=builds, executors=executors)
    running = {key: a_sighting(job="job", pool="cpu", since_at=NOW - 60.0, node="cpu-1") for key in noted}
    learned = {"main": a_learned(builds={"cpu-1": had} if had else {}, running=running, seen_at=NOW - 60.0)}
    return a_snapshot(a_view(node, items=items), records=(a_record("i-1", node="cpu-1"),), learned=learned)


def cordons(snapshot, fleet):
    return [(step.node, step.mark.kind, step.reason) for step in scale_down(snapshot, fleet).steps if isinstance(step, Cordon)]


def test_the_look_that_first_sees_its_only_build_cordons_an_agent():
    assert cordons(seen(a_build()), ONCE) == [("cpu-1", MarkClass.USED_UP, Reason.MAX_BUILDS)]


def test_an_agent_that_has_had_no_build_stays_in_use():
    assert cordons(seen(), ONCE) == []


def test_a_build_counts_once_whether_or_not_it_was_noted_before():
    first, second = a_build("a", key="a/0"), a_build("b", key="b/1")
    assert cordons(seen(first, second, had=1, noted=["a/0"], executors=2), THRICE) == []
    assert cordons(seen(first, second, had=2, noted=["a/0"], executors=2), THRICE) == [("cpu-1", MarkClass.USED_UP, Reason.MAX_BUILDS)]


def test_where_nothing_is_said_agents_have_any_number_of_builds():
    assert cordons(seen(a_build(), had=1000), a_fleet(a_pool("cpu"))) == []


def test_an_agent_that_is_used_up_is_no_supply_for_what_waits():
    waits = an_item(label="cpu")
    launched = [step.reason for step in scale_up(seen(a_build(), items=(waits,)), ONCE).steps if isinstance(step, Launch)]
    assert launched == [Reason.NOBODY_CAN_SERVE]


def test_builds_are_counted_as_they_begin_and_forgotten_with_the_agent():
    snapshot = seen(a_build("a", key="a/0"), a_build("b", key="b/1"), had=1, noted=["a/0"], executors=2)
    assert learn_from_builds(assess(snapshot, THRICE), "main", {}).learned.builds == {"cpu-1": 2}
    gone = a_snapshot(a_view(), records=(), learned=snapshot.learned)
    assert learn_from_builds(assess(gone, THRICE), "main", {}).learned.builds == {}


FILE = {
    "fleet": "f",
    "limits": {"max_agents": 10, "max_launches_per_hour": 10, "max_usd_per_hour": 100, "max_usd_per_month": 1000},
    "controllers": {"main": {"url": "https://jenkins.example.org/"}},
}
POOL = {"executors": 1, "launch_template": "cpu", "instance_types": ["c5.xlarge"], "max_agents": 5}


def test_reuse_never_is_one_build_on_each_agent_and_none_of_them_is_stopped():
    fleet = check(FILE | {"defaults": {"warm_pool": {}}, "pools": {"cpu": POOL | {"reuse": "never"}, "gpu": POOL}}, "f").domain()
    assert (fleet.pools["cpu"].max_builds, fleet.pools["cpu"].warm_pool) == (1, None)
    assert (fleet.pools["gpu"].max_builds, fleet.pools["gpu"].warm_pool is not None) == (None, True)


def test_a_pool_whose_agents_have_one_build_each_cannot_keep_them_stopped():
    with pytest.raises(FleetFileError, match="reuse: never"):
        check(FILE | {"pools": {"cpu": POOL | {"reuse": "never", "warm_pool": {}}}}, "f")
