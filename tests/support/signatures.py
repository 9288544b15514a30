"""Requests that an instance signs, verified as AWS does."""

from http.server import BaseHTTPRequestHandler

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

KEYS = Credentials("ASIAEXAMPLE", "secret/with+signs=", "session-token/with+signs==")
REGION = "us-west-2"


def wrong_with(request: BaseHTTPRequestHandler, body: bytes, service: str, keys: Credentials = KEYS) -> str:
    """Verify a request's signature as AWS does; say what is wrong with it."""
    scheme, _, rest = request.headers.get("Authorization", "").partition(" ")
    parts = dict(part.strip().partition("=")[::2] for part in rest.split(","))
    date = request.headers.get("X-Amz-Date", "")
    if scheme != "AWS4-HMAC-SHA256" or parts.get("Credential") != f"{keys.access_key}/{date[:8]}/{REGION}/{service}/aws4_request":
        return f"not signed by this role for {service} in {REGION}: {request.headers.get('Authorization')}"
    signed = parts["SignedHeaders"].split(";")
    if missing := {"host", "x-amz-date", "x-amz-security-token"} - set(signed):
        return f"not signed: {sorted(missing)}"
    if request.headers["X-Amz-Security-Token"] != keys.token:
        return "another session token"
    again = AWSRequest(method="POST", url=f"http://{request.headers['Host']}{request.path}", data=body)
    for name in signed:
        again.headers[name] = request.headers[name]
    again.context["timestamp"] = date
    auth = SigV4Auth(keys, service, REGION)
    expected = auth.signature(auth.string_to_sign(again, auth.canonical_request(again)), again)
    return "" if parts["Signature"] == expected else "the signature does not match"
