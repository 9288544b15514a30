"""The commands by what they are for, and the modules that have them: a module is imported when its command runs, and not before.

The help of all commands is printed within half a second of CPU: what takes long to import (AWS, pydantic, tables) is not needed for it.
"""

from collections.abc import Iterator, MutableMapping
from functools import cache
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

_HERE = "autoscaler_workbench.cli"
# A command's module, and the first sentence of its own help: a test holds both.
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Look": {
        "status": ("operate", "Show what is broken, queue, agents and executors by pool, limits used, holds and overrides."),
        "agents": ("operate", "List every agent: what it does, for how long, and what is unusual about it."),
        "queue": ("operate", "List waiting jobs, the longest wait first, and when each should start."),
        "events": ("operate", "Show the last steps and orders with their reasons, oldest first."),
        "lost": ("operate", "List the builds that were lost with their agents: those that ran again, and those that are left to you."),
        "alarms": ("operate", "Show the alarms that ring, and the runbook of each."),
        "reservations": ("operate", "List who has reserved which agent, until when, and how to get in."),
        "runs": ("run_orders", "List orders of builds, or tell of one; cancel one."),
        "dashboard": (
            "page_commands",
            "Print the URL of the stack's dashboard; for a running demo, draw its dashboard with firing alarms.",
        ),
        "ui": (
            "page_commands",
            "Serve a page of the fleet on this machine: queue, agents, dollars, what was done, alarms, why, and orders.",
        ),
    },
    "Ask": {
        "why": ("operate", "Explain why a job waits, why an agent is kept, or why a pool launches nothing."),
        "plan": ("operate", "Show what both passes would do now and why, without doing it."),
        "eta": ("ask_jobs", "Predict when builds of a job will start and end: those that wait or run, or one that would be queued now."),
        "jobs": (
            "ask_jobs",
            "List how long builds wait and take, how they end, what the next one will take, and how good such predictions were.",
        ),
        "needs": (
            "ask_jobs",
            "List what builds of each job take: memory, processors, GPU; which are heavy, and which never use their GPU.",
        ),
        "costs": ("ask_jobs", "List what jobs cost: their time on agents, and their part of boots, idle and stopped agents."),
    },
    "Act": {
        "hold": ("operate", "Pause scaling for a pool, a controller or the whole fleet; or let the jobs of a label wait."),
        "resume": ("operate", "Lift people's holds, and uncordon what a person or quarantine cordoned there; or close a pool's breaker."),
        "set": ("operate", "Temporarily override a pool's or a team's limits; with no options, restore the fleet file's."),
        "launch": ("operate", "Launch agents, within the limits; exit code 1 where fewer could be launched."),
        "drain": ("operate", "Cordon agents; they finish their builds and are terminated once idle."),
        "reserve": ("operate", "Reserve an agent for one person."),
        "release": ("operate", "End a reservation before its time."),
        "run": (
            "run_orders",
            "Order builds of a job on machines of your choice: once more, on several different ones, or until one succeeds.",
        ),
        "purge": ("operate", "Cancel the queue items that ask for a label, after confirmation."),
        "invoke": ("invoke", "Send a file of events/ to the function in whose folder it is, and print the answer."),
        "end": ("operate", "Terminate an instance whose controller left the fleet file, with whatever runs on it."),
    },
    "Plan ahead": {
        "simulate": ("experiments", "Run a trace in memory: the same decisions as the functions, many times faster than the demo."),
        "tune": (
            "experiments",
            "Propose warm pools, warm executors, minimum agents, sizes and the price of waiting: the settings cheapest over a trace.",
        ),
        "history": ("experiments", "Read a Jenkins' build history as a trace, one request at a time."),
    },
    "Set up": {
        "init": ("init", "Write a first fleet file from a Jenkins, which is only read, or from a few questions."),
        "schema": ("init", "Print the JSON schema of the fleet file, for editors: autoscaler schema > fleet.schema.json."),
        "validate": ("fleet_file", "Check a fleet file."),
        "match": ("fleet_file", "Show which pools serve a label expression, and why the others do not."),
        "doctor": (
            "operate",
            "Check from inside the functions that they can reach and do all they need; exit code 1 where something is wrong.",
        ),
    },
    "Experiment": {
        "demo": ("demo_command", "Play a recorded day: first hours by the real Lambda handlers over HTTP, then all of it in memory."),
        "compare": ("experiments", "Play traces by every policy in the same simulated world, and compare cost and waiting."),
    },
}
_ALL = {name: entry for commands in GROUPS.values() for name, entry in commands.items()}


@cache
def _of_module(module: str) -> TyperGroup:
    """Import a module's commands."""
    app = typer.Typer()
    import_module(f"{_HERE}.{module}").add_commands(app)
    return typer.main.get_group(app)


class _WhenNeeded(MutableMapping[str, Any]):
    """The commands by name, each imported when it is taken."""

    def __getitem__(self, name: str) -> Any:
        return _of_module(_ALL[name][0]).commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_ALL)

    def __len__(self) -> int:
        return len(_ALL)

    def __setitem__(self, name: str, command: Any) -> None:
        raise TypeError(f"{name}: commands are listed in GROUPS")

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"{name}: commands are listed in GROUPS")


class Commands(TyperGroup):
    """All commands. Their list, and the completion of their names, import none of them."""

    def __init__(self, **options: Any) -> None:
        """Make the group that typer asks for."""
        super().__init__(**options)
        self.commands = _WhenNeeded()

    def list_commands(self, _ctx: Any) -> list[str]:
        """Name them in the order of the help."""
        return list(_ALL)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Print the help if nothing was asked for."""
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write plain lines: frames and colours would take longer to import than all else."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        self.format_options(ctx, formatter)

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        """Write the commands by what they are for."""
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, said) for name, (_, said) in commands.items()])

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Complete a command's name."""
        named: dict[str, Any] = {name: TyperCommand(name, help=said) for name, (_, said) in _ALL.items()}
        return TyperGroup(name=self.name, commands=named, params=self.params).shell_complete(ctx, incomplete)
