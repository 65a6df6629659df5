from tests.harness.observations import log, mailbox, metrics

__all__ = ["log", "mailbox", "metrics"]
