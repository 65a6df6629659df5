from tests.harness.driver import pipeline
from tests.harness.payment_fixtures import line, shop
from tests.harness.witnesses import mailbox

__all__ = ["line", "mailbox", "pipeline", "shop"]
