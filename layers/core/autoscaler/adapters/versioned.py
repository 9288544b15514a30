"""Items of the state table that are replaced only in the version that was read: how they are written, and read."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from autoscaler.adapters.kept import Kept, UnknownOfItem, UnknownOfItems
from autoscaler.adapters.transactions import problem_of
from autoscaler.errors import UnansweredError

T = TypeVar("T")


def put_of(table: str, key: tuple[str, str], body: bytes, version: int, expires_at: float) -> dict[str, Any]:
    """Return the request that replaces an item of this version, 0 where there is none yet. ``key``: partition and item."""
    content = {
        "fleet": {"S": key[0]},
        "item": {"S": key[1]},
        "body": {"B": body},
        "version": {"N": str(version + 1)},
        "expiration": {"N": str(int(expires_at))},
    }
    known = {"ExpressionAttributeValues": {":version": {"N": str(version)}}, "ConditionExpression": "version = :version"}
    condition = known if version else {"ConditionExpression": "attribute_not_exists(fleet)"}
    return {"TableName": table, "Item": content, **condition}


@contextmanager
def writing(action: str, what: str) -> Iterator[None]:
    """Translate boto3's errors of such a write; `ConflictError` where somebody else was quicker. ``what`` is written."""
    try:
        yield
    except ClientError as error:
        raise problem_of(error, action, f"{what} was written by somebody else meanwhile") from error
    except BotoCoreError as error:
        raise UnansweredError(f"{action} was not answered ({type(error).__name__})") from error


def version_of(item: Any) -> int:
    """Return the version of an item that was read."""
    return int(item["version"]["N"])


def unpacked(kept: Kept[T], item: Any, unknown_data: UnknownOfItems) -> T | None:
    """Read what an item holds, and note what else it holds; None of what another version of the autoscaler wrote: it begins again."""
    try:
        value, unknown = kept.load(zlib.decompress(item["body"]["B"]))
        unknown_data.note(item["item"]["S"], UnknownOfItem(version_of(item), unknown))
    except (ValueError, KeyError, zlib.error):
        return None
    return value
