"""The APIs of a world without sockets. They replace the Jenkins sessions and the boto3 clients of the handlers."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from autoscaler.adapters.jenkins.session import Answer
from autoscaler.errors import NoAnswerError
from autoscaler_workbench.fakes.http_fakes.aws import services
from autoscaler_workbench.fakes.http_fakes.aws.ec2 import Ec2Api
from autoscaler_workbench.fakes.http_fakes.aws.functions import LambdaApi
from autoscaler_workbench.fakes.http_fakes.clients import LocalEc2Client, LocalPages, LocalSession, LocalSsmClient
from autoscaler_workbench.fakes.http_fakes.jenkins.api import JenkinsApi
from autoscaler_workbench.fakes.world.world import World

_CODE = re.compile("<Code>(.*)</Code>")


@dataclass(slots=True)
class LocalApis:
    """Jenkins, EC2 and a few more services. ``requests`` keeps the path of each request, in the form of `ApiServer`.

    ``posts`` keeps those that may change something in Jenkins; ``ec2_calls`` keeps the action and the parameters of each call to EC2.
    ``secrets_fail``: what Secrets Manager answers instead.
    If a test serves the functions to the command line, ``functions`` and ``url`` are those of that server.
    """

    ec2: Ec2Api
    jenkins: dict[str, JenkinsApi]
    secrets: dict[str, str] = field(default_factory=dict)
    secrets_read: list[str] = field(default_factory=list)
    secrets_fail: str = ""
    requests: list[tuple[str, int]] = field(default_factory=list)
    posts: list[str] = field(default_factory=list)
    ec2_calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    before_answer: Callable[[], None] = lambda: None
    functions: LambdaApi | None = None
    url: str = ""

    def session(self, url: str, username: str | None, token: str | None, *_how: object) -> "Session":
        """Take the place of `JenkinsSession`."""
        api = next((api for api in self.jenkins.values() if api.base == url), None)
        if api is None:
            raise NoAnswerError("the connection to Jenkins failed")  # nothing answers at this address
        return Session(self, api, username, token)

    def client(self, service: str, config: Any = None) -> Any:
        """Take the place of `boto3.client`."""
        if service == "ec2":
            return _Ec2Client(self, config.retries["total_max_attempts"])
        if service == "ssm":
            return LocalSsmClient(self.ec2)
        if service == "secretsmanager":
            return _Secrets(self)
        return _Service(self.ec2, _SERVICE_OF.get(service, service))

    def asked(self, path: str) -> None:
        self.before_answer()
        self.requests.append((path, 0))


def apis_of(world: World, urls: Mapping[str, str], accounts: dict[str, str]) -> LocalApis:
    """The APIs of a world, whose controllers have these addresses and accounts."""
    return LocalApis(Ec2Api(world.ec2), {name: JenkinsApi(world.controllers[name], url, accounts=accounts) for name, url in urls.items()})


class Session(LocalSession):
    """A session whose requests are kept, answered or not."""

    def __init__(self, apis: LocalApis, api: JenkinsApi, user: str | None, token: str | None) -> None:
        super().__init__(api, user, token)
        self._apis = apis

    def trust(self, bundle: str) -> None:
        """There is no TLS here."""

    def _call(self, method: str, path: str, query: Mapping[str, str], form: Mapping[str, str], body: bytes = b"") -> Answer:
        self._apis.asked(f"/jenkins/{self._api.controller.name}/{path}")
        if method != "GET":
            self._apis.posts.append(path)
        return super()._call(method, path, query, form, body)


class _Ec2Client(LocalEc2Client):
    def __init__(self, apis: LocalApis, attempts: int) -> None:
        super().__init__(apis.ec2, attempts)
        self._apis = apis

    def _send(self, action: str, request: dict[str, Any]) -> dict[str, Any]:
        self._apis.asked("/ec2/")
        self._apis.ec2_calls.append((action, request))
        return super()._send(action, request)


@dataclass(slots=True)
class _Secrets:
    apis: LocalApis

    def get_secret_value(self, *, SecretId: str) -> dict[str, str]:  # noqa: N803 - boto3's name
        self.apis.secrets_read.append(SecretId)
        if refusal := self.apis.secrets_fail or ("" if SecretId in self.apis.secrets else "ResourceNotFoundException"):
            raise _error(refusal, "GetSecretValue")
        return {"SecretString": self.apis.secrets[SecretId]}


_SERVICE_OF = {"lambda": "lambda-settings"}


@dataclass(frozen=True, slots=True)
class _Service:
    """A service that answers one question; every method of its client asks it."""

    api: Ec2Api
    service: str

    def __getattr__(self, name: str) -> Callable[..., dict[str, Any]]:
        return lambda **_request: self._answer(name)

    def get_paginator(self, name: str) -> LocalPages:
        return LocalPages(lambda _request: self._answer(name))

    def _answer(self, name: str) -> dict[str, Any]:
        response = services.answer(self.service, self.api.ec2, self.api.faults)
        if response.status < 400 and self.service == "cloudformation":
            return {"Stacks": [{"Parameters": [_named(name)]} for name in self.api.ec2.account.stacks]}
        if response.status < 400:
            return json.loads(response.body) if "json" in response.headers["Content-Type"] else {}
        in_xml = _CODE.search(response.body.decode())
        raise _error(in_xml[1] if in_xml else response.headers["x-amzn-ErrorType"], name)


def _named(fleet: str) -> dict[str, str]:
    return {"ParameterKey": "FleetName", "ParameterValue": fleet}


def _error(code: str, action: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "planned"}}, action)
