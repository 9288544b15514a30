"""The launch templates that the stack makes: safe by themselves, and with user data that installs what is in agent/."""

import base64
import re
import subprocess
from dataclasses import replace

import pytest
import tree_sitter_powershell
from tree_sitter import Language, Parser

from autoscaler.adapters.account import USER_DATA_BYTES, AwsAccount
from autoscaler.entry import function_url
from autoscaler_workbench.fakes.http_fakes.clients import LocalEc2Client
from autoscaler_workbench.fakes.world.ec2.account import image_of
from autoscaler_workbench.maintenance.comments import without_comments
from autoscaler_workbench.maintenance.fleet_name import NEEDS_AN_IMAGE
from autoscaler_workbench.maintenance.user_data import installer, with_user_data
from packaging_root import ROOT
from support.builders import a_fleet, a_pool, an_offering
from support.template import TEMPLATE, resolved
from support.translated import IMAGE, stack
from support.worlds import stand

TEMPLATES = {"linux": "LinuxAgents", "windows": "WindowsAgents", "arm64": "ArmAgents"}


def data(platform):
    return TEMPLATE["Resources"][TEMPLATES[platform]]["Properties"]["LaunchTemplateData"]


def user_data(platform):
    return resolved(data(platform)["UserData"]["Fn::Base64"])


every = pytest.mark.parametrize("platform", TEMPLATES)


@every
def test_a_build_cannot_become_its_instance(platform):
    assert data(platform)["MetadataOptions"] == {"HttpEndpoint": "enabled", "HttpTokens": "required", "HttpPutResponseHopLimit": 1}
    assert data(platform)["IamInstanceProfile"] == {"Arn": {"GetAtt": "AgentInstanceProfile.Arn"}}


@every
def test_powering_off_ends_it_and_nothing_of_it_stays(platform):
    assert data(platform)["InstanceInitiatedShutdownBehavior"] == "terminate"
    [volume], [interface] = data(platform)["BlockDeviceMappings"], data(platform)["NetworkInterfaces"]
    assert volume["Ebs"]["Encrypted"] is True
    assert volume["Ebs"]["DeleteOnTermination"] is True
    assert interface["DeleteOnTermination"] is True


@every
def test_what_ec2_fleet_cannot_tag_is_tagged_here(platform):
    ours = [{"Key": "autoscaler:fleet", "Value": {"Ref": "FleetName"}}]
    assert {spec["ResourceType"]: spec["Tags"] for spec in data(platform)["TagSpecifications"]} == {
        "volume": ours,
        "network-interface": ours,
    }


@every
def test_user_data_fits_and_holds_no_secret(platform):
    text = user_data(platform)
    assert len(text.encode()) < USER_DATA_BYTES
    assert "${" not in text.split("\n", 4)[0]
    assert "lambda-url.us-west-2.on.aws" in text


def test_with_every_cache_the_user_data_still_fits():
    made = stack(
        ImageCachePrefix="x" * 20,
        DockerHubSecretArn="arn:aws:secretsmanager:us-west-2:123456789012:secret:ecr-pullthroughcache/hub-AbCdEf",
        BuildCacheDays="14",
        DockerMirror=f"https://{'m' * 100}.example.org",
    )
    assert len(made["LinuxAgents"]["Properties"]["LaunchTemplateData"]["UserData"]["Fn::Base64"].encode()) < USER_DATA_BYTES


def test_the_template_holds_the_agents_as_they_are():
    text = (ROOT / "template.yaml").read_text(encoding="utf-8")
    assert with_user_data(text) == text, "run `make user-data`"


def test_linux_user_data_installs_the_agent_as_a_service(tmp_path):
    for name in ("useradd", "dnf", "systemctl"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name} $*" >>"{tmp_path}/calls"\n', encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    script = tmp_path / "user-data"
    script.write_text(user_data("linux"), encoding="utf-8")
    script.chmod(0o755)
    path = f"{tmp_path}:/usr/bin:/bin"
    subprocess.run([script], env={"PATH": path, "ROOT": str(tmp_path / "root")}, check=True, capture_output=True)
    root, agent = tmp_path / "root", ROOT / "agent" / "linux"
    installed = root / "usr/local/sbin/autoscaler-agent"
    assert installed.read_text() == without_comments("", (agent / "autoscaler-agent").read_text())
    assert installed.stat().st_mode & 0o111
    telemetry = root / "usr/local/lib/autoscaler-agent/autoscaler_telemetry.py"
    assert telemetry.read_text() == without_comments(telemetry.name, (agent / telemetry.name).read_text())
    service = (root / "etc/systemd/system/autoscaler-agent.service").read_text().splitlines()
    assert service == [line for line in (agent / "autoscaler-agent.service").read_text().splitlines() if line and line[0] != "#"]
    settings = dict(line.split("=", 1) for line in (root / "etc/autoscaler-agent.conf").read_text().splitlines())
    assert settings["REGISTER_URL"].endswith(".lambda-url.us-west-2.on.aws/")
    assert (settings["REGION"], settings["BOOT_TIMEOUT_SECONDS"], settings["AGENT_USER"]) == ("us-west-2", "900", "jenkins")
    assert settings["BLOCK_INSTANCE_METADATA"] == "yes"
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[-2:] == ["systemctl daemon-reload", "systemctl enable --now autoscaler-agent"]


@pytest.mark.parametrize(("there", "installed"), [("17.0.15", True), ("21.0.13", False), ("25-ea", False), ("1.8.0_452", True)])
def test_linux_user_data_installs_java_where_the_image_has_an_older_one(tmp_path, there, installed):
    """The dnf here only notes how it is called: Amazon Linux itself is not run. The apt path runs in a real Debian (tests/agent)."""
    fakes = {name: f'echo "{name} $*" >>"{tmp_path}/calls"' for name in ("useradd", "dnf", "systemctl")}
    for name, does in (fakes | {"java": f"echo 'openjdk version \"{there}\" 2026-10-20' >&2"}).items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    script = tmp_path / "user-data"
    script.write_text(user_data("linux"), encoding="utf-8")
    script.chmod(0o755)
    subprocess.run([script], env={"PATH": f"{tmp_path}:/usr/bin:/bin", "ROOT": str(tmp_path / "root")}, check=True, capture_output=True)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert ("dnf install -y java-21-amazon-corretto-headless" in calls) is installed


def test_linux_user_data_still_installs_the_service_where_java_cannot_be_had(tmp_path):
    """It asks for two minutes, and the console says why its builds cannot begin: nothing hangs that nobody sees."""
    for name, status in {"useradd": 0, "dnf": 1, "systemctl": 0, "java": 127, "sleep": 0}.items():
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name} $*" >>"{tmp_path}/calls"\nexit {status}\n', encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    script = tmp_path / "user-data"
    script.write_text(user_data("linux"), encoding="utf-8")
    script.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "ROOT": str(tmp_path / "root")}
    done = subprocess.run([script], env=environment, check=True, capture_output=True, text=True)
    assert "there is no Java 21 or newer" in done.stderr
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls.count("sleep 5") == 24
    assert calls[-1] == "systemctl enable --now autoscaler-agent"


def test_the_agent_starts_at_every_boot_and_not_only_at_the_first_for_a_machine_may_be_stopped_and_started_again():
    """User data runs once in the life of an instance, on both; what it installs must not."""
    assert "WantedBy=multi-user.target" in (ROOT / "agent/linux/autoscaler-agent.service").read_text(encoding="utf-8").splitlines()
    windows = installer("windows")
    assert "$trigger = New-ScheduledTaskTrigger -AtStartup" in windows
    [registered] = [line for line in windows.splitlines() if line.startswith("Register-ScheduledTask -TaskName autoscaler-agent ")]
    assert "-Trigger $trigger" in registered


@pytest.mark.parametrize(
    "text", [installer("windows"), (ROOT / "agent/windows/autoscaler-agent.ps1").read_text(encoding="utf-8")], ids=["user data", "script"]
)
def test_powershell_is_well_formed(text):
    tree = Parser(Language(tree_sitter_powershell.language())).parse(text.encode())
    assert not tree.root_node.has_error, first_error(tree.root_node)


def test_a_broken_powershell_script_would_be_noticed():
    tree = Parser(Language(tree_sitter_powershell.language())).parse(b"while ($true) { Get-Identity ")
    assert tree.root_node.has_error


def first_error(node):
    if node.type == "ERROR" or node.is_missing:
        return f"line {node.start_point[0] + 1}: {node.text[:200]!r}"
    return next((said for child in node.children if child.has_error and (said := first_error(child))), "")


def windows_script():
    return (ROOT / "agent/windows/autoscaler-agent.ps1").read_text(encoding="utf-8")


def test_the_windows_secret_is_never_an_argument():
    assert '-secret `"@$run\\secret`"' in windows_script()
    assert windows_script().count("$connection.secret)") == windows_script().count("$connection.secret") == 1


def test_windows_builds_run_as_a_user_who_is_no_administrator_and_owns_nothing_that_system_runs():
    """Read, not run: there is no Windows here."""
    script, installing = windows_script(), installer("windows")
    assert "-User $buildUser -Password $password -RunLevel Limited" in script
    assert "& $settings.Java" not in script
    assert re.findall(r"S-1-5-32-5\d\d", script) == ["S-1-5-32-544", "S-1-5-32-545", "S-1-5-32-559"]
    assert installing.index("icacls 'C:\\autoscaler' /inheritance:r") < installing.index("\nSave-Settings 'java'")


@pytest.mark.parametrize("script", ["agent/linux/autoscaler-agent", "agent/windows/autoscaler-agent.ps1"])
def test_both_scripts_know_our_answers_by_the_header_that_they_carry(script):
    [(name, value)] = function_url.OURS.items()
    text = (ROOT / script).read_text(encoding="utf-8")
    assert name.lower() in text.lower()
    assert value in text


def test_the_arm64_template_is_the_linux_one_with_another_image_and_off_unless_asked_for():
    assert "ArmAgents" not in stack()
    there = stack(Arm64Agents="yes")
    linux, arm = (there[name]["Properties"] for name in ("LinuxAgents", "ArmAgents"))
    assert (linux["LaunchTemplateName"], arm["LaunchTemplateName"]) == ("autoscaler-linux-mxnet-ci", "autoscaler-arm64-mxnet-ci")
    assert (
        arm["LaunchTemplateData"] == linux["LaunchTemplateData"]
    )  # both images are the same one here: what the parameters are looked up to
    other = "ami-00000000000000001"
    [changed] = {name for name, value in stack(Arm64Agents="yes", Arm64ImageParameter=other).items() if value != there[name]}
    assert changed == "ArmAgents"
    linux_image = TEMPLATE["Parameters"]["LinuxImageParameter"]["Default"]
    assert NEEDS_AN_IMAGE["Arm64Agents"] == ("Arm64ImageParameter", linux_image.replace("x86_64", "arm64"))


@pytest.mark.parametrize("platform", ["linux", "windows"])
def test_over_an_http_api_an_instance_signs_for_api_gateway(platform):
    made = {way: stack(RegistrationEndpoint=way, MakeWindowsAgents="yes") for way in ("function-url", "http-api")}
    texts = {way: of[TEMPLATES[platform]]["Properties"]["LaunchTemplateData"]["UserData"]["Fn::Base64"] for way, of in made.items()}
    url = "https://a1b2c3d4e5.execute-api.us-west-2.amazonaws.com/register"
    over_url, over_api = (text.splitlines()[1:3] for text in texts.values())
    if platform == "linux":
        assert over_api == [f"REGISTER_URL='{url}'", "REGISTER_SERVICE=execute-api"]
        assert over_url[1] == "REGISTER_SERVICE=lambda"
    else:
        assert over_api == [f"$registerUrl = '{url}'", "$registerService = 'execute-api'"]
        assert over_url[1] == "$registerService = 'lambda'"
    assert texts["http-api"].splitlines()[3:] == texts["function-url"].splitlines()[3:]


@every
def test_what_validate_finds_unsafe_in_others_is_not_in_ours(platform):
    made = stack(Arm64Agents="yes", MakeWindowsAgents="yes")[TEMPLATES[platform]]["Properties"]["LaunchTemplateData"]
    architecture, platform = ("arm64", "linux") if platform == "arm64" else ("x86_64", platform)
    instance_type = {"arm64": "m7g.large", "x86_64": "m7i.large"}[architecture]
    given = made | {"UserData": base64.b64encode(made["UserData"]["Fn::Base64"].encode()).decode()}
    with stand(
        "memory", replace(a_fleet(a_pool("cpu", platform=platform, offerings=(an_offering(instance_type),))), name="mxnet-ci")
    ) as here:
        here.world.ec2.template_data["cpu"] = given
        here.world.ec2.account.images[IMAGE] = image_of(
            platform, ImageId=IMAGE, Architecture=architecture
        )  # as Amazon's own: their root devices are the defaults
        assert AwsAccount(lambda _service: LocalEc2Client(here.ec2_face), here.fleet).unsafe_templates({}) == {}
