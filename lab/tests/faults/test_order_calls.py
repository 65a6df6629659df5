"""Whose request it is."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.harness import samples

from lab.faults.order_calls import RECEIVED_BEFORE, Attribution, OrderCalls, order_calls_of
from lab.faults.plan import Fault, Kind

DIES = Fault(Kind.DIE_AFTER, 2)


def no_fault(_: str, __: int) -> Fault | None:
    return None


def order_calls(order: str, fault: Fault | None = DIES) -> OrderCalls:
    return OrderCalls(order, 1, f"message-{order}", fault, {order})


def sqs(*orders: str, receives: tuple[int, ...] = ()) -> dict[str, Any]:
    event = samples.sqs_event(*(json.dumps({"data": {"order_id": order}}) for order in orders))
    for record, receive in zip(event["Records"], receives, strict=False):
        record["attributes"] = {"ApproximateReceiveCount": str(receive)}
    return event


def test_a_replayed_message_goes_on_counting_its_receives() -> None:
    event = sqs("ord_1", receives=(2,))
    event["Records"][0]["messageAttributes"] = {RECEIVED_BEFORE: {"stringValue": "3", "dataType": "Number"}}
    assert [order_calls.receive for order_calls in order_calls_of(event, lambda *_: None)] == [5]


def test_a_batchs_orders_and_receives_are_read_and_garbage_is_left_alone() -> None:
    event = sqs("ord_1", "ord_2", receives=(1, 4))
    for body in ("", "[]", "7", '{"data": []}', '{"data": {"order_id": 7}}'):
        event["Records"] += samples.sqs_event(body)["Records"]

    drawn: list[tuple[str, int]] = []
    all_calls = order_calls_of(event, lambda *message: drawn.append(message))

    assert drawn == [("ord_1", 1), ("ord_2", 4)]
    assert [(found.order, found.receive, found.message) for found in all_calls] == [
        ("ord_1", 1, "message-0"),
        ("ord_2", 4, "message-1"),
    ]


def test_copies_of_an_order_in_one_batch_are_one_strand_with_the_fault_that_is_due() -> None:
    def second(_: str, receive: int) -> Fault | None:
        return DIES if receive == 2 else None

    [found] = order_calls_of(sqs("ord_1", "ord_1", "ord_1", receives=(1, 2, 2)), second)

    assert (found.receive, found.message, found.fault) == (2, "message-1", DIES)
    assert all(found.is_named_in(f"key {name}") for name in ("ord_1", "message-0", "message-1", "message-2"))


def test_a_stream_records_order_is_read_from_its_key() -> None:
    record = {"eventID": "1", "dynamodb": {"Keys": {"id": {"S": "payment.charge#ord_1"}}}}

    [found] = order_calls_of({"Records": [record]}, lambda *_: DIES)

    assert (found.order, found.receive, found.message, found.names) == ("ord_1", 1, "1", {"ord_1"})


def test_an_order_is_named_by_whole_words_only() -> None:
    one = order_calls("ord_1")
    for text in ("payment.charge#ord_1", '{\\"order_id\\":\\"ord_1\\"}', "metadata[order_id]=ord_1&x", "/ord_1.html"):
        assert one.is_named_in(text), text
    for text in ("ord_12", "ord_1-2", "my-ord_1", "xord_1", "ord_"):
        assert not one.is_named_in(text), text


def test_a_fault_is_due_at_its_own_orders_call_until_it_has_struck() -> None:
    attribution = Attribution([order_calls("a"), order_calls("b", None)])

    assert [due(attribution, text) for text in ("a", "b", "b", "a", "b", "a")] == ["", "", "", "a", "", "a"]
    attribution.all_calls[0].applied = True
    assert due(attribution, "a") == ""


def test_a_fault_at_the_effect_waits_for_it() -> None:
    attribution = Attribution([order_calls("a", Fault(Kind.DIE_AFTER))])

    assert [due(attribution, "a"), due(attribution, "a", effect=True)] == ["", "a"]
    assert attribution.all_calls[0].calls == 2


def test_a_request_that_names_no_order_is_that_of_the_threads_request_before() -> None:
    attribution = Attribution([order_calls("a")])

    assert due(attribution, "elsewhere", effect=True) == ""
    assert due(attribution, "a") == ""
    with ThreadPoolExecutor(1) as another:
        assert another.submit(due, attribution, "elsewhere").result() == ""
    assert due(attribution, "pi_17/confirm") == "a"


def test_a_request_for_many_orders_is_a_call_of_each() -> None:
    attribution = Attribution([order_calls("a"), order_calls("b"), order_calls("c", None)])

    assert [due(attribution, "a b c"), due(attribution, "b c"), due(attribution, "a b")] == ["", "b", "ab"]
    assert [found.calls for found in attribution.all_calls] == [2, 3, 2]


def due(attribution: Attribution, text: str, *, effect: bool = False) -> str:
    """The orders whose faults may strike at a request."""
    return "".join(found.order for found in attribution.due(text, effect))
