"""Series made by hand, of what limits, devices and other jobs leave."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate

from autoscaler.domain.facts.fleet import Team, WarmPool
from autoscaler.domain.facts.job_settings import JobWeights
from autoscaler.domain.facts.snapshot import InstanceState, RecordState
from corpus.case import Answers, Asks, Look
from corpus.hand import HOUR, long_known, look, minutes
from support.builders import (
    NOW,
    a_build,
    a_fleet,
    a_pool,
    a_snapshot,
    a_view,
    an_agent,
    an_instance,
    an_item,
)
from support.sides import POOL, gpu_node, seen, told


def no_device_is_free_on_a_machine_of_two_controllers() -> Iterator[Look]:
    """A job waits, and its executors are of no use."""
    shown = seen(gpu_node(), gpu_node(), items=(an_item(1, label="gpu"),), devices=told("held"))
    yield look(Asks.UP, a_fleet(POOL), shown, NOW)


def what_would_start_costs_more_than_may_be_spent_in_an_hour() -> Iterator[Look]:
    """Its disk alone does not."""
    warm = WarmPool(min_agents=0, max_agents=2, max_age_seconds=24 * HOUR)
    fleet = a_fleet(a_pool(warm_pool=warm), max_usd_per_hour=1.0)
    record = replace(an_agent()[0], state=RecordState.STOPPED)
    shown = a_snapshot(
        a_view(items=(an_item(1, label="cpu"),)),
        records=(record,),
        instances=(an_instance(state=InstanceState.STOPPED),),
    )
    yield look(Asks.UP, fleet, shown, NOW)


def an_agent_is_full_by_the_weight_of_its_builds() -> Iterator[Look]:
    """An executor more is there for what names its node."""
    weights = JobWeights(by_pattern=(("nightly/*", 4),))
    fleet = replace(a_fleet(a_pool(executors=8)), weights=weights)
    builds = tuple(a_build("nightly/all", key=f"{number}") for number in range(2))
    record, node = an_agent(builds=builds, executors=2)
    full = frozenset((node.name, "autoscaler-fleet-f", "autoscaler-full"))
    record = replace(record, labels=("cpu", "autoscaler-fleet-f"))
    yield from long_known(fleet)
    shown = a_snapshot(a_view(replace(node, labels=full)), records=(record,))
    yield from minutes(fleet, shown, 2)


def a_team_that_has_spent_nothing_waits_for_one_that_has_all() -> Iterator[Look]:
    """An agent at work hands over."""
    both = {name: Team(name=name, pools=frozenset({name})) for name in ("gpu", "web")}
    fleet = replace(a_fleet(a_pool("gpu"), a_pool("web"), max_agents=4), teams=both)
    agents = [an_agent(number, pool="web", builds=(a_build(),)) for number in range(4)]
    jobs = [an_item(1, label="gpu", waiting_seconds=4000.0)]
    jobs += [an_item(number, label="web", waiting_seconds=3000.0) for number in (2, 3)]
    view = a_view(*(node for _, node in agents), items=tuple(jobs))
    yield from long_known(fleet)
    began = {"launched_at": NOW - 600.0, "registered_at": NOW - 500.0}
    records = tuple(replace(record, **began) for record, _ in agents)
    yield from minutes(fleet, a_snapshot(view, records=records), 4)


def a_job_is_foreseen_once_the_one_before_it_has_come() -> Iterator[Look]:
    """That is learned between two looks of one instant."""
    fleet = a_fleet()
    hours = accumulate((1.0, 1.3, 1.6, 1.3, 1.9, 1.6, 1.3, 1.9))
    for number, at in enumerate(NOW + hour * HOUR for hour in hours):
        for job, seconds in (("builds", 0.0), ("tests", 240.0)):
            yield _learn(at + seconds - 60.0)
            yield _learn(at + seconds, job, number)
    at = NOW + 13.1 * HOUR
    yield _learn(at - 60.0)
    yield look(Asks.UP, fleet, a_snapshot(), at)
    yield _learn(at, "builds", 9)
    yield look(Asks.UP, fleet, a_snapshot(), at)


def _learn(at: float, job: str = "", number: int = 0) -> Look:
    items = [an_item(number, label="cpu", job=job, waiting_seconds=1.0)] if job else []
    shown = a_snapshot(a_view(items=tuple(items)))
    return look(Asks.LEARN, a_fleet(), shown, at, answers={"main": Answers()})


LIMITS = (
    no_device_is_free_on_a_machine_of_two_controllers,
    what_would_start_costs_more_than_may_be_spent_in_an_hour,
    an_agent_is_full_by_the_weight_of_its_builds,
    a_team_that_has_spent_nothing_waits_for_one_that_has_all,
    a_job_is_foreseen_once_the_one_before_it_has_come,
)
