"""``register_agent`` on a controller with slots, through its real handler."""

import json

import pytest
import yaml

from autoscaler_workbench.fakes.identity import function_url_event
from autoscaler_workbench.fakes.world.jenkins.nodes import secret_of
from support.deployed import EXAMPLE, deployed_in_memory, event
from support.worlds import a_world_node

OWNERSHIP = "autoscaler-fleet-mxnet-ci"


@pytest.fixture
def here(tmp_path):
    fleet = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    fleet["controllers"]["main"]["nodes"] = "slots"
    file = tmp_path / "fleet.yaml"
    file.write_text(yaml.safe_dump(fleet, sort_keys=False), encoding="utf-8")
    with deployed_in_memory(file) as stood:
        yield stood


def add_slot(here, name, *labels, **facts):
    here.world.controllers["main"].add_node(a_world_node(name, *labels, OWNERSHIP, connected=False, **facts))


def launch(here):
    """The utility pool's one agent, which asks only where a test lets it."""
    here.world.ec2.on_running = lambda _instance: None
    here.call("scale_up", event("tick"))
    return list(here.world.ec2.instances.values())


def ask(here, instance):
    answer = here.call("register_agent", function_url_event(instance.id))
    return answer["statusCode"], json.loads(answer["body"]), answer["headers"]


def test_a_slot_s_own_labels_and_executors_count(here):
    add_slot(here, "lifecycle-7", "utility", "big", executors=12)
    [instance] = launch(here)
    status, told, _ = ask(here, instance)
    assert (status, told["node"], told["executors"], told["labels"]) == (200, "lifecycle-7", 12, sorted([OWNERSHIP, "big", "utility"]))
    assert told["connections"][0]["secret"] == secret_of("lifecycle-7")
    assert (instance.tags["Name"], instance.tags["autoscaler:node"]) == ("lifecycle-7", "lifecycle-7")
    assert ask(here, instance)[1] == told


def test_without_a_free_slot_an_instance_is_told_to_ask_again(here):
    add_slot(here, "lifecycle-7", "utility")
    [instance] = launch(here)
    here.world.controllers["main"].set_offline("lifecycle-7", "disk swap", "anna")
    status, told, headers = ask(here, instance)
    assert (status, headers["Retry-After"]) == (409, "15")
    assert told == {"message": "no slot of pool utility is free on main"}
    here.world.controllers["main"].toggle("lifecycle-7", "", "anna")
    assert ask(here, instance)[0] == 200


def test_nothing_is_launched_for_a_pool_without_slots(here):
    assert launch(here) == []


def test_a_slot_that_was_deleted_under_its_instance_ends_it(here):
    add_slot(here, "lifecycle-7", "utility")
    [instance] = launch(here)
    assert ask(here, instance)[0] == 200
    here.world.controllers["main"].delete_node("lifecycle-7")
    assert ask(here, instance)[0] == 410


@pytest.mark.parametrize("name", ['x"y', "x\\y", "x\ny", "x" * 300], ids=["quote", "backslash", "newline", "300 characters"])
def test_a_slot_whose_name_cannot_be_told_is_not_given_away(here, name):
    add_slot(here, "lifecycle-7", "utility")
    [instance] = launch(here)
    here.world.controllers["main"].delete_node("lifecycle-7")
    add_slot(here, name, "utility")
    assert ask(here, instance)[0] == 409


def test_any_other_name_is_carried_as_it_is(here):
    name = "<b>x&'</b> $(reboot) " + "ä" * 100
    add_slot(here, name, "utility")
    [instance] = launch(here)
    status, told, _ = ask(here, instance)
    assert (status, told["node"], instance.tags["autoscaler:node"]) == (200, name, name)
