"""Days on which people order runs."""

from dataclasses import replace

from autoscaler.control import operate
from autoscaler.domain.facts.started_builds import RunPolicy, Until
from autoscaler.domain.labels import parse
from autoscaler.domain.run_orders.choice import Asked, CancelRun, OrderRuns, Vary
from autoscaler.domain.run_orders.criteria import read_condition
from autoscaler_workbench.fakes.http_fakes.jenkins.jobs import Job
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory

LABEL, RUN_ID = "AGENT_LABEL", "AUTOSCALER_RUN_ID"


def a_day(*pools, faults=None, runs=True):
    """A fleet whose file lets people order runs."""
    fleet = in_memory(*(pools or (a_pool("cpu"), a_pool("gpu"), a_pool("arm"))), faults=faults)
    if runs:
        fleet.fleet = replace(fleet.fleet, runs=RunPolicy(label_parameter=LABEL, max_open=5))
    return Day(fleet, by_adapters=faults is not None).minutes(3)  # calls that are cut off are those of the adapters


def define(day, *more, kind=Kind.FREESTYLE, seconds=600.0, controller="main", job="job"):
    """Make a job that may be ordered."""
    jobs = day.fleet.apis[controller].jobs
    jobs.jobs[job] = Job(kind, None, seconds, declares=dict.fromkeys((LABEL, RUN_ID, *more), ""), label_parameter=LABEL)
    return jobs


def asked(runs=1, *, on=None, where=(), vary=None, job="job", **facts):
    """What a person asks for."""
    conditions = tuple(read_condition(text) for text in where)
    return Asked(
        job=job, runs=runs, expression=parse(on) if on else None, conditions=conditions, vary=Vary(vary) if vary else None, **facts
    )


def order(day, what, *, until=Until.EACH, resubmit=1, replacing=None, parameters=(), request_id="request", dry_run=False):
    """Order it as `operate` does; return what it tells."""
    request = OrderRuns(
        asked=what,
        parameters=tuple(parameters),
        until=until,
        resubmit=resubmit,
        replace=replacing,
        by="alice",
        reason="",
        request_id=request_id,
    )
    return operate.order_runs(day.fleet.ports, day.fleet.fleet, day.fleet.invocation(dry_run=dry_run), request)


def cancel(day, order_id):
    """Cancel it as `operate` does."""
    return operate.cancel_runs(day.fleet.ports, day.fleet.fleet, day.fleet.invocation(), CancelRun(id=order_id, by="bob", reason=""))


def told(day, order_id):
    """What `operate` tells of an order now."""
    [entry] = operate.list_runs(day.fleet.ports, day.fleet.fleet, 1, order_id)
    return entry


def states(entry):
    return [part.state for part in entry.parts]


def instance_of(day, build):
    return next(i for i in day.world.ec2.instances.values() if i.tags.get("autoscaler:node") == build.node and i.alive())


def pool_of(day, build):
    return next(i.tags["autoscaler:pool"] for i in day.world.ec2.instances.values() if i.tags.get("autoscaler:node") == build.node)


def builds(day, job="job"):
    return day.jenkins.builds_of[job]
