"""Days on which builds are lost with their agents, and what was answered for them."""

from autoscaler.domain.facts.fleet import Market
from autoscaler.domain.facts.plan import LeaveLost
from autoscaler.domain.facts.started_builds import RerunPolicy
from autoscaler_workbench.fakes.http_fakes.jenkins.jobs import Job
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.builders import a_pool, an_offering
from support.timeline import Day
from support.worlds import in_memory

SPOT, FIRM = an_offering(market=Market.SPOT, usd_per_hour=1.0), an_offering(usd_per_hour=3.0)
RUN_ID = "AUTOSCALER_RUN_ID"
ONCE = RerunPolicy()


def a_day(rerun=ONCE, offerings=(SPOT, FIRM), faults=None, **facts):
    pool = a_pool("cpu", offerings=offerings, idle_seconds=1200.0, rerun=rerun, **facts)
    # Calls that are cut off are those of the adapters.
    return Day(in_memory(pool, a_pool("gpu"), faults=faults), by_adapters=faults is not None).minutes(3)


def define(day, job="job", *declares, kind=Kind.FREESTYLE, seconds=1800.0, hides=(), configurations=()):
    """Make a job, or make it anew."""
    jobs = day.fleet.apis["main"].jobs
    declared = dict.fromkeys(declares, "")
    jobs.jobs[job] = Job(kind, "cpu", seconds, declares=declared, hides=frozenset(hides), configurations=configurations)
    return jobs


def running(day, jobs, job="job", given=None, minutes=6):
    """A build of the job, on its agent, and the instance of that."""
    build = jobs.build(job, given, "somebody")
    day.minutes(minutes)
    assert build.node is not None
    assert build.ended is None
    return build, instance_of(day, build)


def instance_of(day, build):
    return next(i for i in day.world.ec2.instances.values() if i.tags.get("autoscaler:node") == build.node and i.alive())


def builds(day, job="job"):
    """All builds of a job: number, how it ended, and what it was started with."""
    return [(build.number, build.ended) for build in day.jenkins.builds_of[job]]


def answers(day):
    return sorted((one.run, str(one.state), one.times) for one in day.fleet.state.reruns.values())


def reasons(day):
    return [step.reason for step in day.done(LeaveLost)]
