"""The page of a fleet that runs: live over server-sent events, with orders behind a token."""

from collections.abc import AsyncIterator
from typing import Any

import anyio
from anyio.to_thread import run_sync
from sse_starlette import EventSourceResponse
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from autoscaler.errors import AutoscalerError
from autoscaler_workbench.ui.site import Site, no_cookie
from autoscaler_workbench.ui.source import Looking, Source

VERBS = ("hold", "resume", "launch", "drain")


class Page(Site):
    """The page of one source. ``every_seconds``: how often its live part is read anew, while anybody looks at it."""

    def __init__(self, source: Source, token: str, every_seconds: float) -> None:
        """Keep whom to ask."""
        super().__init__(token)
        self._source = source
        self._every = every_seconds

    def routes(self) -> list[BaseRoute]:
        """List the live part and the orders."""
        return [Route("/live", self.live), Route("/order", self.order, methods=["POST"])]

    def page(self) -> str:
        """Write the page."""
        return self.render("live.html", look=self.look(self._source), token=self._token, verbs=VERBS)

    def looking(self, request: Request) -> Looking:  # noqa: ARG002 - a day's page needs it
        """Every request is about now."""
        return self._source

    async def live(self, request: Request) -> Response:
        """Send the live part anew each few seconds, until the page is closed."""
        return EventSourceResponse(self._changes(request)) if self.may_look(request) else no_cookie()

    async def order(self, request: Request) -> Response:
        """Carry out an order that a person has confirmed."""
        form = {name: str(value).strip() for name, value in (await request.form()).items()}
        if not self.may_look(request) or not self.is_token(form.pop("token", "")):
            return PlainTextResponse("no token\n", status_code=403)
        verb = form.pop("verb", "")
        if verb not in VERBS:
            return PlainTextResponse(f"verb ({verb}): must be one of {', '.join(VERBS)}\n", status_code=400)
        return HTMLResponse(await run_sync(self._order, verb, {name: value for name, value in form.items() if value}))

    async def _changes(self, request: Request) -> AsyncIterator[dict[str, str]]:
        while not await request.is_disconnected():
            await anyio.sleep(self._every)
            yield {"event": "fleet", "data": await run_sync(self.look, self._source)}

    def _order(self, verb: str, facts: dict[str, Any]) -> str:
        try:
            return self.render("done.html", text=self._source.order(verb, facts), refused=False)
        except AutoscalerError as error:
            return self.render("done.html", text=" ".join(str(error).split()), refused=True)
