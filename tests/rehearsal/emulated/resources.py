"""Resources that MiniStack's CloudFormation lacks.

Inline policies and composite alarms work. The other types are only recorded.
"""

from ministack.services import cloudwatch
from ministack.services.cloudformation import provisioners

ACCOUNT, REGION = "123456789012", "us-west-2"
_ONLY_RECORDED = {
    "AWS::Budgets::Budget": "budgets",
    "AWS::ECR::PullThroughCacheRule": "ecr",
    "AWS::ECR::RepositoryCreationTemplate": "ecr",
    "AWS::Logs::QueryDefinition": "logs",
}


def install() -> None:
    handlers = provisioners._RESOURCE_HANDLERS
    handlers["AWS::IAM::RolePolicy"] = {
        "create": lambda logical_id, properties, stack: provisioners._iam_policy_create(logical_id, _of_roles(properties), stack),
        "update": _update_policy,
        "update_with_logical_id": True,
        "delete": lambda physical_id, properties: provisioners._iam_policy_delete(physical_id, _of_roles(properties)),
    }
    handlers["AWS::CloudWatch::CompositeAlarm"] = {
        "create": _put_composite_alarm,
        "update": lambda physical_id, _old, new, stack, *_, **__: _put_composite_alarm(
            physical_id, new | {"AlarmName": physical_id}, stack
        ),
        "delete": lambda physical_id, _properties: cloudwatch._composite_alarms.pop(physical_id, None),
    }
    provisioners._cw_metric_alarm_put = _without_metric_math(provisioners._cw_metric_alarm_put)
    handlers |= {kind: _recorded(service) for kind, service in _ONLY_RECORDED.items()}


def _of_roles(properties):
    """A policy of one role in the form of a policy of several."""
    return {
        "PolicyName": properties["PolicyName"],
        "PolicyDocument": properties["PolicyDocument"],
        "Roles": [properties["RoleName"]],
    }


def _update_policy(physical_id, old, new, stack, logical_id=None):
    return provisioners._iam_policy_update(physical_id, _of_roles(old), _of_roles(new), stack, logical_id)


def _put_composite_alarm(logical_id, properties, stack):
    name = properties.get("AlarmName") or f"{stack}-{logical_id}"
    answer = cloudwatch._put_composite_alarm({}, properties | {"AlarmName": name}, False, True)
    if isinstance(answer, tuple) and answer[0] >= 400:
        raise ValueError(f"{name}: {answer}")
    return name, {"Arn": f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:{name}"}


def _without_metric_math(put):
    """Put an alarm on an expression as one on a metric that nobody sends: it is there, and never rings."""

    def put_plain(name, properties):
        plain = {key: value for key, value in properties.items() if key != "Metrics"}
        nothing = {"Namespace": "MetricMath", "MetricName": name, "Statistic": "Sum", "Period": 60}
        return put(name, plain | nothing if "Metrics" in properties else properties)

    return put_plain


def _recorded(service):
    def arn(name):
        return {"Arn": f"arn:aws:{service}:{REGION}:{ACCOUNT}:{name}"}

    return {
        "create": lambda logical_id, _properties, stack: (f"{stack}-{logical_id}", arn(f"{stack}-{logical_id}")),
        "update": lambda physical_id, *_, **__: (physical_id, arn(physical_id)),
        "delete": lambda _physical_id, _properties: None,
    }
