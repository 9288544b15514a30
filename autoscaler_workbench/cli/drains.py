"""Drains agents: which of them a person means, what becomes of them, and how to keep them."""

from collections.abc import Iterator, Sequence
from typing import Any

import typer

from autoscaler.domain.wording import counted, listed
from autoscaler.errors import TransientError
from autoscaler_workbench.cli import answers
from autoscaler_workbench.cli.request import Request, given
from autoscaler_workbench.cli.terminal import say

_NAMED = 5  # agents; what becomes of more is counted
_HOST = "host"


def whom(nodes: list[str], *, pool: str | None, count: int | None, controller: str | None, fleet: bool) -> dict[str, Any]:
    """Return whom an order is about. A single name with --count is a pool, since no other thing has several agents."""
    if count is not None and pool is None:
        if len(nodes) != 1:
            raise typer.BadParameter("is how many agents of one pool: give --pool, too", param_hint="--count")
        nodes, pool = [], nodes[0]
    named = given(nodes=nodes or None, pool=pool, count=count, controller=controller)
    _check(named, fleet=fleet)
    return {"fleet": True} if fleet else named


def _check(named: dict[str, Any], *, fleet: bool) -> None:
    """Refuse what makes no sense here: refused by the function, it would count as its error."""
    if fleet and named:
        raise typer.BadParameter(f"is the whole fleet; give it alone, without {', '.join(named)}", param_hint="--fleet")
    if "nodes" in named and len(named) > 1:
        raise typer.BadParameter(f"nodes are given alone, without {', '.join(name for name in named if name != 'nodes')}")
    if not fleet and not named:
        raise typer.BadParameter("give what to drain: nodes, --pool or --controller; or --fleet for the whole fleet")


def drain(request: Request, about: dict[str, Any]) -> None:
    """Order a drain, and say what follows."""
    answer = request.order_of("drain", **about)
    steps = [step for step in answer["plan"]["steps"] if step["step"] == "cordon" and step["outcome"] in {"done", "planned"}]
    if steps and not request.as_json:
        for line in what_follows(_agents(request, {step["node"] for step in steps}), about, would=request.dry_run):
            say(line)
    if answers.refused(answer):
        raise typer.Exit(1)


def _agents(request: Request, nodes: set[str]) -> list[dict[str, Any]]:
    """Ask what these agents do. The order is carried out: if nobody answers, the nodes are known all the same."""
    try:
        agents = request.deployed.call("operate", {"action": "agents"})["agents"]
    except TransientError:
        agents = []
    known = [agent for agent in agents if agent["node"] in nodes]
    return known or [{"node": node, "busy": None, "instance_type": ""} for node in sorted(nodes)]


def what_follows(agents: Sequence[dict[str, Any]], about: dict[str, Any], *, would: bool) -> Iterator[str]:
    """Say what becomes of agents that are drained, and how to keep them."""
    if len(agents) <= _NAMED:
        yield from (_of_agent(agent) for agent in agents)
    else:
        idle = sum(agent["busy"] == 0 for agent in agents)
        yield (
            f"{counted(len(agents), 'agent')} take no new builds: {idle} are idle and end within minutes, "
            f"the others once their builds have ended. Hosts stay, drained."
        )
    yield "jobs that wait get other agents meanwhile; to prevent that: autoscaler hold"
    yield f"to keep {'it' if len(agents) == 1 else 'them'}{' then' if would else ''}: {_resume(agents, about)}"


def _of_agent(agent: dict[str, Any]) -> str:
    node = f"{agent['node']} takes no new builds"
    if agent["instance_type"] == _HOST:
        return f"{node}; it is a host, and stays so until a person brings it back"
    end = "it is terminated, with everything on its disk"
    if agent["busy"]:
        jobs = f" ({listed(agent['jobs'])})" if agent["jobs"] else ""
        return f"{node}; once its {counted(agent['busy'], 'build')}{jobs} {'has' if agent['busy'] == 1 else 'have'} ended, {end}"
    return f"{node}; it is idle: within minutes {end}" if agent["busy"] == 0 else f"{node}; once it is idle, {end}"


def _resume(agents: Sequence[dict[str, Any]], about: dict[str, Any]) -> str:
    """Write the command that brings them back."""
    if "fleet" in about:
        return "autoscaler resume --fleet"
    if len(agents) > _NAMED and "nodes" not in about:
        name = "pool" if "pool" in about else "controller"
        return f"autoscaler resume --{name} {about[name]}"
    nodes = " ".join(f"--node {agent['node']}" for agent in agents)
    return f"autoscaler resume {nodes}"
