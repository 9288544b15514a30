"""What EC2, images and machines do: no capacity, refusals, boots that fail, interruptions, stops and starts that go wrong."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import inf

from autoscaler.domain.facts.fleet import Pool
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.ec2.listing import Listing
from autoscaler_workbench.fakes.world.ec2.spot_market import ZONE
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Build, Kind
from autoscaler_workbench.fakes.world.jenkins.nodes import Node
from support.hostile.drawn import MINUTE
from support.hostile.hooks import AtJenkins, is_of
from support.hostile.prepared import ZONES_OF_SUBNETS
from support.hostile.unkind import Draw, Unkindness

_UNKNOWN_CODES = (
    "SomethingNew",
    "InvalidParameterValue",
    "UnauthorizedOperation",
    "VolumeLimitExceeded",
    "Client.KMSKeyDisabled",
    "Blocked",
)
_OF_THE_ACCOUNT = {"Blocked"}  # no pool may have anything


def no_capacity(draw: Draw) -> Unkindness:
    """EC2 has no machine for one pool."""
    return _refused(draw, [draw.pool()], "InsufficientInstanceCapacity", draw.span(for_ever=0.15))


def offering_refused(draw: Draw) -> Unkindness:
    """EC2 refuses what a pool prefers, or all that it may have, by a code that nobody knows; if it blocks the account, everything."""
    pool, code = draw.pool(), draw.chance.choice(_UNKNOWN_CODES)
    all_of_them = draw.chance.random() < 0.5
    pools = [*draw.life.drawn.fleet.launched.pools.values()] if code in _OF_THE_ACCOUNT else [pool]
    return _refused(draw, pools, code, draw.span(for_ever=0.15), all_of_them=all_of_them or code in _OF_THE_ACCOUNT)


def _refused(draw: Draw, pools: Sequence[Pool], code: str, span: tuple[float, float], *, all_of_them: bool = True) -> Unkindness:
    keys = [offering.key for pool in pools for offering in (pool.offerings if all_of_them else pool.offerings[:1])]
    ec2 = draw.life.world.ec2  # whose answers another switch may exchange meanwhile
    draw.at(span[0], lambda: ec2.answers.update(dict.fromkeys(keys, code)))
    draw.at(span[1], lambda: [ec2.answers.pop(key, None) for key in keys])
    gone = len(keys) == sum(len(pool.offerings) for pool in pools)
    offered = {other.name: {one.key for one in other.offerings} for other in draw.life.drawn.fleet.launched.pools.values()}
    closes = frozenset(name for name, mine in offered.items() if mine <= {*keys} and span[1] == inf)
    served = [draw.life.served_by(draw.life.drawn.fleet.pools[name]) for name, mine in offered.items() if mine & {*keys}]

    def touches(build: Build) -> bool:
        return any(serves(build) for serves in served)

    draw.bite_where_jobs_wait(span, touches)
    return draw.make(
        f"{', '.join(pool.name for pool in pools)}: {', '.join(keys)} {code}",
        span,
        touches=touches,
        closes=closes,
        words={code} if gone else set(),
    )


def launches_refused(draw: Draw) -> Unkindness:
    """EC2 refuses every launch."""
    span, code = draw.span(5, 60), draw.chance.choice(("UnauthorizedOperation", "RequestLimitExceeded", "InternalError"))

    def refuse(refusal) -> None:
        draw.life.world.ec2.refuse = refusal

    draw.at(span[0], partial(refuse, (code, "refused")))
    draw.at(span[1], partial(refuse, None))
    draw.bite_where_jobs_wait(span, lambda _build: True)
    return draw.make(code, span, touches=lambda _build: True, words={code})


def boots_hang(draw: Draw) -> Unkindness:
    """The machines of one pool run, and never ask who they are: a broken image, a network without a way out."""
    pool, share = draw.pool(), draw.chance.choice([1.0, 1.0, 0.5])
    span = draw.span(15, 120, for_ever=0.15)
    unkind = _fails(draw, pool, span, closes=share == 1.0)

    def hangs(instance) -> bool:
        if instance.tags.get("autoscaler:pool") != pool.name or draw.chance.random() >= share:
            return False
        unkind.words.add(instance.id)
        return True

    draw.while_it_lasts(span, draw.life.ec2.hangs, hangs)
    return unkind


def never_connects(draw: Draw) -> Unkindness:
    """The agents of one pool register, and never connect. One that is connected, and loses that for a while, comes back."""
    pool, span = draw.pool(), draw.span(15, 120, for_ever=0.15)
    unkind = _fails(draw, pool, span)

    def refuses(at: AtJenkins, node) -> bool:
        if not is_of(node, pool) or node.name in at.connections:
            return False
        unkind.words.add(node.name)
        return True

    for at in draw.life.jenkins.values():
        draw.while_it_lasts(span, at.unconnectable, partial(refuses, at))
        draw.at(span[1], partial(_reconnect_all, draw, at, pool))
    return unkind


def _reconnect_all(draw: Draw, at: AtJenkins, pool: Pool) -> None:
    """Let in the agents whose processes go on trying."""
    for node in at.ours(pool):
        if not node.connected:
            draw.life.reconnect(at, node)


def _fails(draw: Draw, pool: Pool, span: tuple[float, float], *, closes: bool = True) -> Unkindness:
    """An instance is paid for until the pool's own deadline."""
    closed = frozenset({pool.name} if closes and span[1] == inf else ())
    touches, words = draw.life.served_by(pool), {f"agents of {pool.name} do not", f"image of {pool.name} does not"}
    facts = {"touches": touches, "strikes": draw.life.instances_of(pool), "closes": closed, "words": words}
    return draw.make(pool.name, span, hidden_seconds=pool.boot_timeout_seconds, **facts)


def zone_without_network(draw: Draw) -> Unkindness:
    """The machines of one subnet run, and never reach anything; those of the other subnets are well."""
    life, span = draw.life, draw.span(30, 150)
    subnets = [offering.subnet for offering in draw.pool().offerings]
    subnet = draw.chance.choice([*subnets, *[subnets[0]] * len(subnets)])  # mostly the one that is launched in first
    pools = [pool for pool in life.drawn.fleet.launched.pools.values() if any(offering.subnet == subnet for offering in pool.offerings)]
    zone = ZONES_OF_SUBNETS.get(subnet, ZONE)
    life.world.ec2.zones.update(ZONES_OF_SUBNETS)

    def hangs(instance: Instance) -> bool:
        if instance.subnet == subnet:
            unkind.words.add(instance.id)
        return instance.subnet == subnet

    draw.while_it_lasts(span, life.ec2.hangs, hangs)
    asked = draw.chance.choice(pools)
    every, controller = draw.chance.uniform(4, 15) * MINUTE, life.world.controllers[asked.controllers[0]]
    units = [f"zones/unit-{number}" for number in range(6)]
    draw.keep_waiting(controller, units, asked.name, 5 * MINUTE, span=span, every=every, most=draw.chance.choice([1, 3, 8]))
    served = [life.served_by(pool) for pool in pools]
    unkind = draw.make(
        f"{subnet} in {zone}",
        span,
        touches=lambda build: any(serves(build) for serves in served),
        strikes=lambda instance: instance.subnet == subnet,
        words={subnet, zone, *(f"{what} of {pool.name} does not" for pool in pools for what in ("agents", "image"))}
        | {f"agents of {pool.name} do not" for pool in pools},
        hidden_seconds=max(pool.boot_timeout_seconds for pool in pools),
    )
    return unkind


def reboots_after_connect(draw: Draw) -> Unkindness:
    """Agents of a pool connect before their first set-up is over: a minute or two later their machines reboot, and are away for minutes.

    What runs on them is lost with the reboot, which is no doing of ours.
    """
    pool, span, life = draw.pool(), draw.span(20, 120), draw.life
    share, minutes_away = draw.chance.choice([1.0, 1.0, 0.5]), draw.chance.uniform(1, 9)
    after_seconds, rebooted, away = draw.chance.uniform(30, 150), set[str](), set[str]()

    def connects(at: AtJenkins, node: Node) -> bool:
        if not is_of(node, pool) or node.name in rebooted or len(at.connections[node.name]) > 1 or draw.chance.random() >= share:
            return False
        rebooted.add(node.name)
        life.world.timeline.after(after_seconds, partial(reboot, at, node))
        return True

    def reboot(at: AtJenkins, node: Node) -> None:
        if at.controller.nodes.get(node.name) is node and node.connected:
            away.add(node.name)
            at.controller.disconnect(node.name, killed_by=f"the machine of {node.name} lost its power: it rebooted")
            draw.bite_unforeseen()
            life.world.timeline.after(minutes_away * MINUTE, partial(come_back, at, node))

    def come_back(at: AtJenkins, node: Node) -> None:
        away.discard(node.name)
        life.notes.events.append(life.world.timeline.now)
        life.reconnect(at, node)

    for at in life.jenkins.values():
        draw.while_it_lasts(span, at.connected, partial(connects, at))
        at.unconnectable.append(lambda node: node.name in away)
    facts = {"touches": life.served_by(pool), "strikes": life.instances_of(pool)}
    return draw.make(f"{share:.0%} of {pool.name}, away for {minutes_away:.0f} min", span, **facts)


def fails_all_builds(draw: Draw) -> Unkindness:
    """Some agents of a pool, or all that it gets, end each build within seconds, as failed."""
    pool, span, all_of_them = draw.pool(), draw.span(20, 90), draw.chance.random() < 0.3
    bad: set[str] = set()

    def begins(build) -> None:
        node = draw.life.world.controllers[build.controller].nodes[build.node]
        if is_of(node, pool) and (all_of_them or not bad or node.name in bad):
            bad.add(node.name)
            draw.bite()
            node.fails_builds, build.seconds = True, 5.0
            unkind.words.add(node.name)

    for at in draw.life.jenkins.values():
        draw.while_it_lasts(span, at.begun, begins)
    unkind = draw.make(pool.name, span, touches=draw.life.served_by(pool), strikes=draw.life.instances_of(pool))
    return unkind


def interrupted(draw: Draw) -> Unkindness:
    """EC2 takes spot machines back, also while they boot; with notice or without."""
    span, share = draw.span(20, 90), draw.chance.choice([0.2, 0.5, 1.0])
    world = draw.life.world

    def take_some() -> None:
        for instance in [one for one in world.alive() if one.market == "spot" and one.is_on() and not one.interrupted]:
            if draw.chance.random() < share:
                instance.interrupted = True
                draw.bite_unforeseen()
                world.ec2.interrupt(instance) if draw.chance.random() < 0.7 else world.ec2.end(instance)

    draw.every(span, draw.chance.uniform(2, 15) * MINUTE, take_some)
    spot = [pool for pool in draw.life.drawn.fleet.pools.values() if any(offering.market == "spot" for offering in pool.offerings)]
    served = [draw.life.served_by(pool) for pool in spot]
    return draw.make("spot", span, touches=lambda build: any(touches(build) for touches in served))


def dies_under_pipelines(draw: Draw) -> Unkindness:
    """Machines die under pipelines, some of which wait for a person; Jenkins' answers to deletions are lost, at times.

    The pipelines are lost with their machines. But each ends: none may wait for ever for a node that we deleted twice.
    """
    pool, span, unanswered = draw.pool(), draw.span(20, 90), draw.chance.choice([0.0, 0.5, 1.0])
    world = draw.life.world

    def die() -> None:
        for instance in draw.life.ec2.of(pool):
            node = world.node_of(instance)
            pipelines = [one for one in node.builds.values() if one.kind is Kind.PIPELINE] if node and instance.is_on() else []
            if pipelines and draw.chance.random() < 0.5:
                for pipeline in pipelines:
                    pipeline.waits_for_input = draw.chance.random() < 0.7
                draw.end(instance)

    def dice(call: str) -> Fault | None:
        return Fault(call, after=True) if call == "jenkins doDelete" and draw.chance.random() < unanswered else None

    draw.every(span, draw.chance.uniform(3, 10) * MINUTE, die)
    for at in draw.life.jenkins.values():
        draw.while_it_lasts((span[0], span[1] + 20 * MINUTE), at.calls.dice, dice)
    return draw.make(pool.name, span, touches=draw.life.served_by(pool), strikes=draw.life.instances_of(pool))


def stops_hang(draw: Draw) -> Unkindness:
    """An instance that is stopped stays in ``stopping``; half of them also if the stop is forced."""
    span, ec2 = draw.span(20, 90), draw.life.world.ec2
    usual, seen = ec2.physics, set[str]()

    def breaks_hosts() -> None:
        for instance in draw.life.world.alive():
            if instance.state == "stopping" and instance.id not in seen:
                seen.add(instance.id)
                instance.hangs_in = "stopping" if draw.chance.random() < 0.5 else instance.hangs_in

    def take(seconds: float) -> None:
        ec2.physics = replace(usual, stop_from_seconds=seconds, stop_to_seconds=seconds) if seconds else usual

    draw.at(span[0], partial(take, 20 * 3600.0))
    draw.at(span[1], partial(take, 0.0))
    draw.every(span, MINUTE, breaks_hosts)
    draw.bite_if(span, lambda: any(instance.state == "stopping" for instance in draw.life.world.alive()))
    return about_stops(draw, span, set())


def stops_refused(draw: Draw) -> Unkindness:
    """EC2 refuses to stop what it is asked to stop."""
    return _calls_refused(draw, "ec2 StopInstances")


def starts_refused(draw: Draw) -> Unkindness:
    """EC2 refuses to start what is stopped."""
    return _calls_refused(draw, "ec2 StartInstances")


def _calls_refused(draw: Draw, call: str) -> Unkindness:
    span, code = draw.span(20, 120, for_ever=0.2), draw.chance.choice(("IncorrectInstanceState", "SomethingNew", "UnauthorizedOperation"))

    def dice(called: str) -> Fault | None:
        return Fault(call, status=400, code=code) if called == call else None

    draw.while_it_lasts(span, draw.life.calls.dice, dice)
    return about_stops(draw, span, {code})


def starts_end_stopped(draw: Draw) -> Unkindness:
    """A start ends where it began, as without the key of the disk. Nobody knows before it does."""
    span, world, failed_ids = draw.span(20, 120), draw.life.world, set[str]()

    def fail(code: str) -> None:
        for instance in world.alive():
            instance.fails_to_start = code

    draw.every(span, MINUTE / 2, partial(fail, "Client.InternalError"))
    draw.at(span[1] + MINUTE, partial(fail, ""))

    def look() -> bool:
        now_failed = {
            instance.id for instance in world.alive() if instance.state_reason == "Client.InternalError" and instance.state == "stopped"
        }
        draw.life.notes.events += [world.timeline.now] * bool(now_failed - failed_ids)
        failed_ids.clear()
        failed_ids.update(now_failed)
        return bool(now_failed)

    draw.bite_if(span, look)
    return about_stops(draw, span, {"Client.InternalError"})


def about_stops(draw: Draw, span: tuple[float, float], words: set[str]) -> Unkindness:
    """Make what touches the pools that stop agents."""
    pools = [pool for pool in draw.life.drawn.fleet.pools.values() if pool.warm_pool]
    served = [draw.life.served_by(pool) for pool in pools]
    strikes = [draw.life.instances_of(pool) for pool in pools]
    return draw.make(
        ", ".join(pool.name for pool in pools),
        span,
        touches=lambda build: any(touches(build) for touches in served),
        strikes=lambda instance: any(struck(instance) for struck in strikes),
        words=words,
    )


def ends_refused(draw: Draw) -> Unkindness:
    """EC2 refuses to end what is protected."""
    span, world = draw.span(20, 120), draw.life.world
    struck: set[str] = set()

    def protect() -> None:
        for instance in world.alive():
            if len(struck) < 2:
                instance.protected = True
                struck.add(instance.id)
                draw.bite()

    def release() -> None:
        for instance in world.alive():
            instance.protected = False

    draw.every(span, MINUTE, protect)
    draw.at(span[1] + MINUTE, release)
    asked_hourly = span[1] - span[0] + 60 * MINUTE
    return draw.make("two instances", span, strikes=lambda instance: instance.id in struck, pays_seconds=asked_hourly)


def ec2_shows_nothing(draw: Draw) -> Unkindness:
    """DescribeInstances leaves instances out, or shows none."""
    span, missing, ec2 = draw.span(5, 30), draw.chance.choice([0.2, 0.6, 1.0]), draw.life.world.ec2

    def show(listing: Listing) -> None:
        ec2.listing = listing

    by_id = draw.chance.choice([missing / 2, 0.7])
    draw.at(span[0], partial(show, Listing(missing=missing, missing_by_id=by_id)))
    draw.at(span[1], partial(show, Listing()))
    draw.bite_if(span, lambda: bool(draw.life.world.alive()))
    return draw.make(
        f"{missing:.0%} of lists, {by_id:.0%} by id", span, touches=lambda _build: True, strikes=lambda _instance: True, is_noise=True
    )


def ec2_throttles(draw: Draw) -> Unkindness:
    """A part of all calls to EC2 is throttled."""
    span, share = draw.span(10, 60), draw.chance.choice([0.2, 0.5])

    def dice(call: str) -> Fault | None:
        if not call.startswith("ec2 ") or draw.chance.random() >= share:
            return None
        return Fault(call, status=503, code="RequestLimitExceeded")

    draw.while_it_lasts(span, draw.life.calls.dice, dice)
    return draw.make(f"{share:.0%}", span, touches=lambda _build: True, strikes=lambda _instance: True, is_noise=True)


def agents_flap(draw: Draw) -> Unkindness:
    """Agents lose their connection, and come back before Jenkins gives up what they run."""
    pool, span = draw.pool(), draw.span(20, 90)

    def survives(build: Build) -> bool:
        """Jenkins gives up at once what is only about to begin its `sh`."""
        return build.kind is Kind.PIPELINE and (build.waits_for_input or build.sh_has_begun(draw.life.world.timeline.now))

    def lose_one() -> None:
        for at in draw.life.jenkins.values():
            safe = [node for node in at.ours(pool) if node.connected and not node.handed and all(map(survives, node.builds.values()))]
            if safe:
                node = draw.chance.choice(safe)
                at.controller.disconnect(node.name)
                draw.bite()
                draw.life.world.timeline.after(draw.chance.uniform(20, 280), partial(draw.life.reconnect, at, node))

    draw.every(span, draw.chance.uniform(2, 8) * MINUTE, lose_one)
    return draw.make(pool.name, span, touches=draw.life.served_by(pool), strikes=draw.life.instances_of(pool))


SWITCHES = {
    "no-capacity": no_capacity,
    "offering-refused": offering_refused,
    "launches-refused": launches_refused,
    "boots-hang": boots_hang,
    "never-connects": never_connects,
    "zone-without-network": zone_without_network,
    "reboots-after-connect": reboots_after_connect,
    "fails-all-builds": fails_all_builds,
    "interrupted": interrupted,
    "dies-under-pipelines": dies_under_pipelines,
    "stops-hang": stops_hang,
    "stops-refused": stops_refused,
    "starts-refused": starts_refused,
    "starts-end-stopped": starts_end_stopped,
    "ends-refused": ends_refused,
    "ec2-shows-nothing": ec2_shows_nothing,
    "ec2-throttles": ec2_throttles,
    "agents-flap": agents_flap,
}
