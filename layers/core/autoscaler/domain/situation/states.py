"""The table of states: each that an agent may be in, how it is recognised, what ends it, by when, and what follows if nothing does.

A deadline counts the seconds in which the agent's controller, or EC2, could be seen. `state_of` finds the one state of an agent, and
`domain.lifecycle` does what follows. States of launches, instances and nodes without an agent stand in the table for people. `make
reference` writes it as a page.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from autoscaler.domain.facts.fleet import Pool
from autoscaler.domain.facts.memory import InState, Memory, Observation
from autoscaler.domain.facts.metering import HOUR_SECONDS
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.snapshot import OFF, InstanceState, RecordState
from autoscaler.domain.situation.agents import FORGOTTEN_AFTER_SECONDS, Agent, Phase
from autoscaler.domain.situation.looks import EC2
from autoscaler.domain.situation.situation import Look, Situation

# Where the operator sets no drain_timeout_seconds.
DRAINS_SECONDS = 12 * HOUR_SECONDS
# EC2 ends an instance within minutes; one that hangs hardly ever goes on by itself.
SHUTS_DOWN_SECONDS = 1800.0
# EC2 says of a forced stop that it may take ten minutes.
FORCED_SECONDS = 600.0
STOPS_SECONDS = 2 * FORCED_SECONDS

# EC2's reasons for what a person or a tool has ended or stopped, or EC2 for an event that it had announced.
BY_OTHERS = ("Client.UserInitiatedShutdown", "Server.ScheduledStop")

# Seconds, by the pool and by the time that builds have to resume after a restart of their controller.
Limit = Callable[[Pool, float], float]
_STOPPED = RecordState.STOPPED
# How people are told of a state, in lists and on pages.
Word = Literal["booting", "idle", "busy", "draining", "stopped", "set aside", "ending"]
_OUT_OF_SERVICE = (RecordState.CONDEMNED, RecordState.STOPPING, _STOPPED)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AgentState:
    """A state that an agent may be in, and its deadline.

    ``recognised_by``: in words; ``holds``: the same as a rule, for what the states before it leave over. ``deadline``: in words; ``limit``:
    the same as a number, if it is one; ``then``: what follows. ``told``: when people are told, in words. If no other message says the
    same, ``told_after`` is that time and ``says`` how an agent is spoken of; ``daily``: it is told again each day. ``by_ec2``: seconds
    count in which EC2 could be seen.
    """

    name: str
    word: Word | None = None  # None: of what is no agent
    recognised_by: str
    holds: Callable[[Situation, Agent], bool] = lambda _situation, _agent: False
    ended_by: str
    deadline: str
    then: str
    told: str
    limit: Limit | None = None
    told_after: Limit | None = None
    says: str = ""
    title: str = ""  # of that message, where it is told at once; "": that it lasts too long
    daily: bool = False
    by_ec2: bool = False
    has_ended: bool = False  # its machine


def is_by_others(look: Look, agent: Agent) -> bool:
    """Tell whether neither we nor its builds have ended or stopped an agent, as far as EC2 says why that is."""
    return (
        agent.record.state is RecordState.REGISTERED
        and look.snapshot.end_reasons.get(agent.record.machine) in BY_OTHERS
        and (agent.instance_ended or agent.phase is not Phase.RESERVED)  # a person may stop what is reserved for them
    )


def _drain_timeout(pool: Pool, _resume: float) -> float:
    return DRAINS_SECONDS if pool.drain_timeout_seconds is None else pool.drain_timeout_seconds


BOOTS = AgentState(
    name="boots",
    word="booting",
    recognised_by="record `requested`, or a node that has not connected yet",
    holds=lambda _s, a: a.record.state is RecordState.REQUESTED or a.phase.boots,
    ended_by="its node is online",
    deadline="`boot_timeout_seconds`",
    then="not registered: terminated after two looks; registered: drained",
    told="with the third failed boot in a row (`agents of POOL do not boot`); one that lasts an hour longer by itself",
    limit=lambda pool, _resume: pool.boot_timeout_seconds,
    told_after=lambda pool, _resume: pool.boot_timeout_seconds + HOUR_SECONDS,
    says="boots",
)
STARTS = AgentState(
    name="starts",
    word="booting",
    recognised_by="record `starting`",
    holds=lambda _s, a: a.record.state is RecordState.STARTING,
    ended_by="its node is online",
    deadline="`boot_timeout_seconds`",
    then="terminated; a start that EC2 does not show is asked for again until then; jobs are served otherwise after two usual starts",
    told="with the third failed start (`stopped agents of POOL do not start`); one that lasts an hour longer by itself",
    limit=lambda pool, _resume: pool.boot_timeout_seconds,
    told_after=lambda pool, _resume: pool.boot_timeout_seconds + HOUR_SECONDS,
    says="starts",
)
INTERRUPTED = AgentState(
    name="interrupted",
    word="draining",
    recognised_by="EC2 announced that it takes the instance back",
    holds=lambda _s, a: a.phase is Phase.INTERRUPTED,
    ended_by="EC2 ends it",
    deadline="10 min",
    then="used again",
    told="no; if EC2 takes machines back again and again, by that message",
    limit=lambda _pool, _resume: 600.0,
    by_ec2=True,
)
WORKS = AgentState(
    name="works",
    word="busy",
    recognised_by="online, and busy",
    holds=lambda _s, a: a.phase is Phase.READY and (not a.idle or bool(a.node and a.node.ended)),
    ended_by="its builds end",
    deadline="10 times the longest of a job's last builds, at least 1 h; 12 h if nobody knows",
    then="the run is asked whether it has ended; a machine that is to blame is quarantined",
    told="`builds-overdue`; builds that have ended by that message",
)
IDLE = AgentState(
    name="idle",
    word="idle",
    recognised_by="online, and idle",
    holds=lambda _s, a: a.phase is Phase.READY,
    ended_by="a build begins",
    deadline="what keeping it is worth, at most `max_idle_seconds`; minimums, warm executors and people's wishes apart",
    then="drained",
    told="an hour after `max_idle_seconds`",
    told_after=lambda pool, _resume: pool.max_idle_seconds + HOUR_SECONDS,
    says="is idle",
)
LENT = AgentState(
    name="lent",
    word="idle",
    recognised_by="a loan in its record",
    holds=lambda s, a: a.phase is Phase.READY and a.record.is_lent(s.now),
    ended_by="a job of its own kind, or the end of the loan",
    deadline="the end of the loan",
    then="it gets its own labels back",
    told="an hour after that, if it still has the labels that it was lent with",
)
REFUSES = AgentState(
    name="refuses",
    word="idle",
    recognised_by="it stood free beside a job for three minutes or more, of which other agents then took more than ran before",
    holds=lambda s, a: a.phase is Phase.READY and s.refuses_all(a),
    ended_by="it takes a build",
    deadline="none",
    then="it counts for nothing; if idle it is replaced, one at a time in a pool",
    told="at once (`NODES take no builds`)",
)
DRAINS = AgentState(
    name="drains",
    word="draining",
    recognised_by="our mark, and not idle",
    holds=lambda _s, a: a.phase.is_out_of_use and not a.idle,
    ended_by="its builds end",
    deadline="`drain_timeout_seconds`, else 12 h",
    then="its runs are asked whether they have ended; no build is killed",
    told="at the deadline, then daily",
    limit=_drain_timeout,
    told_after=_drain_timeout,
    says="drains",
    daily=True,
)
DRAINED = AgentState(
    name="drained",
    word="draining",
    recognised_by="our mark, and idle",
    holds=lambda _s, a: a.phase.is_out_of_use,
    ended_by="it is terminated or stopped, or demand brings it back",
    deadline="two looks",
    then="its node is read once more, and it ends",
    told="after 1 h",
    limit=lambda _pool, _resume: 60.0,
    told_after=lambda _pool, _resume: HOUR_SECONDS,
    says="has drained, and still runs",
)
BOUND = AgentState(
    name="bound",
    word="draining",
    recognised_by="our mark, idle, and a build may be bound to it: by name, or since a restart",
    holds=lambda s, a: a.phase.is_out_of_use and s.protected(a),
    ended_by="the run is seen again, has ended, or leaves the queue",
    deadline="`resume_timeout_seconds`, since a restart; no deadline for what waits for it by name",
    then="it ends as any drained agent",
    told="after `resume_timeout_seconds`, then daily",
    limit=lambda _pool, resume: resume,
    told_after=lambda _pool, resume: resume,
    says="has drained, and is kept for a build that may be bound to it",
    daily=True,
)
ROTATES = AgentState(
    name="rotates",
    word="draining",
    recognised_by="our mark to serve another controller, and idle",
    holds=lambda _s, a: a.phase.is_out_of_use and a.mark is not None and a.mark.kind is MarkClass.ROTATE,
    ended_by="it is sent there; used again if nobody waits there any more",
    deadline="two looks",
    then="it is sent there",
    told="after 1 h",
    limit=lambda _pool, _resume: 60.0,
    told_after=lambda _pool, _resume: HOUR_SECONDS,
    says="was to serve another controller, and is still there",
)
KEPT = AgentState(
    name="kept",
    word="set aside",
    recognised_by="drained, and kept: `quarantine: keep`, or a host",
    holds=lambda s, a: a.phase.is_out_of_use and (s.is_kept(a) or a.record.is_host),
    ended_by="a person resumes or terminates it",
    deadline="none",
    then="it stays",
    told="after 24 h, then daily",
    told_after=lambda _pool, _resume: 24 * HOUR_SECONDS,
    says="is kept for a person",
    daily=True,
)
LOST = AgentState(
    name="lost",
    word="set aside",
    recognised_by="it was online, and its connection is lost",
    holds=lambda _s, a: a.phase is Phase.LOST,
    ended_by="its node is online",
    deadline="5 min",
    then="drained, unless a build is bound to it",
    told="after 1 h",
    limit=lambda _pool, _resume: 300.0,
    told_after=lambda _pool, _resume: HOUR_SECONDS,
    says="is not connected",
)
MONITOR = AgentState(
    name="offline-by-a-monitor",
    word="set aside",
    recognised_by="a monitor of Jenkins or of a plugin took it offline",
    holds=lambda _s, a: a.phase is Phase.MARKED,
    ended_by="the monitor brings it back",
    deadline="10 min",
    then="drained and replaced; if most agents of the controller are marked, one an hour is tried instead",
    told="at the deadline (`Jenkins took agents of POOL offline`)",
    limit=lambda _pool, _resume: 600.0,
)
PERSON = AgentState(
    name="offline-by-a-person",
    word="set aside",
    recognised_by="a person took it offline",
    holds=lambda _s, a: a.phase is Phase.SET_ASIDE,
    ended_by="that person brings it online",
    deadline="none",
    then="it stays, and is paid",
    told="after 24 h, then daily",
    told_after=lambda _pool, _resume: 24 * HOUR_SECONDS,
    says="was taken offline by a person",
    daily=True,
)
RESERVED = AgentState(
    name="reserved",
    word="set aside",
    recognised_by="a person reserved it",
    holds=lambda _s, a: a.phase is Phase.RESERVED,
    ended_by="the end of the reservation",
    deadline="the end of the reservation",
    then="drained, and terminated",
    told="half an hour before the end",
)
NODELESS = AgentState(
    name="nodeless",
    word="ending",
    recognised_by="registered, and Jenkins has no such node",
    holds=lambda _s, a: a.phase is Phase.NODELESS,
    ended_by="its node is there again",
    deadline="two looks",
    then="terminated, at most 30 % of a pool in a pass",
    told="after 1 h",
    limit=lambda _pool, _resume: 60.0,
    told_after=lambda _pool, _resume: HOUR_SECONDS,
    says="has no node",
)
STOPPING = AgentState(
    name="stopping",
    word="stopped",
    recognised_by="record `stopping`",
    holds=lambda _s, a: a.record.state is RecordState.STOPPING or (a.record.state is _STOPPED and a.instance is InstanceState.STOPPING),
    ended_by="EC2 says that it has stopped",
    deadline="20 min",
    then="stopped by force after 10 min, terminated after 20; if EC2 refuses the stop for good, at once",
    told="after 15 min; refused stops by that message",
    limit=lambda _pool, _resume: STOPS_SECONDS,
    told_after=lambda _pool, _resume: STOPS_SECONDS - 300.0,
    says="is stopping",
    by_ec2=True,
)
STOPPED = AgentState(
    name="stopped",
    word="stopped",
    recognised_by="record `stopped`, and EC2 agrees",
    holds=lambda _s, a: a.record.state is _STOPPED and a.instance is InstanceState.STOPPED,
    ended_by="it is started",
    deadline="what its disk is worth, at most `warm_pool.max_age_hours`",
    then="terminated",
    told="no",
    limit=lambda pool, _resume: pool.warm_pool.max_age_seconds if pool.warm_pool else 0.0,
    by_ec2=True,
)
BY_HAND = AgentState(
    name="changed-by-hand",
    word="set aside",
    recognised_by="EC2 shows that a person stopped or started it",
    holds=lambda _s, a: a.record.state is _STOPPED or (a.instance in OFF and a.phase not in (Phase.UNSEEN, Phase.RESERVED)),
    ended_by="record and EC2 agree",
    deadline="two looks; a stop while something is bound to its node: `resume_timeout_seconds`",
    then="started: used as any other; stopped: kept stopped if its pool does that, else terminated",
    told="after 1 h; a stop of an agent at once (`agents of POOL are ended by others`)",
    limit=lambda _pool, _resume: 60.0,
    told_after=lambda _pool, _resume: HOUR_SECONDS,
    says="was stopped or started by a person",
    by_ec2=True,
)
ENDS = AgentState(
    name="ends",
    word="ending",
    recognised_by="record `condemned`, and EC2 does not show its end",
    holds=lambda _s, a: a.record.state is RecordState.CONDEMNED,
    ended_by="EC2 ends it",
    deadline="each look",
    then="asked for again",
    told="after 1 h, then daily",
    limit=lambda _pool, _resume: HOUR_SECONDS,
    told_after=lambda _pool, _resume: HOUR_SECONDS,
    says="was given up, and still runs",
    daily=True,
    by_ec2=True,
)
REFUSED = AgentState(
    name="refused",
    word="ending",
    recognised_by="record `condemned`, and EC2 refuses to end it: it is protected, our role may not, or EC2 fails",
    holds=lambda s, a: a.record.state is RecordState.CONDEMNED and s.past(a).stuck is not None,
    ended_by="EC2 ends it, or a person does",
    deadline="none; after 1 h it holds no place in `max_agents`, and goes on counting in dollars",
    then="asked for again, after a minute at first and at last once an hour",
    told="after 10 min, with EC2's words, then daily",
    told_after=lambda _pool, _resume: 600.0,
    says="was given up, and EC2 does not end it",
    title="EC2 does not end them",
    daily=True,
    by_ec2=True,
)
SHUTS_DOWN = AgentState(
    name="shuts-down",
    word="ending",
    recognised_by="EC2 says `shutting-down`",
    holds=lambda _s, a: a.instance_ended,
    ended_by="EC2 says `terminated`",
    deadline="none; it holds no place in any limit",
    then="its node stays until it has terminated",
    told="after 30 min, then daily",
    told_after=lambda _pool, _resume: SHUTS_DOWN_SECONDS,
    says="shuts down",
    daily=True,
    by_ec2=True,
    has_ended=True,
)
NODE_LEFT = AgentState(
    name="node-left",
    word="ending",
    recognised_by="EC2 says that the instance is gone, and its record is open",
    holds=lambda _s, a: a.machine_gone,
    ended_by="its node is gone",
    deadline="two looks; 5 min if it looks busy, or something is bound to it",
    then="EC2 and Jenkins are asked once more, and the node is deleted",
    told="after 1 h",
    limit=lambda _pool, _resume: 300.0,
    told_after=lambda _pool, _resume: HOUR_SECONDS,
    says="is gone, and its node is left",
    by_ec2=True,
    has_ended=True,
)
ENDED_BY_OTHERS = replace(
    NODE_LEFT,
    name="ended-by-others",
    recognised_by="EC2 says that the instance of a registered agent is gone, ended by a person, by a tool, or for an event of its own",
    holds=lambda s, a: a.machine_gone and is_by_others(s, a),
    told="at once (`agents of POOL are ended by others`), once for all that end within a day, with the jobs that ran there; "
    "its node after 1 h",
    says="was ended by others, and its node is left",
)
MISSING = AgentState(
    name="missing",
    word="ending",
    recognised_by="given up, stopping or stopped, and EC2 does not show it",
    holds=lambda _s, a: a.instance is None and a.record.state in _OUT_OF_SERVICE,
    ended_by="EC2 shows it again",
    deadline="2 h; 24 h if its node looks busy",
    then="after two answers about it alone, ten minutes apart, it counts as gone",
    told="after 3 h",
    limit=lambda _pool, _resume: FORGOTTEN_AFTER_SECONDS,
    told_after=lambda _pool, _resume: FORGOTTEN_AFTER_SECONDS + HOUR_SECONDS,
    says="is not shown by EC2",
    by_ec2=True,
)
HOST_AWAY = AgentState(
    name="host-away",
    word="set aside",
    recognised_by="a host that is not connected",
    holds=lambda _s, a: a.record.is_host and (a.phase.is_on_its_way or a.phase is Phase.LOST),
    ended_by="its node is online",
    deadline="none",
    then="it stays as it is",
    told="after 15 min (`host NAME is not connected`)",
)
UNSEEN = AgentState(
    name="unseen",
    word="set aside",
    recognised_by="its controller, or its node, could not be read",
    holds=lambda _s, a: a.phase is Phase.UNSEEN,
    ended_by="a complete look",
    deadline="none; all other deadlines stand still",
    then="nothing is done to it",
    told="after 1 h, then daily (`controller NAME cannot be read`)",
)
# The first that holds: what EC2 says of a machine comes before its record, that before our mark, and that before its node.
OF_AGENTS = (
    *(ENDED_BY_OTHERS, NODE_LEFT, SHUTS_DOWN, MISSING, REFUSED, ENDS, STOPPED, STOPPING),
    *(INTERRUPTED, STARTS, BY_HAND, HOST_AWAY, BOOTS),
    *(UNSEEN, RESERVED, NODELESS, DRAINS, BOUND, KEPT, ROTATES, DRAINED),
    *(PERSON, MONITOR, LOST, WORKS, REFUSES, LENT, IDLE),
)


READY = (WORKS, REFUSES, LENT, IDLE)
MARKED_BY_US = (DRAINS, BOUND, KEPT, ROTATES, DRAINED)

# States of what is no agent, or not yet: launches, instances and nodes without a record, pauses and orders.


LEFT_THE_FILE, FOREIGN = "left-the-file", "foreign"

OF_OTHERS = (
    AgentState(
        name="launch-asked",
        recognised_by="a launch that was written down and not answered",
        ended_by="its instances are listed",
        deadline="10 min",
        then="asked again under the same token until then, and given up two looks later; neither while EC2 shows nothing at all",
        told="no; jobs that wait for it by their own message",
    ),
    AgentState(
        name="stray",
        recognised_by="an instance of ours without a record",
        ended_by="it gets a record",
        deadline="two looks",
        then="it gets a record, a row above, and `boot_timeout_seconds` from then on",
        told="no",
    ),
    AgentState(
        name=FOREIGN,
        recognised_by="an instance with our tags that CreateFleet did not launch: it lacks `aws:ec2:fleet-id`, which EC2 alone writes",
        ended_by="a person takes the tags off, or ends the instance",
        deadline="none",
        then="nothing is done to it: it is no agent, and is never adopted, stopped or terminated",
        told="at once, then daily",
    ),
    AgentState(
        name="orphan",
        recognised_by="a node of ours without a record, whose instance is gone, or whose host has left the fleet file",
        ended_by="its node is gone",
        deadline="two looks; 5 min if it looks busy, or something waits for it; builds of a host that is connected end first",
        then="EC2 and Jenkins are asked once more, and the node is deleted; that of a host is marked first",
        told="`steps-failing`, if Jenkins refuses",
    ),
    AgentState(
        name=LEFT_THE_FILE,
        recognised_by="a record whose controller is not in the fleet file any more",
        ended_by="a person puts the controller back, or ends the instance (`autoscaler end`)",
        deadline="none",
        then="its builds go on; it stays, and is paid",
        told="at once, then daily",
    ),
    AgentState(
        name="refused-job",
        recognised_by="a job that free executors did not take for three minutes, or more if Jenkins is slow",
        ended_by="it begins",
        deadline="10 min, then each 20 min",
        then="one more agent is tried for its label; four times as many after each try that was won",
        told="after `max_wait_seconds` (`free executors do not take jobs for LABEL`)",
    ),
    AgentState(
        name="waiting-job",
        recognised_by="a job that waits for longer than `max_wait_seconds`",
        ended_by="it begins, or leaves the queue",
        deadline="none",
        then="what keeps it goes on being tried",
        told="once for each cause",
    ),
    AgentState(
        name="pause",
        recognised_by="failed boots, or an answer of EC2 that refuses launches",
        ended_by="an agent connects, or EC2 launches one",
        deadline="the back-off of that failure, which grows",
        then="one agent is tried",
        told="while it lasts",
    ),
    AgentState(
        name="order",
        recognised_by="an order of a person with an end: a hold, numbers of a pool or team, a reservation",
        ended_by="its end, or a person",
        deadline="its end",
        then="the fleet file holds again; a held label is given back",
        told="jobs that wait for it after `max_wait_seconds`; an agent without the label an hour after the end",
    ),
)


# In which state each agent is, and since when.


_BY_NAME = {state.name: state for state in OF_AGENTS}


def state_of(situation: Situation, agent: Agent) -> AgentState:
    """Find the one state of an agent."""
    return next(state for state in OF_AGENTS if state.holds(situation, agent))


# Two looks make a fact: what was seen of an agent, an instance or a node that may have to be removed, and since when without a gap.


# A WebSocket agent is back within seconds of a lost connection; a rebooting one within a few minutes.
DISCONNECT_GRACE_SECONDS = 300.0
# Repairs act on what two invocations saw, this far apart: DescribeInstances lags by up to 30 s.
SECOND_LOOK_SECONDS = 60.0


class Condition(StrEnum):
    """What a look sees of an agent, an instance or a node that may have to be removed."""

    IDLE = "idle"  # ready, connected and idle
    UNLABELLED = "unlabelled"  # its labels were taken, and idle
    DRAINED = "drained"  # carries our mark, and idle
    OVERDUE = "overdue"  # not registered by its boot deadline
    NODELESS = "nodeless"  # registered, and its node is not there
    LOST = "lost"  # disconnected
    STOPPED = "stopped"  # its instance was stopped, and not by us
    STARTED = "started"  # its instance runs, and was not started by us
    ENDED = "ended"  # its instance is gone, its node is not
    STRAY = "stray"  # an instance of ours without a record
    ORPHAN = "orphan"  # a node of ours without a record, whose instance is gone, or whose host has left the file


def is_settled(situation: Situation, agent: Agent) -> bool:
    """Tell whether a drained agent may end: idle when cordoned and after, or drained in two invocations."""
    look = situation.past(agent).look
    if look is None or look.condition != Condition.DRAINED:
        return False
    was_idle = look.idle_before_at is not None and situation.now - look.idle_before_at >= agent.pool.drain_settle_seconds
    return was_idle or is_fact(situation, look)


def is_unlabelled_twice(situation: Situation, agent: Agent) -> bool:
    """Tell whether an agent without labels was idle in two looks since: builds handed to it before show by then."""
    look = situation.past(agent).look
    is_without = look is not None and look.condition == Condition.UNLABELLED
    return look is not None and is_without and situation.now - look.first_at >= agent.pool.drain_settle_seconds


def is_fact(situation: Situation, look: Observation) -> bool:
    """Tell whether something is seen now and was seen in another invocation, long enough ago."""
    is_new = look.request_id == situation.snapshot.request_id
    return look.last_at == situation.now and not is_new and situation.now - look.first_at >= SECOND_LOOK_SECONDS


def in_state(memory: Memory, state: str) -> dict[str, InState]:
    """Return what was last seen in a state, by instance id."""
    states = {name: past.state for name, past in memory.agents.items() if past.state}
    return {name: past for name, past in states.items() if past.state == state}


def state_named(name: str) -> AgentState | None:
    """Find a state by its name; None for one that this version does not have."""
    return _BY_NAME.get(name)


def seen_seconds(situation: Situation, agent: Agent, state: AgentState, since_at: float) -> float:
    """Count the seconds since then that count towards the deadline of a state."""
    return situation.seen_seconds(EC2 if state.by_ec2 else agent.record.controller, since_at)
