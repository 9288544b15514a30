"""`why` gives no time for a job if a job ahead of it has no known duration."""

from support.builders import a_build, a_fleet, a_learned, a_memory, a_pool, a_snapshot, a_view, an_agent, an_empty_window, an_item, key_of
from support.told import explain


def facts_behind(ahead, *, known=()):
    """Ask why a build waits: the pool may have one agent, it is busy for another minute, and the job ``ahead`` is first in the queue."""
    running = an_agent(builds=(a_build(job="short", elapsed_seconds=60.0, estimate_seconds=120.0),))
    items = [an_item(1, job=ahead, label="cpu", waiting_seconds=200.0), an_item(2, job="build", label="cpu", waiting_seconds=100.0)]
    snapshot = a_snapshot(
        a_view(running[1], items=tuple(items)),
        records=(running[0],),
        memory=a_memory(windows=an_empty_window()),
        learned={"main": a_learned(samples={key_of("cpu", job): (60.0,) for job in known})},
    )
    return explain(snapshot, a_fleet(a_pool("cpu", max_agents=1)), "build")


def test_a_job_behind_one_that_nobody_has_seen_end_is_given_no_time():
    answer, _, placed, *_ = facts_behind("new")
    assert answer.endswith(" Nobody knows when the next executor is free.")
    assert placed == (
        "it waits for new, which waits before it for cpu; no build of new was seen to end, so that nobody knows how long it takes; "
        "a new agent takes 3 min to boot"
    )


def test_a_job_behind_one_whose_builds_were_seen_to_end_is_given_a_time():
    assert facts_behind("old", known=["old"])[2].startswith("it would start in 2 min on an executor of cpu")
