"""A harder life: what the random worlds of the properties may do, played from a fixed seed.

The list is the oracle's own, so that a rule that the properties gain does not move what was recorded.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from autoscaler_workbench.fakes.world.ec2.error_codes import LAUNCH_CODES
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from autoscaler_workbench.fakes.world.jenkins.controller import CURRENT_VERSION, DROPS_BUILDS
from support.machine import AnythingHappens
from support.machine_fleet import POOLS

Draw = Callable[[Random], dict[str, Any]]
_LABELS = ("cpu", "gpu", "linux", "linux&&!gpu")
# How often, what, and with which particulars.
HAPPENINGS: tuple[tuple[int, str, Draw], ...] = (
    (8, "jobs_arrive", lambda c: {"label": c.choice(_LABELS), "seconds": c.uniform(20, 2400), "kind": c.choice(list(Kind)), "count": 2}),
    (1, "a_pipeline_holds_one_executor_and_asks_for_another", lambda c: {"seconds": c.uniform(20, 900)}),
    (6, "time_passes", lambda c: {"minutes": c.randint(1, 12)}),
    (1, "calls_begin_to_fail", lambda c: {"share": c.choice([0.0, 0.05, 0.2])}),
    (1, "the_controller_restarts", lambda _: {}),
    (1, "configuration_as_code_is_reloaded", lambda _: {}),
    (1, "the_controller_prepares_to_shut_down_and_does_not", lambda c: {"minutes": c.randint(1, 5)}),
    (1, "a_person_takes_a_node_offline_and_gives_it_back", lambda c: {"which": c.randrange(10), "minutes": c.randint(1, 30)}),
    (1, "an_instance_is_taken_away", lambda c: {"which": c.randrange(10), "warned": c.random() < 0.5}),
    (1, "a_connection_is_lost", lambda c: {"which": c.randrange(10)}),
    (1, "ec2_shows_nothing_for_a_while", lambda c: {"minutes": c.randint(1, 30)}),
    (1, "instances_are_missing_from_some_lists", lambda c: {"missing": c.choice([0.0, 0.0, 0.2])}),
    (1, "an_agents_process_restarts", lambda c: {"which": c.randrange(10)}),
    (2, "a_person_launches_or_drains", lambda c: {"pool": c.choice(POOLS), "count": c.randint(1, 3), "more": c.random() < 0.5}),
    (1, "a_person_holds_a_pool", lambda c: {"pool": c.choice(POOLS), "minutes": c.randint(1, 60), "freeze": c.random() < 0.5}),
    (1, "a_plugin_keeps_a_job_from_all_nodes", lambda c: {"which": c.randrange(6), "minutes": c.randint(1, 60)}),
    (1, "a_record_cannot_be_read_for_a_while", lambda c: {"which": c.randrange(10), "minutes": c.randint(1, 10)}),
    (1, "a_machine_begins_to_fail_whatever_it_builds", lambda c: {"which": c.randrange(10)}),
    (1, "a_launch_template_gets_a_new_version", lambda c: {"pool": c.choice(POOLS)}),
    (1, "capacity_is_short_for_a_while", lambda c: {"pool": c.choice(POOLS), "left": c.randrange(3)}),
    (1, "the_months_money_is_spent_for_a_while", lambda c: {"minutes": c.randint(2, 40)}),
    (1, "the_state_is_lost", lambda _: {}),
    (1, "the_spot_price_moves", lambda c: {"usd": c.uniform(0.5, 3.0)}),
    (
        1,
        "ec2_refuses_launches_for_a_while",
        lambda c: {"pool": c.choice(POOLS), "code": c.choice(LAUNCH_CODES), "which": c.randrange(2), "alone": c.random() < 0.3},
    ),
)
_ALWAYS = frozenset({"jobs_arrive", "time_passes"})
_HIDE_INSTANCES = frozenset({"ec2_shows_nothing_for_a_while", "instances_are_missing_from_some_lists"})


def begin(seed: int, *, slots: bool) -> AnythingHappens:
    """Make a world in which anything happens."""
    machine = AnythingHappens()
    version = DROPS_BUILDS if seed % 2 else CURRENT_VERSION
    lag = 30.0 if slots else 0.0
    machine.begin(seed=seed, lag=lag, slots=slots, resume=180.0, version=version, warm=None, teams={}, images=False, lends=False)
    return machine


def happen(machine: AnythingHappens, chance: Random) -> None:
    """Let one of them happen; what cannot happen now is left out."""
    (_, name, draw), *_ = chance.choices(HAPPENINGS, weights=[often for often, _, _ in HAPPENINGS])
    particulars = draw(chance)
    if name not in _ALWAYS and (not machine.world.alive() or machine.jenkins.up != "up"):
        return
    if name in _HIDE_INSTANCES and machine.world.timeline.now < machine.whole_until:
        return
    getattr(machine, name)(**particulars)
