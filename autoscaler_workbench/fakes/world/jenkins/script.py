"""Scripts of pipelines in the simulated Jenkins: stages, parallel branches, node blocks and the steps in them, one after another.

They write their flow graph as workflow-cps 4018 does (recording pipeline_stage_results_2.504.3). A node block is a `Build`, and what an
executor shows of it changes with the stages inside it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import TypeAlias

from autoscaler_workbench.fakes.world.jenkins.builds import Build, Kind, Started
from autoscaler_workbench.fakes.world.jenkins.controller import Controller
from autoscaler_workbench.fakes.world.jenkins.flow import ABORTED, BLUE, RED, YELLOW, Flow, Graph, Step, color_of

_RETRIED_SECONDS = 10.0  # a step whose agent is away looks again


@dataclass(frozen=True, slots=True)
class Sh:
    """A shell step. ``fails``: it exits with an error; ``unstable``: a report says afterwards that tests have failed."""

    seconds: float
    fails: bool = False
    unstable: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """A step around others. ``what``: stage, node, retry, catchError, timeout; ``name``: of a stage, or a node's label."""

    what: str
    name: str
    steps: tuple["Doing", ...]
    times: int = 1


@dataclass(frozen=True, slots=True)
class Parallel:
    """Branches at once."""

    branches: Mapping[str, tuple["Doing", ...]]


Doing: TypeAlias = Sh | Block | Parallel
Done: TypeAlias = Callable[[Step, str], None]  # with the last step, and its colour


def stage(name: str, *steps: Doing) -> Block:
    """``stage(name) {}``."""
    return Block("stage", name, steps)


def node(label: str, *steps: Doing) -> Block:
    """``node(label) {}``."""
    return Block("node", label, steps)


def retry(times: int, *steps: Doing) -> Block:
    """``retry(times) {}``."""
    return Block("retry", "", steps, times)


def catch_error(*steps: Doing) -> Block:
    """``catchError {}``."""
    return Block("catchError", "", steps)


def timeout(*steps: Doing) -> Block:
    """``timeout {}`` whose time is not up."""
    return Block("timeout", "", steps)


_NAMES = {
    "stage": "Stage",
    "node": "Allocate node",
    "retry": "Retry the body up to N times",
    "catchError": "Catch error and set build result to failure",
    "timeout": "Enforce time limit",
}


@dataclass(frozen=True, slots=True)
class _Place:
    """The position of a step: the name of the enclosing branch or stage, and the node blocks around it, innermost last."""

    label: str = ""
    blocks: tuple[Build, ...] = ()


@dataclass(eq=False, slots=True)
class _Run:
    """A run of a script. ``open``: shell steps that go on, by number, with their node block and what is called when that is ended."""

    controller: Controller
    job: str
    number: int
    by: Started
    flow: Flow = field(default_factory=Flow)
    open: dict[int, tuple[Build, Callable[[str], None]]] = field(default_factory=dict)

    @property
    def graph(self) -> Graph:
        """Its graph so far."""
        return self.flow.graph

    def run_all(self, steps: tuple[Doing, ...], after: Step, place: _Place, done: Done) -> None:
        """Run steps one after another, until one fails."""
        if not steps:
            done(after, BLUE)
            return

        def go_on(last: Step, color: str) -> None:
            if color != BLUE:
                done(last, color)
            else:
                self.run_all(steps[1:], last, place, done)

        self._run(steps[0], after, place, go_on)

    def _run(self, doing: Doing, after: Step, place: _Place, done: Done) -> None:
        self._show(place)
        if isinstance(doing, Sh):
            self._sh(doing, after, place, done)
        elif isinstance(doing, Parallel):
            self._parallel(doing, after, place, done)
        elif doing.what == "node":
            self._node(doing, after, place, done)
        else:
            self._around(doing, after, place, done)

    def _show(self, place: _Place) -> None:
        """Show on each executor around a step the name that encloses it."""
        for build in place.blocks:
            build.stage = place.label

    def _sh(self, doing: Sh, after: Step, place: _Place, done: Done) -> None:
        step = self.graph.add("StepAtomNode", "Shell Script", (after,))
        build = place.blocks[-1]
        build.sh_at = self.controller.timeline.now
        self.open[step.id] = build, partial(self._step_ends, step, done)
        self.controller.timeline.after(doing.seconds, lambda: self._sh_ends(doing, step, build, done))

    def _sh_ends(self, doing: Sh, step: Step, build: Build, done: Done) -> None:
        if step.id not in self.open:
            return
        ran_on = self.controller.nodes.get(build.node or "")
        if ran_on is None or not ran_on.connected or ran_on.builds.get(build.executor) is not build:
            self.controller.timeline.after(_RETRIED_SECONDS, lambda: self._sh_ends(doing, step, build, done))
            return
        del self.open[step.id]
        fails = doing.fails or ran_on.fails_builds
        if doing.unstable and not fails:
            report = self.graph.add("StepAtomNode", "Archive JUnit-formatted test results", (step,))
            report.color = YELLOW
            done(report, BLUE)
        else:
            self._step_ends(step, done, RED if fails else BLUE)

    @staticmethod
    def _step_ends(step: Step, done: Done, color: str) -> None:
        step.color = color
        done(step, color)

    def _around(self, doing: Block, after: Step, place: _Place, done: Done) -> None:
        name = _NAMES[doing.what]
        start = self.graph.begin(f"{name} : Start", after)
        inside = _Place(doing.name, place.blocks) if doing.what == "stage" else place

        def attempt(head: Step, left: int) -> None:
            body = self.graph.begin(doing.name if doing.what == "stage" else f"{name} : Body : Start", head)

            def body_done(last: Step, color: str) -> None:
                end = self.graph.end(body, f"{name} : Body : End", (last,), color)
                if color == RED and left > 1:
                    attempt(end, left - 1)
                    return
                left_as = BLUE if doing.what == "catchError" and color == RED else color
                self._show(place)
                done(self.graph.end(start, f"{name} : End", (end,), left_as), left_as)

            self.run_all(doing.steps, body, inside, body_done)

        attempt(start, doing.times)

    def _parallel(self, doing: Parallel, after: Step, place: _Place, done: Done) -> None:
        start = self.graph.begin("Execute in parallel : Start", after)
        self.graph.heads += len(doing.branches) - 1
        heads = {name: self.graph.begin(f"Branch: {name}", start) for name in doing.branches}
        ends: dict[str, tuple[Step, str]] = {}

        def branch_done(name: str, last: Step, color: str) -> None:
            ends[name] = self.graph.end(heads[name], "Execute in parallel : Body : End", (last,), color), color
            if len(ends) == len(heads):
                colors = {color for _, color in ends.values()}
                worst = next((color for color in (RED, ABORTED) if color in colors), BLUE)
                joined = [ends[name][0] for name in doing.branches]
                self._show(place)
                done(self.graph.end(start, "Execute in parallel : End", joined, worst), worst)

        for name, steps in doing.branches.items():
            self.run_all(steps, heads[name], _Place(name, place.blocks), partial(branch_done, name))

    def _node(self, doing: Block, after: Step, place: _Place, done: Done) -> None:
        """Ask for a node, as an item of the queue; the steps begin with the build."""
        start = self.graph.begin("Allocate node : Start", after)
        controller = self.controller
        build = controller.submit(self.job, doing.name, inf, kind=Kind.PIPELINE, number=self.number, started_with=self.by)
        build.stage, build.flow = place.label, self.flow
        inside, bodies = _Place(place.label, (*place.blocks, build)), list[Step]()
        lasts: list[tuple[Step, str]] = []

        def begins() -> None:
            start.node = build.node or ""
            bodies.append(self.graph.begin("Allocate node : Body : Start", start))
            self.run_all(doing.steps, bodies[0], inside, body_done)

        def body_done(last: Step, color: str) -> None:
            lasts.append((last, color))
            if build.ended is None:
                build.fails = color != BLUE
                controller.finish(build)

        def ends(_build: Build) -> None:
            if bodies and not lasts:
                self._break(build, color_of(build))
            last, color = lasts[0] if lasts else (start, color_of(build))
            if bodies:
                last = self.graph.end(bodies[0], "Allocate node : Body : End", (last,), color)
            done(self.graph.end(start, "Allocate node : End", (last,), color), color)

        build.body, build.on_end = begins, ends

    def _break(self, build: Build, color: str) -> None:
        """End the steps that go on in a node block which was ended from outside."""
        for number in [number for number, (of, _) in self.open.items() if of is build]:
            _, ends = self.open.pop(number)
            ends(color)

    def end(self, last: Step, color: str) -> None:
        """End the run."""
        step = self.graph.end(self.graph.steps[0], "End of Pipeline", (last,), color)
        step.kind, step.running = "FlowEndNode", False
        self.flow.result = {BLUE: "SUCCESS", ABORTED: "ABORTED"}.get(color, "FAILURE")
        self.flow.ended_at = self.controller.timeline.now


def submit_script(controller: Controller, job: str, *steps: Doing, by: Started | None = None) -> Flow:
    """Begin a run of a script."""
    run = _Run(controller, job, controller.next_number(job), by or Started())
    start = run.graph.add("FlowStartNode", "Start of Pipeline", ())
    run.run_all(steps, start, _Place(), run.end)
    return run.flow
