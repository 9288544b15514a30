"""Time-lines of orders of many builds: each build is followed to its end, by a number of requests that has a bound."""

from collections import Counter
from dataclasses import replace

import pytest

from autoscaler.adapters.jenkins import builds
from autoscaler.adapters.jenkins import builds as builds_over_http
from autoscaler.control.run_steps import RunKeeper
from autoscaler.domain.facts.started_builds import RunPolicy
from autoscaler_workbench.fakes.http_fakes.clients import LocalSession
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from support.builders import a_pool
from support.ordering import LABEL, RUN_ID, asked, define, order, told
from support.timeline import Day
from support.worlds import in_memory


def a_day(agents, **facts):
    pool = a_pool("cpu", max_agents=agents, boot_seconds=60.0, idle_seconds=600.0, queue_maturity_seconds=0.0, **facts)
    fleet = in_memory(pool, max_agents=1000, max_launches_per_hour=10_000)
    fleet.fleet = replace(fleet.fleet, runs=RunPolicy(label_parameter=LABEL, max_open=20))
    return Day(fleet).minutes(3)


def until_all_have_ended(day, ids, minutes=120):
    for _ in range(minutes):
        day.minutes(1)
        entries = [told(day, one) for one in ids]
        if all(entry.outcome for entry in entries):
            break
    return Counter(part.state for entry in entries for part in entry.parts), {entry.outcome for entry in entries}


@pytest.mark.parametrize("kind", [Kind.FREESTYLE, Kind.PIPELINE])
@pytest.mark.parametrize(("orders", "seconds", "agents"), [(1, 120.0, 20), (2, 120.0, 40), (2, 300.0, 50)])
def test_each_build_of_large_orders_is_followed_to_its_end(orders, seconds, agents, kind):
    day = a_day(agents)
    define(day, seconds=seconds, kind=kind)
    ids = [order(day, asked(100, on="cpu"), request_id=f"r{number}").id for number in range(orders)]
    assert until_all_have_ended(day, ids) == ({"passed": 100 * orders}, {"passed"})
    assert Counter(build.ended for build in day.jenkins.builds) == {Ended.FINISHED: 100 * orders}


def test_builds_that_came_and_went_while_nobody_looked_are_found_among_very_many():
    day = a_day(40, min_agents=40).minutes(6)
    define(day, seconds=60.0)
    order_id = order(day, asked(100, on="cpu"), request_id="r").id
    day.minutes(3)  # the rest is sent
    for number in range(200):  # the same job, by others
        day.fleet.apis["main"].jobs.build("job", {LABEL: "cpu", RUN_ID: str(number)}, "somebody")
    day.world.move_to(day.world.timeline.now + 1800.0)
    assert until_all_have_ended(day, [order_id], minutes=6) == ({"passed": 100}, {"passed"})


def test_the_requests_of_a_look_have_a_bound_whatever_number_of_builds_is_open(monkeypatch):
    day = a_day(5)
    for number in range(3):
        define(day, seconds=36_000.0, job=f"job-{number}")
    for number in range(6):
        order(day, asked(60, on="cpu", job=f"job-{number % 3}"), request_id=f"r{number}")
    day.minutes(4)
    requests, get = [], LocalSession.get
    monkeypatch.setattr(LocalSession, "get", lambda self, path, *rest: requests.append(path) or get(self, path, *rest))
    for _ in range(3):
        requests.clear()
        day.minutes(1)
        assert 3 <= len([path for path in requests if "job-" in path or "queue" in path]) <= 3 * 4


def test_builds_that_no_list_shows_take_turns_and_none_is_forgotten(monkeypatch):
    for module in (builds, builds_over_http):
        monkeypatch.setattr(module, "BUILDS_LISTED", ((0, 2), (1, 4), (3, 5)))
    day = a_day(90, min_agents=90).minutes(6)
    define(day, seconds=600.0)
    order_id = order(day, asked(90, on="cpu"), request_id="r").id
    assert until_all_have_ended(day, [order_id], minutes=40) == ({"passed": 90}, {"passed"})


def test_each_build_that_no_list_shows_has_its_turn_within_four_looks(monkeypatch):
    for module in (builds, builds_over_http):
        monkeypatch.setattr(module, "BUILDS_LISTED", ((0, 2), (1, 4), (3, 5)))
    day = a_day(100, min_agents=100).minutes(6)
    define(day, seconds=36_000.0)
    order(day, asked(100, on="cpu"), request_id="r")
    day.minutes(12)
    requests, get = set(), LocalSession.get
    monkeypatch.setattr(LocalSession, "get", lambda self, path, *rest: requests.add(path) or get(self, path, *rest))
    day.minutes(4)
    assert {f"job/job/{number}/api/json" for number in range(1, 99)} <= requests


def test_few_builds_are_asked_for_one_by_one():
    day = a_day(3)
    define(day, seconds=120.0)
    ids = [order(day, asked(1, on="cpu"), request_id=f"r{number}").id for number in range(3)]
    assert until_all_have_ended(day, ids) == ({"passed": 3}, {"passed"})


def test_orders_take_turns_if_time_does_not_suffice_for_all():
    day = a_day(20)
    define(day, seconds=3600.0)
    ids = [order(day, asked(1, on="cpu"), request_id=f"r{number}").id for number in range(3)]
    carried = set()

    class CutOff(RunKeeper):
        def carry_on(self, order, asking=None):
            carried.add(order.id)
            self.ends_at = 0.0

    for _ in range(3):
        day.world.move_to(day.world.timeline.now + 60.0)
        ports = day.fleet.ports
        CutOff(ports=ports, ends_at=day.fleet.invocation().ends_at).carry_on_all()
    assert carried == set(ids)
