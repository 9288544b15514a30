"""Who answered a request: Jenkins itself, or a proxy, a load balancer or a login service in front of it, and what that calls itself."""

import re
from collections.abc import Mapping
from html import unescape

from autoscaler.domain.wording import shortened

# On each answer that Stapler renders, and on each refusal of a permission (recorded: e02, e03, e05).
_OWN_HEADERS = ("X-Jenkins", "X-Required-Permission", "X-Error")
# On the pages of Jetty within Jenkins, which have no such header (e01, e04), and on the page that leads to Jenkins' login.
_OWN_WORDS = ("HTTP ERROR ", "/login?from=", "No valid crumb was included")
_OWN_REALM, _OWN_SERVER = 'realm="Jenkins"', "Jetty"
_TITLE = re.compile(r"<title[^>]*>([^<]+)</title>", re.IGNORECASE)
# Why a form is refused: below the heading of Jenkins' own page, and on those of Tomcat and Jetty.
_REASON = re.compile(r"</h1>\s*<(?:p|pre)\b[^>]*>([^<]+)|<b>Message</b>([^<]+)|>MESSAGE:</th>\s*<td>([^<]+)")
_LONGEST_TITLE, _LONGEST_SERVER, _LONGEST_REASON = 100, 40, 200
_PAGE = re.compile(rb"\s*<(?:!doctype html|html)\b", re.IGNORECASE)


def is_page(headers: Mapping[str, str], body: bytes) -> bool:
    """Tell whether an answer is a page for people."""
    return "text/html" in headers.get("Content-Type", "").lower() or _PAGE.match(body[:200]) is not None


def is_of_jenkins(headers: Mapping[str, str], text: str) -> bool:
    """Tell whether an error page is Jenkins' own, also behind a proxy that gives it its own ``Server`` header."""
    return (
        any(name in headers for name in _OWN_HEADERS)
        or headers.get("Server", "").startswith(_OWN_SERVER)
        or _OWN_REALM in headers.get("WWW-Authenticate", "")
        or any(words in text for words in _OWN_WORDS)
    )


def has_title(text: str) -> bool:
    """Tell whether a page has a title, by which its sender may be known."""
    return _TITLE.search(text) is not None


def reason_of(headers: Mapping[str, str], text: str) -> str:
    """Return why a request was refused, for people: only Jetty's answers have the header (recorded: e06), so no decision rests on it."""
    found = _REASON.search(text)
    told = headers.get("X-Error") or (found[found.lastindex or 0] if found else "")
    return shortened(" ".join(unescape(told).split()), _LONGEST_REASON) or "no reason given"


def what_answered(headers: Mapping[str, str], text: str) -> str:
    """Name what answered, by all that it says of itself: " (Server nginx, page 'Sign in')"."""
    title, server = _TITLE.search(text), headers.get("Server", "")
    named = [
        f"Server {shortened(server, _LONGEST_SERVER)}" if server else "",
        f"page {shortened(' '.join(title[1].split()), _LONGEST_TITLE)!r}" if title else "",
    ]
    return f" ({', '.join(filter(None, named))})" if any(named) else ""


def another_sender(headers: Mapping[str, str], text: str) -> str:
    """Name something that is not Jenkins."""
    return f"something that is not Jenkins{what_answered(headers, text)}"
