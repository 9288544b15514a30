"""The page of a fleet: who may look, what it says, what it orders, and that names of jobs are no HTML."""

import pytest
from starlette.testclient import TestClient

from autoscaler.errors import TransientError
from autoscaler_workbench.cli.ui import DEMO_COSTS_SECONDS, DeployedSource
from autoscaler_workbench.ui import view
from autoscaler_workbench.ui.app import Page
from autoscaler_workbench.ui.day import DayPage
from support.page_source import NOW, STATUS, PageSource, RecordedMoments, an_agent

TOKEN = "0123456789abcdef"
HERE = "http://127.0.0.1:8765"


@pytest.fixture
def source():
    return PageSource()


@pytest.fixture
def stranger(source):
    return TestClient(Page(source, TOKEN, 0.01).app(), base_url=HERE)


@pytest.fixture
def browser(stranger):
    assert stranger.get(f"/?token={TOKEN}").status_code == 200
    return stranger


@pytest.mark.parametrize("path", ["/", "/live", "/why?subject=gpu", "/?token=wrong"])
def test_without_the_printed_address_nothing_is_shown(stranger, path):
    assert stranger.get(path).status_code == 403


def test_the_token_leaves_the_address_and_no_script_can_read_the_cookie(stranger):
    answer = stranger.get(f"/?token={TOKEN}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert "httponly" in answer.headers["set-cookie"].lower()
    assert "samesite=strict" in answer.headers["set-cookie"].lower()


def test_another_hosts_name_is_refused_since_a_page_elsewhere_may_have_made_it_ours(browser):
    assert browser.get("/", headers={"Host": "evil.example.org"}).status_code == 400


def test_the_page_says_what_waits_what_runs_and_what_was_done(browser):
    page = browser.get("/").text
    for text in ("2 waiting", "longest 13 min", "gpu-3", "booting", "$2.50 of $10.00", "starved-queue", "BreakersOpen"):
        assert text in page


def test_a_pool_with_nothing_in_it_is_not_shown(browser):
    assert "quiet</a>" not in browser.get("/").text


COSTS = {
    "month": "2027-01",
    "usd": 200.0,
    "entries": [{"name": f"<i>job</i>-{n}", "usd": 50.0 - n, "idle_usd": 12.5, "hours": 3.0, "controller": "main"} for n in range(12)],
}


def test_the_months_dearest_jobs_are_shown_and_their_names_are_no_html(browser, source):
    assert "dearest jobs" not in browser.get("/").text
    source.told["costs"] = COSTS
    page = browser.get("/").text
    for text in ("dearest jobs", "$200.00 in 2027-01", "&lt;i&gt;job&lt;/i&gt;-9", "$50.00", "25%", "$12.50", "and 2 jobs more"):
        assert text in page
    assert "job&lt;/i&gt;-10" not in page


def test_costs_that_cannot_be_read_leave_one_line_and_the_page(browser, source):
    source.told["costs"] = {"problem": "action (costs): unknown"}
    page = browser.get("/").text
    assert "action (costs): unknown" in page
    assert "2 waiting" in page


class Answering:
    """Functions that answer at once; ``fails``: those of costs do not."""

    def __init__(self):
        self.asked, self.fails = [], False

    def call(self, _function, event):
        self.asked.append(event["action"])
        if self.fails and event["action"] == "costs":
            raise TransientError("throttled\nthere")
        return {"action": event["action"]}


def test_costs_are_asked_for_every_five_minutes_and_their_failure_is_one_line():
    deployed, times = Answering(), iter((0.0, 15.0, 299.0, 300.0))
    source = DeployedSource(deployed, list, lambda: next(times))
    told = [source.overview() for _ in range(3)]
    assert deployed.asked == ["overview", "costs", "overview", "overview"]
    assert told[2]["costs"] == {"action": "costs"}
    deployed.fails = True
    assert source.overview() == {"action": "overview", "costs": {"problem": "throttled there"}}


def test_names_of_jobs_are_no_html(browser):
    page = browser.get("/").text
    assert "<b>unix</b>" not in page
    assert "&lt;b&gt;unix&lt;/b&gt;/PR-13" in page


def test_why_is_asked_and_answered_in_words(browser):
    assert "gpu-1 waits for an executor" in browser.get("/why", params={"subject": "gpu-1"}).text
    assert "no job that waits or runs" in browser.get("/why", params={"subject": "nosuch"}).text


def test_a_source_that_fails_leaves_one_line_and_the_page(browser, source):
    source.fails = "operate could not be invoked:\n ExpiredToken"
    page = browser.get("/")
    assert page.status_code == 200
    assert "operate could not be invoked: ExpiredToken" in page.text


def test_an_order_needs_the_token_beside_the_cookie(browser, source):
    assert browser.post("/order", data={"verb": "hold", "pool": "gpu"}).status_code == 403
    assert source.orders == []
    answer = browser.post("/order", data={"verb": "hold", "pool": "gpu", "count": "", "token": TOKEN})
    assert "hold: done" in answer.text
    assert source.orders == [("hold", {"pool": "gpu"})]


def test_an_order_needs_the_cookie_beside_the_token(stranger, source):
    assert stranger.post("/order", data={"verb": "hold", "token": TOKEN}).status_code == 403
    assert source.orders == []


def test_a_verb_that_is_none_is_refused_and_a_wrong_order_is_one_line(browser, source):
    assert browser.post("/order", data={"verb": "purge", "token": TOKEN}).status_code == 400
    answer = browser.post("/order", data={"verb": "launch", "pool": "nosuch", "token": TOKEN})
    assert "pool (nosuch): is not one of the pools" in answer.text
    assert 'class="problem"' in answer.text
    assert source.orders == []


def test_dollars_and_alarms_over_time_are_drawn_and_a_runbook_that_is_no_address_is_text(browser, source):
    page = browser.get("/").text
    assert "02:00 to 08:00 UTC: at most $8.00, at 02:08; " in page
    assert page.count('<path class="line"') == 2  # nobody measured for an hour
    assert "rang 2 times, for 1 h 10 min; it still rings" in page
    assert '<a href="#alarms">BreakersOpen</a> rings since 07:50 UTC</b>: Jobs wait too long. What to do: docs/x.md#y' in page
    assert '1 alarm is quiet: <abbr title="Jobs wait too long.">JobWaits</abbr>' in page
    source.unknown = "dollars an hour are not known: AccessDenied"
    assert '<p class="problem">dollars an hour are not known: AccessDenied</p>' in browser.get("/").text


@pytest.fixture
def day():
    return RecordedMoments()


@pytest.fixture
def day_browser(day):
    browser = TestClient(DayPage(day, TOKEN).app(), base_url=HERE)
    assert browser.get(f"/?token={TOKEN}").status_code == 200
    return browser


def test_a_recorded_day_opens_at_its_busiest_moment_and_takes_no_orders(day_browser, day):
    page = day_browser.get("/").text
    assert f'value="{int(NOW) - 3600}"' in page
    assert day.looked_at[-1] == NOW - 3600
    assert "Orders" not in page
    assert day_browser.post("/order", data={"verb": "hold", "token": TOKEN}).status_code == 404


@pytest.mark.parametrize(
    ("asked", "looked"), [(int(NOW) - 60, NOW - 60), (0, NOW - 7200), (10**11, NOW), ("", NOW), ("1e9", NOW), ("9" * 500, NOW)]
)
def test_any_moment_of_the_day_is_shown_and_none_beside_it(day_browser, day, asked, looked):
    assert "4 agents" in day_browser.get("/at", params={"at": asked}).text
    assert day.looked_at[-1] == looked


def test_why_is_asked_of_the_moment_that_is_shown(day_browser, day):
    assert "gpu-1 waits" in day_browser.get("/why", params={"subject": "gpu-1", "at": int(NOW) - 120}).text
    assert day.looked_at[-1] == NOW - 120


def test_a_recorded_day_is_for_those_with_its_address_too(day):
    stranger = TestClient(DayPage(day, TOKEN).app(), base_url=HERE)
    assert [stranger.get(path).status_code for path in ("/", "/at?at=1", "/why?subject=x")] == [403, 403, 403]


@pytest.mark.parametrize(
    ("word", "state", "busy", "colour", "kind"),
    [
        *(("busy", "works", 1, "busy", "busy"), ("idle", "idle", 0, "idle", "idle"), ("booting", "boots", 0, "booting", "booting")),
        *(("draining", "drains", 1, "draining", "draining"), ("ending", "ends", 0, "draining", "draining")),
        *(("stopped", "stopped", 0, "stopped", "stopped"), ("set aside", "reserved", 1, "reserved", "reserved")),
        ("set aside", "lost", 1, "trouble", "lost"),
    ],
)
def test_a_tile_has_the_colour_of_its_state(word, state, busy, colour, kind):
    told = {"status": STATUS, "agents": [an_agent("gpu-1", word=word, state=state, busy=busy)]}
    [tile] = view.pool_rows(told)[0].tiles
    assert (tile.state, tile.kind, tile.load) == (colour, kind, "" if colour == "stopped" else f"{busy} of 1")


def test_stopped_agents_are_told_beside_the_others_with_what_their_disks_cost(browser, source):
    off = [an_agent(f"gpu-{number}", word="stopped", busy=0, usd_per_hour=0.01, note="stopped 2 h ago") for number in (8, 9)]
    source.told["agents"] = [*source.told["agents"], *off]
    page = browser.get("/").text
    assert "4 of 10 agents, 1 of 4 executors busy, $2.00 an hour, 2 stopped (disks $0.02 an hour)" in page
    assert "stopped 2 h ago" in page


def test_a_limit_is_shown_full_high_or_ok():
    assert [(meter.label, meter.level) for meter in view.meters(STATUS)] == [
        ("agents", "ok"),
        ("dollars an hour", "ok"),
        ("dollars this month", "full"),
        ("launches in the hour", "high"),
    ]


def test_items_of_one_job_are_one_row_with_the_answer_about_the_first():
    one = {"job": "a", "label": "gpu", "waiting_seconds": 60.0, "detail": "no executor", "brief": "in 4 min", "of_pipeline": True}
    first = one | {"waiting_seconds": 900.0, "detail": "starts at once", "brief": "now"}
    [row, other] = view.queue_rows([first, one, one | {"label": "cpu"}, one | {"job": "b"}])
    assert (row.job, row.count, row.what, row.longest, row.label) == ("a", 3, "stage", "15 min", "gpu and cpu")
    assert (row.brief, row.detail) == ("now and 1 more", "starts at once (1 other answer for the rest)")
    assert (other.job, other.detail) == ("b", "no executor")


def test_a_line_that_ends_with_a_command_sets_it_apart_and_a_reason_that_names_us_does_not(browser, source):
    hold = {"pool": "a<b>", "freeze": False, "since_at": NOW - 60, "until_at": None, "by": "ada", "reason": "see: autoscaler docs"}
    source.told["holds"] = [hold]
    source.told["status"] = STATUS | {"problems": {"main": "by autoscaler: it cannot be read"}}
    page = browser.get("/").text
    assert "see: autoscaler docs; since 07:59 UTC nothing is launched or drained there; to end it now: <code>" in page
    assert "<code>autoscaler resume --pool &#39;a&lt;b&gt;&#39;</code>" in page
    assert '<p class="problem">main: by autoscaler: it cannot be read</p>' in page


def test_a_demos_costs_are_as_new_as_its_clock():
    deployed, times = Answering(), iter((0.0, 14.0, 15.0))
    source = DeployedSource(deployed, list, lambda: next(times), DEMO_COSTS_SECONDS)
    for _ in range(3):
        source.overview()
    assert deployed.asked.count("costs") == 2


def test_the_page_says_how_many_of_the_days_builds_count_as_results(browser, source):
    assert "results count" not in browser.get("/").text
    source.told = source.told | {"status": STATUS | {"results": "results are known of 1 of the 3 builds"}}
    assert "results are known of 1 of the 3 builds" in browser.get("/").text
