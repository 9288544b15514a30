"""Time-lines of orders once the key `runs` has left the fleet file: nothing is started any more, and what was started is settled."""

import pytest

from autoscaler.domain.facts.started_builds import RerunPolicy, RunPolicy, Until
from autoscaler.domain.run_orders.carrying_on import NOBODY_MAY_ORDER
from autoscaler.errors import ConfigError
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from support.builders import a_pool
from support.file_changes import file_is_now
from support.ordering import LABEL, a_day, asked, builds, cancel, define, instance_of, order, told

KEY = RunPolicy(label_parameter=LABEL, max_open=5)


def without_key(day):
    file_is_now(day, runs=None)
    return day


def is_open(day, entry):
    return day.fleet.run_orders.orders[entry.id].is_open


def test_an_open_order_is_listed_and_explained_and_nobody_orders_another_one():
    day = a_day()
    define(day)
    entry = order(day, asked(2, vary="pool"))
    without_key(day).minutes(5)
    assert told(day, entry.id).outcome is None
    assert told(day, entry.id).summary.endswith("; nothing more is started for it: the fleet file has no key runs any more")
    assert any(entry.id in line for line in day.why("job"))
    with pytest.raises(ConfigError, match="no key runs"):
        order(day, asked(), request_id="another")


@pytest.mark.parametrize("minutes", [0, 1, 3, 8], ids=["just ordered", "in the queue", "booting", "running"])
def test_an_open_order_is_cancelled_and_nothing_of_it_is_left(minutes):
    day = a_day()
    define(day, seconds=3600.0)
    entry = order(day, asked(3, vary="pool"))
    day.minutes(minutes)
    without_key(day).minutes(2)
    cancel(day, entry.id)
    day.minutes(30)
    assert (told(day, entry.id).outcome, is_open(day, entry)) == ("cancelled", False)
    assert not any(build.ended is None for build in builds(day))
    assert (len(builds(day)), day.jenkins.queue) == (3, [])


def test_builds_that_were_started_run_to_their_end_and_the_order_tells_how():
    day = a_day()
    define(day)
    entry = order(day, asked(2, vary="pool"))
    without_key(day).minutes(30)
    assert (told(day, entry.id).outcome, told(day, entry.id).summary) == ("passed", "2 of 2 passed")


@pytest.mark.parametrize("key", [None, RerunPolicy(times=3)], ids=["without rerun", "with rerun"])
def test_a_build_that_is_lost_is_not_started_again(key):
    day = a_day(a_pool("cpu", rerun=key), a_pool("gpu"))
    define(day, seconds=3600.0)
    entry = order(day, asked(on="cpu"), resubmit=3)
    day.minutes(8)
    without_key(day)
    day.world.ec2.end(instance_of(day, builds(day)[0]))
    day.minutes(30)
    assert [build.ended for build in builds(day)] == [Ended.KILLED]
    assert (told(day, entry.id).outcome, told(day, entry.id).summary) == ("unfinished", "1 of 1 lost")


def test_a_failing_worker_is_not_replaced():
    day = a_day()
    define(day, seconds=1800.0)
    entry = order(day, asked(2, on="cpu"), until=Until.ALL, replacing=2)
    day.minutes(8)
    without_key(day)
    day.jenkins.end(builds(day)[0], succeeded=False)
    day.minutes(40)
    assert (len(builds(day)), is_open(day, entry)) == (2, False)


@pytest.mark.parametrize("after", [False, True], ids=["it was not", "it was"])
def test_a_start_in_doubt_is_looked_for_and_settled_but_not_sent_again(after):
    day = a_day(faults=None)
    define(day)
    day.fleet.faults.plan(Fault("jenkins buildWithParameters", times=1, after=after))
    entry = order(day, asked(on="cpu"))
    assert day.fleet.faults.seen
    without_key(day).minutes(30)
    part = told(day, entry.id).parts[0]
    assert not is_open(day, entry)
    if after:
        assert (len(builds(day)), told(day, entry.id).outcome) == (1, "passed")
    else:
        assert ("job" in day.jenkins.builds_of, part.why) == (False, NOBODY_MAY_ORDER)


def test_of_a_large_order_what_was_not_started_yet_is_settled_and_does_not_begin_once_the_key_is_back():
    day = a_day(a_pool("cpu", max_agents=40))
    define(day)
    entry = order(day, asked(40, on="cpu"))
    without_key(day).minutes(1)
    begun = len(day.jenkins.builds_of["job"])
    assert begun < 40
    day.minutes(3)
    file_is_now(day, runs=KEY)
    day.minutes(90)
    assert len(builds(day)) == begun
    assert (told(day, entry.id).outcome, is_open(day, entry)) == ("unfinished", False)
    assert sum(part.why == NOBODY_MAY_ORDER for part in told(day, entry.id).parts) == 40 - begun
