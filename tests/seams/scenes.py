"""Scenes in which facts are altered: a fleet in memory that lives; each of its minutes is a moment.

A scene brings many facts together, so that facts which the same doors read share one world. What takes a fleet weeks to learn is stored
beforehand: it is read through the same door.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from math import inf
from zoneinfo import ZoneInfo

from autoscaler.config.thresholds import read_thresholds
from autoscaler.domain.facts.capacity import CapacityReservation
from autoscaler.domain.facts.costs import Estimates
from autoscaler.domain.facts.fleet import AtMonthLimit, Ceilings, Lending, PoolSchedule, Share, Team, WarmPool
from autoscaler.domain.facts.intents import IntentState
from autoscaler.domain.facts.job_parameters import JobParameters
from autoscaler.domain.facts.job_weights import JobWeights, PluginWeight, Source
from autoscaler.domain.facts.machines import Machine
from autoscaler.domain.facts.memory import (
    Arrivals,
    Breaker,
    Burst,
    CapacityDelay,
    CoolOff,
    Expected,
    Failing,
    Follower,
    Growth,
    IdleReturns,
    Learned,
    Missing,
    RunSeen,
    Sighting,
    Spending,
    StageSeen,
    Streak,
    Stuck,
    TrackRecord,
    Window,
)
from autoscaler.domain.facts.metering import month_name
from autoscaler.domain.facts.orders import MANUAL_PREFIX, DrainNodes
from autoscaler.domain.facts.overrides import Hold, Overrides, PoolOverride, Scope, TeamOverride
from autoscaler.domain.facts.reruns import RerunPolicy
from autoscaler.domain.facts.reservations import Reservation
from autoscaler.domain.facts.run_orders import RunPolicy, Until
from autoscaler.domain.facts.telemetry import Telemetry
from autoscaler.domain.forecast.durations import job_key, pool_key
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Build, Kind
from autoscaler_workbench.fakes.world.jenkins.handing import DROPS_BUILDS
from autoscaler_workbench.fakes.world.physics import Physics
from autoscaler_workbench.fakes.world.usage import GIB, Need, Size, Usage
from autoscaler_workbench.fakes.world.world import break_boots
from autoscaler_workbench.simulate.drive import InMemory
from support import lost, ordering
from support.builders import a_host, a_pool, a_pool_of_hosts, an_offering
from support.busy import FIRM, SPOT, Hour, a_fleet_in_memory, name_image
from support.busy_shared import SharedHour, a_shared_fleet
from support.cards import give_cards, submit
from support.deployed import essential_environment
from support.reserving import order, reserve
from support.timeline import Day
from support.worlds import in_memory

QUICK = {"boot_seconds": 60.0, "queue_maturity_seconds": 0.0, "idle_seconds": 300.0}
UTC = ZoneInfo("UTC")
WARM = WarmPool(min_agents=0, max_agents=2, max_age_seconds=900.0)


def a_busy_hour() -> None:
    Hour(a_fleet_in_memory()).run(75)


def a_shared_hour() -> None:
    SharedHour(a_shared_fleet()).run(40)


def a_day_with(*pools, hosts=(), thresholds=None, limits=None, **settings) -> Day:
    fleet = in_memory(*pools, hosts=hosts, thresholds=thresholds, **(limits or {}))
    fleet.fleet = replace(fleet.fleet, **settings)
    return Day(fleet)


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


def dropped_items() -> None:
    day, item = lost.waiting("REF", lost.RUN_ID, given={"REF": "main", lost.RUN_ID: ""})
    lost.dropped(day, item)
    day.minutes(8)


def an_item_that_will_be_dropped() -> None:
    """Its node goes offline before the executor begins, a minute after the item came."""
    day = lost.a_day(min_agents=1).minutes(6)
    day.jenkins.version, day.jenkins.handing_seconds = DROPS_BUILDS, 70.0
    [name] = day.nodes()

    def goes_offline() -> None:
        day.jenkins.nodes[name].connected, day.jenkins.handing_seconds = False, 0.0

    lost.define(day, "job", "REF", lost.RUN_ID, seconds=600.0).build("job", {"REF": "main", lost.RUN_ID: ""}, "somebody")
    day.world.timeline.after(65.0, goes_offline)
    day.world.timeline.after(100.0, lambda: day.jenkins.connect(name))
    day.minutes(2)


def a_restart() -> None:
    """Of a controller whose agents drain; their pipelines resume half an hour later."""
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


def what_agents_report() -> None:
    """At the essential level: a leak, a full disk, cards, builds that use much, and a controller's own machine."""
    thresholds = replace(
        read_thresholds(essential_environment()), agent_gpu_memory_bytes=2.0**30, free_executors=1.0, controller_cpu_percent=50.0
    )
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
    thresholds = replace(read_thresholds(essential_environment()), job_wait_seconds=300.0)
    day = a_day_with(a_pool("cpu", max_agents=3, **QUICK), a_pool("gpu", min_agents=2, **QUICK), thresholds=thresholds)
    break_boots(day.world, frozenset({"cpu"}))
    day.minutes(2).queue(3)
    day.minutes(16)
    for instance in day.world.ec2.instances.values():
        instance.visible_at = inf
    day.minutes(8)


def what_lasts_at_the_essential_level() -> None:
    """Idle agents, a controller's machine that is busy, a node on which builds fail."""
    thresholds = replace(read_thresholds(essential_environment()), free_executors=1.0, controller_cpu_percent=50.0, failure_streak=3.0)
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


def limits_on_every_level() -> None:
    """Teams, priorities, schedules, reserved capacity, and money and hours that run out."""
    now = 1_800_000_000.0
    hours = PoolSchedule(
        days=frozenset(range(7)),
        from_minute=8 * 60 + 4,
        to_minute=8 * 60 + 30,
        time_zone=UTC,
        min_agents=1,
        max_agents=2,
        warm_executors=1,
        warm_pool=WARM,
    )
    block = CapacityReservation(id="cr-0123456789abcdef0", count=2, usd_per_hour=55.0, block=True, starts_at=now, ends_at=now + 5400.0)
    free = an_offering("p5.48xlarge", usd_per_hour=0.0, volume_usd_per_hour=0.02)
    pools = (
        a_pool("cpu", executors=2, schedules=(hours,), ceilings=Ceilings(max_hours_per_day=1.0), priority=1, **QUICK),
        a_pool("gpu", ceilings=Ceilings(max_usd_per_month=40.0), **QUICK),
        a_pool("block", capacity=block, offerings=(free,), max_agents=2, **QUICK),
    )
    teams = {
        "red": Team(name="red", pools=frozenset({"cpu"}), weight=2.0, ceilings=Ceilings(max_agents=3)),
        "blue": Team(name="blue", pools=frozenset({"gpu"}), weight=1.0, ceilings=Ceilings(max_usd_per_hour=20.0)),
    }
    estimates = Estimates(public_addresses=True, nat_gateways=1, nat_gib_per_agent_hour=1.0)
    day = a_day_with(
        *pools, limits={"max_agents": 4, "max_usd_per_month": 60.0, "at_month_limit": AtMonthLimit.STOP}, teams=teams, estimates=estimates
    )
    day.fleet.fleet = replace(day.fleet.fleet, prices_listed_on={"cpu": "2026-01-01", "gpu": "2026-02-01"})
    day.minutes(2).queue(4, "cpu", seconds=1500.0)
    day.queue(3, "gpu", seconds=1500.0)
    day.minutes(9)
    spent = replace(day.fleet.state.memory.month, usd=45.0, by_pool={"cpu": 3.0, "gpu": 30.0})
    lately = (Spending(since_at=day.world.timeline.now - 600.0, by_pool={"cpu": 1.0, "gpu": 9.0}),)
    day.fleet.state.memory = replace(day.fleet.state.memory, month=spent, lately=lately)
    day.minutes(4)
    day.queue(2, "cpu", seconds=600.0)
    day.queue(2, "gpu", seconds=600.0)
    day.queue(1, "block", seconds=600.0)
    day.minutes(4)
    day.fleet.state.memory = replace(day.fleet.state.memory, month=replace(day.fleet.state.memory.month, usd=59.9))
    day.minutes(14)


def orders_of_people() -> None:
    """Holds on each kind of scope, other numbers for a pool and a team, a reservation."""
    now = 1_800_000_000.0
    teams = {"red": Team(name="red", pools=frozenset({"cpu", "gpu"}), weight=1.0, ceilings=Ceilings(max_agents=6))}
    day = a_day_with(*(a_pool(name, executors=1, **QUICK) for name in ("cpu", "gpu", "tpu")), teams=teams)
    told = {"by": "ada", "reason": "the release", "since_at": now, "until_at": now + 3600.0}
    numbers = {"min_agents": 1, "max_agents": 2, "warm_executors": 1}
    limits = {"max_agents": 3, "max_launches_per_hour": 3, "max_usd_per_hour": 9.0, "max_usd_per_month": 40.0}
    day.fleet.state.overrides = Overrides(
        holds=(
            Hold(scope=Scope.POOL, name="tpu", freeze=False, **told),
            Hold(scope=Scope.LABEL, name="held", freeze=False, **told),
            Hold(scope=Scope.POOL, name="gpu", freeze=True, **told | {"since_at": now + 600.0}),
        ),
        numbers=(PoolOverride(pool="cpu", **told | numbers),),
        teams=(TeamOverride(team="red", **told | limits),),
    )
    day.minutes(2).queue(5, "cpu", seconds=900.0)
    day.queue(2, "gpu", seconds=300.0)
    day.queue(1, "tpu", seconds=300.0)
    day.queue(1, "held", seconds=300.0)
    day.minutes(8)
    reserve(day, "cpu", hours=0.4)
    day.minutes(30)


def what_was_learned() -> None:
    """Durations, stages, followers, hourly jobs, weights of both sources, and builds that fail on one machine."""
    weights = JobWeights(by_pattern=(("learned/*", Source.LEARNED), ("plugin/*", Source.PLUGIN), ("fixed/*", 2)))
    cpu = a_pool("cpu", executors=4, max_agents=4, **QUICK | {"boot_seconds": 180.0})
    gpu = a_pool("gpu", max_agents=4, max_builds=5, **QUICK | {"boot_seconds": 180.0})
    day = a_day_with(cpu, gpu, weights=weights, job_parameters=JobParameters(by_pattern=(("*", ("REF",)),)))
    day.jenkins.heavy = {"plugin/x": 3}
    day.minutes(2)
    now = day.world.timeline.now
    known = day.fleet.state.learned.get("main", Learned())
    hourly = tuple(now + 240.0 - 3600.0 * n for n in range(1, 7))
    day.fleet.state.learned["main"] = replace(
        known,
        samples={pool_key("cpu"): (600.0,) * 20, pool_key("gpu"): (300.0,) * 20, job_key("job-0", "cpu"): (900.0,) * 9},
        arrivals={
            "hourly": Arrivals(
                pool="cpu", times=hourly, count=6, expected=(Expected(at=now + 240.0, period_seconds=3600.0, share=0.9, kind="3600 6/6"),)
            ),
            "first": Arrivals(pool="cpu", times=(now - 30.0,), count=9),
            "second": Arrivals(pool="gpu", times=(now - 3000.0,), count=9),
        },
        schedules={"3600 6/6": TrackRecord(true=9.0, false=1.0)},
        followers={"second": Follower(after="first", delays=(200.0,) * 8, missed=0)},
        stages={"pipe\n1": StageSeen(followed=((150.0, {"gpu": 2}),) * 6, ended=(400.0,))},
        runs={"job/pipe/1": RunSeen(project="pipe", stage="1", since_at=now - 30.0, items=(), builds={"k": "cpu"})},
        weights={"learned/x": 2},
        heavy_jobs={"plugin/x": PluginWeight(weight=3, read_at=now)},
        running={"gone/0": Sighting(job="gone", pool="cpu", since_at=now - 300.0, node="cpu-0", run="job/gone/1")},
    )
    for job in ("learned/x", "plugin/x", "fixed/x", "plain"):
        for _ in range(3):
            day.jenkins.submit(job, "cpu", 900.0)
    day.jenkins.submit("pipe", "cpu", 400.0, kind=Kind.PIPELINE)
    day.minutes(8)
    names = [name for name in day.nodes() if name.startswith("cpu-")]
    learned = day.fleet.state.learned["main"]
    streaks = {name: Streak(failures=4, since_at=now, jobs=("a", "b", "c")) for name in names[:1]}
    day.fleet.state.learned["main"] = replace(learned, streaks=streaks, succeeded_at={"cpu": now + 300.0})
    for name in names[:1]:
        day.jenkins.nodes[name].fails_builds = True
    day.minutes(12)
    day.queue(2, "gpu", seconds=120.0)
    day.minutes(16)


def what_is_foreseen() -> None:
    """One kind of prediction for each pool: by the clock, after another job, the next stage of a pipeline, and how bursts grow."""
    slow = QUICK | {"boot_seconds": 240.0, "idle_seconds": 120.0}
    names = ("build", "stage", "clock", "first", "after", "burst")
    day = a_day_with(*(a_pool(name, max_agents=8, executors=4 if name == "burst" else 1, **slow) for name in names))
    day.minutes(2).queue(1, "burst", seconds=1200.0)
    day.jenkins.submit("pipe", "build", 900.0, kind=Kind.PIPELINE)
    day.jenkins.submit("first", "first", 900.0)
    day.minutes(6)
    now = day.world.timeline.now
    known = day.fleet.state.learned["main"]
    hourly = tuple(now + 300.0 - 3600.0 * n for n in range(1, 7))
    expected = (Expected(at=now + 300.0, period_seconds=3600.0, share=0.9, kind="3600 6/6"),)
    day.fleet.state.learned["main"] = replace(
        known,
        samples=known.samples | {pool_key(name): (600.0,) * 20 for name in names},
        arrivals=known.arrivals
        | {
            "hourly": Arrivals(pool="clock", times=hourly, count=6, expected=expected),
            "second": Arrivals(pool="after", times=(now - 3000.0,), count=9),
        },
        schedules={"3600 6/6": TrackRecord(true=9.0, false=1.0)},
        followers={"second": Follower(after="first", delays=(700.0,) * 8, missed=0)},
        stages={
            "pipe\nbuild*1": StageSeen(followed=((620.0, {"stage": 2}),) * 6, ended=(800.0,)),
            "gap\nbuild*1": StageSeen(followed=((620.0, {"after": 2}),) * 6),
        },
        runs=known.runs | {"job/gap/1": RunSeen(project="gap", stage="build*1", since_at=now - 400.0, left_at=now - 60.0)},
    )
    memory = day.fleet.state.memory
    growths = (Growth(steps=((0.0, 1), (150.0, 9))),) * 2
    day.fleet.state.memory = replace(memory, growths={"main/burst": growths})
    day.minutes(5)
    day.queue(4, "burst", seconds=900.0)
    day.minutes(12)


def unsettled_launches() -> None:
    """Of each kind one: not sent, sent and not answered, sent long ago, looked for in vain, answered and not written down."""
    image = "/ci/gpu-image"
    pools = [a_pool("cpu", max_agents=12, image_parameter=image, **QUICK), a_pool("warm", max_agents=12, warm_pool=WARM, **QUICK)]
    day = a_day_with(*pools)
    name_image(day.world, "ami-1")
    day.minutes(2).queue(3, seconds=900.0)
    day.fleet.faults.plan(Fault("ec2 CreateFleet", after=True))
    day.minutes(1)
    [cut_off] = day.fleet.state.intents.values()
    ends = day.world.timeline.now + 3000.0
    person = Reservation(person="alice", reason="a test hangs", by="ada", since_at=ends - 3000.0, until_at=ends, request="r-1")
    for name, age, facts in (
        ("written", 50.0, {"state": IntentState.WRITTEN, "version": "1 with ami-0"}),
        ("for a person", 50.0, {"reservation": person, "keep_until": ends}),
        ("to stop", 50.0, {"pool": "warm", "to_stop": True}),
        ("long ago", 700.0, {}),
        ("in vain", 800.0, {"empty_look_at": day.world.timeline.now - 60.0}),
        (f"{MANUAL_PREFIX}r-0", 900.0, {"state": IntentState.SETTLED, "instances": ("i-1",)}),
    ):
        request = cut_off.request.replace(cut_off.id, name)
        created_at = day.world.timeline.now - age
        day.fleet.state.intents[name] = replace(cut_off, id=name, count=1, request=request, created_at=created_at, **facts)
    day.queue(12, seconds=900.0)
    day.minutes(2)
    [started, *_] = day.fleet.state.records.values()
    day.fleet.state.records[started.instance_id] = replace(started, started_for=f"{MANUAL_PREFIX}r-2")
    day.minutes(12)


def an_hourly_job() -> None:
    """It comes when it was expected to."""
    day = a_day_with(a_pool("cpu", max_agents=4, **QUICK | {"boot_seconds": 240.0, "idle_seconds": 120.0}))
    day.minutes(2)
    now = day.world.timeline.now
    hourly = tuple(now + 120.0 - 3600.0 * n for n in range(1, 5))
    expected = (Expected(at=now + 120.0, period_seconds=3600.0, share=0.8, kind="3600 4/4"),)
    day.fleet.state.learned["main"] = replace(
        day.fleet.state.learned.get("main", Learned()),
        samples={pool_key("cpu"): (600.0,) * 20},
        arrivals={"hourly": Arrivals(pool="cpu", times=hourly, count=4, expected=expected)},
        schedules={"3600 4/4": TrackRecord(true=1.0, false=9.0)},
    )
    day.minutes(2)
    day.jenkins.submit("hourly", "cpu", 300.0)
    day.minutes(2)


def what_is_remembered() -> None:
    """Everything that a memory may hold, beside agents that are idle, busy, boot, drain, and cannot be ended."""
    pools = (
        a_pool("cpu", offerings=(SPOT, FIRM), max_agents=6, **QUICK | {"idle_seconds": None}),
        a_pool("gpu", max_agents=4, warm_pool=WARM, image_parameter="/ci/gpu-image", **QUICK),
        a_pool("rare", lent_labels=frozenset({"cpu"}), lend=Lending.IDLE, max_agents=1, **QUICK),
        a_pool("broken", max_agents=3, **QUICK | {"boot_timeout_seconds": 240.0}),
    )
    day = a_day_with(*pools)
    name_image(day.world, "ami-1")
    break_boots(day.world, frozenset({"broken"}))
    day.minutes(2).queue(4, "cpu", seconds=700.0)
    day.queue(2, "gpu", seconds=300.0)
    day.queue(1, "broken", seconds=300.0)
    day.queue(1, "rare", seconds=120.0)
    day.minutes(8)
    remember(day.fleet)
    for instance in day.world.alive():
        instance.protected = instance.tags["autoscaler:pool"] == "gpu"
    day.queue(2, "cpu", seconds=300.0)
    day.minutes(6)
    day.fleet.faults.plan(Fault("jenkins toggleOffline", times=4))
    day.minutes(30)


def remember(fleet: InMemory) -> None:
    """Store what long experience would have."""
    now, memory, ids = fleet.world.timeline.now, fleet.state.memory, list(fleet.state.records)
    growth = Growth(steps=((0.0, 1), (60.0, 3), (120.0, 6)))
    windows = {
        name: replace(window, guessed=1.0, burst=Burst(peaks=((now - 300.0, 1),), rises=((now - 60.0, 2, 1.0),)))
        for name, window in memory.windows.items()
    }
    fleet.state.memory = replace(
        memory,
        windows=windows | {"main/rare": Window(opened_at=now - 9000.0, seen_at=now - 60.0, peaks=((now - 60.0, 1),))},
        idle_returns={"main/cpu": {level: IdleReturns(times=(5.0,) * 24, jobs=(3.0,) * 24) for level in ("1", "2")}},
        growths={"main/cpu": (growth,) * 3},
        cool_offs={"cpu/" + SPOT.key: CoolOff(until_at=now + 600.0, last_resort_at=now + 60.0, times=2, why="no capacity")},
        capacity_delays={"cpu": CapacityDelay(asks=5.0, seconds=3000.0, squares=4e6, asked_at=now - 600.0, since_at=now - 120.0)},
        breakers=memory.breakers
        | {
            "gpu": Breaker(
                failures=3, until_at=now + 300.0, failed=("i-1",), why="no route", version="1", opened_at=now - 600.0, said="panic"
            )
        },
        boots={"cpu": (200.0,) * 30, "gpu": (90.0,) * 30},
        starts={"gpu": (30.0,) * 30},
        stuck={one: Stuck(since_at=now - 7200.0, tried_at=now - 3500.0) for one in ids[:1]},
        missing={one: Missing(since_at=now - 9000.0, asked_at=now - 4000.0) for one in ids[1:2]},
        failing={
            f"uncordon main/{name}": Failing(times=3, since_at=now - 600.0, tried_at=now - 60.0, why="403")
            for name in list(fleet.world.controllers["main"].nodes)[:1]
        },
        gone={f"i-gone-{n}": now - 1800.0 for n in range(3)},
        gone_from={f"i-gone-{n}": "cpu" for n in range(3)},
        never_lent={"rare": now - 300.0},
        requests={"r-1": now - 60.0},
        taken={"quarantine/cpu": (now - 60.0, now - 30.0)},
        month=replace(memory.month, name=month_name(now), usd=50.0, by_pool={"cpu": 20.0}),
    )


SCENES: dict[str, Callable[[], object]] = {
    function.__name__.replace("_", " "): function
    for function in (
        a_busy_hour,
        a_shared_hour,
        lost_builds,
        a_pipeline_that_goes_on_elsewhere,
        a_pipeline_that_loses_one_of_its_branches,
        dropped_items,
        an_item_that_will_be_dropped,
        a_restart,
        ordered_runs,
        what_agents_report,
        trouble_at_the_essential_level,
        what_lasts_at_the_essential_level,
        cards,
        limits_on_every_level,
        orders_of_people,
        what_was_learned,
        what_is_foreseen,
        an_hourly_job,
        unsettled_launches,
        what_is_remembered,
    )
}


def scene_file(name: str) -> str:
    """The file that has a scene, from the project's root."""
    return "tests/seams/scenes.py" if name in SCENES else f"tests/{name.partition('::')[0].replace('.', '/')}.py"


def scene_named(name: str) -> Callable[[], object]:
    """Find a scene, or a time-line that is a test of its own: ``scenarios.test_drain::test_a_node_is_drained``."""
    if name in SCENES:
        return SCENES[name]
    module, _, test = name.partition("::")
    function = getattr(import_module(module), test)
    cases = {}
    for mark in getattr(function, "pytestmark", []):
        if mark.name == "parametrize":  # the first of its cases
            names, (first, *_) = mark.args[0], mark.args[1]
            names = [one.strip() for one in names.split(",")] if isinstance(names, str) else list(names)
            cases |= dict(zip(names, (first,) if len(names) == 1 else first, strict=True))
    return partial(function, **cases)
