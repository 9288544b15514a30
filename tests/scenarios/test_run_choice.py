"""Where ordered runs take place: pools are ranked by when a build would end there, or by what it costs, and differ in what was asked."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import Machine
from autoscaler.domain.run_orders.choice import Choose
from autoscaler.errors import ConfigError
from support.builders import a_pool, an_offering
from support.ordering import a_day, asked, define, order

DEAR, CHEAP = an_offering(instance_type="g5.xlarge", usd_per_hour=4.0), an_offering(instance_type="g4dn.xlarge", usd_per_hour=1.0)


def chosen(day, what):
    entry = order(day, what, dry_run=True)
    return [part.pool for part in entry.parts], entry.ranking


def a_seen_day(*pools, **facts):
    """A day on which the job has been built in each pool, and an agent of each is still idle."""
    day = a_day(*pools, **facts)
    jobs = define(day, seconds=300.0)
    for pool in day.fleet.fleet.pools:
        jobs.build("job", {"AGENT_LABEL": pool, "AUTOSCALER_RUN_ID": pool}, "somebody")
    return day.minutes(14)


def test_a_pool_with_an_idle_agent_goes_before_one_that_has_to_boot():
    day = a_day(a_pool("a"), a_pool("b", idle_seconds=7200.0))
    define(day, seconds=60.0).build("job", {"AGENT_LABEL": "b"}, "somebody")
    day.minutes(12)
    pools, ranking = chosen(day, asked())
    assert pools == ["b"]
    assert ranking[0].startswith("b: 1 of 1 runs; a build would start at once")
    assert ranking[1].startswith("a: not chosen; a build would start in ")


def test_of_pools_with_idle_agents_the_cheapest_is_chosen_where_money_counts():
    pools = a_pool("dear", offerings=(DEAR,), idle_seconds=7200.0), a_pool("cheap", offerings=(CHEAP,), idle_seconds=7200.0)
    day = a_seen_day(*pools)
    assert chosen(day, asked(choose=Choose.CHEAPEST))[0] == ["cheap"]


def test_what_takes_shorter_somewhere_is_run_there():
    day = a_day(a_pool("slow", idle_seconds=7200.0), a_pool("fast", idle_seconds=7200.0))
    for pool, seconds in (("slow", 900.0), ("fast", 120.0)):
        define(day, seconds=seconds).build("job", {"AGENT_LABEL": pool}, "somebody")
    day.minutes(25)
    pools, ranking = chosen(day, asked())
    assert pools == ["fast"]
    assert "takes 2 min" in ranking[0]


def test_several_runs_go_where_each_would_end_first():
    day = a_seen_day(a_pool("a", idle_seconds=7200.0), a_pool("b", idle_seconds=7200.0))
    assert sorted(chosen(day, asked(2))[0]) == ["a", "b"]
    assert len(set(chosen(day, asked(2, same=True))[0])) == 1, "to find flaky tests all run on the same"


def test_runs_on_more_than_there_are_begin_again_on_the_first():
    day = a_day(a_pool("a"), a_pool("b"))
    define(day)
    assert sorted(chosen(day, asked(3, vary="pool"))[0]) in (["a", "a", "b"], ["a", "b", "b"])


def test_a_pool_of_several_instance_types_is_left_out_where_they_are_to_differ():
    day = a_day(a_pool("one", offerings=(CHEAP,)), a_pool("two", offerings=(DEAR, CHEAP)))
    define(day)
    pools, ranking = chosen(day, asked(1, vary="instance_type"))
    assert pools == ["one"]
    assert ranking[-1] == "two: it launches g5.xlarge or g4dn.xlarge: a pool for each type tells them apart; left out"


def test_conditions_on_machines_choose_the_pool():
    day = a_day(a_pool("small", offerings=(CHEAP,)), a_pool("large", offerings=(DEAR,)))
    day.fleet.fleet = replace(day.fleet.fleet, machines={"g5.xlarge": Machine(vcpu=16), "g4dn.xlarge": Machine(vcpu=4)})
    define(day)
    pools, ranking = chosen(day, asked(where=["vcpu>=8"]))
    assert (pools, ranking[-1]) == (["large"], "small: its vcpu is 4 (vcpu>=8 was asked); left out")


def test_each_controller_gets_a_run_of_its_own():
    both = ("main", "other")
    day = a_day(a_pool("cpu", controllers=both))
    for name in both:
        define(day, controller=name)
    entry = order(day, asked(2, vary="controller", strict=True))
    assert sorted(part.controller for part in entry.parts) == ["main", "other"]
    day.minutes(20)
    assert [day.world.controllers[name].builds_of["job"][0].ended for name in both] == ["finished"] * 2


def test_a_controller_that_cannot_be_read_is_no_place_for_a_run():
    day = a_day(a_pool("cpu", controllers=("main", "other")))
    define(day)
    day.world.controllers["other"].up = "starting"
    assert [part.controller for part in order(day, asked(2), dry_run=True).parts] == ["main"] * 2


def test_pools_that_no_label_tells_apart_are_no_places_for_runs():
    day = a_day(a_pool("a", labels=frozenset({"x"})), a_pool("b", labels=frozenset({"x"})))
    define(day)
    with pytest.raises(ConfigError, match="give it a label of its own"):
        order(day, asked())
