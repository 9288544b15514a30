"""What people have and have ordered: reserved agents, runs, builds that were run again; and how they name things."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from urllib.parse import unquote, urlsplit

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.metering import missing_of
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.orders import Reserve
from autoscaler.domain.facts.runs import job_name_of
from autoscaler.domain.facts.snapshot import OFF, Intent, Record, RecordState, Reservation
from autoscaler.domain.facts.started_builds import FAILURES, Part, RunOrder, TryState, Until, Verdict
from autoscaler.domain.grouping import grouped
from autoscaler.domain.report.told import LOST, Seen
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.left import lost_since
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import counted, duration, lines_of

# Reservations for people: who has which agent, until when, what it does, and how to get in.


_LAUNCHED = "is being launched"
_STARTS = {RecordState.REQUESTED: "boots", RecordState.STARTING: "starts"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationEntry:
    """One reservation. ``state``: what its agent does, in a few words; ``get_in``: a command, or what is missing for one.

    ``what``: the whole agent, or one device of it.
    """

    person: str
    reason: str
    by: str
    since_at: float
    until_at: float
    controller: str
    pool: str
    node: str
    instance_id: str
    instance_type: str
    state: str
    get_in: str
    what: str = "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What lets people into agents. ``templates``: the launch templates of this stack; ``allowed``: their role may use Session Manager."""

    allowed: bool
    templates: frozenset[str]

    def get_in(self, fleet: Fleet, record: Record) -> str:
        """Say how a person gets into an agent, or what is missing for that."""
        if record.is_host:
            host = next((one for one in fleet.hosts.values() if one.id == record.machine), None)
            if host is None or not (host.address or host.owner):
                return "ask whose host it is: the fleet file names neither its address nor its owner"
            return f"ssh {host.address}" if host.address else f"ask {host.owner}"
        pool, region = fleet.pools.get(record.pool), fleet.home.partition("/")[2]
        command = f"aws ssm start-session --target {record.machine}" + (f" --region {region}" if region else "")
        if pool is None or pool.launch_template not in self.templates:
            template = pool.launch_template if pool else "its launch template"
            return f"{command} (where the role of {template} and its image allow Session Manager)"
        if self.allowed:
            return command
        return "deploy the stack with AgentSessionManager=yes: the agents' role may not use Session Manager"


def list_reservations(situation: Situation, access: Access) -> tuple[ReservationEntry, ...]:
    """List what is reserved now, and what is launched for people, by the end."""
    agents = [agent for agent in situation.agents if agent.phase is not Phase.CONDEMNED or lost_since(situation, agent)]
    found = [
        _entry(agent.record, one, _state_of_reservation(situation, agent), access.get_in(situation.fleet, agent.record))
        for agent in agents
        if (one := agent.record.reservation)
    ]
    held = [(agent.record, one) for agent in situation.agents for one in agent.record.devices_for if not one.is_over(situation.now)]
    devices = [_device(situation.fleet, record, one, access) for record, one in held]
    intents = situation.snapshot.intents
    launches = [_entry(intent, one, _LAUNCHED) for intent in intents if (one := intent.reservation) and missing_of(intent)]
    return tuple(sorted([*found, *devices, *launches], key=lambda entry: (entry.until_at, entry.instance_id)))


def reserved_by(
    fleet: Fleet, records: Iterable[Record], intents: Iterable[Intent], order: Reserve, access: Access
) -> list[ReservationEntry]:
    """List what a person has by one order, or had before of the agent that it names, from our own state alone."""
    known = [
        _entry(record, one, _STARTS.get(record.state, "is reserved"), access.get_in(fleet, record))
        for record in records
        if (one := _ordered(record, order))
    ]
    under_way = [_entry(intent, one, _LAUNCHED) for intent in intents if missing_of(intent) and (one := _ordered(intent, order))]
    persons = [(record, one) for record in records for one in record.devices_for if one.person == order.person]
    devices = [
        _device(fleet, record, one, access)
        for record, one in persons
        if one.request == order.request_id or order.target in {record.pool, record.node, record.instance_id, record.machine}
    ]
    return [*known, *devices, *under_way]


def _device(fleet: Fleet, record: Record, reservation: Reservation, access: Access) -> ReservationEntry:
    """Describe a device that a person has: its agent writes down which one, once it is free."""
    file = "".join(letter if letter.isalnum() else "-" for letter in reservation.person)[:64]
    way = f"{access.get_in(fleet, record)}, then: . /run/autoscaler-agent/people/{file}"
    return replace(_entry(record, reservation, "has a device of it", way), instance_id=record.machine, what="device")


def _entry(one: Record | Intent, reservation: Reservation, state: str, get_in: str = "") -> ReservationEntry:
    """Describe what a person has by a record, or will have by a launch."""
    node, instance_id, instance_type = (one.node or "", one.instance_id, one.instance_type) if isinstance(one, Record) else ("", "", "")
    return ReservationEntry(
        person=reservation.person,
        reason=reservation.reason,
        by=reservation.by,
        since_at=reservation.since_at,
        until_at=reservation.until_at,
        controller=one.controller,
        pool=one.pool,
        node=node,
        instance_id=instance_id,
        instance_type=instance_type,
        state=state,
        get_in=get_in,
    )


def _ordered(one: Record | Intent, order: Reserve) -> Reservation | None:
    """Return what its person has by an order, or had before of the agent that it names."""
    reservation, named = one.reservation, isinstance(one, Record) and order.target in {one.node, one.instance_id}
    is_theirs = reservation is not None and reservation.person == order.person and (named or reservation.request == order.request_id)
    return reservation if is_theirs else None


def _state_of_reservation(situation: Situation, agent: Agent) -> str:
    """Say in a few words what a reserved agent does."""
    if lost_since(situation, agent):
        return "its instance has ended: reserve another"
    if agent.record.reservation and agent.record.reservation.is_over(situation.now):
        return "is over, to begin anew" if agent.record.is_host else "is over, to be terminated"
    if agent.record.state in _STARTS:
        return _STARTS[agent.record.state]
    if agent.instance in OFF:
        return f"is {agent.instance} in EC2"
    if agent.busy_executors:
        return f"has {counted(agent.busy_executors, 'build')} to end first"
    return "is reserved"


def told_reserved(situation: Situation, agent: Agent) -> str:
    """Say for whom an agent is reserved, for how long yet, and why; "" where it is not."""
    reservation = agent.record.reservation
    if reservation is None:
        return ""
    if reservation.is_over(situation.now):
        return f"was reserved for {reservation.person} until {duration(situation.now - reservation.until_at)} ago"
    return f"reserved for {reservation.person}, for another {duration(reservation.until_at - situation.now)}: {reservation.reason}"


def is_taken_away(agent: Agent, now: float) -> bool:
    """Tell whether EC2 has said that it takes the instance back. One that boots has no node yet that could carry the mark."""
    return agent.record.is_interrupted(now) or (agent.mark is not None and agent.mark.kind is MarkClass.INTERRUPTED)


# Which job, node or pool a person means: names as people paste them, from a browser, a page's heading or a chat.


_DECODED_AT_MOST = 3  # a branch's name is encoded once in its own name, and once more in a URL
_PART_CHARACTERS = 3  # a shorter part of a name is in too many of them
_LISTED = 30
# "part of folder » job #12 (Unit tests)": the heading of a build, or of a pipeline's part in the queue.
_HEADING = re.compile(r"^(?:part of\s+)?(.+?)\s*#\d+\b.*$", re.DOTALL)
_BLUE_OCEAN = re.compile(r"/organizations/[^/]+/([^/]+)(?:/(?:detail|activity|branches)(?:/([^/]+))?)?")


def known_names(situation: Situation) -> dict[str, tuple[str, ...]]:
    """Name what can be asked for, with what else people call it: pools, nodes, instances, jobs that wait or run, items of the queue."""
    names: dict[str, tuple[str, ...]] = dict.fromkeys([*situation.fleet.pools, *situation.fleet.left_pools], ())
    for agent in situation.agents:
        names |= dict.fromkeys(filter(None, (agent.record.node, agent.record.instance_id)), ())
    for view in situation.snapshot.controllers.values():
        jobs = [*((item.job, item.display) for item in view.items), *((b.job, b.display) for node in view.nodes for b in node.builds)]
        for job, display in jobs:
            if job:
                names[job] = tuple(dict.fromkeys((*names.get(job, ()), *filter(None, [display]))))
        names |= {node.name: names.get(node.name, ()) for node in view.nodes if node.agent}
    return names


def several(subject: str, names: Sequence[str], situation: Situation) -> list[str]:
    """List the names that a person may mean, jobs with how many builds of them wait and run."""
    waiting = Counter(item.job for view in situation.snapshot.controllers.values() for item in view.items)
    running = Counter(
        build.job
        for view in situation.snapshot.controllers.values()
        for node in view.nodes
        for build in node.builds
        if not build.is_one_off
    )
    lines = [f"{name}{_of_job(waiting[name], running[name])}" for name in names]
    return [f"{subject} may be any of these {len(names)}; ask for one of them:", *lines_of(lines, _LISTED)]


def _of_job(waiting: int, running: int) -> str:
    counts = (f"{waiting} waiting" if waiting else "", f"{running} running" if running else "")
    return f" ({', '.join(filter(None, counts))})" if any(counts) else ""


def jobs_of_items(situation: Situation) -> dict[str, str]:
    """Name the job of each item of the queue by the item's id."""
    return {str(item.id): item.job for view in situation.snapshot.controllers.values() for item in view.items if item.job}


def meant(subject: str, names: Mapping[str, Collection[str]], items: Mapping[str, str]) -> tuple[str, ...]:
    """Find the names that a person may mean, sorted; the subject itself if nothing is like it.

    ``names``: what is there, with what else each is called; ``items``: jobs by the id of their items. What is the same but for case and
    encoding goes before the end of a longer name, then comes a folder, then any part of a name.
    """
    if subject in names:
        return (subject,)
    forms = tuple(dict.fromkeys(_forms(subject, items)))
    keys = {name: tuple(dict.fromkeys(_key(other) for other in (name, *others))) for name, others in names.items()}
    for is_like in _LIKE:
        for form in forms:
            if like := sorted(name for name, of_name in keys.items() if any(is_like(key, form) for key in of_name)):
                return tuple(like)
    return (subject,)


# A key is what somebody wrote, or has that as its end, as its folder, or as any part.
_LIKE: tuple[Callable[[str, str], bool], ...] = (
    lambda key, form: key == form,
    lambda key, form: key.endswith(f"/{form}"),
    lambda key, form: key.startswith(f"{form}/"),
    lambda key, form: len(form) >= _PART_CHARACTERS and form in key,
)


def _forms(subject: str, items: Mapping[str, str]) -> Iterator[str]:
    """Write a subject as names are compared, the most likely reading first."""
    text = subject.strip().strip("'\"`").strip()
    if path := _path_of(text):
        yield from filter(None, (_key(name) for name in _of_path(path, items)))
        return
    yield from filter(None, [_key(text)])
    if heading := _HEADING.match(text):
        yield _key(heading[1])


def _path_of(text: str) -> str:
    """Return the path of a URL, or of a part of one; "" if the text is none."""
    if re.match(r"^https?://", text, re.IGNORECASE):
        try:
            return urlsplit(text).path
        except ValueError:
            return ""
    return text.partition("?")[0] if re.match(r"^/?(job|computer)/", text) else ""


def _of_path(path: str, items: Mapping[str, str]) -> Iterator[str]:
    """Read the names that a path of Jenkins is about."""
    parts = [part for part in path.split("/") if part]
    if blue := _BLUE_OCEAN.search(path):
        pipeline, branch = unquote(blue[1]), unquote(blue[2] or "")
        yield from (f"{pipeline}/{branch}", pipeline) if branch else (pipeline,)
    elif "job" in parts:
        yield "/".join(_jobs_in(parts[parts.index("job") :]))
    elif "computer" in parts[:-1]:
        yield parts[parts.index("computer") + 1]
    elif parts[-3:-1] == ["queue", "item"]:
        yield items.get(parts[-1], "")


def _jobs_in(parts: list[str]) -> Iterable[str]:
    """Read the names of folders and the job: each comes after ``job``; views between them are no names."""
    rest = parts
    while len(rest) > 1 and rest[0] in {"job", "view"}:
        if rest[0] == "job":
            yield rest[1]
        rest = rest[2:]
    if rest and "=" in rest[0]:  # a configuration of a matrix
        yield rest[0]


def _key(name: str) -> str:
    """Write a name so that names alike are equal: decoded, with a slash for each », without regard to case and outer spaces."""
    for _ in range(_DECODED_AT_MOST):
        decoded = unquote(name)
        if decoded == name:
            break
        name = decoded
    parts = (" ".join(part.split()) for part in name.replace("»", "/").split("/"))
    return "/".join(filter(None, parts)).casefold()


# What has become of the runs that people ordered: which passed where, how long each took, and what sets apart those that did not.


class Outcome(StrEnum):
    """How an order ended."""

    PASSED = "passed"
    FAILED = "failed"  # at least one build did not pass
    UNFINISHED = "unfinished"  # at least one was lost too often, refused, or is in doubt
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartEntry:
    """One of the runs. ``state``: of its last try, as people say it; ``tries``: how many were started; spans in seconds."""

    number: int
    controller: str
    pool: str
    value: str
    label: str
    state: str
    run: str
    node: str
    tries: int
    waited_seconds: float | None
    took_seconds: float | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry:
    """One order. ``outcome``: None while it is open; ``summary``: one sentence; ``ranking``: why these places were chosen."""

    id: str
    job: str
    parameters: dict[str, str]
    by: str
    reason: str
    created_at: float
    ended_at: float | None
    until: Until
    vary: str
    outcome: Outcome | None
    summary: str
    parts: tuple[PartEntry, ...]
    ranking: tuple[str, ...]


def entry_of(order: RunOrder, now: float) -> RunEntry:
    """Tell of one order."""
    return RunEntry(
        id=order.id,
        job=order.job,
        parameters=dict(order.parameters),
        by=order.by,
        reason=order.reason,
        created_at=order.created_at,
        ended_at=order.ended_at,
        until=order.until,
        vary=order.vary,
        outcome=outcome_of(order),
        summary=summary_of(order),
        parts=tuple(_part(number, part, now) for number, part in enumerate(order.parts, 1)),
        ranking=order.ranking,
    )


def outcome_of(order: RunOrder) -> Outcome | None:
    """Say how an order ended; None while it is open."""
    if order.is_open:
        return None
    verdicts = [part.verdict for part in order.parts]
    if order.until is Until.FIRST_SUCCESS and any(one.verdict is Verdict.PASSED for one in order.all_tries()):
        return Outcome.PASSED
    if order.cancelled_by:
        return Outcome.CANCELLED
    if all(verdict is Verdict.PASSED for verdict in verdicts):
        return Outcome.PASSED
    return Outcome.FAILED if FAILURES & set(verdicts) else Outcome.UNFINISHED


def summary_of(order: RunOrder) -> str:
    """Say in a sentence how far an order is, or how it ended: ``2 of 3 failed, both on gfx1030``."""
    if order.is_open:
        states = ", ".join(f"{count} {state}" for state, count in Counter(_state(part) for part in order.parts).items())
        return f"{states}; its end was ordered by {order.cancelled_by}" if order.cancelled_by else states
    winner = next((part for part in order.parts if part.verdict is Verdict.PASSED), None)
    if order.until is Until.FIRST_SUCCESS and winner:
        return f"passed first on {winner.target.value or winner.target.pool}"
    if order.cancelled_by:
        return f"cancelled by {order.cancelled_by}"
    return _results(order)


def _results(order: RunOrder) -> str:
    failed = [part for part in order.parts if part.verdict is not Verdict.PASSED]
    if not failed:
        return f"{len(order.parts)} of {len(order.parts)} passed"
    words = sorted({str(part.verdict or "not started") for part in failed}, key=lambda word: (word != Verdict.FAILED, word))
    return f"{len(failed)} of {len(order.parts)} {' or '.join(words)}{_set_apart(order.parts, failed)}"


def _set_apart(parts: Iterable[Part], failed: list[Part]) -> str:
    """Say what those that failed have in common, and none that passed has."""
    passed = [part for part in parts if part.verdict is Verdict.PASSED]
    how_many = {1: "", 2: "both "}.get(len(failed), "all ")
    for theirs, others in zip(_places(failed), _places(passed), strict=True):
        if passed and len(theirs) == 1 and "" not in theirs and not theirs & others:
            return f", {how_many}on {theirs.pop()}"
    return ""


def _places(parts: list[Part]) -> tuple[set[str], set[str], set[str], set[str]]:
    """Gather where runs took place: values by which they vary, pools, controllers and nodes."""
    targets, nodes = [part.target for part in parts], {part.last.node if part.last else "" for part in parts}
    return {one.value for one in targets}, {one.pool for one in targets}, {one.controller for one in targets}, nodes


def _part(number: int, part: Part, now: float) -> PartEntry:
    last, before = part.last, [f"{one.run or one.id} {one.verdict}" for one in part.tries[:-1]]
    waited = took = None
    if last is not None:
        until_at = (last.ended_at or now) if last.began_at is None else last.began_at
        waited = max(0.0, until_at - last.at)
    if last is not None and last.began_at is not None:
        took = max(0.0, (last.ended_at or now) - last.began_at) if last.took_seconds is None else last.took_seconds
    return PartEntry(
        number=number,
        controller=part.target.controller,
        pool=part.target.pool,
        value=part.target.value,
        label=part.target.label,
        state=_state(part),
        run=last.run if last else "",
        node=last.node if last else "",
        tries=len(part.tries),
        waited_seconds=waited,
        took_seconds=took,
        why="; ".join(filter(None, (last.why if last else "", f"before it: {', '.join(before)}" if before else ""))),
    )


def _state(part: Part) -> str:
    last = part.last
    if last is None:
        return "to be started"
    return {TryState.WRITTEN: "being started", TryState.QUEUED: "waits", TryState.RUNNING: "runs"}.get(last.state) or str(
        last.verdict or "ended"
    )


def told(entry: RunEntry, now: float) -> str:
    """Say of an order in a line what it is and how far."""
    return f"{entry.id}: {entry.job}, ordered by {entry.by} {duration(now - entry.created_at)} ago: {entry.summary}"


# Builds that were lost with their agents, for people: what became of each, and which of them somebody must see to.


_NAMED = 10


def told_lost(situation: Situation, job: str) -> Iterator[str]:
    """Say of a job which builds were lost lately, and what is done about each."""
    memory, now = situation.memory, situation.now
    for lost in memory.lost.values():
        if job_name_of(lost.unit) == job:
            ago = f"{duration(now - lost.since_at)} ago" if now - lost.since_at >= 1 else "just now"
            yield f"{lost.run} lost its agent {lost.node} {ago}: {lost.how}; it is run again once Jenkins has ended it, if it was lost"
    for name, again in memory.reruns.items():
        if job_name_of(again.run) == job:
            item, ago = name.rpartition("#")[2], f"{duration(now - again.at)} ago"
            if again.by_person:
                yield f"{again.run} was lost; it is not run again, since a person had started it again as queue item {item} (noted {ago})"
            else:
                yield f"{again.run} was lost, and was run again {ago} as queue item {item} (time {again.times})"
    for left in memory.fleet.left.values():
        if job_name_of(left.run) == job:
            yield f"{left.run} was lost {duration(now - left.at)} ago, and is left to a person: {left.why}"


def lost_seen(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name the jobs of which lost builds were left to a person, a message for each."""
    by_job = grouped(((left.controller, job_name_of(left.run)), left) for left in situation.memory.fleet.left.values())
    for (controller, job), builds in by_job.items():
        lines = (
            *lines_of([f"{one.run} on {one.controller}: {one.why}" for one in builds], _NAMED),
            "Nothing starts it again by itself: look at it, and start it by hand where it is still wanted.",
        )
        title, ask = f"a lost build of {job} is left to you", f"autoscaler why '{job}'"
        yield f"{LOST}{controller} {job}", Seen(title, "\n".join(lines), "operations.md#builds-left", ask)
