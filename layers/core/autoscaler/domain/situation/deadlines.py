"""The table of deadlines: each state in which an agent may be, what ends it, and what follows if nothing does.

A deadline counts the seconds in which the agent's controller, or EC2, could be seen. `row_of` finds the one row that fits an agent;
rows about launches, instances and nodes without an agent stand in the table for people. `make reference` writes it as a page.
"""

from collections.abc import Callable
from dataclasses import dataclass

from autoscaler.domain.facts.fleet import Pool
from autoscaler.domain.facts.metering import HOUR_SECONDS
from autoscaler.domain.situation.agents import FORGOTTEN_AFTER_SECONDS

_DAY_SECONDS = 24 * HOUR_SECONDS
# Where the operator sets no drain_timeout_seconds.
DRAINS_SECONDS = 12 * HOUR_SECONDS
# EC2 ends an instance within minutes; one that hangs hardly ever goes on by itself.
SHUTS_DOWN_SECONDS = 1800.0
# EC2 says of a forced stop that it may take ten minutes.
FORCED_SECONDS = 600.0
STOPS_SECONDS = 2 * FORCED_SECONDS
_MINUTES = 60.0

# Seconds, by the pool and by the time that builds have to resume after a restart of their controller.
Limit = Callable[[Pool, float], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A state, and its deadline.

    ``deadline``: in words; ``limit``: the same as a number, if it is one; ``then``: what follows. ``told``: when people are told, in
    words. If no other message says the same, ``told_after`` is that time and ``says`` how an agent is spoken of; ``daily``: it is told
    again each day. ``by_ec2``: seconds count in which EC2 could be seen.
    """

    name: str
    recognised_by: str
    ended_by: str
    deadline: str
    then: str
    told: str
    limit: Limit | None = None
    told_after: Limit | None = None
    says: str = ""
    daily: bool = False
    by_ec2: bool = False
    of_agents: bool = True


def _fixed(seconds: float) -> Limit:
    return lambda _pool, _resume: seconds


def _boot(pool: Pool, _resume: float) -> float:
    return pool.boot_timeout_seconds


def _an_hour_after_boot(pool: Pool, _resume: float) -> float:
    return pool.boot_timeout_seconds + HOUR_SECONDS


def _drain(pool: Pool, _resume: float) -> float:
    return DRAINS_SECONDS if pool.drain_timeout_seconds is None else pool.drain_timeout_seconds


def _an_hour_after_idle(pool: Pool, _resume: float) -> float:
    return pool.max_idle_seconds + HOUR_SECONDS


def _stopped(pool: Pool, _resume: float) -> float:
    return pool.warm_pool.max_age_seconds if pool.warm_pool else 0.0


def _resume(_pool: Pool, resume: float) -> float:
    return resume


BOOTS = Row(
    name="boots",
    recognised_by="record `requested`, or a node that has not connected yet",
    ended_by="its node is online",
    deadline="`boot_timeout_seconds`",
    then="not registered: terminated after two looks; registered: drained",
    told="with the third failed boot in a row (`agents of POOL do not boot`); one that lasts an hour longer by itself",
    limit=_boot,
    told_after=_an_hour_after_boot,
    says="boots",
)
STARTS = Row(
    name="starts",
    recognised_by="record `starting`",
    ended_by="its node is online",
    deadline="`boot_timeout_seconds`",
    then="terminated; a start that EC2 does not show is asked for again until then; jobs are served otherwise after two usual starts",
    told="with the third failed start (`stopped agents of POOL do not start`); one that lasts an hour longer by itself",
    limit=_boot,
    told_after=_an_hour_after_boot,
    says="starts",
)
INTERRUPTED = Row(
    name="interrupted",
    recognised_by="EC2 announced that it takes the instance back",
    ended_by="EC2 ends it",
    deadline="10 min",
    then="used again",
    told="no; if EC2 takes machines back again and again, by that message",
    limit=_fixed(10 * _MINUTES),
    by_ec2=True,
)
WORKS = Row(
    name="works",
    recognised_by="online, and busy",
    ended_by="its builds end",
    deadline="10 times the longest of a job's last builds, at least 1 h; 12 h if nobody knows",
    then="the run is asked whether it has ended; a machine that is to blame is quarantined",
    told="`builds-overdue`; builds that have ended by that message",
)
IDLE = Row(
    name="idle",
    recognised_by="online, and idle",
    ended_by="a build begins",
    deadline="what keeping it is worth, at most `max_idle_seconds`; minimums, warm executors and people's wishes apart",
    then="drained",
    told="an hour after `max_idle_seconds`",
    told_after=_an_hour_after_idle,
    says="is idle",
)
LENT = Row(
    name="lent",
    recognised_by="a loan in its record",
    ended_by="a job of its own kind, or the end of the loan",
    deadline="the end of the loan",
    then="it gets its own labels back",
    told="an hour after that, if it still has the labels that it was lent with",
)
REFUSES = Row(
    name="refuses",
    recognised_by="it stood free beside jobs of two folders, or for 15 min, and took none",
    ended_by="it takes a build",
    deadline="none",
    then="it counts for nothing; if idle it is replaced, one at a time in a pool",
    told="at once (`NODES take no builds`)",
)
DRAINS = Row(
    name="drains",
    recognised_by="our mark, and not idle",
    ended_by="its builds end",
    deadline="`drain_timeout_seconds`, else 12 h",
    then="its runs are asked whether they have ended; no build is killed",
    told="at the deadline, then daily",
    limit=_drain,
    told_after=_drain,
    says="drains",
    daily=True,
)
DRAINED = Row(
    name="drained",
    recognised_by="our mark, and idle",
    ended_by="it is terminated or stopped, or demand brings it back",
    deadline="two looks",
    then="its node is read once more, and it ends",
    told="after 1 h",
    limit=_fixed(60.0),
    told_after=_fixed(HOUR_SECONDS),
    says="has drained, and still runs",
)
BOUND = Row(
    name="bound",
    recognised_by="our mark, idle, and a build may be bound to it: by name, or since a restart",
    ended_by="the run is seen again, has ended, or leaves the queue",
    deadline="`resume_timeout_seconds`, since a restart; no deadline for what waits for it by name",
    then="it ends as any drained agent",
    told="after `resume_timeout_seconds`, then daily",
    limit=_resume,
    told_after=_resume,
    says="has drained, and is kept for a build that may be bound to it",
    daily=True,
)
ROTATES = Row(
    name="rotates",
    recognised_by="our mark to serve another controller, and idle",
    ended_by="it is sent there; used again if nobody waits there any more",
    deadline="two looks",
    then="it is sent there",
    told="after 1 h",
    limit=_fixed(60.0),
    told_after=_fixed(HOUR_SECONDS),
    says="was to serve another controller, and is still there",
)
KEPT = Row(
    name="kept",
    recognised_by="drained, and kept: `quarantine: keep`, or a host",
    ended_by="a person resumes or terminates it",
    deadline="none",
    then="it stays",
    told="after 24 h, then daily",
    told_after=_fixed(_DAY_SECONDS),
    says="is kept for a person",
    daily=True,
)
LOST = Row(
    name="lost",
    recognised_by="it was online, and its connection is lost",
    ended_by="its node is online",
    deadline="5 min",
    then="drained, unless a build is bound to it",
    told="after 1 h",
    limit=_fixed(300.0),
    told_after=_fixed(HOUR_SECONDS),
    says="is not connected",
)
MONITOR = Row(
    name="offline-by-a-monitor",
    recognised_by="a monitor of Jenkins or of a plugin took it offline",
    ended_by="the monitor brings it back",
    deadline="10 min",
    then="drained and replaced; if most agents of the controller are marked, one an hour is tried instead",
    told="at the deadline (`Jenkins took agents of POOL offline`)",
    limit=_fixed(10 * _MINUTES),
)
PERSON = Row(
    name="offline-by-a-person",
    recognised_by="a person took it offline",
    ended_by="that person brings it online",
    deadline="none",
    then="it stays, and is paid",
    told="after 24 h, then daily",
    told_after=_fixed(_DAY_SECONDS),
    says="was taken offline by a person",
    daily=True,
)
RESERVED = Row(
    name="reserved",
    recognised_by="a person reserved it",
    ended_by="the end of the reservation",
    deadline="the end of the reservation",
    then="drained, and terminated",
    told="half an hour before the end",
)
NODELESS = Row(
    name="nodeless",
    recognised_by="registered, and Jenkins has no such node",
    ended_by="its node is there again",
    deadline="two looks",
    then="terminated, at most 30 % of a pool in a pass",
    told="after 1 h",
    limit=_fixed(60.0),
    told_after=_fixed(HOUR_SECONDS),
    says="has no node",
)
STOPPING = Row(
    name="stopping",
    recognised_by="record `stopping`",
    ended_by="EC2 says that it has stopped",
    deadline="20 min",
    then="stopped by force after 10 min, terminated after 20; if EC2 refuses the stop for good, at once",
    told="after 15 min; refused stops by that message",
    limit=_fixed(STOPS_SECONDS),
    told_after=_fixed(STOPS_SECONDS - 300.0),
    says="is stopping",
    by_ec2=True,
)
STOPPED = Row(
    name="stopped",
    recognised_by="record `stopped`, and EC2 agrees",
    ended_by="it is started",
    deadline="what its disk is worth, at most `warm_pool.max_age_hours`",
    then="terminated",
    told="no",
    limit=_stopped,
    by_ec2=True,
)
BY_HAND = Row(
    name="changed-by-hand",
    recognised_by="EC2 shows that a person stopped or started it",
    ended_by="record and EC2 agree",
    deadline="two looks; a stop while something is bound to its node: `resume_timeout_seconds`",
    then="started: used as any other; stopped: kept stopped if its pool does that, else terminated",
    told="after 1 h",
    limit=_fixed(60.0),
    told_after=_fixed(HOUR_SECONDS),
    says="was stopped or started by a person",
    by_ec2=True,
)
ENDS = Row(
    name="ends",
    recognised_by="record `condemned`, and EC2 does not show its end",
    ended_by="EC2 ends it",
    deadline="each look; once an hour if EC2 refuses",
    then="asked for again",
    told="after 1 h, then daily",
    limit=_fixed(HOUR_SECONDS),
    told_after=_fixed(HOUR_SECONDS),
    says="was given up, and still runs",
    daily=True,
    by_ec2=True,
)
SHUTS_DOWN = Row(
    name="shuts-down",
    recognised_by="EC2 says `shutting-down`",
    ended_by="EC2 says `terminated`",
    deadline="none; it holds no place in any limit",
    then="its node stays until it has terminated",
    told="after 30 min, then daily",
    told_after=_fixed(SHUTS_DOWN_SECONDS),
    says="shuts down",
    daily=True,
    by_ec2=True,
)
NODE_LEFT = Row(
    name="node-left",
    recognised_by="EC2 says that the instance is gone, and its record is open",
    ended_by="its node is gone",
    deadline="two looks; 5 min if it looks busy, or something is bound to it",
    then="EC2 and Jenkins are asked once more, and the node is deleted",
    told="after 1 h",
    limit=_fixed(300.0),
    told_after=_fixed(HOUR_SECONDS),
    says="is gone, and its node is left",
    by_ec2=True,
)
MISSING = Row(
    name="missing",
    recognised_by="given up, stopping or stopped, and EC2 does not show it",
    ended_by="EC2 shows it again",
    deadline="2 h; 24 h if its node looks busy",
    then="after two answers about it alone, ten minutes apart, it counts as gone",
    told="after 3 h",
    limit=_fixed(FORGOTTEN_AFTER_SECONDS),
    told_after=_fixed(FORGOTTEN_AFTER_SECONDS + HOUR_SECONDS),
    says="is not shown by EC2",
    by_ec2=True,
)
HOST_AWAY = Row(
    name="host-away",
    recognised_by="a host that is not connected",
    ended_by="its node is online",
    deadline="none",
    then="it stays as it is",
    told="after 15 min (`host NAME is not connected`)",
)
UNSEEN = Row(
    name="unseen",
    recognised_by="its controller, or its node, could not be read",
    ended_by="a complete look",
    deadline="none; all other deadlines stand still",
    then="nothing is done to it",
    told="after 1 h, then daily (`controller NAME cannot be read`)",
)
# In the order in which people read them.
AGENT_ROWS = (
    *(BOOTS, STARTS, INTERRUPTED, WORKS, IDLE, LENT, REFUSES, DRAINS, DRAINED, BOUND, ROTATES, KEPT, LOST, MONITOR),
    *(PERSON, RESERVED, NODELESS, STOPPING, STOPPED, BY_HAND, ENDS, SHUTS_DOWN, NODE_LEFT, MISSING, HOST_AWAY, UNSEEN),
)


# Deadlines of what is no agent, or not yet: launches, instances and nodes without a record, pauses and orders.


LEFT_THE_FILE, FOREIGN = "left-the-file", "foreign"

OTHER_ROWS = (
    Row(
        name="launch-asked",
        recognised_by="a launch that was written down and not answered",
        ended_by="its instances are listed",
        deadline="10 min",
        then="asked again under the same token until then; afterwards given up once two looks show none of its instances",
        told="no; jobs that wait for it by their own message",
        of_agents=False,
    ),
    Row(
        name="stray",
        recognised_by="an instance of ours without a record",
        ended_by="it gets a record",
        deadline="two looks",
        then="it gets a record, a row above, and `boot_timeout_seconds` from then on",
        told="no",
        of_agents=False,
    ),
    Row(
        name=FOREIGN,
        recognised_by="an instance with our tags that CreateFleet did not launch: it lacks `aws:ec2:fleet-id`, which EC2 alone writes",
        ended_by="a person takes the tags off, or ends the instance",
        deadline="none",
        then="nothing is done to it: it is no agent, and is never adopted, stopped or terminated",
        told="at once, then daily",
        of_agents=False,
    ),
    Row(
        name="orphan",
        recognised_by="a node of ours without a record, whose instance is gone",
        ended_by="its node is gone",
        deadline="two looks; 5 min if it looks busy, or something waits for it",
        then="EC2 and Jenkins are asked once more, and the node is deleted",
        told="`steps-failing`, if Jenkins refuses",
        of_agents=False,
    ),
    Row(
        name=LEFT_THE_FILE,
        recognised_by="a record whose controller is not in the fleet file any more",
        ended_by="a person puts the controller back, or ends the instance (`autoscaler end`)",
        deadline="none",
        then="its builds go on; it stays, and is paid",
        told="at once, then daily",
        of_agents=False,
    ),
    Row(
        name="refused-job",
        recognised_by="a job that free executors did not take for three minutes",
        ended_by="it begins",
        deadline="5, 10, 20, then each 30 min",
        then="one more agent is tried for its label",
        told="after `max_wait_seconds` (`free executors do not take jobs for LABEL`)",
        of_agents=False,
    ),
    Row(
        name="waiting-job",
        recognised_by="a job that waits for longer than `max_wait_seconds`",
        ended_by="it begins, or leaves the queue",
        deadline="none",
        then="what keeps it goes on being tried",
        told="once for each cause",
        of_agents=False,
    ),
    Row(
        name="pause",
        recognised_by="failed boots, or an answer of EC2 that refuses launches",
        ended_by="an agent connects, or EC2 launches one",
        deadline="the back-off of that failure, which grows",
        then="one agent is tried",
        told="while it lasts",
        of_agents=False,
    ),
    Row(
        name="order",
        recognised_by="an order of a person with an end: a hold, numbers of a pool or team, a reservation",
        ended_by="its end, or a person",
        deadline="its end",
        then="the fleet file holds again; a held label is given back",
        told="jobs that wait for it after `max_wait_seconds`; an agent without the label an hour after the end",
        of_agents=False,
    ),
)
