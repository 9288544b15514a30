"""Time-lines of stopped agents that do not start again: jobs are served otherwise, starts count apart from boots, and people are told."""

from dataclasses import replace
from statistics import median

import pytest

from autoscaler.control import passes
from autoscaler.domain.facts.fleet import WarmPool
from autoscaler.domain.facts.memory import Trial
from autoscaler.domain.facts.orders import CloseBreaker, Scope
from autoscaler.domain.facts.plan import ForceStop, Launch, Start, Stop, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.situation.bets import TrialOf
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.physics import CALM
from support.builders import a_pool, an_offering
from support.deployed import essential_thresholds
from support.file_changes import pool_is_now
from support.remembered import with_tables
from support.timeline import Day
from support.warm import starts_proven
from support.worlds import in_memory

FOR_EVER = 10**9
WARM = WarmPool(min_agents=0, max_agents=10, max_age_seconds=168 * 3600.0)
# Half of the starts take 2 min in these worlds, and a boot with its look 4 to 5 min.
WITHOUT_WARM_POOL, TWO_STARTS = 330.0, 270.0
DO_NOT_START = "[f] stopped agents of cpu do not start"


def a_day(stopped=4, *, proven=True, warm=WARM, **facts):
    """So many agents have had a build, and were stopped."""
    offering = an_offering(usd_per_hour=3.0, volume_usd_per_hour=0.01)
    given = {"offerings": (offering,), "idle_seconds": 300.0, "warm_pool": warm, "max_agents": 10} | facts
    day = Day(in_memory(a_pool("cpu", **given), thresholds=essential_thresholds()))
    if proven:
        starts_proven(day)
    day.minutes(2).queue(stopped, seconds=300.0)
    return day.minutes(35)


def states(day):
    return sorted(instance.state for instance in day.world.alive())


def subjects(day):
    return [message.subject for message in day.fleet.notifier.sent]


def starts_fail(day):
    trial = day.fleet.state.memory.trials.get("start/cpu")
    return trial is not None and trial.is_failing


def why(day, subject="cpu"):
    return day.why(subject)


def cannot_start(code):
    """Each start of any machine ends where it began."""

    def meanwhile(day):
        for instance in day.world.ec2.instances.values():
            instance.fails_to_start = code

    return meanwhile


def waits(day, jobs, meanwhile=lambda _day: None):
    """Queue a job each half an hour; return how long each waited."""
    builds = []
    for n in range(jobs):
        meanwhile(day)
        builds.append((day.world.timeline.now, day.jenkins.submit(f"build-{n}", "cpu", 300.0)))
        day.minutes(30)
    return [build.started_at - at for at, build in builds]


def never_connects(day):
    """What was there at its first boot is missing at a start."""
    first_boot = day.world.ec2.on_running
    day.world.ec2.on_running = lambda instance: None if instance.life else first_boot(instance)


def stopped_last(day):
    return max(day.fleet.state.records.values(), key=lambda record: (record.changed_at, record.instance_id)).instance_id


def test_a_job_waits_for_a_start_that_never_connects_no_longer_than_two_usual_starts():
    """Each job waited 20 to 84 min, for 13 h: what did not start counted as a boot that failed, and paused launches."""
    day = a_day()
    never_connects(day)
    waited = waits(day, 8)
    assert max(waited) <= WITHOUT_WARM_POOL + TWO_STARTS
    assert day.fleet.state.memory.trials["start/cpu"].failures >= 3
    assert "boot/cpu" not in day.fleet.state.memory.trials
    assert subjects(day) == [DO_NOT_START]
    assert any("starts in a row failed" in line for line in why(day))


def test_after_three_failed_starts_nothing_is_kept_stopped_but_for_one_that_tries_again_later():
    day = a_day()
    never_connects(day)
    waits(day, 4)
    assert len(states(day)) <= 1
    stops = len(day.done(Stop))
    waits(day, 8)
    assert 1 <= len(day.done(Stop)) - stops < 8, "one at a time, at growing intervals"
    assert len(states(day)) <= 1


def test_once_a_start_works_again_agents_are_stopped_as_before_and_the_message_is_over():
    day = a_day()
    day.fleet.state.memory = with_tables(day.fleet.state.memory, starts={})  # none was timed
    first_boot = day.world.ec2.on_running
    never_connects(day)
    waits(day, 4)
    day.world.ec2.on_running = first_boot
    waits(day, 6)
    assert subjects(day) == [DO_NOT_START, f"[f] over: {DO_NOT_START.removeprefix('[f] ')}"]
    assert not starts_fail(day)
    assert median(waits(day, 4)) < WITHOUT_WARM_POOL / 2


def test_a_pool_whose_starts_failed_together_starts_agents_again():
    """Twenty agents were stopped in eight hours, and each was ended minutes later: the message never ended."""
    day = a_day(stopped=8, max_agents=12)
    first_boot = day.world.ec2.on_running
    never_connects(day)
    day.queue(8, seconds=300.0)
    day.minutes(60)
    day.world.ec2.on_running = first_boot
    for _ in range(8):
        day.queue(8, seconds=300.0)
        day.minutes(25)
    assert not starts_fail(day)
    assert subjects(day)[-1] == f"[f] over: {DO_NOT_START.removeprefix('[f] ')}"


def test_starts_that_end_stopped_again_are_told_with_ec2s_reason_and_the_right_that_is_missing():
    """27 vain starts a day, and "over" was told while it went on."""
    day = a_day()
    first, *later = waits(day, 8, cannot_start("Client.InternalError"))
    assert first <= WITHOUT_WARM_POOL + 3 * TWO_STARTS / 2, "three starts fail, and one is tried again, before an agent is launched"
    assert max(later) <= WITHOUT_WARM_POOL + TWO_STARTS
    [told] = day.fleet.notifier.sent
    assert (told.subject, "Client.InternalError" in told.text, "kms:CreateGrant" in told.text) == (DO_NOT_START, True, True)
    assert len(day.done(Start)) <= 8, "four for the first job, then fewer than there are jobs"


@pytest.mark.parametrize("code", ["Server.InsufficientInstanceCapacity", "Client.VcpuLimitExceeded"])
def test_an_agent_whose_start_ec2_ends_because_something_is_short_is_kept_and_no_start_has_failed(code):
    """As if EC2 had answered so: of a quota the agent was terminated, and its start counted."""
    day = a_day(stopped=1)
    [kept] = [instance.id for instance in day.world.alive()]
    assert max(waits(day, 1, cannot_start(code))) <= WITHOUT_WARM_POOL + TWO_STARTS
    assert day.world.ec2.instances[kept].state == "stopped"
    assert not starts_fail(day)


@pytest.mark.parametrize("code", ["IncorrectInstanceState", "InvalidParameterValue", "Unsupported", "SomethingNew"])
def test_one_machine_that_cannot_be_started_keeps_no_other_from_it_and_goes_after_three_refusals(code):
    """The one that stopped last was asked for first, each time: three good ones were never started, and nobody was told."""
    day = a_day()
    bad = stopped_last(day)
    day.world.ec2.instances[bad].refuses_to_start = code
    assert max(waits(day, 2)) < WITHOUT_WARM_POOL / 2 + 60.0, "another one is started in the same pass"
    assert len(day.done(Launch)) == 1
    for _ in range(3):
        day.queue(4, seconds=300.0)
        day.minutes(35)
    assert not day.world.ec2.instances[bad].alive()
    assert [step.instance_id for step in day.done(Terminate) if step.reason is Reason.START_FAILED] == [bad]
    told = day.fleet.notifier.sent[0]
    assert (told.subject, code in told.text) == (f"[f] {bad} of cpu does not start", True)


@pytest.mark.parametrize(
    "code", ["IncorrectInstanceState", "InvalidInstanceID.NotFound", "UnauthorizedOperation", "InsufficientInstanceCapacity"]
)
def test_whatever_ec2_answers_at_a_start_the_job_is_served_by_a_launch_in_the_same_pass(code):
    day = a_day(stopped=1)
    day.fleet.faults.plan(Fault("ec2 StartInstances", status=400, code=code, times=FOR_EVER))
    day.minutes(1).queue(1, seconds=60.0)
    day.minutes(1)
    report = next(report for report in day.fleet.reports for result in report.results if isinstance(result.step, Start))
    assert [(type(result.step), result.count) for result in report.results] == [(Start, 0), (Launch, 1)]


@pytest.mark.parametrize("code", ["Unsupported", "UnsupportedOperation"])
def test_a_refused_start_says_nothing_about_launches(code):
    """Nothing of that type was launched for a day, though a launch of it had just worked."""
    day = a_day(stopped=1)
    day.fleet.faults.plan(Fault("ec2 StartInstances", status=400, code=code, times=1))
    waits(day, 1)
    assert not [scope for scope, trial in day.fleet.state.memory.trials.items() if scope.startswith("offering/") and trial.is_failing]


def test_a_late_start_at_the_limit_makes_room_for_a_launch():
    day = a_day(stopped=1, max_agents=1)
    never_connects(day)
    assert max(waits(day, 2)) <= WITHOUT_WARM_POOL + TWO_STARTS + 120.0


def test_of_a_version_that_was_never_seen_to_start_one_agent_is_stopped():
    day = a_day(proven=False)
    assert (states(day), len(day.done(Stop))) == (["stopped"], 1)
    assert any("was seen to start again yet" in line for line in why(day))
    waits(day, 1)
    day.queue(3, seconds=300.0)
    day.minutes(35)
    assert states(day) == ["stopped"] * 3


def test_a_floor_of_stopped_agents_is_filled_once_one_was_started_to_see_whether_that_works():
    day = a_day(stopped=1, proven=False, warm=replace(WARM, min_agents=3)).minutes(40)
    assert [step.reason for step in day.done(Start)] == [Reason.PROVES_STARTS]
    assert states(day) == ["stopped"] * 3


@pytest.mark.parametrize("code", ["IncorrectInstanceState", "InsufficientInstanceCapacity"])
def test_a_start_that_is_to_prove_something_is_replaced_by_no_launch_if_ec2_refuses_it(code):
    """Nothing waited: the machine that was launched instead was terminated a minute later, since nothing is stopped beside the unproven."""
    day = a_day(stopped=1, proven=False)
    pool_is_now(day, "cpu", warm_pool=replace(WARM, min_agents=3))
    day.fleet.faults.plan(Fault("ec2 StartInstances", status=400, code=code, times=FOR_EVER))
    launched = len(day.done(Launch))
    day.minutes(10)
    results = [result for report in day.fleet.reports for result in report.results if isinstance(result.step, Start)]
    assert results[-1].step.reason is Reason.PROVES_STARTS
    assert len(day.done(Launch)) == launched


def test_agents_of_an_older_template_version_are_not_started_to_prove_the_new_one():
    """Both were started for nothing and terminated, before any agent of the new version had booted."""
    day = a_day(stopped=2)
    pool_is_now(day, "cpu", warm_pool=replace(WARM, min_agents=2))
    assert states(day.minutes(2)) == ["stopped"] * 2
    day.world.ec2.template_versions["cpu"] = 2
    day.minutes(8)
    assert (day.done(Start), states(day)) == ([], ["stopped"] * 2)


def full_of_stopped_agents(code, least=0):
    """Four agents of one pool are stopped; while there are four instances, EC2 launches nothing for another pool."""

    def pool(name, kind):
        offering = an_offering(kind, subnet="subnet-a", usd_per_hour=1.0, volume_usd_per_hour=0.01)
        return a_pool(name, offerings=(offering,), idle_seconds=300.0, max_agents=10, warm_pool=WARM)

    arm = pool("arm", "m7g.large")
    arm = replace(arm, warm_pool=replace(WARM, min_agents=least))
    day = Day(in_memory(arm, pool("cpu", "c5.large"), thresholds=essential_thresholds()))
    starts_proven(day, "arm")
    day.minutes(2).queue(4, "arm", seconds=300.0)
    day.minutes(35)
    assert states(day) == ["stopped"] * 4

    class Full(dict):
        def get(self, key, default=None):
            return code if sum(instance.alive() for instance in day.world.ec2.instances.values()) >= 4 else default

        def __contains__(self, key):
            return self.get(key) is not None

    day.world.ec2.answers = Full()
    return day


@pytest.mark.parametrize("code", ["InsufficientFreeAddressesInSubnet", "VolumeLimitExceeded"])
def test_stopped_agents_that_nothing_waits_for_make_way_for_a_launch_that_lacks_what_they_hold(code):
    """Eight stopped agents held the last addresses for a day, while another pool's job waited."""
    day = full_of_stopped_agents(code)
    [build] = day.queue(1, seconds=300.0)
    day.minutes(20)
    assert build.ended is not None
    assert {step.reason for step in day.done(Terminate)} == {Reason.MAKES_WAY}
    assert len(day.done(Terminate)) <= 2


def made_way(day):
    return sum(step.reason is Reason.MAKES_WAY for step in day.done(Terminate))


def test_as_many_stopped_agents_make_way_as_the_jobs_need_and_no_more():
    """Two looks saw one refusal, and each ended as many."""
    day = full_of_stopped_agents("VolumeLimitExceeded")
    builds = day.queue(2, seconds=300.0)
    day.minutes(30)
    assert all(build.ended is not None for build in builds)
    assert made_way(day) == 2


@pytest.mark.parametrize("code", ["InsufficientFreeAddressesInSubnet", "VolumeLimitExceeded"])
def test_a_stock_of_stopped_agents_is_not_filled_while_jobs_wait_for_what_it_would_hold(code):
    """What made way for the jobs was launched again at once: 411 vain boots in six hours, and no job started."""
    day = full_of_stopped_agents(code, least=4)
    launched = len(day.world.ec2.instances)
    builds = day.queue(2, seconds=300.0)
    day.minutes(30)
    assert all(build.ended is not None for build in builds)
    new = list(day.world.ec2.instances.values())[launched:]
    assert sum(instance.tags["autoscaler:pool"] == "cpu" for instance in new) == 2
    assert len(new) <= 6  # the stock is filled once, when the jobs have their agents


def test_stopped_agents_of_a_pool_that_somebody_holds_make_no_way():
    day = full_of_stopped_agents("VolumeLimitExceeded")
    hold_pool(day, "arm")
    [build] = day.queue(1, seconds=300.0)
    day.minutes(20)
    assert (build.started_at, day.done(Terminate)) == (None, [])


def a_day_of_stops_that_hang():
    """Its system never comes to the end of a stop."""
    offering = an_offering(usd_per_hour=3.0, volume_usd_per_hour=0.01)
    pool = a_pool("cpu", offerings=(offering,), idle_seconds=300.0, warm_pool=WARM)
    physics = replace(CALM, stop_from_seconds=86_000.0, stop_to_seconds=86_400.0)
    day = Day(in_memory(pool, physics=physics, thresholds=essential_thresholds()))
    day.minutes(2).queue(1, seconds=300.0)
    return day.minutes(10)


def test_a_stop_that_hangs_is_forced_after_ten_minutes_and_the_agent_is_kept():
    day = a_day_of_stops_that_hang()
    [instance] = day.world.alive()
    day.minutes(26)
    assert [(step.instance_id, step.reason) for step in day.done(ForceStop)][:1] == [(instance.id, Reason.STOP_FORCED)]
    assert len(day.done(ForceStop)) <= 3
    assert (instance.state, day.done(Terminate), subjects(day)) == ("stopped", [], [])


def test_a_stop_that_hangs_though_it_was_forced_is_told_before_its_instance_is_terminated():
    day = a_day_of_stops_that_hang()
    for instance in day.world.alive():
        instance.hangs_in = "stopping"
    day.minutes(35)
    assert [step.reason for step in day.done(Terminate)] == [Reason.STOP_HANGS]
    told, over = day.fleet.notifier.sent
    assert told.subject.endswith("of cpu: stopping too long")
    assert "is stopping, for 15 min" in told.text
    assert over.subject.startswith("[f] over: ")


@pytest.mark.parametrize("order", [("scale_up", "scale_down"), ("scale_down", "scale_up"), ("scale_up", "scale_down", "scale_up")])
def test_what_is_about_to_be_stopped_is_not_launched_once_more_in_whatever_order_the_functions_run(order):
    """49 launches for 38: an agent that was cordoned to be stopped counted neither as in service nor as stopped."""
    offering = an_offering(usd_per_hour=3.0, volume_usd_per_hour=0.01)
    pool = a_pool("cpu", offerings=(offering,), idle_seconds=300.0, warm_pool=replace(WARM, min_agents=2))
    day = starts_proven(Day(in_memory(pool)))
    for minute in range(90):
        day.world.move_to(day.world.timeline.now + 60.0)
        if minute in {2, 40}:
            day.queue(2, seconds=300.0)
        for function in order:
            getattr(day.fleet, function)()
    assert sum(step.count for step in day.done(Launch)) == 2
    assert states(day) == ["stopped"] * 2


def hold_pool(day, pool):
    """Let somebody want nothing launched, retired or ended in a pool."""
    day.hold(scope=Scope.POOL, name=pool)


def starts_have_failed(day, times=3, ago=3600.0):
    """Let so many starts of the pool have failed in a row, the last one so long ago that it is tried again."""
    memory, at = day.fleet.state.memory, day.world.timeline.now - ago
    failed = Trial(failures=times, since_at=at, failed_at=at, until_at=at, why="EC2 answered Unsupported", is_closed=True)
    day.fleet.state.memory = replace(memory, trials={**memory.trials, TrialOf.START.scope("cpu"): failed})
    return day


def test_the_start_that_tries_again_needs_no_template_version():
    """Its reason named the version; if EC2 tells none, `scale_up` failed in each pass."""
    day = starts_have_failed(a_day(stopped=1, warm=replace(WARM, min_agents=2)))
    day.world.ec2.latest_versions["another"] = 2  # so that versions are read again
    day.fleet.faults.plan(Fault("ec2 DescribeLaunchTemplates", status=403, code="UnauthorizedOperation", times=FOR_EVER))
    started = len(day.done(Start))
    day.minutes(10)
    assert [step.reason for step in day.done(Start)[started:]] == [Reason.PROVES_STARTS]


def test_no_agent_is_started_to_see_whether_that_works_while_somebody_holds_the_pool():
    day = a_day(stopped=1, proven=False, warm=WARM)
    hold_pool(day, "cpu")
    pool_is_now(day, "cpu", warm_pool=replace(WARM, min_agents=3))
    day.minutes(20)
    assert day.done(Start) == []


def test_a_start_that_is_overdue_limits_no_launches():
    """A boot that is overdue lets one agent at a time be launched; what starts lack, launches need not lack."""
    day = a_day(stopped=1, boot_timeout_seconds=300.0)
    never_connects(day)
    day.queue(1, seconds=3000.0)
    day.minutes(5)
    launched = sum(step.count for step in day.done(Launch))
    day.queue(4, seconds=600.0)
    day.world.move_to(day.world.timeline.now + 60.0)
    day.fleet.scale_up()
    assert sum(step.count for step in day.done(Launch)) - launched == 4


def test_a_person_who_has_mended_the_cause_need_not_wait_for_the_next_try():
    day = starts_have_failed(a_day(), ago=0.0)
    passes.carry_out(day.fleet.ports, day.fleet.fleet, day.fleet.invocation(), CloseBreaker(pool="cpu"))
    assert not starts_fail(day)


def test_why_gives_no_time_for_a_start_that_ec2_may_refuse_as_it_refuses_launches():
    """EC2 has no machines. A stopped agent is asked for every few minutes all the same, and each time it is refused, too."""
    day = a_day(1)
    day.world.ec2.answers[day.fleet.fleet.pools["cpu"].offerings[0].key] = "InsufficientInstanceCapacity"
    for instance in day.world.alive():
        instance.refuses_to_start = "InsufficientInstanceCapacity"
    day.queue(1)
    day.minutes(1)
    for _ in range(20):
        day.world.move_to(day.world.timeline.now + 60.0)
        answer = " ".join(why(day, "job-0"))  # asked just before a look
        day.fleet.publish_metrics()
        day.fleet.scale_up()
        day.fleet.scale_down()
        assert "would start" not in answer
        assert "InsufficientInstanceCapacity" in answer
