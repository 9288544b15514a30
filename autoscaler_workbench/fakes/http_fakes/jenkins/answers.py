"""The world's Jenkins in Jenkins' own JSON and words, as recorded from 2.504.3."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from autoscaler.domain.labels import LabelExpression
from autoscaler_workbench.fakes.http_fakes.jenkins.tree import Keyed
from autoscaler_workbench.fakes.world.jenkins.builds import Build, Kind, Started
from autoscaler_workbench.fakes.world.jenkins.controller import Controller
from autoscaler_workbench.fakes.world.jenkins.nodes import Monitors, Node

WAITING, BLOCKED, BUILDABLE = "WaitingItem", "BlockedItem", "BuildableItem"
_BUILTIN = "the Jenkins controller's built-in node"
_BUILTIN_LABELS = frozenset({"built-in"})
_MONITORS = "hudson.node_monitors"
_DISK_SPACE = f"{_MONITORS}.DiskSpaceMonitorDescriptor$DiskSpace"
_SWAP_SPACE = f"{_MONITORS}.SwapSpaceMonitor$MemoryUsage2"
_RESPONSE_TIME = f"{_MONITORS}.ResponseTimeMonitor$Data"
PLACEHOLDER = "org.jenkinsci.plugins.workflow.support.steps.ExecutorStepExecution$PlaceholderTask"


def queue_json(controller: Controller, base: str) -> dict[str, Any]:
    """``/queue/api/json``: listed backwards, the last is next."""
    said: dict[str, str] = {}
    items = [queued_json(controller, build, base, said) for build in reversed(controller.queue)]
    return {"_class": "hudson.model.Queue", "discoverableItems": [], "items": items}


def computers_json(controller: Controller, base: str) -> dict[str, Any]:
    """``/computer/api/json``."""
    now = controller.timeline.now
    nodes = [node_json(node, base, now) for node in (*controller.nodes.values(), *controller.gone.computers.values())]
    busy = sum(len(node.builds) for node in controller.nodes.values())
    total = sum(node.executors for node in controller.nodes.values() if not node.offline)
    return {
        "_class": "hudson.model.ComputerSet",
        "busyExecutors": busy,
        "computer": [builtin_json(controller, base), *nodes],
        "displayName": "Nodes",
        "totalExecutors": total,
    }


def root_json(controller: Controller, base: str) -> dict[str, Any]:
    """``/api/json``."""
    node = {"assignedLabels": [{"name": "built-in"}], "mode": "NORMAL", "nodeDescription": _BUILTIN, "nodeName": "", "numExecutors": 0}
    quiet = {"quietDownReason": controller.quiet_reason, "quietingDown": controller.quieting_down}
    return {"_class": "hudson.model.Hudson", "url": base, "useCrumbs": True, "useSecurity": True} | node | quiet


def builtin_json(controller: Controller, base: str) -> dict[str, Any]:
    """The built-in node, without executors. Each pipeline has a step of its own there, which takes none, for as long as it lasts."""
    shown = _computer(
        "hudson.model.Hudson$MasterComputer", "Built-In Node", ("built-in",), _BUILTIN, controller.monitors, controller.timeline.now
    )
    steps = [
        {"currentExecutable": {"url": base + path}, "idle": False, "likelyStuck": False, "progress": -1}
        for path in lasting_pipelines(controller)
    ]
    return shown | {"idle": not steps, "oneOffExecutors": steps}


def lasting_pipelines(controller: Controller) -> tuple[str, ...]:
    """Name the runs of pipelines that wait or run, by their paths."""
    running = (build for node in controller.nodes.values() for build in node.builds.values())
    return tuple(dict.fromkeys(build.run_path for build in (*running, *controller.queue) if build.kind is Kind.PIPELINE))


def node_json(node: Node, base: str, now: float) -> dict[str, Any]:
    """One computer. ``now``: what its monitors have told by then."""
    labels = () if node.is_deleted else (node.name, *node.labels)
    about = "" if node.is_deleted else node.description
    shown = _computer("hudson.slaves.SlaveComputer", node.name, labels, about, node.monitors, now)
    return shown | {
        "executors": _executors(node, base),
        "idle": not (node.builds or node.handed),
        "jnlpAgent": True,
        "numExecutors": node.executors,
        "offline": node.offline,
        "offlineCause": _cause(node),
        "offlineCauseReason": _escape(node.reason),
        "temporarilyOffline": node.temporarily_offline,
    }


def _computer(kind: str, name: str, labels: Iterable[str], about: str, monitors: Monitors, now: float) -> dict[str, Any]:
    """A computer without executors that is online."""
    return {
        "_class": kind,
        "displayName": name,
        "assignedLabels": [{"name": label} for label in labels],
        "description": about,
        "executors": [],
        "oneOffExecutors": [],
        "numExecutors": 0,
        "idle": True,
        "offline": False,
        "offlineCause": None,
        "offlineCauseReason": "",
        "temporarilyOffline": False,
        "monitorData": _monitors(monitors, now),
    }


def _monitors(monitors: Monitors, now: float) -> dict[str, Any]:
    """What the monitors of a node say; each says nothing until it has looked."""
    disk = {"_class": _DISK_SPACE, "path": "/tmp", "threshold": 1_073_741_824, "size": monitors.disk_bytes}  # noqa: S108
    told: dict[str, Any] = {
        "SwapSpaceMonitor": {"_class": _SWAP_SPACE, "availablePhysicalMemory": monitors.memory_bytes, "availableSwapSpace": 0},
        "TemporarySpaceMonitor": disk,
        "DiskSpaceMonitor": disk | {"path": "/home/jenkins"},
        "ArchitectureMonitor": monitors.architecture,
        "ResponseTimeMonitor": {"_class": _RESPONSE_TIME, "average": monitors.response_ms},
        "ClockMonitor": {"_class": "hudson.util.ClockDifference", "diff": 0},
    }
    return Keyed({f"{_MONITORS}.{name}": value if monitors.tells(name, now) else None for name, value in told.items()})


def why_of(controller: Controller, build: Build, said: dict[str, str]) -> str:
    """What Jenkins says a build waits for. ``said``: of a label, in this same answer."""
    if build.buildable_at > controller.timeline.now:
        return f"In the quiet period. Expires in {build.buildable_at - controller.timeline.now:.1f} sec"
    if build.blocked:
        return f"Build #{build.number - 1} is already in progress (ETA: N/A)"
    if build.resumes_on is not None:
        return f"‘{build.resumes_on}’ is offline"
    if controller.quieting_down:
        return "Jenkins is about to shut down"
    if vetoed := _why_vetoed(controller, build):
        return vetoed
    if build.asks_for not in said:
        # With no agent node at all, Jenkins leaves the label out: the reason for the beacon.
        labelled = build.expression if controller.nodes else None
        said[build.asks_for] = _why_with_label(controller, build, labelled) if labelled else _why_without_label(controller, build)
    return said[build.asks_for]


def _why_vetoed(controller: Controller, build: Build) -> str:
    """What plugins say of the free nodes, and Jenkins of the others: each cause once, in alphabetical order."""
    veto = controller.veto
    vetoes = [words for node in controller.free_for(build) if (words := veto(build, node))] if veto else []
    causes = Counter([*vetoes, *_causes_of_others(controller, build)]) if vetoes else Counter[str]()
    return "; ".join(f"{cause} ({times} times)" if times > 1 else cause for cause, times in sorted(causes.items()))


def _causes_of_others(controller: Controller, build: Build) -> Iterator[str]:
    """What Jenkins says of the nodes beside those that a plugin speaks of (hudson.model.Queue.JobOffer.getCauseOfBlockage)."""
    for node in controller.nodes.values():
        if build.expression is not None and not build.expression.matches(node.all_labels):
            yield f"‘{node.name}’ doesn’t have label ‘{build.expression.name}’"
        elif node.offline:
            yield f"‘{node.name}’ is offline"


def _why_with_label(controller: Controller, build: Build, expression: LabelExpression) -> str:
    nodes = controller.matching(build)
    builtin = expression.matches(_BUILTIN_LABELS)
    name = expression.name
    if all(node.offline for node in nodes) and not builtin:
        if len(nodes) == 1:
            return f"‘{nodes[0].name}’ is offline"
        return f"All nodes of label ‘{name}’ are offline" if nodes else f"There are no nodes with the label ‘{name}’"
    only = nodes[0].name if len(nodes) == 1 and not builtin else name
    return f"Waiting for next available executor on ‘{only}’"


def _why_without_label(controller: Controller, build: Build) -> str:
    online = [node for node in controller.nodes.values() if not node.offline]
    idle = any(len(node.builds) < node.executors for node in online)
    if build.expression is None and idle:
        reserved = (f"‘{node.name}’ is reserved for jobs with matching label expression" for node in online if node.exclusive)
        return "; ".join(reserved) or "Waiting for next available executor"
    return "Waiting for next available executor"


def item_kind(controller: Controller, build: Build) -> str:
    """The class of a queue item: in its quiet period, blocked, or buildable. A quiet-down blocks pipelines, unless they resume."""
    if build.buildable_at > controller.timeline.now:
        return WAITING
    quieted = controller.quieting_down and build.kind is Kind.PIPELINE and build.resumes_on is None
    return BLOCKED if build.blocked or quieted else BUILDABLE


def queued_json(controller: Controller, build: Build, base: str, said: dict[str, str]) -> dict[str, Any]:
    """Show an item of the queue. ``said``: reasons, as far as they are known."""
    kind, at = item_kind(controller, build), int(build.buildable_at * 1000)
    state = {"blocked": build.blocked or kind == BLOCKED, "buildable": kind == BUILDABLE, "stuck": False}
    times = {"inQueueSince": int(build.queued_at * 1000), "timestamp" if kind == WAITING else "buildableStartMilliseconds": at}
    about = {
        "actions": [] if build.run_item else actions_of(build.started_with),  # a node block carries no parameters
        "id": build.id,
        "params": "",
        "url": f"queue/item/{build.id}/",
        "why": why_of(controller, build, said),
    }
    shown = {"_class": f"hudson.model.Queue${kind}", "task": task_json(build, base)} | about | state | times
    return shown | ({"pending": build.is_pending} if kind == BUILDABLE else {})


def actions_of(started: Started) -> list[dict[str, Any]]:
    """What a build or an item was started with: its parameters and its causes. Of passwords and files no value is shown."""
    shown: list[dict[str, Any]] = []
    if started.parameters:
        shown.append({"_class": "hudson.model.ParametersAction", "parameters": [_parameter(*named) for named in started.parameters]})
    users = [{"_class": "hudson.model.Cause$UserIdCause", "shortDescription": f"Started by user {u}", "userId": u} for u in started.users]
    causes = [*users, *(_upstream(path) for path in started.upstream), *(_upstream(path, _REBUILT) for path in started.repeats)]
    return [*shown, {"_class": "hudson.model.CauseAction", "causes": causes}] if causes else shown


def _parameter(name: str, value: str | None) -> dict[str, Any]:
    if value is None:
        return {"_class": "hudson.model.PasswordParameterValue", "name": name}
    return {"_class": "hudson.model.StringParameterValue", "name": name, "value": value}


# The Rebuilder plugin names the repeated build as if it were upstream.
_REBUILT = "com.sonyericsson.rebuild.RebuildCause"


def _upstream(path: str, kind: str = "hudson.model.Cause$UpstreamCause") -> dict[str, Any]:
    job, _, number = path.rstrip("/").rpartition("/")
    name = "/".join(unquote(part) for part in job.split("/")[1::2])
    return {"_class": kind, "upstreamBuild": int(number), "upstreamProject": name, "upstreamUrl": f"{job}/"}


def task_json(build: Build, base: str) -> dict[str, Any]:
    """Show what an item is about."""
    shown, name = build.job.replace("/", " » "), build.job.rsplit("/", 1)[-1]
    if build.kind is Kind.PIPELINE:
        part = part_of(build)
        return {"_class": PLACEHOLDER, "fullDisplayName": part, "name": part, "url": build.run_path}
    if part := build.configuration:
        named = {"name": part, "displayName": part, "fullName": f"{build.job}/{part}", "fullDisplayName": f"{shown} » {part}"}
        return {
            "_class": "hudson.matrix.MatrixConfiguration",
            "labelExpression": None,  # what its axes say is no label of its own (AbstractProject.getAssignedLabelString)
            "url": f"{base}{build.job_path}{part}/",
        } | named
    named = {"name": name, "displayName": name, "fullName": build.job, "fullDisplayName": shown}
    label = None if build.label_is_given else build.label  # what a parameter of the plugin NodeLabel says is no label of the job
    return {"_class": "hudson.model.FreeStyleProject", "labelExpression": label, "url": base + build.job_path} | named


def _run_name(build: Build) -> str:
    return f"{build.job.replace('/', ' » ')} #{build.number}"


def part_of(build: Build) -> str:
    """Name a step of a pipeline: by the stage or branch that encloses it, if there is one."""
    return f"{_run_name(build)} ({build.stage})" if build.stage else f"part of {_run_name(build)}"


def _executors(node: Node, base: str) -> list[dict[str, Any]]:
    """Show each executor; those that something was handed to are busy with nothing yet."""
    shown = [_executor(number, node.builds.get(number), base) for number in node.numbers]
    for executor in [one for one in shown if one["number"] in node.subtasks]:
        executor |= {"idle": False, "currentExecutable": {}}  # of a class that exports nothing
    for executor in [one for one in shown if one["idle"]][: len(node.handed)]:
        executor["idle"] = False
    return shown


def _executor(number: int, build: Build | None, base: str) -> dict[str, Any]:
    executor: dict[str, Any] = {"currentExecutable": None, "idle": build is None, "likelyStuck": False, "number": number, "progress": -1}
    if build is not None:
        pipeline = build.kind is Kind.PIPELINE
        # A pipeline's executor shows the run's own start, not the stage's.
        began = build.queued_at if pipeline else build.started_at or build.queued_at
        # A pipeline's step tells nothing of what its run was started with.
        executor["currentExecutable"] = ({} if pipeline else {"actions": actions_of(build.started_with)}) | {
            "_class": f"{PLACEHOLDER}$PlaceholderExecutable" if pipeline else "hudson.model.FreeStyleBuild",
            "estimatedDuration": -1,
            "fullDisplayName": part_of(build) if pipeline else _run_name(build),
            "number": build.number,
            "timestamp": int(began * 1000),
            "url": base + build.run_path,
        }
    return executor


def _cause(node: Node) -> dict[str, Any] | None:
    if node.cause is None:
        return None
    if node.cause.endswith("UserCause"):
        said = f"Disconnected by {node.user}" + (f" : {node.reason}" if node.reason else "")
        return {"_class": node.cause, "timestamp": 0, "description": said}
    return {"_class": node.cause, "timestamp": int(node.cause_at * 1000)}


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;").replace("'", "&#039;")
