from tests.harness.driver import pipeline
from tests.harness.observations import log, mailbox, metrics
from tests.harness.payment_fixtures import payments, provider_connection

__all__ = ["log", "mailbox", "metrics", "payments", "pipeline", "provider_connection"]
