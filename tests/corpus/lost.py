"""Series made by hand, of builds of orders, and of those that may be lost."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from autoscaler.domain.facts.runs import Entry, Interruption, Job, Run
from autoscaler.domain.facts.snapshot import InstanceState, OfflineCause
from autoscaler.domain.facts.started_builds import (
    LostFacts,
    Part,
    RerunPolicy,
    RunOrder,
    Target,
    Try,
    TryState,
    Until,
    Verdict,
)
from corpus.case import Asks, Look
from corpus.hand import MINUTE, long_known, look, minutes
from support.builders import (
    NOW,
    a_build,
    a_fleet,
    a_pool,
    a_snapshot,
    a_view,
    an_agent,
    an_instance,
)

_TARGET = Target(controller="main", pool="cpu", label="cpu", value="cpu")
_RUN = Run(
    path="job/job/1",
    is_pipeline=False,
    building=False,
    result="FAILURE",
    started_at=NOW - MINUTE,
    ended_at=NOW + 2 * MINUTE,
    node="cpu-1",
    item=1,
)
_ENTRY = Entry(item=1, run=_RUN.path, at=_RUN.started_at, is_ours=False, build=_RUN)
_JOB = Job(path="job/job", buildable=True, declares=frozenset(), entries=(_ENTRY,), is_whole=True)
_FACTS = {"main job/job/1": LostFacts(run=_RUN, unit=_RUN, job=_JOB)}


def one_of_an_order_has_passed() -> Iterator[Look]:
    """No more is wanted, and no agent is launched for the one that was sent a minute ago."""
    passed = Try(
        id="1",
        state=TryState.ENDED,
        at=NOW - 10 * MINUTE,
        run="job/job/1",
        ended_at=NOW - MINUTE,
        verdict=Verdict.PASSED,
    )
    sent = Try(id="2", state=TryState.QUEUED, at=NOW - MINUTE, item=5)
    order = RunOrder(
        id="run-1",
        job="job",
        parameters=(),
        label_parameter="LABEL",
        run_parameter="ID",
        by="ada",
        reason="r",
        created_at=NOW - 10 * MINUTE,
        parts=tuple(Part(target=_TARGET, tries=(one,)) for one in (passed, sent)),
        until=Until.FIRST_SUCCESS,
    )
    yield look(Asks.UP, a_fleet(), a_snapshot(run_orders=(order,)), NOW)


def an_agent_is_back_after_a_restart_that_ended_its_build() -> Iterator[Look]:
    """What failed there is not lost: its machine was there all the time."""
    fleet = a_fleet(a_pool(rerun=RerunPolicy()))
    record, node = an_agent(builds=(a_build(),))
    idle = replace(node, builds=(), idle=True)
    away = replace(idle, offline=True, cause=OfflineCause.LOST)
    yield from long_known(fleet)
    seen = {"records": (record,), "lost": _FACTS}
    yield from minutes(fleet, a_snapshot(a_view(node), **seen), 2)
    yield from minutes(fleet, a_snapshot(a_view(away, session="s2"), **seen), 2, first=2)
    yield from minutes(fleet, a_snapshot(a_view(idle, session="s2"), **seen), 24, first=4, every=3)


def a_build_is_lost_that_no_pattern_names() -> Iterator[Look]:
    yield from _ends(RerunPolicy(jobs=("other*",)), _FACTS)


def a_person_cancels_the_block_of_an_agent_that_is_gone() -> Iterator[Look]:
    """What they ended is not lost."""
    stops = (Interruption.BLOCK_CANCELLED, Interruption.PERSON)
    run = replace(_RUN, is_pipeline=True, result="ABORTED", node="", interruptions=stops)
    yield from _ends(RerunPolicy(), {"main job/job/1": LostFacts(run=run, unit=run, job=_JOB)})


def _ends(rerun: RerunPolicy, facts: Mapping[str, LostFacts]) -> Iterator[Look]:
    """The machine of a build ends."""
    fleet = a_fleet(a_pool(rerun=rerun))
    record, node = an_agent(builds=(a_build(),))
    yield from long_known(fleet)
    yield from minutes(fleet, a_snapshot(a_view(node), records=(record,), lost=facts), 2)
    ended = an_instance(state=InstanceState.TERMINATED)
    away = replace(node, builds=(), idle=True, offline=True, cause=OfflineCause.LOST)
    seen = a_snapshot(a_view(away), records=(record,), instances=(ended,), lost=facts)
    yield from minutes(fleet, seen, 3, first=2)


LOST = (
    *(one_of_an_order_has_passed, a_build_is_lost_that_no_pattern_names),
    a_person_cancels_the_block_of_an_agent_that_is_gone,
    an_agent_is_back_after_a_restart_that_ended_its_build,
)
