"""The fleet file's name and the stack's: `make build` and every function refuse two different ones."""

import shutil

import pytest

from autoscaler import bootstrap
from autoscaler.errors import ConfigError
from autoscaler_workbench.maintenance.fleet_name import check_fleet_name
from packaging_root import ROOT


@pytest.fixture
def project(tmp_path):
    (tmp_path / "layers" / "fleet").mkdir(parents=True)
    shutil.copy(ROOT / "layers" / "fleet" / "fleet.yaml", tmp_path / "layers" / "fleet")
    shutil.copy(ROOT / "template.yaml", tmp_path)
    return tmp_path


def renamed(project, name):
    file = project / "layers" / "fleet" / "fleet.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("fleet: mxnet-ci", f"fleet: {name}"), encoding="utf-8")


def configured(project, overrides):
    (project / "samconfig.toml").write_text(
        f"version = 0.1\n[default.deploy.parameters]\nparameter_overrides = {overrides}\n", encoding="utf-8"
    )


def test_the_project_as_it_is_holds_together():
    check_fleet_name(ROOT)


def test_a_fleet_file_of_another_name_is_refused_and_told_what_to_write(project):
    renamed(project, "my-ci")
    with pytest.raises(ConfigError, match=r"FleetName \(mxnet-ci\) in template.yaml .*parameter_overrides = \"FleetName=my-ci"):
        check_fleet_name(project)


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
        check_fleet_name(project)
    renamed(project, "my-ci")
    check_fleet_name(project)


def test_a_function_that_was_deployed_for_another_fleet_says_so_and_does_nothing(monkeypatch):
    monkeypatch.setenv("FLEET_CONFIG", str(ROOT / "layers" / "fleet" / "fleet.yaml"))
    monkeypatch.setenv("FLEET_HOME", "123456789012/us-west-2")
    monkeypatch.setenv("STATE_TABLE", "state")
    monkeypatch.setenv("FLEET_NAME", "my-ci")
    bootstrap.reset()
    with pytest.raises(ConfigError, match=r"FLEET_NAME \(my-ci\).*the fleet file's name \(mxnet-ci\)"):
        bootstrap.runtime()
    bootstrap.reset()
