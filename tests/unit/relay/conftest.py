from tests.harness.witnesses import log, mailbox, metrics

__all__ = ["log", "mailbox", "metrics"]
