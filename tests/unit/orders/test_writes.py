"""The moves of an order, forward only, each under its condition; performed by the store, as steps have it done."""

from collections.abc import Callable
from typing import Any

import pytest

from shared.idempotency import KeyReused, NotDone, Permanent, Write, fingerprint, iso
from shared.orders import writes
from shared.orders.repository import orders
from tests.harness.moto_world import World
from tests.unit.orders.samples import order, put_row

STATES = ["requested", "placed", "paid", "declined"]


def perform(world: World, write: Write) -> bool:
    """As a step's one write. True where the row already held these facts."""
    now_ms = world.clock.now_ms()
    key = f"op#{len(world.wire.sent)}"
    done = world.store.once(
        key,
        "v1:a",
        owner=key,
        data="1",
        outbox=None,
        writes=[write],
        correlation_id="c-1",
        deadline_ms=now_ms + 20_000,
    )
    assert isinstance(done, bool)
    return done


def request(world: World, caller: str = "me", unit_price: int = 1250) -> Write:
    wanted = order("api_1", unit_price)
    return writes.record_request("orders", wanted, caller=caller, correlation_id="c-1", now_ms=world.clock.now_ms())


def place(world: World, order_id: str, unit_price: int = 1250) -> Write:
    wanted = order(order_id, unit_price)
    return writes.record_placed("orders", wanted, correlation_id="c-2", now_ms=world.clock.now_ms())


def paid(world: World, intent_id: str = "pi_1") -> Write:
    now_ms = world.clock.now_ms()
    return writes.record_paid("orders", "ord_1", intent_id=intent_id, charge_id="ch_1", now_ms=now_ms)


def declined(world: World, intent_id: str = "pi_1") -> Write:
    now_ms = world.clock.now_ms()
    return writes.record_declined("orders", "ord_1", intent_id=intent_id, reason="no", now_ms=now_ms)


def mailed(world: World, state: str = "paid", mail: str = "receipt", mail_id: str = "m-1") -> Write:
    now_ms = world.clock.now_ms()
    return writes.record_mailed("orders", "ord_1", state=state, mail=mail, mail_id=mail_id, now_ms=now_ms)


def read(order_id: str = "ord_1") -> Any:
    return orders().get(order_id)


def test_a_requested_order_says_what_was_ordered_by_whom_and_when(world: World) -> None:
    assert perform(world, request(world)) is False

    row = read("api_1")
    assert (row.state, row.caller, row.fingerprint) == ("requested", "me", fingerprint(order("api_1")))
    assert (row.customer, row.items, row.total, row.currency) == (order().customer, order().items, 2500, "EUR")
    assert (row.requested_at, row.open_since) == (iso(world.clock.now_ms()), world.clock.now_ms() // 1000)
    assert (row.payment_method, row.correlation_id) == ("pm_card_visa", "c-1")


def test_the_same_request_of_the_same_caller_is_done_already_however_far_it_has_come(world: World) -> None:
    perform(world, request(world))
    perform(world, place(world, "api_1"))
    before = world.row("api_1")

    assert perform(world, request(world)) is True

    assert world.row("api_1") == before


@pytest.mark.parametrize("other", [{"caller": "you"}, {"unit_price": 1300}])
def test_another_request_or_caller_under_an_id_is_a_reused_key(world: World, other: dict[str, Any]) -> None:
    perform(world, request(world))
    before = world.row("api_1")

    with pytest.raises(KeyReused):
        perform(world, request(world, **other))

    assert world.row("api_1") == before


def test_an_order_of_the_api_is_placed_from_its_row(world: World) -> None:
    perform(world, request(world))
    world.clock.advance(7)

    assert perform(world, place(world, "api_1")) is False

    row = read("api_1")
    assert (row.state, row.placed_at, row.caller, row.correlation_id) == (
        "placed",
        iso(world.clock.now_ms()),
        "me",
        "c-1",
    )
    assert row.open_since == world.clock.now_ms() // 1000


def test_an_order_straight_from_the_queue_starts_placed(world: World) -> None:
    assert perform(world, place(world, "ord_1")) is False

    row = read()
    assert (row.state, row.caller, row.correlation_id, row.total) == ("placed", "queue", "c-2", 2500)
    assert (row.fingerprint, row.requested_at) == (fingerprint(order()), None)


def test_the_direct_path_may_not_use_an_id_of_the_apis(world: World) -> None:
    with pytest.raises(Permanent) as refused:
        perform(world, place(world, "api_1"))

    assert refused.value.reason == "reserved_order_id"
    assert world.row("api_1") is None


@pytest.mark.parametrize("order_id", ["api_1", "ord_1"])
def test_a_placed_order_is_not_placed_again_and_another_under_its_id_is_refused(world: World, order_id: str) -> None:
    if order_id == "api_1":
        perform(world, request(world))
    perform(world, place(world, order_id))
    before = world.row(order_id)

    assert perform(world, place(world, order_id)) is True
    with pytest.raises(KeyReused):
        perform(world, place(world, order_id, unit_price=1300))

    assert world.row(order_id) == before


def test_an_order_is_placed_only_as_it_was_requested(world: World) -> None:
    perform(world, request(world))
    before = world.row("api_1")

    with pytest.raises(KeyReused):
        perform(world, place(world, "api_1", unit_price=1300))

    assert world.row("api_1") == before


@pytest.mark.parametrize("state", STATES[1:])
def test_an_order_is_never_placed_back_from_a_later_state(world: World, state: str) -> None:
    before = put_row(world, state, fingerprint=fingerprint(order()))

    assert perform(world, place(world, "ord_1")) is True

    assert world.row("ord_1") == before


def test_a_placed_order_is_paid_by_the_intent_on_its_row(world: World) -> None:
    put_row(world, "placed", intent_id="pi_1", sweeps=3)

    assert perform(world, paid(world)) is False

    row = read()
    assert (row.state, row.paid_at, row.charge_id) == ("paid", iso(world.clock.now_ms()), "ch_1")
    assert (row.open_since, row.sweeps) == (world.clock.now_ms() // 1000, 0)


def test_a_placed_order_is_declined_by_the_intent_on_its_row(world: World) -> None:
    put_row(world, "placed", intent_id="pi_1")

    assert perform(world, declined(world)) is False

    row = read()
    assert (row.state, row.declined_at, row.decline_reason) == ("declined", iso(world.clock.now_ms()), "no")
    assert row.open_since == world.clock.now_ms() // 1000


Settle = Callable[..., Write]


@pytest.mark.parametrize(("settle", "state"), [(paid, "paid"), (declined, "declined")])
def test_the_same_facts_again_are_done_already(world: World, settle: Settle, state: str) -> None:
    before = put_row(world, state, intent_id="pi_1", mailed_at="t")

    assert perform(world, settle(world)) is True

    assert world.row("ord_1") == before


@pytest.mark.parametrize(("settle", "state"), [(paid, "paid"), (declined, "declined")])
@pytest.mark.parametrize(
    ("found", "intent_id"),
    [("requested", "pi_1"), ("placed", "pi_2"), ("placed", None), ("the same", "pi_2"), ("the other", "pi_1")],
)
def test_an_order_is_settled_only_when_placed_and_by_its_own_intent(
    world: World, settle: Settle, state: str, found: str, intent_id: str | None
) -> None:
    other = "declined" if state == "paid" else "paid"
    before = put_row(world, {"the same": state, "the other": other}.get(found, found), intent_id=intent_id)

    with pytest.raises(NotDone):
        perform(world, settle(world))

    assert world.row("ord_1") == before


@pytest.mark.parametrize("move", [paid, declined, mailed])
def test_an_order_that_is_missing_is_not_made_up(world: World, move: Settle) -> None:
    with pytest.raises(NotDone, match="missing"):
        perform(world, move(world))

    assert world.row("ord_1") is None


@pytest.mark.parametrize("state", ["paid", "declined"])
def test_a_settled_order_is_mailed_and_leaves_the_index_of_open_ones(world: World, state: str) -> None:
    put_row(world, state, sweeps=2)

    assert perform(world, mailed(world, state)) is False

    row = read()
    assert (row.state, row.mailed_at, row.mail, row.mail_id) == (state, iso(world.clock.now_ms()), "receipt", "m-1")
    assert not {"open_shard", "open_since", "sweeps"} & (world.row("ord_1") or {}).keys()


def test_a_second_mail_of_the_same_kind_is_done_already_and_keeps_the_first_id(world: World) -> None:
    put_row(world, "paid")
    perform(world, mailed(world))

    assert perform(world, mailed(world, mail_id="m-2")) is True

    assert read().mail_id == "m-1"


@pytest.mark.parametrize(
    ("state", "told", "mail"),
    [("placed", "paid", "receipt"), ("declined", "paid", "receipt"), ("paid", "paid", "decline")],
)
def test_an_order_is_mailed_once_and_in_the_state_that_the_mail_tells_of(
    world: World, state: str, told: str, mail: str
) -> None:
    put_row(world, state)
    if state == told:
        perform(world, mailed(world))
    before = world.row("ord_1")

    with pytest.raises(NotDone):
        perform(world, mailed(world, told, mail))

    assert world.row("ord_1") == before
