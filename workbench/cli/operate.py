"""Commands that ask the deployed functions: see how things stand, take over by hand. They need nothing but the right to invoke."""

import json
import sys
import uuid
from getpass import getuser
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.text import Text

from autoscaler.errors import ConfigError, TransientError
from workbench.cli.remote import Deployed
from workbench.cli.terminal import Table, plain, say

Stack = Annotated[str, typer.Option(envvar="AUTOSCALER_STACK", help="The CloudFormation stack.")]
Local = Annotated[
    str | None, typer.Option(envvar="AUTOSCALER_LOCAL", help="Where a demo listens that was kept running.", show_default="AWS")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]
PoolOption = Annotated[str | None, typer.Option("--pool", help="Only this pool.")]
ControllerOption = Annotated[str | None, typer.Option("--controller", help="Only this controller.")]
LabelOption = Annotated[str | None, typer.Option("--label", help="Only jobs that ask for this label.")]
Minutes = Annotated[float, typer.Option(min=0.1, max=10_080, help="It ends by itself after so long.")]
Why = Annotated[str, typer.Option("--reason", help="For those who find it later.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]
_STACK = "jenkins-autoscaler"
_NO_REASON = "no reason was given"


def add_commands(app: typer.Typer) -> None:
    """Add them to the command line."""
    for command in (status, plan, why, hold, resume, set_, launch, drain, purge, doctor, dashboard):
        app.command(command.__name__.rstrip("_"))(command)


def status(stack: Stack = _STACK, local: Local = None, as_json: AsJson = False) -> None:  # noqa: FBT002 - a flag of the command line
    """Show queue, agents and executors by pool, limits used, and what is on hold."""
    answer = Deployed(stack=stack, local=local).call("operate", {"action": "status"})
    if as_json:
        print(json.dumps(answer))  # noqa: T201
        return
    told = answer["status"]
    table = Table("pool", "waiting", "longest", "agents", "executors busy", "$/h", "paused", box=SIMPLE_HEAD)
    for pool in told["pools"]:
        agents = ", ".join(f"{count} {phase}" for phase, count in sorted(pool["agents"].items()))
        table.add_row(
            f"{pool['controller']}/{pool['pool']}",
            str(pool["starved"]),
            f"{pool['longest_wait_seconds'] / 60:.0f} min" if pool["longest_wait_seconds"] else "",
            f"{agents or '0'} of {pool['max_agents']}",
            f"{pool['busy']} of {pool['executors']}",
            f"{pool['usd_per_hour']:.2f}",
            pool["paused"],
        )
    Console().print(table)
    say(
        f"{told['agents']} of {told['max_agents']} agents, {told['launches_in_the_hour']} of {told['max_launches_per_hour']} launches in "
        f"the hour, ${told['usd_per_hour']:.2f} an hour, at most ${told['reserved_usd_per_hour']:.2f} of ${told['max_usd_per_hour']:g}, "
        f"${told['usd_in_the_month']:.2f} of ${told['max_usd_per_month']:g} this month; {told['unservable']} items that no pool can serve, "
        f"{told['unclear']} that wait for something unknown"
    )
    if told["stopped"]:
        say(told["stopped"], style="red")
    for controller, problem in told["problems"].items():
        say(f"{controller}: {problem}", style="red")
    for controller in told["without_jobs"]:
        say(f"{controller}: shows not a single job; without Job/Read the queue looks empty", style="red")
    for name in told["unread"]:
        say(f"{name} in the state table cannot be read by this version; it counts as alive", style="red")
    for failing in told["failing"]:
        say(failing, style="red")
    _print_standing(answer)


def plan(stack: Stack = _STACK, local: Local = None, as_json: AsJson = False) -> None:  # noqa: FBT002
    """Say what both passes would do now, and why; nothing is done."""
    _show(Deployed(stack=stack, local=local).call("operate", {"action": "plan"}), as_json=as_json)


def why(
    subject: Annotated[str, typer.Argument(help="A job (as in its URL: folder/job), a node, an instance id or a pool.")],
    stack: Stack = _STACK,
    local: Local = None,
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Say why a job waits, why an agent is still there, or why nothing is launched in a pool."""
    answer = Deployed(stack=stack, local=local).call("operate", {"action": "why", "subject": subject})
    if as_json:
        print(json.dumps(answer))  # noqa: T201
        return
    if not answer["facts"]:
        raise ConfigError(f"{subject}: is no job that waits or runs, no node and no pool of this fleet")
    for fact in answer["facts"]:
        say(f"- {fact}")


def hold(  # noqa: PLR0913, PLR0917 - the options of a command
    pool: PoolOption = None,
    controller: ControllerOption = None,
    label: LabelOption = None,
    minutes: Minutes = 60.0,
    until_resumed: Annotated[bool, typer.Option("--until-resumed", help="It does not end by itself.")] = False,  # noqa: FBT002
    freeze: Annotated[bool, typer.Option("--freeze", help="Do nothing at all there, not even repairs.")] = False,  # noqa: FBT002
    reason: Why = _NO_REASON,
    stack: Stack = _STACK,
    local: Local = None,
    dry_run: DryRun = False,  # noqa: FBT002
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Launch, bring back and retire nothing in a pool, on a controller, or anywhere; or let the jobs of a label wait."""
    where = _given(pool=pool, controller=controller, label=label)
    event = {"action": "hold", "minutes": minutes, "until_resumed": until_resumed, "freeze": freeze, "reason": reason} | where
    _order(Deployed(stack=stack, local=local), event, dry_run=dry_run, as_json=as_json)


def resume(  # noqa: PLR0913, PLR0917
    pool: PoolOption = None,
    controller: ControllerOption = None,
    label: LabelOption = None,
    nodes: Annotated[list[str] | None, typer.Option("--node", help="Only bring this node back; may be repeated.")] = None,
    reason: Why = _NO_REASON,
    stack: Stack = _STACK,
    local: Local = None,
    dry_run: DryRun = False,  # noqa: FBT002
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Lift a hold, and bring back what a person or quarantine took out of use there."""
    where = _given(pool=pool, controller=controller, label=label, nodes=nodes)
    _order(Deployed(stack=stack, local=local), {"action": "resume", "reason": reason} | where, dry_run=dry_run, as_json=as_json)


def set_(  # noqa: PLR0913, PLR0917
    pool: Annotated[str, typer.Argument(help="The pool.")],
    min_agents: Annotated[int | None, typer.Option(min=0)] = None,
    max_agents: Annotated[int | None, typer.Option(min=0)] = None,
    warm_executors: Annotated[int | None, typer.Option(min=0)] = None,
    minutes: Minutes = 60.0,
    reason: Why = _NO_REASON,
    stack: Stack = _STACK,
    local: Local = None,
    dry_run: DryRun = False,  # noqa: FBT002
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Give a pool other numbers for a while; without any, the fleet file's again."""
    numbers = _given(min_agents=min_agents, max_agents=max_agents, warm_executors=warm_executors)
    event = {"action": "set", "pool": pool, "minutes": minutes, "reason": reason} | numbers
    _order(Deployed(stack=stack, local=local), event, dry_run=dry_run, as_json=as_json)


def launch(  # noqa: PLR0913, PLR0917
    pool: Annotated[str, typer.Argument(help="The pool.")],
    count: Annotated[int, typer.Argument(min=1, help="How many more agents.")] = 1,
    controller: ControllerOption = None,
    keep_minutes: Annotated[float, typer.Option(min=0, max=10_080, help="Keep them for so long, needed or not.")] = 0.0,
    reason: Why = _NO_REASON,
    request_id: Annotated[str | None, typer.Option(help="The same one launches once.", show_default="a new one")] = None,
    stack: Stack = _STACK,
    local: Local = None,
    dry_run: DryRun = False,  # noqa: FBT002
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Launch agents, within the limits."""
    once = request_id or f"cli-{uuid.uuid4().hex[:12]}"
    event = {"pool": pool, "count": count, "keep_minutes": keep_minutes, "reason": reason, "request_id": once, "dry_run": dry_run}
    _show({"plan": Deployed(stack=stack, local=local).call("scale_up", event | _given(controller=controller))}, as_json=as_json)


def drain(  # noqa: PLR0913, PLR0917
    nodes: Annotated[list[str] | None, typer.Argument(help="These nodes.")] = None,
    pool: PoolOption = None,
    count: Annotated[int | None, typer.Option(min=1, help="So many agents of the pool, least work left first.")] = None,
    controller: ControllerOption = None,
    reason: Why = _NO_REASON,
    stack: Stack = _STACK,
    local: Local = None,
    dry_run: DryRun = False,  # noqa: FBT002
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Take agents out of use; their builds go on, and they are given up when idle."""
    event = {"action": "drain", "reason": reason} | _given(nodes=nodes, pool=pool, count=count, controller=controller)
    _order(Deployed(stack=stack, local=local), event, dry_run=dry_run, as_json=as_json)


def purge(  # noqa: PLR0913, PLR0917
    label: Annotated[str, typer.Argument(help="Jobs that ask for this label.")],
    controller: ControllerOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,  # noqa: FBT002
    reason: Why = _NO_REASON,
    stack: Stack = _STACK,
    local: Local = None,
    dry_run: DryRun = False,  # noqa: FBT002
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Cancel the queue items that ask for a label, after asking."""
    deployed = Deployed(stack=stack, local=local)
    event = {"action": "purge", "label": label, "reason": reason} | _given(controller=controller)
    if not (yes or dry_run):
        found = deployed.call("operate", event | {"dry_run": True, "by": getuser()})["plan"]["steps"]
        jobs = plain(", ".join(sorted({step["job"] for step in found})[:5]))
        if not found:
            say(f"nothing in the queue asks for {label}")
            return
        if not typer.confirm(f"cancel {len(found)} items ({jobs})?", err=True):
            print("nothing was cancelled", file=sys.stderr)  # noqa: T201
            raise typer.Exit(1)
    _order(deployed, event, dry_run=dry_run, as_json=as_json)


def doctor(
    stack: Stack = _STACK,
    local: Local = None,
    dry_run: DryRun = False,  # noqa: FBT002
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Try, inside the functions, whether they can reach and do all that they need; exit code 1 where something is wrong."""
    deployed = Deployed(stack=stack, local=local)
    findings = [finding for function in ("operate", "scale_up") for finding in _examined(deployed, function, dry_run=dry_run)]
    if as_json:
        print(json.dumps(findings))  # noqa: T201
    else:
        table = Table("", "of", "what", "", box=SIMPLE_HEAD)
        signs = {True: Text("ok", "green"), False: Text("no", "bold red"), None: Text("?")}
        for finding in findings:
            table.add_row(signs[finding["fine"]], finding["about"], finding["what"], finding["detail"])
        Console().print(table)
    if any(finding["fine"] is False for finding in findings):
        raise typer.Exit(1)


def _examined(deployed: Deployed, function: str, *, dry_run: bool) -> list[dict[str, Any]]:
    """What a function found; one that fails is a finding, and the other is asked all the same."""
    try:
        findings: list[dict[str, Any]] = deployed.call(function, {"action": "doctor", "dry_run": dry_run})["findings"]
    except TransientError as error:
        return [{"about": function, "what": "answers", "fine": False, "detail": str(error)}]
    return findings


def dashboard(
    out: Annotated[Path, typer.Option(help="Directory for dashboard.html, of a demo.")] = Path("out") / "dashboard",
    stack: Stack = _STACK,
    local: Local = None,
) -> None:
    """Say where the stack's dashboard is; of a demo that was kept running, draw it, with the alarms that ring."""
    deployed = Deployed(stack=stack, local=local)
    if local is None:
        say(deployed.output("DashboardUrl"))
        return
    published = deployed.published()
    if not published:
        raise ConfigError(f"--local ({local}): nothing was published there yet")
    try:
        from workbench.report.dashboard.page import write_dashboard  # noqa: PLC0415 - drawing is an extra
    except ImportError as error:
        raise ConfigError(f"dashboard: drawing needs the extra report ({error})") from error

    out.mkdir(parents=True, exist_ok=True)
    page = write_dashboard(dict(published[0][1].dimensions)["Fleet"], published, out)
    say(str(page))


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _order(deployed: Deployed, event: dict[str, Any], *, dry_run: bool, as_json: bool) -> None:
    # Sent again on its way, it is the same request.
    said = {"by": getuser(), "dry_run": dry_run, "request_id": f"cli-{uuid.uuid4().hex[:12]}"}
    _show(deployed.call("operate", event | said), as_json=as_json)


def _show(answer: dict[str, Any], *, as_json: bool) -> None:
    """Print steps, what was wanted and not done, and what stands."""
    if as_json:
        print(json.dumps(answer))  # noqa: T201
        return
    console = Console()
    told = answer.get("plan")
    if told is not None:
        steps = Table("step", "where", "what", "reason", "outcome", "because", box=SIMPLE_HEAD)
        for step in told["steps"]:
            what = next((str(step[key]) for key in ("node", "instance_id", "job", "count") if key in step), "")
            where = "/".join(part for part in (step["controller"], step.get("pool", "")) if part)
            steps.add_row(step["step"], where, what, step["reason"], step["outcome"], step["detail"])
        if told["steps"] or answer.get("action") == "plan":
            console.print(steps if told["steps"] else "nothing is to be done")
        held = Table("not done", "where", "because", box=SIMPLE_HEAD)
        for entry in told["held"]:
            held.add_row(entry["reason"], "/".join(part for part in (entry.get("controller", ""), entry["pool"]) if part), entry["detail"])
        if told["held"]:
            console.print(held)
    _print_standing(answer)


def _print_standing(answer: dict[str, Any]) -> None:
    if answer.get("action") == "resume" and not answer["holds"]:
        say("nothing is on hold")
    for order in answer.get("holds", []):
        where = next((f"{scope} {order[scope]}" for scope in ("pool", "controller", "label") if scope in order), "the fleet")
        say(f"{where} is {'frozen' if order['freeze'] else 'on hold'}, by {order['by']}: {order['reason']}")
    for numbers in answer.get("numbers", []):
        given = ", ".join(f"{name} {numbers[name]}" for name in ("min_agents", "max_agents", "warm_executors") if name in numbers)
        say(f"{numbers['pool']} has {given}, by {numbers['by']}: {numbers['reason']}")
