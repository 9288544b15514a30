"""Launches exactly once: written, sent, settled. After any failure the next pass knows what to do.

- written: the call may not have been made; sent: it was, and its answer is not known. Both are
  looked for by tag, and in our own records, since a list may leave out what was answered before.
  Only what neither shows, by when the list must have, is sent again, the same bytes with the same
  token: EC2 may not know that token any more. While EC2 shows nothing, not even what is on record,
  nothing is sent again or given up.
- settled: every instance of it has a record. What was asked for and not got is a new launch with a
  new token.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from autoscaler.control.outcomes import Result
from autoscaler.control.steps.acting import Acting, done, failed, skipped
from autoscaler.domain.facts.fleet import Fleet, Offering, Pool, ReservedPrice, agent_spec
from autoscaler.domain.facts.memory import Memory
from autoscaler.domain.facts.metering import (
    day_name,
    levels_out_of_hours,
    month_name,
    spent_levels,
    turned,
)
from autoscaler.domain.facts.orders import MANUAL_PREFIX
from autoscaler.domain.facts.plan import (
    Adopt,
    Effect,
    Had,
    ImageRefused,
    Launch,
    NotLaunched,
    Refusal,
)
from autoscaler.domain.facts.pools import with_left, with_volumes
from autoscaler.domain.facts.snapshot import (
    Binding,
    Instance,
    InstanceState,
    Intent,
    IntentState,
    Record,
    RecordState,
    version_of,
)
from autoscaler.domain.launch.backoff import may_be_the_image
from autoscaler.domain.learn import REQUESTS_REMEMBERED_SECONDS, note_results
from autoscaler.domain.situation.bets import TrialOf, failing
from autoscaler.domain.situation.states import SECOND_LOOK_SECONDS
from autoscaler.errors import (
    ConflictError,
    LaunchRefusedError,
    MismatchError,
    TransientError,
    UnansweredError,
    UnansweredLaunchError,
)
from autoscaler.ports import Ports, StoredState

# A launch that was not answered took effect within the client's time-out of 10 s, if it did, and is
# listed 30 s later at most. Until then it is not sent again: should EC2 have forgotten the token,
# it would be launched twice.
LISTED_AFTER_SECONDS = 45.0
# EC2 honours a client token for longer than this; after it a launch is never sent again.
RESEND_LAUNCH_SECONDS = 600.0


def in_one_request(
    offerings: Sequence[Offering], zones: Mapping[str, str], refused_at: Mapping[str, float]
) -> tuple[Offering, ...]:
    """Keep one offering of each type, zone and market.

    EC2 refuses a request with two subnets of a zone for one type. That is the one which EC2 refused
    longest ago, or never; of several the first. A subnet of an unknown zone counts as one of its
    own.
    """
    by_turn = sorted(offerings, key=lambda offering: refused_at.get(offering.key, 0.0))
    kept = {
        (o.instance_type, zones.get(o.subnet, o.subnet), o.market): o.key for o in reversed(by_turn)
    }
    return tuple(offering for offering in offerings if offering.key in kept.values())


def told_later(offerings: Sequence[Offering], zones: Mapping[str, str]) -> str:
    """Say which subnets are asked for only if another one of their zone is refused; "" if none."""
    asked = in_one_request(offerings, zones, {})
    later = sorted({f"{one.subnet} ({zones[one.subnet]})" for one in offerings if one not in asked})
    last = "asked for once EC2 has refused another subnet of the same zone"
    return f"{', '.join(later)}: {last}" if later else ""


def _of_one_request(ports: Ports, step: Launch, memory: Memory) -> Launch:
    """Leave out what EC2 would refuse the request for.

    While zones cannot be read, one subnet is asked for, which EC2 takes in any case.
    """
    subnets = {offering.subnet for offering in step.offerings}
    zones = ports.or_else(
        partial(ports.compute.zones, subnets),
        "zones_not_read",
        otherwise=dict.fromkeys(subnets, ""),
        hint="each request names one subnet until the zones of all are known",
    )
    refused_at = {
        offering.key: trial.failed_at
        for offering in step.offerings
        if (trial := failing(memory, TrialOf.OFFERING.scope(step.pool, offering.key)))
    }
    return replace(step, offerings=in_one_request(step.offerings, zones, refused_at))


def launch(acting: Acting, step: Launch) -> Result:
    """Write an intent under the lease, send it, settle it by the answer."""
    ports, pool = acting.ports, acting.fleet.pools[step.pool]
    step = _of_one_request(ports, step, acting.snapshot.memory)
    intent = _written(ports, step)
    try:
        ports.state.add_intent(intent, holder=acting.holder)
    except ConflictError:
        return skipped(step, "it was launched before, or another pass acts by now")
    sent = _advance(ports, intent, replace(intent, state=IntentState.SENT))
    try:
        answer = ports.compute.launch(sent.request)
    except UnansweredError as error:
        acting.effects += _in_doubt(step.pool, error)
        return failed(step, f"no answer, looked for in the next pass: {error}")
    except MismatchError as error:
        return failed(step, f"it took effect before, settled by tag: {error}")
    except LaunchRefusedError as error:
        _advance(ports, sent, replace(sent, state=IntentState.SETTLED))
        refusal = Refusal(
            code=error.code, offering_key="", asked=step.offerings, denied=error.denied
        )
        _note_refused(acting, step, [refusal])
        return failed(step, str(error))
    settle(ports, pool, sent, answer.instances, acting.effects)
    types = frozenset(instance_type for _, instance_type, _ in answer.instances)
    got = len(answer.instances)
    refusals = [
        Refusal(
            code=problem.code,
            offering_key=problem.offering_key,
            asked=step.offerings,
            had=types,
            met=got >= step.count,
            denied=problem.denied,
        )
        for problem in answer.errors
    ]
    _note_refused(acting, step, refusals, is_vain=not got)
    if got:
        acting.effects.append(Had(pool=step.pool, asked=step.offerings, types=types))
    why = ", ".join(sorted({refusal.text for refusal in refusals})) or "no reason given"
    detail = "" if got >= step.count else f"{got} of {step.count}: {why}"
    return replace(done(step, detail) if got else failed(step, detail), count=got)


def _in_doubt(pool: str, error: TransientError) -> list[Effect]:
    """Return what EC2 answered, or that it did not, as a refusal; nothing for other errors.

    The launch may have taken effect: the account launches nothing more until it is answered or
    found.
    """
    refusals = (Refusal(code=str(error), offering_key="", asked=(), in_doubt=True),)
    return (
        [NotLaunched(pool=pool, refusals=refusals)]
        if isinstance(error, UnansweredLaunchError)
        else []
    )


def _note_refused(
    acting: Acting, step: Launch, refusals: Collection[Refusal], *, is_vain: bool = True
) -> None:
    """Note what EC2 refused.

    If it may be for the image that is tried, what else is launched in the pool goes on.
    """
    images = [
        refusal for refusal in refusals if step.tries and is_vain and may_be_the_image(refusal.code)
    ]
    if images:
        codes = ", ".join(sorted({refusal.text for refusal in images}))
        version, why = version_of(step.template_version, step.image), f"EC2 answered {codes}"
        acting.effects.append(ImageRefused(pool=step.pool, version=version, why=why))
    if others := tuple(refusal for refusal in refusals if refusal not in images):
        acting.effects.append(NotLaunched(pool=step.pool, refusals=others))


def _written(ports: Ports, step: Launch) -> Intent:
    intent_id = step.intent_id or ports.new_id()
    return Intent(
        id=intent_id,
        state=IntentState.WRITTEN,
        pool=step.pool,
        controller=step.controller,
        count=step.count,
        usd_per_hour=max(offering.reserved_usd_per_hour for offering in step.offerings),
        request=ports.compute.compose(step, intent_id),
        created_at=ports.clock(),
        keep_until=step.keep_until,
        instances=(),
        empty_look_at=None,
        version=version_of(step.template_version, step.image),
        reservation=step.reservation,
    )


def settle(
    ports: Ports,
    pool: Pool,
    intent: Intent,
    launched: Collection[tuple[str, str, str]],
    effects: list[Effect],
    recorded: Collection[str] = (),
) -> None:
    """Give every instance that a launch has brought a record, then close the intent.

    Cut off in between, the next pass does it again. ``recorded``: those that have one.
    """
    _record(ports, pool, intent, launched)
    ids = tuple(sorted({*recorded, *(instance_id for instance_id, _, _ in launched)}))
    if ids:
        effects.append(Had(pool=intent.pool, asked=(), types=frozenset()))
    _advance(ports, intent, replace(intent, state=IntentState.SETTLED, instances=ids, request=""))


def _record(
    ports: Ports, pool: Pool, intent: Intent, launched: Collection[tuple[str, str, str]]
) -> None:
    for instance_id, instance_type, market in launched:
        record = Record(
            instance_id=instance_id,
            state=RecordState.REQUESTED,
            pool=intent.pool,
            bindings=(Binding(controller=intent.controller),),
            launch=intent.id,
            instance_type=instance_type,
            **_prices(pool, instance_type, market),
            launched_at=intent.created_at,
            registered_at=None,
            keep_until=intent.keep_until,
            changed_at=ports.clock(),
            version=intent.version,
            reservation=intent.reservation,
        )
        _add_once(ports, record)


def recover(ports: Ports, fleet: Fleet, stored: StoredState) -> bool:
    """Go on with every launch whose outcome is unknown.

    Tell whether there was any, so that the state must be read again. What EC2 answers is saved, so
    that this pass decides by it.
    """
    fleet = with_left(with_volumes(fleet, stored), stored)
    open_intents = [intent for intent in stored.intents if intent.open]
    if open_intents:
        listed = ports.compute.instances()
        now, memory = ports.clock(), stored.memory
        overrides = stored.overrides.at(now)
        month, _ = turned(memory.month, memory.fleet.months, month_name(now), now)
        day, _ = turned(memory.fleet.day, memory.fleet.days, day_name(now), now)
        levels = (*spent_levels(month, fleet, now), *levels_out_of_hours(day, fleet, now))
        effects: list[Effect] = []
        for intent in open_intents:
            pool = fleet.pool_of(intent.pool, intent.controller)
            if pool is None:
                raise ValueError(f"{intent.id} is open, and has no pool")
            used = any(level.has(intent.pool) for level in levels)
            on_hold = used or pool.has_left or any(overrides.holds_on(intent.controller, pool.name))
            _recover(
                ports, pool, intent, _launched_by(intent, stored, listed), effects, on_hold=on_hold
            )
        if effects:
            ports.is_done(
                lambda: ports.state.save_memory(note_results(memory, fleet, effects, now)),
                "memory_not_saved",
            )
    for intent in unfinished(ports, stored):
        if not intent.open:
            ports.state.remove_intent(intent)
    return bool(open_intents)


def unfinished(ports: Ports, stored: StoredState) -> list[Intent]:
    """List the launches that are open or may be removed.

    A settled launch lives on in its records; a person's is kept, since the same request may be
    repeated.
    """
    since = ports.clock() - REQUESTS_REMEMBERED_SECONDS
    return [
        intent
        for intent in stored.intents
        if intent.open or not (intent.id.startswith(MANUAL_PREFIX) and intent.created_at > since)
    ]


def adopt(acting: Acting, step: Adopt) -> Result:
    """Write the missing record of an instance of ours, whose time to boot begins anew."""
    instance = next(listed for listed in acting.snapshot.instances if listed.id == step.instance_id)
    pool = acting.fleet.pool_of(step.pool, step.controller)
    if pool is None:
        return skipped(step, f"nobody knows its pool {step.pool}")
    spec, now = agent_spec(acting.fleet, pool, instance.id, step.controller), acting.ports.clock()
    labels = spec.labels if step.node == spec.name else ()  # those its node was created with
    version = version_of(instance.template_version, instance.image) if pool.image_parameter else ""
    adopted = Record(
        instance_id=instance.id,
        state=RecordState.REGISTERED if step.node else RecordState.REQUESTED,
        pool=pool.name,
        bindings=(Binding(controller=instance.controller, node=step.node),),
        launch=instance.launch,
        instance_type=instance.instance_type,
        **_prices(pool, instance.instance_type, instance.market),
        launched_at=instance.launched_at,
        registered_at=now if step.node else None,
        keep_until=0.0,
        changed_at=now,
        rotated_at=now,
        version=version,
        labels=labels,
        by_weight=bool(labels),
        exclusive=pool.exclusive,
        node_life=0 if step.node else None,
    )
    _add_once(acting.ports, adopted)
    return done(step)


class _Brought(NamedTuple):
    """What a launch has brought, by EC2's list and by our records.

    ``is_blind``: EC2 shows nothing, not even an instance on record: its list proves nothing.
    ``is_unclear``: it is blind, or a record that cannot be read may be of the launch.
    """

    listed: tuple[Instance, ...]
    recorded: frozenset[str]
    is_blind: bool
    is_unclear: bool

    @property
    def ids(self) -> frozenset[str]:
        return self.recorded | {instance.id for instance in self.listed}

    @property
    def new(self) -> list[tuple[str, str, str]]:
        """The instances without a record: id, type and market of each."""
        new = (instance for instance in self.listed if instance.id not in self.recorded)
        return [(instance.id, instance.instance_type, instance.market) for instance in new]


def _launched_by(intent: Intent, stored: StoredState, listed: Collection[Instance]) -> _Brought:
    records = (record for record in stored.records if record.launch == intent.id)
    # An instance that the intent lists may have ended since: then its record is deleted.
    recorded = frozenset(
        (*intent.instances, *(record.instance_id for record in records if record.is_instance))
    )
    unlisted = {*stored.unread} - {f"record#{instance.id}" for instance in listed}
    is_blind = not listed and any(
        stored.memory.agent(record.machine).missing for record in stored.records
    )
    is_unclear = is_blind or any(name.startswith("record#") for name in unlisted)
    launched = tuple(
        instance
        for instance in listed
        if instance.launch == intent.id and instance.state is not InstanceState.FOREIGN
    )
    return _Brought(launched, recorded, is_blind, is_unclear)


def _recover(
    ports: Ports,
    pool: Pool,
    intent: Intent,
    brought: _Brought,
    effects: list[Effect],
    *,
    on_hold: bool,
) -> None:
    now = ports.clock()
    age = now - intent.created_at
    is_over = age >= RESEND_LAUNCH_SECONDS and not brought.is_blind
    first_look_at = intent.empty_look_at or now
    if len(brought.ids) >= intent.count or (is_over and now - first_look_at >= SECOND_LOOK_SECONDS):
        # Never sent again. Should an instance of it turn up late after all, its tags lead to it.
        settle(ports, pool, intent, brought.new, effects, brought.recorded)
    elif age < -LISTED_AFTER_SECONDS:  # it was written by a clock that was ahead
        ports.state.change_intent(replace(intent, created_at=now), expected=intent.state)
    elif age < LISTED_AFTER_SECONDS:
        return
    elif brought.ids or age >= RESEND_LAUNCH_SECONDS:
        # A list may leave some out: they take their room until the launch is given up.
        _record(ports, pool, intent, brought.new)
        _advance(
            ports,
            intent,
            replace(
                intent,
                instances=tuple(sorted(brought.ids)),
                empty_look_at=first_look_at if is_over else None,
            ),
        )
    elif not (on_hold or brought.is_unclear):
        try:  # with the same token: EC2 answers with what it did, or does it now for the first time
            settle(ports, pool, intent, ports.compute.launch(intent.request).instances, effects)
        except (UnansweredError, MismatchError, LaunchRefusedError) as error:
            # A refusal now says nothing of the first time. It stays open, and is settled by tag.
            ports.log(
                "launch_still_open", intent=intent.id, error=f"{type(error).__name__}: {error}"
            )
            effects += _in_doubt(pool.name, error)


def _advance(ports: Ports, old: Intent, new: Intent) -> Intent:
    ports.state.change_intent(new, expected=old.state)
    return new


def _prices(pool: Pool, instance_type: str, market: str) -> dict[str, Any]:
    """Return what a record says of the price, by the fleet file.

    A type that is not in it costs as much as the dearest offering. ``reserved``: the capacity that
    the pool launches into, and what a machine costs if that does not pay for it any more.
    """
    kind = instance_type, market
    first = next((o for o in pool.offerings if (o.instance_type, str(o.market)) == kind), None)
    offerings, capacity = (first,) if first else pool.offerings, pool.capacity
    reserved = capacity and ReservedPrice(id=capacity.id, usd_per_hour=capacity.usd_per_hour)
    return {
        "usd_per_hour": max(offering.billed_usd_per_hour for offering in offerings),
        "most_usd_per_hour": max(offering.reserved_usd_per_hour for offering in offerings),
        "volume_usd_per_hour": max(offering.volume_usd_per_hour for offering in offerings),
        "reserved": reserved,
    }


def _add_once(ports: Ports, record: Record) -> None:
    ports.is_done(
        partial(ports.state.add_record, record),
        "record_exists",
        caught=ConflictError,
        instance_id=record.instance_id,
    )
