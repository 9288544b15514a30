"""Who gets which devices next: in the order of the tickets, and nothing overtakes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .records import Device, Ticket


def places(waiting: Iterable[Ticket], free: Sequence[Device]) -> dict[int, tuple[str, ...]]:
    """Give free devices to the waiting tickets, by number.

    A ticket that cannot be served yet keeps back every free device that it could use, so that one who asks for four is not overtaken
    for ever by those who ask for one. All devices of a ticket are of one vendor: no program could use them together.
    """
    left = list(free)
    given = {}
    for ticket in sorted(waiting, key=lambda ticket: ticket.number):
        wanted = [device for device in left if device.is_a(ticket.request.kind)]
        taken = _of_one_vendor(wanted, ticket.request.count)
        if taken:
            given[ticket.number] = tuple(device.id for device in taken)
        gone = taken or wanted
        left = [device for device in left if device not in gone]
    return given


def can_ever(count: int, kind: str, devices: Sequence[Device]) -> bool:
    """Whether the machine has so many devices at all."""
    return bool(_of_one_vendor([device for device in devices if device.is_a(kind)], count))


def _of_one_vendor(devices: Sequence[Device], count: int) -> list[Device]:
    for vendor in dict.fromkeys(device.vendor for device in devices):
        same = [device for device in devices if device.vendor == vendor]
        if len(same) >= count:
            return same[:count]
    return []
