"""A recorded day as the page's source: what was true at any of its moments, from what the run's file says."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import product
from typing import Any

from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.report.ordered import meant
from autoscaler.domain.wording import counted, dollars, duration
from autoscaler_workbench.cli.alarms import AlarmState
from autoscaler_workbench.report.dashboard.alarms import state_of
from autoscaler_workbench.simulate.day import Day, DayAgent, DayAlarm, DayBuild, DayPool
from autoscaler_workbench.simulate.recording import AgentState, HeldSpan, StepTaken
from autoscaler_workbench.simulate.result import StepCurve
from autoscaler_workbench.ui.source import Past

_POINTS = 720
_HOUR = 3600.0
_STOPPED = "stopped"
_OF_SEVERAL = ("launch", "start")
_STEPS_TOLD = 5
_NAMES_LISTED = 30
_PAUSES = {str(reason) for reason in (Reason.BREAKER_OPEN, Reason.POOL_PAUSED, Reason.HELD)}


class RecordedDay:
    """A day of which every moment can be looked at."""

    def __init__(self, day: Day) -> None:
        """Keep the day."""
        self.day = day

    @property
    def title(self) -> str:
        """Say what was recorded."""
        return f"{self.day.fleet}, {self.day.trace}: {_day_and_time(self.begins_at)} to {_day_and_time(self.ends_at)} UTC"

    @property
    def begins_at(self) -> float:
        """Its first moment."""
        return self.day.began_at

    @property
    def ends_at(self) -> float:
        """Its last moment."""
        return self.day.ended_at

    @property
    def busiest_at(self) -> float:
        """When most was spent."""
        return max(self._spend, key=lambda point: point[1])[0]

    def at(self, when: float) -> "Moment":
        """Look at a moment."""
        return Moment(self.day, when, self._spend, self._every_seconds)

    @cached_property
    def _every_seconds(self) -> float:
        return max(60.0, (self.ends_at - self.begins_at) / _POINTS)

    @cached_property
    def _spend(self) -> tuple[tuple[float, float], ...]:
        """The most that was spent an hour, in each part of the day that a picture can show."""
        curve = StepCurve.of((begin, end, agent.usd_per_hour) for agent in self.day.agents for begin, end in agent.spells)
        every = self._every_seconds
        begins = [self.begins_at + number * every for number in range(int((self.ends_at - self.begins_at) / every) + 1)]
        return tuple((at, max(0.0, round(curve.most(at, at + every), 4))) for at in begins)


@dataclass(frozen=True, slots=True)
class Moment:
    """What was true at one moment, as `operate` would have answered."""

    day: Day
    now: float
    spend: tuple[tuple[float, float], ...]
    every_seconds: float

    def overview(self) -> dict[str, Any]:
        """Answer as one look would."""
        agents = list(self._agents())
        waiting = sorted(self._waiting(), key=lambda build: build.buildable_at)
        return {
            "now_at": self.now,
            "status": self._status(agents, waiting),
            "agents": agents,
            "queue": [self._queued(build) for build in waiting],
            "events": [*self._taken(), *self._held()],
            "holds": [],
            "numbers": [],
            "teams": [],
        }

    def past(self) -> Past:
        """Tell of the whole day, the rest of it too; of the alarms, what they were now."""
        known = self.day.alarms
        return Past(
            begins_at=self.day.began_at,
            ends_at=self.day.ended_at,
            spend=self.spend,
            every_seconds=self.every_seconds,
            alarms=[self._alarm(alarm) for alarm in known or ()],
            unknown="" if known is not None else "alarms: the metrics of this run were not measured",
        )

    def why(self, subject: str) -> list[str]:
        """Say what was recorded of a job, a node, an instance or a pool; list what a name may mean, if that is several."""
        likely = meant(subject, dict.fromkeys(self._known_names(), ()), {})
        if len(likely) > 1:
            return [f"{subject} may be any of these {len(likely)}; ask for one of them:", *likely[:_NAMES_LISTED]]
        return self._why(likely[0])

    def _known_names(self) -> Iterator[str]:
        yield from (build.job for build in self.day.builds)
        yield from (pool.pool for pool in self.day.pools)
        yield from (name for agent in self.day.agents for name in _names(agent))

    def _why(self, subject: str) -> list[str]:
        mine = [agent for agent in self.day.agents if subject in _names(agent) and agent.launched_at <= self.now]
        facts = [fact for agent in mine for fact in self._of_agent(agent)] + list(self._of_job(subject)) + list(self._of_pool(subject))
        names = {subject}.union(*(_names(agent) for agent in mine))
        steps = [step for step in self._steps() if step.node in names or step.pool == subject]
        return facts + [f"{_day_and_time(step.at)} {_what(step)}: {step.reason}: {step.detail}" for step in steps[-_STEPS_TOLD:]]

    def _status(self, agents: list[dict[str, Any]], waiting: list[DayBuild]) -> dict[str, Any]:
        limits = self.day.limits
        usd_per_hour = sum(agent["usd_per_hour"] for agent in agents)
        launched = sum(self.now - _HOUR < agent.launched_at <= self.now for agent in self.day.agents)
        return {
            "pools": [self._pool(controller, pool.pool, pool.max_agents, agents, waiting) for controller, pool in self._pools()],
            "problems": {},
            "failing": [],
            "without_jobs": [],
            "unread": [],
            "stopped": "",
            "agents": sum(agent["word"] != _STOPPED for agent in agents),
            "launches_in_the_hour": launched,
            "usd_per_hour": usd_per_hour,
            "reserved_usd_per_hour": usd_per_hour,
            "usd_in_the_month": sum(self._usd(agent) for agent in self.day.agents),
            **limits.model_dump(),
        }

    def _pools(self) -> Iterable[tuple[str, DayPool]]:
        return product(
            sorted({agent.controller for agent in self.day.agents} | {build.controller for build in self.day.builds}), self.day.pools
        )

    def _pool(self, controller: str, pool: str, max_agents: int, agents: list[dict[str, Any]], waiting: list[DayBuild]) -> dict[str, Any]:
        mine = [agent for agent in agents if (agent["controller"], agent["pool"]) == (controller, pool)]
        waits = [self.now - build.buildable_at for build in waiting if (build.controller, build.pool) == (controller, pool)]
        return {
            "controller": controller,
            "pool": pool,
            "starved": len(waits),
            "longest_wait_seconds": max(waits, default=0.0),
            "agents": {agent["word"]: 1 for agent in mine},
            "max_agents": max_agents,
            "paused": self._paused(pool),
        }

    def _paused(self, pool: str) -> str:
        """Say why nothing was launched there; what was held for other reasons is told with the steps."""
        holds = (held for held in self.day.held if held.pool == pool and held.first_at <= self.now <= held.last_at)
        return next((f"{held.reason}: {held.detail}" for held in holds if held.reason in _PAUSES), "")

    def _agents(self) -> Iterator[dict[str, Any]]:
        running: dict[tuple[str, str], list[str]] = {}
        for build in self.day.builds:
            if build.started_at is not None and build.started_at <= self.now and not _is_over(build.ended_at, self.now):
                running.setdefault((build.controller, build.node), []).append(build.job)
        alive = (agent for agent in self.day.agents if agent.launched_at <= self.now and not _is_over(agent.ended_at, self.now))
        for agent in sorted(alive, key=lambda agent: (agent.controller, agent.pool, agent.launched_at, agent.instance_id)):
            yield self._agent(agent, running.get((agent.controller, agent.node), []) if agent.node else [])

    def _agent(self, agent: DayAgent, jobs: list[str]) -> dict[str, Any]:
        is_on = any(begin <= self.now and not _is_over(end, self.now) for begin, end in agent.spells)
        named = ("controller", "pool", "node", "instance_id", "instance_type", "executors")
        return {name: getattr(agent, name) for name in named} | {
            "word": self._word(agent, busy=bool(jobs)) if is_on else _STOPPED,
            "state": "",
            "busy": len(jobs),
            "jobs": tuple(sorted(set(jobs))),
            "age_seconds": self.now - agent.launched_at,
            "usd_per_hour": agent.usd_per_hour if is_on else 0.0,
            "note": "",
        }

    def _word(self, agent: DayAgent, *, busy: bool) -> str:
        """Say what an agent does; whether one that has booted is busy or idle, its builds tell."""
        state = next((state for at, state in reversed(agent.states) if at <= self.now), AgentState.BOOTING)
        if state is AgentState.DRAINING or (state is AgentState.BOOTING and not busy):
            return str(state)
        return str(AgentState.BUSY if busy else AgentState.IDLE)

    def _waiting(self) -> Iterator[DayBuild]:
        for build in self.day.builds:
            started = build.started_at if build.started_at is not None else build.ended_at
            if build.buildable_at <= self.now and not _is_over(started, self.now):
                yield build

    def _queued(self, build: DayBuild) -> dict[str, Any]:
        waited = self.now - build.buildable_at
        return {"job": build.job, "label": build.label, "waiting_seconds": waited, "detail": _became(build, with_node=False)}

    def _steps(self) -> list[StepTaken]:
        return [step for step in self.day.steps if step.at <= self.now]

    def _taken(self) -> Iterator[dict[str, Any]]:
        for step in self._steps():
            subject = counted(step.count, "agent") if step.step in _OF_SEVERAL else step.node
            yield {name: getattr(step, name) for name in ("at", "reason", "detail", "outcome")} | {
                "what": step.step,
                "subject": subject,
                "where": step.pool,
            }

    def _held(self) -> Iterator[dict[str, Any]]:
        for held in self.day.held:
            if held.first_at <= self.now:
                facts = {"what": "not done", "subject": self._for_how_long(held), "where": held.pool, "outcome": "held"}
                yield facts | {"at": held.first_at, "reason": held.reason, "detail": held.detail}

    def _for_how_long(self, held: HeldSpan) -> str:
        seconds = min(held.last_at, self.now) - held.first_at
        return f"for {duration(seconds)}{' so far' if held.last_at > self.now else ''}" if seconds >= 1 else ""

    def _alarm(self, alarm: DayAlarm) -> dict[str, Any]:
        until_now = [(begin, None if not _is_over(end, self.now) else end) for begin, end in alarm.rang if begin <= self.now]
        since = (until_now[-1][0] if until_now[-1][1] is None else until_now[-1][1]) if until_now else None
        state = AlarmState(
            alarm=alarm.alarm, says=alarm.says, runbook=alarm.runbook, rang=alarm.rang, state=state_of(until_now), since_at=since
        )
        return asdict(state)

    def _usd(self, agent: DayAgent) -> float:
        seconds = sum(min(self.now, self.now if end is None else end) - begin for begin, end in agent.spells if begin <= self.now)
        return seconds / _HOUR * agent.usd_per_hour

    def _of_agent(self, agent: DayAgent) -> Iterator[str]:
        cost = f"{dollars(agent.usd_per_hour)} an hour"
        yield f"{agent.node or agent.instance_id} of {agent.pool}: {agent.instance_id}, {agent.instance_type}, {cost}"
        ended = f", ended at {_day_and_time(agent.ended_at)}" if agent.ended_at is not None else ""
        yield f"launched at {_day_and_time(agent.launched_at)}{ended}"
        mine = [build for build in self.day.builds if build.node == agent.node and build.started_at is not None] if agent.node else []
        done = sum(build.started_at is not None and build.started_at <= self.now for build in mine)
        later = f", and {len(mine) - done} after that" if len(mine) > done else ""
        yield f"{counted(done, 'build')} began on it until {_day_and_time(self.now)}{later}"

    def _of_job(self, job: str) -> Iterator[str]:
        known = [build for build in self.day.builds if build.job == job and build.buildable_at <= self.now]
        for build in known[-_STEPS_TOLD:]:
            label = f" for {build.label}" if build.label else ""
            yield f"queued{label} at {_day_and_time(build.buildable_at)}; {_became(build, with_node=True)}"

    def _of_pool(self, pool: str) -> Iterator[str]:
        if pool not in {one.pool for one in self.day.pools}:
            return
        agents = [agent for agent in self._agents() if agent["pool"] == pool]
        off = sum(agent["word"] == _STOPPED for agent in agents)
        waiting = sum(build.pool == pool for build in self._waiting())
        stopped = f" and {off} stopped" if off else ""
        yield f"{counted(waiting, 'job')} waited for {pool}, which had {counted(len(agents) - off, 'agent')}{stopped}"
        for held in self.day.held:
            if held.pool == pool and held.first_at <= self.now <= held.last_at:
                yield f"not done: {held.reason}: {held.detail}"


def _became(build: DayBuild, *, with_node: bool) -> str:
    if build.started_at is None:
        return "no executor took it that day" if build.pool else "no pool serves it"
    where = f" on {build.node}" if with_node and build.node else ""
    ended = f", ended at {_day_and_time(build.ended_at)}" if with_node and build.ended_at is not None else ""
    waited = duration(build.started_at - build.buildable_at)
    return f"it began at {_day_and_time(build.started_at)}{where}{ended}, after {waited}"


def _what(step: StepTaken) -> str:
    words = f"{step.step} {counted(step.count, 'agent')}" if step.step in _OF_SEVERAL else step.step
    return words if step.outcome == "done" else f"{words} ({step.outcome})"


def _names(agent: DayAgent) -> set[str]:
    return {name for name in (agent.node, agent.instance_id) if name}


def _is_over(end: float | None, now: float) -> bool:
    return end is not None and end <= now


def _day_and_time(at: float) -> str:
    """Write it in UTC."""
    return f"{datetime.fromtimestamp(at, UTC):%d %b %H:%M}"
