"""Logs (constant snake_case events with keyed facts, on Powertools' logger) and metrics of what was done."""

from functools import partial
from typing import Any

from aws_lambda_powertools import Logger

from autoscaler.control.outcomes import Outcome, Report, as_json
from autoscaler.domain.report.datum import Datum
from autoscaler.ports import Ports

# Powertools reads its service name and level from its own environment variables.
logger = Logger()


def log(event: str, **facts: Any) -> None:
    """Log one event."""
    logger.info(event, extra=facts)


def log_reports(function: str, reports: list[Report]) -> None:
    """Log each pass, each step that it only planned, and each thing that was held back. Steps that it took were logged one by one."""
    for report in reports:
        plan = as_json(report)
        log(
            "pass",
            function=function,
            pass_id=plan["pass_id"],
            dry_run=plan["dry_run"],
            steps=len(plan["steps"]),
            held=len(plan["held"]),
        )
        for step in (step for step in plan["steps"] if step["outcome"] == Outcome.PLANNED):
            log("step", pass_id=plan["pass_id"], **step)
        for held in plan["held"]:
            log("held", pass_id=plan["pass_id"], **held)


def send_metrics(ports: Ports, data: list[Datum]) -> None:
    """Send metrics of what was done; it is done, whether CloudWatch hears of it or not."""
    ports.is_done(partial(ports.metrics.publish, data, ports.clock()), "metrics_not_sent")
