"""Learn from each look: the only module that writes the memory of passes.

`assess` carries the memory on to what a pass sees, `watch` adds what a look teaches of conditions and needs, `conclude` what follows
from a decision, `note_results` what became of its steps. The pass that holds the lease saves that.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.memory import (
    AgentPast,
    ControllerPast,
    InState,
    Memory,
    Missing,
    MonitorMark,
    PoolNeeds,
    PoolPast,
    SpotPrices,
    Stuck,
    Trial,
    Window,
    without_empty,
)
from autoscaler.domain.facts.metering import (
    day_name,
    launches_of,
    meter,
    meter_day,
    month_name,
    note_gone,
    note_spending,
    paid_since,
    turned,
)
from autoscaler.domain.facts.nodes import with_known_weights
from autoscaler.domain.facts.plan import (
    BootFailure,
    ConsoleRead,
    Effect,
    FailedStart,
    Forget,
    Had,
    ImageRefused,
    LostAnswer,
    NotLaunched,
    NotStopped,
    Stopped,
    Terminated,
    Tried,
)
from autoscaler.domain.facts.pools import known_volumes, next_definitions
from autoscaler.domain.facts.snapshot import INTERRUPTION_SECONDS, InstanceState, Snapshot
from autoscaler.domain.forecast.durations import note_had, note_refused
from autoscaler.domain.forecast.forecast import NOTHING, note_growth
from autoscaler.domain.forecast.keeping import Needed, agents_missed, follow_burst, guessed_in_time, is_burst_over, next_peaks, note_returns
from autoscaler.domain.launch.backoff import lacks_capacity, refusals_of_launch, running, scopes_of, short_launches, spells
from autoscaler.domain.launch.placement import note_never_lent
from autoscaler.domain.lifecycle import next_observations
from autoscaler.domain.memo import FOR_EVER, Memo
from autoscaler.domain.repair.boots import ended_by_others, taken_back
from autoscaler.domain.repair.lost_builds import answered, next_lost, still_lost
from autoscaler.domain.repair.nodes import note_owed
from autoscaler.domain.scale_in.replace import cordoned_by_kind, note_kept, note_taken
from autoscaler.domain.situation.agents import (
    FORGOTTEN_ASK_AGAIN_SECONDS,
    Agent,
    Phase,
    next_marks,
    next_missing,
    next_terminated,
    with_terminated,
)
from autoscaler.domain.situation.bets import (
    ACCOUNT,
    Outcome,
    TrialOf,
    closed,
    connections,
    failing,
    note,
    note_consoles,
    offerings_of,
    opened,
)
from autoscaler.domain.situation.builds import next_may_have_orders
from autoscaler.domain.situation.canary import boots_seen, marked_together, outcomes_of_boots, still_tried, vain_starts, without_shared
from autoscaler.domain.situation.demand import beacon_items, with_beacons_asked
from autoscaler.domain.situation.left import hosts_away, left_pools
from autoscaler.domain.situation.looks import EC2, next_asked, next_sessions, turned_back, without_ended
from autoscaler.domain.situation.pool_view import PoolView, closes_at, last_times, launched_and_to_try, times_of
from autoscaler.domain.situation.promises import note_free_nodes, note_rations, without_refused
from autoscaler.domain.situation.situation import Decided, Look, Situation, join, situate, with_job_lengths
from autoscaler.domain.situation.states import FOREIGN, LEFT_THE_FILE, SHUTS_DOWN, UNSEEN, state_of
from autoscaler.domain.situation.warm_pool import ends_short_of_disk

REQUESTS_REMEMBERED_SECONDS = 86_400.0
_E = TypeVar("_E", bound=Effect)


def assess(snapshot: Snapshot, fleet: Fleet, memo: Memo | None = None) -> Situation:
    """Join what a snapshot shows, and carry the memory on to it. ``memo``: of earlier passes of the same invocation or run."""
    memo = Memo() if memo is None else memo
    snapshot = _corrected(turned_back(snapshot), fleet)
    if any(pool.max_job_seconds is not None for pool in fleet.pools.values()):
        fleet = with_job_lengths(fleet, snapshot.learned)
    # Passes of one look see the same but for their names. Of what was learned, only these facts enter a situation; the rest may change.
    seen = replace(snapshot, pass_id="", request_id="", learned={})
    closing = [closes_at(pool, snapshot.learned.values()) for pool in fleet.pools.values() if pool.capacity]
    facts = (
        seen,
        fleet,
        with_known_weights(fleet, snapshot.learned).weights,
        closing,
        [learned.left_queue for learned in snapshot.learned.values()],
    )
    situation = memo.value("situation", facts, snapshot.taken_at, lambda: (_assess(snapshot, fleet, memo), FOR_EVER))
    return replace(situation, snapshot=snapshot)


def _corrected(snapshot: Snapshot, fleet: Fleet) -> Snapshot:
    """Correct a look by what is known of builds that have ended, of instances that have terminated, and of items that name a beacon."""
    if snapshot.run_answers or any(past.asked for past in snapshot.memory.controllers.values()):
        snapshot = without_ended(snapshot)
    if any(past.ended_why is not None for past in snapshot.memory.agents.values()):
        snapshot = with_terminated(snapshot)
    waits = any(view.items for view in snapshot.controllers.values())
    return with_beacons_asked(snapshot, fleet) if waits else snapshot


def _assess(snapshot: Snapshot, fleet: Fleet, memo: Memo) -> Situation:
    missing = next_missing(snapshot.memory, snapshot)
    look = join(snapshot, fleet, missing, memo)
    return situate(look, _carry_on(snapshot.memory, look, missing))


def _carry_on(memory: Memory, look: Look, missing: Mapping[str, Missing]) -> Memory:
    snapshot, agents, now = look.snapshot, look.agents, look.now
    views = snapshot.controllers.values()
    unnoted = [
        agent
        for agent in agents
        if agent.record.registered_at is not None and agent.record.life_id != memory.agent(agent.record.instance_id).booted
    ]
    ready = ((agent.pool.name, look.version_of(agent)) for agent in look.agents if agent.phase is Phase.READY)
    proven = {**memory.proven, **{pool: version for pool, version in ready if version and version == look.current.get(pool)}}
    marks = next_marks(memory, agents, now)
    trials = _trials_of(look, memory, proven, marks)
    marks = without_shared(marks, agents, trials) if marks else {}
    left, hold_until = left_pools(memory, look)
    metered = _metered(memory, look)
    follows_lost = memory.lost or snapshot.run_orders or any(pool.rerun for pool in look.fleet.pools.values())
    return replace(
        metered,
        agents=_agents(look, memory, missing, marks, left),
        pools=_pools(look, memory, unnoted, proven),
        controllers=_controllers(look, memory),
        sessions=next_sessions(memory.sessions, look.looks, views, snapshot.ended_runs, now, look.fleet.resume_timeout),
        trials=trials,
        fleet=replace(metered.fleet, may_have_orders=next_may_have_orders(memory, look), hold_until=hold_until),
        lost=next_lost(memory.lost, look) if follows_lost else {},
    )


def _trials_of(look: Look, memory: Memory, proven: Mapping[str, str], marks: Mapping[str, MonitorMark]) -> dict[str, Trial]:
    """Carry on what was lost, but for what is not wanted any more: with what connects, and what EC2 took back or had no room for."""
    known, outcomes = memory.trials, [*boots_seen(look, memory, launched_and_to_try(look.fleet, look.current, proven)[0])]
    if known:
        known = still_tried(known, look, proven)
        outcomes += running(known, look)
    outcomes += sorted(connections(memory, look.agents), key=lambda one: one.won)
    if marks or known:
        outcomes += marked_together(look, memory, marks)
    if look.snapshot.end_reasons or any(agent.record.interrupted_at for agent in look.agents):
        outcomes += [*spells(known, _taken_back(look)), *ended_by_others(known, look), *short_launches(known, look)]
    return note(known, outcomes, look.now) if outcomes else {**known}


def _metered(memory: Memory, look: Look) -> Memory:
    """Add what the agents cost and ran since the last look."""
    past = memory.fleet
    spot_prices, told = past.spot_prices, look.snapshot.spot_prices
    if told is not None:
        spot_prices = SpotPrices(asked_at=look.now, usd_per_hour={**spot_prices.usd_per_hour, **told})
    month, months = turned(memory.month, past.months, month_name(look.now), look.now)
    day, days = turned(past.day, past.days, day_name(look.now), look.now)
    spent = paid_since(look.snapshot, look.fleet, spot_prices, month.metered_at)
    fleet = replace(
        past,
        months=months,
        day=meter_day(day, look.snapshot, look.fleet),
        days=days,
        lately=note_spending(past.lately, spent.by_pool, look.now) if look.fleet.teams else (),
        spot_prices=spot_prices,
    )
    return replace(memory, month=meter(month, spent, look.now), fleet=fleet)


def _taken_back(look: Look) -> Iterator[tuple[str, float, str]]:
    """Name the offerings of which EC2 takes machines back now, when it said so, and why."""
    taken = taken_back(look.snapshot.records, look.snapshot.end_reasons)
    listed = {instance.id: instance for instance in look.snapshot.instances} if taken else {}
    for agent in look.agents:
        record = agent.record
        at = record.interrupted_at or look.now
        # An announced interruption was already noted while EC2 listed the machine. Once it is gone, nobody knows its subnet.
        is_noted = record.interrupted_at > 0.0 and record.machine not in listed
        if record.instance_id in taken and not is_noted and look.now - at < INTERRUPTION_SECONDS:
            for offering in offerings_of(record, agent.pool, listed.get(record.machine)):
                yield TrialOf.TAKEN_BACK.scope(agent.pool.name, offering.key), at, taken[record.instance_id]


def _agents(
    look: Look,
    memory: Memory,
    missing: Mapping[str, Missing],
    marks: Mapping[str, MonitorMark],
    left: Collection[str],
) -> dict[str, AgentPast]:
    """Update what is remembered of agents, and of instances, nodes and hosts without one; forget what has gone."""
    agents = {agent.record.instance_id: agent for agent in look.agents}
    ended, pasts = next_terminated(memory, look.snapshot), dict[str, AgentPast]()
    away = hosts_away(look) if look.fleet.hosts else ()
    for name in dict.fromkeys((*memory.agents, *agents, *missing, *ended, *away)):
        before, agent = memory.agent(name), agents.get(name)
        pasts[name] = replace(
            _past_of(agent, before, look.now) if agent else AgentPast(state=before.state, look=before.look),
            mark=marks.get(name),
            missing=missing.get(name),
            ended_why=ended.get(name),
            away_since=_since(before.away_since, look.now) if name in away else None,
            pool_left_at=_since(before.pool_left_at, look.now) if name in left else None,
        )
    return without_empty(pasts)


def _past_of(agent: Agent, before: AgentPast, now: float) -> AgentPast:
    """Update what is remembered of an agent. It still drains if its controller could not be read; if a person has it, it is not idle."""
    record, is_for_builds = agent.record, agent.phase is not Phase.RESERVED
    drains = before.draining_since is not None if agent.phase is Phase.UNSEEN else is_for_builds and agent.mark is not None
    has_connected = agent.phase is Phase.READY or before.connected == record.life_id
    is_there = agent.phase is not Phase.CONNECTING and before.ready_since is not None and before.ready_since >= record.began_at
    return replace(
        before,
        ready_since=before.ready_since if is_there else now if agent.phase is Phase.READY else None,
        idle_since=_since(before.idle_since, now) if is_for_builds and agent.idle else None,
        draining_since=_since(before.draining_since, now) if drains else None,
        booted=record.life_id if record.registered_at is not None else "",
        connected=record.life_id if has_connected else "",
        stuck=None if agent.instance_ended else before.stuck,
    )


def _pools(look: Look, memory: Memory, unnoted: Collection[Agent], proven: Mapping[str, str]) -> dict[str, PoolPast]:
    """Update what is remembered of pools. How long agents take to boot is kept after a pool has left the fleet file."""
    boots = times_of(agent for agent in unnoted if not agent.record.life)
    starts = times_of(agent for agent in unnoted if agent.record.life)
    never_lent, snapshot = note_never_lent(memory, look), look.snapshot
    # What was known stands until something else is launched and was read.
    counting = {name for name, pool in look.fleet.pools.items() if pool.volume_usd_per_gib_month is not None}
    volumes = {name: read for name, read in known_volumes(snapshot).items() if name in counting}
    definitions = next_definitions(memory, look.fleet, snapshot.records, snapshot.intents, snapshot.instances)
    started = {agent.pool.name: look.version_of(agent) for agent in look.agents if agent.phase is Phase.READY and agent.record.life}
    pools: dict[str, PoolPast] = {}
    for name in dict.fromkeys((*memory.pools, *boots, *starts, *proven, *volumes, *never_lent, *definitions, *started)):
        before = memory.pool(name)
        pools[name] = replace(
            before,
            proven=proven.get(name, ""),
            boots=last_times(before.boots, boots.get(name, ())),
            starts=last_times(before.starts, starts.get(name, ())),
            started=started.get(name) or before.started,
            volumes=volumes.get(name),
            never_lent_at=never_lent.get(name),
            definition=definitions.get(name),
        )
    return without_empty(pools)


def _controllers(look: Look, memory: Memory) -> dict[str, ControllerPast]:
    """Update what is remembered of controllers, and when EC2 was seen."""
    views, controllers = look.snapshot.controllers, dict[str, ControllerPast]()
    for name in {**memory.controllers, **look.looks}:
        before, view = memory.controller(name), views.get(name)
        items = beacon_items(view, look.fleet) if view and view.items else frozenset[int]()
        controllers[name] = replace(
            before,
            looks=look.looks.get(name),
            asked=next_asked(memory, view, look.snapshot) if view else {},
            beacon_items=items if view and view.complete else before.beacon_items,
        )
    return without_empty(controllers)


def _since(before: float | None, now: float) -> float:
    """Carry on since when something is true; a clock that was ahead counts for nothing."""
    return now if before is None else min(before, now)


def watch(situation: Situation) -> Situation:
    """Note the condition of every agent, and what each pool needs now; learn from what is needed again."""
    memory, snapshot = situation.memory, situation.snapshot
    looks, states = next_observations(situation), _next_states(situation)
    agents = {
        name: replace(memory.agent(name), look=looks.get(name), state=states.get(name)) for name in {**memory.agents, **looks, **states}
    }
    controllers = {name: _watch_controller(situation, name) for name in {**memory.controllers, **snapshot.controllers}}
    return replace(situation, memory=replace(memory, agents=without_empty(agents), controllers=without_empty(controllers)))


# What is no agent, or not yet, by what EC2 says of the instance.
_WITHOUT_AGENT = {InstanceState.SHUTTING_DOWN: SHUTS_DOWN.name, InstanceState.FOREIGN: FOREIGN}


def _next_states(situation: Situation) -> dict[str, InState]:
    """Carry on since when each agent is in its state. What EC2, or a controller, did not show in this look stays where it was."""
    now, states = situation.now, dict[str, InState]()
    for agent in situation.agents:
        past, state = situation.past(agent).state, state_of(situation, agent)
        # EC2's answers leave instances out now and then: one that was there a moment ago stays in its state.
        missing = situation.memory.agent(agent.record.machine).missing
        is_left_out = missing is not None and agent.instance is None and now - missing.since_at < FORGOTTEN_ASK_AGAIN_SECONDS
        stays = state is UNSEEN or is_left_out or agent.record.instance_id not in situation.snapshot.states
        states[agent.record.instance_id] = past if past is not None and stays else _in_state(past, state.name, now)
    for name, (other, pool) in _without_agents(situation, states).items():
        states[name] = _in_state(situation.memory.agent(name).state, other, now, pool)
    return states


def _in_state(past: InState | None, state: str, now: float, pool: str = "") -> InState:
    """Carry on since when something is in its state; an agent that is none any more has the same state, and is told by its pool."""
    if past is None or past.state != state:
        return InState(state=state, since_at=now, pool=pool)
    return replace(past, pool=pool) if pool else past


def _without_agents(situation: Situation, taken: Collection[str]) -> dict[str, tuple[str, str]]:
    """Name agents that have no controller any more, instances that shut down whose records are closed, and others with our tags.

    Each has its state, and its pool.
    """
    snapshot = situation.snapshot
    left = {record.instance_id: (LEFT_THE_FILE, record.pool) for record in snapshot.living if record.controller not in snapshot.controllers}
    pools = {instance.id: instance.pool for instance in snapshot.instances}
    ids = pools.keys() | {name for name, state in snapshot.states.items() if state is InstanceState.FOREIGN}
    return left | {name: (of, pools.get(name, "")) for name in ids - {*taken} if (of := _WITHOUT_AGENT.get(snapshot.states[name]))}


def _watch_controller(situation: Situation, name: str) -> ControllerPast:
    """Note what a controller needs now, and which jobs its free executors refuse."""
    before, view = situation.memory.controller(name), situation.snapshot.controllers.get(name)
    if view is None:
        return replace(before, free_nodes={}, rations={})
    if situation.no_giving_up(name):
        return replace(before, beside={})
    after = replace(
        before, needs={**before.needs, **{pool.name: _watch_pool(situation, pool) for pool in situation.pools_of(name).values()}}
    )
    if not (situation.demands[name].runnable or before.free_nodes or before.rations):
        return after  # nothing is refused where nothing waits
    after = note_free_nodes(situation, view, after)
    return replace(after, rations=note_rations(situation, view, after.free_nodes))


def _watch_pool(situation: Situation, pool: PoolView) -> PoolNeeds:
    starved, due = situation.executors_wanted[pool.controller], situation.forecasts(pool.controller).get(pool.name, NOTHING)
    needed = Needed(
        present=pool.in_use(starved.get(pool.name, 0)),
        forecast=due.stages,
        guessed=due.executors - due.stages,
        returned=pool.returned(situation.snapshot.learned[pool.controller].running),
    )
    executors, boot, now, before = pool.executors, pool.boot_seconds, pool.now, pool.window
    # What was needed says something for as long as an agent may be kept.
    warm = pool.spec.warm_pool
    kept_seconds = max(
        pool.spec.idle_seconds or 0.0, pool.spec.max_idle_seconds, min(warm.max_age_seconds, warm.max_disk_seconds) if warm else 0.0
    )
    window = Window(
        opened_at=min(before.opened_at, now) if before else now,
        seen_at=now,
        peaks=next_peaks(before, needed.agents(executors), now, kept_seconds),
        guessed=guessed_in_time(before, needed, boot, now),
        burst=follow_burst(before, needed, now, executors=executors, boot_seconds=boot),
        builds=len(pool.builds),
    )
    burst = before.burst if before else None
    if burst is None or not is_burst_over(burst, now, boot):
        return replace(pool.needs, window=window)
    missed = agents_missed(burst, executors=executors, boot_seconds=boot)
    return PoolNeeds(
        window=window, returns=note_returns(pool.needs.returns, missed, pool.keep.edges), growths=note_growth(pool.needs.growths, burst)
    )


def conclude(situation: Situation, decided: Decided, failures: Iterable[BootFailure]) -> Memory:
    """Note what follows from what ``scale_down`` decided."""
    memory, now, failed = situation.memory, situation.now, tuple(failures)
    gone = _note_gone(situation, decided)
    kept, owed, counted = note_kept(situation, decided), note_owed(situation, decided), {failure.instance_id for failure in failed}
    outcomes: list[Outcome] = [*outcomes_of_boots(situation, failed)] if failed else []
    if any(pool.warm_pool for pool in situation.fleet.pools.values()):
        outcomes += ends_short_of_disk(decided)
    pools = {**memory.fleet.gone_from, **{instance.id: instance.pool for instance in situation.snapshot.ended}}
    pools |= {key: record.pool for record in situation.snapshot.records for key in launches_of(record)}
    return replace(
        memory,
        agents={
            name: replace(
                past,
                is_kept=name in kept,
                owed=owed.get(name, ""),
                mark=replace(past.mark, is_counted=True) if past.mark and name in counted else past.mark,  # each counts once
            )
            for name, past in memory.agents.items()
        },
        trials=note(memory.trials, outcomes, now) if outcomes else memory.trials,
        pools=_taken_from(situation, decided, failed),
        lost=still_lost(situation) if memory.lost else {},
        gone=gone,
        fleet=replace(memory.fleet, gone_from={key: pools[key] for key in gone if key in pools}),
    )


def _taken_from(situation: Situation, decided: Decided, failures: Collection[BootFailure]) -> dict[str, PoolPast]:
    """Note when agents were taken from pools, and starts that failed as the seconds that jobs waited for them.

    If many starts fail, one is no faster than a boot. If none was seen to work, they say nothing of how long one takes.
    """
    memory, taken, vain = situation.memory, cordoned_by_kind(decided), vain_starts(situation, failures)
    return {
        name: replace(
            past,
            starts=last_times(past.starts, [vain[name]] if name in vain else ()) if past.starts else (),
            taken=note_taken(past.taken, taken.get(name, []), situation.now),
        )
        for name, past in {name: memory.pool(name) for name in {**memory.pools, **taken}}.items()
    }


def _note_gone(situation: Situation, decided: Decided) -> dict[str, float]:
    """Note when agents were launched whose records are closed now, as long as they count in the hour's launch rate."""
    forgotten = {step.instance_id for step in decided if isinstance(step, Forget)}
    closed = (record for record in situation.snapshot.records if record.instance_id in forgotten)
    gone = {key: at for record in closed for key, at in launches_of(record).items()}
    # Those that EC2 alone still tells of, after a gap in the looks: the state may have been restored.
    gone |= {instance.id: instance.launched_at for instance in situation.snapshot.ended if instance.id not in situation.memory.gone}
    before = situation.snapshot.memory.controller(EC2).looks
    return note_gone(situation.memory, gone, situation.fleet, situation.now, before.at if before else situation.now)


def remember_request(situation: Situation, request_id: str | None) -> Memory:
    """Note that a person's request was done."""
    known = situation.memory.requests
    kept = {key: at for key, at in known.items() if situation.now - at < REQUESTS_REMEMBERED_SECONDS}
    if request_id:
        kept[request_id] = situation.now
    return replace(situation.memory, requests=kept)


def close_breaker(situation: Situation, pool: str) -> Memory:
    """Note that a person opened a pool again, or wants its new image tried again. No boot that failed until now counts once more.

    Whatever was refused for it is tried at once, and jobs that free executors refuse are jobs like others until they are refused again.
    """
    memory = situation.memory
    late = [agent.record.instance_id for agent in situation.late_launches if agent.pool.name == pool]
    scopes = [scope for scope in _opened_by_a_person(situation.fleet, pool) if failing(memory, scope) or closed(memory, scope)]
    controllers = {name: without_refused(past, pool) for name, past in memory.controllers.items()}
    return replace(memory, trials=opened(memory.trials, scopes, late, situation.now), controllers=controllers)


def _opened_by_a_person(fleet: Fleet, pool: str) -> Iterator[str]:
    """Name the scopes that a person opens with a pool."""
    yield from (of.scope(pool) for of in (TrialOf.BOOT, TrialOf.START, TrialOf.IMAGE, TrialOf.POOL))
    yield ACCOUNT
    if spec := fleet.pools.get(pool):
        yield from (of.scope(controller) for controller in spec.controllers for of in (TrialOf.CONNECT, TrialOf.MARKED))
        yield from (of.scope(pool, offering.key) for offering in spec.offerings for of in (TrialOf.OFFERING, TrialOf.PLACE))


def note_results(memory: Memory, fleet: Fleet, effects: Collection[Effect], now: float) -> Memory:
    """Note what a plan's steps have brought about. Effects of one kind count together, whatever came in between."""
    if (answers := _of(LostAnswer, effects)) or memory.reruns or memory.fleet.left:
        lost, reruns, left = answered(memory, answers, now)
        memory = replace(memory, lost=lost, reruns=reruns, fleet=replace(memory.fleet, left=left))
    has_launches = any(isinstance(effect, NotLaunched | Had) for effect in effects)
    return replace(
        memory,
        agents=_ended_or_not(memory, effects, now),
        trials=_next_trials(memory, fleet, effects, now),
        pools={**memory.pools, **(_next_delays(memory, effects, now) if has_launches else {})},
    )


def _ended_or_not(memory: Memory, effects: Collection[Effect], now: float) -> dict[str, AgentPast]:
    """Note of which instances EC2 confirmed the end, and which it does not let us end, or stop."""
    agents = {**memory.agents}
    for end in _of(Terminated, effects):
        past = agents.get(end.instance_id, AgentPast())
        stuck = Stuck(since_at=past.stuck.since_at if past.stuck else now, tried_at=now, why=end.refused) if end.refused else None
        agents[end.instance_id] = replace(past, stuck=stuck, is_ending=past.is_ending or not end.refused)
    for step in _of(NotStopped, effects):
        agents[step.instance_id] = replace(agents.get(step.instance_id, AgentPast()), is_unstoppable=True)
    return agents


def last_tried(effects: Iterable[Effect]) -> dict[str, str | None]:
    """Say by its key why each step that was tried failed the last time; None: it did not."""
    return {step.key: step.why for step in _of(Tried, effects)}


def _of(kind: type[_E], effects: Iterable[Effect]) -> list[_E]:
    return [effect for effect in effects if isinstance(effect, kind)]


def _next_delays(memory: Memory, effects: Iterable[Effect], now: float) -> dict[str, PoolPast]:
    """Note which pools EC2 had agents for, and which not."""
    refused = [(launch.pool, refusal.code) for launch in _of(NotLaunched, effects) for refusal in launch.refusals]
    short = {pool for pool, code in refused if lacks_capacity(code)}
    launched = {had.pool for had in _of(Had, effects)}
    delays = {name: note_refused(memory.pool(name).capacity, now) for name in short - launched}
    delays |= {name: note_had(memory.pool(name).capacity, now) for name in launched}
    return {name: replace(memory.pool(name), capacity=delay) for name, delay in delays.items()}


def _next_trials(memory: Memory, fleet: Fleet, effects: Iterable[Effect], now: float) -> dict[str, Trial]:
    """Note what worked and what EC2 refused; of one launch some may be had and some refused."""
    outcomes = [
        *(Outcome(scope=TrialOf.IMAGE.scope(one.pool), why=one.why, version=one.version) for one in _of(ImageRefused, effects)),
        *(_refused_start(start) for start in _of(FailedStart, effects)),
        *(Outcome(scope=scope, won=True) for had in _of(Had, effects) for scope in scopes_of(had)),
        *(one for launch in _of(NotLaunched, effects) for one in refusals_of_launch(fleet.pools[launch.pool], launch.refusals)),
        *(Outcome(scope=of.scope(one.pool), won=True) for one in _of(Stopped, effects) for of in (TrialOf.STOPS, TrialOf.DISKS)),
        *(Outcome(scope=TrialOf.STOPS.scope(one.pool), why=one.why) for one in _of(NotStopped, effects)),
        *(Outcome(scope=TrialOf.STEP.scope(key), won=why is None, why=why or "") for key, why in last_tried(effects).items()),
    ]
    trials = note(memory.trials, outcomes, now) if outcomes else {**memory.trials}
    consoles = {console.instance_id: console.text for console in _of(ConsoleRead, effects)}
    return note_consoles(trials, consoles) if consoles else trials


def _refused_start(start: FailedStart) -> Outcome:
    """Each machine counts once, unless EC2 would have said the same whatever it is."""
    return Outcome(scope=TrialOf.START.scope(start.pool), why=start.why, name="" if start.of_all else start.instance_id)
