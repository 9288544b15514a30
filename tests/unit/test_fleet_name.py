"""The fleet file's name and the stack's: `make build` and every function refuse two different ones."""

import shutil
import tomllib

import pytest
from botocore.exceptions import NoCredentialsError

from autoscaler import bootstrap
from autoscaler.errors import ConfigError
from autoscaler_workbench.advice import SECRET_PREFIX
from autoscaler_workbench.fakes.http_fakes.clients import LocalEc2Client
from autoscaler_workbench.maintenance.fleet_name import check_fleet_name, check_images, check_secrets, write_first
from autoscaler_workbench.report.dashboard.cloudformation import defaults_of, read_template
from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET
from packaging_root import ROOT
from support.builders import a_fleet, a_pool, an_offering
from support.worlds import stand


@pytest.fixture
def project(tmp_path):
    shutil.copy(EXAMPLE_FLEET, tmp_path / "my.yaml")
    return tmp_path


def renamed(project, name):
    file = project / "my.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("fleet: mxnet-ci", f"fleet: {name}"), encoding="utf-8")


def configured(project, overrides):
    (project / "samconfig.toml").write_text(
        f"version = 0.1\n[default.deploy.parameters]\nparameter_overrides = {overrides}\n", encoding="utf-8"
    )


def checked(project):
    check_fleet_name(project, project / "my.yaml")


def name_subnets(file, *subnets):
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("    max_agents:", f"    subnets: [{', '.join(subnets)}]\n    max_agents:", 1), encoding="utf-8")


def first_build(project, *subnets, **routes):
    """What the first build says and deploys, for pools in these subnets, each of which leads out by its route."""
    file = project / "my.yaml"
    if subnets:
        name_subnets(file, *subnets)
    with stand(
        "memory", a_fleet(a_pool("cpu", offerings=tuple(an_offering(subnet=subnet) for subnet in ("subnet-a", "subnet-b"))))
    ) as here:
        here.world.ec2.unknown_subnets.add("subnet-gone")
        here.world.ec2.account.routes |= {name.replace("_", "-"): target for name, target in routes.items()}
        said = list(write_first(project, file, lambda: LocalEc2Client(here.ec2_face)))
    checked(project)
    written = tomllib.loads((project / "samconfig.toml").read_text(encoding="utf-8"))
    return said, written["default"]["deploy"]["parameters"]["parameter_overrides"]


def test_the_first_build_writes_what_is_deployed_and_the_next_one_leaves_it_alone(project):
    renamed(project, "my-ci")
    assert first_build(project)[1] == "FleetName=my-ci AgentPublicIp=true"
    configured(project, '"FleetName=my-ci AgentPublicIp=false LogLevel=DEBUG"')
    assert first_build(project) == ([], "FleetName=my-ci AgentPublicIp=false LogLevel=DEBUG")


@pytest.mark.parametrize(
    ("subnets", "answer"),
    [
        ((), "true: the pools name no subnets, and an account's default ones lead out through an internet gateway"),
        (("subnet-a",), "false: subnet-a: no way out through an internet gateway"),
        (("subnet-a", "subnet-b"), "true: subnet-b leads out through an internet gateway"),
        (("subnet-a", "subnet-gone"), "true: EC2 knows no subnet-gone; if the pools' subnets lead out through a NAT, write false"),
    ],
)
def test_the_first_build_gives_agents_public_addresses_where_their_subnets_need_them(project, subnets, answer):
    said, deployed = first_build(project, *subnets, subnet_b="igw-1")
    assert said == [f"samconfig.toml: AgentPublicIp={answer}"]
    assert deployed.split()[1] == f"AgentPublicIp={answer.partition(':')[0]}"


def test_agents_get_public_addresses_where_aws_cannot_be_asked_and_a_line_says_when_to_change_it(project):
    def nobody():
        raise NoCredentialsError

    name_subnets(project / "my.yaml", "subnet-a")
    [line] = write_first(project, project / "my.yaml", nobody)
    assert "AgentPublicIp=true: AWS could not be asked (Unable to locate credentials)" in line
    assert "if the pools' subnets lead out through a NAT, write false" in line
    assert "AgentPublicIp=true" in (project / "samconfig.toml").read_text(encoding="utf-8")


def test_a_fleet_file_of_another_name_is_refused_and_told_what_to_write(project):
    first_build(project)
    renamed(project, "my-ci")
    with pytest.raises(ConfigError, match=r"FleetName \(mxnet-ci\) in samconfig.toml .*parameter_overrides = \"FleetName=my-ci"):
        checked(project)


def test_a_deployment_without_a_name_is_refused(project):
    configured(project, '"LogLevel=INFO"')
    with pytest.raises(ConfigError, match=r"FleetName \(none\) in samconfig.toml"):
        checked(project)


@pytest.mark.parametrize(
    "overrides",
    [
        '"FleetName=my-ci LogLevel=INFO"',
        "'FleetName=\"my-ci\"'",
        '["LogLevel=INFO", "FleetName=my-ci"]',
        '"ParameterKey=FleetName,ParameterValue=my-ci"',
    ],
)
def test_what_samconfig_deploys_counts(project, overrides):
    configured(project, overrides)
    with pytest.raises(
        ConfigError, match=r"FleetName \(my-ci\) in samconfig.toml \(default.deploy\) is not the fleet file's name \(mxnet-ci\)"
    ):
        checked(project)
    renamed(project, "my-ci")
    checked(project)


@pytest.mark.parametrize(("asks", "image"), [("Arm64Agents", "Arm64ImageParameter"), ("MakeWindowsAgents", "WindowsImageParameter")])
def test_agents_of_another_platform_need_an_image_of_theirs(project, asks, image):
    for answer in ("no", "yes"):
        configured(project, f'"FleetName=mxnet-ci {asks}={answer} {image}=/ci/image"')
        check_images(project)
    configured(project, f'"FleetName=mxnet-ci {asks}=no"')
    check_images(project)
    configured(project, f'"FleetName=mxnet-ci {asks}=yes"')
    line = rf"^{image} in samconfig.toml \(default.deploy\): missing, and {asks} is yes: write {image}=/aws/service/"
    with pytest.raises(ConfigError, match=line):
        check_images(project)


def with_secret(project, secret):
    file = project / "my.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("secret: jenkins/main", f"secret: {secret}"), encoding="utf-8")


@pytest.mark.parametrize(
    ("overrides", "secret", "place"),
    [
        ('"FleetName=mxnet-ci"', "prod/main", "ControllerSecretPrefix is jenkins/ in template.yaml (the default)"),
        ('"FleetName=mxnet-ci ControllerSecretPrefix=prod/"', "jenkins/main", "is prod/ in samconfig.toml (default.deploy)"),
    ],
)
def test_a_secret_that_the_deployed_functions_may_not_read_is_refused(project, overrides, secret, place):
    configured(project, overrides)
    with_secret(project, secret)
    with pytest.raises(ConfigError) as refused:
        check_secrets(project, project / "my.yaml")
    assert f"controllers.main.secret ({secret}): the functions may not read it" in str(refused.value)
    assert place in str(refused.value)


def test_secrets_are_checked_against_the_templates_default_where_nothing_else_is_deployed():
    assert defaults_of(read_template(ROOT / "template.yaml"))["ControllerSecretPrefix"] == SECRET_PREFIX


def test_a_secret_that_they_may_read_is_taken_and_what_is_odd_is_warned_of(project):
    configured(project, '"FleetName=mxnet-ci ControllerSecretPrefix=prod/"')
    with_secret(project, "prod/main")
    assert check_secrets(project, project / "my.yaml") == []
    file = project / "my.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("https://", "http://"), encoding="utf-8")
    [warning] = check_secrets(project, file)
    assert "over http the token is sent in the clear" in warning


def test_a_function_that_was_deployed_for_another_fleet_says_so_and_does_nothing(monkeypatch):
    monkeypatch.setenv("FLEET_CONFIG", str(EXAMPLE_FLEET))
    monkeypatch.setenv("FLEET_HOME", "123456789012/us-west-2")
    monkeypatch.setenv("STATE_TABLE", "state")
    monkeypatch.setenv("FLEET_NAME", "my-ci")
    bootstrap.reset()
    with pytest.raises(ConfigError, match=r"FLEET_NAME \(my-ci\).*the fleet file's name \(mxnet-ci\)"):
        bootstrap.runtime()
    bootstrap.reset()
