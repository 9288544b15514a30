"""What a reader sees of an HTML page: its lines of text, without markup."""

from html.parser import HTMLParser

_BLOCKS = {"p", "li", "h1", "h2", "h3", "tr", "div", "section", "header", "form", "summary", "svg", "span"}
_UNSEEN = {"head", "script", "style"}


class _Lines(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.lines = [""]
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._unseen += tag in _UNSEEN
        self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        self._unseen -= tag in _UNSEEN
        self._break(tag)

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.lines[-1] += data

    def _break(self, tag: str) -> None:
        if tag in _BLOCKS or tag in {"em", "b", "i"}:
            self.lines.append("")


def visible(page: str) -> list[str]:
    """Return the lines of text of a page, without empty ones."""
    reader = _Lines()
    reader.feed(page)
    return [line for line in (" ".join(line.split()) for line in reader.lines) if line]
