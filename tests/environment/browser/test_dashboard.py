"""The dashboard of a local world in a real browser, without a network."""

from dataclasses import replace
from pathlib import Path
from shutil import copy

import pytest

from autoscaler.domain.report.datum import Datum
from autoscaler_workbench.report.dashboard import page
from autoscaler_workbench.report.dashboard.cloudformation import FULL
from autoscaler_workbench.report.dashboard.page import TEMPLATE, write_dashboard
from autoscaler_workbench.report.dashboard.widgets import read_widgets
from environment.browser.conftest import Opened

pytestmark = pytest.mark.needs("chromium")

POOLS = ("cpu", "gpu", "<b>odd</b>")


def published():
    """An hour of three pools, of which one's boots fail."""
    for minute in range(60):
        at = 1_800_000_000.0 + minute * 60
        for number, pool in enumerate(POOLS):
            dimensions = (("Fleet", "f"), ("Controller", "main"), ("Pool", pool))
            for name in ("QueueStarved", "AgentsOnline", "NodeFailureStreak"):
                yield at, Datum(name=name, values=(float(minute % 7 + number),), unit="Count", dimensions=dimensions)
        whole = {"BreakersOpen": 1.0 if minute > 40 else 0.0, "AgentsOnline": 9.0, "UsdPerHour": 12.5, "JobWaitSeconds": 300.0}
        for name, value in whole.items():
            yield at, Datum(name=name, values=(value,), unit="Count", dimensions=(("Fleet", "f"),))
        if minute in {3, 4, 5, 30, 50, 51}:
            yield at, Datum(name="Launches", values=(2.0,), unit="Count", dimensions=(("Fleet", "f"),))
        for function in ("publish_metrics", "scale_up", "scale_down"):
            yield at, Datum(name="Heartbeat", values=(1.0,), unit="Count", dimensions=(("Fleet", "f"), ("Function", function)))


@pytest.fixture
def board(browser, tmp_path):
    file = write_dashboard("f", list(published()), tmp_path)
    browser.get_log("browser")
    browser.get(file.as_uri())
    browser.execute_async_script("window.drawn.then(arguments[0])")
    return Opened(browser)


def test_every_widget_that_has_data_is_drawn_and_the_others_say_so(board):
    widgets = read_widgets(TEMPLATE, "f", list(published()), **FULL)
    drawn = {f"w{number}" for number, widget in enumerate(widgets) if widget.series}
    assert set(board.run("Object.keys(window.views)")) == drawn
    for name in drawn:
        assert board.run(f"document.querySelectorAll('#{name} svg .mark-area path, #{name} svg .mark-line path').length") > 0, name
    assert len(board.run("[...document.querySelectorAll('.none')].map(one => one.textContent)")) == len(widgets) - len(drawn)
    assert board.console() == []


def test_a_search_finds_every_pool_and_its_name_is_text(board):
    shown = board.run("[...document.querySelectorAll('.widget')[0].querySelectorAll('.legend span')].map(one => one.textContent)")
    assert set(shown) == set(POOLS)
    assert board.run("document.querySelectorAll('body b').length") == 0


def test_times_are_of_24_hours_and_numbers_are_plain(board):
    labels = board.run("[...document.querySelectorAll('.role-axis-label text')].map(one => one.textContent)")
    assert any(":" in label for label in labels)
    assert [label for label in labels if "e+" in label or "AM" in label or "PM" in label] == []


def test_a_line_breaks_where_nothing_was_published_and_a_value_alone_is_a_dot(board):
    widgets = read_widgets(TEMPLATE, "f", list(published()), **FULL)
    [place] = [number for number, widget in enumerate(widgets) if widget.title == "Launched, started, stopped and given up"]
    path = board.run(f"document.querySelector('#w{place} .mark-line path').getAttribute('d')")
    assert path.count("M") == 3
    assert board.run(f"document.querySelectorAll('#w{place} .mark-symbol path').length") == 1


def test_zeros_lie_on_the_ground(tmp_path, browser):
    rows = [(at, datum) if datum.name != "UsdPerHour" else (at, replace(datum, values=(0.0,))) for at, datum in published()]
    [place] = [n for n, widget in enumerate(read_widgets(TEMPLATE, "f", rows, **FULL)) if widget.title == "What the agents cost an hour"]
    browser.get(write_dashboard("f", rows, tmp_path).as_uri())
    browser.execute_async_script("window.drawn.then(arguments[0])")
    shown = Opened(browser)
    line = shown.run(f"document.querySelector('#w{place} .mark-line path').getBoundingClientRect().bottom")
    ground = shown.run(
        f"Math.max(...[...document.querySelectorAll('#w{place} .role-axis-domain line')].map(one => one.getBoundingClientRect().bottom))"
    )
    assert abs(line - ground) <= 2


def test_where_the_pages_are_not_at_hand_the_place_is_text_and_no_dead_link(tmp_path, browser, monkeypatch):
    monkeypatch.setattr(page, "TEMPLATE", Path(copy(TEMPLATE, tmp_path)))  # as in a wheel, which carries no docs
    browser.get(write_dashboard("f", list(published()), tmp_path).as_uri())
    shown = Opened(browser)
    assert shown.run("document.querySelectorAll('.alarms a').length") == 0
    [text] = shown.run("[...document.querySelectorAll('.alarms .rings')].map(one => one.textContent)")
    assert text.startswith("BreakersOpenAlarm: rang once, for ")
    assert text.endswith("; see docs/operations.md#breakers-open")


def test_the_alarm_that_rings_stands_out_and_leads_to_its_runbook(board):
    rings = board.run("[...document.querySelectorAll('.alarms .rings a')].map(one => [one.textContent, one.href])")
    [(name, link)] = rings
    assert name == "BreakersOpenAlarm"
    assert board.run("document.querySelector('.alarms li').textContent").startswith(name), "what rings stands first"
    assert link.endswith("docs/operations.md#breakers-open")
    assert board.run("document.querySelectorAll('.alarms a').length") > 20


def test_nothing_is_loaded_from_anywhere(board):
    assert board.run("performance.getEntriesByType('resource').map(entry => entry.name)") == []


def test_the_page_fits_a_narrow_screen(board):
    board.resize(420)
    assert board.run("document.documentElement.scrollWidth") <= 420
    board.resize(1400)
