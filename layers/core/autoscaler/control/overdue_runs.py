"""Asks runs whose builds run for far too long whether they have ended."""

from collections.abc import Iterable

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.memory import Learned
from autoscaler.domain.facts.runs import RunAnswer
from autoscaler.domain.facts.snapshot import ControllerView
from autoscaler.domain.situation.looks import runs_to_ask
from autoscaler.errors import AutoscalerError, NoAnswerError
from autoscaler.ports import Controller, Ports, StoredState

# On each controller: what it leaves is asked in the next look.
_SECONDS = 8.0


def ask_overdue(ports: Ports, fleet: Fleet, stored: StoredState, views: Iterable[ControllerView]) -> dict[str, dict[str, RunAnswer]]:
    """Return the answers by controller and run. A pass that remembers nothing asks nothing."""
    if not ports.asks_overdue_runs:
        return {}
    controllers, now = {controller.name: controller for controller in ports.controllers}, ports.clock()
    answers: dict[str, dict[str, RunAnswer]] = {}
    for view in views:
        runs = runs_to_ask(view, stored.memory, stored.records, stored.learned.get(view.name, Learned()), fleet, now)
        if runs:
            answers[view.name] = _ask(ports, controllers[view.name], runs)
    return answers


def _ask(ports: Ports, controller: Controller, runs: Iterable[str]) -> dict[str, RunAnswer]:
    until, answers = ports.clock() + _SECONDS, dict[str, RunAnswer]()
    for run in runs:
        if ports.clock() >= until:
            break
        try:
            answers[run] = controller.whether_ended(run)
        except NoAnswerError as error:
            ports.log("run_not_read", controller=controller.name, run=run, error=f"{type(error).__name__}: {error}")
            break
        except AutoscalerError as error:
            # It is asked again when its turn comes: what Jenkins refuses for ever must not keep others from theirs.
            ports.log("run_not_read", controller=controller.name, run=run, error=f"{type(error).__name__}: {error}")
            answers[run] = RunAnswer.NOT_TOLD
    return answers
