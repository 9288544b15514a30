"""What is asked of machines, and the label expression that names one pool alone."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import HELD_LABEL, Host, Machine
from autoscaler.domain.labels import parse
from autoscaler.domain.run_orders.choice import address_of
from autoscaler.domain.run_orders.criteria import ConditionError, read_condition, unmet
from support.builders import a_fleet, a_node, a_pool, a_view, an_offering

A10G = Machine(arch="x86_64", vcpu=4, memory_gib=16.0, gpus=1, gpu="NVIDIA A10G")
T4 = Machine(arch="x86_64", vcpu=8, memory_gib=32.0, gpus=1, gpu="NVIDIA T4")
OFFERED = (an_offering(instance_type="g5.xlarge", usd_per_hour=1.0), an_offering(instance_type="g4dn.2xlarge", usd_per_hour=0.75))


def told(pool, *asked, machines=None, hosts=()):
    fleet = replace(a_fleet(pool, hosts=hosts), machines={"g5.xlarge": A10G, "g4dn.2xlarge": T4} if machines is None else machines)
    return unmet(tuple(map(read_condition, asked)), pool, fleet)


@pytest.mark.parametrize(
    "asked",
    ["arch=x86_64", "vcpu>=4", "vcpu <= 8", "memory_gib > 15.5", "gpus=1", "gpu=nvidia", "gpu!=A100", "usd_per_hour<1.01", "executors=1"],
)
def test_a_condition_holds_where_every_machine_of_the_pool_satisfies_it(asked):
    assert told(a_pool("gpu", offerings=OFFERED), asked) is None


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        ("vcpu>=8", "its vcpu is 4 (vcpu>=8 was asked)"),
        ("gpu=a10g", "its gpu is NVIDIA T4 (gpu=a10g was asked)"),
        ("usd_per_hour<=0.75", "its usd_per_hour is 1 (usd_per_hour<=0.75 was asked)"),
        ("kind=amd64", "nobody says its kind (kind=amd64 was asked)"),
    ],
)
def test_one_machine_that_does_not_is_enough_to_leave_the_pool_out(asked, line):
    assert told(a_pool("gpu", offerings=OFFERED), asked) == line


def test_a_type_that_the_table_does_not_know_satisfies_nothing():
    assert told(a_pool("gpu", offerings=OFFERED), "vcpu>=1", machines={"g5.xlarge": A10G}) == "nobody says its vcpu (vcpu>=1 was asked)"


def test_of_hosts_their_operator_says_what_they_are():
    pool = a_pool("box", of_hosts=True)
    known = Host(name="box-1", pool="box", role_id="AROA1", machine=Machine(gpus=2, gpu="AMD gfx1030"))
    assert told(pool, "gpus=2", "gpu=gfx1030", hosts=(known,)) is None
    other = Host(name="box-2", pool="box", role_id="AROA2")
    assert told(pool, "gpus=2", hosts=(known, other)) == "nobody says its gpus (gpus=2 was asked)"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("fast", "must be a fact, one of = != < <= > >=, and a value, such as vcpu>=8"),
        ("speed=9", "speed is no fact of a pool; there are arch, vcpu, memory_gib"),
        ("vcpu>=many", "many is no number"),
    ],
)
def test_what_cannot_be_read_says_what_would_be(text, line):
    with pytest.raises(ConditionError) as refused:
        read_condition(text)
    assert str(refused.value).startswith(line)


def address(pool, *others, nodes=()):
    return address_of(pool, a_fleet(pool, *others), a_view(nodes=nodes))


def test_the_shortest_expression_that_no_other_pool_satisfies_is_taken():
    gpu, cpu = a_pool("gpu", labels=frozenset({"linux", "gpu"})), a_pool("cpu", labels=frozenset({"linux", "cpu"}))
    assert address(gpu, cpu) == "gpu"
    both = a_pool("both", labels=frozenset({"linux", "gpu", "cpu"}))
    assert address(both, gpu, cpu) == "cpu&&gpu"


def test_a_pool_whose_labels_another_one_has_too_excludes_what_that_has_beside():
    plain, rare = a_pool("plain", labels=frozenset({"amd64"})), a_pool("rare", labels=frozenset({"amd64", "gfx1030"}))
    assert address(plain, rare) == "amd64&&!gfx1030"


def test_an_agent_that_is_lent_does_not_take_what_is_ordered_for_the_general_pool():
    plain = a_pool("plain", labels=frozenset({"amd64"}))
    rare = a_pool("rare", labels=frozenset({"amd64+gfx1030"}), lent_labels=frozenset({"amd64"}))
    expression = parse(address(plain, rare))
    assert expression.matches(plain.labels)
    assert not expression.matches(rare.labels | rare.lent_labels)


def test_an_agent_without_a_label_that_a_person_holds_does_not_take_what_is_ordered_for_the_pool_that_never_had_it():
    plain, rare = a_pool("plain", labels=frozenset({"amd64"})), a_pool("rare", labels=frozenset({"amd64", "gfx1030"}))
    fleet = replace(a_fleet(plain, rare), held_labels=frozenset({"gfx1030"}))
    expression = parse(address_of(plain, fleet, a_view()))
    assert expression.matches(plain.labels)
    assert not any(expression.matches(labels) for labels in (rare.labels, {"amd64", HELD_LABEL}))


def test_pools_that_have_the_same_labels_cannot_be_told_apart():
    assert address(a_pool("a", labels=frozenset({"cpu"})), a_pool("b", labels=frozenset({"cpu"}))) is None


def test_a_node_that_is_none_of_ours_is_kept_out():
    assert address(a_pool("gpu"), nodes=[a_node("somebodys", "gpu")]) == "gpu&&autoscaler-fleet-f"


def test_a_label_with_odd_letters_is_quoted_as_jenkins_does():
    assert address(a_pool("odd", labels=frozenset({"gcc (12)"}))) == '"gcc (12)"'
