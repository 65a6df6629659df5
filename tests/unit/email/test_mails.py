"""The mails themselves."""

import msgspec

from functions.email.content import email_about
from shared.orders.events import Customer, Item
from shared.orders.row import Order

ORDER = Order(
    order_id="ord_1",
    state="paid",
    fingerprint="v1:a",
    caller="queue",
    customer=Customer(name="Åsa <script>alert(1)</script> & Co", email="asa@example.com"),
    currency="JPY",
    items=(Item(sku="A-1", quantity=3, unit_price=700), Item(sku="B.2", quantity=1, unit_price=0)),
    total=2100,
    payment_method="pm_card_visa",
    correlation_id="c-1",
    paid_at="2026-01-01T00:00:02.000Z",
)
DECLINED = msgspec.structs.replace(
    ORDER, state="declined", paid_at=None, declined_at="2026-01-01T00:00:02.000Z", decline_reason="stolen_card"
)


def test_a_receipt_lists_every_line_and_the_total_in_the_orders_currency() -> None:
    mail = email_about(ORDER)

    assert mail.text.splitlines()[-4:] == ["", "3 x A-1: 2100 JPY", "1 x B.2: 0 JPY", "Total: 2100 JPY"]
    assert "<tr><td>3 x A-1</td><td>2100 JPY</td></tr>" in mail.html
    assert "2026-01-01T00:00:02.000Z" in mail.text


def test_what_the_customer_wrote_stays_text() -> None:
    for mail in (email_about(ORDER), email_about(DECLINED)):
        assert "<script>" not in mail.html
        assert "Åsa &lt;script&gt;alert(1)&lt;/script&gt; &amp; Co" in mail.html
        assert "Dear Åsa <script>alert(1)</script> & Co," in mail.text


def test_the_same_row_makes_the_same_mail() -> None:
    again = msgspec.structs.replace(ORDER, open_since=1, sweeps=3)

    assert email_about(again) == email_about(ORDER)


def test_the_subject_holds_the_order_id() -> None:
    assert email_about(ORDER).subject == "Receipt for order ord_1"
    assert email_about(DECLINED).subject == "Order ord_1 was declined"


def test_a_decline_says_what_it_means_and_not_why() -> None:
    mail = email_about(DECLINED)

    assert "nothing was charged" in mail.text
    assert "stolen" not in mail.text + mail.html
