"""Everybody who writes the record of an agent, two at a time: the second one acts in the instant before the first one writes."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from typing import Any

from autoscaler.control import registration
from autoscaler.control.apply import apply
from autoscaler.control.observe import observe
from autoscaler.domain.facts.fleet import Lending, Share, WarmPool
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import (
    Cordon,
    EndReservation,
    FinishStop,
    Forget,
    Lend,
    Plan,
    Reserve,
    ReserveDevice,
    Rotate,
    Start,
    Stop,
    TakeBack,
    Terminate,
    Uncordon,
)
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Record, RecordState
from autoscaler.domain.report.registration import Caller
from autoscaler.errors import AutoscalerError
from autoscaler_workbench.fakes.identity import TRUST
from autoscaler_workbench.fakes.world.ec2.region import ACCOUNT, AGENT_ROLE_ID
from support.builders import a_mark, a_pool, a_reservation
from support.busy import FIRM
from support.forks import in_a_child
from support.timeline import Day
from support.worlds import in_memory

MARK, EARLIER = a_mark(MarkClass.RETIRE, "now"), a_mark(MarkClass.RETIRE, "earlier")
WRITE = "state change_record"
Writer = Callable[[Day], None]
KEPT = WarmPool(min_agents=1, max_agents=2, max_age_seconds=36_000.0)


def a_day(**facts: Any) -> Day:
    quick = {"boot_seconds": 60.0, "queue_maturity_seconds": 0.0, "max_agents": 2, "offerings": (FIRM,)}
    day = Day(in_memory(a_pool("cpu", idle_seconds=36_000.0, lent_labels=frozenset({"plain"}), **(quick | facts)), seed=5))
    day.minutes(2).queue(1, seconds=60.0)
    return day


def an_agent(**facts: Any) -> Day:
    """One that is idle, and whose last request met some trouble."""
    day = (
        a_day(controllers=("main", "other"), share=Share.ROTATE)
        if facts.pop("rotates", False)
        else a_day(warm_pool=KEPT, lend=Lending.IDLE)
    )
    day.minutes(8)
    return changed(day, trouble="403 Forbidden", **facts)


def a_marked_agent(**facts: Any) -> Day:
    day = an_agent(**facts)
    day.jenkins.set_offline(record_of(day).node, EARLIER.text, "bot")
    return changed(day, cordon=EARLIER.text)


def a_reserved_agent() -> Day:
    """With one of its devices reserved, too."""
    now = an_agent().world.timeline.now
    kept = a_reservation("bob", since_at=now, until_at=now + 9000.0)
    return an_agent(reservation=kept, devices_for=(replace(kept, person="eve"),), lent_until=now + 900.0)


def an_instance_that_boots() -> Day:
    day = a_day()
    asks, day.world.ec2.on_running = day.world.ec2.on_running, lambda _: None
    day.minutes(2)
    day.world.ec2.on_running = asks
    return day


def a_stopped_agent() -> Day:
    day = an_agent()
    day.world.ec2.stop(instance_of(day).id)
    day.jenkins.delete_node(record_of(day).node)
    day.world.move_to(day.world.timeline.now + 300.0)
    return changed(day, state=RecordState.STOPPED, registered_at=None, labels=())


def an_agent_that_stops() -> Day:
    day = a_stopped_agent()
    return changed(day, state=RecordState.STOPPING)


def changed(day: Day, **facts: Any) -> Day:
    record = record_of(day)
    day.fleet.state.records[record.instance_id] = replace(record, **facts)
    return day


def record_of(day: Day) -> Record:
    [record] = day.fleet.state.records.values()
    return record


def instance_of(day: Day) -> Any:
    return day.world.ec2.instances[record_of(day).instance_id]


def registers(day: Day) -> None:
    """It asks who it is, as after a restart of its service."""
    caller = Caller(account=ACCOUNT, role_id=AGENT_ROLE_ID, session=instance_of(day).id)
    registration.register(day.fleet.ports, day.fleet.fleet, caller, TRUST)


def is_interrupted(day: Day) -> None:
    day.fleet.instance_events(instance_of(day), "interruption")


def takes(kind: Any, day: Day, **facts: Any) -> None:
    """Take one step in a pass of its own. A lease that another one has is over."""
    fleet, record = day.fleet, record_of(day)
    about = {
        "controller": "main",
        "pool": "cpu",
        "node": record.node,
        "instance_id": record.instance_id,
        "reason": Reason.MANUAL,
        "detail": "",
    }
    names = {field.name for field in fields(kind)}
    step = kind(**({name: value for name, value in about.items() if name in names} | facts))
    fleet.state.holder = None
    holder = f"pass {kind.__name__}"
    fleet.state.acquire(holder, now=day.world.timeline.now, until=day.world.timeline.now + 70.0)
    stored = fleet.state.read()
    snapshot = observe(fleet.ports, fleet.fleet, stored, fleet.invocation())
    plan = Plan(pass_id="p", taken_at=snapshot.taken_at, steps=(step,), held=(), memory=stored.memory, remember=True)
    apply(fleet.ports, fleet.fleet, snapshot, plan, fleet.invocation(), holder)


def of_a_person(day: Day) -> Any:
    return a_reservation("zoe", since_at=day.world.timeline.now, until_at=day.world.timeline.now + 900.0)


uncordons = partial(takes, Uncordon, mark=EARLIER)
takes_back, forgets = partial(takes, TakeBack), partial(takes, Forget)
terminates, stops = partial(takes, Terminate, mark=EARLIER), partial(takes, Stop, mark=EARLIER)
rotates = partial(takes, Rotate, mark=EARLIER, to="other")
finishes_a_stop = partial(takes, FinishStop)
terminates_unseen = partial(takes, Terminate, mark=None)


def cordons(day: Day) -> None:
    """By the labels first, on a Jenkins that may drop a build in the instant of the mark."""
    day.jenkins.version = "2.400"
    takes(Cordon, day, mark=MARK)


def lends(day: Day) -> None:
    takes(Lend, day, until_at=day.world.timeline.now + 600.0)


def reserves(day: Day) -> None:
    takes(Reserve, day, reservation=of_a_person(day), mark=a_mark(MarkClass.RESERVED), replaces=None, though_busy=True)


def reserves_a_device(day: Day) -> None:
    takes(ReserveDevice, day, reservation=of_a_person(day))


def ends_a_reservation(day: Day) -> None:
    takes(EndReservation, day, until_at=day.world.timeline.now)


def ends_one_of_a_device(day: Day) -> None:
    takes(EndReservation, day, until_at=day.world.timeline.now, person="eve")


def starts(day: Day) -> None:
    takes(Start, day, instance_ids=(record_of(day).instance_id,), keep_until=day.world.timeline.now + 60.0, otherwise=None)


def is_started_by_hand(day: Day) -> None:
    """A person starts it, and it asks who it is."""
    if instance_of(day).state == "stopped":
        day.world.ec2.start(instance_of(day).id)
        registers(day)


NAMES: dict[str, Writer] = {
    "registers": registers,
    "is interrupted": is_interrupted,
    "is cordoned": cordons,
    "is uncordoned": uncordons,
    "is lent": lends,
    "is taken back": takes_back,
    "is reserved": reserves,
    "a device is reserved": reserves_a_device,
    "its reservation ends": ends_a_reservation,
    "one of a device ends": ends_one_of_a_device,
    "is terminated": terminates,
    "is stopped": stops,
    "rotates": rotates,
    "its record is closed": forgets,
    "its stop is finished": finishes_a_stop,
    "is given up unseen": terminates_unseen,
    "is started": starts,
    "is started by hand": is_started_by_hand,
}
SCENES: dict[str, tuple[Callable[[], Day], tuple[str, ...]]] = {
    "an idle agent": (
        an_agent,
        ("registers", "is interrupted", "is cordoned", "is lent", "is reserved", "a device is reserved", "its record is closed"),
    ),
    "a marked agent": (
        a_marked_agent,
        ("registers", "is interrupted", "is uncordoned", "a device is reserved", "is terminated", "is stopped"),
    ),
    "a reserved agent": (
        a_reserved_agent,
        ("registers", "is interrupted", "its reservation ends", "one of a device ends", "a device is reserved", "is taken back"),
    ),
    "an agent that rotates": (
        partial(a_marked_agent, rotates=True),
        ("registers", "is interrupted", "rotates", "is uncordoned", "a device is reserved", "is terminated"),
    ),
    "an instance that boots": (an_instance_that_boots, ("registers", "is interrupted", "is given up unseen")),
    "a stopped agent": (a_stopped_agent, ("is started", "is started by hand", "is given up unseen")),
    "an agent that stops": (an_agent_that_stops, ("its stop is finished", "is given up unseen", "its record is closed")),
}


def writes_of(day: Day, writer: Writer) -> int:
    """Count the writes of a writer that nobody disturbs."""

    def act() -> str:
        writes = []
        day.fleet.faults.meanwhile = lambda call: writes.append(call) if call == WRITE else None
        writer(day)
        return str(len(writes))

    return int(in_a_child(act))


def now_of(day: Day, before: Record) -> Record:
    return day.fleet.state.records.get(before.instance_id) or replace(before, state=RecordState.GONE)


def different(one: Record, other: Record) -> list[str]:
    return [field.name for field in fields(Record) if field.compare and getattr(one, field.name) != getattr(other, field.name)]


def meet(day: Day, first: Writer, at: int, second: Writer) -> str:
    """Let the second one act before a write of the first one; say what of the second one's is lost then."""

    def act() -> str:
        calls, noted = [0], []

        def meanwhile(call: str) -> None:
            if call != WRITE:
                return
            calls[0] += 1
            if calls[0] == at:
                day.fleet.faults.meanwhile = lambda _: None
                before = record_of(day)
                second(day)
                noted.extend((before, now_of(day, before)))

        day.fleet.faults.meanwhile = meanwhile
        with suppress(AutoscalerError):
            first(day)
        before, after = noted
        end = now_of(day, before)
        lost = [name for name in different(before, after) if getattr(end, name) == getattr(before, name)]
        if {"reservation", "devices_for"} & {*different(before, after)} and end.state is not after.state:
            return f"{end.state} under a person who has it since"
        return f"lost {lost}" if lost else "fine"

    return in_a_child(act)


def answer(scene: str) -> dict[str, Any]:
    """Try every pair of writers of a scene, as a server of `support.forks`."""
    make, names = SCENES[scene]
    day = make()
    alone = {name: writes_of(day, NAMES[name]) for name in names}
    tried = [(one, at, other) for one in names for at in range(1, alone[one] + 1) for other in names if other != one]
    said = {f"{one}, before its write {at}: {other}": meet(day, NAMES[one], at, NAMES[other]) for one, at, other in tried}
    return {
        "tried": len(tried),
        "idle": [name for name, count in alone.items() if not count],
        "broken": {case: what for case, what in said.items() if what != "fine"},
    }
