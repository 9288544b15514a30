"""What leaves the fleet file, and comes back: pools, controllers, and keys of them, while something of theirs is there."""

from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import inf

from autoscaler.control import passes
from autoscaler.domain.facts.fleet import NO_CEILINGS, Fleet, Lending, Pool, Share
from autoscaler.domain.facts.job_settings import JobWeights
from autoscaler.domain.facts.orders import EndInstance
from autoscaler.domain.facts.snapshot import RecordState
from autoscaler.errors import AutoscalerError
from autoscaler_workbench.fakes.world.ec2.account import image_of
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.jenkins.builds import Build
from support.hostile.drawn import MINUTE
from support.hostile.prepared import IMAGE_PARAMETER
from support.hostile.unkind import Draw, Unkindness
from support.left_keys import with_pools, without_controller, without_pools
from support.worlds import a_world_node

# Machines that are there only since a pool keeps stopped ones.
_STOPS = (RecordState.STOPPING, RecordState.STOPPED, RecordState.STARTING)
_HOUR = 3600.0


def with_keys(name: str, **keys) -> "partial[Fleet]":
    """Give a pool other keys, if the file has it."""
    return partial(_with_keys, name=name, keys=keys)


def _with_keys(file: Fleet, *, name: str, keys: dict) -> Fleet:
    return replace(file, pools={**file.pools, name: replace(file.pools[name], **keys)}) if name in file.pools else file


def pool_leaves_file(draw: Draw) -> Unkindness:
    """A person removes a pool from the fleet file, and perhaps puts it back later."""
    pool, span, life = draw.pool(), draw.span(5, 150, for_ever=0.3), draw.life
    draw.edit_file(span, lambda file: without_pools(file, pool.name))
    draw.bite_if(span, lambda: bool(life.ec2.of(pool)))
    draw.bite_where_jobs_wait(span, life.served_by(pool))
    facts = {"touches": life.served_by(pool), "strikes": life.instances_of(pool), "closes": frozenset({pool.name})}
    # If most agents lost their pool at once, none of them is drained for an hour.
    words = {pool.name, "no pool serves"}
    # Jobs that hosts may serve, too, wait for these from then on.
    words |= {f"of-hosts of {each.name}" for each in life.drawn.fleet.pools.values() if each.of_hosts}
    facts |= {
        "words": words,
        "hidden_seconds": _unserved_seconds(life.drawn.fleet),
        "pays_seconds": 2 * _HOUR,
        "names": life.instances_of(pool),
    }
    return draw.make(pool.name, span, **facts)


def _unserved_seconds(fleet: Fleet) -> float:
    """Return for how long jobs wait before it is told that no pool serves them any more: then the other pools' jobs would be late."""
    return max(pool.max_wait_seconds for pool in fleet.pools.values())


def controller_leaves_file(draw: Draw) -> Unkindness:
    """A person removes a controller, and perhaps puts it back later. Or ends by hand what it leaves behind, once nothing runs there."""
    span, life = draw.span(5, 150, for_ever=0.4), draw.life
    name = draw.chance.choice(life.drawn.fleet.controllers)
    pools = [pool.name for pool in life.drawn.fleet.launched.pools_of(name)]

    def serves(instance: Instance) -> bool:
        mine = life.drawn.fleet.pools.get(instance.tags.get("autoscaler:pool", ""))
        is_shared = mine is not None and mine.share is not Share.NONE and name in mine.controllers
        return is_shared or instance.tags.get("autoscaler:controller") == name

    def touches(build: Build) -> bool:
        return build.controller == name or any(pool.name in pools for pool in life.pools_serving(build))

    draw.edit_file(span, partial(_without, name=name))
    draw.bite_if(span, lambda: any(map(serves, life.world.alive())))
    if draw.chance.random() < 0.4:
        draw.every((span[0] + 20 * MINUTE, span[1]), 10 * MINUTE, partial(_end_by_hand, draw, name))
    pays = min(span[1], life.drawn.end_at) - span[0] + _HOUR

    def on_it(build):
        return build.controller == name

    def is_filled(pool: Pool) -> bool:
        """Agents that nobody sees any more take all places of a pool, and people were told of them."""
        return sum(one.tags.get("autoscaler:controller") == name for one in life.ec2.of(pool)) >= pool.max_agents

    def never_begins(build):
        return on_it(build) or all(map(is_filled, life.pools_serving(build)))

    prevents = never_begins if span[1] == inf else (lambda _build: False)
    rotate = {pool.name for pool in life.drawn.fleet.pools.values() if pool.share is not Share.NONE}

    def only_there(one):
        return one.tags.get("autoscaler:controller") == name and one.tags.get("autoscaler:pool") not in rotate

    facts = {"touches": touches, "strikes": serves, "prevents": prevents, "hides": on_it, "names": only_there}
    return draw.make(name, span, pays_seconds=pays, **facts)


def _without(file: Fleet, *, name: str) -> Fleet:
    """Remove a controller. A pool that serves one alone shares nothing."""
    file = without_controller(file, name)
    pools = {pool.name: pool if len(pool.controllers) > 1 else replace(pool, share=Share.NONE) for pool in file.pools.values()}
    return replace(file, pools=pools)


def _end_by_hand(draw: Draw, name: str) -> None:
    """End what a controller that left has left behind, as the runbook says: its node takes no build any more, has none, and goes."""
    life, controller = draw.life, draw.life.world.controllers[name]
    bound = {build.resumes_on or build.node for build in controller.builds if build.ended is None}
    for instance in life.world.alive():
        node = controller.nodes.get(instance.tags.get("autoscaler:node", ""))
        if instance.tags.get("autoscaler:controller") != name or node is None or node.builds or node.handed or node.name in bound:
            continue
        order, was_marked = EndInstance(target=instance.id, reason="nothing runs there"), node.temporarily_offline
        if not was_marked:
            controller.set_offline(node.name, "it is ended", "a person")
        with suppress(AutoscalerError):
            passes.carry_out(life.fleet.ports_of("operate"), life.fleet.fleet, replace(life.fleet.invocation(), by_a_person=True), order)
        if not instance.is_on() and node.name.endswith(instance.id.removeprefix("i-")):  # static nodes stay
            controller.delete_node(node.name)
        elif not was_marked:
            controller.toggle(node.name, "", "a person")


def share_leaves(draw: Draw) -> Unkindness:
    """A pool shares its agents no more, or in the other way, and perhaps serves one controller alone; later it is as before."""
    span, life = draw.span(10, 150, for_ever=0.3), draw.life
    pool = next(pool for pool in life.drawn.fleet.pools.values() if pool.share is not Share.NONE)
    other = Share.ROTATE if pool.share is Share.COOPERATIVE else Share.COOPERATIVE
    share = draw.chance.choice([Share.NONE, Share.NONE, other])
    serves = pool.controllers if share is not Share.NONE or draw.chance.random() < 0.6 else (draw.chance.choice(pool.controllers),)
    warm = None if share is Share.COOPERATIVE else pool.warm_pool

    def edited(file: Fleet) -> Fleet:
        # A file that shares agents of a controller with static nodes is refused.
        allowed = Share.NONE if file.slot_controllers & set(serves) else share
        return _with_keys(file, name=pool.name, keys={"share": allowed, "controllers": serves, "warm_pool": warm})

    draw.edit_file(span, edited)
    draw.bite_if(span, lambda: bool(life.ec2.of(pool)))
    touches, is_out = life.served_by(pool), frozenset(pool.controllers) - frozenset(serves)
    draw.bite_where_jobs_wait(span, touches)
    prevents = (lambda build: touches(build) and build.controller in is_out) if span[1] == inf else (lambda _build: False)
    whom = f"{pool.name}: {share} for {', '.join(serves)}"
    facts = {"words": {pool.name, "no pool serves"}, "hidden_seconds": _unserved_seconds(life.drawn.fleet)} if is_out else {}
    return draw.make(whom, span, touches=touches, strikes=life.instances_of(pool), prevents=prevents, **facts)


def loans_leave(draw: Draw) -> Unkindness:
    """A pool lends no more, or the general kind has other labels."""
    span, life = draw.span(10, 150, for_ever=0.4), draw.life
    pool = next(pool for pool in life.drawn.fleet.pools.values() if pool.lent_labels)
    left = draw.chance.choice(["lend", "kinds", "another label"])
    lent = {"lend": pool.lent_labels, "kinds": frozenset(), "another label": frozenset({"plain"})}[left]
    lends = pool.lend if left == "another label" else Lending.NEVER
    draw.edit_file(span, with_keys(pool.name, lend=lends, lent_labels=lent))
    life.wanted.labels[pool.name] = pool.lent_labels
    draw.every((life.drawn.begin_at, inf), MINUTE, lambda: draw.bite() if any(_lent(draw, pool)) else None)
    return draw.make(f"{pool.name}: {left}", span, touches=lambda _build: True, strikes=life.instances_of(pool))


def _lent(draw: Draw, pool: Pool):
    return (not pool.lent_labels.isdisjoint(node.labels) for at in draw.life.jenkins.values() for node in at.ours(pool))


def features_leave(draw: Draw) -> Unkindness:
    """A key of a pool leaves for a while: the one that the fleet was given, or weights, or stopped agents."""
    span, life = draw.span(10, 120, for_ever=0.3), draw.life
    records = life.fleet.state.records
    pool, key, keys = next(((pool, *left) for pool in life.drawn.fleet.pools.values() if (left := _feature_of(pool))), (None, "", {}))
    if pool is not None:
        draw.edit_file(span, with_keys(pool.name, **keys))
        draw.bite_if(span, lambda: bool(life.ec2.of(pool)))
        if key == "image_parameter":
            _publish_images(draw)
        lasts = (life.drawn.begin_at, inf) if key == "max_hours_per_day" else span  # what has used a day up before counts afterwards
        return draw.make(f"{pool.name}: {key}", lasts, touches=life.served_by(pool), strikes=life.instances_of(pool), **_told(pool, key))
    if draw.chance.random() < 0.5:
        draw.edit_file(span, lambda file: replace(file, weights=JobWeights()))
        draw.bite_if(span, lambda: any(record.by_weight for record in records.values()))
        return draw.make("weights", span, touches=lambda _build: True, strikes=lambda _instance: True)
    draw.edit_file(span, lambda file: with_pools(file, {name: replace(pool, warm_pool=None) for name, pool in file.pools.items()}))
    draw.bite_if(span, lambda: any(record.state in _STOPS for record in records.values()))
    return draw.make("warm_pool", span, touches=lambda _build: True, strikes=lambda _instance: True)


def _feature_of(pool: Pool) -> tuple[str, dict] | None:
    """Name a key that a pool has, and its keys without it."""
    if pool.ceilings != NO_CEILINGS:
        return "max_hours_per_day", {"ceilings": NO_CEILINGS}
    if pool.image_parameter:
        return "image_parameter", {"image_parameter": ""}
    if pool.capacity is not None:
        priced = tuple(replace(offering, usd_per_hour=pool.capacity.usd_per_hour) for offering in pool.offerings)
        return "capacity_reservation", {"capacity": None, "offerings": priced}
    return ("max_builds", {"max_builds": None}) if pool.max_builds is not None else None


def _told(pool: Pool, key: str) -> dict:
    """Without hours left in the day nothing is launched in the pool as long as it has the key, and messages say so."""
    if key != "max_hours_per_day":
        return {}
    words = {f"day's hours of pool {pool.name} are used", f"max-hours-per-day of {pool.name}"}
    return {"closes": frozenset({pool.name}), "words": words, "comes_and_goes": True}


def _publish_images(draw: Draw) -> None:
    """Somebody publishes an image before the world begins, and others later."""
    account = draw.life.world.ec2.account

    def publish(image: str) -> None:
        account.images[image] = image_of("linux", ImageId=image)
        account.parameters[IMAGE_PARAMETER] = image

    publish("ami-1")
    draw.at(draw.span()[0], partial(publish, "ami-2"))


def nodes_change(draw: Draw) -> Unkindness:
    """A controller has static nodes for a while, which its operator made; before and after that each agent has its own."""
    at, span, life = draw.chance.choice(list(draw.life.jenkins.values())), draw.span(20, 120), draw.life
    name = at.controller.name
    for pool in life.drawn.fleet.launched.pools_of(name):
        for number in range(draw.chance.randint(2, pool.max_agents)):
            node = f"static-{pool.name}-{number}"
            labels = (*sorted(pool.labels), life.drawn.fleet.ownership_label)
            at.controller.add_node(a_world_node(node, *labels, connected=False, survives_reload=True, executors=pool.executors))
            life.wanted.nodes.append((name, node))

    def has_slots(file: Fleet) -> Fleet:
        pools = {pool.name: replace(pool, share=Share.NONE) if name in pool.controllers else pool for pool in file.pools.values()}
        return replace(file, slot_controllers=file.slot_controllers | ({name} & set(file.controllers)), pools=pools)

    draw.edit_file(span, has_slots)
    draw.bite_if(span, lambda: any(at.ours(pool) for pool in life.drawn.fleet.pools.values()))
    pools = {pool.name for pool in life.drawn.fleet.pools_of(name)}

    def strikes(instance):
        return instance.tags.get("autoscaler:pool") in pools

    def touches(build):
        return any(pool.name in pools for pool in life.pools_serving(build))

    words = {f"no-free-slot of {pool}" for pool in pools}
    return draw.make(name, span, touches=touches, strikes=strikes, pays_seconds=2 * _HOUR, words=words, comes_and_goes=True)


def hosts_leave(draw: Draw) -> Unkindness:
    """A host leaves the fleet file, or all of them with their pool; some of them are off, or were, or come back."""
    span, life = draw.span(10, 150, for_ever=0.5), draw.life
    host = draw.chance.choice(sorted(life.drawn.fleet.hosts))
    with_pool = draw.chance.random() < 0.3

    def leave(file: Fleet) -> Fleet:
        if with_pool:
            return replace(without_pools(file, "rack"), hosts={})
        return replace(file, hosts={name: one for name, one in file.hosts.items() if name != host})

    draw.edit_file(span, leave)
    draw.bite_if(span, lambda: any(record.is_host for record in life.fleet.state.records.values()))
    if draw.chance.random() < 0.5:
        off_at = life.drawn.begin_at + draw.chance.random() * (life.drawn.calm_at - life.drawn.begin_at)
        machine = life.world.hosts[host]
        draw.at(off_at, partial(life.fleet.agents.power_fails, machine))
        draw.at(off_at, draw.bite_unforeseen)
        if draw.chance.random() < 0.6:
            draw.at(off_at + draw.chance.uniform(1, 90) * MINUTE, partial(life.fleet.agents.power_returns, machine))
        life.wanted.hosts_off.add(host)
    like = life.drawn.fleet.pools["rack"].labels

    def touches(build):
        return build.expression.matches(like | {life.drawn.fleet.ownership_label})

    return draw.make(f"{host}{' and its pool' if with_pool else ''}", span, touches=touches)


SWITCHES = {
    "pool-leaves-file": pool_leaves_file,
    "controller-leaves-file": controller_leaves_file,
    "share-leaves": share_leaves,
    "loans-leave": loans_leave,
    "features-leave": features_leave,
    "nodes-change": nodes_change,
    "hosts-leave": hosts_leave,
}
