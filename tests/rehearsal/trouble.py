"""Step 4: what goes wrong in an account, one after another, under agents at work."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from rehearsal.orders import instances_of
from rehearsal.plan import ACCOUNT, FLEET, SPOT_LABEL, SPOT_POOL
from rehearsal.scene import Scene

_INTERRUPTED, _OUTSIDE, _CUT_OFF = "interrupted", "outside", "cut-off"
_DURING_THROTTLING = "during-throttling"


def trouble(scene: Scene) -> None:
    """Meet each trouble, and see that no build and no machine is lost by it that AWS did not take."""
    report = scene.report
    report.step("4 trouble: interruption, termination, cut-off, alarm, budget, throttling")
    with _subscriber(scene) as messages:
        gone = {_interrupt(scene), _terminate_from_outside(scene)}
        _cut_off(scene)
        _ring(scene, messages)
        _spend_the_budget(scene)
        scene.until_at_work(_CUT_OFF, subject="cut off: the job's agent at work")
        report.check("cut off: instances for one job", len(instances_of(scene, SPOT_POOL)), 1)
        scene.until_ended(_CUT_OFF, subject="cut off: builds")
        scene.jenkins.queued[_OUTSIDE] += 1  # the autoscaler starts the lost build again
        scene.until_ended(_OUTSIDE, subject="from outside: the lost build was started again")
        _throttle(scene)
    scene.until("nodes of instances that EC2 took", lambda: gone & scene.jenkins.nodes().keys(), set())
    report.check("builds that were lost", [text.split(":")[0] for text in scene.jenkins.lost()], [f"{_OUTSIDE} #1"])


def _interrupt(scene: Scene) -> str:
    """Return the node of a spot instance that EC2 took back once its build had ended."""
    scene.queue(_INTERRUPTED, label=SPOT_LABEL)
    scene.until_at_work(_INTERRUPTED, subject="interruption: the build has begun")
    node = scene.jenkins.nodes_by_job()[_INTERRUPTED]
    instance = instance_of(node)
    scene.account.announce("aws.ec2", "EC2 Spot Instance Interruption Warning", {"instance-id": instance, "instance-action": "terminate"})
    scene.report.until("interruption: the node takes no more builds", lambda: _mark(scene, node).startswith("autoscaler:"))
    scene.until_ended(_INTERRUPTED, subject="interruption: builds")
    scene.account.ec2.terminate_instances(InstanceIds=[instance])
    return node


def _terminate_from_outside(scene: Scene) -> str:
    """Return the node of an instance that somebody ended under a build."""
    scene.queue(_OUTSIDE)
    scene.until_at_work(_OUTSIDE, subject="from outside: the build has begun")
    scene.passes()  # no build is known to be lost that no pass has seen
    node = scene.jenkins.nodes_by_job()[_OUTSIDE]
    scene.account.ec2.terminate_instances(InstanceIds=[instance_of(node)])
    scene.report.until("from outside: the build is lost", lambda: scene.jenkins.lost() != [])
    return node


def _cut_off(scene: Scene) -> None:
    """Cut scale_up off once it has written its launch down. Its lease lasts on for a minute, in which no pass may act."""
    scene.until("cut off: instances before", lambda: instances_of(scene, SPOT_POOL), [])
    scene.queue(_CUT_OFF, label=SPOT_LABEL)
    _make_trouble(scene, {"cut_off": {"function": scene.account.function("ScaleUp"), "writes": "intent#"}})
    before = _launches(scene)
    _, error = scene.account.try_to_invoke("ScaleUp")
    scene.report.check("cut off: the function's error", error, "Unhandled")
    scene.report.check("cut off: launches that it had written down", len(_launches(scene) - before), 1)
    _make_trouble(scene, {})


def _launches(scene: Scene) -> set[str]:
    return {intent["item"] for intent in scene.account.items("intent#")}


def _ring(scene: Scene, messages: list[dict[str, Any]]) -> None:
    """Put something unreadable into the state, which is a problem at once: message and alarm reach a subscriber over HTTP."""
    table = scene.account.outputs()["State"]
    item = {
        "fleet": {"S": FLEET},
        "item": {"S": "record#i-0unreadable"},
        "state": {"S": "registered"},
        "body": {"S": "{"},
        "revision": {"N": "1"},
    }
    database = scene.account.client("dynamodb")
    database.put_item(TableName=table, Item=item)
    scene.account.invoke("PublishMetrics")
    # On a slow machine others may ring, too.
    scene.report.until("alarm: it rings", lambda: "ProblemsAlarm" in map(_alarm, messages))
    scene.report.until(
        "alarm: a message says why", lambda: any("state" in message["Message"] for message in messages if not _alarm(message))
    )
    scene.report.check("alarms: the command line lists it", "problems" in scene.operator.run("alarms").lower())
    database.delete_item(TableName=table, Key={"fleet": item["fleet"], "item": item["item"]})


def _alarm(message: dict[str, Any]) -> str:
    """The logical id of the alarm that a message is about; empty if it is one of the autoscaler's own."""
    text = message["Message"]
    body = json.loads(text) if text.startswith("{") else {}
    return body["AlarmName"].split("-")[-2] if body.get("NewStateValue") == "ALARM" else ""


def _spend_the_budget(scene: Scene) -> None:
    text = f"AWS Budget Notification\nAWS Account {ACCOUNT}\n"
    scene.account.client("sns").publish(TopicArn=scene.account.resources()["BudgetTopic"][1], Subject="AWS Budgets", Message=text)
    holds = lambda: [hold["by"] for hold in scene.operator.ask("status")["holds"]]  # noqa: E731
    scene.report.until("budget: holds", holds, ["aws-budget"])
    scene.operator.run("resume", "--budget")
    scene.report.check("budget: holds after resume", holds(), [])


def _throttle(scene: Scene) -> None:
    scene.queue(_DURING_THROTTLING)
    scene.until_at_work(_DURING_THROTTLING, subject="throttling: the build has begun")
    at_work = instance_of(scene.jenkins.nodes_by_job()[_DURING_THROTTLING])
    before = set(scene.account.instances())
    _make_trouble(scene, {"throttled": ["Query", "PutItem", "GetItem", "TransactWriteItems", "DeleteItem"]})
    failed = {name: scene.account.try_to_invoke(name)[1] for name in ("ScaleUp", "ScaleDown")}
    scene.report.check("throttling: errors of the functions", failed, dict.fromkeys(failed, "Unhandled"))
    output = scene.operator.run("status", status=1)
    scene.report.check("throttling: status says it in one line", len(output.splitlines()), 1)
    _make_trouble(scene, {})
    scene.passes()
    after = set(scene.account.instances())
    scene.report.check("throttling: instances that were launched since", sorted(after - before), [])
    scene.report.check("throttling: the agent at work is still there", at_work in after)
    scene.until_ended(_DURING_THROTTLING, subject="throttling: builds")


def _make_trouble(scene: Scene, wanted: dict[str, Any]) -> None:
    scene.plan.trouble_file.write_text(json.dumps(wanted), encoding="utf-8")


def instance_of(node: str) -> str:
    return f"i-{node.rpartition('-')[2]}"


def _mark(scene: Scene, name: str) -> str:
    return next((node.reason for node in scene.jenkins.live.look().nodes if node.name == name), "")


@contextmanager
def _subscriber(scene: Scene) -> Iterator[list[dict[str, Any]]]:
    """A person's program that the alarm topic sends to over HTTP; it confirms its subscription as AWS' documents say."""
    topic, sns = scene.account.outputs()["Alarms"], scene.account.client("sns")
    messages: list[dict[str, Any]] = []

    class Subscriber(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()
            if body["Type"] == "SubscriptionConfirmation":
                sns.confirm_subscription(TopicArn=topic, Token=body["Token"])
            else:
                messages.append(body)

    server = ThreadingHTTPServer(("127.0.0.1", scene.plan.port + 4), Subscriber)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        sns.subscribe(TopicArn=topic, Protocol="http", Endpoint=f"http://127.0.0.1:{server.server_address[1]}/")

        def confirmed() -> bool:
            rows = sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]
            return all(row["SubscriptionArn"] != "PendingConfirmation" for row in rows)

        scene.report.until("subscription: confirmed", confirmed)
        yield messages
    finally:
        server.shutdown()
        server.server_close()
