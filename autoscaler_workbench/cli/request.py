"""The options that commands have in common, and how they ask the deployed functions or order something."""

import inspect
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from getpass import getuser
from typing import Any

import typer
from rich.console import Console

from autoscaler.errors import ConfigError, TransientError
from autoscaler_workbench.cli import answers
from autoscaler_workbench.cli.options import AsJson
from autoscaler_workbench.cli.order_options import (
    DryRun,
    Local,
    Profile,
    Region,
    Stack,
    Why,
)
from autoscaler_workbench.cli.remote import Deployed
from autoscaler_workbench.cli.reservations import print_reserved
from autoscaler_workbench.cli.suggestions import did_you_mean
from autoscaler_workbench.cli.terminal import say, show

NO_REASON = "no reason was given"
_AGAIN_SECONDS = 5.0
Answer = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options that commands have in common: which deployment is asked, and how its answer is shown."""

    stack: Stack = "jenkins-autoscaler"
    local: Local = None
    region: Region = None
    profile: Profile = None
    as_json: AsJson = False
    reason: Why = NO_REASON
    dry_run: DryRun = False

    @property
    def deployed(self) -> Deployed:
        """The deployment that is asked."""
        return Deployed(stack=self.stack, local=self.local, region=self.region, profile=self.profile)

    def ask(self, print_it: Callable[[Any], None], *, watch: bool, **question: Any) -> None:
        """Ask operate and show its answer, once or again and again."""
        if not watch:
            self.show(self.deployed.call("operate", question), print_it)
            return
        console = Console()
        while True:
            try:
                answer = self.deployed.call("operate", question)
            except TransientError as error:
                say(str(error), style="red", stderr=True)
            else:
                if console.is_terminal:
                    console.clear()
                self.show(answer, print_it)
            time.sleep(_AGAIN_SECONDS)

    def order(self, action: str, **options: Any) -> None:
        """Send an order to operate, and show what became of it; exit code 1 where any part of it was refused."""
        if answers.refused(self.order_of(action, **options)):
            raise typer.Exit(1)

    def order_of(self, action: str, **options: Any) -> Answer:
        """Send an order, show what became of it, and return the answer; options that were not given are left out."""
        # A retry of the same call must be the same request.
        about = {"action": action, "by": getuser(), "reason": self.reason, "dry_run": self.dry_run, "request_id": new_id()}
        answer: Answer = self.deployed.call("operate", about | given(**options))
        self.show(answer, print_reserved if "reservations" in answer else answers.print_order)
        return answer

    def show(self, answer: Any, print_it: Callable[[Any], None]) -> None:
        """Print an answer."""
        show(answer, lambda: print_it(answer), as_json=self.as_json)


def with_request(*common: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command these common options behind its own, as one `Request`."""
    shared = [one for one in inspect.signature(Request).parameters.values() if one.name in common]

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(command).parameters.values())[1:]

        @wraps(command)
        def run(**options: Any) -> None:
            request = Request(**{one.name: options.pop(one.name) for one in shared})
            try:
                command(request, **options)
            except KeyError as error:  # of an answer
                raise ConfigError(f"the deployed functions do not tell {error}: are they of another version than this command?") from error
            except ConfigError as error:
                is_about_a_name = " is not one of " in str(error) or ": is no " in str(error)
                if is_about_a_name and (hint := did_you_mean(request.deployed, options.values())):
                    raise ConfigError(f"{error}; {hint}") from error
                raise
            except typer.Exit as ended:
                if ended.exit_code == 1 and (hint := did_you_mean(request.deployed, options.values())):
                    say(hint, stderr=True)
                raise

        taken = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*own, *shared)]
        run.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in taken}
        return run

    return with_options


WHERE = ("stack", "local", "region", "profile")
asking = with_request(*WHERE, "as_json")
ordering = with_request("reason", *WHERE, "dry_run", "as_json")


def given(**options: Any) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def new_id() -> str:
    """Name a request that nobody named."""
    return f"cli-{uuid.uuid4().hex[:12]}"
