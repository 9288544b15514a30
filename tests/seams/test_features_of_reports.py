"""Features that tell people something, and looks between the minutes.

Tried as in `test_features.py`: from the text of a fleet file to the effect, at the minute when it is due.
"""

from datetime import UTC, datetime

import pytest

from autoscaler_workbench.fakes.slots import sqs_event
from autoscaler_workbench.fakes.world.jenkins.builds import Started
from autoscaler_workbench.fakes.world.usage import GIB, Need, Usage
from support.deployed import NOON, essential_environment, event
from support.scene import one_pool, scene

feature = pytest.mark.feature


# Answers


@feature("domain/report/eta.py", "domain/report/jobs.py", "domain/report/tracking.py", "config/sections.py")
@pytest.mark.parametrize(("key", "minutes"), [("job_parameters: {nightly: [SUITE]}\n", 10), ("", 4)])
def test_a_build_is_predicted_by_the_parameters_that_the_file_names(key, minutes):
    """The median of all builds together is a little under four minutes."""
    with scene(key + one_pool("min_agents: 1")) as here:
        here.submit("another", "cpu", 1)
        here.minutes(4)
        for suite, lasts in (("small", 3), ("small", 3), ("large", 10), ("large", 10), ("small", 3)):
            build = here.submit("nightly", "cpu", lasts, started_with=Started(parameters=(("SUITE", suite),)))
            here.until(lambda build=build: build.ended, within=14)
            here.minutes(1)
        signatures = {job["signature"] for job in here.order("jobs", pattern="nightly")["jobs"]}
        assert signatures == ({"", "SUITE=small", "SUITE=large"} if key else {""})
        here.submit("nightly", "cpu", 10, started_with=Started(parameters=(("SUITE", "large"),)))
        here.minutes(1)
        [eta] = here.order("eta", subject="nightly")["builds"]
        assert eta["ends"]["mid"] / 60 == pytest.approx(minutes - 1, abs=0.7)


@feature("domain/report/jobs.py", "domain/report/tracking.py", "adapters/stores.py")
def test_needs_lists_a_build_within_ten_minutes_of_its_end():
    with scene(one_pool("min_agents: 1")) as here:
        here.world.usage = Usage(here.world.timeline, here.world.controllers)
        here.world.usage.needs["big"] = Need(memory=9 * GIB, cores=3.0)
        here.submit("another", "cpu", 1)
        here.minutes(5)
        build = here.submit("big", "cpu", 5)
        here.until(lambda: build.ended, within=6)
        here.minutes(10)
        [need] = here.order("needs", pattern="big")["needs"]
        assert (need["builds"], round(need["memory"]["p95"] / GIB), round(need["cores"]["p50"])) == (1, 9, 3)


@feature("control/statistics.py", "domain/report/costs.py")
def test_a_job_costs_its_time_on_its_agent():
    pool = "pools: {cpu: {$pool, executors: 2, max_agents: 1, usd_per_hour: 6, volume_gib: 0, idle_seconds: 60}}"
    with scene(pool) as here:
        build = here.submit("app/a", "cpu", 20)
        here.until(lambda: build.ended, within=25)
        here.minutes(4)
        answer = here.order("costs", by="job")
        [job] = answer["entries"]
        [machine] = here.ever()
        hours = machine.spells[0].seconds(here.now) / 3600
        assert job["builds_usd"] == pytest.approx(6 / 2 * 20 / 60, rel=0.03)
        assert job["usd"] == pytest.approx(6 * hours, rel=0.03)


@feature("control/measure.py", "domain/report/messages.py")
def test_the_first_look_of_a_month_tells_people_once_what_the_last_one_cost():
    with scene(one_pool("usd_per_hour: 6, volume_gib: 0, idle_seconds: 60")) as here:
        here.world.move_to(datetime(2027, 1, 31, 23, 45, tzinfo=UTC).timestamp())
        here.submit("app/a", "cpu", 5)
        here.minutes(14)
        assert (here.subjects(), here.machines()) == ([], [])
        here.minutes(3)
        [subject] = here.subjects()
        assert subject.startswith("January 2027: $0.")
        here.minutes(2)
        assert here.subjects() == [subject]


# Messages


@feature("domain/report/problems.py", "control/measure.py", "config/problems.py")
def test_at_the_level_essential_people_are_told_of_a_job_that_waits_for_longer_than_the_alarms_seconds():
    environment = essential_environment() | {"JOB_WAIT_ALARM_SECONDS": "600"}
    with scene(one_pool().replace("max_agents: 4", "max_agents: 1"), environment) as here:
        here.submit("first", "cpu", 30)
        here.minutes(1)
        here.submit("second", "cpu", 30)
        here.minutes(10)
        assert here.subjects() == []
        here.minutes(4)
        assert here.subjects() == ["job waits: pool cpu of main"]


@feature("domain/report/problems.py", "control/measure.py")
def test_what_no_pool_serves_is_told_after_max_wait_seconds_counts_as_a_problem_after_four_looks_and_is_over_when_it_is_gone():
    with scene(one_pool("max_wait_seconds: 120"), essential_environment()) as here:
        build = here.submit("job", "sparc", 10)
        here.minutes(1)
        assert here.subjects() == []
        here.minutes(3)
        assert (here.subjects(), here.metric("Problems")) == (["jobs on main wait: no pool serves sparc"], [])
        here.minutes(1)
        assert here.metric("Problems") == [1.0]
        here.jenkins.abort(build)
        here.minutes(70)
        assert here.subjects()[1:] == ["over: jobs on main wait: no pool serves sparc"]
        assert here.metric("Problems") == [1.0]


@feature("domain/report/metrics.py", "domain/report/listing.py", "domain/report/problems.py", "adapters/stores.py")
def test_people_are_told_of_an_agent_whose_memory_runs_out_before_it_has():
    with scene(one_pool("min_agents: 1"), essential_environment()) as here:
        here.world.usage = usage = Usage(here.world.timeline, here.world.controllers)
        here.minutes(6)
        [machine] = here.machines()
        usage.leaks[machine.id] = here.now, 2.0 * GIB / 60
        here.until(here.subjects, within=8)
        assert here.subjects() == ["agent memory low: pool cpu of main"]
        assert usage.available(machine.id, (), here.now) > 0


# Looks between the minutes


_LOOKS = {"LOOKS_QUEUE": "https://sqs.example.org/looks"}


def message(slot, at):
    return sqs_event(f'{{"slot": "{slot}", "at": {at}}}')


@feature("entry/webhook.py", "adapters/stores.py", "entry/scheduled.py")
def test_after_a_webhook_an_agent_is_launched_as_soon_as_the_job_counts_as_demand():
    with scene(one_pool("queue_maturity_seconds: 10"), _LOOKS) as here:
        here.minutes(1)
        build = here.submit("job", "cpu", 2)
        here.here.call("webhook", event("webhook"))
        [(slot, at, _)] = here.here.stored.slots.announced
        assert at == build.queued_at + 11
        here.world.move_to(at)
        here.here.call("scale_up", message(slot, at))
        assert [machine.launched_at for machine in here.machines()] == [at]


@feature("adapters/stores.py", "entry/scheduled.py")
def test_with_looks_each_fifteen_seconds_a_job_is_launched_for_at_the_first_of_them():
    with scene(one_pool("queue_maturity_seconds: 0"), _LOOKS | {"LOOK_EVERY_SECONDS": "15"}) as here:
        here.here.call("scale_up", event("tick"))
        here.world.move_to(NOON + 5)
        here.submit("job", "cpu", 2)
        for slot, at, _ in here.here.stored.slots.announced:
            here.world.move_to(at)
            here.here.call("scale_up", message(slot, at))
        assert [machine.launched_at for machine in here.machines()] == [NOON + 15]
