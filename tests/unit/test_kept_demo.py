"""The demo that is kept: it answers between any two steps, however slow the machine is."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from autoscaler.config import load_settings
from autoscaler_workbench.cli import demo
from autoscaler_workbench.cli.demo_command import Demo, too_few
from autoscaler_workbench.cli.remote import Deployed
from autoscaler_workbench.cli.screen_reasons import newest_mail
from autoscaler_workbench.fakes.http_fakes.aws import functions as lambda_api
from autoscaler_workbench.fakes.http_fakes.aws.functions import LambdaApi
from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET
from autoscaler_workbench.simulate.run import prepare
from autoscaler_workbench.simulate.traces import load_trace

FLEET = """
fleet: small
limits: {max_agents: 5, max_launches_per_hour: 100, max_usd_per_hour: 10, max_usd_per_month: 1000}
controllers: {main: {url: "http://main/"}}
pools:
  cpu: {executors: 2, launch_template: t, instance_types: [c5.xlarge], platform: linux, max_agents: 5}
"""
_ANSWERED_WITHIN = 12  # minutes of the demo


@pytest.fixture
def show(tmp_path, monkeypatch):
    fleet, trace = tmp_path / "fleet.yaml", tmp_path / "jobs.csv"
    fleet.write_text(FLEET, encoding="utf-8")
    rows = "".join(f"{1_800_000_000 + 30 * number},300,cpu,job-{number}\n" for number in range(20))
    trace.write_text(f"queued_at,duration_s,label,job\n{rows}", encoding="utf-8")
    settings = load_settings(fleet)
    run = prepare(load_trace(trace, hours=1.0), settings.domain(), hours=1.0, seed=1)
    monkeypatch.setattr(demo, "_MINUTE_TAKES_SECONDS", 0.0)  # a machine on which each minute takes longer than it may
    return lambda warm_up: demo.Show(
        run=run, settings=settings, fleet_file=fleet, log_file=tmp_path / "log", kept=demo.Kept(port=0, warm_up=warm_up)
    )


@pytest.mark.parametrize("warm_up", [0, 1000])
def test_a_slow_machine_answers_in_its_warm_up_and_after_it(show, warm_up, monkeypatch):
    urls = []
    monkeypatch.setattr(demo, "serve", lambda server, world, serve=demo.serve: (urls.append(server.url), serve(server, world)))
    playing = show(warm_up).play()
    next(playing)
    with ThreadPoolExecutor(1) as person:
        asked = person.submit(lambda: Deployed(stack="", local=urls[0]).call("operate", {"action": "status"}))
        for _minute in range(_ANSWERED_WITHIN):
            if not asked.done():
                next(playing)
        answered = asked.done()
        if not answered:
            playing.close()
            pytest.fail("nobody answered")
    playing.close()
    status = asked.result()["status"]
    assert (status["max_agents"], status["nobody_told"]) == (5, "")


def test_an_order_whose_caller_was_told_that_it_failed_is_not_carried_out_later(monkeypatch):
    monkeypatch.setattr(lambda_api, "_ANSWERED_WITHIN_SECONDS", 0.01)
    api, carried_out = LambdaApi(frozenset({"operate"})), []
    answer = api.handle("/2015-03-31/functions/operate/invocations", b"{}")
    assert b"operate was not served within" in answer.body
    api.serve_waiting(lambda name, _event: carried_out.append(name) or {})
    assert carried_out == []


@pytest.mark.parametrize(
    ("compared", "taken", "said"),
    [(0, 500, "only 0 steps compared"), (19, 500, "at least 20"), (20, 500, ""), (7, 7, ""), (6, 7, "at least 7")],
)
def test_a_proof_of_few_steps_is_none_unless_there_are_no_more(compared, taken, said):
    assert said in too_few(compared, taken)
    assert bool(said) is bool(too_few(compared, taken))


def test_the_proof_begins_in_the_busiest_hour():
    asked = Demo(trace=None, fleet_file=EXAMPLE_FLEET, settings=load_settings(EXAMPLE_FLEET), hours=24.0, seed=1, broken=set(), quiet=True)
    run = asked.busy_part()
    first_hour = [row for row in run.trace.rows if row.queued_at < run.trace.start_at + 3600]
    assert len(first_hour) >= 20
    assert run.trace.start_at > asked.run().trace.start_at


@pytest.mark.long
def test_the_mail_that_an_operator_would_get_is_shown(show):
    shown = show(1000)
    shown.broken.add("cpu")
    for _minute, _progress in zip(range(60), shown.play(), strict=False):
        if shown.mails and "boot" in shown.mails[-1][0]:
            break
    lines = newest_mail(shown.mails)
    assert lines[1:3] == (f"{len(shown.mails)} mails to the operator, the newest:", "  [small] agents of cpu do not boot")
    assert any("autoscaler why cpu" in line for line in lines)
    assert newest_mail([]) == ()
