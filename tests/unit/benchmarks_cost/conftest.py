from tests.unit.payment.conftest import line, shop
from tests.unit.pipeline.driver import pipeline
from tests.unit.pipeline.witnesses import mailbox

__all__ = ["line", "mailbox", "pipeline", "shop"]
