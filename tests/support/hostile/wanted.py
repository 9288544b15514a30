"""What people ordered, made or kept is there as long as they want it, ends then, and is named if only they can end it."""

import re
from collections import Counter
from math import inf

from autoscaler.domain.facts.orders import asks_for
from autoscaler.domain.facts.plan import EndReservation
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.started_builds import Verdict as Ending
from autoscaler.domain.report.controllers import QUIET
from autoscaler.domain.report.messages import WAVES_OVER_SECONDS
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from support.hostile.drawn import MINUTE
from support.hostile.life import Life, is_over, not_over
from support.hostile.prepared import IGNORED_JOBS
from support.hostile.unkind import Unkindness
from support.hostile.verdict import Verdict, at, named

_NAMED_AFTER = 20 * MINUTE
_SETTLES = 30 * MINUTE
_LOOKS = 5  # after so many a message is due
_UNSEEN = {
    "controller-flaps",
    "controller-leaves-file",
    "login-outage",
    "login-page",
    "restarts",
    "slow-answers",
    "answers-lost",
    "zombies",
    "configuration-reloaded",
}
# While Jenkins names no labels, nobody knows what a job asks for.
_HIDES_LABELS = {"beacon-deleted", "configuration-reloaded", "page-for-posts", "nodes-change", "jobs-relabelled", *_UNSEEN}
_TAKEN_AFTER = 2 * MINUTE
_RUNNING_BUILD = re.compile(r"\S+ #\d+")


def keeps_what_people_want(life: Life, verdict: Verdict) -> None:
    """Judge all of it."""
    for check in (
        _keeps_reserved,
        _keeps_nodes,
        _leaves_others_alone,
        _names_the_other,
        _tells_nothing_ignored,
        _names_what_stays,
        _ends_orders,
        _starts_no_more,
        _holds_labels,
    ):
        check(life, verdict)


def _is_noisy(life: Life, since: float, until: float) -> bool:
    return any(one.overlaps(since, until, _SETTLES) for one in life.unkind if one.is_noise or one.switch == "messages-fail")


def _keeps_reserved(life: Life, verdict: Verdict) -> None:
    """No machine is ended under the person who has it, unless a limit of the month or of the day has ended that."""
    steps = [result.step for report in life.fleet.reports for result in report.results]
    spent = {step.instance_id for step in steps if isinstance(step, EndReservation) and step.reason is Reason.USD_PER_MONTH}
    for machine, since, until in life.wanted.reserved:
        if machine in spent:
            continue
        instance = life.world.ec2.instances[machine]
        verdict.oblige(life, "A")
        ended = instance.ended_at or inf
        if ended < min(until, life.world.timeline.now) and not instance.interrupted and not _is_noisy(life, since, ended):
            verdict.breaks("A", f"{machine} was reserved from {at(life, since)} to {at(life, until)}, and ended in {at(life, ended)}")


def _keeps_nodes(life: Life, verdict: Verdict) -> None:
    """No node of the operator's own is deleted."""
    for controller, node in life.wanted.nodes:
        verdict.oblige(life, "A", {"nodes-change"})
        if node not in life.world.controllers[controller].nodes:
            verdict.breaks("A", f"{node}, a node of the operator's own on {controller}, was deleted")


def _leaves_others_alone(life: Life, verdict: Verdict) -> None:
    """Nodes of another autoscaler are neither marked nor deleted, and keep their marks."""
    if life.wanted.others:
        verdict.oblige(life, "A", {"second-autoscaler"})
    for what in life.wanted.meddled:
        verdict.breaks("A", f"a node of another autoscaler was touched: {what}")


def _names_the_other(life: Life, verdict: Verdict) -> None:
    """A second autoscaler is named in a message with both names, and that is over once it has gone."""
    times = life.wanted.others_there
    for unkind in (one for one in life.unkind if one.switch == "second-autoscaler" and times):
        due = next((time for time in times if {time - n * MINUTE for n in range(_LOOKS)} <= {*times}), inf)
        over_by = times[-1] + WAVES_OVER_SECONDS + 2 * _LOOKS * MINUTE
        [(controller, other)] = life.wanted.others.items()
        # Without a pool there we serve no job that the other one serves, too. One of our own name is told all the same.
        is_apart = not life.fleet.fleet.pools_of(controller) and other.partition(" ")[0] != life.fleet.fleet.name
        if due == inf or is_apart or _is_unseen(life, times[0], over_by):
            continue
        verdict.oblige(life, "C3", {unkind.switch})
        words = f"two autoscalers on {controller}: f and {other}"
        told = [(when, message) for when, message in life.fleet.notifier.timed if words in message.subject]
        if not any(when <= due for when, message in told if not is_over(message)):
            verdict.breaks("C3", f"{unkind}: no message names it by {at(life, due)}")
        elif over_by <= life.drawn.end_at and not any(times[-1] <= when <= over_by for when, message in told if is_over(message)):
            verdict.breaks("C3", f"{unkind}: it is not over by {at(life, over_by)}")
        if any(when in times and when - MINUTE in times for when, message in told if is_over(message)):
            verdict.breaks("C3", f"{unkind}: it was over before the other had gone")


def _is_unseen(life: Life, since: float, until: float) -> bool:
    """Tell whether the controller could not be looked at, or a build kept a node of the other there."""
    return _is_noisy(life, since, until) or any(one.overlaps(since, until) for one in life.unkind if one.switch in _UNSEEN)


def _tells_nothing_ignored(life: Life, verdict: Verdict) -> None:
    """No message is about a job that another cloud serves, but that an agent of ours runs it. In quiet mode Jenkins names no label."""
    if "labels-ignored" not in life.switches or any(one.switch in _HIDES_LABELS or one.is_noise for one in life.unkind):
        return
    verdict.oblige(life, "C3", {"labels-ignored"})
    for when, message in life.fleet.notifier.timed:
        text = _RUNNING_BUILD.sub("", f"{message.subject}{message.text}")
        if IGNORED_JOBS in text and not message.about.startswith(QUIET):
            verdict.breaks("C3", f"a message of {at(life, when)} is about a job of another cloud: {message.subject}: {message.text}")


def _names_what_stays(life: Life, verdict: Verdict) -> None:
    """What nobody sees any more is named in a message."""
    for unkind in life.unkind:
        for instance in filter(unkind.names, life.world.ec2.instances.values()):
            since = max(unkind.from_at, instance.launched_at)
            due = since + _NAMED_AFTER
            if due > min(unkind.until_at, instance.ended_at or inf, life.world.timeline.now) or _is_noisy(life, unkind.from_at, due):
                continue
            verdict.oblige(life, "C3", {unkind.switch})
            if not _is_named(life, unkind, instance, due):
                verdict.breaks("C3", f"{unkind}: no message names {instance.id} by {at(life, due)}")


def _is_named(life: Life, unkind: Unkindness, instance: Instance, due: float) -> bool:
    """Tell whether a message has its name, or one that stood before. What joins one of its pool, or is its eleventh, `status` names."""
    names, standing = {instance.id, instance.tags.get("autoscaler:node", instance.id)}, not_over(life, due)
    pool, controller = instance.tags.get("autoscaler:pool", ""), instance.tags.get("autoscaler:controller", "")
    if not {f"left/pool/{pool}", f"left/controller/{controller}/{pool}"}.isdisjoint(standing):
        return True
    told = (one for when, one in life.fleet.notifier.timed if unkind.from_at <= when <= due and not is_over(one))
    return any(name in message.text for message in (*told, *standing.values()) for name in names)


def _ends_orders(life: Life, verdict: Verdict) -> None:
    """Each order ends with its builds, and nothing is in doubt unless an answer may have been lost."""
    open_ones = [build for build in life.builds() if build.ended is None]
    go_on = {build.run_path.rstrip("/") for build in open_ones} | {build.id for build in open_ones if build.started_at is None}
    may_doubt = {one.switch for one in life.unkind} - {"orders-leave"}
    for name in life.wanted.orders:
        order = life.fleet.run_orders.orders[name]
        verdict.oblige(life, "B", {"orders-leave"})
        tries = list(order.all_tries())
        last = max((one.at for one in tries), default=order.created_at)
        is_due = life.world.timeline.now - max(last, life.drawn.calm_at) > life.drawn.bound + 30 * MINUTE
        if order.is_open and is_due and not any(one.run in go_on or one.item in go_on for one in tries):
            states = Counter(str(one.state) for one in tries)
            verdict.breaks("B", f"order {name} of {at(life, order.created_at)} is still open: {dict(states)}")
        doubt = [one.why for one in tries if one.verdict is Ending.IN_DOUBT]
        if doubt and not may_doubt:
            verdict.breaks("B", f"order {name}: in doubt in a world in which no answer was lost: {doubt}")


def _starts_no_more(life: Life, verdict: Verdict) -> None:
    """No build is started again but for one that was lost, and each of them no more often than the file says."""
    if "lost-builds" not in life.switches or any(one.switch == "jobs-renamed" for one in life.unkind):
        return
    submitted: Counter[tuple[str, str]] = Counter()
    for arrival in life.drawn.arrivals:
        submitted[arrival.job.controller, arrival.job.name] += len(arrival.seconds)
    for (controller, job), count in submitted.items():
        builds = [build for build in life.world.controllers[controller].builds if build.job == job]
        lost = sum(bool(build.killed_by) or build.is_dropped for build in builds)
        verdict.oblige(life, "A", {"lost-builds"})
        if len(builds) > count + lost:
            verdict.breaks("A", f"{job} on {controller}: {count} builds were asked for and {lost} lost, and {len(builds)} were started")


def _holds_labels(life: Life, verdict: Verdict) -> None:
    """While a person holds a label, no build that needs it begins on an agent of ours, unless something else is unkind meanwhile."""
    for label, since, until in life.wanted.held:
        begin = since + _TAKEN_AFTER
        if any(one.switch != "labels-held" and one.overlaps(since, until, _SETTLES) for one in life.unkind):
            continue
        for build in life.builds():
            needs_it = build.expression is not None and asks_for(build.expression.name, label)
            if not needs_it or build.buildable_at >= until or (build.started_at or inf) < begin:
                continue
            verdict.oblige(life, "A", {"labels-held"})
            if (build.started_at or inf) < until - MINUTE:
                verdict.breaks("A", f"{named(build)} needs {label}, which is held, and began in {at(life, build.started_at)}")
