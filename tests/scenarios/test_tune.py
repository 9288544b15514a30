"""What `tune` proposes, and that it proposes nothing that does not pay."""

import json

import pytest
import yaml
from typer.testing import CliRunner

from autoscaler.config import check, load_settings
from autoscaler.errors import ConfigError
from autoscaler_workbench.cli.main import app
from autoscaler_workbench.experiment.compare import read_rows
from autoscaler_workbench.experiment.tune import Change, Proposal, TuningTask, _best, in_words, tune
from autoscaler_workbench.simulate.fleets import fleet_for
from autoscaler_workbench.simulate.traces import load_trace

# Setting, dollars, p95 wait, and total by what waiting is worth.
FRONTIER = [("", 50.0, 200.0, 90.0), ("x0.35", 40.0, 300.0, 85.0), ("x3", 60.0, 90.0, 95.0), ("x10", 90.0, 20.0, 120.0)]
HEADER = "queued_at,duration_s,label,job\n"


@pytest.fixture
def bursts(tmp_path):
    """Two jobs in every hour of a morning, never at the same minute: each waits for a boot, unless an agent is kept."""
    file = tmp_path / "trace.csv"
    times = [hour * 3600 + minute * 60 for hour in range(3) for minute in (0, 25 + 2 * hour)]
    file.write_text(HEADER + "".join(f"{at},120,cpu,job-{at}\n" for at in times), encoding="utf-8")
    return file


def tuned(trace, out, **pool):
    raw = fleet_for(trace, {"max_idle_seconds": 60}).model_dump(mode="json", exclude_unset=True)
    raw["pools"]["cpu"] |= pool
    out.mkdir()
    return tune(TuningTask(trace=trace, fleet=check(raw, "test"), hours=3.0, seeds=1, settings={}), out, jobs=1)


@pytest.mark.long
def test_an_agent_is_kept_where_waiting_is_dearer_than_idling(bursts, tmp_path):
    proposal = tuned(load_trace(bursts, hours=3.0), tmp_path / "out")
    [change] = [change for change in proposal.changes if change.key not in {"size", "warm_pool"}]
    assert (change.pool, change.key, change.now) == ("cpu", "min_agents", "0")
    assert proposal.fleet["pools"]["cpu"]["min_agents"] >= 1
    assert proposal.after["total_usd"] < proposal.before["total_usd"]
    assert len(proposal.frontier) == 5
    assert [row["usd"] for row in proposal.frontier] == sorted(row["usd"] for row in proposal.frontier)


@pytest.mark.long
def test_where_waiting_is_cheap_no_agent_is_kept_and_a_machine_that_is_too_large_is_halved(bursts, tmp_path):
    proposal = tuned(load_trace(bursts, hours=3.0), tmp_path / "out", wait_usd_per_hour=0.01)
    changes = [(change.key, change.now, change.proposed) for change in proposal.changes if change.key != "warm_pool"]
    assert changes == [("size", "4 on c6i.4xlarge", "2 on c6i.2xlarge")]


def test_a_price_of_waiting_that_costs_less_in_all_is_proposed():
    rows = [{"setting": name, "usd": usd, "wait_p95_s": p95, "total_usd": total} for name, usd, p95, total in FRONTIER]
    assert _best(rows, None)["setting"] == "x0.35"
    assert _best(rows, 100.0)["setting"] == "x3"
    assert _best(rows, 1.0)["setting"] == "x10"


@pytest.mark.long
def test_a_build_that_has_a_machine_to_itself_keeps_it(bursts, tmp_path):
    proposal = tuned(load_trace(bursts, hours=3.0), tmp_path / "out", wait_usd_per_hour=0.01, executors=1)
    assert "size" not in {change.key for change in proposal.changes}


def a_task(bursts, **facts):
    trace = load_trace(bursts, hours=5.0)
    return TuningTask(trace=trace, fleet=fleet_for(trace), hours=5.0, seeds=1, settings={}, **facts)


def a_change(key, value, now, proposed, saves_usd=1.5):
    return Change(pool="cpu", key=key, value=value, now=now, proposed=proposed, saves_usd=saves_usd)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (a_change("warm_executors", 1.0, "0", "1"), "cpu: keep 1 executor free (warm_executors: 1, now 0); saves $1.50 there."),
        (a_change("min_agents", 2.0, "0", "2"), "cpu: keep at least 2 agents (min_agents: 2, now 0); saves $1.50 there."),
        (
            a_change("size", 0.5, "4 on c6i.4xlarge", "2 on c6i.2xlarge"),
            "cpu: 2 executors on c6i.2xlarge instead of 4 on c6i.4xlarge; saves $1.50 there.",
        ),
        (
            a_change("wait_usd_per_hour", 60.0, "20", "60", -2.0),
            "cpu: count an hour of waiting as $60.00 (wait_usd_per_hour: 60, now 20); costs $2.00 there.",
        ),
    ],
)
def test_a_change_is_said_in_words_with_the_key_to_set(bursts, change, words):
    before, after = ({"usd": usd, "total_usd": usd, "wait_p95_s": 60.0} for usd in (10.0, 9.0))
    proposal = Proposal(fleet={}, before=before, after=after, changes=[change])
    assert in_words(proposal, a_task(bursts))[1:] == [words]


def test_where_nothing_pays_the_words_say_so_and_a_wait_that_cannot_be_had_is_said_too(bursts):
    row = {"usd": 10.0, "total_usd": 10.0, "wait_p95_s": 240.0}
    proposal = Proposal(fleet={}, before=row, after=row)
    assert in_words(proposal, a_task(bursts)) == ["Nothing that was tried costs less over these 5 hours: the fleet file can stay as it is."]
    assert in_words(proposal, a_task(bursts, p95_seconds=60.0))[1:] == [
        "No setting that was tried lets 95 of 100 jobs begin within 60 s; this one comes nearest."
    ]


FLEET = """
fleet: f
limits: {max_agents: 20, max_launches_per_hour: 100, max_usd_per_hour: 100, max_usd_per_month: 100000}
controllers: {main: {url: "https://jenkins.example.org/", secret: jenkins/main}}
defaults: {queue_maturity_seconds: 0, max_idle_seconds: 60, boot_seconds: 240, wait_usd_per_hour: 20%s}
pools:
  cpu: {launch_template: t, instance_types: [c5.xlarge], executors: 1, max_agents: 4%s}
  spot: {launch_template: t, instance_types: [c5.xlarge], executors: 1, max_agents: 4, market: spot}
"""


def tuned_file(bursts, tmp_path, defaults="", cpu=""):
    """Run the command on a fleet file; return its answer, the proposed pools, and the page."""
    fleet, out = tmp_path / "fleet.yaml", tmp_path / "out"
    fleet.write_text(FLEET % (defaults, cpu), encoding="utf-8")
    options = ["--fleet", str(fleet), "--hours", "3", "--seeds", "1", "--jobs", "1", "--out", str(out), "--json"]
    ran = CliRunner().invoke(app, ["tune", "--trace", str(bursts), *options])
    assert ran.exit_code == 0, ran.output
    proposed = yaml.safe_load((out / "fleet.yaml").read_text(encoding="utf-8"))["pools"]
    return json.loads(ran.stdout), proposed, (out / "report.html").read_text(encoding="utf-8")


def with_spot(bursts):
    """As many jobs of a second pool, which may stop no agents."""
    text = bursts.read_text(encoding="utf-8")
    bursts.write_text(text + text.removeprefix(HEADER).replace("cpu", "spot"), encoding="utf-8")
    return bursts


@pytest.mark.long
def test_a_warm_pool_is_switched_on_where_it_may_be_and_saves(bursts, tmp_path):
    told, proposed, page = tuned_file(with_spot(bursts), tmp_path)
    [change] = [change for change in told["changes"] if change["key"] == "warm_pool"]
    assert (change["pool"], change["now"], change["proposed"]) == ("cpu", "off", "on")
    assert (proposed["cpu"]["warm_pool"], "warm_pool" in proposed["spot"]) == ({}, False)
    words = f"cpu: stop agents and start them again (warm_pool: on, now off); saves ${change['saves_usd']:.2f} there."
    assert words in told["words"]
    assert words in page
    assert "warm_pool=on" in page


@pytest.mark.long
@pytest.mark.parametrize("of_pool", [True, False])
def test_a_warm_pool_that_costs_more_than_it_saves_is_switched_off(bursts, tmp_path, of_pool):
    keys = ", warm_pool: {min_agents: 4}, volume_gib: 4000, volume_usd_per_gib_month: 1"
    told, proposed, page = tuned_file(bursts, tmp_path, **{"cpu" if of_pool else "defaults": keys})
    [change] = [change for change in told["changes"] if change["key"] == "warm_pool"]
    assert (change["pool"], change["now"], change["proposed"]) == ("cpu", "on", "off")
    assert (proposed["cpu"]["warm_pool"], "warm_pool" in proposed["spot"]) == (False, False)
    words = f"cpu: stop no agents, terminate them (warm_pool: off, now on); saves ${change['saves_usd']:.2f} there."
    assert words in told["words"]
    assert words in page
    assert told["after"]["total_usd"] < told["before"]["total_usd"]


@pytest.mark.long
def test_ready_images_are_played_and_told_in_dollars_beside_the_settings(bursts, tmp_path):
    told, proposed, page = tuned_file(with_spot(bursts), tmp_path, defaults=", warm_pool: {}")
    assert "warm_pool" not in {change["key"] for change in told["changes"]}, "it is on where it may be"
    spot = next(image for image in told["images"] if image["pool"] == "spot")
    words = f"spot: a ready image that boots in 80 s instead of 4 min (docs/images.md) would save another ${spot['saves_usd']:.2f} there."
    assert words in told["words"]
    assert words in page
    assert "boot_seconds" not in proposed["spot"], "it is no setting"
    [row] = [row for row in told_rows(tmp_path) if row["setting"].endswith("ready images")]
    assert row["total_usd"] < told["after"]["total_usd"]


def told_rows(tmp_path):
    return read_rows(tmp_path / "out" / "results.csv")


@pytest.mark.long
def test_the_command_writes_a_fleet_file_that_is_valid(bursts, tmp_path):
    out = tmp_path / "out"
    ran = CliRunner().invoke(
        app, ["tune", "--trace", str(bursts), "--hours", "2", "--seeds", "1", "--jobs", "1", "--p95", "1", "--out", str(out), "--json"]
    )
    assert ran.exit_code == 0, ran.output
    told = json.loads(ran.stdout)
    assert told["after"]["wait_p95_s"] == min(row["wait_p95_s"] for row in told["frontier"])
    assert told["fleet"] == yaml.safe_load((out / "fleet.yaml").read_text(encoding="utf-8"))
    load_settings(out / "fleet.yaml").domain()
    assert "" in {row["setting"] for row in read_rows(out / "results.csv")}
    page = (out / "report.html").read_text(encoding="utf-8")
    assert told["words"][0] in page
    assert all(row["setting"] in page for row in read_rows(out / "results.csv"))


def test_results_of_another_run_are_not_mixed_in(bursts, tmp_path):
    (tmp_path / "results.csv").touch()
    with pytest.raises(ConfigError, match=r"--out .*: holds results already"):
        CliRunner().invoke(app, ["tune", "--trace", str(bursts), "--out", str(tmp_path)], catch_exceptions=False)
