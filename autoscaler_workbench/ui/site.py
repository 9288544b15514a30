"""What both pages have in common: who may look, and how a look is written.

They listen on this machine only. A page of another site could make a browser send requests here, so every request needs the cookie that
the printed address sets, and the Host must be this machine's.
"""

import hmac
import sys
import traceback
from abc import ABC, abstractmethod
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from anyio.to_thread import run_sync
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from autoscaler.domain.wording import counted, dollars, shortened
from autoscaler.errors import AutoscalerError
from autoscaler_workbench.ui import picture, trouble, view
from autoscaler_workbench.ui.costs import cost_table
from autoscaler_workbench.ui.source import Looking

_HERE = Path(str(files(__package__)))
_COOKIE = "autoscaler_ui"
_EVENTS_SHOWN = 60


class Site(ABC):
    """A page behind a token."""

    def __init__(self, token: str) -> None:
        """Keep what lets a person in."""
        self._token = token
        self._templates = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=select_autoescape(default=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters["with_command"] = _with_command

    def app(self) -> Starlette:
        """Make the application."""
        routes = [
            Route("/", self.index),
            Route("/why", self.why),
            *self.routes(),
            Mount("/static", StaticFiles(directory=_HERE / "static")),
        ]
        hosts = Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
        return Starlette(routes=routes, middleware=[hosts], exception_handlers={Exception: _failed})

    @abstractmethod
    def routes(self) -> list[BaseRoute]:
        """List what there is beside the page itself and `why`."""

    @abstractmethod
    def page(self) -> str:
        """Write the page."""

    @abstractmethod
    def looking(self, request: Request) -> Looking:
        """The look that a request is about."""

    async def index(self, request: Request) -> Response:
        """Give the page; the address with the token sets the cookie first."""
        if self.is_token(request.query_params.get("token", "")):
            response: Response = RedirectResponse("/", status_code=303)
            response.set_cookie(_COOKIE, self._token, httponly=True, samesite="strict")
            return response
        if not self.may_look(request):
            return PlainTextResponse("open the address that `autoscaler ui` printed, with its token\n", status_code=403)
        return HTMLResponse(await run_sync(self.page))

    async def why(self, request: Request) -> Response:
        """Explain one thing."""
        if not self.may_look(request):
            return no_cookie()
        subject = request.query_params.get("subject", "").strip()
        return HTMLResponse(await run_sync(self._why, self.looking(request), subject))

    def look(self, looking: Looking, now: float | None = None) -> str:
        """Write what a look shows. ``now``: the moment to mark in the picture of a day."""
        try:
            return self._fleet(looking, now)
        except AutoscalerError as error:
            return self.render("trouble.html", error=" ".join(str(error).split()))
        except Exception as error:  # noqa: BLE001 - the page says so and goes on: its next look may succeed
            return self.render("trouble.html", error=reported("the page could not be written", error))

    def _fleet(self, looking: Looking, now: float | None) -> str:
        told, past = looking.overview(), looking.past()
        rings = [alarm for alarm in past.alarms if alarm["state"] == "ALARM"]
        return self.render(
            "fleet.html",
            told=told,
            orders=list(trouble.overrides_in_force(told)),
            broken=trouble.broken_pools(told["status"]),
            problems=[*trouble.problems(told["status"]), *filter(None, [past.unknown])],
            pools=view.pool_rows(told),
            queue=view.queue_rows(told["queue"]),
            meters=view.meters(told["status"]),
            events=view.newest(told["events"], _EVENTS_SHOWN),
            ringing=sorted(rings, key=_name_of_alarm),
            quiet=sorted((alarm for alarm in past.alarms if alarm not in rings), key=_name_of_alarm),
            spend=picture.spend_of(past, told["status"]["max_usd_per_hour"]),
            costs=cost_table(told),
            limit=dollars(told["status"]["max_usd_per_hour"]),
            ticks=picture.ticks_of(past),
            rang=picture.rang_of(past),
            marked=None if now is None else picture.percent_of(past, now),
            span=f"{picture.span_of(past, past.begins_at, past.ends_at)} UTC",
            counted=counted,
            day_time=partial(trouble.day_time, now=told["now_at"]),
        )

    def _why(self, looking: Looking, subject: str) -> str:
        try:
            facts = looking.why(subject)
        except AutoscalerError as error:
            facts = [" ".join(str(error).split())]
        return self.render("why.html", subject=subject, facts=facts)

    def render(self, template: str, **facts: Any) -> str:
        """Fill in a template."""
        return self._templates.get_template(template).render(**facts)

    def may_look(self, request: Request) -> bool:
        """Tell whether the printed address was opened in this browser."""
        return self.is_token(request.cookies.get(_COOKIE, ""))

    def is_token(self, given: str) -> bool:
        """Tell whether this is the token."""
        return hmac.compare_digest(given.encode(), self._token.encode())


def _name_of_alarm(alarm: dict[str, Any]) -> str:
    return str(alarm["alarm"])


def _with_command(line: str) -> Markup:
    """Set the command that ends a line apart, to be seen and copied."""
    before, colon, command = line.rpartition(": autoscaler ")
    return Markup("{}: <code>autoscaler {}</code>").format(before, command) if colon else escape(line)


def no_cookie() -> Response:
    """Refuse whoever has not opened the printed address."""
    return PlainTextResponse("no cookie\n", status_code=403)


def _failed(request: Request, error: Exception) -> Response:
    """Answer a request whose handling failed, and say so in the terminal."""
    return PlainTextResponse(f"{reported(f'{request.url.path} could not be answered', error)}\n", status_code=500)


def reported(what: str, error: Exception) -> str:
    """Write an error of the page itself as a line in the terminal, with its place; return the line for the page."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    line = f"{what}: {type(error).__name__}: {shortened(str(error), 300)}"
    sys.stderr.write(f"autoscaler ui: {line} ({Path(place.filename).name}, line {place.lineno})\n")
    return line
