"""Which instance types have disks of their own, against EC2's own answers, as moto carries them."""

import gzip
import json
from pathlib import Path

import moto
import pytest

from autoscaler.domain.facts.fleet import Market, WarmPool, has_instance_store, never_stopped, stoppable
from support.builders import a_pool, an_offering

DESCRIBED = Path(moto.__file__).parent / "ec2/resources/instance_types.json.gz"
WARM = {"min_agents": 0, "max_agents": 5, "max_age_seconds": 3600.0}


def test_each_type_that_ec2_describes_is_told_by_its_name():
    described = json.loads(gzip.decompress(DESCRIBED.read_bytes()))
    assert len(described) > 1000
    wrong = {name for name, facts in described.items() if has_instance_store(name) is not bool(facts.get("InstanceStorageSupported"))}
    assert wrong == set()


@pytest.mark.parametrize("name", ["m9gd.large", "c9gd.metal", "r8idn.xlarge", "i9g.large", "f1.2xlarge", "p6e-gb200.36xlarge"])
def test_types_that_are_newer_or_older_follow_the_same_names(name):
    assert has_instance_store(name)


@pytest.mark.parametrize("name", ["m9g.large", "p3.2xlarge", "g3.4xlarge", "u-12tb1.112xlarge", "dl2q.24xlarge", "inf2.xlarge", "nonsense"])
def test_types_without_such_disks_are_none(name):
    assert not has_instance_store(name)


def test_a_pool_stops_what_is_on_demand_and_has_no_such_disks_unless_its_operator_says_otherwise():
    firm, local = an_offering("m7i.large"), an_offering("m5d.large")
    offered = (an_offering("m7i.large", market=Market.SPOT), firm, local)
    pool = a_pool("cpu", offerings=offered, warm_pool=WarmPool(**WARM))
    assert (stoppable(pool), never_stopped(pool)) == ((firm,), ("m5d.large",))
    pool = a_pool("cpu", offerings=offered, warm_pool=WarmPool(**WARM, instance_stores=True))
    assert (stoppable(pool), never_stopped(pool)) == ((firm, local), ())
    pool = a_pool("cpu", offerings=offered)
    assert (stoppable(pool), never_stopped(pool)) == ((), ())
