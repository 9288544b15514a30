"""Manners of the Jenkins session that only sockets can show."""

import gzip
import socket
import threading
import time
from contextlib import contextmanager, suppress

import jenkins
import pytest
import requests

from autoscaler.adapters.jenkins.controller import JenkinsController
from autoscaler.adapters.jenkins.session import (
    InTheWayError,
    JenkinsSession,
    LackingPermissionError,
    NotThereError,
    Patience,
    RedirectedError,
    RefusedCredentialsError,
    RefusedRequestError,
    StartingError,
    TooLargeError,
)
from autoscaler.errors import NoAnswerError, TransientError
from autoscaler_workbench.fakes.http_fakes.jenkins.api import JenkinsApi
from autoscaler_workbench.fakes.http_fakes.server import ApiServer
from support.worlds import a_world_node, stand


@contextmanager
def answering(*answers: bytes):
    """A server that gives these raw answers, one a connection, and keeps what it was asked."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    asked.append(connection.recv(65536))
                    connection.sendall(answer)
            listener.close()  # whoever comes now is refused at once

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/", asked
        thread.join(timeout=5)


def controller_at(url, monotonic=lambda: 0.0):
    session = JenkinsSession(url, "u", "t", monotonic)
    return JenkinsController("main", url, lambda: session, monotonic)


def http(status, body=b"", *headers):
    lines = [f"HTTP/1.1 {status}".encode(), b"Connection: close", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def test_a_look_is_three_requests_whatever_the_size():
    with stand("http") as here, ApiServer() as server:
        server.jenkins["main"] = here.api
        for number in range(200):
            here.jenkins.add_node(a_world_node(f"cpu-{number}", "cpu"))
            here.jenkins.submit(f"job-{number}", "gpu", 1.0)
        view = controller_at(f"{server.url}/jenkins/main/").look()
        assert (len(view.nodes), len(view.items)) == (201, 200)
        assert [path.split("?")[0].removeprefix("/jenkins/main/") for path, _ in server.requests] == [
            "queue/api/json",
            "computer/api/json",
            "api/json",
        ]


def test_asks_in_english_for_gzip_and_without_crumb():
    with answering(http("200 OK", b"{}")) as (url, asked):
        controller_at(url).look()
    assert b"Accept-Language: en\r\n" in asked[0]
    assert b"gzip" in asked[0]
    assert b"Crumb" not in asked[0]
    assert asked[0].startswith(b"GET /queue/api/json?tree=")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"items": [',
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"ite\r\n',
        http("200 OK", gzip.compress(b"{}")[:-6], b"Content-Encoding: gzip"),
        http("200 OK", b"<html>login</html>"),
        http("200 OK", b"[]"),
        http("302 Found", b"", b"Location: /login"),
        http("500 Server Error", b"x" * 80_000),
    ],
    ids=["no answer", "half a body", "half a chunk", "half a gzip", "html", "no object", "redirect", "error page"],
)
def test_an_answer_that_cannot_be_read_makes_an_incomplete_view(answer):
    with answering(answer) as (url, _):
        view = controller_at(url).look()
    assert view.problem is not None
    assert (view.items, view.nodes) == ((), ())


def test_nobody_there_makes_an_incomplete_view():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert controller_at(f"http://127.0.0.1:{port}/").look().problem is not None


def test_a_look_has_a_deadline():
    seconds = iter(range(0, 1000, 6))
    with stand("http") as here, ApiServer() as server:
        server.jenkins["main"] = here.api
        view = controller_at(f"{server.url}/jenkins/main/", lambda: float(next(seconds))).look()
    assert "too slow" in view.problem


@contextmanager
def trickling(head: bytes, *, gzipped: bool = False):
    """A server that goes on sending for some seconds, a byte now and then."""
    over = threading.Event()
    body = gzip.compress(b"x" * 200_000)[:250] if gzipped else b" " * 250
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            connection, _ = listener.accept()
            with connection, suppress(ConnectionError):
                connection.recv(65536)
                connection.sendall(head)
                for byte in body:
                    connection.sendall(bytes([byte]))
                    if over.wait(0.02):
                        return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        over.set()
        thread.join(timeout=5)


@pytest.mark.parametrize(
    ("head", "gzipped"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4c4b40\r\n", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\nContent-Encoding: gzip\r\n\r\n", True),
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 5000000\r\n\r\n", False),
    ],
    ids=["length", "one large chunk", "gzip", "an error page"],
)
@pytest.mark.parametrize("call", ["look", "node"])
def test_a_body_that_trickles_ends_at_the_deadline(monkeypatch, head, gzipped, call):
    monkeypatch.setattr("autoscaler.adapters.jenkins.controller.LOOK_SECONDS", 0.4)
    monkeypatch.setattr("autoscaler.adapters.jenkins.session.CALL_SECONDS", 0.4)
    with trickling(head, gzipped=gzipped) as url:
        controller = controller_at(url, time.monotonic)
        began = time.monotonic()
        if call == "look":
            assert "too slow" in controller.look().problem
        else:
            with pytest.raises(NoAnswerError, match="too slow"):
                controller.node("cpu-1")
        assert time.monotonic() - began < 3.0


def test_one_connection_serves_a_whole_look():
    body = b'{"items": [], "computer": [], "quietingDown": false}'
    head = b"HTTP/1.1 200 OK\r\nDate: Fri, 15 Jan 2027 08:00:00 GMT\r\nX-Jenkins-Session: s\r\n"
    packed = gzip.compress(body)
    answers = [
        head + b"Content-Length: %d\r\n\r\n" % len(body) + body,
        head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n",
        head + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed) + packed,
    ]
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            connection, _ = listener.accept()
            with connection:
                for answer in answers:
                    connection.recv(65536)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        assert controller_at(f"http://127.0.0.1:{listener.getsockname()[1]}/").look().problem is None
        thread.join(timeout=5)


def test_a_password_gets_its_crumb_only_after_jenkins_asked_for_it():
    with stand("http", passwords={"u": "pw"}) as here, ApiServer() as server:
        api = JenkinsApi(here.jenkins, f"{server.url}/jenkins/main/", passwords={"u": "pw"})
        server.jenkins["main"] = api
        here.jenkins.add_node(a_world_node("cpu-1"))
        session = JenkinsSession(f"{server.url}/jenkins/main/", "u", "pw", lambda: 0.0)
        JenkinsController("main", server.url, lambda: session, lambda: 0.0).set_offline("cpu-1", "x")
        assert here.jenkins.nodes["cpu-1"].temporarily_offline
        assert [path.split("?")[0].rsplit("/", 1)[-1] for path, _ in server.requests] == [
            "changeOfflineCause",
            "json",
            "changeOfflineCause",
        ]


CRUMB = http("200 OK", b'{"crumbRequestField": "Jenkins-Crumb", "crumb": "c1"}')
DONE = http("302 Found", b"", b"Location: /computer/")
NO_CRUMB = http("403 Forbidden", b"No valid crumb was included in the request")


def posting(*answers, times=1):
    """POST to a server that gives these answers; what it was asked, and what became of the last POST."""
    with answering(*answers) as (url, asked):
        session = JenkinsSession(url, "u", "pw", lambda: 0.0)
        try:
            for _ in range(times):
                session.post("computer/cpu-1/doDelete")
        except TransientError as error:
            return [request.split()[:2] for request in asked], b"Jenkins-Crumb: c1" in asked[-1], error
        return [request.split()[:2] for request in asked], b"Jenkins-Crumb: c1" in asked[-1], None


DELETE, ISSUER = [b"POST", b"/computer/cpu-1/doDelete"], [b"GET", b"/crumbIssuer/api/json"]


def test_a_crumb_that_was_demanded_once_is_sent_from_then_on():
    asked = posting(NO_CRUMB, CRUMB, DONE, DONE, times=2)
    assert asked == ([DELETE, ISSUER, DELETE, DELETE], True, None)


BARE, PROXY = http("403 Forbidden"), http("403 Forbidden", b"<title>403 Forbidden</title>", b"Server: nginx")
NAMED = http("403 Forbidden", b"", b"X-Required-Permission: hudson.model.Computer.Delete")
NO_ISSUER = http("404 Not Found", b"", b"X-Jenkins: 2.504.3")


@pytest.mark.parametrize("refusal", [BARE, PROXY, http("403 Forbidden", b"", b"X-Jenkins: 2.504.3")], ids=["bare", "proxy", "Jenkins"])
def test_a_crumb_is_got_whatever_the_page_says_that_refuses_a_change_without_one(refusal):
    asked = posting(refusal, CRUMB, DONE, DONE, times=2)
    assert asked == ([DELETE, ISSUER, DELETE, DELETE], True, None)


def test_a_refusal_that_names_a_permission_is_about_no_crumb():
    with pytest.raises(LackingPermissionError, match="Delete"):
        posting(NAMED)


@pytest.mark.parametrize(
    "issuer",
    [(PROXY,), (NO_ISSUER, PROXY), (http("200 OK", b"<html>login</html>"),)],
    ids=["refused", "none", "login page"],
)
def test_what_refuses_a_change_is_named_though_no_crumb_is_to_be_had(issuer):
    asked, _, error = posting(PROXY, *issuer)
    assert asked == [DELETE, ISSUER, DELETE][: 1 + len(issuer)]
    assert isinstance(error, InTheWayError)
    assert "not Jenkins (Server nginx, page '403 Forbidden')" in str(error)


def test_a_crumb_that_has_expired_is_replaced():
    asked = posting(NO_CRUMB, CRUMB, DONE, NO_CRUMB, CRUMB, DONE, times=2)
    assert asked == ([DELETE, ISSUER, DELETE, DELETE, ISSUER, DELETE], True, None)


def test_a_crumb_demanded_where_none_is_issued_is_a_refusal_and_no_node_that_is_gone():
    asked, _, error = posting(NO_CRUMB, http("404 Not Found", b"", b"X-Jenkins: 2.504.3"), NO_CRUMB)
    assert asked == [DELETE, ISSUER, DELETE]
    assert isinstance(error, RefusedRequestError)


@pytest.mark.parametrize("body", [b"<html>login</html>", b'{"crumb": 1}', b"7"], ids=repr)
def test_a_crumb_that_is_not_understood_ends_in_an_error_and_nothing_is_sent_again(body):
    asked, _, error = posting(NO_CRUMB, http("200 OK", body))
    assert asked == [DELETE, ISSUER]
    assert "crumb is not understood" in str(error)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (http("302 Found", b"", b"Location: /login"), RedirectedError),
        (http("401 Unauthorized"), RefusedCredentialsError),
        (http("404 Not Found", b"", b"X-Jenkins: 2.504.3"), NotThereError),
        (http("503 Unavailable", b"Jenkins is getting ready to work"), StartingError),
        (http("200 OK", b"x" * 2000), TooLargeError),
        (http("200 OK", gzip.compress(b"x" * 2_000_000), b"Content-Encoding: gzip"), TooLargeError),
        (http("200 OK", gzip.compress(b"{}")[:-6], b"Content-Encoding: gzip"), TransientError),
        (b"", NoAnswerError),
    ],
    ids=["redirect", "credentials", "not there", "starting", "too large", "too large once unpacked", "half a gzip", "no answer"],
)
def test_calls_of_python_jenkins_itself_have_the_same_manners(monkeypatch, answer, error):
    monkeypatch.setattr("autoscaler.adapters.jenkins.session.MAX_BYTES", 1000)
    with answering(answer) as (url, asked), pytest.raises(error):
        JenkinsSession(url, "u", "t", lambda: 0.0).jenkins_open(requests.Request("GET", f"{url}me/api/json"))
    assert len(asked) == 1


def test_python_jenkins_own_calls_work_and_have_the_deadline():
    with answering(http("200 OK", gzip.compress(b'{"id": "u"}'), b"Content-Encoding: gzip")) as (url, asked):
        session = JenkinsSession(url, "u", "t", lambda: 0.0)
        assert session.get_whoami() == {"id": "u"}
        session.allow_seconds(0.0)
        with pytest.raises(NoAnswerError, match="no time is left"):
            session.get_whoami()
    assert [request.split()[:2] for request in asked] == [[b"GET", b"/me/api/json?depth=0"]]


def test_what_python_jenkins_takes_for_not_found_is_not_found():
    """Its own calls, `maybe_add_crumb` above all, expect its own error."""
    assert issubclass(NotThereError, jenkins.NotFoundException)


def test_a_node_whose_name_holds_a_slash_leads_nowhere_else():
    with answering(http("404 Not Found", b"", b"X-Jenkins: 2.504.3")) as (url, asked):
        assert controller_at(url).node("../../job/x") is None
    assert asked[0].startswith(b"GET /computer/..%2F..%2Fjob%2Fx/api/json")


def test_errors_never_carry_a_page():
    with answering(http("500 Server Error", b"secret page" * 8000)) as (url, _):
        controller = controller_at(url)
        with pytest.raises(TransientError) as failed:
            controller.node("x")
    assert len(str(failed.value)) < 200


def test_only_jenkins_own_404_says_that_a_node_is_not_there():
    with answering(http("404 Not Found", b"no route", b"X-Jenkins: 2.504.3"), http("404 Not Found", b"no route")) as (url, _):
        controller = controller_at(url)
        assert controller.node("cpu-1") is None
        with pytest.raises(TransientError, match="not Jenkins"):
            controller.node("cpu-1")


def test_a_large_answer_that_comes_slowly_is_not_waited_for_to_its_end():
    """Where the time left is needed for reading it otherwise."""
    clock = iter(range(1000))
    with answering(http("200 OK", gzip.compress(bytes(8_000_000)), b"Content-Encoding: gzip")) as (url, _):
        session = JenkinsSession(url, "u", "t", lambda: float(next(clock)))
        session.allow_seconds(100.0)
        with pytest.raises(TooLargeError, match="comes slowly"):
            session.get("queue/api/json", None, Patience(64_000_000, seconds=0.5, slow_bytes=1000))
