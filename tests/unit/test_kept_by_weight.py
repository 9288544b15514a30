"""Where jobs have weights, `why` promises no executor that looks free and is kept for a heavier job, or that others take first."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import FULL_LABEL, Share
from autoscaler.domain.facts.job_settings import JobWeights, Source
from autoscaler.domain.learn import assess
from autoscaler.domain.report.listing import list_queue
from support.builders import NOW, a_build, a_fleet, a_learned, a_pool, a_record, a_snapshot, a_view, an_item, key_of
from support.builders import a_node as a_plain_node

HEAVY = JobWeights(by_pattern=(("heavy", 2),))
PLUGIN = JobWeights(by_pattern=(("heavy", Source.PLUGIN),), known={Source.PLUGIN: {"heavy": 2}})
AFTER_OTHER = "1 job before it in the queue may take its executor first: what is free elsewhere is kept for heavy, which weighs 2"
BOOTS = (a_record("i-2", launched_at=NOW - 120.0, changed_at=NOW - 120.0),)


def details(weights, node, *jobs, booting=(), share=Share.NONE):
    """What becomes of the jobs that wait beside one agent and those that boot; no further one may be launched."""
    fleet = replace(a_fleet(a_pool("cpu", executors=2, max_agents=1 + len(booting), share=share)), weights=weights)
    records = (replace(a_record("i-1", node="cpu-1"), labels=("cpu",)), *booting)
    items = tuple(an_item(number, job=job, label="cpu", waiting_seconds=300.0) for number, job in enumerate(jobs))
    learned = {"main": a_learned(samples={key_of("cpu", "light"): (120.0,) * 9})}
    situation = assess(a_snapshot(a_view(node, items=items), records=records, learned=learned), fleet)
    return {entry.job: (entry.state, entry.detail) for entry in list_queue(situation)}


def a_node(*labels, builds):
    return a_plain_node("cpu-1", *labels, "autoscaler-fleet-f", executors=2, builds=builds)


FULL = a_node(FULL_LABEL, builds=(a_build("light", elapsed_seconds=60.0),))


@pytest.mark.parametrize("share", [Share.NONE, Share.COOPERATIVE])
@pytest.mark.parametrize("order", [("heavy", "other"), ("other", "heavy")])
def test_what_is_free_on_a_full_agent_is_kept_for_the_heavier_job(order, share):
    """It said "at once" for ten minutes: the node has no labels until the heavier one has begun."""
    assert details(HEAVY, FULL, *order, share=share)["other"] == (
        "after-heavier",
        "heavy, which weighs 2, goes first: what is free on cpu-1 is kept until it has begun",
    )


@pytest.mark.parametrize(
    ("job", "order", "state", "says"),
    [
        ("heavy", ("other", "heavy"), "after-others", AFTER_OTHER),
        ("third", ("other", "third", "heavy"), "after-others", AFTER_OTHER),
        ("heavy", ("heavy", "other"), "placed", "it would start in 60 s on an executor of cpu; a new agent takes 3 min to boot"),
    ],
)
def test_a_job_to_which_a_full_agent_gives_nothing_may_take_the_agent_that_boots_for_one_behind_it(job, order, state, says):
    """It said "in 60 s": the first one was to begin on the full agent, which takes nothing until the heavy one has begun."""
    assert details(HEAVY, FULL, *order, booting=BOOTS)[job] == (state, says)


def test_without_a_heavier_job_its_labels_come_back_with_the_next_look():
    assert details(HEAVY, FULL, "other")["other"] == (
        "placed",
        "it would start at once on an executor of cpu; a new agent takes 3 min to boot",
    )


def test_what_the_plugin_lets_wait_for_two_executors_at_once_may_be_overtaken():
    """It said "in 30 s" for ten minutes: each executor that came free was taken by a lighter job behind it."""
    builds = tuple(a_build("light", elapsed_seconds=90.0, key=f"light/{number}") for number in (0, 1))
    assert details(PLUGIN, a_node("cpu", builds=builds), "heavy", "other")["heavy"] == (
        "needs-several",
        "it needs 2 executors of one machine at once, and 1 job that needs fewer may take each that is freed before",
    )
    alone = details(PLUGIN, a_node("cpu", builds=builds), "heavy")["heavy"]
    assert (alone[0], alone[1].startswith("it would start in 30 s")) == ("placed", True)
