"""Runs one step for one event: claim, guard, step, commit. A step without external effect runs in one transaction."""

import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from . import outbox, runtime
from .errors import (
    EffectWithoutState,
    KeyReused,
    NotDone,
    Permanent,
    RequestInDoubt,
    StepError,
    StoreError,
    Superseded,
    Unknown,
)
from .events import Event, fingerprint
from .records import Claim, StoredResult, encode_result
from .runtime import Clock
from .steps import Attempt, Done, Effect, Outcome, Step
from .store import Store


class StepResult(msgspec.Struct, frozen=True):
    """The result of a step. `replayed`: the step was done before, and the result is the stored one."""

    result: Any
    replayed: bool
    attempt: int = 1
    uncertain: bool = False


class Engine(msgspec.Struct, frozen=True):
    """Runs steps against one store. All times are in seconds and derived in stacks/times.py.

    `skew_s`: by how much the clocks of two workers may differ. `step_needs_s`: from the claim to the end of the commit,
    if each request takes as long as it may. `reserve_s`: from the end of the commit to the end of the worker.
    """

    store: Store
    clock: Clock
    skew_s: float
    step_needs_s: float
    reserve_s: float
    new_owner: Callable[[], str] = runtime.new_owner

    def lease_end(self, deadline_ms: int) -> int:
        """Return the end of a worker's lease, in epoch milliseconds: its deadline plus the clock skew."""
        return deadline_ms + int(self.skew_s * 1000)

    def left_s(self, deadline_ms: int) -> float:
        """Return the seconds until the commit deadline. A step may start if they are at least `step_needs_s`."""
        return (deadline_ms - self.clock.now_ms()) / 1000 - self.reserve_s

    def run(
        self,
        step: Step[Any],
        event: Event,
        deadline_ms: int,
        *,
        correlation_id: str,
        trace: str | None = None,
        context: Mapping[str, str] | None = None,
    ) -> StepResult:
        """Run a step to its outcome, or raise one of the errors of errors.py.

        `deadline_ms`: epoch milliseconds at which Lambda stops the worker. Claim, step and commit have earlier
        deadlines: each leaves the time for all that follows. `trace`: X-Ray header for the emitted events.
        `context`: facts of the request for the step that are not part of the event.
        An unexpected exception of a step with an external effect is raised as Unknown.
        """
        key = step.record_key(event)
        commit_ms = deadline_ms - int(self.reserve_s * 1000)
        attempt = Attempt(key, 1, False, correlation_id, commit_ms - self._request_ms, self.clock, context or {})
        if step.effect is Effect.NONE:
            return self._run_once(step, event, attempt, trace)
        try:
            claim = self.store.claim(
                key,
                fingerprint(event),
                owner=self.new_owner(),
                lease_until_ms=self.lease_end(deadline_ms),
                correlation_id=correlation_id,
                deadline_ms=commit_ms - int(self.step_needs_s * 1000) + self._request_ms,
            )
        except RequestInDoubt as error:
            error.claim_kept = True
            raise
        if isinstance(claim, StoredResult):
            return StepResult(claim.result, replayed=True)
        attempt = msgspec.structs.replace(
            attempt,
            number=claim.attempt,
            uncertain=claim.uncertain,
            saved_result=msgspec.json.decode(claim.saved_result) if claim.saved_result else None,
        )
        try:
            found = self._perform(step, event, attempt, claim)
            outcome = found.outcome if isinstance(found, Done) else found
            already_applied = self._commit(outcome, event, attempt, claim, trace)
        except StepError as error:
            error.uncertain = claim.uncertain
            raise
        except Exception as error:  # also an error in an invalid outcome: the effect may have happened
            unknown = Unknown(f"{type(error).__name__} in {step.operation}")
            unknown.uncertain = claim.uncertain
            raise unknown from error
        replayed = already_applied or isinstance(found, Done)
        return StepResult(outcome.result, replayed, claim.attempt, claim.uncertain)

    @property
    def _request_ms(self) -> int:
        return int(self.store.request_s * 1000)

    def _perform(self, step: Step[Any], event: Event, attempt: Attempt, claim: Claim) -> Outcome | Done:
        """Call the guard and the step. The claim is released only if it is known that the attempt had no effect."""
        try:
            return step(event, attempt)
        except EffectWithoutState:
            raise
        except (NotDone, Permanent) as error:
            # If no attempt under this key can have had an effect, the key becomes free for any request, because the
            # first request may be the wrong one. Otherwise the key stays with the attempt in doubt. KeyReused means
            # that no attempt of this request can have had an effect.
            forget = not claim.uncertain or isinstance(error, KeyReused)
            self._release(claim, forget, attempt.deadline_ms, error)
            raise

    def _commit(self, outcome: Outcome, event: Event, attempt: Attempt, claim: Claim, trace: str | None) -> bool:
        """Commit. If the commit fails, save the result of the effect for the next attempt."""
        data = encode_result(outcome.result, claim.key)
        events = _outbox(outcome, attempt, trace)
        try:
            return self.store.commit(claim, data, events, outcome.writes, attempt.deadline_ms + self._request_ms)
        except (StoreError, EffectWithoutState) as error:  # the result is used after a person has repaired the row
            error.claim_kept = True
            if claim.saved_result is None:
                until_ms = attempt.deadline_ms + 2 * self._request_ms
                try:
                    self.store.save_result(claim, fingerprint(event), data, deadline_ms=until_ms)
                except (Superseded, StoreError) as save_error:
                    error.add_note(f"result not saved: {save_error!r}")
            raise

    def _release(self, claim: Claim, forget: bool, deadline_ms: int, error: StepError) -> None:
        try:
            self.store.release(claim, forget=forget, deadline_ms=deadline_ms)
        except Superseded as superseded:
            raise superseded from error  # the new owner decides, also about a message that this attempt would park
        except StoreError as store_error:
            error.claim_kept = True  # until the lease expires
            error.add_note(f"not released: {store_error!r}")

    def _run_once(self, step: Step[Any], event: Event, attempt: Attempt, trace: str | None) -> StepResult:
        outcome: Outcome = step.function(event, attempt)
        found = self.store.once(
            attempt.key,
            fingerprint(event),
            owner=self.new_owner(),
            data=encode_result(outcome.result, attempt.key),
            outbox=_outbox(outcome, attempt, trace),
            writes=outcome.writes,
            correlation_id=attempt.correlation_id,
            deadline_ms=attempt.deadline_ms + self._request_ms,
        )
        if isinstance(found, StoredResult):
            return StepResult(found.result, replayed=True)
        return StepResult(outcome.result, replayed=found)


def _outbox(outcome: Outcome, attempt: Attempt, trace: str | None) -> str | None:
    if not outcome.publish:
        return None
    return outbox.pack(outcome.publish, correlation_id=attempt.correlation_id, now_ms=attempt.now_ms, trace=trace)


def current_engine() -> Engine:
    """Return the process's engine, made from its environment. Raises KeyError naming a variable that is not set."""
    here = runtime.current()
    return here.single(current_engine, lambda: _from_environment(here))


def _from_environment(here: runtime.Runtime) -> Engine:
    store = Store(
        client=here.client("dynamodb"),
        table=os.environ["IDEMPOTENCY_TABLE"],
        clock=here.clock,
        rng=here.rng,
        ttl_s=int(os.environ["RECORD_TTL_S"]),
        request_s=runtime.request_s(),
    )
    return Engine(
        store,
        here.clock,
        skew_s=float(os.environ["LEASE_SKEW_S"]),
        step_needs_s=float(os.environ["STEP_NEEDS_S"]),
        reserve_s=runtime.reserve_s(),
        new_owner=here.new_owner,
    )
