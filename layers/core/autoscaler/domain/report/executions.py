"""Whether Lambda's concurrent executions are enough, and how many of them a public webhook may take."""

from dataclasses import dataclass

# Three scheduled functions, one that a person waits for, and agents that register a few at a time.
_WANTED = 50
# What Lambda keeps for functions that reserve nothing: https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
_KEPT_UNRESERVED = 100
# A call takes a fraction of a second; that many at once is more than all controllers of a fleet send.
_FOR_THE_WEBHOOK = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Executions:
    """Executions at once in the account's region; ``unreserved``: those that no function reserves.

    ``webhook``: those that are reserved for the webhook, and no more of which it gets; 0 without a limit, None without a webhook.
    """

    limit: int
    unreserved: int
    webhook: int | None

    @property
    def enough(self) -> bool:
        """Tell whether they are enough for all functions of a fleet."""
        return self.limit >= _WANTED

    @property
    def advice_on_webhook(self) -> str:
        """Say how to keep the webhook's callers from taking all executions; empty if they cannot."""
        if self.webhook != 0:
            return ""
        risk = f"anybody may call its URL, and {self.unreserved} calls at once leave none for scale_up and register_agent"
        reservable = min(_FOR_THE_WEBHOOK, self.unreserved - _KEPT_UNRESERVED)
        if reservable > 0:
            return f"{risk}: deploy with WebhookConcurrency={reservable}"
        more = self.limit + _FOR_THE_WEBHOOK - (self.unreserved - _KEPT_UNRESERVED)
        return f"{risk}; Lambda keeps {_KEPT_UNRESERVED} unreserved: ask for {more}, then deploy with WebhookConcurrency={_FOR_THE_WEBHOOK}"
