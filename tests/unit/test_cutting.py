"""The harness that cuts functions off: which cases there are, and that it reports a function that nothing repairs."""

from collections import Counter
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from autoscaler.errors import TransientError
from autoscaler_workbench.fakes.world.faults import ConnectionLostError, StatusError
from support.cutting import Scene, Way, cases_of, differs, try_out


def forgets(life):
    """A function counts, and remembers it with a second call. If that fails, it counts again."""
    done = Counter()
    timeline = SimpleNamespace(sleep=lambda seconds: done.update(slept=seconds))
    orders = SimpleNamespace(orders={})
    life.fleet = SimpleNamespace(reports=[], run_orders=orders, world=SimpleNamespace(timeline=timeline), read_in_process=lambda: None)

    @contextmanager
    def around(call):
        try:
            with life.around(call):
                yield
        except (ConnectionLostError, StatusError) as error:
            raise TransientError(call) from error

    def count():
        with around("state read"):
            remembers = done["remembered"]
        if not remembers:
            with around("count"):
                done["counted"] += 1
            with around("remember"):
                done["remembered"] += 1

    for _ in range(2):
        life.invoke("count", count)
    assert done["counted"] == 1


FORGETS = Scene(forgets, {"count": 1}, most=100)


def answer():
    return try_out(FORGETS)


def test_a_function_that_forgets_what_it_did_is_reported_wherever_that_happens(ask):
    told = ask("unit.test_cutting")
    assert (told["tried"], told["cases"]) == (11, 11)
    assert [case.partition(": forgets")[0] for case in told["broken"]] == [
        f"count no. 0, call 1 (count): {Way.LOST}",
        f"count no. 0, call 1 (count): {Way.DIES_AFTER}",
        f"count no. 0, call 2 (remember): {Way.FAILS}",
        f"count no. 0, call 2 (remember): {Way.HANGS}",
    ]


def test_a_server_reports_an_error_and_goes_on(ask):
    with pytest.raises(AssertionError, match="no scene"):
        ask("faults.scenes", "no scene", 0, 1)
    assert ask("unit.test_cutting")["tried"] == 11


@pytest.mark.long
def test_what_has_no_effect_of_its_own_is_no_case():
    calls = ["state read", "jenkins queue", "ec2 CreateFleet", "state read"]
    cases = {way: [at for at in range(4) if differs(calls, at, way)] for way in Way}
    assert cases == {
        Way.FAILS: [0, 1, 2, 3],
        Way.LOST: [2],
        Way.DIES_BEFORE: [0],
        Way.DIES_AFTER: [2],
        Way.HANGS: [0, 2, 3],
    }


@pytest.mark.long
def test_invocations_that_make_the_same_calls_are_cut_off_once():
    def lives(life, calls=("one", "two", "one", "")):
        life.fleet = SimpleNamespace(reports=[], run_orders=SimpleNamespace(orders={}))
        for call in calls:
            life.invoke("acts", lambda call=call: acts(life, call))

    def acts(life, call):
        if call:
            with life.around(call):
                life.fleet.reports.append(SimpleNamespace(results=["done"]))

    assert [case.number for case in cases_of(Scene(lives, {"acts": None}, most=1)) if case.way is Way.FAILS] == [0, 1]
    assert [case.number for case in cases_of(Scene(lives, {"acts": 3}, most=1)) if case.way is Way.FAILS] == [0, 1, 2]
