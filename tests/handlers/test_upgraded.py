"""What 0.3.0 stored and had begun, as handlers find it: it ends, and no build is lost."""

import json
import zlib
from pathlib import Path

import boto3
import pytest

from autoscaler_workbench.cli import demo
from autoscaler_workbench.fakes.world.faults import Fault
from support.deployed import deployed, essential_environment, event

FLEET = """
fleet: mxnet-ci
limits: {max_agents: 40, max_launches_per_hour: 60, max_usd_per_hour: 80, max_usd_per_month: 12000}
controllers: {main: {url: "https://jenkins.example.org/", secret: jenkins/main}}
defaults: {queue_maturity_seconds: 0, idle_seconds: 300}
pools:
  cpu: {executors: 1, launch_template: t, instance_types: [c5.xlarge], max_agents: 6,
        usd_per_hour: 0.2, %s}
"""
FLEET_NAME, COSTS, BOOTS = "mxnet-ci", "mxnet-ci#costs", 100


@pytest.fixture
def here(tmp_path):
    with deployed(written(tmp_path, "reuse: never")) as running:
        running.call("scale_up", event("tick"))
        yield running


@pytest.fixture
def ask(here):
    """By which a machine asks who it is: before the upgrade none does."""
    ec2 = here.world.ec2
    asks, ec2.on_running = ec2.on_running, lambda _instance: None
    return asks


def written(tmp_path, rule):
    file = Path(tmp_path) / "fleet.yaml"
    file.write_text(FLEET % rule, encoding="utf-8")
    return file


# The table, as it is between two versions.


def items(partition=FLEET_NAME):
    """The bodies of a partition's items, by their names."""
    found = boto3.client("dynamodb").scan(TableName=demo.TABLE)["Items"]
    mine = [item for item in found if item["fleet"]["S"] == partition and "body" in item]
    return {item["item"]["S"]: json.loads(body_of(item)) for item in mine}


def body_of(item):
    body = item["body"]
    return zlib.decompress(body["B"]) if "B" in body else body["S"]


def rewrite(name, change, partition=FLEET_NAME):
    """Change an item's body in place, as another version would have written it."""
    client, key = boto3.client("dynamodb"), {"fleet": {"S": partition}, "item": {"S": name}}
    item = client.get_item(TableName=demo.TABLE, Key=key)["Item"]
    body = json.loads(body_of(item))
    change(body)
    packed = json.dumps(body).encode()
    item["body"] = {"B": zlib.compress(packed)} if "B" in item["body"] else {"S": packed.decode()}
    if part := body.get("record") or body.get("intent"):
        item["state"] = {"S": part["state"]}
    client.put_item(TableName=demo.TABLE, Item=item)


def write_as_0_3_0(instance, state, life=0):
    """Write what 0.3.0 writes of what it launched to be stopped; whom it serves stands twice."""

    def change(body):
        for_0_2_0 = {"controller": "main", "node": None, "life": life}
        body["record"] |= {"state": state, "to_stop": True} | for_0_2_0
        body["record"]["bindings"] = [{"controller": "main", "life": life}]

    rewrite(f"record#{instance.id}", change)


# A machine that 0.3.0 launched to be stopped, in each state in which the upgrade may find it.


def launched(here):
    """Launch one as for a job, which is aborted then."""
    build = here.world.controllers["main"].submit("job", "cpu", 300.0)
    here.call("scale_up", {})
    here.world.controllers["main"].abort(build)
    [instance] = here.world.alive()
    return instance


def boots(here):
    instance = launched(here)
    write_as_0_3_0(instance, "requested")
    return instance


def has_booted(here):
    instance = launched(here)
    pass_seconds(here, BOOTS)
    write_as_0_3_0(instance, "stopping")
    return instance


def is_stopped(here):
    instance = has_booted(here)
    here.world.ec2.stop(instance.id)
    pass_seconds(here, 120)
    assert instance.state == "stopped"
    write_as_0_3_0(instance, "stopped")
    return instance


def starts(here):
    instance = is_stopped(here)
    here.world.ec2.start(instance.id)
    write_as_0_3_0(instance, "starting", life=1)
    return instance


def pass_seconds(here, seconds):
    here.world.move_to(here.world.timeline.now + seconds)


def upgraded(here, ask):
    here.world.ec2.on_running = ask
    here.start_cold()


STATES = {"boots": boots, "has booted": has_booted, "is stopped": is_stopped, "starts": starts}
BECOME_AGENTS = {"boots", "starts"}
# What is stopped, or has booted to be stopped, goes with the next pass; an agent once it was idle.
SOON, IDLE = 3, 12


def nodes(here):
    names = here.world.controllers["main"].nodes
    return [name for name in names if not name.startswith("autoscaler-beacon")]


def records():
    return {name: body["record"] for name, body in items().items() if name.startswith("record#")}


def nothing_is_left(here):
    return (here.world.alive(), nodes(here), records()) == ([], [], {})


@pytest.mark.parametrize("state", STATES)
def test_of_what_0_3_0_launched_to_be_stopped_nothing_is_left_where_no_job_comes(here, ask, state):
    instance = STATES[state](here)
    upgraded(here, ask)
    seen = set()
    for _ in range(IDLE if state in BECOME_AGENTS else SOON):
        here.pass_minutes(1)
        seen |= {(record["state"], "to_stop" in record) for record in records().values()}
    assert nothing_is_left(here), seen
    assert not instance.alive()
    assert ("registered" in {state for state, _ in seen}) == (state in BECOME_AGENTS)
    assert seen.isdisjoint({("registered", True), ("condemned", True)})
    assert here.call("operate", event("status"))["status"]["unread"] == ()


@pytest.mark.parametrize("state", STATES)
def test_a_job_that_waits_is_built_once_and_no_disk_sees_two_builds(here, ask, state):
    instance = STATES[state](here)
    upgraded(here, ask)
    builds = [here.world.controllers["main"].submit(f"job-{n}", "cpu", 400.0) for n in range(2)]
    here.pass_minutes(30)
    assert [str(build.ended) for build in builds] == ["finished", "finished"]
    assert len({build.node for build in builds}) == len(builds)
    own = f"cpu-{instance.id.removeprefix('i-')}"
    assert (own in {build.node for build in builds}) == (state in BECOME_AGENTS)
    assert nothing_is_left(here)


def test_a_machine_that_was_noted_to_be_stopped_gets_no_node_however_often_it_asks(here, ask):
    instance = has_booted(here)
    upgraded(here, ask)
    for _ in range(2):
        ask(instance)
        assert nodes(here) == []
    here.pass_minutes(SOON)
    assert nothing_is_left(here)


def test_where_the_pool_uses_agents_again_what_is_stopped_is_started_for_a_job(here, ask, tmp_path):
    instance = is_stopped(here)
    written(tmp_path, "warm_pool: {}")
    upgraded(here, ask)
    build = here.world.controllers["main"].submit("job", "cpu", 300.0)
    here.pass_minutes(5)
    assert build.node == f"cpu-{instance.id.removeprefix('i-')}"
    assert ["to_stop" in record for record in records().values()] == [False]


def test_a_launch_whose_answer_0_3_0_did_not_note_is_not_made_twice_and_ends(here, ask):
    launched(here)
    [name] = [name for name in items() if name.startswith("intent#")]
    [record] = records()
    key = {"fleet": {"S": FLEET_NAME}, "item": {"S": record}}
    boto3.client("dynamodb").delete_item(TableName=demo.TABLE, Key=key)
    rewrite(name, lambda body: body["intent"].update(state="sent", to_stop=True, instances=[]))
    upgraded(here, ask)
    here.pass_minutes(3)
    assert records().keys() == {record}
    assert len(here.world.ec2.instances) == 1
    here.pass_minutes(25)
    assert nothing_is_left(here)
    assert [name for name in items() if name.startswith("intent#")] == []


# What else 0.3.0 kept.

ITEM = {
    "controller": "main", "item": 7, "job": "job/nightly", "run": None, "pool": "cpu",
    "session": "s", "at": 1800000000.0, "seen_at": 1800000000.0, "missed_at": 1800000001.0,
    "upstream": [],
    "parameters": [{"kind": "StringParameterValue", "name": "TOKEN", "value": "not for long"}],
}  # fmt: skip


def test_queue_items_that_0_3_0_followed_and_their_parameters_go_with_the_first_look(here):
    here.pass_minutes(1)
    rewrite("memory", lambda body: body["memory"].update(queued={"main#7": ITEM}))
    here.start_cold()
    build = here.world.controllers["main"].submit("job", "cpu", 300.0)
    here.pass_minutes(2)
    assert "queued" not in items()["memory"]["memory"]
    here.pass_minutes(20)
    assert str(build.ended) == "finished"
    assert [one.job for one in here.world.controllers["main"].builds] == ["job"]
    assert here.call("operate", event("status"))["status"]["unread"] == ()


def test_costs_with_what_boots_cost_are_carried_on(here):
    here.world.controllers["main"].submit("job", "cpu", 300.0)
    here.pass_minutes(15)
    before = cost()
    with_boots_of_0_3_0 = list(items(COSTS))
    for name in with_boots_of_0_3_0:
        rewrite(name, with_boots, COSTS)
    here.start_cold()
    here.world.controllers["main"].submit("job", "cpu", 300.0)
    here.pass_minutes(15)
    assert 0 < before < cost()
    after = items(COSTS)
    assert {"batch", "day", "month"} == {name.partition("#")[0] for name in after}
    assert all("boots" in after[name] for name in with_boots_of_0_3_0), "0.3.0 may come back"


def with_boots(body):
    body["boots"] = {"cpu": [2, 0.02, 0.1, 1]}  # number, dollars, hours of waiting, agents
    body["parts"]["hours"] = 0.5


def cost():
    stored = items(COSTS)
    booked = [body["metered_usd"] for name, body in stored.items() if name.startswith("month#")]
    return sum((*booked, *stored["batch"]["spent"].values()))


# The first look of a fleet on which 0.3.0 had seen no job: it saved none.


def learned():
    return {name: body["learned"] for name, body in items().items() if name.startswith("learned#")}


@pytest.mark.parametrize("level", ["essential", "full"])
def test_the_first_look_at_a_whole_controller_is_saved_and_the_next_job_counts(tmp_path, level):
    environment = {"full": {}, "essential": essential_environment()}[level]
    with deployed(written(tmp_path, "min_agents: 0"), environment) as here:
        jenkins = here.world.controllers["main"]
        here.server.jenkins["main"].faults.plan(Fault("jenkins queue", status=503, times=50))
        here.pass_minutes(2)
        assert learned() == {}
        here.server.jenkins["main"].faults.planned.clear()
        here.pass_minutes(1)
        assert [one["seen_at"] for one in learned().values()] == [here.world.timeline.now]
        jenkins.submit("job", "cpu", 300.0)
        here.pass_minutes(1)
        assert learned()["learned#main"]["arrivals"]["job"]["count"] == 1
