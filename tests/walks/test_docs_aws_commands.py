"""The AWS CLI's commands of the pages: each is one that the service has, and those that make something run on a local AWS."""

import json

import boto3
import pytest
from botocore.exceptions import BotoCoreError, ClientError
from moto import mock_aws

from support.aws_commands import NoSuchCommandError, read_call
from support.page_commands import PAGES, spoken_of, taken_apart
from support.page_rules import PLACEHOLDERS, of_program, reason_not_to_run

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@pages
def test_every_aws_command_is_one_that_the_service_has_with_these_options(page):
    for command in of_program(page, "aws", "run()", spoken=True):
        words = [PLACEHOLDERS.get(word, word) for word in command.words]
        if command.program == "run()":
            words = [word.rstrip(";") for word in words if word not in {"{", "aws", "}"}]
        alone = command in spoken_of(page) and len(words) == 2  # a sentence may name it without its options
        try:
            read_call(words)
        except NoSuchCommandError as error:
            if not (alone and "Missing required parameter" in str(error)):
                pytest.fail(f"{command}: {error}")


@pytest.mark.parametrize(
    "text", ["aws ec2 describe-instancs", "aws ssm put-parameter --nam /x", "aws ec2 terminate-instances", "aws ssm put-parameter --name"]
)
def test_a_wrong_aws_command_would_be_noticed(text):
    with pytest.raises(NoSuchCommandError):
        read_call(taken_apart("", 1, text).words)


def on_local_aws(page):
    return [command for command in of_program(page, "aws") if reason_not_to_run(command) is None]


AWS_HERE = [page for page in PAGES if on_local_aws(page)]


@pytest.mark.long
@pytest.mark.parametrize("page", AWS_HERE, ids=lambda page: page.stem)
def test_the_aws_commands_of_a_page_run_in_their_order(page, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "nobody")
    with mock_aws():
        session = boto3.Session(region_name="us-west-2")
        ec2 = session.client("ec2")
        image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
        [instance] = ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, InstanceType="m5.large")["Instances"]
        iam = session.client("iam")
        for group in ("ci-operators", "developers"):
            iam.create_group(GroupName=group)
        policy = iam.create_policy(
            PolicyName="operators",
            PolicyDocument=json.dumps(
                {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "lambda:InvokeFunction", "Resource": "*"}]}
            ),
        )
        here = {
            "i-0123456789abcdef0": instance["InstanceId"],
            "ami-0123456789abcdef0": image,
            **dict.fromkeys(("ARN-OF-OperatorPolicy", "ARN-OF-ReaderPolicy"), policy["Policy"]["Arn"]),
        }
        for command in on_local_aws(page):
            call = read_call([image if word.startswith("resolve:ssm:") else here.get(word, word) for word in command.words])
            assert call is not None, f"{command}: needs a rule"
            try:
                answer = getattr(session.client(call.service), call.operation)(**call.parameters)
            except (BotoCoreError, ClientError) as error:
                pytest.fail(f"{command}: {error}")
            if call.operation == "run_instances":
                here["i-0123456789abcdef0"] = answer["Instances"][0]["InstanceId"]
            if call.operation == "create_image":
                here["ami-0123456789abcdef0"] = answer["ImageId"]
