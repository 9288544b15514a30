"""What people and other tools do to nodes, jobs and the queue."""

from functools import partial

from autoscaler.domain.facts.fleet import Pool
from autoscaler.domain.labels import parse
from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.fakes.world.jenkins.nodes import Node
from support.hostile.drawn import MINUTE
from support.hostile.hooks import AtJenkins
from support.hostile.unkind import Draw, Unkindness
from support.worlds import a_world_node


def marked_by_person(draw: Draw) -> Unkindness:
    """A person takes an agent offline, and looks at it for long."""
    pool, span, marked = draw.pool(), draw.span(30, 120, for_ever=0.5), set[str]()

    def mark() -> None:
        at = draw.chance.choice(list(draw.life.jenkins.values()))
        nodes = [node for node in at.ours(pool) if node.connected and not node.temporarily_offline]
        if nodes and not marked:
            marked.add(nodes[0].name)
            draw.bite_unforeseen()
            at.controller.set_offline(nodes[0].name, "weird disk noise", "grace")
        unkind.words |= marked

    def bring_back() -> None:
        for at in draw.life.jenkins.values():
            for node in at.controller.nodes.values():
                if node.user == "grace" and node.reason == "weird disk noise":
                    node.clear_mark()
            at.controller.schedule()

    draw.every((span[0], span[1] - MINUTE), 5 * MINUTE, mark)
    draw.at(span[1], bring_back)
    facts = {"touches": draw.life.served_by(pool), "strikes": draw.life.instances_of(pool), "words": {"grace", "weird disk noise"}}
    unkind = draw.make(f"one of {pool.name}", span, keeps=lambda instance: instance.tags.get("autoscaler:node") in marked, **facts)
    return unkind


def labels_edited(draw: Draw) -> Unkindness:
    """A person takes the labels from a node of ours: it serves nobody any more."""
    return _configured(draw, lambda node: (("retired",), node.executors))


def no_executors(draw: Draw) -> Unkindness:
    """A person sets the executors of a node of ours to 0."""
    return _configured(draw, lambda node: (node.labels, 0))


def _configured(draw: Draw, how) -> Unkindness:
    pool, span, done = draw.pool(), draw.span(5, 60), list[str]()

    def configure() -> None:
        for at in draw.life.jenkins.values():
            for node in at.ours(pool)[: 1 - len(done)]:
                labels, executors = how(node)
                at.controller.configure(node.name, labels, exclusive=node.exclusive, executors=executors)
                done.append(node.name)
                draw.bite_unforeseen()
                unkind.words.add(node.name)

    draw.every(span, 3 * MINUTE, configure)
    # Nobody puts it back: the node is as it is until it goes, and what comes later waits for something else.
    until, serves = draw.life.drawn.calm_at, draw.life.served_by(pool)

    def touches(build: Build) -> bool:
        machines = [one for one in draw.life.world.ec2.instances.values() if one.tags.get("autoscaler:node") in done]
        return serves(build) and not all(one.ended_at and one.ended_at < build.buildable_at for one in machines)

    facts = {"touches": touches, "strikes": draw.life.instances_of(pool)}
    unkind = draw.make(f"one of {pool.name}", (span[0], until), **facts)
    return unkind


def waits_for_another_node(draw: Draw) -> Unkindness:
    """Jobs wait for a person's node by its label, which it alone has; it is busy, or off."""
    at, span = draw.chance.choice(list(draw.life.jenkins.values())), draw.span(30, 120)
    is_on, pools = draw.chance.random() < 0.5, draw.life.drawn.fleet.pools_of(at.controller.name)
    node = a_world_node("lic-1", "licensed", *draw.chance.choice(pools).labels, connected=is_on, survives_reload=True)
    node.exclusive = True

    def begin() -> None:
        at.controller.add_node(node)
        if is_on:
            at.controller.submit("licences/long", "licensed", span[1] - span[0])
            at.controller.schedule()
        for _ in range(draw.chance.randint(1, 3)):
            at.controller.submit("licences/next", draw.chance.choice(["licensed", "lic-1"]), 120.0)

    def end() -> None:
        node.connected = True
        at.controller.schedule()

    draw.at(span[0], begin)
    draw.at(span[0], draw.bite)
    draw.at(span[1], end)
    served = [draw.life.served_by(pool) for pool in pools]

    def touches(build):
        return build.controller == at.controller.name and any(each(build) for each in served)

    return draw.make("lic-1", span, touches=touches, words={"lic-1", "licensed"})


def queue_reordered(draw: Draw) -> Unkindness:
    """A plugin, or a person, sorts the queue anew."""
    span = draw.span(30, 120)

    def shuffle() -> None:
        for at in draw.life.jenkins.values():
            draw.bites += len(at.controller.queue) > 1
            draw.chance.shuffle(at.controller.queue)

    draw.every(span, 3 * MINUTE, shuffle)
    return draw.make("each queue", span)


def jobs_relabelled(draw: Draw) -> Unkindness:
    """A job gets the label of another pool while its builds wait."""
    job, span = draw.chance.choice(draw.jobs()), draw.span(10, 90)
    pool = draw.chance.choice([pool for pool in draw.life.drawn.fleet.pools_of(job.controller) if pool.executors >= job.weight])

    def relabel() -> None:
        for build in draw.life.world.controllers[job.controller].queue:
            if build.job == job.name and build.label != pool.name:
                build.label, build.expression = pool.name, parse(pool.name)
                draw.bite()
                draw.life.changed_at[build] = draw.life.world.timeline.now

    draw.every(span, 2 * MINUTE, relabel)
    return draw.make(f"{job.name} for {pool.name}", span, touches=lambda build: build.job == job.name)


def jobs_renamed(draw: Draw) -> Unkindness:
    """A job gets another name while its builds wait."""
    job, span = draw.chance.choice(draw.jobs()), draw.span(10, 90)

    def rename() -> None:
        controller = draw.life.world.controllers[job.controller]
        for build in controller.queue:
            if build.job == job.name:
                build.job = f"{job.name}-new"
                controller.runs.setdefault(build.run_path, []).append(build)
                draw.life.forget_item(build)
                draw.bite()

    draw.every(span, 2 * MINUTE, rename)
    return draw.make(job.name, span, touches=lambda build: build.job.removesuffix("-new") == job.name)


def another_cloud(draw: Draw) -> Unkindness:
    """A cloud plugin brings nodes of its own with the labels of a pool, and takes them away once they are idle."""
    pool, span = draw.pool(), draw.span(20, 120)
    at = draw.life.jenkins[draw.chance.choice(pool.controllers)]
    names = [f"cloud-{number}" for number in range(draw.chance.randint(1, 3))]

    def comes_and_goes() -> None:
        now = draw.life.world.timeline.now
        held = {build.resumes_on or build.node for build in at.controller.builds if build.ended is None}
        for name in names:
            node = at.controller.nodes.get(name)
            if node is None and now < span[1] and draw.chance.random() < 0.4:
                at.controller.add_node(_of_cloud(name, pool))
                at.controller.connect(name)
                draw.bite()
            elif node is not None and name not in held and not node.handed and (now >= span[1] or draw.chance.random() < 0.3):
                at.controller.delete_node(name)
                draw.bite_unforeseen()

    draw.every((span[0], span[1] + 30 * MINUTE), 2 * MINUTE, comes_and_goes)
    return draw.make(pool.name, span, touches=draw.life.served_by(pool))


def _of_cloud(name: str, pool: Pool) -> Node:
    return a_world_node(name, *sorted(pool.labels), connected=False, executors=pool.executors, survives_reload=True)


def beacon_deleted(draw: Draw) -> Unkindness:
    """Somebody tidies up: the beacon goes, once or again and again."""
    span = draw.span(1, 60)

    def delete(at: AtJenkins) -> None:
        for name in [name for name in at.controller.nodes if name.startswith("autoscaler-beacon")]:
            at.controller.delete_node(name)
            draw.bite()

    for at in draw.life.jenkins.values():
        draw.every(span, 7 * MINUTE, partial(delete, at))
    return draw.make("each controller", span, touches=lambda _build: True)


def configuration_reloaded(draw: Draw) -> Unkindness:
    """Configuration as code is loaded again, in the same session."""
    at, span = draw.chance.choice(list(draw.life.jenkins.values())), draw.span(1, 40)

    def reload() -> None:
        if at.controller.up == "up":
            at.controller.reload_configuration_as_code()
            draw.bite()

    draw.every(span, 15 * MINUTE, reload)
    name = at.controller.name
    return draw.make(name, span, touches=lambda build: build.controller == name)


def instance_ended_by_hand(draw: Draw) -> Unkindness:
    """A person ends an idle machine in EC2's console."""
    pool, span = draw.pool(), draw.span(5, 60)

    def end_one() -> None:
        for instance in draw.life.ec2.of(pool):
            node = draw.life.world.node_of(instance)
            if instance.is_on() and (node is None or not (node.builds or node.handed)):
                draw.end(instance)
                return

    draw.every(span, 20 * MINUTE, end_one)
    return draw.make(pool.name, span, touches=draw.life.served_by(pool))


SWITCHES = {
    "marked-by-person": marked_by_person,
    "labels-edited": labels_edited,
    "no-executors": no_executors,
    "waits-for-another-node": waits_for_another_node,
    "queue-reordered": queue_reordered,
    "jobs-relabelled": jobs_relabelled,
    "jobs-renamed": jobs_renamed,
    "another-cloud": another_cloud,
    "beacon-deleted": beacon_deleted,
    "configuration-reloaded": configuration_reloaded,
    "instance-ended-by-hand": instance_ended_by_hand,
}
