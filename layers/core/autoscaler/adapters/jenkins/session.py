"""python-jenkins, made safe to wait for: every call has a deadline, a size limit, no redirects and our own errors."""

import json
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import unescape
from io import BytesIO
from math import inf
from typing import Any, TypeVar
from urllib.parse import urlencode, urljoin, urlsplit

import jenkins
import requests
import urllib3
from requests.auth import HTTPBasicAuth

from autoscaler.domain.wording import shortened
from autoscaler.errors import AutoscalerError, ConfigError, DoubtfulError, NoAnswerError, TransientError, UnansweredError

# Who answered a request: Jenkins itself, or a proxy, a load balancer or a login service in front of it, and what that calls itself.


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


# Sends requests, and turns answers into our errors.


CONNECT_SECONDS, READ_SECONDS = 3.05, 8.0
# From a request to the end of its answer, where no other deadline was set: an answer may come in pieces that are each in time.
CALL_SECONDS = 12.0
MAX_BYTES = 64 * 1024 * 1024
_ERROR_BYTES = 4096
_REASON_BYTES = 256 * 1024  # of the page of a form that is refused, whose reason stands in its midst
_CHUNK = 256 * 1024
_GZIP = 47  # zlib's word for "gzip or zlib, as it says itself"
_NO_CRUMB = "No valid crumb"
QUEUE = jenkins.Q_INFO.partition("?")[0]
# Jenkins answers a POST to one of these with a way back to what is below it.
_LEADS_BACK = ("computer", "queue")
# What Jenkins answers a POST that it has carried out (recorded: e06, e08, b00; 303: the item that it was asked for waits already).
# A document is answered with 200 and no page.
_DONE = (requests.codes.created, requests.codes.no_content, requests.codes.found, requests.codes.see_other)
_IN_THE_WAY = "a login page or a proxy is in the way"


class TooLargeError(TransientError):
    """An answer is larger than may be read at once, or comes so slowly that it will be."""


class StartingError(TransientError):
    """Jenkins is starting up; nothing it says counts yet."""


class NotThereError(TransientError, jenkins.NotFoundException):  # type: ignore[misc]
    """Jenkins answered 404."""


class RefusedCredentialsError(ConfigError):
    """Jenkins refused the credentials; nothing was done."""


class LackingPermissionError(ConfigError):
    """The account lacks a permission; nothing was done."""


class InTheWayError(TransientError):
    """Something in front of Jenkins, such as a load balancer, refused the request; nothing was done."""


class RedirectedError(InTheWayError):
    """A login page or a proxy redirected the request; nothing was done."""


class AnsweredError(TransientError):
    """An error was answered; nothing more is known of it than its status."""

    def __init__(self, status: int, message: str) -> None:
        """Keep the status."""
        super().__init__(message)
        self.status = status


class RefusedRequestError(AnsweredError):
    """Jenkins answered 4xx: the request was wrong, or is by now."""


class FailedRequestError(AnsweredError):
    """Jenkins, or a proxy before it, answered 5xx."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How much of an answer is read. After ``seconds`` an answer of more than ``slow_bytes`` that has not ended is too large, too."""

    most_bytes: int
    seconds: float = inf
    slow_bytes: int = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """A 2xx or 3xx answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Read the body as JSON; `TransientError` when it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            page = f": {self._in_its_place}" if is_page(self.headers, self.body) else ""
            raise TransientError(f"Jenkins' answer is no JSON ({len(self.body)} bytes){page}") from error

    @property
    def session(self) -> str | None:
        """Return what Jenkins calls its session, which is another one after each start; None if it does not say."""
        return shortened(self.headers.get("X-Jenkins-Session", "")) or None

    def document(self) -> bytes:
        """Return the body of a file; `InTheWayError` when it is a page for people: Jenkins has none in its place."""
        if is_page(self.headers, self.body):
            raise InTheWayError(f"Jenkins' answer is no file: {self._in_its_place}")
        return self.body

    @property
    def _in_its_place(self) -> str:
        return f"a page instead{what_answered(self.headers, self._text)}, {_IN_THE_WAY}"

    def must_be_done(self, *, with_text: bool) -> None:
        """Raise `DoubtfulError` if this is not what Jenkins answers a POST that it has carried out. ``with_text``: 200 and a text."""
        if self.status in _DONE or (with_text and self.status == requests.codes.ok and not is_page(self.headers, self.body)):
            return
        raise DoubtfulError(f"a POST was answered {self.status}{what_answered(self.headers, self._text)}: {_IN_THE_WAY}")

    @property
    def _text(self) -> str:
        return self.body[:_CHUNK].decode("utf-8", "replace")


class JenkinsSession(jenkins.Jenkins):  # type: ignore[misc]
    """One controller's connection. Not safe for threads: each controller has its own, and one thread at a time uses it.

    Every call of python-jenkins sends through `_request` and judges the answer in `_response_handler`; both are ours. Its calls for one
    purpose stay out: ``enable_node`` and ``disable_node`` toggle what they read a moment before, and turn round a mark that somebody set
    in between; ``create_node`` and ``delete_node`` take three requests for one; ``get_running_builds``, ``get_all_jobs`` and ``get_nodes``
    ask node by node or for everything, which at ten thousand agents is thousands of requests or a hundred megabytes.
    """

    def __init__(self, url: str, username: str | None, token: str | None, monotonic: Callable[[], float], bundle: str = "") -> None:
        """Keep the connection open between calls; ``monotonic``: seconds of a clock that never jumps.

        ``bundle``: a file of certificate authorities; these are trusted then, and only these.
        """
        # Not by python-jenkins' own constructor: it obeys the environment. PYTHONHTTPSVERIFY=0 switches off TLS checks for it, and
        # JENKINS_API_EXTRA_HEADERS adds headers and logs them.
        self.server = url if url.endswith("/") else f"{url}/"
        self.timeout = READ_SECONDS
        self.crumb = None
        self.username = username  # the account that it speaks as; None: nobody
        self.auth = None if username is None or token is None else HTTPBasicAuth(username.encode(), token.encode())
        self._auths = [("basic" if self.auth else "anonymous", self.auth)]
        self._auth_resolved = True  # it never tries Kerberos first
        self._session = requests.Session()
        # Neither proxies nor certificate authorities nor a .netrc are looked for in the environment.
        self._session.trust_env = False
        self._session.verify = bundle or True
        self._session.auth = self.auth
        self._session.headers.update({"Accept-Language": "en", "Accept-Encoding": "gzip"})
        self._monotonic = monotonic
        self._until: float | None = None
        self._patience: Patience | None = None
        self._status = 0  # of the last answer

    def allow_seconds(self, seconds: float | None) -> None:
        """Set the deadline of all calls from now on; None: each call has its own again."""
        self._until = None if seconds is None else self._monotonic() + seconds

    def get(self, path: str, tree: str | None = None, patience: Patience | None = None) -> Answer:
        """GET a part of the API, or a file; `TooLargeError` where there is more of it than ``patience``."""
        self._patience = patience
        try:
            return self._answer(requests.Request("GET", self._url(path, {"tree": tree} if tree else {})))
        finally:
            self._patience = None

    def post(
        self, path: str, query: Mapping[str, str] | None = None, data: Mapping[str, str] | bytes = b"", *, with_text: bool = False
    ) -> Answer:
        """POST a form, or an XML document as bytes; `DoubtfulError` where the answer is not one that Jenkins gives when it has done so.

        ``with_text``: 200 and a text is such an answer, too, as it is to a document.
        """
        headers = {"Content-Type": "application/xml"} if data and isinstance(data, bytes) else {}
        answer = self._post(requests.Request("POST", self._url(path, query or {}), data=data, headers=headers))
        answer.must_be_done(with_text=with_text)
        return answer

    def maybe_add_crumb(self, req: requests.Request) -> None:
        """Add the crumb only once Jenkins has demanded one: a password needs it, a token does not."""
        if self.crumb:
            super().maybe_add_crumb(req)

    def _post(self, request: requests.Request) -> Answer:
        """POST; a 403 that names no permission may be about a crumb, and proves that nothing was done: get one and POST again."""
        try:
            return self._answer(request)
        except (RefusedRequestError, RefusedCredentialsError, InTheWayError) as error:
            if self._status != requests.codes.forbidden:
                raise
            refusal = error
        self.crumb = None
        try:
            super().maybe_add_crumb(request)
        except (ValueError, LookupError, TypeError) as error:
            self.crumb = None
            not_understood = TransientError("Jenkins' crumb is not understood")
            raise (not_understood if isinstance(refusal, RefusedRequestError) else refusal) from error
        return self._answer(request)

    def _answer(self, request: requests.Request) -> Answer:
        response = self.jenkins_request(request)
        return Answer(response.status_code, response.headers, response.content)

    def _url(self, path: str, query: Mapping[str, str]) -> str:
        return f"{self.server}{path}" + (f"?{urlencode(query)}" if query else "")

    def _request(self, req: requests.Request, stream: bool | None = None) -> requests.Response:  # noqa: ARG002, FBT001 - as python-jenkins calls it
        """Send one request and read its whole answer, within the deadline and the size limit; redirects are not followed."""
        until = self._monotonic() + CALL_SECONDS if self._until is None else self._until
        seconds = min(READ_SECONDS, until - self._monotonic())
        if seconds <= 0:
            raise NoAnswerError("Jenkins was too slow: no time is left for another request in this pass")
        prepared = self._session.prepare_request(req)
        lost = UnansweredError if req.method == "POST" else NoAnswerError
        try:
            response = self._session.send(prepared, stream=True, timeout=(CONNECT_SECONDS, seconds), allow_redirects=False)
            with response:
                body = self._read(response, until, lost)
        except requests.ConnectTimeout as error:
            raise NoAnswerError("Jenkins could not be reached in time") from error
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            raise lost(f"the connection to Jenkins failed ({type(error).__name__})") from error
        response.raw = BytesIO(body)  # what `content` and `text` are then made of
        return response

    def _response_handler(self, response: requests.Response) -> requests.Response:
        """Raise what an error or a redirect means for the loop."""
        self._status = response.status_code
        if response.status_code >= requests.codes.bad_request:
            raise error_of(response.status_code, response.headers, response.content.decode("utf-8", "replace"))
        refuse_redirect(response.request.method or "", response.url, response.status_code, response.headers)
        return response

    def _read(self, response: requests.Response, until: float, lost: type[TransientError]) -> bytes:
        """Read the body within limits of size and time; of an error page only the beginning."""
        # A redirect after a POST and most error pages are big, and of no use beyond their first lines.
        is_ok = response.status_code == requests.codes.ok
        most_bytes = _REASON_BYTES if response.status_code == requests.codes.bad_request else _ERROR_BYTES
        patience, began = self._patience or Patience(MAX_BYTES), self._monotonic()
        limit = patience.most_bytes if is_ok else most_bytes
        unpack = zlib.decompressobj(_GZIP) if "gzip" in response.headers.get("Content-Encoding", "") else None
        plain = bytearray()
        # As it comes, never waiting for a full chunk or for what can be decoded: a byte a second would never let the deadline be seen.
        # Unpacked as it comes, too: what is too large is noticed before Jenkins has made all of it.
        while len(plain) < limit and (piece := response.raw.read1(_CHUNK, decode_content=False)):
            plain += _unpacked(unpack, piece, limit - len(plain))
            now = self._monotonic()
            if now > until:
                raise lost("Jenkins was too slow: the time ran out while reading its answer")
            if now - began > patience.seconds and len(plain) > patience.slow_bytes:
                raise TooLargeError(f"Jenkins' answer is larger than {len(plain)} bytes, and comes slowly")
        if is_ok and len(plain) >= limit:
            raise TooLargeError(f"Jenkins' answer is larger than {limit} bytes")
        if is_ok and unpack is not None and not unpack.eof:
            raise TransientError("Jenkins' answer ended in the middle")
        return bytes(plain)


def _unpacked(unpack: "zlib._Decompress | None", piece: bytes, most: int) -> bytes:
    """Unpack a piece of a body, as far as it is wanted."""
    if unpack is None:
        return piece[:most]
    try:
        return unpack.decompress(piece, most)
    except zlib.error as error:
        raise TransientError("Jenkins' answer cannot be unpacked") from error


def refuse_redirect(method: str, url: str, status: int, headers: Mapping[str, str]) -> None:
    """Raise `RedirectedError` for a redirect that is not Jenkins' own way back from a POST. The path tells, not the host.

    Behind a proxy that does not pass the host on, Jenkins names another one than it is asked by (recorded: f01, e06, e07).
    """
    if not requests.codes.multiple_choices <= status < requests.codes.bad_request:
        return
    asked, led = urlsplit(url), urlsplit(urljoin(url, headers.get("Location", "")))
    below = [part for part in _LEADS_BACK if f"/{part}/" in f"{asked.path.partition('/job/')[0]}/"]  # a folder may have such a name
    done = method == "POST" and status in {requests.codes.found, requests.codes.see_other}  # others mean: ask again, elsewhere
    back = done and (not below or f"/{below[0]}/" in f"{led.path}/")
    if not back or led.path.rstrip("/") == asked.path.rstrip("/"):
        raise RedirectedError(f"{method} was answered with a redirect to {shortened(led.netloc + led.path)}: {_IN_THE_WAY}")


def error_of(status: int, headers: Mapping[str, str], text: str) -> AutoscalerError:
    """Name what an error status means for the loop."""
    own = is_of_jenkins(headers, text)
    # Only a page with a title says that another has sent it: a proxy gives Jenkins' answers its own Server header.
    sender = another_sender(headers, text) if _TITLE.search(text) and not own else "Jenkins"
    if status == requests.codes.unauthorized:
        return RefusedCredentialsError(f"{sender} refused the credentials (401): check the controller's secret")
    if status == requests.codes.forbidden:
        return _refusal(status, headers, text, own=own)
    if status == requests.codes.not_found:
        # A proxy that lost its way to Jenkins says 404, too: that a node is not there is believed of Jenkins alone.
        return (
            NotThereError("Jenkins answered 404")
            if "X-Jenkins" in headers
            else TransientError(f"{another_sender(headers, text)} answered 404")
        )
    if status == requests.codes.service_unavailable:
        starting = "getting ready" in text or "Starting" in text
        return StartingError("Jenkins is starting up (503)") if starting else TransientError(f"{sender} answered 503")
    if status < requests.codes.internal_server_error:
        return RefusedRequestError(status, f"{sender} answered {status}: {reason_of(headers, text)}")
    return FailedRequestError(status, f"{sender} answered {status}")


def _refusal(status: int, headers: Mapping[str, str], text: str, *, own: bool) -> AutoscalerError:
    if _NO_CRUMB in text:  # for people; a proxy's page in its place does not say it
        return RefusedRequestError(status, f"Jenkins answered 403: {_NO_CRUMB}")
    if permission := headers.get("X-Required-Permission"):
        return LackingPermissionError(f"Jenkins answered 403: the account lacks {shortened(permission)}")
    if own:
        return RefusedCredentialsError("Jenkins answered 403: no or unknown credentials were sent")
    return InTheWayError(f"{another_sender(headers, text)} answered 403: a load balancer, a firewall or a login service is in the way")


# One controller's connection: made at the first use, and again where the credentials are refused.


T = TypeVar("T")


def if_there(call: Callable[[], T], otherwise: T) -> T:
    """Return what a call returns; the other value for what Jenkins does not have, or does not show us (404)."""
    try:
        return call()
    except NotThereError:
        return otherwise


@dataclass(slots=True, eq=False)
class Connection:
    """A session that is made when it is needed, and that several adapters of one controller share, one after another."""

    connect: Callable[[], JenkinsSession]
    _connected: JenkinsSession | None = None

    def get(self, path: str, tree: str | None = None) -> Answer:
        """GET a part of the API, or a file."""
        return self.ask(lambda session: session.get(path, tree))

    def post(self, path: str, query: Mapping[str, str]) -> Answer:
        """POST what the query says."""
        return self.ask(lambda session: session.post(path, query))

    def ask(self, call: Callable[[JenkinsSession], T]) -> T:
        """Make a call; where the credentials are refused, read them again and make it once more.

        A warm container keeps credentials for hours; the secret may have been rotated meanwhile. Jenkins has done nothing for a request
        whose credentials it refused, so that the second call repeats nothing.
        """
        try:
            return call(self._session())
        except RefusedCredentialsError:
            self._connected = None
            return call(self._session())

    def _session(self) -> JenkinsSession:
        if self._connected is None:
            self._connected = self.connect()
        return self._connected
