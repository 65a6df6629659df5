"""What DynamoDB and SQS bill for a request."""

from typing import Any

import pytest

from lab.cost.units import index_units, item_bytes, read_units, sqs_requests, write_units

OPEN: dict[str, Any] = {"order_id": {"S": "o"}, "open_shard": {"S": "open-1"}, "open_since": {"N": "1"}}


@pytest.mark.parametrize(
    ("item", "size"),
    [
        ({"id": {"S": "abc"}}, 5),
        ({"id": {"S": "å"}}, 4),  # UTF-8
        ({"n": {"N": "1234"}}, 1 + 4),
        ({"b": {"BOOL": True}}, 2),
        ({"m": {"M": {"k": {"S": "v"}}}}, 1 + 3 + 1 + 2),
        ({"l": {"L": [{"S": "v"}, {"NULL": True}]}}, 1 + 3 + 2 * (1 + 1)),
    ],
)
def test_an_item_is_as_large_as_its_names_and_values(item: dict[str, Any], size: int) -> None:
    assert item_bytes(item) == size


def test_a_write_is_billed_by_the_larger_of_before_and_after_in_whole_kilobytes() -> None:
    large, small = {"id": {"S": "x" * 1023}}, {"id": {"S": "x"}}
    assert write_units(None, small) == 1
    assert write_units(small, large) == write_units(large, None) == 2
    assert write_units(None, None) == 1


def test_a_read_is_billed_in_whole_four_kilobytes() -> None:
    assert read_units(None) == 1
    assert read_units({"id": {"S": "x" * 4096}}) == 2


def test_an_index_entry_that_moves_is_deleted_and_put() -> None:
    later = OPEN | {"open_since": {"N": "2"}}
    closed = {"order_id": {"S": "o"}}
    assert index_units(None, OPEN) == 1
    assert index_units(OPEN, later) == 2
    assert index_units(OPEN, OPEN | {"state": {"S": "paid"}}) == 0
    assert index_units(OPEN, closed) == 1
    assert index_units(closed, closed) == 0


def test_a_call_to_sqs_is_billed_by_each_64_kilobytes() -> None:
    assert [sqs_requests(size) for size in (0, 65_536, 65_537, 262_144)] == [1, 1, 2, 4]
