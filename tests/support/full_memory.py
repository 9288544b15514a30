"""A memory that holds something of everything that a memory can hold."""

from autoscaler.domain.facts.fleet import Market, Platform, PoolVolumes, Share, Volume
from autoscaler.domain.facts.job_settings import MonthParts
from autoscaler.domain.facts.memory import (
    Burst,
    CapacityDelay,
    Day,
    FreeNode,
    Growth,
    IdleReturns,
    InState,
    LastDefinition,
    Looks,
    Memory,
    Missing,
    MonitorMark,
    MostMarked,
    Observation,
    PricedType,
    Ration,
    Spending,
    SpotPrices,
    Stuck,
    Trial,
)
from autoscaler.domain.facts.runs import AskedRun
from autoscaler.domain.facts.started_builds import LeftBuild, LostBuild, RanAgain
from support.builders import a_month, a_session, a_window
from support.remembered import with_tables

_BURST = Burst(peaks=((1.0, 3),), rises=((2.0, 4, 0.5),))
FREE = FreeNode(since_at=1.0, seen_at=2.0, looks=3, session="s1", labels=("cpu",), refused={"job": 2.0}, is_useless=True)
_LAST = LastDefinition(
    labels=("old",),
    controllers=("main",),
    executors=2,
    platform=Platform.WINDOWS,
    exclusive=True,
    remote_dir="C:\\jenkins",
    boot_seconds=60.0,
    boot_timeout_seconds=600.0,
    drain_settle_seconds=5.0,
    drain_timeout_seconds=900.0,
    share=Share.ROTATE,
    of_hosts=True,
    types=(PricedType(instance_type="m", market=Market.SPOT, usd_per_hour=0.5, most_usd_per_hour=1.0, volume_usd_per_hour=0.1),),
)
FULL_MEMORY = with_tables(
    Memory(),
    sessions={
        "main": a_session(session="s1", since_at=1.5, restarted=True, busy={"a": ("job/a/1",)}, marked=("c",), suspects={"b": ("",)})
    },
    growths={"main/cpu": (Growth(steps=((0.0, 1), (60.0, 3))),)},
    idle_returns={"main/cpu": {"1": IdleReturns(times=(1.0, 0.5), jobs=(4.0, 0.0))}},
    windows={"main/cpu": a_window(opened_at=1.0, seen_at=2.0, peaks=((1.0, 3), (2.0, 1)), guessed=2.5, burst=_BURST, builds=2)},
    observations={"i-1": Observation(condition="idle", first_at=1.0, last_at=2.0, request_id="x", session="s", idle_before_at=0.5)},
    idle_since={"i-1": 7.0},
    trials={
        "pool/cpu": Trial(failures=2, since_at=7.0, failed_at=8.0, until_at=9.0, why="ü"),
        "boot/cpu": Trial(
            failures=3,
            since_at=1.0,
            failed_at=2.0,
            until_at=4.0,
            why="403",
            failed=("i-2",),
            version="7 with ami-2",
            said="no java",
            launch="l-1",
            outcomes={"i-2": False, "i-3": True},
            is_closed=True,
            wins=1,
            pauses=2,
        ),
    },
    capacity_delays={"cpu": CapacityDelay(asks=1.5, seconds=60.0, squares=3600.0, asked_at=9.0, since_at=8.0), "gpu": CapacityDelay()},
    booted=frozenset({"i-1"}),
    may_have_orders=True,
    definitions={"old": _LAST},
    left_since={"i-1": 2.0},
    hold_until=9.0,
    boots={"cpu": (1.0, 2.0)},
    starts={"cpu": (0.5,)},
    unstoppable=frozenset({"i-9"}),
    never_lent={"gpu": 1e9},
    hosts_off={"rocm-1": 1e9},
    month=a_month(
        name="2027-01",
        usd=1.25,
        metered_at=3.0,
        by_pool={"cpu": 0.75},
        parts=MonthParts(boot_usd=0.5, stopped_usd=0.25, disk_usd=0.3),
    ),
    day=Day(name="2027-01-15", metered_at=3.0, hours={"cpu": 2.5}),
    months=(a_month(name="2027-02", usd=0.5, metered_at=4.0),),
    days=(Day(name="2027-01-16", metered_at=4.0, hours={"cpu": 0.5}),),
    lately=(Spending(since_at=1.0, by_pool={"cpu": 0.25}),),
    volumes={"cpu": PoolVolumes(source="t 7", volumes=(Volume(device="/dev/xvda", gib=100.0, kind="gp3"), Volume(device="/dev/sdf")))},
    gone={"i-1": 1.0},
    gone_from={"i-1": "cpu"},
    requests={"r": 1.0},
    connected=frozenset({"i-1"}),
    free_nodes={"main/cpu-1": FREE},
    rations={
        "main/cpu": Ration(
            refused_at=(1.0,), until_at=2.0, seen_at=1.0, jobs=("job",), pools=("cpu",), won=(False, True), most=1, is_cut_short=True
        )
    },
    beside={"main": {"job": 1.0}},
    hand_outs={"main": (300.0,)},
    states={"i-1": InState(state="drains", since_at=1.0, pool="cpu")},
    looks={"main": Looks(at=2.0, blind=((0.5, 1.0),))},
    asked={"main/cpu-1/0/job/a/7": AskedRun(asked_at=1.0, seen_at=2.0, session="s", ended_at=1.0, over_at=2.0, waits_for_input=True)},
    failing={"uncordon main/cpu-1": Trial(failures=2, since_at=1.0, failed_at=2.0, until_at=302.0, why="403")},
    marks={"i-5": MonitorMark(since_at=1.0, words="disk full", at_once=True, is_counted=True)},
    most_marked={"main": MostMarked(since_at=1.0, words="clock", agents=(3, 4), seen_at=2.0, tried_at=3.0)},
    draining_since={"i-1": 5.0},
    stuck={"i-3": Stuck(since_at=1.0, tried_at=2.0, why="TerminateInstances: OperationNotPermitted")},
    ending=frozenset({"i-4"}),
    missing={"i-4": Missing(since_at=1.0, asked_at=2.0)},
    terminated={"i-5": "Server.SpotInstanceTermination"},
    owed={"i-1": "operator"},
    proven={"cpu": "7 with ami-1"},
    started={"cpu": "7 with ami-1"},
    taken={"outdated/cpu": (1.0, 2.0)},
    kept=frozenset({"i-1"}),
    lost={
        "main job/a/7": LostBuild(
            controller="main",
            run="job/a/7",
            pool="cpu",
            node="cpu-1",
            instance_id="i-1",
            how="its instance ended",
            since_at=3.0,
            seen_at=2.0,
            lost_at=2.5,
            others=("item 5",),
            elsewhere=True,
        )
    },
    reruns={"main#17": RanAgain(run="job/a/6", times=1, on_demand=True, at=2.0)},
    left={"main job/a/5": LeftBuild(controller="main", run="job/a/5", why="a password", at=1.0)},
    spot_prices=SpotPrices(asked_at=5.0, usd_per_hour={"c5.large/us-west-2a/Linux/UNIX": 0.5}),
)
