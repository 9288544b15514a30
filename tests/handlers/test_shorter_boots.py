"""`status` says what a ready image or a warm pool would have saved in the last days: from a fleet file, through the real handlers."""

import re

import pytest
from starlette.testclient import TestClient

from autoscaler.domain.facts.costs import Boots
from autoscaler.domain.learn import assess
from autoscaler.domain.report.shorter_boots import warm_pool_saves
from autoscaler.errors import TransientError
from autoscaler_workbench.cli.past import past_of
from autoscaler_workbench.cli.ui import DeployedSource
from autoscaler_workbench.fakes.costs import InMemoryCosts
from autoscaler_workbench.ui.app import Page
from support.asked import command, served
from support.builders import a_fleet as a_fleet_of
from support.builders import a_pool, a_snapshot, a_view, an_offering
from support.deployed import event
from support.scene import scene

USD, WAIT_USD, VOLUME_USD = 3.0, 20.0, 100 * 0.08 / 730
BOOTS = 6
# No image is told of as booting in less than 40 s.
POOL = "usd_per_hour: 3, volume_gib: 100, idle_seconds: 60"


def a_fleet(keys="", boot_seconds=240):
    pool = f"{{$pool, executors: 1, max_agents: 4, {POOL}{keys and ', '}{keys}}}"
    return f"defaults: {{boot_seconds: {boot_seconds}, wait_usd_per_hour: {WAIT_USD:g}, queue_maturity_seconds: 0}}\npools: {{cpu: {pool}}}"


def boots(here, count=BOOTS, label="cpu"):
    """Let a job come, wait for the boot of its agent, and end, again and again."""
    for number in range(count):
        build = here.submit(f"app/job-{number}", label, 2)
        here.until(lambda build=build: build.ended, within=15)
        here.until(lambda: not here.machines(state="running"), within=10)
    here.minutes(1)


def later(here, days=2):
    """Let days pass in which nothing happens: the first day is over for a day."""
    here.world.move_to(here.now + days * 86_400.0)
    here.minutes(2)


def noted(here):
    """Return what is noted of the pool, on all days together."""
    kept = here.here.stored.costs
    total = Boots()
    for boots in (boots for of in (kept.kept, *kept.months.values()) for boots in of.boots.values()):
        total = total.plus(boots)
    return total


def savings(here):
    return [*here.here.call("operate", event("status"))["status"]["savings"]]


def test_status_says_in_a_line_what_shorter_boots_would_have_saved_of_machines_and_of_waiting():
    with scene(a_fleet()) as here:
        boots(here)
        hours = sum(machine.booted_at - machine.launched_at for machine in here.ever()) / 3600
        assert (len(here.ever()), round(hours * 3600 / BOOTS)) == (BOOTS, pytest.approx(260, abs=60))
        later(here)
        [line] = savings(here)
        said = re.fullmatch(
            r"by estimate, shorter boots would have saved \$(\d+) of machines and (\d+) min of waiting in the last 3 days: "
            r"a ready image for cpu \(docs/costs\.md#shorter-boots\)",
            line,
        )
        assert said, line
        assert float(said[1]) == pytest.approx(2 / 3 * hours * USD, abs=0.6)
        assert float(said[2]) == pytest.approx(2 / 3 * hours * 60, abs=3.0)


def test_a_warm_pool_saves_less_its_disks_and_the_first_boot_of_each_agent_at_once():
    offering = an_offering(volume_usd_per_hour=VOLUME_USD)
    [pool] = assess(a_snapshot(a_view()), a_fleet_of(a_pool("cpu", boot_seconds=240.0, offerings=(offering,)))).pools.values()
    usd, hours = warm_pool_saves(pool, [Boots(number=6, usd=1.2, wait_hours=0.4, agents=1)])
    assert (usd, hours) == (pytest.approx(2 / 3 * 1.2 * 5 / 6 - 24 * VOLUME_USD), pytest.approx(2 / 3 * 0.4 * 5 / 6))


def test_nothing_is_said_of_savings_before_the_first_day_is_over_for_a_day():
    with scene(a_fleet()) as here:
        boots(here)
        assert savings(here) == []
        later(here, days=1)
        assert savings(here) == []
        later(here, days=1)
        assert len(savings(here)) == 1


def test_several_pools_are_one_line():
    pool = f"{{$pool, executors: 1, max_agents: 4, {POOL}}}"
    fleet = a_fleet().partition("pools:")[0] + f"pools: {{cpu: {pool}, gpu: {pool}}}"
    with scene(fleet) as here:
        boots(here)
        boots(here, label="gpu")
        later(here)
        [line] = savings(here)
        assert "a ready image for cpu and a ready image for gpu" in line


def test_the_command_and_the_page_show_it_after_the_pools():
    with scene(a_fleet()) as here:
        boots(here)
        later(here)
        with served(here.here, "operate"):
            drawn = command(here.here, "status", columns=200).stdout
            assert "by estimate, shorter boots would have saved $" in drawn.splitlines()[-1]
        source = DeployedSource(here.here, lambda: past_of(here.here.metrics), lambda: here.now)
        page = TestClient(Page(source, "t", 1.0).app(), base_url="http://127.0.0.1:8765").get("/?token=t").text
        assert page.index("<h2>Pools") < page.index("by estimate, shorter boots would have saved $")


@pytest.mark.parametrize(
    "keys",
    [
        "market: spot",
        "reuse: never",
        "warm_pool: {max_age_hours: 0.01}",  # what it stops is terminated half a minute later
        "schedules: [{days: [sun], from: '01:00', to: '02:00', time_zone: UTC, warm_pool: {min_agents: 1}}]",
    ],
)
def test_a_pool_that_cannot_stop_its_agents_or_does_is_told_of_a_ready_image_alone(keys):
    with scene(a_fleet(keys)) as here:
        boots(here)
        later(here)
        [line] = savings(here)
        assert "a ready image" in line
        assert "warm pool" not in line


@pytest.mark.parametrize(
    ("fleet", "why"),
    [
        (a_fleet(boot_seconds=40), "no image boots faster"),
        (a_fleet().replace("wait_usd_per_hour: 20", "wait_usd_per_hour: 0"), "it saves less than a dollar"),
    ],
)
def test_what_would_save_next_to_nothing_is_not_said(fleet, why):
    with scene(fleet) as here:
        boots(here, 3)
        assert noted(here).number >= 2, "the first one was before the first look"
        later(here)
        assert savings(here) == [], why


def test_a_fleet_that_launched_nothing_keeps_no_boots_and_is_told_nothing():
    with scene(a_fleet()) as here:
        here.minutes(20)
        assert savings(here) == []
        assert here.here.stored.costs.writes <= 1


def test_boots_of_eight_days_ago_do_not_count():
    with scene(a_fleet()) as here:
        boots(here)
        later(here)
        assert savings(here)
        later(here, days=6)
        assert savings(here) == []


def test_jobs_that_found_a_free_agent_waited_for_no_boot():
    with scene(a_fleet("min_agents: 1")) as here:
        here.until(lambda: here.ready("cpu"), within=10)
        for number in range(4):
            build = here.submit(f"app/job-{number}", "cpu", 2)
            here.until(lambda build=build: build.ended, within=5)
        assert noted(here) == Boots(1, noted(here).usd, 0.0, 1)


def test_a_job_that_waited_for_longer_than_the_boot_counts_for_the_time_of_the_boot_alone():
    with scene(a_fleet()) as here:
        here.order("hold", pool="cpu", minutes=30, reason="a test")
        build = here.submit("app/job", "cpu", 10)
        here.until(lambda: build.started_at, within=45)
        here.minutes(2)
        [machine] = here.ever()
        assert machine.launched_at - build.queued_at > 29 * 60
        assert noted(here).wait_hours == pytest.approx((machine.booted_at - machine.launched_at) / 3600, abs=0.02)


def test_status_goes_without_if_the_costs_cannot_be_read(monkeypatch):
    with scene(a_fleet()) as here:
        boots(here)

        def fails(*_arguments):
            raise TransientError("BatchGetItem: the table is throttled")

        monkeypatch.setattr(InMemoryCosts, "month", fails)
        assert savings(here) == []
        assert here.here.call("operate", event("status"))["status"]["agents"] == 0
        assert any("costs_not_read" in str(line) for line in here.here.logged)


def test_sums_of_days_keep_the_most_agents_at_once():
    assert Boots(2, 1.0, 0.5, 3).plus(Boots(1, 0.5, 0.25, 2)) == Boots(3, 1.5, 0.75, 3)
