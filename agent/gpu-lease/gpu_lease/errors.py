"""What a person is told in one line."""

from __future__ import annotations


class NotPossibleError(Exception):
    """The machine or the request does not allow it. ``code``: how the program ends, as sysexits.h numbers it."""

    def __init__(self, message: str, code: int = 69) -> None:
        super().__init__(message)
        self.code = code
