"""Time-lines on which a controller answers nobody, or only now and then: what could not be seen counts against no agent."""

import pytest

from autoscaler.domain.facts.plan import Terminate
from autoscaler_workbench.fakes.world.faults import Fault
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory

BOOT_MINUTES = 15


def a_day(**facts):
    given = {"max_agents": 10, "idle_seconds": 900.0, "queue_maturity_seconds": 0.0} | facts
    return Day(in_memory(a_pool("cpu", **given))).minutes(3)


def refuses_everybody(day):
    day.fleet.apis["main"].accounts["nobody"] = "x"


def answers_with_a_login_page(day):
    day.fleet.apis["main"].login_page = True


def does_not_answer(day):
    day.jenkins.up = "down"


def starts_for_long(day):
    day.jenkins.up = "starting"


def answers_errors(day):
    day.fleet.faults.dice = lambda call: Fault(call, status=502) if call.startswith("jenkins ") else None


def answers_again(day):
    api = day.fleet.apis["main"]
    api.accounts.clear()
    api.login_page, day.jenkins.up, day.fleet.faults.dice = False, "up", None


OUTAGES = [refuses_everybody, answers_with_a_login_page, does_not_answer, starts_for_long, answers_errors]


def subjects(day):
    return [message.subject for message in day.fleet.notifier.sent]


@pytest.mark.parametrize("minutes", [5, 10, 20, 40, 90])
@pytest.mark.parametrize("outage", OUTAGES)
def test_an_outage_of_the_controller_is_no_failed_boot_and_the_agents_that_boot_meanwhile_serve(outage, minutes):
    """A login service was away for 20 minutes: every token was answered 401, four boots counted as failed, four more were launched."""
    day = a_day()
    jobs = day.queue(4)
    day.minutes(2)
    outage(day)
    day.minutes(minutes)
    answers_again(day)
    day.minutes(8)
    assert [job.started_at is None for job in jobs] == [False] * 4
    assert len(day.world.ec2.instances) == 4
    assert "boot/cpu" not in day.fleet.state.memory.trials
    assert [subject for subject in subjects(day) if "boot" in subject] == []


@pytest.mark.parametrize("outage", OUTAGES)
def test_an_image_that_does_not_boot_is_still_found_out_after_an_outage(outage):
    day = a_day()
    day.world.ec2.on_running = lambda _instance: None
    day.queue(1)
    day.minutes(2)
    outage(day)
    day.minutes(40)
    answers_again(day)
    day.minutes(BOOT_MINUTES + 3)
    assert [step.reason for step in day.done(Terminate)] == ["boot-timeout"]


@pytest.mark.parametrize("seen_every", [2, 3])
def test_a_controller_that_is_seen_only_now_and_then_still_reaches_a_deadline(seen_every):
    day = a_day()
    day.world.ec2.on_running = lambda _instance: None
    day.queue(1)
    day.minutes(2)
    for minute in range(BOOT_MINUTES * seen_every + 10):
        (answers_again if minute % seen_every == 0 else refuses_everybody)(day)
        day.minutes(1)
    assert [step.reason for step in day.done(Terminate)][:1] == ["boot-timeout"]


def test_quiet_mode_is_no_failed_boot():
    day = a_day()
    jobs = day.queue(4)
    day.minutes(2)
    day.jenkins.quiet_down()
    day.minutes(60)
    day.jenkins.cancel_quiet_down()
    day.minutes(5)
    assert [job.started_at is None for job in jobs] == [False] * 4
    assert "boot/cpu" not in day.fleet.state.memory.trials


@pytest.mark.parametrize("outage", OUTAGES)
def test_why_says_how_much_of_its_time_a_boot_has_left(outage):
    day = a_day()
    day.world.ec2.on_running = lambda _instance: None
    day.queue(1)
    day.minutes(2)
    outage(day)
    day.minutes(60)
    [instance] = day.world.ec2.instances
    said = day.why(instance)
    assert "its boot may take another 13 min (boot_timeout_seconds)" in said
    assert "the 59 min of its boot in which main could not be seen do not count" in said


def test_what_is_paid_and_cannot_be_judged_for_an_hour_is_told_each_day_with_the_cause():
    day = a_day()
    day.queue(4)
    day.minutes(10)
    refuses_everybody(day)
    day.minutes(58)
    assert subjects(day) == []
    day.minutes(5)
    [told] = day.fleet.notifier.sent
    assert told.subject == "[f] controller main cannot be read"
    assert "2027-01-15 08:13 UTC" in told.text
    assert "Jenkins refused the credentials (401)" in told.text
    assert "4 agents there cost $12.00 an hour" in told.text
    day.hours(24)
    assert subjects(day) == ["[f] controller main cannot be read"] * 2
    answers_again(day)
    day.minutes(2)
    assert subjects(day)[2:] == ["[f] over: controller main cannot be read"]


def test_a_page_that_answers_in_jenkins_place_is_named():
    day = a_day()
    answers_with_a_login_page(day)
    day.minutes(10)
    [problem] = {facts["problem"] for name, facts in day.fleet.logged if name == "controller_incomplete"}
    assert problem == (
        "TransientError: Jenkins' answer is no JSON (100 bytes): a page instead (Server nginx, page 'Sign in to Example'), "
        "a login page or a proxy is in the way"
    )


def test_a_controller_without_agents_costs_nothing_and_is_told_to_nobody():
    day = a_day()
    refuses_everybody(day)
    day.minutes(3 * 60)
    assert subjects(day) == []


def test_why_names_the_cause_for_a_job_that_nobody_can_see():
    day = a_day()
    day.queue(1)
    refuses_everybody(day)
    day.minutes(10)
    said = day.why("job-0")
    assert said[0].startswith("main could not be read completely since 2027-01-15 08:03 UTC: RefusedCredentialsError: ")
