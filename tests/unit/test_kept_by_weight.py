"""Where jobs have weights, `why` promises no executor that looks free and is kept for a heavier job, or that others take first."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import FULL_LABEL
from autoscaler.domain.facts.job_settings import JobWeights, Source
from autoscaler.domain.learn import assess
from autoscaler.domain.report.listing import list_queue
from support.builders import a_build, a_fleet, a_learned, a_pool, a_record, a_snapshot, a_view, an_item, key_of
from support.builders import a_node as a_plain_node

HEAVY = JobWeights(by_pattern=(("heavy", 2),))
PLUGIN = JobWeights(by_pattern=(("heavy", Source.PLUGIN),), known={Source.PLUGIN: {"heavy": 2}})


def details(weights, node, *jobs):
    """What becomes of the jobs that wait beside one agent; no further one may be launched."""
    fleet = replace(a_fleet(a_pool("cpu", executors=2, max_agents=1)), weights=weights)
    record = replace(a_record("i-1", node="cpu-1"), labels=("cpu",))
    items = tuple(an_item(number, job=job, label="cpu", waiting_seconds=300.0) for number, job in enumerate(jobs))
    learned = {"main": a_learned(samples={key_of("cpu", "light"): (120.0,) * 9})}
    situation = assess(a_snapshot(a_view(node, items=items), records=(record,), learned=learned), fleet)
    return {entry.job: (entry.state, entry.detail) for entry in list_queue(situation)}


def a_node(*labels, builds):
    return a_plain_node("cpu-1", *labels, "autoscaler-fleet-f", executors=2, builds=builds)


@pytest.mark.parametrize("order", [("heavy", "other"), ("other", "heavy")])
def test_what_is_free_on_a_full_agent_is_kept_for_the_heavier_job(order):
    """It said "at once" for ten minutes: the node has no labels until the heavier one has begun."""
    node = a_node(FULL_LABEL, builds=(a_build("light", elapsed_seconds=60.0),))
    says = "heavy, which weighs 2, goes first: what is free on cpu-1 is kept until it has begun"
    assert details(HEAVY, node, *order)["other"] == ("after-heavier", says)


def test_without_a_heavier_job_its_labels_come_back_with_the_next_look():
    node = a_node(FULL_LABEL, builds=(a_build("light", elapsed_seconds=60.0),))
    state, says = details(HEAVY, node, "other")["other"]
    assert (state, says.startswith("it would start at once")) == ("placed", True)


def test_what_the_plugin_lets_wait_for_two_executors_at_once_may_be_overtaken():
    """It said "in 30 s" for ten minutes: each executor that came free was taken by a lighter job behind it."""
    builds = tuple(a_build("light", elapsed_seconds=90.0, key=f"light/{number}") for number in (0, 1))
    found = details(PLUGIN, a_node("cpu", builds=builds), "heavy", "other")
    assert found["heavy"] == (
        "needs-several",
        "it needs 2 executors of one machine at once, and 1 job that needs fewer may take each that is freed before",
    )
    alone = details(PLUGIN, a_node("cpu", builds=builds), "heavy")["heavy"]
    assert (alone[0], alone[1].startswith("it would start in 30 s")) == ("placed", True)
