"""What jobs cost: through the real handlers, and on the command line."""

from dataclasses import replace

import pytest

from autoscaler.errors import ConfigError, ConflictError, TransientError
from autoscaler_workbench.fakes.costs import InMemoryCosts
from support.asked import command, served, told
from support.deployed import deployed_in_memory, event

CPU, GPU = "mxnetlinux-cpu", "mxnetlinux-gpu"


@pytest.fixture
def here():
    with deployed_in_memory() as stood, served(stood, "operate"):
        stood.pass_minutes(1)
        yield stood


def submit(here, job, label=CPU, seconds=900.0):
    return here.world.controllers["main"].submit(job, label, seconds)


def costs(here, **asked):
    return here.call("operate", {"action": "costs"} | asked)


def month_of_the_limit(here):
    return here.call("operate", event("status"))["status"]["usd_in_the_month"]


def test_all_jobs_together_cost_what_the_meter_counted(here):
    submit(here, "app/PR-1")
    submit(here, "app/PR-2", GPU, 2400.0)
    here.pass_minutes(45)
    answer = costs(here)
    assert {entry["name"] for entry in answer["entries"]} >= {"app/PR-1", "app/PR-2"}
    assert sum(entry["usd"] for entry in answer["entries"]) == pytest.approx(answer["metered_usd"])
    assert answer["metered_usd"] == pytest.approx(month_of_the_limit(here), rel=0.02)
    assert [*answer["prices_listed_on"]] == ["2023-08-30", "2026-07-20"], "of Windows and Linux"
    dearest = answer["entries"][0]
    assert (dearest["name"], dearest["controller"]) == ("app/PR-2", "main")
    assert dearest["hours"] == pytest.approx(2400 / 3600, rel=0.05)
    assert dearest["builds_usd"] > dearest["idle_usd"] > 0, "its boot"
    folder = next(entry for entry in costs(here, by="folder")["entries"] if entry["name"] == "app")
    assert folder["usd"] == pytest.approx(sum(entry["usd"] for entry in answer["entries"] if entry["name"].startswith("app/")))


def test_the_sample_asks_for_a_month(here):
    submit(here, "app/PR-1")
    here.pass_minutes(20)
    answer = here.call("operate", event("costs"))
    assert (answer["month"], answer["by"]) == ("2027-01", "folder")
    assert answer["usd"] > 0
    assert not costs(here, month="2026-12")["entries"]


def test_the_last_days_are_asked_for_on_the_command_line(here):
    submit(here, "app/PR-1")
    here.pass_minutes(40)
    answer = here.call("operate", event("costs_days"))
    assert (answer["days"], answer["days_with_costs"], answer["month"]) == (7, 1, "2027-01-09 to 2027-01-15")
    assert answer["usd"] == pytest.approx(answer["metered_usd"])
    assert answer["usd"] == pytest.approx(costs(here)["usd"], rel=0.1)
    assert told(here, "costs", "--since", "1w")["month"] == answer["month"]
    drawn = command(here, "costs", "--since", "7d", columns=160).stdout
    assert "app/PR-1" in drawn
    assert "all of 2027-01-09 to 2027-01-15 (UTC): $" in drawn
    assert "costs are kept for 1 of these 7 days" in drawn


@pytest.mark.parametrize("words", [["--since", "7"], ["--since", "0d"], ["--since", "90d"], ["--since", "7d", "--month", "2027-01"]])
def test_a_span_that_makes_no_sense_is_wrong_usage(here, words):
    assert command(here, "costs", *words).exit_code == 2
    with pytest.raises(ConfigError, match="only one of month, days and day"):
        costs(here, days=7, month="2027-01")


@pytest.mark.parametrize("error", [TransientError("DynamoDB: InternalServerError"), ConflictError("somebody else")])
def test_a_store_that_fails_stops_no_metric_and_what_it_missed_is_counted_later(here, monkeypatch, error):
    def fails(*_arguments):
        raise error

    submit(here, "app/PR-1", seconds=3000.0)
    here.pass_minutes(10)
    with monkeypatch.context() as broken:
        broken.setattr(InMemoryCosts, "book", fails)
        here.pass_minutes(10)
        assert here.call("publish_metrics", {})["metrics"] > 10
    here.pass_minutes(10)
    answer = costs(here)
    assert answer["usd"] == pytest.approx(answer["metered_usd"])
    assert answer["metered_usd"] == pytest.approx(month_of_the_limit(here), rel=0.05)


def test_a_dry_run_counts_nothing(here):
    submit(here, "app/PR-1")
    here.pass_minutes(10)
    before = costs(here)["entries"]
    here.call("publish_metrics", {"dry_run": True})
    assert costs(here)["entries"] == before


def test_costs_that_are_written_while_they_are_read_are_not_told_wrong(here, monkeypatch):
    versions, read = iter(range(100)), InMemoryCosts.batch
    monkeypatch.setattr(InMemoryCosts, "batch", lambda store: replace(read(store), version=next(versions)))
    with pytest.raises(TransientError, match="ask again"):
        costs(here)


@pytest.mark.parametrize(("asked", "names"), [({"month": "2026-13"}, "month"), ({"month": "last"}, "month"), ({"by": "person"}, "by")])
def test_a_question_that_makes_no_sense_is_refused(here, asked, names):
    with pytest.raises(ConfigError, match=names):
        costs(here, **asked)


def test_the_command_prints_a_table_csv_and_json(here):
    submit(here, "app/PR-1")
    submit(here, "=HYPERLINK,1", GPU)
    here.pass_minutes(30)
    answer = told(here, "costs", "--by", "job", "--month", "2027-01")
    assert {entry["name"] for entry in answer["entries"]} == {"app/PR-1", "=HYPERLINK,1", "(no job)"}
    drawn = command(here, "costs", columns=160).stdout
    assert all(word in drawn for word in ("app/PR-1", "dollars", "idle", "all of 2027-01 (UTC): $", "the month's limit counted $"))
    lines = command(here, "costs", "--csv").stdout.splitlines()
    assert lines[0] == "month,job,controller,usd,builds_usd,idle_usd,hours"
    assert len(lines) == 4
    assert any(line.startswith('2027-01,"\'=HYPERLINK,1",main,') for line in lines), lines
    by_pool = command(here, "costs", "--by", "pool", "--csv").stdout.splitlines()
    assert {line.split(",")[1] for line in by_pool[1:]} > {CPU, GPU}
    assert "nothing was counted in 2026-12" in command(here, "costs", "--month", "2026-12").stdout
