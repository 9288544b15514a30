"""Time-lines of labels that change, in the fleet file or on a node, and of items that one node alone can take."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.plan import Cordon, Launch, RemoveBeacon
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.builders import a_pool
from support.deployed import essential_thresholds
from support.timeline import Day
from support.worlds import a_world_node, in_memory

HOUR = 3600.0
THRESHOLDS = essential_thresholds()


def a_day(**facts):
    pool = {"labels": frozenset({"linux"}), "max_agents": 10, "idle_seconds": 900.0, "queue_maturity_seconds": 0.0}
    return Day(in_memory(a_pool("cpu", **(pool | facts)), thresholds=THRESHOLDS)).minutes(3)


def give_labels(day, *labels):
    pools = day.fleet.fleet.pools
    pools["cpu"] = replace(pools["cpu"], labels=frozenset(labels))


def relabel(day, name, *labels):
    """A person edits a node."""
    day.jenkins.configure(name, labels, exclusive=True, executors=1)


def waited(build):
    return None if build.started_at is None else round((build.started_at - build.queued_at) / 60)


def why(day, subject):
    return " ".join(day.why(subject))


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("most", [1, 3])
def test_a_job_for_labels_that_the_file_gives_now_starts_though_an_agent_with_the_old_ones_is_idle(kind, most):
    day = a_day(max_agents=most, min_agents=1, idle_seconds=HOUR).minutes(5)
    give_labels(day, "linux", "docker")
    build = day.jenkins.submit("app", "linux&&docker", 60.0, kind=kind)
    day.minutes(1)
    assert "at once" not in why(day, "app")
    day.minutes(12)
    assert waited(build) is not None
    assert waited(build) <= 9


def test_agents_with_labels_of_before_are_replaced_within_the_hours_share_and_their_builds_end():
    day = a_day(max_agents=4).minutes(1)
    builds = day.queue(3, "linux", seconds=1800.0)
    day.minutes(8)
    give_labels(day, "linux", "docker")
    day.minutes(20)
    assert len([step for step in day.done(Cordon) if step.reason == "outdated"]) == 1
    day.minutes(30)
    assert all(build.succeeded for build in builds)


def test_the_beacons_follow_the_labels_that_the_file_gives():
    day = a_day()
    give_labels(day, "linux", "docker")
    day.minutes(3)
    labels = {frozenset(node.labels) for name, node in day.jenkins.nodes.items() if name.startswith("autoscaler-beacon")}
    assert frozenset({"linux", "docker", "autoscaler-fleet-f"}) in labels
    assert frozenset({"linux", "autoscaler-fleet-f"}) not in labels
    assert day.done(RemoveBeacon)


def test_an_agent_that_a_person_gave_other_labels_serves_what_it_has_and_is_not_drained_for_that():
    day = a_day(idle_seconds=4 * HOUR, max_idle_seconds=4 * HOUR)
    day.queue(1, "linux", seconds=60.0)
    day.minutes(8)
    [name] = day.nodes()
    relabel(day, name, "special", "autoscaler-fleet-f")
    build = day.jenkins.submit("app", "linux", 600.0)
    day.minutes(6)
    assert waited(build) is not None
    assert waited(build) <= 5
    assert not [step for step in day.done(Cordon) if step.node == name]


@pytest.mark.parametrize("kind", Kind)
def test_a_job_that_excludes_a_label_which_a_person_added_gets_another_agent(kind):
    day = a_day(idle_seconds=4 * HOUR, max_idle_seconds=4 * HOUR)
    day.queue(1, "linux", seconds=60.0)
    day.minutes(8)
    [name] = day.nodes()
    relabel(day, name, "linux", "broken", "autoscaler-fleet-f")
    build = day.jenkins.submit("app", "linux&&!broken", 600.0, kind=kind)
    day.minutes(6)
    assert waited(build) is not None
    assert waited(build) <= 5


@pytest.mark.parametrize("kind", Kind)
def test_nothing_is_launched_for_a_job_that_asks_for_the_node_of_a_running_build(kind):
    day = a_day()
    [parent] = day.queue(1, "linux", seconds=2 * HOUR)
    day.minutes(8)
    child = day.jenkins.submit("child", parent.node, 600.0, kind=kind)
    day.minutes(90)
    assert sum(step.count for step in day.done(Launch)) == 1
    assert f"{parent.node} alone can take it" in why(day, "child")
    assert [message.subject for message in day.fleet.notifier.sent] == [f"[f] jobs on main wait: {parent.node} alone can take them"]
    day.minutes(60)
    assert child.succeeded
    assert child.node == parent.node


@pytest.mark.parametrize("connected", [True, False])
def test_nothing_is_launched_for_pipelines_that_wait_for_a_persons_node(connected):
    day = a_day()
    day.jenkins.add_node(a_world_node("lic-1", "licensed", connected=connected))
    for _ in range(3):
        day.jenkins.submit("tied", "licensed", HOUR, kind=Kind.PIPELINE)
    day.minutes(60)
    assert not day.done(Launch)
    assert "lic-1 alone can take it" in why(day, "tied")
    assert [message.subject for message in day.fleet.notifier.sent] == ["[f] jobs on main wait: lic-1 alone can take them"]


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize(("most", "builds_each"), [(1, 1), (1, 3), (2, 1)])
def test_the_only_agent_of_a_label_is_replaced_like_any_other(kind, most, builds_each):
    day = a_day(max_agents=most, max_builds=builds_each)
    builds = [day.jenkins.submit(f"t-{number}", "linux", 420.0, kind=kind) for number in range(6)]
    day.minutes(150)
    assert all(build.succeeded for build in builds)
    on_each = [sum(build.node == node for build in builds) for node in {build.node for build in builds}]
    assert max(on_each) <= builds_each


@pytest.mark.parametrize("kind", Kind)
def test_the_only_agent_of_a_label_that_never_connects_is_given_up_at_its_deadline(kind):
    day = a_day(max_agents=1)
    connect, bad = day.jenkins.connect, []

    def connects(name):
        if not bad:
            bad.append(name)
        if name not in bad:
            connect(name)

    day.jenkins.connect = connects
    [build] = day.queue(1, "linux", kind=kind)
    day.minutes(60)
    assert waited(build) is not None
    assert waited(build) <= 30


def two_kinds(**facts):
    """A fleet of two kinds of Linux agents, of which the rarer one has room for one agent."""
    now = {"idle_seconds": 900.0, "boot_seconds": 90.0, "queue_maturity_seconds": 0.0}
    pools = (
        a_pool("cpu", labels=frozenset({"cpu", "linux"}), max_agents=3, **now),
        a_pool("gpu", labels=frozenset({"gpu", "linux"}), max_agents=1, **now, **facts),
    )
    return Day(in_memory(*pools, thresholds=THRESHOLDS)).minutes(4)


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("least", [0, 1])
@pytest.mark.parametrize("asked", ["linux && !cpu", "gpu && linux"])
def test_the_only_agent_of_a_full_pool_that_lost_a_label_makes_room_for_jobs_that_ask_for_it(kind, least, asked):
    day = two_kinds(min_agents=least)
    day.queue(1, "gpu", seconds=60.0)
    day.minutes(8)
    [name] = [node for node in day.nodes() if node.startswith("gpu")]
    relabel(day, name, "gpu", "autoscaler-fleet-f")
    day.minutes(1)
    build = day.jenkins.submit("app", asked, 120.0, kind=kind)
    day.minutes(15)
    assert waited(build) is not None
    assert waited(build) <= 7


@pytest.mark.parametrize("kind", Kind)
def test_an_idle_agent_of_a_full_pool_makes_room_for_a_job_that_excludes_what_a_person_gave_it(kind):
    day = a_day(max_agents=1, idle_seconds=4 * HOUR, max_idle_seconds=4 * HOUR)
    day.queue(1, "linux", seconds=60.0)
    day.minutes(8)
    [name] = day.nodes()
    relabel(day, name, "linux", "broken", "autoscaler-fleet-f")
    build = day.jenkins.submit("app", "linux && !broken", 120.0, kind=kind)
    day.minutes(60)
    assert waited(build) is not None
    assert waited(build) <= 9
    assert len([step for step in day.done(Cordon) if step.node == name]) <= 2


@pytest.mark.parametrize("is_lost", [False, True])
def test_nothing_is_launched_for_a_label_that_a_person_gave_a_busy_agent(is_lost):
    """Jenkins hides the label of a pipeline behind the name of the one node that has it."""
    day = a_day()
    day.jenkins.submit("long", "linux", 4 * HOUR, kind=Kind.PIPELINE)
    day.minutes(8)
    [name] = day.nodes()
    relabel(day, name, "linux", "licence", "autoscaler-fleet-f")
    build = day.jenkins.submit("sign", "licence", 300.0, kind=Kind.PIPELINE)
    day.minutes(20)
    if is_lost:
        day.jenkins.disconnect(name)
        day.minutes(3)
        day.jenkins.connect(name)
    day.minutes(60)
    assert sum(step.count for step in day.done(Launch)) == 1
    assert f"{name} alone can take it, and is busy" in why(day, "sign")
    day.minutes(180)
    assert build.succeeded


def test_a_job_that_excludes_an_idle_agent_by_its_name_gets_another_one():
    day = a_day(idle_seconds=4 * HOUR, max_idle_seconds=4 * HOUR)
    day.queue(1, "linux", seconds=60.0)
    day.minutes(8)
    [name] = day.nodes()
    build = day.jenkins.submit("app", f"linux && !{name}", 120.0)
    day.minutes(7)
    assert waited(build) is not None
    assert waited(build) <= 5


@pytest.mark.parametrize("kind", Kind)
def test_if_each_new_agent_loses_a_label_agents_are_launched_for_its_jobs_ever_more_rarely(kind):
    day = a_day(labels=frozenset({"linux", "gpu"}), max_agents=4, boot_seconds=90.0).minutes(1)
    connect = day.jenkins.connect

    def connects(name):
        node = day.jenkins.nodes.get(name)
        if node is not None and "gpu" in node.labels:
            day.jenkins.configure(name, [label for label in node.labels if label != "gpu"], exclusive=True, executors=1)
        connect(name)

    day.jenkins.connect = connects
    day.jenkins.submit("app", "linux && gpu", 120.0, kind=kind)
    day.minutes(60)
    first_hour = sum(step.count for step in day.done(Launch))
    day.minutes(120)
    assert first_hour <= 12
    assert sum(step.count for step in day.done(Launch)) - first_hour <= 12


@pytest.mark.parametrize("kind", Kind)
def test_the_one_agent_with_a_label_that_a_job_waits_for_is_not_ended_though_its_pool_has_others_now(kind):
    day = a_day(max_agents=4)
    long = day.jenkins.submit("long", "linux", HOUR, kind=Kind.PIPELINE)
    day.minutes(8)
    relabel(day, long.node, "linux", "licence", "autoscaler-fleet-f")
    build = day.jenkins.submit("sign", "licence", 300.0, kind=kind)
    day.minutes(5)
    give_labels(day, "linux", "docker")
    day.minutes(180)
    assert build.succeeded
