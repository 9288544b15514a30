"""Conditions that need a person are judged at each look: they must last, are told once with place, value and threshold, and end."""

from dataclasses import replace

import pytest

from autoscaler.domain.learn import assess
from autoscaler.domain.report.datum import ESSENTIAL, Datum, essential, lines_of
from autoscaler.domain.report.messages import write_messages
from autoscaler.domain.report.problems import Comparison, Thresholds, facts_of, judge, problems_datum, rules
from autoscaler.domain.report.told import Span, Told, Trouble
from autoscaler.domain.situation.bets import TrialOf
from support.builders import NOW, a_fleet, a_memory, a_pool, an_offering, boots_failed
from support.decisions import seen

AT = Thresholds(
    job_wait_seconds=1800,
    idle_usd_per_hour=10,
    failure_streak=5,
    agent_disk_bytes=5 * 2**30,
    agent_memory_bytes=2**28,
    agent_gpu_memory_bytes=2**27,
    controller_disk_bytes=10 * 2**30,
    controller_memory_bytes=2**29,
    controller_response_seconds=10,
    controller_cpu_percent=90,
)
RULES = rules(AT)
VALUES = {"Controller": "main", "Pool": "gpu", "Function": "scale_up"}


def a_datum(rule, value):
    dimensions = (("Fleet", "f"), *((name, VALUES[name]) for name in rule.by))
    return Datum(name=rule.metric, values=(float(value),), unit="Count", dimensions=dimensions)


def beyond(rule):
    """A value that breaches a rule, and one that does not."""
    match rule.comparison:
        case Comparison.BELOW:
            return rule.threshold / 2, rule.threshold
        case Comparison.AT_LEAST:
            return rule.threshold, rule.threshold - 1
        case Comparison.OVER:
            return rule.threshold + 1, rule.threshold


def looks(rule, values, told=None, every=60.0):
    """Judge a value a minute; yield what was found at each."""
    told = told or Told()
    for number, value in enumerate(values):
        data = [] if value is None else [a_datum(rule, value)]
        judged = judge(told, RULES, data, {}, NOW + number * every)
        told = replace(told, spans=judged.spans)
        yield judged


def rung(rule, values):
    return [bool(judged.problems) for judged in looks(rule, values)]


def the(name):
    [rule] = [rule for rule in RULES if rule.name == name]
    return rule


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_condition_rings_once_it_has_lasted_and_ends(rule):
    bad, good = beyond(rule)
    minutes = int(rule.seconds // 60) + 2
    found = list(looks(rule, [bad] * minutes + [good] * 3))
    assert not found[0].problems or rule.seconds == 0.0
    assert found[minutes - 1].problems
    assert [len(judged.began) for judged in found].count(1) == 1
    assert not found[-1].problems
    assert found[-1].spans == {}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_says_where_it_is_so_with_value_threshold_and_runbook(rule):
    bad, _ = beyond(rule)
    *_, last = looks(rule, [bad] * (int(rule.seconds // 60) + 2))
    [problem] = last.problems
    assert rule.metric in problem.seen.text
    assert rule.setting in problem.seen.text
    assert all(VALUES[name] in problem.seen.title for name in rule.by)
    assert problem.seen.runbook == f"operations.md#{rule.heading or rule.name}"
    assert facts_of(problem)["value"] == bad


def test_a_value_at_its_threshold_is_as_the_alarm_of_it_says():
    disk, streak, slow = the("agent-disk-low"), the("node-failure-streak"), the("controller-slow")
    assert [disk.breached_by(value) for value in (disk.threshold - 1, disk.threshold)] == [True, False]
    assert [streak.breached_by(value) for value in (streak.threshold - 1, streak.threshold)] == [False, True]
    assert [slow.breached_by(value) for value in (slow.threshold, slow.threshold + 1)] == [False, True]


def test_one_look_that_sees_otherwise_ends_nothing_that_is_seen_again():
    bad, good = beyond(the("queue-unservable"))
    assert rung(the("queue-unservable"), [bad, bad, good, bad]) == [False, False, False, True]
    assert rung(the("queue-unservable"), [bad, bad, good, good, bad]) == [False] * 5


def test_what_must_be_so_without_a_break_begins_anew_after_one():
    bad, good = beyond(the("idle-agents"))
    assert not any(rung(the("idle-agents"), [bad] * 100 + [good] + [bad] * 100))
    assert rung(the("idle-agents"), [bad] * 117)[-3:] == [False, True, True]


def test_a_controller_that_tells_nothing_for_a_while_is_as_it_was():
    bad, _ = beyond(the("controller-disk-low"))
    assert rung(the("controller-disk-low"), [bad, bad, None, None, None, bad]) == [False] * 5 + [True]


def test_what_nobody_looked_at_for_an_hour_begins_anew():
    bad, _ = beyond(the("idle-agents"))
    told = Told(spans={"problem/idle-agents/": Span(since_at=NOW - 9000.0, seen_at=NOW - 4000.0)})
    [judged] = looks(the("idle-agents"), [bad], told)
    assert judged.problems == ()


def test_a_rule_that_is_gone_is_forgotten():
    told = Told(spans={"problem/of-another-version/": Span(since_at=NOW, seen_at=NOW)})
    assert judge(told, RULES, [], {}, NOW).spans == {}


def test_memory_is_watched_only_where_a_number_is_given():
    names = {rule.name for rule in rules(replace(AT, agent_memory_bytes=0, agent_gpu_memory_bytes=0, controller_memory_bytes=0))}
    assert {rule.name for rule in RULES} - names == {"agent-memory-low", "agent-gpu-memory-low", "controller-memory-low"}


def test_what_has_an_alarm_of_its_own_is_told_and_counted_by_that_alone():
    bad, _ = beyond(the("job-waits"))
    *_, last = looks(the("job-waits"), [bad] * 5)
    assert len(last.problems) == 1
    assert problems_datum("f", last).values == (0.0,)


def test_two_pools_are_two_problems_and_the_places_of_a_fleet_wide_value_are_named():
    streak, overdue = the("node-failure-streak"), the("drains-overdue")
    others = replace(a_datum(streak, 7), dimensions=(("Fleet", "f"), ("Controller", "main"), ("Pool", "cpu")))
    places = {"DrainsOverdue": [f"cpu-{n} of pool cpu" for n in range(7)]}
    judged = judge(Told(), RULES, [a_datum(streak, 6), others, a_datum(overdue, 7)], places, NOW)
    assert problems_datum("f", judged).values == (3.0,)
    texts = {problem.seen.title: problem.seen.text for problem in judged.problems}
    assert (
        "NodeFailureStreak of pool cpu of main: 7, which is at or over 5 (FailureStreakAlarm)."
        in texts["node failure streak: pool cpu of main"]
    )
    assert "cpu-4 of pool cpu and 2 more: 7, which is over 0." in texts["drains overdue: cpu-0 of pool cpu, cpu-1 of pool cpu"]


def test_people_are_told_once_when_it_begins_and_once_when_it_is_over():
    situation = assess(seen(), a_fleet(a_pool("gpu")))
    bad, _ = beyond(the("state-unread"))
    [judged] = looks(the("state-unread"), [bad])
    told, [began] = write_messages(Told(), situation, "docs", judged.problems)
    assert began.subject.endswith("state unread")
    assert "docs/operations.md#state-unread" in began.text
    told, again = write_messages(told, situation, "docs", judged.problems)
    assert again == []
    _, [ended] = write_messages(told, situation, "docs", ())
    assert "over: state unread" in ended.subject


def test_one_agent_after_another_on_which_all_builds_fail_is_told_of_once():
    """The pool's builds failed on four agents within the hour, and each that was replaced ended a message and began the next."""
    bad, _ = beyond(the("node-failure-streak"))
    [judged] = looks(the("node-failure-streak"), [bad])
    told, [began] = write_messages(Told(), looked_at(NOW), "docs", judged.problems)
    assert began.subject.endswith("node failure streak: pool gpu of main")
    for minute, problems in ((20, ()), (40, judged.problems), (60, ())):
        told, said = write_messages(told, looked_at(NOW + 60.0 * minute), "docs", problems)
        assert said == []
    _, [ended] = write_messages(told, looked_at(NOW + 60.0 * 101), "docs", ())
    assert "over: node failure streak" in ended.subject


def test_what_a_message_of_its_own_says_is_not_said_twice():
    fleet, tripped = a_fleet(a_pool("gpu")), boots_failed(300.0)
    bad, _ = beyond(the("breakers-open"))
    [judged] = looks(the("breakers-open"), [bad])
    broken = assess(seen(memory=a_memory(trials={TrialOf.BOOT.scope("gpu"): tripped})), fleet)
    [message] = write_messages(Told(), broken, "docs", judged.problems)[1]
    assert message.subject.endswith("agents of gpu do not boot")
    [message] = write_messages(Told(), assess(seen(), fleet), "docs", judged.problems)[1]
    assert message.subject.endswith("breakers open")


@pytest.mark.parametrize("name", ["boot-failures", "sweeps-stopped"])
def test_boots_that_fail_in_one_subnet_say_it_all(name):
    places = [an_offering(subnet=subnet) for subnet in ("subnet-a", "subnet-b")]
    bad, _ = beyond(the(name))
    [judged] = looks(the(name), [bad])
    lost = a_memory(trials={TrialOf.PLACE.scope("gpu", places[0].key): boots_failed(300.0, failed=("i-9",))})
    situation = assess(seen(memory=lost), a_fleet(a_pool("gpu", offerings=tuple(places))))
    subjects = [message.subject for message in write_messages(Told(), situation, "docs", judged.problems)[1]]
    assert [subject for subject in subjects if "do not boot on" not in subject] == []


def job_waits():
    """Why a job waits is not known, and it has waited for too long; the look of that, 5 min after the first."""
    bad, _ = beyond(the("job-waits"))
    *_, judged = looks(the("job-waits"), [bad] * 6)
    return judged, looked_at(NOW + 300.0)


def looked_at(now):
    return assess(replace(seen(), taken_at=now), a_fleet(a_pool("gpu")))


@pytest.mark.parametrize(("about", "ago", "subjects"), [
    ("waits/main/label-unknown", 60.0, []),  # it comes and goes: it is not over before a quarter of an hour
    ("waits/main/unservable", 840.0, []),
    ("waits/main/unservable", 900.0, ["[f] job waits: pool gpu of main"]),
    ("waits/other/label-unknown", 60.0, ["[f] job waits: pool gpu of main"]),
])  # fmt: skip
def test_what_a_message_says_that_is_not_over_is_not_said_twice_between_two_looks_that_see_its_cause(about, ago, subjects):
    judged, situation = job_waits()
    told = Told(
        troubles={about: Trouble(title="jobs wait", since_at=NOW - 7200.0, seen_at=situation.now - ago, told_at=situation.now - 7200.0)},
        spans=judged.spans,
    )
    assert [message.subject for message in write_messages(told, situation, "docs", judged.problems)[1]] == subjects


def test_a_problem_that_one_look_did_not_see_is_not_over_before_its_span_is():
    judged, situation = job_waits()
    told, [_began] = write_messages(Told(spans=judged.spans), situation, "docs", judged.problems)
    for seconds, subjects in ((60.0, []), (120.0, ["[f] over: job waits: pool gpu of main"])):
        later = looked_at(situation.now + seconds)
        told = replace(told, spans=judge(told, RULES, [], {}, later.now).spans)
        told, messages = write_messages(told, later, "docs")
        assert [message.subject for message in messages] == subjects


def test_a_problem_is_over_an_hour_after_the_last_look_if_problems_are_judged_no_more():
    judged, situation = job_waits()
    told, _ = write_messages(Told(spans=judged.spans), situation, "docs", judged.problems)
    [message] = write_messages(told, looked_at(situation.now + 3600.0), "docs")[1]
    assert message.subject == "[f] over: job waits: pool gpu of main"


def test_few_values_of_the_whole_fleet_are_sent():
    by_pool = a_datum(the("node-failure-streak"), 1)
    whole = Datum(name="QueueStarved", values=(3.0,), unit="Count", dimensions=(("Fleet", "f"),))
    assert essential([by_pool, whole, replace(by_pool, name="QueueStarved"), replace(whole, name="Launches")]) == [whole]
    assert len(ESSENTIAL) == 14


def test_a_pool_is_one_line_with_the_worst_of_each_and_with_zeros_of_what_is_looked_for():
    at = (("Fleet", "f"), ("Controller", "main"), ("Pool", "gpu"))
    data = [
        Datum(name="JobWaitSeconds", values=(10.0, 30.5), unit="Seconds", dimensions=at),
        Datum(name="AgentDiskFreeBytes", values=(5.0, 3.0), unit="Bytes", dimensions=at),
        Datum(name="BuildsFailed", values=(0.0,), unit="Count", dimensions=at),
        Datum(name="UsdPerHour", values=(1.5,), unit="None", dimensions=(("Fleet", "f"), ("Team", "web"))),
    ]
    [(event, facts)] = lines_of(data)
    assert event == "pool_measured"
    assert facts == {
        "controller": "main",
        "pool": "gpu",
        "JobWaitSeconds": 30.5,
        "AgentDiskFreeBytes": 3,
        **dict.fromkeys(("QueueStarved", "QueueWait", "AgentsOnline", "AgentsBooting", "ExecutorsBusy", "ExecutorsTotal"), 0),
    }
