"""Time-lines at `MetricsLevel: essential`: the alarms that ring on the few metrics, and what people are told with them."""

from math import inf

from autoscaler.domain.report.datum import ESSENTIAL
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from autoscaler_workbench.fakes.world.world import break_boots
from autoscaler_workbench.report.dashboard.alarms import read_alarms, ringing, states
from packaging_root import ROOT
from support.builders import a_pool
from support.deployed import essential_thresholds
from support.timeline import Day
from support.worlds import START, in_memory

AT = essential_thresholds()


def a_day(*pools, **limits):
    return Day(in_memory(*(pools or (a_pool("cpu"),)), thresholds=AT, **limits))


def rings(day):
    alarms, composites = read_alarms(ROOT / "template.yaml", "f")
    found = states(alarms, composites, day.fleet.metrics.published, START, day.world.timeline.now)
    return {name.removesuffix("Alarm") for name in ringing(found)}


def subjects(day):
    return [message.subject.removeprefix("[f] ") for message in day.fleet.notifier.sent]


def text_of(day, subject):
    [text] = [message.text for message in day.fleet.notifier.sent if subject in message.subject]
    return text


def test_a_quiet_day_rings_nothing_tells_nothing_and_sends_few_names():
    day = a_day()
    day.minutes(2).queue(6)
    day.minutes(90)
    assert (rings(day), subjects(day)) == (set(), [])
    assert {datum.name for _, datum in day.fleet.metrics.published} <= ESSENTIAL
    assert {len(datum.dimensions) for _, datum in day.fleet.metrics.published} == {1}


def test_a_pool_is_one_log_line_a_minute_and_one_without_agents_or_jobs_is_none():
    day = a_day(a_pool("cpu"), a_pool("gpu"))
    day.minutes(2).queue(3)
    day.minutes(20)
    lines = [facts for event, facts in day.fleet.logged if event == "pool_measured"]
    assert {facts["pool"] for facts in lines} == {"cpu"}
    assert len(lines) <= 22
    assert {"QueueStarved", "AgentsOnline", "ExecutorsBusy"} <= lines[-1].keys()
    assert len([facts for event, facts in day.fleet.logged if event == "fleet_measured"]) == 22


def test_a_pool_that_does_not_boot_rings_and_is_named():
    day = a_day(a_pool("cpu", boot_timeout_seconds=300.0, boot_seconds=60.0))
    break_boots(day.world, frozenset({"cpu"}))
    day.minutes(2).queue(3)
    day.minutes(30)
    assert rings(day) == {"Problems"}
    assert "agents of cpu do not boot" in subjects(day)
    assert [subject for subject in subjects(day) if "boot failures" in subject] == []
    assert [facts["problem"] for event, facts in day.fleet.logged if event == "problem"].count("boot-failures") == 1


def test_an_agent_that_runs_full_is_named_with_pool_value_and_threshold_and_it_is_told_when_that_is_over():
    day = a_day(a_pool("cpu", min_agents=1))
    day.minutes(12)
    [node] = [node for node in day.jenkins.nodes.values() if node.connected and not node.name.startswith("autoscaler-beacon")]
    node.monitors.disk_bytes = 2 * 2**30
    day.minutes(6)
    assert rings(day) == {"Problems"}
    assert subjects(day) == ["agent disk low: pool cpu of main"]
    assert "AgentDiskFreeBytes of pool cpu of main: 2.00 GiB, which is below 5.00 GiB (AgentDiskAlarmBytes)." in text_of(day, "disk")
    node.monitors.disk_bytes = 10**11
    day.minutes(5)
    assert rings(day) == set()
    assert subjects(day)[1:] == ["over: agent disk low: pool cpu of main"]


def test_jobs_that_wait_too_long_ring_by_themselves_and_the_message_names_the_cause():
    day = a_day(a_pool("cpu", max_agents=1, executors=1))
    day.minutes(2).queue(2, seconds=3 * 3600.0)
    day.minutes(50)
    assert "LongQueue" in rings(day)
    assert "job-1 for 30 min" in text_of(day, "jobs on main wait: max-agents of cpu")
    assert [subject for subject in subjects(day) if subject.startswith("job waits")] == []


def test_a_job_that_waits_is_told_once_though_one_look_in_seven_does_not_know_for_which_pool():
    """Somebody deletes the beacons again and again. The look after that does not know which labels pipelines ask for."""
    day = a_day(a_pool("cpu"), max_usd_per_month=0.01)
    day.minutes(2).queue(1, kind=Kind.PIPELINE)
    day.minutes(40)
    assert "job waits: pool cpu of main" in subjects(day)
    for _ in range(5):
        for name in [name for name in day.jenkins.nodes if name.startswith("autoscaler-beacon")]:
            day.jenkins.delete_node(name)
        day.jenkins.schedule()
        day.minutes(7)
    assert "jobs on main wait: Jenkins does not name their label" in subjects(day)
    assert subjects(day).count("job waits: pool cpu of main") == 1
    assert [subject for subject in subjects(day) if subject.startswith("over: job waits")] == []


def test_agents_that_ec2_does_not_show_ring_and_are_counted_by_minutes():
    day = a_day(a_pool("cpu", min_agents=6, max_agents=8))
    day.minutes(12)
    for instance in day.world.ec2.instances.values():
        instance.visible_at = inf
    day.minutes(6)
    assert rings(day) == {"Problems"}
    assert subjects(day)[0].startswith("ec2 disagrees")


def test_a_note_that_cannot_be_kept_fails_no_pass_and_is_told_as_a_missing_pass():
    day = a_day()
    day.minutes(3)
    day.fleet.faults.plan(Fault("state save_pass_notes", times=10**6))
    day.minutes(8)
    assert day.failed == 0
    assert rings(day) == {"Problems"}
    assert sorted(subjects(day)) == ["autoscaler down: scale_down", "autoscaler down: scale_up"]
    assert {event for event, _ in day.fleet.logged} >= {"pass_not_noted"}


def test_metrics_that_cannot_be_sent_keep_nobody_from_being_told():
    day = a_day(a_pool("cpu", min_agents=1))
    day.minutes(12)
    day.jenkins.monitors.disk_bytes = 2**30
    day.fleet.faults.plan(Fault("metrics PutMetricData", status=500, times=10**6))
    for _ in range(7):
        day.world.move_to(day.world.timeline.now + 60.0)
        try:
            day.fleet.publish_metrics()
        except Exception as error:  # noqa: BLE001 - the handler logs it and raises it
            assert "PutMetricData" in str(error)
        day.fleet.scale_up()
        day.fleet.scale_down()
    assert "controller disk low: controller main" in subjects(day)


def test_a_controller_that_is_down_for_hours_is_told_and_over_under_one_name_at_a_time():
    day = a_day(a_pool("cpu", min_agents=1))
    day.minutes(10)
    day.jenkins.up = "down"
    day.minutes(150)
    day.jenkins.up = "up"
    day.minutes(30)
    assert subjects(day)[1:] == ["controller main cannot be read", "over: controller main cannot be read"]


def test_a_function_of_which_passes_are_missing_is_not_told_beside_looks_that_come_late():
    day = a_day(a_pool("cpu", min_agents=1, max_agents=1))
    for minutes in (1, 3, 6, 4, 9, 2, 11) * 12:
        day.world.move_to(day.world.timeline.now + (minutes - 1) * 60.0)
        day.minutes(1)
    told = subjects(day)
    assert [subject for subject in told[told.index("looks come late") :] if subject.startswith("autoscaler fails")] == []
