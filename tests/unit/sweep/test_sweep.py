"""Sweep: unfinished orders, seen by their rows alone."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from functions.order.handler import handler as place
from functions.sweep.handler import DAY_S, End, NotSwept, Run, handler, wait_s
from shared.idempotency import Event
from shared.orders import writes
from shared.orders.events import OrderDeclined, OrderPaid, OrderPlaced, OrderRequested
from tests.harness import samples
from tests.harness.decoding import decode
from tests.harness.interceptor import Killed, answer_lost, killed_before, meanwhile, refused
from tests.harness.lost_messages import some_refused
from tests.harness.moto_world import World
from tests.harness.observations import Log, Metrics

AGE_S = 3600
KINDS: dict[str, type[Event]] = {kind.type: kind for kind in (OrderRequested, OrderPlaced, OrderPaid, OrderDeclined)}


@pytest.fixture(autouse=True)
def _configured(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUTES", json.dumps(samples.routes(world)))
    monkeypatch.setenv("SWEEP_AGE_S", str(AGE_S))
    monkeypatch.setenv("RESERVE_S", "0.25")


def sweep(world: World, seconds: float = 60) -> None:
    handler(samples.sample_event("sweep"), world.context(seconds))


def sent(world: World, queue: str) -> Counter[str]:
    """How often each event is in a queue, by id; takes them off."""
    return Counter(json.loads(message["Body"])["id"] for message in world.messages(queue))


def row_of(world: World, order_id: str) -> dict[str, Any]:
    row = world.row(order_id)
    assert row is not None
    return row


def open_orders(world: World, count: int) -> Counter[str]:
    """Placed orders that are due; answers the events they wait for."""
    for n in range(count):
        samples.place(world, samples.requested(f"ord_{n}"))
    world.clock.advance(AGE_S)
    return Counter(f"ord_{n}/order.placed" for n in range(count))


@pytest.mark.parametrize("state", ["requested", "placed", "paid", "declined"])
def test_an_order_that_does_not_move_gets_the_event_of_its_last_step_again(world: World, state: str) -> None:
    event: Event = samples.requested("api_1")
    samples.accept(world, samples.requested("api_1"))
    if state != "requested":
        event = samples.place(world, samples.requested("api_1"))
    if state in ("paid", "declined"):
        event = samples.settle(world, samples.requested("api_1"), state)
    world.clock.advance(AGE_S)

    sweep(world)

    queue = {"requested": "orders", "placed": "payments"}.get(state, "emails")
    (message,) = world.messages(queue)
    envelope, again = decode(message["Body"], KINDS)
    assert again == event
    assert (envelope.id, envelope.source, envelope.correlationid) == (event.id, event.source, "c-1")


def test_what_it_sends_is_byte_for_byte_the_data_that_the_step_emitted(world: World) -> None:
    place(samples.sqs_event(samples.body_of(samples.requested())), world.context())
    record = world.record("order.place#ord_1")
    assert record is not None
    (entry,) = json.loads(record["outbox"]["S"])
    world.clock.advance(AGE_S)

    sweep(world)

    (message,) = world.messages("payments")
    again = json.loads(message["Body"])
    assert {**again, "time": None} == {**entry["event"], "time": None}
    assert json.dumps(again["data"]) == json.dumps(entry["event"]["data"])


def test_a_young_order_is_left_alone(world: World) -> None:
    samples.place(world, samples.requested())
    world.clock.advance(AGE_S - 1)

    sweep(world)
    assert sent(world, "payments") == {}

    world.clock.advance(1)
    sweep(world)
    assert sent(world, "payments") == {"ord_1/order.placed": 1}


def test_a_final_order_is_never_looked_at(world: World) -> None:
    order = samples.requested()
    samples.pay(world, order)
    samples.perform(world, writes.record_mailed("orders", "ord_1", state="paid", mail="receipt", mail_id="1", now_ms=1))
    world.clock.advance(30 * DAY_S)
    world.wire.sent.clear()

    sweep(world)

    assert {name for name, _ in world.wire.sent} == {"Query"}


def test_an_order_that_moved_since_the_index_was_read_is_young_again(world: World) -> None:
    open_orders(world, 1)
    world.wire.plan("GetItem", meanwhile(lambda: samples.settle(world, samples.requested("ord_0"), "paid")))

    sweep(world)

    assert sent(world, "payments") == {}
    assert sent(world, "emails") == {}
    assert row_of(world, "ord_0")["sweeps"] == {"N": "0"}


def test_an_order_that_became_final_since_the_index_was_read_gets_nothing(world: World) -> None:
    samples.pay(world, samples.requested())
    world.clock.advance(AGE_S)
    mailed = writes.record_mailed("orders", "ord_1", state="paid", mail="receipt", mail_id="1", now_ms=1)
    world.wire.plan("GetItem", meanwhile(lambda: samples.perform(world, mailed)))

    sweep(world)

    assert sent(world, "emails") == {}
    assert "open_since" not in row_of(world, "ord_1")


def test_a_stuck_order_is_sent_at_doubling_distances_and_daily_at_last(world: World) -> None:
    samples.place(world, samples.requested())

    for hours in (1, 2, 4, 8, 16, 24, 24):
        world.clock.advance(hours * AGE_S - 1)
        sweep(world)
        assert sent(world, "payments") == {}
        world.clock.advance(1)
        sweep(world)
        assert sent(world, "payments") == {"ord_1/order.placed": 1}

    assert row_of(world, "ord_1")["sweeps"] == {"N": "7"}


def test_the_wait_doubles_up_to_a_day_and_is_never_shorter_than_the_age() -> None:
    assert [wait_s(sweeps, AGE_S) // AGE_S for sweeps in (1, 2, 3, 4, 5, 60)] == [2, 4, 8, 16, 24, 24]
    assert wait_s(1, 3 * DAY_S) == 3 * DAY_S


def test_a_move_after_a_sweep_makes_the_order_due_at_its_own_age_again(world: World) -> None:
    order = samples.requested()
    samples.place(world, order)
    for hours in (1, 2, 4, 8):
        world.clock.advance(hours * AGE_S)
        sweep(world)
    assert row_of(world, "ord_1")["sweeps"] == {"N": "4"}
    sent(world, "payments")

    samples.settle(world, order, "paid")
    world.clock.advance(AGE_S)
    sweep(world)
    world.clock.advance(2 * AGE_S)
    sweep(world)

    assert sent(world, "emails") == {"ord_1/order.paid": 2}


def test_a_death_between_send_and_note_sends_once_more(world: World) -> None:
    expected = open_orders(world, 1)
    world.wire.plan("UpdateItem", killed_before)
    with pytest.raises(Killed):
        sweep(world)
    assert sent(world, "payments") == expected

    sweep(world)

    assert sent(world, "payments") == expected
    assert row_of(world, "ord_0")["sweeps"] == {"N": "1"}


def test_a_note_whose_answer_was_lost_is_told_and_harms_nothing(world: World) -> None:
    expected = open_orders(world, 1)
    world.wire.plan("UpdateItem", answer_lost)
    with pytest.raises(NotSwept):
        sweep(world)

    sweep(world)

    assert sent(world, "payments") == expected


def test_a_refused_entry_is_not_noted_and_its_neighbours_are(world: World, metrics: Metrics) -> None:
    expected = open_orders(world, 5)
    world.wire.always("SendMessageBatch", some_refused(lambda entry: "ord_3/" in entry["MessageBody"]))

    with pytest.raises(NotSwept):
        sweep(world)

    assert sent(world, "payments") == expected - Counter(["ord_3/order.placed"])
    assert row_of(world, "ord_3")["sweeps"] == {"N": "0"}
    assert metrics.of("sweep") == {"Sent": 4, "Left": 1}
    world.wire.always("SendMessageBatch", None)
    sweep(world)
    assert sent(world, "payments") == {"ord_3/order.placed": 1}


def test_a_row_that_can_not_be_read_keeps_nobody_else_waiting(world: World, log: Log) -> None:
    expected = open_orders(world, 4)
    world.dynamodb.update_item(TableName="orders", Key={"order_id": {"S": "ord_2"}}, UpdateExpression="REMOVE currency")

    with pytest.raises(NotSwept):
        sweep(world)

    assert sent(world, "payments") == expected - Counter(["ord_2/order.placed"])
    (line,) = log.saying("not swept")
    assert (line["order_id"], line["error"]) == ("ord_2", "ValidationError")


@pytest.mark.parametrize("operation", ["Query", "GetItem", "SendMessageBatch", "UpdateItem"])
def test_without_a_permission_it_fails_loudly_and_finishes_when_it_is_mended(world: World, operation: str) -> None:
    expected = open_orders(world, 3)
    world.wire.always(operation, refused("AccessDeniedException"))
    with pytest.raises(NotSwept, match=r"3 of 3 orders|64 of 64 shards"):
        sweep(world)
    sent(world, "payments")

    world.wire.always(operation, None)
    sweep(world)

    assert sent(world, "payments") == expected


def test_it_stops_before_its_time_is_up_and_the_next_run_does_the_rest(
    world: World, metrics: Metrics, log: Log
) -> None:
    expected = open_orders(world, 20)
    world.wire.always("GetItem", meanwhile(lambda: world.clock.advance(1)))

    sweep(world, seconds=12)

    first = sent(world, "payments")
    counts = metrics.of("sweep")
    assert 0 < first.total() < 20
    assert counts["Sent"] == first.total()
    assert log.saying("swept")[0]["left"] == counts["Left"] > 0
    world.wire.always("GetItem", None)
    sweep(world)
    assert first + sent(world, "payments") == expected


def test_two_runs_at_once_send_twice_and_note_once(world: World) -> None:
    expected = open_orders(world, 1)
    world.wire.plan("UpdateItem", meanwhile(lambda: sweep(world)))

    sweep(world)

    assert sent(world, "payments") == expected + expected
    assert row_of(world, "ord_0")["sweeps"] == {"N": "1"}


def test_an_order_that_moves_between_send_and_note_keeps_its_own_mark(world: World) -> None:
    open_orders(world, 1)
    world.wire.plan("UpdateItem", meanwhile(lambda: samples.settle(world, samples.requested("ord_0"), "paid")))

    sweep(world)

    row = row_of(world, "ord_0")
    assert (row["state"], row["sweeps"]) == ({"S": "paid"}, {"N": "0"})
    assert row["open_since"] == {"N": str(world.clock.now_ms() // 1000)}


@pytest.mark.parametrize("meanwhile", ["another run", "the order moves"])
def test_a_mark_that_is_applied_late_is_refused(world: World, meanwhile: str) -> None:
    open_orders(world, 1)
    late: list[dict[str, Any]] = []

    def delay(request: Any, _: Any) -> Any:
        late.append(json.loads(request.body))
        raise ReadTimeoutError(endpoint_url=request.url)

    world.wire.plan("UpdateItem", delay)
    with pytest.raises(NotSwept):
        sweep(world)
    world.clock.advance(1)
    if meanwhile == "another run":
        sweep(world)
    else:
        samples.settle(world, samples.requested("ord_0"), "paid")
    before = row_of(world, "ord_0")

    (request,) = late
    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        world.dynamodb.update_item(**request)

    assert row_of(world, "ord_0") == before


def test_an_order_that_ends_between_send_and_note_gets_no_mark(world: World) -> None:
    samples.pay(world, samples.requested())
    world.clock.advance(AGE_S)
    mailed = writes.record_mailed("orders", "ord_1", state="paid", mail="receipt", mail_id="1", now_ms=1)
    world.wire.plan("UpdateItem", meanwhile(lambda: samples.perform(world, mailed)))

    sweep(world)

    assert not {"open_shard", "open_since", "sweeps"} & set(row_of(world, "ord_1"))


def test_every_order_is_logged_by_its_correlation_id_and_nobody_by_name(world: World, log: Log) -> None:
    samples.accept(world, samples.requested("api_1"))
    world.clock.advance(AGE_S)

    sweep(world)

    (line,) = log.saying("sent again")
    assert (line["correlation_id"], line["event_id"]) == ("c-1", "api_1/order.requested")
    assert "uyer" not in log.text


def shards_read(world: World) -> list[str]:
    queries = [json.loads(body) for name, body in world.wire.sent if name == "Query"]
    return [query["ExpressionAttributeValues"][":shard"]["S"] for query in queries]


def test_a_shard_that_cannot_be_read_delays_its_own_orders_only(world: World, metrics: Metrics) -> None:
    expected = open_orders(world, 20)
    throttled = row_of(world, "ord_7")["open_shard"]["S"]
    delayed = {f"ord_{n}/order.placed" for n in range(20) if row_of(world, f"ord_{n}")["open_shard"]["S"] == throttled}

    def throttle(request: Any, apply: Any) -> Any:
        fault = refused("ThrottlingException") if throttled.encode() in request.body else lambda _, go: go()
        return fault(request, apply)

    world.wire.always("Query", throttle)
    with pytest.raises(NotSwept, match="1 of 64 shards"):
        sweep(world)

    first = sent(world, "payments")
    assert first == {event: 1 for event in expected if event not in delayed}
    assert metrics.of("sweep") == {"Sent": len(first), "Left": 1}
    world.wire.always("Query", None)
    sweep(world)
    assert set(sent(world, "payments")) == delayed


def test_every_shard_is_read_once_and_each_run_starts_at_another(world: World) -> None:
    starts = set()
    for _ in range(3):
        world.wire.sent.clear()
        sweep(world)
        shards = shards_read(world)
        assert sorted(shards) == sorted(f"open-{shard}" for shard in range(64))
        starts.add(shards[0])

    assert len(starts) > 1


def test_no_shard_is_read_after_the_deadline(world: World) -> None:
    world.wire.always("Query", meanwhile(lambda: world.clock.advance(2)))

    sweep(world, seconds=12)

    assert len(shards_read(world)) == 2


def test_every_consumer_of_the_event_gets_it_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    open_orders(world, 1)
    monkeypatch.setenv("ROUTES", json.dumps({"order.placed": f"{world.queues['payments']} {world.queues['emails']}"}))

    sweep(world)

    assert sent(world, "payments") == sent(world, "emails") == {"ord_0/order.placed": 1}


def test_with_a_twentieth_of_the_queries_throttled_two_runs_serve_50_000_orders(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is a model: pages of 1,000 ids a shard, of which a query fails at random (seed 5)."""
    random = Random(5)
    due = {f"ord_{n}": n % 64 for n in range(50_000)}

    class Model:
        def open_before(self, _: str, shard: int, *__: object) -> Iterator[list[str]]:
            ids = [order_id for order_id, of in due.items() if of == shard]
            for start in range(0, len(ids), 1_000):
                if random.random() < 0.05:
                    raise ClientError({"Error": {"Code": "ThrottlingException"}}, "Query")
                yield ids[start : start + 1_000]

    def serve(_: Run, order_id: str) -> End:
        due.pop(order_id)
        return End.SENT

    monkeypatch.setattr("functions.sweep.handler.orders", Model)
    monkeypatch.setattr(Run, "serve", serve)
    for _ in range(2):
        with suppress(NotSwept):
            sweep(world, seconds=900)

    assert not due


@pytest.mark.parametrize("operation", ["Query", "GetItem", "SendMessageBatch", "UpdateItem"])
@pytest.mark.parametrize("seconds", [12.25, 13.5, 15])
def test_the_run_ends_in_time_while_a_request_gets_no_answer(
    world: World, metrics: Metrics, operation: str, seconds: float
) -> None:
    open_orders(world, 3)
    world.wire.always(operation, meanwhile(lambda: world.clock.advance(3), answer_lost))
    context = world.context(seconds)

    with suppress(NotSwept):
        handler(samples.sample_event("sweep"), context)

    assert context.get_remaining_time_in_millis() >= 250
    assert metrics.of("sweep")["Left"] > 0
    world.wire.always(operation, None)


def test_an_order_of_two_consumers_is_started_with_time_for_both(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    open_orders(world, 1)
    monkeypatch.setenv("ROUTES", json.dumps({"order.placed": f"{world.queues['payments']} {world.queues['emails']}"}))

    sweep(world, seconds=12.249)  # four requests of 3 s and the reserve need a millisecond more
    assert sent(world, "payments") == {}

    sweep(world, seconds=12.25)
    assert sent(world, "payments") == {"ord_0/order.placed": 1}
