"""Email: tells the customer that the order is paid or declined, and marks the order mailed."""

import os

import msgspec

from functions.email.mails import RECEIPT, Mail, mail_about
from functions.email.ses import send_mail
from shared import aws
from shared.idempotency import Attempt, Effect, KeyReused, NotDone, Outcome, step
from shared.idempotency.sqs import sqs_handler
from shared.idempotency.harmless import harmless
from shared.orders import writes
from shared.orders.events import OrderDeclined, OrderEvent, OrderPaid
from shared.orders.repository import orders
from shared.orders.row import PLACED, REQUESTED, Order
from shared.idempotency.telemetry import logger


class Mailed(msgspec.Struct, frozen=True):
    """The step's stored result: which mail, and SES's id of it."""

    order_id: str
    mail: str
    mail_id: str


@step("email.send", event=(OrderPaid, OrderDeclined), key=lambda order: order.order_id, effect=Effect.EXTERNAL)
def send(event: OrderEvent, attempt: Attempt) -> Outcome:
    """Receipt to S3, mail by SES, and the order is final. Payment is never touched by mail trouble."""
    with harmless("before the mail"):
        order = _order(event)
        if order.mailed_at:
            return Outcome(Mailed(order.order_id, order.mail or "", order.mail_id or ""), duplicate=True)
        mail = mail_about(order)
        if mail.kind == RECEIPT:
            _keep(order, mail)
    if attempt.noted:
        mailed = msgspec.convert(attempt.noted, Mailed)  # sent by an earlier try, which could not commit
    else:
        mailed = Mailed(order.order_id, mail.kind, _send(order, mail, attempt))
    return Outcome(
        mailed,
        writes=[
            writes.mark_mailed(
                os.environ["ORDERS_TABLE"],
                order.order_id,
                state=order.state,
                mail=mailed.mail,
                mail_id=mailed.mail_id,
                now_ms=attempt.now_ms,
            )
        ],
    )


def _order(event: OrderEvent) -> Order:
    """The order as the event says it is. Raises NotDone where the row is not that far, KeyReused where it differs."""
    order = orders().get(event.order_id)
    if order is None:
        raise NotDone(f"order {event.order_id} is missing")
    if (order.total, order.currency) != (event.total, event.currency):
        raise KeyReused(f"order {order.order_id} is another request")
    if order.state in (REQUESTED, PLACED):
        raise NotDone(f"order {event.order_id} is {order.state}")
    if msgspec.structs.replace(order, mailed_at=None).next_event != event:
        raise KeyReused(f"order {order.order_id} is {order.state}, with other facts")
    return order


def _keep(order: Order, mail: Mail) -> None:
    """The receipt, under the order's own key: written twice it is the same."""
    aws.client("s3").put_object(
        Bucket=os.environ["RECEIPTS_BUCKET"],
        Key=f"receipts/{order.order_id}.html",
        Body=mail.html.encode(),
        ContentType="text/html; charset=utf-8",
    )


def _send(order: Order, mail: Mail, attempt: Attempt) -> str:
    """The mail; answers its id. Raises what ses.py says, and NotDone with too little time left."""
    attempt.require(2 * aws.request_s())  # send, commit
    if attempt.uncertain:
        logger.warning("an earlier try may have sent this mail: it is sent once more", attempt=attempt.number)
    return send_mail(
        aws.client("sesv2"), mail, sender=os.environ["SENDER"], to=order.customer.email, effect_key=attempt.key
    )


handler = sqs_handler(send)
