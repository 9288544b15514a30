"""What a person reserves of ``operate``: the answer says what they have, until when, and how to get in."""

import pytest

from autoscaler import bootstrap
from autoscaler.errors import ConfigError
from support.deployed import EXAMPLE, NOON, deployed_in_memory, event

# The example fleet, and a pool of the launch template that the stack makes.
OURS = """
  ours: {executors: 1, launch_template: autoscaler-linux-mxnet-ci, instance_types: [c5.xlarge], max_agents: 2}
"""


@pytest.fixture
def here(tmp_path):
    file = tmp_path / "fleet.yaml"
    file.write_text(EXAMPLE.read_text(encoding="utf-8") + OURS, encoding="utf-8")
    with deployed_in_memory(file) as stood:
        stood.pass_minutes(2)
        yield stood


def reserve(here, **facts):
    return here.call("operate", event("reserve") | facts)


def listed(here):
    return here.call("operate", event("reservations"))["reservations"]


def test_where_none_is_idle_one_is_launched_and_the_answer_names_it_and_how_to_get_in(here):
    answer = reserve(here)
    assert [(step["step"], step["outcome"]) for step in answer["plan"]["steps"]] == [("launch", "done")]
    [told] = answer["reservations"]
    [instance] = [one for one in here.world.alive() if one.tags["autoscaler:pool"] == "mxnetlinux-gpu"]
    now = here.world.timeline.now
    assert (told["person"], told["by"], told["until_at"], told["instance_id"]) == ("alice", "ada", now + 4 * 3600, instance.id)
    assert (told["node"], told["state"]) == ("", "boots")
    assert told["get_in"].startswith(f"aws ssm start-session --target {instance.id} --region us-west-2 (where the role of mxnetlinux-gpu")
    here.pass_minutes(8)
    [one] = listed(here)
    assert (one["node"], one["state"]) == (here.world.ec2.instances[instance.id].tags["autoscaler:node"], "is reserved")


def test_the_same_request_gets_the_same_answer_and_no_second_agent(here):
    first = reserve(here)
    here.pass_minutes(1)
    assert reserve(here)["reservations"] == first["reservations"]
    assert len(listed(here)) == 1


def test_two_requests_without_an_id_are_two(here):
    for _ in range(2):
        here.call("operate", {key: value for key, value in event("reserve").items() if key != "request_id"})
        here.pass_minutes(1)
    assert len(listed(here)) == 2


def test_a_dry_run_says_what_would_be_done_and_reserves_nothing(here):
    answer = reserve(here, dry_run=True)
    assert ([step["outcome"] for step in answer["plan"]["steps"]], answer["reservations"]) == (["planned"], [])
    assert listed(here) == []


def test_of_this_stacks_agents_the_answer_says_what_is_missing_where_session_manager_may_not_be_used(here, monkeypatch):
    [told] = reserve(here, target="ours")["reservations"]
    assert told["get_in"] == "deploy the stack with AgentSessionManager=yes: the agents' role may not use Session Manager"
    monkeypatch.setenv("AGENT_SESSION_MANAGER", "yes")
    [told] = listed(here)
    assert told["get_in"] == f"aws ssm start-session --target {told['instance_id']} --region us-west-2"


def test_a_setting_that_is_neither_yes_nor_no_is_refused(here, monkeypatch):
    monkeypatch.setenv("AGENT_SESSION_MANAGER", "true")
    with pytest.raises(ConfigError, match=r"AGENT_SESSION_MANAGER \(true\): must be yes or no"):
        listed(here)


def test_an_idle_agent_is_taken_released_and_terminated(here):
    here.world.controllers["main"].submit("job", "mxnetlinux-gpu", 60.0)
    here.pass_minutes(8)
    answer = reserve(here)
    assert [(step["step"], step["outcome"], step["result"]) for step in answer["plan"]["steps"]] == [("reserve", "done", "idle")]
    [told] = answer["reservations"]
    assert here.world.controllers["main"].nodes[told["node"]].temporarily_offline
    here.call("operate", event("release") | {"target": told["node"]})
    assert [one["state"] for one in listed(here)] == ["is over, to be terminated"]
    here.pass_minutes(4)
    assert (listed(here), here.world.ec2.instances[told["instance_id"]].alive()) == ([], False)


def test_who_has_it_is_told_by_agents_status_why_and_events(here):
    reserve(here)
    here.pass_minutes(8)
    [one] = listed(here)
    [agent] = [agent for agent in here.call("operate", event("agents"))["agents"] if agent["instance_id"] == one["instance_id"]]
    assert (agent["word"], agent["state"], agent["idle_seconds"]) == ("set aside", "reserved", None)
    assert agent["note"] == "reserved for alice, for another 3 h 52 min: a test hangs on this kind of machine only"
    [pool] = [pool for pool in here.call("operate", event("status"))["status"]["pools"] if pool["pool"] == "mxnetlinux-gpu"]
    assert (pool["agents"], pool["executors"]) == ({"set aside": 1}, 0)
    facts = here.call("operate", event("why") | {"subject": one["node"]})["facts"]
    assert "it is reserved for alice, for another 3 h 52 min: a test hangs on this kind of machine only" in facts
    told = here.call("operate", {"action": "events"})["events"]
    assert ("ada", "reserve", "mxnetlinux-gpu") in [(event["by"], event["what"], event["where"]) for event in told]


def test_people_are_warned_before_it_ends(here):
    reserve(here, hours=0.5)
    here.pass_minutes(2)
    [(subject, text)] = here.told()
    assert subject.startswith("[mxnet-ci] ")
    assert "is reserved for alice until 2027-01-15 08:32 UTC" in subject
    assert "docs/reservations.md#the-end" in text
    assert bootstrap.runtime().ports.clock() == NOON + 240
