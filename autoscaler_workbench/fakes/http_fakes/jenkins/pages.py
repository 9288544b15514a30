"""Pages that Jenkins shows people, and answers clients with that it refuses."""

from html import escape

STARTING = "<!DOCTYPE html><html><head><title>Starting Jenkins</title></head><body>Jenkins is getting ready to work</body></html>"
_HEAD = "<title>Jenkins - Jenkins</title>" + " " * 70_000
LONG_PAGE = f"<html>{_HEAD}</html>"


def failure_page(message: str) -> str:
    """What hudson.model.Failure shows (AbstractModelObject/error.jelly), below the head of every page."""
    return f'<!DOCTYPE html><html>{_HEAD}<div id="main-panel"><h1>Error</h1><p>{escape(message)}</p></div></html>'
