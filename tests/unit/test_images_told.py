"""What people are told of images that a parameter names: which runs where, which is launched, which is tried, and how long each boots."""

from dataclasses import replace

from autoscaler.domain.facts.snapshot import RecordState
from autoscaler.domain.learn import assess
from autoscaler.domain.report.listing import list_agents
from autoscaler.domain.report.messages import write_messages
from autoscaler.domain.report.metrics import measure
from autoscaler.domain.report.told import Told
from autoscaler.domain.situation.bets import TrialOf
from support.builders import NOW, a_fleet, a_learned, a_memory, a_pool, a_record, a_trial, an_agent, an_empty_window, an_instance
from support.decisions import seen
from support.told import explain, status

OLD, NEW = "1 with ami-1", "1 with ami-2"
FLEET = a_fleet(a_pool("cpu", image_parameter="/ci/image"), a_pool("gpu"))
FAILED = a_trial(720.0, failures=2, failed=("i-7", "i-8"), version=NEW, said="no root device", why="")
TRYING = a_record("i-9", state=RecordState.REQUESTED, launched_at=NOW - 120.0, version=NEW), None


def looked(*agents, image="ami-2", proven=OLD, canary=None, **facts):
    memory = a_memory(windows=an_empty_window(), proven={"cpu": proven}, trials={TrialOf.IMAGE.scope("cpu"): canary} if canary else {})
    instances = tuple(an_instance(record.instance_id, template_version="1", image="ami-1") for record, node in agents if node)
    known = {"template_versions": {"cpu": "1"}, "images": {"cpu": image} if image else {}, "memory": memory, "instances": instances}
    return seen(*agents, **(known | facts))


def told(*agents, **facts):
    [cpu, gpu] = status(looked(*agents, **facts), FLEET).pools
    assert gpu.images == ()
    return cpu.images


def test_status_says_which_image_runs_which_is_launched_and_which_is_tried():
    follows = "image ami-2 follows ami-1: "
    assert told(an_agent(), an_agent(2), image="ami-1") == ("launched from ami-1; 2 agents of ami-1",)
    assert told(an_agent(1)) == ("launched from ami-1; 1 agent of ami-1", f"{follows}the next agent that is launched tries it")
    assert told(an_agent(1), TRYING) == (
        "launched from ami-1; 1 agent of ami-1, 1 agent of ami-2",
        f"{follows}i-9 tries it, launched 2 min ago",
    )


def test_status_says_what_became_of_the_tries_and_when_the_next_one_is():
    [_, said] = told(an_agent(), canary=FAILED)
    failed = "image ami-2 follows ami-1: 2 tries of it failed (its console ended: no root device); "
    assert said == f"{failed}it is tried again in 12 min, with the first agent that is launched then"
    assert told(canary=replace(FAILED, until_at=NOW - 1.0))[1] == f"{failed}the next agent that is launched tries it"


def test_status_says_where_the_image_is_not_known_what_is_launched_meanwhile():
    assert told(image="") == ("launched from ami-1, which booted last: what /ci/image names is not known",)
    nothing = a_memory(windows=an_empty_window())
    assert told(image="", memory=nothing) == ("launched from the launch template's image: what /ci/image names is not known",)


def test_why_says_the_same_of_a_pool_and_names_the_image_of_an_agent_and_of_a_boot_that_failed():
    snapshot = looked(an_agent(1), canary=FAILED)
    assert {"launched from ami-1; 1 agent of ami-1"} < set(explain(snapshot, FLEET, "cpu"))
    assert "c5.18xlarge of ami-1, " in explain(snapshot, FLEET, "cpu-1")[0]
    assert explain(snapshot, FLEET, "i-8") == ["i-8 was an instance of cpu whose boot failed; its console ended: no root device"]


def test_the_list_of_agents_names_images_where_a_parameter_does():
    situation = assess(looked(an_agent(1), an_agent(2, pool="gpu")), FLEET)
    assert [(entry.pool, entry.image) for entry in list_agents(situation)] == [("cpu", "ami-1"), ("gpu", "")]


def test_people_are_told_once_that_a_new_image_does_not_boot_and_when_that_is_over():
    told_before, [message] = write_messages(Told(), assess(looked(canary=FAILED), FLEET), "docs")
    assert message.subject == "[f] the new image of cpu does not boot"
    assert "ami-2 is new in cpu: 2 tries of it failed (its console ended: no root device).\nThe last one: i-8.\n" in message.text
    assert "Agents are launched from the image that booted before; ami-2 is tried again from " in message.text
    assert "docs/operations.md#new-images" in message.text
    told_again, messages = write_messages(told_before, assess(looked(canary=replace(FAILED, failures=3)), FLEET), "docs")
    assert messages == []
    _, [over] = write_messages(told_again, assess(looked(proven=NEW), FLEET), "docs")
    assert over.subject == "[f] over: the new image of cpu does not boot"


def test_an_image_that_fails_counts_as_an_open_breaker_until_a_person_has_it_tried_again():
    def open_breakers(**facts):
        data = measure(assess(looked(canary=replace(FAILED, **facts)), FLEET), {}, {})
        return [datum.values for datum in data if datum.name == "BreakersOpen"]

    assert (open_breakers(failures=1), open_breakers(failures=0, is_closed=False)) == ([(1,)], [])


def test_boots_are_told_by_image_once_and_only_where_a_parameter_names_it():
    def booted(number, seconds_ago, **facts):
        record, node = an_agent(number, **facts)
        at = NOW - seconds_ago
        version = OLD if record.pool == "cpu" else ""
        return replace(record, registered_at=at, launched_at=at - 90.0 - number, version=version), node

    moved, its_node = booted(5, 30.0)  # it took builds elsewhere for hours: that it is connected here is no boot
    moved = replace(moved, launched_at=NOW - 20_000.0, rotated_at=NOW - 50.0)
    agents = booted(1, 30.0), booted(2, 40.0), booted(3, 400.0), booted(4, 30.0, pool="gpu"), (moved, its_node)
    snapshot = looked(*agents, learned={"main": a_learned(seen_at=NOW - 60.0)}, instances=())  # as publish_metrics looks
    [datum] = [datum for datum in measure(assess(snapshot, FLEET), {}, {}) if datum.name == "ImageBootSeconds"]
    assert sorted(datum.values) == [91.0, 92.0]
    assert datum.dimensions == (("Fleet", "f"), ("Pool", "cpu"), ("Image", "ami-1"))
    unread = replace(snapshot, controllers={"main": replace(snapshot.controllers["main"], problem="it hangs")})
    assert "ImageBootSeconds" not in {datum.name for datum in measure(assess(unread, FLEET), {}, {})}
