"""No log line ever holds a secret, and no line of it is missing what it must say."""

import json

from autoscaler_workbench.cli.demo import TOKEN
from autoscaler_workbench.fakes.world.jenkins.nodes import secret_of


def test_no_log_line_of_a_whole_life_holds_a_secret(life):
    assert life.log.count("\n") > 150
    secrets = {TOKEN: "the controller's token", "AWS_SECRET_ACCESS_KEY": "a key"} | {secret_of(node): node for node in life.nodes}
    assert len(secrets) > 4
    assert [what for secret, what in secrets.items() if secret in life.log] == []


def test_every_log_line_is_json_with_a_constant_event(life):
    lines = [json.loads(line) for line in life.log.splitlines()]
    assert {line["message"] for line in lines} <= {
        *(
            "pass",
            "step",
            "held",
            "measured",
            "registered",
            "registration_refused",
            "boot_failed",
            "block_ended",
            "graphs_read",
            "builds_at_risk",
            "set_aside",
        ),
        *(
            "node_exists",
            "controller_incomplete",
            "stale_tick",
            "operated",
            "event_refused",
            "build_ended",
            "no_job_shown",
            "notified",
            "interruption_noted",
        ),
    }
    assert all("Traceback" not in json.dumps(line) for line in lines)


def test_the_log_says_what_became_of_a_failed_boot(life):
    failed = [line for line in map(json.loads, life.log.splitlines()) if line["message"] == "boot_failed"]
    assert {line["console"] for line in failed} == {"no root device"}
