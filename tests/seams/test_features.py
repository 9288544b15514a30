"""Features that decide which agents there are: each from the text of a fleet file through the real handlers, at the minute when it is due.

Nothing is handed to a function or written into the state: jobs come, machines are lost, minutes pass.
"""

from collections import Counter

import pytest

from autoscaler_workbench.fakes.world.ec2.account import image_of
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from autoscaler_workbench.fakes.world.physics import Physics
from autoscaler_workbench.fakes.world.usage import GIB, Need, Usage
from autoscaler_workbench.fakes.world.world import break_boots
from support.deployed import event
from support.scene import scene
from support.worlds import a_world_node

feature = pytest.mark.feature
HOUR = 3600.0

# Two controllers.
BOTH = "controllers: {main: {url: 'http://main/', secret: jenkins/main}, other: {url: 'http://other/', secret: jenkins/other}}\n"


def limits(**given):
    named = {"max_agents": 20, "max_launches_per_hour": 50, "max_usd_per_hour": 100, "max_usd_per_month": 10_000} | given
    return f"limits: {{{', '.join(f'{name}: {value}' for name, value in named.items())}}}\n"


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
    """Waiting is worth next to nothing here, so that nothing else asks for a second agent."""
    for seconds, agents in ((3600, 1), (120, 2)):
        pool = f"$$pool, executors: 1, max_agents: 4, wait_usd_per_hour: 0.001, max_wait_seconds: {seconds}, idle_seconds: 600"
        with scene(f"pools: {{cpu: {{{pool.replace('$$', '$')}}}}}") as here:
            here.submit("first", "cpu", 20)
            here.until(lambda here=here: here.jenkins.builds[0].started_at, within=6)
            here.submit("second", "cpu", 20)
            here.minutes(1)
            assert len(here.machines()) == agents


@feature("domain/scale_in/surplus.py", "domain/scale_in/reclaim.py")
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


# What is foreseen


@feature("domain/forecast/job_patterns.py", "domain/forecast/prelaunch.py", "domain/learn.py")
def test_for_a_job_that_came_at_the_same_minute_of_three_hours_an_agent_is_ready_when_it_comes_again():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 4, idle_seconds: 300}}") as here:
        here.submit("another", "cpu", 1)
        here.minutes(10)
        waits, began_at = [], here.now
        for hour in range(4):
            while here.now < began_at + hour * HOUR:
                here.minutes(1)
            build = here.submit("hourly", "cpu", 3)
            here.minutes(5)
            waits.append(build.started_at - build.queued_at)
            here.minutes(8)
            assert here.machines() == []
        assert min(waits[:3]) > 100
        assert waits[3] == 0


@feature("domain/learn.py", "domain/situation/builds.py")
@pytest.mark.xfail(
    reason="the first job of a fleet teaches nothing: looks at which nothing runs are not remembered, so it counts as seen first"
)
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


@feature("domain/forecast/stages.py", "domain/forecast/forecast.py")
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
        assert min(waits[:3]) > 100
        assert waits[3] == 0
        assert [reason for reason, _ in here.steps("launch")][-1] == "foreseen"


@feature("domain/forecast/forecast.py", "domain/forecast/idle_returns.py")
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


# Agents that are always there


@feature("domain/launch/top_ups.py")
def test_a_pools_minimum_is_launched_at_the_first_look_and_again_at_the_look_after_one_is_lost():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 4, min_agents: 2, idle_seconds: 60}}") as here:
        here.minutes(1)
        assert len(here.machines()) == 2
        here.minutes(8)
        assert len(here.ready("cpu")) == 2
        here.world.ec2.end(here.machines()[0])
        here.minutes(1)
        assert len(here.machines()) == 2


@feature("domain/launch/top_ups.py")
def test_warm_executors_are_free_beside_those_that_run():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 6, warm_executors: 2, idle_seconds: 60}}") as here:
        here.minutes(4)
        assert len(here.ready("cpu")) == 2
        builds = [here.submit(f"job-{n}", "cpu", 30) for n in range(2)]
        assert all(build.started_at == build.queued_at for build in builds)
        here.minutes(1)
        assert len(here.machines()) == 4


@feature("domain/situation/pool_schedules.py", "config/schedules.py")
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


@feature("domain/situation/pool_schedules.py", "config/schedules.py")
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


@feature("domain/scale_in/warm_pool.py", "domain/situation/warm_pool.py", "control/stopping.py")
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


@feature("domain/scale_in/warm_pool.py", "domain/launch/top_ups.py", "config/warm_pools.py")
def test_what_a_warm_pool_lacks_is_launched_in_quiet_times_and_ends_at_its_max_age():
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


@feature("domain/scale_in/warm_pool.py", "domain/launch/starting.py", "control/registration.py")
def test_agents_of_one_build_are_stopped_before_it_and_never_after_it():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 4, reuse: never, warm_pool: {min_agents: 1}}}") as here:
        here.minutes(4)
        assert ([machine.state for machine in here.machines()], here.nodes()) == (["stopped"], [])
        [first] = here.machines()
        build = here.submit("job", "cpu", 2)
        here.minutes(2)
        assert here.machine_of(build) is first
        here.until(lambda: build.ended, within=4)
        here.minutes(2)
        assert (first.alive(), [machine.state for machine in here.machines()]) == (False, ["stopped"])


# Machines that serve more than one kind of job, or more than one controller


_KINDS = "kinds: {amd64: {}, amd64+gpu: {}}\n"


@feature("domain/launch/lending.py", "config/kinds.py", "domain/scale_in/surplus.py")
@pytest.mark.parametrize("lend", ["idle", "never"])
def test_an_idle_agent_of_a_rare_kind_is_lent_at_the_first_look_and_only_for_the_jobs_that_wait(lend):
    cpu, gpu = (
        "$pool, kind: amd64, executors: 1, max_agents: 1",
        f"$pool, kind: amd64+gpu, lend: {lend}, executors: 1, max_agents: 1, min_agents: 1",
    )
    with scene(f"{_KINDS}pools: {{cpu: {{{cpu}}}, gpu: {{{gpu}}}}}") as here:
        here.minutes(4)
        [node] = here.ready("gpu")
        assert "amd64" not in node.labels
        plain = here.submit("plain", "amd64", 6)
        here.minutes(1)
        assert (plain.node == node.name, len(here.machines("cpu"))) == ((True, 0) if lend == "idle" else (False, 1))
        here.minutes(1)
        assert "amd64" not in node.labels
        special = here.submit("special", "gpu", 2)
        here.minutes(6)
        waited_for = plain.ended_at if lend == "idle" else special.queued_at
        assert (special.node, special.started_at) == (node.name, waited_for)


@feature("domain/launch/rotations.py", "domain/situation/rotation.py", "domain/scale_in/rotate.py", "control/rotation.py")
@pytest.mark.parametrize("share", ["rotate", "none"])
def test_an_idle_agent_goes_to_the_controller_whose_job_waits_within_two_looks_and_some_seconds(share):
    pool = f"$pool, executors: 1, share: {share}, max_agents: 2, idle_seconds: 1800, boot_seconds: 180"
    with scene(f"{BOTH}pools: {{cpu: {{{pool}}}}}") as here:
        mine = here.submit("mine", "cpu", 2)
        here.until(lambda: mine.ended, within=10)
        here.minutes(2)
        theirs = here.submit("theirs", "cpu", 2, controller="other")
        here.minutes(3)
        assert (theirs.node, len(here.ever())) == ((mine.node, 1) if share == "rotate" else (None, 2))


_BOX = "pools: {box: {executors: 1, share: SHARE}}\nhosts: {box-1: {pool: box, role_id: AROAHOSTBOX1, owner: the ROCm team}}"


@feature("domain/situation/hosts.py", "control/sides.py", "control/side_of_machine.py", "control/registration.py")
def test_a_host_that_is_cooperative_is_a_node_of_both_controllers_and_takes_jobs_of_both():
    with scene(BOTH + _BOX.replace("SHARE", "cooperative")) as here:
        here.minutes(1)
        builds = [here.submit("mine", "box", 2), here.submit("theirs", "box", 2, controller="other")]
        here.minutes(1)
        assert [build.node for build in builds] == ["box-1", "box-1"]
        assert here.ever() == []
        here.minutes(40)
        assert [node.offline for node in (*here.nodes(), *here.nodes("other"))] == [False, False]


@feature("domain/situation/hosts.py", "domain/report/hosts.py")
def test_people_are_told_of_a_host_that_is_off_once_it_was_so_for_a_quarter_of_an_hour():
    with scene(_BOX.replace("SHARE", "none")) as here:
        here.minutes(3)
        assert here.ready("box")
        here.world.hosts["box-1"].on = False
        here.jenkins.disconnect("box-1")
        here.minutes(14)
        assert here.subjects() == []
        here.minutes(3)
        assert [subject for subject in here.subjects() if "box-1" in subject]


@feature("domain/scale_in/surplus.py", "domain/scale_in/sides.py", "control/sides.py")
def test_a_machine_that_serves_both_controllers_at_once_goes_when_both_have_had_no_job_for_its_idle_seconds():
    with scene(BOTH + "pools: {cpu: {$pool, executors: 1, share: cooperative, max_agents: 2, idle_seconds: 300}}") as here:
        mine = here.submit("mine", "cpu", 2)
        here.until(lambda: mine.ended, within=8)
        here.minutes(1)
        theirs = here.submit("theirs", "cpu", 6, controller="other")
        here.until(lambda: theirs.ended, within=8)
        assert (theirs.node, len(here.ever())) == (mine.node, 1)
        here.minutes(4)
        assert len(here.machines()) == 1
        here.minutes(3)
        assert (here.machines(), here.nodes(), here.nodes("other")) == ([], [], [])


# How much of an agent a build takes


@feature("domain/facts/room.py", "domain/situation/supply.py", "domain/repair/heal.py")
def test_an_agent_whose_builds_weigh_as_much_as_it_has_takes_no_more_from_the_first_look_on():
    with scene("weights: {heavy/*: 4}\npools: {cpu: {$pool, executors: 8, max_agents: 4, min_agents: 1}}") as here:
        here.minutes(3)
        heavy = [here.submit(f"heavy/{number}", "cpu", 10) for number in range(2)]
        here.minutes(1)
        light = here.submit("light", "cpu", 1)
        assert ([build.node is not None for build in heavy], light.node) == ([True, True], None)
        more = [here.submit(f"heavy/{number}", "cpu", 10) for number in range(2, 5)]
        here.minutes(1)
        assert len(here.machines()) == 3
        here.minutes(4)
        by_node = Counter(build.node for build in heavy + more)
        assert max(by_node.values()) == 2


@feature("domain/report/learned_weights.py", "control/jobs.py", "control/measure.py", "domain/facts/room.py", "domain/report/job_needs.py")
def test_what_agents_told_of_three_builds_is_the_weight_of_the_fourth():
    """Two builds of this job fill a machine, of which they have half the memory each."""
    with scene("weights: {'*': learned}\npools: {cpu: {$pool, executors: 4, max_agents: 6, min_agents: 1}}") as here:
        here.world.usage = Usage(here.world.timeline, here.world.controllers)
        here.world.usage.needs["big"] = Need(memory=7.5 * GIB)
        here.submit("another", "cpu", 1)
        here.minutes(5)
        for _ in range(3):
            build = here.submit("big", "cpu", 5)
            here.minutes(7)
        here.until(lambda: here.order("needs", pattern="big")["needs"][0]["builds"] == 3, within=7)
        here.minutes(1)
        builds = [here.submit("big", "cpu", 20) for _ in range(2)]
        here.minutes(1)
        assert len(here.machines()) == 1
        builds += [here.submit("big", "cpu", 20) for _ in range(4)]
        here.minutes(1)
        assert len(here.machines()) == 3
        here.minutes(4)
        assert sorted(Counter(build.node for build in builds).values()) == [2, 2, 2]
        assert build.succeeded


@feature("control/heavy_jobs.py", "control/measure.py", "domain/facts/room.py")
def test_the_heavy_job_plugins_weight_counts_from_the_first_look_at_which_a_job_waits():
    with scene("weights: {'*': heavy-job}\npools: {cpu: {$pool, executors: 4, max_agents: 6}}") as here:
        here.jenkins.heavy = {"big": 4}
        here.minutes(1)
        builds = [here.submit("big", "cpu", 20) for _ in range(3)]
        here.minutes(1)
        assert len(here.machines()) == 3
        here.minutes(3)
        assert len({build.node for build in builds}) == 3


# Where limits keep jobs waiting


@feature("domain/launch/budget.py", "config/teams.py")
def test_a_teams_limit_holds_its_jobs_alone():
    pools = "{a: {$pool, executors: 1, max_agents: 5}, b: {$pool, executors: 1, max_agents: 5}}"
    with scene(f"teams: {{red: {{pools: [a], max_agents: 1}}}}\npools: {pools}") as here:
        for number in range(3):
            here.submit(f"a-{number}", "a", 20)
            here.submit(f"b-{number}", "b", 20)
        here.minutes(3)
        assert (len(here.machines("a")), len(here.machines("b"))) == (1, 3)
        assert here.subjects() == ["the limit max_agents of team red is reached"]


@feature("domain/launch/turns.py", "config/teams.py")
def test_a_team_of_twice_the_weight_gets_twice_the_agents():
    pools = "{a: {$pool, executors: 1, max_agents: 6}, b: {$pool, executors: 1, max_agents: 6}}"
    teams = "{red: {pools: [a], weight: 2}, blue: {pools: [b]}}"
    with scene(limits(max_agents=6) + f"teams: {teams}\npools: {pools}") as here:
        for name in ("b", "a"):
            for number in range(6):
                here.submit(f"{name}-{number}", name, 20)
        here.minutes(1)
        assert (len(here.machines("a")), len(here.machines("b"))) == (4, 2)


@feature("domain/launch/turns.py", "domain/scale_in/hand_over.py")
def test_an_agent_of_a_lower_priority_hands_over_at_the_first_look_and_goes_once_its_build_has_ended():
    pools = "{a: {$pool, executors: 1, max_agents: 2}, b: {$pool, executors: 1, max_agents: 2, priority: 5}}"
    with scene(limits(max_agents=2) + f"pools: {pools}") as here:
        slow = [here.submit(f"a-{number}", "a", 6) for number in range(6)]
        here.minutes(4)
        urgent = here.submit("b", "b", 1)
        here.minutes(1)
        [leaving] = [node for node in here.nodes() if node.temporarily_offline]
        here.until(lambda: not leaving.builds, within=7)
        assert all(build.ended is not Ended.KILLED for build in slow)
        here.minutes(2)
        assert len(here.machines("b")) == 1
        here.minutes(2)
        assert urgent.started_at


@feature("domain/facts/metering.py", "domain/launch/budget.py", "domain/scale_in/month_limit.py")
def test_once_the_hours_of_a_day_are_used_an_agent_takes_no_other_build_and_its_build_goes_on():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 2, max_hours_per_day: 1}}") as here:
        builds = [here.submit(f"job-{number}", "cpu", 25) for number in range(4)]
        here.minutes(60)
        assert [node.offline for node in here.nodes()] == [False]
        here.minutes(2)
        assert [node.offline for node in here.nodes()] == [True]
        assert here.subjects() == ["the day's hours of pool cpu are used"]
        here.until(lambda: builds[2].ended, within=20)
        here.minutes(2)
        assert (builds[2].ended, builds[3].node, here.machines()) == (Ended.FINISHED, None, [])


@feature("domain/facts/metering.py", "domain/launch/budget.py", "domain/scale_in/month_limit.py")
@pytest.mark.parametrize("what", ["stop", "launch-nothing"])
def test_once_the_months_money_is_spent_nothing_is_launched_and_agents_leave_or_stay_in_use_as_the_file_says(what):
    """A launch reserves an hour: here it is all of the month's money, less some cents."""
    money = limits(max_usd_per_month=6.1, at_month_limit=what)
    with scene(f"{money}pools: {{cpu: {{$pool, executors: 1, max_agents: 2, usd_per_hour: 6, volume_gib: 0, idle_seconds: 300}}}}") as here:
        first = here.submit("first", "cpu", 64)
        here.minutes(61)
        assert [node.offline for node in here.nodes()] == [False]
        here.minutes(2)
        assert [node.offline for node in here.nodes()] == [what == "stop"]
        assert "the month's limit is reached" in here.subjects()
        second = here.submit("second", "cpu", 2)
        here.until(lambda: first.ended, within=8)
        here.minutes(2)
        assert (first.ended, len(here.ever())) == (Ended.FINISHED, 1)
        assert (len(here.machines()), bool(second.started_at)) == ((0, False) if what == "stop" else (1, True))


# How machines are bought


@feature("domain/launch/purchase.py", "domain/situation/pool_view.py", "domain/launch/backoff.py")
@pytest.mark.xfail(
    reason="once EC2 has refused spot, all spot offerings back off, and on-demand is asked for at the next look, whatever the patience"
)
def test_on_demand_is_not_asked_for_before_a_job_has_waited_for_the_patience_after_its_maturity():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 4, market: spot-then-on-demand, spot_patience_seconds: 240}}") as here:
        here.world.ec2.capacity["c5.xlarge//spot"] = 0
        here.submit("job", "cpu", 5)
        here.minutes(4)
        assert here.machines() == []
        here.minutes(1)
        assert [machine.market for machine in here.machines()] == ["on-demand"]


@feature("domain/launch/purchase.py", "domain/situation/pool_view.py")
def test_spot_is_asked_for_first_and_on_demand_is_there_for_a_job_that_spot_cannot_serve():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 4, market: spot-then-on-demand, spot_patience_seconds: 60}}") as here:
        here.submit("job", "cpu", 20)
        here.minutes(1)
        assert [machine.market for machine in here.machines()] == ["spot"]
        here.world.ec2.capacity["c5.xlarge//spot"] = 0
        here.submit("job", "cpu", 20)
        here.minutes(2)
        assert [machine.market for machine in here.machines()] == ["spot", "on-demand"]


@feature("control/events.py", "domain/repair/interruption.py", "entry/instance_events.py")
def test_an_agent_that_ec2_takes_back_is_cordoned_at_once_and_its_build_runs_again_elsewhere():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 4, market: spot, rerun: {}}}") as here:
        here.define("job", "cpu", 20, "REF")
        first = here.start("job", REF="main")
        here.minutes(4)
        machine = here.machine_of(first)
        here.world.ec2.interrupt(machine)
        notice = event("spot_interruption")
        here.here.call("instance_events", notice | {"detail": notice["detail"] | {"instance-id": machine.id}})
        assert here.node_of(machine).temporarily_offline
        here.until(lambda: first.ended, within=3)
        here.minutes(2)
        [_, again] = here.builds_of("job")
        assert dict(again.started_with.parameters) == {"REF": "main"}
        here.minutes(4)
        assert again.started_at


@feature("domain/situation/pool_view.py", "adapters/ec2.py")
@pytest.mark.parametrize(("allocation", "first"), [("in-order", "c5.2xlarge"), ("by-price", "c5.xlarge")])
def test_the_instance_type_is_the_first_one_written_or_the_cheapest_one(allocation, first):
    pool = (
        f"launch_template: t, instance_types: [c5.2xlarge, c5.xlarge], executors: 1, max_agents: 4, market: spot, allocation: {allocation}"
    )
    with scene(f"pools: {{cpu: {{{pool}}}}}") as here:
        here.submit("job", "cpu", 5)
        here.minutes(1)
        assert [machine.instance_type for machine in here.machines()] == [first]


@feature("domain/launch/backoff.py")
def test_where_ec2_lacks_a_machine_the_next_offering_is_asked_for_and_the_first_one_again_some_minutes_later():
    with scene("pools: {cpu: {launch_template: t, instance_types: [c5.xlarge, m5.xlarge], executors: 1, max_agents: 4}}") as here:
        here.world.ec2.capacity["c5.xlarge//on-demand"] = 0
        here.submit("job", "cpu", 30)
        here.minutes(1)
        here.world.ec2.capacity.clear()
        here.submit("job", "cpu", 30)
        here.minutes(1)
        assert [machine.instance_type for machine in here.machines()] == ["m5.xlarge", "m5.xlarge"]
        here.minutes(3)
        here.submit("job", "cpu", 30)
        here.minutes(1)
        assert [machine.instance_type for machine in here.machines()] == ["m5.xlarge", "m5.xlarge", "c5.xlarge"]


_RESERVED = "labels: [gpu], executors: 1, usd_per_hour: 30, launch_template: b, instance_types: [p4d.24xlarge]"
_BOUGHT = "gpu: {executors: 1, usd_per_hour: 30, launch_template: g, instance_types: [p4d.24xlarge], max_agents: 2}"


@feature("config/capacity_reservations.py", "domain/situation/pool_view.py")
def test_machines_that_are_paid_for_anyway_are_used_before_others_are_bought():
    capacity = "capacity_reservation: {id: cr-0123456789abcdef0}"
    with scene(f"pools: {{paid: {{{_RESERVED}, max_agents: 1, {capacity}}}, {_BOUGHT}}}") as here:
        here.minutes(1)
        for number in range(2):
            here.submit(f"job-{number}", "gpu", 30)
        here.minutes(1)
        assert (len(here.machines("paid")), len(here.machines("gpu"))) == (1, 1)


@feature("domain/situation/reserved_capacity.py", "domain/scale_in/capacity_ends.py", "domain/learn.py")
def test_a_block_takes_builds_until_its_end_is_as_near_as_its_builds_were_long_and_none_is_lost_with_it():
    """EC2 ends its machines at 09:14. Before any build was seen they are taken to last an hour, which is until 08:14."""
    capacity = "capacity_reservation: {id: cr-0123456789abcdef0, kind: block, ends_at: '2027-01-15T09:44Z'}"
    with scene(f"pools: {{block: {{{_RESERVED}, max_agents: 1, idle_seconds: 7200, {capacity}}}, {_BOUGHT}}}") as here:
        here.minutes(1)
        builds = []
        for _ in range(7):
            builds.append(here.submit("job", "gpu", 4))
            here.minutes(9)
        assert {build.node for build in builds} == {builds[0].node}
        assert here.machine_of(builds[0]).tags["autoscaler:pool"] == "block"
        here.minutes(5)
        assert [node.offline for node in here.nodes()] == [False]
        here.minutes(2)
        assert [reason for reason, _ in here.steps("cordon")] == ["capacity-ends"]
        last = here.submit("job", "gpu", 4)
        here.minutes(5)
        assert here.machine_of(last).tags["autoscaler:pool"] == "gpu"
        assert not any(build.killed_by for build in here.jenkins.builds)


# What agents are launched from, and when they are replaced


@feature("domain/situation/image_canary.py", "domain/launch/purchase.py", "adapters/images.py")
def test_one_agent_tries_a_new_image_while_others_are_launched_from_the_old_one_and_then_all_follow():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 9, image_parameter: /ci/image}}") as here:
        account = here.world.ec2.account
        account.images |= {name: image_of("linux", ImageId=name) for name in ("ami-1", "ami-2")}
        account.parameters["/ci/image"] = "ami-1"
        here.submit("job", "cpu", 60)
        here.minutes(4)
        account.parameters["/ci/image"] = "ami-2"
        for number in range(3):
            here.submit(f"job-{number}", "cpu", 60)
        here.minutes(1)
        assert Counter(machine.image for machine in here.machines()) == {"ami-1": 3, "ami-2": 1}
        here.minutes(3)
        for number in range(3, 5):
            here.submit(f"job-{number}", "cpu", 60)
        here.minutes(1)
        assert Counter(machine.image for machine in here.machines()) == {"ami-1": 3, "ami-2": 3}
        assert [reason for reason, _ in here.steps("cordon")] == ["outdated"]


VERSION = "aws:ec2launchtemplate:version"


@feature("domain/situation/canary.py", "domain/scale_in/replace.py")
def test_one_agent_tries_a_new_launch_template_version_and_an_older_one_is_replaced_each_hour():
    pool = (
        "launch_template: autoscaler-linux-f, instance_types: [c5.xlarge], executors: 1, max_agents: 6, min_agents: 3, idle_seconds: 7200"
    )
    with scene(f"pools: {{cpu: {{{pool}}}}}") as here:
        here.minutes(5)
        here.world.ec2.deploy("autoscaler-linux-f")
        for number in range(4):
            here.submit(f"job-{number}", "cpu", 3)
        here.minutes(1)
        assert Counter(machine.tags[VERSION] for machine in here.machines()) == {"1": 3, "2": 1}
        here.minutes(13)
        versions = Counter(machine.tags[VERSION] for machine in here.machines())
        assert versions == {"1": 2, "2": 1}
        here.minutes(46)
        assert Counter(machine.tags[VERSION] for machine in here.machines())["1"] == 2
        here.minutes(5)
        assert Counter(machine.tags[VERSION] for machine in here.machines())["1"] == 1


@feature("domain/scale_in/max_builds.py", "domain/situation/builds.py")
@pytest.mark.parametrize(("key", "builds"), [("max_builds: 2", 2), ("reuse: never", 1)])
def test_an_agent_takes_so_many_builds_and_no_more(key, builds):
    with scene(f"pools: {{cpu: {{$pool, executors: 1, max_agents: 4, min_agents: 1, {key}}}}}") as here:
        here.minutes(3)
        [machine] = here.machines()
        for number in range(builds):
            assert here.submit(f"job-{number}", "cpu", 1.5).node == here.node_of(machine).name
            here.minutes(1)
            assert here.node_of(machine).offline is (number + 1 == builds)
            here.minutes(1)
        here.minutes(2)
        assert not machine.alive()
        here.minutes(1)
        assert len(here.machines()) == 1


@feature("domain/scale_in/replace.py")
def test_an_agent_is_replaced_at_the_first_look_at_which_it_is_older_than_its_max_agent_hours():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 4, min_agents: 1, max_agent_hours: 0.25}}") as here:
        here.minutes(15)
        [old] = here.machines()
        assert not here.node_of(old).offline
        here.minutes(2)
        assert not old.alive()
        here.minutes(1)
        assert len(here.machines()) == 1


@feature("domain/scale_in/replace.py", "domain/scale_in/build_results.py", "control/measure.py")
@pytest.mark.parametrize("quarantine", ["replace", "keep", "off"])
def test_an_agent_on_which_five_builds_in_a_row_fail_goes_into_quarantine_at_the_look_after_the_fifth(quarantine):
    with scene(f"pools: {{cpu: {{$pool, executors: 1, max_agents: 4, min_agents: 2, quarantine: {quarantine}}}}}") as here:
        here.minutes(4)
        broken = here.nodes()[0]
        broken.fails_builds = True
        [machine] = [one for one in here.machines() if here.node_of(one) is broken]
        for number in range(5):
            assert not broken.offline
            for which in ("a", "b"):
                here.submit(f"job-{number}-{which}", "cpu", 1.5)
            here.minutes(2)
        here.minutes(1)
        assert (broken.temporarily_offline, machine.alive()) == {"replace": (True, False), "keep": (True, True), "off": (False, True)}[
            quarantine
        ]
        here.minutes(3)
        assert len(here.ready("cpu")) == 2


@feature("domain/situation/breakers.py", "domain/learn.py")
def test_three_failed_boots_pause_a_pool_for_five_minutes_and_then_one_agent_is_tried():
    with scene("pools: {cpu: {$pool, executors: 1, max_agents: 1, boot_timeout_seconds: 120}}") as here:
        broken = {"cpu"}
        break_boots(here.world, broken)
        build = here.submit("job", "cpu", 2)
        here.until(lambda: here.steps("terminate") and len(here.ever()) == 3 and not here.machines(), within=20)
        broken.clear()
        here.minutes(1)
        assert here.subjects() == ["agents of cpu do not boot"]
        here.minutes(3)
        assert here.machines() == []
        here.minutes(2)
        assert len(here.machines()) == 1
        here.minutes(2)
        assert build.started_at
        assert here.subjects()[-1] == "over: agents of cpu do not boot"


@feature("control/slots.py", "domain/repair/static_nodes.py", "control/registration.py")
def test_an_agent_takes_a_static_node_and_no_more_are_launched_than_nodes_are_free():
    controllers = "controllers: {main: {url: 'http://main/', secret: jenkins/main, nodes: slots}}\n"
    with scene(f"{controllers}pools: {{cpu: {{$pool, executors: 1, max_agents: 4, idle_seconds: 120}}}}") as here:
        here.minutes(1)
        here.jenkins.add_node(a_world_node("rack-1", "cpu", "autoscaler-fleet-f", connected=False))
        builds = [here.submit(f"job-{number}", "cpu", 2) for number in range(2)]
        here.minutes(3)
        assert ([build.node for build in builds], len(here.ever())) == (["rack-1", None], 1)
        here.until(lambda: builds[1].ended, within=6)
        here.minutes(4)
        assert (here.machines(), [(node.name, node.offline) for node in here.nodes()]) == ([], [("rack-1", True)])


@feature("domain/situation/controller_restarts.py")
def test_after_a_restart_an_agent_is_kept_for_a_pipeline_until_the_resume_timeout_and_no_longer():
    controllers = "controllers: {main: {url: 'http://main/', secret: jenkins/main, resume_timeout_seconds: 600}}\n"
    with scene(f"{controllers}pools: {{cpu: {{$pool, executors: 1, max_agents: 4, idle_seconds: 120}}}}") as here:
        here.jenkins._physics = Physics(resume_from_seconds=3000.0, resume_to_seconds=3000.0)
        build = here.submit("job", "cpu", 30, kind=Kind.PIPELINE)
        here.until(lambda: build.node, within=5)
        here.minutes(1)
        here.jenkins.restart()
        here.minutes(10)
        assert len(here.machines()) == 1
        here.minutes(2)
        assert here.machines() == []
