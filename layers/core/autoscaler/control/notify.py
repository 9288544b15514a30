"""Tells people what begins and what is over, each once: sent first, remembered then, so that a message may come twice and is never lost."""

from collections.abc import Sequence
from dataclasses import replace

from autoscaler.control.month_summary import last_month
from autoscaler.domain.report.messages import ABOUT, is_worth_saving, untold, write_messages
from autoscaler.domain.report.problems import Problem, nobody_is_told
from autoscaler.domain.report.told import Message, Told
from autoscaler.domain.situation.situation import Situation
from autoscaler.errors import AutoscalerError
from autoscaler.ports import Notifier, Ports

# A message that nobody answers takes so long: two attempts of 13 s. With less time left it is sent at the next look.
SEND_SECONDS = 27.0


def notify(
    ports: Ports, told: Told, situation: Situation, ends_at: float, problems: Sequence[Problem] = (), now_seen: Told | None = None
) -> int:
    """Send what is to be told; return how many messages that were. What fails, or comes too late, is sent at the next look.

    ``problems``: what people are told of beside what is told always; ``now_seen``: what is remembered of these.
    """
    if ports.notifier is None and now_seen is None:
        return 0
    after, messages = _to_tell(ports, told, situation, problems, now_seen)
    failed = {message.about for message in messages if not _sent(ports, ports.notifier, message, ends_at)}
    # What could not be sent stays untold, and keeps nothing else from being remembered as told.
    after = replace(after, troubles=untold(told, after, failed), month=told.month if ABOUT + after.month in failed else after.month)
    if len(messages) > len(failed) or is_worth_saving(told, after):
        try:
            ports.state.save_told(after)
        except AutoscalerError as error:
            ports.log("message_failed", error=f"{type(error).__name__}: {error}")
    return len(messages) - len(failed)


def _to_tell(
    ports: Ports, told: Told, situation: Situation, problems: Sequence[Problem], now_seen: Told | None
) -> tuple[Told, list[Message]]:
    """Return what people know once all of these messages are sent."""
    after, messages = write_messages(now_seen or told, situation, ports.notifier.runbooks if ports.notifier else "", problems)
    month, summary = last_month(ports, told, situation)
    return replace(after, month=month), [*messages, *([summary] if summary else [])]


def why_nobody_is_told(notifier: Notifier | None) -> str:
    """Say that messages reach nobody, and what to do about it; "" if somebody gets them. `TransientError`."""
    return nobody_is_told(notifier.subscriptions() if notifier else ())


def _sent(ports: Ports, notifier: Notifier | None, message: Message, ends_at: float) -> bool:
    if notifier is None or ends_at - ports.clock() < SEND_SECONDS:
        return False
    try:
        notifier.send(message)
    except AutoscalerError as error:
        ports.log("message_failed", subject=message.subject, error=f"{type(error).__name__}: {error}")
        return False
    ports.log("notified", subject=message.subject)
    return True
