"""Email: sends the receipt or the decline notice, and marks the order mailed."""

import os

import msgspec

from functions.email.content import RECEIPT, Email, email_about
from functions.email.ses import send_email
from shared.idempotency import (
    Attempt,
    Done,
    Effect,
    KeyReused,
    NotDone,
    Outcome,
    as_not_done,
    client,
    logger,
    request_s,
    sqs_handler,
    step,
)
from shared.orders import (
    PLACED,
    REQUESTED,
    Order,
    OrderDeclined,
    OrderEvent,
    OrderPaid,
    disclosed,
    orders,
    record_mailed,
)


class Mailed(msgspec.Struct, frozen=True):
    """The step's stored result: the kind of email, and the id that SES gave it."""

    order_id: str
    mail: str
    mail_id: str


def order_of(event: OrderEvent, _: Attempt) -> Done | Order:
    """Return the event's order; Done if its email was sent. The row outlives the idempotency record.

    Raises NotDone if the row is not in that state yet, KeyReused if facts differ.
    """
    order = orders().get(event.order_id)
    if order is None:
        raise NotDone(f"order {event.order_id} is missing")
    if (order.total, order.currency) != (event.total, event.currency):
        raise KeyReused(f"order {order.order_id} is another request")
    if order.state in (REQUESTED, PLACED):
        raise NotDone(f"order {event.order_id} is {order.state}")
    if isinstance(event, OrderDeclined):  # an earlier version sent the true reason
        event = msgspec.structs.replace(event, reason=disclosed(event.reason))
    if msgspec.structs.replace(order, mailed_at=None).next_event != event:
        raise KeyReused(f"order {order.order_id} is {order.state}, with other facts")
    if order.mailed_at:
        return Done(Outcome(Mailed(order.order_id, order.mail or "", order.mail_id or "")))
    return order


@step(
    "email.send",
    event=(OrderPaid, OrderDeclined),
    key=lambda order: order.order_id,
    effect=Effect.EXTERNAL,
    guard=order_of,
)
def send(_: OrderEvent, attempt: Attempt, order: Order) -> Outcome:
    """Store the receipt in S3, send the email by SES, and mark the order mailed. No error here affects the payment."""
    email = email_about(order)
    if email.kind == RECEIPT:
        with as_not_done("store the receipt"):
            _store_receipt(order, email)
    if attempt.saved_result:  # an earlier attempt sent the email and could not commit
        mailed = msgspec.convert(attempt.saved_result, Mailed)
    else:
        mailed = Mailed(order.order_id, email.kind, _send(order, email, attempt))
    write = record_mailed(
        os.environ["ORDERS_TABLE"],
        order.order_id,
        state=order.state,
        mail=mailed.mail,
        mail_id=mailed.mail_id,
        now_ms=attempt.now_ms,
    )
    return Outcome(mailed, [write])


def _store_receipt(order: Order, email: Email) -> None:
    """Store the receipt under the order's own key: writing it twice changes nothing."""
    client("s3").put_object(
        Bucket=os.environ["RECEIPTS_BUCKET"],
        Key=f"receipts/{order.order_id}.html",
        Body=email.html.encode(),
        ContentType="text/html; charset=utf-8",
    )


def _send(order: Order, email: Email, attempt: Attempt) -> str:
    """Send the email and return its id. Raises NotDone if too little time is left, and the errors of ses.py."""
    attempt.require(request_s())
    if attempt.uncertain:
        logger.warning("an earlier attempt may have sent this email: it is sent once more", attempt=attempt.number)
    return send_email(
        client("sesv2"), email, sender=os.environ["SENDER"], to=order.customer.email, effect_key=attempt.key
    )


handler = sqs_handler(send)
