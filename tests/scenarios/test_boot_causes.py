"""Time-lines of pools whose boots fail: the message and `why` name the cause, which is another one each time."""

import json

import pytest

from autoscaler_workbench.fakes.identity import function_url_event
from autoscaler_workbench.fakes.world.world import break_boots
from support.builders import a_pool
from support.deployed import deployed_in_memory, event
from support.timeline import Day
from support.worlds import in_memory

_AGENT = "[   31.2] autoscaler-agent[612]: autoscaler-agent: "


def a_day(**pool):
    return Day(in_memory(a_pool("cpu", max_agents=10, **pool), max_launches_per_hour=1000)).minutes(2)


def explained(day, subject="cpu"):
    return day.why(subject)


def told(day):
    return [message.text for message in day.fleet.notifier.sent if message.subject == "[f] agents of cpu do not boot"]


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("Client.InvalidKMSKey.InvalidState", "EC2 says Client.InvalidKMSKey.InvalidState"),
        ("Client.InternalError", "EC2 says Client.InternalError: mostly because the KMS key of an encrypted volume may not be used"),
        ("", "EC2 says that it has ended, and not why"),
    ],
)
def test_a_machine_that_ec2_ends_before_it_boots_is_told_with_ec2s_reason(code, says):
    day = a_day()

    def dies(instance):
        instance.state_reason = code
        day.world.ec2.end(instance)

    day.world.ec2.on_running = dies
    day.queue(8, seconds=300.0)
    day.minutes(20)
    assert f"boots in a row failed ({says})" in told(day)[0]
    assert any(line.endswith(f"; {says}") for line in explained(day))
    failed = [facts["why"] for event_name, facts in day.fleet.logged if event_name == "boot_failed"]
    assert set(failed) == {says}


def a_slow_day(console=""):
    """Nothing registers within its 15 minutes."""
    day = a_day(boot_timeout_seconds=900.0, boot_seconds=300.0)

    def boots(instance):
        instance.console = console

    day.world.ec2.on_running = boots
    day.queue(8, seconds=300.0)
    return day.minutes(22)


def test_a_machine_that_does_not_register_in_time_is_told_with_its_deadline():
    day = a_slow_day()
    assert "boots in a row failed (it did not register within 15 min)" in told(day)[0]
    assert any(line.endswith("; it did not register within 15 min") for line in explained(day))


def test_the_last_line_of_the_agents_service_on_the_console_is_told_and_not_what_follows_it():
    says = "no identity yet: a.lambda-url.us-west-2.on.aws: DNS: Name or service not known; asking again in 30 s"
    day = a_slow_day(f"booted\n{_AGENT}connecting\n{_AGENT}{says}\nUbuntu 24.04 LTS login:\n")
    assert f"whose console ends with: autoscaler-agent: {says}." in told(day)[0]
    assert any(f"its console ended: autoscaler-agent: {says}" in line for line in explained(day))


def test_a_machine_that_says_why_it_does_not_connect_is_told_in_its_own_words():
    """It registers, and Java cannot reach Jenkins: the machine knows why, and says so when it asks again."""
    says = "Java ended with status 1: SEVERE: TLS: certificate has expired"
    with deployed_in_memory() as here:
        here.world.ec2.on_running = lambda _instance: None
        here.call("scale_up", event("tick"))
        [only] = here.world.ec2.instances.values()
        body = json.dumps({"connected": [], "problem": f"{says}\n\x1b[31m" + "x" * 1000})
        for asked in ("{}", body, body):
            assert here.call("register_agent", function_url_event(only.id) | {"body": asked})["statusCode"] == 200
        lines = here.call("operate", {"action": "why", "subject": only.id})["facts"]
        record = here.state.record(only.id)
    assert any(line.startswith(f"what keeps it from becoming an agent: {says} [31mxxx") for line in lines)
    assert (record.trouble, len(record.problem)) == ("", 250)


def test_why_gives_no_time_to_jobs_that_are_to_follow_others_on_an_agent_that_is_late():
    day = Day(in_memory(a_pool("cpu", max_agents=1, executors=1))).minutes(2)
    break_boots(day.world, {"cpu"})
    day.queue(3, seconds=300.0)
    day.minutes(8)
    for name in ("job-0", "job-1", "job-2"):
        answer = " ".join(explained(day, name))
        assert "takes longer than usual" in answer
        assert "would start" not in answer
