"""Items of the queue that an old Jenkins dropped on their way to an agent: what it asks of them, and what is done about each.

Before 2.517 (LTS 2.528.1) an item that is handed to an executor, whose node goes offline or away in the same instant, is taken out of the
queue and forgotten. For any other item that left the queue, Jenkins says for five minutes whether it began or was cancelled. So what was in
the queue within that time, and is unknown in two looks of the same session while its job is there, was dropped. A pipeline goes on waiting
for its node block then, until a person ends it: Jenkins offers no way to give it another item.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice

from autoscaler.domain.facts.fleet import Fleet, Pool
from autoscaler.domain.facts.node_labels import drops_handed_builds
from autoscaler.domain.facts.plan import LeaveLost, RunAgain
from autoscaler.domain.facts.queued_items import QueuedItem, item_key
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.reruns import LostBuild, LostFacts, RerunPolicy, RerunState
from autoscaler.domain.facts.run_orders import claimed_try
from autoscaler.domain.facts.runs import ItemState, Waiting, job_path_of, matrix_of
from autoscaler.domain.facts.snapshot import ControllerView, Record
from autoscaler.domain.facts.waiting_items import QueueItem
from autoscaler.domain.repair.lost_builds import not_repeatable
from autoscaler.domain.repair.ran_again import again_or_left, is_run_again, leave
from autoscaler.domain.repair.repeated_builds import leave_repeated
from autoscaler.domain.repair.unanswered_starts import find
from autoscaler.domain.situation.demand import homes
from autoscaler.domain.situation.situation import Look, Situation
from autoscaler.domain.situation.steps import Decided

# The next ones in the queue, and as many that have left it: all that is remembered must fit into one item of the state.
MOST_FOLLOWED = 100
_MOST_CHARACTERS = 1000
# Jenkins tells for five minutes what became of an item; a look that takes long may ask up to a minute after it began.
_TOLD_SECONDS = 240.0
# A controller that nobody can look at for longer has surely restarted, or somebody has looked after it.
_FOLLOWED_SECONDS = 86_400.0
_DROPPED = "Jenkins dropped it between its queue and an agent"


def may_drop(view: ControllerView, fleet: Fleet, followed: Collection[QueuedItem]) -> bool:
    """Tell whether items of this controller are followed: it may drop them, and some pool's are run again, or some are followed yet."""
    is_followed = any(pool.rerun for pool in fleet.pools_of(view.name)) or any(item.controller == view.name for item in followed)
    return view.complete and drops_handed_builds(view) and is_followed


def to_follow(view: ControllerView, fleet: Fleet, records: Iterable[Record]) -> dict[int, tuple[QueueItem, Pool]]:
    """Choose the items of a queue that are followed, with the pool that each is for: the next ones whose builds are run again."""
    wanted = ((item, pool) for item, pool in homes(view, fleet, records) if pool.rerun and pool.rerun.covers(item.job) and item.id >= 0)
    return {item.id: (item, pool) for item, pool in islice(wanted, MOST_FOLLOWED)}


def next_queued(known: Mapping[str, QueuedItem], look: Look) -> dict[str, QueuedItem]:
    """Carry on which items are followed."""
    if not (known or look.snapshot.queued):
        return {}
    carried: list[QueuedItem] = []
    for view in look.views():
        mine = [one for one in known.values() if one.controller == view.name and look.now - one.seen_at < _FOLLOWED_SECONDS]
        if not view.complete:
            carried += mine
        elif may_drop(view, look.fleet, mine):
            carried += _carried_on([one for one in mine if one.session == view.session], view, look)
    return {one.key: one for one in carried}


def start_dropped(situation: Situation, _: Decided) -> Iterator[RunAgain | LeaveLost]:
    """Answer for each item that was dropped: start its build, or leave it to a person."""
    for one in situation.memory.queued.values():
        facts, pool = situation.snapshot.queued.get(one.key), situation.fleet.pools.get(one.pool)
        if facts is None or facts.lost is None or situation.no_giving_up(one.controller):
            continue
        if not is_run_again(situation.fleet, _as_lost(one)) and not facts.lost.may_have_been_started:
            continue
        policy = pool.rerun if pool and pool.rerun else RerunPolicy()
        if step := _answer(situation, one, facts.lost, policy):
            yield replace(step, lost=one.key)


def _carried_on(mine: Iterable[QueuedItem], view: ControllerView, look: Look) -> list[QueuedItem]:
    """Carry on those of one session of a controller, and begin to follow what is new in its queue."""
    followed, known = to_follow(view, look.fleet, look.snapshot.records), {one.item: one for one in mine}
    listed = {item.id for item in view.items}
    left = [kept for number, one in known.items() if number not in listed and (kept := _left_now(one, look))]
    there = [_there_now(known.get(item.id), item, pool, view, look) for item, pool in followed.values()]
    return [*left[-MOST_FOLLOWED:], *(one for one in there if one)]


def _there_now(known: QueuedItem | None, item: QueueItem, pool: Pool, view: ControllerView, look: Look) -> QueuedItem | None:
    """Note an item that is in the queue; None: it is not known what it was asked for with, or its order answers for it."""
    if known is not None:
        return replace(known, pool=pool.name, seen_at=look.now, missed_at=None)
    facts = look.snapshot.queued.get(item_key(view.name, item.id))
    if facts is None or facts.waiting is None:
        return None
    asked = facts.waiting
    claims_order = claimed_try(asked.parameters, look.fleet.rerun_parameter) is not None
    if claims_order if facts.is_ordered is None else facts.is_ordered:
        return None
    return QueuedItem(
        controller=view.name,
        item=item.id,
        job=job_path_of(asked.job) if item.run else asked.job,
        run=item.run,
        pool=pool.name,
        session=view.session,
        at=asked.at,
        seen_at=look.now,
        parameters=asked.parameters if _fits(asked) else None,
        upstream=asked.upstream,
    )


def _fits(asked: Waiting) -> bool:
    return sum(len(one.name) + len(one.value or "") for one in asked.parameters) <= _MOST_CHARACTERS


def _left_now(one: QueuedItem, look: Look) -> QueuedItem | None:
    """Carry on an item that has left the queue by what Jenkins says of it; None: it began, was cancelled, or nobody knows any more."""
    facts = look.snapshot.queued.get(one.key)
    if one.missed_at is None and look.now - one.seen_at >= _TOLD_SECONDS:
        return None
    if facts is None or facts.item is None or facts.item.state is ItemState.WAITING:
        return one
    if facts.item.state is not ItemState.UNKNOWN:
        return None
    if one.missed_at is None:
        return replace(one, missed_at=look.now)
    if facts.lost is None:
        return one
    is_settled = not (is_run_again(look.fleet, _as_lost(one)) or facts.lost.may_have_been_started)
    return None if is_settled or _is_over(one, facts.lost) else one


def _is_over(one: QueuedItem, facts: LostFacts) -> bool:
    """Tell whether an item need not be followed any more: it is answered for, or nobody waits for it."""
    if facts.rerun is not None:
        return facts.rerun.state is not RerunState.WRITTEN
    return (facts.run is None or not facts.run.building) if one.run else facts.job is None


def _answer(situation: Situation, one: QueuedItem, facts: LostFacts, policy: RerunPolicy) -> RunAgain | LeaveLost | None:
    lost, unit = _as_lost(one), one.as_run()
    facts = replace(facts, unit=unit)
    if one.run:
        detail = f"{one.run} waits for a node block that is neither running nor scheduled: abort it, and start it again"
        return leave(situation, lost, facts, Reason.NODE_BLOCK_DROPPED, detail)
    if facts.rerun is not None:
        return find(situation, lost, facts, unit)
    if repeated := leave_repeated(situation, lost, facts, unit):
        return repeated
    if refusal := _not_startable(one, facts) or not_repeatable(situation, facts, unit):
        return leave(situation, lost, facts, *refusal)
    step = again_or_left(situation, lost, facts, unit, policy)
    return replace(step, reason=Reason.DROPPED_ITEM) if isinstance(step, RunAgain) else step


def _not_startable(one: QueuedItem, facts: LostFacts) -> tuple[Reason, str] | None:
    """Say why starting it again would not be the same, or would not help whoever waits for it."""
    if one.parameters is None:
        return Reason.HIDDEN_PARAMETERS, f"its parameters are longer than {_MOST_CHARACTERS} characters, and are not kept"
    waits = [up.path for up in facts.upstream if up.building]
    if matrix := matrix_of(one.path):
        waits.append(f"the build of {job_path_of(matrix)} that it is a part of")
    return (Reason.PARENT_WAITS, f"{waits[0]} waits for it: run that one again") if waits else None


def _as_lost(one: QueuedItem) -> LostBuild:
    return LostBuild(
        controller=one.controller,
        run=one.path,
        pool=one.pool,
        node="",
        instance_id="",
        how=_DROPPED,
        since_at=one.seen_at,
        seen_at=one.seen_at,
    )
