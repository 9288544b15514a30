"""What Jenkins and its plugins do: agents that take nothing, refusals, marks, zombies, quiet mode, outages, restarts."""

from collections.abc import Callable
from functools import partial
from math import inf
from random import Random

from autoscaler_workbench.fakes.http_fakes.jenkins.api import BALANCER_REFUSES, LOGIN_PAGE
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.fakes.world.jenkins.controller import Controller
from autoscaler_workbench.fakes.world.jenkins.nodes import Node
from support.hostile.drawn import MINUTE
from support.hostile.hooks import AtJenkins, is_of
from support.hostile.unkind import Draw, Unkindness

_DISK = "hudson.node_monitors.DiskSpaceMonitorDescriptor$DiskSpace", "Disk space is too low. Only 0.4GB left on /home/jenkins."
_JVM = "hudson.plugin.versioncolumn.JVMVersionMonitor$JVMMismatchCause", "This node is offline because it uses an incompatible JVM version"
_LISTENER_SECONDS = 4 * MINUTE
_READ_SECONDS = 10.0
_LATEST_END = 120 * MINUTE  # of a build that waits for a person, or for a lock


def _controller(draw: Draw) -> AtJenkins:
    return draw.chance.choice(list(draw.life.jenkins.values()))


def suspended(draw: Draw) -> Unkindness:
    """An agent is online and idle, and takes nothing: setAcceptingTasks(false). Jenkins says why, or says nothing."""
    pool, span, most = draw.pool(), draw.span(30, 120, for_ever=0.5), draw.chance.choice([1, 2, 99])
    says_why, names = draw.chance.random() < 0.5, set[str]()

    def begin() -> None:
        now, node_names = draw.life.world.timeline.now, {name for at in draw.life.jenkins.values() for name in at.controller.nodes}
        if names and not names & node_names:
            unkind.until_at = min(now, unkind.until_at)  # each of them is gone
        elif not names:
            there = [node.name for at in draw.life.jenkins.values() for node in at.ours(pool) if node.connected]
            names.update(there[:most])
            unkind.words |= names
            draw.life.notes.events += [now] * bool(names)

    for at in draw.life.jenkins.values():
        if says_why:
            at.refuses.append(draw.counted(lambda _build, node: f"‘{node.name}’ is not accepting tasks" if node.name in names else None))
        else:
            at.silent.append(draw.counted(lambda _build, node: node.name in names))
    draw.every((span[0], span[1] - MINUTE), 2 * MINUTE, begin)
    draw.at(span[1], names.clear)
    strikes = draw.life.instances_of(pool)
    unkind = draw.make(
        f"{most} of {pool.name}, {'told' if says_why else 'silent'}", span, touches=draw.life.served_by(pool), strikes=strikes
    )
    return unkind


def refused_by_permission(draw: Draw) -> Unkindness:
    """A job may not run on any node of ours."""
    job, span = draw.chance.choice(draw.jobs()), draw.span(30, 120, for_ever=0.4)
    words = f"‘jenkins’ doesn’t have a permission to run {job.name}"

    def refuses(build: Build, _node: Node) -> str | None:
        return words if build.job == job.name else None

    draw.while_it_lasts(span, draw.life.jenkins[job.controller].refuses, refuses)
    forbids = span[1] == inf
    pools = draw.life.pools_of(job)
    return draw.make(
        job.name,
        span,
        touches=lambda build: any(draw.life.served_by(pool)(build) for pool in pools),
        prevents=lambda build: forbids and build.job == job.name,
        strikes=lambda instance: instance.tags.get("autoscaler:pool") in {pool.name for pool in pools},
        words={"doesn", "permission to run", job.name},
    )


def throttled_by_node(draw: Draw) -> Unkindness:
    """A node takes one build of a category at a time; another node would take the next one at once."""
    category, span = draw.chance.choice("ab"), draw.span(30, 150, for_ever=0.3)

    def refuses(build: Build, node: Node) -> str | None:
        taken = any(one.job.startswith(f"team-{category}/") for one in node.builds.values())
        return "Already running 1 builds on node" if taken and build.job.startswith(f"team-{category}/") else None

    return _throttled(draw, f"team-{category}", _in_folder(category), span, refuses)


def throttled_for_all(draw: Draw) -> Unkindness:
    """No more than two builds of a category run at once, wherever."""
    category, span = draw.chance.choice("ab"), draw.span(30, 120)
    controllers = draw.life.world.controllers

    def refuses(build: Build, _node: Node) -> str | None:
        running = [one for node in controllers[build.controller].nodes.values() for one in node.builds.values()]
        many = sum(one.job.startswith(f"team-{category}/") for one in running) >= 2
        return "Already running 2 builds across all nodes" if many and build.job.startswith(f"team-{category}/") else None

    # Jenkins names the throttle only once an executor is free; until then nobody can know of it.
    return _throttled(draw, f"team-{category}", _in_folder(category), span, refuses, delays_seconds=15 * MINUTE)


def throttled_over_folders(draw: Draw) -> Unkindness:
    """A category of Throttle Concurrent Builds has jobs of several folders, of which one build runs at a time, or two. Many wait."""
    span, most, pool = draw.span(30, 150), draw.chance.choice([1, 1, 1, 2]), draw.pool()
    deploys = [f"team-{folder}/deploy" for folder in "cdef"]
    names = {*deploys} | {job.name for job in draw.jobs() if draw.chance.random() < 0.6}
    for folder in "ab":
        jobs = [job.name for job in draw.jobs() if _in_folder(folder)(job.name)]
        names |= {draw.chance.choice(jobs)} if jobs else set()
    controllers = draw.life.world.controllers

    def refuses(build: Build, _node: Node) -> str | None:
        running = (one for node in controllers[build.controller].nodes.values() for one in node.builds.values())
        many = build.job in names and sum(one.job in names for one in running) >= most
        return f"Already running {most} builds across all nodes" if many else None

    seconds, waiting = draw.chance.uniform(3, 15) * MINUTE, draw.chance.choice([4, 12, 30])
    controller = controllers[draw.chance.choice(pool.controllers)]
    draw.keep_waiting(controller, deploys, pool.name, seconds, span=span, every=MINUTE, most=waiting)
    # The queue of a throttle is as long as it likes.
    unkind = _throttled(draw, f"{waiting} of {len(names)} jobs", names.__contains__, span, refuses, delays_seconds=span[1] - span[0])
    serves, touches = draw.life.served_by(pool), unkind.touches
    unkind.touches = lambda build: serves(build) or touches(build)
    return unkind


def _in_folder(category: str) -> Callable[[str], bool]:
    return lambda job: job.startswith(f"team-{category}/")


def _throttled(
    draw: Draw, whom: str, is_throttled: Callable[[str], bool], span: tuple[float, float], refuses, delays_seconds: float = 0.0
) -> Unkindness:
    for at in draw.life.jenkins.values():
        draw.while_it_lasts(span, at.refuses, refuses)
    pools = {pool.name for job in draw.jobs() if is_throttled(job.name) for pool in draw.life.pools_of(job)}
    served = [draw.life.served_by(pool) for pool in draw.life.drawn.fleet.pools.values() if pool.name in pools]
    return draw.make(
        whom,
        span,
        touches=lambda build: any(each(build) for each in served),
        words={"Already running"},
        delays_seconds=delays_seconds,
    )


def marked_by_disk_monitor(draw: Draw) -> Unkindness:
    """Jenkins' disk monitor takes agents of a pool offline."""
    return _marked(draw, *_DISK)


def marked_by_plugin(draw: Draw) -> Unkindness:
    """A plugin's monitor takes agents of a pool offline."""
    return _marked(draw, *_JVM)


def _marked(draw: Draw, cause: str, reason: str) -> Unkindness:
    """Mark the agents that are there, or also each that connects meanwhile."""
    pool, all_of_them = draw.pool(), draw.chance.random() < 0.3
    span, marked = draw.span(20, 90, for_ever=0.0 if all_of_them else 0.5), set[str]()

    def mark(at: AtJenkins) -> None:
        for node in at.ours(pool):
            if node.connected and (all_of_them or not marked or node.name in marked):
                (draw.bite if marked else draw.bite_unforeseen)()  # those that follow the first can be learned of
                marked.add(node.name)
                at.marks(node, cause, reason)
        unkind.words |= marked

    def clear(at: AtJenkins) -> None:
        for node in at.controller.nodes.values():
            if node.cause == cause:
                node.clear_mark()
        at.controller.schedule()

    for at in draw.life.jenkins.values():
        draw.every((span[0], span[1] - 1.0), 45.0 if all_of_them else 10 * MINUTE, partial(mark, at))
        draw.at(span[1], partial(clear, at))
    # Where most agents of a controller are marked, launches for its other pools are rationed, too.
    touches = (lambda _build: True) if all_of_them else draw.life.served_by(pool)
    words, strikes = {reason[:20], cause.rpartition(".")[2]}, draw.life.instances_of(pool)
    unkind = draw.make(f"{'each' if all_of_them else 'one'} of {pool.name}", span, touches=touches, words=words, strikes=strikes)
    return unkind


def zombies(draw: Draw) -> Unkindness:
    """Runs have ended, and their executors show them for ever."""
    pool, span, shown = draw.pool(), draw.span(10, 60), []

    def keeps(build: Build, node: Node) -> bool:
        if not is_of(node, pool) or len(shown) >= 2:
            return False
        shown.append(build)
        draw.life.zombies[build] = build.ended_at or 0.0
        unkind.words.update((node.name, build.job))
        unkind.pays_seconds = max(unkind.pays_seconds, _asked_after(at_of[build.controller], build))
        return True

    at_of = draw.life.world.controllers
    for at in draw.life.jenkins.values():
        draw.while_it_lasts(span, at.keeps, keeps)
    # What was shown falsely by then goes on being shown so.
    strikes = draw.life.instances_of(pool)
    unkind = draw.make(pool.name, (span[0], inf), touches=draw.life.served_by(pool), strikes=strikes)
    return unkind


def _asked_after(controller: Controller, build: Build) -> float:
    """A run is asked at ten times the longest build of its job, after an hour at least; after twelve if none was seen."""
    ended = [
        other.ended_at - other.started_at
        for other in controller.builds
        if other.job == build.job and other is not build and other.ended_at and other.started_at is not None
    ]
    return max(3600.0, 10.0 * max(ended)) + 30 * MINUTE if ended else 12 * 3600.0


def builds_end_late(draw: Draw) -> Unkindness:
    """Builds of a job wait for a person's `input`, or for a lock: they hold their executors for long."""
    job, span = draw.chance.choice(draw.jobs()), draw.span(20, 60)

    def begins(build: Build) -> None:
        if build.job == job.name:
            draw.bite_unforeseen()
            build.seconds = max(
                build.seconds, min(draw.chance.uniform(30 * MINUTE, _LATEST_END), draw.life.drawn.calm_at - build.started_at)
            )

    draw.while_it_lasts(span, draw.life.jenkins[job.controller].begun, begins)
    served = [draw.life.served_by(pool) for pool in draw.life.pools_of(job)]
    lasts, touches = (span[0], draw.life.drawn.calm_at), lambda build: any(each(build) for each in served)
    # Until the end of such a build nobody can know when its executor is free.
    return draw.make(job.name, lasts, touches=touches, delays_seconds=_LATEST_END)


def quiet_mode(draw: Draw) -> Unkindness:
    """A person, or a backup, puts a controller into quiet mode."""
    at, span = _controller(draw), draw.span(10, 90)
    draw.every((span[0], span[1] - MINUTE), 5 * MINUTE, lambda: at.controller.quiet_down("nightly backup"))
    draw.at(span[1], at.controller.cancel_quiet_down)
    draw.at(span[0], draw.bite)
    return _of_controller(draw, at, span, words={"quiet", "nightly backup", "about to shut down"})


def login_outage(draw: Draw) -> Unkindness:
    """The login service is away: each token is answered 401."""
    at, span = _controller(draw), draw.span(5, 60)
    accounts = draw.life.fleet.apis[at.controller.name].accounts
    draw.at(span[0], lambda: accounts.update(nobody="x"))
    draw.at(span[1], accounts.clear)
    draw.at(span[0], draw.bite)
    return _of_controller(draw, at, span, words={"401", "credentials"})


def login_page(draw: Draw) -> Unkindness:
    """A login service answers everything with its own page, status 200."""
    at, span = _controller(draw), draw.span(5, 60)
    api = draw.life.fleet.apis[at.controller.name]
    draw.at(span[0], lambda: setattr(api, "login_page", True))
    draw.at(span[1], lambda: setattr(api, "login_page", False))
    draw.at(span[0], draw.bite)
    return _of_controller(draw, at, span, words={"Sign in", "login", "JSON", "HTML", "is not Jenkins"})


def page_for_posts(draw: Draw) -> Unkindness:
    """A login service, or a load balancer, answers all that is posted in Jenkins' place. What is read is Jenkins' own."""
    at, span = _controller(draw), draw.span(5, 60)
    in_front = draw.life.fleet.apis[at.controller.name].in_front
    answer = draw.chance.choice([LOGIN_PAGE, BALANCER_REFUSES])
    draw.at(span[0], lambda: in_front.update(POST=answer))
    draw.at(span[1], in_front.clear)
    draw.at(span[0], draw.bite)
    return _of_controller(draw, at, span, words={"Sign in", "login", "403 Forbidden", "is not Jenkins"}, is_noise=True)


def slow_answers(draw: Draw) -> Unkindness:
    """Each call to a controller ends at its deadline, whether it took effect or not."""
    at, span = _controller(draw), draw.span(5, 40)

    def dice(call: str) -> Fault | None:
        if draw.life.in_pass:
            draw.life.world.timeline.sleep(_READ_SECONDS)
        return Fault(call, after=True)

    draw.while_it_lasts(span, at.calls.dice, dice)
    return _of_controller(draw, at, span, words={f"controller {at.controller.name}", f"{at.controller.name} "}, is_noise=True)


def controller_flaps(draw: Draw) -> Unkindness:
    """A controller answers now and then."""
    at, span, share = _controller(draw), draw.span(15, 90), draw.chance.choice([0.3, 0.6, 0.9])
    timeline = draw.life.world.timeline

    def dice(call: str) -> Fault | None:
        is_away = Random(f"{draw.life.drawn.seed}/{timeline.now // 90}").random() < share
        return Fault(call, status=503) if is_away else None

    draw.while_it_lasts(span, at.calls.dice, dice)
    return _of_controller(draw, at, span, words={f"controller {at.controller.name}"}, is_noise=True)


def restarts(draw: Draw) -> Unkindness:
    """A controller restarts, perhaps more than once."""
    at, span = _controller(draw), draw.span(5, 60)

    def restart() -> None:
        if at.controller.up == "up":
            at.controller.restart()
            draw.bite()

    draw.every(span, draw.chance.uniform(4, 30) * MINUTE, restart)
    return _of_controller(draw, at, span, is_noise=True)


def _of_controller(draw: Draw, at: AtJenkins, span: tuple[float, float], **facts) -> Unkindness:
    name = at.controller.name
    mine = {"touches": lambda build: build.controller == name, "strikes": lambda one: one.tags.get("autoscaler:controller") == name}
    return draw.make(name, span, **(mine | facts))


def late_listeners(draw: Draw) -> Unkindness:
    """Agents of a pool need minutes after they connected before they take work."""
    pool, span = draw.pool(), draw.span(60, 180, for_ever=0.3)

    def is_new(at: AtJenkins, node: Node) -> bool:
        connected = at.connections.get(node.name)
        return is_of(node, pool) and bool(connected) and at.controller.timeline.now < connected[-1] + _LISTENER_SECONDS

    for at in draw.life.jenkins.values():
        draw.while_it_lasts(span, at.silent, lambda _build, node, at=at: is_new(at, node))
        # Jenkins looks at its queue every five seconds; here it does so when something changes, and now.
        at.connected.append(lambda _node, at=at: at.controller.timeline.after(_LISTENER_SECONDS + 1.0, at.controller.schedule))
    words = {"had a free executor for"}
    return draw.make(pool.name, span, touches=draw.life.served_by(pool), delays_seconds=_LISTENER_SECONDS, words=words, comes_and_goes=True)


SWITCHES = {
    "suspended": suspended,
    "refused-by-permission": refused_by_permission,
    "throttled-by-node": throttled_by_node,
    "throttled-for-all": throttled_for_all,
    "throttled-over-folders": throttled_over_folders,
    "marked-by-disk-monitor": marked_by_disk_monitor,
    "marked-by-plugin": marked_by_plugin,
    "zombies": zombies,
    "builds-end-late": builds_end_late,
    "quiet-mode": quiet_mode,
    "login-outage": login_outage,
    "login-page": login_page,
    "page-for-posts": page_for_posts,
    "slow-answers": slow_answers,
    "controller-flaps": controller_flaps,
    "restarts": restarts,
    "late-listeners": late_listeners,
}
