"""What is checked before, during and after a charge, and where a message goes that fails a check."""

import pytest

from shared.idempotency import records
from shared.orders.events import OrderPlaced
from shared.orders.money import DECIMALS
from shared.orders.repository import orders
from tests.harness.interceptor import killed_before, meanwhile, refused, through
from tests.harness.payment import LEASE_S, Delivery, Payments, metrics
from tests.harness.provider_connection import meanwhile as on_the_line

OTHER_FACTS = {
    "amount": OrderPlaced(order_id="ord_1", currency="EUR", total=2501, payment_method="pm_card_visa"),
    "currency": OrderPlaced(order_id="ord_1", currency="USD", total=2500, payment_method="pm_card_visa"),
    "card": OrderPlaced(order_id="ord_1", currency="EUR", total=2500, payment_method="pm_card_chargeDeclined"),
}


@pytest.mark.parametrize("forgotten", [False, True], ids=["remembered", "forgotten"])
@pytest.mark.parametrize("lease_over", [False, True], ids=["at once", "after the lease"])
def test_charged_and_killed_another_amount_is_refused_and_the_true_one_finishes(
    payments: Payments, forgotten: bool, lease_over: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    delivery = payments.delivery()
    payments.world.wire.plan("TransactWriteItems", killed_before)
    payments.deliver_and_die(delivery)
    if forgotten:
        payments.forget()
    payments.world.clock.advance(LEASE_S if lease_over else 0)
    capsys.readouterr()

    assert payments.deliver(Delivery(OTHER_FACTS["amount"], "message-2")) == []  # parked, so done

    assert payments.parked() == ["key_reused"]
    assert metrics(capsys.readouterr().out) == {"KeyReused": 1, "Parked": 1}
    payments.until_quiet(delivery)
    payments.settled_once()


@pytest.mark.parametrize("fact", OTHER_FACTS)
def test_other_facts_than_the_rows_are_refused_before_anything_is_done(payments: Payments, fact: str) -> None:
    delivery = payments.delivery()

    payments.deliver(Delivery(OTHER_FACTS[fact], "message-2"))

    assert payments.parked() == ["key_reused"]
    assert payments.connection.calls == []
    assert "intent_id" not in (payments.world.row("ord_1") or {})
    assert payments.deliver(delivery) == []  # the key is free for the order itself
    payments.settled_once()


def test_other_facts_after_the_order_is_paid_are_refused_by_the_row_alone(payments: Payments) -> None:
    payments.until_quiet(payments.delivery())
    payments.forget()

    payments.deliver(Delivery(OTHER_FACTS["amount"], "message-2"))

    assert payments.parked() == ["key_reused"]
    assert payments.charges() == [("succeeded", 2500)]
    assert payments.state() == "paid"


def test_an_order_that_is_missing_is_waited_for(payments: Payments) -> None:
    delivery = payments.delivery()
    row = payments.world.row("ord_1")
    payments.world.empty("orders", "order_id")

    assert payments.deliver(delivery) == ["message-1"]
    assert payments.connection.calls == []
    payments.world.dynamodb.put_item(TableName="orders", Item=row)

    payments.until_quiet(delivery)
    payments.settled_once()


@pytest.mark.parametrize("fact", OTHER_FACTS)
def test_a_false_event_that_comes_before_its_order_does_not_keep_the_true_one_out(
    payments: Payments, fact: str
) -> None:
    delivery = payments.delivery()
    row = payments.world.row("ord_1")
    payments.world.empty("orders", "order_id")
    assert payments.deliver(Delivery(OTHER_FACTS[fact], "message-2")) == ["message-2"]
    payments.world.dynamodb.put_item(TableName="orders", Item=row)

    payments.until_quiet(delivery)

    payments.settled_once()


def test_an_order_that_is_not_placed_yet_is_waited_for(payments: Payments) -> None:
    delivery = payments.delivery()
    _set(payments, state="requested")

    assert payments.deliver(delivery) == ["message-1"]
    assert payments.connection.calls == []
    _set(payments, state="placed")

    payments.until_quiet(delivery)
    payments.settled_once()


def test_an_order_that_goes_while_its_intent_is_made_is_not_charged(payments: Payments) -> None:
    delivery = payments.delivery()
    payments.world.wire.plan("UpdateItem", through, meanwhile(lambda: _set(payments, state="requested")))

    assert payments.deliver(delivery) == ["message-1"]

    assert payments.connection.calls == ["create"]
    assert payments.charges() == []


@pytest.mark.parametrize("refusal", ["declined", "another intent", "gone"])
def test_a_commit_that_the_row_refuses_after_the_charge_is_parked_and_kept(
    payments: Payments, refusal: str, capsys: pytest.CaptureFixture[str]
) -> None:
    delivery = payments.delivery()
    happens = {
        "declined": lambda: _set(payments, state="declined"),
        "another intent": lambda: _set(payments, intent_id="pi_other"),
        "gone": lambda: payments.world.empty("orders", "order_id"),
    }
    payments.world.wire.plan("TransactWriteItems", meanwhile(happens[refusal]))

    assert payments.deliver(delivery) == []

    assert payments.parked() == ["effect_without_state"]
    record = payments.world.record("payment.charge#ord_1") or {}
    assert record["status"] == {"S": "INPROGRESS"}
    assert int(record["in_progress_expiration"]["N"]) > payments.world.clock.now_ms()  # nothing released
    assert record["unsettled"] == {"BOOL": True}
    assert metrics(capsys.readouterr().out) == {"EffectWithoutState": 1, "Parked": 1}
    assert payments.charges() == [("succeeded", 2500)]


def test_a_row_that_holds_the_same_payment_already_is_a_duplicate(
    payments: Payments, capsys: pytest.CaptureFixture[str]
) -> None:
    delivery = payments.delivery()

    def settled_by_hand() -> None:
        _set(payments, state="paid", charge_id="ch_1", paid_at="2027-01-15T08:00:00.000Z")

    payments.world.wire.plan("TransactWriteItems", meanwhile(settled_by_hand))

    assert payments.deliver(delivery) == []

    payments.settled_once()
    assert metrics(capsys.readouterr().out) == {"DuplicateReplayed": 1}


@pytest.mark.parametrize(
    ("amount", "currency", "order_id"), [(2501, "eur", "ord_1"), (2500, "usd", "ord_1"), (2500, "eur", "ord_2")]
)
def test_a_foreign_intent_on_the_row_is_not_confirmed(
    payments: Payments, amount: int, currency: str, order_id: str
) -> None:
    delivery = payments.delivery()
    orders().save_intent_id("ord_1", _intent(payments, amount, currency, order_id))

    assert payments.deliver(delivery) == []

    assert payments.parked() == ["intent_mismatch"]
    assert payments.intents() == ["requires_confirmation"]
    assert payments.state() == "placed"


def test_a_foreign_intent_on_the_row_that_was_paid_does_not_pay_the_order(payments: Payments) -> None:
    delivery = payments.delivery()
    intent = _intent(payments, 2501)
    payments.provider.v1.payment_intents.confirm(intent)
    orders().save_intent_id("ord_1", intent)

    assert payments.deliver(delivery) == []

    assert payments.parked() == ["effect_without_state"]
    assert payments.state() == "placed"


def test_without_time_for_it_no_intent_is_made(payments: Payments) -> None:
    delivery = payments.delivery()
    payments.world.wire.plan(
        "GetItem", meanwhile(lambda: payments.world.clock.advance(85))
    )  # 22.75 s of the step are left, 23 s are needed

    assert payments.deliver(delivery) == ["message-1"]

    assert payments.connection.calls == []
    assert payments.waits()[-1] <= 2  # known not to be done
    payments.until_quiet(delivery)
    payments.settled_once()


def test_without_time_to_cancel_nothing_is_confirmed(payments: Payments) -> None:
    delivery = payments.delivery()
    payments.connection.plan(
        "create", on_the_line(lambda: payments.world.clock.advance(68))
    )  # 39.75 s of the step are left, 40 s needed

    assert payments.deliver(delivery) == ["message-1"]

    assert payments.connection.calls == ["create"]
    assert payments.waits()[-1] <= 2
    payments.until_quiet(delivery)
    payments.settled_once()


def test_with_just_enough_time_it_is_confirmed(payments: Payments) -> None:
    delivery = payments.delivery()
    payments.connection.plan("create", on_the_line(lambda: payments.world.clock.advance(67)))

    assert payments.deliver(delivery) == []

    payments.settled_once()


def test_a_confirmation_that_took_all_the_time_leaves_the_cancelling_to_the_next_try(payments: Payments) -> None:
    delivery = payments.delivery("pm_card_chargeDeclined")
    payments.connection.plan("confirm", on_the_line(lambda: payments.world.clock.advance(98)))

    assert payments.deliver(delivery) == ["message-1"]

    assert payments.connection.calls == ["create", "confirm"]
    payments.until_quiet(delivery)
    payments.settled_once("declined")


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
    payments: Payments, operation: str, skipped: int, code: str
) -> None:
    delivery = payments.delivery()
    payments.world.wire.plan(operation, *[through] * skipped, refused(code))

    assert payments.deliver(delivery) == ["message-1"]
    if operation != "TransactWriteItems":
        assert payments.waits()[-1] <= 2  # known not to be done: it is released
    payments.until_quiet(delivery)

    payments.settled_once()


@pytest.mark.parametrize("how", ["too large", "not serialisable"])
def test_a_result_that_can_not_be_stored_costs_no_second_charge(
    payments: Payments, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    delivery = payments.delivery()
    if how == "too large":
        monkeypatch.setattr(records, "RESULT_LIMIT_BYTES", 10)
    else:
        monkeypatch.setattr("functions.payment.handler.Payment", lambda **_: object())

    assert payments.deliver(delivery) == []
    assert payments.deliver(delivery) == []

    assert payments.result()["key"] == "payment.charge#ord_1"
    assert "result_not_stored" in payments.result()
    assert payments.connection.calls == ["create", "confirm"]
    assert payments.charges() == [("succeeded", 2500)]
    assert payments.state() == "paid"


def test_a_payment_method_that_the_provider_does_not_know_is_parked_and_waits_for_a_person(payments: Payments) -> None:
    delivery = payments.delivery("pm_nobody")

    assert payments.deliver(delivery) == []

    assert payments.parked() == ["payment_method_missing"]
    assert payments.state() == "placed"
    assert payments.intents() == []


@pytest.mark.parametrize("code", ["ISK", "UGX", "MGA"])
def test_a_currency_whose_minor_unit_the_provider_counts_otherwise_is_not_taken(code: str) -> None:
    """It would charge a hundredth, or a hundred times as much: https://docs.stripe.com/currencies#special-cases."""
    assert code not in DECIMALS


def _set(payments: Payments, **values: str) -> None:
    """Somebody writes to the row by hand."""
    payments.world.dynamodb.update_item(
        TableName="orders",
        Key={"order_id": {"S": "ord_1"}},
        UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in values),
        ExpressionAttributeNames={f"#{name}": name for name in values},
        ExpressionAttributeValues={f":{name}": {"S": value} for name, value in values.items()},
    )


def _intent(payments: Payments, amount: int, currency: str = "eur", order_id: str = "ord_1") -> str:
    made = payments.provider.v1.payment_intents.create(
        {
            "amount": amount,
            "currency": currency,
            "payment_method": "pm_card_visa",
            "metadata": {"order_id": order_id},
        }
    )
    return made.id
