"""Series made by hand, of builds of orders, and of those that may be lost."""

from collections.abc import Iterator
from dataclasses import replace

from autoscaler.domain.facts.runs import Entry, Job, Run
from autoscaler.domain.facts.snapshot import OfflineCause
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
from support.builders import NOW, a_build, a_fleet, a_pool, a_snapshot, a_view, an_agent

_TARGET = Target(controller="main", pool="cpu", label="cpu", value="cpu")


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
    run = Run(
        path="job/job/1",
        is_pipeline=False,
        building=False,
        result="FAILURE",
        started_at=NOW - MINUTE,
        ended_at=NOW + 2 * MINUTE,
        node=node.name,
        item=1,
    )
    entry = Entry(item=1, run=run.path, at=run.started_at, is_ours=False, build=run)
    job = Job(path="job/job", buildable=True, declares=frozenset(), entries=(entry,), is_whole=True)
    facts = {"main job/job/1": LostFacts(run=run, unit=run, job=job)}
    yield from long_known(fleet)
    seen = {"records": (record,), "lost": facts}
    yield from minutes(fleet, a_snapshot(a_view(node), **seen), 2)
    yield from minutes(fleet, a_snapshot(a_view(away, session="s2"), **seen), 2, first=2)
    yield from minutes(fleet, a_snapshot(a_view(idle, session="s2"), **seen), 24, first=4, every=3)


LOST = (one_of_an_order_has_passed, an_agent_is_back_after_a_restart_that_ended_its_build)
