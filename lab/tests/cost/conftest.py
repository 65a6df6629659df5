from tests.harness.driver import pipeline
from tests.harness.observations import mailbox
from tests.harness.payment_fixtures import payments, provider_connection

__all__ = ["mailbox", "payments", "pipeline", "provider_connection"]
