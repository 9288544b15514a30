"""Implements the Compute port on EC2: launches with CreateFleet of type instant, finds instances by tag, reads pools' volumes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from autoscaler.adapters.aws import code_of, filtered, named_template, pages, template_data, translated, unless, zones
from autoscaler.domain.facts.fleet import Allocation, Market, Offering, Pool, PoolVolumes, Volume
from autoscaler.domain.facts.pools import Source
from autoscaler.domain.facts.snapshot import Instance, InstanceState
from autoscaler.domain.grouping import grouped
from autoscaler.domain.launch.backoff import KNOWN_CODES
from autoscaler.domain.report.registration import Identity
from autoscaler.errors import (
    LaunchRefusedError,
    MismatchError,
    RefusedError,
    StuckError,
    TransientError,
    UnansweredError,
    UnansweredLaunchError,
)
from autoscaler.ports import LaunchAnswer, OfferingError

if TYPE_CHECKING:
    from botocore.exceptions import ClientError
    from mypy_boto3_ec2 import EC2Client

    from autoscaler.domain.facts.fleet import Fleet
    from autoscaler.domain.facts.plan import Launch


# Volumes of a pool's agents: what its launch template and its image make, against what the fleet file counts.


def volumes_of(data: Mapping[str, Any], image: Mapping[str, Any] | None) -> tuple[Volume, ...]:
    """List the volumes as EC2 makes them: the template's word goes before the image's, for each device."""
    volumes: dict[str, Volume] = {}
    for mapping in (*(image or {}).get("BlockDeviceMappings", ()), *data.get("BlockDeviceMappings", ())):
        device = str(mapping.get("DeviceName", ""))
        if "NoDevice" in mapping:
            volumes.pop(device, None)
        elif "Ebs" in mapping:
            before, ebs = volumes.get(device, Volume(device=device)), mapping["Ebs"]
            size = ebs.get("VolumeSize")
            gib = before.gib if size is None else float(size)
            volumes[device] = Volume(device=device, gib=gib, kind=str(ebs.get("VolumeType") or before.kind))
    return tuple(volumes[device] for device in sorted(volumes))


def volume_findings(pool: Pool, data: Mapping[str, Any], image: Mapping[str, Any] | None) -> Iterator[str]:
    """Say where the volumes are not as large as the fleet file counts them. A size that neither tells is of a snapshot that nobody read.

    Nothing is wrong if the functions count what EC2 says, and it says every size.
    """
    volumes = PoolVolumes(source="", volumes=volumes_of(data, image))
    gib = sum(volume.gib or 0.0 for volume in volumes.volumes)
    if pool.volume_gib is None or (volumes.is_whole and pool.volume_usd_per_gib_month is not None):
        return
    if gib > pool.volume_gib or (volumes.is_whole and gib < pool.volume_gib):
        listed = ", ".join(f"{volume.device} {'?' if volume.gib is None else f'{volume.gib:g}'}" for volume in volumes.volumes)
        counts = f"the price counts {pool.volume_gib:g} GiB of volumes"
        yield f"BlockDeviceMappings have {gib:g} GiB ({listed}), and {counts}: set volume_gib to {gib:g} in the fleet file"


# Implements the Compute port.


FLEET_TAG, POOL_TAG, CONTROLLER_TAG, LAUNCH_TAG, NODE_TAG = (
    f"autoscaler:{word}" for word in ("fleet", "pool", "controller", "launch", "node")
)
# EC2's own: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/launch-instances-from-launch-template.html
_TEMPLATE_VERSION_TAG = "aws:ec2launchtemplate:version"
# EC2's own, too, so that nobody can forge them: on what CreateFleet launches, and on what it launches for an Auto Scaling group.
_FLEET_ID_TAG, _GROUP_TAG = "aws:ec2:fleet-id", "aws:autoscaling:groupName"
_VERSION_NUMBER = {"$Default": "DefaultVersionNumber", "$Latest": "LatestVersionNumber"}
_CONSOLE_CHARACTERS = 8000  # of the end: why it did not boot stands there
_LISTED = ["pending", "running", "stopping", "stopped", "shutting-down"]
# The most EC2 gives; without it all come in one answer, whose parsing takes 40 KB of memory an instance.
_IN_PAGES = {"PageSize": 1000}
_SERVER_ERROR = 500
_UNKNOWN = "InvalidInstanceID.NotFound"
# Protected against it, a one-time spot request, or a disk that does not outlive the machine: it will not be otherwise next time.
_NEVER_STOPS = frozenset({"OperationNotPermitted", "UnsupportedOperation"})
_THROTTLED = frozenset({"RequestLimitExceeded", "RequestThrottled", "Throttling", "ThrottlingException"})
_AN_ACTION = re.compile(r"\b([a-z0-9-]+:[A-Z][A-Za-z]+)")
_IN_A_VPC = " (Amazon VPC)"  # old accounts see prices of both kinds of network; instances do not say theirs
_STRATEGIES = {
    (Allocation.IN_ORDER, Market.SPOT): "capacity-optimized-prioritized",
    (Allocation.IN_ORDER, Market.ON_DEMAND): "prioritized",
    (Allocation.BY_PRICE, Market.SPOT): "price-capacity-optimized",
    (Allocation.BY_PRICE, Market.ON_DEMAND): "lowest-price",
}


@dataclass(eq=False)
class Ec2Compute:
    """Agents of one fleet. ``client`` makes the client at the first use; ``launcher`` makes one that sends a call once only.

    A launch that the SDK repeats by itself may be refused the second time and have taken effect the first: it would be launched again.
    """

    client: Callable[[], EC2Client]
    fleet: Fleet
    launcher: Callable[[], EC2Client]
    _zones: dict[str, str] = field(default_factory=dict)  # of subnets

    def instances(self) -> tuple[Instance, ...]:
        """List by tag, stopping and stopped ones too: they cost money and leak."""
        return self._in_states(_LISTED)

    def ended_lately(self) -> tuple[Instance, ...]:
        """List by tag, too."""
        return self._in_states([str(InstanceState.TERMINATED)], {"Name": "tag-key", "Values": [_FLEET_ID_TAG]})

    def _in_states(self, states: list[str], *more: Any) -> tuple[Instance, ...]:
        ours = {"Name": f"tag:{FLEET_TAG}", "Values": [self.fleet.name]}
        filters = [ours, {"Name": "instance-state-name", "Values": states}, *more]
        answer = pages(self.client(), "describe_instances", {"Filters": filters, "PaginationConfig": _IN_PAGES})
        return tuple(instance_of(raw) for raw in _instances_in(answer))

    def fates(self, ids: Collection[str]) -> Mapping[str, InstanceState]:
        """Ask by id with a filter: one unknown id must not fail the whole call."""
        return dict.fromkeys(ids, InstanceState.NOT_FOUND) | {raw["InstanceId"]: _state_of(raw) for raw in self._by_id(ids)}

    def end_reasons(self, ids: Collection[str]) -> Mapping[str, str]:
        """Ask by id with a filter, as for fates."""
        return {raw["InstanceId"]: code for raw in self._by_id(ids) if (code := raw.get("StateReason", {}).get("Code"))}

    def fate(self, instance_id: str) -> InstanceState:
        """Ask without a filter: an id that EC2 does not know is an error then, no empty answer."""
        with translated("DescribeInstances"), unless(_UNKNOWN):
            for raw in _instances_in([self.client().describe_instances(InstanceIds=[instance_id])]):
                return _state_of(raw)
            raise TransientError(f"DescribeInstances shows nothing of {instance_id}, and does not say that it is unknown")
        return InstanceState.NOT_FOUND

    def identity(self, instance_id: str) -> Identity | None:
        """Ask by id with a filter, whatever tags the instance has: an unknown id is then an empty answer."""
        for raw in self._by_id([instance_id]):
            tags = _tags(raw)
            return Identity(
                instance_id=raw["InstanceId"],
                state=_state_of(raw),
                fleet=tags.get(FLEET_TAG, ""),
                controller=tags.get(CONTROLLER_TAG, ""),
                profile=raw.get("IamInstanceProfile", {}).get("Arn", ""),
                node=tags.get(NODE_TAG, ""),
            )
        return None

    def name_instance(self, instance_id: str, node: str, controller: str) -> None:
        """Tag it; the same tags again change nothing."""
        tags = {"Name": node, NODE_TAG: node, CONTROLLER_TAG: controller}
        with translated("CreateTags"):
            self.client().create_tags(Resources=[instance_id], Tags=[{"Key": key, "Value": value} for key, value in tags.items()])

    def compose(self, launch: Launch, intent_id: str) -> str:
        """Write the request down; the same launch and intent give the same bytes."""
        pool = self.fleet.pools[launch.pool]
        tags = {FLEET_TAG: self.fleet.name, POOL_TAG: pool.name, CONTROLLER_TAG: launch.controller, LAUNCH_TAG: intent_id}
        # By its number where it is known: what was decided on is launched, however often the template changes meanwhile.
        version = launch.template_version or pool.launch_template_version
        options = "SpotOptions" if launch.market is Market.SPOT else "OnDemandOptions"
        in_block = pool.capacity is not None and pool.capacity.block
        in_order = pool.allocation is Allocation.IN_ORDER
        overrides = [_override(offering, place if in_order else None, launch.image) for place, offering in enumerate(launch.offerings)]
        request: dict[str, Any] = {
            "ClientToken": hashlib.sha256(f"{self.fleet.name}/{intent_id}".encode()).hexdigest(),
            "Type": "instant",
            "TargetCapacitySpecification": {
                "TotalTargetCapacity": launch.count,
                "DefaultTargetCapacityType": "capacity-block" if in_block else str(launch.market),
            },
            **({} if in_block else {options: {"AllocationStrategy": _STRATEGIES[pool.allocation, launch.market]}}),
            "LaunchTemplateConfigs": [
                {
                    "LaunchTemplateSpecification": {**named_template(pool.launch_template), "Version": version},
                    "Overrides": overrides,
                }
            ],
            # Volumes and network interfaces are tagged by the launch template: CreateFleet takes only these two.
            "TagSpecifications": [
                {"ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
                for kind in ("fleet", "instance")
            ],
        }
        return json.dumps(request, sort_keys=True)

    def zones(self, subnets: Collection[str]) -> Mapping[str, str]:
        """Ask once for each: a subnet stays in its zone."""
        if len(subnets) > 1:
            self._zones |= zones(self.client(), sorted({*subnets} - self._zones.keys() - {""}))
        return self._zones

    def launch(self, request: str) -> LaunchAnswer:
        """Send a composed request, and translate the answer."""
        with translated("CreateFleet", _launch_error, lambda why: UnansweredLaunchError(f"nothing ({why})")):
            answer = self.launcher().create_fleet(**json.loads(request))
        instances = [
            (instance_id, str(group["InstanceType"]), str(group.get("Lifecycle", "on-demand")))
            for group in answer.get("Instances", [])
            for instance_id in group["InstanceIds"]
        ]
        return LaunchAnswer(instances=tuple(instances), errors=tuple(_offering_error(raw) for raw in answer.get("Errors", [])))

    def try_launch(self, launch: Launch) -> None:
        """Send the request as a dry run, without a token, which the real request must not find used."""
        request = json.loads(self.compose(launch, "")) | {"DryRun": True}
        del request["ClientToken"]
        with translated("CreateFleet", _launch_error, UnansweredError), unless("DryRunOperation"):
            self.client().create_fleet(**request)

    def try_instance(self, pool: str, offering: Offering) -> None:
        """Ask with the subnet on the request, then on an interface: the launch template decides which of them EC2 takes."""
        spec, tags = self.fleet.pools[pool], {FLEET_TAG: self.fleet.name, POOL_TAG: pool}
        request = {
            "DryRun": True,
            "MinCount": 1,
            "MaxCount": 1,
            "InstanceType": offering.instance_type,
            "LaunchTemplate": {**named_template(spec.launch_template), "Version": spec.launch_template_version},
            "TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}],
            **({"InstanceMarketOptions": {"MarketType": "spot"}} if offering.market is Market.SPOT else {}),
        }
        placed = [{"SubnetId": offering.subnet}, {"NetworkInterfaces": [{"DeviceIndex": 0, "SubnetId": offering.subnet}]}]
        for place in placed if offering.subnet else [{}]:
            try:
                with translated("RunInstances", _launch_error, UnansweredError):
                    self.client().run_instances(**request, **place)  # type: ignore[arg-type]
            except LaunchRefusedError as error:
                if error.code == "DryRunOperation":
                    return
                if error.code != "InvalidParameterCombination" or place is not placed[0]:
                    raise

    def terminate(self, instance_id: str) -> None:
        """Terminate one: in a batch, one wrong id would fail all."""
        with translated("TerminateInstances", _end_error, UnansweredError), unless(_UNKNOWN):
            self.client().terminate_instances(InstanceIds=[instance_id])

    def stop(self, instance_id: str, *, by_force: bool = False) -> None:
        """Stop one; asked again while it stops, EC2 changes nothing, unless it is by force."""
        with translated("StopInstances", _stop_error, UnansweredError):
            self.client().stop_instances(InstanceIds=[instance_id], **({"Force": True} if by_force else {}))

    def start(self, ids: Collection[str]) -> Mapping[str, TransientError]:
        """Start all with one call. EC2 refuses all for one of them; then each is asked for alone."""
        problem = self._start(ids)
        if problem is None:
            return {}
        if len(ids) == 1 or isinstance(problem, UnansweredError):
            return dict.fromkeys(ids, problem)
        alone = {instance_id: self._start([instance_id]) for instance_id in ids}
        return {instance_id: why for instance_id, why in alone.items() if why is not None}

    def _start(self, ids: Collection[str]) -> TransientError | None:
        """Ask once; asked again while they start or run, EC2 changes nothing."""
        try:
            with translated("StartInstances", _launch_error, UnansweredError):
                self.client().start_instances(InstanceIds=[*ids])
        except TransientError as error:
            return error
        return None

    def console_output(self, instance_id: str) -> str:
        """Ask for the console; boto3 decodes it."""
        with translated("GetConsoleOutput"):
            output = str(self.client().get_console_output(InstanceId=instance_id).get("Output", ""))
        return output[-_CONSOLE_CHARACTERS:]

    def spot_prices(self, instance_types: Collection[str], platforms: Collection[str], at: float) -> Mapping[str, float]:
        """Ask for the prices of one instant: of each type, zone and platform the last change before it."""
        instant = datetime.fromtimestamp(at, UTC)
        request = {
            "InstanceTypes": sorted(instance_types),
            "ProductDescriptions": sorted(platform + network for platform in platforms for network in ("", _IN_A_VPC)),
            "StartTime": instant,
            "EndTime": instant,
        }
        prices = [raw for page in pages(self.client(), "describe_spot_price_history", request) for raw in page["SpotPriceHistory"]]
        return {
            f"{raw['InstanceType']}/{raw['AvailabilityZone']}/{raw['ProductDescription'].removesuffix(_IN_A_VPC)}": float(raw["SpotPrice"])
            for raw in sorted(prices, key=lambda raw: raw["Timestamp"])
        }

    def template_versions(self, pools: Collection[str]) -> Mapping[str, str]:
        """Ask only for templates whose version the fleet file leaves to EC2; by filter, so that one unknown name fails no other."""
        by_name = {name: self.fleet.pools[name] for name in pools}
        asked = {name: pool for name, pool in by_name.items() if pool.launch_template_version.startswith("$")}
        known = self._templates({pool.launch_template for pool in asked.values()})
        written = {name: pool.launch_template_version for name, pool in by_name.items() if name not in asked}
        return written | {
            name: str(known[pool.launch_template][_VERSION_NUMBER[pool.launch_template_version]])
            for name, pool in asked.items()
            if known.get(pool.launch_template)
        }

    def volumes(self, of: Collection[Source]) -> Mapping[Source, Sequence[Volume]]:
        """Ask for each version of a launch template, and for all images at once; what EC2 does not know is left out."""
        with translated("DescribeLaunchTemplateVersions"):
            known = {source: template_data(self.client(), source.template, source.version) for source in of}
        templates = {source: data for source, data in known.items() if data is not None}
        used = {source: source.image or str(data.get("ImageId", "")) for source, data in templates.items()}
        ids = sorted({image for image in used.values() if image.startswith("ami-")})
        answer = filtered(self.client(), "describe_images", "image-id", ids)
        images = {raw["ImageId"]: raw for page in answer for raw in page["Images"]}
        return {source: volumes_of(data, images.get(used[source])) for source, data in templates.items()}

    def _templates(self, names: Collection[str]) -> dict[str, Any]:
        """Launch templates by name and by id."""
        ids = sorted(name for name in names if name.startswith("lt-"))
        others = sorted(set(names) - set(ids))
        questions: list[dict[str, Any]] = [{"LaunchTemplateIds": ids}] if ids else []
        questions += [{"Filters": [{"Name": "launch-template-name", "Values": others}]}] if others else []
        answers = [page for question in questions for page in pages(self.client(), "describe_launch_templates", question)]
        templates = [raw for page in answers for raw in page["LaunchTemplates"]]
        return {raw[key]: raw for raw in templates for key in ("LaunchTemplateId", "LaunchTemplateName")}

    def _by_id(self, ids: Iterable[str]) -> Iterator[Any]:
        return _instances_in(filtered(self.client(), "describe_instances", "instance-id", sorted(ids), PaginationConfig=_IN_PAGES))


def _instances_in(answer: Iterable[Any]) -> Iterator[Any]:
    return (raw for page in answer for reservation in page["Reservations"] for raw in reservation.get("Instances", []))


def _override(offering: Offering, place: int | None, image: str) -> dict[str, Any]:
    most = offering.spot_max_usd_per_hour
    override = {
        "InstanceType": offering.instance_type,
        "Priority": None if place is None else float(place),
        "SubnetId": offering.subnet or None,
        "ImageId": image or None,
        "MaxPrice": None if most is None else f"{most:.6f}",
    }
    return {name: value for name, value in override.items() if value is not None}


def instance_of(raw: Any) -> Instance:
    """Read one instance of an answer of DescribeInstances."""
    tags = _tags(raw)
    return Instance(
        id=raw["InstanceId"],
        state=_state_of(raw),
        pool=tags.get(POOL_TAG, ""),
        controller=tags.get(CONTROLLER_TAG, ""),
        launch=tags.get(LAUNCH_TAG, ""),
        instance_type=raw.get("InstanceType", ""),
        market=raw.get("InstanceLifecycle", "on-demand"),
        launched_at=raw["LaunchTime"].timestamp(),
        template_version=tags.get(_TEMPLATE_VERSION_TAG, ""),
        image=raw.get("ImageId", ""),
        node=tags.get(NODE_TAG, ""),
        zone=raw.get("Placement", {}).get("AvailabilityZone", ""),
        platform=raw.get("PlatformDetails", ""),
        state_reason=raw.get("StateReason", {}).get("Code", ""),
        subnet=raw.get("SubnetId", ""),
        keeps_disk=raw.get("RootDeviceType", "ebs") == "ebs",
    )


def _state_of(raw: Any) -> InstanceState:
    """Read the state of an instance that CreateFleet launched; of any other one only its end. EC2 takes the tags off what has ended."""
    state, tags = InstanceState(raw["State"]["Name"]), _tags(raw)
    is_launched = _FLEET_ID_TAG in tags and _GROUP_TAG not in tags
    has_ended = state is InstanceState.TERMINATED or (state.ended and not tags)
    return state if is_launched or has_ended else InstanceState.FOREIGN


def _tags(raw: Any) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in raw.get("Tags", [])}


def _offering_error(raw: Any) -> OfferingError:
    override = raw.get("LaunchTemplateAndOverrides", {}).get("Overrides", {})
    kind, subnet, market = override.get("InstanceType"), override.get("SubnetId", ""), raw.get("Lifecycle", "on-demand")
    key = f"{kind}/{subnet}/{market}" if kind else ""
    code, message = raw.get("ErrorCode", "Unknown"), raw.get("ErrorMessage", "")
    return OfferingError(code=code, offering_key=key, denied=_denied(code, message, "RunInstances"))


def _denied(code: str, message: str, action: str) -> str:
    """Name the action that IAM does not allow; ``action``: what was called, if EC2 does not name another one, such as iam:PassRole."""
    if code != "UnauthorizedOperation":
        return ""
    named = _AN_ACTION.search(message)
    return named[1] if named else f"ec2:{action}"


def _end_error(error: ClientError, action: str) -> TransientError:
    """Say in EC2's words why an instance does not end. Whether that passes by itself is seen by trying again, ever more rarely."""
    return StuckError(f"{action}: {code_of(error)}: {_sentence(error)}")


def _sentence(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Message", ""))


def _passes(error: ClientError) -> bool:
    """Tell whether a refusal is one request too many, or EC2's own trouble: it says nothing of the instance."""
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return code_of(error) in _THROTTLED or status >= _SERVER_ERROR


def _stop_error(error: ClientError, action: str) -> TransientError:
    """Say what a refused stop means."""
    code = code_of(error)
    if code in _NEVER_STOPS:
        return StuckError(f"{action}: {code}")
    kind = TransientError if _passes(error) else RefusedError
    return kind(f"{action}: {code}")


def _launch_error(error: ClientError, action: str) -> TransientError:
    code, status = code_of(error), error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code == "IdempotentParameterMismatch":
        return MismatchError("CreateFleet: EC2 knows this token with another request")
    if status >= _SERVER_ERROR and code not in KNOWN_CODES:  # EC2 answers with such a status where machines are short, too
        return UnansweredLaunchError(f"{code} ({action})")
    return LaunchRefusedError(code, _sentence(error), _denied(code, _sentence(error), action))


# Instances of fleets that no stack has any more: of another fleet name, or of a stack that was deleted with agents at work.


_THERE = ["pending", "running", "stopping", "stopped"]
_FLEET_NAME = "FleetName"  # the parameter of each stack


def instances_of_no_stack(ec2: Any, cloudformation: Any, fleet: str) -> Mapping[str, tuple[str, ...]]:
    """Return by fleet the instances of this region whose fleet is neither this one nor that of any stack. `TransientError`.

    Stacks are asked for only if there are instances of another fleet.
    """
    filters = [{"Name": "tag-key", "Values": [FLEET_TAG]}, {"Name": "instance-state-name", "Values": _THERE}]
    instances = _instances_in(pages(ec2, "describe_instances", {"Filters": filters}))
    ids_of = grouped((_tags(raw).get(FLEET_TAG, fleet), raw["InstanceId"]) for raw in instances)
    others = {name: ids for name, ids in ids_of.items() if name != fleet}
    stacks = (stack for page in pages(cloudformation, "describe_stacks", {}) for stack in page.get("Stacks", [])) if others else ()
    parameters = (parameter for stack in stacks for parameter in stack.get("Parameters", []))
    with_stack = {parameter.get("ParameterValue", "") for parameter in parameters if parameter["ParameterKey"] == _FLEET_NAME}
    return {name: tuple(sorted(ids)) for name, ids in sorted(others.items()) if name not in with_stack}
