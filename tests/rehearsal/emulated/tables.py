"""Point-in-time recovery as DynamoDB documents it: a new table with the items of a moment. MiniStack copies those that are there now.

It takes a while, needs the recovery of its source, and gives the new table neither a time to live, a recovery nor a protection. DynamoDB
goes back to five minutes ago at the latest; here it is a second. A table of CloudFormation gets the recovery that its template asks for.
"""

import copy
import threading
import time
from collections import defaultdict
from functools import wraps

from ministack.core.responses import error_response_json
from ministack.services import dynamodb
from ministack.services.cloudformation import provisioners

_RESTORING_SECONDS, _LATEST_SECONDS = 5.0, 1.0
_writes = defaultdict(list)  # table -> each write: when, partition key, sort key, item (None: deleted)


def install() -> None:
    dynamodb._set_item = _noted(dynamodb._set_item)
    dynamodb._remove_item = _noted(dynamodb._remove_item)
    dynamodb._items_replaced = _noted_anew(dynamodb._items_replaced)
    dynamodb._restore_table_to_point_in_time = _as_it_was(dynamodb._restore_table_to_point_in_time)
    handler = provisioners._RESOURCE_HANDLERS["AWS::DynamoDB::Table"]
    handler["create"] = _with_recovery(handler["create"])


def _with_recovery(create):
    @wraps(create)
    def created(logical_id, properties, stack, *rest, **options):
        made = create(logical_id, properties, stack, *rest, **options)
        asked = properties.get("PointInTimeRecoverySpecification", {})
        dynamodb._pitr_settings[made[0]] = bool(asked.get("PointInTimeRecoveryEnabled"))
        return made

    return created


def _noted(write):
    @wraps(write)
    def note(table, partition, key, *item):
        before = write(table, partition, key, *item)
        _writes[table["TableName"]].append((time.time(), partition, key, copy.deepcopy(item[0]) if item else None))
        return before

    return note


def _noted_anew(replaced):
    """Note all items of a table whose items were put there at once, as after a transaction that was undone."""

    @wraps(replaced)
    def note(table):
        replaced(table)
        now, name = time.time(), table["TableName"]
        gone = [(now, partition, key, None) for _, partition, key, _ in _writes[name]]
        there = [(now, partition, key, copy.deepcopy(item)) for partition, keys in table["items"].items() for key, item in keys.items()]
        _writes[name] += [*dict.fromkeys(gone), *there] if gone else there

    return note


def _as_it_was(restore):
    @wraps(restore)
    def answer(asked):
        source, target = asked.get("SourceTableName"), asked.get("TargetTableName")
        now = time.time()
        moment = now if asked.get("UseLatestRestorableTime") else float(asked.get("RestoreDateTime") or 0.0)
        if source in dynamodb._tables:
            if not dynamodb._pitr_settings.get(source):
                return error_response_json("PointInTimeRecoveryUnavailableException", f"{source} has no point-in-time recovery", 400)
            if not _writes[source] or not _writes[source][0][0] <= moment <= now - _LATEST_SECONDS:
                return error_response_json("InvalidRestoreTimeException", f"{moment} cannot be restored", 400)
        told = restore(asked)
        if told[0] == 200:
            _put_back(dynamodb._tables[target], source, moment)
        return told

    return answer


def _put_back(table, source, moment):
    items = {}
    for at, partition, key, item in _writes[source]:
        if at <= moment:
            items[partition, key] = item
    table["items"] = defaultdict(dict)
    for (partition, key), item in items.items():
        if item is not None:
            table["items"][partition][key] = copy.deepcopy(item)
    dynamodb._items_replaced(table)
    table["TableStatus"] = "CREATING"
    timer = threading.Timer(_RESTORING_SECONDS, lambda: table.update(TableStatus="ACTIVE"))
    timer.daemon = True
    timer.start()
