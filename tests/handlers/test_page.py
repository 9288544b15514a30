"""The page's source on the real handlers: one look shows everything, and its orders are those of the other commands."""

import socket
from dataclasses import dataclass

import pytest
from starlette.testclient import TestClient

from autoscaler.errors import ConfigError
from autoscaler_workbench.cli.past import past_of
from autoscaler_workbench.cli.ui import DeployedSource, serve
from autoscaler_workbench.ui.app import Page
from support.deployed import EXAMPLE, InMemory, deployed_in_memory, event

GPU = "mxnetlinux-gpu"


@dataclass(frozen=True)
class Called:
    """Calls the handlers as the command line calls the deployed functions."""

    here: InMemory

    def call(self, function, event):
        return self.here.call(function, event)


@pytest.fixture
def here():
    with deployed_in_memory() as stood:
        stood.call("scale_up", event("tick"))
        for number in range(2):
            stood.world.controllers["main"].submit(f"unix-gpu/PR-{number}", GPU, 3600.0)
        stood.pass_minutes(12)
        yield stood


@pytest.fixture
def source(here):
    return DeployedSource(Called(here), lambda: past_of(here.metrics), lambda: here.world.timeline.now)


def test_one_look_shows_status_agents_queue_and_what_was_done(source):
    told = source.overview()
    assert {agent["pool"] for agent in told["agents"]} >= {GPU}
    assert told["status"]["agents"] == len(told["agents"])
    assert "launch" in {one["what"] for one in told["events"]}
    assert told["queue"] == []
    assert {entry["name"] for entry in told["costs"]["entries"]} >= {"unix-gpu/PR-0", "unix-gpu/PR-1"}


def test_the_page_of_a_real_answer_is_whole(source):
    browser = TestClient(Page(source, "t", 1.0).app(), base_url="http://127.0.0.1:8765")
    page = browser.get("/?token=t").text
    assert GPU in page
    assert "busy" in page
    assert "at most $" in page
    assert "None rang" in page


def test_dollars_and_alarms_are_those_that_the_handlers_published(source):
    past = source.past()
    assert max(usd for _, usd in past.spend) > 0
    assert {alarm["alarm"] for alarm in past.alarms} >= {"BreakersOpen", "JobWaits"}
    assert past.ends_at - past.begins_at >= 600


def test_dollars_of_a_team_are_no_dollars_of_the_fleet():
    with deployed_in_memory(EXAMPLE.read_text() + "teams: {site: {pools: [utility], max_usd_per_hour: 10}}\n") as here:
        here.pass_minutes(5)
        spend = past_of(here.metrics).spend
        assert len({at for at, _ in spend}) == len(spend) == 5


def test_orders_are_carried_out_and_said_in_a_line(here, source):
    assert source.order("hold", {"pool": GPU, "minutes": "30", "reason": "a look"}) == "hold: done"
    assert [hold["pool"] for hold in source.overview()["holds"]] == [GPU]
    assert source.order("resume", {"pool": GPU}).startswith("resume: ")
    assert source.order("launch", {"pool": GPU, "count": "1"}).startswith("launched 1 of 1 for $")
    node = next(agent["node"] for agent in source.overview()["agents"] if agent["node"] and agent["busy"])
    assert source.order("drain", {"node": node}).startswith("drain: 1 of 1")


@pytest.mark.parametrize(
    ("verb", "facts", "line"),
    [
        ("launch", {}, "name a pool"),
        ("hold", {}, "name a pool"),
        ("launch", {"pool": GPU, "count": "many"}, r"count \(many\)"),
        ("hold", {"pool": "nosuch"}, r"pool \(nosuch\)"),
        ("hold", {"pool": GPU, "minutes": "0"}, r"minutes \(0\)"),
    ],
)
def test_a_wrong_order_is_refused_in_a_line_and_changes_nothing(source, verb, facts, line):
    with pytest.raises(ConfigError, match=line):
        source.order(verb, facts)
    assert source.overview()["holds"] == []


def test_a_port_that_is_taken_is_said_in_a_line_before_any_address_is_printed(source, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"--port \({port}\): cannot be listened on"):
            serve(source, port, every_seconds=1.0)
    assert capsys.readouterr().out == ""
