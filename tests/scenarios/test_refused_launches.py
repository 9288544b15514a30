"""Time-lines of launches that EC2 refuses: they take nothing from others, people are told why, and one agent at a time tries again."""

import pytest

from autoscaler.control import passes
from autoscaler.domain.facts.fleet import Market
from autoscaler.domain.facts.orders import CloseBreaker, LaunchSome
from autoscaler.domain.facts.plan import Launch
from autoscaler_workbench.fakes.world.faults import Fault
from support.builders import a_pool, an_offering
from support.deployed import essential_thresholds
from support.timeline import MINUTE, Day
from support.worlds import in_memory

GPU, CPU, DEAR = (an_offering(kind, usd_per_hour=usd) for kind, usd in (("g5.xlarge", 3.0), ("c5.xlarge", 3.0), ("c6i.xlarge", 4.0)))
CODES = ("InsufficientInstanceCapacity", "VcpuLimitExceeded", "Unsupported", "InvalidAMIID.NotFound", "SomethingNew")
HOUR = 60


def a_day(*pools, most=20, **limits):
    """A fleet whose limits are shared by a pool that gets no machines, and others that do."""
    gpu = a_pool("gpu", offerings=(GPU,), max_agents=20, queue_maturity_seconds=0.0)
    cpu = a_pool("cpu", offerings=(CPU,), max_agents=20, queue_maturity_seconds=0.0)
    thresholds = essential_thresholds()
    limits = {"max_agents": most, "max_launches_per_hour": 1000} | limits
    return Day(in_memory(*(pools or (gpu, cpu)), thresholds=thresholds, **limits)).minutes(3)


def refuses(day, code="InsufficientInstanceCapacity", offering=GPU):
    day.world.ec2.answers[offering.key] = code
    return day


def minutes_waited(day, builds):
    return [((build.started_at or day.world.timeline.now) - build.queued_at) / MINUTE for build in builds]


def asked(day, pool="gpu"):
    """How many agents each launch asked for."""
    results = (result for report in day.fleet.reports for result in report.results)
    return [result.step.count for result in results if isinstance(result.step, Launch) and result.step.pool == pool]


def subjects(day):
    return [message.subject for message in day.fleet.notifier.sent]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("limits", [{}, {"most": 2000, "max_usd_per_hour": 60.0}], ids=["agents", "dollars"])
def test_what_ec2_refuses_takes_no_room_from_another_pool(code, limits):
    """20 agents were planned each minute and refused: six jobs of another pool got nothing for four hours."""
    day = refuses(a_day(**limits), code)
    day.queue(20, label="gpu", seconds=3600.0)
    day.minutes(2)
    builds = [day.jenkins.submit(f"build-{number}", "cpu", 600.0) for number in range(6)]
    day.minutes(15)
    assert max(minutes_waited(day, builds)) <= 6.0


@pytest.mark.parametrize("code", ["Unsupported", "VcpuLimitExceeded", "UnauthorizedOperation"])
def test_once_a_person_says_that_the_cause_is_mended_all_agents_are_launched_at_once(code):
    """A type that a zone does not support is asked for once a day."""
    day = refuses(a_day(), code)
    builds = day.queue(8, label="gpu")
    day.minutes(30)
    day.world.ec2.answers.clear()
    passes.carry_out(day.fleet.ports, day.fleet.fleet, day.fleet.invocation(), CloseBreaker(pool="gpu"))
    day.minutes(6)
    assert [build.started_at is None for build in builds] == [False] * 8


def test_a_right_that_is_missing_is_named():
    day = refuses(a_day(), "UnauthorizedOperation")
    day.queue(2, label="gpu", seconds=600.0)
    day.minutes(20)
    says = "EC2 answered UnauthorizedOperation (iam:PassRole)"
    [told] = [message.text for message in day.fleet.notifier.sent if message.subject == "[f] EC2 refuses launches of gpu"]
    assert says in told
    assert any(says in line for line in day.why("gpu"))


def test_missing_capacity_is_told_once_in_ec2s_own_word_and_why_promises_nothing():
    day = refuses(a_day())
    day.queue(20, label="gpu", seconds=3600.0)
    day.minutes(4 * HOUR)
    mine = [message for message in day.fleet.notifier.sent if message.subject == "[f] EC2 has no machines for gpu"]
    assert len(mine) == 1
    assert "InsufficientInstanceCapacity" in mine[0].text
    lines = "\n".join(day.why("job-0"))
    assert "EC2 answered InsufficientInstanceCapacity" in lines
    assert "one agent is tried at 2027-" in lines
    assert "would start in" not in lines


def test_one_agent_at_a_time_tries_again_after_one_minute_then_two_then_every_five():
    day = refuses(a_day())
    day.queue(20, label="gpu", seconds=3600.0)
    day.minutes(HOUR)
    assert asked(day)[1:] == [1] * (len(asked(day)) - 1)
    assert 12 <= len(asked(day)) <= 15


def test_once_ec2_has_machines_again_all_that_wait_are_served_and_it_is_over():
    day = refuses(a_day())
    builds = day.queue(20, label="gpu", seconds=600.0)
    day.minutes(HOUR)
    day.world.ec2.answers.clear()
    day.minutes(14)
    assert all(build.started_at for build in builds)
    day.minutes(HOUR)
    assert [subject for subject in subjects(day) if "EC2" in subject] == [f"[f] {n}EC2 has no machines for gpu" for n in ("", "over: ")]


@pytest.mark.parametrize("code", CODES)
def test_every_cause_is_told_with_its_code(code):
    day = refuses(a_day(), code)
    day.queue(2, label="gpu")
    day.minutes(40)
    assert any(code in message.text for message in day.fleet.notifier.sent)


@pytest.mark.long
def test_a_fleet_that_is_always_full_lets_the_refused_pool_try_after_a_quarter_of_an_hour_and_serves_it_then():
    gpu = a_pool("gpu", offerings=(GPU,), queue_maturity_seconds=0.0)
    cpu = a_pool("cpu", offerings=(CPU,), queue_maturity_seconds=0.0, max_builds=1)
    day = refuses(a_day(gpu, cpu, most=2))
    [build] = day.queue(1, label="gpu", seconds=600.0)
    day.minutes(2)
    cpus = [day.jenkins.submit(f"build-{number}", "cpu", 300.0) for number in range(200)]
    day.minutes(4 * HOUR)
    assert 4 <= len(asked(day)) <= 16
    assert sum(cpu.started_at is not None for cpu in cpus) >= 40
    day.world.ec2.answers.clear()
    day.minutes(HOUR)
    assert build.started_at is not None


def test_a_job_that_another_pool_can_take_goes_there_and_the_cheaper_one_is_tried_now_and_then():
    cheap = a_pool("cheap", labels=frozenset({"cpu"}), offerings=(CPU,), queue_maturity_seconds=0.0)
    dear = a_pool("dear", labels=frozenset({"cpu"}), offerings=(DEAR,), queue_maturity_seconds=0.0)
    day = refuses(a_day(cheap, dear), offering=CPU)
    day.queue(1)
    day.minutes(1)
    builds = day.queue(4)
    day.minutes(6)
    assert max(minutes_waited(day, builds)) <= 5.0
    assert day.agents("cheap") == 0
    day.world.ec2.answers.clear()
    day.queue(8, seconds=1200.0)
    day.minutes(3)
    later = day.queue(8, seconds=1200.0)
    day.minutes(10)
    assert day.agents("cheap") >= 1
    assert all(build.started_at for build in later)


def test_spot_that_is_refused_for_ever_keeps_no_job_from_on_demand():
    both = tuple(an_offering("c5.xlarge", market=market, usd_per_hour=usd) for market, usd in ((Market.SPOT, 1.0), (Market.ON_DEMAND, 3.0)))
    pool = a_pool("cpu", offerings=both, spot_patience_seconds=120.0, queue_maturity_seconds=0.0)
    day = refuses(a_day(pool), offering=both[0])
    waits = []
    for _ in range(6):
        waits += day.queue(4, seconds=300.0)
        day.minutes(20)
    assert max(minutes_waited(day, waits[4:])) <= 8.0


def test_a_persons_launch_may_try_what_was_refused():
    day = refuses(a_day())
    day.queue(1, label="gpu")
    day.minutes(12)
    before = len(asked(day))
    day.world.ec2.answers.clear()
    day.world.move_to(day.world.timeline.now + 5 * MINUTE)
    order = LaunchSome(pool="gpu", count=2, controller=None, keep_seconds=0.0, request_id="one", reason="by hand")
    day.order(order)
    assert (len(asked(day)), day.agents("gpu")) == (before, 2)


def fails(day, *, after=False, status=500):
    """EC2 answers each launch by an error of its own, or (0) not at all. ``after``: it has launched all the same."""
    fault = Fault("ec2 CreateFleet", status=status, code="InternalError", times=10**6, after=after)
    day.fleet.faults.plan(fault)
    return fault


@pytest.mark.parametrize(("status", "says"), [(500, "InternalError (CreateFleet)"), (0, "nothing (CreateFleet was not answered (")])
def test_an_error_of_ec2_itself_is_told_in_its_word_and_why_promises_nothing(status, says):
    """For five hours `why` said that an executor was expected in a minute, and no message named EC2."""
    day = a_day()
    fault = fails(day, status=status)
    builds = day.queue(6, "gpu")
    day.minutes(5 * HOUR)
    assert subjects(day) == ["[f] EC2 refuses launches of this account"]
    assert f"EC2 answered {says}" in day.fleet.notifier.sent[0].text
    assert day.fleet.faults.seen.count(f"ec2 CreateFleet before {status}") <= 5 * HOUR
    for subject in ("gpu", "job-0"):
        lines = "\n".join(day.why(subject))
        assert f"EC2 answered {says}" in lines
        assert ", 273 times in a row since 2027-" in lines
        assert "one agent is tried at 2027-" in lines
        assert "would start in" not in lines
    fault.times = 0
    ended_at = day.world.timeline.now
    day.minutes(30)
    assert max(build.started_at for build in builds) <= ended_at + 7 * MINUTE
    assert len(day.world.ec2.instances) == 6
    assert subjects(day)[1:] == ["[f] over: EC2 refuses launches of this account"]


def test_jobs_of_other_pools_ask_no_more_often_while_ec2_has_errors_of_its_own():
    day = a_day()
    fails(day)
    for number in range(20):
        day.jenkins.submit(f"build-{number}", "cpu", 600.0)
        day.jenkins.submit(f"train-{number}", "gpu", 600.0)
        day.minutes(3)
    assert day.fleet.faults.seen.count("ec2 CreateFleet before 500") <= 2 * HOUR


def test_a_single_error_of_ec2_itself_costs_one_look():
    day = a_day(most=50)
    fails(day).times = 1
    builds = [*day.queue(20, "gpu"), *(day.jenkins.submit(f"build-{number}", "cpu", 600.0) for number in range(20))]
    day.minutes(2)
    assert day.agents() == 40
    day.minutes(30)
    assert subjects(day) == []
    assert all(build.started_at for build in builds)


def test_what_ec2_launches_in_spite_of_its_error_is_found_and_launched_once():
    day = a_day()
    fails(day, after=True)
    builds = day.queue(6, "gpu")
    day.minutes(30)
    assert len(day.world.ec2.instances) == 6
    assert all(build.started_at for build in builds)
    assert subjects(day) == []
