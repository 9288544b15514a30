"""Other AWS services that are asked one question each: IAM, Lambda and Service Quotas by the doctor, Systems Manager at each look."""

import json
from collections.abc import Callable
from typing import Any

from autoscaler_workbench.fakes.http_fakes.messages import Response
from autoscaler_workbench.fakes.world.ec2.region import ACCOUNT, Ec2
from autoscaler_workbench.fakes.world.faults import Faults, StatusError

_PATH = "/aws-service-role/spot.amazonaws.com/"
_ROLE = "AWSServiceRoleForEC2Spot"
GET_PARAMETERS = "ssm GetParameters"


def answer(service: str, ec2: Ec2, faults: Faults, body: bytes = b"") -> Response:
    """Answer the one question to a service, in its protocol."""
    call, tell, refuse = SERVICES[service]
    try:
        with faults.around(call):
            return tell(ec2, body)
    except StatusError as error:
        return refuse(error.fault.status, error.fault.code)


def _spot_role(ec2: Ec2, _body: bytes) -> Response:
    """Tell of the role that EC2 launches spot instances with."""
    if not ec2.account.spot_role:
        return _iam_error(404, "NoSuchEntity")
    named = f"<Path>{_PATH}</Path><RoleName>{_ROLE}</RoleName><RoleId>AROAEXAMPLESPOT</RoleId>"
    arn = f"<Arn>arn:aws:iam::{ACCOUNT}:role{_PATH}{_ROLE}</Arn><CreateDate>2026-01-01T00:00:00Z</CreateDate>"
    role = f"<GetRoleResponse><GetRoleResult><Role>{named}{arn}</Role></GetRoleResult></GetRoleResponse>"
    return Response(200, {"Content-Type": "text/xml"}, role.encode())


def _iam_error(status: int, code: str) -> Response:
    error = f"<Error><Type>Sender</Type><Code>{code or 'ServiceFailure'}</Code><Message>planned</Message></Error>"
    return Response(status, {"Content-Type": "text/xml"}, f"<ErrorResponse>{error}<RequestId>r</RequestId></ErrorResponse>".encode())


def _stacks(ec2: Ec2, _body: bytes) -> Response:
    """Tell of the stacks that are there, with the fleet's name of each and the outputs."""
    output = "<member><OutputKey>{}</OutputKey><OutputValue>{}</OutputValue></member>"
    outputs = "".join(output.format(*pair) for pair in ec2.account.outputs.items())
    parameter = "<member><ParameterKey>FleetName</ParameterKey><ParameterValue>{}</ParameterValue></member>"
    facts = "<StackName>{0}</StackName><CreationTime>2026-01-01T00:00:00Z</CreationTime><StackStatus>CREATE_COMPLETE</StackStatus>"
    stacks = "".join(
        f"<member>{facts.format(name)}<Parameters>{parameter.format(name)}</Parameters><Outputs>{outputs}</Outputs></member>"
        for name in ec2.account.stacks
    )
    body = f"<DescribeStacksResponse><DescribeStacksResult><Stacks>{stacks}</Stacks></DescribeStacksResult></DescribeStacksResponse>"
    return Response(200, {"Content-Type": "text/xml"}, body.encode())


def _account_settings(ec2: Ec2, _body: bytes) -> Response:
    limit = ec2.account.concurrent_executions
    told = {"ConcurrentExecutions": limit, "UnreservedConcurrentExecutions": limit - ec2.account.reserved_executions}
    return _json(200, {"AccountLimit": told})


def _quotas(ec2: Ec2, _body: bytes) -> Response:
    return _json(200, {"Quotas": [{"ServiceCode": "ec2", "QuotaName": name, "Value": value} for name, value in ec2.quotas.items()]})


def _parameters(ec2: Ec2, body: bytes) -> Response:
    return _json(200, ec2.account.get_parameters(json.loads(body)["Names"]))


def _json(status: int, body: dict[str, Any], **headers: str) -> Response:
    return Response(status, {"Content-Type": "application/json"} | headers, json.dumps(body).encode())


def _json_error(status: int, code: str) -> Response:
    return _json(status, {"__type": code}, **{"x-amzn-ErrorType": code})


SERVICES: dict[str, tuple[str, Callable[[Ec2, bytes], Response], Callable[[int, str], Response]]] = {
    "iam": ("iam GetRole", _spot_role, _iam_error),
    "lambda-settings": ("lambda GetAccountSettings", _account_settings, _json_error),
    "cloudformation": ("cloudformation DescribeStacks", _stacks, _iam_error),
    "ssm": (GET_PARAMETERS, _parameters, _json_error),
    "service-quotas": ("service-quotas ListServiceQuotas", _quotas, _json_error),
}
