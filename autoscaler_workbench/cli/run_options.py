"""Options of the command that orders builds of a job, and the event that they make."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from autoscaler.domain.run_orders.choice import Choose, Vary
from autoscaler.errors import ConfigError
from autoscaler_workbench.cli import completion
from autoscaler_workbench.cli.request import Request, given

Job = Annotated[str | None, typer.Argument(help="The job, as in its URL: folder/job.", show_default="those of --file")]
Params = Annotated[list[str] | None, typer.Option("--param", metavar="NAME=VALUE", help="A parameter of the job; may be repeated.")]
On = Annotated[str | None, typer.Option("--on", help="Only pools that serve this label expression, such as 'linux && gpu'.")]
Where = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="FACT=VALUE", help="Only pools whose machines are so, such as 'vcpu>=8' or gpu=A10G; may be repeated."),
]
Runs = Annotated[int | None, typer.Option("--runs", min=1, help="How many builds.", show_default="1")]
Varied = Annotated[Vary | None, typer.Option("--vary", help="Each of the builds on another one of these.")]
Strict = Annotated[
    bool, typer.Option("--strict/--permissive", help="With --vary: where there are too few different ones refuse, or use some again.")
]
Same = Annotated[bool, typer.Option("--same", help="All builds on one pool, to find flaky tests.")]
Chosen = Annotated[Choose, typer.Option("--choose", help="Which of the pools that fit: where a build would end soonest, or costs least.")]
Gang = Annotated[int | None, typer.Option("--gang", min=1, help="So many builds as a gang: those that fail are replaced.")]
Until = Annotated[
    Literal["all", "first-success"] | None,
    typer.Option("--until", help="When a gang is done: all have passed, or the first one has and ends the others.", show_default="all"),
]
Resubmit = Annotated[
    int | None, typer.Option(min=0, help="How often a build that was lost with its machine is started again.", show_default="1")
]
Replace = Annotated[
    int | None, typer.Option(min=0, help="How many failing builds of a gang are replaced, all together.", show_default="as many as --gang")
]
Controller = Annotated[
    str | None, typer.Option("--controller", help="Only on this controller.", autocompletion=completion.controllers, show_default="any")
]
OrdersFile = Annotated[Path | None, typer.Option("--file", help="A YAML file with a list of orders. One that is wrong starts none.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for the end; the exit code tells it. Ctrl-C ends the waiting, not the builds.")]
Ranking = Annotated[bool, typer.Option("--ranking", help="Also say why these places were chosen.", show_default="with --dry-run")]
OrderId = Annotated[str | None, typer.Option("--request-id", help="A request with the same id orders only once.", show_default="a new one")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the options of one order say: they are its fields."""

    job: Job = None
    param: Params = None
    on: On = None
    where: Where = None
    runs: Runs = None
    vary: Varied = None
    strict: Strict = False
    same: Same = False
    choose: Chosen = Choose.SOONEST
    gang: Gang = None
    until: Until = None
    resubmit: Resubmit = None
    replace: Replace = None
    controller: Controller = None

    @property
    def options(self) -> list[str]:
        """Name the options that were given."""
        defaults = Asked()
        return [f"--{name}" for name in self.__slots__ if name != "job" and getattr(self, name) != getattr(defaults, name)]

    def event(self) -> dict[str, Any]:
        """Return the fields of the event that orders this."""
        self._refuse_contradictions()
        fields: dict[str, Any] = {
            "job": self.job,
            "parameters": read_parameters(self.param or []),
            "strict": self.strict,
            "same": self.same,
        }
        fields |= {"choose": self.choose, "runs": self.gang or self.runs, "until": self.until}
        if self.gang is not None:
            fields |= {"until": self.until or "all", "replace": self.gang if self.replace is None else self.replace}
        return given(**fields, on=self.on, where=self.where, vary=self.vary, resubmit=self.resubmit, controller=self.controller)

    def _refuse_contradictions(self) -> None:
        """Refuse options that contradict one another, or say nothing without another one."""
        if self.gang is not None and self.runs is not None:
            raise typer.BadParameter("is the number of builds; give it without --runs", param_hint="--gang")
        if self.gang is None and (self.until is not None or self.replace is not None):
            raise typer.BadParameter("is of a gang; give --gang and how many", param_hint="--replace" if self.until is None else "--until")
        if self.strict and self.vary is None:
            raise typer.BadParameter("needs --vary, which says in what the builds differ", param_hint="--strict")
        if self.same and self.vary is not None:
            raise typer.BadParameter(f"is all builds on one pool; give it without --vary {self.vary}", param_hint="--same")


def with_asked(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of an order before its own, and hand it them as one `Asked`, its second argument."""
    of_order = inspect.signature(Asked).parameters
    first, _, *own = inspect.signature(command).parameters.values()

    @wraps(command)
    def run(request: Request, **options: Any) -> None:
        command(request, Asked(**{name: options.pop(name) for name in of_order}), **options)

    taken = [first, *of_order.values(), *(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own)]
    run.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
    return run


def read_parameters(given_: list[str]) -> dict[str, str]:
    """Read ``NAME=VALUE`` as Jenkins' parameters; the value is text, as it stands there."""
    found: dict[str, str] = {}
    for one in given_:
        name, sign, value = one.partition("=")
        if not sign or not name:
            raise ConfigError(f"--param ({one}): must be NAME=VALUE")
        if name in found:
            raise ConfigError(f"--param ({one}): {name} is given twice")
        found[name] = value
    return found
