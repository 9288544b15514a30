"""The emulated account: what is deployed there, and what happens in it."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import boto3
from botocore.config import Config

from rehearsal.plan import ACCOUNT, FLEET, REGION, STACK, Plan

# On a busy machine a function takes its time, and a call that is sent twice would invoke it twice.
_PATIENT = Config(connect_timeout=120, read_timeout=600, retries={"total_max_attempts": 1})
_TICK = {
    "version": "0",
    "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa",
    "detail-type": "Scheduled Event",
    "source": "aws.events",
    "account": ACCOUNT,
    "region": REGION,
    "resources": [f"arn:aws:events:{REGION}:{ACCOUNT}:rule/autoscaler-every-minute"],
    "detail": {},
}


def _tick() -> dict[str, Any]:
    """What a scheduled rule sends now."""
    return _TICK | {"time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}


@dataclass(frozen=True)
class Account:
    """Clients of the services, and short questions to them."""

    plan: Plan

    def client(self, service: str) -> Any:
        return self._session.client(service, endpoint_url=self.plan.aws_url, config=_PATIENT)

    @cached_property
    def _session(self) -> boto3.Session:
        return boto3.Session(ACCOUNT, "none", region_name=REGION)

    @cached_property
    def ec2(self) -> Any:
        return self.client("ec2")

    @cached_property
    def lambdas(self) -> Any:
        return self.client("lambda")

    def stack(self) -> dict[str, Any]:
        return self.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"][0]

    def outputs(self) -> dict[str, str]:
        return {output["OutputKey"]: output["OutputValue"] for output in self.stack()["Outputs"]}

    def resources(self) -> dict[str, tuple[str, str]]:
        """Type and physical id of each resource of the stack, by logical id."""
        pages = self.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=STACK)
        rows = [row for page in pages for row in page["StackResourceSummaries"]]
        return {row["LogicalResourceId"]: (row["ResourceType"], row["PhysicalResourceId"]) for row in rows}

    def function(self, logical_id: str) -> str:
        """The physical name of a function."""
        return self.resources()[f"{logical_id}Function"][1]

    def table_of(self, logical_id: str) -> str:
        """The state table that a function uses."""
        configuration = self.lambdas.get_function_configuration(FunctionName=self.function(logical_id))
        return str(configuration["Environment"]["Variables"]["STATE_TABLE"])

    def invoke(self, logical_id: str, event: dict[str, Any] | None = None) -> dict[str, Any]:
        """Invoke a function, with a tick if no event is given. `RuntimeError` if it fails."""
        answer, error = self.try_to_invoke(logical_id, event)
        if error:
            raise RuntimeError(f"{logical_id}: {error}: {answer}")
        return answer

    def try_to_invoke(self, logical_id: str, event: dict[str, Any] | None = None) -> tuple[Any, str | None]:
        """Invoke a function; return its answer, and the kind of its error if it fails."""
        answer = self.lambdas.invoke(FunctionName=self.function(logical_id), Payload=json.dumps(event or _tick()).encode())
        return json.loads(answer["Payload"].read() or b"null"), answer.get("FunctionError")

    def invocations(self, logical_id: str) -> int:
        """How often a function has ended, as its log group says."""
        logs, group = self.client("logs"), self.resources()[f"{logical_id}Logs"][1]
        pages = logs.get_paginator("filter_log_events").paginate(logGroupName=group)
        return sum(event["message"].startswith("REPORT RequestId") for page in pages for event in page["events"])

    def instances(self, *states: str) -> dict[str, dict[str, Any]]:
        """The fleet's instances that are in one of these states, by id; without states all that have not terminated."""
        wanted = states or ("pending", "running", "stopping", "stopped", "shutting-down")
        filters = [
            {"Name": "tag:autoscaler:fleet", "Values": [FLEET]},
            {"Name": "instance-state-name", "Values": list(wanted)},
        ]
        answers = self.ec2.describe_instances(Filters=filters)["Reservations"]
        return {instance["InstanceId"]: instance for answer in answers for instance in answer["Instances"]}

    def items(self, prefix: str) -> list[dict[str, Any]]:
        """The items of the fleet's state whose key begins so, with their values as text."""
        pages = self.client("dynamodb").get_paginator("scan").paginate(TableName=self.outputs()["State"])
        rows = [{key: next(iter(value.values())) for key, value in item.items()} for page in pages for item in page["Items"]]
        return [row for row in rows if row["fleet"] == FLEET and row["item"].startswith(prefix)]

    def alarms(self) -> list[dict[str, Any]]:
        """All alarms, composite ones included."""
        answer = self.client("cloudwatch").describe_alarms(AlarmTypes=["MetricAlarm", "CompositeAlarm"])
        return [*answer["MetricAlarms"], *answer["CompositeAlarms"]]

    def announce(self, source: str, detail_type: str, detail: dict[str, Any]) -> None:
        """Send an event in the name of a service of AWS."""
        entry = {"Source": source, "DetailType": detail_type, "Detail": json.dumps(detail)}
        answer = self.client("events").put_events(Entries=[entry])
        if answer["FailedEntryCount"]:
            raise RuntimeError(f"the event was refused: {answer['Entries']}")
