"""Supervisors of gpu-lease, up to eight over four devices, killed between any two of their acts."""

import pytest

from gpu_lease import life, order
from support import lease_world
from support.lease_world import BrokenPromiseError, interleaving
from support.sampling import some

AT_ONCE, CHUNKS = 500, 200
CHOSEN = [int(chunk) for chunk in some(map(str, range(CHUNKS)), most=4)]


@pytest.mark.parametrize("chunk", CHOSEN)
def test_no_device_is_granted_twice_or_lost_and_nobody_overtakes(chunk, record_property):
    happened = sum((interleaving(seed) for seed in range(chunk * AT_ONCE, (chunk + 1) * AT_ONCE)), start=lease_world.Counter())
    record_property("counted", ("interleavings of supervisors of devices", AT_ONCE, AT_ONCE * CHUNKS // len(CHOSEN)))
    for what, count in happened.items():
        record_property("counted", (f"in them {what}", count))
    assert min(happened.values()) > AT_ONCE / 2, f"too little happens in these: {happened}"


def finished_without_a_look(machine, number):
    machine.kill_cgroup(number)
    machine.remove_lease(number)
    machine.remove_ticket(number)
    return True


def finished_without_a_kill(machine, number):
    if machine.is_populated(number) or not machine.remove_cgroup(number):
        return False
    machine.remove_lease(number)
    machine.remove_ticket(number)
    return True


def only_leases_are_tidied(machine):
    for lease in machine.leases():
        if not machine.is_alive(lease.number) and not life._goes_on(machine, lease):
            life._finish(machine, lease.number)


def all_tickets(machine):
    served = {lease.number for lease in machine.leases()}
    return [ticket for ticket in machine.tickets() if ticket.number not in served]


def whoever_comes(waiting, free):
    return {ticket.number: order.places([ticket], free).get(ticket.number) for ticket in waiting}


PLANTED = {
    "a device is free before its cgroup is empty": ({"_finish": finished_without_a_look}, "granted to|left behind"),
    "what a command leaves behind is not killed": ({"_finish": finished_without_a_kill}, "for ever"),
    "nobody finishes what a dead supervisor left": ({"tidy": lambda _machine: None}, "left behind|for ever"),
    "dead tickets stand in the queue": ({"tidy": only_leases_are_tidied, "waiting": all_tickets}, "for ever|left behind"),
    "a command dies with its supervisor": ({"_goes_on": lambda _machine, _lease: False}, "is killed"),
    "a command that ended holds on": ({"_goes_on": lambda _machine, lease: lease.command is not None}, "for ever|lost"),
    "the first who looks gets the device": ({"places": whoever_comes}, "overtakes"),
    "only the locks hold a device": (
        {"_free": lambda machine, devices: [device for device in devices if not machine.device_is_locked(device.id)]},
        "still runs with",
    ),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug, monkeypatch):
    put_in, broken = PLANTED[bug]
    for name, value in put_in.items():
        monkeypatch.setattr(life, name, value)
    monkeypatch.setattr(lease_world, "TOO_LONG", 5_000)
    with pytest.raises(BrokenPromiseError, match=broken):
        for seed in range(1000):
            interleaving(seed)


def test_what_the_driver_shows_in_use_would_be_noticed(monkeypatch):
    monkeypatch.setattr(lease_world.Supervisor, "in_use", lambda _self, _devices: {})
    with pytest.raises(BrokenPromiseError, match="the driver shows"):
        for seed in range(3000):
            interleaving(seed)
