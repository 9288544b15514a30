"""Observes: makes one snapshot from the state, Jenkins and EC2."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from autoscaler.domain.facts.fleet import HOST, Fleet, Market, PoolVolumes
from autoscaler.domain.facts.memory import Learned
from autoscaler.domain.facts.metering import SPOT_PRICES_SECONDS, truly_priced
from autoscaler.domain.facts.nodes import described_instance
from autoscaler.domain.facts.pools import Source, known_volumes, sources, with_true_volumes
from autoscaler.domain.facts.runs import Run, RunAnswer, job_path_of
from autoscaler.domain.facts.snapshot import MINUTE_SECONDS, OFF, ControllerView, Instance, InstanceState, RecordState, Snapshot
from autoscaler.domain.facts.started_builds import LostBuild, LostFacts, Rerun, claimed_try, origin_key, rerun_key
from autoscaler.domain.memo import Memo
from autoscaler.domain.situation.agents import FORGOTTEN_ASKED_A_LOOK, ids_to_ask_alone
from autoscaler.domain.situation.builds import may_have_orders
from autoscaler.domain.situation.looks import RUNS_ASKED_A_LOOK, is_gap, runs_to_ask, runs_to_ask_for
from autoscaler.errors import AutoscalerError, NoAnswerError
from autoscaler.ports import Controller, Ports, StoredState, T

# The invocation that a pass runs in.


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """An invocation: when it must have ended, and whether it may act.

    ``by``: the function, or the person who asks; ``part`` names the second half of a look that takes two passes.
    """

    request_id: str
    ends_at: float
    by: str = "autoscaler"
    part: str = ""
    dry_run: bool = False
    by_a_person: bool = False
    memo: Memo = field(default_factory=Memo, repr=False, compare=False)  # nothing outlives the invocation

    @property
    def pass_id(self) -> str:
        """Name the pass: by the request id, and a second half by a suffix."""
        return self.request_id + self.part


# Asks runs whose builds run for far too long whether they have ended.


# On each controller: what it leaves is asked in the next look.
_SECONDS = 8.0


def ask_overdue(ports: Ports, fleet: Fleet, stored: StoredState, views: Iterable[ControllerView]) -> dict[str, dict[str, RunAnswer]]:
    """Return the answers by controller and run. A pass that remembers nothing asks nothing."""
    if not ports.asks_about_builds:
        return {}
    controllers, now = {controller.name: controller for controller in ports.controllers}, ports.clock()
    known = stored.memory, stored.records
    asked = {view.name: runs_to_ask(view, *known, stored.learned.get(view.name, Learned()), fleet, now) for view in views}
    return {name: _ask(ports, controllers[name], runs) for name, runs in asked.items() if runs}


def _ask(ports: Ports, controller: Controller, runs: Iterable[str]) -> dict[str, RunAnswer]:
    until, answers = ports.clock() + _SECONDS, dict[str, RunAnswer]()
    for run in runs:
        if ports.clock() >= until:
            break
        try:
            answers[run] = controller.whether_ended(run)
        except AutoscalerError as error:
            ports.log("run_not_read", controller=controller.name, run=run, error=f"{type(error).__name__}: {error}")
            if isinstance(error, NoAnswerError):
                break
            # It is asked again when its turn comes: what Jenkins refuses for ever must not keep others from theirs.
            answers[run] = RunAnswer.NOT_TOLD
    return answers


# Looks up what Jenkins and our own store say of builds whose agents have gone.


# Some small requests each; the others in the next looks.
LOST_ASKED_A_LOOK = 20


def look_up(ports: Ports, fleet: Fleet, lost: Mapping[str, LostBuild], views: Iterable[ControllerView]) -> dict[str, LostFacts]:
    """Ask about the builds that are followed. What cannot be read now is asked for in the next look."""
    found: dict[str, LostFacts] = {}
    for view in views:
        mine = [one for one in lost.values() if one.controller == view.name]
        if not mine or not view.complete or view.name not in ports.builds:
            continue
        for one in a_part_of(mine, LOST_ASKED_A_LOOK, ports.clock()):
            try:
                found[one.key] = _facts(ports, fleet.rerun_parameter, one)
            except AutoscalerError as error:
                ports.log("lost_build_not_read", controller=view.name, run=one.run, error=f"{type(error).__name__}: {error}")
                break
    return found


def _facts(ports: Ports, own: str, lost: LostBuild) -> LostFacts:
    builds = ports.builds[lost.controller]
    run = builds.run(lost.run)
    if run is not None and run.building:
        return LostFacts(run=run)
    unit = run if run is None or lost.unit == lost.run else builds.run(lost.unit)
    rerun = ports.reruns.rerun(rerun_key(lost.controller, lost.unit, unit.started_at if unit else 0.0))
    shown = unit or run  # a restart may leave a configuration without its matrix
    if shown is None or shown.building:
        return LostFacts(run=run, unit=unit, rerun=rerun)
    since = shown.ended_at if shown.ended_at is not None else shown.started_at
    upstream = tuple(up for path in shown.upstream if (up := builds.run(path)) is not None)
    job = builds.job(job_path_of(lost.unit), since)
    origin, is_ordered = _claimed(ports, own, lost, shown)
    return LostFacts(run=run, unit=unit, job=job, rerun=rerun, upstream=upstream, origin=origin, is_ordered=is_ordered)


def _claimed(ports: Ports, own: str, lost: LostBuild, run: Run) -> tuple[Rerun | None, bool]:
    """Read the answer that a build's own parameter claims to come from; ask the order that it names, open or not, whether it began it."""
    keys = (origin_key(lost.controller, parameter.value or "") for parameter in run.parameters if parameter.name == own)
    key = next((key for key in keys if key is not None), None)
    origin = ports.reruns.rerun(key) if key is not None else None
    named = claimed_try(run.parameters, own)
    if named is None:
        return origin, False
    order = ports.run_orders.order(named[0])
    return origin, order is not None and order.has_started(lost.controller, named[1], item=run.item, run=lost.unit)


def observe(ports: Ports, fleet: Fleet, stored: StoredState, invocation: Invocation) -> Snapshot:
    """Look at everything once. A controller that cannot be read makes only its own view incomplete."""
    snapshot = observe_without_instances(ports, fleet, stored, invocation)
    views = snapshot.controllers
    listed = ports.compute.instances()
    instances = tuple(instance for instance in listed if instance.state is not InstanceState.FOREIGN)
    unlisted = _unlisted(stored, fleet, views.values(), listed)
    fates = dict(ports.compute.fates(unlisted)) if unlisted else {}
    # EC2 is asked one by one for instances that have been missing for hours.
    now = ports.clock()
    missing = a_part_of(ids_to_ask_alone(stored.memory, fates, now), FORGOTTEN_ASKED_A_LOOK, now) if fates else []
    fates |= {instance_id: ports.compute.fate(instance_id) for instance_id in missing}
    # The fleet file lets people order runs, or did so while some were open.
    orders = ports.run_orders if may_have_orders(fleet, stored.memory) else None
    return replace(
        _with_prices(ports, fleet, stored, instances, replace(snapshot, taken_at=ports.clock())),
        instances=instances,
        foreign=tuple(instance for instance in listed if instance.state is InstanceState.FOREIGN),
        fates=fates,
        # If nobody looked for a while, the state may have been lost or restored, and does not know what has ended lately.
        ended=ports.or_else(ports.compute.ended_lately, "ended_not_read", otherwise=()) if is_gap(stored.memory, ports.clock()) else (),
        end_reasons=_end_reasons(ports, stored, instances, fates),
        unknown_alone=frozenset(instance_id for instance_id in missing if fates[instance_id] is InstanceState.NOT_FOUND),
        lost=look_up(ports, fleet, stored.memory.lost, views.values()) if stored.memory.lost and ports.asks_about_builds else {},
        run_orders=() if orders is None else ports.or_else(orders.open_orders, "run_orders_not_read", otherwise=None),
        run_answers=ask_overdue(ports, fleet, stored, views.values()),
        ended_runs=_ended_runs(ports, stored, views),
    )


def _with_prices(ports: Ports, fleet: Fleet, stored: StoredState, instances: Collection[Instance], snapshot: Snapshot) -> Snapshot:
    """Add what would be launched now, and what volumes and spot instances cost."""
    # Where EC2 does not say which template versions would be launched now, no agent is outdated and no launch is a canary.
    read_versions = partial(ports.compute.template_versions, fleet.launched.pools)
    versions = ports.or_else(read_versions, "template_versions_not_read", otherwise={})
    parameters = {pool.name: pool.image_parameter for pool in fleet.pools.values() if pool.image_parameter}
    images = _images(ports, parameters) if parameters else {}
    spot = [instance for instance in instances if instance.market == Market.SPOT]
    volumes = _volumes(ports, stored, sources(fleet, versions, images))
    return replace(
        snapshot,
        records=with_true_volumes(snapshot.records, fleet, {**known_volumes(stored), **volumes}, instances),
        volumes=volumes,
        template_versions=versions,
        images=images,
        spot_prices=_spot_prices(ports, fleet, stored, spot) if spot else None,
    )


def observe_without_instances(ports: Ports, fleet: Fleet, stored: StoredState, invocation: Invocation) -> Snapshot:
    """Look at state and Jenkins only: enough to measure, where nothing will be decided."""
    views = look_at_controllers(ports)
    return Snapshot(
        taken_at=ports.clock(),
        pass_id=invocation.pass_id,
        request_id=invocation.request_id,
        controllers=views,
        instances=(),
        fates={},
        records=tuple(truly_priced(record, fleet) if record.reserved else record for record in stored.records),
        intents=stored.intents,
        memory=stored.memory,
        learned={name: stored.learned.get(name, Learned()) for name in views},
        overrides=stored.overrides,
        look_every_seconds=ports.look_every_seconds,
        unread=stored.unread,
        unread_as=stored.unread_as,
        devices=stored.devices,
    )


def look_at_controllers(ports: Ports) -> dict[str, ControllerView]:
    """Look at all controllers at once, so that one that hangs takes no time from the others."""
    views = ports.side_by_side([partial(_look, ports, controller) for controller in ports.controllers])
    return {view.name: view for view in views}


def log_notes(ports: Ports, snapshot: Snapshot) -> None:
    """Log what could not be read or understood."""
    if snapshot.unread:
        ports.log("state_unread", count=len(snapshot.unread), names=snapshot.unread[:10])
    for view in snapshot.controllers.values():
        if view.problem:
            ports.log("controller_incomplete", controller=view.name, problem=view.problem)
        if not view.shows_jobs:
            ports.log("no_job_shown", controller=view.name, hint="without Job/Read the queue looks empty, and nothing is launched for it")
        if view.set_aside:
            ports.log("set_aside", controller=view.name, count=len(view.set_aside), first=view.set_aside[0])


def _look(ports: Ports, controller: Controller) -> ControllerView:
    """Look at one controller, unless it has just failed. An unexpected error must not stop work on the others."""
    if controller.name in ports.failed:
        return ControllerView.of_nothing(controller.name, "it failed a moment ago, and is not asked again in this invocation", 0.0)
    try:
        return controller.look()
    except Exception as error:  # noqa: BLE001 - the one place: the view says what happened, and nothing follows from it
        ports.log("look_broke", controller=controller.name, error=f"{type(error).__name__}: {error}")
        return ControllerView.of_nothing(controller.name, f"{type(error).__name__}: {error}", 0.0)


def a_part_of(things: Sequence[T], count: int, now: float) -> list[T]:
    """Choose so many, others a minute later, so that those asked for in vain do not keep the rest from their turn."""
    first = int(now // MINUTE_SECONDS) * count % max(1, len(things))
    return [*things[first:], *things[:first]][:count]


def _ended_runs(ports: Ports, stored: StoredState, views: Mapping[str, ControllerView]) -> dict[str, frozenset[str]]:
    """Ask which runs have ended that were on a node before their controller restarted. A run that cannot be read counts as running."""
    ended: dict[str, frozenset[str]] = {}
    for controller in ports.controllers:
        name, life = controller.name, stored.memory.sessions.get(controller.name)
        in_doubt = runs_to_ask_for(life, views[name]) if life and life.suspects else ()
        for run in a_part_of(in_doubt, RUNS_ASKED_A_LOOK, ports.clock()) if in_doubt else ():
            try:
                if controller.result(run) is not None:
                    ended[name] = ended.get(name, frozenset()) | {run}
            except AutoscalerError as error:
                ports.log("run_not_read", controller=name, run=run, error=f"{type(error).__name__}: {error}")
                break
    return ended


def _end_reasons(ports: Ports, stored: StoredState, instances: Iterable[Instance], fates: Mapping[str, InstanceState]) -> Mapping[str, str]:
    """Ask why those instances have ended, or stopped, that we did not end. If EC2 does not say, nobody knows."""
    wanted = {record.machine for record in stored.records if record.state in (RecordState.REQUESTED, RecordState.REGISTERED)}
    stopped = (instance for instance in instances if instance.state.ended or (instance.state in OFF and instance.id in wanted))
    ended = {instance.id: instance.state_reason for instance in stopped if instance.state_reason}
    known = ended.keys() | {name for name, past in stored.memory.agents.items() if past.ended_why}
    unknown = [instance_id for instance_id in wanted - known if fates.get(instance_id) is InstanceState.TERMINATED]
    if not unknown:
        return ended
    return {**ended, **ports.or_else(partial(ports.compute.end_reasons, unknown), "end_reasons_not_read", otherwise={})}


def _images(ports: Ports, wanted: Mapping[str, str]) -> Mapping[str, str]:
    """Ask which images would be launched now. Where that is not told, what was seen to boot goes on to be launched."""
    known = ports.or_else(partial(ports.images.current, {*wanted.values()}), "image_parameters_not_read", otherwise=None)
    if known is None:
        return {}
    if untold := sorted({*wanted.values()} - known.keys()):
        ports.log("image_parameters_untold", names=untold, hint="there is no such parameter, or its value is no image's id")
    return {name: known[parameter] for name, parameter in wanted.items() if parameter in known}


def _volumes(ports: Ports, stored: StoredState, wanted: Mapping[str, Source]) -> Mapping[str, PoolVolumes]:
    """Read the volumes of pools that launch something else than what was read last. If EC2 fails, the last ones stand."""
    remembered = known_volumes(stored)
    changed = {name: source for name, source in wanted.items() if name not in remembered or remembered[name].source != str(source)}
    if not changed:
        return {}
    of, hint = [*dict.fromkeys(changed.values())], "they are priced as they were, or by volume_gib"
    read = ports.or_else(partial(ports.compute.volumes, of), "volumes_not_read", otherwise={}, hint=hint)
    return {name: PoolVolumes(source=str(source), volumes=tuple(read[source])) for name, source in changed.items() if source in read}


def _spot_prices(ports: Ports, fleet: Fleet, stored: StoredState, spot: Collection[Instance]) -> Mapping[str, float] | None:
    """Ask for spot prices now and then while spot instances run. Where EC2 fails, the last prices stand."""
    now = ports.clock()
    if now < stored.memory.fleet.spot_prices.asked_at + SPOT_PRICES_SECONDS:
        return None
    types = spot_types(fleet) | {instance.instance_type for instance in spot}
    platforms = {instance.platform for instance in spot}
    prices = ports.or_else(partial(ports.compute.spot_prices, types, platforms, now), "spot_prices_not_read", otherwise=None)
    if prices is not None and (untold := sorted({instance.priced_as for instance in spot} - prices.keys())):
        ports.log("spot_prices_untold", count=len(untold), first=untold[0], hint="counted at the most that may be paid")
    return prices


def spot_types(fleet: Fleet) -> set[str]:
    """List the instance types that the fleet may launch as spot."""
    return {o.instance_type for pool in fleet.pools.values() for o in pool.offerings if o.market is Market.SPOT}


def _unlisted(stored: StoredState, fleet: Fleet, views: Iterable[ControllerView], instances: tuple[Instance, ...]) -> list[str]:
    """Return the ids to ask for one by one: absence from a list never means gone."""
    listed = {instance.id for instance in instances}
    known = [record for record in stored.records if record.state is not RecordState.GONE]
    recorded, named = {record.machine for record in known}, {record.node for record in known}
    described = {
        described_instance(fleet, node.name, node.description) or "" for view in views for node in view.nodes if node.name not in named
    }
    return sorted(machine for machine in (recorded | described) - listed - {""} if not machine.startswith(HOST))
