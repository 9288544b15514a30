"""The simulated EC2: client tokens, partial fulfilment, order of offerings, lag, pending instances."""

import json
from collections import Counter, deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from itertools import chain
from math import inf
from random import Random
from typing import Any

from autoscaler_workbench.fakes.world.ec2.account import QUOTAS, Account
from autoscaler_workbench.fakes.world.ec2.error_codes import Ec2Error, refused
from autoscaler_workbench.fakes.world.ec2.instance import Instance, Spell
from autoscaler_workbench.fakes.world.ec2.listing import Listing
from autoscaler_workbench.fakes.world.ec2.reserved import FULL, Reserved, end_in_time, named_by, room_in, why_refused
from autoscaler_workbench.fakes.world.ec2.spot_market import LINUX, ZONE, price_at, too_dear_at
from autoscaler_workbench.fakes.world.ec2.stopping import BY_API, begin_start, begin_stop, force_stop, why_not_started, why_not_stopped
from autoscaler_workbench.fakes.world.ec2.tags import FLEET_ID_TAG, check_tags, keys_of
from autoscaler_workbench.fakes.world.physics import CALM, Physics
from autoscaler_workbench.fakes.world.timeline import Timeline

_SHUTTING_DOWN_SECONDS = 20.0
_NOTICE_SECONDS = 120.0  # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
_EVENT_SECONDS = 1.0
_FORGOTTEN_AFTER_SECONDS = 3600.0
_WOULD_HAVE = "DryRunOperation", "Request would have succeeded, but DryRun flag is set."
LAUNCH_TAG = "autoscaler:launch"
# The one account and the one agent role of this world.
ACCOUNT, AGENT_ROLE, AGENT_ROLE_ID = "123456789012", "autoscaler-agent", "AROAEXAMPLEAGENTROLE1"


def _offering_of(instance: Instance) -> str:
    return f"{instance.instance_type}/{instance.subnet}/{instance.market}"


def profile_arn(role: str) -> str:
    """The instance profile that carries a role."""
    return f"arn:aws:iam::{ACCOUNT}:instance-profile/{role}"


def _most(override: dict[str, Any]) -> float:
    return float(override.get("MaxPrice", inf))


def name_of_template(specification: dict[str, Any]) -> str:
    """The launch template that a request names, by name or by id: here they are the same."""
    return str(specification.get("LaunchTemplateName") or specification["LaunchTemplateId"])


@dataclass(slots=True)
class Ec2:
    """One region. ``capacity``: how many more of an instance type/subnet/market can be had; unlisted: any number."""

    timeline: Timeline
    chance: Random
    boot_seconds: Callable[[str], float]  # by launch template
    on_running: Callable[[Instance], None] = lambda _instance: None
    on_end: Callable[[Instance], None] = lambda _instance: None
    ends_pending: Callable[[Instance], str] = lambda _instance: ""  # EC2's code for why it ends a launch that it has accepted
    announce: Callable[[Instance, str], None] = lambda _instance, _what: None  # what EventBridge would carry
    reserved: dict[str, Reserved] = field(default_factory=dict)  # capacity that is kept, by id
    capacity: dict[str, int] = field(default_factory=dict)
    lag_seconds: float = 0.0
    listing: Listing = field(default_factory=Listing)
    refuse: tuple[str, str] | None = None  # code and message of every CreateFleet
    refuse_market: dict[str, tuple[str, str]] = field(default_factory=dict)  # the same of one market
    answers: dict[str, str] = field(default_factory=dict)  # code instead of instances, by instance type/subnet/market
    # By instance type/subnet/spot, or that and /platform: the usual price, around which it moves where `physics.spot_swing` says so.
    spot_usd_per_hour: dict[str, float] = field(default_factory=dict)
    forgets_tokens: bool = False  # a request that is repeated is a new one
    template_versions: dict[str, int] = field(default_factory=dict)  # the default one by name; unlisted: 1
    latest_versions: dict[str, int] = field(default_factory=dict)  # by name; unlisted: the default one
    template_data: dict[str, dict[str, Any]] = field(default_factory=dict)  # what they say, where it matters
    physics: Physics = CALM
    seed: int = 0  # of what comes by physics alone, so that it is the same for everybody
    zones: dict[str, str] = field(default_factory=dict)  # of subnets; unlisted ones are in the first zone
    platforms: dict[str, str] = field(default_factory=dict)  # as bills name them, by launch template; unlisted: Linux
    unknown_subnets: set[str] = field(default_factory=set)
    withdrawn: set[str] = field(default_factory=set)  # instance types that cannot be had anywhere
    quotas: dict[str, float] = field(default_factory=lambda: dict(QUOTAS))  # vCPUs that may run at once
    account: Account = field(default_factory=Account)
    templates: set[str] = field(default_factory=set)  # names of the launch templates that there are
    instances: dict[str, Instance] = field(default_factory=dict)  # all that ever were
    remembered: dict[str, Instance] = field(default_factory=dict)  # those that EC2 still tells of
    changes: int = 0  # of any instance
    asked: dict[str, int] = field(default_factory=dict)  # how many instances were ever asked for, by launch
    _ended_ids: deque[str] = field(default_factory=deque)  # of those that EC2 still tells of, in the order of their ends
    _tokens: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)

    def create_fleet(self, request: dict[str, Any]) -> dict[str, Any]:
        """Launch what is available, in the order of priority; the same token gets the same answer."""
        self._check_overrides(request["LaunchTemplateConfigs"][0]["Overrides"])
        check_tags(keys_of(request))
        if request.get("DryRun"):
            raise Ec2Error(*(self.refuse or _WOULD_HAVE))
        spelled = json.dumps(request, sort_keys=True)
        token = request["ClientToken"]
        if token in self._tokens and not self.forgets_tokens:
            known, answer = self._tokens[token]
            if known != spelled:
                raise Ec2Error("IdempotentParameterMismatch", "The client token was used with other parameters")
            return answer
        if refusal := self.refuse or self.refuse_market.get(request["TargetCapacitySpecification"]["DefaultTargetCapacityType"]):
            raise Ec2Error(*refusal)
        answer = self._fulfil(request)
        self._tokens[token] = spelled, answer
        return answer

    def try_instance(self, request: dict[str, Any]) -> dict[str, Any]:
        """Dry-run RunInstances: refuse what could not be launched. Nothing launches by it."""
        check_tags(keys_of(request))
        template = name_of_template(request["LaunchTemplate"])
        if "SubnetId" in request and self.data_of(template).get("NetworkInterfaces"):
            raise Ec2Error(
                "InvalidParameterCombination", "Network interfaces and an instance-level subnet ID may not be specified together"
            )
        raise Ec2Error(*(self.refuse or self.account.refused.get(request["InstanceType"], _WOULD_HAVE)))

    def describe(self, filters: dict[str, list[str]]) -> list[Instance]:
        """List instances; new ones turn up a little late, tags with them."""
        self._forget()
        now = self.timeline.now
        if set(filters) == {"instance-id"}:  # asked for by name, as is done for each agent that registers
            named = [self.remembered[one] for one in filters["instance-id"] if one in self.remembered]
            return [i for i in self.listing.shown(named, now, by_id=True) if i.visible_at <= now]
        shown = [i for i in self.listing.shown(self.remembered.values(), now) if i.visible_at <= now]
        return [i for i in shown if self._passes(i, filters)] if filters else shown

    def check_known(self, ids: list[str]) -> None:
        """Refuse ids that EC2 does not know, as it does where it is asked for them without a filter."""
        shown = {instance.id for instance in self.describe({"instance-id": ids})}
        if unknown := sorted(set(ids) - shown):
            raise Ec2Error("InvalidInstanceID.NotFound", f"The instance IDs '{', '.join(unknown)}' do not exist")

    def terminate(self, instance_id: str) -> None:
        """Begin the end of an instance."""
        instance = self._known(instance_id)
        if instance.protected:
            raise Ec2Error("OperationNotPermitted", "The instance may not be terminated: modify its disableApiTermination")
        self.end(instance)

    def tag(self, instance_id: str, tags: dict[str, str]) -> None:
        """Add tags to an instance, replacing those of the same name."""
        check_tags(tags)
        self._known(instance_id).tags.update(tags)
        self.changes += 1

    def console_of(self, instance_id: str) -> str:
        """The console output of an instance."""
        return self._known(instance_id).console

    def _known(self, instance_id: str) -> Instance:
        if instance_id not in self.instances:
            raise Ec2Error("InvalidInstanceID.NotFound", f"The instance ID '{instance_id}' does not exist")
        return self.instances[instance_id]

    def data_of(self, template: str) -> dict[str, Any]:
        """The data of a launch template."""
        if template not in self.templates:
            raise Ec2Error("InvalidLaunchTemplateName.NotFoundException", f"The launch template {template} does not exist")
        return self.template_data.get(template, {})

    def version_of(self, template: str, wanted: str = "$Default") -> int:
        """A version of a launch template: its default one, its latest one, or the one of that number."""
        default = self.template_versions.get(template, 1)
        match wanted:
            case "$Default":
                return default
            case "$Latest":
                return self.latest_versions.get(template, default)
            case _:
                return int(wanted)

    def deploy(self, template: str) -> int:
        """Change a launch template as CloudFormation does: a new version, and the default stays where it was. Return its number."""
        self.latest_versions[template] = self.version_of(template, "$Latest") + 1
        return self.latest_versions[template]

    def end(self, instance: Instance) -> None:
        """End an instance, for whatever reason."""
        if not instance.alive():
            return
        was_on = instance.is_on()
        instance.state, instance.ended_at = "shutting-down", self.timeline.now
        if was_on:
            instance.spells[-1].ended_at = self.timeline.now
        self._ended_ids.append(instance.id)
        self.changes += 1
        self.timeline.after(_EVENT_SECONDS, lambda: self.announce(instance, "state"))
        self.timeline.after(_SHUTTING_DOWN_SECONDS, lambda: self._ended(instance))
        if was_on:
            self.on_end(instance)

    def interrupt(self, instance: Instance, *, is_announced: bool = True, ends: bool = True) -> None:
        """Take a spot instance back: two minutes' notice, then it ends. The notice may be lost, and the end may not come."""
        instance.interrupted = True
        if is_announced:
            self.announce(instance, "interruption")
        if ends:
            self.timeline.after(_NOTICE_SECONDS, lambda: self._end_interrupted(instance))

    def _end_interrupted(self, instance: Instance) -> None:
        if instance.alive():
            instance.state_reason = "Server.SpotInstanceTermination"
            self.end(instance)

    def stop(self, *ids: str, by_force: bool = False) -> None:
        """Begin to stop instances: all, or none if one of them cannot be stopped. ``by_force``: what hangs in its stop comes to an end."""
        instances = [self._known(instance_id) for instance_id in ids]
        for instance in instances:
            if refusal := why_not_stopped(instance):
                raise Ec2Error(*refusal)
        for instance in instances:
            begin_stop(self, instance, BY_API)
            if by_force:
                force_stop(self, instance)

    def start(self, *ids: str) -> None:
        """Begin to start stopped instances: all, or none if one of them cannot be started."""
        instances = [self._known(instance_id) for instance_id in ids]
        for instance in instances:
            if refusal := why_not_started(self, instance, beside=instances):
                raise Ec2Error(*refusal)
        for instance in instances:
            if instance.state == "stopped" and _offering_of(instance) in self.capacity:
                self.capacity[_offering_of(instance)] -= 1
            begin_start(self, instance)

    def has_room_for(self, instances: Collection[Instance]) -> bool:
        """Tell whether there are machines for stopped instances: of their type, in their subnet; they go nowhere else."""
        wanted = Counter(_offering_of(instance) for instance in instances)
        return all(self._to_be_had(offering, number) >= number for offering, number in wanted.items())

    def _ended(self, instance: Instance) -> None:
        if instance.hangs_in == instance.state:
            return
        instance.state = "terminated"
        self.changes += 1
        self.announce(instance, "state")

    def _fulfil(self, request: dict[str, Any]) -> dict[str, Any]:
        target, config = request["TargetCapacitySpecification"], request["LaunchTemplateConfigs"][0]
        wanted, market = int(target["TotalTargetCapacity"]), target["DefaultTargetCapacityType"]
        template = name_of_template(config["LaunchTemplateSpecification"])
        reserved = self._reserved_by(template, market)
        tags = self._tags_of(request, template)
        self.asked[tags.get(LAUNCH_TAG, "")] = max(self.asked.get(tags.get(LAUNCH_TAG, ""), 0), wanted)
        overrides = self._in_turn(request, config["Overrides"], market)
        groups: dict[str, list[Instance]] = {}
        errors: list[dict[str, Any]] = []
        left = wanted
        for override in overrides:
            if left and market == "spot" and self._spot_price(override, self.platforms.get(template, LINUX)) > _most(override):
                errors.append(refused(override, market, "SpotMaxPriceTooLow"))
                continue
            got, code = self._take(override, market, left, wanted, reserved)
            if got:
                launched = [self._launch(override, market, template, tags, reserved) for _ in range(got)]
                groups.setdefault(override["InstanceType"], []).extend(launched)
            left -= got
            if left:
                errors.append(refused(override, market, code))
        return self._answer(groups, errors, market)

    def _answer(self, groups: dict[str, list[Instance]], errors: list[dict[str, Any]], market: str) -> dict[str, Any]:
        """CreateFleet's answer. EC2 writes the fleet's id on all that it launches."""
        fleet = f"fleet-{self.chance.getrandbits(64):016x}"
        for instance in chain.from_iterable(groups.values()):
            instance.tags[FLEET_ID_TAG] = fleet
        ids = {kind: [instance.id for instance in launched] for kind, launched in groups.items()}
        instances = [{"InstanceIds": ids[kind], "InstanceType": kind, "Lifecycle": market} for kind in ids]
        return {"FleetId": fleet, "Errors": errors, "Instances": instances}

    def _in_turn(self, request: dict[str, Any], overrides: list[dict[str, Any]], market: str) -> list[dict[str, Any]]:
        """Put offerings in the order in which EC2 turns to them: by priority, or by spot price; as they are written where none is known."""
        strategy = request.get("SpotOptions", request.get("OnDemandOptions", {})).get("AllocationStrategy", "")
        if "prioritized" in strategy:
            return sorted(overrides, key=lambda override: float(override.get("Priority", 0)))
        if market != "spot":
            return overrides
        platform = self.platforms.get(name_of_template(request["LaunchTemplateConfigs"][0]["LaunchTemplateSpecification"]), LINUX)
        return sorted(overrides, key=lambda one: self._spot_price(one, platform))

    def _spot_price(self, override: dict[str, Any], platform: str) -> float:
        return price_at(self, override["InstanceType"], override.get("SubnetId", ""), platform, self.timeline.now) or 0.0

    def _tags_of(self, request: dict[str, Any], template: str) -> dict[str, str]:
        """The tags of the instances that are asked for, and the one that EC2 adds."""
        version = request["LaunchTemplateConfigs"][0]["LaunchTemplateSpecification"].get("Version", "$Default")
        check_tags(keys_of(self.template_data.get(template, {})))
        given: list[dict[str, str]] = next((t["Tags"] for t in request["TagSpecifications"] if t["ResourceType"] == "instance"), [])
        own = {"aws:ec2launchtemplate:version": str(self.version_of(template, str(version)))}
        return {tag["Key"]: tag["Value"] for tag in given} | own

    def _reserved_by(self, template: str, market: str) -> Reserved | None:
        """The capacity that a launch template names."""
        data = self.template_data.get(template, {})
        reserved = self.reserved.get(named_by(data))
        if refusal := why_refused(reserved, market, data):
            raise Ec2Error(*refusal)
        return reserved

    def _take(self, override: dict[str, Any], market: str, left: int, wanted: int, reserved: Reserved | None) -> tuple[int, str]:
        """How many instances an offering gives, and the error code where they are too few."""
        if reserved is not None:
            return min(left, room_in(self, reserved, override)), FULL
        key = f"{override['InstanceType']}/{override.get('SubnetId', '')}/{market}"
        if override.get("ImageId") and override["ImageId"] not in self.account.images:
            return 0, "InvalidAMIID.NotFound"
        got = min(left, self._to_be_had(key, wanted))
        if key in self.capacity:
            self.capacity[key] -= got
        return got, self.answers.get(key, "InsufficientInstanceCapacity")

    def _launch(
        self, override: dict[str, Any], market: str, template: str, tags: dict[str, str], reserved: Reserved | None = None
    ) -> Instance:
        now, subnet = self.timeline.now, override.get("SubnetId", "")
        asked = {"instance_type": override["InstanceType"], "subnet": subnet, "market": market, "template": template}
        own: dict[str, Any] = {
            "profile": profile_arn(AGENT_ROLE),
            "zone": self.zones.get(subnet, ZONE),
            "platform": self.platforms.get(template, LINUX),
            "image": override.get("ImageId") or self.template_data.get(template, {}).get("ImageId", ""),
        }
        name = f"i-{self.chance.getrandbits(68):017x}"
        times: dict[str, Any] = {"launched_at": now, "visible_at": now + self.lag_seconds, "spells": [Spell(now)]}
        instance = Instance(id=name, tags=dict(tags), **times, **asked, **own)
        self.instances[instance.id] = self.remembered[instance.id] = instance
        self.changes += 1
        self.timeline.after(self.physics.pending_seconds(self.chance), lambda: self.run(instance, 0))
        self._doom(instance, _most(override))
        if reserved is not None:
            instance.reserved = reserved.id
            end_in_time(self, reserved, instance)
        return instance

    def _to_be_had(self, offering: str, wanted: int) -> int:
        if offering in self.answers or not self.physics.can_be_had(offering, self.timeline.now, self.seed):
            return 0
        return self.capacity.get(offering, wanted)

    def _doom(self, instance: Instance, most_usd: float) -> None:
        """Schedule the interruption of a spot instance, if it still runs by then: by chance, or once it is dearer than may be paid."""
        if instance.market != "spot":
            return
        if most_usd < inf and (at := too_dear_at(self, instance, most_usd)) is not None:
            self.timeline.at(at, lambda: self._take_back(instance))
        if self.physics.interruptions_per_hour:
            chance = Random(f"{self.seed}/{len(self.instances)}")  # noqa: S311 - a simulation's chance
            seconds = chance.expovariate(self.physics.interruptions_per_hour / 3600.0)
            self.timeline.after(seconds, lambda: self._take_back(instance))

    def _take_back(self, instance: Instance) -> None:
        if instance.alive():
            self.interrupt(instance)

    def run(self, instance: Instance, life: int) -> None:
        """Let a pending instance run, and boot, or a part of it where it was stopped before."""
        if instance.state != "pending" or instance.life != life:
            return
        if not life and (why := self.ends_pending(instance)):
            instance.state_reason = why
            self.end(instance)
            return
        instance.state = "running"
        self.changes += 1
        part = self.physics.start_share(self.chance) if life else 1.0
        self.timeline.after(part * self.boot_seconds(instance.template), lambda: self._booted(instance, life))

    def _booted(self, instance: Instance, life: int) -> None:
        if instance.state == "running" and instance.life == life:
            instance.booted_at = self.timeline.now
            self.on_running(instance)

    def _check_overrides(self, overrides: list[dict[str, Any]]) -> None:
        """Refuse two subnets of one zone for one type, as EC2 does: to it they are the same capacity."""
        pools = [(override["InstanceType"], self.zones.get(override.get("SubnetId", ""), ZONE)) for override in overrides]
        if len(set(pools)) != len(pools):
            raise Ec2Error("InvalidFleetConfig", "The fleet configuration contains duplicate instance pools.")

    def _forget(self) -> None:
        ended_before = self.timeline.now - _FORGOTTEN_AFTER_SECONDS
        while self._ended_ids and (self.instances[self._ended_ids[0]].ended_at or 0.0) < ended_before:
            instance_id = self._ended_ids.popleft()
            if self.instances[instance_id].state == "terminated":  # one that hangs is shown for as long
                del self.remembered[instance_id]

    @staticmethod
    def _passes(instance: Instance, filters: dict[str, list[str]]) -> bool:
        for name, values in filters.items():
            if name == "instance-id":
                actual = instance.id
            elif name == "instance-state-name":
                actual = instance.state
            elif name == "tag-key":
                actual = next((key for key in values if key in instance.tags), "")
            elif name.startswith("tag:"):
                actual = instance.tags.get(name.removeprefix("tag:"), "")
            else:
                raise Ec2Error("InvalidParameterValue", f"The filter '{name}' is invalid")
            if actual not in values:
                return False
        return True
