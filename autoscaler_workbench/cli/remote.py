"""Calls the deployed functions: finds them by the stack's outputs, and turns a refusal into one line."""

import json
from dataclasses import dataclass
from typing import Any

import boto3
import requests
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from autoscaler.errors import ConfigError, TransientError
from autoscaler_workbench.fakes.http_fakes.aws.cloudwatch import Published, from_json

_OUTPUTS = {"scale_up": "ScaleUp", "scale_down": "ScaleDown", "operate": "Operate"}
# A person's event waits up to 45 s for the lease; a call that is tried again would be done twice.
_PATIENT = Config(read_timeout=90, retries={"max_attempts": 0})


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """One deployment. ``local``: where the demo listens; else ``stack`` is the CloudFormation stack's name."""

    stack: str
    local: str | None = None

    def call(self, function: str, event: dict[str, Any]) -> dict[str, Any]:
        """Invoke a function and return its answer. `ConfigError` where it refuses, `TransientError` where it fails."""
        try:
            told = self._client().invoke(FunctionName=self._name(function), Payload=json.dumps(event).encode())
            answer: dict[str, Any] = json.loads(told["Payload"].read())
        except (BotoCoreError, ClientError) as error:
            raise TransientError(f"{function} could not be invoked: {error}") from error
        if "FunctionError" in told:
            message = " ".join(str(answer.get("errorMessage", answer)).split())
            raise (ConfigError if answer.get("errorType") == "ConfigError" else TransientError)(message)
        return answer

    def published(self) -> Published:
        """What a demo's CloudWatch was sent."""
        try:
            answer = requests.get(f"{str(self.local).rstrip('/')}/cloudwatch/published", timeout=60)
            answer.raise_for_status()
            return from_json(answer.content)
        except (requests.RequestException, ValueError) as error:
            raise TransientError(f"--local ({self.local}): {error}") from error

    def output(self, name: str) -> str:
        """An output of the stack."""
        try:
            [stack] = boto3.client("cloudformation").describe_stacks(StackName=self.stack)["Stacks"]
        except (BotoCoreError, ClientError) as error:
            raise ConfigError(f"--stack ({self.stack}): {error}") from error
        outputs = {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}
        if name not in outputs:
            raise ConfigError(f"--stack ({self.stack}): has no output {name}; is it a stack of the autoscaler?")
        return str(outputs[name])

    def _client(self) -> Any:
        if self.local is None:
            return boto3.client("lambda", config=_PATIENT)
        anybody = boto3.Session("demo", "demo", region_name="us-west-2")  # the demo asks for no credentials
        return anybody.client("lambda", endpoint_url=f"{self.local.rstrip('/')}/lambda", config=_PATIENT)

    def _name(self, function: str) -> str:
        if self.local is not None:
            return function
        return self.output(_OUTPUTS[function])
