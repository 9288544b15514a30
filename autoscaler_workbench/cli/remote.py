"""Calls the deployed functions: finds them by the stack's outputs, and turns every failure into one line."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import boto3
import requests
from botocore import exceptions as boto
from botocore.config import Config

from autoscaler.domain.wording import shortened
from autoscaler.errors import AutoscalerError, ConfigError, TransientError
from autoscaler_workbench.cli.terminal import say
from autoscaler_workbench.fakes.http_fakes.aws.cloudwatch import Published, from_json

FUNCTIONS = {"scale_up": "ScaleUp", "scale_down": "ScaleDown", "operate": "Operate", "ask": "Ask"}
_DENIED = "AccessDeniedException"
_ONLY_ASKS = "answered by the stack's function Ask: you may ask, and order nothing (operate is denied to you)"
_NO_ORDERS = f"is denied to you ({_DENIED}): orders need the stack's OperatorPolicy; with ReaderPolicy you may only ask"
# A person's event waits up to 45 s for the lease; a call that is tried again would be done twice.
_PATIENT_SECONDS = 90.0
_SIGN_IN_AGAIN = {"ExpiredToken", "ExpiredTokenException", "RequestExpired", "InvalidClientTokenId", "UnrecognizedClientException"}
_NOBODY_ANSWERS = (boto.EndpointConnectionError, boto.ConnectTimeoutError, boto.ConnectionClosedError)


class DeniedError(ConfigError):
    """IAM does not let the caller invoke a function. Nothing was done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """One deployment. ``local``: where the demo listens; else ``stack`` is the CloudFormation stack's name.

    ``patience_seconds``: for how long an answer is waited for; ``silent``: nothing is said beside the answer.
    """

    stack: str
    local: str | None = None
    region: str | None = None
    profile: str | None = None
    patience_seconds: float = _PATIENT_SECONDS
    silent: bool = False

    def call(self, function: str, event: dict[str, Any]) -> dict[str, Any]:
        """Invoke a function and return its answer. `ConfigError` where it refuses, `TransientError` where it fails.

        To whom `operate` is denied, the function that refuses orders answers.
        """
        if function == "operate" and self._anywhere in _only_asked:
            return self._invoke("ask", event)
        try:
            return self._invoke(function, event)
        except DeniedError as denied:
            if self.local is not None or FUNCTIONS["ask"] not in _outputs(self._anywhere):
                raise
            if function != "operate":
                raise DeniedError(f"{function} {_NO_ORDERS}") from denied
            return self._asked(event, denied)

    def _asked(self, event: dict[str, Any], denied: DeniedError) -> dict[str, Any]:
        """Ask the function that refuses orders; once it has answered, this process asks no other, and says so once."""
        try:
            answer = self._invoke("ask", event)
        except DeniedError:
            raise denied from None
        _only_asked.add(self._anywhere)
        if not self.silent:
            say(_ONLY_ASKS, stderr=True)
        return answer

    @property
    def _anywhere(self) -> "Deployed":
        """The deployment, however it is asked."""
        return replace(self, patience_seconds=_PATIENT_SECONDS, silent=False)

    def _invoke(self, function: str, event: dict[str, Any]) -> dict[str, Any]:
        name = self._name(function)
        with self._in_one_line(f"{function} could not be invoked"):
            told = self.client("lambda").invoke(FunctionName=name, Payload=json.dumps(event).encode())
            answer: dict[str, Any] = json.loads(told["Payload"].read())
        if "FunctionError" in told:
            message = " ".join(str(answer.get("errorMessage", answer)).split())
            raise (ConfigError if answer.get("errorType") == "ConfigError" else TransientError)(message)
        if "refused" in answer:
            raise ConfigError(answer["refused"])
        return answer

    def published(self) -> Published:
        """What a demo's CloudWatch was sent."""
        url = self._local_url()
        try:
            answer = requests.get(f"{url}/cloudwatch/published", timeout=60)
            answer.raise_for_status()
            return from_json(answer.content)
        except requests.ConnectionError as error:
            raise TransientError(self._nobody_answers) from error
        except (requests.RequestException, ValueError) as error:
            raise TransientError(f"--local ({self._shown}): {error}") from error

    def output(self, name: str) -> str:
        """An output of the stack."""
        outputs = _outputs(self._anywhere)
        if name not in outputs:
            raise ConfigError(f"--stack ({shortened(self.stack)}): has no output {name}; is it a stack of the autoscaler?")
        return outputs[name]

    def stack_outputs(self) -> dict[str, str]:
        """All outputs of the stack."""
        return {output["OutputKey"]: str(output["OutputValue"]) for output in self._stack().get("Outputs", [])}

    def stack_parameters(self) -> dict[str, str]:
        """All parameters of the stack, those that were left at their defaults too."""
        return {one["ParameterKey"]: str(one["ParameterValue"]) for one in self._stack().get("Parameters", [])}

    def _stack(self) -> dict[str, Any]:
        with self._in_one_line(f"--stack ({shortened(self.stack)})"):
            [stack] = self.client("cloudformation").describe_stacks(StackName=self.stack)["Stacks"]
        told: dict[str, Any] = stack
        return told

    def ask(self, service: str, operation: str, **parameters: Any) -> list[dict[str, Any]]:
        """Ask AWS itself, with the person's own rights; return all pages of the answer."""
        with self._in_one_line(f"{service} could not be asked"):
            return list(self.client(service).get_paginator(operation).paginate(**parameters))

    def client(self, service: str) -> Any:
        """Make a client of AWS, or of the demo."""
        config = Config(connect_timeout=min(10.0, self.patience_seconds), read_timeout=self.patience_seconds, retries={"max_attempts": 0})
        if self.local is not None:
            anybody = boto3.Session("demo", "demo", region_name="us-west-2")  # the demo asks for no credentials
            return anybody.client(service, endpoint_url=f"{self._local_url()}/{service}", config=config)  # type: ignore[call-overload]
        return boto3.Session(profile_name=self.profile, region_name=self.region).client(service, config=config)  # type: ignore[call-overload]

    @property
    def _shown(self) -> str:
        return shortened(str(self.local))

    @property
    def _nobody_answers(self) -> str:
        return f"--local ({self._shown}): nobody answers there; does the demo still run?"

    def _local_url(self) -> str:
        """Check the demo's address before others stumble over it."""
        local = str(self.local).rstrip("/")
        try:
            parts = urlsplit(local)
            if parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0:
                return local
        except ValueError:  # of the port
            pass
        raise ConfigError(f"--local ({self._shown}): is not an address such as http://127.0.0.1:8000")

    @contextmanager
    def _in_one_line(self, what: str) -> Iterator[None]:
        """Say what failed in one line that names what a person can do."""
        try:
            yield
        except (boto.BotoCoreError, boto.ClientError, ValueError) as error:
            raise self._told(error, what) from error

    def _told(self, error: Exception, what: str) -> AutoscalerError:
        if advice := _what_is_missing(error):
            return ConfigError(advice)
        if self.local is not None and isinstance(error, _NOBODY_ANSWERS):
            return TransientError(self._nobody_answers)
        if isinstance(error, boto.EndpointConnectionError):
            return TransientError(f"{what}: {error}; are the region and the network right?")
        if isinstance(error, json.JSONDecodeError):
            return TransientError(f"{what}: what answers there is no function of the autoscaler")
        if isinstance(error, boto.ClientError) and error.response.get("Error", {}).get("Code") == _DENIED:
            return DeniedError(f"{what}: {error}")
        return (ConfigError if what.startswith("--stack") else TransientError)(f"{what}: {error}")

    def _name(self, function: str) -> str:
        if self.local is not None:
            return function
        return self.output(FUNCTIONS[function])


_only_asked: set[Deployed] = set()  # those of which this process knows that it may only ask


@cache
def _outputs(deployed: Deployed) -> dict[str, str]:
    return deployed.stack_outputs()


def _what_is_missing(error: Exception) -> str | None:
    """Say what a person's AWS configuration lacks; None where that is not the cause."""
    match error:
        case boto.NoRegionError():
            return "no AWS region: give --region, or set AWS_DEFAULT_REGION or a region in the profile"
        case boto.InvalidRegionError():
            return f"--region: {error}"
        case boto.NoCredentialsError() | boto.PartialCredentialsError() | boto.CredentialRetrievalError():
            return f"no AWS credentials ({error}): give --profile, or set AWS_PROFILE"
        case boto.ProfileNotFound():
            return f"--profile: {error}; aws configure list-profiles names those that are there"
        case boto.ClientError() if (code := error.response.get("Error", {}).get("Code")) in _SIGN_IN_AGAIN:
            return f"AWS refuses the credentials ({code}): sign in again, or give another --profile"
        case boto.SSOError() | boto.SSOTokenLoadError() | boto.TokenRetrievalError():
            return f"the AWS sign-in has ended ({error}): aws sso login"
        case _:
            return None
