"""What Lambda hands to a handler beside the event."""

from typing import Protocol


class Context(Protocol):
    """What of Lambda's context is used."""

    @property
    def aws_request_id(self) -> str:
        """The invocation's id."""

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda cuts the invocation off."""
