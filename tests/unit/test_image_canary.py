"""A new image is tried by one agent; meanwhile, and while nobody knows which is new, others are launched from the proven one."""

from dataclasses import replace

import pytest

from autoscaler.domain import commands
from autoscaler.domain.facts.fleet import WarmPool
from autoscaler.domain.facts.orders import CloseBreaker, LaunchSome
from autoscaler.domain.facts.plan import Cordon, Launch
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState, RecordState, differ, parts_of, told_follows, told_outdated, version_of
from autoscaler.domain.learn import assess
from autoscaler.domain.situation.bets import TrialOf
from autoscaler.domain.situation.warm_pool import may_be_stopped
from support.builders import (
    NOW,
    a_fleet,
    a_look,
    a_memory,
    a_pool,
    a_record,
    a_snapshot,
    a_trial,
    a_view,
    an_agent,
    an_empty_window,
    an_instance,
    an_intent,
    an_item,
    boots_failed,
)
from support.decisions import decide_down, decide_up, scale_up, seen, steps_of
from support.told import status

OLD, NEW = "1 with ami-1", "1 with ami-2"
FLEET = a_fleet(a_pool("cpu", image_parameter="/ci/image", max_agents=20, wait_usd_per_hour=1e6))
ITEMS = tuple(an_item(number, label="cpu", waiting_seconds=3000.0) for number in range(1, 5))


def named(proven=OLD, image="ami-2", template="1", **facts):
    """What a look tells: the parameter names this image, and this version booted before."""
    memory = a_memory(windows=an_empty_window(), proven={"cpu": proven} if proven else {}, **facts)
    versions = {"cpu": template} if template else {}
    return {"memory": memory, "template_versions": versions, "images": {"cpu": image} if image else {}}


def launched(*agents, fleet=FLEET, **facts):
    steps = steps_of(Launch, decide_up(*agents, fleet=fleet, **({"items": ITEMS} | named() | facts)))
    return [(step.count, step.template_version, step.image, step.tries) for step in steps]


def booting(version, instance_id="i-9", image=""):
    record = a_record(instance_id, state=RecordState.REQUESTED, launched_at=NOW - 60.0, version=version)
    return {"agents": ((record, None),), "instances": (an_instance(instance_id, template_version="1", image=image),) if image else ()}


def test_one_agent_tries_a_new_image_and_the_others_are_launched_from_the_old_one():
    assert launched() == [(1, "1", "ami-2", True), (3, "1", "ami-1", False)]


def test_what_is_tried_is_said_with_the_launch():
    [first, *_] = steps_of(Launch, decide_up(fleet=FLEET, items=ITEMS, **named()))
    assert first.detail.endswith("; image ami-2 follows ami-1, and this agent tries it")


def test_without_a_proven_image_all_are_launched_from_the_one_that_the_parameter_names():
    assert launched(**named(proven="")) == [(4, "1", "ami-2", False)]


def test_a_proven_image_is_launched_as_often_as_jobs_need():
    assert launched(**named(proven=NEW)) == [(4, "1", "ami-2", False)]


@pytest.mark.parametrize(("image", "template"), [("", "1"), ("ami-2", "")], ids=["of the parameter", "of the launch template"])
def test_what_was_proven_is_launched_where_nothing_is_known(image, template):
    assert launched(**named(image=image, template=template)) == [(4, "1", "ami-1", False)]


def test_a_new_version_of_the_launch_template_is_tried_likewise():
    assert launched(**named(image="ami-1", template="2")) == [(1, "2", "ami-1", True), (3, "1", "ami-1", False)]


def test_a_pool_that_booted_before_it_had_a_parameter_goes_on_with_the_image_of_its_launch_template():
    assert launched(**named(proven="1")) == [(1, "1", "ami-2", True), (3, "1", "", False)]


@pytest.mark.parametrize(
    ("recorded", "image", "tries"),
    [(NEW, "", False), ("", "ami-2", False), ("", "", False), (OLD, "", True), ("", "ami-1", True)],
    ids=["on record", "in EC2", "nobody knows", "the old one on record", "the old one in EC2"],
)
def test_one_tries_it_at_a_time(recorded, image, tries):
    facts = booting(recorded, image=image)
    assert any(step[3] for step in launched(*facts.pop("agents"), **facts)) is tries


@pytest.mark.parametrize(("version", "tries"), [(NEW, False), ("", False), (OLD, True)])
def test_a_launch_that_was_not_answered_may_be_the_one_that_tries_it(version, tries):
    assert any(step[3] for step in launched(intents=(an_intent(version=version, count=1),))) is tries


@pytest.mark.parametrize(("seconds", "tries"), [(60.0, False), (-1.0, True)])
def test_after_a_failed_boot_it_is_tried_again_when_its_time_has_come(seconds, tries):
    failed = a_trial(seconds, failures=2, version=NEW)
    steps = launched(**named(trials={TrialOf.IMAGE.scope("cpu"): failed}))
    assert any(step[3] for step in steps) is tries
    assert sum(step[0] for step in steps) == 4


def test_one_agent_tries_it_over_all_controllers():
    fleet = a_fleet(a_pool("cpu", image_parameter="/ci/image", controllers=("main", "other"), max_agents=20, wait_usd_per_hour=1e6))
    snapshot = a_snapshot(a_view(items=ITEMS), a_view(name="other", items=ITEMS), **named())
    steps = steps_of(Launch, scale_up(snapshot, fleet))
    assert sorted((step.count, step.image) for step in steps) == [(1, "ami-2"), (3, "ami-1"), (4, "ami-1")]


def test_a_breaker_of_the_old_image_holds_back_what_it_is_about_and_not_the_new_one():
    broken = boots_failed(1200.0, failures=5, version=OLD)
    assert launched(**named(trials={TrialOf.BOOT.scope("cpu"): broken})) == [(1, "1", "ami-2", True)]


def test_what_tries_a_new_image_is_not_the_one_agent_that_tries_the_pool_again():
    """A new image never booted, and was tried again as soon as that was known: the old one had no turn, and jobs waited for hours."""
    broken = boots_failed(-1.0, failures=5, version=OLD)
    trials = {TrialOf.BOOT.scope("cpu"): broken}
    assert launched(**named(trials=trials)) == [(1, "1", "ami-2", True), (1, "1", "ami-1", False)]
    assert launched(*booting(NEW)["agents"], **named(trials=trials)) == [(1, "1", "ami-1", False)]
    assert launched(*booting(OLD)["agents"], **named(trials=trials)) == [(1, "1", "ami-2", True)]
    assert launched(intents=(an_intent(version=NEW, count=1),), **named(trials=trials)) == [(1, "1", "ami-1", False)]


def test_a_persons_launch_is_two_launches_of_which_each_is_known_by_its_own_name():
    order = LaunchSome(pool="cpu", count=3, controller="main", keep_seconds=0.0, reason="by hand", request_id="r-1")
    steps = steps_of(Launch, commands.launch_some(seen(**named()), FLEET, order))
    assert [(step.count, step.tries) for step in steps] == [(1, True), (2, False)]
    assert len({step.intent_id for step in steps}) == 2
    assert "manual-r-1" in {step.intent_id for step in steps}


def test_a_person_who_closes_the_breaker_has_the_image_tried_again_at_once():
    failed = a_trial(1200.0, failures=4, version=NEW, failed=("i-7",))
    plan = commands.close_breaker_for_a_person(seen(**named(trials={TrialOf.IMAGE.scope("cpu"): failed})), FLEET, CloseBreaker(pool="cpu"))
    assert plan.memory.trials == {TrialOf.IMAGE.scope("cpu"): replace(failed, failures=0, is_closed=False, failed_at=NOW, until_at=NOW)}
    assert launched(**named(trials=plan.memory.trials))[0] == (1, "1", "ami-2", True)


def test_nothing_is_said_to_boot_one_at_a_time_where_only_the_new_image_does():
    [pool] = status(seen(**named()), FLEET).pools
    assert not pool.paused


def test_agents_of_the_old_image_are_stopped_as_ever_while_the_new_one_is_tried():
    warm = WarmPool(min_agents=0, max_agents=5, max_age_seconds=86_400.0)
    fleet = a_fleet(a_pool("cpu", image_parameter="/ci/image", warm_pool=warm))
    for proven, stops in ((OLD, True), (NEW, False)):
        situation = assess(seen(an_agent(), instances=(an_instance(template_version="1", image="ami-1"),), **named(proven)), fleet)
        assert may_be_stopped(situation, situation.agents[0]) is stops


def taken(**facts):
    agents = [an_agent(number) for number in range(1, 6)]
    instances = tuple(an_instance(record.instance_id, template_version="1", image="ami-1") for record, _ in agents)
    known = named(connected=frozenset(record.instance_id for record, _ in agents), **facts)
    fleet = a_fleet(a_pool("cpu", image_parameter="/ci/image", min_agents=5))
    plan = decide_down(*agents, fleet=fleet, instances=instances, **known)
    return [(step.reason, step.detail) for step in steps_of(Cordon, plan)]


def test_an_old_agent_makes_room_for_the_new_image_and_again_when_its_next_try_is_due():
    one = [(Reason.OUTDATED, "launched from image ami-1, now it is ami-2")]
    assert taken() == one
    assert taken(trials={TrialOf.IMAGE.scope("cpu"): a_trial(60.0, version=NEW)}) == []
    assert taken(trials={TrialOf.IMAGE.scope("cpu"): a_trial(-60.0, version=NEW)}) == one


def test_versions_are_told_in_the_terms_in_which_they_differ():
    assert told_follows("2", "1") == "version 2 of its launch template follows 1"
    assert told_follows(NEW, OLD) == "image ami-2 follows ami-1"
    assert told_follows(NEW, "1") == "image ami-2 follows that of the launch template"
    assert told_follows("2 with ami-2", OLD) == "version 2 with ami-2 of its launch template follows 1 with ami-1"
    assert told_outdated("1", "2") == "launched from version 1 of its launch template, now it is 2"
    assert (
        told_outdated("1 with ami-1", "2 with ami-1") == "launched from version 1 with ami-1 of its launch template, now it is 2 with ami-1"
    )


def test_versions_are_joined_split_and_compared():
    assert (version_of("1", "ami-1"), version_of("1", ""), version_of("", "ami-1")) == (OLD, "", "")
    assert (parts_of(OLD), parts_of("7"), parts_of("")) == (("1", "ami-1"), ("7", ""), ("", ""))
    assert [differ(OLD, NEW), differ("1", "2"), differ(OLD, "2 with ami-1")] == [True] * 3
    assert [differ(OLD, OLD), differ(OLD, "1"), differ("", OLD), differ(OLD, "")] == [False] * 4


@pytest.mark.parametrize("ended", [False, True], ids=["it hangs", "it powered itself off"])
@pytest.mark.parametrize(("version", "of_the_new"), [(NEW, True), (OLD, False)])
def test_a_failed_boot_counts_against_the_image_it_was_of_and_no_other(version, of_the_new, ended):
    """What has ended EC2 does not list any more: which image it had is on record alone."""
    record = a_record("i-9", state=RecordState.REQUESTED, launched_at=NOW - 5000.0, changed_at=NOW - 5000.0, version=version)
    gone = {"fates": {"i-9": InstanceState.TERMINATED}, "instances": ()}
    listed = {"instances": (an_instance("i-9", template_version="1", image=version.removeprefix("1 with ")),)}
    looked = {"i-9": a_look("ended" if ended else "overdue", session="")}
    memory = decide_down((record, None), fleet=FLEET, **named(observations=looked), **(gone if ended else listed)).memory
    counted = {scope: trial.failures for scope, trial in memory.trials.items() if not scope.startswith(TrialOf.PLACE)}
    assert counted == {TrialOf.IMAGE.scope("cpu") if of_the_new else TrialOf.BOOT.scope("cpu"): 1}
