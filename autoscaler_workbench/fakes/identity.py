"""Registration of simulated instances, through the pass or the real handler; and the events that Lambda would be given."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from autoscaler.control.registration import register
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.report.registration import Caller, Refused, Trust
from autoscaler.ports import Ports
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.ec2.region import ACCOUNT, AGENT_ROLE, AGENT_ROLE_ID, profile_arn
from autoscaler_workbench.fakes.world.world import Ask, IdentityAnswer

TRUST = Trust(account=ACCOUNT, profile_of_role={AGENT_ROLE_ID: profile_arn(AGENT_ROLE)})
Handler = Callable[[Any], dict[str, Any]]


def ask_pass(ports: Callable[[], Ports], fleet: Fleet) -> Ask:
    """Register in memory, through the ports at that time."""

    def ask(instance: Instance) -> IdentityAnswer:
        answer = register(ports(), fleet, Caller(account=ACCOUNT, role_id=AGENT_ROLE_ID, session=instance.id), TRUST)
        if isinstance(answer, Refused):
            return IdentityAnswer(status=int(answer.status))
        connection = answer.connection
        return IdentityAnswer(status=200, node=answer.spec.name, controller=connection.controller, secret=connection.secret or "")

    return ask


def ask_handler(handler: Handler) -> Ask:
    """Register through the handler, as Lambda's function URL does once AWS has verified the signature."""

    def ask(instance: Instance) -> IdentityAnswer:
        answer = handler(function_url_event(instance.id))
        if answer["statusCode"] != 200:
            return IdentityAnswer(status=answer["statusCode"])
        body = json.loads(answer["body"])
        [connection] = body["connections"]
        return IdentityAnswer(status=200, node=body["node"], controller=connection["controller"], secret=connection["secret"])

    return ask


def function_url_event(instance_id: str, **iam: str) -> dict[str, Any]:
    """A signed request to the function URL, as the function is given it."""
    given = {
        "accessKey": "ASIAEXAMPLE",
        "accountId": ACCOUNT,
        "callerId": f"{AGENT_ROLE_ID}:{instance_id}",
        "userArn": f"arn:aws:sts::{ACCOUNT}:assumed-role/{AGENT_ROLE}/{instance_id}",
        "userId": f"{AGENT_ROLE_ID}:{instance_id}",
    }
    context = {"accountId": ACCOUNT, "authorizer": {"iam": given | iam}, "http": {"method": "POST", "path": "/"}}
    return {"version": "2.0", "rawPath": "/", "headers": {}, "requestContext": context, "isBase64Encoded": False}


_DETAIL_TYPES = {
    "interruption": "EC2 Spot Instance Interruption Warning",
    "rebalance": "EC2 Instance Rebalance Recommendation",
    "state": "EC2 Instance State-change Notification",
}


def ec2_event(instance_id: str, what: str) -> dict[str, Any]:
    """An EC2 event as EventBridge delivers it."""
    return _carried("aws.ec2", _DETAIL_TYPES[what], {"instance-id": instance_id}, 0.0)


def tick(at: float) -> dict[str, Any]:
    """What EventBridge sends for a rule with a schedule."""
    return _carried("aws.events", "Scheduled Event", {}, at)


def _carried(source: str, detail_type: str, detail: dict[str, str], at: float) -> dict[str, Any]:
    time = datetime.fromtimestamp(at, UTC).isoformat()
    event = {"version": "0", "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa", "account": ACCOUNT, "region": "us-west-2", "time": time}
    return event | {"source": source, "detail-type": detail_type, "resources": [], "detail": detail}
