"""Who waits for an executor, and which pools could serve it."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.orders import Overrides
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Wait
from autoscaler.domain.situation.demand import read_demand
from autoscaler.domain.situation.looks import Resumption
from support.builders import NOW, a_fleet, a_node, a_pool, a_record, a_session, a_view, an_item, beacons

FLEET = a_fleet(a_pool("cpu", labels=frozenset({"cpu", "linux"})), a_pool("gpu", labels=frozenset({"gpu", "linux"})))


LONG_AFTER = Resumption(life=a_session(), now=NOW, timeout_seconds=7200.0)
SOON_AFTER = replace(LONG_AFTER, life=a_session(since_at=NOW - 600.0, restarted=True))
ALONE = Wait(for_executor=True, nodes=("cpu-1",))
AGENT = a_node("cpu-1", "cpu", "linux", "autoscaler-fleet-f")
RECORD = a_record("i-1", node="cpu-1")


def demand_of(item, *nodes, fleet=FLEET, records=(), resumption=LONG_AFTER, **view):
    return read_demand(a_view(*nodes, items=(item,), **view), fleet, records, Overrides(), resumption=resumption)


def beside_beacons(item, *nodes, fleet=FLEET, **facts):
    """On a controller that has all beacons."""
    return demand_of(item, *beacons(fleet)[1:], *nodes, fleet=fleet, **facts)


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


def test_a_node_name_in_place_of_a_label_resolves_through_that_node_and_binds_nothing_without_a_restart():
    demand = demand_of(an_item(why=ALONE), AGENT, records=(RECORD,))
    assert (pools_of(demand), demand.pins) == (["cpu"], set())


def test_an_item_that_names_a_node_beside_a_beacon_of_its_labels_is_bound_to_it_and_launches_nothing():
    demand = beside_beacons(an_item(why=ALONE), AGENT, records=(RECORD,))
    assert (pools_of(demand), demand.pins, demand.resumes) == ([], {"cpu-1"}, set())
    assert [unmet.reason for unmet in demand.unmet] == [Reason.WAITS_FOR_NODE]
    assert beside_beacons(an_item(why=ALONE, run="job/m/4"), AGENT, records=(RECORD,)).resumes == {"cpu-1"}


@pytest.mark.parametrize("resumption", [SOON_AFTER, replace(LONG_AFTER, life=None)], ids=["soon after a restart", "state lost"])
def test_without_such_a_beacon_an_item_that_may_have_run_there_before_a_restart_is_bound(resumption):
    demand = demand_of(an_item(why=ALONE), AGENT, records=(RECORD,), resumption=resumption)
    assert demand.pins == {"cpu-1"}


def test_a_suspect_is_bound_however_late_the_item_came():
    life = a_session(suspects={"cpu-1": ("job/m/4",)})
    assert demand_of(an_item(why=ALONE), AGENT, resumption=replace(LONG_AFTER, life=life)).pins == {"cpu-1"}


@pytest.mark.parametrize("resumption", [LONG_AFTER, SOON_AFTER])
def test_a_list_of_nodes_binds_nothing(resumption):
    why = Wait(for_executor=True, nodes=("cpu-1", "cpu-2"))
    other = a_node("cpu-2", "cpu", "linux", "autoscaler-fleet-f")
    assert beside_beacons(an_item(why=why), AGENT, other, records=(RECORD,), resumption=resumption).pins == set()


def test_a_known_label_binds_only_if_it_is_the_name_of_the_node():
    assert demand_of(an_item(label="cpu", why=ALONE), AGENT, records=(RECORD,), resumption=SOON_AFTER).pins == set()
    by_name = demand_of(an_item(label="cpu-1", why=ALONE), AGENT, records=(RECORD,))
    assert (by_name.pins, [unmet.reason for unmet in by_name.unmet]) == ({"cpu-1"}, [Reason.WAITS_FOR_NODE])


def test_unknown_words_that_name_a_node_bind_likewise():
    why = Wait(for_executor=False, nodes=("cpu-1",), unclear="cpu-1 is reserved by somebody")
    assert beside_beacons(an_item(why=why), AGENT).pins == {"cpu-1"}
    assert demand_of(an_item(why=why), AGENT).pins == set()


def test_a_foreign_node_that_alone_can_take_an_item_launches_nothing():
    item = an_item(why=Wait(for_executor=True, named="old-box"))
    box = a_node("old-box", "gpu", "linux")
    assert [unmet.reason for unmet in beside_beacons(item, box).unmet] == [Reason.WAITS_FOR_NODE]
    assert [unmet.reason for unmet in demand_of(item, box).unmet] == [Reason.LABEL_UNKNOWN]


def test_an_item_that_a_beacon_alone_satisfies_goes_to_the_pools_that_give_its_labels():
    assert pools_of(beside_beacons(an_item(why=Wait(for_executor=True, nodes=("autoscaler-beacon-f~gpu",))))) == ["gpu"]
    demand = beside_beacons(an_item(why=Wait(for_executor=True, nodes=("autoscaler-beacon-f~~",))))
    assert (demand.wants, [unmet.reason for unmet in demand.unmet]) == ((), [Reason.LABEL_UNKNOWN])


def test_a_name_that_is_no_node_is_a_label():
    assert pools_of(demand_of(an_item(why=Wait(for_executor=True, named="gpu")))) == ["gpu"]


def test_right_after_a_restart_an_item_waits_for_its_own_node():
    item = an_item(why=Wait(for_executor=True, nodes=("cpu-1",)))
    demand = demand_of(item, a_node("cpu-1", "cpu"), records=(RECORD,), resumption=replace(SOON_AFTER, recovering=True))
    assert demand.wants == ()
    assert demand.pins == {"cpu-1"}


def test_without_beacon_the_label_of_a_pipeline_is_not_known_yet():
    view = a_view(items=(an_item(why=Wait(for_executor=True)),))
    without = read_demand(
        type(view)(**{f: getattr(view, f) for f in view.__slots__} | {"nodes": ()}), FLEET, (), Overrides(), resumption=LONG_AFTER
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
    assert beside_beacons(item, AGENT).pins == {"cpu-1"}


def test_a_pool_serves_only_its_controllers():
    fleet = a_fleet(a_pool("cpu", controllers=("other",)), a_pool("gpu", controllers=("main",)))
    assert [u.reason for u in demand_of(an_item(label="cpu"), fleet=fleet).unmet] == [Reason.UNSERVABLE]
