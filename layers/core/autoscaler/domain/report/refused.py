"""Launches that EC2 keeps refusing, for people: of which pool, with which code, since when, and when one agent tries again."""

from collections.abc import Iterator, Mapping

from autoscaler.domain.facts.memory import Trial
from autoscaler.domain.launch.backoff import held_by_what_is_stopped, lacks_capacity
from autoscaler.domain.report.told import Seen
from autoscaler.domain.situation.breakers import ACCOUNT, due_at, in_the_way, next_try_at, open_trial, told_refused
from autoscaler.domain.situation.situation import Situation

# Capacity that is back within minutes needs no person. What was refused once, and then not wanted, may be had again by now.
_LASTING_SECONDS = 170.0
_OFTEN = 2
_RUNBOOK = "operations.md#launches-refused"


def launches_seen(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name the pools whose launches EC2 keeps refusing, and the account if it is the cause."""
    account = open_trial(situation.memory, ACCOUNT)
    if account and _lasts(situation, {ACCOUNT: account}):
        again_at = min(due_at(account, pool) for pool in situation.fleet.pools.values())
        text = f"{told_refused({ACCOUNT: account}, again_at, situation.now)}.\nThis holds for launches of all pools."
        yield "launches/account", Seen("EC2 refuses launches of this account", text, _RUNBOOK, "autoscaler plan")
    for name, pool in situation.fleet.pools.items():
        trials = {scope: trial for scope, trial in in_the_way(pool, situation.memory).items() if scope != ACCOUNT}
        if _lasts(situation, trials):
            yield f"launches/{name}", _refused(situation, name, trials)


def why_no_agent(situation: Situation, pool: str) -> str:
    """Say why EC2 lets a pool have no agent, in the words of the message; "" if there is none."""
    messages = dict(launches_seen(situation))
    seen = messages.get(f"launches/{pool}") or messages.get("launches/account")
    return seen.text.splitlines()[0] if seen else ""


def _lasts(situation: Situation, trials: Mapping[str, Trial]) -> bool:
    often = max((trial.failures for trial in trials.values()), default=0) >= _OFTEN
    return often and situation.now - min(trial.since_at for trial in trials.values()) >= _LASTING_SECONDS


def _refused(situation: Situation, pool: str, trials: Mapping[str, Trial]) -> Seen:
    is_short = all(lacks_capacity(trial.code) for trial in trials.values())
    title = f"EC2 has no machines for {pool}" if is_short else f"EC2 refuses launches of {pool}"
    why = told_refused(trials, next_try_at(situation.fleet.pools[pool], situation.memory), situation.now)
    then = "Its jobs wait for that, unless another pool can take them. Launches of other pools go on."
    if any(held_by_what_is_stopped(trial.code) for trial in trials.values()):
        then = f"Stopped agents that no job waits for are terminated, since each holds one (makes-way).\n{then}"
    return Seen(title, f"No agent of {pool} can be had: {why}.\n{then}", _RUNBOOK, f"autoscaler why {pool}")
