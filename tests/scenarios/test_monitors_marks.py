"""Time-lines of nodes that Jenkins' monitors take offline by themselves: what is marked is replaced, and most of a controller never is."""

import pytest

from autoscaler.control import passes
from autoscaler.domain.facts.fleet import Share
from autoscaler.domain.facts.orders import CloseBreaker, DrainNodes
from autoscaler.domain.facts.plan import Cordon, Launch, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from autoscaler_workbench.fakes.world.jenkins.monitoring import CLOCK, DISK, VERSION, NodeMonitor, watch
from support.builders import a_host, a_pool, a_pool_of_hosts
from support.reserving import an_idle_day, connected, reserve
from support.timeline import Day
from support.worlds import in_memory

HOUR = 3600.0
DISK_WORDS = "Disk space is below threshold of 1.00 GiB. Only 0.40 GiB left on /."
CAUSES = [DISK, CLOCK, VERSION, "com.example.SomePluginNobodyKnows$Cause", "hudson.slaves.OfflineCause$LegacyOfflineCause"]


def a_day(**pool):
    return Day(in_memory(a_pool("cpu", **({"idle_seconds": 600.0, "max_agents": 10, "queue_maturity_seconds": 0.0} | pool)))).minutes(3)


def busy_day(agents=2, seconds=300.0, **pool):
    """So many agents are there, and have had a build each."""
    day = a_day(**pool)
    day.queue(agents, seconds=seconds)
    return day.minutes(6 + int(seconds // 60))


def marks(day, minds, cause=DISK, words=DISK_WORDS, **how):
    return watch(day.jenkins, NodeMonitor(cause=cause, words=words, minds=minds, **how))


def mark_one(day, cause=DISK, **how):
    """A monitor takes the first node offline."""
    name = day.nodes()[0]
    marks(day, lambda node: node.name == name, cause=cause, **how)
    return name


def cordons(day, reason=Reason.MARKED_BY_MONITOR):
    return [step for step in day.done(Cordon) if step.reason is reason]


def launched(day):
    return sum(step.count for step in day.done(Launch))


def lost(day):
    return [build for build in day.jenkins.builds if build.ended is Ended.KILLED]


@pytest.mark.parametrize("cause", CAUSES)
def test_what_a_monitor_took_offline_ends_after_ten_minutes_whoever_the_monitor_is(cause):
    day = busy_day(idle_seconds=7200.0)
    name = mark_one(day, cause)
    day.minutes(9)
    assert name in day.nodes()
    day.minutes(6)
    assert name not in day.nodes()
    assert [step.node for step in cordons(day)] == [name]


@pytest.mark.parametrize("cause", ["hudson.slaves.OfflineCause$UserCause", "hudson.cli.OfflineNodeCommand$OfflineCause$ByCLI"])
def test_what_a_person_took_offline_stays(cause):
    day = busy_day(idle_seconds=7200.0)
    name = mark_one(day, cause)
    day.minutes(60)
    assert name in day.nodes()
    assert [result for report in day.fleet.reports for result in report.results if isinstance(result.step, Cordon)] == []


def test_a_job_gets_another_agent_at_once():
    day = busy_day(agents=1)
    mark_one(day)
    before = launched(day)
    [build] = day.queue(1, seconds=60.0)
    day.minutes(2)
    assert launched(day) == before + 1
    day.minutes(6)
    assert build.ended is Ended.FINISHED


def test_the_only_agent_that_a_pool_may_have_makes_room_though_the_job_names_it():
    """Jenkins says of a label that one node has that this node is offline."""
    day = busy_day(agents=1, max_agents=1)
    name = mark_one(day)
    builds = [*day.queue(1, seconds=60.0), *day.queue(1, seconds=60.0, kind=Kind.PIPELINE)]
    day.minutes(22)
    assert name not in day.nodes()
    assert {build.ended for build in builds} == {Ended.FINISHED}


def test_a_full_pool_of_marked_agents_makes_room_for_all_jobs_that_wait():
    day = a_day(max_agents=4, idle_seconds=7200.0)
    day.queue(4, seconds=300.0)
    day.minutes(12)
    marked = []
    marks(day, lambda node: node.name in marked, every_seconds=60.0)
    for name in day.nodes():  # one after the other, so that nobody blames the controller
        marked.append(name)
        day.minutes(6)
    assert day.agents() >= 3
    builds = day.queue(4, seconds=60.0)
    day.minutes(30)
    assert {build.ended for build in builds} == {Ended.FINISHED}


def test_builds_on_it_run_to_their_end():
    day = a_day()
    [build] = day.queue(1, seconds=3600.0)
    day.minutes(10)
    name = mark_one(day)
    day.minutes(40)
    assert (name in day.nodes(), build.ended) == (True, None)
    day.minutes(25)
    assert build.ended is Ended.FINISHED
    assert name not in day.nodes()


def test_what_the_monitor_brings_back_within_ten_minutes_is_used_again():
    day = busy_day(agents=1, idle_seconds=7200.0)
    name = day.nodes()[0]
    full = [name]
    marks(day, lambda node: node.name in full, every_seconds=240.0)
    day.minutes(3)
    full.clear()
    day.minutes(4)
    before = launched(day)
    [build] = day.queue(1, seconds=60.0)
    day.minutes(20)
    assert (build.ended, build.node, launched(day)) == (Ended.FINISHED, name, before)
    assert cordons(day) == []


LOST = "hudson.slaves.OfflineCause$ChannelTermination"


@pytest.mark.parametrize("shown", [LOST, None])
@pytest.mark.parametrize(("who", "ends"), [(DISK, True), ("hudson.slaves.OfflineCause$UserCause", False)])
def test_whose_mark_it_is_is_known_though_a_lost_connection_hides_it(who, ends, shown):
    """Before 2.482 Jenkins shows the cause of the lost connection, and none once the agent is back (SlaveComputer.setChannel)."""
    day = busy_day(agents=1, idle_seconds=7200.0)
    name = mark_one(day, who, brings_back=False)
    day.minutes(2)
    day.jenkins.nodes[name].cause, day.jenkins.nodes[name].reason = shown, ""
    day.minutes(20)
    assert (name not in day.nodes()) is ends


def test_minimum_agents_are_replaced_too():
    day = a_day(min_agents=2).minutes(10)
    mark_one(day)
    day.minutes(6)
    assert sum(not node.offline for node in day.jenkins.nodes.values()) == 2


def test_most_agents_of_a_controller_are_not_to_blame():
    """A clock runs wrong: nothing ends, nothing is launched for it, and once it is right everything goes on."""
    day = busy_day(agents=5, idle_seconds=7200.0)
    wrong = [True]
    marks(day, lambda _: bool(wrong), CLOCK, "Clock is too far off", every_seconds=600.0)
    builds = day.queue(5, seconds=60.0)
    before = launched(day)
    day.minutes(50)
    assert (launched(day), day.done(Terminate), day.agents()) == (before, [], 5)
    wrong.clear()
    day.minutes(15)
    assert {build.ended for build in builds} == {Ended.FINISHED}
    assert (launched(day), day.done(Terminate)) == (before, [])


def test_a_plugin_that_marks_whatever_connects_costs_one_agent_an_hour():
    day = a_day(idle_seconds=900.0)
    marks(day, lambda _: True, VERSION, "This node is offline because it uses an incompatible JVM version")
    for hour in range(6):
        for number in range(6):
            day.jenkins.submit(f"job-{hour}-{number}", "cpu", 600.0)
        day.minutes(60)
    assert launched(day) <= 6 + 5
    assert day.agents() <= 7


@pytest.mark.parametrize("most", [6, 10])
def test_jobs_are_served_within_the_bound_once_the_plugin_is_mended(most):
    """Also where marked agents have taken every place of their pool."""
    day = a_day(idle_seconds=900.0, max_agents=most)
    monitor = marks(day, lambda _: True, VERSION, "This node is offline because it uses an incompatible JVM version")
    for number in range(12):
        day.jenkins.submit(f"early-{number}", "cpu", 600.0)
    day.minutes(150)
    day.jenkins.node_monitors.remove(monitor)
    builds = [day.jenkins.submit(f"late-{number}", "cpu", 60.0) for number in range(6)]
    day.minutes(76)
    assert all(build.started_at is not None for build in builds)
    day.minutes(240)
    assert day.agents() == 0, "the marked ones have ended as well"


def test_once_a_person_says_that_the_plugin_is_mended_all_jobs_get_agents_at_once():
    day, old = a_day(idle_seconds=900.0, max_agents=20), set[str]()
    marks(day, lambda node: not old or node.name in old, VERSION, "This node is offline because it uses an incompatible JVM version")
    day.queue(6, seconds=60.0)
    day.minutes(20)
    builds = day.queue(6)
    day.minutes(10)
    assert launched(day) == 6
    old.update(day.nodes())
    passes.carry_out(day.fleet.ports, day.fleet.fleet, day.fleet.invocation(), CloseBreaker(pool="cpu"))
    day.minutes(8)
    assert [build.started_at is None for build in builds] == [False] * 6


def test_a_quiet_controller_pays_for_no_marked_agents_for_ever():
    day = busy_day(agents=5, idle_seconds=600.0)
    marks(day, lambda _: True, CLOCK, "Clock is too far off")
    day.minutes(8 * 60)
    assert day.agents() == 0


@pytest.mark.parametrize("first_seconds", [0.0, 7.0])
def test_an_image_that_a_monitor_minds_is_no_fleet_for_each_job(first_seconds):
    """The other pool has most of the controller's agents, so that the pool's own boots are to blame."""
    well = a_pool("well", min_agents=8, max_agents=8)
    day = Day(in_memory(a_pool("cpu", max_agents=40, queue_maturity_seconds=0.0), well, max_agents=60)).minutes(12)
    marks(day, lambda node: "cpu" in node.labels, VERSION, "incompatible JVM version", first_seconds=first_seconds)
    for number in range(8):
        day.jenkins.submit(f"job-{number}", "cpu", 7200.0)
        day.minutes(20)
    mine = [instance for instance in day.world.ec2.instances.values() if instance.tags["autoscaler:pool"] == "cpu"]
    assert len(mine) <= 14
    assert lost(day) == []
    assert any("incompatible JVM version" in message.text for message in day.fleet.notifier.sent)


def test_a_host_stays_as_it_is_and_its_owner_is_told():
    day = Day(in_memory(a_pool_of_hosts(), hosts=(a_host(),))).minutes(10)
    marks(day, lambda _: True)
    day.minutes(60)
    assert (cordons(day), day.jenkins.nodes["rocm-1"].cause) == ([], DISK)
    assert subjects(day)[0].startswith("[f] Jenkins took agents of ")
    assert "Hosts stay as they are" in day.fleet.notifier.sent[0].text


def test_what_a_person_has_reserved_stays_theirs_to_the_end_and_ends_then():
    day = an_idle_day()
    [node] = connected(day)
    reserve(day, hours=1.0)
    node.clear_mark()  # a person brought it online, and the monitor was there first
    marks(day, lambda one: one is node)
    day.minutes(50)
    assert (node.name in day.jenkins.nodes, node.cause, cordons(day)) == (True, DISK, [])
    day.minutes(30)
    assert node.name not in day.jenkins.nodes


def test_a_machine_of_two_controllers_is_drained_on_both_and_no_build_is_lost():
    pool = a_pool("gpu", controllers=("main", "other"), share=Share.COOPERATIVE, executors=2, idle_seconds=7200.0)
    day = Day(in_memory(pool)).minutes(3)
    other = day.world.controllers["other"]
    day.queue(1, label="gpu", seconds=60.0)
    day.minutes(8)
    [name] = day.nodes()
    build = other.submit("theirs", "gpu", 3600.0)
    marks(day, lambda node: node.name == name)
    day.minutes(30)
    assert (name in day.nodes(), build.ended) == (True, None)
    assert other.nodes[name].temporarily_offline
    day.minutes(45)
    assert (build.ended, name in day.nodes()) == (Ended.FINISHED, False)


@pytest.mark.parametrize("ends_at", [None, 3])
def test_a_static_node_that_was_marked_is_free_again_once_its_machine_has_ended(ends_at):
    """Be it by us, or by EC2 while the monitor's mark was there: no monitor looks at a node without a machine."""
    day = Day(in_memory(a_pool("cpu", idle_seconds=7200.0), slots={"slot-1": ("cpu",), "slot-2": ("cpu",)})).minutes(3)
    day.queue(1, seconds=60.0)
    day.minutes(8)
    [instance] = day.world.alive()
    node = day.world.node_of(instance)
    monitor = marks(day, lambda one: one is node)
    day.minutes(ends_at or 0)
    if ends_at:
        day.world.ec2.end(instance)
    day.minutes(40)
    day.jenkins.node_monitors.remove(monitor)
    assert (instance.alive(), node.temporarily_offline) == (False, False)
    builds = day.queue(2, seconds=300.0)
    day.minutes(12)
    assert {build.node for build in builds} == {"slot-1", "slot-2"}


def why(day, subject):
    return " ".join(day.why(subject))


def subjects(day):
    return [message.subject for message in day.fleet.notifier.sent]


def test_a_person_may_drain_it_before_that():
    day = busy_day(agents=1, idle_seconds=7200.0)
    name = mark_one(day)
    day.minutes(2)
    order = DrainNodes(nodes=(name,), reason="full disk", request_id="r-1")
    [report] = day.order(order)
    assert [str(result.outcome) for result in report.results] == ["done"]
    day.minutes(3)
    assert name not in day.nodes()


def test_people_read_the_monitors_own_words_until_the_agent_has_ended():
    day = a_day()
    day.queue(1, seconds=3600.0)
    day.minutes(10)
    name = mark_one(day)
    day.minutes(5)
    assert subjects(day) == []
    assert DISK_WORDS in why(day, name)
    assert ": set aside; " in why(day, name)
    day.minutes(10)
    assert subjects(day) == ["[f] Jenkins took agents of cpu offline"]
    assert DISK_WORDS in day.fleet.notifier.sent[0].text
    assert DISK_WORDS in why(day, name), "also with our own mark in its place"
    assert last(day, "AgentsOffline") == 1
    day.minutes(60)
    assert last(day, "AgentsOffline") == 0
    assert subjects(day)[-1] == "[f] over: Jenkins took agents of cpu offline"


def test_the_disk_of_what_a_monitor_took_offline_is_measured_on():
    day = a_day()
    day.queue(1, seconds=3600.0)
    day.minutes(10)
    name = mark_one(day)
    day.jenkins.nodes[name].monitors.disk_bytes = 400_000_000
    day.minutes(20)
    assert last(day, "AgentDiskFreeBytes") == 400_000_000


def test_people_are_told_once_of_a_controller_whose_agents_are_marked():
    day = busy_day(agents=5, idle_seconds=7200.0)
    wrong = [True]
    marks(day, lambda _: bool(wrong), CLOCK, "Clock is too far off", every_seconds=600.0)
    day.queue(5, seconds=60.0)
    day.minutes(30)
    assert subjects(day) == ["[f] Jenkins takes most agents of main offline"]
    assert "5 of 5 agents of main offline: Clock is too far off" in day.fleet.notifier.sent[0].text
    assert "5 of 5 agents of main offline: Clock is too far off" in why(day, "cpu")
    assert "so are 5 of 5 agents of main: one agent is tried" in why(day, day.nodes()[0])
    assert "ends for it" not in day.fleet.notifier.sent[0].text, "at max_agents one of them makes room for the one that is tried"
    wrong.clear()
    day.minutes(20)
    assert subjects(day)[-1] == "[f] over: Jenkins takes most agents of main offline"


def last(day, name):
    return [v for _, datum in day.fleet.metrics.published if datum.name == name and len(datum.dimensions) == 1 for v in datum.values][-1]
