"""The apis of IAM and Lambda: one question each that the doctor asks of the account."""

import json

from workbench.fakes.http_fakes.messages import Response
from workbench.fakes.world.ec2.region import ACCOUNT, Ec2
from workbench.fakes.world.faults import Faults, StatusError

_XML, _JSON = {"Content-Type": "text/xml"}, {"Content-Type": "application/json"}
_PATH = "/aws-service-role/spot.amazonaws.com/"
_ROLE = "AWSServiceRoleForEC2Spot"


def iam_answer(ec2: Ec2, faults: Faults) -> Response:
    """Tell of the role that EC2 launches spot instances with, as IAM's query protocol does."""
    try:
        with faults.around("iam GetRole"):
            return Response(200, _XML, _role().encode()) if ec2.account.spot_role else _iam_error(404, "NoSuchEntity")
    except StatusError as error:
        return _iam_error(error.fault.status, error.fault.code or "ServiceFailure")


def lambda_answer(ec2: Ec2, faults: Faults) -> Response:
    """Tell the account's limit on executions at once."""
    try:
        with faults.around("lambda GetAccountSettings"):
            return Response(200, _JSON, json.dumps({"AccountLimit": {"ConcurrentExecutions": ec2.account.concurrent_executions}}).encode())
    except StatusError as error:
        return Response(error.fault.status, _JSON | {"x-amzn-ErrorType": error.fault.code}, b"{}")


def _role() -> str:
    named = f"<Path>{_PATH}</Path><RoleName>{_ROLE}</RoleName><RoleId>AROAEXAMPLESPOT</RoleId>"
    arn = f"<Arn>arn:aws:iam::{ACCOUNT}:role{_PATH}{_ROLE}</Arn><CreateDate>2026-01-01T00:00:00Z</CreateDate>"
    return f"<GetRoleResponse><GetRoleResult><Role>{named}{arn}</Role></GetRoleResult></GetRoleResponse>"


def _iam_error(status: int, code: str) -> Response:
    error = f"<Error><Type>Sender</Type><Code>{code}</Code><Message>planned</Message></Error>"
    return Response(status, _XML, f"<ErrorResponse>{error}<RequestId>r</RequestId></ErrorResponse>".encode())
