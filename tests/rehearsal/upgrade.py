"""Step 6: from the newest release to today's version with agents at work, and back by the way that `docs/upgrade.md` gives."""

from contextlib import ExitStack
from pathlib import Path

from rehearsal.aws import Account
from rehearsal.deploy import WITHOUT_CLOCK, deploy, prepare
from rehearsal.emulator import emulator
from rehearsal.jenkins import jenkins
from rehearsal.machines import machines
from rehearsal.operator import Operator
from rehearsal.plan import POOL, SPOT_POOL, Plan, fleet_file
from rehearsal.project import build, clone, tree_of
from rehearsal.releases import NEWEST_RELEASE, Release
from rehearsal.report import Report
from rehearsal.scene import Scene

_OLD_JOBS, _NEW_JOBS, _BACK_JOBS = ("old-1", "old-2"), ("new-1",), ("back-1", "back-2")
_WARM = "{min_agents: 2, max_agents: 3}"


def play(plan: Plan, report: Report) -> None:
    """Play it in an account of its own."""
    account, release = Account(plan), NEWEST_RELEASE
    with ExitStack() as stack:
        controller = stack.enter_context(jenkins(plan))
        stack.enter_context(emulator(plan))
        report.step(f"6 upgrade: from {release.version} to today's version, and back")
        old, today = tree_of(plan, release), clone(plan, "today")
        build(plan, old, fleet_file(controller.url, warm_pool=_WARM))
        report.note(f"built {release.version}")
        build(plan, today, fleet_file(controller.url, warm_pool=_WARM))
        prepare(account, controller.secret)
        deploy(account, old, **WITHOUT_CLOCK)
        report.check(f"{release.version} is deployed", account.stack()["StackStatus"], "CREATE_COMPLETE")
        instances = stack.enter_context(machines(account, controller.live.java, old))
        scene = Scene(plan, report, account, controller, Operator(plan, old), instances)
        scene.queue(*_OLD_JOBS)
        scene.until_at_work(*_OLD_JOBS)
        _go_forward(scene, today)
        _go_back(scene, old, release)
        report.check("builds that were lost", controller.lost(), [])
        report.check("problems of the rehearsal's machines", instances.problems, [])


def _go_forward(scene: Scene, today: Path) -> None:
    report = scene.report
    records = scene.records()
    deploy(scene.account, today, **WITHOUT_CLOCK)
    scene.operator, scene.machines.agents = Operator(scene.plan), today
    report.check("today's version is deployed", scene.account.stack()["StackStatus"], "UPDATE_COMPLETE")
    scene.passes()
    report.check("records of the agents at work", {name: state for name, state in scene.records().items() if name in records}, records)
    scene.account.invoke("PublishMetrics")
    status = scene.operator.ask("status")["status"]
    report.check("status: what could not be read", (status["unread"], status["problems"]), ([], {}))
    report.check("builds go on", scene.results(*_OLD_JOBS), dict.fromkeys(_OLD_JOBS))
    scene.until_ended(*_OLD_JOBS, subject="builds that began before the upgrade")
    scene.queue(*_NEW_JOBS)
    scene.until_ended(*_NEW_JOBS, subject="builds after the upgrade")


def _go_back(scene: Scene, old: Path, release: Release) -> None:
    report = scene.report
    scene.until("an agent is stopped", lambda: bool(scene.machines.stopped))
    scene.operator.run("set", POOL, "--max-stopped", "0", "--minutes", "10080")
    scene.queue(*_BACK_JOBS)
    scene.until_at_work(*_BACK_JOBS)
    scene.operator.run("hold", "--pool", SPOT_POOL, "--until-resumed", "--reason", "rehearsal")
    scene.operator.run("reserve", POOL, "--for", "alice", "--hours", "8")
    scene.until("reservations", lambda: [bool(entry["node"]) for entry in scene.operator.ask("reservations")["reservations"]], [True])
    reserved = scene.operator.ask("reservations")["reservations"][0]["instance_id"]
    scene.until("stopped agents are emptied", lambda: {"stopped", "stopping"} & set(scene.states()), set())
    deploy(scene.account, old, **WITHOUT_CLOCK)
    scene.operator, scene.machines.agents = Operator(scene.plan, old), old
    report.check(f"{release.version} is deployed again", scene.account.stack()["StackStatus"], "UPDATE_COMPLETE")
    scene.passes()
    shown = scene.operator.ask("status")
    report.check(f"{release.version} keeps the hold", [hold["pool"] for hold in shown["holds"]], [SPOT_POOL])
    report.check(f"{release.version} reads every record", shown["status"]["unread"], [])
    report.check("builds go on", scene.results(*_BACK_JOBS), dict.fromkeys(_BACK_JOBS))
    scene.until_ended(*_BACK_JOBS, subject="builds that began before the way back")
    scene.until("instances but for the reserved one", lambda: list(scene.account.instances()), [reserved])
    scene.operator.run("release", _node_of(reserved), "--for", "alice")
    scene.until("instances in the end", lambda: list(scene.account.instances()), [])
    scene.until("nodes in the end", scene.jenkins.nodes, {})
    scene.until("records in the end", scene.records, {})


def _node_of(instance: str) -> str:
    return f"{POOL}-{instance.removeprefix('i-')}"
