"""Time-lines of the choices in "Strategy for extending our CI to Ubuntu and other distributions" (debian-ai, July 2024).

I.  (a) one controller for all distributions, or (b) one for each;
II. hosts whose cards are (a) one distribution's at a time, or (b) taken by builds of all of them in turn.

Each test has the ups and downs of one choice, how they are with this fleet, and what stays a disadvantage. Those of I are the text's.
"""

from dataclasses import replace

import pytest

from autoscaler.config import check
from autoscaler.control import operate
from autoscaler.domain.facts.orders import DrainNodes, Purge, Resume, Scope
from autoscaler.domain.facts.plan import Cordon, Launch, Rotate, Terminate
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from autoscaler_workbench.simulate.drive import InMemory
from support.cards import believed_free, give_cards, leased_at_once, submit
from support.timeline import Day
from support.worlds import a_world

KIND = "amd64+gfx1030"
TWO = ("main", "ubuntu")  # Debian's, and Ubuntu's
OF_ITS_OWN = {"main": {"controllers": ["main"]}, "ubuntu": {"controllers": ["ubuntu"]}}


def a_fleet_of(pools, hosts, controllers=("main",)):
    """The fleet of a fleet file. ``hosts``: by name, their pools."""
    return check(
        {
            "fleet": "f",
            "limits": {"max_agents": 10, "max_launches_per_hour": 100, "max_usd_per_hour": 100, "max_usd_per_month": 1000},
            "controllers": {name: {"url": f"http://{name}.invalid/"} for name in controllers},
            "kinds": {"amd64": {}, KIND: {}},
            "pools": {name: {"kind": KIND, "executors": 1} | pool for name, pool in pools.items()},
            "hosts": {
                name: {"pool": pool, "role_id": f"AROAEXAMPLE{number:04}", "owner": "Debian ROCm team"}
                for number, (name, pool) in enumerate(hosts.items())
            },
        },
        "a fleet of hosts",
    ).domain()


def a_day(fleet, *, cards=0, without=()):
    """``without``: hosts that are there, and not in the fleet file yet."""
    named = {name: host for name, host in fleet.hosts.items() if name not in without}
    day = Day(InMemory(a_world(fleet), replace(fleet, hosts=named)))
    day.ubuntu = day.world.controllers.get("ubuntu")
    day.cards = [give_cards(day.world, name, cards) for name in fleet.hosts if cards]
    return day.minutes(3)


def jobs(controller, label, count=1, seconds=600.0):
    return [submit(controller, f"{label}-{n}", label, seconds) for n in range(count)]


def order(day, what):
    return day.order(what, by_a_person=True)


def resume(day, node):
    what = Resume(scope=Scope.FLEET, name="", nodes=(node,), reason="over")
    day.lift(what)


def purge(day, label, controller=None):
    operate.purge(day.fleet.ports, day.fleet.fleet, day.fleet.invocation(), Purge(label=label, controller=controller, reason="broken"))


def is_back(controller):
    """Let a controller that was away answer again."""
    controller.up = "up"
    controller.schedule()


def ends(builds):
    return {build.ended for build in builds}


def test_one_controller_for_all_distributions():
    """I.a. Up: one to manage. Feared: one distribution's jobs cannot be held or purged, workers must be able to take all, ..."""
    by_distribution = {"debian": {"labels": ["debian"]}, "ubuntu": {"labels": ["ubuntu"]}}
    fleet = a_fleet_of(by_distribution | {"kali": {"labels": ["kali"]}}, {"debian-1": "debian", "ubuntu-1": "ubuntu", "kali-1": "kali"})
    day = a_day(fleet, without={"kali-1"})
    assert (fleet.controllers, sorted(day.nodes())) == (("main",), ["debian-1", "ubuntu-1"])
    # A host with a Debian kernel leaves Ubuntu's jobs to one with Ubuntu's: the labels say so.
    first, *waiting = jobs(day.jenkins, "gfx1030&&ubuntu", 3)
    day.minutes(5)
    assert (first.node, [build.node for build in waiting], day.jenkins.nodes["debian-1"].builds) == ("ubuntu-1", [None, None], {})
    # Only Ubuntu's jobs are put on hold, and its build ends first.
    order(day, DrainNodes(nodes=("ubuntu-1",), reason="a new kernel", request_id=None))
    debian = jobs(day.jenkins, "gfx1030&&debian", 3)
    day.minutes(35)
    assert (ends([first]), ends(waiting), ends(debian)) == ({Ended.FINISHED}, {None}, {Ended.FINISHED})
    resume(day, "ubuntu-1")
    [long] = jobs(day.jenkins, "gfx1030&&debian", seconds=3600.0)
    day.minutes(25)
    assert ends(waiting) == {Ended.FINISHED}
    # Another distribution is a host more: nobody else is touched.
    [kali] = jobs(day.jenkins, "gfx1030&&kali")
    day.fleet.fleet = fleet
    day.minutes(20)
    assert (kali.node, kali.ended, long.ended, day.done(Terminate)) == ("kali-1", Ended.FINISHED, None, [])
    # What stays: while the one controller is down, everybody waits.
    day.minutes(30)
    day.jenkins.up = "starting"
    stuck = [*jobs(day.jenkins, "gfx1030&&debian"), *jobs(day.jenkins, "gfx1030&&ubuntu")]
    day.minutes(10)
    assert [build.started_at for build in stuck] == [None, None]
    is_back(day.jenkins)
    day.minutes(20)
    assert ends(stuck) == {Ended.FINISHED}


def test_a_controller_for_each_distribution():
    """I.b. Up: control over the jobs of one, and changes in smaller chunks. Feared: a bit of cost, and more to administer."""
    day = a_day(a_fleet_of(OF_ITS_OWN, {"debian-1": "main", "ubuntu-1": "ubuntu"}, TWO))
    [long] = jobs(day.jenkins, "gfx1030", seconds=7200.0)
    [ours], theirs = jobs(day.jenkins, "gfx1030&&amd64+gfx1030"), jobs(day.ubuntu, "gfx1030", 3)
    day.minutes(2)
    purge(day, "gfx1030", controller="ubuntu")
    day.minutes(12)
    assert (ends(theirs[:1]), ends(theirs[1:]), day.ubuntu.queue) == ({Ended.FINISHED}, {Ended.ABORTED}, [])
    assert day.jenkins.queue == [ours]
    day.jenkins.abort(ours)
    # One of them is restarted, and is down for a while: nothing happens on the other, and no host is taken from anybody.
    day.ubuntu.restart()
    day.minutes(2)
    day.ubuntu.up = "down"
    day.minutes(20)
    [during] = jobs(day.ubuntu, "gfx1030")
    is_back(day.ubuntu)
    day.minutes(25)
    assert (long.ended, during.ended, day.done(Terminate), day.done(Cordon)) == (None, Ended.FINISHED, [], [])
    # More to administer it is not: one fleet file, one set of functions and of limits. What stays: hosts stand idle beside a queue.
    waiting = jobs(day.ubuntu, "gfx1030", 3, seconds=1800.0)
    day.jenkins.abort(long)
    day.minutes(20)
    assert ([build.started_at is not None for build in waiting].count(True), day.jenkins.nodes["debian-1"].builds) == (1, {})


def test_hosts_whose_cards_are_one_distributions_at_a_time():
    """II.a. Up: nobody else is on the card. Down: it stands idle while jobs of others wait, unless hosts go where those are."""
    day = a_day(a_fleet_of({"rocm": {"share": "rotate"}}, {"rocm-1": "rocm", "rocm-2": "rocm"}, TWO), cards=1)
    assert sorted(day.nodes()) == ["rocm-1", "rocm-2"]
    builds = jobs(day.ubuntu, "gfx1030", 4, seconds=1200.0)
    for _ in range(55):
        day.minutes(1)
        for name in ("rocm-1", "rocm-2"):  # by its connections, a host is never on both
            assert sum(name in one.nodes and one.nodes[name].connected for one in day.world.controllers.values()) <= 1
    assert (ends(builds), {build.node for build in builds}) == ({Ended.FINISHED}, {"rocm-1", "rocm-2"})
    # Builds have the card at once that their executor is for, and the first waited for no boot, but for the host to come over.
    assert [build.leased_at for build in builds] == [build.started_at for build in builds]
    assert 60.0 < min(build.started_at - build.queued_at for build in builds) < 300.0
    assert (len(day.done(Rotate)) >= 2, leased_at_once(day.world, "rocm-1"), leased_at_once(day.world, "rocm-2")) == (True, 1, 1)
    # What stays: while a build runs, its host goes nowhere, and the other distribution waits for its end.
    jobs(day.ubuntu, "gfx1030", 2, seconds=3600.0)
    day.minutes(10)
    [debian] = jobs(day.jenkins, "gfx1030")
    day.minutes(30)
    assert debian.started_at is None
    day.minutes(40)
    assert debian.ended is Ended.FINISHED


def test_hosts_whose_cards_builds_of_all_distributions_take_in_turn():
    """II.b. Up: no card stands idle beside a queue. Down: builds wait for cards on executors, so that executors say little of cards."""
    day = a_day(a_fleet_of({"rocm": {"share": "cooperative", "executors": 2}}, {"rocm-1": "rocm"}, TWO), cards=2)
    debian = jobs(day.jenkins, "gfx1030", seconds=1200.0)
    ubuntu = jobs(day.ubuntu, "gfx1030", 2, seconds=1200.0)
    day.minutes(4)
    assert all(build.started_at - build.queued_at < 60.0 for build in (*debian, *ubuntu))  # nothing had to come over
    # Jenkins has an executor for each of them and two for others; the functions count what is so: no card is free.
    assert ([build.leased_at is None for build in (*debian, *ubuntu)].count(True), believed_free(day)) == (1, {"main": 0, "ubuntu": 0})
    day.minutes(45)
    assert (ends([*debian, *ubuntu]), leased_at_once(day.world)) == ({Ended.FINISHED}, 2)
    # One controller is down: the host goes on with the other's jobs, stays, and is back there by itself.
    day.ubuntu.up = "down"
    debian = jobs(day.jenkins, "gfx1030", 4)
    day.minutes(25)
    assert (ends(debian), day.done(Terminate), day.done(Cordon)) == ({Ended.FINISHED}, [], [])
    ubuntu = jobs(day.ubuntu, "gfx1030")
    is_back(day.ubuntu)
    day.minutes(15)
    assert (ends(ubuntu), believed_free(day), day.done(Launch)) == ({Ended.FINISHED}, {"main": 2, "ubuntu": 2}, [])


@pytest.mark.parametrize("controllers", [("main",), TWO], ids=["on one controller", "on two"])
def test_one_distributions_jobs_are_purged_and_the_others_go_on(controllers):
    pool = {"labels": ["debian", "ubuntu"], "executors": 2, "share": "cooperative" if len(controllers) > 1 else "none"}
    day = a_day(a_fleet_of({"rocm": pool}, {"rocm-1": "rocm"}, controllers), cards=2)
    there = day.ubuntu or day.jenkins
    running = jobs(there, "gfx1030&&ubuntu", seconds=1800.0)
    day.minutes(1)
    debian = jobs(day.jenkins, "gfx1030&&debian", 3)
    purged = jobs(there, "gfx1030&&ubuntu", 5)
    day.minutes(1)
    waiting = [build for build in purged if build.started_at is None]
    assert len(waiting) >= 3
    purge(day, "ubuntu")
    day.minutes(60)
    assert (ends(waiting), ends(running), ends(debian)) == ({Ended.ABORTED}, {Ended.FINISHED}, {Ended.FINISHED})


def hold_label(day, label, minutes=60):
    now = day.world.timeline.now
    day.hold(scope=Scope.LABEL, name=label, until_at=now + 60.0 * minutes, reason="its mirror is broken")


def test_a_hold_on_a_label_keeps_no_job_from_a_host_that_is_there_and_a_drained_host_does():
    day = a_day(a_fleet_of({"ubuntu": {"labels": ["ubuntu"]}}, {"ubuntu-1": "ubuntu"}))
    hold_label(day, "ubuntu")
    started = jobs(day.jenkins, "gfx1030&&ubuntu")
    day.minutes(12)
    assert ends(started) == {Ended.FINISHED}  # Jenkins gives it builds, and not the functions
    order(day, DrainNodes(nodes=("ubuntu-1",), reason="its mirror is broken", request_id=None))
    held = jobs(day.jenkins, "gfx1030&&ubuntu")
    day.minutes(12)
    assert ends(held) == {None}


def test_held_by_its_label_no_machine_is_launched_for_one_distribution_while_others_get_theirs():
    cloud = {"launch_template": "linux", "instance_types": ["g4ad.xlarge"], "usd_per_hour": 0.4, "max_agents": 3}
    day = a_day(a_fleet_of({name: cloud | {"labels": [name]} for name in ("debian", "ubuntu")}, {}))
    hold_label(day, "ubuntu")
    ubuntu, debian = jobs(day.jenkins, "gfx1030&&ubuntu"), jobs(day.jenkins, "gfx1030&&debian")
    day.minutes(30)
    assert (ends(ubuntu), ends(debian), {step.pool for step in day.done(Launch)}) == ({None}, {Ended.FINISHED}, {"debian"})
    day.minutes(60)
    assert ends(ubuntu) == {Ended.FINISHED}
