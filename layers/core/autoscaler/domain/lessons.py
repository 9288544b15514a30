"""Lessons of builds: what one look at a controller teaches of durations, stages, arrivals and streaks. `publish_metrics` saves it."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from autoscaler.domain.facts.memory import Learned
from autoscaler.domain.facts.runs import BlockEnd, BuildResult, GoneBlock, Graphs, RunEnd
from autoscaler.domain.facts.snapshot import Node
from autoscaler.domain.forecast.durations import note_duration
from autoscaler.domain.forecast.job_patterns import learn_stages, note_arrivals
from autoscaler.domain.scale_in.replace import (
    Ended,
    came_and_went,
    count_ends,
    ended_on,
    gone_since,
    note_pool_results,
    note_streaks,
    tally,
)
from autoscaler.domain.situation.builds import (
    UNWATCHED_SECONDS,
    AskedItems,
    Begun,
    arrivals_of,
    begun_builds,
    builds_had,
    is_away,
    job_waits,
    learn_blocks,
    note_left,
    running_builds,
    runs_present,
)
from autoscaler.domain.situation.looks import said_to_have_ended
from autoscaler.domain.situation.situation import Situation

_JOBS_KEPT = 2000
_STAGES_KEPT = 500
_NO_GRAPHS, _NO_ITEMS = Graphs(), AskedItems()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What one look taught."""

    learned: Learned
    job_waits: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # seconds, by pool
    tallies: Mapping[str, Counter[BuildResult]] = field(default_factory=dict)  # by pool
    ends: Mapping[str, RunEnd] = field(default_factory=dict)  # of builds gone since, by run; as far as Jenkins was asked
    unseen: tuple[Ended, ...] = ()  # builds that began and ended between two looks
    blocks: tuple[tuple[GoneBlock, BlockEnd], ...] = ()  # of pipelines, that found their node


def learn_from_builds(
    situation: Situation,
    controller: str,
    results: Mapping[str, BuildResult],
    graphs: Graphs = _NO_GRAPHS,
    items: AskedItems = _NO_ITEMS,
) -> Lesson:
    """Compare this look with the last one; an incomplete view teaches nothing.

    ``results``: of builds gone since, by run; ``graphs``: of pipelines whose node blocks are gone, as far as they were read; ``items``: of
    the queue, as far as they were asked about.
    """
    before, view, now = situation.snapshot.learned[controller], situation.snapshot.controllers[controller], situation.now
    if not view.complete:
        return Lesson(learned=before)
    learned, begun = _of_present(situation, controller, before)
    pools = {agent.node.name: pool.name for pool in situation.pools_of(controller).values() for agent in pool.agents if agent.node}
    blocks = learn_blocks(before, view, learned.running, graphs, now, pools)
    unseen = came_and_went(before, view, items.answers.values(), pools, now)
    ended = (*ended_on(gone_since(before, view), results, blocks.ends), *unseen)
    nodes = [*(end.node for end in unseen), *(block.node for block, _ in blocks.ends if not block.shown)]
    noted = note_streaks(before, ended, view, learned.seen_at)
    learned = replace(
        learned,
        streaks=noted.streaks,
        succeeded_at=noted.succeeded_at,
        failing=noted.failing,
        results=note_pool_results(before.results, ended),
        ends=count_ends(before, view, tally(ended), len(nodes), learned.seen_at),
        builds=builds_had(situation, controller, (*nodes, *(sighting.node for sighting, _ in begun))),
        blocks=blocks.blocks,
        items=items.next(view, graphs),
        left_queue=note_left(situation, before, view, items.answers, pools),
    )
    waits = job_waits(situation, controller, begun)
    return Lesson(learned=learned, unseen=tuple(unseen), job_waits=waits, tallies=tally(ended), blocks=blocks.ends)


def _of_present(situation: Situation, controller: str, before: Learned) -> tuple[Learned, Begun]:
    """Learn from what runs and waits now; return the builds that began, too."""
    now = situation.now
    fresh, running = running_builds(situation, controller, before)
    asked = {**situation.snapshot.memory.controller(controller).asked, **situation.memory.controller(controller).asked}
    unseen = said_to_have_ended(asked)
    nodes = {node.name: node for node in situation.snapshot.controllers[controller].nodes}
    samples = _durations(before, running.keys() | unseen, nodes, now)
    runs, stages = learn_stages(before, runs_present(situation, controller), now)
    waiting = {f"{want.item.id}\n{want.item.job}": want.item.waiting_seconds for want in situation.demands[controller].wants}
    begun = begun_builds(fresh.values(), before, waiting)
    arrived = arrivals_of(situation, controller, begun)
    costs = {name: pool.costs for name, pool in situation.pools_of(controller).items()}
    arrivals, followers, schedules = note_arrivals(before, arrived, costs, now)
    learned = Learned(
        runs=runs,
        stages=dict(list(stages.items())[-_STAGES_KEPT:]),
        samples=dict(list(samples.items())[-_JOBS_KEPT:]),
        running=running,
        waiting=waiting,
        label_sets={f"{want.item.id}\n{want.item.job}": want.label_set for want in situation.demands[controller].wants},
        arrivals=arrivals,
        followers=followers,
        schedules=schedules,
        seen_at=now,
        version=before.version,
    )
    return learned, begun


def _durations(before: Learned, running: Collection[str], nodes: Mapping[str, Node], now: float) -> dict[str, tuple[float, ...]]:
    """Note how long those builds took that were seen to begin and to end, and that were not lost with their agents."""
    samples, is_watched = dict(before.samples), now - before.seen_at <= UNWATCHED_SECONDS
    for key, sighting in before.running.items():
        # It ended somewhere between the two looks; the middle is the best guess.
        if key not in running and is_watched and not (sighting.begin_unknown or is_away(nodes.get(sighting.node))):
            note_duration(samples, sighting.job, sighting.pool, max((before.seen_at + now) / 2 - sighting.since_at, 1.0))
    return samples
