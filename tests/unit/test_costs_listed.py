"""Costs as people see them: of too many jobs the smallest are folded, and dollars are grouped without losing any."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.domain.facts.fleet import Team
from autoscaler.domain.facts.job_settings import CostKey, MonthCosts, Used
from autoscaler.domain.report.costs import ROWS_KEPT, By, bounded, list_costs
from support.builders import a_fleet, a_pool

ROWS = st.dictionaries(
    st.builds(
        CostKey,
        st.sampled_from(("main", "other")),
        st.sampled_from(("cpu", "gpu")),
        st.sampled_from(("@p", "@q", "top", *(f"f/{n}" for n in range(9)))),
    ),
    st.builds(Used, st.floats(0.0, 9.0), st.floats(0.0, 9.0)),
)


@given(ROWS, st.integers(8, 30))  # each of two pools on two controllers keeps two rows: one of jobs, one of people
def test_of_too_many_rows_the_smallest_are_folded_and_the_sum_stays(rows, most):
    kept = bounded(rows, most)
    assert len(kept) <= most
    assert sum(one.usd for one in kept.values()) == pytest.approx(sum(one.usd for one in rows.values()))
    assert sum(one.hours for one in kept.values()) == pytest.approx(sum(one.hours for one in rows.values()))
    assert kept == rows or len(rows) > most


def test_small_jobs_are_folded_into_their_folder_before_the_others():
    rows = {CostKey("main", "cpu", f"app/PR-{number}"): Used(0.1) for number in range(ROWS_KEPT)}
    rows |= {CostKey("main", "cpu", "nightly"): Used(0.01), CostKey("main", "cpu", "app/main"): Used(50.0)}
    kept = bounded(rows)
    assert kept[CostKey("main", "cpu", "app/main")] == Used(50.0)
    assert kept[CostKey("main", "cpu", "nightly")] == Used(0.01)
    assert kept[CostKey("main", "cpu", "app/*")].usd > 20.0


def test_costs_are_grouped_as_people_ask():
    fleet = replace(
        a_fleet(a_pool("cpu", labels=frozenset({"linux", "cpu"})), a_pool("cpu-2", labels=frozenset({"cpu", "linux"})), a_pool("gpu")),
        teams={"blue": Team(name="blue", pools=frozenset({"gpu"}))},
    )
    rows = [
        ("main", "cpu", "app/PR-1"),
        ("main", "cpu-2", "app/PR-1"),
        ("main", "gpu", "top"),
        ("other", "old", "app/*"),
        ("main", "gpu", "*"),
    ]
    used = {CostKey(*row): Used(float(2**number), 1.0) for number, row in enumerate(rows)} | {
        CostKey("main", "gpu", "@eve"): Used(32.0, 1.0)
    }
    month = MonthCosts(name="2026-11", used=used, unused={"win": 64.0})

    def groups(by):
        return {(entry.name, entry.controller): entry.usd for entry in list_costs(month, fleet, by).entries}

    assert groups(By.JOB) == {
        ("app/PR-1", "main"): 3.0,
        ("top", "main"): 4.0,
        ("app/*", "other"): 8.0,
        ("(small jobs)", "main"): 16.0,
        ("(reserved for eve)", "main"): 32.0,
        ("(no job)", ""): 64.0,
    }
    assert groups(By.FOLDER) == {
        ("app", "main"): 3.0,
        ("(no folder)", "main"): 4.0,
        ("app", "other"): 8.0,
        ("(small jobs)", "main"): 16.0,
        ("(reservations)", "main"): 32.0,
        ("(no job)", ""): 64.0,
    }
    assert groups(By.POOL) == {("cpu", ""): 1.0, ("cpu-2", ""): 2.0, ("gpu", ""): 52.0, ("old", ""): 8.0, ("win", ""): 64.0}
    assert groups(By.LABEL) == {
        ("cpu linux", ""): 3.0,
        ("gpu", ""): 52.0,
        ("(pool old, which left the fleet file)", ""): 8.0,
        ("(pool win, which left the fleet file)", ""): 64.0,
    }
    assert groups(By.TEAM) == {("(no team)", ""): 75.0, ("blue", ""): 52.0}
    assert groups(By.CONTROLLER) == {("main", ""): 55.0, ("other", ""): 8.0, ("(no job)", ""): 64.0}
