"""The beacons: which there are, and which are created and removed."""

from dataclasses import replace

import pytest

from autoscaler.domain import decide
from autoscaler.domain.facts.nodes import beacon_specs
from autoscaler.domain.facts.orders import Hold, Overrides, Scope
from autoscaler.domain.facts.plan import CreateBeacon, Launch, RemoveBeacon
from autoscaler.domain.facts.snapshot import Wait
from support.builders import NOW, a_build, a_fleet, a_node, a_pool, a_snapshot, a_view, an_item, beacons
from support.decisions import steps_of

FLEET = a_fleet(a_pool("cpu"), a_pool("cpu-spot", labels=frozenset({"cpu"})), a_pool("gpu"), a_pool("far", controllers=("other",)))


def sets(fleet, controller="main"):
    return {spec.name: set(spec.labels) for spec in beacon_specs(fleet, controller)}


def test_each_set_of_labels_has_a_beacon_and_all_labels_have_another():
    own = "autoscaler-fleet-f"
    assert sets(FLEET) == {
        "autoscaler-beacon-f": {"autoscaler-beacon-f"},
        "autoscaler-beacon-f~cpu": {"cpu", own},
        "autoscaler-beacon-f~gpu": {"gpu", own},
        "autoscaler-beacon-f~~": {"cpu", "gpu", own},
    }


def test_static_nodes_need_only_the_first():
    assert set(sets(replace(FLEET, slot_controllers=frozenset({"main"})))) == {"autoscaler-beacon-f"}


def test_no_fleet_takes_the_beacons_of_another_for_its_own():
    fleets = [replace(FLEET, name=name) for name in ("f", "f-cpu", "f2")]
    for fleet in fleets:
        for other in fleets:
            assert {fleet.is_beacon(name) for name in sets(other)} == {fleet is other}


def steps(*nodes, kind):
    return steps_of(kind, decide.scale_up(a_snapshot(a_view(nodes=nodes)), FLEET))


def test_missing_beacons_are_created_and_what_stands_is_left():
    first, *others = beacons(FLEET)
    assert [step.spec.name for step in steps(first, kind=CreateBeacon)] == [node.name for node in others]
    assert steps(first, *others, kind=CreateBeacon) == steps(first, *others, kind=RemoveBeacon) == []


OUTDATED = a_node("autoscaler-beacon-f~gpu", "gpu", "old", offline=True)
LEFT = a_node("autoscaler-beacon-f~gone", "gone", offline=True)


@pytest.mark.parametrize("node", [OUTDATED, LEFT], ids=["other labels", "no pool"])
def test_an_outdated_beacon_is_removed_unless_somebody_uses_it(node):
    others = [beacon for beacon in beacons(FLEET) if beacon.name != node.name]
    assert [step.node for step in steps(*others, node, kind=RemoveBeacon)] == [node.name]
    for used in (replace(node, offline=False), replace(node, idle=False), replace(node, builds=(a_build(),))):
        assert steps(*others, used, kind=RemoveBeacon) == []


def test_nodes_of_others_are_no_beacons():
    assert steps(*beacons(FLEET), a_node("autoscaler-beacon-f2~gone", "gone", offline=True), kind=RemoveBeacon) == []


def test_a_beacon_to_which_a_plugin_adds_labels_stays_and_one_that_lost_a_label_is_made_anew():
    """The plugin Implied Labels adds labels to each node."""
    first, *others = beacons(FLEET)
    given = {spec.name: spec for spec in beacon_specs(FLEET, "main")}
    made = [replace(node, description=given[node.name].description) for node in (first, *others)]
    implied = [replace(node, labels=node.labels | {"posix"}) for node in made]
    assert steps(*implied, kind=RemoveBeacon) == []
    poorer = replace(implied[1], labels=frozenset({implied[1].name, "posix"}))
    assert [step.node for step in steps(implied[0], poorer, *implied[2:], kind=RemoveBeacon)] == [poorer.name]


@pytest.mark.parametrize("holds", [(), (Hold(scope=Scope.LABEL, name="gpu", since_at=NOW, until_at=None, by="ada", reason="upgrade"),)])
def test_an_item_that_names_a_beacon_which_is_not_there_fails_no_pass_and_launches_nothing(holds):
    """The queue is read at another moment than the nodes, and a node may be one that cannot be read."""
    item = an_item(1, why=Wait(for_executor=True, nodes=("autoscaler-beacon-f~gpu",)), waiting_seconds=5000.0)
    snapshot = a_snapshot(a_view(nodes=(), items=(item,)), overrides=Overrides(holds=holds))
    assert steps_of(Launch, decide.scale_up(snapshot, FLEET)) == steps_of(Launch, decide.scale_down(snapshot, FLEET)) == []
