"""What happens in Jenkins' queue: jobs that leave it unserved, late hand-outs, stages of one pipeline of which some are refused."""

from dataclasses import replace

from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.fakes.world.jenkins.nodes import Node
from support.hostile.drawn import MINUTE
from support.hostile.unkind import Draw, Unkindness

STAGES = "stages/app"
_LATEST_HAND_OUT = 10 * MINUTE


def gives_up_in_queue(draw: Draw) -> Unkindness:
    """Jobs of a pool, or all of them, have a time-out around their node block: what has not begun by then leaves the queue.

    Probes do so, too: now and then one asks whether the pool has a node at all.
    """
    pool, span, life = draw.pool(), draw.span(30, 150), draw.life
    patience, all_of_them = draw.chance.uniform(2, 6) * MINUTE, draw.chance.random() < 0.5
    probes = [f"probes/probe-{number}" for number in range(6)]
    names = {*probes, *(job.name for job in draw.jobs() if all_of_them or life.may_serve(pool, job))}

    def leave() -> None:
        now = life.world.timeline.now
        for controller in life.world.controllers.values():
            for build in [build for build in controller.queue if not build.is_taken and build.resumes_on is None]:
                if build.job in names and now - build.buildable_at >= patience:
                    controller.abort(build)
                    draw.bite_unforeseen()

    every = draw.chance.uniform(8, 20) * MINUTE
    controller = life.world.controllers[pool.controllers[0]]
    draw.keep_waiting(controller, probes, pool.name, 2 * MINUTE, span=(span[0], span[1] - patience), every=every)
    draw.every(span, MINUTE / 2, leave)
    whom = f"{'all' if all_of_them else pool.name} after {patience / MINUTE:.0f} min"
    return draw.make(whom, span, touches=(lambda _build: True) if all_of_them else life.served_by(pool))


def slow_hand_outs(draw: Draw) -> Unkindness:
    """A controller looks at its queue minutes late: agents stand free beside jobs that they get at last."""
    span, life = draw.span(30, 150), draw.life
    controller = draw.chance.choice(list(life.world.controllers.values()))
    seconds, usual = draw.chance.uniform(3 * MINUTE, _LATEST_HAND_OUT), controller._physics

    def begin() -> None:
        controller._physics = replace(usual, scheduling_seconds=seconds)

    def end() -> None:
        controller._physics = usual
        controller.schedule()

    def touches(build: Build) -> bool:
        return build.controller == controller.name

    draw.at(span[0], begin)
    draw.at(span[1], end)
    pool, most = draw.chance.choice(life.drawn.fleet.launched.pools_of(controller.name)), draw.chance.choice([1, 2, 4])
    jobs = [f"late/job-{number}" for number in range(8)]
    draw.keep_waiting(controller, jobs, pool.name, draw.chance.choice([2, 5, 15]) * MINUTE, span=span, every=2 * MINUTE, most=most)
    draw.bite_where_jobs_wait(span, touches)
    # Agents end meanwhile that are thought to be broken, and their jobs wait for a boot.
    facts = {"touches": touches, "strikes": lambda instance: instance.tags.get("autoscaler:controller") == controller.name}
    facts |= {"words": {"starts no builds though executors are free", "had a free executor for"}, "comes_and_goes": True}
    return draw.make(f"{controller.name}, {seconds / MINUTE:.0f} min late", span, delays_seconds=2 * _LATEST_HAND_OUT, **facts)


def stages_on_two_labels(draw: Draw) -> Unkindness:
    """Stages of one pipeline ask for two label sets. On one of them no node of ours may take them; on the other one they begin at once."""
    span, life = draw.span(30, 150), draw.life
    name = draw.chance.choice([controller for pool in life.drawn.fleet.launched.pools.values() for controller in pool.controllers])
    controller, pools = life.world.controllers[name], life.drawn.fleet.launched.pools_of(name)
    labels = [pool.name for pool in pools] if len(pools) > 1 else [pools[0].name, f"{pools[0].name} && !windows"]
    refused, taken = draw.chance.sample(labels, 2)

    def refuses(build: Build, _node: Node) -> str | None:
        is_refused = build.job == STAGES and build.label == refused
        return f"‘jenkins’ doesn’t have a permission to run {STAGES}" if is_refused else None

    draw.while_it_lasts(span, life.jenkins[name].refuses, refuses)
    draw.keep_waiting(controller, [STAGES], taken, 100.0, span=span, every=draw.chance.uniform(3, 8) * MINUTE)
    draw.keep_waiting(controller, [STAGES], refused, 200.0, span=span, every=4 * MINUTE, most=draw.chance.choice([4, 12, 40]))
    served = [life.served_by(pool) for pool in pools if {refused, taken} & {pool.name} or len(pools) == 1]
    words = {"doesn", "permission to run", STAGES}
    return draw.make(f"{taken}, and {refused} refused", span, touches=lambda build: any(each(build) for each in served), words=words)


SWITCHES = {
    "gives-up-in-queue": gives_up_in_queue,
    "slow-hand-outs": slow_hand_outs,
    "stages-on-two-labels": stages_on_two_labels,
}
