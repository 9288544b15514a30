"""The report in a real browser, without a network."""

import re
import struct

import pytest

from autoscaler_workbench.report.run.page import write_report
from autoscaler_workbench.simulate.run import in_memory, prepare
from autoscaler_workbench.simulate.traces import load_trace
from support.builders import a_fleet

pytestmark = pytest.mark.needs("chromium")

CHARTS = {"queue", "waits", "dollars", "steps", "agents-0", "agents-1"}


def test_nothing_is_complained_about(page):
    assert page.console() == []


def test_nothing_is_loaded_from_anywhere(page):
    assert page.run("performance.getEntriesByType('resource').map(entry => entry.name)") == []


def test_every_chart_is_drawn_and_has_data(page):
    assert set(page.run("Object.keys(window.views)")) == CHARTS
    for name in CHARTS:
        marks = page.run(
            f"document.querySelectorAll('#{name} svg .mark-area path, #{name} svg .mark-symbol path, #{name} svg .mark-rect path').length"
        )
        assert marks > 0, name


def test_each_job_is_a_dot_and_each_state_an_area(page):
    assert page.run("document.querySelectorAll('#waits .mark-symbol path').length") == 38
    assert page.run("document.querySelectorAll('#agents-0 .mark-area path').length") >= 3


def test_pointing_at_a_step_tells_its_reason(page):
    labels = page.run("[...document.querySelectorAll('#steps [aria-label]')].map(mark => mark.getAttribute('aria-label')).join('\\n')")
    assert "reason: nobody-can-serve" in labels
    assert "detail: no more than" in labels


def test_every_step_is_listed_and_the_list_can_be_filtered(page):
    rows = "[...document.querySelectorAll('#log tbody tr')].filter(row => !row.hidden)"
    every = page.run(f"{rows}.length")
    page.driver.find_element("id", "filter").send_keys("TERMINATE")
    shown = page.run(f"{rows}.map(row => row.textContent)")
    assert 0 < len(shown) < every
    assert all("terminate" in text for text in shown)


def test_the_figures_are_those_of_the_run(page):
    text = page.run("document.querySelector('.cards').textContent")
    assert "38 of 38" in text
    assert "0builds killed" in text


def test_a_jobs_name_is_text_and_never_markup(page):
    assert page.run("document.querySelectorAll('body b').length") == page.run("document.querySelectorAll('.card b, p.quiet b').length")


def test_times_are_of_24_hours_and_numbers_are_plain(page):
    for name in CHARTS:
        labels = page.run(f"[...document.querySelectorAll('#{name} .role-axis-label text')].map(one => one.textContent)")
        times = [label for label in labels if ":" in label or label[:2].isdigit()]
        assert times, name
        assert not [label for label in labels if re.search(r"[ap]m$|\de[+-]", label, re.IGNORECASE)], name


def test_a_pool_without_jobs_and_agents_is_in_no_legend_and_no_table(page):
    shown = page.run("[...document.querySelectorAll('.legend, table')].map(one => one.textContent).join()")
    assert "unused" not in shown.replace("~unused", "")  # the beacon of its labels is created all the same
    assert "Without jobs and agents: unused." in page.run("document.body.textContent")


def test_words_of_charts_can_be_read_in_the_dark(page):
    colours = (
        "getComputedStyle(document.querySelector('#queue .role-axis-label text')).fill, getComputedStyle(document.body).backgroundColor"
    )
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
    assert page.run(f"[{colours}]") == ["rgb(154, 164, 178)", "rgb(20, 23, 27)"]
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_a_narrow_screen_needs_no_sideways_scrolling(page):
    wide = page.run("document.querySelector('#queue svg').getBoundingClientRect().width")
    page.resize(360, 740)
    assert page.run("document.documentElement.scrollWidth") <= 360
    for name in CHARTS:
        width = page.run(f"document.querySelector('#{name} svg').getBoundingClientRect().width")
        assert 200 < width <= 360, name
        assert width < wide


def test_the_pictures_are_whole(report):
    png = (report.parent / "report.png").read_bytes()
    width, height = struct.unpack(">II", png[16:24])
    assert png.startswith(b"\x89PNG")
    assert (width > 1000, height > 1000) == (True, True)
    svg = (report.parent / "report.svg").read_text(encoding="utf-8")
    assert svg.startswith("<svg")
    assert {"Jobs waiting for an executor", "Agents of cpu", "limit: 3"} <= set(re.findall(r">([^<>]+)</text>", svg))


def test_a_run_in_which_nothing_happened_has_a_report_too(browser, tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text("queued_at,duration_s,label,job\n100,60,nobody,job", encoding="utf-8")
    run = prepare(load_trace(trace, hours=0.1), a_fleet(), hours=0.1, seed=1)
    page = write_report(run, run.result(list(in_memory(run))[-1]), tmp_path)
    browser.get_log("browser")
    browser.get(page.as_uri())
    browser.execute_async_script("const done = arguments[0]; window.drawn.then(() => done(), error => done(String(error)))")
    assert browser.get_log("browser") == []
    text = browser.execute_script("return document.body.textContent")
    assert "No agent was launched." in text
    assert "jobs that no pool can serve" in text
