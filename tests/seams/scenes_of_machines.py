"""Scenes of what machines tell, and of what goes wrong with them."""

from dataclasses import replace
from math import inf

from autoscaler.domain.facts.fleet import Machine, Share
from autoscaler.domain.facts.started_builds import RunPolicy
from autoscaler.domain.facts.telemetry import Telemetry
from autoscaler_workbench.fakes.world.usage import GIB, Need, Size, Usage
from autoscaler_workbench.fakes.world.world import break_boots
from seams.days import QUICK, a_day_with
from support import ordering
from support.builders import a_host, a_pool, a_pool_of_hosts
from support.cards import give_cards, submit
from support.deployed import essential_thresholds
from support.reserving import reserve


def what_agents_report() -> None:
    """At the essential level: a leak, a full disk, cards, builds that use much, and a controller's own machine."""
    thresholds = replace(essential_thresholds(), agent_gpu_memory_bytes=2.0**30, idle_usd_per_hour=1.0, controller_cpu_percent=50.0)
    cpu, gpu = a_pool("cpu", executors=2, min_agents=1, **QUICK), a_pool("gpu", max_agents=2, **QUICK)
    day = a_day_with(cpu, gpu, thresholds=thresholds)
    needs = {"job-0": Need(memory=2 * GIB, hidden=GIB, cores=2.0), "job-1": Need(memory=6 * GIB, cores=0.5, gpu_memory=15.5 * GIB)}
    day.fleet.world.usage = Usage(day.world.timeline, day.world.controllers, needs=needs, size=Size(gpu_memory=16 * GIB))
    day.minutes(2).queue(2, seconds=900.0)
    day.queue(2, "gpu", seconds=1500.0)
    day.minutes(8)
    for machine in day.world.alive()[:1]:
        day.world.usage.leaks[machine.id] = day.world.timeline.now, GIB / 30.0
    for machine, short in zip(day.world.alive()[1:], ("work_free", "root_free"), strict=False):
        day.fleet.state.reports[machine.id] = replace(day.fleet.state.reports[machine.id], **{short: 5 * GIB})
    for node in day.jenkins.nodes.values():
        node.monitors.disk_bytes = 2 * GIB
    day.fleet.state.reports["controller-main"] = Telemetry(
        told_at=day.world.timeline.now,
        seconds=300.0,
        cores=4.0,
        memory_total=8 * GIB,
        memory_available=1 * GIB,
        cpu_mean=3.0,
        sent=3e6,
        root_free=5 * GIB,
        root_total=100 * GIB,
    )
    day.minutes(8)
    day.queue(3, seconds=300.0)
    day.minutes(30)


def trouble_at_the_essential_level() -> None:
    """Boots that fail, jobs that wait for long, machines that EC2 does not show."""
    thresholds = replace(essential_thresholds(), job_wait_seconds=300.0)
    day = a_day_with(a_pool("cpu", max_agents=3, **QUICK), a_pool("gpu", min_agents=2, **QUICK), thresholds=thresholds)
    break_boots(day.world, frozenset({"cpu"}))
    day.minutes(2).queue(3)
    day.minutes(16)
    for instance in day.world.ec2.instances.values():
        instance.visible_at = inf
    day.minutes(8)


def what_lasts_at_the_essential_level() -> None:
    """Idle agents, a controller's machine that is busy, a node on which builds fail."""
    thresholds = replace(essential_thresholds(), idle_usd_per_hour=1.0, controller_cpu_percent=50.0, failure_streak=3.0)
    day = a_day_with(a_pool("cpu", min_agents=3, **QUICK), a_pool("gpu", max_agents=1, **QUICK), thresholds=thresholds)
    day.minutes(2).queue(1, "gpu", seconds=60.0)
    day.minutes(5)
    for name in day.nodes():
        day.jenkins.nodes[name].fails_builds = name.startswith("gpu-")
        day.jenkins.nodes[name].monitors.disk_bytes = 2 * GIB
    day.fleet.state.reports["controller-main"] = Telemetry(
        told_at=day.world.timeline.now + 1200.0, seconds=300.0, cores=4.0, memory_total=8 * GIB, memory_available=4 * GIB, cpu_mean=3.0
    )
    day.queue(9, "gpu", seconds=45.0)
    day.minutes(14)


def cards() -> None:
    """A host with two cards on two controllers; builds lease them, and a person has one."""
    both = a_pool_of_hosts(controllers=("main", "other"), share=Share.COOPERATIVE, executors=2, labels=frozenset({"gfx1030"}))
    rented = a_pool("rented", labels=frozenset({"gfx1030"}), controllers=("main", "other"), max_agents=2, **QUICK)
    machine = Machine(arch="x86_64", vcpu=16, memory_gib=64, gpus=2, gpu="gfx1030")
    day = a_day_with(both, rented, hosts=(a_host(owner="ada", address="rocm-1.example.org", machine=machine),))
    day.fleet.fleet = replace(day.fleet.fleet, runs=RunPolicy(label_parameter=ordering.LABEL, max_open=9))
    ordering.define(day)
    give_cards(day.world, "rocm-1", 2)
    day.minutes(3)
    submit(day.jenkins, "a", "gfx1030", 900.0)
    day.minutes(3)
    reserve(day, "rocm-1", hours=0.4)
    day.minutes(3)
    for number in range(3):
        submit(day.world.controllers["other"], f"b-{number}", "gfx1030", 300.0)
    day.minutes(6)
    reserve(day, "rocm-1", person="bob", request="r-2")
    day.minutes(6)
    day.fleet.agents.power_fails(day.world.hosts["rocm-1"])
    day.minutes(4)
