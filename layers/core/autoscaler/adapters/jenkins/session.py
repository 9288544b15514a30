"""python-jenkins' session with the manners we need: no redirects, a cap on size, time-outs, a deadline, typed errors."""

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

import jenkins
import requests
import urllib3
from requests.auth import HTTPBasicAuth

from autoscaler.errors import AutoscalerError, ConfigError, NoAnswerError, TransientError, UnansweredError

CONNECT_SECONDS, READ_SECONDS = 3.05, 8.0
# From a request to the end of its answer, where no other deadline was set: an answer may come in pieces that are each in time.
CALL_SECONDS = 12.0
MAX_BYTES = 64 * 1024 * 1024
_CHUNK = 256 * 1024
_GZIP = 47  # zlib's word for "gzip or zlib, as it says itself"
_NO_CRUMB = "No valid crumb"
# Jenkins answers a POST to one of these with a way back to what is below it.
_LEADS_BACK = ("computer", "queue")


class StartingError(TransientError):
    """Jenkins is starting up; nothing it says counts yet."""


class NotThereError(TransientError):
    """Jenkins answered 404."""


class RefusedCredentialsError(ConfigError):
    """Jenkins does not know who asks, or not any more: whatever was asked for was not done."""


class RedirectedError(TransientError):
    """The answer leads elsewhere than Jenkins leads: it is of a login page or a proxy, and nothing was done."""


class RefusedRequestError(TransientError):
    """Jenkins answered 4xx to a request that was wrong, or wrong by now."""

    def __init__(self, status: int, message: str) -> None:
        """Keep the status."""
        super().__init__(message)
        self.status = status


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
        except ValueError as error:
            raise TransientError(f"Jenkins' answer is no JSON ({len(self.body)} bytes)") from error


class JenkinsSession(jenkins.Jenkins):  # type: ignore[misc]
    """One controller's connection. Not safe for threads: each controller has its own, and is asked by one thread at a time."""

    def __init__(self, url: str, username: str | None, token: str | None, monotonic: Callable[[], float]) -> None:
        """Keep the connection open between calls; ``monotonic``: seconds of a clock that never jumps."""
        super().__init__(url, username, token, timeout=READ_SECONDS)
        self._monotonic = monotonic
        self._until: float | None = None
        self._settings: dict[str, Any] | None = None
        self._session.headers["Accept-Language"] = "en"
        self._session.headers["Accept-Encoding"] = "gzip"
        # A given user is always told; python-jenkins would ask around first.
        if username is not None and token is not None:
            self._session.auth = HTTPBasicAuth(username.encode(), token.encode())
        self._auth_resolved = True

    def trust(self, bundle: str) -> None:
        """Trust the certificate authorities in this file, and only those."""
        self._session.verify = bundle

    def allow_seconds(self, seconds: float | None) -> None:
        """Set the deadline of all calls from now on; None: each call has its own again."""
        self._until = None if seconds is None else self._monotonic() + seconds

    def get(self, path: str, tree: str | None = None) -> Answer:
        """GET a part of the API, or a file."""
        return self._call(requests.Request("GET", self._url(path, {"tree": tree} if tree else {})))

    def post(self, path: str, query: Mapping[str, str] | None = None, data: Mapping[str, str] | None = None) -> Answer:
        """POST without a crumb, as tokens need none; a password needs one, and then the refusal proves that nothing was done."""
        return self._post(requests.Request("POST", self._url(path, query or {}), data=dict(data or {})))

    def post_xml(self, path: str, body: bytes) -> Answer:
        """POST a document, likewise."""
        return self._post(requests.Request("POST", self._url(path, {}), data=body, headers={"Content-Type": "application/xml"}))

    def _post(self, request: requests.Request) -> Answer:
        try:
            return self._call(request)
        except RefusedRequestError as error:
            if _NO_CRUMB not in str(error):
                raise
        answer = self._call(requests.Request("GET", self._url("crumbIssuer/api/json", {})))
        crumb = answer.json()
        request.headers[crumb["crumbRequestField"]] = crumb["crumb"]
        return self._call(request)

    def _url(self, path: str, query: Mapping[str, str]) -> str:
        return f"{self.server}{path}" + (f"?{urlencode(query)}" if query else "")

    def _call(self, request: requests.Request) -> Answer:
        until = self._monotonic() + CALL_SECONDS if self._until is None else self._until
        seconds = min(READ_SECONDS, until - self._monotonic())
        if seconds <= 0:
            raise NoAnswerError("Jenkins was too slow: no time is left for another request in this pass")
        prepared = self._session.prepare_request(request)
        if self._settings is None:  # proxies and certificates; looking through the environment once is enough
            self._settings = self._session.merge_environment_settings(prepared.url, {}, stream=True, verify=self._session.verify, cert=None)
        manners = {"stream": True, "timeout": (CONNECT_SECONDS, seconds), "allow_redirects": False}
        try:
            response = self._session.send(prepared, **{**self._settings, **manners})
            with response:
                answer = _checked(response, self._read(response, until))
            refuse_redirect(request.method, request.url, answer)
        except requests.ConnectTimeout as error:
            raise NoAnswerError("Jenkins could not be reached in time") from error
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            lost = UnansweredError if request.method == "POST" else NoAnswerError
            raise lost(f"the connection to Jenkins failed ({type(error).__name__})") from error
        return answer

    def _read(self, response: requests.Response, until: float) -> bytes:
        """Read the body: bounded in size and in time, and of an error no more than its beginning."""
        # A redirect after a POST and every error page are big, and of no use beyond their first lines.
        limit = MAX_BYTES if response.status_code == requests.codes.ok else 4096
        # As it comes, never waiting for a full chunk or for what can be decoded: a byte a second would never let the deadline be seen.
        body = bytearray()
        while len(body) < limit and (piece := response.raw.read1(_CHUNK, decode_content=False)):
            body += piece
            if self._monotonic() > until:
                lost = UnansweredError if response.request.method == "POST" else NoAnswerError
                raise lost("Jenkins was too slow: the time ran out while reading its answer")
        plain = _decoded(response, bytes(body), limit)
        if len(plain) >= MAX_BYTES:
            raise TransientError(f"Jenkins' answer is larger than {MAX_BYTES} bytes")
        return plain


def _decoded(response: requests.Response, body: bytes, limit: int) -> bytes:
    """Unpack a body; of what is no success the beginning is enough."""
    if "gzip" not in response.headers.get("Content-Encoding", ""):
        return body[:limit]
    packed = zlib.decompressobj(_GZIP)
    try:
        plain = packed.decompress(body, limit)
    except zlib.error as error:
        raise TransientError("Jenkins' answer cannot be unpacked") from error
    if response.status_code == requests.codes.ok and len(plain) < limit and not packed.eof:
        raise TransientError("Jenkins' answer ended in the middle")
    return plain


def _checked(response: requests.Response, body: bytes) -> Answer:
    status = response.status_code
    if status < requests.codes.bad_request:
        return Answer(status, response.headers, body)
    raise error_of(status, response.headers, body.decode("utf-8", "replace"))


def refuse_redirect(method: str, url: str, answer: Answer) -> None:
    """Raise `RedirectedError` for a redirect that is not Jenkins' own way back from a POST. The path tells, not the host.

    Behind a proxy that does not pass the host on, Jenkins names another one than it is asked by (recorded: f01, e06, e07).
    """
    if not requests.codes.multiple_choices <= answer.status < requests.codes.bad_request:
        return
    asked, led = urlsplit(url), urlsplit(urljoin(url, answer.headers.get("Location", "")))
    below = [part for part in _LEADS_BACK if f"/{part}/" in asked.path]
    back = method == "POST" and (not below or f"/{below[0]}/" in f"{led.path}/")
    if not back or led.path.rstrip("/") == asked.path.rstrip("/"):
        raise RedirectedError(f"{method} was answered with a redirect to {led.netloc}{led.path}: a login page or a proxy is in the way")


def error_of(status: int, headers: Mapping[str, str], text: str) -> AutoscalerError:
    """Name what an error status means for the loop."""
    if status == requests.codes.unauthorized:
        return RefusedCredentialsError("Jenkins refused the credentials (401): check the controller's secret")
    if status == requests.codes.forbidden:
        if _NO_CRUMB in text:
            return RefusedRequestError(status, f"Jenkins answered 403: {_NO_CRUMB}")
        permission = headers.get("X-Required-Permission")
        if permission:
            return ConfigError(f"Jenkins answered 403: the account lacks {permission}")
        return RefusedCredentialsError("Jenkins answered 403: no or unknown credentials were sent")
    if status == requests.codes.not_found:
        # A proxy that lost its way to Jenkins says 404, too: that a node is not there is believed of Jenkins alone.
        return (
            NotThereError("Jenkins answered 404")
            if "X-Jenkins" in headers
            else TransientError("something that is not Jenkins answered 404")
        )
    if status == requests.codes.service_unavailable:
        starting = "getting ready" in text or "Starting" in text
        return StartingError("Jenkins is starting up (503)") if starting else TransientError("Jenkins answered 503")
    if status < requests.codes.internal_server_error:
        return RefusedRequestError(status, f"Jenkins answered {status}: {headers.get('X-Error', 'no reason given')}")
    return TransientError(f"Jenkins answered {status}")
