"""The sentence of each reason is true of the figures in it, over random fleets in the middle of their lives."""

import re
from collections.abc import Callable

from hypothesis import given, note
from hypothesis import strategies as st

from autoscaler.domain.facts.reasons import Reason
from support.builders import a_build, a_fleet, a_learned, a_pool, a_snapshot, a_view, an_agent, an_item, an_offering, key_of, with_beacons
from support.fleets import looks
from support.looks import Look

_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
_DURATION = r"(?:\d+(?:\.\d+)? (?:d|h|min|s)\b ?)+"
_FIGURE = r"[\d,.]+"


def amount(text: str) -> float:
    """Read a number, dollars, or a duration."""
    parts = re.findall(r"([\d,.]+) ?(d|h|min|s)?\b", text.lstrip("$"))
    return sum(float(number.replace(",", "")) * _SECONDS.get(unit, 1) for number, unit in parts)


def larger(first: float, second: float) -> bool:
    return first > second


def at_least(first: float, second: float) -> bool:
    return first >= second


def smaller(first: float, second: float) -> bool:
    return first < second


LIMIT = (rf"one more would make ({_FIGURE}) [a-z ]+ in .+, the limit is ({_FIGURE})$", larger)
SPENT = (rf"\$({_FIGURE}) of \$({_FIGURE}) are spent this month", at_least)
USED = (rf"({_FIGURE}) of ({_FIGURE}) hours are used today .*nothing new", at_least)
AGED = (rf"({_DURATION}) ?ago, at most ({_DURATION}) ?are wanted", larger)
# How a reason writes two figures that it compares, and what must be true of them. A reason may have sentences without figures, too.
COMPARES: dict[Reason, list[tuple[str, Callable[[float, float], bool]]]] = {
    Reason.WORTH_WAITING: [(rf"together, \$({_FIGURE}), against an agent of \$({_FIGURE})$", smaller)],
    Reason.STARVED_QUEUE: [(rf"together, \$({_FIGURE}), for an agent of \$({_FIGURE})", at_least)],
    Reason.MAX_AGENTS: [LIMIT],
    Reason.TEAM_MAX_AGENTS: [LIMIT],
    Reason.FLEET_MAX_AGENTS: [LIMIT],
    Reason.LAUNCH_RATE: [LIMIT],
    Reason.USD_PER_HOUR: [LIMIT],
    Reason.USD_PER_MONTH: [LIMIT, SPENT],
    Reason.HOURS_PER_DAY: [LIMIT, USED],
    Reason.MIN_AGENTS: [(rf"({_FIGURE}) of ({_FIGURE}) agents", smaller)],
    Reason.WARM_EXECUTORS: [(rf"({_FIGURE}) of ({_FIGURE}) executors", smaller)],
    Reason.FILLS_WARM_POOL: [(rf"({_FIGURE}) of ({_FIGURE}) agents", smaller)],
    Reason.FORESEEN: [(rf"keeping it spares \$({_FIGURE}), for a boot of \$({_FIGURE})", larger)],
    Reason.WINDOW_OPEN: [(rf"seen for ({_DURATION}) ?of ({_DURATION})$", smaller)],
    Reason.SURPLUS: [(rf"no more than ({_FIGURE}) of ({_FIGURE}) (?:agents|machines) were needed", smaller)],
    Reason.MAX_AGENT_HOURS: [AGED],
    Reason.WARM_POOL_AGE: [(rf"stopped for ({_DURATION}), at most ({_DURATION}) ?are wanted", larger)],
    Reason.FAR_OVERDUE: [(rf"run on it for ({_DURATION}); the longest of its last builds took ({_DURATION})$", larger)],
    Reason.STILL_BUSY: [(r": ()(one|\d+) builds? (?:is|are) still running", lambda _, builds: builds >= 1)],
}


def assert_true(said):
    """Check the figures that a step or a hold compares; tell whether there are any."""
    for sentence, holds in COMPARES.get(said.reason, ()):
        if figures := re.search(sentence, said.detail):
            note(f"{said.reason}: {said.detail}")
            first, second = (amount("1" if figure == "one" else figure or "0") for figure in figures.groups())
            assert holds(first, second), f"{said.reason}: {said.detail}"
            return True
    return False


@given(looks())
def test_the_sentence_of_a_reason_is_true_of_the_figures_in_it(look):
    for plan in look.plans:
        for said in (*plan.steps, *plan.held):
            assert_true(said)
            assert not re.search(r"\de[+-]\d|\b(inf|nan)\b|(?<!of )\b1 (builds|items|agents) |\b0 builds ", said.detail), said.detail


@st.composite
def busy_looks(draw) -> Look:
    """Agents at work, jobs that wait for them, and limits of which each may be reached."""
    busy, minutes = draw(st.integers(1, 3)), draw(st.sampled_from([0.5, 3.4, 6.0, 30.0, 600.0]))
    limits = {"max_agents": busy, "max_launches_per_hour": 1, "max_usd_per_hour": 3.0 * busy + 1e-7, "max_usd_per_month": 0.01}
    reached = {name: limits[name] for name in draw(st.sets(st.sampled_from(sorted(limits)), max_size=2))}
    pool = a_pool(
        wait_usd_per_hour=draw(st.sampled_from([0.001, 0.1, 1.0, 20.0, 5000.0])),
        max_wait_seconds=draw(st.sampled_from([600.0, 1e7])),
        max_agents=draw(st.sampled_from([busy, busy + 1, 20])),
        offerings=(an_offering(usd_per_hour=draw(st.sampled_from([0.0021, 3.0, 12.0]))),),
    )
    agents = [an_agent(number, builds=(a_build(),)) for number in range(busy)]
    view = a_view(*(node for _, node in agents), items=tuple(an_item(number) for number in range(draw(st.integers(1, 40)))))
    learned = {"main": a_learned(samples={key_of("cpu"): (60 * minutes,)})}
    fleet = a_fleet(pool, **reached)
    return Look(with_beacons(a_snapshot(view, records=tuple(record for record, _ in agents), learned=learned), fleet), fleet)


@given(looks() | busy_looks() | busy_looks())
def test_where_a_limit_keeps_an_agent_from_being_launched_the_limit_is_the_reason(look):
    """Waiting is said to cost less than an agent only if it does, and never beside a refusal of that very agent."""
    for said in look.up.held:
        assert assert_true(said) or said.reason is not Reason.WORTH_WAITING, said.detail
    for plan in look.plans:
        for said in plan.steps:
            assert_true(said)
