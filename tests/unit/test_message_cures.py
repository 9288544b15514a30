"""A message has the command that ends what it tells of, as `status` and `why` have it."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.orders import BUDGET, Hold, Overrides, Scope
from autoscaler.domain.learn import assess
from autoscaler.domain.report.messages import write_messages
from autoscaler.domain.report.told import Told
from autoscaler.domain.situation.bets import TrialOf
from support.builders import (
    NOW,
    a_fleet,
    a_memory,
    a_pool,
    a_snapshot,
    a_trial,
    a_view,
    an_empty_window,
    an_item,
    boots_failed,
)
from support.told import explain

FLEET = a_fleet(a_pool("cpu"), a_pool("gpu"))


def snapshot(trials=None, holds=()):
    waiting = an_item(1, job="build", label="cpu", waiting_seconds=9000.0)
    return a_snapshot(
        a_view(items=(waiting,)),
        memory=a_memory(windows=an_empty_window(), trials=trials or {}),
        overrides=Overrides(holds=holds),
    )


def told(**facts):
    _, messages = write_messages(Told(), assess(snapshot(**facts), FLEET), "docs/")
    return {message.about: message.text.splitlines() for message in messages}


def texts(**facts):
    return {about: lines[-1] for about, lines in told(**facts).items()}


FAILED = boots_failed(600.0, failures=4, since_at=NOW - 1380, failed=("i-7", "i-8"))


@pytest.mark.parametrize(
    ("about", "trials"),
    [
        ("breaker/cpu", {TrialOf.BOOT.scope("cpu"): FAILED}),
        ("image/cpu", {TrialOf.IMAGE.scope("cpu"): replace(FAILED, version="1/ami-2")}),
        ("connect/main", {TrialOf.CONNECT.scope("main"): a_trial(600.0, failures=3, why="403", failed=("i-1",))}),
    ],
)
def test_a_broken_pool_is_resumed_once_it_is_mended(about, trials):
    assert texts(trials=trials)[about] == "Once it is mended: autoscaler resume --breaker cpu"


@pytest.mark.parametrize(("worked", "says"), [(False, "4 boots in a row failed"), (True, "4 boots failed")])
def test_boots_failed_in_a_row_only_if_none_worked_in_between(worked, says):
    trial = replace(FAILED, outcomes={"i-6": worked, "i-7": False, "i-8": False})
    assert told(trials={TrialOf.BOOT.scope("cpu"): trial})["breaker/cpu"][0].startswith(says)


def test_why_has_it_too():
    assert "once it is mended: autoscaler resume --breaker cpu" in explain(snapshot({TrialOf.BOOT.scope("cpu"): FAILED}), FLEET, "cpu")


@pytest.mark.parametrize(
    ("hold", "ends"),
    [
        ({"scope": Scope.POOL, "name": "cpu"}, "--pool cpu"),
        ({"scope": Scope.CONTROLLER, "name": "main"}, "--controller main"),
        ({"scope": Scope.FLEET, "name": ""}, "--fleet"),
        ({"scope": Scope.LABEL, "name": "cpu"}, "--label cpu"),
        ({"scope": Scope.FLEET, "name": "", "by": BUDGET}, "--budget"),
    ],
)
def test_a_hold_for_which_jobs_wait_too_long_is_ended_by_its_resume(hold, ends):
    held = Hold(**({"by": "ada", "reason": "driver", "since_at": NOW - 9000, "until_at": NOW + 9000} | hold))
    [last] = [line for about, line in texts(holds=(held,)).items() if "/held/" in about]
    assert last == f"To end the hold now: autoscaler resume {ends}"
