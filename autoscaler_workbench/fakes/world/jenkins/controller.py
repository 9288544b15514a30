"""The simulated Jenkins controller: queue, executors, exclusive nodes, offline marks, restarts, quiet-down."""

import zlib
from collections.abc import Callable, Collection
from itertools import count
from random import Random

from autoscaler.domain.labels import LabelExpression
from autoscaler_workbench.fakes.world.jenkins import deleted, restarts
from autoscaler_workbench.fakes.world.jenkins.builds import Build, Ended, Kind, Started, Stopper
from autoscaler_workbench.fakes.world.jenkins.handing import CURRENT_VERSION, DROPS_BUILDS, drop, hand_over
from autoscaler_workbench.fakes.world.jenkins.heavy import fits, leave, nothing_is_free, take
from autoscaler_workbench.fakes.world.jenkins.monitoring import NodeMonitor, came_online
from autoscaler_workbench.fakes.world.jenkins.nodes import Monitors, Node
from autoscaler_workbench.fakes.world.physics import CALM, NodeChoice, Physics
from autoscaler_workbench.fakes.world.timeline import Timeline

# Measured on 2.504.3: a restart answers 503 for some seconds, then 200 with agents offline, which return after 6-7 s.
_DOWN_SECONDS, _STARTING_SECONDS, _RECONNECT_SECONDS = 3.0, 2.5, 6.5
# While a controller answers nobody, and has not restarted: then what it was about to do comes later.
_TRIED_AGAIN_SECONDS = 5.0
_BY_NOBODY = Started()
Veto = Callable[[Build, Node], str | None]


class Controller:
    """One controller: its queue, builds and nodes, through restarts."""

    def __init__(self, name: str, timeline: Timeline, physics: Physics = CALM) -> None:
        """Begin without nodes or jobs."""
        self.name = name
        self.timeline = timeline
        self._physics = physics
        self._round_is_due = False
        self.nodes: dict[str, Node] = {}
        self.gone = deleted.Gone()  # nodes that were deleted under pipelines
        self.queue: list[Build] = []  # next first
        self.builds, self.items = list[Build](), dict[int, Build]()  # items: by their number in the queue
        self.runs: dict[str, list[Build]] = {}  # the builds of each run, by its path
        self.builds_of, self.defined = dict[str, list[Build]](), set[str]()  # by job; jobs at the top that are there before any build
        self.monitors = Monitors(since_at=0.0)  # of the built-in node
        self.node_monitors: list[NodeMonitor] = []  # that take nodes offline
        self.on_delete: Callable[[str], None] = lambda _node: None  # its agent's connection ends
        self.begins: Callable[[Build, Callable[[], None]], None] = lambda _build, begin: begin()  # it may wait for a card
        self.has_ended: Callable[[Build], None] = lambda _build: None
        self.on_add: Callable[[str], None] = lambda _node: None  # an agent that tries that name connects
        self.quieting_down = False
        self.quiet_reason: str | None = None
        self.up, self.up_since = "up", 0.0  # up, starting, down
        self._sessions = 1
        self.version, self.handing_seconds = CURRENT_VERSION, 0.0  # from the choice of an executor until it begins
        self._resuming: list[Build] = []  # pipelines that a restart has taken from their executors and not yet put into the queue
        self._lost: set[str] = set()  # nodes whose agent went away, and has not come back
        self.tells_in_progress = True  # of a run; an old Jenkins does not
        self.heavy: dict[str, int] = {}  # weights of jobs, by the Heavy Job plugin
        self.veto: Veto | None = None  # of a plugin, node by node: why this one does not take that build
        self.ids = count(1)  # of queue items
        self._numbers: dict[str, int] = {}
        # The nodes of each label expression that was asked for, by its name, in the order in which they were added.
        self._matching: dict[str, tuple[LabelExpression | None, list[Node]]] = {}

    @property
    def session(self) -> str:
        """The X-Jenkins-Session of this life."""
        return f"{zlib.crc32(f'{self.name}/{self._sessions}'.encode()):08x}"

    # Jobs

    def submit(  # noqa: PLR0913 - what a job has
        self,
        job: str,
        label: str | None,
        seconds: float,
        *,
        kind: Kind = Kind.FREESTYLE,
        number: int | None = None,
        quiet_seconds: float = 0.0,
        on_end: Callable[[Build], None] | None = None,
        started_with: Started = _BY_NOBODY,
    ) -> Build:
        """Queue one build. ``number``: of the run it is a part of; else the job's next."""
        build = Build(
            id=next(self.ids),
            controller=self.name,
            kind=kind,
            job=job,
            number=self.next_number(job) if number is None else number,
            label=label,
            seconds=seconds,
            queued_at=self.timeline.now,
            buildable_at=self.timeline.now + quiet_seconds,
            on_end=on_end,
            started_with=started_with,
        )
        self.note(build)
        self.queue.append(build)
        self.timeline.after(quiet_seconds, self.schedule)
        return build

    def next_number(self, job: str) -> int:
        """Give a job's next build its number."""
        self._numbers[job] = self._numbers.get(job, 0) + 1
        return self._numbers[job]

    def note(self, build: Build) -> None:
        """Keep a build, by its run and its job; a configuration of a matrix is a job of its own."""
        self.builds.append(build)
        self.items |= {item: build for item in (build.id, build.run_item) if item is not None}
        self.runs.setdefault(build.run_path, []).append(build)
        self.builds_of.setdefault("/".join(filter(None, (build.job, build.configuration))), []).append(build)

    def finish(self, build: Build) -> None:
        """End a build whose script is done."""
        self._end(build, Ended.FINISHED)

    def end(self, build: Build, *, succeeded: bool) -> None:
        """End a build that has no executor of its own, such as a matrix whose parts have ended."""
        self._end(build, Ended.FINISHED)
        build.succeeded = succeeded

    def kill(self, build: Build) -> None:
        """End a build that lost what it ran on, or was to run on."""
        self._end(build, Ended.KILLED)

    def end_by_restart(self, build: Build) -> None:
        """End a build with the process of Jenkins."""
        self._end(build, Ended.RESTARTED)

    def forget(self, job: str) -> None:
        """Forget a job that was deleted, with its builds: one of the same name begins anew."""
        for build in self.builds_of.pop(job, []):
            self.runs.pop(build.run_path, None)
        self._numbers.pop(job, None)

    def abort(self, build: Build, by: Stopper = Stopper.PERSON) -> None:
        """Stop a build, or take it from the queue, as a person does it."""
        for waiting in (self.queue, self._resuming):
            if build in waiting:
                waiting.remove(build)
        if build.ended is None:
            build.stopped_by = by
            self._end(build, Ended.ABORTED)

    def schedule(self) -> None:
        """Hand out executors, in queue order, as soon as Jenkins comes to it."""
        if not self._physics.scheduling_seconds:
            self._hand_out()
        elif not self._round_is_due:
            self._round_is_due = True
            self.timeline.after(self._physics.scheduling_seconds, self._late_round)

    def _late_round(self) -> None:
        self._round_is_due = False
        self._hand_out()

    def _hand_out(self) -> None:
        if self.up != "up":
            return
        taken: set[str] = set()  # labels of which no executor is free in this round
        for build in list(self.queue):
            if build.resumes_on is not None:
                self._resume(build)
            elif build.is_taken or build.asks_for in taken:
                continue  # it began while an earlier one of this round ended, or cannot begin
            elif not self.quieting_down and not build.blocked and build.buildable_at <= self.timeline.now:
                node = self._taker(build)
                if node is not None:
                    (hand_over if self.handing_seconds else type(self).begin)(self, build, node)
                elif nothing_is_free(self, build):
                    taken.add(build.asks_for)

    def matching(self, build: Build) -> list[Node]:
        """The nodes whose labels satisfy a build, whatever their state."""
        if build.resumes_on is not None:
            return [self.nodes[build.resumes_on]] if build.resumes_on in self.nodes else []
        if build.asks_for not in self._matching:
            self._matching[build.asks_for] = build.expression, [node for node in self.nodes.values() if node.serves(build.expression)]
        return self._matching[build.asks_for][1]

    def free_for(self, build: Build) -> list[Node]:
        """The matching nodes that have an idle executor."""
        return [node for node in self.matching(build) if fits(self, build, node) and not node.offline]

    # Nodes

    def add_node(self, node: Node) -> None:
        """Create a node; it waits for its agent."""
        self.nodes[node.name] = node
        deleted.take_over(self, node)
        if node.connected and node.monitors.since_at is None:
            node.monitors.since_at = 0.0  # it was there before this world began
        for expression, matching in self._matching.values():
            if node.serves(expression):
                matching.append(node)
        self.on_add(node.name)

    def connect(self, name: str) -> None:
        """Let a node's agent connect; a pipeline whose machine was stopped finds nothing of its own there, and ends."""
        node = self.nodes.get(name)
        if node is None or self.up != "up":
            return
        node.connected, node.idle_since, node.away_since = True, self.timeline.now, None
        if node.monitors.since_at is None:
            node.monitors.since_at = self.timeline.now
        self._lost.discard(name)
        if not node.temporarily_offline:
            node.cause, node.reason = None, ""
        for build in [build for build in node.builds.values() if build.lost_its_machine]:
            self._end(build, Ended.KILLED)
        came_online(self, name)
        self.schedule()

    def disconnect(self, name: str, *, killed_by: str = "") -> None:
        """Lose a node's agent: freestyle builds end at once, pipelines whose `sh` has begun stay on their executor and wait for it."""
        node = self.nodes.get(name)
        if node is None:
            return
        node.connected = False
        self._lost.add(name)
        if not node.temporarily_offline:
            node.cause, node.reason = "hudson.slaves.OfflineCause$ChannelTermination", "Connection was broken"
            node.cause_at = self.timeline.now
        resuming = (build for build in self._resuming if build.node == name)
        bound = [*node.builds.values(), *resuming, *(build for build in self.queue if build.resumes_on == name)]
        for build in bound:
            build.killed_by = killed_by or build.killed_by
        for build in list(node.builds.values()):
            if build.kind is Kind.FREESTYLE:
                self._end(build, Ended.KILLED)
        deleted.goes_away(self, node)

    def set_offline(self, name: str, reason: str, user: str) -> None:
        """Mark a node temporarily offline, over whatever mark there is."""
        node = self.nodes[name]
        if self.version == DROPS_BUILDS:
            for build in [build for build in node.builds.values() if build.started_at == self.timeline.now]:
                drop(self, build, node)
        node.temporarily_offline, node.reason, node.user = True, reason, user
        node.cause = "hudson.slaves.OfflineCause$UserCause"

    def toggle(self, name: str, reason: str, user: str) -> None:
        """Turn a node's mark around."""
        if not self.nodes[name].temporarily_offline:
            self.set_offline(name, reason, user)
            return
        self.nodes[name].clear_mark()
        self.schedule()

    def configure(self, name: str, labels: tuple[str, ...], *, exclusive: bool, executors: int) -> None:
        """Give a node other labels, mode and executors. What Jenkins keeps in the same file goes: a mark that was set meanwhile."""
        node = self.nodes[name]
        node.labels, node.exclusive, node.executors = labels, exclusive, executors
        node.most_executors = max(node.most_executors, executors)
        node.temporarily_offline = False
        node.reason, node.cause = ("", None) if node.connected else (node.reason, node.cause)
        self._matching.clear()
        self.schedule()

    def reload_configuration_as_code(self) -> None:
        """Load a YAML with ``jenkins.nodes`` again: what it does not name and may not keep is deleted, and marks are dropped."""
        for node in [node for node in self.nodes.values() if not node.survives_reload]:
            self.delete_node(node.name)
        for node in self.nodes.values():
            node.clear_mark()
        self.schedule()

    def delete_node(self, name: str) -> None:
        """Delete a node: freestyle builds on it end at once, pipelines five minutes later. If it is deleted already: its computer."""
        deleted.delete(self, name)

    def computer(self, name: str | None) -> Node | None:
        """Return the node of this name, also a deleted one that is still listed."""
        return self.nodes.get(name or "") or self.gone.computers.get(name or "")

    @property
    def matches(self) -> Collection[tuple[LabelExpression | None, list[Node]]]:
        """The nodes of each label expression that was asked for."""
        return self._matching.values()

    # The controller itself

    def quiet_down(self, reason: str | None = None) -> None:
        """Take no new builds."""
        self.quieting_down, self.quiet_reason = True, reason

    def cancel_quiet_down(self) -> None:
        """Take builds again."""
        self.quieting_down, self.quiet_reason = False, None
        self.schedule()

    def restart(self, *, by_force: bool = False) -> None:
        """Go down and come back as recorded: freestyle builds end, pipelines wait as queue items for their own nodes."""
        self.up = "down"  # first of all: what ends below must not make room for a build that begins
        connected = [node.name for node in self.nodes.values() if node.connected]
        self._resuming += restarts.go_down(self, by_force=by_force)
        self.timeline.after(_DOWN_SECONDS, lambda: self._set_up("starting"))
        self.timeline.after(_DOWN_SECONDS + _STARTING_SECONDS, lambda: self._come_back(connected))

    # How it goes

    def _set_up(self, state: str) -> None:
        self.up = state

    def _come_back(self, connected: list[str]) -> None:
        self.up, self.quieting_down, self.quiet_reason = "up", False, None
        self._sessions += 1
        self.monitors.since_at = self.up_since = self.timeline.now
        for node in self.nodes.values():
            node.monitors.since_at = None

        for build in self._resuming:
            chance = Random(f"{self.session}/{build.id}")  # noqa: S311 - a simulation's chance
            self._requeue_after(self._physics.resumes_in_seconds(chance), build, self._sessions)
        for name in connected:
            self.timeline.after(_RECONNECT_SECONDS, lambda name=name: self._reconnect(name))  # type: ignore[misc]

    def _requeue_after(self, seconds: float, build: Build, session: int) -> None:
        self.timeline.after(seconds, lambda: self._requeue(build, session))

    def _requeue(self, build: Build, session: int) -> None:
        """Let a pipeline that was loaded again wait for its node, unless another restart loads it anew."""
        if session != self._sessions or build not in self._resuming:
            return
        if self.up != "up":
            self._requeue_after(_TRIED_AGAIN_SECONDS, build, session)
            return
        self._resuming.remove(build)
        if build.ended is not None:  # it ended meanwhile: nothing of it waits for a node
            return
        build.resumes_on = build.node
        build.buildable_at = self.timeline.now
        self.queue.insert(0, build)
        if build.node not in self.nodes:
            deleted.loses_node(self, build)
        self.schedule()

    def _reconnect(self, name: str) -> None:
        if name not in self._lost:  # an agent that ended while the controller was away does not come back
            self.connect(name)

    def _resume(self, build: Build) -> None:
        node = self.nodes.get(build.resumes_on or "")
        if node is None or node.offline:
            return
        self.queue.remove(build)
        build.resumes_on = None
        self._place(build, node)
        if build.lost_its_machine:
            self._end(build, Ended.KILLED)
        elif self.timeline.now >= build.done_at:
            self._end(build, Ended.FINISHED)

    def _taker(self, build: Build) -> Node | None:
        takers = [n for n in self.free_for(build) if not self.veto or self.veto(build, n) is None]
        if self._physics.node_choice is NodeChoice.LEAST_LOADED:
            return max(takers, key=lambda node: node.executors - len(node.builds), default=None)
        # Consistent hashing by job, roughly as Jenkins' load balancer: the same job tends to the same node.
        return min(takers, key=lambda node: zlib.crc32(f"{build.job}/{node.name}".encode()), default=None)

    def begin(self, build: Build, node: Node) -> None:
        """Begin a build on a node."""
        self.queue.remove(build)
        build.started_at = self.timeline.now
        self._place(build, node)
        self.begins(build, build.body or (lambda: self.timeline.after(build.seconds, lambda: self._finish(build))))

    def finish_later(self, build: Build) -> None:
        """Let a build end when its work is done, whatever has become of an earlier end."""
        self.timeline.after(max(0.0, build.done_at - self.timeline.now), lambda: self._finish(build))

    def _place(self, build: Build, node: Node) -> None:
        # What resumes may find its executor taken by another build: it then runs beside the node's own executors.
        build.executor = next(number for number in count() if number not in node.builds and number not in node.subtasks)
        build.node = node.name
        node.builds[build.executor] = build
        take(self, build, node)

    def _finish(self, build: Build) -> None:
        node = self.nodes.get(build.node or "")
        attached = node is not None and node.builds.get(build.executor) is build
        if build.ended is None and attached and node is not None and node.connected:
            self._end(build, Ended.FINISHED)
        elif build.ended is None and build.resumes_on is None and node is not None and attached:
            # The agent is not connected; the pipeline learns of the end when it is back.
            self.timeline.after(30.0, lambda: self._finish(build))

    def _end(self, build: Build, how: Ended) -> None:
        if build.ended is not None:
            return  # its executor shows it still
        build.ended, build.ended_at = how, self.timeline.now
        node = self.computer(build.node)
        build.succeeded = how is Ended.FINISHED and not build.fails and not (node is not None and node.fails_builds)
        if node is not None and node.builds.get(build.executor) is build and not build.stays_on_executor:
            del node.builds[build.executor]
            leave(build, node)
            node.idle_since = self.timeline.now
            deleted.leave_computer(self, node)
        self.has_ended(build)
        if build.on_end:
            build.on_end(build)
        self.schedule()
