"""Flow graphs of the simulated Jenkins: the steps of a run, numbered as they begin, as workflow-cps keeps them.

A run of a script writes its graph while it goes. A run without one, such as those of traces, has one node block for each build, and its
graph follows from these.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from autoscaler_workbench.fakes.world.jenkins.builds import Build, Ended

BLUE, RED, ABORTED, YELLOW = "blue", "red", "aborted", "yellow"
_FIRST_ID = 2  # of the start of a pipeline
_ALLOCATE, _PARALLEL = "Allocate node", "Execute in parallel"


@dataclass(eq=False, slots=True, kw_only=True)
class Step:
    """One node of a graph. ``kind``: FlowStartNode, StepStartNode, StepAtomNode, StepEndNode, FlowEndNode."""

    id: int
    kind: str
    name: str
    parents: tuple[int, ...]
    color: str = BLUE
    running: bool = True
    node: str = ""  # that it got, if it asked for one


@dataclass(eq=False, slots=True)
class Graph:
    """The graph of one run. ``heads``: branches beyond the first, each of which takes a number (FlowHead)."""

    steps: list[Step] = field(default_factory=list)
    heads: int = 0

    def add(self, kind: str, name: str, parents: Iterable[Step], color: str = BLUE) -> Step:
        """Add a step behind its parents, of which those that only led to it run no longer."""
        before = list(parents)
        for parent in before:
            parent.running = parent.running and parent.kind.endswith("StartNode")
        ids = tuple(parent.id for parent in before)
        step = Step(id=_FIRST_ID + self.heads + len(self.steps), kind=kind, name=name, parents=ids, color=color)
        self.steps.append(step)
        return step

    def begin(self, name: str, parent: Step) -> Step:
        """Begin a block."""
        return self.add("StepStartNode", name, (parent,))

    def end(self, start: Step, name: str, parents: Iterable[Step], color: str) -> Step:
        """End a block."""
        step = self.add("StepEndNode", name, parents, color)
        start.running = False
        return step


@dataclass(eq=False, slots=True)
class Flow:
    """How a run of a script goes: its graph so far, and how and when it ended."""

    graph: Graph = field(default_factory=Graph)
    result: str | None = None
    ended_at: float | None = None


def graph_of(builds: list[Build]) -> Graph:
    """Return the graph of a run. If the run has no script, each of its builds is a node block, in a branch if it has a name."""
    if builds[0].flow is not None:
        return builds[0].flow.graph
    graph = Graph()
    start = graph.add("FlowStartNode", "Start of Pipeline", ())
    named = any(build.stage for build in builds)
    root = graph.begin(f"{_PARALLEL} : Start", start) if named else start
    blocks: dict[int, list[Step]] = {}
    for _, _, number, what in sorted(_moments(builds)):
        build = builds[number]
        if what == "asks":
            before = graph.begin(f"Branch: {build.stage}", root) if build.stage else root
            blocks[number] = [before, graph.begin(f"{_ALLOCATE} : Start", before)]
        elif what == "begins":
            blocks[number][-1].node = str(build.node)
            body = graph.begin(f"{_ALLOCATE} : Body : Start", blocks[number][-1])
            step = "Wait for interactive input" if build.waits_for_input else "Shell Script"
            blocks[number] += [body, graph.add("StepAtomNode", step, (body,))]
        else:
            _end_block(graph, blocks[number], build)
    if all(build.ended is not None for build in builds):
        _end_run(graph, builds, [steps[-1] for steps in blocks.values()])
    return graph


def _moments(builds: list[Build]) -> Iterator[tuple[float, int, int, str]]:
    """What happened to each build, and when."""
    for number, build in enumerate(builds):
        yield build.queued_at, 0, number, "asks"
        if build.started_at is not None:
            yield build.started_at, 1, number, "begins"
        if build.ended_at is not None:
            yield build.ended_at, 2, number, "ends"


def _end_block(graph: Graph, steps: list[Step], build: Build) -> None:
    color, last = color_of(build), steps[-1]
    if build.started_at is not None:
        last.color = color
        last = graph.end(steps[2], f"{_ALLOCATE} : Body : End", (last,), color)
    last = graph.end(steps[1], f"{_ALLOCATE} : End", (last,), color)
    if build.stage:
        last = graph.end(steps[0], f"{_PARALLEL} : Body : End", (last,), color)
    steps.append(last)


def _end_run(graph: Graph, builds: list[Build], heads: list[Step]) -> None:
    color = next((color for color in (RED, ABORTED) if color in {color_of(build) for build in builds}), BLUE)
    if any(build.stage for build in builds):
        heads = [graph.end(graph.steps[1], f"{_PARALLEL} : End", heads, color)]
    graph.end(graph.steps[0], "End of Pipeline", heads[-1:], color).kind = "FlowEndNode"
    graph.steps[-1].running = False


def color_of(build: Build) -> str:
    """The colour of a node block that has ended."""
    if build.ended is Ended.ABORTED or build.stopped_by is not None:
        return ABORTED
    return BLUE if build.succeeded else RED
