"""A job that asks for one of our beacons by its name: nobody's node, and no demand. A clean-up that visits every node asks so."""

import pytest

from autoscaler.control.operate import why
from autoscaler.domain.facts.plan import Launch
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.builders import a_pool
from support.deployed import essential_thresholds
from support.timeline import Day
from support.worlds import in_memory

BEACON = "autoscaler-beacon-f~cpu"
ALONE = f"{BEACON} alone can take it, and takes no builds: it is a beacon of the autoscaler; ask for a label that agents have"


def a_day(**facts):
    pool = a_pool("cpu", max_agents=4, idle_seconds=900.0, queue_maturity_seconds=0.0, **facts)
    return Day(in_memory(pool, thresholds=essential_thresholds())).minutes(5)


def told(day):
    return [message.subject for message in day.fleet.notifier.sent]


@pytest.mark.parametrize("kind", [Kind.PIPELINE, Kind.FREESTYLE])
def test_it_keeps_no_agent_and_is_told_once_with_what_to_do(kind):
    day = a_day()
    day.queue(1, "cpu", seconds=300.0)
    day.minutes(12)
    assert day.agents() == 1
    day.jenkins.submit("Cleanup-Nodes", BEACON, 120.0, kind=kind)
    day.minutes(90)
    assert (day.agents(), len(day.done(Launch))) == (0, 1)
    said = why(day.fleet.ports, day.fleet.fleet, day.fleet.invocation(), "Cleanup-Nodes")
    assert any(ALONE in line for line in said)
    assert told(day) == [f"[f] jobs on main wait: {BEACON} alone can take them"]


@pytest.mark.parametrize(("pools", "launches"), [(("cpu",), 0), (("cpu", "gpu"), 1)])
def test_where_no_agent_stands_one_shows_that_no_label_is_meant_unless_another_beacon_does(pools, launches):
    """The beacon with all labels has the same ones as that of the only pool."""
    facts = {"max_agents": 4, "idle_seconds": 900.0, "queue_maturity_seconds": 0.0}
    day = Day(in_memory(*(a_pool(name, **facts) for name in pools), thresholds=essential_thresholds())).minutes(5)
    day.jenkins.submit("Cleanup-Nodes", BEACON, 120.0, kind=Kind.PIPELINE)
    day.minutes(300)
    assert (day.agents(), len(day.done(Launch))) == (0, launches)


def test_a_label_that_only_the_beacon_has_yet_is_demand_as_before():
    day = a_day()
    build = day.jenkins.submit("release", "cpu && !gpu", 120.0, kind=Kind.PIPELINE)
    day.minutes(15)
    assert build.started_at is not None


def test_a_busy_agent_that_a_job_excludes_by_its_name_proves_nothing():
    """It waited for ever if that agent was taken for the proof that no label is meant."""
    pools = [a_pool(name, max_agents=4, queue_maturity_seconds=0.0) for name in ("cpu", "gpu")]
    day = Day(in_memory(*pools, thresholds=essential_thresholds())).minutes(5)
    day.queue(1, "cpu", seconds=20_000.0)
    day.minutes(12)
    [name] = day.nodes()
    build = day.jenkins.submit("release", f"cpu && !gpu && !{name}", 120.0, kind=Kind.PIPELINE)
    day.minutes(20)
    assert build.started_at is not None


def test_an_agent_that_a_person_gave_another_label_proves_nothing():
    """A job that excludes that label can start on the beacon's kind alone: it needs another agent."""
    day = a_day()
    day.queue(1, "cpu", seconds=20_000.0)
    day.minutes(12)
    [name] = day.nodes()
    day.jenkins.nodes[name].labels += ("special",)
    day.minutes(2)
    build = day.jenkins.submit("release", "cpu && !special", 120.0, kind=Kind.PIPELINE)
    day.minutes(20)
    assert build.started_at is not None
