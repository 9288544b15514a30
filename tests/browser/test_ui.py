"""The live page in a real browser: it changes by itself, a click asks why, an order is confirmed first, nothing is wider than a phone."""

import threading
import time

import pytest
import uvicorn
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from autoscaler_workbench.ui.app import Page
from support.page_source import STATUS, PageSource

TOKEN = "0123456789abcdef"


@pytest.fixture
def source():
    return PageSource()


@pytest.fixture
def page(source, opened):
    """The page of the source, on a port of its own, opened."""
    server = uvicorn.Server(uvicorn.Config(Page(source, TOKEN, 0.2).app(), host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    opened.driver.get(f"http://127.0.0.1:{port}/?token={TOKEN}")
    yield opened
    opened.driver.get("about:blank")
    server.should_exit = True
    thread.join(timeout=10)


def seen(page, text):
    WebDriverWait(page.driver, 10).until(lambda driver: text in driver.find_element(By.TAG_NAME, "main").text)


def test_what_changes_is_shown_without_a_reload(page, source):
    seen(page, "4 agents")
    source.told = source.told | {"status": STATUS | {"agents": 5}}
    seen(page, "5 agents")
    assert page.console() == []


def test_a_click_on_an_agent_asks_why(page):
    page.driver.find_element(By.CSS_SELECTOR, ".tile.booting").click()
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
