"""Days on which people reserve agents: what they order, and what a test asks of it."""

from dataclasses import replace

from autoscaler.control import passes
from autoscaler.domain.facts.orders import Release, Reserve
from autoscaler_workbench.simulate.result import leaked_instances, leaked_nodes
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory

HOUR = 3600.0


def a_day(**facts):
    limits = {key: facts.pop(key) for key in ("max_usd_per_month", "max_agents_of_the_fleet", "slots") if key in facts}
    if "max_agents_of_the_fleet" in limits:
        limits["max_agents"] = limits.pop("max_agents_of_the_fleet")
    return Day(in_memory(a_pool("cpu", **({"idle_seconds": 600.0} | facts)), **limits)).minutes(2)


def an_idle_day(agents=1, **facts):
    """A day on which so many agents have just had a build each, and are kept for a while."""
    day = a_day(**({"idle_seconds": 7200.0} | facts))
    day.queue(agents, seconds=60.0)
    day.minutes(6)
    assert [len(node.builds) for node in connected(day)] == [0] * agents
    return day


def connected(day):
    return [day.jenkins.nodes[name] for name in day.nodes() if day.jenkins.nodes[name].connected]


def order(day, what):
    [report] = passes.carry_out(day.fleet.ports_of("operate"), day.fleet.fleet, replace(day.fleet.invocation(), by_a_person=True), what)
    day.fleet.reports.append(report)
    return report


def reserve(day, target="cpu", hours=1.0, person="alice", request="r-1"):
    what = Reserve(target=target, controller=None, seconds=hours * HOUR, person=person, by="ada", reason="a test hangs", request_id=request)
    return order(day, what)


def release(day, target, person=None):
    return order(day, Release(target=target, reason="done", person=person))


def reserved(day):
    return [record for record in day.fleet.state.records.values() if record.reservation]


def outcomes(report):
    return [(type(result.step), str(result.outcome)) for result in report.results]


def refusals(report):
    return [held.reason for held in report.plan.held]


def instance_of(day, node):
    return next(instance for instance in day.world.alive() if instance.tags.get("autoscaler:node") == node)


def metric(day, name):
    """The fleet's values of a metric."""
    wanted = (("Fleet", "f"),)
    return [value for _, one in day.fleet.metrics.published if (one.name, one.dimensions) == (name, wanted) for value in one.values]


def all_went_well(day):
    killed = [build for build in day.jenkins.builds if build.killed_by]
    return (killed, leaked_instances(day.world), leaked_nodes(day.world), day.failed) == ([], [], [], 0)
