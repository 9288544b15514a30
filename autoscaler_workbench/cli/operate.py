"""Commands that ask the deployed functions: see the state of the fleet, take over by hand. They need no right but to invoke."""

import sys
from getpass import getuser
from typing import Annotated, Any

import typer

from autoscaler.errors import ConfigError, TransientError
from autoscaler_workbench.cli import answers, completion, drains
from autoscaler_workbench.cli.alarms import of_published, of_stack, print_alarms
from autoscaler_workbench.cli.answers import LOST_BUILDS
from autoscaler_workbench.cli.order_options import (
    ControllerOption,
    FleetOption,
    LabelOption,
    Minutes,
    PoolArgument,
    PoolOption,
    TeamOption,
    Watch,
)
from autoscaler_workbench.cli.prices import Yes, confirm, usd_per_hour
from autoscaler_workbench.cli.remote import DeniedError
from autoscaler_workbench.cli.request import WHERE, Request, asking, given, new_id, ordering, with_request
from autoscaler_workbench.cli.reservations import print_reservations
from autoscaler_workbench.cli.tables import for_people
from autoscaler_workbench.cli.terminal import plain, say


def add_commands(app: typer.Typer) -> None:
    """Add them to the command line."""
    questions = (status, agents, queue, events, lost, alarms, plan, why, reservations)
    for command in (*questions, hold, resume, set_, launch, drain, reserve, release, end, purge, doctor):
        app.command(command.__name__.rstrip("_"))(command)


@asking
def status(request: Request, watch: Watch = False) -> None:
    """Show what is broken, queue, agents and executors by pool, limits used, holds and overrides."""
    request.ask(answers.print_status, watch=watch, action="status")


@asking
def agents(
    request: Request,
    wide: Annotated[bool, typer.Option("--wide", help="Also show age, type and price.")] = False,
    watch: Watch = False,
) -> None:
    """List every agent: what it does, for how long, and what is unusual about it."""
    request.ask(answers.print_agents_wide if wide else answers.print_agents, watch=watch, action="agents")


@asking
def queue(request: Request, watch: Watch = False) -> None:
    """List waiting jobs, the longest wait first, and when each should start."""
    request.ask(answers.print_queue, watch=watch, action="queue")


@asking
def alarms(request: Request, all_: Annotated[bool, typer.Option("--all", help="Those that do not ring, too.")] = False) -> None:
    """Show the alarms that ring, and the runbook of each. Needs the right cloudwatch:DescribeAlarms."""
    found = of_stack(request.deployed) if request.local is None else of_published(request.deployed.published())
    shown = [alarm for alarm in found if all_ or alarm.rings]
    if not shown and for_people() and not request.as_json:
        say(f"none of {len(found)} alarms rings")
        return
    request.show({"alarms": [alarm.as_json() for alarm in shown]}, lambda _: print_alarms(shown))


@asking
def plan(request: Request) -> None:
    """Show what both passes would do now and why, without doing it."""
    request.ask(answers.print_whole_plan, watch=False, action="plan")


@asking
def why(
    request: Request,
    subject: Annotated[
        str,
        typer.Argument(
            help="A job (its name or URL, or a part of it), a node, an instance id or a pool.", autocompletion=completion.subjects
        ),
    ],
) -> None:
    """Explain why a job waits, why an agent is kept, or why a pool launches nothing."""
    answer = request.deployed.call("operate", {"action": "why", "subject": subject})
    if not answer["facts"] and not request.as_json:
        raise ConfigError(f"{subject}: is no job that waits or runs, no node or instance and no pool of this fleet")
    request.show(answer, answers.print_facts)


@asking
def events(
    request: Request,
    pool: PoolOption = None,
    hours: Annotated[float, typer.Option(min=0.1, max=336, help="How far back.")] = 12.0,
) -> None:
    """Show the last steps and orders with their reasons, oldest first."""
    asked = {"action": "events", "hours": hours} | given(pool=pool)
    request.show(request.deployed.call("operate", asked), answers.print_events)


@asking
def lost(
    request: Request,
    hours: Annotated[float, typer.Option(min=0.1, max=336, help="How far back.")] = 168.0,
) -> None:
    """List the builds that were lost with their agents: those that ran again, and those that are left to you."""
    answer = request.deployed.call("operate", {"action": "events", "hours": hours})
    request.show({"lost": [event for event in answer["events"] if event["what"] in LOST_BUILDS]}, answers.print_lost)


@asking
def reservations(request: Request, watch: Watch = False) -> None:
    """List who has reserved which agent, until when, and how to get in."""
    request.ask(print_reservations, watch=watch, action="reservations")


@ordering
def hold(
    request: Request,
    pool: PoolOption = None,
    controller: ControllerOption = None,
    label: LabelOption = None,
    fleet: FleetOption = False,
    minutes: Minutes = 60.0,
    until_resumed: Annotated[bool, typer.Option("--until-resumed", help="Do not expire.")] = False,
    freeze: Annotated[bool, typer.Option("--freeze", help="Stop everything there, repairs too.")] = False,
) -> None:
    """Pause scaling for a pool, a controller or the whole fleet; or let the jobs of a label wait."""
    where = _scope("hold", pool=pool, controller=controller, label=label, fleet=fleet)
    request.order("hold", minutes=minutes, until_resumed=until_resumed, freeze=freeze, **where)


@ordering
def resume(
    request: Request,
    pool: PoolOption = None,
    controller: ControllerOption = None,
    label: LabelOption = None,
    nodes: Annotated[
        list[str] | None, typer.Option("--node", help="Only uncordon this node; may be repeated.", autocompletion=completion.nodes)
    ] = None,
    breaker: Annotated[
        str | None, typer.Option("--breaker", help="Launch in this pool again, though its boots failed.", autocompletion=completion.pools)
    ] = None,
    budget: Annotated[bool, typer.Option("--budget", help="Lift the AWS budget's hold, and nothing else.")] = False,
    fleet: FleetOption = False,
) -> None:
    """Lift people's holds, and uncordon what a person or quarantine cordoned there; or close a pool's breaker."""
    where = _scope(
        "resume", pool=pool, controller=controller, label=label, fleet=fleet, nodes=nodes, breaker=breaker, budget=budget or None
    )
    told = breaker is not None and not request.as_json and not request.dry_run
    before = request.deployed.call("operate", {"action": "status"})["status"]["pools"] if told else []
    request.order("resume", **where)
    for one in before:
        if one["pool"] == breaker:
            answers.print_closed(one)


@ordering
def set_(
    request: Request,
    pool: Annotated[str | None, typer.Argument(help="The pool.", autocompletion=completion.pools)] = None,
    team: TeamOption = None,
    min_agents: Annotated[int | None, typer.Option(min=0, help="At least this many agents; of a pool.")] = None,
    max_agents: Annotated[int | None, typer.Option(min=0, help="At most this many.")] = None,
    warm_executors: Annotated[int | None, typer.Option(min=0, help="Idle executors beyond those that are needed; of a pool.")] = None,
    max_stopped: Annotated[int | None, typer.Option(min=0, help="Stopped agents at most; 0 terminates those there are; of a pool.")] = None,
    max_launches_per_hour: Annotated[int | None, typer.Option(min=0, help="Launches in an hour; of a team.")] = None,
    max_usd_per_hour: Annotated[float | None, typer.Option(min=0.01, help="Dollars an hour; of a team.")] = None,
    max_usd_per_month: Annotated[float | None, typer.Option(min=0.01, help="Dollars in the month; of a team.")] = None,
    minutes: Minutes = 60.0,
    yes: Yes = False,
) -> None:
    """Temporarily override a pool's or a team's limits; with no options, restore the fleet file's."""
    if (pool is None) is (team is None):
        raise typer.BadParameter("give a pool, or --team and a team")
    if pool is not None and min_agents and not (yes or request.dry_run):
        would = request.deployed.call("operate", {"action": "set", "pool": pool, "min_agents": min_agents, "dry_run": True})
        confirm(min_agents * would["limits"].get("usd_per_hour", 0.0), minutes / 60, f"keep {min_agents} agents of {pool}")
    numbers = {"min_agents": min_agents, "max_agents": max_agents, "warm_executors": warm_executors, "max_stopped": max_stopped}
    numbers |= {"max_launches_per_hour": max_launches_per_hour}
    usd = {"max_usd_per_hour": max_usd_per_hour, "max_usd_per_month": max_usd_per_month}
    request.order("set", pool=pool, team=team, minutes=minutes, **numbers, **usd)


@ordering
def launch(
    request: Request,
    pool: PoolArgument,
    count: Annotated[int, typer.Argument(min=1, help="How many more agents.")] = 1,
    controller: ControllerOption = None,
    keep_minutes: Annotated[float, typer.Option(min=0, max=10_080, help="Keep them at least this long, needed or not.")] = 60.0,
    request_id: Annotated[str | None, typer.Option(help="A request with the same id launches only once.", show_default="a new one")] = None,
    yes: Yes = False,
) -> None:
    """Launch agents, within the limits; exit code 1 where fewer could be launched."""
    event = {"pool": pool, "count": count, "keep_minutes": keep_minutes, "reason": request.reason, "dry_run": request.dry_run}
    event |= {"request_id": request_id or new_id()} | given(controller=controller)
    if not (yes or request.dry_run):
        would = request.deployed.call("scale_up", event | {"dry_run": True})
        confirm(usd_per_hour(would), keep_minutes / 60, f"launch {answers.launched({'plan': would})} of {count} agents of {pool}")
    answer = {"plan": request.deployed.call("scale_up", event)}
    request.show(answer, lambda answer: answers.print_launch(answer, pool, count, keep_minutes))
    if answers.refused(answer):
        raise typer.Exit(1)


@ordering
def drain(
    request: Request,
    nodes: Annotated[list[str] | None, typer.Argument(help="These nodes.", autocompletion=completion.nodes)] = None,
    pool: PoolOption = None,
    count: Annotated[int | None, typer.Option(min=1, help="Only this many agents of the pool, least remaining work first.")] = None,
    controller: ControllerOption = None,
    fleet: FleetOption = False,
) -> None:
    """Cordon agents; they finish their builds and are terminated once idle."""
    drains.drain(request, drains.whom(nodes or [], pool=pool, count=count, controller=controller, fleet=fleet))


@ordering
def reserve(
    request: Request,
    target: Annotated[str, typer.Argument(help="A pool, or one node of it.", autocompletion=completion.subjects)],
    hours: Annotated[float, typer.Option(min=0.01, max=168, help="It ends by itself after this time.")] = 4.0,
    person: Annotated[str | None, typer.Option("--for", help="Who gets it.", show_default="you")] = None,
    controller: ControllerOption = None,
    request_id: Annotated[str | None, typer.Option(help="A request with the same id reserves only once.", show_default="a new one")] = None,
    yes: Yes = False,
) -> None:
    """Reserve an agent for one person. It takes no builds: it is an idle one, or a new one; or reserve a node for longer."""
    if not (yes or request.dry_run):
        event = {"action": "reserve", "target": target, "hours": hours, "person": person or getuser(), "by": getuser(), "dry_run": True}
        would = request.deployed.call("operate", event | given(controller=controller, request_id=request_id))
        confirm(usd_per_hour(would["plan"]), hours, f"launch an agent of {target}")
    request.order("reserve", target=target, hours=hours, person=person or getuser(), controller=controller, request_id=request_id)


@ordering
def release(
    request: Request,
    target: Annotated[str, typer.Argument(help="The node, or the instance id.", autocompletion=completion.nodes)],
    person: Annotated[str | None, typer.Option("--for", help="Whose it is. Nobody else's is ended.")] = None,
) -> None:
    """End a reservation before its time. An agent is terminated, a host begins anew, a device is handed to others."""
    request.order("release", target=target, person=person)


@ordering
def end(
    request: Request,
    target: Annotated[str, typer.Argument(metavar="INSTANCE", help="The instance id.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Terminate an instance whose controller left the fleet file, with whatever runs on it. Drain every other one."""
    confirmed = yes or request.dry_run or typer.confirm(f"terminate {target}, and whatever runs on it?", err=True)
    if not confirmed:
        print("nothing was terminated", file=sys.stderr)
        raise typer.Exit(1)
    request.order("end", target=target)


@ordering
def purge(
    request: Request,
    label: Annotated[str, typer.Argument(help="Jobs that ask for this label.")],
    controller: ControllerOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Cancel the queue items that ask for a label, after confirmation."""
    asked = {"label": label} | given(controller=controller)
    if not (yes or request.dry_run):
        would = {"action": "purge", "reason": request.reason, "dry_run": True, "by": getuser()}
        found = request.deployed.call("operate", would | asked)["plan"]["steps"]
        jobs = plain(", ".join(sorted({step["job"] for step in found})[:5]))
        if not found:
            say(f"nothing in the queue asks for {label}")
            return
        if not typer.confirm(f"cancel {len(found)} items ({jobs})?", err=True):
            print("nothing was cancelled", file=sys.stderr)
            raise typer.Exit(1)
    request.order("purge", **asked)


@with_request(*WHERE, "dry_run", "as_json")
def doctor(request: Request) -> None:
    """Check from inside the functions that they can reach and do all they need; exit code 1 where something is wrong."""
    findings = [finding for function in ("operate", "scale_up") for finding in _examined(request, function)]
    request.show(findings, answers.print_findings)
    if any(finding["fine"] is False for finding in findings):
        raise typer.Exit(1)


def _examined(request: Request, function: str) -> list[dict[str, Any]]:
    """The findings of one function; where it fails or is denied, that is the finding, so that the other is still asked."""
    try:
        findings: list[dict[str, Any]] = request.deployed.call(function, {"action": "doctor", "dry_run": request.dry_run})["findings"]
    except TransientError as error:
        return [{"about": function, "what": "answers", "fine": False, "detail": str(error)}]
    except DeniedError as error:
        return [{"about": function, "what": "answers", "fine": None, "detail": f"not tried: {error}"}]
    return findings


def _scope(action: str, *, fleet: bool, **named: Any) -> dict[str, Any]:
    """Return what an order is about; one about the whole fleet must say so."""
    named = given(**named)
    if fleet and named:
        raise typer.BadParameter(f"is the whole fleet; give it alone, without {', '.join(named)}", param_hint="--fleet")
    if not fleet and not named:
        raise typer.BadParameter(f"give what to {action}: --pool, --controller or --label; or --fleet for the whole fleet")
    return named
