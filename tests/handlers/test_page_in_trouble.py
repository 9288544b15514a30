"""The page while something is on hold, overridden, spent or broken: it says so first, in the words of `autoscaler status`."""

import shlex

import pytest
from starlette.testclient import TestClient

from autoscaler.errors import ConfigError
from autoscaler_workbench.cli.past import past_of
from autoscaler_workbench.cli.ui import DeployedSource
from autoscaler_workbench.fakes.world.world import break_boots
from autoscaler_workbench.ui.app import Page
from support.asked import command, served
from support.deployed import event
from support.scene import limits, scene
from support.visible import visible

POOLS = "pools: {cpu: {$pool, executors: 1, max_agents: 4}, quiet: {$pool, executors: 1, max_agents: 2}}\n"
FLEET = f"{POOLS}teams: {{graphics: {{pools: [cpu], max_agents: 3}}}}\n"
FOR_AN_HOUR = "until 09:02 UTC, for another 1 h, by ada: drill"
ORDERS = {
    "a pool": ({"action": "hold", "pool": "cpu"}, f"pool cpu is on hold {FOR_AN_HOUR}"),
    "a controller": ({"action": "hold", "controller": "main"}, f"controller main is on hold {FOR_AN_HOUR}"),
    "a label": ({"action": "hold", "label": "gpu"}, f"label gpu is on hold {FOR_AN_HOUR}"),
    "an expression": ({"action": "hold", "label": "a && !b"}, f"label a && !b is on hold {FOR_AN_HOUR}"),
    "the fleet": ({"action": "hold"}, f"the whole fleet is on hold {FOR_AN_HOUR}"),
    "a frozen fleet": ({"action": "hold", "freeze": True}, f"the whole fleet is frozen {FOR_AN_HOUR}"),
    "until resumed": ({"action": "hold", "until_resumed": True}, "the whole fleet is on hold until somebody resumes it, by ada: drill"),
    "limits of a pool": (
        {"action": "set", "pool": "cpu", "max_agents": 2, "warm_executors": 1},
        "cpu has max_agents 2, warm_executors 1 until",
    ),
    "limits of a team": ({"action": "set", "team": "graphics", "max_agents": 2}, "team graphics has max_agents 2 until"),
}


def page_of(here):
    """Return the text of the page's fleet, as its reader sees it."""
    deployed = here.here
    site = Page(DeployedSource(deployed, lambda: past_of(deployed.metrics), lambda: here.now), "t", 1.0)
    answer = TestClient(site.app(), base_url="http://127.0.0.1:8765").get("/?token=t")
    assert answer.status_code == 200
    return visible(answer.text)


def status_of(here):
    with served(deployed := here.here, "operate"):
        ran = command(deployed, "status")
    assert ran.exit_code == 0, ran.output
    return ran.stdout.splitlines()


@pytest.mark.parametrize("kind", ORDERS)
def test_an_order_of_a_person_is_the_first_line_of_the_page_and_of_status(kind):
    order, line = ORDERS[kind]
    with scene(FLEET) as here:
        here.minutes(2)
        here.order(**{"minutes": 60, "reason": "drill"} | order)
        for first, *_ in (page_of(here), status_of(here)):
            assert first.startswith(line)


@pytest.mark.parametrize(
    ("order", "end"),
    [
        (
            {"action": "hold", "pool": "cpu"},
            "since 08:02 UTC nothing is launched or drained there; to end it now: autoscaler resume --pool cpu",
        ),
        ({"action": "hold", "label": "a && !b"}, "jobs that ask for it wait; to end it now: autoscaler resume --label 'a && !b'"),
        ({"action": "hold", "freeze": True}, "nothing is launched, drained or repaired anywhere; to end it now: autoscaler resume --fleet"),
        ({"action": "set", "pool": "cpu", "max_agents": 2}, "to end it now: autoscaler set cpu"),
        ({"action": "set", "team": "graphics", "max_agents": 2}, "to end it now: autoscaler set --team graphics"),
    ],
)
def test_an_order_says_since_when_what_it_keeps_from_being_done_and_the_command_that_ends_it(order, end):
    with scene(FLEET) as here:
        here.minutes(2)
        here.order(**{"minutes": 60, "reason": "drill"} | order)
        for first, *_ in (page_of(here), status_of(here)):
            assert first.endswith(end)
        with served(here.here, "operate"):
            ran = command(here.here, *shlex.split(end.rpartition("autoscaler ")[2]))
        assert ran.exit_code == 0, ran.output
        assert page_of(here)[0] != first


def test_a_frozen_fleet_is_told_once_and_not_by_each_pool_again():
    with scene(FLEET) as here:
        here.submit("app", "cpu", 60)
        here.minutes(5)
        here.order("hold", freeze=True, reason="drill")
        assert sum("frozen" in line for line in page_of(here)) == 1


def test_an_aws_budgets_hold_says_how_a_person_ends_it():
    with scene(FLEET) as here:
        here.minutes(1)
        here.here.call("operate", event("budget"))
        first, *_ = page_of(here)
        assert first.startswith("the whole fleet is on hold until Mon 01 Feb 00:00 UTC")
        assert first.endswith("nothing is launched, and idle agents end; to end it now: autoscaler resume --budget")


def test_orders_that_cannot_be_read_hold_the_fleet_and_the_page_says_why():
    with scene(FLEET) as here:
        here.here.state.unreadable.add("overrides")
        here.minutes(1)
        first, *_ = page_of(here)
        assert first.startswith(
            "the whole fleet is on hold until somebody resumes it, by autoscaler: what operators have ordered cannot be read"
        )


def test_a_month_that_is_spent_is_said_before_the_pools():
    with scene(f"{limits(max_usd_per_month=1)}{FLEET}") as here:
        for number in range(4):
            here.submit(f"app-{number}", "cpu", 600)
        here.minutes(120)
        lines = page_of(here)
        spent = next(place for place, line in enumerate(lines) if "month" in line and "limit" in line)
        assert spent < lines.index("Pools")


def test_a_broken_pool_is_told_as_status_tells_it():
    with scene(FLEET) as here:
        break_boots(here.world, {"cpu"})
        for number in range(4):
            here.submit(f"app-{number}", "cpu", 60)
        here.minutes(60)
        page, status = page_of(here), status_of(here)
        assert status[0].startswith("cpu has been broken for ")
        assert [line.strip() for line in status[:4]] == page[:4]


def test_a_reserved_agent_and_a_stopped_one_have_tiles():
    warm = "pools: {cpu: {$pool, executors: 1, max_agents: 4, idle_seconds: 60, warm_pool: {min_agents: 1, max_agents: 2}}}"
    with scene(warm) as here:
        here.minutes(20)
        here.order("reserve", target="cpu", person="ada", hours=1, request_id="r-1", reason="drill")
        here.minutes(8)
        assert {"reserved", "stopped"} <= {*page_of(here)}


def test_a_schedule_is_a_line_of_its_pool():
    hours = "schedules: [{from: 00:00, to: 24:00, time_zone: UTC, min_agents: 1}]"
    with scene(f"pools: {{cpu: {{$pool, executors: 1, max_agents: 4, {hours}}}}}") as here:
        here.minutes(3)
        assert any("min_agents 1 by schedule" in line for line in page_of(here))


def test_an_error_of_the_page_is_a_line_in_the_terminal_and_on_the_page(capsys):
    class Broken:
        def overview(self):
            raise KeyError("pools")

    site = Page(Broken(), "t", 1.0)
    browser = TestClient(site.app(), base_url="http://127.0.0.1:8765")
    assert "the page could not be written: KeyError" in browser.get("/?token=t").text
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("autoscaler ui: the page could not be written: KeyError: 'pools' (test_page_in_trouble.py, line ")


def test_an_error_of_a_question_is_a_line_in_the_terminal_too(capsys):
    class Broken:
        def why(self, subject):
            raise KeyError(subject)

        def order(self, verb, facts):
            raise ConfigError("no")

    browser = TestClient(Page(Broken(), "t", 1.0).app(), base_url="http://127.0.0.1:8765", raise_server_exceptions=False)
    browser.cookies.set("autoscaler_ui", "t")
    answer = browser.get("/why?subject=cpu")
    assert (answer.status_code, "KeyError: 'cpu'" in answer.text) == (500, True)
    assert capsys.readouterr().err.startswith("autoscaler ui: /why could not be answered: KeyError: 'cpu'")
