"""The doors through which facts go: the passes on a world in memory, for some minutes, and everything of it that can be seen outside.

What is saved is not seen: a fact that is merely carried along would differ there.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, is_dataclass, replace
from typing import Any

from autoscaler.control import measure, observe, operate, passes, statistics
from autoscaler.control.outcomes import merged_json
from autoscaler.domain.facts.orders import CloseBreaker, DrainSome, LaunchSome, Reserve
from autoscaler.domain.facts.started_builds import Until
from autoscaler.domain.report.costs import By
from autoscaler.domain.report.ordered import Access
from autoscaler.domain.run_orders.choice import Asked, OrderRuns
from autoscaler.domain.run_orders.criteria import read_condition
from autoscaler.errors import AutoscalerError
from autoscaler_workbench.simulate.drive import InMemory
from seams.altering import Reading

MINUTE, HOUR = 60.0, 3600.0
_CONDITIONS = ("arch=x86_64", "vcpu>=4", "memory_gib>=8", "gpus>=1", "gpu=T4")
# Own state, written back: nobody outside sees it.
_UNSEEN = {"state", "lease", "rate_limiter", "jobs", "costs", "run_orders", "reruns"}
_PORTS = ("compute", "images", "state", "rate_limiter", "lease", "metrics", "history", "jobs", "costs", "notifier", "reruns")
_PORTS_THAT_MAY_BE_MISSING = ("run_orders", "telemetry", "slots")

Seen = dict[str, list[str]]


class _Port:
    """A port whose answers are read through ``reading``, and whose calls are noted."""

    def __init__(self, port: Any, name: str, reading: Reading, note: Callable[[str], None]) -> None:
        self._port, self._called, self._reading, self._note = port, name, reading, note

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._port, name)
        if not callable(attribute):
            return attribute

        def call(*given: Any, **named: Any) -> Any:
            given = tuple(list(one) if hasattr(one, "__next__") else one for one in given)
            if self._called not in _UNSEEN:
                self._note(f"{self._called}.{name} {_text(given)} {_text(named)}")
            return self._reading(f"{self._called}.{name}", attribute(*given, **named))

        return call


def live(fleet: InMemory, minutes: int, reading: Reading, doors: tuple[str, ...], door: list[str] | None = None) -> Seen:
    """Live some minutes, each fact read through ``reading``; return what was seen of each door. ``door``: holds the one that is open."""
    seen: Seen = defaultdict(list)
    door = ["register_agent"] if door is None else door

    def note(what: str) -> None:
        seen[door[0]].append(what)

    fleet.fleet = reading("fleet", fleet.fleet)
    fleet.thresholds = reading("thresholds", fleet.thresholds)
    fleet.read_in_process()
    ports = fleet.ports
    wrapped = {name: _Port(getattr(ports, name), name, reading, note) for name in _PORTS}
    wrapped |= {name: _Port(port, name, reading, note) for name in _PORTS_THAT_MAY_BE_MISSING if (port := getattr(ports, name))}
    fleet.ports = replace(
        ports,
        controllers=tuple(_Port(one, "controller", reading, note) for one in ports.controllers),
        builds={name: _Port(one, "builds", reading, note) for name, one in ports.builds.items()},
        log=lambda event, **facts: note(f"log {event} {_text(facts)}"),
        **wrapped,
    )
    for module in (passes, operate, statistics):
        module.observe = _read_through(observe.observe, reading)
    measure.observe_without_instances = _read_through(observe.observe_without_instances, reading)
    asks = fleet.agents._ask

    def asked(machine: Any, connected: tuple[str, ...]) -> Any:
        door[0] = "register_agent"
        answer = asks(machine, connected)
        note(f"answered {machine.id} {answer}")
        return answer

    fleet.agents._ask = asked
    for _ in range(minutes):
        for name in ("publish_metrics", "scale_up", "scale_down"):
            door[0] = name
            if name in doors:
                answer(note, getattr(fleet, name))
        door[0] = "register_agent"
        if "register_agent" in doors:
            fleet.world.move_to(fleet.world.timeline.now + MINUTE)
    for name, act in (("operate", _ask), ("order", _order)):
        if name in doors:
            door[0] = name
            act(fleet, note)
    return seen


def _read_through(function: Callable[..., Any], reading: Reading) -> Callable[..., Any]:
    return lambda *given, **named: reading("snapshot", function(*given, **named))


def _ask(fleet: InMemory, note: Callable[[str], None]) -> None:
    """Ask what people ask."""
    ports, settings = fleet.ports, fleet.fleet
    invocation = fleet.invocation()
    subjects = [*list(settings.pools)[:3], *[record.node for record in fleet.state.records.values() if record.node][:3]]
    subjects += [build.job for controller in fleet.world.controllers.values() for build in controller.builds[-2:]]
    answer(
        note,
        lambda: asdict(operate.status(ports, settings, invocation)),
        lambda: [asdict(one) for one in operate.agents(ports, settings, invocation)],
        lambda: [asdict(one) for one in operate.queue(ports, settings, invocation)],
        lambda: merged_json(operate.plan(ports, settings, invocation)),
        lambda: [asdict(one) for one in operate.reservations(ports, settings, invocation, Access(allowed=True, templates=frozenset()))],
        lambda: asdict(statistics.list_jobs(ports, "*", 50)),
        lambda: asdict(statistics.list_needs(ports, settings, "*", 50)),
        lambda: asdict(statistics.list_month(ports, settings, None, By.JOB)),
        lambda: [asdict(one) for one in operate.list_runs(ports, settings, 20, None)],
        lambda: operate.as_json(ports.state.read().overrides.at(ports.clock())),
        *((lambda subject=subject: operate.why(ports, settings, invocation, subject)) for subject in subjects),
        *((lambda subject=subject: [asdict(one) for one in statistics.eta(ports, settings, invocation, subject)]) for subject in subjects),
    )


def _order(fleet: InMemory, note: Callable[[str], None]) -> None:
    """Order what people order, and carry it on."""
    ports, settings, invocation = fleet.ports, fleet.fleet, replace(fleet.invocation(), by_a_person=True)
    one, *_ = settings.pools
    by = {"reason": "a test hangs", "request_id": "r-1"}
    reserve = {"controller": None, "seconds": HOUR, "person": "alice", "by": "ada"} | by
    runs = [Asked(job="job", runs=2, expression=None, conditions=(read_condition(text),), vary=None) for text in _CONDITIONS]

    def carry_out(order: Any) -> Any:
        return merged_json(passes.carry_out(ports, settings, invocation, order))

    orders = {"parameters": (), "until": Until.EACH, "resubmit": 1, "replace": None, "by": "alice", "reason": ""}
    answer(
        note,
        lambda: carry_out(LaunchSome(pool=one, count=1, controller=None, keep_seconds=HOUR, **by | {"request_id": "r-2"})),
        lambda: carry_out(Reserve(target=one, **reserve)),
        lambda: carry_out(DrainSome(pool=one, count=1, controller=None, **by)),
        *(lambda pool=pool: carry_out(CloseBreaker(pool=pool)) for pool in settings.pools),
        *(
            lambda number=number, asked=asked: operate.order_runs(
                ports, settings, invocation, OrderRuns(asked=asked, request_id=f"of-runs-{number}", **orders)
            )
            for number, asked in enumerate(runs)
        ),
        lambda: operate.as_json(operate.change(ports, invocation, lambda overrides: replace(overrides, holds=()))),
        fleet.scale_up,
        fleet.scale_down,
    )


def answer(note: Callable[[str], None], *questions: Callable[[], Any]) -> None:
    """Note the answer of each, or what is refused."""
    for question in questions:
        try:
            note(_text(question()))
        except AutoscalerError as error:
            note(f"{type(error).__name__}: {error}")


def _text(value: Any) -> str:
    """Write a value so that equal ones are written alike: sets have no order."""
    if is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__name__}({', '.join(f'{f.name}={_text(getattr(value, f.name))}' for f in fields(value))})"
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(_text(element) for element in value)) + "}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_text(element)}" for key, element in value.items()) + "}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_text(element) for element in value) + "]"
    return repr(value)
