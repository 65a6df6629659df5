"""Orders: their events, their row, and the writes that change it."""

from .api_key import KeyUnusable, is_live_key, parse_api_key
from .events import (
    Customer,
    Item,
    NewOrder,
    OrderDeclined,
    OrderEvent,
    OrderPaid,
    OrderPlaced,
    OrderRequested,
    disclosed,
)
from .money import DECIMALS, MAX_AMOUNT, format_amount, largest_charge, smallest_charge
from .payment import CHARGE, Payment, declined, unsettled
from .repository import Orders, orders, pending_messages
from .row import API_ID_PREFIX, DECLINED, OPEN_SHARDS, PAID, PLACED, REQUESTED, Order, parse_row
from .writes import record_declined, record_mailed, record_paid, record_placed, record_request

__all__ = [
    "API_ID_PREFIX",
    "CHARGE",
    "DECIMALS",
    "DECLINED",
    "MAX_AMOUNT",
    "OPEN_SHARDS",
    "PAID",
    "PLACED",
    "REQUESTED",
    "Customer",
    "Item",
    "KeyUnusable",
    "NewOrder",
    "Order",
    "OrderDeclined",
    "OrderEvent",
    "OrderPaid",
    "OrderPlaced",
    "OrderRequested",
    "Orders",
    "Payment",
    "declined",
    "disclosed",
    "format_amount",
    "is_live_key",
    "largest_charge",
    "orders",
    "parse_api_key",
    "parse_row",
    "pending_messages",
    "record_declined",
    "record_mailed",
    "record_paid",
    "record_placed",
    "record_request",
    "smallest_charge",
    "unsettled",
]
