"""Builders of domain values with defaults that no test depends on."""

from dataclasses import replace
from typing import Any

from autoscaler.config.hosts import FREE
from autoscaler.domain.facts.fleet import Fleet, Host, Limits, Market, Offering, Platform, Pool, Quarantine
from autoscaler.domain.facts.memory import Burst, ControllerSession, Learned, Memory, Month, Observation, Sighting, Trial, Window
from autoscaler.domain.facts.metering import month_name
from autoscaler.domain.facts.nodes import Mark, MarkClass, beacon_specs
from autoscaler.domain.facts.snapshot import (
    Binding,
    Build,
    ControllerView,
    Instance,
    InstanceState,
    Intent,
    IntentState,
    Node,
    OfflineCause,
    QueueItem,
    Record,
    RecordState,
    Reservation,
    Snapshot,
    Wait,
)
from autoscaler.domain.facts.telemetry import BuildUse, GpuUse, Telemetry
from autoscaler.domain.forecast.durations import job_key
from support.remembered import with_tables

NOW = 1_800_000_000.0
GIB = 2.0**30
LONG_AGO = NOW - 100_000.0
MONTH = month_name(NOW)


def an_offering(instance_type: str = "c5.18xlarge", **facts: Any) -> Offering:
    given: dict[str, Any] = {"subnet": "", "market": Market.ON_DEMAND, "usd_per_hour": 3.0}
    return Offering(instance_type=instance_type, **(given | facts))


def a_pool(name: str = "cpu", **facts: Any) -> Pool:
    given: dict[str, Any] = {
        "labels": frozenset({name}),
        "controllers": ("main",),
        "executors": 1,
        "platform": Platform.LINUX,
        "launch_template": name,
        "launch_template_version": "$Default",
        "offerings": (an_offering(),),
        "max_agents": 10,
        "min_agents": 0,
        "warm_executors": 0,
        "exclusive": True,
        "remote_dir": "/home/jenkins",
        "queue_maturity_seconds": 30.0,
        "max_wait_seconds": 1800.0,
        "wait_usd_per_hour": 20.0,
        "boot_seconds": 180.0,
        "boot_timeout_seconds": 900.0,
        "max_idle_seconds": 7200.0,
        "idle_seconds": None,
        "drain_settle_seconds": 5.0,
        "spot_patience_seconds": 180.0,
    }
    return Pool(name=name, **(given | facts))


def a_pool_of_hosts(name: str = "rocm", **facts: Any) -> Pool:
    return a_pool(name, **({"launch_template": "", "offerings": FREE, "of_hosts": True, "quarantine": Quarantine.KEEP} | facts))


def a_host(name: str = "rocm-1", pool: str = "rocm", **facts: Any) -> Host:
    return Host(name=name, pool=pool, **({"role_id": f"AROAHOST{name.upper()}"} | facts))


def a_fleet(*pools: Pool, hosts: tuple[Host, ...] = (), **limits: Any) -> Fleet:
    pools = pools or (a_pool(),)
    given: dict[str, Any] = {"max_agents": 100, "max_launches_per_hour": 100, "max_usd_per_hour": 1e6, "max_usd_per_month": 1e9}
    controllers = tuple(dict.fromkeys(c for pool in pools for c in pool.controllers))
    named = {pool.name: pool for pool in pools}
    allowed = Limits(**(given | limits))
    return Fleet(name="f", limits=allowed, controllers=controllers, pools=named, hosts={host.name: host for host in hosts})


def an_item(item_id: int = 1, *, label: str | None = None, why: Wait | None = None, **facts: Any) -> QueueItem:
    """A starved item; ``label`` alone: a freestyle job that asks for it."""
    given: dict[str, Any] = {
        "job": f"job-{item_id}",
        "run": "",
        "label": label,
        "labelless": False,
        "wait": why or Wait(for_executor=True, label=label),
        "buildable": True,
        "waiting_seconds": 120.0,
    }
    return QueueItem(id=item_id, **(given | facts))


def a_build(job: str = "job", **facts: Any) -> Build:
    given: dict[str, Any] = {"key": f"{job}/0", "run": f"job/{job}/1", "elapsed_seconds": None, "estimate_seconds": None}
    return Build(job=job, **(given | facts))


def a_node(name: str, *labels: str, builds: tuple[Build, ...] = (), **facts: Any) -> Node:
    given: dict[str, Any] = {
        "labels": frozenset((name, *labels)),
        "executors": 1,
        "offline": False,
        "temporarily_offline": False,
        "cause": OfflineCause.NONE,
        "reason": "",
        "description": "",
        "idle": not builds,
        "builds": builds,
        "agent": True,
    }
    return Node(name=name, **(given | facts))


def a_mark(kind: MarkClass = MarkClass.RETIRE, pass_id: str = "p") -> Mark:
    return Mark(fleet="f", kind=kind, pass_id=pass_id)


def cordoned(node: Node, mark: Mark | None = None) -> Node:
    text = (mark or a_mark()).text
    return replace(node, offline=True, temporarily_offline=True, cause=OfflineCause.PERSON, reason=text)


def a_view(*nodes: Node, items: tuple[QueueItem, ...] = (), **facts: Any) -> ControllerView:
    """A complete view; ``items`` next first. The beacon is there."""
    beacon = a_node("autoscaler-beacon-f", offline=True)
    given: dict[str, Any] = {
        "name": "main",
        "problem": None,
        "session": "s1",
        "quieting_down": False,
        "items": items,
        "nodes": (beacon, *nodes),
        "unread": frozenset(),
        "set_aside": (),
        "response_seconds": 0.1,
    }
    return ControllerView(**(given | facts))


def a_record(
    instance_id: str = "i-1", *, pool: str = "cpu", controller: str = "main", node: str | None = None, life: int = 0, **facts: Any
) -> Record:
    """A registered record with a node, a requested one without."""
    bindings = (Binding(controller=controller, node=node, life=life),)
    given: dict[str, Any] = {
        "state": RecordState.REGISTERED if node else RecordState.REQUESTED,
        "launch": "l-1",
        "instance_type": "c5.18xlarge",
        "usd_per_hour": 3.0,
        "launched_at": LONG_AGO if node else NOW - 10.0,
        "registered_at": LONG_AGO + 60.0 if node else None,
        "keep_until": 0.0,
        "changed_at": LONG_AGO,
    }
    return Record(instance_id=instance_id, pool=pool, bindings=bindings, **(given | facts))


def a_reservation(person: str = "alice", **facts: Any) -> Reservation:
    """A reservation of which an hour is left."""
    given: dict[str, Any] = {"reason": "a test hangs", "by": "ada", "since_at": NOW - 600.0, "until_at": NOW + 3600.0, "request": "r-1"}
    return Reservation(person=person, **(given | facts))


def an_instance(instance_id: str = "i-1", *, pool: str = "cpu", **facts: Any) -> Instance:
    given: dict[str, Any] = {
        "state": InstanceState.RUNNING,
        "controller": "main",
        "launch": "l-1",
        "instance_type": "c5.18xlarge",
        "market": "on-demand",
        "launched_at": LONG_AGO,
    }
    return Instance(id=instance_id, pool=pool, **(given | facts))


def an_intent(intent_id: str = "l-9", *, pool: str = "cpu", count: int = 1, **facts: Any) -> Intent:
    given: dict[str, Any] = {
        "state": IntentState.SENT,
        "controller": "main",
        "usd_per_hour": 3.0,
        "request": "{}",
        "created_at": NOW - 30.0,
        "keep_until": 0.0,
        "instances": (),
        "empty_look_at": None,
    }
    return Intent(id=intent_id, pool=pool, count=count, **(given | facts))


def a_memory(**facts: Any) -> Memory:
    """A memory of a controller long known, and windows that nothing was needed in."""
    given: dict[str, Any] = {"sessions": {"main": a_session()}}
    return with_tables(Memory(), **(given | facts))


def a_trial(seconds: float = 60.0, **facts: Any) -> Trial:
    """Something that failed a minute ago, and is tried again in so many seconds, one at a time."""
    given: dict[str, Any] = {
        "failures": 1,
        "since_at": NOW - 60.0,
        "failed_at": NOW - 60.0,
        "why": "EC2 answered InsufficientInstanceCapacity",
        "is_closed": True,
    }
    return Trial(until_at=NOW + seconds, **(given | facts))


def boots_failed(seconds: float = 60.0, **facts: Any) -> Trial:
    """Three boots that failed in a row."""
    outcomes = dict.fromkeys(("i-7", "i-8", "i-9"), False)
    return a_trial(seconds, **({"failures": 3, "pauses": 1, "why": "", "outcomes": outcomes} | facts))


def a_session(**facts: Any) -> ControllerSession:
    """A session of a controller that is long known."""
    return ControllerSession(**({"session": "s1", "since_at": LONG_AGO} | facts))


def a_window(**facts: Any) -> Window:
    """A window that has been open for long; nothing was needed in it."""
    return Window(**({"opened_at": LONG_AGO, "seen_at": NOW - 60, "peaks": ()} | facts))


def a_learned(**facts: Any) -> Learned:
    """What was learned on a controller: nothing, but for this."""
    return Learned(**facts)


def key_of(pool: str, job: str = "") -> str:
    """Under which a job's durations in a pool are learned, or those of all its jobs."""
    return job_key(job, pool)


def a_sighting(**facts: Any) -> Sighting:
    """A build, as the last look saw it."""
    return Sighting(**facts)


def a_month(**facts: Any) -> Month:
    """What a month has cost so far."""
    return Month(**facts)


def an_empty_window(*, most: int = 0, pool: str = "cpu", burst: Burst | None = None) -> dict[str, Window]:
    """A window that has been open for long, in which ``most`` agents were needed at once."""
    return {f"main/{pool}": a_window(peaks=((NOW - 60, most),), burst=burst)}


def a_look(condition: str, *, seconds_ago: float = 120.0, **facts: Any) -> Observation:
    given: dict[str, Any] = {"last_at": NOW - 60.0, "request_id": "earlier", "session": "s1"}
    return Observation(condition=condition, first_at=NOW - seconds_ago, **(given | facts))


def a_snapshot(*views: ControllerView, **facts: Any) -> Snapshot:
    """A snapshot; the instances of all records run unless told otherwise."""
    views = views or (a_view(),)
    records: tuple[Record, ...] = facts.get("records", ())
    given: dict[str, Any] = {
        "taken_at": NOW,
        "pass_id": "p",
        "request_id": "now",
        "controllers": {view.name: view for view in views},
        "instances": tuple(an_instance(r.instance_id, pool=r.pool, controller=r.controller) for r in records),
        "fates": {},
        "records": records,
        "intents": (),
        "memory": a_memory(),
        "learned": {view.name: Learned() for view in views},
    }
    return Snapshot(**(given | facts))


def beacons(fleet: Fleet, controller: str = "main") -> tuple[Node, ...]:
    """The beacons of a controller."""
    return tuple(a_node(spec.name, *spec.labels, offline=True) for spec in beacon_specs(fleet, controller))


def with_beacons(snapshot: Snapshot, fleet: Fleet) -> Snapshot:
    """The same snapshot with all beacons of the fleet on each controller that has the first one."""
    return replace(snapshot, controllers={name: _with_beacons(view, fleet) for name, view in snapshot.controllers.items()})


def _with_beacons(view: ControllerView, fleet: Fleet) -> ControllerView:
    names = {node.name for node in view.nodes}
    missing = (node for node in beacons(fleet, view.name) if fleet.beacon in names and node.name not in names)
    return replace(view, nodes=(*view.nodes, *missing))


def an_agent(number: int = 1, *, pool: str = "cpu", builds: tuple[Build, ...] = (), executors: int = 1) -> tuple[Record, Node]:
    """A ready agent: its record and its node."""
    name = f"{pool}-{number}"
    node = a_node(name, pool, "autoscaler-fleet-f", builds=builds, executors=executors)
    return a_record(f"i-{number}", pool=pool, node=name), node


def a_gpu_use(**facts: Any) -> GpuUse:
    return GpuUse(**({"memory": 16.0 * GIB, "used": GIB, "use": 40.0} | facts))


def a_build_use(job: str = "linux-cpu", number: int = 7, **facts: Any) -> BuildUse:
    """What a build that runs on the first executor of agent cpu-1 has used."""
    given = {"node": "cpu-1", "executor": "0", "run": f"job/{job}/{number}", "seconds": 600.0, "memory": 2 * GIB, "cpu": 900.0}
    return BuildUse(**(given | {"alone": True} | facts))


def a_telemetry(**facts: Any) -> Telemetry:
    """A report of a machine of 16 GiB that is well."""
    given: dict[str, Any] = {
        "told_at": NOW,
        "seconds": 300.0,
        "cores": 4.0,
        "memory_total": 16.0 * GIB,
        "memory_available": 12.0 * GIB,
        "root_free": 40.0 * GIB,
        "root_total": 100.0 * GIB,
        "work_free": 60.0 * GIB,
        "work_total": 100.0 * GIB,
        "cpu_mean": 1.5,
    }
    return Telemetry(**(given | facts))
