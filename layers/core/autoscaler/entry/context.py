"""The context that Lambda hands to a handler."""

from typing import Protocol


class Context(Protocol):
    """The part of Lambda's context that is used."""

    @property
    def aws_request_id(self) -> str:
        """Return the id of the invocation."""

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds until Lambda cuts the invocation off."""
