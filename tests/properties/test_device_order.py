"""Who gets which devices next: examples, and what holds for any queue."""

from hypothesis import given
from hypothesis import strategies as st

from gpu_lease.order import can_ever, places
from gpu_lease.records import Device, Request, Ticket

NAVI = [Device("a", "gfx1030", "amd"), Device("b", "gfx1030", "amd")]
CARDS = [*NAVI, Device("c", "gfx90a", "amd"), Device("d", "sm_86", "nvidia"), Device("e", "sm_90", "nvidia")]


def ticket(number, count=1, kind=""):
    return Ticket(number, Request(count, kind))


def test_one_who_waits_for_two_is_not_overtaken_by_those_who_want_one():
    assert places([ticket(1, 2), ticket(2), ticket(3)], NAVI[:1]) == {}
    assert places([ticket(1, 2), ticket(2)], NAVI) == {1: ("a", "b")}


def test_one_who_waits_keeps_back_only_what_he_could_use():
    assert places([ticket(1, 1, "gfx1030"), ticket(2)], CARDS[2:3]) == {2: ("c",)}
    assert places([ticket(1, 3, "amd"), ticket(2, 1, "nvidia"), ticket(3, 1, "amd")], [*NAVI, CARDS[3]]) == {2: ("d",)}


def test_the_devices_of_one_are_of_one_vendor():
    assert places([ticket(1, 2)], [CARDS[0], *CARDS[3:]]) == {1: ("d", "e")}
    assert places([ticket(1, 2)], [CARDS[0], CARDS[3]]) == {}


def test_the_number_decides_not_the_order_in_which_files_are_read():
    assert places([ticket(2), ticket(1)], NAVI[:1]) == {1: ("a",)}


requests = st.builds(Request, st.integers(1, 4), st.sampled_from(["", "amd", "nvidia", "gfx1030", "gfx90a", "sm_86", "no"]))
queues = st.lists(requests, max_size=8).map(lambda all_: [Ticket(number, request) for number, request in enumerate(all_)])
free = st.lists(st.sampled_from(CARDS), unique=True)


@given(queues, free)
def test_each_gets_what_he_asked_for_and_no_device_is_given_twice(queue, devices):
    given_, by_id = places(queue, devices), {device.id: device for device in devices}
    taken = [name for names in given_.values() for name in names]
    assert len(set(taken)) == len(taken)
    for number, names in given_.items():
        request = queue[number].request
        assert len(names) == request.count
        assert all(by_id[name].is_a(request.kind) for name in names)
        assert len({by_id[name].vendor for name in names}) == 1


@given(queues, free)
def test_nobody_gets_less_because_of_one_who_came_later(queue, devices):
    for length in range(len(queue)):
        assert places(queue[:length], devices) == {n: names for n, names in places(queue, devices).items() if n < length}


@given(queues, free)
def test_the_first_who_can_be_served_is(queue, devices):
    given_ = places(queue, devices)
    for one in queue[:1]:
        assert (one.number in given_) == can_ever(one.request.count, one.request.kind, devices)


@given(queues, free)
def test_one_who_is_not_served_is_left_what_he_could_use(queue, devices):
    given_ = places(queue, devices)
    for one in queue:
        before = [other for other in queue if other.number < one.number]
        taken_before = {name for number, names in places(before, devices).items() for name in names}
        later = {name for number, names in given_.items() if number > one.number for name in names}
        if one.number not in given_:
            assert not any(device.is_a(one.request.kind) for device in devices if device.id in later and device.id not in taken_before)
