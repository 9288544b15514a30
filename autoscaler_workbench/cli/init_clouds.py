"""Drafts pools from the clouds of the EC2 and EC2 Fleet plugins, as the plugin Configuration as Code exports them."""

import re
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

from autoscaler.config.load import architecture
from autoscaler.config.prices import carried_prices
from autoscaler_workbench.cli.init_pool import MOST_EXECUTORS, Cap, Draft, count, guess_platform, number, other_root, usable
from autoscaler_workbench.simulate.fleets import guess_machine

_DEFAULT_CAP = 10
_MOST_BUILDS = 1_000_000
_LEAST_BID = 0.001  # less is no bid for the EC2 plugin
_UNUSABLE = "some labels are left out: a fleet file takes none with blanks or quotation marks"
_CAPS = ("instanceCapStr", "instanceCap")


def of_clouds(clouds: tuple[tuple[str, Mapping[str, Any]], ...], left_out: list[str]) -> list[Cap]:
    """Draft the pools of each cloud, with the most machines that the cloud may have."""
    caps = []
    for kind, cloud in clouds:
        name = str(cloud.get("name") or cloud.get("cloudName") or kind)
        match kind.lower():
            case "amazonec2":
                caps.append(_of_ec2(name, cloud, left_out))
            case "ec2fleet":
                draft = _of_fleet(name, cloud)
                caps.append(Cap(name=name, max_agents=draft.max_agents, pools=[draft]))
            case "ec2fleetlabel":
                most = number(cloud.get("maxSize"))
                each = "" if most is None else f", each with at most {most} machines"
                left_out.append(f"cloud {name}: an EC2 Fleet label cloud, whose pools stand in the labels of jobs{each}")
            case _:
                left_out.append(f"cloud {name} ({kind}): not of the EC2 or EC2 Fleet plugin")
    return caps


def _of_ec2(name: str, cloud: Mapping[str, Any], left_out: list[str]) -> Cap:
    cap = next((most for key in _CAPS if (most := number(cloud.get(key))) is not None), None)
    templates = cloud.get("templates")
    each = [one for one in templates if isinstance(one, Mapping)] if isinstance(templates, list) else []
    pools = [draft for template in each for draft in _of_template(name, template, cap, left_out)]
    most = sum(draft.max_agents for draft in pools)
    return Cap(name=name, max_agents=most if cap is None else max(1, min(cap, most)), pools=pools)


def _of_template(cloud: str, template: Mapping[str, Any], cap: int | None, left_out: list[str]) -> Iterator[Draft]:
    """Draft a pool from a template of the EC2 plugin. ``cap``: the most machines of the whole cloud."""
    system = _system_of(template.get("amiType"))
    title = template.get("description") or template.get("ami") or "a template"
    if system == "macData":
        left_out.append(f"cloud {cloud}, {title}: Mac; the autoscaler launches Linux and Windows")
        return
    labels = str(template.get("labelString") or "").split()
    names = (*labels, str(template.get("description") or ""), str(template.get("ami") or ""))
    platform, doubt = _platform_of(system, names, template.get("remoteFS"))
    executors = count(template, "numExecutors", 1, MOST_EXECUTORS)
    draft = Draft(
        name=f"{cloud}-{title}",
        labels=usable(labels),
        executors=executors,
        instance_types=[],
        max_agents=1,
        platform=platform,
        min_agents=count(template, "minimumNumberOfInstances", 0),
        warm_executors=executors * count(template, "minimumNumberOfSpareInstances", 0),
        subnets=re.findall(r"subnet-\w+", str(template.get("subnetId"))),
        remote_dir=other_root(template.get("remoteFS"), platform),
        exclusive=template.get("mode") == "EXCLUSIVE",
        about=[f"template of the EC2 plugin, cloud {cloud}: {title}"],
        todo={"launch_template": f"its image is {template.get('ami', 'not known')}; see docs/migrate.md"},
    )
    _set_type(draft, str(template.get("type") or ""))
    _set_most(draft, template, cap)
    _set_market(draft, template.get("spotConfig"))
    _doubt(draft, doubt, "template", len(labels))
    yield draft


def _system_of(kind: Any) -> str:
    return str(next(iter(kind), "")) if isinstance(kind, Mapping) else str(kind or "")


def _platform_of(system: str, names: tuple[str, ...], root: Any) -> tuple[str, str]:
    """Return the operating system of a template, and the doubt. Older versions of the plugin reach Windows by SSH as *unix*, too."""
    guess, doubt = guess_platform(names, root)
    if system.startswith("windows"):
        return "windows", ""
    if system == "unixData":
        return guess, "a guess: the template says Unix, and its names or its directory say Windows" if guess == "windows" else ""
    return guess, doubt


def _set_most(draft: Draft, template: Mapping[str, Any], cap: int | None) -> None:
    _set_uses(draft, template)
    own = next((template[key] for key in _CAPS if number(template.get(key)) is not None), None)
    most = _DEFAULT_CAP if cap is None else cap
    draft.max_agents = count({"cap": own}, "cap", max(1, most))
    if cap is not None:
        draft.max_agents = max(1, min(draft.max_agents, cap))
    if cap == 0 or number(own) == 0:
        draft.todo["max_agents"] = "its cap is 0, so that it launches nothing; a pool has at least 1"
    elif own is None:
        draft.todo["max_agents"] = "the template has no cap" + ("" if cap is None else f"; that of its cloud is {cap}")


def _set_market(draft: Draft, spot: Any) -> None:
    """Take over how machines are bought, and the highest bid."""
    if not isinstance(spot, Mapping):
        return
    draft.market = "spot-then-on-demand" if spot.get("fallbackToOndemand") else "spot"
    told = spot.get("spotMaxBidPrice")
    if not spot.get("useBidPrice", bool(told)):
        return
    try:
        bid = float(told)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        bid = 0.0
    if isfinite(bid) and _LEAST_BID <= bid <= 10_000_000:
        draft.spot_max_usd_per_hour = bid
    else:
        draft.todo["market"] = (
            f"the template's highest bid is {told or 'empty'}, which is no price; the on-demand price is the highest here"
        )


def _of_fleet(cloud: str, settings: Mapping[str, Any]) -> Draft:
    """Draft a pool from a cloud of the EC2 Fleet plugin, whose machines stand in AWS."""
    fleet = settings.get("fleet")
    labels = str(settings.get("labelString") or "").split()
    platform, doubt = guess_platform((*labels, cloud, str(fleet or "")), settings.get("fsRoot"))
    executors = count(settings, "numExecutors", 1, MOST_EXECUTORS)
    draft = Draft(
        name=cloud,
        labels=usable(labels),
        executors=executors,
        instance_types=guess_machine(f"{platform} {' '.join(labels)}")["instance_types"],
        max_agents=count(settings, "maxSize", _DEFAULT_CAP),
        platform=platform,
        min_agents=count(settings, "minSize", 0),
        warm_executors=executors * count(settings, "minSpareSize", 0),
        remote_dir=other_root(settings.get("fsRoot"), platform),
        exclusive=bool(settings.get("restrictUsage", False)),
        about=[f"cloud {cloud} of the EC2 Fleet plugin: {fleet or 'its fleet'} in {settings.get('region', 'its region')}"],
        todo={"instance_types": "a guess from the labels; those of the fleet or Auto Scaling group stand in AWS"},
    )
    most = number(settings.get("maxSize"))
    if not most:
        why = "has no maximum size" if most is None else "has the maximum size 0, so that it launches nothing; a pool has at least 1"
        draft.todo["max_agents"] = f"the cloud {why}"
    if settings.get("executorScaler") not in (None, "noScaler") or settings.get("scaleExecutorsByWeight"):
        draft.todo["executors"] = "the cloud scales executors by the machine's size; a pool has one number for all its types"
    _set_uses(draft, settings)
    _set_rerun(draft, settings)
    _doubt(draft, doubt, "fleet", len(labels))
    return draft


def _set_rerun(draft: Draft, settings: Mapping[str, Any]) -> None:
    draft.runs_again = not settings.get("disableTaskResubmit", False)
    if draft.runs_again:
        draft.todo["rerun"] = "the cloud ran builds again that lost their agent; so does this, if the account has Job/Build (docs/rerun.md)"


def _set_uses(draft: Draft, settings: Mapping[str, Any]) -> None:
    """Take over how many builds an agent may have: both plugins end it after one where they say 0 or 1, and never where they say -1."""
    told = settings.get("maxTotalUses")
    uses = number(told)
    if uses is not None:
        draft.max_builds = min(max(uses, 1), _MOST_BUILDS)
    elif str(told).strip() not in {"None", "", "-1"}:
        draft.max_builds = 1
        draft.todo["reuse"] = f"maxTotalUses is {told}, which is no number; how many builds may one agent have?"
    if uses is not None and uses <= 1:
        draft.todo["reuse"] = (
            "one build an agent, as maxTotalUses says; a build shorter than a look may be followed by another (docs/migrate.md)"
        )


def _doubt(draft: Draft, platform: str, source: str, labels: int) -> None:
    """Note what a person must check about the operating system and the labels."""
    if platform:
        draft.todo["platform"] = platform
    if not draft.labels:
        who = "and takes only jobs that name its node" if draft.exclusive else "and takes any job without a label"
        draft.todo["labels"] = f"the {source} has no label, {who}; name the labels that jobs ask for" if not labels else _UNUSABLE
    elif len(draft.labels) < labels:
        draft.todo["labels"] = _UNUSABLE


def _set_type(draft: Draft, told: str) -> None:
    """Set the instance type; older versions of the plugin spell c5.18xlarge as C518xlarge."""
    known = {re.sub(r"[^a-z0-9]", "", kind): kind for kind in carried_prices()}
    kind = told if re.fullmatch(r"[a-z0-9-]+\.[a-z0-9-]+", told) else known.get(re.sub(r"[^a-z0-9]", "", told.lower()))
    if kind is None:
        draft.instance_types = guess_machine(f"{draft.platform} {' '.join(draft.labels)}")["instance_types"]
        draft.todo["instance_types"] = f"a guess from the labels; the template says {told or 'nothing'}"
        return
    draft.instance_types = [kind]
    if not carried_prices().get(kind, {}).get(draft.platform):
        draft.usd_per_hour = 1.0
        draft.todo["usd_per_hour"] = f"no {draft.platform} price is carried for {kind}"
    if architecture(kind) == "arm64":
        draft.todo["instance_types"] = "arm64: deploy with Arm64Agents=yes, which makes its launch template"
