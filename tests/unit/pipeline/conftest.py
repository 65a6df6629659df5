from tests.unit.pipeline.witnesses import log, mailbox, metrics

__all__ = ["log", "mailbox", "metrics"]
