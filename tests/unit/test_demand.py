"""Who waits for an executor, and which pools could serve it."""

import pytest

from autoscaler.domain.facts.overrides import Overrides
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Wait
from autoscaler.domain.situation.demand import read_demand
from support.builders import a_fleet, a_node, a_pool, a_record, a_view, an_item

FLEET = a_fleet(a_pool("cpu", labels=frozenset({"cpu", "linux"})), a_pool("gpu", labels=frozenset({"gpu", "linux"})))


def demand_of(item, *nodes, fleet=FLEET, records=(), recovering=False, **view):
    return read_demand(a_view(*nodes, items=(item,), **view), fleet, records, Overrides(), recovering=recovering)


def pools_of(demand):
    return [pool.name for want in demand.wants for pool in want.pools]


def test_an_expression_goes_to_every_pool_that_satisfies_it():
    assert pools_of(demand_of(an_item(label="linux && !gpu"))) == ["cpu"]
    assert pools_of(demand_of(an_item(label="linux"))) == ["cpu", "gpu"]


def test_a_label_that_no_pool_has_is_reported():
    demand = demand_of(an_item(label="arm64"))
    assert [unmet.reason for unmet in demand.unmet] == [Reason.UNSERVABLE]


def test_a_text_that_jenkins_would_refuse_is_one_label():
    fleet = a_fleet(a_pool("odd", labels=frozenset({"a&b"})))
    assert pools_of(demand_of(an_item(label="a&b"), fleet=fleet)) == ["odd"]


@pytest.mark.parametrize(
    "facts", [{"buildable": False}, {"why": Wait(for_executor=False)}], ids=["not buildable", "waits for something else"]
)
def test_what_waits_for_something_else_is_no_demand(facts):
    demand = demand_of(an_item(label="cpu", **facts))
    assert demand.wants == demand.unmet == ()


def test_a_node_name_in_place_of_a_label_resolves_through_that_node():
    item = an_item(why=Wait(for_executor=True, nodes=("cpu-1",)))
    demand = demand_of(item, a_node("cpu-1", "cpu"), records=(a_record("i-1", node="cpu-1"),))
    assert pools_of(demand) == ["cpu"]
    assert demand.pins == {"cpu-1"}


def test_a_node_that_is_not_ours_lends_its_labels():
    item = an_item(why=Wait(for_executor=True, named="old-box"))
    assert pools_of(demand_of(item, a_node("old-box", "gpu", "linux"))) == ["gpu"]


def test_a_name_that_is_no_node_is_a_label():
    assert pools_of(demand_of(an_item(why=Wait(for_executor=True, named="gpu")))) == ["gpu"]


def test_right_after_a_restart_an_item_waits_for_its_own_node():
    item = an_item(why=Wait(for_executor=True, nodes=("cpu-1",)))
    demand = demand_of(item, a_node("cpu-1", "cpu"), records=(a_record("i-1", node="cpu-1"),), recovering=True)
    assert demand.wants == ()
    assert demand.pins == {"cpu-1"}


def test_without_beacon_the_label_of_a_pipeline_is_not_known_yet():
    view = a_view(items=(an_item(why=Wait(for_executor=True)),))
    without = read_demand(
        type(view)(**{f: getattr(view, f) for f in view.__slots__} | {"nodes": ()}), FLEET, (), Overrides(), recovering=False
    )
    assert [unmet.reason for unmet in without.unmet] == [Reason.LABEL_UNKNOWN]


def test_a_job_without_label_goes_to_a_pool_that_is_not_exclusive():
    item = an_item(labelless=True)
    assert [u.reason for u in demand_of(item).unmet] == [Reason.UNSERVABLE]
    fleet = a_fleet(a_pool("any", exclusive=False), a_pool("cpu"))
    assert pools_of(demand_of(item, fleet=fleet)) == ["any"]


def test_what_only_the_beacon_satisfies_is_reported():
    item = an_item(why=Wait(for_executor=True, nodes=("autoscaler-beacon-f",)))
    assert [u.reason for u in demand_of(item).unmet] == [Reason.LABEL_UNKNOWN]


def test_an_item_that_is_blocked_pins_all_the_same():
    item = an_item(buildable=False, why=Wait(for_executor=False, nodes=("cpu-1",)))
    assert demand_of(item, a_node("cpu-1", "cpu")).pins == {"cpu-1"}


def test_a_pool_serves_only_its_controllers():
    fleet = a_fleet(a_pool("cpu", controllers=("other",)), a_pool("gpu", controllers=("main",)))
    assert [u.reason for u in demand_of(an_item(label="cpu"), fleet=fleet).unmet] == [Reason.UNSERVABLE]
