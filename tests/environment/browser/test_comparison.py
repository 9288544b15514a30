"""The pages of a comparison and of a proposal in a real browser, without a network."""

import csv
import json
from pathlib import Path

import pytest

from autoscaler_workbench.experiment.tune import Change, Proposal, TuningTask
from autoscaler_workbench.report.comparison.page import write_comparison
from autoscaler_workbench.report.proposal import write_proposal
from autoscaler_workbench.simulate.fleets import fleet_for
from autoscaler_workbench.simulate.traces import load_trace
from environment.browser.conftest import Opened

pytestmark = pytest.mark.needs("chromium")

RIVALS = ("gitlab", "karpenter", "cluster-autoscaler", "static", "reactive", "ec2-plugin", "mxnet-ci")
MEASURES = ("wait_mean_s", "wait_p50_s", "wait_p95_s", "wait_p99_s", "utilisation", "launches", "early_terminations", "killed")


def a_comparison(out: Path) -> Path:
    """Two traces, ours, seven rivals and the bound, two settings each; on the second trace a rival is cheaper."""
    rows = []
    for trace, by in (("one.csv", 1.0), ("two.csv", 100.0)):
        for number, policy in enumerate(("autoscaler", *RIVALS, "clairvoyant")):
            for setting, dearer in (("", 1.0), ("knob=1", 1.5)):
                usd = (
                    by * dearer * (8.0 if policy == "clairvoyant" else 9.5 if trace == "two.csv" and policy == "gitlab" else 10.0 + number)
                )
                measures = dict.fromkeys(MEASURES, 0.0) | {"wait_p95_s": 600.0 / dearer}
                rows.append({"trace": trace, "policy": policy, "setting": setting, "seed": 1, "usd": usd, "total_usd": 2 * usd} | measures)
    with (out / "results.csv").open("w", newline="", encoding="utf-8") as lines:
        writer = csv.DictWriter(lines, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    (out / "comparison.json").write_text(json.dumps({name: ["", "guessed", 30.0, 0.0, 0.0, {}] for name in ("one.csv", "two.csv")}))
    points = [[1_800_000_000.0 + 3600 * n, n % 3, n % 5, 8] for n in range(48)]
    run = {"trace": "one.csv", "policy": "autoscaler", "setting": "", "seed": "1", "points": points}
    (out / "timelines.jsonl").write_text(json.dumps(run) + "\n", encoding="utf-8")
    return write_comparison(out)[0]


def a_proposal(out: Path) -> Path:
    trace = out / "trace.csv"
    trace.write_text("queued_at,duration_s,label,job\n0,60,cpu,job", encoding="utf-8")
    row = {"setting": "", "pools": {"cpu": 100.0}, "usd": 50.0, "wait_hours": 2.5, "total_usd": 100.0, "wait_p95_s": 600.0}
    row |= {"wait_mean_s": 60.0, "killed": 0.0}
    after = row | {"setting": "warm_executors=2", "usd": 60.0, "total_usd": 80.0, "wait_p95_s": 240.0}
    dear = row | {"setting": "proposed, wait_usd_per_hour x3", "usd": 90.0, "total_usd": 95.0, "wait_p95_s": 60.0}
    change = Change(pool="cpu", key="warm_executors", value=2.0, now="0", proposed="2", saves_usd=20.0)
    proposal = Proposal(fleet={}, before=row, after=after, changes=[change], frontier=[after, dear], tried=[row, after, dear])
    loaded = load_trace(trace, hours=1)
    return write_proposal(proposal, TuningTask(trace=loaded, fleet=fleet_for(loaded), hours=24.0, seeds=2, settings={}), out)


@pytest.fixture(params=[a_comparison, a_proposal])
def page(browser, tmp_path, request):
    file = request.param(tmp_path)
    browser.get_log("browser")
    browser.execute_cdp_cmd(
        "Network.emulateNetworkConditions", {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    )
    browser.get(file.as_uri())
    browser.execute_async_script("const done = arguments[0]; window.drawn.then(() => done(), error => done(String(error)))")
    return Opened(browser)


of_comparison = pytest.mark.parametrize("page", [a_comparison], indirect=True)
of_proposal = pytest.mark.parametrize("page", [a_proposal], indirect=True)


def test_the_page_is_whole_without_a_network_and_fits_a_phone(page):
    assert page.console() == []
    assert page.run("performance.getEntriesByType('resource').map(entry => entry.name)") == []
    for width in (360, 390, 1200):
        page.resize(width)
        assert page.run("document.documentElement.scrollWidth") == width


def test_numbers_on_axes_are_plain_and_clocks_have_24_hours(page):
    labels = page.run("[...document.querySelectorAll('.role-axis-label text')].map(one => one.textContent)")
    assert len(labels) > 10
    assert [label for label in labels if "e+" in label or "AM" in label or "PM" in label] == []
    assert any(label.startswith("$") for label in labels)


def coloured(page):
    """The colours of the lines of the first picture that are not drawn as others."""
    lines = "[...document.querySelectorAll('#frontier-0 .mark-line path')]"
    return page.run(
        f"{lines}.map(line => [line.getAttribute('stroke'), line.getAttribute('stroke-width')]).filter(one => one[0] !== '#9aa0a6')"
    )


@of_comparison
def test_five_lines_stand_out_and_a_sixth_where_the_reader_chooses_one(page):
    assert len(page.run("[...document.querySelectorAll('#frontier-0 .mark-line path')]")) == len(RIVALS) + 2
    assert len(coloured(page)) == 5
    assert max(coloured(page), key=lambda line: float(line[1]))[0] == "#1f77d0"  # ours
    page.run("(document.getElementById('chosen').value = 'mxnet-ci', document.getElementById('chosen').dispatchEvent(new Event('change')))")
    page.driver.execute_async_script("setTimeout(arguments[0], 300)")
    assert sorted(colour for colour, _ in coloured(page)).count("#e0218a") == 1
    assert len(coloured(page)) == 6


@of_comparison
def test_what_stands_out_is_drawn_last_and_ours_on_top_of_all(page):
    strokes = page.run("[...document.querySelectorAll('#frontier-0 .mark-line path')].map(line => line.getAttribute('stroke'))")
    assert strokes[: len(RIVALS) - 3] == ["#9aa0a6"] * (len(RIVALS) - 3)
    assert strokes[-1] == "#1f77d0"


@of_comparison
def test_the_first_impression_says_who_is_cheaper_and_explains_where_it_is_not_ours(page):
    text = page.run("document.body.textContent")
    assert "ours costs $20.00, the best rival (gitlab) $22.00: ours is 9.1 % cheaper." in text
    assert "ours is 5.3 % dearer. Its bill is $50.00 more" in text
    assert "before these 30 hours it knew nothing" in text


@of_proposal
def test_a_proposal_says_what_to_change_and_what_that_saves(page):
    text = " ".join(page.run("document.body.textContent").split())
    assert "With 1 change these 24 hours cost $80.00 instead of $100.00, waiting included, 20.0 % less" in text
    assert "the bill $60.00 instead of $50.00, 95 of 100 jobs wait at most 4 min instead of 10 min." in text
    assert "cpu: keep 2 executors free (warm_executors: 2, now 0); saves $20.00 there." in text
    assert len(page.run("[...document.querySelectorAll('#waits .mark-symbol path')]")) == 3
    assert page.run("document.querySelectorAll('tr.proposed').length") == 1
