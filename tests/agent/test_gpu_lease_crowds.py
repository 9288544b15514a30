"""Many who wait at once, and a user who opens connections without end: status answers, and others are heard."""

import os
import socket
import threading
import time
from types import SimpleNamespace

import pytest

from gpu_lease import life, report, supervisor
from gpu_lease.client import status
from gpu_lease.errors import NotPossibleError
from gpu_lease.records import Device, Lease, Process, Request, Ticket
from gpu_lease.state import State
from gpu_lease.wire import Connection

CARD = Device("GPU-1", "gfx1030", "amd")
WAITING = 60


@pytest.fixture
def a_state(tmp_path):
    """Make the state as a process has it, whose locks go with it."""
    states = []
    yield lambda: states.append(State(tmp_path)) or states[-1]
    for state in states:
        end(state)


def end(state):
    while state._held:
        os.close(state._held.pop())


def a_machine(state):
    """A machine of files alone: nothing runs there."""
    return SimpleNamespace(
        alone=state.alone,
        alone_within=state.alone_within,
        take_place=state.take_place,
        tickets=state.tickets,
        leases=state.leases,
        is_alive=state.is_alive,
        cgroups=lambda: (),
        devices=lambda: [CARD],
        in_use=lambda _devices: {},
        now=time.time,
        groups=SimpleNamespace(numbers=lambda: ()),
        state=state,
    )


@pytest.fixture
def crowd(a_state):
    """A card that is held, and sixty who wait for it."""
    machine = a_machine(a_state())
    for number in range(1, 2 + WAITING):
        machine.state.add_ticket(Ticket(number, Request(1, "", 1000, "train"), time.time()))
    machine.state.write_lease(Lease(Ticket(1, Request(1, "", 1000, "train"), time.time()), (CARD.id,), time.time(), Process(1, 1)))
    return machine


def test_status_answers_at_once_though_those_who_wait_keep_the_lock(crowd):
    over = threading.Event()

    def holds():
        with crowd.alone():
            held.set()
            over.wait(5.0)

    held, holder = threading.Event(), threading.Thread(target=holds)
    holder.start()
    held.wait()
    began = time.monotonic()
    seen = report.status(crowd)
    took = time.monotonic() - began
    over.set()
    holder.join()
    assert took < 1.0
    assert (len(seen["waiting"]), seen["leases"], [device["state"] for device in seen["devices"]]) == (WAITING, 1, ["held"])


def test_what_is_removed_while_somebody_looks_is_left_out(crowd, monkeypatch):
    numbers = crowd.state._numbers
    monkeypatch.setattr(crowd.state, "_numbers", lambda name: [*numbers(name), 999])
    assert (len(crowd.tickets()), len(crowd.leases())) == (1 + WAITING, 1)


def test_who_waits_far_behind_looks_more_seldom(crowd):
    pauses = {}

    class Client(SimpleNamespace):
        def is_gone(self):
            return self.number in pauses

        def pause(self, seconds):
            pauses[self.number] = seconds

    crowd.device_is_locked = lambda _device: False
    for ticket in crowd.tickets()[1:]:
        life._waited_for(crowd, Client(number=ticket.number, tell_waiting=lambda _ahead: None), ticket)
    assert pauses[2] == pauses[2 + life.LOOK_OFTEN] == life.LOOK_SECONDS
    assert pauses[1 + WAITING] == life.BUSY_SECONDS
    assert sum(1 / seconds for seconds in pauses.values()) < 40, "looks a second of all of them; 120 before"


def test_a_user_has_a_share_of_the_connections_and_others_have_theirs(a_state):
    states = [a_state() for _ in range(5)]
    assert [state.take_place(1000, 3) for state in states] == [True, True, True, False, False]
    assert states[4].take_place(1001, 3)
    end(states[1])
    assert states[4].take_place(1000, 3)


@pytest.mark.parametrize(("uid", "is_heard"), [(1000, False), (1001, True), (0, True)], ids=["his share is taken", "another user", "root"])
def test_whoever_has_his_share_is_told_so_at_once_and_others_are_heard(crowd, a_state, tmp_path, monkeypatch, uid, is_heard):
    taken = [a_state() for _ in range(supervisor.CONNECTIONS_OF_A_USER)]
    assert all(state.take_place(1000, supervisor.CONNECTIONS_OF_A_USER) for state in taken)
    monkeypatch.setattr("gpu_lease.wire.Connection.peer", lambda _self: SimpleNamespace(pid=1, uid=uid))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    serving = threading.Thread(target=supervisor.served, args=(theirs, crowd))
    monkeypatch.setattr("gpu_lease.client.connected", lambda _path: Connection(ours))
    serving.start()
    try:
        if is_heard:
            assert len(status(tmp_path / "socket")["waiting"]) == WAITING
        else:
            with pytest.raises(NotPossibleError, match="128 connections open, which is a user's share"):
                status(tmp_path / "socket")
    finally:
        theirs.close()
        ours.close()
        serving.join(timeout=5)
