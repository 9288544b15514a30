"""Which node may take an item: in random worlds the product says what the simulated Jenkins does.

Each pair of an item that waits and a node of its controller is asked. Jenkins answers by the list
that its scheduler takes. That list is judged in turn by a second reader of label expressions, and
by what begins when Jenkins hands out its executors.
"""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import pytest

from autoscaler.domain.facts.snapshot import Node, QueueItem, Snapshot
from autoscaler.domain.learn import assess
from autoscaler.domain.situation.wants import may_take, taker_of
from support.builders import a_memory
from support.pair_worlds import PlannedNode, PlannedWorld, planned
from support.pairs import (
    BY_A_NODE,
    BY_A_PLUGIN,
    BY_ITS_JOB,
    BY_JENKINS,
    BY_NOTHING,
    ON_HOLD,
    WAYS,
    Pair,
    Stage,
    satisfied,
)
from support.sampling import WHOLE, commit

IS_WHOLE = os.environ.get("HYPOTHESIS", "slow" if WHOLE else "") == "slow"
PAIRS = 100_000 if IS_WHOLE else 8_000
# The most pairs in a thousand that nobody can know: ten is usual, and a small sample had sixteen.
MOST_UNKNOWN = 15 if IS_WHOLE else 25
# Of a thousand pairs so many at the least are of each kind: worlds without them say nothing of it.
LEAST = {
    BY_ITS_JOB: 200,
    BY_JENKINS: 200,
    BY_A_NODE: 50,
    BY_NOTHING: 8,
    ON_HOLD: 3,
    BY_A_PLUGIN: 3,
    "may start": 200,
    "beacon": 500,
    "static node": 150,
    "plain agent": 100,
    "labelled agent": 30,
    "unlabelled agent": 30,
    "lent agent": 10,
    "cordoned agent": 10,
    "full agent": 10,
    "away agent": 10,
    "of before agent": 10,
    "left agent": 10,
    "a side of a shared machine": 20,
    "a host": 10,
    "a node that an operator made for us": 10,
    "a job with a weight": 60,
}


def product_says(situation, controller: str, item: QueueItem, node: Node) -> bool:
    """Ask the product whether a node may take an item. This is the only place that asks it.

    A beacon is left out before anything is asked.
    """
    if situation.fleet.is_beacon(node.name):
        return False
    demand = situation.demands[controller]
    wants = (*demand.waiting, *demand.runnable, *(refused.want for refused in demand.refused))
    agents = [agent for agent in situation.agents if agent.record.controller == controller]
    records = {agent.record.node: agent.record for agent in agents}
    for want in wants:
        if want.item.id == item.id:
            return may_take(want, taker_of(node, records.get(node.name)))
    # What is no demand waits for the nodes that it names.
    return node.name in names_in(item)


@dataclass(frozen=True)
class Difference:
    """A pair of which the product says what is not so."""

    pair: Pair
    way: str
    said: bool

    @property
    def sort(self) -> tuple[str, bool, str, str]:
        """What it has in common with others that come from the same cause."""
        return self.way, self.said, group_of(self.pair.planned_node), self.about

    @property
    def about(self) -> str:
        """Say what is special about the item, beside that node."""
        pair, names = self.pair, names_in(self.pair.item)
        if pair.build.resumes_on:
            return "a build that resumes on its node"
        if pair.node.name in names:
            return "what it is named for"
        nodes = {node.name: node for node in pair.plan.nodes if node.controller == pair.view.name}
        others = sorted({group_of(nodes[name]) for name in names if name in nodes})
        return f"what names another node ({', '.join(others)})" if others else "what names no node"

    def __str__(self) -> str:
        item, node = self.pair.item, self.pair.planned_node
        says = "may take" if self.said else "may not take"
        head = f"the product says that {node.kind} {node.name!r} {says} {self.about}"
        wait = f"{self.pair.build.label!r}, read as {item.wait}"
        return f"{self.way}: {head}: {wait}\n{self.pair.plan}"


def group_of(node: PlannedNode) -> str:
    if node.kind in {"beacon", "static node", "left agent"}:
        return node.kind
    return "emptied agent" if node.kind in {"cordoned agent", "full agent"} else "agent"


def names_in(item: QueueItem) -> tuple[str | None, ...]:
    """Return what may be the name of a node in an item: Jenkins tells labels and names alike."""
    return item.label, item.wait.label, item.wait.named, *item.wait.nodes


@dataclass
class Found:
    """What comparing worlds has brought."""

    counts: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    misread: list[str] = field(default_factory=list)
    misplaced: list[str] = field(default_factory=list)


def compare(plan: PlannedWorld, outcome: Found) -> Found:
    """Compare all pairs of a world."""
    stage = Stage(plan)
    memory = a_memory(sessions={})
    if plan.was_seen:
        memory = assess(stage.snapshot(memory=memory), plan.fleet).memory
    stage.queue()
    situation = assess(snapshot := stage.snapshot(memory=memory), plan.fleet)
    # While a person holds its label an item is no demand: it is asked as if nobody held it.
    lifted = assess(stage.snapshot(memory=memory, without_holds=True), plan.fleet)
    demands = situation.demands.items()
    on_hold = {(name, item.id) for name, demand in demands for item, _ in demand.held}
    allowed = set[tuple[str, int, str]]()
    for controller, pair in pairs_of(stage, snapshot):
        is_held = (controller, pair.item.id) in on_hold
        way = ON_HOLD if is_held else pair.way
        truth = stage.may_start(pair.planned_node, pair.build)
        judge_jenkins(stage, pair, outcome)
        note(outcome, pair, way, truth=truth)
        if truth:
            allowed.add((controller, pair.item.id, pair.node.name))
        said = product_says(lifted if is_held else situation, controller, pair.item, pair.node)
        if said is not truth:
            if why := pair.why_unknown(said=said):
                outcome.unknown[why] += 1
            else:
                outcome.differences.append(Difference(pair, way, said))
    for name, build in stage.started():
        if (name, build.id, build.node) not in allowed:
            outcome.misplaced.append(f"{build.label} on {build.node}")
    return outcome


def pairs_of(stage: Stage, snapshot: Snapshot) -> Iterator[tuple[str, Pair]]:
    """Yield each item that waits with each node of its controller but Jenkins' own."""
    kinds = {(node.controller, node.name): node for node in stage.plan.nodes}
    for controller, view in snapshot.controllers.items():
        for item in view.items:
            build = stage.waiting[controller, item.id]
            takers = len(stage.controllers[controller].matching(build))
            for node in (node for node in view.nodes if node.agent):
                yield (
                    controller,
                    Pair(
                        plan=stage.plan,
                        view=view,
                        item=item,
                        node=node,
                        build=build,
                        planned_node=kinds[controller, node.name],
                        takers=takers,
                    ),
                )


def judge_jenkins(stage: Stage, pair: Pair, outcome: Found) -> None:
    """Let a second reader of labels judge the list that the simulated scheduler takes."""
    controller = stage.controllers[pair.planned_node.controller]
    real = controller.nodes[pair.node.name]
    if (real in controller.matching(pair.build)) is not satisfied(pair.build, real):
        outcome.misread.append(f"{pair.build.label} on {real.name}: {real.labels}")


def note(outcome: Found, pair: Pair, way: str, *, truth: bool) -> None:
    """Count what a pair is about."""
    node, weights = pair.planned_node, pair.plan.fleet.weights
    record = node.record
    facts = {
        node.kind: True,
        "pairs": node.kind != "beacon",
        way: node.kind != "beacon",
        "may start": truth,
        "a side of a shared machine": record is not None and record.is_side,
        "a host": record is not None and record.is_host,
        "a node that an operator made for us": record is not None and not record.labels,
        "a job with a weight": bool(weights) and weights.of(pair.item.job) > 1,
    }
    outcome.counts.update([name for name, holds in facts.items() if holds])


@cache
def found() -> Found:
    """Compare worlds until there are pairs enough; each commit draws others."""
    outcome, number = Found(), 0
    while outcome.counts["pairs"] < PAIRS:
        compare(planned(f"{commit()} {number}"), outcome)
        number += 1
    return outcome


def smallest(differences: list[Difference]) -> Difference:
    """Take away from a world whatever its difference does not need."""
    least = min(differences, key=lambda one: one.pair.plan.size)
    plans = iter((least.pair.alone, *least.pair.plan.smaller()))
    while plan := next(plans, None):
        same = [one for one in compare(plan, Found()).differences if one.sort == least.sort]
        if same:
            least = same[0]
            plans = least.pair.plan.smaller()
    return least


@pytest.mark.parametrize("way", WAYS)
def test_the_product_says_which_nodes_may_take_an_item_as_jenkins_does_if(way):
    sorts: dict[tuple[object, ...], list[Difference]] = {}
    for one in found().differences:
        if one.way == way:
            sorts.setdefault(one.sort, []).append(one)
    told = [f"{len(alike)} times: {smallest(alike)}" for alike in sorts.values()]
    assert not told, "\n\n".join((f"{len(told)} kinds of difference", *told))


def test_what_nobody_can_know_is_rare(record_property):
    counts, unknown = found().counts, found().unknown
    record_property("counted", ("pairs of an item and a node", counts["pairs"]))
    assert sum(unknown.values()) * 1000 <= MOST_UNKNOWN * counts["pairs"], unknown


def test_the_simulated_jenkins_reads_labels_as_a_second_reader_does():
    assert found().misread == []


def test_what_jenkins_starts_it_starts_where_it_was_said_to_start():
    assert found().misplaced == []


def test_the_worlds_have_enough_of_each_kind_to_say_something():
    counts = found().counts
    wanted = {name: least * counts["pairs"] / 1000 for name, least in LEAST.items()}
    too_few = {name: counts[name] for name, least in wanted.items() if counts[name] < least}
    assert too_few == {}, counts
