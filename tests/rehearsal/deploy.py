"""Deployment and removal of the stack by `sam`, as `docs/deploy.md` says it."""

import json
from pathlib import Path
from typing import Any

from rehearsal.aws import Account
from rehearsal.plan import FLEET, REGION, STACK, WEBHOOK_SECRET, WEBHOOK_TOKEN
from rehearsal.project import run

_IMAGE_PARAMETER, _IMAGE = "/rehearsal/image", "ami-0c2023a1b2c3d4e5f"
# A version gets those that its template has.
WITHOUT_CLOCK = {"ScheduleState": "DISABLED", "LookEverySeconds": "60"}
PARAMETERS = {
    "FleetName": FLEET,
    "LinuxImageParameter": _IMAGE_PARAMETER,
    "Arm64ImageParameter": _IMAGE_PARAMETER,
    "WindowsImageParameter": _IMAGE_PARAMETER,
    "MonthlyBudgetUsd": "100",
    "WebhookSecretName": WEBHOOK_SECRET,
    "AlarmEmail": "operators@example.org",
    "AgentPublicIp": "true",  # the emulated default network leads out by an internet gateway
}


def prepare(account: Account, secret: dict[str, str]) -> None:
    """Make what must be there first: the secrets, the parameter that names the image, and the network's way out."""
    account.client("ssm").put_parameter(Name=_IMAGE_PARAMETER, Type="String", Value=_IMAGE, Overwrite=True)
    gateway = account.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    [network] = account.ec2.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"]
    account.ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=network["VpcId"])
    for table in account.ec2.describe_route_tables()["RouteTables"]:
        if table["VpcId"] == network["VpcId"]:
            account.ec2.create_route(RouteTableId=table["RouteTableId"], DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    secrets = account.client("secretsmanager")
    secrets.create_secret(Name="jenkins/main", SecretString=json.dumps(secret))
    secrets.create_secret(Name=WEBHOOK_SECRET, SecretString=json.dumps({"token": WEBHOOK_TOKEN}))


def deploy(account: Account, tree: Path, **parameters: str) -> None:
    """Deploy what was built in a tree. `RuntimeError` with the reasons if CloudFormation does not end well."""
    template = (tree / "template.yaml").read_text(encoding="utf-8")
    overrides = [f"{name}={value}" for name, value in {**PARAMETERS, **parameters}.items() if f"\n  {name}:\n" in template]
    command = ["sam", "deploy", "--stack-name", STACK, "--resolve-s3", "--no-confirm-changeset", "--no-fail-on-empty-changeset"]
    command += ["--capabilities", "CAPABILITY_IAM", "--parameter-overrides", *overrides]
    try:
        run(account.plan, "deploy", command, tree, account.plan.environment(tree))
    except RuntimeError as error:
        raise RuntimeError("\n".join([str(error), *failures(account, STACK)])) from error


def stop_the_clock(account: Account) -> None:
    """End all ticks, and the looks between them: from now on the story invokes the functions by hand."""
    events = account.client("events")
    for rule in schedules(account):
        events.disable_rule(Name=rule["Name"])
    function = account.function("ScaleUp")
    variables = account.lambdas.get_function_configuration(FunctionName=function)["Environment"]["Variables"]
    account.lambdas.update_function_configuration(
        FunctionName=function, Environment={"Variables": variables | {"LOOK_EVERY_SECONDS": "60"}}
    )


def schedules(account: Account) -> list[dict[str, Any]]:
    return [rule for rule in account.client("events").list_rules()["Rules"] if rule.get("ScheduleExpression")]


def delete(account: Account, tree: Path) -> str:
    """Delete the stack by `sam delete`; return its last state."""
    identity = account.stack()["StackId"]
    command = ["sam", "delete", "--stack-name", STACK, "--region", REGION, "--no-prompts"]
    run(account.plan, "delete", command, tree, account.plan.environment(tree))
    [stack] = account.client("cloudformation").describe_stacks(StackName=identity)["Stacks"]
    return str(stack["StackStatus"])


def failures(account: Account, stack: str) -> list[str]:
    """What CloudFormation could not make, and why."""
    events = account.client("cloudformation").describe_stack_events(StackName=stack)["StackEvents"]
    return [
        f"{event['LogicalResourceId']} {event['ResourceStatus']}: {event.get('ResourceStatusReason', '')}"
        for event in events
        if "FAILED" in event["ResourceStatus"]
    ]
