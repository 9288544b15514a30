"""What python-jenkins and requests read from the environment by themselves: none of it reaches a controller."""

import logging
import ssl
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address

import jenkins
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from autoscaler.adapters.jenkins.session import JenkinsSession
from autoscaler.errors import NoAnswerError


class Answering(BaseHTTPRequestHandler):
    """Answers every GET, and keeps the headers it was asked with."""

    def do_GET(self):
        self.server.asked.append(self.headers)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        """Stay silent."""


@contextmanager
def answering(certificate=None):
    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        server.asked = []
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_port}/", server.asked
        server.shutdown()
        thread.join(timeout=5)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for 127.0.0.1 that nobody has signed but itself, with its key."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number(), now - timedelta(days=1), now + timedelta(days=1)
    )
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    path = tmp_path_factory.mktemp("certificate") / "both.pem"
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(private + builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    for variable in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(variable, raising=False)


def session_at(url, user=None, token=None, bundle=""):
    return JenkinsSession(url, user, token, lambda: 0.0, bundle)


def test_a_certificate_is_trusted_where_it_was_said_so_and_nowhere_else(certificate):
    with answering(certificate) as (url, asked):
        with pytest.raises(NoAnswerError, match="SSLError"):
            session_at(url).get("api/json")
        session_at(url, bundle=str(certificate)).get("api/json")
    assert len(asked) == 1


@pytest.mark.parametrize("variable", ["PYTHONHTTPSVERIFY", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_tls_is_checked_whatever_the_environment_says(certificate, monkeypatch, variable):
    monkeypatch.setenv(variable, "0" if variable == "PYTHONHTTPSVERIFY" else str(certificate))
    with answering(certificate) as (url, asked), pytest.raises(NoAnswerError, match="SSLError"):
        session_at(url).get("api/json")
    assert asked == []


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_what_was_said_to_be_trusted_is_not_replaced(certificate, monkeypatch, variable):
    monkeypatch.setenv(variable, "/nowhere")
    with answering(certificate) as (url, asked):
        session_at(url, bundle=str(certificate)).get("api/json")
    assert len(asked) == 1


def test_extra_headers_are_neither_sent_nor_logged(monkeypatch, caplog):
    monkeypatch.setenv("JENKINS_API_EXTRA_HEADERS", "X-Extra: hush\nAuthorization: Bearer hush")
    with answering() as (url, asked), caplog.at_level(logging.DEBUG):
        session_at(url).get("api/json")
    assert (asked[0]["X-Extra"], asked[0]["Authorization"]) == (None, None)
    assert "hush" not in caplog.text


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
def test_no_proxy_is_looked_for(monkeypatch, variable):
    monkeypatch.setenv(variable, "http://127.0.0.1:9/")
    with answering() as (url, asked):
        session_at(url).get("api/json")
    assert len(asked) == 1


@pytest.mark.parametrize("variable", ["NETRC", "HOME"])
def test_no_password_is_looked_for_in_a_file(monkeypatch, tmp_path, variable):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login somebody password hush\n")
    monkeypatch.setenv(variable, str(tmp_path / ".netrc" if variable == "NETRC" else tmp_path))
    with answering() as (url, asked):
        session_at(url).get("api/json")
        session_at(url, "u", "t").get("api/json")
    assert [headers["Authorization"] for headers in asked] == [None, "Basic dTp0"]


def test_everything_that_python_jenkins_keeps_is_kept():
    """Our session is not made by its constructor: what a later version keeps there must be kept here, too."""
    assert vars(jenkins.Jenkins("http://jenkins/", "u", "t")).keys() <= vars(session_at("http://jenkins/", "u", "t")).keys()
