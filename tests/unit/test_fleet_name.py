"""The fleet file's name and the stack's: `make build` and every function refuse two different ones."""

import shutil
import tomllib

import pytest

from autoscaler import bootstrap
from autoscaler.config.advice import SECRET_PREFIX
from autoscaler.errors import ConfigError
from autoscaler_workbench.maintenance.fleet_name import check_fleet_name, check_images, check_secrets
from autoscaler_workbench.report.dashboard.cloudformation import defaults_of, read_template
from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET
from packaging_root import ROOT


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


def test_the_first_build_writes_what_is_deployed_and_the_next_one_finds_it(project):
    renamed(project, "my-ci")
    checked(project)
    written = (project / "samconfig.toml").read_text(encoding="utf-8")
    assert tomllib.loads(written)["default"]["deploy"]["parameters"]["parameter_overrides"] == "FleetName=my-ci"
    checked(project)
    assert (project / "samconfig.toml").read_text(encoding="utf-8") == written


def test_a_fleet_file_of_another_name_is_refused_and_told_what_to_write(project):
    checked(project)
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
