"""Traces: what is read, what is dropped, and the one line in which the rest is refused."""

import gzip

import pytest

from autoscaler.errors import ConfigError
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from autoscaler_workbench.simulate.replay import Replay
from autoscaler_workbench.simulate.traces import MXNET, MXNET_DAY, judged_part, load_trace
from support.worlds import a_world, a_world_node

HEADER = "queued_at,duration_s,label,job,run,stage,depends_on,colour\n"


def a_trace(tmp_path, *lines, header=HEADER, hours=24.0):
    path = tmp_path / "trace.csv"
    path.write_text(header + "\n".join(lines) + "\n", encoding="utf-8")
    return load_trace(path, hours=hours)


def test_the_mxnet_day_is_whole():
    trace = load_trace(MXNET, hours=24, start_at=MXNET_DAY)
    assert (len(trace.rows), len({row.run for row in trace.rows}), trace.dropped) == (1280, 30, 0)


def test_rows_without_duration_are_dropped_and_counted(tmp_path):
    trace = a_trace(tmp_path, "7200,60,cpu,a", "7300,,cpu,b")
    assert (len(trace.rows), trace.dropped, trace.start_at) == (1, 1, 7200.0)


def test_the_beginning_of_a_trace_can_be_a_lead_in(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(HEADER + "0,1,cpu,early\n7300,1,cpu,late\n", encoding="utf-8")
    trace = load_trace(path, hours=1, lead_in_hours=2)
    assert ([row.job for row in trace.rows], trace.start_at, trace.judged_at) == (["early", "late"], 0.0, 7200.0)
    alone = judged_part(trace)
    assert ([row.job for row in alone.rows], alone.start_at) == (["late"], 7200.0)
    with pytest.raises(ConfigError, match=r"has no row after 1970-01-01 03:00 UTC"):
        load_trace(path, hours=1, lead_in_hours=3)


def test_what_is_skipped_of_a_trace_comes_before_the_lead_in(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(HEADER + "0,1,cpu,skipped\n3700,1,cpu,led\n7300,1,cpu,judged\n10900,1,cpu,later\n", encoding="utf-8")
    trace = load_trace(path, hours=1, skip_hours=1, lead_in_hours=1)
    assert ([row.job for row in trace.rows], trace.start_at, trace.judged_at) == (["led", "judged"], 3600.0, 7200.0)


def test_a_gzipped_trace_is_read_whatever_its_name(tmp_path):
    path = tmp_path / "trace.dat"
    path.write_bytes(gzip.compress((HEADER + "0,1,,job\n").encode()))
    assert load_trace(path, hours=1).rows[0].label is None


def test_a_run_that_began_inside_counts_as_a_whole(tmp_path):
    trace = a_trace(tmp_path, "0,1,cpu,a,r#1,One,", "5000,1,cpu,b,r#1,Two,One", "5000,1,cpu,c,r#2,One,", hours=1.0)
    assert [row.job for row in trace.rows] == ["a", "b"]


@pytest.mark.parametrize(
    ("header", "line", "said"),
    [
        (HEADER, "soon,1,cpu,a", "line 2: queued_at ('soon'): must be a number of seconds, 0 or more"),
        (HEADER, "0,-1,cpu,a", "line 2: duration_s ('-1'): must be a number of seconds, 0 or more"),
        (HEADER, "0,nan,cpu,a", "line 2: duration_s ('nan'): must be a number of seconds, 0 or more"),
        (HEADER, "-5,1,cpu,a", "line 2: queued_at ('-5'): must be a number of seconds, 0 or more"),
        (HEADER, "0,1e9,cpu,a", "line 2: duration_s ('1e9'): must be at most 2678400 (31 days): no replay would ever end"),
        (HEADER, "0,1,cpu,a,r#1,One,Two\n0,1,cpu,a,r#1,Two,One", "run r#1: stage One waits for itself (depends_on)"),
        (HEADER, "0,1,cpu,", "line 2: job (''): must not be empty"),
        (HEADER, "0,,cpu,a", "has no row with a duration"),
        ("queued_at,label,job\n", "0,cpu,a", "line 1: column duration_s is missing"),
    ],
)
def test_a_malformed_trace_is_refused_in_one_line(tmp_path, header, line, said):
    with pytest.raises(ConfigError) as refused:
        a_trace(tmp_path, line, header=header)
    assert said in str(refused.value)


def test_a_trace_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_bytes(b"\x1f\x8bnot really gzip")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_trace(path, hours=1)


def test_a_gzip_that_was_cut_short_is_refused(tmp_path):
    path = tmp_path / "trace.csv.gz"
    path.write_bytes(gzip.compress((HEADER + "0,1,cpu,job\n" * 1000).encode())[:-20])
    with pytest.raises(ConfigError, match=r"trace.csv.gz: cannot be read \(Compressed file ended"):
        load_trace(path, hours=1)


def test_rows_may_stand_in_any_order_and_take_no_time_at_all(tmp_path):
    trace = a_trace(tmp_path, "7300,0,cpu,b", "7200,60,cpu,a")
    assert [(row.job, row.duration_seconds) for row in trace.rows] == [("a", 60.0), ("b", 0.0)]


def test_a_stage_that_its_run_does_not_have_is_not_waited_for(tmp_path):
    trace = a_trace(tmp_path, "0,10,cpu,m a,PR-1#4,Two,One")
    controller = a_world().controllers["main"]
    replay = Replay(trace, controller)
    controller.timeline.move_to(controller.timeline.now + 1)
    assert replay.queued_all


def test_a_stage_waits_for_every_row_of_the_one_before(tmp_path):
    trace = a_trace(tmp_path, "0,10,cpu,m a,PR-1#4,One,", "0,50,cpu,m b,PR-1#4,One,", "1,5,cpu,m c,PR-1#4,Two,One")
    controller = a_world().controllers["main"]
    controller.add_node(a_world_node("n", "cpu", executors=3))
    replay = Replay(trace, controller)
    began = controller.timeline.now
    controller.timeline.move_to(began + 49)
    assert len(replay.builds) == 2
    controller.timeline.move_to(began + 51)
    assert [(b.job, b.number, b.kind, b.queued_at - began) for b in replay.builds][2] == ("m/PR-1", 4, Kind.PIPELINE, 50.0)
