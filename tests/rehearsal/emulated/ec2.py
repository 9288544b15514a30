"""The life of an instance as EC2 documents it, which MiniStack shortens: states take time, and calls in a wrong state are refused.

Also what its launches lack: dry runs, client tokens, the subnet's zone, the tags that EC2 writes (fleet, template's version); and the
filter ``instance-id``, without which DescribeInstances answers with every instance. A terminated instance is listed for an hour.
"""

import os
import threading
import time
from functools import wraps
from pathlib import Path

from ministack.services import ec2

_CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}
_PENDING_SECONDS, _STOPPING_SECONDS, _ENDING_SECONDS = 3.0, 3.0, 3.0
_SHOWN_SECONDS, _MINISTACK_SHOWS_SECONDS = 3600.0, 60.0  # how long a terminated instance is listed
_BY_USER = "Client.UserInitiatedShutdown"
_fleets = {}  # client token -> answer


def install() -> None:
    actions = ec2._ACTION_MAP
    launch, run, terminate = actions["CreateFleet"], actions["RunInstances"], actions["TerminateInstances"]
    actions |= {
        "CreateFleet": _without_dry_run(_once_per_token(_launching(launch))),
        "RunInstances": _without_dry_run(run),
        "StopInstances": _stop,
        "StartInstances": _start,
        "TerminateInstances": _terminating(terminate),
    }
    ec2._instance_xml = _with_reason(ec2._instance_xml)
    ec2._matches_filters = _with_instance_ids(ec2._matches_filters)


def log(text: str) -> None:
    """Note a change of state, or a refusal, for people who look for what happened."""
    with (Path(os.environ["REHEARSAL_FOLDER"]) / "logs" / "ec2.log").open("a", encoding="utf-8") as lines:
        lines.write(f"{time.strftime('%X')} {text}\n")


def tag_of(instance_id: str, key: str) -> str:
    return next((tag["Value"] for tag in ec2._tags.get(instance_id, []) if tag["Key"] == key), "")


def _put(instance, state, reason=None):
    instance["State"] = {"Code": _CODES[state], "Name": state}
    if reason is not None:
        instance["_reason"] = reason
    log(f"{instance['InstanceId']} {tag_of(instance['InstanceId'], 'autoscaler:pool')} -> {state} {reason or ''}".rstrip())


def _put_later(seconds, instance, before, state):
    def put():
        if instance["State"]["Name"] == before:
            _put(instance, state)

    timer = threading.Timer(seconds, put)
    timer.daemon = True
    timer.start()


def _without_dry_run(action):
    @wraps(action)
    def answer(parameters):
        if str(ec2._p(parameters, "DryRun")).lower() == "true":
            return ec2._error("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)
        return action(parameters)

    return answer


def _once_per_token(launch):
    @wraps(launch)
    def answer(parameters):
        token = ec2._p(parameters, "ClientToken")
        if not token:
            return launch(parameters)
        if token not in _fleets:
            _fleets[token] = launch(parameters)
        return _fleets[token]

    return answer


def _launching(launch):
    @wraps(launch)
    def answer(parameters):
        before = set(ec2._instances.keys())
        result = launch(parameters)
        version = str(ec2._p(parameters, "LaunchTemplateConfigs.1.LaunchTemplateSpecification.Version"))
        for instance_id in set(ec2._instances.keys()) - before:
            instance = ec2._instances[instance_id]
            _put(instance, "pending", "")
            _put_later(_PENDING_SECONDS, instance, "pending", "running")
            tags = ec2._tags.setdefault(instance_id, [])
            tags.append({"Key": "aws:ec2:fleet-id", "Value": f"fleet-{ec2._p(parameters, 'ClientToken')}"})
            if version.isdecimal():
                tags.append({"Key": "aws:ec2launchtemplate:version", "Value": version})
            zone = ec2._subnets.get(instance["SubnetId"], {}).get("AvailabilityZone")
            if zone:
                instance["Placement"] = instance["Placement"] | {"AvailabilityZone": zone}
        return result

    return answer


def _named(parameters, *wrong):
    """The instances that a call names, or an answer that refuses it."""
    ids = ec2._parse_member_list(parameters, "InstanceId")
    for instance_id in ids:
        if instance_id not in ec2._instances:
            return [], ec2._error("InvalidInstanceID.NotFound", f"The instance ID '{instance_id}' does not exist", 400)
        if ec2._instances[instance_id]["State"]["Name"] in wrong:
            text = f"The instance '{instance_id}' is not in a state from which it can be changed so"
            return [], ec2._error("IncorrectInstanceState", text, 400)
    return [ec2._instances[instance_id] for instance_id in ids], None


def _change(action, instances, change):
    """Change each instance, and answer with the states before and after."""
    items = ""
    for instance in instances:
        before = dict(instance["State"])
        change(instance)
        items += f"<item><instanceId>{instance['InstanceId']}</instanceId>"
        for name, state in (("currentState", instance["State"]), ("previousState", before)):
            items += f"<{name}><code>{state['Code']}</code><name>{state['Name']}</name></{name}>"
        items += "</item>"
    return ec2._xml(200, f"{action}Response", f"<instancesSet>{items}</instancesSet>")


def _stop(parameters):
    instances, refusal = _named(parameters, "pending", "shutting-down", "terminated")

    def stop(instance):
        if instance["State"]["Name"] == "running":
            _put(instance, "stopping", _BY_USER)
            _put_later(_STOPPING_SECONDS, instance, "stopping", "stopped")

    return refusal or _change("StopInstances", instances, stop)


def _start(parameters):
    instances, refusal = _named(parameters, "stopping", "shutting-down", "terminated")

    def start(instance):
        if instance["State"]["Name"] == "stopped":
            instance["LaunchTime"] = ec2._now_ts()
            _put(instance, "pending", "")
            _put_later(_PENDING_SECONDS, instance, "pending", "running")

    return refusal or _change("StartInstances", instances, start)


def _terminating(terminate):
    @wraps(terminate)
    def answer(parameters):
        instances, refusal = _named(parameters)
        if refusal:
            return refusal
        states = {instance["InstanceId"]: dict(instance["State"]) for instance in instances}
        terminate(parameters)  # which ends them at once

        def end(instance):
            instance["State"] = states[instance["InstanceId"]]
            if instance["State"]["Name"] not in {"shutting-down", "terminated"}:
                _put(instance, "shutting-down", _BY_USER)
                instance["_terminated_at"] = time.time() + _SHOWN_SECONDS - _MINISTACK_SHOWS_SECONDS
                _put_later(_ENDING_SECONDS, instance, "shutting-down", "terminated")

        return _change("TerminateInstances", instances, end)

    return answer


def _with_reason(instance_xml):
    @wraps(instance_xml)
    def xml(instance):
        reason = f"<stateReason><code>{instance['_reason']}</code><message/></stateReason>" if instance.get("_reason") else ""
        return instance_xml(instance).replace("<hypervisor>", f"<platformDetails>Linux/UNIX</platformDetails>{reason}<hypervisor>", 1)

    return xml


def _with_instance_ids(matches):
    @wraps(matches)
    def answer(instance, filters):
        wanted = filters.get("instance-id")
        return (wanted is None or instance["InstanceId"] in wanted) and matches(instance, filters)

    return answer
