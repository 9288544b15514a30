"""Each function's role, by a policy evaluator: it may do what it really calls, nothing else, and nothing to what is not ours."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from support.iam import Asked, asked, decided
from support.translated import ACCOUNT, given, stack

pytestmark = pytest.mark.needs("node")

REGION, FLEET = "us-west-2", "mxnet-ci"
EC2 = f"arn:aws:ec2:{REGION}:{ACCOUNT}"
GIVEN = given()
PARAMETERS = f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter"
# By whoever lives what is recorded; test_iam_looks has the rights of who looks between the ticks.
DEPLOYED_WITH = {"ImageParameterArns": f"{PARAMETERS}/ci/warm-image", "LookEverySeconds": "60"}
TABLE, AGENT_ROLE = GIVEN["StateTable.Arn"], GIVEN["AgentRole.Arn"]
TOPIC = GIVEN["AlarmTopic"]  # which moto's is in the life that is recorded
FUNCTIONS = ("publish_metrics", "scale_up", "scale_down", "operate", "ask", "register_agent", "instance_events")
# Of which SAM makes a part of every role; as AWS writes them: https://docs.aws.amazon.com/aws-managed-policy/latest/reference/
_LOGS = ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"]
_INTERFACES = [
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:UnassignPrivateIpAddresses",
]
MANAGED = {
    "AWSLambdaBasicExecutionRole": _LOGS,
    "AWSLambdaVPCAccessExecutionRole": [*_LOGS, *_INTERFACES, "ec2:DescribeSubnets"],
}
# Anybody with ec2:CreateTags may write the fleet's tag; EC2 alone writes its own, on what CreateFleet launched.
BY_A_FLEET = {"aws:ResourceTag/aws:ec2:fleet-id": "fleet-0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"}
TAGGED = {"aws:ResourceTag/autoscaler:fleet": FLEET}
OURS, THEIRS = TAGGED | BY_A_FLEET, {"aws:ResourceTag/autoscaler:fleet": "another"} | BY_A_FLEET
OF_TEMPLATE, OVERRIDDEN = ({"ec2:IsLaunchTemplateResource": value} for value in ("true", "false"))
IMAGE = f"arn:aws:ec2:{REGION}::image/ami-0a1"
# One statement lets every function use the state; a life need not show each of these in each function.
OF_THE_SHARED_STATEMENT = {"dynamodb:ConditionCheckItem", "dynamodb:DeleteItem"}
# The example fleet leaves subnets to its launch templates, and buys no spot.
ONLY_WITH_SUBNETS_OR_SPOT = {"ec2:DescribeSubnets", "ec2:DescribeRouteTables", "ec2:DescribeSpotPriceHistory", "iam:GetRole"}
# Asked by operate for what left the fleet file (autoscaler end, doctor); nothing has left in the life that is lived here.
ONLY_FOR_WHAT_LEFT = {
    "operate": {"ec2:TerminateInstances", "cloudformation:DescribeStacks"},
    "ask": {"cloudformation:DescribeStacks"},
}
# Whichever look comes first after something else is to be launched reads the volumes: in this life, none of these two.
_VOLUMES = {"ec2:DescribeLaunchTemplateVersions", "ec2:DescribeImages"}
NOT_FIRST = {"scale_down": _VOLUMES, "instance_events": _VOLUMES}
WRITES = {f"dynamodb:{action}" for action in ("PutItem", "DeleteItem", "UpdateItem", "BatchWriteItem", "ConditionCheckItem")}
READS = ("Describe", "Get", "List", "Query", "BatchGet")


def not_in_this_life(function: str) -> set[str]:
    return OF_THE_SHARED_STATEMENT | ONLY_FOR_WHAT_LEFT.get(function, set()) | NOT_FIRST.get(function, set())


def requests_of(operation: str, params: dict[str, Any]) -> Iterator[Asked]:  # noqa: C901, PLR0912 - a table, a case an operation
    """What IAM is asked when boto3 makes this call (service authorization reference of each service)."""
    match operation:
        case "dynamodb:TransactWriteItems":
            for write in params["TransactItems"]:
                [(kind, part)] = write.items()
                action = {"Put": "PutItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem", "Update": "UpdateItem"}[kind]
                yield asked(f"dynamodb:{action}", TABLE, **{"dynamodb:LeadingKeys": [(part.get("Item") or part["Key"])["fleet"]["S"]]})
        case "dynamodb:Query":
            yield asked(operation, TABLE, **{"dynamodb:LeadingKeys": [params["ExpressionAttributeValues"][":fleet"]["S"]]})
        case "dynamodb:PutItem" | "dynamodb:DeleteItem" | "dynamodb:UpdateItem":
            yield asked(operation, TABLE, **{"dynamodb:LeadingKeys": [(params.get("Item") or params["Key"])["fleet"]["S"]]})
        case "dynamodb:BatchGetItem":
            [asked_for] = params["RequestItems"].values()
            yield asked(operation, TABLE, **{"dynamodb:LeadingKeys": sorted({key["fleet"]["S"] for key in asked_for["Keys"]})})
        case "cloudwatch:PutMetricData":
            yield asked(operation, "*", **{"cloudwatch:namespace": params["Namespace"]})
        case "secretsmanager:GetSecretValue":
            yield asked(operation, f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:{params['SecretId']}-AbCdEf")
        case "ssm:GetParameters":
            yield from (asked(operation, f"{PARAMETERS}{name}") for name in params["Names"])
        case "sns:Publish" | "sns:ListSubscriptionsByTopic":
            yield asked(operation, TOPIC if params["TopicArn"].endswith(":alarms") else params["TopicArn"])
        case "ec2:TerminateInstances" | "ec2:StopInstances" | "ec2:StartInstances":
            yield from (asked(operation, f"{EC2}:instance/{i}", **OURS) for i in params["InstanceIds"])
        case "ec2:GetConsoleOutput":
            yield asked(operation, f"{EC2}:instance/{params['InstanceId']}", **OURS)
        case "ec2:CreateTags":
            keys = [tag["Key"] for tag in params["Tags"]]
            yield from (asked(operation, f"{EC2}:instance/{i}", **OURS, **{"aws:TagKeys": keys}) for i in params["Resources"])
        case "ec2:CreateFleet":
            yield from launching({tag["Key"]: tag["Value"] for tag in params["TagSpecifications"][1]["Tags"]})
        case "ec2:RunInstances":
            tags = {tag["Key"]: tag["Value"] for tag in params["TagSpecifications"][0]["Tags"]}
            yield from (request for request in launching(tags) if request[0] != "ec2:CreateFleet" and "fleet/" not in request[1])
        case _ if operation.startswith("ec2:Describe") or operation in {"servicequotas:ListServiceQuotas", "lambda:GetAccountSettings"}:
            yield asked(operation, "*")
        case _:
            raise AssertionError(f"{operation}: which requests does it make?")


def launching(tags: dict[str, str]) -> Iterator[Asked]:
    """CreateFleet asks for itself and for RunInstances, for tags, and for passing the agents' role."""
    tagged = {f"aws:RequestTag/{key}": value for key, value in tags.items()}
    for action, new in (("ec2:CreateFleet", f"{EC2}:fleet/*"), ("ec2:RunInstances", f"{EC2}:instance/*")):
        yield asked(action, new, **tagged)
    yield asked("ec2:CreateFleet", f"{EC2}:launch-template/lt-0a1")
    # Each subnet is an override of ours; security groups and the rest are what the template names.
    for resource in ("subnet/subnet-a", "network-interface/*", "volume/*", "launch-template/lt-0a1"):
        yield asked("ec2:RunInstances", f"{EC2}:{resource}", **OVERRIDDEN)
    for resource in (f"{EC2}:security-group/sg-1", f"{EC2}:key-pair/ci", f"arn:aws:ec2:{REGION}::snapshot/snap-1", IMAGE):
        yield asked("ec2:RunInstances", resource, **OF_TEMPLATE)
    for new, action in (("fleet", "CreateFleet"), ("instance", "RunInstances"), ("volume", "RunInstances")):
        yield asked("ec2:CreateTags", f"{EC2}:{new}/*", **{"ec2:CreateAction": action})
    passed = {"iam:PassedToService": "ec2.amazonaws.com"}
    yield asked("iam:PassRole", AGENT_ROLE, **passed)


@cache
def policies_of(function: str, partition: str = "aws", **parameters: str) -> list[Any]:
    """All that a function's role may do in a deployment: what we wrote, and what SAM adds."""
    name = "".join(word.capitalize() for word in function.split("_"))
    role = stack(partition, **(DEPLOYED_WITH | parameters))[f"{name}FunctionRole"]["Properties"]
    managed = [MANAGED[arn.rpartition("/")[2]] for arn in role["ManagedPolicyArns"]]
    added = [{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]} for actions in managed]
    return [*(policy["PolicyDocument"] for policy in role["Policies"]), *added]


def needed(life, function: str) -> set[Asked]:
    return {request for name, operation, params in life.calls if name == function for request in requests_of(operation, params)}


@pytest.fixture(scope="session")
def decide():
    """Ask the evaluator about a function by its name, or about policies."""
    return lambda function, requests: decided(policies_of(function) if isinstance(function, str) else function, requests)


every_function = pytest.mark.parametrize("function", FUNCTIONS)


@every_function
def test_it_may_do_everything_that_it_really_calls(life, decide, function):
    requests = sorted(needed(life, function))
    assert len(requests) > 2
    assert {request: told for request, told in decide(function, requests).items() if told != "Allowed"} == {}


@every_function
def test_it_may_not_do_what_only_others_call(life, decide, function):
    mine = {action for action, _, _ in needed(life, function)} | not_in_this_life(function)
    others = sorted({r for other in FUNCTIONS for r in needed(life, other) if r[0] not in mine})
    assert others
    assert {request: told for request, told in decide(function, others).items() if told != "ImplicitlyDenied"} == {}


@every_function
def test_it_is_granted_nothing_that_it_never_calls(life, function):
    ours = [policy for policy in policies_of(function) if "Sid" in policy["Statement"][0]]
    granted = {action for policy in ours for s in policy["Statement"] if s["Effect"] == "Allow" for action in listed(s["Action"])}
    assert granted - {action for action, _, _ in needed(life, function)} <= ONLY_WITH_SUBNETS_OR_SPOT | not_in_this_life(function)


@every_function
def test_who_looks_at_instances_may_ask_what_spot_costs_and_nobody_else(decide, life, function):
    looks = any(action == "ec2:DescribeInstances" for action, _, _ in needed(life, function)) and function != "register_agent"
    [answer] = decide(policies_of(function), [asked("ec2:DescribeSpotPriceHistory", "*")]).values()
    assert answer == ("Allowed" if looks else "ImplicitlyDenied")


@every_function
@pytest.mark.parametrize("action", ["Query", "PutItem", "DeleteItem"])
def test_lost_builds_are_answered_for_by_one_function_and_shown_to_people_by_another(decide, function, action):
    [answer] = decide(function, [asked(f"dynamodb:{action}", TABLE, **{"dynamodb:LeadingKeys": [f"{FLEET}#reruns"]})]).values()
    allowed = {"scale_down": {"Query", "PutItem"}, "operate": {"Query"}, "ask": {"Query"}}
    assert answer == ("Allowed" if action in allowed.get(function, set()) else "ImplicitlyDenied")


@every_function
@pytest.mark.parametrize("partition", ["open-runs", "runs"])
@pytest.mark.parametrize("action", ["Query", "PutItem", "DeleteItem", "ConditionCheckItem", "GetItem", "UpdateItem"])
def test_orders_of_runs_are_kept_by_two_functions_and_those_that_are_open_are_seen_by_whoever_observes(decide, function, partition, action):
    [answer] = decide(function, [asked(f"dynamodb:{action}", TABLE, **{"dynamodb:LeadingKeys": [f"{FLEET}#{partition}"]})]).values()
    keeps = function in {"scale_down", "operate"} and action not in {"GetItem", "UpdateItem"}
    sees = function in {"scale_up", "instance_events"} and (partition, action) == ("open-runs", "Query")
    sees = sees or (function, action) == ("ask", "Query")
    assert answer == ("Allowed" if keeps or sees else "ImplicitlyDenied")


@every_function
@pytest.mark.parametrize("action", ["Query", "BatchGetItem", "PutItem", "DeleteItem", "GetItem", "UpdateItem"])
def test_costs_are_written_by_one_function_and_read_by_another(decide, function, action):
    [answer] = decide(function, [asked(f"dynamodb:{action}", TABLE, **{"dynamodb:LeadingKeys": [f"{FLEET}#costs"]})]).values()
    reads = {"Query", "BatchGetItem"}
    allowed = {"publish_metrics": {"BatchGetItem", "PutItem"}, "operate": reads, "ask": reads}
    assert answer == ("Allowed" if action in allowed.get(function, set()) else "ImplicitlyDenied")


def test_the_function_that_answers_may_read_and_do_nothing(decide, life):
    granted = {
        action
        for policy in policies_of("ask")
        for statement in policy["Statement"]
        if statement["Effect"] == "Allow" and "Sid" in statement
        for action in listed(statement["Action"])
    }
    assert {action for action in granted if not action.partition(":")[2].startswith(READS)} == set()
    others = {request for function in FUNCTIONS for request in needed(life, function)}
    does = sorted(request for request in others if not request[0].partition(":")[2].startswith(READS))
    assert {action for action, *_ in does} > {"ec2:CreateFleet", "ec2:TerminateInstances", "ec2:CreateTags", "dynamodb:PutItem"}
    does += [asked(action, TABLE, **{"dynamodb:LeadingKeys": [FLEET]}) for action in sorted(WRITES)]
    assert {request: told for request, told in decide("ask", does).items() if told != "ImplicitlyDenied"} == {}


@every_function
def test_a_table_that_the_stack_is_given_is_used_in_the_place_of_its_own(decide, life, function):
    """A restored table has another name."""
    mine = sorted(request for request in needed(life, function) if request[0].startswith("dynamodb:"))
    restored = [(action, TABLE.replace("table/state", "table/restored-2"), context) for action, _, context in mine]
    policies = policies_of(function, StateTableName="restored-2")
    assert set(decide(policies, restored).values()) == {"Allowed"}
    assert set(decide(policies, mine).values()) == {"ImplicitlyDenied"}


FOREIGN = [
    *(
        asked(f"ec2:{action}Instances", f"{EC2}:instance/i-1", **tags)
        for action in ("Terminate", "Stop", "Start")
        for tags in (THEIRS, {}, TAGGED, BY_A_FLEET, TAGGED | {"aws:ResourceTag/aws:ec2:fleet-id": ""})
    ),
    *(asked("ec2:GetConsoleOutput", f"{EC2}:instance/i-1", **tags) for tags in (THEIRS, TAGGED)),
    *(asked("ec2:CreateTags", f"{EC2}:instance/i-1", **tags, **{"aws:TagKeys": ["Name"]}) for tags in (THEIRS, TAGGED)),
    *(asked("ec2:RunInstances", f"{EC2}:{named}", **OVERRIDDEN) for named in ("security-group/sg-1", "key-pair/ci")),
    *(asked("ec2:RunInstances", f"{EC2}:{named}") for named in ("security-group/sg-1", "key-pair/ci")),
    asked("ec2:RunInstances", f"arn:aws:ec2:{REGION}::snapshot/snap-1", **OVERRIDDEN),
    asked("ec2:CreateTags", f"{EC2}:instance/i-1", **OURS, **{"aws:TagKeys": ["Name", "autoscaler:fleet"]}),
    asked("ec2:RunInstances", f"{EC2}:instance/*"),
    asked("ec2:RunInstances", f"{EC2}:instance/*", **{"aws:RequestTag/autoscaler:fleet": "another"}),
    asked("ec2:CreateFleet", f"{EC2}:fleet/*", **{"aws:RequestTag/autoscaler:fleet": "another"}),
    asked("ec2:CreateTags", f"{EC2}:volume/vol-1"),
    asked("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/admin", **{"iam:PassedToService": "ec2.amazonaws.com"}),
    asked("iam:PassRole", AGENT_ROLE, **{"iam:PassedToService": "lambda.amazonaws.com"}),
    *(asked("ec2:RunInstances", f"{EC2}:{kind}/1") for kind in ("capacity-reservation", "spot-instances-request")),
    asked("ec2:CreateTags", f"{EC2}:spot-instances-request/*", **{"ec2:CreateAction": "RunInstances"}),
    asked("kms:CreateGrant", f"arn:aws:kms:{REGION}:{ACCOUNT}:key/k-1", **{"kms:GrantIsForAWSResource": "true"}),
    asked("dynamodb:PutItem", TABLE, **{"dynamodb:LeadingKeys": ["another"]}),
    asked("dynamodb:Query", TABLE, **{"dynamodb:LeadingKeys": ["another"]}),
    *(asked(f"dynamodb:{action}", TABLE, **{"dynamodb:LeadingKeys": ["another#open-runs"]}) for action in ("Query", "PutItem")),
    *(asked("dynamodb:BatchGetItem", TABLE, **{"dynamodb:LeadingKeys": [f"another#{part}"]}) for part in ("jobs", "costs")),
    asked("dynamodb:BatchGetItem", TABLE, **{"dynamodb:LeadingKeys": [FLEET]}),
    asked("dynamodb:PutItem", f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/other", **{"dynamodb:LeadingKeys": [FLEET]}),
    asked("secretsmanager:GetSecretValue", f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:database/main-AbCdEf"),
    asked("cloudwatch:PutMetricData", "*", **{"cloudwatch:namespace": "Other"}),
    *(asked(f"sns:{action}", f"arn:aws:sns:{REGION}:{ACCOUNT}:another") for action in ("Publish", "ListSubscriptionsByTopic")),
    asked("ssm:GetParameters", f"{PARAMETERS}/ci/another"),
    asked("ssm:GetParameters", f"{PARAMETERS}/ci/warm-image/below"),
]


@every_function
def test_it_may_do_nothing_to_what_is_not_ours(decide, function):
    assert {request: told for request, told in decide(function, FOREIGN).items() if told != "ImplicitlyDenied"} == {}


@every_function
def test_code_of_a_function_makes_no_network_interfaces_though_sam_lets_lambda_do_so(decide, function):
    """Lambda makes them with the function's role; what code asks for carries the function's name."""
    mine = [asked(action, "*", **{"lambda:SourceFunctionArn": GIVEN["ScaleUpFunction.Arn"]}) for action in _INTERFACES]
    lambdas = [asked(action, "*") for action in _INTERFACES]
    assert set(decide(function, mine).values()) == {"ExplicitlyDenied"}
    assert set(decide(function, lambdas).values()) == {"Allowed"}


@every_function
def test_what_sam_adds_is_known(function):
    added = [policy["Statement"][0] for policy in policies_of(function) if "Sid" not in policy["Statement"][0]]
    assert [statement["Action"] for statement in added] == [*MANAGED.values()]


STARTS = ["scale_up", "scale_down", "operate"]
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/0a1b2c3d"
VIA = {"kms:ViaService": f"ec2.{REGION}.amazonaws.com"}
OF_A_PARAMETER = {
    ("AllowCapacityReservations", "true"): [asked("ec2:RunInstances", f"{EC2}:capacity-reservation/cr-1")],
    ("AllowTaggedSpotRequests", "true"): [
        asked("ec2:RunInstances", f"{EC2}:spot-instances-request/*"),
        asked("ec2:CreateTags", f"{EC2}:spot-instances-request/*", **{"ec2:CreateAction": "RunInstances"}),
    ],
    ("VolumeKmsKeyArn", KEY): [
        *(asked(f"kms:{action}", KEY, **VIA) for action in ("Decrypt", "DescribeKey", "GenerateDataKeyWithoutPlaintext")),
        asked("kms:CreateGrant", KEY, **VIA, **{"kms:GrantIsForAWSResource": "true"}),
    ],
}


@every_function
def test_an_image_that_no_template_names_is_launched_only_where_pools_name_parameters_of_images(decide, life, function):
    requests = [asked("ec2:RunInstances", IMAGE, **OVERRIDDEN)]
    assert set(decide(policies_of(function, ImageParameterArns=""), requests).values()) == {"ImplicitlyDenied"}
    launches = any(action == "ec2:CreateFleet" for action, _, _ in needed(life, function))
    assert set(decide(function, requests).values()) == {"Allowed" if launches else "ImplicitlyDenied"}


def test_whoever_starts_an_instance_may_use_the_key_of_its_volumes_and_nobody_else(decide):
    """EC2 refuses to start it without: https://docs.aws.amazon.com/ebs/latest/userguide/how-ebs-encryption-works.html."""
    requests = OF_A_PARAMETER["VolumeKmsKeyArn", KEY]
    told = {function: set(decide(policies_of(function, VolumeKmsKeyArn=KEY), requests).values()) for function in FUNCTIONS}
    assert [function for function, answers in told.items() if answers == {"Allowed"}] == STARTS
    assert all(answers in ({"Allowed"}, {"ImplicitlyDenied"}) for answers in told.values())
    start = [asked("ec2:StartInstances", f"{EC2}:instance/i-1", **OURS)]
    assert [function for function in FUNCTIONS if set(decide(function, start).values()) == {"Allowed"}] == STARTS


@pytest.mark.parametrize("parameter", OF_A_PARAMETER, ids=lambda parameter: parameter[0])
def test_what_only_some_deployments_need_is_allowed_by_a_parameter_and_not_without_it(decide, parameter):
    requests = OF_A_PARAMETER[parameter]
    assert set(decide("scale_up", requests).values()) == {"ImplicitlyDenied"}
    assert set(decide(policies_of("scale_up", **dict([parameter])), requests).values()) == {"Allowed"}


@every_function
def test_an_images_parameter_is_read_by_whoever_looks_at_instances_where_the_stack_names_it_and_by_nobody_else(decide, life, function):
    looks = any(action == "ec2:DescribeLaunchTemplates" for action, _, _ in needed(life, function))
    two = [asked("ssm:GetParameters", f"{PARAMETERS}/ci/{name}") for name in ("linux-image", "gpu-image")]
    named = policies_of(function, ImageParameterArns=",".join(arn for _, arn, *_ in two))
    assert set(decide(named, two).values()) == {"Allowed" if looks else "ImplicitlyDenied"}
    assert set(decide(policies_of(function, ImageParameterArns=""), two).values()) == {"ImplicitlyDenied"}


def test_the_doctor_may_ask_for_the_spot_role_and_for_no_other(decide):
    of_spot = f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"
    requests = [
        asked("iam:GetRole", of_spot),
        asked("iam:GetRole", f"arn:aws:iam::{ACCOUNT}:role/admin"),
        asked("ec2:DescribeRouteTables", "*"),
    ]
    assert list(decide("operate", requests).values()) == ["Allowed", "ImplicitlyDenied", "Allowed"]


def test_the_volumes_key_is_used_by_way_of_ec2_only_and_granted_to_nobody_else(decide):
    with_a_key = policies_of("scale_up", VolumeKmsKeyArn=KEY)
    wrong = [
        asked("kms:Decrypt", KEY),
        asked("kms:Decrypt", KEY, **{"kms:ViaService": f"s3.{REGION}.amazonaws.com"}),
        asked("kms:CreateGrant", KEY, **VIA, **{"kms:GrantIsForAWSResource": "false"}),
        asked("kms:Decrypt", KEY.replace("0a1b", "ffff"), **VIA),
    ]
    assert set(decide(with_a_key, wrong).values()) == {"ImplicitlyDenied"}


@pytest.mark.parametrize(
    ("partition", "service"), [("aws", "ec2.amazonaws.com"), ("aws-cn", "ec2.amazonaws.com.cn"), ("aws-us-gov", "ec2.amazonaws.com")]
)
def test_the_agents_role_is_passed_in_every_partition(decide, partition, service):
    role = given(partition)["AgentRole.Arn"]
    own = f"arn:{partition}:iam::{ACCOUNT}:role/autoscaler-agent-gpu"
    requests = [asked("iam:PassRole", each, **{"iam:PassedToService": service}) for each in (role, own)]
    assert set(decide(policies_of("scale_up", partition), requests).values()) == {"Allowed"}
    trusted = stack(partition)["AgentRole"]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert [statement["Principal"] for statement in trusted] == [{"Service": service}]


def test_an_agent_may_ask_who_it_is_over_the_url_and_do_nothing_else(decide):
    agent = [stack()["AgentPolicy"]["Properties"]["PolicyDocument"]]
    url = {"lambda:FunctionUrlAuthType": "AWS_IAM"}
    by_url = {"lambda:InvokedViaFunctionUrl": "true"}
    instance = {"ec2:SourceInstanceARN": f"{EC2}:instance/i-0123456789abcdef0"}
    register = GIVEN["RegisterAgentFunction.Arn"]
    mine = [
        asked("lambda:InvokeFunctionUrl", register, **url, **instance),
        asked("lambda:InvokeFunction", register, **by_url, **instance),
    ]
    elsewhere = {"ec2:SourceInstanceARN": f"arn:aws:ec2:{REGION}:999999999999:instance/i-0123456789abcdef0"}
    not_mine = [
        asked("lambda:InvokeFunctionUrl", register, **{"lambda:FunctionUrlAuthType": "NONE"}, **instance),
        asked("lambda:InvokeFunction", register, **{"lambda:InvokedViaFunctionUrl": "false"}, **instance),
        asked("lambda:InvokeFunction", register.replace("RegisterAgent", "ScaleUp"), **by_url, **instance),
        # A session of the role that no instance began, under whatever name.
        *(asked("lambda:InvokeFunctionUrl", register, **url, **where) for where in ({}, elsewhere)),
        *(asked("lambda:InvokeFunction", register, **by_url, **where) for where in ({}, elsewhere)),
        asked("ec2:DescribeInstances", "*"),
        *FOREIGN,
    ]
    assert set(decide(agent, mine).values()) == {"Allowed"}
    assert set(decide(agent, not_mine).values()) == {"ImplicitlyDenied"}


def test_an_agent_may_ask_who_it_is_over_the_http_api_and_do_nothing_else(decide):
    agent = [stack(RegistrationEndpoint="http-api")["AgentPolicy"]["Properties"]["PolicyDocument"]]
    api = f"arn:aws:execute-api:{REGION}:{ACCOUNT}:{GIVEN['RegistrationApi']}"
    instance = {"ec2:SourceInstanceARN": f"{EC2}:instance/i-0123456789abcdef0"}
    elsewhere = {"ec2:SourceInstanceARN": f"arn:aws:ec2:{REGION}:999999999999:instance/i-0123456789abcdef0"}
    mine = [asked("execute-api:Invoke", f"{api}/$default/POST/register", **instance)]
    register = GIVEN["RegisterAgentFunction.Arn"]
    not_mine = [
        *(asked("execute-api:Invoke", f"{api}/$default/POST/register", **where) for where in ({}, elsewhere)),
        asked("execute-api:Invoke", f"{api}/$default/GET/register", **instance),
        asked("execute-api:Invoke", f"{api}/$default/POST/other", **instance),
        asked("execute-api:Invoke", f"{api.replace(GIVEN['RegistrationApi'], 'other')}/$default/POST/register", **instance),
        # The API invokes the function; an agent does not.
        asked("lambda:InvokeFunction", register, **{"lambda:InvokedViaFunctionUrl": "true"}, **instance),
        asked("lambda:InvokeFunctionUrl", register, **{"lambda:FunctionUrlAuthType": "AWS_IAM"}, **instance),
        *FOREIGN,
    ]
    assert set(decide(agent, mine).values()) == {"Allowed"}
    assert set(decide(agent, not_mine).values()) == {"ImplicitlyDenied"}


def test_an_agent_keeps_the_channel_of_session_manager_where_the_stack_says_so_and_reads_no_parameter(decide):
    instance = {"ec2:SourceInstanceARN": f"{EC2}:instance/i-0123456789abcdef0"}
    channel = [
        "ssm:UpdateInstanceInformation",
        *(f"ssmmessages:{way}{of}Channel" for way in ("Create", "Open") for of in ("Control", "Data")),
    ]
    assert "AgentSessionPolicy" not in stack()
    let_in = [stack(AgentSessionManager="yes")["AgentSessionPolicy"]["Properties"]["PolicyDocument"]]
    assert set(decide(let_in, [asked(action, "*", **instance) for action in channel]).values()) == {"Allowed"}
    others = [asked(action, "*") for action in channel]
    others += [asked(f"ssm:{action}", "*", **instance) for action in ("GetParameter", "GetParameters", "StartSession", "SendCommand")]
    assert set(decide(let_in, [*others, *FOREIGN]).values()) == {"ImplicitlyDenied"}


def listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def of_people(policy: str, decide, *functions: str) -> None:
    """See that a policy allows to invoke these functions, and what the command line asks AWS itself, and nothing else."""
    document = stack()[policy]["Properties"]["PolicyDocument"]
    used = [asked("lambda:InvokeFunction", GIVEN[f"{name}Function.Arn"]) for name in functions]
    used += [asked("cloudformation:DescribeStacks", GIVEN["AWS::StackId"]), asked("cloudwatch:DescribeAlarms", "*")]
    used += [asked(f"cloudwatch:{action}", "*") for action in ("DescribeAlarmHistory", "GetMetricData")]
    every = {name.removesuffix("Function.Arn") for name in GIVEN if name.endswith("Function.Arn")}
    others = [asked("lambda:InvokeFunction", GIVEN[f"{name}Function.Arn"]) for name in sorted(every - set(functions))]
    others += [
        asked("ec2:TerminateInstances", f"{EC2}:instance/i-1", **OURS),
        asked("lambda:UpdateFunctionCode", GIVEN["OperateFunction.Arn"]),
        asked("lambda:UpdateFunctionConfiguration", GIVEN["AskFunction.Arn"]),
    ]
    assert set(decide([document], used).values()) == {"Allowed"}
    assert set(decide([document], others).values()) == {"ImplicitlyDenied"}


def test_an_operator_may_use_the_command_line_and_nothing_else(decide):
    of_people("OperatorPolicy", decide, "Operate", "ScaleUp", "Ask")


def test_who_may_only_ask_invokes_one_function(decide):
    of_people("ReaderPolicy", decide, "Ask")
