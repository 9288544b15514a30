"""Time-lines of jobs that free executors refuse: launches for them are few for as long as they help none, whatever begins meanwhile."""

import pytest

from autoscaler.control import passes
from autoscaler.domain.facts.orders import CloseBreaker
from autoscaler.domain.facts.plan import Cordon
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.builders import a_pool
from support.timeline import Day
from support.worlds import a_world_node, in_memory

HOUR = 3600.0
FACTS = {"max_agents": 60, "idle_seconds": 600.0, "queue_maturity_seconds": 0.0, "boot_seconds": 120.0}


def a_day(*pools):
    pools = pools or (a_pool("cpu", **FACTS), a_pool("office", **FACTS))
    return Day(in_memory(*pools, max_agents=200, max_launches_per_hour=1000)).minutes(3)


def launched(day, pool="cpu"):
    return sum(instance.tags["autoscaler:pool"] == pool for instance in day.world.ec2.instances.values())


def hours(day, count, each_minute, pool="cpu"):
    """Live hours, and say how many agents of a pool each of them launched."""
    counts = []
    for _ in range(count):
        before = launched(day, pool)
        for minute in range(60):
            each_minute(minute)
            day.minutes(1)
        counts.append(launched(day, pool) - before)
    return counts


def pages(day, minute):
    """Builds of another pool begin all the time: the controller is not at fault."""
    if minute % 15 == 0:
        day.jenkins.submit("page", "office", 200.0)


@pytest.mark.parametrize("where", ["office", "mac"])
@pytest.mark.parametrize("kind", Kind)
def test_stages_of_one_name_that_begin_on_another_label_are_no_sign_that_it_helps(kind, where):
    day = a_day()
    day.jenkins.add_node(a_world_node("static-1", "mac", executors=4))
    day.jenkins.veto = lambda build, node: "lacks permission" if build.label == "cpu" and node.name.startswith("cpu") else None

    def stages(minute):
        if minute % 3 == 0:
            for _ in range(1 + minute // 15):  # more and more of them run at once
                day.jenkins.submit("app", where, 100.0, kind=kind)
            day.jenkins.submit("app", "cpu", 300.0, kind=kind)

    first, *later = hours(day, 3, stages)
    assert first <= 8
    assert max(later) <= 3


def test_sixty_jobs_without_a_permission_cost_no_more_than_one():
    day = a_day()
    day.jenkins.veto = lambda build, node: "lacks permission" if build.job.startswith("secret") else None
    for number in range(60):
        day.jenkins.submit(f"secret-{number}", "cpu", 300.0)
    _, *later = hours(day, 3, lambda minute: pages(day, minute))
    assert max(later) <= 3


def running(day, name):
    return sum(name in build.job for node in day.jenkins.nodes.values() for build in node.builds.values())


def test_a_throttle_over_all_nodes_lets_builds_begin_all_day_and_costs_three_agents_an_hour():
    day = a_day()
    day.jenkins.veto = lambda build, node: "throttled" if build.job == "e2e" and running(day, "e2e") >= 2 else None

    def forty(minute):
        pages(day, minute)
        while sum(build.started_at is None for build in day.jenkins.builds if build.job == "e2e") < 40:
            day.jenkins.submit("e2e", "cpu", 700.0)

    _, *later = hours(day, 4, forty)
    # Two builds run all the time; their agents go and come, too.
    assert max(later) <= 5


def test_two_slots_of_a_throttle_that_move_to_another_label_together_open_nothing():
    day = a_day()
    day.jenkins.veto = lambda build, node: "throttled" if "deploy" in build.job and running(day, "deploy") >= 2 else None
    for _ in range(2):
        day.jenkins.submit("deploy-page", "office", 840.0)
    day.minutes(6)
    for minute in range(60):
        while sum(build.started_at is None for build in day.jenkins.builds if build.label == "cpu") < (2 if minute < 4 else 40):
            day.jenkins.submit("deploy-app", "cpu", 900.0)
        pages(day, minute)
        day.minutes(1)
    # Two for the first that wait, one for each try, and four after the slots have moved, since then a try was won.
    assert launched(day) <= 10


def test_one_deploy_at_a_time_over_four_folders_is_the_fault_of_no_agent():
    day = a_day(a_pool("cpu", **FACTS | {"max_agents": 10}))
    day.jenkins.veto = lambda build, node: "throttled" if "deploy" in build.job and running(day, "deploy") >= 1 else None
    made = []

    def deploys(minute):
        if minute % 20 == 0:
            day.jenkins.submit("page", "cpu", 240.0)
        while sum(build.started_at is None for build in made) < 4:
            made.append(day.jenkins.submit(f"team{len(made) % 4}/{len(made) % 4}-deploy", "cpu", 1500.0))

    counts = hours(day, 5, deploys)
    assert not [step for step in day.done(Cordon) if step.reason == "refuses-all"]
    assert sum(counts) <= 25
    assert len({message.subject for message in day.fleet.notifier.sent}) <= 4


def test_agents_that_stand_beside_jobs_of_a_lock_are_not_at_fault_once_it_lets_one_of_them_take_a_job():
    day = a_day()
    day.jenkins.veto = lambda build, node: "[sign] is locked" if "deploy" in build.job and running(day, "deploy") >= 1 else None
    day.jenkins.submit("deploy-page", "office", 600.0)
    day.minutes(4)
    for number in range(12):
        day.jenkins.submit(f"deploy-{number}", "cpu", 1500.0)
    for minute in range(30):
        pages(day, minute)
        day.minutes(1)
    assert running(day, "deploy") == 1
    assert not [step for step in day.done(Cordon) if step.reason == "refuses-all"]


def a_day_behind_a_lock(jobs):
    """A lock has kept so many jobs waiting for three hours."""
    day = a_day()
    day.jenkins.veto = lambda build, _node: "Waiting for the licence" if build.job.startswith("locked") else None
    locked = [day.jenkins.submit(f"locked-{number}", "cpu", 2 * HOUR) for number in range(jobs)]
    hours(day, 3, lambda minute: pages(day, minute))
    return day, locked


def test_after_a_lock_of_three_hours_forty_jobs_have_agents_within_twenty_minutes_and_three_boots():
    day, locked = a_day_behind_a_lock(40)
    day.jenkins.veto = None
    day.jenkins.schedule()
    day.minutes(20 + 3 * 4)
    assert [build.job for build in locked if build.started_at is None] == []


def test_once_a_person_says_that_a_lock_is_mended_its_jobs_have_agents_within_a_boot():
    day, locked = a_day_behind_a_lock(20)
    day.jenkins.veto = None
    passes.carry_out(day.fleet.ports, day.fleet.fleet, day.fleet.invocation(), CloseBreaker(pool="cpu"))
    day.minutes(6)
    assert [build.job for build in locked if build.started_at is None] == []


def test_once_a_throttle_of_one_build_has_gone_its_jobs_have_more_than_one_agent():
    """Its agent would always be free before another one boots, so none was tried: they ran one by one (hostile world 3250167)."""
    day = a_day(a_pool("cpu", **FACTS | {"boot_seconds": 300.0}), a_pool("office", **FACTS))
    day.jenkins.veto = lambda build, node: "throttled" if build.job == "e2e" and running(day, "e2e") >= 1 else None
    builds = [day.jenkins.submit("e2e", "cpu", 200.0) for _ in range(60)]
    hours(day, 1, lambda minute: pages(day, minute))
    assert sum(build.started_at is None for build in builds) >= 40
    day.jenkins.veto = None
    day.jenkins.schedule()
    day.minutes(20 + 3 * 7 + 10)
    assert [build.number for build in builds if build.started_at is None] == []


def test_what_is_still_refused_after_others_ran_costs_one_launch_for_each_job_and_then_few():
    """Eight jobs that were refused with them run at once, which is eight wins; a dozen agents in vain were one loss (world 1700234)."""
    day = a_day()
    refused = ["locked", "secret"]
    day.jenkins.veto = lambda build, _node: "lacks permission" if build.job.startswith(tuple(refused)) else None
    locked = [day.jenkins.submit(f"locked-{number}", "cpu", 240.0) for number in range(8)]
    for number in range(12):
        day.jenkins.submit(f"secret-{number}", "cpu", 300.0)
    hours(day, 1, lambda minute: pages(day, minute))
    refused.remove("locked")
    day.jenkins.schedule()
    first, later = hours(day, 2, lambda minute: pages(day, minute))
    assert [build.job for build in locked if build.started_at is None] == []
    # Eight jobs ran. Then each of the dozen may be tried once, with the width of a scope that is open, and few after that.
    assert first <= 8 + 12 + 6
    assert later <= 6


@pytest.mark.parametrize("facts", [{}, {"min_agents": 1}, {"warm_executors": 1}, {"idle_seconds": 2 * HOUR}])
def test_in_a_full_pool_an_idle_agent_that_refuses_a_job_makes_room_for_the_one_that_is_tried(facts):
    day = a_day(a_pool("cpu", **FACTS | {"max_agents": 1} | facts), a_pool("office", **FACTS))
    day.jenkins.submit("first", "cpu", 60.0)
    day.minutes(8)
    [suspended] = [name for name in day.nodes() if name.startswith("cpu")]
    free_for = day.jenkins.free_for
    day.jenkins.free_for = lambda build: [node for node in free_for(build) if node.name != suspended]
    build = day.jenkins.submit("job", "cpu", 600.0)
    for minute in range(15):
        pages(day, minute)
        day.minutes(1)
    assert build.started_at is not None
    assert suspended not in day.nodes()


@pytest.mark.parametrize("kind", Kind)
def test_in_a_full_pool_agents_that_all_refuse_the_jobs_that_wait_end(kind):
    day = a_day(a_pool("cpu", **FACTS | {"max_agents": 20, "idle_seconds": 300.0}), a_pool("office", **FACTS))
    day.jenkins.veto = lambda build, node: "lacks permission" if build.job == "secret" else None
    for _ in range(40):
        day.jenkins.submit("secret", "cpu", 300.0, kind=kind)
    hours(day, 1, lambda minute: pages(day, minute))
    assert launched(day) >= 20
    assert sum(instance.tags["autoscaler:pool"] == "cpu" for instance in day.world.alive()) <= 3


def test_under_a_throttle_of_each_node_agents_that_run_such_a_job_stay_for_the_next():
    """Each that was tried took a job, and went once the next had come, since its other executors stood free (hostile world 1300283)."""
    day = a_day(a_pool("cpu", **FACTS | {"max_agents": 8, "executors": 4, "boot_seconds": 200.0}))
    for _ in range(4):
        day.jenkins.submit("e2e", "cpu", 900.0)
    day.minutes(8)
    day.jenkins.veto = lambda build, node: "Already running 1 builds on node" if running_on(node, "e2e") and build.job == "e2e" else None
    builds = [day.jenkins.submit("e2e", "cpu", 700.0) for _ in range(20)]
    gone = 0
    while any(build.started_at is None for build in builds):
        gone = len(day.done(Cordon))
        day.minutes(1)
    assert gone == 0
    assert day.world.timeline.now - builds[0].queued_at <= 35 * 60.0


def test_under_a_throttle_of_each_node_nobody_reads_that_a_node_which_runs_such_a_job_takes_no_builds():
    day = a_day(a_pool("cpu", **FACTS | {"executors": 4}), a_pool("office", **FACTS))
    day.jenkins.veto = lambda build, node: "Already running 1 builds on node" if running_on(node, "e2e") and build.job == "e2e" else None
    for minute in range(60):
        pages(day, minute)
        while sum(build.started_at is None for build in day.jenkins.builds if build.job == "e2e") < 24:
            day.jenkins.submit("e2e", "cpu", 1200.0)
        day.minutes(1)
    assert not [message.subject for message in day.fleet.notifier.sent if "take no builds" in message.subject]


def running_on(node, name):
    return any(build.job == name for build in node.builds.values())
