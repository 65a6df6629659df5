from tests.unit.payment.conftest import line, shop
from tests.unit.pipeline.driver import pipeline
from tests.unit.pipeline.witnesses import log, mailbox, metrics

__all__ = ["line", "log", "mailbox", "metrics", "pipeline", "shop"]
