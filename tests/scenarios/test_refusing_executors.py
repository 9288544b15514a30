"""Time-lines of free executors that do not take what waits: it is placed elsewhere, one agent after another, and people are told."""

import pytest

from autoscaler.domain.facts.plan import Cordon, Launch
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.builders import a_pool, an_offering
from support.timeline import Day
from support.worlds import a_world_node, in_memory

HOUR = 3600.0
LINUX = frozenset({"linux"})


def a_day(**facts):
    pool = {"labels": LINUX, "max_agents": 10, "idle_seconds": 900.0, "queue_maturity_seconds": 0.0}
    return Day(in_memory(a_pool("cpu", **(pool | facts)))).minutes(3)


def launched(day):
    return len(day.world.ec2.instances)


def waited(builds):
    return [round((build.started_at - build.queued_at) / 60) if build.started_at is not None else None for build in builds]


def subjects(day):
    return [message.subject for message in day.fleet.notifier.sent]


def why(day, subject):
    return " ".join(day.why(subject))


@pytest.mark.parametrize("kind", Kind)
def test_a_throttle_on_each_node_costs_an_agent_for_each_build_and_no_build_waits_for_long(kind):
    day = a_day(executors=2)
    day.jenkins.veto = lambda build, node: "Already running 1 builds on node" if node.builds else None
    builds = [day.jenkins.submit("release", "linux", 4 * HOUR, kind=kind) for _ in range(4)]
    day.minutes(60)
    assert max(waited(builds)) <= 30
    assert launched(day) == 4


@pytest.mark.parametrize("kind", Kind)
def test_under_a_throttle_on_each_node_a_burst_gets_the_agents_that_its_pool_may_have(kind):
    day = a_day(executors=4)
    day.jenkins.veto = lambda build, node: "Already running 1 builds on node" if node.builds else None
    builds = [day.jenkins.submit("release", "linux", 1200.0, kind=kind) for _ in range(24)]
    day.minutes(80)
    assert all(build.started_at is not None for build in builds), waited(builds)


def test_what_keeps_each_wave_of_jobs_waiting_is_told_once():
    day = a_day(executors=4)
    day.jenkins.veto = lambda build, node: "Already running 1 builds on node" if node.builds else None
    for _ in range(3):
        day.queue(6, "linux", seconds=1500.0)
        day.minutes(70)
    assert [subject for subject in subjects(day) if "Already running" in subject] == [
        "[f] jobs on main wait: Already running 1 builds on node"
    ]


@pytest.mark.parametrize("kind", Kind)
def test_a_persons_node_that_may_not_take_a_job_keeps_no_job_waiting(kind):
    day = a_day(executors=2)
    day.jenkins.add_node(a_world_node("office-1", "linux", executors=2))
    day.jenkins.veto = lambda _, node: "Job ‘release’ is not allowed to run on ‘office-1’" if node.name == "office-1" else None
    builds = [day.jenkins.submit("release", "linux", 600.0, kind=kind) for _ in range(4)]
    day.minutes(30)
    assert max(waited(builds)) <= 20


def test_a_lock_costs_one_agent_after_another_ever_more_rarely_and_is_told_once():
    day = a_day()
    day.jenkins.veto = lambda build, _node: "Waiting for the licence" if build.job == "licensed" else None
    licensed = day.jenkins.submit("licensed", "linux", 600.0)
    day.minutes(34)
    assert "did not take it" in why(day, "licensed")
    assert "another agent is tried" in why(day, "licensed")
    day.minutes(4 * 60)
    assert licensed.started_at is None
    assert launched(day) <= 12
    assert day.agents() <= 2
    told = [message for message in day.fleet.notifier.sent if "executors" in message.subject]
    assert [message.subject for message in told] == ["[f] main starts no builds though executors are free"]
    assert "Waiting for the licence" in told[0].text


def a_lock(day, after_minutes):
    """One job waits for a lock for so long, and each agent that is tried refuses it. Return the job, and what ends the lock."""
    day.jenkins.veto = lambda build, _node: "Waiting for the licence" if build.job == "licensed" else None
    licensed = day.jenkins.submit("licensed", "linux", 600.0)
    day.minutes(after_minutes)

    def ends():
        day.jenkins.veto = None
        day.jenkins.schedule()

    return licensed, ends


# In these minutes of the lock an agent has just refused the job: the next is due in 10, or in 20 min.
JUST_REFUSED = [17, 33]


@pytest.mark.parametrize("after_minutes", JUST_REFUSED)
def test_a_lock_that_ends_while_all_that_refused_the_job_are_busy_costs_it_no_more_than_a_boot(after_minutes):
    day = a_day()
    licensed, ends = a_lock(day, after_minutes)
    before, others = launched(day), day.queue(day.agents(), "linux", seconds=4 * HOUR)
    day.minutes(1)
    ends()
    day.minutes(7)
    assert waited(others) == [0] * len(others)
    assert licensed.started_at is not None
    assert launched(day) == before + 1


def test_a_lock_that_ends_after_all_that_refused_the_job_are_gone_costs_it_no_more_than_a_boot():
    day = a_day()
    licensed, ends = a_lock(day, 50)
    before = launched(day)
    for instance in day.world.alive():
        day.world.ec2.terminate(instance.id)
    day.minutes(1)
    ends()
    day.minutes(7)
    assert licensed.started_at is not None
    assert launched(day) == before + 1


def test_an_agent_beside_which_a_job_waits_is_no_surplus_before_it_is_known_to_refuse():
    """The job counts for the pool with the fewest labels, and gets an agent of the cheaper one, which nobody else needs."""
    facts = {"max_agents": 10, "idle_seconds": 300.0, "queue_maturity_seconds": 0.0}
    dear = a_pool("dear", labels=LINUX, offerings=(an_offering(usd_per_hour=9.0),), **facts)
    cheap = a_pool("cheap", labels=LINUX | {"docker"}, offerings=(an_offering(usd_per_hour=1.0),), **facts)
    day = Day(in_memory(dear, cheap)).minutes(30)
    day.jenkins.veto = lambda build, _node: "Waiting for the licence" if build.job == "licensed" else None
    day.jenkins.submit("licensed", "linux", 600.0)
    day.minutes(2 * 60)
    assert launched(day) <= 6


def take_nothing_at_first(day, seconds):
    """Agents need so long after they connected before they take work. Jenkins looks at its queue again when they are ready."""
    connect, free_for, since = day.jenkins.connect, day.jenkins.free_for, dict[str, float]()

    def connects(name):
        since[name] = day.world.timeline.now
        connect(name)
        day.world.timeline.after(seconds + 1.0, day.jenkins.schedule)

    day.jenkins.connect = connects
    day.jenkins.free_for = lambda build: [node for node in free_for(build) if day.world.timeline.now >= since[node.name] + seconds]


@pytest.mark.parametrize("jobs", [("app",), ("team-a/app", "team-b/app")])
@pytest.mark.parametrize("minutes", [4, 10])
def test_jobs_begin_though_each_agent_takes_nothing_for_its_first_minutes(minutes, jobs):
    """Nobody needs agents of the cheap pool but them, and they count for the other pool: each agent was surplus once it had refused."""
    facts = {"max_agents": 10, "idle_seconds": 300.0, "queue_maturity_seconds": 0.0}
    dear = a_pool("dear", labels=LINUX, offerings=(an_offering(usd_per_hour=9.0),), **facts)
    cheap = a_pool("cheap", labels=LINUX | {"docker"}, offerings=(an_offering(usd_per_hour=1.0),), **facts)
    day = Day(in_memory(dear, cheap)).minutes(30)
    take_nothing_at_first(day, minutes * 60.0)
    builds = [day.jenkins.submit(job, "linux", 600.0) for job in jobs]
    day.minutes(75)
    assert all(build.started_at is not None for build in builds)
    assert launched(day) <= 6
    day.minutes(45)
    assert day.agents() == 0


def test_why_says_of_an_idle_agent_that_it_is_tried_for_a_job_that_it_did_not_take_so_far():
    day = a_day(idle_seconds=300.0)
    day.jenkins.veto = lambda _build, _node: "Waiting for the licence"
    day.jenkins.submit("licensed", "linux", 600.0)
    said = [why(day, node) for _ in range(40) for node in day.minutes(1).nodes()]
    assert any("some agents take none for minutes after they connected" in text for text in said)


def test_why_promises_no_start_on_a_cordoned_agent_to_a_job_that_free_executors_refused():
    """Its agents are surplus while they run their builds. One of them has just ended, so that the agent is brought back for a try."""
    day = a_day(idle_seconds=None)
    day.queue(3, "linux", seconds=540.0)
    a_lock(day.minutes(5), after_minutes=8)
    said = why(day, "licensed")
    assert "now to be done: Uncordon, demand-is-back: licensed waits for it" in said
    assert "free executors did not take it; an agent is tried for it" in said
    assert "at once" not in said


def test_while_one_job_is_refused_the_others_of_its_label_are_served_as_always():
    day = a_day()
    day.jenkins.veto = lambda build, _node: "Waiting for the licence" if build.job == "licensed" else None
    day.jenkins.submit("licensed", "linux", 600.0)
    day.minutes(30)
    others = [day.jenkins.submit(f"free-{number}", "linux", 600.0) for number in range(6)]
    day.minutes(12)
    assert max(waited(others)) <= 6


def suspended(day, count):
    """So many agents have had a build each, and take none any more."""
    day.queue(count, "linux", seconds=300.0)
    day.minutes(12)
    names, free_for = set(day.nodes()), day.jenkins.free_for
    day.jenkins.free_for = lambda build: [node for node in free_for(build) if node.name not in names]
    return names


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("count", [1, 2])
def test_suspended_agents_are_replaced_and_their_jobs_start_elsewhere(kind, count):
    day = a_day()
    names = suspended(day, count)
    builds = [day.jenkins.submit(f"job-{number}", "linux", 600.0, kind=kind) for number in range(count)]
    day.minutes(60)
    assert max(waited(builds)) <= 20
    assert names.isdisjoint(day.nodes())


def test_an_agent_that_refuses_is_replaced_at_once_if_jobs_of_two_folders_wait_and_builds_begin_elsewhere():
    day = a_day(idle_seconds=7200.0)
    [name] = suspended(day, 1)
    for job in ("team-a/app", "team-b/app", "team-c/app"):
        day.jenkins.submit(job, "linux", 600.0)
    day.minutes(25)
    [cordon] = [step for step in day.done(Cordon) if step.node == name]
    assert cordon.reason == "refuses-all"
    assert "took none of" in cordon.detail
    assert any("take no builds" in subject for subject in subjects(day))


def test_no_agent_is_replaced_if_the_controller_starts_nothing_at_all_and_that_is_told():
    day = a_day(idle_seconds=7200.0)
    day.queue(3, "linux", seconds=300.0)
    day.minutes(15)
    day.jenkins.veto = lambda _build, _node: "Jenkins is being maintained"
    builds = [day.jenkins.submit(f"team-{number}/app", "linux", 600.0) for number in range(6)]
    day.minutes(2 * 60)
    assert not [step for step in day.done(Cordon) if step.reason == "refuses-all"]
    assert sum(step.count for step in day.done(Launch)) <= 9
    assert "[f] main starts no builds though executors are free" in subjects(day)
    assert "Jenkins is being maintained" in next(
        message.text for message in day.fleet.notifier.sent if "starts no builds" in message.subject
    )
    for is_maintained, minutes in ((False, 30), (True, 40), (False, 75)):
        day.jenkins.veto = (lambda _build, _node: "Jenkins is being maintained") if is_maintained else None
        builds += [day.jenkins.submit(f"team-{number}/app", "linux", 600.0) for number in range(3)]
        day.jenkins.schedule()
        day.minutes(minutes)
    assert all(build.ended_at for build in builds)
    told = [subject for subject in subjects(day) if "starts no builds" in subject]
    assert told == [f"[f] {over}main starts no builds though executors are free" for over in ("", "over: ")]


def test_one_broken_promise_drains_nothing():
    day = a_day(executors=2)
    day.jenkins.veto = lambda build, node: "Already running 1 builds on node" if node.builds else None
    for _ in range(2):
        day.jenkins.submit("release", "linux", HOUR)
    day.minutes(30)
    assert not [step for step in day.done(Cordon) if step.reason == "refuses-all"]


def test_a_hiccup_of_some_minutes_costs_one_agent_and_is_forgotten():
    day = a_day()
    day.queue(2, "linux", seconds=300.0)
    day.minutes(12)
    day.jenkins.veto = lambda _build, _node: "Please wait"
    first = day.jenkins.submit("first", "linux", 300.0)
    day.minutes(6)
    day.jenkins.veto = None
    day.jenkins.schedule()
    day.minutes(10)
    assert first.ended_at
    assert launched(day) <= 3
    before = launched(day)
    burst = day.queue(8, "linux", seconds=1800.0)
    day.minutes(10)
    assert max(waited(burst)) <= 6
    assert launched(day) - before >= 5


def test_why_says_for_which_build_on_a_persons_node_a_job_waits():
    day = a_day(executors=1, max_agents=1)
    day.jenkins.add_node(a_world_node("office-1", "linux", executors=1))
    day.jenkins.submit("long", "linux", 2 * HOUR)
    day.minutes(1)
    for _ in range(2):
        day.jenkins.submit("release", "linux", 300.0)
    day.minutes(2)
    assert "it waits for long on another node" in why(day, "release")
