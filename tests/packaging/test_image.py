"""What image.yaml makes: nothing unless asked, and images that the stack can take. Image Builder itself is not here."""

import re

import pytest

from autoscaler_workbench.maintenance.fleet_name import NEEDS_AN_IMAGE
from autoscaler_workbench.maintenance.image_components import COMPONENTS, text_of, with_components
from packaging_root import ROOT
from support.image_builder import read_component
from support.images import ALL, FILE, KINDS, TEMPLATE, images, of_kind
from support.template import TEMPLATE as STACK

PARAMETERS = TEMPLATE["Parameters"]
every_kind = pytest.mark.parametrize("kind", KINDS)


def test_nothing_is_made_unless_an_image_is_switched_on():
    assert images() == {}


@every_kind
def test_an_image_brings_its_own_pipeline_and_no_other(kind):
    made = images(**{KINDS[kind]: "yes"})
    assert {name for name, r in made.items() if r["Type"].endswith("ImagePipeline")} == {f"{kind}Pipeline"}
    components = set(of_kind(made, "Component"))
    linux = {"BaseComponent", "FirstDevicesComponent", "DevicesComponent", "CachesComponent", "WarmUpComponent"}
    expected = {"Windows": {"WindowsComponent"}, "Gpu": {*linux, "GpuComponent"}}
    assert components == expected.get(kind, linux)
    assert {"BuildRole", "ImageBuilderRole", "CleanUpRole"} <= set(made)


def test_the_template_holds_the_components_as_they_are():
    text = FILE.read_text(encoding="utf-8")
    assert with_components(text) == text, "run `make components`"
    for properties in of_kind(images(**ALL), "Component").values():
        name = properties["Name"].removeprefix("autoscaler-mxnet-ci-")
        assert properties["Data"] == text_of(name)
        assert properties["Platform"] == ("Windows" if name == "windows" else "Linux")


@every_kind
def test_the_id_lands_in_a_parameter_that_the_stack_takes(kind):
    made = images(**ALL)
    [distribution] = made[f"{kind}Distribution"]["Properties"]["Distributions"]
    [parameter] = distribution["SsmParameterConfigurations"]
    word = {"Arm": "arm64"}.get(kind, kind.lower())
    assert parameter == {"ParameterName": f"/autoscaler/mxnet-ci/image/{word}", "DataType": "aws:ec2:image"}
    assert TEMPLATE["Outputs"][f"{kind}Parameter"]["Value"]["Sub"] == f"/autoscaler/${{FleetName}}/image/{word}"
    takes = {"Arm": "Arm64ImageParameter", "Windows": "WindowsImageParameter"}.get(kind, "LinuxImageParameter")
    assert STACK["Parameters"][takes]["Type"] == "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>"


@every_kind
def test_it_is_built_once_a_week_whatever_has_changed(kind):
    pipeline = images(**ALL)[f"{kind}Pipeline"]["Properties"]
    assert pipeline["Schedule"] == {
        "ScheduleExpression": "cron(0 3 ? * sun *)",
        "PipelineExecutionStartCondition": "EXPRESSION_MATCH_ONLY",
    }
    # Minute, hour, day, month, weekday, year.
    assert len(PARAMETERS["Schedule"]["Default"].removeprefix("cron(").removesuffix(")").split()) == 6
    assert images(**ALL, ScheduleState="DISABLED")[f"{kind}Pipeline"]["Properties"]["Status"] == "DISABLED"
    assert pipeline["ImageTestsConfiguration"]["ImageTestsEnabled"] is True


@every_kind
def test_it_is_encrypted_and_its_build_gives_no_credentials_to_a_request_without_a_token(kind):
    made = images(**ALL)
    [volume] = made[f"{kind}Recipe"]["Properties"]["BlockDeviceMappings"]
    assert volume["Ebs"]["Encrypted"] is True
    build = made[f"{kind}Build"]["Properties"]
    assert build["InstanceMetadataOptions"] == {"HttpTokens": "required", "HttpPutResponseHopLimit": 1}
    assert build["TerminateInstanceOnFailure"] is True
    keyed = images(**ALL, VolumeKmsKeyArn="arn:aws:kms:us-west-2:123456789012:key/0a1b")[f"{kind}Recipe"]["Properties"]
    assert keyed["BlockDeviceMappings"][0]["Ebs"]["KmsKeyId"].endswith("key/0a1b")


def test_everything_carries_the_fleet_s_tag_but_the_instances_that_build():
    """To the autoscaler an instance with that tag is an agent that nobody recorded."""
    made = images(**ALL)
    tagged = {name: r["Properties"] for name, r in made.items() if r["Type"].startswith("AWS::ImageBuilder::")}
    assert [name for name, properties in tagged.items() if properties["Tags"] != {"autoscaler:fleet": "mxnet-ci"}] == []
    for build in of_kind(made, "InfrastructureConfiguration").values():
        assert build["ResourceTags"] == {"autoscaler:image-of": "mxnet-ci"}
    for distribution in of_kind(made, "DistributionConfiguration").values():
        assert distribution["Distributions"][0]["AmiDistributionConfiguration"]["AmiTags"] == {"autoscaler:fleet": "mxnet-ci"}


@every_kind
def test_what_a_recipe_gives_its_components_they_take(kind):
    made = images(**ALL, DockerImages="alpine:3.20", GitMirrors="https://github.com/apache/mxnet.git")
    for used in made[f"{kind}Recipe"]["Properties"]["Components"]:
        component = read_component(made[used["ComponentArn"]["Ref"]]["Properties"]["Data"])
        given = {parameter["Name"]: parameter["Value"][0] for parameter in used.get("Parameters", [])}
        assert component.values(given).keys() == given.keys(), "a parameter is left at its default"


@every_kind
def test_a_component_of_your_own_runs_before_caches_are_filled(kind):
    mine = "arn:aws:imagebuilder:us-west-2:123456789012:component/mine/1.0.0"
    parameter = "WindowsComponentArn" if kind == "Windows" else "LinuxComponentArn"
    there = images(**ALL, **{parameter: mine})[f"{kind}Recipe"]["Properties"]["Components"]
    words = [one["ComponentArn"] if isinstance(one["ComponentArn"], str) else one["ComponentArn"]["Ref"] for one in there]
    after = ["FirstDevicesComponent", "DevicesComponent", "CachesComponent", mine, "WarmUpComponent"]
    expected = {"Windows": ["WindowsComponent", mine], "Gpu": ["BaseComponent", "GpuComponent", *after]}
    assert words == expected.get(kind, ["BaseComponent", *after])
    assert mine not in str(images(**ALL))


@every_kind
def test_old_images_go_but_neither_the_newest_nor_those_that_are_in_use(kind):
    policy = images(**ALL)[f"{kind}CleanUp"]["Properties"]
    [rule] = policy["PolicyDetails"]
    assert rule["Action"] == {"Type": "DELETE", "IncludeResources": {"Amis": True, "Snapshots": True}}
    assert rule["Filter"] == {"Type": "AGE", "Value": 8, "Unit": "WEEKS", "RetainAtLeast": 3}
    assert rule["ExclusionRules"] == {"Amis": {"LastLaunched": {"Value": 60, "Unit": "DAYS"}}}
    assert policy["ResourceSelection"]["Recipes"][0]["Name"] == images(**ALL)[f"{kind}Recipe"]["Properties"]["Name"]


def test_images_are_made_from_what_the_stack_would_launch_without_them():
    same = {"LinuxBaseParameter": "LinuxImageParameter", "JavaVersion": "JavaVersion", "LinuxRootDevice": "LinuxRootDevice"}
    for ours, theirs in same.items():
        assert PARAMETERS[ours]["Default"] == STACK["Parameters"][theirs]["Default"], ours
    for ours, asked in {"Arm64BaseParameter": "Arm64Agents", "WindowsBaseParameter": "MakeWindowsAgents"}.items():
        assert PARAMETERS[ours]["Default"] == NEEDS_AN_IMAGE[asked][1]
    # A volume may not be smaller than its snapshot.
    for ours, theirs in {
        "LinuxVolumeGiB": "LinuxVolumeGiB",
        "GpuVolumeGiB": "LinuxVolumeGiB",
        "WindowsVolumeGiB": "WindowsVolumeGiB",
    }.items():
        assert PARAMETERS[ours]["Default"] <= STACK["Parameters"][theirs]["Default"], ours


def test_every_parameter_is_described_and_what_goes_into_a_shell_holds_nothing_that_a_shell_reads():
    assert [name for name, parameter in PARAMETERS.items() if not parameter.get("Description")] == []
    for name, good in {"DockerImages": "a/b:1 c@sha256:0a", "GitMirrors": "https://github.com/a/b.git https://example.org/c"}.items():
        pattern = PARAMETERS[name]["AllowedPattern"]
        assert re.fullmatch(pattern, good)
        assert re.fullmatch(pattern, "")
        for evil in ("$(id)", "a`id`", 'a" b', "a; id", "a\nb", "a|b", "ssh://git@github.com/a"):
            assert not re.fullmatch(pattern, evil) or (name, evil) == ("DockerImages", "ssh://git@github.com/a"), evil


def test_each_component_has_its_place():
    text = FILE.read_text(encoding="utf-8")
    assert re.findall(r"# begin image/(\S+)", text) == list(COMPONENTS)
    assert (ROOT / "image").is_dir()
