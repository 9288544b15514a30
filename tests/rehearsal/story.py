"""The story of a fleet: deployed from nothing, at work, operated, in trouble, scaled in, upgraded, removed."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from rehearsal.aws import Account
from rehearsal.deploy import WITHOUT_CLOCK, delete, deploy, prepare, schedules, stop_the_clock
from rehearsal.emulator import emulator
from rehearsal.jenkins import jenkins
from rehearsal.machines import machines
from rehearsal.operator import Operator
from rehearsal.orders import instances_of, operate, until_drains_begin
from rehearsal.plan import POOL, SPOT_POOL, WEBHOOK_TOKEN, Plan, fleet_file
from rehearsal.project import build, clone
from rehearsal.report import Report
from rehearsal.restore import restore
from rehearsal.scene import Scene
from rehearsal.trouble import instance_of, trouble

_SCHEDULED = {"PublishMetrics", "ScaleUp", "ScaleDown"}
_JOBS = ("first", "second", "third")
WARM, NOT_WARM = "{min_agents: 2, max_agents: 3}", '"off"'


def play(plan: Plan, report: Report, steps: list[str]) -> None:
    """Play these steps of the story between a deployment from nothing and the removal."""
    account = Account(plan)
    with ExitStack() as stack:
        controller = stack.enter_context(jenkins(plan))
        stack.enter_context(emulator(plan))
        report.step("1 deploy: from nothing")
        tree = clone(plan, "today")
        build(plan, tree, fleet_file(controller.url, warm_pool=WARM))
        report.note("built")
        beside = stack.enter_context(ThreadPoolExecutor(max_workers=1))
        without_warm_pool = beside.submit(_build_without_warm_pool, plan, controller.url) if "scale-in" in steps else None
        prepare(account, controller.secret)
        deploy(account, tree)
        instances = stack.enter_context(machines(account, controller.live.java))
        scene = Scene(plan, report, account, controller, Operator(plan), instances, without_warm_pool)
        _look_at_what_is_deployed(scene)
        for name, step in STEPS.items():
            if name in steps:
                step(scene)
        report.step("7 delete: what stays")
        _empty(scene)
        _delete(scene, tree)
        report.check("problems of the rehearsal's machines", instances.problems, [])


def _build_without_warm_pool(plan: Plan, url: str) -> Path:
    tree = clone(plan, "today-without-warm-pool")
    build(plan, tree, fleet_file(url, warm_pool=NOT_WARM))
    return tree


def _look_at_what_is_deployed(scene: Scene) -> None:
    report, account = scene.report, scene.account
    report.check("state of the stack", account.stack()["StackStatus"], "CREATE_COMPLETE")
    by_type: dict[str, set[str]] = {}
    for kind, name in account.resources().values():
        by_type.setdefault(kind.removeprefix("AWS::"), set()).add(name)
    alarms = {alarm["AlarmName"] for alarm in account.alarms()}
    report.check("alarms", len(alarms), 8)
    report.check(
        "each alarm of the stack is there", alarms, by_type["CloudWatch::Alarm"] | by_type.get("CloudWatch::CompositeAlarm", set())
    )
    rules = {rule["Name"] for rule in account.client("events").list_rules()["Rules"]}
    report.check("each rule of the stack is there", rules, by_type["Events::Rule"])
    report.check("rules that tick", [rule["State"] for rule in schedules(account)], ["ENABLED"] * 3)
    tables = set(account.client("dynamodb").list_tables()["TableNames"])
    report.check("tables", tables, by_type["DynamoDB::Table"])
    queues = {url.rsplit("/", 1)[1] for url in account.client("sqs").list_queues().get("QueueUrls", [])}
    report.check("queues", queues, {url.rsplit("/", 1)[1] for url in by_type["SQS::Queue"]})
    functions = {function["FunctionName"] for function in account.lambdas.list_functions()["Functions"]}
    report.check("functions", functions, by_type["Lambda::Function"])
    outputs = account.outputs()
    report.check("register_agent without a signature", _post(scene, outputs["RegisterAgentUrl"]), 403)
    report.check("the webhook with a wrong token", _post(scene, outputs["Webhook"], "?token=wrong"), 403)


def _post(scene: Scene, url: str, query: str = "") -> int:
    """The status of a POST to a function URL, which the emulator knows by its host."""
    body = json.dumps({"name": "first", "build": {"phase": "QUEUED"}}).encode()
    headers = {"Host": url.split("/")[2], "Content-Type": "application/json"}
    request = urllib.request.Request(f"{scene.plan.aws_url}/{query}", data=body, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=600) as answer:
            return answer.status
    except urllib.error.HTTPError as refusal:
        return refusal.code


def _work(scene: Scene) -> None:
    report, webhook = scene.report, scene.account.outputs()["Webhook"]
    report.step("2 work: three jobs are queued, and nobody invokes a function by hand")
    scene.queue(*_JOBS)
    report.check("the webhook with its token", _post(scene, webhook, f"?token={WEBHOOK_TOKEN}"), 202)
    report.until("instances that the webhook launched", lambda: len(scene.account.instances("running")), 3)
    report.until("instances whose service has begun", lambda: len(scene.machines.lives), 3)
    report.until("nodes that are online", lambda: scene.online(POOL), 3)
    logs = [scene.machines.log(instance) for instance in scene.account.instances()]
    report.check("services that say which node they connect as", sum("connecting to" in log for log in logs), 3)
    report.until("nodes that builds run on", lambda: len(set(scene.jenkins.nodes_by_job().values())), 3)
    ticked = lambda: {name for name in _SCHEDULED if scene.account.invocations(name)}  # noqa: E731
    report.until("functions that the emulator's own rules invoked", ticked, _SCHEDULED)
    before = scene.account.invocations("ScaleUp")
    report.until("scale_up looks between the ticks, too", lambda: scene.account.invocations("ScaleUp") >= before + 2)
    stop_the_clock(scene.account)
    report.until("records", lambda: list(scene.records().values()), ["registered"] * 3)
    report.until("builds", lambda: scene.told_to_end(*_JOBS), dict.fromkeys(_JOBS, "SUCCESS"))


def _scale_in(scene: Scene) -> None:
    report, jobs, lost_before = scene.report, _JOBS[:1], scene.jenkins.lost()
    report.step("5 scale-in: two looks, stop, start again, terminate")
    # The first agent that is stopped is started once, to prove that it can be, before the pool's two are kept stopped.
    scene.until("states of the instances", scene.states, ["stopped"] * 2)
    lives = dict(scene.machines.lives)
    scene.queue(*jobs)
    scene.until_ended(*jobs)
    instance = instance_of(scene.jenkins.nodes_by_job()[jobs[0]])
    report.check("the build ran on an agent that had been stopped", instance in scene.machines.stopped)
    report.check("its service has begun anew since", scene.machines.lives[instance] > lives[instance])
    deploy(scene.account, _result_of(scene.without_warm_pool), **WITHOUT_CLOCK)
    report.note("deployed with warm_pool: off")
    _until_empty(scene)
    report.check("builds that were lost since this step began", [build for build in scene.jenkins.lost() if build not in lost_before], [])


def _result_of(tree: Future[Path] | None) -> Path:
    assert tree is not None, "it is built for the step that deploys it"
    return tree.result()


def _until_empty(scene: Scene) -> None:
    scene.until("states of the instances", scene.states, [])
    scene.until("nodes", scene.jenkins.nodes, {})
    scene.until("records", scene.records, {})


def _empty(scene: Scene) -> None:
    """End what agents there are as the page about removal says, whatever steps were played before."""
    until_drains_begin(scene)
    if scene.states():
        scene.operator.run("set", POOL, "--max-stopped", "0", "--minutes", "10080")
        scene.until("stopped agents", lambda: {"stopped", "stopping"} & set(scene.states()), set())
    scene.operator.run("hold", "--fleet", "--until-resumed", "--reason", "rehearsal")
    for pool in (POOL, SPOT_POOL):
        if agents := instances_of(scene, pool):
            scene.operator.run("drain", "--pool", pool, "--count", str(len(agents)))
    _until_empty(scene)


def _delete(scene: Scene, tree: Path) -> None:
    report, account = scene.report, scene.account
    tables = {account.outputs()["State"], account.resources()["StateTable"][1]}
    report.check("state of the stack", delete(account, tree), "DELETE_COMPLETE")
    report.check("tables that stay", set(account.client("dynamodb").list_tables()["TableNames"]), tables)
    report.check("layers that stay", account.lambdas.list_layers()["Layers"], [])
    stacks = {stack["StackName"] for stack in account.client("cloudformation").describe_stacks()["Stacks"]}
    report.check("stacks that stay: SAM's own, with the bucket of the code", stacks, {"aws-sam-cli-managed-default"})
    report.check("functions that stay", account.lambdas.list_functions()["Functions"], [])
    report.check("rules that stay", account.client("events").list_rules()["Rules"], [])
    report.check("alarms that stay", account.alarms(), [])
    report.check("queues that stay", account.client("sqs").list_queues().get("QueueUrls", []), [])
    report.check("topics that stay", account.client("sns").list_topics()["Topics"], [])
    groups = [group["logGroupName"] for group in account.client("logs").describe_log_groups()["logGroups"]]
    report.check("log groups that stay", groups, [])
    report.check("launch templates that stay", account.ec2.describe_launch_templates()["LaunchTemplates"], [])
    roles = [role["RoleName"] for role in account.client("iam").list_roles()["Roles"] if role["RoleName"].startswith("jenkins-autoscaler")]
    report.check("roles that stay", roles, [])
    report.check("instances that stay", list(account.instances()), [])
    report.check("beacons were left in Jenkins, and are deleted by hand", scene.jenkins.remove_beacons() > 0)
    report.check("nodes that stay", scene.jenkins.nodes(), {})


STEPS: dict[str, Callable[[Scene], None]] = {
    "work": _work,
    "operator": operate,
    "trouble": trouble,
    "restore": restore,
    "scale-in": _scale_in,
}
FIRST_STEP = next(iter(STEPS))  # the others act on the agents that it leaves, and on a clock that it has stopped
