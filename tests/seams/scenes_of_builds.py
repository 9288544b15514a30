"""Scenes of builds that are lost, ordered, and of a controller that restarts."""

from dataclasses import replace

from autoscaler.domain.facts.fleet import Machine
from autoscaler.domain.facts.orders import DrainNodes
from autoscaler.domain.facts.started_builds import RerunPolicy, Until
from autoscaler_workbench.fakes.world.jenkins.builds import Build, Kind
from autoscaler_workbench.fakes.world.physics import Physics
from seams.days import QUICK
from support import lost, ordering
from support.builders import a_pool, an_offering
from support.reserving import order
from support.timeline import Day
from support.worlds import in_memory


def lost_builds() -> None:
    """One is lost twice, one cannot be run again, one waits on a controller that restarts."""
    day = lost.a_day(rerun=RerunPolicy(times=2, then_on_demand=True, jobs=("job", "other")), max_agents=3)
    jobs = lost.define(day, "job", lost.RUN_ID, "REF")
    _, instance = lost.running(day, jobs, given={"REF": "main", lost.RUN_ID: ""})
    lost.define(day, "left", "PASSWORD", hides={"PASSWORD"})
    day.world.ec2.interrupt(instance)
    day.minutes(6)
    again = day.jenkins.builds_of["job"][-1]
    _, of_other = lost.running(day, lost.define(day, "other", kind=Kind.PIPELINE), "other")
    if again.node:
        day.world.ec2.end(lost.instance_of(day, again))
    day.world.ec2.end(of_other)
    day.minutes(12)


def a_pipeline_that_goes_on_elsewhere() -> None:
    """It tries again on another agent once its own is gone, and fails there."""
    day = lost.a_day()
    pipeline, instance = lost.running(day, lost.define(day, kind=Kind.PIPELINE))
    day.world.ec2.end(instance)
    day.minutes(3)
    again = day.jenkins.submit("job", "cpu", 600.0, kind=Kind.PIPELINE, number=pipeline.number)

    def is_caught(build: Build) -> None:
        build.stopped_by, build.succeeded = None, True

    pipeline.on_end = is_caught
    day.minutes(8)
    day.jenkins.nodes[again.node].fails_builds = True
    day.minutes(14)


def a_pipeline_that_loses_one_of_its_branches() -> None:
    """The other one goes on until it ends; then the run has failed."""
    day = lost.a_day()
    pipeline, instance = lost.running(day, lost.define(day, kind=Kind.PIPELINE))
    day.jenkins.submit("job", "cpu", 900.0, kind=Kind.PIPELINE, number=pipeline.number)
    day.minutes(6)
    day.world.ec2.end(instance)
    day.minutes(20)


def a_restart() -> None:
    """A controller restarts while its agents drain; its pipelines resume half an hour later."""
    physics = Physics(resume_from_seconds=1500.0, resume_to_seconds=1500.0)
    day = Day(in_memory(a_pool("cpu", **QUICK | {"idle_seconds": 60.0}), physics=physics)).minutes(2)
    day.fleet.fleet = replace(day.fleet.fleet, resume_timeouts={"main": 900.0})
    day.queue(2, seconds=5400.0, kind=Kind.PIPELINE)
    day.queue(1, seconds=5400.0)
    day.minutes(6)
    order(day, DrainNodes(nodes=tuple(day.nodes()), reason="old", request_id="r-1"))
    day.minutes(2)
    day.world.timeline.after(70.0, day.jenkins.restart)
    day.minutes(3)


def ordered_runs() -> None:
    """Three builds of one job on different machines; one is lost, one fails, and a gang ends with the first that passes."""
    machines = {
        "c5.2xlarge": Machine(arch="x86_64", vcpu=8, memory_gib=16, gpus=0, gpu=""),
        "g4dn.xlarge": Machine(arch="x86_64", vcpu=4, memory_gib=16, gpus=1, gpu="T4"),
        "c7g.medium": Machine(arch="arm64", vcpu=1, memory_gib=2, gpus=0, gpu=""),
    }
    pools = [a_pool(name, offerings=(an_offering(of),), **QUICK) for name, of in zip(("cpu", "gpu", "arm"), machines, strict=True)]
    day = ordering.a_day(*pools)
    day.fleet.fleet = replace(day.fleet.fleet, machines=machines, runs=replace(day.fleet.fleet.runs, max_open=9))
    ordering.define(day, "REF", seconds=900.0)
    ordering.order(day, ordering.asked(2, vary="pool"), resubmit=2, parameters=(("REF", "main"),))
    day.minutes(2)
    ordering.order(day, ordering.asked(2, on="cpu"), until=Until.FIRST_SUCCESS, request_id="gang", replacing=1)
    day.minutes(8)
    if running := [build for build in day.jenkins.builds_of["job"] if build.node and build.ended is None]:
        day.world.ec2.end(ordering.instance_of(day, running[0]))
    day.minutes(14)
