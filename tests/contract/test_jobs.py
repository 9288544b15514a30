"""The store of job statistics, on DynamoDB (moto, ministack) and in memory: what is kept, what is forgotten, and how large it grows."""

from dataclasses import replace
from functools import cache
from random import Random

import pytest

from autoscaler.adapters import stores
from autoscaler.adapters.stores import DynamoJobs
from autoscaler.domain.facts.job_stats import (
    EndedUse,
    Estimate,
    JobRow,
    JobTracker,
    Machines,
    Needs,
    RunningBuild,
    Spread,
    Subject,
    Used,
    WaitingItem,
)
from autoscaler.domain.facts.memory import TrackRecord
from autoscaler.domain.forecast.durations import STEPS_KEPT, note_value
from autoscaler.domain.report.tracking import BUILDS_FOLLOWED, ITEMS_FOLLOWED, SIZES_KEPT, USES_FOLLOWED
from autoscaler.domain.report.tracking import STEPS_KEPT as STEPS_OF_NEEDS
from autoscaler.errors import ConflictError
from autoscaler_workbench.cli.demo import TABLE
from autoscaler_workbench.fakes.state import InMemoryJobs
from contract.conftest import STORES, items, size_of

NOW = 1_800_000_000.0
DAY = 86_400.0
ITEM_BYTES = 400_000


def a_row(job, signature="", *, pool="cpu", controller="main", seen_at=NOW, runs=1, spread=None):
    spread = spread or note_value(Spread(), 60.0, NOW)
    of_builds = {"runs": runs, "durations": spread, "waits": spread, "needs": needs_as_wide_as(spread)}
    return JobRow(controller=controller, subject=Subject(job, signature), pool=pool, first_at=NOW, seen_at=seen_at, **of_builds)


def needs_as_wide_as(spread):
    """Needs of builds alone and beside others, with as many steps as are kept of a spread."""
    few = replace(spread, weights=dict(sorted(spread.weights.items())[:STEPS_OF_NEEDS]))
    used = Used(memory=few, cores=few, gpu_memory=few, gpu=TrackRecord(true=3.1415, false=2.7182))
    sizes = replace(spread, weights=dict(sorted(spread.weights.items())[:SIZES_KEPT]))
    return Needs(alone=used, beside=used, ran_on=Machines(memory=sizes, cores=sizes, gpu=TrackRecord(true=3.1415, false=2.7182)))


@cache
def widest_spread(seed=0):
    """As many steps as are kept, with weights of many digits."""
    chance = Random(seed)
    spread = Spread()
    for _ in range(10 * STEPS_KEPT):
        spread = note_value(spread, chance.uniform(1, 100_000), NOW)
    assert len(spread.weights) == STEPS_KEPT
    return spread


@pytest.fixture(params=STORES)
def kept(request):
    if request.param == "memory":
        return InMemoryJobs()
    client = request.getfixturevalue(request.param)
    return DynamoJobs(lambda: client, TABLE, "f")


def test_rows_are_read_back_as_they_were_written_and_replaced_one_by_one(kept):
    rows = [a_row("a/job"), a_row("a/job", "GPU: ü"), a_row("a/job", pool="gpu"), a_row("other")]
    kept.save_rows(rows, NOW)
    read = kept.rows("main", [Subject("a/job"), Subject("a/job", "GPU: ü")])
    assert sorted(read, key=lambda row: (row.subject, row.pool)) == [rows[0], rows[2], rows[1]]
    kept.save_rows([a_row("a/job", runs=2)], NOW)
    assert {row.runs for row in kept.rows("main", [Subject("a/job")]) if row.pool == "cpu"} == {2}
    assert len(kept.all_rows()) == 4


def test_jobs_of_one_name_on_two_controllers_are_two(kept):
    kept.save_rows([a_row("job"), a_row("job", controller="other", runs=7)], NOW)
    assert [row.runs for row in kept.rows("other", [Subject("job")])] == [7]
    assert kept.rows("third", [Subject("job")]) == ()


def test_of_two_that_replace_a_tracker_only_one_does(kept):
    first, second = kept.tracker("main"), kept.tracker("main")
    kept.save_tracker("main", first, NOW)
    with pytest.raises(ConflictError):
        kept.save_tracker("main", second, NOW)
    assert kept.tracker("main").version == 1
    assert kept.tracker("other") == JobTracker()


def test_a_tracker_is_read_back_as_it_was(kept):
    takes = Estimate(low=1.0, mid=2.5, high=9.0)
    waiting = WaitingItem(
        signature="s", asked_at=NOW, duration=takes, start=takes, bare_seconds=3.0, corrected_seconds=4.0, kinds=("a", "b")
    )
    running = RunningBuild(signature="", since_at=NOW, waited=None, on_time=True, duration=None)
    tracker = JobTracker(waiting={"12": waiting}, running={"n/0/job": running}, ratios={"k": note_value(Spread(), 0.5, NOW)})
    kept.save_tracker("main", tracker, NOW)
    read = kept.tracker("main")
    assert (read.waiting, read.running, read.ratios) == (tracker.waiting, tracker.running, tracker.ratios)


@pytest.mark.long
def test_five_thousand_jobs_are_all_kept_and_no_item_is_near_its_limit(dynamo):
    store = DynamoJobs(lambda: dynamo, TABLE, "f")
    spreads = [widest_spread(seed) for seed in range(5)]
    rows = [
        a_row(f"a folder of many words/project {number:05}/job", pool=pool, spread=spreads[number % 5])
        for number in range(5000)
        for pool in ("mxnetlinux-cpu", "mxnetlinux-gpu")
    ]
    store.save_rows(rows, NOW)
    assert len(store.all_rows()) == len(rows), "none is left out"
    sizes = [size_of(item) for item in items(dynamo)]
    assert max(sizes) < ITEM_BYTES / 4
    assert sum(sizes) < 10_000_000


@pytest.mark.long
def test_a_full_shard_forgets_what_was_seen_longest_ago_and_stays_below_the_limit(dynamo, monkeypatch):
    monkeypatch.setattr(stores, "SHARDS", 1)
    store = DynamoJobs(lambda: dynamo, TABLE, "f")
    stages = [a_row("job", f"{'stage ' * 15}{number}", seen_at=NOW + number, spread=widest_spread(number)) for number in range(200)]
    store.save_rows(stages, NOW)
    assert {row.seen_at for row in store.all_rows()} == {NOW + number for number in range(200 - stores.ROWS_A_SHARD, 200)}
    assert max(map(size_of, items(dynamo))) < ITEM_BYTES


def test_a_job_whose_builds_all_have_other_parameters_displaces_no_other_job(dynamo, monkeypatch):
    for name, value in (("SHARDS", 1), ("ROWS_A_SHARD", 32), ("ROWS_A_JOB", 16)):
        monkeypatch.setattr(stores, name, value)
    store = DynamoJobs(lambda: dynamo, TABLE, "f")
    store.save_rows([a_row(f"job {number}", seen_at=NOW) for number in range(stores.ROWS_A_SHARD - stores.ROWS_A_JOB)], NOW)
    for number in range(1, 2 * stores.ROWS_A_SHARD):
        store.save_rows([a_row("wild", f"SHA={number}", seen_at=NOW + number)], NOW)
    kept = store.all_rows()
    assert sum(row.subject.job != "wild" for row in kept) == stores.ROWS_A_SHARD - stores.ROWS_A_JOB
    assert sum(row.subject.job == "wild" for row in kept) == stores.ROWS_A_JOB


@pytest.mark.long
def test_a_tracker_of_as_much_as_is_followed_stays_below_the_limit(dynamo):
    chance = Random(1)

    def takes():
        return Estimate(low=chance.uniform(1, 1e4), mid=chance.uniform(1, 1e4), high=chance.uniform(1, 1e4))

    waiting = {
        str(10_000_000 + number): WaitingItem(
            signature=f"{number} {'stage ' * 15}",
            asked_at=NOW + chance.random(),
            duration=takes(),
            start=takes(),
            kinds=("x" * 60, "y" * 40),
        )
        for number in range(ITEMS_FOLLOWED)
    }
    running = {
        f"agent-{number:017x}/3/job/a%20folder/job/project%20{number}/12/": RunningBuild(
            signature=f"{number} {'stage ' * 15}",
            since_at=NOW + chance.random(),
            waited=chance.uniform(1, 1e4),
            on_time=True,
            duration=takes(),
        )
        for number in range(BUILDS_FOLLOWED)
    }
    ratios = {f"kind {number}": widest_spread(number) for number in range(200)}
    store = DynamoJobs(lambda: dynamo, TABLE, "f")
    uses = {
        f"agent-{number:017x}/3/job/a%20folder/job/project%20{number}/12": EndedUse(
            job=f"a folder/project {number}",
            run=f"job/a%20folder/job/project%20{number}/12",
            signature=f"{number} {'stage ' * 15}",
            pool="mxnetlinux-gpu",
            machine=f"i-{number:017x}",
            ended_at=NOW + chance.random(),
        )
        for number in range(USES_FOLLOWED)
    }
    store.save_tracker("main", JobTracker(waiting=waiting, running=running, ratios=ratios, uses=uses), NOW)
    assert size_of(items(dynamo)[0]) < ITEM_BYTES
    assert len(store.tracker("main").running) == BUILDS_FOLLOWED


def test_of_two_that_write_a_shard_at_once_the_second_gives_way(dynamo, monkeypatch):
    store = DynamoJobs(lambda: dynamo, TABLE, "f")
    store.save_rows([a_row("job")], NOW)
    monkeypatch.setattr(DynamoJobs, "get", lambda _self, _part, _names: [])
    with pytest.raises(ConflictError):
        store.save_rows([a_row("job", runs=2)], NOW)


def test_what_another_version_wrote_begins_again(dynamo):
    store = DynamoJobs(lambda: dynamo, TABLE, "f")
    for item in (stores._shard_of("main", Subject("job")), "tracker#main"):
        dynamo.put_item(TableName=TABLE, Item={"fleet": {"S": "f#jobs"}, "item": {"S": item}, "body": {"B": b"?"}, "version": {"N": "7"}})
    assert store.all_rows() == ()
    store.save_rows([a_row("job")], NOW)
    store.save_tracker("main", store.tracker("main"), NOW)
    assert (len(store.all_rows()), store.tracker("main").version) == (1, 8)
