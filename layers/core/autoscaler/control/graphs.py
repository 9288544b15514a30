"""Reads the flow graphs of runs whose node blocks have left their executors. Who has no pipelines is asked for none."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from autoscaler.domain.facts.runs import Graphs, RunGraph
from autoscaler.errors import AutoscalerError, NoAnswerError
from autoscaler.ports import Controller, Ports

# In one look at one controller. What is left is read in the next one.
MOST_REQUESTS, MOST_BYTES = 20, 200_000
# Of one run, a request each.
MOST_NODES = 5
# Of one run: a larger one is not read. A step takes some 160 bytes, more if its name is long.
MOST_STEPS, _BYTES_OF_A_STEP = 1000, 200


def read_graphs(ports: Ports, controller: Controller, runs: Iterable[str], until: float, unseen: Collection[str] = ()) -> Graphs:
    """Read the graphs of these runs in this order, as many as fit in the bounds.

    ``unseen``: runs whose blocks may have come and gone between two looks. The nodes of these are read, too, those that ended last first.
    """
    read: dict[str, RunGraph | None] = {}
    failed: set[str] = set()
    size = requests = 0
    for run in dict.fromkeys((*unseen, *runs)):
        steps = min(MOST_STEPS, (MOST_BYTES - size) // _BYTES_OF_A_STEP)
        if steps <= 0 or ports.clock() >= until or requests >= MOST_REQUESTS:
            break
        requests += 1
        try:
            graph = controller.graph(run, steps)
            if graph is not None and run in unseen:
                graph = _with_nodes(controller, run, graph)
                requests += MOST_NODES
        except AutoscalerError as error:
            ports.log("graph_not_read", controller=controller.name, run=run, error=f"{type(error).__name__}: {error}")
            failed.add(run)
            if isinstance(error, NoAnswerError):
                break
            continue
        if graph is not None:
            size += graph.size
            graph = replace(graph, too_large=graph.cut and steps == MOST_STEPS)
        read[run] = graph
    if read:
        ports.log("graphs_read", controller=controller.name, runs=len(read), bytes=size)
    return Graphs(read=read, failed=frozenset(failed))


def _with_nodes(controller: Controller, run: str, graph: RunGraph) -> RunGraph:
    """Read on which nodes the last blocks of a run ran that have ended."""
    ended = sorted((block for block in graph.blocks if block.end), key=lambda block: -block.ended_as)[:MOST_NODES]
    nodes = {block.asked_as: controller.node_of_block(run, block.asked_as) for block in ended}
    return replace(graph, blocks=tuple(replace(block, node=nodes.get(block.asked_as, "")) for block in graph.blocks))
