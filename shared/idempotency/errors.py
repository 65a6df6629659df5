"""How a try can end without an outcome. A step raises the first three, or a kind of Permanent; the core the others."""


class StepError(Exception):
    """A step did not come to an outcome.

    `uncertain`: an earlier try under its key may have had its effect. `held`: its claim may still stand, and keeps
    everybody out until its lease ends.
    """

    uncertain = False
    held = False


class NotDone(StepError):
    """It is known that nothing was done: the claim is released and the message retried."""


class Unknown(StepError):
    """Something may have been done: the claim is kept, its lease lapses, the next try is told `uncertain`."""

    held = True


class Permanent(StepError):
    """No retry can help, and this try did nothing, but in EffectWithoutState: parked, with `reason` as an attribute.

    Only for what is named: unparsable, schema-invalid, key reused, damaged, and reasons listed per provider.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        """`reason` is a short constant in snake case, `detail` free text without personal data."""
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


class KeyReused(Permanent):
    """Another request came under a key, or an order id, that is taken. The original is untouched.

    A step raises it where the request contradicts facts that never change: then no try of it can have done anything.
    """

    def __init__(self, detail: str = "") -> None:
        super().__init__("key_reused", detail)


class Damaged(Permanent):
    """A record that this code can not have written: never run again, a person clears it (docs/runbook.md)."""

    def __init__(self, detail: str) -> None:
        super().__init__("damaged_record", detail)


class EffectWithoutState(Permanent):
    """The effect happened and its state was refused: parked, the record kept as it is, alarmed, audited."""

    def __init__(self, detail: str = "") -> None:
        super().__init__("effect_without_state", detail)


class Busy(StepError):
    """Somebody else holds the claim until `until_ms` (epoch milliseconds): retry then, never acknowledge."""

    def __init__(self, until_ms: int) -> None:
        super().__init__(f"claimed by another until {until_ms}")
        self.until_ms = until_ms


class Superseded(StepError):
    """Another owner took over before the commit: nothing was written. The retry finds the winner's result."""


class StoreError(StepError):
    """DynamoDB gave no answer that settles the request before the deadline."""


class NotWritten(StoreError):
    """It is known that the request was not applied: throttled, refused or never sent."""


class Conflict(NotWritten):
    """It is known that the request was not applied: another write was in flight on the same item."""


class OutcomeUnknown(StoreError):
    """The request may have been applied: its answer was lost. The same request is safe to send again."""


class TokenMismatch(OutcomeUnknown):
    """A client request token was used for two different requests: a bug of ours, never read as done."""
