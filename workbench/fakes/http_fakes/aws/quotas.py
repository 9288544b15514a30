"""Service Quotas' api: one action of its JSON protocol."""

import json

from workbench.fakes.http_fakes.messages import Response
from workbench.fakes.world.ec2.region import Ec2
from workbench.fakes.world.faults import Faults, StatusError

_CONTENT = {"Content-Type": "application/x-amz-json-1.1"}


def quotas_answer(ec2: Ec2, faults: Faults) -> Response:
    """List what may run at once."""
    listed = [{"ServiceCode": "ec2", "QuotaName": name, "Value": value} for name, value in ec2.quotas.items()]
    try:
        with faults.around("service-quotas ListServiceQuotas"):
            return Response(200, _CONTENT, json.dumps({"Quotas": listed}).encode())
    except StatusError as error:
        return Response(error.fault.status, _CONTENT, json.dumps({"__type": error.fault.code}).encode())
