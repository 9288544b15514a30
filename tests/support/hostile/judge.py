"""The properties of hostile worlds, judged by what happened in them. Each counts how often it had something to check."""

from collections import Counter
from collections.abc import Iterator
from math import ceil, inf

from autoscaler.domain.facts.fleet import Pool
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.jenkins.builds import Build, Ended
from autoscaler_workbench.simulate.result import pool_of
from support.hostile.drawn import BOUND_BOOTS, MINUTE
from support.hostile.life import RECORD_OF, Asked, Life, is_over, not_over
from support.hostile.lost_launches import loses_few_launches
from support.hostile.unkind import Unkindness
from support.hostile.verdict import Verdict, at, named
from support.hostile.wanted import keeps_what_people_want

PROPERTIES = {
    "A": "no build is killed, and no run waits for ever for a node that we deleted",
    "B": "nothing leaks",
    "C1": "what waits when the calm begins, or comes later, begins within the bound",
    "C2": "a job that nothing touched begins within a boot, or within max_wait_seconds",
    "C3": "under an unkindness that makes a job wait, a message names the cause; it is over only after its end",
    "D": "no instance is paid for long for nothing, and no more are launched than demand and failures allow",
    "E": "`why` gives a time that holds, or a cause",
    "F": "beyond the first round no more launches of a scope are lost than its pauses allow",
    "G": "no function raises what it should have handled",
}
_HOUR = 3600.0
_EC2_TELLS = _HOUR  # of an instance that has ended
_FORGOTTEN = 2 * _HOUR + 15 * MINUTE
_TWO_LOOKS = 2 * MINUTE
# After a try that free executors refused the pause is of 20 min, however short the boot timeout is; one is tried then, and four, and all.
_REFUSED_BOUND = 45 * MINUTE
_TOLD_AFTER = 6 * MINUTE  # with the look that tells
# An agent that is marked comes back with the next look, and what it is to be given with the one after: two looks, and what they take.
_LEAST_SPAN, _AT_ONCE, _COMES_BACK = 5 * MINUTE, 2 * MINUTE, 0.5 * MINUTE
_FOR_BUILDS = ("it waits for a build that runs now", "it waits for builds that wait before it")
_TIMES_A_CLAIM = 3.0
# A drain, a settle and a look or two around each end.
_ROUND = 15 * MINUTE
_CHEAP = 10.0  # times dearer is an hour of waiting than one of such an agent: one guess in four that comes true pays
_SAID_AGAIN = 4  # the same words in one world


def judge(life: Life) -> Verdict:
    verdict = Verdict()
    for check in (
        _keeps_builds,
        _leaves_nothing,
        _begins_after,
        _begins_untouched,
        _names_causes,
        _is_over_late,
        _pays,
        _launches,
        _says_why,
        keeps_what_people_want,
        loses_few_launches,
    ):
        check(life, verdict)
    verdict.oblige(life, "G")
    for crash in dict.fromkeys(life.notes.crashes):
        verdict.breaks("G", crash)
    return verdict


# A


def _keeps_builds(life: Life, verdict: Verdict) -> None:
    for controller in life.world.controllers.values():
        for build in controller.gone.stranded:
            if build.ended is None:
                verdict.breaks("A", f"{named(build)} waits for ever: its node {build.node} was deleted twice")
    for build in life.builds():
        if build.started_at is None or build in life.zombies:
            continue
        verdict.oblige(life, "A")
        is_force = "was interrupted" in build.killed_by or "lost its power" in build.killed_by
        excused = is_force or build.ended is Ended.RESTARTED
        if (build.killed_by or build.ended is Ended.KILLED) and not excused:
            verdict.breaks("A", f"{named(build)} began in {at(life, build.started_at)} and died: {build.killed_by}")
        gone = build.resumes_on is not None and build.resumes_on not in life.world.controllers[build.controller].nodes
        if build.ended is None and gone and not build.killed_by:
            verdict.breaks("A", f"{named(build)} waits for ever for {build.resumes_on}")


# B


def _leaves_nothing(life: Life, verdict: Verdict) -> None:
    end, bound = life.world.timeline.now, life.drawn.bound
    verdict.oblige(life, "B", count=len(life.world.ec2.instances))
    for what, first in life.notes.leaked.items():
        if end - max(first, life.drawn.calm_at) > bound and not (_is_struck(life, what) or _shows_a_build(life, what)):
            verdict.breaks("B", f"{what} is left over since {at(life, first)}")


def _shows_a_build(life: Life, what: str) -> bool:
    """Tell whether a build keeps what is left, and people were told: it is shown for ever, or waits on a slot whose machine is gone.

    Nodes that join a message about their pool later are in `status` only.
    """
    shown = {build.node for build in life.zombies}
    shown |= {build.node for build in life.builds() if build.ended is None and "was interrupted" in build.killed_by}
    mine = _machines_of(life, what)
    nodes = {what, *(one.tags.get("autoscaler:node", "") for one in mine)} & shown
    pools = [one.tags.get("autoscaler:pool") for one in mine]
    too_long = {f" of {pool}: {state} too long" for pool in pools for state in ("node-left", "ended-by-others")}
    words = nodes | too_long if nodes else set()
    return any(word in f"{message.subject}\n{message.text}" for word in words for _, message in life.fleet.notifier.timed)


def _machines_of(life: Life, what: str) -> list[Instance]:
    """Find the instances that something left over belongs to. A node is named after its instance, which may have no tag of it yet."""
    machines = life.world.ec2.instances.values()
    return [one for one in machines if one.id.removeprefix("i-") in what or one.tags.get("autoscaler:node") == what]


def _is_struck(life: Life, what: str) -> bool:
    """Tell whether something that has no end keeps an instance, or what belongs to it."""
    mine = _machines_of(life, what)
    end = life.world.timeline.now
    struck = [(one, unkind) for one in mine for unkind in life.unkind if unkind.strikes(one) and unkind.switch != "zombies"]
    late = [unkind for one, unkind in struck if _is_forgotten(one, unkind, what)]
    return any(unkind.until_at == inf for _, unkind in struck) or any(end - unkind.until_at < _FORGOTTEN for unkind in late)


def _is_forgotten(instance: Instance, unkind: Unkindness, what: str) -> bool:
    """Tell whether EC2 may have forgotten an instance before anybody could see its end: what is left of it goes two hours later.

    Its controller was out of the file, or its record is back in a table that was restored.
    """
    ended = instance.ended_at or inf
    if unkind.switch == "state-restored":
        return what.startswith(RECORD_OF) and ended + _EC2_TELLS <= unkind.until_at + _TWO_LOOKS
    return unkind.switch == "controller-leaves-file" and ended < unkind.until_at


# C1, C2


def _begins_after(life: Life, verdict: Verdict) -> None:
    calm, end, bound = life.drawn.calm_at, life.world.timeline.now, max(life.drawn.bound, _REFUSED_BOUND)
    closed = {pool for unkind in life.unkind for pool in unkind.closes}
    for build in _wanting(life):
        since = max(calm, asked_at(life, build))
        waits_then = (build.started_at or inf) > since and (build.ended_at or inf) > since
        can_be_had = any(pool.name not in closed for pool in life.pools_serving(build))
        if not waits_then or not can_be_had or any(one.prevents(build) for one in life.unkind) or since + bound > end:
            continue
        verdict.oblige(life, "C1")
        is_late = min(build.started_at or inf, build.ended_at or inf) > since + bound  # whoever ordered it may cancel it
        if is_late and not _all_hung(life, build, since):
            verdict.breaks("C1", f"{named(build)} waited from {at(life, build.buildable_at)} on; it began {_begun(life, build)}")


def _all_hung(life: Life, build: Build, since: float) -> bool:
    """Tell whether each agent hung that could have come for a build in time: as many as the bound has boot timeouts, or for as long.

    If half of the boots hang, that many hang in a row in one wait of sixteen, and no fleet can help it. Fewer boots take as long if the
    boot timeout grew, or if one hung already when the wait began.
    """
    pools, until = {pool.name: pool for pool in life.pools_serving(build)}, since + life.drawn.bound
    boot_seconds = max(pool.boot_seconds * 1.35 + 30.0 for pool in pools.values())
    machines = (one for one in life.world.ec2.instances.values() if one.tags.get("autoscaler:controller") == build.controller)
    mine = [one for one in machines if one.tags.get("autoscaler:pool") in pools]
    tries = [one for one in mine if since <= one.launched_at <= until - boot_seconds]
    ids = {name for unkind in life.unkind if unkind.switch == "boots-hang" for name in unkind.words}
    hung = [one for one in mine if one.id in ids and one.launched_at < until and (one.ended_at or inf) > since]
    seconds = sum(min(one.ended_at or inf, until) - max(one.launched_at, since) for one in hung)
    is_long = len(tries) >= BOUND_BOOTS or seconds >= BOUND_BOOTS * max(pool.boot_timeout_seconds for pool in pools.values())
    return is_long and ids.issuperset(one.id for one in tries)


def _begins_untouched(life: Life, verdict: Verdict) -> None:
    for build in _wanting(life):
        pools = life.pools_serving(build)
        slowest = max(pool.boot_seconds * 1.35 + 30.0 for pool in pools)
        maturity = max(pool.queue_maturity_seconds for pool in pools)
        allowed = max(maturity + _TWO_LOOKS + slowest, *(pool.max_wait_seconds for pool in pools))
        since, until = build.buildable_at, min(build.started_at or inf, build.ended_at or inf, build.buildable_at + allowed)
        if until > life.world.timeline.now or touched(life, build, since, until) or _is_crowded(life, build, since, until):
            continue
        verdict.oblige(life, "C2")
        if (build.started_at or inf) > since + allowed and build.ended is None:
            verdict.breaks("C2", f"{named(build)} waited from {at(life, since)} on, untouched; it began {_begun(life, build)}")


def touched(life: Life, build: Build, since: float, until: float) -> list[Unkindness]:
    """List what may have changed how long a build waits, what follows from it within two boots included."""
    linger = 2 * max(pool.boot_timeout_seconds for pool in life.pools_serving(build))
    return [unkind for unkind in life.unkind if unkind.touches(build) and unkind.overlaps(since, until, linger)]


def _is_crowded(life: Life, build: Build, since: float, until: float) -> bool:
    times = (time for pool in life.pools_serving(build) for time in life.notes.crowded.get(pool.name, ()))
    return any(since - MINUTE <= time <= until + MINUTE for time in times)


def _wanting(life: Life) -> Iterator[Build]:
    """Builds that asked for an executor which a fresh agent may be."""
    for build in life.builds():
        if life.pools_serving(build) and build.resumes_on is None and not build.is_dropped:
            yield build


def asked_at(life: Life, build: Build) -> float:
    return max(build.buildable_at, life.changed_at.get(build, 0.0))


def _begun(life: Life, build: Build) -> str:
    return f"in {at(life, build.started_at)}" if build.started_at is not None else "never"


# C3


def _names_causes(life: Life, verdict: Verdict) -> None:
    """Once for each unkindness: by max_wait_seconds and 5 min after the first job that it keeps waiting, a message names a cause."""
    for unkind in life.unkind:
        if not unkind.words or unkind.comes_and_goes or unkind.until_at < unkind.from_at:
            continue
        dues = (when for build in _wanting(life) if (when := _due(life, unkind, build)) is not None)
        due = min(dues, key=lambda when_and_build: when_and_build[0], default=None)
        if due is None or _is_noisy(life, unkind.from_at, due[0]):
            continue
        when, build = due
        verdict.oblige(life, "C3", {unkind.switch})
        others = [one for one in touched(life, build, build.buildable_at, when) if one.words]
        if not any(
            _names(life, one, min(one.from_at, unkind.from_at), when) for one in {id(one): one for one in (unkind, *others)}.values()
        ):
            told = [message.subject for time, message in life.fleet.notifier.timed if unkind.from_at <= time <= when]
            text = (
                f"{unkind}: {named(build)} waits since {at(life, build.buildable_at)}, and by {at(life, when)} no message names the cause"
            )
            verdict.breaks("C3", f"{text}; told: {told}")


def _due(life: Life, unkind: Unkindness, build: Build) -> tuple[float, Build] | None:
    """When a message is due at the latest: the build has waited so long since the unkindness first did anything, and it lasts."""
    if not unkind.touches(build) or any(one.hides(build) for one in life.unkind):
        return None
    since = max(life.draws[unkind.switch].bit_at, build.buildable_at)
    hidden = [one.hidden_seconds for one in life.unkind if one.touches(build) and one.overlaps(since, since)]
    when = since + max(unkind.hidden_seconds, *hidden, *(pool.max_wait_seconds for pool in life.pools_serving(build))) + _TOLD_AFTER
    # What boots by then, or a build that is about to end, is no cause to tell of: the message may come as the job begins.
    waits = min(build.started_at or inf, build.ended_at or inf) > when + 5 * MINUTE and not _is_full(life, build, when)
    return (when, build) if waits and when <= min(unkind.until_at, life.world.timeline.now) else None


def _is_full(life: Life, build: Build, when: float) -> bool:
    """Tell whether each pool that serves a build had max_agents for a quarter of an hour, so that nothing was asked of EC2."""
    times = (when, when - 5 * MINUTE, when - _ROUND)
    return all(_count_agents(life, pool, time) >= pool.max_agents for pool in life.pools_serving(build) for time in times)


def _count_agents(life: Life, pool: Pool, when: float) -> int:
    mine = (instance for instance in life.world.ec2.instances.values() if instance.tags.get("autoscaler:pool") == pool.name)
    return sum(instance.launched_at <= when < (instance.ended_at or inf) for instance in mine)


def _names(life: Life, unkind: Unkindness, since: float, until: float) -> bool:
    """Tell whether a message that came meanwhile names it, or an earlier one about failed boots of its pool that is not over.

    That message is about all boots of a pool, whatever they fail of, and is not sent again while boots go on failing.
    """
    began = (message for time, message in life.fleet.notifier.timed if since <= time <= until and not is_over(message))
    texts = (f"{message.subject}\n{message.text}" for message in began)
    of_boots = [message.subject for about, message in not_over(life, until).items() if about.startswith("breaker/")]
    fails = {word for word in unkind.words if word.startswith("agents of ")}
    return any(word in text for text in texts for word in unkind.words) or any(word in text for text in of_boots for word in fails)


def _is_noisy(life: Life, since: float, until: float) -> bool:
    """Tell whether messages could not be sent, or ticks did not come, meanwhile."""
    deaf = [one for one in life.unkind if one.is_noise or one.switch == "messages-fail"]
    return any(one.overlaps(since - 10 * MINUTE, until) for one in deaf)


def _is_over_late(life: Life, verdict: Verdict) -> None:
    """Nothing is over before its end, while a job waits for it; and nothing is said again and again."""
    said = Counter(message.subject for _, message in life.fleet.notifier.timed if not is_over(message))
    for subject, count in said.items():
        verdict.oblige(life, "C3", set())
        if count >= _SAID_AGAIN and not any(one.is_noise for one in life.unkind):
            verdict.breaks("C3", f"{count} times: {subject}")
    for time, message in life.fleet.notifier.timed:
        if is_over(message) and not _is_noisy(life, time, time):
            _check_end(life, verdict, time, message.about)


def _check_end(life: Life, verdict: Verdict, time: float, about: str) -> None:
    began = [one for when, one in life.fleet.notifier.timed if when < time and one.about == about and not is_over(one)]
    text = f"{began[-1].subject}\n{began[-1].text}" if began else ""
    for unkind in life.unkind:
        lasts = unkind.from_at < time < unkind.until_at and not unkind.comes_and_goes
        if not (lasts and any(word in text for word in unkind.words)):
            continue
        verdict.oblige(life, "C3", {unkind.switch})
        about_one = {*about.split("/")[1:2]} <= life.world.controllers.keys()
        others = life.world.controllers.keys() - about.split("/")[1:2] if about_one else ()
        seen = (build for build in _wanting(life) if not any(one.hides(build) for one in life.unkind))
        waiting = (build for build in seen if unkind.touches(build) and _waits_too_long(life, unkind, build, time))
        here = (build for build in waiting if build.controller not in others and not _is_full(life, build, time))
        still = [build for build in here if touched(life, build, time, time) == [unkind]]
        if still and not _is_open_elsewhere(life, unkind, time, about):
            verdict.breaks("C3", f"{unkind}: over in {at(life, time)}, and {named(still[0])} waits for it: {began[-1].subject}")


def _is_open_elsewhere(life: Life, unkind: Unkindness, time: float, about: str) -> bool:
    """Tell whether another message that names the cause is not over. A place of bad boots is told once others have booted for minutes."""
    soon = {name: one for name, one in not_over(life, time + 5 * MINUTE).items() if name.startswith("place/")}
    texts = (f"{one.subject}\n{one.text}" for name, one in (not_over(life, time) | soon).items() if name != about)
    return any(word in text for text in texts for word in unkind.words)


def _waits_too_long(life: Life, unkind: Unkindness, build: Build, time: float) -> bool:
    """Tell whether a build had waited longer than its pools let it, and went on waiting: the message was about such ones."""
    patience = max(unkind.hidden_seconds, *(pool.max_wait_seconds for pool in life.pools_serving(build)))
    return build.buildable_at + patience < time and min(build.started_at or inf, build.ended_at or inf) > time + 5 * MINUTE


# D


def _pays(life: Life, verdict: Verdict) -> None:
    for instance in life.world.ec2.instances.values():
        verdict.oblige(life, "D")
        lost = _unused_seconds(life, instance)
        struck = [
            one for one in life.unkind if one.strikes(instance) and one.overlaps(instance.launched_at, instance.ended_at or inf, _HOUR)
        ]
        lost -= 10 * MINUTE * any(one.is_noise for one in life.unkind)
        is_kept = any(one.keeps(instance) for one in life.unkind)
        if lost <= _ROUND + sum(one.pays_seconds for one in struck) or is_kept or _is_named(life, instance):
            continue
        node = instance.tags.get("autoscaler:node", "no node")
        how = f"struck by {', '.join(one.switch for one in struck)}" if struck else "untouched"
        ended = f"ended in {at(life, instance.ended_at)}" if instance.ended_at else instance.state
        verdict.breaks("D", f"{instance.id} ({node}), {how}: paid {lost / MINUTE:.0f} min for nothing; {ended}")


def _unused_seconds(life: Life, instance: Instance) -> float:
    """Paid seconds less builds on all its sides, less B of each boot or start, less max_idle_seconds after each connection and build."""
    pool, now = pool_of(life.world, instance), life.world.timeline.now
    node = instance.tags.get("autoscaler:node", "")
    builds = (build for build in life.builds() if build.node == node)
    mine = sorted((build.started_at, _end_of(life, build)) for build in builds if build.started_at is not None)
    lost = 0.0
    for spell in instance.spells:
        end = now if spell.ended_at is None else spell.ended_at
        # Free until then: a boot, and what it may be idle for after.
        free_until = spell.began_at + pool.boot_timeout_seconds + pool.max_idle_seconds
        for began, ended in mine:
            if spell.began_at <= began <= end:
                lost += max(0.0, began - free_until)
                free_until = max(free_until, ended + pool.max_idle_seconds)
        lost += max(0.0, end - free_until)
    return lost


def _end_of(life: Life, build: Build) -> float:
    return life.zombies.get(build, build.ended_at or life.world.timeline.now)


def _is_named(life: Life, instance: Instance) -> bool:
    """Tell whether people were told of it by its name while it was paid for."""
    names = {instance.id, instance.tags.get("autoscaler:node", instance.id)}
    until = instance.ended_at or inf
    texts = (f"{message.subject}\n{message.text}" for time, message in life.fleet.notifier.timed if time < until and not is_over(message))
    return any(name in text for text in texts for name in names)


def _launches(life: Life, verdict: Verdict) -> None:
    """At most what all builds could have asked for, and what failed as often as pauses of five minutes allow.

    An agent that is so cheap is worth launching for any job that another one may follow. A job that people order may follow any.
    """
    for pool in life.drawn.fleet.pools.values():
        launched = sum(one.tags.get("autoscaler:pool") == pool.name for one in life.world.ec2.instances.values())
        asked = sum(pool in life.pools_serving(build) for build in life.builds())
        struck = [one for one in life.unkind if one.closes or any(map(one.strikes, life.ec2.of(pool))) or one.is_noise or one.words]
        minutes = sum((min(one.until_at, life.world.timeline.now) - one.from_at) / MINUTE for one in struck)
        is_cheap = min(offering.usd_per_hour for offering in pool.offerings) * _CHEAP <= pool.wait_usd_per_hour
        if is_cheap or life.wanted.orders:
            asked += sum(build.controller in pool.controllers for build in life.builds())
        allowed = 3 + ceil(1.25 * asked) + (pool.max_agents + ceil(minutes / 5) if struck else 0)
        verdict.oblige(life, "D")
        if launched > allowed:
            verdict.breaks("D", f"{launched} agents of {pool.name} were launched for {asked} builds, {allowed} at the most")


# E


def _says_why(life: Life, verdict: Verdict) -> None:
    for asked in life.notes.asked:
        verdict.oblige(life, "E")
        said = f"of {named(asked.build)} in {at(life, asked.at)}"
        if asked.claim.seconds is None and not asked.claim.has_cause:
            verdict.breaks("E", f"neither a time nor a cause {said}: {asked.claim.text[:300]!r}")
        elif asked.claim.seconds is not None:
            _check_claim(life, verdict, asked, said)


def _check_claim(life: Life, verdict: Verdict, asked: Asked, said: str) -> None:
    # How long builds take nobody knows so well; if nothing can be launched, each job waits for one.
    launches = not any(one.switch == "money-spent" and one.overlaps(asked.at, asked.at) for one in life.unkind)
    is_for_builds = any(words in asked.claim.text for words in _FOR_BUILDS)
    least = _LEAST_SPAN if launches and not is_for_builds else 2 * _LEAST_SPAN
    at_once = _AT_ONCE + _COMES_BACK * ("now to be done: Uncordon" in asked.claim.text)
    span = at_once if asked.claim.at_once else max(least, _TIMES_A_CLAIM * (asked.claim.seconds or 0.0))
    span += _longer_than_ever(life, asked) if is_for_builds else 0.0
    touching = (one for one in life.unkind if one.touches(asked.build) and one.overlaps(asked.at, asked.at + span))
    until = asked.at + span + max((one.delays_seconds for one in touching), default=0.0)
    if until > life.world.timeline.now or not _is_uneventful(life, asked.at, until) or (asked.build.ended_at or inf) <= until:
        return
    verdict.oblige(life, "E")
    if (asked.build.started_at or inf) > until:
        promised = "at once" if asked.claim.at_once else f"in {(asked.claim.seconds or 0.0) / MINUTE:.0f} min"
        lines = asked.claim.text.splitlines()
        verdict.breaks("E", f"{promised} {said}, and it began {_begun(life, asked.build)}: {' | '.join(lines)}")


def _longer_than_ever(life: Life, asked: Asked) -> float:
    """Return by how many seconds builds that went before ran longer than twice what any of their job had taken until it was asked."""
    pools, until = life.pools_serving(asked.build), min(asked.build.started_at or inf, life.world.timeline.now)
    seconds: dict[str, list[float]] = {}
    for build in life.builds():
        if build.started_at is not None and (build.ended_at or inf) <= asked.at:
            seconds.setdefault(build.job, []).append(build.ended_at - build.started_at)
    before = (build for build in life.builds() if build.started_at is not None and build.started_at < until and build.job in seconds)
    mine = [build for build in before if (build.ended_at or inf) > asked.at and any(pool in pools for pool in life.pools_serving(build))]
    return sum(max(0.0, min(build.ended_at or inf, until) - build.started_at - 2.0 * max(seconds[build.job])) for build in mine)


def _is_uneventful(life: Life, since: float, until: float) -> bool:
    """Tell whether nothing came, began to be unkind, or stopped being so, and no noise went on."""
    times = [*life.notes.events, *(time for one in life.unkind for time in (one.from_at, one.until_at))]
    if any(since - MINUTE <= time <= until for time in times):
        return False
    return not any(one.is_noise and one.overlaps(since, until) for one in life.unkind)
