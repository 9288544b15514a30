"""View a pool on one controller: its agents, its schedules and reserved capacity now, and the price and boot of one more."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from math import ceil, inf
from statistics import fmean, median

from autoscaler.domain.facts.fleet import Fleet, Market, Offering, Pool, stoppable
from autoscaler.domain.facts.memory import Learned, Memory, PoolNeeds, Sighting, Trial, Window
from autoscaler.domain.facts.metering import MINIMUM_BILLED_SECONDS
from autoscaler.domain.facts.orders import Overrides, text_of
from autoscaler.domain.facts.pools import moment, now_and_next, pool_at
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Build, RecordState, Snapshot, parts_of, version_of
from autoscaler.domain.forecast.durations import expected_seconds, job_key
from autoscaler.domain.forecast.forecast import Prospects
from autoscaler.domain.forecast.job_patterns import AgentCosts
from autoscaler.domain.forecast.keeping import Costs, Keeping, KeepingStopped
from autoscaler.domain.situation.agents import Agent, Phase, is_doubtful
from autoscaler.domain.situation.bets import (
    ACCOUNT,
    MISSED,
    TrialOf,
    boots_badly,
    closed,
    due_at,
    failing,
    in_the_way,
    is_taken_back,
    next_try_at,
    told_boots,
    told_refused,
    trials_of,
    why_none_connects,
)
from autoscaler.domain.wording import duration

# When reserved capacity takes its last builds: a block early enough that nearly all of them end before EC2 ends its machines.


# Before a pool has seen builds end: an hour, which most CI jobs take less than.
ASSUMED_LONG_BUILD_SECONDS = 3600.0
_SHARE = 0.95


def closes_at(pool: Pool, learned: Iterable[Learned]) -> float:
    """Return from when on agents of a pool take no new builds, since their capacity ends; never where they are of none."""
    capacity = pool.capacity
    if capacity is None or capacity.leaves_at == inf:
        return inf
    return capacity.leaves_at - (long_build_seconds(pool.name, learned) if capacity.block else 0.0)


def long_build_seconds(pool: str, learned: Iterable[Learned]) -> float:
    """Return the 95th percentile of the builds that were seen in a pool."""
    samples = sorted(seconds for one in learned for seconds in one.samples.get(job_key("", pool), ()))
    return samples[ceil(_SHARE * len(samples)) - 1] if samples else ASSUMED_LONG_BUILD_SECONDS


# Boots and starts that were seen lately, once there are enough of them to be believed.


# p50 of the boots seen is used once there are this many.
BOOTS_TO_TRUST = 10
# If even the quickest of so many starts was slower than is believed, that is believed no longer: agents would be stopped too soon.
STARTS_TO_DOUBT = 3
_KEPT = 50


def trusted(times: tuple[float, ...]) -> tuple[float, ...]:
    """Boots, or starts, that were seen lately, in seconds; none before there are enough. What cannot be was measured by a wrong clock."""
    possible = tuple(seconds for seconds in times if seconds > 0.0)
    return possible if len(possible) >= BOOTS_TO_TRUST else ()


def usual_start_seconds(memory: Memory, pool: str, believed_seconds: float) -> float:
    """How long a stopped agent of a pool takes to start: p50 of the starts seen. Of a few the quickest, if it took longer than believed."""
    if starts := trusted(memory.pool(pool).starts):
        return median(starts)
    few = memory.pool(pool).starts
    return max(believed_seconds, min(few)) if len(few) >= STARTS_TO_DOUBT else believed_seconds


def times_of(unnoted: Iterable[Agent]) -> dict[str, tuple[float, ...]]:
    """Say by pool how long agents took from launch, or start, to registration; what cannot be was measured by a wrong clock."""
    times: dict[str, tuple[float, ...]] = {}
    for agent in unnoted:
        record = agent.record
        seconds = (record.registered_at or 0.0) - record.began_at
        if record.is_measured and 0.0 < seconds <= agent.pool.boot_timeout_seconds:
            times[record.pool] = (*times.get(record.pool, ()), seconds)
    return times


def last_times(known: tuple[float, ...], new: Iterable[float]) -> tuple[float, ...]:
    """Add boots, or starts, to those that were seen; the oldest go."""
    return (*known, *new)[-_KEPT:]


# Boots that end just after their deadline.


# After so many boots in a row that were quick enough the time is as it was.
_SLOW_REMEMBERED = 8


def slow_to_boot(fleet: Fleet, snapshot: Snapshot) -> frozenset[str]:
    """Name the instances that have twice the time to boot: boots took longer lately, or earlier ones were lost at their deadline.

    Agents launched before the first of those losses keep their deadline. So do agents that count as lost.
    """
    memory = snapshot.memory
    lost = {name: trial for name, trial in trials_of(memory, TrialOf.BOOT).items() if trial.is_closed and trial.why.startswith(MISSED)}
    longest = {name: max(memory.pool(name).boots[-_SLOW_REMEMBERED:], default=0.0) for name in fleet.pools}
    slow = {name for name, pool in fleet.pools.items() if longest[name] > pool.boot_timeout_seconds}
    return frozenset(
        record.instance_id
        for record in snapshot.records
        if record.pool in slow
        or ((trial := lost.get(record.pool)) and record.began_at >= trial.since_at and record.instance_id not in trial.failed)
    )


# The view of a pool.


# From the call until EC2 says that an instance has stopped, about: the operating system shuts down.
STOP_SECONDS = 40.0
# Until that many starts were seen, one is believed to take this share of a boot.
STARTS_TAKE_SHARE = 0.6


@dataclass(frozen=True, kw_only=True)
class PoolView:
    """One pool on one controller, with what planning takes for its price and its boot: worked out when a rule asks for it."""

    controller: str
    spec: Pool
    agents: tuple[Agent, ...]
    memory: Memory
    overrides: Overrides
    now: float
    offerings: tuple[Offering, ...]  # that may be asked for, in order of preference
    costs: AgentCosts  # of one more agent, and what it spares
    version: str = ""  # that is launched; "" where EC2 does not say
    to_try: str = ""  # the version of a new image, which one agent tries; "" where there is none
    offerings_to_try: tuple[Offering, ...] = ()  # that EC2 refused, and one agent may be asked for now
    places_to_try: tuple[Offering, ...] = ()  # on which boots failed, and one of several agents may boot now
    no_node: str = ""  # why Jenkins makes no node for an agent; "" if it does
    closes_at: float = inf  # from when on its agents take no new builds, since their capacity ends
    # By starved items and builds that came back, once asked for.
    _prospects: dict[tuple[int, int], Prospects] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def name(self) -> str:
        """Its name in the fleet file: a queue asks for it tens of thousands of times."""
        return self.spec.name

    @cached_property
    def executors(self) -> int:
        """Executors of one agent."""
        return self.spec.executors

    @property
    def key(self) -> tuple[str, str]:
        """Controller and pool name."""
        return self.controller, self.name

    @property
    def full_name(self) -> str:
        """Under which its own past is remembered."""
        return f"{self.controller}/{self.name}"

    @property
    def needs(self) -> PoolNeeds:
        """What its controller needed of it, as far as anybody saw."""
        return self.memory.needs(self.controller, self.name)

    @property
    def window(self) -> Window | None:
        """What was needed, as far as anybody saw; None before the first look."""
        return self.needs.window

    @cached_property
    def ready(self) -> list[Agent]:
        """Its agents that take builds."""
        return [agent for agent in self.agents if agent.phase is Phase.READY and not agent.instance_ended]

    @cached_property
    def stopped(self) -> list[Agent]:
        """Its agents whose disks alone are kept."""
        return [agent for agent in self.agents if agent.phase is Phase.STOPPED and not agent.instance_ended]

    @cached_property
    def marked(self) -> list[Agent]:
        """Its agents that a monitor took offline."""
        return [agent for agent in self.agents if agent.phase is Phase.MARKED and not agent.instance_ended]

    @cached_property
    def doubt(self) -> Trial | None:
        """Monitors took most agents of its controller offline, and may do so with the next one of this pool."""
        marked = failing(self.memory, TrialOf.MARKED.scope(self.controller))
        return marked if marked and is_doubtful(self.agents) else None

    @property
    def lent(self) -> list[Agent]:
        """Its agents that jobs of a more general kind may use now."""
        return [agent for agent in self.ready if agent.record.is_lent(self.now)]

    @property
    def ready_executors(self) -> int:
        """Executors of the agents that take builds, as Jenkins has them; where jobs have weights, as the fleet file has them."""
        return sum(agent.executors for agent in self.ready)

    def in_use(self, starved: int) -> int:
        """Count busy executors, those that starved items want, and warm executors: what agents are needed for, if packed."""
        return self.busy_executors + starved + self.spec.warm_executors

    @cached_property
    def busy_executors(self) -> int:
        """Executors at work on agents that take builds; without the jobs of a more general kind, to which they are lent.

        What runs on an agent that is out of use, for whatever reason, may run for very long: no other agent is kept for it.
        """
        executors = sum(agent.taken_executors for agent in self.ready)
        return executors - sum(agent.borrowed_executors(self.now) for agent in self.ready if agent.record.lent_until)

    @property
    def left_executors(self) -> list[int]:
        """How many executors each agent at work has beside its builds. What resumes may run beside all of them."""
        return [max(0, agent.executors - agent.taken_executors) for agent in self.ready if agent.taken_executors]

    @cached_property
    def builds(self) -> tuple[Build, ...]:
        """The builds on agents that take builds."""
        return tuple(build for agent in self.ready if agent.node for build in agent.node.builds)

    def returned(self, running: Mapping[str, Sighting]) -> int:
        """Count the builds that came back with their agents since the last look: they are no new demand. ``running``: seen before."""
        if self.window is None or self.window.builds is None:
            return 0
        seen = (running.get(build.key) for build in self.builds)
        older = sum(sighting is not None and sighting.since_at <= self.window.seen_at for sighting in seen)
        return max(0, older - self.window.builds)

    def prospects(self, starved: int, running: Mapping[str, Sighting]) -> Prospects:
        """What forecasts may know of it. ``running``: builds of its controller that were seen before."""
        # Each pass of a look asks for the same again.
        returned = self.returned(running)
        if (starved, returned) not in self._prospects:
            in_use = self.in_use(starved)
            # Jobs that free executors refuse are not foreseen, and how many of them came at once says nothing of what will run.
            refused = frozenset(
                job
                for ration in self.memory.controller(self.controller).rations.values()
                if ration.is_closed and self.name in ration.pools
                for job in ration.jobs
            )
            self._prospects[starved, returned] = Prospects(
                costs=self.costs,
                starting=self.ready_costs if self.stopped else None,
                at_hand=len(self.stopped) * self.executors + max(0, self.ready_executors - in_use) if self.stopped else 0,
                in_use=in_use,
                returned=returned,
                window=self.window,
                growths=() if refused else self.needs.growths,
                declined=refused,
            )
        return self._prospects[starved, returned]

    @cached_property
    def boot_seconds(self) -> float:
        """How long a boot takes, by those seen lately."""
        return self.costs.boot_seconds

    @cached_property
    def start_seconds(self) -> float:
        """How long a stopped agent takes to start, by those seen lately."""
        return usual_start_seconds(self.memory, self.name, STARTS_TAKE_SHARE * self.boot_seconds)

    @cached_property
    def ready_costs(self) -> AgentCosts:
        """What one more agent costs and spares that is stopped, and starts."""
        vain_seconds = max(self.start_seconds, MINIMUM_BILLED_SECONDS) + self.costs.look_seconds + self.spec.drain_settle_seconds
        return replace(self.costs, boot_seconds=self.start_seconds, vain_seconds=vain_seconds)

    @cached_property
    def short_seconds(self) -> float:
        """How much longer than a boot is waited for an agent, since machines were short lately."""
        return expected_seconds(self.memory.pool(self.name).capacity, self.now, self.boot_seconds)

    @property
    def boots(self) -> tuple[float, ...]:
        """How long its agents took to boot lately, in seconds; none before enough were seen."""
        return trusted(self.memory.pool(self.name).boots)

    @property
    def refused_detail(self) -> str:
        """Say why nothing is offered now, and when one agent is tried."""
        trials = in_the_way(self.spec, self.memory)
        if not trials:
            return "EC2 refused spot instances of the pool, and it waits for some a while longer"
        return told_refused(trials, next_try_at(self.spec, self.memory), self.now)

    @cached_property
    def usd_per_hour(self) -> float:
        """The price of the first offering that may be asked for."""
        return self.costs.usd_per_hour

    @cached_property
    def paused(self) -> Reason | None:
        """Why nothing is launched here now."""
        return self._pause[0]

    @property
    def paused_detail(self) -> str:
        """Who or what pauses it, and for how long."""
        return self._pause[1]

    @property
    def may_launch(self) -> bool:
        """Tell whether anything can be asked for here now, limits aside."""
        return self.paused is None and bool(self.offerings)

    @property
    def for_a_person(self) -> "PoolView":
        """The pool as a person's order sees it: what EC2 refused may be asked for, too, once its pause has ended."""
        return replace(self, offerings=self.offerings or self.offerings_to_try)

    @property
    def on_hold(self) -> bool:
        """An operator wants nothing launched, brought back or retired here."""
        return self.paused is Reason.HELD and bool(self.overrides.holds_of_people_on(self.controller, self.name))

    @property
    def has_floor(self) -> bool:
        """Whether its first controller, this one, sees to agents that are there without demand."""
        return self.controller == self.spec.controllers[0] and bool(self.spec.min_agents or self.spec.warm_executors or self.least_stopped)

    @property
    def least_stopped(self) -> int:
        """How many stopped agents its operator wants at least."""
        is_first = self.controller == self.spec.controllers[0] and stoppable(self.spec)
        return self.spec.warm_pool.min_agents if self.spec.warm_pool and is_first else 0

    @property
    def keep(self) -> Keeping:
        """How long agents are kept without demand, and stopped ones, if any are stopped here."""
        wait_usd = self.spec.wait_usd_per_hour * self._waits_for(self.boot_seconds) / 3600.0
        per_second, stopped = self.usd_per_hour / 3600.0, None
        if (warm := self.spec.warm_pool) and stoppable(self.spec):
            stopped = KeepingStopped(
                usd_per_second=self.spec.offerings[0].volume_usd_per_hour / 3600.0,
                stops_seconds=STOP_SECONDS + self.costs.look_seconds,
                start_usd=per_second * max(self.start_seconds, MINIMUM_BILLED_SECONDS),
                wait_usd=self.spec.wait_usd_per_hour * self._waits_for(self.start_seconds) / 3600.0,
                at_most_seconds=min(warm.max_age_seconds, warm.max_disk_seconds),
            )
        return Keeping(
            idle_returns=self.needs.returns,
            costs=Costs(usd_per_second=per_second, boot_usd=per_second * self.boot_seconds, wait_usd=wait_usd),
            fixed_seconds=self.spec.idle_seconds,
            at_most_seconds=self.spec.max_idle_seconds,
            stopped=stopped,
        )

    def agent_usd(self, work_seconds: float, items: int, ready_seconds: float) -> float:
        """What one more agent costs: its boot or start, and its share of the work packed on the executors it fills."""
        filled = max(1, min(items, self.executors))
        return self.usd_per_hour * (ready_seconds + work_seconds / filled) / 3600.0

    def extra_usd(self, work_seconds: float, items: int, ready_seconds: float) -> float:
        """What another agent costs more than work that waits for agents there are: its boot or start, and executors that it leaves empty.

        Not what it idles afterwards: it is kept idle only where that pays for itself.
        """
        empty = 1.0 - min(items, self.executors) / self.executors
        return self.usd_per_hour * (ready_seconds + work_seconds * empty) / 3600.0

    def score(self, duration_seconds: float, ready_seconds: float, items: int) -> tuple[float, int, str]:
        """Order pools for an item: dollars of waiting and of running there; ties go to fewer labels, then to the name."""
        wait_usd = self.spec.wait_usd_per_hour * ready_seconds / 3600.0
        return wait_usd + self.agent_usd(duration_seconds, items, ready_seconds), len(self.spec.labels), self.name

    def market_offerings(self, oldest_seconds: float) -> tuple[Market, tuple[Offering, ...]] | None:
        """Choose one market to ask on: spot while patience lasts, else on-demand; None if EC2 has refused what may be asked for."""
        spot = tuple(offering for offering in self.offerings if offering.market is Market.SPOT)
        firm = tuple(offering for offering in self.offerings if offering.market is Market.ON_DEMAND)
        is_patient = oldest_seconds < self.spec.spot_patience_seconds + self.spec.queue_maturity_seconds
        if spot and (not firm or is_patient):
            return Market.SPOT, spot
        # Refused spot ends no patience; spot that was taken back does, since jobs have waited for it. If no item waits, the agents are
        # wanted anyway: there is nothing to be patient for.
        prefers_spot = any(offering.market is Market.SPOT for offering in self.spec.offerings)
        if firm and not (oldest_seconds and is_patient and prefers_spot and not self._is_taken_back):
            return Market.ON_DEMAND, firm
        return None

    @cached_property
    def _is_taken_back(self) -> bool:
        spot = (offering for offering in self.spec.offerings if offering.market is Market.SPOT)
        return any(is_taken_back(self.memory, self.name, offering, self.now) for offering in spot)

    @cached_property
    def _boots_elsewhere(self) -> bool:
        """Tell whether boots failed on some of its offerings, and on what is asked for now they have not."""
        lost = [boots_badly(self.memory, self.name, one) for one in (*self.offerings, *self.spec.offerings)]
        return any(lost) and not lost[0]

    def _waits_for(self, ready_seconds: float) -> float:
        """How long a job waits for an agent that is not there: half a look until it is seen, until a machine is to be had, and the boot."""
        return self.costs.look_seconds / 2 + self.spec.queue_maturity_seconds + self.short_seconds + ready_seconds

    @cached_property
    def _pause(self) -> tuple[Reason | None, str]:
        if holds := self.overrides.holds_on(self.controller, self.name):
            return Reason.HELD, text_of(holds, self.now)
        if self.spec.of_hosts:
            return Reason.OF_HOSTS, "its machines are hosts of your own"
        if (capacity := self.spec.capacity) and not capacity.starts_at <= self.now < self.closes_at - self.boot_seconds:
            begins = self.now < capacity.starts_at
            detail = f"begins in {duration(capacity.starts_at - self.now)}" if begins else "ends before builds that begin now would"
            return Reason.CAPACITY_CLOSED, f"{capacity.id} {detail}"
        for scope, reason in ((TrialOf.POOL.scope(self.name), Reason.POOL_PAUSED), (ACCOUNT, Reason.ACCOUNT_THROTTLED)):
            if (trial := failing(self.memory, scope)) and self.now < due_at(trial, self.spec):
                return reason, told_refused({scope: trial}, due_at(trial, self.spec), self.now)
        if refused := why_none_connects(self.memory, self.controller, self.no_node, self.now):
            return Reason.CANNOT_CONNECT, refused
        failed = closed(self.memory, TrialOf.BOOT.scope(self.name))
        if failed is not None and self.now < failed.until_at and not self._boots_elsewhere:
            return Reason.BREAKER_OPEN, f"{told_boots(failed)}; one is tried again in {duration(failed.until_at - self.now)}"
        # While most agents of its controller are marked, one is tried now and then.
        if self.doubt is None or (left := self.doubt.until_at - self.now) <= 0:
            return None, ""
        told = f"monitors took {self.doubt.said} agents of {self.controller} offline: {self.doubt.why}"
        return Reason.MOST_MARKED, f"{told}; one agent is tried in {duration(left)}"


def agent_costs(pool: Pool, offerings: tuple[Offering, ...], boots: tuple[float, ...], look_seconds: float) -> AgentCosts:
    """Say what one more agent costs and spares, by the first offering that may be asked for and by the boots seen lately."""
    return AgentCosts(
        executors=pool.executors,
        boot_seconds=median(boots) if boots else pool.boot_seconds,
        # Paid for one that nobody takes: its boot, and until it is given up.
        vain_seconds=(fmean(boots) if boots else pool.boot_seconds) + look_seconds + pool.drain_settle_seconds,
        usd_per_hour=(offerings or pool.offerings)[0].usd_per_hour,
        wait_usd_per_hour=pool.wait_usd_per_hour,
        look_seconds=look_seconds,
    )


# Pools as their schedules have them now, with agents launched so early that they are there when a schedule begins.


# Of ten agents nine are there by then. All must be there when their schedule begins, and half of them boot more slowly than the median.
_SHARE_IN_TIME = 0.9
_THERE = (RecordState.REQUESTED, RecordState.STARTING, RecordState.REGISTERED)


def scheduled(snapshot: Snapshot, fleet: Fleet) -> Fleet:
    """Return the fleet with the numbers that its pools have now, and the minima for which agents must be launched by now."""
    pools = {pool.name: _prepared(snapshot, pool) for pool in fleet.pools.values() if pool.schedules}
    return replace(fleet, pools={**fleet.pools, **pools})


def lead_seconds(snapshot: Snapshot, pool: Pool) -> float:
    """How long before a schedule begins its agents are launched or started: so long as that takes, and until a look sees it."""
    begun = pool_at(pool, snapshot.taken_at + _ready_seconds(snapshot.memory, pool, starts=False) + snapshot.look_every_seconds)
    needed, there, stopped = least_agents(begun), _count(snapshot, pool, _THERE), _count(snapshot, pool, (RecordState.STOPPED,))
    starts = stopped > 0 and there + stopped >= needed
    return _ready_seconds(snapshot.memory, pool, starts=starts) + snapshot.look_every_seconds


def told_schedule(pool: Pool, key: str, number: int, now: float) -> str:
    """Say which schedule gives this number, now or next: ", by its schedule from 08:00 Europe/Berlin"; "" where none does."""
    giving = [one for one in reversed(pool.schedules) if getattr(one, key) == number]
    spans = [(span, one.time_zone) for one in giving for span in islice(now_and_next(one, now), 1)]
    if not spans:
        return ""
    span, zone = min(spans, key=lambda found: max(now, found[0].begins_at))
    if span.begins_at > now:
        return f", by its schedule from {moment(span.begins_at, now, zone)}"
    return ", by its schedule" + (f" until {moment(span.ends_at, now, zone)}" if span.ends_at < inf else "")


def _prepared(snapshot: Snapshot, pool: Pool) -> Pool:
    here, soon = (pool_at(pool, snapshot.taken_at + seconds) for seconds in (0.0, lead_seconds(snapshot, pool)))
    return replace(
        here,
        min_agents=max(here.min_agents, soon.min_agents),
        warm_executors=max(here.warm_executors, soon.warm_executors),
        # What is to be there when it begins has room before it: no more than that, since jobs that wait would take it.
        max_agents=max(here.max_agents, min(soon.max_agents, least_agents(soon))),
    )


def least_agents(pool: Pool) -> int:
    """Count the agents that a pool has without any demand."""
    return max(pool.min_agents, ceil(pool.warm_executors / pool.executors))


def _count(snapshot: Snapshot, pool: Pool, states: tuple[RecordState, ...]) -> int:
    return sum(record.pool == pool.name and record.state in states for record in snapshot.records)


def _ready_seconds(memory: Memory, pool: Pool, *, starts: bool) -> float:
    """How long nine of ten agents take to boot, or to start; before enough were times as the fleet file says."""
    boots = trusted(memory.pool(pool.name).boots)
    times = trusted(memory.pool(pool.name).starts) if starts else boots
    if times:
        return sorted(times)[ceil(_SHARE_IN_TIME * len(times)) - 1]
    return (median(boots) if boots else pool.boot_seconds) * (STARTS_TAKE_SHARE if starts else 1.0)


# Launched versions: what instances were launched from, what each pool launches, and which new image waits to be tried.
#
# If the fleet file names an image's parameter, an image that never booted is tried with one agent; all others are launched as was proven.


def current_versions(snapshot: Snapshot, fleet: Fleet) -> dict[str, str]:
    """Return the version that each pool is to launch, by pool; proven or not, and only where it is known."""
    current = dict(snapshot.template_versions)
    for name in _with_images(fleet):
        current[name] = version_of(snapshot.template_versions.get(name, ""), snapshot.images.get(name, ""))
    return {name: version for name, version in current.items() if version}


def versions_of_instances(snapshot: Snapshot, fleet: Fleet) -> dict[str, str]:
    """Return the version that each instance was launched from, by id; "" where nobody knows."""
    versions = {instance.id: instance.template_version for instance in snapshot.instances}
    # The key may have left the fleet file: what was launched from an image that it named is not what is launched now.
    # What EC2 does not list any more was launched from what is on record.
    with_images = _with_images(fleet)
    on_record = (record for record in snapshot.records if record.pool in with_images or parts_of(record.version)[1])
    versions |= {record.instance_id: record.version for record in on_record}
    listed = (instance for instance in snapshot.instances if instance.pool in with_images)
    by_image = ((instance.id, version_of(instance.template_version, instance.image)) for instance in listed)
    return versions | {instance_id: version for instance_id, version in by_image if version}


def launched_and_to_try(fleet: Fleet, current: Mapping[str, str], proven: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the version that each pool launches, by pool: where a parameter names its image, the one that was seen to boot.

    And the versions that have yet to boot where another one did, of pools whose image a parameter names.
    """
    booted = {name: proven[name] for name in _with_images(fleet) if name in proven}
    to_try = {name: current[name] for name, version in booted.items() if current.get(name, version) != version}
    return {**current, **booted}, to_try


def _with_images(fleet: Fleet) -> set[str]:
    return {name for name, pool in fleet.pools.items() if pool.image_parameter}
