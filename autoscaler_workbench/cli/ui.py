"""Serves the page on this machine: live of a deployment or a demo, or of a recorded day."""

import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from getpass import getuser
from typing import TYPE_CHECKING, Any

from autoscaler.domain.wording import dollars
from autoscaler.errors import AutoscalerError, ConfigError
from autoscaler_workbench.cli.prices import usd_per_hour
from autoscaler_workbench.cli.remote import Deployed
from autoscaler_workbench.cli.terminal import say
from autoscaler_workbench.ui.source import Past, Recorded

if TYPE_CHECKING:
    from autoscaler_workbench.ui.site import Site

# A look asks Jenkins and EC2 once. A demo's minute is a second or two; a deployment changes once a minute.
EVERY_SECONDS, DEMO_EVERY_SECONDS = 15.0, 2.0
# Costs change by the quarter of an hour, which a demo plays in 15 s, and their answer is the longest.
COSTS_SECONDS, DEMO_COSTS_SECONDS = 300.0, 15.0


class DeployedSource:
    """What the page shows of a deployment or a demo: all of it through the functions that the other commands ask."""

    def __init__(
        self, deployed: Deployed, past: Callable[[], Past], clock: Callable[[], float], costs_seconds: float = COSTS_SECONDS
    ) -> None:
        """Keep whom to ask, and after how many seconds to ask for costs again."""
        self._costs_seconds = costs_seconds
        self._deployed = deployed
        self._past = past
        self._clock = clock
        self._costs: tuple[float, dict[str, Any]] | None = None

    def overview(self) -> dict[str, Any]:
        """Ask for all that one look shows."""
        told: dict[str, Any] = self._deployed.call("operate", {"action": "overview"})
        return told | {"costs": self._costs_now()}

    def _costs_now(self) -> dict[str, Any]:
        """Ask what jobs cost this month, now and then. Where that fails, the rest of the page is there all the same."""
        now = self._clock()
        if self._costs is None or now - self._costs[0] >= self._costs_seconds:
            try:
                costs = self._deployed.call("operate", {"action": "costs", "by": "job"})
            except AutoscalerError as error:
                costs = {"problem": " ".join(str(error).split())}
            self._costs = now, costs
        return self._costs[1]

    def past(self) -> Past:
        """Tell what was before."""
        return self._past()

    def why(self, subject: str) -> list[str]:
        """Explain one thing."""
        facts: list[str] = self._deployed.call("operate", {"action": "why", "subject": subject})["facts"]
        return facts

    def order(self, verb: str, facts: dict[str, Any]) -> str:
        """Carry out an order."""
        about = {"reason": facts.get("reason", "by the page"), "request_id": f"ui-{secrets.token_hex(6)}"}
        if verb == "launch":
            return self._launch(facts, about)
        event = {"action": verb, "by": getuser(), **about} | _scope(verb, facts)
        answer = self._deployed.call("operate", event)
        steps, held = (answer.get("plan", {}).get(part, []) for part in ("steps", "held"))
        done = sum(step["outcome"] == "done" for step in steps)
        told = f"{verb}: {done} of {len(steps)} steps done" if steps else f"{verb}: done"
        return "; ".join([told, *(f"not done: {one['detail']}" for one in held[:1])])

    def _launch(self, facts: dict[str, Any], about: dict[str, Any]) -> str:
        if "pool" not in facts:
            raise ConfigError("launch: name a pool")
        wanted = _number("count", facts.get("count", "1"))
        event = {"pool": facts["pool"], "count": wanted, "keep_minutes": _number("minutes", facts.get("minutes", "60"))}
        answer = self._deployed.call("scale_up", event | about)
        launched = sum(step.get("launched", step.get("started", 0)) for step in answer["steps"])
        price = f" for {dollars(usd)} an hour" if (usd := usd_per_hour({"dry_run": False} | answer)) else ""
        return "; ".join([f"launched {launched} of {wanted}{price}", *(f"not done: {one['detail']}" for one in answer["held"][:1])])


def serve(source: DeployedSource, port: int, *, every_seconds: float) -> None:
    """Serve the live page until Ctrl-C."""
    with _extra():
        from autoscaler_workbench.ui.app import Page  # noqa: PLC0415 - the page is an extra
    _listen(lambda token: Page(source, token, every_seconds), port)


def serve_day(day: Recorded, port: int) -> None:
    """Serve the page of a recorded day until Ctrl-C."""
    with _extra():
        from autoscaler_workbench.ui.day import DayPage  # noqa: PLC0415 - the page is an extra
    _listen(lambda token: DayPage(day, token), port)


@contextmanager
def _extra() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ConfigError(f"the page needs more packages: pip install 'jenkins-autoscaler-workbench[ui]' ({error})") from error


def _listen(site: Callable[[str], "Site"], port: int) -> None:
    """Serve a page. The address carries a new token each time; nobody else on this machine knows it."""
    with _extra():
        import uvicorn  # noqa: PLC0415 - the page is an extra
    try:
        listening = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise ConfigError(f"--port ({port}): cannot be listened on ({error.strerror})") from error
    token = secrets.token_urlsafe(16)
    say(f"http://127.0.0.1:{port}/?token={token}\nopen this address; Ctrl-C ends the page")
    config = uvicorn.Config(site(token).app(), log_level="critical", timeout_graceful_shutdown=1)
    with listening:
        uvicorn.Server(config).run(sockets=[listening])


def _scope(verb: str, facts: dict[str, Any]) -> dict[str, Any]:
    if "pool" not in facts and not (verb == "drain" and "node" in facts):
        raise ConfigError(f"{verb}: name a pool; for the whole fleet there are autoscaler hold --fleet and resume --fleet")
    scope: dict[str, Any] = {"pool": facts.get("pool")}
    if verb == "hold":
        return scope | {"minutes": _number("minutes", facts.get("minutes", "60"))}
    if verb == "drain":
        return {"nodes": [facts["node"]]} if "node" in facts else scope | {"count": _number("count", facts.get("count", "1"))}
    return scope


def _number(name: str, text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 10_080:
        raise ConfigError(f"{name} ({text}): must be a whole number from 1 to 10,080")
    return int(text)
