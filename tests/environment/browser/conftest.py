"""A real browser without a screen, and a page drawn from a small run."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from autoscaler_workbench.report.run.page import write_report
from autoscaler_workbench.simulate.run import in_memory, prepare
from autoscaler_workbench.simulate.traces import load_trace
from support.builders import a_fleet, a_pool
from support.tools import program

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync --hide-scrollbars"
).split()


@dataclass(frozen=True)
class Opened:
    """A page in the browser, once all its charts are drawn."""

    driver: webdriver.Chrome

    def run(self, script: str):
        return self.driver.execute_script(f"return {script}")

    def console(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def resize(self, width: int, height: int = 900) -> None:
        # The window itself has a minimum width; the page's own metrics have none.
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => setTimeout(done, 200))")


@pytest.fixture(scope="session")
def browser(tmp_path_factory) -> Iterator[webdriver.Chrome]:
    binary, driver = program("chromium"), program("chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    yield chrome
    chrome.quit()


@pytest.fixture
def opened(browser):
    """The browser with a network, which pages in files are drawn without."""
    browser.execute_cdp_cmd(
        "Network.emulateNetworkConditions", {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    )
    yield Opened(browser)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.fixture(scope="session")
def report(tmp_path_factory) -> Path:
    """The report of two hours: a burst on one pool, a trickle on another, and a job's name that is HTML."""
    directory = tmp_path_factory.mktemp("report")
    trace = directory / "trace.csv"
    burst = [f"{1000 + n},300,cpu,</script><b>job {n}" for n in range(30)]
    trickle = [f"{1000 + n * 600},120,gpu,job" for n in range(8)]
    trace.write_text("\n".join(["queued_at,duration_s,label,job", *burst, *trickle]), encoding="utf-8")
    fleet = a_fleet(a_pool("cpu", executors=2, max_agents=3, idle_seconds=300.0), a_pool("gpu", idle_seconds=300.0), a_pool("unused"))
    run = prepare(load_trace(trace, hours=2), fleet, hours=2, seed=1)
    last = list(in_memory(run))[-1]
    return write_report(run, run.result(last), directory)


@pytest.fixture
def page(browser, report) -> Opened:
    browser.get_log("browser")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd(
        "Network.emulateNetworkConditions", {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    )
    browser.get(report.as_uri())
    browser.execute_async_script("const done = arguments[0]; window.drawn.then(() => done(), error => done(String(error)))")
    return Opened(browser)
