"""The live page in a real browser: it changes by itself, a click asks why, an order is confirmed first, nothing is wider than a phone."""

import threading
import time
from contextlib import contextmanager
from itertools import pairwise

import pytest
import uvicorn
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from autoscaler_workbench.ui.app import Page
from autoscaler_workbench.ui.day import DayPage
from support.page_source import NOW, STATUS, PageSource, RecordedMoments

pytestmark = pytest.mark.needs("chromium")

TOKEN = "0123456789abcdef"
OLD = "what you see is old"


@pytest.fixture
def source():
    return PageSource()


@contextmanager
def served(site, opened):
    """A page on a port of its own, opened."""
    with serving(site) as port:
        opened.driver.get(f"http://127.0.0.1:{port}/?token={TOKEN}")
        yield opened
        opened.driver.get("about:blank")


@contextmanager
def serving(site):
    """A page on a port of its own, until the end."""
    server = uvicorn.Server(uvicorn.Config(site.app(), host="127.0.0.1", port=0, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join(timeout=10)


@pytest.fixture
def page(source, opened):
    with served(Page(source, TOKEN, 0.2), opened) as page:
        yield page


@pytest.fixture
def day():
    return RecordedMoments()


@pytest.fixture
def day_page(day, opened):
    with served(DayPage(day, TOKEN), opened) as page:
        yield page


def seen(page, text):
    WebDriverWait(page.driver, 10).until(lambda driver: text in driver.find_element(By.TAG_NAME, "main").text)


def test_what_changes_is_shown_without_a_reload(page, source):
    seen(page, "4 agents")
    source.told = source.told | {"status": STATUS | {"agents": 5}}
    seen(page, "5 agents")
    assert page.console() == []


def test_a_page_that_nobody_serves_any_more_says_that_it_is_old(source, opened):
    with serving(Page(source, TOKEN, 0.2)) as port:
        opened.driver.get(f"http://127.0.0.1:{port}/?token={TOKEN}")
        seen(opened, "4 agents at 08:00 UTC")
        assert OLD not in opened.driver.find_element(By.TAG_NAME, "main").text
    seen(opened, OLD)
    opened.driver.get("about:blank")
    assert opened.console(), "the browser says, too, that the connection was lost; other pages have their own console"


def test_a_job_in_the_queue_is_not_squeezed_by_what_happens_next(page, source):
    answer = {"job": "mxnet/incubator-mxnet/PR-12388", "label": "", "waiting_seconds": 900.0, "detail": "it waits for a build " * 20}
    source.told = source.told | {"queue": [answer]}
    seen(page, answer["job"])
    page.resize(1280)
    assert page.run("document.querySelector('.waits td a').getClientRects().length") == 1
    page.resize(390)
    assert ", 1 waiting" not in page.run("document.querySelector('.waits td.figure').innerText")
    assert page.run("getComputedStyle(document.querySelector('.waits td.figure'), '::before').content") == "none"


@pytest.mark.parametrize("minutes", [75, 105, 360, 1440])
def test_no_two_times_on_an_axis_touch_each_other_on_a_phone(page, source, minutes):
    source.minutes = minutes
    page.resize(390)
    page.driver.refresh()
    edges = page.run(EDGES_OF_TICKS)
    assert len(edges) >= 2
    assert all(left > right for (_, right), (left, _) in pairwise(edges))


def test_a_click_on_an_agent_asks_why(page):
    page.run("document.querySelector('.tile.booting').click()")  # in one breath: the next look replaces it
    seen(page, "gpu-3 waits for an executor")


def test_an_order_is_carried_out_once_it_is_confirmed(page, source):
    page.driver.find_element(By.TAG_NAME, "summary").click()
    page.driver.find_element(By.NAME, "pool").send_keys("gpu")
    page.driver.find_element(By.CSS_SELECTOR, ".orders button").click()
    page.driver.switch_to.alert.dismiss()
    assert source.orders == []
    page.driver.find_element(By.CSS_SELECTOR, ".orders button").click()
    page.driver.switch_to.alert.accept()
    seen(page, "hold: done")
    assert source.orders == [("hold", {"pool": "gpu"})]


@pytest.mark.parametrize("width", [360, 390, 1200])
def test_nothing_is_wider_than_the_window(page, width):
    page.resize(width)
    assert page.run("document.documentElement.scrollWidth") == width


def until(page, true):
    WebDriverWait(page.driver, 10).until(lambda _: true())


def test_the_moment_of_a_day_is_chosen_by_a_slider_by_buttons_and_by_play(day_page, day):
    assert day_page.run("document.getElementById('shown').textContent") == "2027-01-15 07:00"
    day_page.run("document.getElementById('on').click()")
    until(day_page, lambda: day.looked_at[-1] == NOW - 3300)
    day_page.driver.find_element(By.ID, "at").send_keys(Keys.ARROW_LEFT)
    until(day_page, lambda: day.looked_at[-1] == NOW - 3360)
    assert day_page.run("document.getElementById('shown').textContent") == "2027-01-15 07:04"
    day_page.driver.find_element(By.ID, "play").click()
    until(day_page, lambda: day.looked_at[-1] >= NOW - 2800)
    day_page.driver.find_element(By.ID, "play").click()
    assert day_page.run("document.getElementById('play').textContent") == "play"
    assert day_page.console() == []


def test_a_click_asks_why_at_the_moment_that_is_shown(day_page, day):
    day_page.run("document.getElementById('back').click()")
    until(day_page, lambda: day.looked_at[-1] == NOW - 3900)
    day_page.run("document.querySelector('.tile.booting').click()")
    seen(day_page, "gpu-3 waits for an executor")
    assert day.looked_at[-1] == NOW - 3900


@pytest.mark.parametrize("width", [360, 390, 1200])
def test_no_moment_of_a_day_is_wider_than_the_window(day_page, width):
    day_page.resize(width)
    assert day_page.run("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_words_can_be_read_in_the_light_and_in_the_dark(page, scheme):
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    assert page.run(PALEST) >= 4.5  # WCAG 2.1, 1.4.3


EDGES_OF_TICKS = """[...document.querySelector('.ticks').children].map(tick => tick.getBoundingClientRect())
  .map(edges => [edges.left, edges.right])"""

# The least contrast of any text with the background that is painted behind it.
PALEST = """(() => {
  const parts = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(c => c / 255).map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, place) => sum + c * [.2126, .7152, .0722][place], 0);
  const behind = one => { for (; one; one = one.parentElement) { const c = parts(getComputedStyle(one).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  const contrast = one => { const [a, b] = [light(parts(getComputedStyle(one).color)), light(behind(one))].sort((x, y) => y - x);
    return (a + .05) / (b + .05); };
  const withText = [...document.querySelectorAll('main *')].filter(one =>
    [...one.childNodes].some(node => node.nodeType === 3 && node.textContent.trim()) && one.getClientRects().length);
  return Math.min(...withText.map(contrast));
})()"""
