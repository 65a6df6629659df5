"""Errors that end an attempt. Steps raise NotDone, Unknown or Permanent. The engine raises the rest."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError


class StepError(Exception):
    """A step ended without an outcome.

    `uncertain`: an earlier attempt under the same key may have had its effect.
    `claim_kept`: the claim may still exist, so that every other attempt is Busy until the lease expires.
    """

    uncertain = False
    claim_kept = False


class NotDone(StepError):
    """It is known that nothing happened. The claim is released and the message is retried."""


class Unknown(StepError):
    """The effect may have happened. The claim is kept, and after its lease the next attempt is `uncertain`."""

    claim_kept = True


class Permanent(StepError):
    """A retry cannot change the refusal. The message goes to the dead-letter queue with `reason` as an attribute.

    The attempt had no effect, except in EffectWithoutState.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        """`reason` is a short constant in snake case, `detail` is free text without personal data."""
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


class KeyReused(Permanent):
    """Another request uses an idempotency key, or an order id, that is taken. The original request is unchanged.

    A step raises KeyReused if the request contradicts facts that never change: no attempt of this request can have
    had an effect.
    """

    def __init__(self, detail: str = "") -> None:
        super().__init__("key_reused", detail)


class Damaged(Permanent):
    """This code cannot have written the record. The step does not run. A person repairs it (docs/runbook.md)."""

    def __init__(self, detail: str) -> None:
        super().__init__("damaged_record", detail)


class EffectWithoutState(Permanent):
    """The effect happened and the row refused the new state. The record keeps its claim, and an alarm rings."""

    def __init__(self, detail: str = "") -> None:
        super().__init__("effect_without_state", detail)


class Busy(StepError):
    """Another attempt holds the claim until `until_ms` (epoch milliseconds). Retry after that time."""

    def __init__(self, until_ms: int) -> None:
        super().__init__(f"claimed by another attempt until {until_ms}")
        self.until_ms = until_ms


class Superseded(StepError):
    """Another owner took the key over before the commit. Nothing was written. A retry finds that owner's result."""


class StoreError(StepError):
    """DynamoDB gave no answer that settles the request before the deadline."""


class NotWritten(StoreError):
    """It is known that the request was not applied: it was throttled, refused or never sent."""


class Conflict(NotWritten):
    """It is known that the request was not applied: another write on the same item was in flight."""


class RequestInDoubt(StoreError):
    """The request may have been applied: its answer was lost. The same request may be sent again."""


@contextmanager
def as_not_done(what: str) -> Iterator[None]:
    """Convert AWS errors raised in this block into NotDone. Use it only around calls that may safely be repeated.

    `what` and the error code go into the log. The message of AWS does not: it may quote the request.
    """
    try:
        yield
    except ClientError as error:
        raise NotDone(f"{what}: {error.response['Error']['Code']}") from error
    except BotoCoreError as error:
        raise NotDone(f"{what}: {type(error).__name__}") from error
