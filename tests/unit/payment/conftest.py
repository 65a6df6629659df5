"""The payment function against the payment sandbox, in one process."""

from tests.harness.payment_fixtures import line, log, shop

__all__ = ["line", "log", "shop"]
