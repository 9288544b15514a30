"""The stores of builds that people ordered and of builds that were lost, and the slots of looks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from math import ceil
from typing import Any

from autoscaler.adapters.aws import translated
from autoscaler.adapters.table import NEW, STATE, Form, Table, Write, WriteCondition, same
from autoscaler.domain.facts.metering import DAY_SECONDS
from autoscaler.domain.facts.started_builds import Rerun, RerunState, RunOrder
from autoscaler.errors import EventRefusedError, TransientError

# Implements the RunOrderStore port: open orders in one partition of the state table, those that ended in another one.
#
# An order that ended is kept under the time of its end, so that the last ones are one query; under its id stands only where that is.


DAYS_KEPT = 90
MOST_BYTES = 390_000  # of what is kept of one order, packed; an item holds 400 KB, its names and numbers included
MOST_BYTES_NEW = MOST_BYTES // 2  # the rest is for what is started for it: an order that is too large could not even be ended
_OPEN, _ENDED = "#open-runs", "#runs"
_ORDER = Form(RunOrder, is_short=True)


class DynamoRunOrders(Table):
    """The orders of one fleet. Each write is a transaction: one that the SDK sends twice loses no race against itself."""

    def open_orders(self) -> tuple[RunOrder, ...]:
        """Query their partition."""
        orders = self._readable(_OPEN, self.items(_OPEN, "id#"))
        return tuple(sorted(orders, key=lambda order: (order.created_at, order.id)))

    def order(self, order_id: str) -> RunOrder | None:
        """Look among the open ones first: one that ends in between is found among the others."""
        part, item = _OPEN, self.item((_OPEN, f"id#{order_id}"))
        if item is None and (place := self.item((_ENDED, f"id#{order_id}"))):
            part, item = _ENDED, self.item((_ENDED, place["at"]["S"]))
        if item is None:  # also if it is deleted just now, 90 days after its end
            return None
        if (order := self.load(_ORDER, part, item)) is None:
            raise TransientError(f"order {order_id}: another version of the autoscaler wrote it, and this one cannot read it")
        return order

    def ended(self, most: int) -> tuple[RunOrder, ...]:
        """Query backwards from the last one."""
        items = self.items(_ENDED, "at#", ScanIndexForward=False, Limit=most)
        return tuple(islice(self._readable(_ENDED, items), most))

    def add_order(self, order: RunOrder) -> None:
        """Write it where no order of this id is, be it open or ended."""
        put = self._put(order, NEW, None, MOST_BYTES_NEW)
        self.write(put, self.check((_ENDED, put.key[1]), NEW), has_token=True)

    def change_order(self, order: RunOrder) -> RunOrder:
        """Replace the item of this version; of one that ends the items move, all at once."""
        changed, is_same = replace(order, version=order.version + 1), same(version=order.version)
        put = self._put(changed, is_same, order.version)
        if changed.ended_at is None:
            self.write(put, has_token=True)
        else:
            moved = self._moved(changed, changed.ended_at, put)
            self.write(self.delete(put.key, is_same), *moved, has_token=True)
        return changed

    def _put(self, order: RunOrder, condition: WriteCondition, read: int | None, most: int = MOST_BYTES) -> Write:
        put = self.over((_OPEN, f"id#{order.id}"), _ORDER, order, condition, read, version=order.version)
        if (size := len(put.body)) > most:
            raise EventRefusedError(
                f"order {order.id}: {size:,} bytes in {len(order.parts)} runs; an order may take {most:,}: order less at once"
            )
        return put

    def _moved(self, order: RunOrder, ended_at: float, put: Write) -> Iterator[Write]:
        at, until = f"at#{ended_at:017.3f}#{order.id}", int(ended_at) + DAYS_KEPT * DAY_SECONDS
        yield self.put((_ENDED, at), until=until, body=put.body, version=order.version)
        yield self.put((_ENDED, put.key[1]), until=until, at=at)

    def _readable(self, part: str, items: Iterator[Any]) -> Iterator[RunOrder]:
        return (order for item in items if (order := self.load(_ORDER, part, item)))


# Implements the RerunStore port: an item for each lost build, in a partition of the state table that no pass reads as a whole.


_RERUNS = "#reruns"
_RERUN = Form(Rerun, is_short=True, is_packed=False)


class DynamoReruns(Table):
    """The answers for one fleet's lost builds."""

    def rerun(self, key: str) -> Rerun | None:
        """Read one item; what cannot be understood counts as left to a person, so that nothing is sent for it."""
        if (item := self.item((_RERUNS, key))) is None:
            return None
        controller, _, run = key.partition("#")
        return self.load(_RERUN, _RERUNS, item) or Rerun(
            controller=controller,
            run=run.rpartition("@")[0],
            began_at=0.0,
            state=RerunState.LEFT,
            times=0,
            on_demand=False,
            created_at=0.0,
            why="another version wrote it",
        )

    def add_rerun(self, rerun: Rerun, *, holder: str) -> None:
        """Write a new item while the lease is the holder's, in one transaction."""
        self.write(self._put(rerun, NEW, None), self.check((STATE, "lease"), same(owner=holder)))

    def change_rerun(self, rerun: Rerun, *, expected: RerunState) -> None:
        """Replace an item whose state is still that."""
        self.write(self._put(rerun, same(state=expected), 0))

    def _put(self, rerun: Rerun, condition: WriteCondition, read: int | None) -> Write:
        facts = {"state": rerun.state, "until": rerun.created_at + DAYS_KEPT * DAY_SECONDS}
        return self.over((_RERUNS, rerun.key), _RERUN, rerun, condition, read, **facts)


# Implements the LookSlots port: messages of SQS that come later, and a conditional write for each slot.


_AT_ONCE = 10  # SQS' most
_FORGOTTEN_SECONDS = 3600.0


class SqsSlots(Table):
    """One queue, and the part of the state table that no pass reads."""

    def __init__(self, queue: Callable[[], Any], url: str, client: Callable[[], Any], table: str, fleet: str) -> None:
        """``queue`` and ``client`` make clients at the first use."""
        super().__init__(client, table, fleet)
        self.queue, self.url = queue, url

    def announce(self, slots: Mapping[str, float], now: float) -> None:
        """Send a message for each slot, at most ten in a call; each comes as late as its slot is."""
        entries = [
            {"Id": str(number), "DelaySeconds": max(0, ceil(at - now)), "MessageBody": json.dumps({"slot": name, "at": at})}
            for number, (name, at) in enumerate(slots.items())
        ]
        for start in range(0, len(entries), _AT_ONCE):
            with translated("SendMessageBatch"):
                answer = self.queue().send_message_batch(QueueUrl=self.url, Entries=entries[start : start + _AT_ONCE])
            if answer.get("Failed"):
                raise TransientError(f"SendMessageBatch: {len(answer['Failed'])} messages were refused ({answer['Failed'][0]['Code']})")

    def take(self, slot: str, now: float) -> bool:
        """Write an item that is not there yet; it is forgotten within the hour."""
        return self.takes(self.put(("#looks", slot), NEW, until=now + _FORGOTTEN_SECONDS))
