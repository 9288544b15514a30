"""Registration of simulated instances, through the pass or the real handler; and the events that Lambda would be given."""

import json
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from autoscaler.control.registration import Registered, register
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.telemetry import Device
from autoscaler.domain.report.registration import Asked, Caller, Refused, Trust
from autoscaler.ports import Ports
from autoscaler_workbench.fakes.world.agents import Ask, IdentityAnswer, Machine, Told
from autoscaler_workbench.fakes.world.ec2.region import ACCOUNT, AGENT_ROLE, AGENT_ROLE_ID, profile_arn
from autoscaler_workbench.fakes.world.hosts import Host
from autoscaler_workbench.fakes.world.usage import Usage

TRUST = Trust(account=ACCOUNT, profile_of_role={AGENT_ROLE_ID: profile_arn(AGENT_ROLE)})
Handler = Callable[[Any], dict[str, Any]]


def ask_pass(ports: Callable[[], Ports], fleet: Callable[[], Fleet], usage: Callable[[], Usage | None] = lambda: None) -> Ask:
    """Register in memory, through the ports and by the fleet file at that time. ``usage``: what machines tell of themselves."""

    def ask(machine: Machine, connected: tuple[str, ...]) -> IdentityAnswer:
        role_id = machine.role_id if isinstance(machine, Host) else AGENT_ROLE_ID
        devices, waiting = _devices_of(machine)
        used = usage()
        telemetry = used.report(machine.id, connected) if used else None
        asked = Asked(connected=connected, devices=devices, waiting=waiting, telemetry=telemetry)
        answer = register(ports(), fleet(), Caller(account=ACCOUNT, role_id=role_id, session=machine.id), TRUST, asked)
        if not isinstance(answer, Registered):  # no machine of the world is a controller's
            return IdentityAnswer(status=int(answer.status) if isinstance(answer, Refused) else 200)
        told = (Told(controller=one.controller, node=one.spec.name, secret=one.secret or "", life=one.life) for one in answer.connections)
        people = tuple(one.person for one in answer.people)
        return IdentityAnswer(status=200, connections=tuple(told), poll_seconds=answer.poll_seconds, people=people)

    return ask


def ask_handler(handler: Handler, usage: Callable[[], Usage | None] = lambda: None) -> Ask:
    """Register through the handler, as Lambda's function URL does once AWS has verified the signature."""

    def ask(machine: Machine, connected: tuple[str, ...]) -> IdentityAnswer:
        role_id = machine.role_id if isinstance(machine, Host) else AGENT_ROLE_ID
        devices, waiting = _devices_of(machine)
        said: dict[str, Any] = {"connected": connected, "devices": [asdict(device) for device in devices], "waiting": waiting}
        used = usage()
        if used and (telemetry := used.report(machine.id, connected)):
            said["telemetry"] = {key: value for key, value in asdict(telemetry).items() if value is not None and key != "told_at"}
        asked = function_url_event(machine.id, role_id=role_id) | {"body": json.dumps(said)}
        answer = handler(asked)
        if answer["statusCode"] != 200:
            return IdentityAnswer(status=answer["statusCode"])
        body = json.loads(answer["body"])
        told = (
            Told(controller=one["controller"], node=one["name"], secret=one.get("secret", ""), life=one["life"])
            for one in body["connections"]
        )
        people = tuple(one["person"] for one in body.get("people", ()))
        return IdentityAnswer(status=200, connections=tuple(told), poll_seconds=body["poll_seconds"], people=people)

    return ask


def _devices_of(machine: Machine) -> tuple[tuple[Device, ...], int]:
    """What the agent hears of `gpu-lease` on its machine: each device, and how many wait for one."""
    return machine.cards.told() if isinstance(machine, Host) and machine.cards else ((), 0)


def function_url_event(instance_id: str, role_id: str = AGENT_ROLE_ID, **iam: str) -> dict[str, Any]:
    """A signed request to the function URL, as the function is given it."""
    given = {
        "accessKey": "ASIAEXAMPLE",
        "accountId": ACCOUNT,
        "callerId": f"{role_id}:{instance_id}",
        "userArn": f"arn:aws:sts::{ACCOUNT}:assumed-role/{AGENT_ROLE}/{instance_id}",
        "userId": f"{role_id}:{instance_id}",
    }
    context = {"accountId": ACCOUNT, "authorizer": {"iam": given | iam}, "http": {"method": "POST", "path": "/"}}
    return {"version": "2.0", "rawPath": "/", "headers": {}, "requestContext": context, "isBase64Encoded": False}


_DETAIL_TYPES = {
    "interruption": "EC2 Spot Instance Interruption Warning",
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
