"""What is checked before, during and after a charge, and where a message goes that fails a check."""

import pytest

from shared.idempotency import records
from shared.orders.events import OrderPlaced
from shared.orders.money import DECIMALS
from shared.orders.repository import orders
from tests.harness.interceptor import killed_before, meanwhile, refused, through
from tests.harness.line import meanwhile as on_the_line
from tests.harness.shop import LEASE_S, Delivery, Shop, metrics

OTHER_FACTS = {
    "amount": OrderPlaced(order_id="ord_1", currency="EUR", total=2501, payment_method="pm_card_visa"),
    "currency": OrderPlaced(order_id="ord_1", currency="USD", total=2500, payment_method="pm_card_visa"),
    "card": OrderPlaced(order_id="ord_1", currency="EUR", total=2500, payment_method="pm_card_chargeDeclined"),
}


@pytest.mark.parametrize("forgotten", [False, True], ids=["remembered", "forgotten"])
@pytest.mark.parametrize("lease_over", [False, True], ids=["at once", "after the lease"])
def test_charged_and_killed_another_amount_is_refused_and_the_true_one_finishes(
    shop: Shop, forgotten: bool, lease_over: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    delivery = shop.delivery()
    shop.world.wire.plan("TransactWriteItems", killed_before)
    shop.deliver_and_die(delivery)
    if forgotten:
        shop.forget()
    shop.world.clock.advance(LEASE_S if lease_over else 0)
    capsys.readouterr()

    assert shop.deliver(Delivery(OTHER_FACTS["amount"], "message-2")) == []  # parked, so done

    assert shop.parked() == ["key_reused"]
    assert metrics(capsys.readouterr().out) == {"KeyReused": 1, "Parked": 1}
    shop.until_quiet(delivery)
    shop.settled_once()


@pytest.mark.parametrize("fact", OTHER_FACTS)
def test_other_facts_than_the_rows_are_refused_before_anything_is_done(shop: Shop, fact: str) -> None:
    delivery = shop.delivery()

    shop.deliver(Delivery(OTHER_FACTS[fact], "message-2"))

    assert shop.parked() == ["key_reused"]
    assert shop.line.calls == []
    assert "intent_id" not in (shop.world.row("ord_1") or {})
    assert shop.deliver(delivery) == []  # the key is free for the order itself
    shop.settled_once()


def test_other_facts_after_the_order_is_paid_are_refused_by_the_row_alone(shop: Shop) -> None:
    shop.until_quiet(shop.delivery())
    shop.forget()

    shop.deliver(Delivery(OTHER_FACTS["amount"], "message-2"))

    assert shop.parked() == ["key_reused"]
    assert shop.charges() == [("succeeded", 2500)]
    assert shop.state() == "paid"


def test_an_order_that_is_missing_is_waited_for(shop: Shop) -> None:
    delivery = shop.delivery()
    row = shop.world.row("ord_1")
    shop.world.empty("orders", "order_id")

    assert shop.deliver(delivery) == ["message-1"]
    assert shop.line.calls == []
    shop.world.dynamodb.put_item(TableName="orders", Item=row)

    shop.until_quiet(delivery)
    shop.settled_once()


@pytest.mark.parametrize("fact", OTHER_FACTS)
def test_a_false_event_that_comes_before_its_order_does_not_keep_the_true_one_out(shop: Shop, fact: str) -> None:
    delivery = shop.delivery()
    row = shop.world.row("ord_1")
    shop.world.empty("orders", "order_id")
    assert shop.deliver(Delivery(OTHER_FACTS[fact], "message-2")) == ["message-2"]
    shop.world.dynamodb.put_item(TableName="orders", Item=row)

    shop.until_quiet(delivery)

    shop.settled_once()


def test_an_order_that_is_not_placed_yet_is_waited_for(shop: Shop) -> None:
    delivery = shop.delivery()
    _set(shop, state="requested")

    assert shop.deliver(delivery) == ["message-1"]
    assert shop.line.calls == []
    _set(shop, state="placed")

    shop.until_quiet(delivery)
    shop.settled_once()


def test_an_order_that_goes_while_its_intent_is_made_is_not_charged(shop: Shop) -> None:
    delivery = shop.delivery()
    shop.world.wire.plan("UpdateItem", through, meanwhile(lambda: _set(shop, state="requested")))

    assert shop.deliver(delivery) == ["message-1"]

    assert shop.line.calls == ["create"]
    assert shop.charges() == []


@pytest.mark.parametrize("refusal", ["declined", "another intent", "gone"])
def test_a_commit_that_the_row_refuses_after_the_charge_is_parked_and_kept(
    shop: Shop, refusal: str, capsys: pytest.CaptureFixture[str]
) -> None:
    delivery = shop.delivery()
    happens = {
        "declined": lambda: _set(shop, state="declined"),
        "another intent": lambda: _set(shop, intent_id="pi_other"),
        "gone": lambda: shop.world.empty("orders", "order_id"),
    }
    shop.world.wire.plan("TransactWriteItems", meanwhile(happens[refusal]))

    assert shop.deliver(delivery) == []

    assert shop.parked() == ["effect_without_state"]
    record = shop.world.record("payment.charge#ord_1") or {}
    assert record["status"] == {"S": "INPROGRESS"}
    assert int(record["in_progress_expiration"]["N"]) > shop.world.clock.now_ms()  # nothing released
    assert record["unsettled"] == {"BOOL": True}
    assert metrics(capsys.readouterr().out) == {"EffectWithoutState": 1, "Parked": 1}
    assert shop.charges() == [("succeeded", 2500)]


def test_a_row_that_holds_the_same_payment_already_is_a_duplicate(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    delivery = shop.delivery()

    def settled_by_hand() -> None:
        _set(shop, state="paid", charge_id="ch_1", paid_at="2027-01-15T08:00:00.000Z")

    shop.world.wire.plan("TransactWriteItems", meanwhile(settled_by_hand))

    assert shop.deliver(delivery) == []

    shop.settled_once()
    assert metrics(capsys.readouterr().out) == {"DuplicateReplayed": 1}


@pytest.mark.parametrize(
    ("amount", "currency", "order_id"), [(2501, "eur", "ord_1"), (2500, "usd", "ord_1"), (2500, "eur", "ord_2")]
)
def test_a_foreign_intent_on_the_row_is_not_confirmed(shop: Shop, amount: int, currency: str, order_id: str) -> None:
    delivery = shop.delivery()
    orders().fix_intent("ord_1", _intent(shop, amount, currency, order_id))

    assert shop.deliver(delivery) == []

    assert shop.parked() == ["intent_mismatch"]
    assert shop.intents() == ["requires_confirmation"]
    assert shop.state() == "placed"


def test_a_foreign_intent_on_the_row_that_was_paid_does_not_pay_the_order(shop: Shop) -> None:
    delivery = shop.delivery()
    intent = _intent(shop, 2501)
    shop.provider.v1.payment_intents.confirm(intent)
    orders().fix_intent("ord_1", intent)

    assert shop.deliver(delivery) == []

    assert shop.parked() == ["effect_without_state"]
    assert shop.state() == "placed"


def test_without_time_for_it_no_intent_is_made(shop: Shop) -> None:
    delivery = shop.delivery()
    shop.world.wire.plan("GetItem", meanwhile(lambda: shop.world.clock.advance(98)))

    assert shop.deliver(delivery) == ["message-1"]

    assert shop.line.calls == []
    assert shop.waits()[-1] <= 2  # known not to be done
    shop.until_quiet(delivery)
    shop.settled_once()


def test_without_time_to_cancel_and_commit_nothing_is_confirmed(shop: Shop) -> None:
    delivery = shop.delivery()
    shop.line.plan("create", on_the_line(lambda: shop.world.clock.advance(78)))  # 42 s are left, 43 s are needed

    assert shop.deliver(delivery) == ["message-1"]

    assert shop.line.calls == ["create"]
    assert shop.waits()[-1] <= 2
    shop.until_quiet(delivery)
    shop.settled_once()


def test_with_just_enough_time_it_is_confirmed(shop: Shop) -> None:
    delivery = shop.delivery()
    shop.line.plan("create", on_the_line(lambda: shop.world.clock.advance(77)))

    assert shop.deliver(delivery) == []

    shop.settled_once()


def test_a_confirmation_that_took_all_the_time_leaves_the_cancelling_to_the_next_try(shop: Shop) -> None:
    delivery = shop.delivery("pm_card_chargeDeclined")
    shop.line.plan("confirm", on_the_line(lambda: shop.world.clock.advance(98)))

    assert shop.deliver(delivery) == ["message-1"]

    assert shop.line.calls == ["create", "confirm"]
    shop.until_quiet(delivery)
    shop.settled_once("declined")


@pytest.mark.parametrize(
    ("operation", "skipped", "code"),
    [
        ("UpdateItem", 0, "ResourceNotFoundException"),
        ("GetItem", 0, "ResourceNotFoundException"),
        ("GetSecretValue", 0, "AccessDeniedException"),
        ("UpdateItem", 1, "AccessDeniedException"),
        ("TransactWriteItems", 0, "AccessDeniedException"),
    ],
    ids=["claim", "read", "secret", "fix", "commit"],
)
def test_what_is_denied_or_missing_parks_nothing_and_finishes_when_it_is_mended(
    shop: Shop, operation: str, skipped: int, code: str
) -> None:
    delivery = shop.delivery()
    shop.world.wire.plan(operation, *[through] * skipped, refused(code))

    assert shop.deliver(delivery) == ["message-1"]
    if operation != "TransactWriteItems":
        assert shop.waits()[-1] <= 2  # known not to be done: it is released
    shop.until_quiet(delivery)

    shop.settled_once()


@pytest.mark.parametrize("how", ["too large", "not serialisable"])
def test_a_result_that_can_not_be_stored_costs_no_second_charge(
    shop: Shop, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    delivery = shop.delivery()
    if how == "too large":
        monkeypatch.setattr(records, "RESULT_LIMIT_BYTES", 10)
    else:
        monkeypatch.setattr("functions.payment.handler.Payment", lambda **_: object())

    assert shop.deliver(delivery) == []
    assert shop.deliver(delivery) == []

    assert shop.result()["key"] == "payment.charge#ord_1"
    assert "result_not_stored" in shop.result()
    assert shop.line.calls == ["create", "confirm"]
    assert shop.charges() == [("succeeded", 2500)]
    assert shop.state() == "paid"


def test_a_payment_method_that_the_provider_does_not_know_is_parked_and_waits_for_a_person(shop: Shop) -> None:
    delivery = shop.delivery("pm_nobody")

    assert shop.deliver(delivery) == []

    assert shop.parked() == ["payment_method_missing"]
    assert shop.state() == "placed"
    assert shop.intents() == []


@pytest.mark.parametrize("code", ["ISK", "UGX", "MGA"])
def test_a_currency_whose_minor_unit_the_provider_counts_otherwise_is_not_taken(code: str) -> None:
    """It would charge a hundredth, or a hundred times as much: https://docs.stripe.com/currencies#special-cases."""
    assert code not in DECIMALS


def _set(shop: Shop, **values: str) -> None:
    """Somebody writes to the row by hand."""
    shop.world.dynamodb.update_item(
        TableName="orders",
        Key={"order_id": {"S": "ord_1"}},
        UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in values),
        ExpressionAttributeNames={f"#{name}": name for name in values},
        ExpressionAttributeValues={f":{name}": {"S": value} for name, value in values.items()},
    )


def _intent(shop: Shop, amount: int, currency: str = "eur", order_id: str = "ord_1") -> str:
    made = shop.provider.v1.payment_intents.create(
        {
            "amount": amount,
            "currency": currency,
            "payment_method": "pm_card_visa",
            "metadata": {"order_id": order_id},
        }
    )
    return made.id
