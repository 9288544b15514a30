"""Clients that call the APIs directly, without sockets, so that days pass in seconds."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from botocore.exceptions import ClientError, ReadTimeoutError

from autoscaler.adapters.jenkins.session import Answer, Patience, TooLargeError, error_of, refuse_redirect
from autoscaler.errors import NoAnswerError, UnansweredError
from autoscaler_workbench.fakes.http_fakes.aws.ec2 import Ec2Api
from autoscaler_workbench.fakes.http_fakes.aws.services import GET_PARAMETERS
from autoscaler_workbench.fakes.http_fakes.jenkins.api import JenkinsApi
from autoscaler_workbench.fakes.http_fakes.messages import Request
from autoscaler_workbench.fakes.world.ec2.error_codes import Ec2Error
from autoscaler_workbench.fakes.world.faults import ConnectionLostError, StatusError

_BAD_REQUEST = 400


class LocalSession:
    """The session that `JenkinsController` needs, calling the API directly."""

    def __init__(self, api: JenkinsApi, user: str | None = None, token: str | None = None) -> None:
        """Speak as this user."""
        self._api = api
        self._user = self.username = user
        self._token = token

    def allow_seconds(self, seconds: float | None) -> None:
        """Nothing takes time here."""

    def get(self, path: str, tree: str | None = None, patience: Patience | None = None) -> Answer:
        """GET a part of the API, or a file."""
        answer = self._call("GET", path, {"tree": tree} if tree else {}, {})
        if patience is not None and len(answer.body) >= patience.most_bytes:
            raise TooLargeError(f"Jenkins' answer is larger than {patience.most_bytes} bytes")
        return answer

    def post(
        self, path: str, query: Mapping[str, str] | None = None, data: Mapping[str, str] | bytes = b"", *, with_text: bool = False
    ) -> Answer:
        """POST a form, or a document."""
        form, body = ({}, data) if isinstance(data, bytes) else (data, b"")
        answer = self._call("POST", path, query or {}, form, body)
        answer.must_be_done(with_text=with_text)
        return answer

    def _call(self, method: str, path: str, query: Mapping[str, str], form: Mapping[str, str], body: bytes = b"") -> Answer:
        lost = UnansweredError if method == "POST" else NoAnswerError
        if self._api.controller.up == "down":
            raise lost("the connection to Jenkins failed")  # whether it was refused or cut off in the middle is not told apart
        request = Request(method, quote(path, safe="/%()"), query, form, self._user, self._token, body=body)
        try:
            response = self._api.handle(request)
        except ConnectionLostError as error:
            raise lost("the connection to Jenkins failed") from error
        except StatusError as error:
            raise error_of(error.fault.status, {}, "planned") from error
        if response.status >= _BAD_REQUEST:
            raise error_of(response.status, response.headers, response.body.decode(errors="replace"))
        refuse_redirect(method, f"{self._api.base}{path}", response.status, response.headers)
        return Answer(response.status, response.headers, response.body)


class LocalEc2Client:
    """The boto3 client that `Ec2Compute` needs, calling the API directly. ``attempts``: of a call that fails."""

    def __init__(self, api: Ec2Api, attempts: int = 1) -> None:
        """Speak to this region."""
        self._api = api
        self._attempts = attempts

    def __getattr__(self, name: str) -> Callable[..., dict[str, Any]]:
        """Any action, as boto3 names its method."""
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda **request: self._call(name, request)

    def get_paginator(self, name: str) -> "LocalPages":
        """Describe something, page by page."""
        return LocalPages(lambda request: self._call(name, request))

    def _call(self, method: str, request: dict[str, Any]) -> dict[str, Any]:
        action = "".join(word.capitalize() for word in method.split("_"))
        try:
            return self._send(action, request)
        except ConnectionLostError as error:
            raise ReadTimeoutError(endpoint_url="https://ec2") from error
        except StatusError as error:
            raise _client_error(error.fault.code or "InternalError", "planned", error.fault.status, action) from error
        except Ec2Error as error:
            raise _client_error(error.code, str(error), error.status, action) from error

    def _send(self, action: str, request: dict[str, Any]) -> dict[str, Any]:
        for _ in range(self._attempts - 1):
            with suppress(ConnectionLostError, StatusError):
                return self._api.call(action, request)
        return self._api.call(action, request)


class LocalSsmClient:
    """The boto3 client that `SsmImages` needs, asking the account directly."""

    def __init__(self, api: Ec2Api) -> None:
        """Speak to this region."""
        self._api = api

    def get_parameters(self, *, Names: list[str]) -> dict[str, Any]:  # noqa: N803 - boto3's name
        """Tell what these parameters hold."""
        try:
            with self._api.faults.around(GET_PARAMETERS):
                return self._api.ec2.account.get_parameters(Names)
        except ConnectionLostError as error:
            raise ReadTimeoutError(endpoint_url="https://ssm") from error
        except StatusError as error:
            raise _client_error(error.fault.code or "InternalServerError", "planned", error.fault.status, "GetParameters") from error


@dataclass(frozen=True, slots=True)
class LocalPages:
    """As much of a boto3 paginator as is used."""

    ask: Callable[[dict[str, Any]], dict[str, Any]]

    def paginate(self, **request: Any) -> Iterator[dict[str, Any]]:
        """Page by page, as large as they are asked for."""
        size = request.pop("PaginationConfig", {}).get("PageSize")
        request |= {"MaxResults": size} if size else {}
        while True:
            yield (page := self.ask(request))
            if not (token := page.get("NextToken")):
                return
            request["NextToken"] = token


def _client_error(code: str, message: str, status: int, action: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}, action)  # type: ignore[typeddict-item]
