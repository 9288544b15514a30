"""Who took an agent out of use, when and why: `why` says it in a line, for each cause and for as long as it lasts."""

import re

import pytest

from autoscaler.domain.facts.plan import Cordon
from support.builders import a_pool
from support.deployed import deployed_in_memory
from support.timeline import Day
from support.worlds import in_memory


@pytest.fixture
def here():
    with deployed_in_memory() as stood:
        stood.pass_minutes(12)
        yield stood


def an_agent(here):
    return next(name for name, node in here.world.controllers["main"].nodes.items() if name.startswith("utility-"))


def told(here, subject):
    return here.call("operate", {"action": "why", "subject": subject})["facts"]


def test_a_persons_drain_names_the_person_the_time_and_the_reason(here):
    node = an_agent(here)
    build = here.world.controllers["main"].submit("long", "utility", 86_400.0)
    here.pass_minutes(3)
    here.call("operate", {"action": "drain", "nodes": [node], "by": "root", "reason": "weird disk noise"})
    here.pass_minutes(3)
    [line] = [line for line in told(here, node) if line.startswith("taken offline")]
    assert re.fullmatch(r"taken offline by root at \d\d:\d\d UTC: weird disk noise", line)
    assert not [line for line in told(here, node) if "marked by pass" in line]
    assert any(" ago, done by root: cordon, manual: weird disk noise; " in line for line in told(here, node))
    assert build.ended is None


def test_by_its_instance_and_days_later_it_is_told_with_the_date(here):
    node = an_agent(here)
    jenkins = here.world.controllers["main"]
    jenkins.submit("long", "utility", 86_400.0 * 9)
    here.pass_minutes(3)
    here.call("operate", {"action": "drain", "nodes": [node], "by": "root", "reason": "weird disk noise"})
    here.pass_minutes(2)
    here.world.move_to(here.world.timeline.now + 3 * 86_400.0)
    here.pass_minutes(2)
    [instance] = [instance.id for instance in here.world.alive() if node.endswith(instance.id.removeprefix("i-"))]
    [line] = [line for line in told(here, instance) if line.startswith("taken offline")]
    assert re.fullmatch(r"taken offline by root at \d{4}-\d\d-\d\d \d\d:\d\d UTC: weird disk noise", line)


def test_what_the_autoscaler_took_out_of_use_is_told_with_its_reason_and_without_a_history_from_the_mark():
    day = Day(in_memory(a_pool("cpu", idle_seconds=60.0, drain_settle_seconds=600.0))).minutes(2)
    day.queue(1, seconds=60.0)
    for _ in range(40):
        if day.minutes(1).done(Cordon):
            break
    [step] = day.done(Cordon)
    lines = day.why(step.node)
    [line] = [line for line in lines if line.startswith("taken offline")]
    assert re.fullmatch(rf"taken offline by scale_down at \d\d:\d\d UTC: surplus: {re.escape(step.detail)}", line)
    day.fleet.ports.history.events.clear()
    lines = day.why(step.node)
    assert [line for line in lines if line.startswith("taken offline")] == [
        "taken offline by the autoscaler at 08:08 UTC or before: it is not needed now"
    ]
