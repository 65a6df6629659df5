"""Runs one step for one event: claim, step, commit; or once."""

import os
from collections.abc import Callable
from typing import Any

import msgspec

from shared.idempotency import outbox
from shared.idempotency.clock import Clock
from shared.idempotency.errors import (
    EffectWithoutState,
    KeyReused,
    NotDone,
    OutcomeUnknown,
    Permanent,
    StepError,
    StoreError,
    Superseded,
    Unknown,
)
from shared.idempotency.events import Event, fingerprint
from shared.idempotency.records import Claim, Duplicate, encode_result
from shared.idempotency.steps import Attempt, Effect, Outcome, Step
from shared.idempotency.store import Store


class Message(msgspec.Struct, frozen=True):
    """An event with what the transport says of it."""

    event: Event
    correlation_id: str
    trace: str | None = None  # X-Ray trace header


class Ran(msgspec.Struct, frozen=True):
    """A step that is done: now, or before."""

    result: Any
    replayed: bool
    attempt: int = 1
    uncertain: bool = False


class Engine(msgspec.Struct, frozen=True):
    """Runs steps against one store. `skew_s`: how far two workers' clocks may differ."""

    store: Store
    clock: Clock
    skew_s: float
    new_owner: Callable[[], str] = msgspec.field(default=lambda: os.urandom(16).hex())

    def lease_end(self, deadline_ms: int) -> int:
        """Epoch milliseconds. Past its deadline, by the clocks' difference, a worker is gone or a zombie."""
        return deadline_ms + int(self.skew_s * 1000)

    def run(self, step: Step[Any], message: Message, deadline_ms: int) -> Ran:
        """Run a step to its outcome. `deadline_ms`: epoch milliseconds at which the worker is stopped.

        Raises the errors of errors.py; what a step with an outside effect raises unexpectedly is Unknown.
        """
        if step.effect is Effect.NONE:
            return self._once(step, message, deadline_ms)
        key = step.record_key(message.event)
        try:
            claim = self.store.claim(
                key,
                fingerprint(message.event),
                owner=self.new_owner(),
                lease_until_ms=self.lease_end(deadline_ms),
                correlation_id=message.correlation_id,
                deadline_ms=deadline_ms,
            )
        except OutcomeUnknown as error:
            error.held = True
            raise
        if isinstance(claim, Duplicate):
            return Ran(claim.result, replayed=True)
        attempt = self._attempt(key, message, deadline_ms, claim)
        try:
            outcome = self._effect(step, message.event, attempt, claim)
            held = self._commit(outcome, message, attempt, claim)
        except StepError as error:
            error.uncertain = claim.uncertain
            raise
        except Exception as error:  # of a step that answered nonsense too: its effect may have happened
            unknown = Unknown(f"{type(error).__name__} in {step.operation}")
            unknown.uncertain = claim.uncertain
            raise unknown from error
        return Ran(outcome.result, held or outcome.duplicate, claim.attempt, claim.uncertain)

    def _effect(self, step: Step[Any], event: Event, attempt: Attempt, claim: Claim) -> Outcome:
        """Call the step; a claim is given back only where it is known that nothing was done."""
        try:
            return step(event, attempt)
        except EffectWithoutState:
            raise
        except (NotDone, Permanent) as error:
            # Nothing was ever done under this key: it is free for any request, since the one that came first may be
            # the false one. Where an earlier try may have had its effect, the key stays that try's; but for a request
            # that the step itself finds false: no try of it can have had one.
            forget = not claim.uncertain or isinstance(error, KeyReused)
            self._release(claim, forget, attempt.deadline_ms, error)
            raise

    def _commit(self, outcome: Outcome, message: Message, attempt: Attempt, claim: Claim) -> bool:
        """Commit; where that fails, leave the next try a note of what the effect came to."""
        data = encode_result(outcome.result, claim.key)
        events = self._outbox(outcome, message, attempt)
        try:
            return self.store.commit(claim, data, events, outcome.writes, attempt.deadline_ms)
        except (StoreError, EffectWithoutState) as error:  # the latter, for when a person has set the row right
            error.held = True
            if claim.noted is None:
                try:
                    self.store.note(claim, fingerprint(message.event), data, deadline_ms=attempt.deadline_ms)
                except (Superseded, StoreError) as trouble:
                    error.add_note(f"not noted: {trouble!r}")
            raise

    def _release(self, claim: Claim, forget: bool, deadline_ms: int, error: StepError) -> None:
        try:
            self.store.release(claim, forget=forget, deadline_ms=deadline_ms)
        except Superseded as lost:
            raise lost from error  # another has the last word now, also on what this worker would have parked
        except StoreError as trouble:
            error.held = True
            error.add_note(f"not released: {trouble!r}")  # the verdict stands: the lease lapses by itself

    def _once(self, step: Step[Any], message: Message, deadline_ms: int) -> Ran:
        key = step.record_key(message.event)
        attempt = self._attempt(key, message, deadline_ms, None)
        outcome = step(message.event, attempt)
        found = self.store.once(
            key,
            fingerprint(message.event),
            owner=self.new_owner(),
            data=encode_result(outcome.result, key),
            outbox=self._outbox(outcome, message, attempt),
            writes=outcome.writes,
            correlation_id=message.correlation_id,
            deadline_ms=deadline_ms,
        )
        if isinstance(found, Duplicate):
            return Ran(found.result, replayed=True)
        return Ran(outcome.result, replayed=found or outcome.duplicate)

    def _attempt(self, key: str, message: Message, deadline_ms: int, claim: Claim | None) -> Attempt:
        return Attempt(
            key=key,
            number=claim.attempt if claim else 1,
            uncertain=claim.uncertain if claim else False,
            noted=msgspec.json.decode(claim.noted) if claim and claim.noted else None,
            correlation_id=message.correlation_id,
            deadline_ms=deadline_ms,
            clock=self.clock,
        )

    def _outbox(self, outcome: Outcome, message: Message, attempt: Attempt) -> str | None:
        if not outcome.publish:
            return None
        return outbox.pack(
            outcome.publish,
            correlation_id=message.correlation_id,
            now_ms=attempt.now_ms,
            trace=message.trace,
        )
