from tests.harness.driver import pipeline
from tests.harness.payment_fixtures import line, shop
from tests.harness.witnesses import log, mailbox, metrics

__all__ = ["line", "log", "mailbox", "metrics", "pipeline", "shop"]
