"""Counts of what passes did: the metrics of a scaling function."""

from collections.abc import Sequence

from autoscaler.control.report import Outcome, Report, Result, boots_failed, done, starts_failed
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Cordon, Launch, LeaveLost, Rotate, RunAgain, Start, Stop, Terminate
from autoscaler.domain.facts.reasons import Reason


def counts_of(reports: Sequence[Report]) -> dict[str, int]:
    """Count what passes did, each under the name of its metric."""
    results = [result for report in reports for result in report.results]
    held = {(h.controller, h.pool, h.reason) for report in reports for h in report.plan.held}
    return {
        "Launches": done(results, Launch),
        "Starts": done(results, Start),
        "Rotations": done(results, Rotate),
        "StartsFailed": sum(sum(starts_failed(report).values()) for report in reports),
        "Stops": done(results, Stop),
        "LaunchesHeld": sum(reason in _HOLDS_LAUNCHES for _, _, reason in held),
        "Terminations": done(results, Terminate),
        "BootFailures": sum(len(boots_failed(report)) for report in reports),
        "Quarantines": _quarantines(results),
        "Ec2Disagrees": any(reason is Reason.EC2_DISAGREES for _, _, reason in held),
        "SweepsStopped": sum(reason is Reason.SWEEP_LIMIT for _, _, reason in held),
        "BuildsRunAgain": done(results, RunAgain),
        # Nobody need see to a build that a person has started again.
        "BuildsLeft": done([one for one in results if one.step.reason is not Reason.REPEATED_BY_PERSON], LeaveLost),
        "LeaseHeld": 0,
    }


def _quarantines(results: list[Result]) -> int:
    cordons = [result.step for result in results if isinstance(result.step, Cordon) and result.outcome is Outcome.DONE]
    return sum(step.mark.kind is MarkClass.QUARANTINE and step.reason is not Reason.LABELS_TAKEN for step in cordons)


_HOLDS_LAUNCHES = {
    Reason.HELD,
    Reason.FROZEN,
    Reason.MAX_AGENTS,
    Reason.TEAM_MAX_AGENTS,
    Reason.FLEET_MAX_AGENTS,
    Reason.LAUNCH_RATE,
    Reason.USD_PER_HOUR,
    Reason.USD_PER_MONTH,
    Reason.NOT_ITS_TURN,
    Reason.NO_OFFERING,
    Reason.POOL_PAUSED,
    Reason.ACCOUNT_THROTTLED,
    Reason.BREAKER_OPEN,
    Reason.ONE_TRIAL,
    Reason.CANARY,
}
