"""Messages to people: one message when a breaker opens, starts fail or a limit keeps jobs waiting, and one when that is over.

Where nothing can be done until a person acts, and money is spent meanwhile, the message comes again each day.

A CloudWatch alarm's text is fixed; a message names the pool, the cause and what to do. What has been told is remembered in the state,
so that each is told once. A limit that is left for some minutes and reached again is the same trouble, and so is capacity that comes and
goes.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.job_settings import MonthCosts
from autoscaler.domain.facts.metering import DAY_SECONDS
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Reservation, parts_of
from autoscaler.domain.repair.boots import told_by_others
from autoscaler.domain.report.controllers import (
    OTHER_FLEET,
    TWO_SESSIONS,
    controllers_seen,
    large_queues_seen,
    late_looks_seen,
    others_seen,
)
from autoscaler.domain.report.costs import By, CostEntry, list_costs
from autoscaler.domain.report.limits import limits_seen
from autoscaler.domain.report.machines import failed_starts_seen, hosts_seen, told_failed
from autoscaler.domain.report.ordered import is_taken_away, lost_seen
from autoscaler.domain.report.overdue import (
    held_labels_seen,
    lasting_seen,
    left_seen,
    left_sides_seen,
    still_lent_seen,
    without_agents_seen,
)
from autoscaler.domain.report.problems import FORGOTTEN_SECONDS, PROBLEM, Problem
from autoscaler.domain.report.told import LOST, Message, Seen, Span, Told, Trouble, marks_seen, told_by_now
from autoscaler.domain.report.waiting import WAITS, is_slow, launches_seen, patience_seen, refusals_seen, waits_seen
from autoscaler.domain.scale_in.reserved import WARNING_SECONDS
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.bets import (
    CREATE_BEACON,
    TrialOf,
    at_once,
    closed,
    failing,
    steps_that_keep_failing,
    told_boots,
    trials_of,
)
from autoscaler.domain.situation.left import lost_since, reserved_now
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import counted, dollars, duration, moment, once_mended, sentence

# A limit that a busy fleet touches again and again is told of once, and so is a pool of which some agents boot, and others do not.
LIMIT_OVER_SECONDS = 900.0
# What each wave of jobs may meet again: a limit on agents, a throttle, executors that take none, a label of another cloud, one agent after
# another on which all builds fail, the agents of another fleet. If that fleet has our name, its agents are the only sign of it.
WAVES_OVER_SECONDS = 3600.0
_IN_WAVES = (f"/{Reason.UNSERVABLE}", f"/{Reason.UNCLEAR}/")
TAKEN_BACK = 3  # spells; one or two are what spot is
SUBJECT_CHARACTERS = 100  # SNS takes no more
# Slow causes: people are told only after one has lasted, and again only after it was away for a while.
SLOW_SECONDS, SLOW_GAP_SECONDS = 600.0, 300.0


# These come and go while their cause lasts: between two trials, or while another job waits. The others end by an event. Of a pool that
# long jobs run on they are over if none did for three days: one that runs on workdays is told of once.
_COMES_AND_GOES = {
    **dict.fromkeys(
        ("limit/", "launches/", "refuses/", "marked/", "queue/", "too-long/", TWO_SESSIONS, WAITS, "breaker/"),
        LIMIT_OVER_SECONDS,
    ),
    **dict.fromkeys((OTHER_FLEET, "refused/", f"{PROBLEM}agents-limit/", f"{PROBLEM}node-failure-streak/"), WAVES_OVER_SECONDS),
    "runs-long/": 3 * DAY_SECONDS,
    "patience/": DAY_SECONDS,
}

# Problems that a message of its own has told, and that count for an hour what has been mended since.
_EXPLAINED = "explained/"
# They happened, and do not last.
_HAVE_NO_END = (LOST, f"{PROBLEM}quarantine/")
_BOOTS_RUNBOOK = "operations.md#breakers-open"


def write_messages(told: Told, situation: Situation, runbooks: str, problems: Sequence[Problem] = ()) -> tuple[Told, list[Message]]:
    """Return what is to be told now, and what has been told then. ``runbooks``: where the documentation is to be read.

    ``problems``: what else people are told of, each unless a message of its own says the same.
    """
    told, now = told_by_now(told, situation.now), situation.now
    every = _all_seen(situation, problems, told)
    spans = _next_spans(told.spans, problems, every, now)
    young = {name for name in every if is_slow(name) and now - spans[name].since_at < SLOW_SECONDS}
    seen = {name: one for name, one in every.items() if name in told.troubles or name not in young}
    problem_names = {problem.breach.name for problem in problems}
    over = _over(told, seen, problem_names, now)
    troubles, began = {name: trouble for name, trouble in told.troubles.items() if name not in over}, []
    for name, one in seen.items():
        known = told.troubles.get(name)
        if known is None or (one.daily and now - known.told_at >= DAY_SECONDS):
            began.append(_began(situation, name, one, runbooks))
            known = Trouble(title=one.title, since_at=known.since_at if known else now, seen_at=now, told_at=now)
        troubles[name] = replace(known, title=one.title, seen_at=now)
    return replace(told, troubles=troubles, spans=spans), [*began, *_ended(situation, over, problem_names)]


def _over(told: Told, seen: Collection[str], problems: Collection[str], now: float) -> dict[str, Trouble]:
    """Find what people were told of and that is not seen any more. ``problems``: names of those that are there now."""
    # This look may not see them, and the next one may see them again: they are not over while they are remembered.
    between_looks = {name for name, span in told.spans.items() if name.startswith(PROBLEM) and now - span.seen_at < FORGOTTEN_SECONDS}
    still = {*seen, *(between_looks - {*problems})}
    return {n: trouble for n, trouble in told.troubles.items() if n not in still and now - trouble.seen_at >= _over_after(n)}


def _next_spans(known: Mapping[str, Span], problems: Sequence[Problem], seen: Collection[str], now: float) -> dict[str, Span]:
    """Carry on since when jobs wait for builds and boots, and which problems a message of its own has told."""
    kept = {name: span for name, span in known.items() if not name.startswith(_EXPLAINED)}
    # These end by themselves, mostly before anybody needs to know.
    spans = {name: span for name, span in kept.items() if not is_slow(name) or now - span.seen_at < SLOW_GAP_SECONDS}
    spans |= {name: Span(since_at=spans[name].since_at if name in spans else now, seen_at=now) for name in seen if is_slow(name)}
    # They linger after the end of that message.
    lingering = [problem.breach.name for problem in problems if problem.breach.rule.lingers and problem.breach.name not in seen]
    return spans | {name: known.get(name, Span(since_at=now, seen_at=now)) for name in (f"{_EXPLAINED}{name}" for name in lingering)}


def untold(before: Told, after: Told, failed: Collection[str]) -> dict[str, Trouble]:
    """Return what has been told though these messages could not be sent: of their troubles, what was told before."""
    sent = {name: trouble for name, trouble in after.troubles.items() if name not in failed}
    return sent | {name: trouble for name, trouble in before.troubles.items() if name in failed}


def still_told(told: Told, now: float) -> tuple[str, ...]:
    """Name what people were told of and that is not over, and for how long it has been so."""
    lasting = {name: trouble for name, trouble in told.troubles.items() if not name.startswith(LOST)}
    return tuple(f"{one.title} (for {duration(now - one.since_at)})" for one in sorted(lasting.values(), key=lambda one: one.since_at))


def is_worth_saving(before: Told, after: Told) -> bool:
    """Tell whether what has been told differs by more than when it was last seen within the last minutes."""
    if before.troubles.keys() != after.troubles.keys() or before.spans != after.spans or before.month != after.month:
        return True
    troubles = [(known, after.troubles[name]) for name, known in before.troubles.items()]
    return any(new.told_at != old.told_at or abs(new.seen_at - old.seen_at) >= LIMIT_OVER_SECONDS / 3 for old, new in troubles)


def _all_seen(situation: Situation, problems: Sequence[Problem], told: Told) -> dict[str, Seen]:
    seen = dict(_seen(situation, told.troubles))
    seen = dict(waits_seen(situation, told.troubles, seen.keys())) | seen
    unexplained = [problem for problem in problems if f"{_EXPLAINED}{problem.breach.name}" not in told.spans]
    # What is not over, though this look does not see its cause, explains a problem for some minutes yet.
    ages = {name: situation.now - trouble.seen_at for name, trouble in told.troubles.items()}
    explaining = seen.keys() | {name for name, age in ages.items() if age < min(_over_after(name), LIMIT_OVER_SECONDS)}
    return seen | {problem.breach.name: problem.seen for problem in unexplained if not _is_told_otherwise(problem, explaining)}


def _is_told_otherwise(problem: Problem, seen: Collection[str]) -> bool:
    begins = tuple(prefix.format(controller=problem.breach.place.rpartition(" ")[2]) for prefix in problem.breach.rule.told_by)
    return any(name.startswith(begins) for name in seen)


def _over_after(name: str) -> float:
    if name.startswith(WAITS) and any(reason in name for reason in _IN_WAVES):
        return WAVES_OVER_SECONDS
    return next((seconds for prefix, seconds in _COMES_AND_GOES.items() if name.startswith(prefix)), 0.0)


def _seen(situation: Situation, told: Mapping[str, Trouble]) -> Iterator[tuple[str, Seen]]:
    yield from _boots(situation)
    for agent, reservation in reserved_now(situation):
        of_device, lost = reservation in agent.record.devices_for, lost_since(situation, agent) is not None
        if lost or is_taken_away(agent, situation.now) or reservation.until_at - situation.now <= WARNING_SECONDS:
            name = f"{LOST if lost else ''}reservation/{agent.record.instance_id}" + (f"/{reservation.person}" if of_device else "")
            yield name, _lost(agent, reservation) if lost else _ending(situation, agent, reservation, of_device=of_device)
    for seen in _SEEN:
        yield from seen(situation, told)
    if situation.fleet.declined is not None:
        from autoscaler.domain.report.declined import declines_seen  # noqa: PLC0415 - for fleets with max_job_seconds only

        yield from declines_seen(situation, told)


def _boots(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name the pools, images and controllers of which no new agent becomes one."""
    for pool, failed in trials_of(situation.memory, TrialOf.BOOT).items():
        if failed.is_broken:
            last = f"The last one: {failed.failed[-1]}" if failed.failed else "Which ones is not known"
            said = f", whose console ends with: {failed.said}" if failed.said else "; its console says nothing"
            text = (
                f"{sentence(told_boots(failed))}. {last}{said}.\n"
                f"From {moment(failed.until_at)} on {at_once(failed, 'one connects')}; nothing else is launched there."
            )
            title, ask = f"agents of {pool} do not boot", f"autoscaler why {pool}"
            yield f"breaker/{pool}", Seen(title, text, _BOOTS_RUNBOOK, ask, cure=once_mended(pool))
    for place, failed in trials_of(situation.memory, TrialOf.PLACE).items():
        pool, _, key = place.partition("/")
        offerings = situation.fleet.pools[pool].offerings if pool in situation.fleet.pools else ()
        boots_elsewhere = not all(closed(situation.memory, TrialOf.PLACE.scope(pool, one.key)) for one in offerings)
        if failed.is_closed and boots_elsewhere and not closed(situation.memory, TrialOf.BOOT.scope(pool)):
            text = (
                f"{sentence(told_boots(failed))}, since {moment(failed.since_at)}. The last one: {failed.failed[-1]}.\n"
                f"Agents of {pool} boot elsewhere. It is asked for last; of several agents one tries it now and then."
            )
            yield f"place/{place}", Seen(f"agents of {pool} do not boot on {key}", text, _BOOTS_RUNBOOK, f"autoscaler why {pool}")
    yield from _connections(situation)
    for pool, canary in trials_of(situation.memory, TrialOf.IMAGE).items():
        if canary.is_failing:
            image, last = parts_of(canary.version)[1], f"\nThe last one: {canary.failed[-1]}." if canary.failed else ""
            text = (
                f"{image} is new in {pool}: {told_failed(canary)}.{last}\n"
                f"Agents are launched from the image that booted before; {image} is tried again from {moment(canary.until_at)} on."
            )
            title, ask = f"the new image of {pool} does not boot", f"autoscaler why {pool}"
            yield f"image/{pool}", Seen(title, text, "operations.md#new-images", ask, cure=once_mended(pool))


def _connections(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name the controllers that no new agent can connect to, or that keep refusing to make a node before any agent asked for one."""
    for controller, refused in trials_of(situation.memory, TrialOf.CONNECT).items():
        if refused.is_failing:
            served = situation.fleet.pools_of(controller)
            text = (
                f"{refused.why}.\nThe last one that asked: {refused.failed[-1]}, since {moment(refused.since_at)}.\n"
                f"Nothing is launched for {controller} but one agent at a time, the next one not before {moment(refused.until_at)}."
            )
            yield _connection(controller, text, "autoscaler status", once_mended(served[0].name) if served else "")
    steps = steps_that_keep_failing(situation.memory)
    for controller in dict.fromkeys(key.removeprefix(f"{CREATE_BEACON} ").partition("/")[0] for key in steps):
        if (refusal := situation.no_node(controller)) and not failing(situation.memory, TrialOf.CONNECT.scope(controller)):
            then = f"Nothing is launched for {controller} until Jenkins makes the nodes that are missing (beacons)."
            yield _connection(controller, f"{refusal}.\n{then} They are tried every 5 minutes.", "autoscaler doctor")


def _connection(controller: str, text: str, ask: str, cure: str = "") -> tuple[str, Seen]:
    title = f"no new agent can connect to {controller}"
    return f"connect/{controller}", Seen(title, text, "operations.md#agents-refused", ask, cure=cure)


def _by_ec2(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Tell of machines that others end, that EC2 takes back again and again within hours, or does not stop."""
    for pool, spec in situation.fleet.pools.items():
        memory, ask = situation.memory, f"autoscaler why {pool}"
        if ended := failing(memory, TrialOf.ENDED.scope(pool)):
            text = (
                f"{told_by_others(ended)}.\nThe last one: {ended.failed[-1]}.\n"
                "Others are launched at once. CloudTrail knows who calls TerminateInstances or StopInstances."
            )
            yield f"ended/{pool}", Seen(f"agents of {pool} are ended by others", text, "operations.md#ended-by-others", ask)
        scopes = {offering.key: TrialOf.TAKEN_BACK.scope(pool, offering.key) for offering in spec.offerings}
        spells = ((key, failing(memory, scope)) for key, scope in scopes.items())
        often = {key: trial for key, trial in spells if trial and trial.failures >= TAKEN_BACK}
        if often:
            lines = "\n".join(f"{key}: {trial.why}; it is asked for last until {moment(trial.until_at)}" for key, trial in often.items())
            text = (
                f"EC2 goes on taking machines of {pool} back, some before they are agents.\n{lines}\n"
                "Others are launched at once, from other types and subnets where the pool has any. None counts as a failed boot."
            )
            yield f"taken-back/{pool}", Seen(f"EC2 takes machines of {pool} back", text, "operations.md#machines-taken-back", ask)
        if refused := failing(memory, TrialOf.STOPS.scope(pool)):
            text = (
                f"EC2 refused to stop an agent of {pool}: {refused.why}\n"
                f"What cannot be stopped is terminated. None is launched to be stopped before {moment(refused.until_at)}."
            )
            yield f"stops/{pool}", Seen(f"EC2 does not stop agents of {pool}", text, "operations.md#stops-refused", ask)


_Seeing = Callable[[Situation, Mapping[str, Trouble]], Iterator[tuple[str, Seen]]]


def _now(seen: Callable[[Situation], Iterator[tuple[str, Seen]]]) -> _Seeing:
    """Look at what is there now, whatever people were told. The others carry on what this look may have missed."""
    return lambda situation, _: seen(situation)


_SEEN: tuple[_Seeing, ...] = (
    *map(_now, (failed_starts_seen, _by_ec2, launches_seen, limits_seen, late_looks_seen)),
    *(controllers_seen, others_seen),
    *map(_now, (large_queues_seen, hosts_seen, left_sides_seen, marks_seen, lost_seen, refusals_seen, patience_seen)),
    lasting_seen,
    *map(_now, (still_lent_seen, held_labels_seen, without_agents_seen, left_seen)),
)


def _lost(agent: Agent, reservation: Reservation) -> Seen:
    record, person = agent.record, reservation.person
    how = "has ended" if record.registered_at else f"did not boot{record.trouble and ': '}{record.trouble}"
    text = f"{person} had reserved it until {moment(reservation.until_at)}: {reservation.reason}.\nNo other agent takes its place."
    title = f"{person} has lost {record.node or record.machine} of {record.pool}, which {how}"
    return Seen(title, text, "reservations.md#lost", f"autoscaler reserve {record.pool} --for {person}")


def _ending(situation: Situation, agent: Agent, reservation: Reservation, *, of_device: bool) -> Seen:
    person, name, ends = reservation.person, agent.record.node or agent.record.machine, moment(reservation.until_at)
    if is_taken_away(agent, situation.now):
        text = f"EC2 takes the spot instance of {name} back two minutes after it said so. Save what is on it now."
        return Seen(f"EC2 takes {name} from {person}", text, "reservations.md#the-end", "autoscaler reservations")
    if of_device:
        title, then = f"{person} has a device of {name} until {ends}", "Others get it then; whatever still uses it keeps them waiting."
    elif agent.record.is_host:
        title, then = f"{name} is reserved for {person} until {ends}", "The host begins anew then, with nothing left of what was on it."
    else:
        title, then = (
            f"{name} is reserved for {person} until {ends}",
            "The agent is terminated then, once its builds have ended, with everything on it.",
        )
    has, page = ("a device of ", "one-device") if of_device else ("", "the-end")
    text = f"{person} has {has}{name} until {ends}: {reservation.reason}.\n{then} To keep it for longer, reserve it again."
    return Seen(title, text, f"reservations.md#{page}", f"autoscaler reserve {name} --for {person} --hours 2")


def _began(situation: Situation, name: str, seen: Seen, runbooks: str) -> Message:
    cure = f"{seen.cure}\n" if seen.cure else ""
    text = f"{seen.text}\n\nSee more:   {seen.try_it}\nWhat to do: {runbooks.rstrip('/')}/{seen.runbook}\n{cure}"
    return Message(about=name, subject=_subject(situation.fleet, seen.title), text=text)


def _ended(situation: Situation, over: Mapping[str, Trouble], problems: Collection[str]) -> Iterator[Message]:
    """Tell what is over, but not what a message of its own replaces by now."""
    for name, trouble in over.items():
        if not (name.startswith(_HAVE_NO_END) or name in problems):
            minutes = counted(round((situation.now - trouble.since_at) / 60), "minute")
            text = f"It began at {moment(trouble.since_at)} and is over after {minutes}.\n"
            yield Message(about=name, subject=_subject(situation.fleet, f"over: {trouble.title}"), text=text)


def _subject(fleet: Fleet, title: str) -> str:
    return f"[{fleet.name}] {title}".encode("ascii", "replace").decode()[:SUBJECT_CHARACTERS]


# The message at the beginning of a month: what the last one cost, by pool, job and label, and what nobody used.


ABOUT = "month/"
_JOBS = 10
_LINES = 20  # of pools and of labels: a message is read on a telephone
_NAME_CHARACTERS = 60


def month_before(month: str) -> str:
    """Name the calendar month before one."""
    return f"{datetime.fromisoformat(f'{month}-01') - timedelta(days=1):%Y-%m}"


def write_summary(month: MonthCosts, before: MonthCosts, fleet: Fleet, runbooks: str) -> Message | None:
    """Write the message; None of a month in which nothing was paid for."""
    if not month.metered_usd:
        return None
    sections = (
        _section("By pool", list_costs(month, fleet, By.POOL).entries, month, _LINES, _usd_by_name(before, fleet, By.POOL)),
        _section("The dearest jobs", list_costs(month, fleet, By.JOB).entries, month, _JOBS, _usd_by_name(before, fleet, By.JOB)),
        _section("By labels", list_costs(month, fleet, By.LABEL).entries, month, _LINES, {}),
        _unused(month),
    )
    total = f"{_named(month.name)} (UTC): {dollars(month.metered_usd)}, {_compared(month.metered_usd, before)}."
    more = f"See more:   autoscaler costs --month {month.name}\nWhat it is: {runbooks.rstrip('/')}/costs.md"
    text = "\n\n".join("\n".join(lines) for lines in ((total,), *sections, (more,)))
    title = f"{_named(month.name)}: {dollars(month.metered_usd)}, {_compared(month.metered_usd, before)}"
    return Message(about=ABOUT + month.name, subject=_subject(fleet, title), text=text + "\n")


def _section(
    title: str, entries: Sequence[CostEntry], month: MonthCosts, most: int, before: Mapping[tuple[str, str], float]
) -> Iterator[str]:
    """Name the dearest, a line each, and say how many more there are."""
    yield f"{title}:"
    for entry in entries[:most]:
        known = before.get((entry.controller, entry.name))
        then = f"  ({dollars(known)} the month before)" if known is not None else ""
        name = entry.name if len(entry.name) <= _NAME_CHARACTERS else f"...{entry.name[3 - _NAME_CHARACTERS :]}"
        yield f"  {dollars(entry.usd):>12} {entry.usd / month.metered_usd:>4.0%}  {name}{then}"
    if rest := entries[most:]:
        yield f"  {dollars(sum(entry.usd for entry in rest)):>12} {'':>4}  {len(rest)} more"


def _unused(month: MonthCosts) -> Iterator[str]:
    """Say what nobody used: the metered time in which no build was seen on an executor; and what volumes are of the sum."""
    unused, parts = sum(month.unused.values()), month.parts
    boots, stopped = min(parts.boot_usd, unused), min(parts.stopped_usd, unused)
    yield f"Nobody used {dollars(unused)} of it ({unused / month.metered_usd:.0%}):"
    for usd, what in ((boots, "boots"), (max(0.0, unused - boots - stopped), "idle executors"), (stopped, "disks of stopped agents")):
        yield f"  {dollars(usd):>12}       {what}"
    if usd := parts.disk_usd:
        yield f"\nBy estimate, in that sum: volumes {dollars(usd)} (by their sizes and volume_usd_per_gib_month)"


def _usd_by_name(month: MonthCosts, fleet: Fleet, by: By) -> dict[tuple[str, str], float]:
    return {(entry.controller, entry.name): entry.usd for entry in list_costs(month, fleet, by).entries}


def _compared(usd: float, before: MonthCosts) -> str:
    if not before.metered_usd:
        return "nothing is known of the month before"
    change = usd / before.metered_usd - 1
    if abs(change) < 0.005:
        return "as much as the month before"
    return f"{abs(change):.0%} {'more' if change > 0 else 'less'} than the month before ({dollars(before.metered_usd)})"


def _named(month: str) -> str:
    return f"{datetime.fromisoformat(f'{month}-01'):%B %Y}"
