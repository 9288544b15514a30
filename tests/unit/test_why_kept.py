"""Why an idle agent is kept, by the reasons that scaling in uses: a forecast keeps it, or nothing does any more."""

from autoscaler.domain.facts.memory import Arrivals, Expected
from autoscaler.domain.learn import assess, watch
from autoscaler.domain.report.machines import why_kept
from support.builders import NOW, a_fleet, a_learned, a_memory, a_pool, a_snapshot, a_view, a_window, an_agent

WINDOW = {"main/cpu": a_window(opened_at=NOW - 7200, seen_at=NOW - 60, peaks=((NOW - 7200, 0),))}


def kept(**facts):
    """Say why an agent is kept that has been idle for two hours, of a pool that keeps agents for ten minutes."""
    record, node = an_agent()
    memory = a_memory(windows=WINDOW, idle_since={record.instance_id: NOW - 7200})
    fleet = a_fleet(a_pool("cpu", idle_seconds=600.0, wait_usd_per_hour=20.0))
    situation = watch(assess(a_snapshot(a_view(node), records=(record,), memory=memory, **facts), fleet))
    [agent] = situation.agents
    return why_kept(situation, agent)


def test_an_idle_agent_that_a_forecast_keeps_says_which_job_is_expected():
    coming = Arrivals(pool="cpu", times=(NOW - 86400.0,), count=9, expected=(Expected(at=NOW + 90.0, period_seconds=86400.0, share=0.95),))
    foreseen = kept(learned={"main": a_learned(arrivals={"nightly": coming})})
    assert foreseen == "kept: idle for 2 h, and nightly comes at this time"


def test_an_agent_that_is_not_needed_any_more_is_promised_no_time():
    assert kept() == "kept: idle for 2 h, and not needed any more: it goes as soon as nothing else is in the way"
