"""Orders: their events, their row, and the writes that change it."""

from .events import Customer, Item, NewOrder, OrderDeclined, OrderEvent, OrderPaid, OrderPlaced, OrderRequested
from .money import DECIMALS, MAX_AMOUNT, format_amount
from .repository import Orders, orders, pending_messages
from .row import API_ID_PREFIX, DECLINED, OPEN_SHARDS, PAID, PLACED, REQUESTED, Order, parse_row
from .writes import record_declined, record_mailed, record_paid, record_placed, record_request

__all__ = [
    "API_ID_PREFIX",
    "DECIMALS",
    "DECLINED",
    "MAX_AMOUNT",
    "OPEN_SHARDS",
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
    "format_amount",
    "orders",
    "parse_row",
    "pending_messages",
    "record_declined",
    "record_mailed",
    "record_paid",
    "record_placed",
    "record_request",
]
