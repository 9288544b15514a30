"""EC2's API: the few actions and fields that the autoscaler uses, in boto3's words; no sockets here."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from autoscaler_workbench.fakes.http_fakes.aws.ec2_query import answer_xml, error_xml, request_of
from autoscaler_workbench.fakes.world.ec2.account import vcpus_of
from autoscaler_workbench.fakes.world.ec2.error_codes import Ec2Error
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.ec2.region import Ec2, name_of_template
from autoscaler_workbench.fakes.world.ec2.spot_market import ZONE, told_prices
from autoscaler_workbench.fakes.world.faults import Faults

_Found = TypeVar("_Found")
_VPC = "vpc-1"
_CAPITAL = re.compile("(?=[A-Z])")
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
_LEAST_RESULTS, _MOST_RESULTS = 5, 1000


@dataclass(slots=True)
class Ec2Api:
    """The API of one region."""

    ec2: Ec2
    faults: Faults = field(default_factory=Faults)

    def call(self, action: str, request: dict[str, Any]) -> dict[str, Any]:
        """Answer one call in boto3's words, by the method that is named after its action."""
        with self.faults.around(f"ec2 {action}"):
            answer = getattr(self, _CAPITAL.sub("_", action).lower(), None)
            if answer is None:
                raise Ec2Error("InvalidAction", f"The action {action} is not valid for this web service.")
            answered: dict[str, Any] = answer(request)
            return answered

    def _create_fleet(self, request: dict[str, Any]) -> dict[str, Any]:
        return self.ec2.create_fleet(request)

    def _run_instances(self, request: dict[str, Any]) -> dict[str, Any]:
        return self.ec2.try_instance(request)

    def _create_tags(self, request: dict[str, Any]) -> dict[str, Any]:
        for instance_id in request["Resources"]:
            self.ec2.tag(instance_id, {tag["Key"]: tag["Value"] for tag in request["Tags"]})
        return {}

    def _terminate_instances(self, request: dict[str, Any]) -> dict[str, Any]:
        for instance_id in request["InstanceIds"]:
            self.ec2.terminate(instance_id)
        return {"TerminatingInstances": []}

    def _stop_instances(self, request: dict[str, Any]) -> dict[str, Any]:
        self.ec2.stop(*request["InstanceIds"], by_force=bool(request.get("Force")))
        return {"StoppingInstances": []}

    def _start_instances(self, request: dict[str, Any]) -> dict[str, Any]:
        self.ec2.start(*request["InstanceIds"])
        return {"StartingInstances": []}

    def _get_console_output(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"InstanceId": request["InstanceId"], "Output": self.ec2.console_of(request["InstanceId"])}

    def _describe_launch_templates(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"LaunchTemplates": [self._template(name) for name in sorted(self._named(request))]}

    def _describe_launch_template_versions(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"LaunchTemplateVersions": [{"LaunchTemplateData": self.ec2.data_of(name_of_template(request))}]}

    def _describe_instance_types(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"InstanceTypes": [instance_type_json(kind) for kind in self._offered(request)]}

    def _describe_instance_type_offerings(self, request: dict[str, Any]) -> dict[str, Any]:
        zones = sorted({ZONE, *self.ec2.zones.values()})
        return {"InstanceTypeOfferings": [{"InstanceType": kind, "Location": zone} for kind in self._offered(request) for zone in zones]}

    def _offered(self, request: dict[str, Any]) -> list[str]:
        return [kind for kind in _values(request, "instance-type") if kind not in self.ec2.withdrawn]

    def _describe_subnets(self, request: dict[str, Any]) -> dict[str, Any]:
        facts = {"VpcId": _VPC, "MapPublicIpOnLaunch": False}
        known = [name for name in _values(request, "subnet-id") if name not in self.ec2.unknown_subnets]
        return {"Subnets": [{"SubnetId": name, "AvailabilityZone": self.ec2.zones.get(name, ZONE)} | facts for name in known]}

    def _describe_images(self, request: dict[str, Any]) -> dict[str, Any]:
        images = self.ec2.account.images
        return {"Images": [images[name] for name in _values(request, "image-id") if name in images]}

    def _describe_instances(self, request: dict[str, Any]) -> dict[str, Any]:
        """One page of instances; ``NextToken`` names the start of the next one."""
        self.ec2.check_known(request.get("InstanceIds", []))
        filters = {f["Name"]: list(f["Values"]) for f in request.get("Filters", [])}
        filters |= {"instance-id": list(request["InstanceIds"])} if request.get("InstanceIds") else {}
        page, more = self._page(self.ec2.describe(filters), request)
        return {"Reservations": [{"Instances": [instance_json(instance) for instance in page]}]} | more

    def _describe_spot_price_history(self, request: dict[str, Any]) -> dict[str, Any]:
        """One page of the current spot prices: the last change of each before the time that is asked for."""
        if request["StartTime"] != request["EndTime"]:
            raise Ec2Error("InvalidParameterValue", "Only the prices of one instant are known here")
        page, more = self._page(told_prices(self.ec2, request["InstanceTypes"], request["ProductDescriptions"]), request)
        return {"SpotPriceHistory": [spot_price_json(*price) for price in page]} | more

    def _page(self, found: list[_Found], request: dict[str, Any]) -> tuple[list[_Found], dict[str, Any]]:
        """The page that is asked for, and the token of the next one, if there is one."""
        token, most = request.get("NextToken", "0"), request.get("MaxResults")
        if not token.isdecimal() or not (most is None or _LEAST_RESULTS <= int(most) <= _MOST_RESULTS):
            raise Ec2Error("InvalidParameterValue", "Invalid value for NextToken or MaxResults")
        first = int(token)
        end = first + min(int(most or len(found) or 1), self.ec2.listing.page)
        return found[first:end], {"NextToken": str(end)} if end < len(found) else {}

    def _describe_route_tables(self, request: dict[str, Any]) -> dict[str, Any]:
        """The route tables of these subnets, or the main one, which leads to a NAT."""
        if _values(request, "association.main"):
            return {"RouteTables": [_route_table("nat-1", {"Main": True})]}
        routes, asked = self.ec2.account.routes, _values(request, "association.subnet-id")
        return {"RouteTables": [_route_table(routes[name], {"SubnetId": name, "Main": False}) for name in routes if name in asked]}

    def _named(self, request: dict[str, Any]) -> set[str]:
        """The templates asked for; unknown ids are an error, unknown names in a filter are left out."""
        if ids := set(request.get("LaunchTemplateIds", [])):
            if unknown := ids - self.ec2.templates:
                raise Ec2Error("InvalidLaunchTemplateId.NotFound", f"The launch template {min(unknown)} does not exist")
            return ids
        return self.ec2.templates & {value for wanted in request.get("Filters", []) for value in wanted["Values"]}

    def _template(self, name: str) -> dict[str, Any]:
        default, latest = self.ec2.version_of(name), self.ec2.version_of(name, "$Latest")
        return {"LaunchTemplateId": name, "LaunchTemplateName": name, "DefaultVersionNumber": default, "LatestVersionNumber": latest}

    def query(self, form: Mapping[str, str]) -> tuple[int, bytes]:
        """Answer one call of the query protocol: status and XML."""
        action = form.get("Action", "")
        try:
            return 200, answer_xml(action, self.call(action, request_of(action, form)))
        except Ec2Error as error:
            return error.status, error_xml(error.code, str(error))


def _values(request: dict[str, Any], name: str) -> list[str]:
    return [value for wanted in request.get("Filters", []) if wanted["Name"] == name for value in wanted["Values"]]


def _route_table(target: str, association: dict[str, Any]) -> dict[str, Any]:
    routes: list[dict[str, Any]] = [{"DestinationCidrBlock": "10.0.0.0/16", "GatewayId": "local", "State": "active"}]
    if target:
        kind = "NatGatewayId" if target.startswith("nat-") else "GatewayId"
        routes.append({"DestinationCidrBlock": "0.0.0.0/0", kind: target, "State": "active"})
    return {"VpcId": _VPC, "Associations": [association], "Routes": routes}


def instance_type_json(kind: str) -> dict[str, Any]:
    """One instance type in boto3's words; a "g" behind the number means Graviton."""
    arm = "g" in kind.partition(".")[0].lstrip("abcdefghijklmnopqrstuvwxyz")
    processor = {"SupportedArchitectures": ["arm64" if arm else "x86_64"]}
    return {"InstanceType": kind, "VCpuInfo": {"DefaultVCpus": vcpus_of(kind)}, "ProcessorInfo": processor}


def spot_price_json(kind: str, zone: str, platform: str, usd: float, at: float) -> dict[str, Any]:
    """One price in boto3's words."""
    since = datetime.fromtimestamp(at, UTC)
    return {"InstanceType": kind, "AvailabilityZone": zone, "ProductDescription": platform, "SpotPrice": f"{usd:.6f}", "Timestamp": since}


def instance_json(instance: Instance) -> dict[str, Any]:
    """One instance in boto3's words."""
    shown: dict[str, Any] = {
        "InstanceId": instance.id,
        "InstanceType": instance.instance_type,
        "State": {"Code": instance.state_code, "Name": instance.state},
        "Placement": {"AvailabilityZone": instance.zone},
        "PlatformDetails": instance.platform,
        "LaunchTime": datetime.fromtimestamp(instance.started_at, UTC),
        "Tags": [{"Key": key, "Value": value} for key, value in instance.tags.items()],
    }
    if instance.image:
        shown["ImageId"] = instance.image
    if instance.subnet:
        shown["SubnetId"] = instance.subnet
    if instance.state_reason:
        shown["StateReason"] = {"Code": instance.state_reason, "Message": instance.state_reason}
    if instance.profile:
        shown["IamInstanceProfile"] = {"Arn": instance.profile, "Id": "AIPAEXAMPLE"}
    if instance.market != "on-demand":
        shown["InstanceLifecycle"] = instance.market
    if instance.reserved:
        shown["CapacityReservationId"] = instance.reserved
    return shown
