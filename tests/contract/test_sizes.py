"""A large fleet after a year: 5,000 jobs, 1,000 agents, 12 months of costs. No item of the table is near DynamoDB's limit."""

from dataclasses import replace
from random import Random

from autoscaler.adapters.dynamodb import DynamoState
from autoscaler.adapters.stores import DynamoCosts, DynamoHistory
from autoscaler.domain.facts.job_settings import CostBatch, CostKey, MonthCosts, Used
from autoscaler.domain.facts.memory import Arrivals, Observation
from autoscaler.domain.facts.runs import Streak
from autoscaler.domain.report.datum import PassNotes, noted
from autoscaler.domain.report.problems import Thresholds, rules
from autoscaler.domain.report.told import Event, Span, Told, Trouble
from autoscaler_workbench.cli.demo import TABLE
from contract.conftest import items, size_of
from support.builders import a_learned, a_record, a_sighting
from support.full_memory import FULL_MEMORY
from support.remembered import with_tables

NOW = 1_800_000_000.0
ITEM_BYTES = 400_000
AGENTS, JOBS, POOLS = 1000, 5000, 20
CHANCE = Random(1)


def a_job(number):
    return f"a folder of many words/project {number:05}/job"


def a_node(number):
    return f"mxnetlinux-gpu-{number:017x}"


def largest(dynamo):
    """The size of the largest item, and how many there are."""
    sizes = [size_of(item) for item in items(dynamo)]
    return max(sizes), len(sizes)


def state_of(dynamo):
    return DynamoState(lambda: dynamo, TABLE, "f")


def test_what_was_learned_of_five_thousand_jobs_and_a_thousand_agents_is_kept_in_items_that_fit(dynamo):
    learned = a_learned(
        samples={f"{a_job(number)}\ngpu": tuple(CHANCE.uniform(1, 9e3) for _ in range(20)) for number in range(JOBS)},
        running={
            f"job/{a_job(n)}/{n}": a_sighting(job=a_job(n), pool="gpu", since_at=NOW + CHANCE.random(), node=a_node(n))
            for n in range(4 * AGENTS)
        },
        arrivals={
            a_job(number): Arrivals(pool="gpu", times=tuple(NOW + CHANCE.random() for _ in range(20)), count=99) for number in range(JOBS)
        },
        streaks={a_node(number): Streak(failures=3, since_at=NOW, jobs=tuple(map(a_job, range(3)))) for number in range(AGENTS)},
    )
    state = state_of(dynamo)
    state.save_learned("main", learned)
    assert largest(dynamo)[0] < ITEM_BYTES
    assert state.read().learned["main"] == replace(learned, version=1)


def test_the_memory_of_a_thousand_agents_fits_and_so_does_a_record_of_one(dynamo):
    observed = {
        f"i-{number:017x}": Observation(
            condition="idle", session="s1", first_at=NOW, last_at=NOW + CHANCE.random(), request_id=f"{CHANCE.getrandbits(128):x}"
        )
        for number in range(AGENTS)
    }
    state = state_of(dynamo)
    state.save_memory(with_tables(FULL_MEMORY, observations=observed, idle_since=dict.fromkeys(observed, NOW)))
    state.add_record(a_record("i-1", node=a_node(1), version="7 with ami-1"))
    assert largest(dynamo)[0] < ITEM_BYTES / 4


def test_every_condition_in_every_pool_at_once_and_what_was_told_of_it_fit(dynamo):
    names = [f"problem/{rule.name}/pool pool-{pool} of main" for rule in rules(_far()) for pool in range(POOLS)]
    told = Told(
        troubles={name: Trouble(title=name, since_at=NOW, seen_at=NOW + CHANCE.random(), told_at=NOW) for name in names},
        spans={name: Span(since_at=NOW, seen_at=NOW + CHANCE.random()) for name in names},
    )
    state = state_of(dynamo)
    state.save_told(told)
    assert largest(dynamo)[0] < ITEM_BYTES / 10
    assert state.read().told.spans == told.spans


def test_the_notes_of_a_day_on_which_everything_fails_are_some_kilobytes(dynamo):
    notes, counts = PassNotes(), {"BootFailures": 9, "Quarantines": 1, "StartsFailed": 1, "BuildsLeft": 1, "LeaseHeld": 1}
    places = {name: [f"{a_node(number)} of pool gpu" for number in range(AGENTS)] for name in counts}
    for minute in range(1440):
        notes = noted(notes, NOW + 60.0 * minute, counts, places, completed=True) or notes
    state_of(dynamo).save_pass_notes("scale_down", notes)
    assert largest(dynamo)[0] < ITEM_BYTES / 10


def test_a_year_of_months_with_what_five_thousand_jobs_cost_is_an_item_a_month_that_fits(dynamo):
    costs = DynamoCosts(lambda: dynamo, TABLE, "f")
    for month in range(1, 13):
        used = {CostKey("main", "gpu", a_job(n)): Used(CHANCE.uniform(0, 90), CHANCE.uniform(0, 90)) for n in range(JOBS)}
        costs.book([MonthCosts(name=f"2026-{month:02}", used=used, metered_usd=1e5)], CostBatch(version=month - 1), NOW)
    size, count = largest(dynamo)
    assert (size < ITEM_BYTES, count) == (True, 13)


def test_an_event_is_one_unit_of_a_write_whatever_the_day_holds(dynamo):
    events = [
        Event(
            at=NOW + n,
            by="scale_down",
            what="terminate",
            where="main/gpu",
            subject=a_node(CHANCE.getrandbits(60)),
            detail="x" * 60 + str(n),
        )
        for n in range(50)
    ]
    DynamoHistory(lambda: dynamo, TABLE, "f").note(events)
    assert largest(dynamo)[0] < 1024


def _far():
    return Thresholds(
        job_wait_seconds=1,
        idle_usd_per_hour=0.01,
        failure_streak=1,
        agent_disk_bytes=1,
        agent_memory_bytes=1,
        controller_disk_bytes=1,
        controller_memory_bytes=1,
        controller_response_seconds=1,
        agent_gpu_memory_bytes=1,
        controller_cpu_percent=1,
    )
