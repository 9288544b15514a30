"""What the message of a month says."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.job_settings import CostKey, MonthCosts, MonthParts, Used
from autoscaler.domain.report.messages import month_before, write_summary
from support.builders import a_fleet, a_pool

FLEET = a_fleet(a_pool("cpu", labels=frozenset({"linux", "x86"})), a_pool("gpu"))
BEFORE = MonthCosts(name="2026-12", used={CostKey("main", "cpu", "app/a"): Used(50.0, 9.0)}, metered_usd=50.0)


def a_month(jobs=2, **facts):
    used = {CostKey("main", "cpu", f"app/{'abcdefghijklmnop'[n]}"): Used(40.0 / jobs, 10.0) for n in range(jobs)}
    parts = MonthParts(boot_usd=12.0, stopped_usd=3.0, disk_usd=4.0)
    return MonthCosts(name="2027-01", **{"used": used, "unused": {"cpu": 40.0, "gpu": 20.0}, "metered_usd": 100.0, "parts": parts} | facts)


def text_of(month, before=BEFORE, fleet=FLEET):
    return write_summary(month, before, fleet, "https://example.org/docs/").text


def test_the_subject_says_the_sum_and_how_it_compares():
    assert write_summary(a_month(), BEFORE, FLEET, "").subject == "[f] January 2027: $100.00, 100% more than the month before ($50.00)"
    less = write_summary(a_month(metered_usd=25.0), BEFORE, FLEET, "").subject
    assert less == "[f] January 2027: $25.00, 50% less than the month before ($50.00)"
    assert "as much as the month before" in write_summary(a_month(metered_usd=50.1), BEFORE, FLEET, "").subject
    assert "nothing is known of the month before" in write_summary(a_month(), MonthCosts(name="2026-12"), FLEET, "").subject


def test_pools_jobs_and_labels_are_named_with_what_they_cost_then():
    lines = text_of(a_month()).splitlines()
    assert "        $80.00  80%  cpu  ($50.00 the month before)" in lines
    assert "        $20.00  20%  gpu" in lines
    assert "        $40.00  40%  app/a  ($50.00 the month before)" in lines
    assert "        $80.00  80%  linux x86" in lines


def test_what_nobody_used_is_told_by_why():
    lines = text_of(a_month()).splitlines()
    start = lines.index("Nobody used $60.00 of it (60%):")
    assert lines[start + 1 : start + 4] == [
        "        $12.00       boots",
        "        $45.00       idle executors",
        "         $3.00       disks of stopped agents",
    ]


def test_only_the_ten_dearest_jobs_are_named():
    lines = text_of(a_month(jobs=16, unused={})).splitlines()
    begin = lines.index("The dearest jobs:")
    assert len(lines[begin + 1 : lines.index("", begin)]) == 11
    assert "        $15.00       6 more" in lines


def test_what_is_estimated_is_said_to_be():
    lines = text_of(a_month()).splitlines()
    assert "By estimate, in that sum: volumes $4.00 (by their sizes and volume_usd_per_gib_month)" in lines


def test_of_a_month_that_cost_nothing_there_is_nothing_to_tell():
    assert write_summary(MonthCosts(name="2027-01"), BEFORE, FLEET, "") is None


def test_a_subject_that_is_too_long_or_not_ascii_is_cut():
    subject = write_summary(a_month(), BEFORE, replace(FLEET, name="f" * 90), "").subject
    assert len(subject) == 100
    assert subject.isascii()


@pytest.mark.parametrize(("month", "before"), [("2027-01", "2026-12"), ("2026-12", "2026-11"), ("2026-03", "2026-02")])
def test_the_month_before(month, before):
    assert month_before(month) == before
