"""Checks whether the functions can reach and do all that they need, with the calls that passes make."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from math import inf

from autoscaler.control.measure import believable_telemetry, why_nobody_is_told
from autoscaler.control.observe import Invocation, observe, spot_types
from autoscaler.control.steps.launching import in_one_request, told_later
from autoscaler.domain.facts.fleet import Fleet, Market, NodeSpec, Pool, never_stopped, stoppable
from autoscaler.domain.facts.nodes import drops_handed_builds
from autoscaler.domain.facts.plan import Launch
from autoscaler.domain.facts.pools import pool_at_its_widest
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.runs import ItemState, job_path_of, matrix_of
from autoscaler.domain.facts.snapshot import ControllerView
from autoscaler.domain.learn import assess
from autoscaler.domain.report.controllers import told_others
from autoscaler.domain.report.listing import silent
from autoscaler.domain.report.overdue import told_foreign
from autoscaler.domain.report.problems import CURE, jobs_without_label, labels_of_others
from autoscaler.domain.report.quotas import needs
from autoscaler.domain.report.status import WAY_OUT, price_ages
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import counted, end_command, listed
from autoscaler.errors import (
    AutoscalerError,
    ConflictError,
    DoubtfulError,
    LaunchRefusedError,
    RefusedBuildError,
    TransientError,
    UnansweredError,
)
from autoscaler.ports import Account, Builds, Compute, Controller, Ports

# Tries whether the account may build and cancel: by requests of which Jenkins looks at the permission first, and then does nothing.


_RUNS_TRIED = 5
Told = tuple[bool | None, str]  # None: it could not be tried; and what is to be said of it


def may_build(view: ControllerView, builds: Builds, needed_by: str) -> Told:
    """Ask for a build in the way that its job does not take: Jenkins starts nothing."""
    path = next((job_path_of(matrix_of(run) or run) for run in _runs(view)), "")
    try:
        job = builds.job(path, inf) if path else None
        if job is None:
            return None, f"no build runs that it could be tried on; {needed_by} needs it"
        builds.start(job.path, None if job.declares else {})
    except DoubtfulError as error:
        return None, f"it could not be tried: {error}; {needed_by} needs it"
    except (RefusedBuildError, UnansweredError):
        return True, ""
    except AutoscalerError as error:
        return False, f"{error}; {needed_by} needs it"
    return True, ""


def may_cancel(view: ControllerView, builds: Builds) -> Told:
    """Cancel an item that has left the queue, or stop a pipeline that has ended; of another build that has ended nobody asks for it."""
    try:
        for run in islice(_runs(view), _RUNS_TRIED):
            if _is_tried_on_item(run, builds) or _is_tried_on_pipeline(run, builds):
                return True, ""
    except TransientError as error:
        return None, f"it could not be tried: {error}; runs needs it"
    except AutoscalerError as error:
        return False, f"{error}; builds that nobody wants any more go on without it (runs)"
    return None, "no build has begun in the last five minutes, and no pipeline has ended, that it could be tried on; runs needs it"


def _is_tried_on_item(path: str, builds: Builds) -> bool:
    """Jenkins knows an item for five minutes after it left, and looks at the permission before it sees that it is too late."""
    run = builds.run(path)
    if run is None or builds.item(run.item).state is not ItemState.STARTED:
        return False
    builds.cancel(run.item)
    return True


def _is_tried_on_pipeline(path: str, builds: Builds) -> bool:
    """Jenkins looks at the permission before it sees that the pipeline does not run."""
    job = builds.job(job_path_of(path), 0.0)
    before = [entry.run for entry in job.entries if entry.run and entry.run != path] if job else []
    for one in before[:_RUNS_TRIED]:
        run = builds.run(one)
        if run is not None and run.is_pipeline and not run.building:
            builds.stop(one)
            return True
    return False


def _runs(view: ControllerView) -> Iterator[str]:
    found = [*(build.run for node in view.nodes for build in node.builds), *(item.run for item in view.items)]
    return (run for run in dict.fromkeys(found) if run)


# Tries every call that passes make.


_LATE_SECONDS = 180.0
_TELLS_WITHIN_SECONDS = 900.0
_TELEMETRY = "agents tell what they use"
_LAUNCH = "ec2:CreateFleet (a dry run)"
_CONFIGURE = "Agent/Configure (labels before a cordon)"
_WITHOUT_CONFIGURE = "a build that is handed over in the instant of a cordon may be lost: grant it, or upgrade Jenkins to 2.528.1"
_SPOT_PRICES = "ec2:DescribeSpotPriceHistory"
_INSTANCE = "ec2:RunInstances, iam:PassRole (dry runs)"
_LAUNCH_TEMPLATES = "ec2:DescribeLaunchTemplateVersions, DescribeImages, DescribeInstanceTypes, DescribeSubnets, DescribeRouteTables"
_IMAGE, _WITHOUT_IMAGE = "ssm:GetParameters", "the image that booted last is launched, or the launch template's"
_KEY_AT_A_START = "the key of its volumes, when a stopped agent starts"
_GRANT = (
    "scale_up and scale_down need kms:CreateGrant for it (the stack's VolumeKmsKeyArn gives it), and its policy must let them; "
    "only a start tells"
)
_STOP_THEM = "set warm_pool.instance_stores if the machine formats and mounts them at each boot"
_SPOT_COMMAND = "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"
_CREATE, _CORDON, _UNCORDON = "Agent/Create", "Agent/Disconnect (cordon)", "Agent/Connect (uncordon)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check. ``fine`` None: unknown."""

    about: str
    what: str
    fine: bool | None
    detail: str


def examine(ports: Ports, account: Account, fleet: Fleet, invocation: Invocation) -> list[Finding]:
    """Check everything. A dry run leaves out whatever changes Jenkins."""
    found: list[Finding] = []
    snapshot = None
    try:
        snapshot = observe(ports, fleet, ports.state.read(), invocation)
        found.append(Finding(about="aws", what="state and ec2:DescribeInstances", fine=True, detail=f"{len(snapshot.instances)} instances"))
        if snapshot.unread:
            names = ", ".join(snapshot.unread[:5])
            found.append(Finding(about="aws", what="state is understood", fine=False, detail=f"{len(snapshot.unread)} are not: {names}"))
    except AutoscalerError as error:
        found.append(Finding(about="aws", what="state and ec2:DescribeInstances", fine=False, detail=str(error)))
    for controller in ports.controllers:
        view = snapshot.controllers[controller.name] if snapshot else controller.look()
        found += _controller(controller, view)
        if view.complete and not invocation.dry_run:
            found += _permissions(controller, view, fleet, ports.builds.get(controller.name))
    found += _account(ports, account, fleet.launched, snapshot.images if snapshot else {})
    # Nobody knows whether carried prices that are old are still today's.
    found += [
        Finding(
            about="prices",
            what=f"listed on {one.listed_on}",
            fine=None if one.old else True,
            detail=f"{one.told}; {WAY_OUT}" if one.old else one.told,
        )
        for one in price_ages(fleet, ports.clock())
    ]
    found += _instance_stores(fleet.launched)
    situation = assess(snapshot, fleet) if snapshot else None
    found += _long_jobs(situation.fleet if situation else fleet)
    return [*found, *(_situation(ports, situation) if situation else ()), *(_passes(situation) if situation else ())]


def examine_launches(compute: Compute, fleet: Fleet) -> list[Finding]:
    """Try to launch an agent of each pool by dry runs, until EC2 does not answer. For the function that may launch."""
    found: list[Finding] = []
    for pool in fleet.launched.pools.values():
        markets = dict.fromkeys(offering.market for offering in pool.offerings)
        try:  # each market as passes ask for it, then each offering alone
            found.extend(_launch(compute, pool, market) for market in markets)
            found.append(_instances(compute, pool))
        except TransientError as error:
            return [*found, Finding(about=pool.name, what=_LAUNCH, fine=False, detail=f"{error}; the other pools were not tried")]
    return found


def _controller(controller: Controller, view: ControllerView) -> Iterator[Finding]:
    about = controller.name
    if not view.complete:
        yield Finding(about=about, what="answers, Overall/Read", fine=False, detail=view.problem or "")
        return
    yield Finding(
        about=about,
        what="answers, Overall/Read",
        fine=True,
        detail=f"in {view.response_seconds:.1f} s: {len(view.nodes)} nodes, {len(view.items)} items in the queue",
    )
    hidden = "no job is shown: the queue looks empty without it" if not view.shows_jobs else ""
    yield Finding(about=about, what="Job/Read", fine=not hidden, detail=hidden)
    builtin = sum(node.executors for node in view.nodes if not node.agent)
    detail = f"{builtin} executors on the controller itself: builds there can read its secrets" if builtin else ""
    yield Finding(about=about, what="no builds on the controller", fine=not builtin, detail=detail)
    if view.set_aside:
        yield Finding(about=about, what="is understood", fine=False, detail=f"{len(view.set_aside)} entries are not: {view.set_aside[0]}")


def _permissions(controller: Controller, view: ControllerView, fleet: Fleet, builds: Builds | None) -> Iterator[Finding]:
    """Create a node that nobody connects to, do to it what passes do to nodes, and delete it."""
    name = f"autoscaler-doctor-{fleet.name}"
    description = f"Made by the doctor of the autoscaler of fleet {fleet.name} to try permissions, and deleted again."
    spec = NodeSpec(name=name, labels=(name,), executors=1, exclusive=True, remote_dir="/nonexistent", description=description)
    cordoned = True
    yield from _about_builds(view, fleet, builds)
    for what, attempt in _attempts(controller, view, spec):
        if what == _UNCORDON and not cordoned:
            continue
        try:
            attempt()
        except AutoscalerError as error:
            detail = f"{error}; {_WITHOUT_CONFIGURE}" if what == _CONFIGURE else str(error)
            yield Finding(about=controller.name, what=what, fine=False, detail=detail)
            if what == _CREATE:
                return
            cordoned = cordoned and what != _CORDON
        else:
            yield Finding(about=controller.name, what=what, fine=True, detail="")


def _about_builds(view: ControllerView, fleet: Fleet, builds: Builds | None) -> Iterator[Finding]:
    """Try what lost builds and ordered runs need, where the fleet file has their keys."""
    reruns = any(pool.rerun for pool in fleet.pools_of(view.name))
    needed_by = " and ".join(key for key, wanted in (("rerun", reruns), ("runs", fleet.runs)) if wanted)
    if builds is not None and needed_by:
        fine, detail = may_build(view, builds, needed_by)
        yield Finding(about=view.name, what="Job/Build (builds are started)", fine=fine, detail=detail)
    cannot = None, "only purge needs it; it cannot be tried without cancelling an item"
    fine, detail = may_cancel(view, builds) if builds is not None and fleet.runs else cannot
    yield Finding(about=view.name, what="Job/Cancel", fine=fine, detail=detail)


def _attempts(controller: Controller, view: ControllerView, spec: NodeSpec) -> Iterator[tuple[str, Callable[[], object]]]:
    name = spec.name
    yield _CREATE, lambda: _create(controller, spec)
    if drops_handed_builds(view):
        yield _CONFIGURE, lambda: controller.set_labels(name, [name], instead_of=[], exclusive=True)
    yield _CORDON, lambda: controller.set_offline(name, "tried by the doctor")
    yield _UNCORDON, lambda: controller.toggle_offline(name, "")
    yield "Agent/Connect (an agent's secret)", lambda: controller.agent_secret(name)
    yield "Agent/Delete", lambda: controller.delete_node(name)


def _create(controller: Controller, spec: NodeSpec) -> None:
    with suppress(ConflictError):  # left by a doctor who was cut off; this one deletes it
        controller.create_node(spec)


def _account(ports: Ports, account: Account, fleet: Fleet, images: Mapping[str, str]) -> Iterator[Finding]:
    """Ask AWS about the account. A question that fails does not stop the others."""
    asked: tuple[tuple[str, Callable[[], Iterable[Finding]]], ...] = (
        (_LAUNCH_TEMPLATES, lambda: _by_pool(fleet, "launch template, image, way out", account.unsafe_templates(images))),
        # A start needs the right to use the key of each volume, and no dry run tells whether it has that right.
        (
            "ec2:DescribeLaunchTemplateVersions",
            lambda: [
                Finding(about=pool, what=_KEY_AT_A_START, fine=None, detail=f"{key}: {_GRANT}")
                for pool, key in account.volume_keys().items()
            ],
        ),
        (
            "ec2:DescribeSubnets, ec2:DescribeInstanceTypeOfferings",
            lambda: _by_pool(fleet, "subnets and instance types", account.not_offered()),
        ),
        ("ec2:DescribeInstanceTypes, servicequotas:ListServiceQuotas", lambda: _quotas(account, fleet)),
        ("iam:GetRole", lambda: _spot_role(account, fleet)),
        ("ec2:DescribeInstances, cloudformation:DescribeStacks", lambda: _of_no_stack(account)),
        (_SPOT_PRICES, lambda: _spot_prices(ports, fleet)),
        ("lambda:GetAccountSettings", lambda: _executions(account)),
        ("sns:ListSubscriptionsByTopic", lambda: _subscriptions(ports)),
    )
    yield from (_image(ports, pool) for pool in fleet.pools.values() if pool.image_parameter)
    for question, ask in asked:
        yield from _asked("aws", question, ask)


def _asked(about: str, question: str, ask: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    try:
        yield from ask()
    except AutoscalerError as error:
        yield Finding(about=about, what=question, fine=False, detail=str(error))


def _subscriptions(ports: Ports) -> Iterator[Finding]:
    """Check that alarms and messages reach somebody."""
    missing = why_nobody_is_told(ports.notifier)
    yield Finding(about="aws", what="alarms reach somebody", fine=not missing, detail=missing)


def _of_no_stack(account: Account) -> Iterator[Finding]:
    """Name instances that nobody ends: of another fleet name, or of a stack that was deleted."""
    for name, ids in account.instances_of_no_stack().items():
        yield Finding(
            about="aws",
            what=f"instances of fleet {name}",
            fine=False,
            detail=f"{counted(len(ids), 'instance')} that no stack in this region manages; once nothing runs there: {end_command(ids)}",
        )


def _image(ports: Ports, pool: Pool) -> Finding:
    """Ask for each parameter alone: SSM fails all for one that may not be read."""
    parameter, image = pool.image_parameter, None
    detail = f"{parameter}: there is no such parameter, or its value is no image's id; {_WITHOUT_IMAGE}"
    try:
        if image := ports.images.current([parameter]).get(parameter):
            detail = f"{parameter} names {image}"
    except AutoscalerError as error:
        detail = f"{parameter}: {error}; the stack's ImageParameterArns must hold its ARN"
    return Finding(about=pool.name, what=_IMAGE, fine=bool(image), detail=detail)


def _instance_stores(fleet: Fleet) -> Iterator[Finding]:
    """Name the types that a pool with stopped agents never stops."""
    for pool in map(pool_at_its_widest, fleet.pools.values()):
        if types := never_stopped(pool):
            none = "" if stoppable(pool) else "no agent of the pool is ever stopped; "
            detail = f"{none}{', '.join(types)}: instance stores are empty after a stop; {_STOP_THEM}"
            yield Finding(about=pool.name, what="types that are never stopped", fine=None, detail=detail)


def _long_jobs(fleet: Fleet) -> Iterator[Finding]:
    """Say of pools that decline long jobs whether Jenkins starts them there all the same, on an executor that is free, and which ran."""
    for pool in fleet.pools.values():
        if pool.max_job_seconds is not None:
            jobs = sorted(
                {job for name in pool.controllers for job in fleet.declined.by_own_builds(name, pool.name)} if fleet.declined else ()
            )
            detail = f"{listed(jobs)} ran there, and takes longer: {CURE}, and long jobs another one" if jobs else ""
            yield Finding(about=pool.name, what="runs short jobs alone (max_job_seconds)", fine=None if jobs else True, detail=detail)
            fine, why = jobs_without_label(pool, fleet)
            yield Finding(about=pool.name, what="takes no jobs without a label (max_job_seconds)", fine=fine, detail=why)
            if shared := labels_of_others(pool, fleet):
                whose = "; ".join(f"{label} is of {listed(names)}, too" for label, names in shared.items())
                detail = f"{whose}: Jenkins starts long jobs that ask for it on either; {CURE}"
                yield Finding(about=pool.name, what="has labels of its own (max_job_seconds)", fine=None, detail=detail)


def _by_pool(fleet: Fleet, what: str, lines: Mapping[str, tuple[str, ...]]) -> list[Finding]:
    return [Finding(about=name, what=what, fine=not lines.get(name), detail="; ".join(lines.get(name, ()))) for name in fleet.pools]


def _quotas(account: Account, fleet: Fleet) -> Iterator[Finding]:
    for need in needs(fleet, account.quotas(), account.vcpus()):
        yield Finding(
            about="aws",
            what=need.quota.name,
            fine=need.fits,
            detail=f"{', '.join(need.pools)}: {need.vcpus:,} vCPUs at their limits, the quota is {need.quota.vcpus:,.0f}",
        )


def _spot_role(account: Account, fleet: Fleet) -> Iterator[Finding]:
    """Check for the spot role. EC2 creates it at a console's first spot request, and for an API's only where the caller may."""
    if spot_types(fleet):
        there = account.has_spot_role()
        detail = "" if there else f"without it no spot instance is launched; once in an account: {_SPOT_COMMAND}"
        yield Finding(about="aws", what="role AWSServiceRoleForEC2Spot", fine=there, detail=detail)


def _spot_prices(ports: Ports, fleet: Fleet) -> Iterator[Finding]:
    """Check that EC2 tells spot prices. Without them the month counts spot at the most that may be paid."""
    if types := spot_types(fleet):
        prices = ports.compute.spot_prices(types, {"Linux/UNIX", "Windows"}, ports.clock())
        untold = types - {key.partition("/")[0] for key in prices}
        detail = f"none of {', '.join(sorted(untold))}, which count at the most that may be paid" if untold else f"{len(types)} types"
        yield Finding(about="aws", what=_SPOT_PRICES, fine=not untold, detail=detail)


def _situation(ports: Ports, situation: Situation) -> Iterator[Finding]:
    """Name what only looks like ours, and other autoscalers; tell whether agents say what they use."""
    if foreign := [instance.id for instance in situation.snapshot.foreign]:
        yield Finding(about="aws", what="only agents have its tags", fine=False, detail=told_foreign(situation.fleet, foreign))
    for view in situation.snapshot.controllers.values():
        yield from (Finding(about=view.name, what="no other autoscaler", fine=False, detail=line) for line in told_others(situation, view))
    if situation.snapshot.records:
        yield from _asked("agents", _TELEMETRY, lambda: _telemetry(ports, situation))


def _telemetry(ports: Ports, situation: Situation) -> Iterator[Finding]:
    """Tell whether connected agents say what they use."""
    quiet, due = silent(situation, believable_telemetry(ports), _TELLS_WITHIN_SECONDS)
    if due and not quiet:
        yield Finding(about="agents", what=_TELEMETRY, fine=True, detail=f"{counted(due, 'agent')}")
    elif due:
        # Nobody knows here of which version a service is.
        why = "their service is older than version 4, or cannot read the machine: journalctl -u autoscaler-agent"
        names = f"{len(quiet)} of {counted(due, 'agent')} do not: {', '.join(quiet[:5])}"
        yield Finding(about="agents", what=_TELEMETRY, fine=None, detail=f"{names}; {why}")


def _executions(account: Account) -> Iterator[Finding]:
    executions = account.executions()
    slowly = "" if executions.enough else ": bursts of agents register slowly; ask for more"
    detail = f"{executions.limit} at once in the whole account{slowly}"
    yield Finding(about="aws", what="Lambda's concurrent executions", fine=executions.enough, detail=detail)
    if advice := executions.advice_on_callers:
        yield Finding(about="aws", what="executions that callers may take", fine=False, detail=advice)


def _instances(compute: Compute, pool: Pool) -> Finding:
    """Try one instance of every offering: only that tries the role that is passed, and what each type and subnet allows."""
    refused: dict[str, list[str]] = {}
    for offering in pool.offerings:
        try:
            compute.try_instance(pool.name, offering)
        except LaunchRefusedError as error:
            refused.setdefault(str(error), []).append(offering.key)
    detail = "; ".join(f"{', '.join(keys)}: {error}" for error, keys in refused.items())
    return Finding(about=pool.name, what=_INSTANCE, fine=not refused, detail=detail or f"{len(pool.offerings)} offerings")


def _launch(compute: Compute, pool: Pool, market: Market) -> Finding:
    offerings = [offering for offering in pool.offerings if offering.market is market]
    zones = compute.zones({offering.subnet for offering in offerings})
    tried = Launch(
        controller=pool.controllers[0],
        pool=pool.name,
        count=1,
        market=market,
        offerings=in_one_request(offerings, zones, {}),
        keep_until=0.0,
        intent_id=None,
        reason=Reason.MANUAL,
        detail="",
    )
    try:
        compute.try_launch(tried)
    except LaunchRefusedError as error:
        return Finding(about=pool.name, what=_LAUNCH, fine=False, detail=str(error))
    return Finding(about=pool.name, what=_LAUNCH, fine=True, detail=told_later(offerings, zones))


def _passes(situation: Situation) -> Iterator[Finding]:
    """Tell by the saved state when the scheduled functions last ran. What no pool serves is no work of the fleet's."""
    snapshot = situation.snapshot
    learned = max((learned.seen_at for learned in snapshot.learned.values()), default=0.0)
    decided = max((n.window.seen_at for past in snapshot.memory.controllers.values() for n in past.needs.values() if n.window), default=0.0)
    has_demand = any(demand.wants for demand in situation.demands.values())
    has_builds = any(node.builds for view in snapshot.controllers.values() for node in view.nodes)
    yield _looked("publish_metrics", snapshot.taken_at, learned, may_rest=not (has_demand or has_builds))
    yield _looked("scale_down", snapshot.taken_at, decided, may_rest=False)


def _looked(function: str, now: float, at: float, *, may_rest: bool) -> Finding:
    """Judge when a function last ran. ``may_rest``: it saves nothing while nothing changes, and only its heartbeat shows that it runs."""
    what, ago = "looked lately", now - at
    if not at or (may_rest and ago >= _LATE_SECONDS):
        detail = f"no state change for {ago / 60:.0f} min; check its heartbeat metric" if at else "not yet"
        return Finding(about=function, what=what, fine=None, detail=detail)
    return Finding(about=function, what=what, fine=ago < _LATE_SECONDS, detail=f"{ago:.0f} s ago")
