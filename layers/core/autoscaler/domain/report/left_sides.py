"""Messages about machines that several controllers shared, of which one left the fleet file."""

from collections.abc import Iterator

from autoscaler.domain.facts.snapshot import Binding, Record
from autoscaler.domain.report.stopped import usd_per_hour_of
from autoscaler.domain.report.told import Seen
from autoscaler.domain.situation.rows import unseen_sides
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import counted, dollars, listed

_RUNBOOK = "operations.md#a-controller-that-shared-machines-left"
_NAMED = 10


def left_sides_seen(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name each controller that left the fleet file while machines are shared with it, or one leaves it for another controller."""
    by_controller: dict[str, list[tuple[Record, Binding]]] = {}
    machines = dict.fromkeys(record.machine for record in situation.snapshot.records) if situation.left_controllers else ()
    for machine in machines:
        for record, side in unseen_sides(situation, machine):
            if side not in record.leaves:
                continue  # it is told as any agent of a controller that left
            by_controller.setdefault(side.controller, []).append((record, side))
    for controller, sides in by_controller.items():
        yield f"left-side/{controller}", _seen(situation, controller, sides)


def _seen(situation: Situation, controller: str, sides: list[tuple[Record, Binding]]) -> Seen:
    machines = list(dict.fromkeys(record.machine for record, _ in sides))
    usd = sum(usd_per_hour_of(situation, record) for record in situation.snapshot.living if record.machine in machines)
    cost = f" They cost {dollars(usd)} an hour." if usd else ""
    text = (
        f"Nobody sees what runs there on {listed([side.node or '' for _, side in sides], _NAMED)}.{cost}\n"
        f"Their other sides take no builds and are drained; hosts go on. The machines stay until you put {controller} back, or confirm "
        f"that nothing of it runs there: autoscaler end {machines[0]} --yes"
    )
    title = f"{controller} left the fleet file, and {counted(len(machines), 'machine')} shared with it stay"
    return Seen(title, text, _RUNBOOK, f"autoscaler why {machines[0]}", daily=True)
