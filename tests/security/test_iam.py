"""Each function's role, by a policy evaluator: it may do what it really calls, nothing else, and nothing to what is not ours."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from packaging_root import ROOT
from support.template import GIVEN, TEMPLATE, resolved

HERE = ROOT / "tests" / "security" / "iam"
REGION, ACCOUNT, FLEET = "us-west-2", "123456789012", "mxnet-ci"
EC2 = f"arn:aws:ec2:{REGION}:{ACCOUNT}"
TABLE = GIVEN["StateTable.Arn"]
FUNCTIONS = {
    properties["CodeUri"].removeprefix("functions/"): properties["Policies"]
    for properties in (r["Properties"] for r in TEMPLATE["Resources"].values() if r["Type"] == "AWS::Serverless::Function")
}
OURS, THEIRS = {"aws:ResourceTag/autoscaler:fleet": FLEET}, {"aws:ResourceTag/autoscaler:fleet": "another"}
# One statement lets every function use the state; a life need not show each of these in each function.
OF_THE_SHARED_STATEMENT = {"dynamodb:ConditionCheckItem", "dynamodb:DeleteItem"}
ONLY_WITH_SUBNETS = {"ec2:DescribeSubnets"}  # the example fleet leaves them to its launch templates
Asked = tuple[str, str, str]  # action, resource, context as JSON: hashable


def asked(action: str, resource: str, **context: Any) -> Asked:
    return action, resource, json.dumps(context, sort_keys=True)


def requests_of(operation: str, params: dict[str, Any]) -> Iterator[Asked]:  # noqa: C901 - a table, a case an operation
    """What IAM is asked when boto3 makes this call (service authorization reference of each service)."""
    match operation:
        case "dynamodb:TransactWriteItems":
            for write in params["TransactItems"]:
                [(kind, part)] = write.items()
                action = {"Put": "PutItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}[kind]
                yield asked(f"dynamodb:{action}", TABLE, **{"dynamodb:LeadingKeys": [(part.get("Item") or part["Key"])["fleet"]["S"]]})
        case "dynamodb:Query":
            yield asked(operation, TABLE, **{"dynamodb:LeadingKeys": [params["ExpressionAttributeValues"][":fleet"]["S"]]})
        case "dynamodb:PutItem" | "dynamodb:DeleteItem" | "dynamodb:GetItem" | "dynamodb:UpdateItem":
            yield asked(operation, TABLE, **{"dynamodb:LeadingKeys": [(params.get("Item") or params["Key"])["fleet"]["S"]]})
        case "cloudwatch:PutMetricData":
            yield asked(operation, "*", **{"cloudwatch:namespace": params["Namespace"]})
        case "secretsmanager:GetSecretValue":
            yield asked(operation, f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:{params['SecretId']}-AbCdEf")
        case "ec2:TerminateInstances":
            yield from (asked(operation, f"{EC2}:instance/{i}", **OURS) for i in params["InstanceIds"])
        case "ec2:GetConsoleOutput":
            yield asked(operation, f"{EC2}:instance/{params['InstanceId']}", **OURS)
        case "ec2:CreateTags":
            keys = [tag["Key"] for tag in params["Tags"]]
            yield from (asked(operation, f"{EC2}:instance/{i}", **OURS, **{"aws:TagKeys": keys}) for i in params["Resources"])
        case "ec2:CreateFleet":
            yield from launching({tag["Key"]: tag["Value"] for tag in params["TagSpecifications"][1]["Tags"]})
        case _ if operation.startswith("ec2:Describe") or operation == "servicequotas:ListServiceQuotas":
            yield asked(operation, "*")
        case _:
            raise AssertionError(f"{operation}: which requests does it make?")


def launching(tags: dict[str, str]) -> Iterator[Asked]:
    """CreateFleet asks for itself and for RunInstances, for tags, and for passing the agents' role."""
    tagged = {f"aws:RequestTag/{key}": value for key, value in tags.items()}
    for action, new in (("ec2:CreateFleet", f"{EC2}:fleet/*"), ("ec2:RunInstances", f"{EC2}:instance/*")):
        yield asked(action, new, **tagged)
    yield asked("ec2:CreateFleet", f"{EC2}:launch-template/lt-0a1")
    for resource in ("subnet/subnet-a", "security-group/sg-1", "network-interface/*", "volume/*", "launch-template/lt-0a1"):
        yield asked("ec2:RunInstances", f"{EC2}:{resource}")
    yield asked("ec2:RunInstances", f"arn:aws:ec2:{REGION}::image/ami-0a1")
    for new, action in (("fleet", "CreateFleet"), ("instance", "RunInstances"), ("volume", "RunInstances")):
        yield asked("ec2:CreateTags", f"{EC2}:{new}/*", **{"ec2:CreateAction": action})
    passed = {"iam:PassedToService": "ec2.amazonaws.com"}
    yield asked("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/autoscaler-agent-{FLEET}", **passed)


def needed(life, function: str) -> set[Asked]:
    return {request for name, operation, params in life.calls if name == function for request in requests_of(operation, params)}


@pytest.fixture(scope="session")
def decide():
    """Ask the evaluator many things at once; deny by default."""
    assert (HERE / "node_modules" / ".ready").exists(), "run `make test`, which installs the evaluator (needs nodejs and npm)"

    def of(function: str, requests: list[Asked]) -> dict[Asked, str]:
        policies = resolved(FUNCTIONS[function])
        document = [{"policies": policies, "action": a, "resource": r, "context": json.loads(c)} for a, r, c in requests]
        done = subprocess.run(["node", "decide.mjs"], cwd=HERE, input=json.dumps(document), capture_output=True, text=True, check=True)
        return dict(zip(requests, json.loads(done.stdout), strict=True))

    return of


every_function = pytest.mark.parametrize("function", FUNCTIONS)


@every_function
def test_it_may_do_everything_that_it_really_calls(life, decide, function):
    requests = sorted(needed(life, function))
    assert len(requests) > 2
    assert {request: told for request, told in decide(function, requests).items() if told != "Allowed"} == {}


@every_function
def test_it_may_not_do_what_only_others_call(life, decide, function):
    mine = {action for action, _, _ in needed(life, function)} | OF_THE_SHARED_STATEMENT
    others = sorted({r for other in FUNCTIONS for r in needed(life, other) if r[0] not in mine})
    assert others
    assert {request: told for request, told in decide(function, others).items() if told != "ImplicitlyDenied"} == {}


@every_function
def test_it_is_granted_nothing_that_it_never_calls(life, function):
    granted = {action for policy in resolved(FUNCTIONS[function]) for s in policy["Statement"] for action in listed(s["Action"])}
    assert granted - {action for action, _, _ in needed(life, function)} <= OF_THE_SHARED_STATEMENT | ONLY_WITH_SUBNETS


FOREIGN = [
    asked("ec2:TerminateInstances", f"{EC2}:instance/i-1", **THEIRS),
    asked("ec2:TerminateInstances", f"{EC2}:instance/i-1"),
    asked("ec2:GetConsoleOutput", f"{EC2}:instance/i-1", **THEIRS),
    asked("ec2:CreateTags", f"{EC2}:instance/i-1", **THEIRS, **{"aws:TagKeys": ["Name"]}),
    asked("ec2:CreateTags", f"{EC2}:instance/i-1", **OURS, **{"aws:TagKeys": ["Name", "autoscaler:fleet"]}),
    asked("ec2:RunInstances", f"{EC2}:instance/*"),
    asked("ec2:RunInstances", f"{EC2}:instance/*", **{"aws:RequestTag/autoscaler:fleet": "another"}),
    asked("ec2:CreateFleet", f"{EC2}:fleet/*", **{"aws:RequestTag/autoscaler:fleet": "another"}),
    asked("ec2:CreateTags", f"{EC2}:volume/vol-1"),
    asked("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/admin", **{"iam:PassedToService": "ec2.amazonaws.com"}),
    asked("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/autoscaler-agent-{FLEET}", **{"iam:PassedToService": "lambda.amazonaws.com"}),
    asked("dynamodb:PutItem", TABLE, **{"dynamodb:LeadingKeys": ["another"]}),
    asked("dynamodb:Query", TABLE, **{"dynamodb:LeadingKeys": ["another"]}),
    asked("dynamodb:PutItem", f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/other", **{"dynamodb:LeadingKeys": [FLEET]}),
    asked("secretsmanager:GetSecretValue", f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:database/main-AbCdEf"),
    asked("cloudwatch:PutMetricData", "*", **{"cloudwatch:namespace": "Other"}),
]


@every_function
def test_it_may_do_nothing_to_what_is_not_ours(decide, function):
    assert {request: told for request, told in decide(function, FOREIGN).items() if told != "ImplicitlyDenied"} == {}


def test_an_agent_may_ask_who_it_is_over_the_url_and_do_nothing_else(decide, monkeypatch):
    policy = resolved(TEMPLATE["Resources"]["AgentPolicy"]["Properties"]["PolicyDocument"])
    monkeypatch.setitem(FUNCTIONS, "agent", [policy])
    instance = {"ec2:SourceInstanceARN": f"{EC2}:instance/i-0123456789abcdef0"}
    url = {"lambda:FunctionUrlAuthType": "AWS_IAM"}
    by_url = {"lambda:InvokedViaFunctionUrl": "true"}
    register = GIVEN["RegisterAgentFunction.Arn"]
    mine = [
        asked("lambda:InvokeFunctionUrl", register, **url, **instance),
        asked("lambda:InvokeFunction", register, **by_url, **instance),
    ]
    elsewhere = {"ec2:SourceInstanceARN": f"arn:aws:ec2:{REGION}:999999999999:instance/i-0123456789abcdef0"}
    not_mine = [
        asked("lambda:InvokeFunctionUrl", register, **{"lambda:FunctionUrlAuthType": "NONE"}, **instance),
        asked("lambda:InvokeFunction", register, **{"lambda:InvokedViaFunctionUrl": "false"}, **instance),
        asked("lambda:InvokeFunction", register.replace("register", "scale-up"), **by_url, **instance),
        # A session of the role that no instance began, under whatever name.
        *(asked("lambda:InvokeFunctionUrl", register, **url, **where) for where in ({}, elsewhere)),
        *(asked("lambda:InvokeFunction", register, **by_url, **where) for where in ({}, elsewhere)),
        asked("ec2:DescribeInstances", "*"),
        *FOREIGN,
    ]
    assert set(decide("agent", mine).values()) == {"Allowed"}
    assert set(decide("agent", not_mine).values()) == {"ImplicitlyDenied"}


def listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
