"""Writes to DynamoDB that may lose a race, or be throttled: a transaction that is cancelled for either reason has written nothing.

The SDK repeats a single write that is throttled, and never a cancelled transaction.
"""

import re
from collections.abc import Callable
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from autoscaler.adapters.aws import code_of
from autoscaler.errors import ConflictError, TransientError, UnansweredError

T = TypeVar("T")

_CANCELLED = "TransactionCanceledException"
_LOST_THE_RACE = {"ConditionalCheckFailedException", "TransactionConflictException", "ConditionalCheckFailed", "TransactionConflict"}
_THROTTLED = {"ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded"}
_THROTTLED |= {"ThrottlingException", "ProvisionedThroughputExceededException", "Throttling"}
_REASONS = re.compile(r"\[([A-Za-z, ]+)\]")  # in the message, where an answer names them nowhere else
# Before each further try of a transaction that was throttled.
PAUSES = (0.1, 0.4)


def lost_the_race(error: ClientError) -> bool:
    """Tell whether a condition did not hold, or another transaction wrote the same items."""
    return bool({code_of(error), *_reasons_of(error)} & _LOST_THE_RACE)


def problem_of(error: ClientError, action: str, conflict: str) -> TransientError:
    """Name an error for the loop. ``conflict``: what is said if somebody else was quicker, also if some of it was throttled, too."""
    if lost_the_race(error):
        return ConflictError(conflict)
    codes = [code for code in (code_of(error), *_reasons_of(error)) if code in _THROTTLED]
    if codes:
        return TransientError(f"{action}: DynamoDB throttled it ({codes[0]}), and nothing was written")
    reasons = ", ".join(_reasons_of(error))
    return TransientError(f"{action}: {code_of(error)}" + (f" ({reasons})" if reasons else ""))


def written(write: Callable[[], T], sleep: Callable[[float], None], conflict: str) -> T:
    """Write, and write again where a transaction was cancelled for throttling alone; errors as `problem_of`, or `UnansweredError`."""
    before = ""
    for pause in (*PAUSES, None):
        try:
            return write()
        except ClientError as error:
            if pause is None or not _may_be_tried_again(error):
                raise problem_of(error, "DynamoDB", conflict) from error
        except BotoCoreError as error:
            raise UnansweredError(f"DynamoDB {before}did not answer ({type(error).__name__})") from error
        before = "throttled a write, was asked again, and "
        sleep(pause)
    raise AssertionError("the last try returns or raises")


def at_once(_seconds: float) -> None:
    """Wait for nothing."""


def _may_be_tried_again(error: ClientError) -> bool:
    return code_of(error) == _CANCELLED and not lost_the_race(error) and bool(set(_reasons_of(error)) & _THROTTLED)


def _reasons_of(error: ClientError) -> list[str]:
    """Return why a transaction was cancelled: one reason an item, without those items that had none."""
    answer: Any = error.response
    reasons = [str(reason.get("Code")) for reason in answer.get("CancellationReasons") or ()]
    if not reasons and (named := _REASONS.search(str(answer.get("Error", {}).get("Message", "")))):
        reasons = [reason.strip() for reason in named[1].split(",")]
    return [reason for reason in reasons if reason not in {"None", ""}]
