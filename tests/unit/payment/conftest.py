"""The payment function against the payment sandbox, in one process."""

from tests.harness.payment_fixtures import log, payments, provider_connection

__all__ = ["log", "payments", "provider_connection"]
