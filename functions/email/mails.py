"""What the customer reads. All of it follows from the order row, so that a second mail is the same as the first."""

from dataclasses import dataclass
from html import escape

from shared.orders.money import formatted
from shared.orders.row import PAID, Order

RECEIPT = "receipt"
DECLINE = "decline"


@dataclass(frozen=True, slots=True)
class Mail:
    """One mail, as text and as HTML. `kind` is RECEIPT or DECLINE."""

    kind: str
    subject: str
    text: str
    html: str


def mail_about(order: Order) -> Mail:
    """The receipt of a paid order, or the word that it was declined."""
    return _receipt(order) if order.state == PAID else _decline(order)


def _receipt(order: Order) -> Mail:
    title = f"Receipt for order {order.order_id}"
    total = formatted(order.total, order.currency)
    lines = [
        (f"{item.quantity} x {item.sku}", formatted(item.quantity * item.unit_price, order.currency))
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
    return Mail(RECEIPT, title, "\n".join(text), _page(title, body))


def _decline(order: Order) -> Mail:
    """Why is between the customer and the bank: providers ask not to pass all of their reasons on."""
    title = f"Order {order.order_id} was declined"
    total = formatted(order.total, order.currency)
    said = f"your payment of {total} was declined, so nothing was charged and the order ends here."
    advice = "To try another card, please order again."
    text = f"Dear {order.customer.name},\n\n{said}\n{advice}\n"
    body = f"<p>Dear {escape(order.customer.name)},</p>\n<p>{escape(said)}</p>\n<p>{escape(advice)}</p>"
    return Mail(DECLINE, title, text, _page(title, body))


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        f"<title>{escape(title)}</title></head>\n<body>\n<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )
