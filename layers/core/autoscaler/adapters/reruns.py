"""Implements the RerunStore port: an item for each lost build, in a partition of the state table that no pass reads as a whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from autoscaler.adapters.aws import translated
from autoscaler.adapters.kept import NOTHING, Kept, Unknown, UnknownOfItem, UnknownOfItems
from autoscaler.adapters.transactions import at_once, written
from autoscaler.domain.facts.started_builds import Rerun, RerunState

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

DAYS_KEPT = 90
_DAY_SECONDS = 86_400
_RERUN = Kept(Rerun)


@dataclass(frozen=True, slots=True)
class DynamoReruns:
    """What was answered for lost builds of one fleet. ``client`` makes the client at the first use."""

    client: Callable[[], DynamoDBClient]
    table: str
    fleet: str
    sleep: Callable[[float], None] = field(default=at_once, kw_only=True)  # before a throttled transaction is sent again
    _unknown: UnknownOfItems = field(default_factory=UnknownOfItems)

    def rerun(self, key: str) -> Rerun | None:
        """Read one item; what cannot be understood counts as left to a person, so that nothing is sent for it."""
        with translated("Query"):
            found = self.client().query(
                TableName=self.table,
                ConsistentRead=True,
                KeyConditionExpression="fleet = :fleet AND #item = :key",
                ExpressionAttributeNames={"#item": "item"},
                ExpressionAttributeValues={":fleet": {"S": self._partition}, ":key": {"S": key}},
            )["Items"]
        if not found:
            return None
        try:
            rerun, unknown = _RERUN.load(found[0]["body"]["S"])
        except (KeyError, ValidationError):
            controller, _, run = key.partition("#")
            return Rerun(
                controller=controller,
                run=run.rpartition("@")[0],
                began_at=0.0,
                state=RerunState.LEFT,
                times=0,
                on_demand=False,
                created_at=0.0,
                why="another version wrote it",
            )
        self._unknown.note(key, UnknownOfItem(unknown=unknown))
        return rerun

    def add_rerun(self, rerun: Rerun, *, holder: str) -> None:
        """Write a new item while the lease is the holder's, in one transaction."""
        key = {"fleet": {"S": self.fleet}, "item": {"S": "lease"}}
        lease = {
            "TableName": self.table,
            "Key": key,
            "ConditionExpression": "#owner = :owner",
            "ExpressionAttributeNames": {"#owner": "owner"},
            "ExpressionAttributeValues": {":owner": {"S": holder}},
        }
        new = {**self._put(rerun, NOTHING), "ConditionExpression": "attribute_not_exists(fleet)"}
        self._write(lambda: self.client().transact_write_items(TransactItems=[{"Put": new}, {"ConditionCheck": lease}]))  # type: ignore[typeddict-item]

    def change_rerun(self, rerun: Rerun, *, expected: RerunState) -> None:
        """Replace an item whose state is still that."""
        unknown = self._unknown.of(rerun.key, 0).unknown
        condition = {
            "ConditionExpression": "#state = :expected",
            "ExpressionAttributeNames": {"#state": "state"},
            "ExpressionAttributeValues": {":expected": {"S": str(expected)}},
        }
        self._write(lambda: self.client().put_item(**self._put(rerun, unknown), **condition))  # type: ignore[arg-type]

    @property
    def _partition(self) -> str:
        return f"{self.fleet}#reruns"

    def _put(self, rerun: Rerun, unknown: Unknown) -> dict[str, Any]:
        body = _RERUN.dump(rerun, unknown, exclude_defaults=True).decode()
        ends = int(rerun.created_at) + DAYS_KEPT * _DAY_SECONDS
        item = {
            "fleet": {"S": self._partition},
            "item": {"S": rerun.key},
            "state": {"S": str(rerun.state)},
            "body": {"S": body},
            "expiration": {"N": str(ends)},
        }
        return {"TableName": self.table, "Item": item}

    def _write(self, write: Callable[[], object]) -> None:
        written(write, self.sleep, "the lost build was answered for by somebody else meanwhile")
