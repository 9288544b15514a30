"""A recorded day: what its file keeps, what was true at its moments, and what is said of a file that is none."""

import gzip
import re

import pytest

from autoscaler.errors import ConfigError
from autoscaler_workbench.cli.recorded import RecordedDay
from autoscaler_workbench.report.run.page import write_report
from autoscaler_workbench.simulate.day import DAY_FILE, DayAlarm, day_of, read_day, write_day
from autoscaler_workbench.simulate.recording import HeldSpan
from autoscaler_workbench.simulate.run import in_memory, prepare
from autoscaler_workbench.simulate.traces import load_trace
from support.builders import a_fleet, a_pool

JOBS = 12
RANG = DayAlarm(alarm="JobWaits", says="Jobs wait.", runbook="docs/operations.md#job-waits", rang=((1200.0, 1500.0), (3000.0, None)))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """An hour: a burst at 1000 s on a pool of three agents, and a label that no pool serves."""
    trace = tmp_path_factory.mktemp("trace") / "trace.csv"
    rows = [f"{1000 + n},300,cpu,folder/job-{n}" for n in range(JOBS)] + ["1200,60,sparc,odd"]
    trace.write_text("\n".join(["queued_at,duration_s,label,job", *rows]), encoding="utf-8")
    fleet = a_fleet(a_pool("cpu", executors=2, max_agents=3, idle_seconds=300.0), a_pool("unused"))
    run = prepare(load_trace(trace, hours=1), fleet, hours=1, seed=1)
    list(in_memory(run))
    return run


@pytest.fixture(scope="module")
def day(run):
    return day_of(run, [RANG])


@pytest.fixture(scope="module")
def recorded(day):
    return RecordedDay(day)


def test_what_was_written_is_read_again_from_the_file_and_from_its_directory(day, tmp_path):
    file = write_day(day, tmp_path)
    assert read_day(file) == read_day(tmp_path) == day
    assert file.read_bytes() == write_day(day, tmp_path).read_bytes()
    assert file.stat().st_size < 20_000


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read (No such file or directory)"),
        (b"hello", "is not a recorded day"),
        (gzip.compress(b'{"format": "autoscaler-day-1"}')[:20], "is not a recorded day"),
        (gzip.compress(b"[1]"), "is not a day that this version reads: its content"),
        (gzip.compress(b'{"format": "autoscaler-day-9"}'), "is not a day that this version reads: format"),
    ],
    ids=["missing", "text", "cut off", "a list", "another format"],  # a compressed text tells when it was made
)
def test_a_file_that_is_no_day_is_one_line(content, says, tmp_path):
    file = tmp_path / DAY_FILE
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        read_day(file)
    assert says in str(refused.value)
    assert str(file) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_agents_of_every_minute_are_those_that_the_run_saw(run, recorded):
    for sample in run.recording.samples:
        told = recorded.at(sample.at).overview()
        assert len(told["agents"]) == sum(sum(states.values()) for states in sample.agents.values()), sample.at
        waiting = {pool["pool"]: pool["starved"] for pool in told["status"]["pools"] if pool["starved"]}
        assert waiting == sample.waiting, sample.at


def test_an_agent_boots_then_builds_then_is_gone(run, recorded):
    states = {}
    for sample in run.recording.samples:
        for agent in recorded.at(sample.at).overview()["agents"]:
            states.setdefault(agent["instance_id"], []).append((agent["word"], agent["busy"]))
    assert len(states) == 3
    for instance, seen in states.items():
        assert seen[0] == ("booting", 0), instance
        assert ("busy", 2) in seen, instance
    assert recorded.at(recorded.ends_at).overview()["agents"] == []


def test_what_waits_says_when_it_began_and_that_nobody_serves_it(recorded):
    queue = {entry["job"]: entry["detail"] for entry in recorded.at(1300.0).overview()["queue"]}
    assert queue["odd"] == "no pool serves it"
    assert queue["folder/job-11"].startswith("it began at 01 Jan 00:")


def test_only_what_was_done_until_then_is_told(run, recorded):
    first = run.recording.taken[0]
    assert recorded.at(first.at - 1).overview()["events"] == []
    launches = [event for event in recorded.at(1300.0).overview()["events"] if event["what"] == "launch"]
    assert {event["subject"] for event in launches} <= {"1 agent", "2 agents", "3 agents"}
    assert all(event["at"] <= 1300.0 for event in launches)
    assert launches


def test_dollars_are_those_of_the_agents_and_zero_is_told_as_well(recorded):
    past = recorded.at(1300.0).past()
    assert past.spend[0] == (0.0, 0.0)
    most = max(usd for _, usd in past.spend)
    now = recorded.at(recorded.busiest_at + 59.0).overview()["status"]["usd_per_hour"]
    assert most == pytest.approx(now)
    spent = recorded.at(recorded.ends_at).overview()["status"]["usd_in_the_month"]
    assert spent == pytest.approx(sum((a.ended_at - a.launched_at) * a.usd_per_hour for a in recorded.day.agents) / 3600)


def test_a_pool_that_is_paused_says_why_for_as_long_as_it_is(day):
    why = {"first_at": 1200.0, "last_at": 1500.0, "pool": "cpu", "detail": "3 boots failed"}
    held = tuple(HeldSpan(reason=reason, **why) for reason in ("max-agents", "breaker-open"))
    recorded = RecordedDay(day.model_copy(update={"held": held}))
    paused = [recorded.at(when).overview()["status"]["pools"][0]["paused"] for when in (1100.0, 1300.0, 1600.0)]
    assert paused == ["", "breaker-open: 3 boots failed", ""]
    assert "not done: max-agents: 3 boots failed" in recorded.at(1300.0).why("cpu")


def test_an_agent_that_is_stopped_costs_nothing_and_says_so(day):
    agent = day.agents[0]
    begin, end = agent.launched_at, agent.ended_at
    stops = agent.model_copy(update={"spells": ((begin, begin + 60.0), (begin + 360.0, end))})
    recorded = RecordedDay(day.model_copy(update={"agents": (stops,), "builds": ()}))
    told = {seconds: recorded.at(begin + seconds).overview() for seconds in (30.0, 180.0, 400.0)}
    assert [one["agents"][0]["word"] == "stopped" for one in told.values()] == [False, True, False]
    assert [one["status"]["usd_per_hour"] > 0 for one in told.values()] == [True, False, True]
    assert [one["status"]["agents"] for one in told.values()] == [1, 0, 1]
    assert recorded.at(begin + 180.0).why(agent.pool)[0].endswith("which had 0 agents and 1 stopped")
    assert told[180.0]["status"]["usd_in_the_month"] == pytest.approx(agent.usd_per_hour / 60)


@pytest.mark.parametrize(
    ("when", "state", "since"),
    [(600.0, "OK", None), (1300.0, "ALARM", 1200.0), (1600.0, "OK", 1500.0), (3300.0, "ALARM", 3000.0)],
)
def test_an_alarm_is_what_it_was_then(recorded, when, state, since):
    [alarm] = recorded.at(when).past().alarms
    assert (alarm["state"], alarm["since_at"]) == (state, since)
    assert alarm["rang"] == RANG.rang


def test_a_run_whose_metrics_were_not_measured_says_so_and_not_that_nothing_rang(run):
    assert "not measured" in RecordedDay(day_of(run, None)).at(1300.0).past().unknown


def test_why_tells_of_a_job_a_node_and_a_pool_and_of_nothing_else(recorded):
    moment = recorded.at(recorded.ends_at)
    node = recorded.day.agents[0].node
    assert any(f"on {node}" in fact for agent in recorded.day.builds if agent.node == node for fact in moment.why(agent.job))
    assert any("terminate" in fact for fact in moment.why(node))
    assert "0 jobs waited for cpu, which had 0 agents" in moment.why("cpu")
    assert moment.why("nosuch") == []
    assert moment.why("CPU") == moment.why("cpu")
    assert moment.why("https://ci.example.org/computer/" + node) == moment.why(node)


@pytest.mark.long
def test_the_picture_has_one_legend_of_pools_and_one_of_the_states_of_agents(tmp_path):
    (tmp_path / "trace.csv").write_text("queued_at,duration_s,label,job\n1000,300,cpu,a\n1000,300,gpu,b\n", encoding="utf-8")
    played = prepare(load_trace(tmp_path / "trace.csv", hours=1), a_fleet(a_pool("cpu"), a_pool("gpu")), hours=1, seed=1)
    write_report(played, played.result(list(in_memory(played))[-1]), tmp_path)
    words = re.findall(r">([^<>]+)</text>", (tmp_path / "report.svg").read_text(encoding="utf-8"))
    assert [words.count(name) for name in ("cpu", "gpu", "busy", "booting")] == [1, 1, 1, 1]
