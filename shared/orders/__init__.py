"""Orders: their events, their row, and the writes that change it."""

from .events import Customer, Item, NewOrder, OrderDeclined, OrderEvent, OrderPaid, OrderPlaced, OrderRequested
from .money import DECIMALS, MAX_AMOUNT, formatted
from .repository import Orders, orders, pending_message
from .row import API_ID_PREFIX, DECLINED, PAID, PLACED, REQUESTED, Order, parse_row
from .writes import record_declined, record_mailed, record_paid, record_placed, record_request

__all__ = [
    "API_ID_PREFIX",
    "DECIMALS",
    "DECLINED",
    "MAX_AMOUNT",
    "PAID",
    "PLACED",
    "REQUESTED",
    "Customer",
    "Item",
    "NewOrder",
    "Order",
    "OrderDeclined",
    "OrderEvent",
    "OrderPaid",
    "OrderPlaced",
    "OrderRequested",
    "Orders",
    "formatted",
    "orders",
    "parse_row",
    "pending_message",
    "record_declined",
    "record_mailed",
    "record_paid",
    "record_placed",
    "record_request",
]
