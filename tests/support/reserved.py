"""What a plan reserves, told from the snapshot and the plan alone, against the limits of pools, teams and the fleet."""

from collections import Counter

from autoscaler.domain.facts.plan import Launch, Start
from autoscaler.domain.facts.snapshot import InstanceState, RecordState
from support.builders import NOW


def dearest(launch):
    return max(offering.reserved_usd_per_hour for offering in launch.offerings)


def by(kind, plan):
    return [step for step in plan.steps if isinstance(step, kind)]


def reserved(look):
    """All there is once the plan has been carried out, by pool: agents, and dollars an hour at the most they may cost."""
    agents = Counter(one.pool for one in (*(record for record in look.living if not look.is_off(record)), *look.strays))
    usd = Counter()
    for record in look.living:
        usd[record.pool] += record.volume_usd_per_hour if costs_disk_only(look, record) else record.reserved_usd_per_hour
    for stray in look.strays:
        usd[stray.pool] += max(o.reserved_usd_per_hour for o in look.fleet.pools[stray.pool].offerings)
    for intent in look.snapshot.intents:
        agents[intent.pool] += intent.count
        usd[intent.pool] += intent.count * intent.usd_per_hour
    for step in by(Launch | Start, look.up):
        agents[step.pool] += step.count
        usd[step.pool] += usd_of(look, step)
    return agents, usd


def costs_disk_only(look, record):
    """EC2 bills nothing else of what is stopped or stops; what is to start costs its machine soon."""
    stops = look.states.get(record.instance_id) in {InstanceState.STOPPING, InstanceState.STOPPED}
    return look.is_off(record) or (stops and record.state is not RecordState.STARTING)


def usd_of(look, step):
    """The most that a launch or a start may cost an hour."""
    return sum(more_usd(look, step, record) for record in started(look, step)) if isinstance(step, Start) else step.count * dearest(step)


def started(look, step):
    return [look.records[instance_id] for instance_id in step.instance_ids]


def more_usd(look, step, record):
    """What one more costs that is started, or that is launched instead."""
    return max(record.reserved_usd_per_hour - record.volume_usd_per_hour, dearest(step.otherwise) if step.otherwise else 0.0)


def limited(look):
    """The pools, the teams and the fleet that launch anything: their limits must hold."""
    pools = {step.pool for step in by(Launch | Start, look.up)}
    return [whose for whose in look.limited if whose.pools & pools]


def of(whose, by_pool):
    return sum(by_pool[pool] for pool in whose.pools)


def no_more_agents_than_may_be(look):
    agents, _ = reserved(look)
    for whose in limited(look):
        assert of(whose, agents) <= whose.ceilings.max_agents, whose


def no_more_launches_than_may_be(look):
    lately = Counter()
    for record in look.snapshot.records:
        lately[record.pool] += sum(at > NOW - 3600.0 for at in (record.launched_at, *record.starts))
    for one in (*look.snapshot.intents, *by(Launch | Start, look.up)):
        lately[one.pool] += one.count
    for whose in limited(look):
        assert of(whose, lately) <= whose.ceilings.max_launches_per_hour, whose


def no_more_dollars_than_may_be(look):
    _, usd = reserved(look)
    for whose in limited(look):
        assert of(whose, usd) <= whose.ceilings.max_usd_per_hour + 1e-6, whose
        # Of the month, each agent reserves an hour: a build that has begun is never cut short to save money.
        assert look.spent_this_month(whose) + of(whose, usd) <= whose.ceilings.max_usd_per_month + 1e-6, whose
