"""Tells people what begins and what is over, each once: sent first, remembered then, so that a message may come twice and is never lost."""

from autoscaler.domain.report.messages import is_worth_saving, write_messages
from autoscaler.domain.report.told import Told
from autoscaler.domain.situation.situation import Situation
from autoscaler.errors import AutoscalerError
from autoscaler.ports import Ports


def notify(ports: Ports, told: Told, situation: Situation) -> int:
    """Send what is to be told; return how many messages that were. What fails is sent at the next look."""
    if ports.notifier is None:
        return 0
    after, messages = write_messages(told, situation, ports.notifier.runbooks)
    try:
        for message in messages:
            ports.notifier.send(message)
            ports.log("notified", subject=message.subject)
        if messages or is_worth_saving(told, after):
            ports.state.save_told(after)
    except AutoscalerError as error:
        ports.log("message_failed", error=f"{type(error).__name__}: {error}")
    return len(messages)
