"""Time-lines of a queue that does not fit in one answer, since Jenkins names all idle agents in the reason of each job without a label."""

import pytest

from autoscaler.adapters.jenkins import controller
from autoscaler.domain.facts.plan import Cordon, Stop, Terminate
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory

SUBJECT = "[f] the queue of main is too large to be read at once"


@pytest.fixture
def day(monkeypatch):
    """Six agents have had a build each, and stand idle; a hundred jobs ask for no label, and no agent is for such."""
    monkeypatch.setattr(controller, "WHOLE_BYTES", 30_000)
    day = Day(in_memory(*(a_pool(name, idle_seconds=600.0, boot_seconds=120.0, max_idle_seconds=1200.0) for name in ("cpu", "gpu"))))
    day.queue(6, "cpu", seconds=300.0)
    day.minutes(9)
    assert day.agents("cpu") == 6
    return day


def ended(day):
    return [step for kind in (Cordon, Stop, Terminate) for step in day.done(kind)]


@pytest.mark.parametrize("kind", [Kind.FREESTYLE, Kind.PIPELINE])
def test_jobs_that_can_run_start_and_nothing_ends_until_the_queue_fits_in_one_answer(day, kind):
    endless = day.queue(100, None, seconds=60.0, kind=kind)
    [build], [step] = day.queue(1, "gpu", seconds=60.0), day.queue(1, "gpu", seconds=60.0, kind=Kind.PIPELINE)
    before = len(ended(day))
    day.minutes(40)
    assert (build.ended, step.ended) == (Ended.FINISHED, Ended.FINISHED)
    assert len(ended(day)) == before
    assert day.agents("cpu") == 6
    assert SUBJECT in [message.subject for message in day.fleet.notifier.sent]
    told = day.status()
    assert "larger than 30000 bytes; of" in told.problems["main"]
    why = day.why("cpu")
    assert any(line.startswith("the queue of main was read in parts, so nothing is cordoned, stopped or terminated there") for line in why)
    for item in endless:
        day.jenkins.abort(item)
    day.minutes(60)
    assert day.agents("cpu") == 0
    told = [message.subject for message in day.fleet.notifier.sent if "too large" in message.subject]
    assert told == [SUBJECT, f"{SUBJECT[:4]}over: {SUBJECT[4:]}"]
