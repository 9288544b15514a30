"""Finds out whether people are still to be told what the last month cost."""

from autoscaler.domain.facts.metering import month_name
from autoscaler.domain.report.messages import month_before, write_summary
from autoscaler.domain.report.told import Message, Told
from autoscaler.domain.situation.situation import Situation
from autoscaler.errors import AutoscalerError
from autoscaler.ports import Ports


def last_month(ports: Ports, told: Told, situation: Situation) -> tuple[str, Message | None]:
    """Return the month that people know of once this message is sent, if there is one.

    A month is reported once all of it is in its item: the first look of the next one adds the rest. Until then each look asks again.
    """
    last = month_before(month_name(situation.now))
    if ports.notifier is None or told.month >= last:
        return told.month, None
    try:
        open_month = ports.costs.batch().month
        if open_month and open_month <= last:
            return told.month, None
        month, before = ports.costs.month(last), ports.costs.month(month_before(last))
    except AutoscalerError as error:
        ports.log("month_not_told", month=last, error=f"{type(error).__name__}: {error}")
        return told.month, None
    return last, write_summary(month, before, situation.fleet, ports.notifier.runbooks)
