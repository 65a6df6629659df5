"""The emails' subjects and texts. They depend on the order row only, so a second email equals the first."""

from dataclasses import dataclass
from html import escape

from shared.orders import PAID, Order, format_amount

RECEIPT = "receipt"
DECLINE = "decline"


@dataclass(frozen=True, slots=True)
class Email:
    """One email, as text and as HTML. `kind` is RECEIPT or DECLINE."""

    kind: str
    subject: str
    text: str
    html: str


def email_about(order: Order) -> Email:
    """Return the receipt of a paid order, or the notice that the order was declined."""
    return _receipt(order) if order.state == PAID else _decline(order)


def _receipt(order: Order) -> Email:
    title = f"Receipt for order {order.order_id}"
    total = format_amount(order.total, order.currency)
    lines = [
        (f"{item.quantity} x {item.sku}", format_amount(item.quantity * item.unit_price, order.currency))
        for item in order.items
    ]
    thanks = f"we received your payment of {total} on {order.paid_at}."
    text = [f"Dear {order.customer.name},", "", thanks, ""]
    text += [f"{what}: {price}" for what, price in lines] + [f"Total: {total}", ""]
    rows = "".join(f"<tr><td>{escape(what)}</td><td>{escape(price)}</td></tr>\n" for what, price in lines)
    body = (
        f"<p>Dear {escape(order.customer.name)},</p>\n<p>{escape(thanks)}</p>\n"
        f"<table>\n{rows}<tr><th>Total</th><th>{escape(total)}</th></tr>\n</table>"
    )
    return Email(RECEIPT, title, "\n".join(text), _page(title, body))


def _decline(order: Order) -> Email:
    """The email names no reason: providers ask merchants not to disclose some of their decline reasons."""
    title = f"Order {order.order_id} was declined"
    total = format_amount(order.total, order.currency)
    notice = f"your payment of {total} was declined, so nothing was charged and the order ends here."
    advice = "To try another card, please order again."
    text = f"Dear {order.customer.name},\n\n{notice}\n{advice}\n"
    body = f"<p>Dear {escape(order.customer.name)},</p>\n<p>{escape(notice)}</p>\n<p>{escape(advice)}</p>"
    return Email(DECLINE, title, text, _page(title, body))


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        f"<title>{escape(title)}</title></head>\n<body>\n<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )
