"""Commands that ask the deployed functions: see the state of the fleet, take over by hand. They need no right but to invoke."""

import inspect
import sys
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from getpass import getuser
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.text import Text

from autoscaler.errors import ConfigError, TransientError
from autoscaler_workbench.cli.remote import Deployed
from autoscaler_workbench.cli.terminal import plain, print_table, ready_to_draw, say, show

Stack = Annotated[str, typer.Option(envvar="AUTOSCALER_STACK", help="The CloudFormation stack.")]
Local = Annotated[str | None, typer.Option(envvar="AUTOSCALER_LOCAL", help="The URL of a demo started with --keep.", show_default="AWS")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]
PoolArgument = Annotated[str, typer.Argument(help="The pool.")]
PoolOption = Annotated[str | None, typer.Option("--pool", help="Only this pool.")]
ControllerOption = Annotated[str | None, typer.Option("--controller", help="Only this controller.")]
LabelOption = Annotated[str | None, typer.Option("--label", help="Only jobs that ask for this label.")]
Minutes = Annotated[float, typer.Option(min=0.1, max=10_080, help="Expires automatically after this time.")]
Why = Annotated[str, typer.Option("--reason", help="Shown to whoever finds it later.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")]
Executors = Annotated[int | None, typer.Option(min=0)]
Answer = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options that commands have in common: which deployment is asked, and how its answer is shown."""

    stack: Stack = "jenkins-autoscaler"
    local: Local = None
    as_json: AsJson = False
    reason: Why = "no reason was given"
    dry_run: DryRun = False

    @property
    def deployed(self) -> Deployed:
        """The deployment that is asked."""
        return Deployed(stack=self.stack, local=self.local)

    def order(self, action: str, **options: Any) -> None:
        """Send an order to operate, and show what became of it; options that were not given are left out."""
        # A retry of the same call must be the same request.
        about = {"action": action, "by": getuser(), "reason": self.reason, "dry_run": self.dry_run, "request_id": _new_id()}
        self.show(self.deployed.call("operate", about | _given(**options)), _print_plan)

    def show(self, answer: Any, print_it: Callable[[Any], None]) -> None:
        """Print an answer."""
        show(answer, lambda: print_it(answer), as_json=self.as_json)


def _command(*common: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command these common options behind its own, as one `Request`."""
    shared = [one for one in inspect.signature(Request).parameters.values() if one.name in common]

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(command).parameters.values())[1:]

        @wraps(command)
        def run(**options: Any) -> None:
            command(Request(**{one.name: options.pop(one.name) for one in shared}), **options)

        taken = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*own, *shared)]
        run.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in taken}
        return run

    return with_options


_asking = _command("stack", "local", "as_json")
_ordering = _command("reason", "stack", "local", "dry_run", "as_json")


def add_commands(app: typer.Typer) -> None:
    """Add them to the command line."""
    for command in (status, plan, why, events, hold, resume, set_, launch, drain, purge, doctor, dashboard):
        app.command(command.__name__.rstrip("_"))(command)


@_asking
def status(request: Request) -> None:
    """Show queue, agents and executors by pool, limits used, holds and overrides."""
    request.show(request.deployed.call("operate", {"action": "status"}), _print_status)


@_asking
def plan(request: Request) -> None:
    """Show what both passes would do now and why, without doing it."""
    request.show(request.deployed.call("operate", {"action": "plan"}), _print_plan)


@_asking
def why(
    request: Request, subject: Annotated[str, typer.Argument(help="A job (as in its URL: folder/job), a node, an instance id or a pool.")]
) -> None:
    """Explain why a job waits, why an agent is kept, or why a pool launches nothing."""
    answer = request.deployed.call("operate", {"action": "why", "subject": subject})
    if not answer["facts"] and not request.as_json:
        raise ConfigError(f"{subject}: is no job that waits or runs, no node and no pool of this fleet")
    request.show(answer, lambda answer: _say_all((f"- {fact}" for fact in answer["facts"]), style=""))


@_asking
def events(
    request: Request,
    pool: PoolOption = None,
    hours: Annotated[float, typer.Option(min=0.1, max=336, help="How far back.")] = 12.0,
) -> None:
    """Show the last steps and orders with their reasons, oldest first."""
    asked = {"action": "events", "hours": hours} | _given(pool=pool)
    request.show(request.deployed.call("operate", asked), _print_events)


@_ordering
def hold(
    request: Request,
    pool: PoolOption = None,
    controller: ControllerOption = None,
    label: LabelOption = None,
    minutes: Minutes = 60.0,
    until_resumed: Annotated[bool, typer.Option("--until-resumed", help="Do not expire.")] = False,
    freeze: Annotated[bool, typer.Option("--freeze", help="Stop everything there, repairs too.")] = False,
) -> None:
    """Pause scaling for a pool, a controller or the whole fleet; or let the jobs of a label wait."""
    where = _given(pool=pool, controller=controller, label=label)
    request.order("hold", minutes=minutes, until_resumed=until_resumed, freeze=freeze, **where)


@_ordering
def resume(
    request: Request,
    pool: PoolOption = None,
    controller: ControllerOption = None,
    label: LabelOption = None,
    nodes: Annotated[list[str] | None, typer.Option("--node", help="Only uncordon this node; may be repeated.")] = None,
) -> None:
    """Lift a hold, and uncordon what a person or quarantine cordoned there."""
    request.order("resume", pool=pool, controller=controller, label=label, nodes=nodes)


@_ordering
def set_(
    request: Request,
    pool: PoolArgument,
    min_agents: Executors = None,
    max_agents: Executors = None,
    warm_executors: Executors = None,
    minutes: Minutes = 60.0,
) -> None:
    """Temporarily override a pool's limits; with no options, restore the fleet file's."""
    request.order("set", pool=pool, minutes=minutes, min_agents=min_agents, max_agents=max_agents, warm_executors=warm_executors)


@_ordering
def launch(
    request: Request,
    pool: PoolArgument,
    count: Annotated[int, typer.Argument(min=1, help="How many more agents.")] = 1,
    controller: ControllerOption = None,
    keep_minutes: Annotated[float, typer.Option(min=0, max=10_080, help="Keep them at least this long, needed or not.")] = 0.0,
    request_id: Annotated[str | None, typer.Option(help="A request with the same id launches only once.", show_default="a new one")] = None,
) -> None:
    """Launch agents, within the limits."""
    event = {"pool": pool, "count": count, "keep_minutes": keep_minutes, "reason": request.reason, "dry_run": request.dry_run}
    event |= {"request_id": request_id or _new_id()} | _given(controller=controller)
    request.show({"plan": request.deployed.call("scale_up", event)}, _print_plan)


@_ordering
def drain(
    request: Request,
    nodes: Annotated[list[str] | None, typer.Argument(help="These nodes.")] = None,
    pool: PoolOption = None,
    count: Annotated[int | None, typer.Option(min=1, help="This many agents of the pool, least remaining work first.")] = None,
    controller: ControllerOption = None,
) -> None:
    """Cordon agents; they finish their builds and are terminated once idle."""
    request.order("drain", nodes=nodes, pool=pool, count=count, controller=controller)


@_ordering
def purge(
    request: Request,
    label: Annotated[str, typer.Argument(help="Jobs that ask for this label.")],
    controller: ControllerOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Cancel the queue items that ask for a label, after confirmation."""
    asked = {"label": label} | _given(controller=controller)
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


@_command("stack", "local", "dry_run", "as_json")
def doctor(request: Request) -> None:
    """Check from inside the functions that they can reach and do all they need; exit code 1 where something is wrong."""
    findings = [finding for function in ("operate", "scale_up") for finding in _examined(request, function)]
    request.show(findings, _print_findings)
    if any(finding["fine"] is False for finding in findings):
        raise typer.Exit(1)


def _examined(request: Request, function: str) -> list[dict[str, Any]]:
    """The findings of one function; where it fails, that is the finding, so that the other is still asked."""
    try:
        findings: list[dict[str, Any]] = request.deployed.call(function, {"action": "doctor", "dry_run": request.dry_run})["findings"]
    except TransientError as error:
        return [{"about": function, "what": "answers", "fine": False, "detail": str(error)}]
    return findings


@_command("stack", "local")
def dashboard(
    request: Request,
    out: Annotated[Path, typer.Option(help="With --local: the directory for dashboard.html.")] = Path("out") / "dashboard",
) -> None:
    """Print the URL of the stack's dashboard; for a running demo, draw its dashboard with firing alarms."""
    if request.local is None:
        say(request.deployed.output("DashboardUrl"))
        return
    published = request.deployed.published()
    if not published:
        raise ConfigError(f"--local ({request.local}): nothing was published there yet")
    ready_to_draw(out)
    from autoscaler_workbench.report.dashboard.page import write_dashboard  # noqa: PLC0415 - drawing is an extra

    say(str(write_dashboard(dict(published[0][1].dimensions)["Fleet"], published, out)))


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _new_id() -> str:
    return f"cli-{uuid.uuid4().hex[:12]}"


def _say_all(lines: Iterable[str], *, style: str = "red") -> None:
    for line in lines:
        say(line, style=style)


def _print_status(answer: Answer) -> None:
    told = answer["status"]
    headers = ("pool", "waiting", "longest", "agents", "executors busy", "$/h", "paused")
    print_table(headers, map(_pool_row, told["pools"]), box=SIMPLE_HEAD)
    say(
        f"{told['agents']} of {told['max_agents']} agents; {told['launches_in_the_hour']} of {told['max_launches_per_hour']} launches in "
        f"the last hour; ${told['usd_per_hour']:,.2f} an hour, with launches under way up to ${told['reserved_usd_per_hour']:,.2f} of "
        f"${told['max_usd_per_hour']:,g}; ${told['usd_in_the_month']:,.2f} of ${told['max_usd_per_month']:,g} this month; "
        f"{told['unservable']} items match no pool, {told['unclear']} wait for an unknown reason"
    )
    _say_all(_problems(told))
    _print_overrides(answer)


def _pool_row(pool: dict[str, Any]) -> tuple[str, ...]:
    agents = ", ".join(f"{count} {phase}" for phase, count in sorted(pool["agents"].items()))
    return (
        _where(pool),
        str(pool["starved"]),
        f"{pool['longest_wait_seconds'] / 60:.0f} min" if pool["longest_wait_seconds"] else "",
        f"{agents or '0'} of {pool['max_agents']}",
        f"{pool['busy']} of {pool['executors']}",
        f"{pool['usd_per_hour']:.2f}",
        pool["paused"],
    )


def _problems(told: dict[str, Any]) -> Iterable[str]:
    yield from filter(None, [told["stopped"]])
    yield from (f"{controller}: {problem}" for controller, problem in told["problems"].items())
    yield from (f"{controller}: shows no jobs; without Job/Read its queue looks empty" for controller in told["without_jobs"])
    yield from (f"{name} in the state table cannot be read by this version; it counts as alive" for name in told["unread"])
    yield from told["failing"]


def _print_plan(answer: Answer) -> None:
    """Print steps, what was wanted and not done, and the holds and overrides in force."""
    told = answer.get("plan", {"steps": [], "held": []})
    if told["steps"]:
        print_table(("step", "where", "what", "reason", "outcome", "because"), map(_step_row, told["steps"]), box=SIMPLE_HEAD)
    elif answer.get("action") == "plan":
        say("nothing to do")
    if told["held"]:
        print_table(
            ("not done", "where", "because"), ((entry["reason"], _where(entry), entry["detail"]) for entry in told["held"]), box=SIMPLE_HEAD
        )
    _print_overrides(answer)


def _step_row(step: dict[str, Any]) -> tuple[str, ...]:
    what = next((str(step[key]) for key in ("node", "instance_id", "job", "count") if key in step), "")
    return step["step"], _where(step), what, step["reason"], step["outcome"], step["detail"]


def _where(entry: dict[str, Any]) -> str:
    return "/".join(filter(None, (entry.get("controller"), entry.get("pool"))))


def _print_events(answer: Answer) -> None:
    if not answer["events"]:
        say("nothing was done")
        return
    print_table(("UTC", "by", "what", "where", "subject", "outcome", "because"), map(_event_row, answer["events"]), box=SIMPLE_HEAD)


def _event_row(event: dict[str, Any]) -> tuple[str, ...]:
    because = f"{event['reason']}: {event['detail']}" if event["reason"] else event["detail"]
    at = f"{datetime.fromtimestamp(event['at'], UTC):%m-%d %H:%M:%S}"
    return at, event["by"], event["what"], event["where"], event["subject"], event["outcome"], because


def _print_findings(findings: list[dict[str, Any]]) -> None:
    signs = {True: Text("ok", "green"), False: Text("no", "bold red"), None: Text("?")}
    rows = ((signs[one["fine"]], one["about"], one["what"], one["detail"]) for one in findings)
    print_table(("", "of", "what", ""), rows, box=SIMPLE_HEAD)


def _print_overrides(answer: Answer) -> None:
    if answer.get("action") == "resume" and not answer["holds"]:
        say("nothing is on hold")
    for order in answer.get("holds", []):
        where = next((f"{scope} {order[scope]}" for scope in ("pool", "controller", "label") if scope in order), "the fleet")
        say(f"{where} is {'frozen' if order['freeze'] else 'on hold'}, by {order['by']}: {order['reason']}")
    for numbers in answer.get("numbers", []):
        given = ", ".join(f"{name} {numbers[name]}" for name in ("min_agents", "max_agents", "warm_executors") if name in numbers)
        say(f"{numbers['pool']} has {given}, by {numbers['by']}: {numbers['reason']}")
