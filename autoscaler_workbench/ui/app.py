"""The web application: one page, its live part over server-sent events, `why` on a click, and orders behind a token.

It listens on this machine only. A page of another site could make a browser send requests here, so every request needs the cookie that
the printed address sets, every order the token as well, and the Host must be this machine's.
"""

import hmac
from collections.abc import AsyncIterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import anyio
from anyio.to_thread import run_sync
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from autoscaler.domain.wording import counted
from autoscaler.errors import AutoscalerError
from autoscaler_workbench.ui import view
from autoscaler_workbench.ui.source import Source

_HERE = Path(str(files(__package__)))
_COOKIE = "autoscaler_ui"
_EVENTS_SHOWN = 60
VERBS = ("hold", "resume", "launch", "drain")


class Page:
    """The page of one source. ``every_seconds``: how often its live part is read anew, while anybody looks at it."""

    def __init__(self, source: Source, token: str, every_seconds: float) -> None:
        """Keep whom to ask."""
        self._source = source
        self._token = token
        self._every = every_seconds
        self._templates = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=select_autoescape(default=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    def app(self) -> Starlette:
        """Make the application."""
        routes = [
            Route("/", self.index),
            Route("/live", self.live),
            Route("/why", self.why),
            Route("/order", self.order, methods=["POST"]),
            Mount("/static", StaticFiles(directory=_HERE / "static")),
        ]
        hosts = Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
        return Starlette(routes=routes, middleware=[hosts])

    async def index(self, request: Request) -> Response:
        """Give the page; the address with the token sets the cookie first."""
        if self._is_token(request.query_params.get("token", "")):
            response: Response = RedirectResponse("/", status_code=303)
            response.set_cookie(_COOKIE, self._token, httponly=True, samesite="strict")
            return response
        if not self._may_look(request):
            return PlainTextResponse("open the address that `autoscaler ui` printed, with its token\n", status_code=403)
        live = await run_sync(self._fleet)
        return HTMLResponse(self._render("page.html", live=live, token=self._token, verbs=VERBS))

    async def live(self, request: Request) -> Response:
        """Send the live part anew each few seconds, until the page is closed."""
        if not self._may_look(request):
            return PlainTextResponse("no cookie\n", status_code=403)
        return EventSourceResponse(self._changes(request))

    async def why(self, request: Request) -> Response:
        """Explain one thing."""
        if not self._may_look(request):
            return PlainTextResponse("no cookie\n", status_code=403)
        subject = request.query_params.get("subject", "").strip()
        return HTMLResponse(await run_sync(self._why, subject))

    async def order(self, request: Request) -> Response:
        """Carry out an order that a person has confirmed."""
        form = {name: str(value).strip() for name, value in (await request.form()).items()}
        if not self._may_look(request) or not self._is_token(form.pop("token", "")):
            return PlainTextResponse("no token\n", status_code=403)
        verb = form.pop("verb", "")
        if verb not in VERBS:
            return PlainTextResponse(f"verb ({verb}): must be one of {', '.join(VERBS)}\n", status_code=400)
        return HTMLResponse(await run_sync(self._order, verb, {name: value for name, value in form.items() if value}))

    async def _changes(self, request: Request) -> AsyncIterator[dict[str, str]]:
        while not await request.is_disconnected():
            await anyio.sleep(self._every)
            yield {"event": "fleet", "data": await run_sync(self._fleet)}

    def _fleet(self) -> str:
        try:
            told, alarms = self._source.overview(), self._source.alarms()
        except AutoscalerError as error:
            return self._render("trouble.html", error=" ".join(str(error).split()))
        return self._render(
            "fleet.html",
            told=told,
            pools=view.pool_rows(told),
            queue=view.queue_rows(told["queue"]),
            meters=view.meters(told["status"]),
            problems=view.problems(told["status"]),
            events=view.newest(told["events"], _EVENTS_SHOWN),
            alarms=sorted(alarms, key=lambda alarm: (alarm["state"] != "ALARM", alarm["alarm"])),
            counted=counted,
            clock=view.clock,
        )

    def _why(self, subject: str) -> str:
        try:
            facts = self._source.why(subject)
        except AutoscalerError as error:
            facts = [" ".join(str(error).split())]
        return self._render("why.html", subject=subject, facts=facts)

    def _order(self, verb: str, facts: dict[str, Any]) -> str:
        try:
            return self._render("done.html", text=self._source.order(verb, facts), refused=False)
        except AutoscalerError as error:
            return self._render("done.html", text=" ".join(str(error).split()), refused=True)

    def _render(self, template: str, **facts: Any) -> str:
        return self._templates.get_template(template).render(**facts)

    def _may_look(self, request: Request) -> bool:
        return self._is_token(request.cookies.get(_COOKIE, ""))

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())
