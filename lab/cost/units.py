"""What DynamoDB and SQS bill for a request, from what was in it.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
"""

import math
from collections.abc import Mapping
from typing import Any

KB = 1024
SQS_CHUNK_BYTES = 64 * KB

Image = Mapping[str, Any]  # an item in DynamoDB's spelling

# The attributes that the open-orders index holds: its keys and the table's.
INDEX_KEYS = ("open_shard", "open_since")


def item_bytes(item: Image) -> int:
    """Bytes of an item, as DynamoDB counts them: names and values."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "N":
            return len(content.lstrip("-").replace(".", "").strip("0")) // 2 + 2  # a byte for two digits, and one
        case "B":
            return len(content)
        case "L":
            return 3 + sum(1 + _value_bytes(element) for element in content)
        case "M":
            return 3 + sum(1 + len(name.encode()) + _value_bytes(element) for name, element in content.items())
    return 1  # BOOL, NULL


def write_units(before: Image | None, after: Image | None) -> int:
    """Units of one plain write: the larger of the item before and after, in whole KB. A refused one is billed too."""
    return max(1, *(math.ceil(item_bytes(item or {}) / KB) for item in (before, after)))


def read_units(item: Image | None) -> int:
    """Units of one strongly consistent read, in whole 4 KB."""
    return max(1, math.ceil(item_bytes(item or {}) / (4 * KB)))


def index_units(before: Image | None, after: Image | None) -> int:
    """Units that a write costs in the open-orders index: an entry that moves is deleted and put.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html#GSI.ThroughputConsiderations.Writes
    """
    was, now = (_entry(item) for item in (before, after))
    return 0 if was == now else (was is not None) + (now is not None)


def _entry(item: Image | None) -> tuple[str, ...] | None:
    if item is None or not all(key in item for key in INDEX_KEYS):
        return None
    return tuple(str(item[key]) for key in INDEX_KEYS)


def sqs_requests(payload_bytes: int) -> int:
    """Requests that a call with this payload is billed as. https://aws.amazon.com/sqs/pricing/"""
    return max(1, math.ceil(payload_bytes / SQS_CHUNK_BYTES))
