"""Limits that people are told of: the month's money, the day's hours, and what keeps the jobs of a team or of the fleet waiting."""

from collections.abc import Iterator

from autoscaler.domain.facts.fleet import AtMonthLimit
from autoscaler.domain.facts.metering import Level, LevelKind, hours_in_day, levels_out_of_hours, spent_in_month, spent_levels
from autoscaler.domain.launch.budget import Usage
from autoscaler.domain.report.limits import cheapest_of, held_back
from autoscaler.domain.report.told import Seen
from autoscaler.domain.situation.situation import Situation


def limits_seen(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name the limits that are reached, each with its message."""
    for level in spent_levels(situation.memory.month, situation.fleet, situation.now):
        yield f"limit/usd-per-month{_place(level)}", _month(situation, level)
    for level in levels_out_of_hours(situation.memory.day, situation.fleet, situation.now):
        yield f"limit/hours-per-day{_place(level)}", _day(situation, level)
    for use in held_back(situation):
        yield from _full(situation, use)


def _month(situation: Situation, level: Level) -> Seen:
    spent, limit = spent_in_month(situation.memory.month, level), level.ceilings.max_usd_per_month
    stops = situation.fleet.limits.at_month_limit is AtMonthLimit.STOP
    there = "" if level.kind is LevelKind.FLEET else f"In {level.text}: "
    then = "Agents are drained and nothing is launched" if stops else "Nothing is launched, agents that run go on"
    text = f"{there}${spent:,.2f} of ${limit:,g} are spent.\n{then} until the month (UTC) ends or the limit is raised."
    return Seen(f"the month's limit{_of(level)} is reached", text, "operations.md#usd-per-month", "autoscaler status")


def _day(situation: Situation, level: Level) -> Seen:
    hours = hours_in_day(situation.memory.day, level, situation.now)
    used = f"The agents of {level.text} have run {hours:,.1f} of {level.ceilings.max_hours_per_day:,g} hours today."
    then = "None is launched and none takes another build until midnight UTC; running builds go on."
    return Seen(f"the day's hours{_of(level)} are used", f"{used}\n{then}", "schedules.md#hours-a-day", "autoscaler status")


def _full(situation: Situation, use: Usage) -> Iterator[tuple[str, Seen]]:
    """Name the limits that leave no room for one more agent, but for that of the month, which has its own message."""
    level, limits, of = use.level, use.level.ceilings, _of(use.level)
    usd, agents = use.usd_per_hour + cheapest_of(situation.fleet, level), f"{use.agents} agents are there"
    launched = f"{use.launched} agents were launched within the hour"
    cost = f"the agents cost up to ${use.usd_per_hour:,.2f} an hour"
    for name, key, with_one_more, most, used, heading in (
        ("agents", "max_agents", use.agents + 1, limits.max_agents, agents, "agents-limit"),
        ("launch-rate", "max_launches_per_hour", use.launched + 1, limits.max_launches_per_hour, launched, "launch-rate"),
        ("usd-per-hour", "max_usd_per_hour", usd, limits.max_usd_per_hour, cost, "usd-per-hour"),
    ):
        if with_one_more > most:
            text = f"Jobs{of} wait, {used}, and {key} ({most:g}) leaves no room for another one."
            runbook = f"operations.md#{'team-limits' if of else heading}"
            yield f"limit/{name}{_place(level)}", Seen(f"the limit {key}{of} is reached", text, runbook, "autoscaler plan")


def _place(level: Level) -> str:
    return "" if level.kind is LevelKind.FLEET else f"/{level.text}"


def _of(level: Level) -> str:
    return "" if level.kind is LevelKind.FLEET else f" of {level.text}"
