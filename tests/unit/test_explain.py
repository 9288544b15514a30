"""Why something is as it is, in facts that a person can check."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import WarmPool
from autoscaler.domain.facts.memory import CapacityDelay
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.orders import Hold, Overrides, Scope
from autoscaler.domain.facts.plan import Terminate
from autoscaler.domain.facts.snapshot import InstanceState, OfflineCause, RecordState, Wait
from autoscaler.domain.learn import assess
from autoscaler.domain.report.listing import list_queue
from autoscaler.domain.report.machines import kept_seconds
from autoscaler.domain.situation.bets import TrialOf
from autoscaler.domain.wording import duration
from support.builders import (
    LONG_AGO,
    NOW,
    a_build,
    a_fleet,
    a_mark,
    a_memory,
    a_pool,
    a_record,
    a_snapshot,
    a_view,
    a_window,
    an_agent,
    an_empty_window,
    an_instance,
    an_item,
    an_offering,
    beacons,
    boots_failed,
    cordoned,
)
from support.decisions import scale_down
from support.told import explain

FLEET = a_fleet(a_pool("cpu", queue_maturity_seconds=30.0), a_pool("gpu"))


def asked(subject, *agents, items=(), overrides=None, memory=None, **view):
    nodes = [node for _, node in agents]
    snapshot = a_snapshot(
        a_view(*nodes, items=tuple(items), **view),
        records=tuple(record for record, _ in agents),
        memory=memory or a_memory(windows=an_empty_window()),
        overrides=overrides or Overrides(),
    )
    return explain(snapshot, FLEET, subject)


def test_a_job_that_no_executor_will_take_gets_an_agent():
    facts = asked("build", items=[an_item(1, job="build", label="cpu", waiting_seconds=90.0)])
    assert facts[:3] == [
        "1 build waits: 1 agent of cpu is launched now. The next executor is expected in about 3 min, at 08:03 UTC.",
        "build waits for cpu on main, for 90 s so far; cpu may serve it",
        "it would start in 3 min on an executor of cpu; a new agent takes 3 min to boot",
    ]
    assert facts[3].startswith("now to be done: Launch, nobody-can-serve")


@pytest.mark.parametrize("kind", [MarkClass.RETIRE, MarkClass.OUTDATED])
def test_an_agent_that_is_not_ended_yet_is_no_reason_why_none_is_launched(kind):
    """It said "no agent of cpu is launched: cpu-1: one build is still running"."""
    record, node = an_agent(builds=(a_build("other"),))
    boots = replace(an_agent(2)[0].bound(node=None), state=RecordState.REQUESTED, launched_at=NOW - 100, registered_at=None)
    view = a_view(cordoned(node, a_mark(kind)), items=(an_item(1, job="build", label="cpu", waiting_seconds=90.0),))
    answer = explain(a_snapshot(view, records=(record, boots), memory=a_memory(windows=an_empty_window())), FLEET, "build")[0]
    assert answer.startswith("1 build waits: an agent of cpu is booting (i-2). ")


def test_an_agent_that_two_functions_bring_back_is_named_once():
    record, node = an_agent(builds=(a_build("other"),))
    agents = ((record, cordoned(node, a_mark(MarkClass.MONTH_LIMIT))),)
    answer = asked("build", *agents, items=[an_item(1, job="build", label="cpu", waiting_seconds=90.0)])[0]
    assert answer.count("is brought back now") == 1


def test_a_job_that_is_young_does_not_count_yet():
    facts = asked("build", items=[an_item(1, job="build", label="cpu", waiting_seconds=10.0)])
    assert facts == [
        "1 build waits: a job counts as demand once it has waited 30 s (queue_maturity_seconds).",
        "build waits for cpu on main, for 10 s so far; cpu may serve it",
    ]


def test_a_job_that_no_pool_can_serve_says_so():
    facts = asked("odd", items=[an_item(1, job="odd", label="sparc", waiting_seconds=90.0)])
    assert facts == ["1 build waits: no pool of main serves sparc.", "odd waits for sparc on main, for 90 s so far"]


def test_a_job_that_is_held_by_its_label_says_by_whom():
    hold = Hold(scope=Scope.LABEL, name="cpu", since_at=NOW, until_at=NOW + 600, by="ada", reason="licence")
    facts = asked("build", items=[an_item(1, job="build", label="cpu")], overrides=Overrides(holds=(hold,)))
    assert facts[0] == "1 build waits: label cpu is on hold for another 10 min by ada: licence."


def test_a_job_that_waits_for_something_else_or_runs():
    waiting = an_item(1, job="build", label="cpu", wait=Wait(for_executor=False))
    assert asked("build", items=[waiting]) == [
        "1 build waits: it needs something other than an executor, so that no agent would help.",
        "build waits for cpu on main, for 2 min so far",
    ]
    running = an_agent(builds=(a_build(job="build", elapsed_seconds=750.0),))
    assert asked("build", running) == [
        "1 build runs, and none waits: on cpu-1 of cpu for 12 min.",
        "cpu-1 was launched 27 h 47 min ago, registered 60 s after that, and has connected",
    ]


def idle_for(seconds, *agents, window=None, **memory):
    since = {record.instance_id: NOW - seconds for record, _ in agents}
    return a_memory(windows=window or an_empty_window(), idle_since=since, **memory)


def test_an_agent_says_what_is_to_be_done_with_it_and_nothing_of_keeping_it():
    facts = asked("cpu-1", an_agent(), memory=idle_for(600, an_agent()))
    assert any(fact.startswith("now to be done: Cordon, surplus") for fact in facts)
    assert not any(fact.startswith("kept") for fact in facts)
    assert asked("i-1", an_agent())[0] == asked("cpu-1", an_agent())[0]


def kept(*agents, pool=None, since=600.0, window=None, items=(), overrides=None):
    """What is said of keeping the first of these agents."""
    fleet = a_fleet(pool or a_pool("cpu"))
    window = window or {"main/cpu": a_window(opened_at=NOW - 7200, seen_at=NOW, peaks=((NOW - 60, 2), (NOW, 0)))}
    snapshot = a_snapshot(
        a_view(*(node for _, node in agents), *beacons(fleet)[1:], items=tuple(items)),
        records=tuple(record for record, _ in agents),
        memory=idle_for(since, *agents, window=window),
        overrides=overrides or Overrides(),
    )
    [fact] = [fact for fact in explain(snapshot, fleet, agents[0][0].instance_id) if fact.startswith("kept")]
    return fact


def test_an_idle_agent_is_kept_for_what_it_is_worth_by_the_values_of_the_rule():
    """$3 an hour are $0.75 a quarter of an hour; a boot of 180 s is $0.15, and a job would wait for 30 + 30 + 180 s at $20 an hour."""
    price = "worth $0.75 a quarter of an hour against a boot of $1.48 ($1.33 of it waiting)"
    keep = situated(a_fleet(a_pool("cpu")), an_agent()).pools["main", "cpu"].keep
    assert keep.costs.wait_usd == pytest.approx(1.33, abs=0.01)
    assert kept(an_agent()) == (
        f"kept: idle for 10 min, {price}; agent 1 of cpu is kept for {duration(keep.seconds(1))} after it was last needed"
    )
    second = an_agent(1), an_agent(2)
    assert "agent 2 of cpu is kept for" in kept(*second)


def situated(fleet, *agents):
    return assess(a_snapshot(a_view(*(node for _, node in agents)), records=tuple(record for record, _ in agents)), fleet)


def test_an_idle_agent_that_is_kept_in_any_case_says_why():
    assert kept(an_agent(), pool=a_pool("cpu", min_agents=1)).endswith("and the pool keeps 1 agent in any case (min_agents)")
    assert kept(an_agent(), pool=a_pool("cpu", idle_seconds=1200.0)).endswith("kept for 20 min after it was last needed (idle_seconds)")
    record, node = an_agent()
    assert kept((replace(record, keep_until=NOW + 3300), node)).endswith("and a person wants it kept for another 55 min")
    hold = Hold(scope=Scope.POOL, name="cpu", since_at=NOW, until_at=NOW + 600, by="ada", reason="driver")
    assert kept(an_agent(), overrides=Overrides(holds=(hold,))).endswith("and pool cpu is on hold for another 10 min by ada: driver")
    needed = {"main/cpu": a_window(opened_at=NOW - 7200, seen_at=NOW, peaks=((NOW, 1),))}
    assert kept(an_agent(), window=needed).endswith("and needed now")
    pinned = an_item(1, label=None, wait=Wait(for_executor=True, nodes=("cpu-1",)))
    assert "and a build may be bound to it: a queue item waits for it by name" in kept(an_agent(), items=[pinned])


def test_an_agent_says_how_it_booted():
    record, node = an_agent()
    booted = replace(record, launched_at=NOW - 3600, registered_at=NOW - 3449)
    said = "launched 1 h ago, registered 2 min 31 s after that, and has"
    assert f"{said} connected" in asked("cpu-1", (booted, node))
    assert f"{said} not connected yet" in asked("cpu-1", (booted, replace(node, offline=True, cause=OfflineCause.OTHER)))
    young = replace(
        record.bound(node=None), state=RecordState.REQUESTED, launched_at=NOW - 100, registered_at=None, trouble="Jenkins answered 403"
    )
    facts = asked("i-1", (young, node), memory=a_memory(windows=an_empty_window(), boots={"cpu": (100.0, 140.0) * 6}))
    assert facts[1:5] == [
        "launched 100 s ago, and has not registered yet",
        "what keeps it from becoming an agent: Jenkins answered 403",
        "a boot of cpu takes 2 min (half of the last 12)",
        "its boot may take another 13 min (boot_timeout_seconds)",
    ]


OPEN = boots_failed(272.0, failures=4, since_at=NOW - 1380, failed=("i-7", "i-8"), said="dracut: FATAL: no root device found")


def broken(**facts):
    return a_memory(windows=an_empty_window(), trials={TrialOf.BOOT.scope("cpu"): replace(OPEN, **facts)})


def test_a_broken_pool_says_so_first_and_once():
    facts = asked("cpu", items=[an_item(1, label="cpu")], memory=broken())
    assert facts[:3] == [
        "cpu has been broken for 23 min: its last 4 boots failed",
        "the last was i-8; its console ended: dracut: FATAL: no root device found",
        "next: one agent is tried in 4 min 32 s, if jobs wait for it then",
    ]
    assert facts[3] == "once it is mended: autoscaler resume --breaker cpu"
    assert [fact for fact in facts if "breaker-open" in fact or "boots in a row" in fact] == []


def test_a_broken_pool_says_what_is_tried():
    assert "next: one agent is tried as soon as jobs wait for it" in asked("cpu", memory=broken(until_at=NOW - 1))
    record, node = an_agent()
    tried = replace(record.bound(node=None), state=RecordState.REQUESTED, launched_at=NOW - 100, registered_at=None)
    facts = asked("cpu", (tried, node), memory=broken(until_at=NOW - 1, why="Jenkins answered 403"))
    assert facts[1:3] == [
        "the last was i-8; Jenkins answered 403",
        "next: i-1 boots, launched 100 s ago; others follow once one connects",
    ]


def test_a_job_of_a_broken_pool_says_so():
    facts = asked("build", items=[an_item(1, job="build", label="cpu")], memory=broken())
    assert facts[0] == "1 build waits: agents of cpu do not boot (the last 4 boots failed)."
    assert "cpu has been broken for 23 min: its last 4 boots failed" in facts
    assert [fact for fact in facts if fact.startswith("not done: breaker-open")] == []


LOST_ONE = replace(OPEN, failures=1, is_closed=False, outcomes={"i-8": False})


def waiting(*agents, trial):
    memory = a_memory(windows=an_empty_window(), trials={TrialOf.BOOT.scope("cpu"): trial})
    view = a_view(*(node for _, node in agents), items=[an_item(1, job="build", label="cpu")])
    [entry] = list_queue(assess(a_snapshot(view, records=[record for record, _ in agents], memory=memory), a_fleet()))
    return entry.detail, entry.starts_in_seconds


def test_no_time_is_given_for_an_agent_yet_to_be_launched_once_a_boot_was_lost():
    """It said "in 60 s" of a second launch into a zone without network, and the job began eight minutes later."""
    assert waiting(trial=LOST_ONE) == ("it starts once an agent of cpu boots", None)
    assert waiting(trial=replace(LOST_ONE, failures=0))[1] is not None


def test_after_one_lost_boot_an_agent_that_boots_already_is_believed_until_few_are_tried():
    record, node = an_agent()
    boots = (replace(record.bound(node=None), state=RecordState.REQUESTED, launched_at=NOW - 20, registered_at=None), node)
    assert waiting(boots, trial=LOST_ONE)[1] is not None
    assert waiting(boots, trial=OPEN) == ("it starts once an agent of cpu boots", None)


def test_an_instance_that_is_gone_is_known_for_as_long_as_the_memory_knows_it():
    memory = replace(broken(), gone={"i-8": NOW - 1800})
    assert asked("i-8", memory=memory) == [
        "i-8 is gone; it was launched 30 min ago",
        "i-8 was an instance of cpu whose boot failed; its console ended: dracut: FATAL: no root device found",
    ]
    assert asked("i-7", memory=memory) == ["i-7 was an instance of cpu whose boot failed"]


def test_an_agent_that_is_marked_says_by_whom():
    record, node = an_agent()
    ours = asked("cpu-1", (record, cordoned(node, a_mark(MarkClass.OPERATOR))))
    assert "taken offline by a person who drains it at 08:00 UTC or before" in ours
    theirs = asked("cpu-1", (record, cordoned_by_a_person(node)))
    assert "it is offline, and not by us: 'my disk is full'" in theirs


def cordoned_by_a_person(node):
    marked = cordoned(node)
    return type(marked)(
        **{name: getattr(marked, name) for name in marked.__slots__} | {"reason": "my disk is full", "cause": OfflineCause.PERSON}
    )


def test_a_pool_says_what_there_is_and_why_nothing_is_launched():
    hold = Hold(scope=Scope.POOL, name="cpu", since_at=NOW, until_at=NOW + 600, by="ada", reason="driver")
    facts = asked("cpu", an_agent(), items=[an_item(1, label="cpu")], overrides=Overrides(holds=(hold,)))
    assert "cpu on main: 1 job waiting for it; 1 idle; at most 10, at least 0" in facts
    assert facts.count(facts[0]) == 1
    assert facts[0] == ("nothing is launched there: pool cpu is on hold for another 10 min by ada: driver")
    assert not any(fact.startswith("not done: held: pool cpu is on hold") for fact in facts)


def test_a_pool_says_that_its_machines_were_short():
    memory = a_memory(capacity_delays={"cpu": CapacityDelay(asks=1.0, seconds=300.0, squares=90_000.0)})
    assert "machines were short: agents are kept as if one more took 2 min 22 s longer to be had" in asked("cpu", memory=memory)


def test_a_controller_that_cannot_be_read_is_told_first():
    facts = asked("cpu", problem="no answer")
    assert facts[0] == "main could not be read completely: no answer; nothing is terminated or launched there"


@pytest.mark.parametrize("subject", ["", "nobody", "cpu-9"])
def test_of_what_is_not_there_nothing_is_said(subject):
    assert asked(subject, an_agent()) == []


WITH_A_DISK = an_offering(volume_usd_per_hour=0.011)
WARM = a_pool("cpu", warm_pool=WarmPool(min_agents=0, max_agents=5, max_age_seconds=7 * 86_400.0), offerings=(WITH_A_DISK,))
AN_HOUR_AGO = NOW - 3600.0
OFF = tuple(an_instance(f"i-{number}", state=InstanceState.STOPPED) for number in (1, 2))
NEEDED_TWO = {"main/cpu": a_window(opened_at=LONG_AGO, seen_at=NOW, peaks=((AN_HOUR_AGO, 2), (NOW - 1800.0, 1), (NOW, 0)))}


def stopped(number=1, *, since=AN_HOUR_AGO, life=0, **facts):
    facts = {"volume_usd_per_hour": 0.011, "registered_at": None} | facts
    return a_record(f"i-{number}", node=f"cpu-{number}", state=RecordState.STOPPED, life=life, changed_at=since, **facts)


def why(subject, *records, pool=WARM, nodes=(), market="on-demand", keeps_disk=True, versions=None, version="", **memory):
    """What is said of a fleet of these records; stopped ones have no node, and EC2 says that they are stopped."""
    states = {RecordState.STOPPED: InstanceState.STOPPED, RecordState.STARTING: InstanceState.PENDING}
    facts = {"market": market, "keeps_disk": keeps_disk, "template_version": version}
    instances = tuple(an_instance(r.instance_id, state=states.get(r.state, InstanceState.RUNNING), **facts) for r in records)
    given = {"windows": NEEDED_TWO} | memory
    snapshot = a_snapshot(a_view(*nodes), records=records, instances=instances, memory=a_memory(**given), template_versions=versions or {})
    return explain(snapshot, a_fleet(pool), subject)


def test_a_pool_that_stops_agents_says_for_how_long_they_run_and_are_stopped_by_a_start_that_is_believed():
    facts = why("cpu", stopped(), starts={"cpu": (40.0,)})
    assert "cpu on main: 0 jobs waiting for it; 1 stopped; at most 10, at least 0" in facts
    assert "a start of cpu takes 108 s (0.6 of a boot; 1 start seen so far)" in facts
    [prices] = [fact for fact in facts if fact.startswith("an agent costs $72")]
    # A boot of 180 s of $3 an hour and 240 s of waiting at $20; a start of 108 s, and 168 s.
    assert prices == "an agent costs $72.00 a day running and $0.26 stopped; a start costs $1.02 and a boot $1.48, with the waiting for it"
    keep = situated(a_fleet(WARM), an_agent()).pools["main", "cpu"].keep
    runs, in_all = duration(keep.seconds(1)), duration(keep.seconds_in_all(1))
    assert runs != in_all
    [times] = [fact for fact in facts if fact.startswith("after it was last needed")]
    assert f"agent 1 of cpu runs for {runs}, is stopped then, and terminated after {in_all}" in times


def test_a_start_that_was_measured_says_so_and_one_as_slow_as_a_boot_that_it_does_not_pay():
    assert "a start of cpu takes 65 s (half of the last 12)" in why("cpu", starts={"cpu": (65.0,) * 12})
    assert "a start of cpu takes 2 min 50 s (the quickest of 3 seen so far)" in why("cpu", starts={"cpu": (190.0, 170.0, 200.0)})
    slow = why("cpu", starts={"cpu": (180.0,) * 12})
    assert any(fact.endswith("and is terminated then: to keep it stopped does not pay") for fact in slow)


def test_a_time_that_the_operator_fixed_is_named():
    facts = why("cpu", pool=replace(WARM, idle_seconds=600.0))
    assert any("agent 1 of cpu runs for 10 min (idle_seconds), is stopped then" in fact for fact in facts)


def test_a_stopped_agent_says_since_when_what_it_costs_how_long_it_is_kept_and_what_starts_it():
    facts = why("i-1", stopped(life=2), stopped(2, since=NOW - 60.0))
    assert facts[0] == "cpu-1 (i-1) of cpu on main: stopped; c5.18xlarge, $0.01 an hour"
    assert facts[1].startswith("launched 27 h 47 min ago, started again 2 times; stopped 1 h ago, kept for another ")
    assert facts[2] == "it is started when an agent of cpu is needed, before another one is launched, after 1 other that stopped later"
    assert facts[3] == "a start of cpu takes 108 s (0.6 of a boot; 0 starts seen so far)"


def test_a_stopped_agent_is_kept_for_as_long_as_the_rule_keeps_it():
    """What it says is true: one second before that time nothing is done, and one second after it the agent is terminated."""
    records = stopped(), stopped(2, since=NOW - 60.0)
    situation = assess(a_snapshot(records=records, instances=OFF, memory=a_memory(windows=NEEDED_TWO)), a_fleet(WARM))
    left = kept_seconds(situation, next(agent for agent in situation.agents if agent.record.instance_id == "i-1"))
    assert left > 0

    def terminated(later):
        window = replace(NEEDED_TWO["main/cpu"], seen_at=NOW + later)
        snapshot = a_snapshot(records=records, instances=OFF, memory=a_memory(windows={"main/cpu": window}), taken_at=NOW + later)
        return [step.instance_id for step in scale_down(snapshot, a_fleet(WARM)).steps if isinstance(step, Terminate)]

    assert terminated(left - 1) == []
    assert terminated(left + 1) == ["i-1"]


def test_what_is_wanted_stopped_in_any_case_says_so():
    least = replace(WARM, warm_pool=WarmPool(min_agents=1, max_agents=5, max_age_seconds=7 * 86_400.0))
    assert "stopped 1 h ago, kept in any case (warm_pool.min_agents 1)" in why("i-1", stopped(), pool=least)[1]
    assert "1 agent stopped or about to be, 2 worth having beside those that run (at least 1: warm_pool.min_agents)" in why(
        "cpu", stopped(), pool=least
    )


def test_a_stopped_agent_that_will_not_be_started_says_why():
    facts = why("i-1", stopped(), versions={"cpu": "8"}, version="7", proven={"cpu": "8"})
    assert "to be terminated: launched from version 7 of its launch template, now it is 8" in facts[1]
    assert "it is not started now: launched from version 7 of its launch template, now it is 8" in facts


def test_a_stopped_agent_of_a_pool_that_keeps_none_any_more_is_to_go():
    facts = why("i-1", stopped(), pool=a_pool("cpu"))
    assert "stopped 1 h ago, to be terminated: this pool keeps no stopped agents now" in facts[1]
    assert any(fact.startswith("now to be done: Terminate, warm-pool-off") for fact in facts)


def test_an_agent_that_was_started_again_tells_of_this_life_and_not_of_its_launch():
    starting = a_record("i-1", node="cpu-1", state=RecordState.STARTING, life=1, starts=(NOW - 50.0,), registered_at=None)
    facts = why("i-1", starting)
    assert facts[1] == "launched 27 h 47 min ago, started again 50 s ago, and has not registered yet"
    assert "its start may take another 14 min" in " ".join(facts)
    record, node = an_agent()
    again = replace(record.bound(node=record.node, life=1), starts=(NOW - 500.0,), registered_at=NOW - 440.0)
    told = why("i-1", again, nodes=(node,), connected=frozenset({"i-1"}))
    assert told[1] == "launched 27 h 47 min ago, started again 8 min 20 s ago, registered 60 s after that, and has connected"


NEVER = "once it is not needed any more it is terminated, and not stopped: "


@pytest.mark.parametrize(
    ("facts", "because"),
    [
        ({"market": "spot"}, "EC2 stops no spot instance of a one-time request"),
        ({"keeps_disk": False}, "its root is an instance store, which is lost when it stops"),
        ({"unstoppable": frozenset({"i-1"})}, "EC2 refused to stop it (its stop protection, or its kind of instance)"),
        ({"versions": {"cpu": "8"}, "version": "7"}, "launched from version 7 of its launch template, now it is 8"),
    ],
    ids=["spot", "instance store", "refused", "outdated"],
)
def test_an_agent_that_can_never_be_stopped_says_why(facts, because):
    record, node = an_agent()
    assert NEVER + because in why("i-1", record, nodes=(node,), **facts)
    assert not any(NEVER in fact for fact in why("i-1", record, nodes=(node,)))
    assert not any(NEVER in fact for fact in why("i-1", record, nodes=(node,), pool=a_pool("cpu"), **facts))


def test_an_idle_agent_of_a_pool_that_stops_agents_is_set_against_a_start():
    record, node = an_agent()
    lately = {"main/cpu": a_window(opened_at=LONG_AGO, seen_at=NOW, peaks=((NOW - 30.0, 1), (NOW, 0)))}
    [fact] = [one for one in why("i-1", record, nodes=(node,), idle_since={"i-1": NOW - 30.0}, windows=lately) if one.startswith("kept")]
    assert "against a start of $1.02 ($0.93 of it waiting); agent 1 of cpu is kept running for" in fact


def test_a_waiting_job_is_told_of_the_stopped_agent_that_it_may_get():
    snapshot = a_snapshot(
        a_view(items=(an_item(1, job="build", label="cpu", waiting_seconds=90.0),)), records=(stopped(),), instances=OFF[:1]
    )
    facts = explain(snapshot, a_fleet(WARM), "build")
    assert any(fact.endswith("a stopped agent takes 108 s to start") for fact in facts)
    assert any(fact.startswith("now to be done: Start, nobody-can-serve") for fact in facts)
    assert any(fact.startswith("now to be done: Start") for fact in explain(snapshot, a_fleet(WARM), "i-1"))
