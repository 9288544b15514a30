"""Who gets alarms and messages, and what to do if nobody does."""

from collections.abc import Sequence
from dataclasses import dataclass

_CURE = "set AlarmEmail and deploy, or subscribe to the stack's output Alarms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """An address that is to get alarms and messages. ``confirmed``: its owner agreed, so that it does."""

    address: str
    confirmed: bool


def nobody_is_told(subscriptions: Sequence[Subscription]) -> str:
    """Say that alarms reach nobody, and what to do about it; "" if at least one subscription is confirmed."""
    if any(subscription.confirmed for subscription in subscriptions):
        return ""
    if not subscriptions:
        return f"nobody receives the alarms: {_CURE}"
    addresses = ", ".join(sorted({subscription.address for subscription in subscriptions}))
    return f"nobody receives the alarms: open the link in the mail that AWS sent to {addresses}; without such a mail, {_CURE}"
