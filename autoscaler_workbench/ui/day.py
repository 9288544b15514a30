"""The page of a recorded day: the same look at any of its moments, and nothing to order."""

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from autoscaler_workbench.ui.site import Site, no_cookie
from autoscaler_workbench.ui.source import Looking, Recorded

_STEP_SECONDS = 60


class DayPage(Site):
    """The page of one day."""

    def __init__(self, day: Recorded, token: str) -> None:
        """Keep the day."""
        super().__init__(token)
        self._day = day

    def routes(self) -> list[BaseRoute]:
        """List the look at a moment."""
        return [Route("/at", self.at)]

    def page(self) -> str:
        """Write the page, opened at the busiest moment of the day."""
        begin, end = int(self._day.begins_at), int(self._day.ends_at)
        opened = begin + int(self._day.busiest_at - begin) // _STEP_SECONDS * _STEP_SECONDS
        facts = {"title": self._day.title, "begin": begin, "end": end, "step": _STEP_SECONDS, "at": opened}
        return self.render("day.html", look=self._look_at(opened), **facts)

    def looking(self, request: Request) -> Looking:
        """Look at the moment that a request names."""
        return self._day.at(self._when(request))

    async def at(self, request: Request) -> Response:
        """Show a moment."""
        if not self.may_look(request):
            return no_cookie()
        return HTMLResponse(await run_sync(self._look_at, self._when(request)))

    def _look_at(self, when: float) -> str:
        return self.look(self._day.at(when), when)

    def _when(self, request: Request) -> float:
        """The moment that is named, within the day; its end where none is."""
        named = request.query_params.get("at", "")
        when = float(named) if named.isdigit() and len(named) <= 12 else self._day.ends_at
        return min(max(when, self._day.begins_at), self._day.ends_at)
