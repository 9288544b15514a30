"""Which conditions need a person now, since when, and where: judged at each look, remembered in what people were told."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from autoscaler.domain.report.datum import COUNT, Datum, one
from autoscaler.domain.report.rules import Comparison, Rule
from autoscaler.domain.report.told import Seen, Span, Told
from autoscaler.domain.report.told_ahead import told_by_now
from autoscaler.domain.wording import dollars, duration

# A look that sees otherwise ends nothing by itself: looks come a minute apart, and the next one has until then.
_ONE_LOOK_SECONDS = 90.0
# What was not seen for so long, since nobody looked, begins anew.
FORGOTTEN_SECONDS = 3600.0
_NAMES = 5
PROBLEM = "problem/"

Places = Mapping[str, Sequence[str]]  # by metric, where the fleet's value comes from


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A value that is beyond its threshold at this look. ``place``: "" for the fleet."""

    rule: Rule
    place: str
    value: float

    @property
    def name(self) -> str:
        """The name under which it is remembered."""
        return f"{PROBLEM}{self.rule.name}/{self.place}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A condition that has been so for long enough."""

    breach: Breach
    seen: Seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What one look found: the problems that are there, and what is remembered of those that may become one.

    ``began``: those that were none yet at the look before.
    """

    problems: tuple[Problem, ...]
    began: tuple[Problem, ...]
    spans: Mapping[str, Span]

    @property
    def ringing(self) -> int:
        """How many of them have no alarm of their own."""
        return sum(not problem.breach.rule.has_alarm for problem in self.problems)


def judge(told: Told, rules: Iterable[Rule], data: Sequence[Datum], places: Places, now: float) -> Judged:
    """Hold the data of one look against the rules, and against what earlier looks saw."""
    by_rule, told = {rule.name: rule for rule in rules}, told_by_now(told, now)
    measured = dict(_values(by_rule.values(), data))
    breaches = {breach.name: breach for breach in measured.values() if breach.rule.breached_by(breach.value)}
    spans = {name: span for name, span in told.spans.items() if _stays(by_rule, name, span, now, name in measured)}
    spans |= {name: Span(since_at=_since(told.spans.get(name), now), seen_at=now) for name in breaches}
    lasting = [breach for name, breach in breaches.items() if now - spans[name].since_at >= breach.rule.seconds]
    problems = tuple(Problem(breach=breach, seen=_seen(breach, places)) for breach in lasting)
    began = tuple(problem for problem in problems if not _lasted(problem.breach, told.spans.get(problem.breach.name), now))
    return Judged(problems=problems, began=began, spans=spans)


def problems_datum(fleet: str, judged: Judged) -> Datum:
    """Count the problems that have no alarm of their own."""
    return one("Problems", judged.ringing, COUNT, (("Fleet", fleet),))


def facts_of(problem: Problem) -> dict[str, str | float]:
    """Describe a problem as a log line does."""
    rule = problem.breach.rule
    return {
        "problem": rule.name,
        "place": problem.breach.place,
        "metric": rule.metric,
        "value": problem.breach.value,
        "threshold": rule.threshold,
        "setting": rule.setting,
        "says": problem.seen.text,
    }


def _lasted(breach: Breach, before: Span | None, now: float) -> bool:
    """Tell whether the look before this one found it to be a problem already."""
    return before is not None and _since(before, now) == before.since_at and before.seen_at - before.since_at >= breach.rule.seconds


def _since(span: Span | None, now: float) -> float:
    return span.since_at if span is not None and now - span.seen_at < FORGOTTEN_SECONDS else now


def _stays(rules: Mapping[str, Rule], name: str, span: Span, now: float, is_measured: bool) -> bool:  # noqa: FBT001
    """Tell whether what this look did not see is remembered. Spans of other messages are theirs to forget."""
    if not name.startswith(PROBLEM):
        return True
    rule = rules.get(name.split("/")[1])
    if rule is None:
        return False
    if not is_measured and rule.stays:
        return now - span.seen_at < FORGOTTEN_SECONDS
    return not rule.strict and now - span.seen_at <= _ONE_LOOK_SECONDS


def _values(rules: Iterable[Rule], data: Sequence[Datum]) -> Iterator[tuple[str, Breach]]:
    """Each rule with each value that it is about; of several values of one place the worst."""
    for rule in rules:
        for datum in data:
            names = tuple(name for name, _ in datum.dimensions[1:])
            if datum.name == rule.metric and names == rule.by and datum.values:
                worst = min(datum.values) if rule.comparison is Comparison.BELOW else max(datum.values)
                breach = Breach(rule=rule, place=_place(dict(datum.dimensions)), value=worst)
                yield breach.name, breach


def _place(dimensions: Mapping[str, str]) -> str:
    if "Function" in dimensions:
        return dimensions["Function"]
    controller, pool = dimensions.get("Controller", ""), dimensions.get("Pool", "")
    if pool:
        return f"pool {pool} of {controller}"
    return f"controller {controller}" if controller else ""


def _seen(breach: Breach, places: Places) -> Seen:
    rule = breach.rule
    known = list(places.get(rule.metric, ())) if not breach.place else []
    more = f" and {len(known) - _NAMES} more" if len(known) > _NAMES else ""
    where = breach.place or ", ".join(known[:_NAMES]) + more
    title = rule.name.replace("-", " ") + (f": {breach.place or ', '.join(known[:2])}" if where else "")
    limit = f"{rule.comparison} {_number(rule.metric, rule.threshold)}" + (f" ({rule.setting})" if rule.setting else "")
    text = f"{rule.says}\n{rule.metric}{f' of {where}' if where else ''}: {_number(rule.metric, breach.value)}, which is {limit}."
    return Seen(title, text, f"operations.md#{rule.heading or rule.name}", "autoscaler status")


def _number(metric: str, value: float) -> str:
    if metric.endswith("Bytes"):
        return f"{value / 2**30:.2f} GiB"
    if metric == "IdleUsdPerHour":
        return dollars(value)
    if "Seconds" in metric or metric == "QueueWait":
        return duration(value)
    return f"{value:,.0f} %" if metric.endswith("Percent") else f"{value:,g}"
