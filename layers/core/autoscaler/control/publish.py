"""Publishes what one look measured, and tells people of what begins and ends."""

from dataclasses import replace

from autoscaler.control.invocation import Invocation
from autoscaler.control.measure import Measured
from autoscaler.control.notify import notify
from autoscaler.domain.report.datum import COUNT, data_of_notes, lines_of, one, places_of_notes
from autoscaler.domain.report.limits import places_of
from autoscaler.domain.report.metrics import heartbeat
from autoscaler.domain.report.problems import Judged, Thresholds, facts_of, judge, problems_datum, rules
from autoscaler.ports import Ports


def publish_all(ports: Ports, fleet: str, measured: Measured, invocation: Invocation) -> int:
    """Send every metric, by pool and controller, too, for an alarm each to watch; return how many there were."""
    try:
        return ports.metrics.publish([*measured.data, heartbeat(fleet, "publish_metrics")], ports.clock())
    finally:
        # Last, since a topic that does not answer takes its time; and whether or not the metrics could be sent.
        notify(ports, measured.told, measured.situation, invocation.ends_at)


def publish_essential(ports: Ports, fleet: str, measured: Measured, invocation: Invocation, thresholds: Thresholds) -> int:
    """Send few metrics, log the rest, and judge here what an alarm each would; return how many metrics were sent."""
    judged = judge_look(fleet, measured, thresholds)
    for event, facts in lines_of(measured.data):
        ports.log(event, **facts)
    for problem in judged.began:
        ports.log("problem", **facts_of(problem))
    beat = one("Heartbeat", 1, COUNT, (("Fleet", fleet),))
    problems = [problems_datum(fleet, judged)] if judged.ringing else []  # a metric is billed by the hours in which it is sent
    try:
        return ports.metrics.publish([*measured.data, beat, *problems], ports.clock())
    finally:
        told = replace(measured.told, spans=judged.spans)
        notify(ports, measured.told, measured.situation, invocation.ends_at, judged.problems, told)


def judge_look(fleet: str, measured: Measured, thresholds: Thresholds) -> Judged:
    """Judge what one look measured, and what the passes noted."""
    situation = measured.situation
    data = [*measured.data, *data_of_notes(fleet, measured.passes, situation.now)]
    places = places_of(situation, measured.data) | places_of_notes(measured.passes)
    return judge(measured.told, rules(thresholds), data, places, situation.now)
