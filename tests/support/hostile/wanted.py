"""What people ordered, made or kept is there as long as they want it, ends then, and is named if only they can end it."""

from collections import Counter
from math import inf

from autoscaler.domain.facts.run_orders import Verdict as Ending
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from support.hostile.drawn import MINUTE
from support.hostile.life import Life, is_over
from support.hostile.unkind import Unkindness
from support.hostile.verdict import Verdict, at

_NAMED_AFTER = 20 * MINUTE
_SETTLES = 30 * MINUTE


def keeps_what_people_want(life: Life, verdict: Verdict) -> None:
    """Judge all of it."""
    for check in (_keeps_reserved, _keeps_nodes, _names_what_stays, _ends_orders, _starts_no_more):
        check(life, verdict)


def _is_noisy(life: Life, since: float, until: float) -> bool:
    return any(one.overlaps(since, until, _SETTLES) for one in life.unkind if one.is_noise or one.switch == "messages-fail")


def _keeps_reserved(life: Life, verdict: Verdict) -> None:
    """No machine is ended under the person who has it."""
    for machine, since, until in life.wanted.reserved:
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
    names = {instance.id, instance.tags.get("autoscaler:node", instance.id)}
    messages = (message for when, message in life.fleet.notifier.timed if unkind.from_at <= when <= due and not is_over(message))
    return any(name in message.text for message in messages for name in names)


def _ends_orders(life: Life, verdict: Verdict) -> None:
    """Each order ends, and nothing is in doubt unless an answer may have been lost."""
    may_doubt = {one.switch for one in life.unkind} - {"orders-leave"}
    for name in life.wanted.orders:
        order = life.fleet.run_orders.orders[name]
        verdict.oblige(life, "B", {"orders-leave"})
        tries = list(order.all_tries())
        last = max((one.at for one in tries), default=order.created_at)
        is_due = life.world.timeline.now - max(last, life.drawn.calm_at) > life.drawn.bound + 30 * MINUTE
        if order.is_open and is_due:
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
