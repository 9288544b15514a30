"""The state as it was at a moment, in another table: the commands of `docs/restore.md`, with agents at work."""

import time
from datetime import UTC, datetime

from packaging_root import ROOT
from rehearsal.deploy import deploy
from rehearsal.plan import POOL, SPOT_POOL
from rehearsal.scene import Scene
from support.aws_commands import read_call
from support.page_commands import Command, commands_of

_PAGE = ROOT / "docs" / "restore.md"
_TABLE, _MOMENT, _OWN = "autoscaler-state-2", "2026-11-28T09:00:00Z", "STATE-TABLE"  # as the page writes them
_BEFORE, _AFTER = ("first",), ("second", "third")  # the moment; jobs that were made for the first step


def restore(scene: Scene) -> None:
    """Lose all that is remembered, after an agent was launched that the restored table does not know; no build is lost."""
    report, account, lost_before = scene.report, scene.account, scene.jenkins.lost()
    report.step("restore: the state table as it was at a moment, under another name")
    scene.operator.run("set", POOL, "--max-stopped", "0", "--minutes", "60")  # an agent of today for each job
    scene.queue(*_BEFORE)
    scene.until_at_work(*_BEFORE, subject="agents at work at the moment")
    scene.operator.run("hold", "--pool", SPOT_POOL, "--until-resumed", "--reason", "rehearsal")
    known = {name: state for name, state in scene.records().items() if f"{POOL}-{name.removeprefix('i-')}" in scene.nodes_of(*_BEFORE)}
    moment = datetime.now(UTC)
    time.sleep(1)
    scene.operator.run("set", POOL, "--min-agents", "3", "--max-stopped", "0", "--minutes", "60")  # no job waits behind another one
    scene.queue(*_AFTER)
    scene.until_at_work(*_BEFORE, *_AFTER, subject="agents at work since")
    own = account.outputs()["State"]
    _lose_everything(scene, own)
    for command in commands_of(_PAGE):
        _play(scene, command, own, moment)
    functions = [name.removesuffix("Function") for name in account.resources() if name.endswith("Function")]
    report.check("tables of the functions", {account.table_of(name) for name in functions}, {_TABLE})
    report.check("records of the moment", {name: state for name, state in scene.records().items() if name in known}, known)
    report.check("holds of the moment", [hold["pool"] for hold in scene.operator.ask("status")["holds"]], [SPOT_POOL])
    at_work = {f"i-{node.removeprefix(f'{POOL}-')}" for node in scene.nodes_of(*_BEFORE, *_AFTER)}
    scene.until("records of agents that the table did not know", lambda: at_work - scene.records().keys(), set())
    status = scene.operator.ask("status")["status"]
    report.check("status: what could not be read", (status["unread"], status["problems"]), ([], {}))
    report.check("builds go on", scene.results(*_BEFORE, *_AFTER), dict.fromkeys((*_BEFORE, *_AFTER)))
    scene.until_ended(*_BEFORE, *_AFTER)
    report.check("builds that were lost since this step began", [build for build in scene.jenkins.lost() if build not in lost_before], [])
    scene.operator.run("resume", "--pool", SPOT_POOL)
    scene.operator.run("set", POOL)


def _lose_everything(scene: Scene, table: str) -> None:
    """Delete every item of the fleet, as a script by mistake does."""
    items = scene.account.client("dynamodb")
    for page in items.get_paginator("scan").paginate(TableName=table):
        for item in page["Items"]:
            items.delete_item(TableName=table, Key={key: item[key] for key in ("fleet", "item")})
    scene.report.note("every item of the fleet was deleted")


def _play(scene: Scene, command: Command, own: str, moment: datetime) -> None:
    """Run a command of the page. The schedules stay off: from here on the story invokes the functions by hand."""
    if command.program == "sam":
        given = dict(word.split("=") for word in command.words if "=" in word)
        if given == {"ScheduleState": "ENABLED"}:
            return
        deploy(scene.account, scene.plan.folder / "today", **(given | {"ScheduleState": "DISABLED", "LookEverySeconds": "60"}))
        scene.report.check(f"deployed with {', '.join(given)}", scene.account.stack()["StackStatus"], "UPDATE_COMPLETE")
    elif command.program == "aws":
        _ask_aws(scene, [{_OWN: own, _MOMENT: moment.isoformat()}.get(word, word) for word in command.words])
    elif command.program == "autoscaler":
        scene.operator.run(*command.words, status=int(command.words[0] == "doctor"))  # the emulator answers not all it asks


def _ask_aws(scene: Scene, words: list[str]) -> None:
    call, client = read_call(words), scene.account.client("dynamodb")
    assert call is not None, f"{words}: is no call of DynamoDB"
    if call.waits:
        scene.report.until(" ".join(words), lambda: client.describe_table(**call.parameters)["Table"]["TableStatus"], "ACTIVE")
        return
    getattr(client, call.operation)(**call.parameters)
    scene.report.note(f"aws {' '.join(words)}")
