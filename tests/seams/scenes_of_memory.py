"""Scenes of what was learned and remembered. What takes a fleet weeks to learn is stored beforehand: it is read through the same door."""

from dataclasses import replace

from autoscaler.domain.facts.fleet import Lending
from autoscaler.domain.facts.job_settings import JobParameters, JobWeights, PluginWeight, Source
from autoscaler.domain.facts.memory import (
    Arrivals,
    Burst,
    CapacityDelay,
    Expected,
    Follower,
    Growth,
    IdleReturns,
    Missing,
    RunSeen,
    StageSeen,
    Stuck,
    TrackRecord,
    Trial,
)
from autoscaler.domain.facts.metering import month_name
from autoscaler.domain.facts.orders import MANUAL_PREFIX
from autoscaler.domain.facts.runs import Streak
from autoscaler.domain.facts.snapshot import IntentState, Reservation
from autoscaler.domain.situation.bets import TrialOf
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from autoscaler_workbench.fakes.world.world import break_boots
from autoscaler_workbench.simulate.drive import InMemory
from seams.days import QUICK, WARM, a_day_with
from support.builders import a_learned, a_pool, a_sighting, a_window, key_of
from support.busy import FIRM, SPOT, name_image
from support.remembered import tables, with_tables


def what_was_learned() -> None:
    """Durations, stages, followers, hourly jobs, weights of both sources, and builds that fail on one machine."""
    weights = JobWeights(by_pattern=(("learned/*", Source.LEARNED), ("plugin/*", Source.PLUGIN), ("fixed/*", 2)))
    cpu = a_pool("cpu", executors=4, max_agents=6, **QUICK | {"boot_seconds": 180.0})
    gpu = a_pool("gpu", max_agents=4, max_builds=5, **QUICK | {"boot_seconds": 180.0})
    day = a_day_with(cpu, gpu, weights=weights, job_parameters=JobParameters(by_pattern=(("*", ("REF",)),)))
    day.jenkins.heavy = {"plugin/x": 3}
    day.minutes(2)
    now = day.world.timeline.now
    known = day.fleet.state.learned.get("main", a_learned())
    hourly = tuple(now + 240.0 - 3600.0 * n for n in range(1, 7))
    day.fleet.state.learned["main"] = replace(
        known,
        samples={key_of("cpu"): (600.0,) * 20, key_of("gpu"): (300.0,) * 20, key_of("cpu", "job-0"): (900.0,) * 9},
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
        running={"gone/0": a_sighting(job="gone", pool="cpu", since_at=now - 300.0, node="cpu-0", run="job/gone/1")},
    )
    for job in ("learned/x", "plugin/x", "fixed/x", "plain"):
        for _ in range(3):
            day.jenkins.submit(job, "cpu", 900.0)
    day.jenkins.submit("pipe", "cpu", 400.0, kind=Kind.PIPELINE)
    day.minutes(8)
    names = [name for name in day.nodes() if name.startswith("cpu-")]
    learned = day.fleet.state.learned["main"]
    streaks = {name: Streak(failures=4, since_at=now, jobs=("a", "b", "c", "d"), pool="cpu") for name in names[:1]}
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
        samples=known.samples | {key_of(name): (600.0,) * 20 for name in names},
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
    day.fleet.state.memory = with_tables(memory, growths={"main/burst": growths})
    day.minutes(5)
    day.queue(4, "burst", seconds=900.0)
    day.minutes(12)


def an_hourly_job() -> None:
    """It comes when it was expected to."""
    day = a_day_with(a_pool("cpu", max_agents=4, **QUICK | {"boot_seconds": 240.0, "idle_seconds": 120.0}))
    day.minutes(2)
    now = day.world.timeline.now
    hourly = tuple(now + 120.0 - 3600.0 * n for n in range(1, 5))
    expected = (Expected(at=now + 120.0, period_seconds=3600.0, share=0.8, kind="3600 4/4"),)
    day.fleet.state.learned["main"] = replace(
        day.fleet.state.learned.get("main", a_learned()),
        samples={key_of("cpu"): (600.0,) * 20},
        arrivals={"hourly": Arrivals(pool="cpu", times=hourly, count=4, expected=expected)},
        schedules={"3600 4/4": TrackRecord(true=1.0, false=9.0)},
    )
    day.minutes(2)
    day.jenkins.submit("hourly", "cpu", 300.0)
    day.minutes(2)


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
        for name, window in tables(memory).windows.items()
    }
    fleet.state.memory = with_tables(
        memory,
        windows=windows | {"main/rare": a_window(opened_at=now - 9000.0, seen_at=now - 60.0, peaks=((now - 60.0, 1),))},
        idle_returns={"main/cpu": {level: IdleReturns(times=(5.0,) * 24, jobs=(3.0,) * 24) for level in ("1", "2")}},
        growths={"main/cpu": (growth,) * 3},
        trials=memory.trials
        | {
            TrialOf.OFFERING.scope("cpu", SPOT.key): Trial(
                failures=2, since_at=now - 90.0, failed_at=now, until_at=now + 600.0, why="no capacity", is_closed=True
            ),
            TrialOf.BOOT.scope("gpu"): Trial(
                failures=3,
                since_at=now - 600.0,
                failed_at=now,
                until_at=now + 300.0,
                why="no route",
                failed=("i-1",),
                version="1",
                said="panic",
                outcomes={"i-1": False, "i-2": False, "i-3": False},
                is_closed=True,
                pauses=1,
            ),
        },
        capacity_delays={"cpu": CapacityDelay(asks=5.0, seconds=3000.0, squares=4e6, asked_at=now - 600.0, since_at=now - 120.0)},
        boots={"cpu": (200.0,) * 30, "gpu": (90.0,) * 30},
        starts={"gpu": (30.0,) * 30},
        stuck={one: Stuck(since_at=now - 7200.0, tried_at=now - 3500.0) for one in ids[:1]},
        missing={one: Missing(since_at=now - 9000.0, asked_at=now - 4000.0) for one in ids[1:2]},
        failing={
            f"uncordon main/{name}": Trial(
                failures=3, since_at=now - 600.0, failed_at=now - 60.0, until_at=now + 240.0, why="403", is_closed=True
            )
            for name in list(fleet.world.controllers["main"].nodes)[:1]
        },
        gone={f"i-gone-{n}": now - 1800.0 for n in range(3)},
        gone_from={f"i-gone-{n}": "cpu" for n in range(3)},
        never_lent={"rare": now - 300.0},
        requests={"r-1": now - 60.0},
        taken={"quarantine/cpu": (now - 60.0, now - 30.0)},
        month=replace(memory.month, name=month_name(now), usd=50.0, by_pool={"cpu": 20.0}),
    )
