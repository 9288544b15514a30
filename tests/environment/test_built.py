"""The built artefact: what is deployed imports and runs with nothing else on the path but what Lambda brings."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import boto3
import pytest

from autoscaler.config import load_fleet, load_settings
from autoscaler_workbench.cli import demo
from autoscaler_workbench.fakes.http_fakes.server import ApiServer
from autoscaler_workbench.fakes.world.world import build_world
from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET
from packaging_root import ROOT
from support.deployed import essential_environment
from support.worlds import AWS

SMOKE = Path(__file__).parent / "smoke.py"


@pytest.mark.parametrize("template", ["template.yaml", "network.yaml", "image.yaml"])
def test_each_template_is_valid(sam, template):
    validate = [sam, "validate", "--lint", "--region", "us-west-2", "--template", template]
    done = subprocess.run(validate, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_linter_knows_the_parameters_that_images_are_named_by(sam, tmp_path):
    """A misspelt property is an error: so the right one is known."""
    wrong = tmp_path / "image.yaml"
    wrong.write_text(
        (ROOT / "image.yaml").read_text(encoding="utf-8").replace("SsmParameterConfigurations", "SsmParameterConfiguration"),
        encoding="utf-8",
    )
    command = [sam, "validate", "--lint", "--region", "us-west-2", "--template", wrong]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode != 0
    assert "'SsmParameterConfiguration' was unexpected" in done.stdout + done.stderr


def test_each_function_is_its_own_file_only(built):
    for name in ("PublishMetricsFunction", "ScaleUpFunction", "ScaleDownFunction", "RegisterAgentFunction", "InstanceEventsFunction"):
        assert [path.name for path in (built.functions / name).iterdir()] == ["app.py"]


def test_the_arm64_layer_is_for_arm64_and_carries_no_sdk(built):
    python = built.functions / "CoreLayer" / "python"
    assert list(python.glob("pydantic_core/*aarch64*.so"))
    assert (python / "autoscaler" / "prices.json").exists()
    assert (python / "autoscaler" / "instance_types.json").exists()
    assert not (python / "boto3").exists()
    assert not list(python.rglob("tests/unit"))
    assert sum(path.stat().st_size for path in python.rglob("*") if path.is_file()) < 60_000_000


def test_a_layer_built_beside_lambdas_python_carries_bytecode(built):
    for package in ("autoscaler/domain", "pydantic", "requests"):
        assert list((built.core / package / "__pycache__").glob("*.pyc")), package


@pytest.mark.needs("python3.13")
def test_what_is_deployed_carries_bytecode_if_this_machine_has_lambdas_python(built):
    package = built.functions / "CoreLayer" / "python" / "autoscaler" / "domain"
    modules = {path.stem for path in package.glob("*.py")}
    assert {path.name for path in (package / "__pycache__").iterdir()} == {f"{name}.cpython-313.pyc" for name in modules}


def test_the_build_warns_of_nothing(built):
    assert "warning" not in built.said.lower()


def test_the_fleet_layer_carries_the_file_and_its_checked_twin(built):
    assert {path.name for path in built.fleet.iterdir()} == {"fleet.yaml", "fleet.json"}
    assert load_fleet(built.fleet / "fleet.yaml").name == "mxnet-ci"


def fleet_layer(folder, fleet):
    """Build the fleet layer alone, of this fleet file."""
    (folder / "out").mkdir()
    return subprocess.run(
        [
            *("make", "-C", ROOT / "layers" / "fleet", "build-FleetLayer"),
            *(f"ARTIFACTS_DIR={folder}/out", f"AUTOSCALER_PYTHON={sys.executable}", f"AUTOSCALER_FLEET={fleet}"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_fleet_file_of_any_name_is_built_with_the_authorities_beside_it(tmp_path):
    shutil.copy(EXAMPLE_FLEET, tmp_path / "my.yaml")
    (tmp_path / "ca.pem").write_text("an authority", encoding="utf-8")
    done = fleet_layer(tmp_path, tmp_path / "my.yaml")
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"fleet.yaml", "fleet.json", "ca.pem"}


def test_a_fleet_file_that_is_wrong_is_not_built(tmp_path):
    bad = EXAMPLE_FLEET.read_text(encoding="utf-8").replace("executors: 30", "executors: 0")
    (tmp_path / "bad.yaml").write_text(bad, encoding="utf-8")
    done = fleet_layer(tmp_path, tmp_path / "bad.yaml")
    assert done.returncode != 0
    assert "pools.utility.executors (0): must be 1 or more" in done.stderr


def test_the_layer_carries_time_zones_since_the_runtime_may_have_none(built, tmp_path):
    schedule = "{from: 08:00, to: 18:00, time_zone: Europe/Berlin, min_agents: 1}"
    text = EXAMPLE_FLEET.read_text(encoding="utf-8").replace("executors: 30", f"executors: 30\n    schedules: [{schedule}]")
    (tmp_path / "fleet.yaml").write_text(text, encoding="utf-8")
    load = f"from autoscaler.config import load_fleet; load_fleet(Path({str(tmp_path / 'fleet.yaml')!r}))"
    bare = f"import sys, zoneinfo; from pathlib import Path; sys.path.insert(0, {str(built.core)!r}); zoneinfo.reset_tzpath(to=()); {load}"
    done = subprocess.run([built.python, "-I", "-c", bare], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def clouds(local_aws):
    """A world over HTTP and a local AWS over HTTP, on the wall clock."""
    settings = load_settings(EXAMPLE_FLEET)
    world = build_world(settings.domain(), start_at=time.time(), seed=1)
    with ApiServer() as server, pytest.MonkeyPatch.context() as patch:
        demo.serve(server, world)
        for name, value in {**AWS, "AWS_ENDPOINT_URL": local_aws}.items():
            patch.setenv(name, value)
        boto3.setup_default_session()
        demo.create_table()
        demo.create_secrets(settings)
        environment = {
            **essential_environment(),
            **AWS,
            "AWS_ENDPOINT_URL": local_aws,
            "AWS_ENDPOINT_URL_EC2": f"{server.url}/ec2/",
            "STATE_TABLE": demo.TABLE,
            "FLEET_HOME": "123456789012/us-west-2",
            "JENKINS_URL_MAIN": f"{server.url}/jenkins/main/",
        }
        yield world, environment


@pytest.mark.parametrize(
    ("function", "expected"), [("PublishMetricsFunction", "metrics"), ("ScaleUpFunction", "steps"), ("ScaleDownFunction", "steps")]
)
def test_every_built_handler_runs_a_pass_in_a_bare_interpreter(built, clouds, function, expected):
    world, environment = clouds
    done = subprocess.run(
        [built.python, "-I", SMOKE, built.functions / function, built.core, "2"],
        env={**environment, "FLEET_CONFIG": str(built.fleet / "fleet.yaml"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    answers = [json.loads(line.removeprefix("answer ")) for line in done.stdout.splitlines() if line.startswith("answer ")]
    assert len(answers) == 2
    assert all(expected in answer for answer in answers)
    if function == "ScaleUpFunction":
        kinds = [step["step"] for step in answers[0]["steps"] if step["outcome"] == "done"]
        assert sorted(set(kinds)) == ["create-beacon", "launch"]
        assert len(kinds) == len(answers[0]["steps"])
        assert len(world.ec2.instances) == 1
