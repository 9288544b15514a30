"""Others who serve the same controllers: a second autoscaler, by mistake, other clouds that are quicker, or for labels that are ignored."""

from dataclasses import replace
from functools import partial
from itertools import count

from autoscaler.domain.facts.fleet import Fleet, Pool
from autoscaler_workbench.fakes.world.jenkins.builds import Build, Kind
from autoscaler_workbench.fakes.world.jenkins.nodes import Node
from support.hostile.drawn import MINUTE
from support.hostile.hooks import AtJenkins
from support.hostile.prepared import IGNORED_JOBS, IGNORED_LABEL
from support.hostile.unkind import Draw, Touches, Unkindness
from support.worlds import a_world_node

# A fleet of another name, or one of the same name in another account.
_OTHERS = (("other", ""), ("other", " in 210987654321/eu-west-1"), ("f", " in 210987654321/eu-west-1"))

_IDLE_SECONDS = 5 * MINUTE  # then another cloud's node goes


def second_autoscaler(draw: Draw) -> Unkindness:
    """Somebody deploys a second autoscaler for the same controller, and takes it away again: it makes, marks and deletes its own nodes."""
    pool, span, life = draw.pool(), draw.span(30, 120), draw.life
    at = life.jenkins[draw.chance.choice(pool.controllers)]
    fleet, home = draw.chance.choice(_OTHERS)
    other = _Other(draw, at, pool, fleet, home)
    life.wanted.others[at.controller.name] = other.fleet
    draw.every((span[0], life.drawn.end_at), MINUTE, lambda: other.acts(until=span[1]))
    strikes = life.instances_of(pool)
    return draw.make(f"{other.name} on {at.controller.name}", span, touches=life.served_by(pool), strikes=strikes)


class _Other:
    """Another autoscaler, as Jenkins shows it: it launches for jobs that wait, and lets go of what is idle by its own mark."""

    def __init__(self, draw: Draw, at: AtJenkins, pool: Pool, fleet: str, home: str) -> None:
        self.draw, self.at, self.pool, self.fleet, self.home = draw, at, pool, fleet, home
        self.name = f"{fleet}{home}"
        self.mark = f"autoscaler:{fleet}:retire:p1"
        self.nodes: dict[str, bool] = {}  # its own, and whether it has marked each
        self.beacon = f"autoscaler-beacon-{fleet}~{pool.name}" if fleet != "f" else ""  # of the same name there is one for both
        self.numbers = count(1)

    def acts(self, until: float) -> None:
        controller, now = self.at.controller, self.draw.life.world.timeline.now
        if controller.up != "up":
            return
        if self.beacon and now < until and self.beacon not in controller.nodes:
            self._add(a_world_node(self.beacon, *sorted(self.pool.labels), self.label, connected=False, survives_reload=True))
        self._let_go(over=now >= until)
        life = self.draw.life
        # While the pool is out of our file, nothing of ours is there twice.
        if (self.nodes or self.beacon in controller.nodes) and self.pool.name in life.fleet.fleet.pools:
            life.wanted.others_there.append(now)
        waiting = [build for build in controller.queue if build.expression and build.expression.matches(self.pool.labels)]
        if now < until and waiting and len(self.nodes) < 3:
            self._launch()
        if now >= until and self.beacon in controller.nodes and not self.nodes:
            controller.delete_node(self.beacon)

    @property
    def label(self) -> str:
        return f"autoscaler-fleet-{self.fleet}"

    def _launch(self) -> None:
        name = f"{self.pool.name}-{0xABC000 + next(self.numbers):017x}"
        described = f"Agent {name} of fleet {self.fleet}, launched by the autoscaler on instance i-{name[-17:]}{self.home}."
        labels = (*sorted(self.pool.labels), self.label)
        facts = {"executors": self.pool.executors, "description": described, "survives_reload": True}
        self._add(a_world_node(name, *labels, connected=False, **facts))
        self.nodes[name] = False
        self.draw.life.world.timeline.after(self.draw.chance.uniform(1, 4) * MINUTE, partial(self._connects, name))

    def _add(self, node: Node) -> None:
        self.at.controller.add_node(node)
        self.draw.bite_unforeseen()

    def _connects(self, name: str) -> None:
        if name in self.at.controller.nodes:
            self.at.controller.connect(name)

    def _let_go(self, *, over: bool) -> None:
        """Mark what is idle, look again, delete it; and note whatever somebody else did to its nodes."""
        controller, wanted = self.at.controller, self.draw.life.wanted
        held = {build.resumes_on or build.node for build in controller.builds if build.ended is None}
        for name in list(self.nodes):
            node, is_marked = controller.nodes.get(name), self.nodes[name]
            if node is None:
                wanted.meddled.append(f"{name} of {self.name} was deleted")
                del self.nodes[name]
                continue
            if is_marked != (node.reason == self.mark and node.temporarily_offline) and node.user != "grace":
                if not (is_marked and "configuration-reloaded" in self.draw.life.switches):  # which brings every node back online
                    wanted.meddled.append(f"{name} of {self.name} is {'not marked' if is_marked else f'marked: {node.reason}'}")
                is_marked = self.nodes[name] = False
            is_idle = name not in held and not node.handed and not node.builds
            if is_idle and is_marked:
                del self.nodes[name]
                controller.delete_node(name)
            elif is_idle and not is_marked and (over or self.draw.chance.random() < 0.2):
                controller.set_offline(name, self.mark, "autoscaler")
                self.nodes[name] = True


def quicker_cloud(draw: Draw) -> Unkindness:
    """A node that Jenkins brings online on demand, or another cloud, takes jobs of a pool once they have waited a minute or two."""
    pool, span, life = draw.pool(), draw.span(30, 150), draw.life
    at, is_on_demand = life.jenkins[draw.chance.choice(pool.controllers)], draw.chance.random() < 0.5
    cloud = _Cloud(draw, at, pool, after_seconds=draw.chance.uniform(1, 2) * MINUTE, is_on_demand=is_on_demand)
    most = draw.chance.choice([1, 2] if is_on_demand else [4, 20])
    draw.at(span[0], partial(cloud.begins, most))
    draw.every((span[0], life.drawn.end_at), MINUTE / 2, lambda: cloud.acts(until=span[1]))
    whom = f"{most} nodes {'on demand' if is_on_demand else 'of a cloud'} for {pool.name}"
    return draw.make(whom, span, touches=life.served_by(pool))


class _Cloud:
    """Nodes with the labels of a pool that come when its jobs wait, and go once they have been idle for five minutes."""

    def __init__(self, draw: Draw, at: AtJenkins, pool: Pool, *, after_seconds: float, is_on_demand: bool) -> None:
        self.draw, self.controller, self.serves = draw, at.controller, draw.life.served_by(pool)
        self.after_seconds, self.is_on_demand, self.pool = after_seconds, is_on_demand, pool
        self.names: list[str] = []

    def begins(self, most: int) -> None:
        self.names = [f"quick-{number}" for number in range(most)]
        if self.is_on_demand:
            for name in self.names:
                self._add(name)

    def acts(self, until: float) -> None:
        now = self.draw.life.world.timeline.now
        if self.controller.up != "up":
            return
        mine = [node for name in self.names if (node := self.controller.nodes.get(name)) and node.connected]
        held = {build.resumes_on or build.node for build in self.controller.builds if build.ended is None}
        for node in mine:
            is_idle = not node.builds and not node.handed and node.name not in held
            if is_idle and (now >= until or now - node.idle_since >= _IDLE_SECONDS):
                self._goes(node)
        missing = self._count_waiting(now) - sum(node.room for node in mine)
        away = [name for name in self.names if name not in self.controller.nodes or not self.controller.nodes[name].connected]
        for name in away[: -(-max(0, missing) // self.pool.executors)] if now < until else ():
            self._comes(name)
        if now >= until:
            for name in away:
                self._is_removed(name)

    def _count_waiting(self, now: float) -> int:
        waiting = (build for build in self.controller.queue if not build.is_taken and build.resumes_on is None and not build.blocked)
        return sum(self.serves(build) and now - build.buildable_at >= self.after_seconds for build in waiting)

    def _comes(self, name: str) -> None:
        if name not in self.controller.nodes:
            self._add(name)
        self.controller.connect(name)
        self.draw.bite_unforeseen()

    def _goes(self, node: Node) -> None:
        self.draw.bite_unforeseen()
        if not self.is_on_demand:
            self.controller.delete_node(node.name)
            return
        self.controller.disconnect(node.name)
        node.cause, node.reason = "hudson.slaves.OfflineCause$IdleOfflineCause", "This agent is offline because it was idle"

    def _is_removed(self, name: str) -> None:
        node = self.controller.nodes.get(name)
        if node is not None and not node.builds:
            self.controller.delete_node(name)

    def _add(self, name: str) -> None:
        labels, executors = sorted(self.pool.labels), self.pool.executors
        cause = "hudson.slaves.OfflineCause$IdleOfflineCause" if self.is_on_demand else None
        self.controller.add_node(a_world_node(name, *labels, connected=False, executors=executors, survives_reload=True, cause=cause))


def labels_ignored(draw: Draw) -> Unkindness:
    """Jobs wait for what another cloud serves, which brings its node late or never; a pool of ours may have their label, too."""
    span, life = draw.span(30, 150), draw.life
    controller = draw.chance.choice(list(life.world.controllers.values()))
    kind, comes = draw.chance.choice(list(Kind)), draw.chance.random() < 0.6

    def submit() -> None:
        if draw.chance.random() < 0.5:
            draw.bite_unforeseen()
            name = f"{IGNORED_JOBS}{draw.chance.randint(1, 3)}"
            controller.submit(name, IGNORED_LABEL, draw.chance.uniform(1, 15) * MINUTE, kind=kind)

    def bring() -> None:
        controller.add_node(a_world_node("mac-1", IGNORED_LABEL, connected=False, survives_reload=True))
        controller.connect("mac-1")
        life.notes.events.append(life.world.timeline.now)

    draw.every(span, 7 * MINUTE, submit)
    _note_begun(draw, _is_ignored)
    if comes:
        draw.at(draw.chance.uniform(span[0], span[1]), bring)
    return draw.make(IGNORED_LABEL, span, touches=_is_ignored, prevents=_is_ignored, hides=_is_ignored, strikes=lambda _instance: True)


def _note_begun(draw: Draw, ignored: Touches) -> None:
    """Jenkins ignores nothing: what it gives an executor of ours to is an event that no promise can foresee."""
    life = draw.life
    for at in life.jenkins.values():
        at.begun.append(lambda build: life.notes.events.append(life.world.timeline.now) if ignored(build) else None)


def _is_ignored(build: Build) -> bool:
    return build.label == IGNORED_LABEL


def label_is_ignored(draw: Draw) -> Unkindness:
    """A person writes the label of a pool into `ignore_labels` while jobs ask for it, and takes it out again."""
    pool, span, life = draw.pool(), draw.span(10, 90), draw.life
    pattern = draw.chance.choice([pool.name, f"{pool.name}*"])

    def ignoring(file: Fleet) -> Fleet:
        return replace(file, ignored_labels=(*file.ignored_labels, pattern))

    def touches(build: Build) -> bool:
        return build.label is not None and ignoring(life.drawn.fleet).ignores(build.label)

    draw.edit_file(span, ignoring)
    draw.bite_where_jobs_wait(span, touches)
    _note_begun(draw, touches)
    # Agents of the pool end meanwhile, so that its other jobs wait for a boot.
    return draw.make(pattern, span, touches=life.served_by(pool), strikes=life.instances_of(pool), hides=touches)


SWITCHES = {
    "second-autoscaler": second_autoscaler,
    "quicker-cloud": quicker_cloud,
    "labels-ignored": labels_ignored,
    "label-is-ignored": label_is_ignored,
}
