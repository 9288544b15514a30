"""One machine of a pool that serves two controllers at once, as both show it."""

from dataclasses import replace

from autoscaler.domain import decide
from autoscaler.domain.facts.fleet import Share
from autoscaler.domain.facts.snapshot import Binding
from autoscaler.domain.facts.telemetry import Device, Devices
from autoscaler.domain.learn import assess
from autoscaler.domain.situation.supply import free_executors
from support.builders import (
    LONG_AGO,
    NOW,
    a_build,
    a_fleet,
    a_look,
    a_memory,
    a_node,
    a_pool,
    a_record,
    a_session,
    a_snapshot,
    a_view,
    a_window,
    an_instance,
)

NAME = "gpu-1"
POOL = a_pool("gpu", controllers=("main", "other"), share=Share.COOPERATIVE, executors=4, idle_seconds=600.0)
SESSIONS = {name: a_session() for name in POOL.controllers}
WINDOWS = {f"{name}/gpu": a_window(peaks=((NOW - 60, 0),)) for name in POOL.controllers}
DRAINED = {"i-1": a_look("drained", seconds_ago=400.0), "i-1@other": a_look("drained", seconds_ago=400.0)}


def a_side(controller):
    name = "i-1" if controller == "main" else f"i-1@{controller}"
    facts = {} if controller == "main" else {"launch": "", "usd_per_hour": 0.0, "rotated_at": LONG_AGO}
    return replace(a_record(name, pool="gpu", node=NAME), bindings=(Binding(controller=controller, node=NAME),), **facts)


def gpu_node(builds=0, elapsed=100.0):
    there = tuple(a_build(f"job-{n}", key=f"job-{n}/0", elapsed_seconds=elapsed) for n in range(builds))
    return a_node(NAME, "gpu", "autoscaler-fleet-f", builds=there, executors=4)


def seen(main, other, *, records=None, items=(), looks=None, **facts):
    """What both controllers show of the machine; None: no node."""
    views = [
        a_view(*([node] if node else []), name=name, **({"items": items} if name == "main" else {}))
        for name, node in zip(POOL.controllers, (main, other), strict=True)
    ]
    memory = a_memory(sessions=SESSIONS, windows=WINDOWS, observations=looks or {})
    records = (a_side("main"), a_side("other")) if records is None else records
    return a_snapshot(*views, **({"records": records, "instances": (an_instance("i-1", pool="gpu"),), "memory": memory} | facts))


def free(snapshot):
    situation = assess(snapshot, a_fleet(POOL))
    return {agent.record.controller: free_executors(situation, agent) for agent in situation.agents}


def told(*states, seconds_ago=60.0):
    devices = tuple(Device(id=str(n), kind="gfx1030", state=state) for n, state in enumerate(states))
    return {"i-1": Devices(told_at=NOW - seconds_ago, devices=devices)}


def down(snapshot):
    return decide.scale_down(snapshot, a_fleet(POOL))


def steps(plan, kind):
    return [step for step in plan.steps if isinstance(step, kind)]
