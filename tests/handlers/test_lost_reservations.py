"""A person whose reserved machine does not boot, or ends before its time, is told so, whatever ended it; and `why` names them."""

import pytest

from autoscaler_workbench.fakes.world.world import break_boots
from support.scene import Scene, one_pool, scene

POOL = one_pool("boot_timeout_seconds: 300")


def reserve(here: Scene) -> str:
    [promised] = here.order("reserve", target="cpu", person="alice", hours=4, request_id="r-1", reason="a test hangs")["reservations"]
    return str(promised["instance_id"])


def lost(here: Scene) -> list[str]:
    return [subject for subject in here.subjects() if "alice has lost" in subject]


def never_boots(here: Scene) -> None:
    break_boots(here.world, {"cpu"})
    reserve(here)
    here.minutes(12)


def ends_while_it_boots(here: Scene) -> None:
    machine = reserve(here)
    here.world.ec2.end(here.world.ec2.instances[machine])
    here.minutes(3)


def ends_in_use(here: Scene) -> None:
    machine = reserve(here)
    here.minutes(5)
    here.world.ec2.end(here.world.ec2.instances[machine])
    here.minutes(10)


@pytest.mark.parametrize("happens", [never_boots, ends_while_it_boots, ends_in_use])
def test_a_person_is_told_once_that_the_machine_is_lost_and_why_names_them(happens):
    with scene(POOL) as here:
        here.minutes(2)
        happens(here)
        [subject] = lost(here)
        assert ("which did not boot" in subject) is (happens is not ends_in_use)
        text = dict(here.here.told())[f"[f] {subject}"]
        assert "autoscaler reserve cpu --for alice" in text
        machine = here.ever()[0].id
        assert any("alice" in fact for fact in here.order("why", subject=machine)["facts"])
        here.minutes(15)
        assert (len(lost(here)), here.order("reservations")["reservations"]) == (1, [])
        assert any("it was reserved for alice" in fact for fact in here.order("why", subject=machine)["facts"])
        assert not any(subject.startswith("over: ") for subject in here.subjects())


def test_it_is_told_though_no_metrics_could_be_published_for_some_minutes_after_the_end():
    with scene(POOL) as here:
        here.minutes(2)
        machine = reserve(here)
        here.minutes(5)
        here.world.ec2.end(here.world.ec2.instances[machine])
        for _ in range(3):
            here.world.move_to(here.now + 60)
            here.here.call("scale_up", {})
            here.here.call("scale_down", {})
        here.minutes(1)
        assert len(lost(here)) == 1


def test_nobody_is_told_of_a_reservation_that_was_over():
    with scene(POOL) as here:
        here.minutes(2)
        machine = reserve(here)
        here.minutes(5)
        here.order("release", target=machine, reason="done")
        here.minutes(15)
        assert (lost(here), here.machines()) == ([], [])
