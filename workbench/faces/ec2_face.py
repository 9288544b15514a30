"""The EC2 face: the few actions and fields we use of its query API, in and out; no sockets here."""

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from xml.sax.saxutils import escape

from workbench.world.ec2 import Ec2, Ec2Error, Instance
from workbench.world.faults import Faults

# How the query protocol spells lists, and how boto3 does.
_SPELLED = {
    "TagSpecification": "TagSpecifications",
    "Tag": "Tags",
    "Filter": "Filters",
    "Value": "Values",
    "InstanceId": "InstanceIds",
    "ResourceId": "Resources",
    "LaunchTemplateId": "LaunchTemplateIds",
}


_ZONE = "us-west-2a"


@dataclass(slots=True)
class Ec2Face:
    """One region's face."""

    ec2: Ec2
    faults: Faults = field(default_factory=Faults)

    def call(self, action: str, request: dict[str, Any]) -> dict[str, Any]:
        """Answer one call in boto3's words."""
        with self.faults.around(f"ec2 {action}"):
            match action:
                case "CreateFleet":
                    return self.ec2.create_fleet(request)
                case "TerminateInstances" | "CreateTags":
                    return self._change(action, request)
                case _:
                    return self._tell(action, request)

    def _change(self, action: str, request: dict[str, Any]) -> dict[str, Any]:
        if action == "CreateTags":
            for instance_id in request["Resources"]:
                self.ec2.tag(instance_id, {tag["Key"]: tag["Value"] for tag in request["Tags"]})
            return {}
        for instance_id in request["InstanceIds"]:
            self.ec2.terminate(instance_id)
        return {"TerminatingInstances": []}

    def _tell(self, action: str, request: dict[str, Any]) -> dict[str, Any]:
        match action:
            case "DescribeInstances":
                filters = {f["Name"]: list(f["Values"]) for f in request.get("Filters", [])}
                return {"Reservations": [{"Instances": [instance_json(i) for i in self.ec2.describe(filters)]}]}
            case "GetConsoleOutput":
                return {"InstanceId": request["InstanceId"], "Output": self.ec2.console_of(request["InstanceId"])}
            case "DescribeLaunchTemplates":
                return {"LaunchTemplates": [self._template(name) for name in sorted(self._named(request))]}
            case "DescribeSubnets":
                return {"Subnets": [self._subnet(name) for name in _values(request, "subnet-id") if name not in self.ec2.unknown_subnets]}
            case "DescribeInstanceTypeOfferings":
                kinds = [kind for kind in _values(request, "instance-type") if kind not in self.ec2.withdrawn]
                zones = sorted({_ZONE, *self.ec2.zones.values()})
                return {"InstanceTypeOfferings": [{"InstanceType": kind, "Location": zone} for kind in kinds for zone in zones]}
            case "DescribeLaunchTemplateVersions":
                return {"LaunchTemplateVersions": [{"LaunchTemplateData": self.ec2.data_of(_template_of(request))}]}
            case _:
                raise Ec2Error("InvalidAction", f"The action {action} is not valid for this web service.")

    def _subnet(self, name: str) -> dict[str, Any]:
        return {"SubnetId": name, "AvailabilityZone": self.ec2.zones.get(name, _ZONE)}

    def _named(self, request: dict[str, Any]) -> set[str]:
        """The templates asked for; of ids all must exist, of names in a filter those count that do."""
        if ids := set(request.get("LaunchTemplateIds", [])):
            if unknown := ids - self.ec2.templates:
                raise Ec2Error("InvalidLaunchTemplateId.NotFound", f"The launch template {min(unknown)} does not exist")
            return ids
        return self.ec2.templates & {value for wanted in request.get("Filters", []) for value in wanted["Values"]}

    def _template(self, name: str) -> dict[str, Any]:
        version = self.ec2.version_of(name)
        return {"LaunchTemplateId": name, "LaunchTemplateName": name, "DefaultVersionNumber": version, "LatestVersionNumber": version}

    def query(self, form: Mapping[str, str]) -> tuple[int, bytes]:
        """Answer one call of the query protocol: status and XML."""
        action = form.get("Action", "")
        try:
            answer = self.call(action, unflatten(form))
        except Ec2Error as error:
            return error.status, error_xml(error.code, str(error))
        root = f"{action}Response"
        body = _XML_OF[action](answer)
        return 200, f'<{root} xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r</requestId>{body}</{root}>'.encode()


def _values(request: dict[str, Any], name: str) -> list[str]:
    return [value for wanted in request.get("Filters", []) if wanted["Name"] == name for value in wanted["Values"]]


def _template_of(request: dict[str, Any]) -> str:
    return str(request.get("LaunchTemplateName") or request["LaunchTemplateId"])


def error_xml(code: str, message: str) -> bytes:
    """EC2's error document."""
    error = f"<Error><Code>{escape(code)}</Code><Message>{escape(message)}</Message></Error>"
    return f"<Response><Errors>{error}</Errors><RequestID>r</RequestID></Response>".encode()


def unflatten(form: Mapping[str, str]) -> dict[str, Any]:
    """Turn ``Filter.1.Name=...`` into nested dictionaries and lists, under boto3's names."""
    root: dict[str, Any] = {}
    for key, value in form.items():
        if key in {"Action", "Version"}:
            continue
        parts = key.split(".")
        place = root
        for part in parts[:-1]:
            place = place.setdefault(part, {})
        place[parts[-1]] = value
    nested = _lists(root)
    assert isinstance(nested, dict)  # noqa: S101 - the root of a form is never a list
    return nested


def _lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value and all(re.fullmatch(r"\d+", key) for key in value):
        return [_lists(value[key]) for key in sorted(value, key=int)]
    nested = {key: _lists(below) for key, below in value.items()}
    return {_SPELLED.get(key, key) if isinstance(below, list) else key: below for key, below in nested.items()}


def instance_json(instance: Instance) -> dict[str, Any]:
    """One instance in boto3's words."""
    shown: dict[str, Any] = {
        "InstanceId": instance.id,
        "InstanceType": instance.instance_type,
        "State": {"Code": instance.state_code, "Name": instance.state},
        "LaunchTime": datetime.fromtimestamp(instance.launched_at, UTC),
        "Tags": [{"Key": key, "Value": value} for key, value in instance.tags.items()],
    }
    if instance.profile:
        shown["IamInstanceProfile"] = {"Arn": instance.profile, "Id": "AIPAEXAMPLE"}
    if instance.market == "spot":
        shown["InstanceLifecycle"] = "spot"
    return shown


def _instances_xml(answer: dict[str, Any]) -> str:
    items = "".join(_instance_xml(i) for reservation in answer["Reservations"] for i in reservation["Instances"])
    return f"<reservationSet><item><reservationId>r-1</reservationId><instancesSet>{items}</instancesSet></item></reservationSet>"


def _instance_xml(shown: dict[str, Any]) -> str:
    tags = "".join(f"<item><key>{escape(t['Key'])}</key><value>{escape(t['Value'])}</value></item>" for t in shown["Tags"])
    lifecycle = f"<instanceLifecycle>{shown['InstanceLifecycle']}</instanceLifecycle>" if "InstanceLifecycle" in shown else ""
    state = shown["State"]
    profile = shown.get("IamInstanceProfile")
    carried = f"<iamInstanceProfile><arn>{profile['Arn']}</arn><id>{profile['Id']}</id></iamInstanceProfile>" if profile else ""
    return (
        f"<item><instanceId>{shown['InstanceId']}</instanceId><instanceType>{shown['InstanceType']}</instanceType>"
        f"<instanceState><code>{state['Code']}</code><name>{state['Name']}</name></instanceState>{lifecycle}{carried}"
        f"<launchTime>{shown['LaunchTime'].strftime('%Y-%m-%dT%H:%M:%S.000Z')}</launchTime><tagSet>{tags}</tagSet></item>"
    )


def _fleet_xml(answer: dict[str, Any]) -> str:
    errors = "".join(_error_item(error) for error in answer["Errors"])
    groups = "".join(
        f"<item><instanceIds>{''.join(f'<item>{i}</item>' for i in group['InstanceIds'])}</instanceIds>"
        f"<instanceType>{group['InstanceType']}</instanceType><lifecycle>{group['Lifecycle']}</lifecycle></item>"
        for group in answer["Instances"]
    )
    return f"<fleetId>{answer['FleetId']}</fleetId><errorSet>{errors}</errorSet><fleetInstanceSet>{groups}</fleetInstanceSet>"


def _error_item(error: dict[str, Any]) -> str:
    place = error["LaunchTemplateAndOverrides"]["Overrides"]
    subnet = f"<subnetId>{place['SubnetId']}</subnetId>" if "SubnetId" in place else ""
    overrides = f"<overrides><instanceType>{place['InstanceType']}</instanceType>{subnet}</overrides>"
    return (
        f"<item><launchTemplateAndOverrides>{overrides}</launchTemplateAndOverrides><lifecycle>{error['Lifecycle']}</lifecycle>"
        f"<errorCode>{error['ErrorCode']}</errorCode><errorMessage>{escape(error['ErrorMessage'])}</errorMessage></item>"
    )


def _done_xml(_answer: dict[str, Any]) -> str:
    return "<return>true</return>"


def _terminating_xml(_answer: dict[str, Any]) -> str:
    return "<instancesSet/>"


def _console_xml(answer: dict[str, Any]) -> str:
    encoded = b64encode(answer["Output"].encode()).decode()
    return f"<instanceId>{answer['InstanceId']}</instanceId><output>{encoded}</output>"


def _templates_xml(answer: dict[str, Any]) -> str:
    items = "".join(
        f"<item><launchTemplateId>{t['LaunchTemplateId']}</launchTemplateId><launchTemplateName>{t['LaunchTemplateName']}"
        f"</launchTemplateName><defaultVersionNumber>{t['DefaultVersionNumber']}</defaultVersionNumber>"
        f"<latestVersionNumber>{t['LatestVersionNumber']}</latestVersionNumber></item>"
        for t in answer["LaunchTemplates"]
    )
    return f"<launchTemplates>{items}</launchTemplates>"


def _rows_xml(outer: str, rows: list[dict[str, str]]) -> str:
    items = "".join(
        "<item>"
        + "".join(f"<{key[0].lower()}{key[1:]}>{escape(value)}</{key[0].lower()}{key[1:]}>" for key, value in row.items())
        + "</item>"
        for row in rows
    )
    return f"<{outer}>{items}</{outer}>"


_XML_OF = {
    "DescribeSubnets": lambda answer: _rows_xml("subnetSet", answer["Subnets"]),
    "DescribeInstanceTypeOfferings": lambda answer: _rows_xml("instanceTypeOfferingSet", answer["InstanceTypeOfferings"]),
    "CreateFleet": _fleet_xml,
    "DescribeInstances": _instances_xml,
    "TerminateInstances": _terminating_xml,
    "CreateTags": _done_xml,
    "GetConsoleOutput": _console_xml,
    "DescribeLaunchTemplates": _templates_xml,
}
