"""Features that decide how many agents there are.

Each test goes from the text of a fleet file through the real handlers to the effect, at the minute when it is due. Nothing is handed
to a function or written into the state: jobs come, machines are lost, minutes pass.
"""

import pytest

from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.deployed import NOON
from support.scene import limits, scene

feature = pytest.mark.feature
HOUR = 3600.0


# Jobs that wait, and agents that nobody needs


@feature("domain/situation/demand.py", "domain/launch/queue.py")
def test_an_agent_is_launched_at_the_first_look_after_a_job_has_waited_for_the_maturity():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 4, queue_maturity_seconds: 90}}") as here:
        here.minutes(1)
        build = here.submit("job", "cpu", 2)
        here.minutes(1)
        assert here.machines() == []
        here.minutes(1)
        assert len(here.machines()) == 1
        here.minutes(3)
        assert build.started_at


@feature("domain/launch/placement.py")
def test_a_job_waits_for_a_busy_executor_that_is_free_before_max_wait_seconds_and_gets_an_agent_of_its_own_if_it_is_not():
    """Waiting costs next to nothing here, so that no other rule launches a second agent."""
    for seconds, agents in ((3600, 1), (120, 2)):
        pool = f"$$pool, executors: 1, max_agents: 4, wait_usd_per_hour: 0.001, max_wait_seconds: {seconds}, idle_seconds: 600"
        with scene(f"pools: {{cpu: {{{pool.replace('$$', '$')}}}}}") as here:
            here.submit("first", "cpu", 20)
            here.until(lambda here=here: here.jenkins.builds[0].started_at, within=6)
            here.submit("second", "cpu", 20)
            here.minutes(1)
            assert len(here.machines()) == agents


@feature("domain/scale_in/surplus.py", "domain/lifecycle.py")
def test_an_idle_agent_goes_at_the_first_look_after_its_idle_seconds():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 4, idle_seconds: 300}}") as here:
        build = here.submit("job", "cpu", 2)
        here.until(lambda: build.ended, within=8)
        here.minutes(4)
        assert len(here.machines()) == 1
        here.minutes(2)
        assert (here.machines(), here.nodes()) == ([], [])


@feature("domain/forecast/keeping.py")
def test_an_idle_agent_of_a_pool_without_idle_seconds_is_kept_for_some_minutes_and_at_most_for_max_idle_seconds():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 4, max_idle_seconds: 600}}") as here:
        build = here.submit("job", "cpu", 2)
        here.until(lambda: build.ended, within=8)
        here.minutes(2)
        assert len(here.machines()) == 1
        here.minutes(10)
        assert here.machines() == []


@feature("domain/scale_in/make_room.py")
def test_at_a_limit_an_idle_agent_makes_room_at_the_first_look_for_a_job_of_another_pool():
    a, b = ("$pool, executors: 1, max_agents: 1, idle_seconds: 7200",) * 2
    with scene(limits(max_agents=1) + f"pools: {{a: {{{a}}}, b: {{{b}}}}}") as here:
        first = here.submit("first", "a", 2)
        here.until(lambda: first.ended, within=8)
        second = here.submit("second", "b", 2)
        here.minutes(1)
        assert here.machines() == []
        here.minutes(1)
        assert len(here.machines("b")) == 1
        here.minutes(2)
        assert second.started_at


# Forecasts


@feature("domain/forecast/job_patterns.py", "domain/learn.py")
def test_for_a_job_that_came_at_the_same_minute_of_two_hours_an_agent_is_ready_when_it_comes_again():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 4, idle_seconds: 300}}") as here:
        here.submit("another", "cpu", 1)
        here.minutes(10)
        waits, began_at = [], here.now
        for hour in range(3):
            while here.now < began_at + hour * HOUR:
                here.minutes(1)
            build = here.submit("hourly", "cpu", 3)
            here.minutes(5)
            waits.append(build.started_at - build.queued_at)
            here.minutes(8)
            assert here.machines() == []
        assert min(waits[:2]) > 100
        assert waits[2] == 0


@feature("domain/learn.py", "domain/situation/builds.py")
def test_the_first_job_that_a_fleet_ever_sees_is_counted():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 4, min_agents: 1}}") as here:
        here.minutes(4)
        build = here.submit("job", "cpu", 3)
        here.until(lambda: build.ended, within=5)
        here.minutes(2)
        assert [job["runs"] for job in here.order("jobs")["jobs"]] == [1]


@feature("domain/forecast/job_patterns.py", "domain/learn.py")
def test_a_job_that_followed_another_one_five_times_has_an_agent_ready_the_next_time():
    pools = "{build: {$pool, executors: 1, max_agents: 2, min_agents: 1}, test: {$pool, executors: 1, max_agents: 2, idle_seconds: 60}}"
    with scene(f"pools: {pools}") as here:
        here.minutes(4)
        waits = []
        for minutes in (6, 7, 6, 7, 6, 7, 6):
            here.submit("image", "build", 2)
            here.minutes(minutes)
            build = here.submit("test", "test", 2)
            here.minutes(17)
            waits.append(build.started_at - build.queued_at)
        assert min(waits[:6]) > 60
        assert waits[6] == 0
        assert ("foreseen", "1 executor for what is to come: test follows image") in here.steps("launch")


@feature("domain/forecast/job_patterns.py", "domain/forecast/forecast.py")
def test_after_three_runs_of_a_pipeline_the_agent_of_its_second_stage_is_launched_during_the_first():
    pools = "{build: {$pool, executors: 1, max_agents: 2}, test: {$pool, executors: 1, max_agents: 2, idle_seconds: 120}}"
    with scene(f"pools: {pools}") as here:
        seconds = []

        def run(number):
            def second_stage(_build):
                seconds.append(here.submit("app/main", "test", 3, kind=Kind.PIPELINE, number=number))

            here.submit("app/main", "build", 6, kind=Kind.PIPELINE, number=number, on_end=second_stage)

        for number in range(1, 5):
            run(number)
            here.minutes(20)
        waits = [build.started_at - build.queued_at for build in seconds]
        assert min(waits[:3]) > 60
        assert waits[3] == 0
        assert [reason for reason, _ in here.steps("launch")][-1] == "foreseen"


@feature("domain/forecast/forecast.py", "domain/forecast/keeping.py")
def test_after_two_bursts_that_grew_the_first_job_of_a_third_one_has_the_agents_of_its_later_jobs_launched():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 8, idle_seconds: 240, boot_seconds: 180}}") as here:
        launched = []
        for burst in range(3):
            here.submit(f"first-{burst}", "cpu", 8)
            here.minutes(1)
            launched.append(len(here.machines()))
            here.minutes(1)
            later = [here.submit(f"later-{burst}-{number}", "cpu", 4) for number in range(3)]
            here.minutes(22)
        assert launched == [1, 1, 4]
        assert all(build.ended for build in later)


@feature("domain/launch/turns.py", "domain/forecast/keeping.py")
@pytest.mark.parametrize(("key", "agents"), [("", 2), (", idle_seconds: 3600", 1)])
def test_an_agent_that_is_needed_again_soon_is_launched_though_the_job_that_waits_would_have_a_busy_one_sooner(key, agents):
    """Not where the file says how long agents are kept."""
    with scene(f"pools: {{cpu: {{$pool, executors: 1, max_agents: 20, boot_seconds: 180{key}}}}}") as here:
        for minutes in (9, 5):
            for number in range(2):
                here.submit(f"job-{number}", "cpu", 2.4)
            here.minutes(minutes)
        here.world.ec2.end(here.machines()[0])
        here.minutes(1)
        for number in range(2):
            here.submit(f"job-{number}", "cpu", 2.4)
        here.minutes(1)
        assert len(here.machines()) == agents


# Agents that are always there


@feature("domain/launch/turns.py")
def test_a_pools_minimum_is_launched_at_the_first_look_and_again_at_the_look_after_one_is_lost():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 4, min_agents: 2, idle_seconds: 60}}") as here:
        here.minutes(1)
        assert len(here.machines()) == 2
        here.minutes(8)
        assert len(here.ready("cpu")) == 2
        here.world.ec2.end(here.machines()[0])
        here.minutes(1)
        assert len(here.machines()) == 2


@feature("domain/launch/turns.py")
def test_warm_executors_are_free_beside_those_that_run():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 6, warm_executors: 2, idle_seconds: 60}}") as here:
        here.minutes(4)
        assert len(here.ready("cpu")) == 2
        builds = [here.submit(f"job-{n}", "cpu", 30) for n in range(2)]
        assert all(build.started_at == build.queued_at for build in builds)
        here.minutes(1)
        assert len(here.machines()) == 4


@feature("domain/situation/pool_view.py", "config/sections.py")
def test_agents_of_a_schedule_are_there_when_it_begins_and_gone_at_the_first_look_after_it_ends():
    schedule = "{from: '08:10', to: '08:20', time_zone: UTC, min_agents: 2}"
    with scene(f"pools: {{cpu: {{$pool, executors: 1, max_agents: 4, idle_seconds: 120, schedules: [{schedule}]}}}}") as here:
        here.minutes(7)
        assert here.machines() == []
        here.minutes(3)
        assert len(here.ready("cpu")) == 2
        here.minutes(9)
        assert len(here.ready("cpu")) == 2
        here.minutes(1)
        assert here.machines() == []


@feature("domain/situation/pool_view.py", "domain/learn.py")
def test_after_ten_boots_agents_of_a_schedule_are_launched_as_early_as_boots_take():
    schedule = "{from: '08:25', to: '08:50', time_zone: UTC, min_agents: 1}"
    pool = f"$pool, executors: 1, max_agents: 10, boot_seconds: 60, boot_timeout_seconds: 900, idle_seconds: 60, schedules: [{schedule}]"
    with scene(f"pools: {{cpu: {{{pool}}}}}") as here:
        here.world.ec2.boot_seconds = lambda _template: 300.0
        for number in range(10):
            here.submit(f"job-{number}", "cpu", 1)
        here.until(lambda: here.now >= NOON + 15 * 60, within=15)
        assert (len(here.ever()), here.machines()) == (10, [])
        here.until(lambda: here.now >= NOON + 25 * 60, within=10)
        assert len(here.ready("cpu")) == 1


@feature("domain/situation/pool_view.py", "domain/situation/warm_pool.py", "domain/scale_in/surplus.py")
def test_the_warm_pool_of_a_schedule_is_filled_from_its_first_minute_and_its_disks_go_at_its_end():
    schedule = "{from: '08:05', to: '08:15', time_zone: UTC, warm_pool: {min_agents: 1}}"
    with scene(f"pools: {{cpu: {{$pool, executors: 1, max_agents: 4, idle_seconds: 60, schedules: [{schedule}]}}}}") as here:
        here.minutes(4)
        assert here.machines() == []
        here.minutes(1)
        assert len(here.machines()) == 1
        here.minutes(4)
        assert len(here.machines(state="stopped")) == 1
        here.minutes(5)
        assert len(here.machines(state="stopped")) == 1
        here.minutes(2)
        assert here.machines() == []


@feature("domain/situation/pool_view.py", "config/sections.py")
def test_the_max_agents_of_a_schedule_hold_from_its_first_minute_to_its_last():
    schedule = "{from: '08:02', to: '08:06', time_zone: UTC, max_agents: 1}"
    with scene(f"pools: {{cpu: {{$pool, executors: 1, max_agents: 3, schedules: [{schedule}]}}}}") as here:
        here.minutes(2)
        for number in range(3):
            here.submit(f"job-{number}", "cpu", 20)
        here.minutes(3)
        assert len(here.machines()) == 1
        here.minutes(1)
        assert len(here.machines()) == 3


# Stopped agents


@feature("domain/lifecycle.py", "domain/situation/warm_pool.py", "control/steps/stopping.py")
def test_an_agent_of_a_warm_pool_is_stopped_once_it_is_idle_and_started_for_the_next_job():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 4, idle_seconds: 300, warm_pool: {min_agents: 1}}}") as here:
        build = here.submit("job", "cpu", 2)
        here.until(lambda: build.ended, within=8)
        here.minutes(4)
        assert [machine.state for machine in here.machines()] == ["running"]
        here.minutes(3)
        assert ([machine.state for machine in here.machines()], here.nodes()) == (["stopped"], [])
        again = here.submit("job", "cpu", 2)
        here.minutes(3)
        assert (again.node, len(here.ever())) == (build.node, 1)


@feature("domain/gate.py", "domain/launch/turns.py", "config/sections.py")
def test_missing_agents_of_a_warm_pool_are_launched_in_quiet_times_and_end_at_their_max_age():
    warm = "warm_pool: {min_agents: 1, max_age_hours: 0.25}"
    with scene(f"pools: {{cpu: {{$pool, executors: 1, max_agents: 4, idle_seconds: 60, {warm}}}}}") as here:
        here.minutes(1)
        assert len(here.machines()) == 1
        stopped = here.until(lambda: here.machines(state="stopped"), within=8)
        [first] = here.machines()
        here.minutes(14)
        assert (stopped <= 6, here.machines()) == (True, [first])
        here.minutes(2)
        assert not first.alive()
        here.minutes(1)
        assert len(here.machines()) == 1


@feature("config/settings.py", "domain/scale_in/surplus.py")
def test_agents_of_one_build_are_not_stopped_though_the_defaults_have_a_warm_pool():
    keys = "defaults: {warm_pool: {min_agents: 1}}\n"
    pool = "pools: {cpu: {$pool, executors: 1, max_agents: 4, reuse: never}}"
    with scene(keys + pool) as here:
        here.minutes(4)
        assert here.machines() == []
        build = here.submit("job", "cpu", 2)
        here.until(lambda: build.ended, within=10)
        here.minutes(3)
        assert [machine.state for machine in here.machines()] == []
