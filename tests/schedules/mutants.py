"""Named mutants: each breaks one guarantee by replacing a function or a constant at run time.

A mutant names functions of the product and quotes none of their source, so that a refactoring leaves it valid.
The explorer searches a mutant's scenarios first (mutant_runs.py). If it finds nothing, the unit tests run with the
mutant (mutant_plugin.py). A mutant that nobody notices fails `make mutants`.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pytest
from botocore.exceptions import ClientError

from functions.api import create_order
from functions.api import request as api_request
from functions.email import handler as email
from functions.order import handler as order
from functions.payment import handler as payment
from functions.payment import provider
from functions.payment.intent import Intent
from functions.relay import handler as relay
from functions.sweep import handler as sweep
from shared.idempotency import (
    Attempt,
    Busy,
    Done,
    Engine,
    Event,
    NotDone,
    Outcome,
    Permanent,
    RequestInDoubt,
    Step,
    StepError,
    StepResult,
    Superseded,
    Unknown,
    Write,
    client,
    records,
    sqs,
    store,
    telemetry,
)
from shared.idempotency.records import Claim, Image, StoredResult, text
from shared.idempotency.sqs import Batch, Job, Keys
from shared.idempotency.store import Store
from shared.orders import Orders, writes
from shared.orders.row import Order
from tests.schedules.run import Run
from tools.operate import settle

Patch = pytest.MonkeyPatch

LAYER = ("tests/unit/idempotency",)
PAYMENT = ("tests/unit/payment",)
ORDERS = ("tests/unit/orders",)


@dataclass(frozen=True)
class Mutant:
    """`scenarios`: what the explorer searches first. `tests`: what runs if the explorer notices nothing."""

    name: str
    module: str  # whose code it breaks
    break_code: Callable[[Patch], None]
    scenarios: tuple[str, ...]
    tests: tuple[str, ...]

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The code is broken in this block. Raises AttributeError if a name is not there any more."""
        with pytest.MonkeyPatch.context() as patch:
            self.break_code(patch)
            yield


MUTANTS: dict[str, Mutant] = {}


def mutant(
    module: str, *, scenarios: Sequence[str] = (), tests: Sequence[str]
) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    """Register a function that breaks the code through a MonkeyPatch. The function's name is the mutant's name."""

    def register(function: Callable[[Patch], None]) -> Callable[[Patch], None]:
        name = function.__name__
        MUTANTS[name] = Mutant(name, module, function, tuple(scenarios), tuple(tests))
        return function

    return register


def wrap(patch: Patch, owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
    """Replace a function. `wrapper` gets the original function before the arguments of the call."""
    original = getattr(owner, name)

    def call(*arguments: Any, **named: Any) -> Any:
        return wrapper(original, *arguments, **named)

    patch.setattr(owner, name, call)


def always(write: Write, key: str) -> Write:
    """A business write whose condition always holds for an existing row. The condition's placeholders stay in use."""
    ((kind, body),) = write.request.items()
    condition = f"({body['ConditionExpression']}) OR attribute_exists({key}) OR attribute_not_exists({key})"
    return msgspec.structs.replace(write, request={kind: {**body, "ConditionExpression": condition}})


# The store


class AnyOwner(Store, frozen=True):
    """A store whose updates hold for any owner of a claim in progress."""

    def _update(self, claim: Claim, expression: str, values: dict[str, Any], names: str = "#status, #owner") -> Any:
        request = super()._update(claim, expression, values, names)
        request["ConditionExpression"] = "(#owner = :owner OR attribute_exists(id)) AND #status = :inprogress"
        return request


def _any_owner(self: Store) -> Store:
    return AnyOwner(*(getattr(self, field) for field in self.__struct_fields__))


@mutant("store", scenarios=("email", "payment"), tests=LAYER)
def commit_for_any_owner(patch: Patch) -> None:
    wrap(patch, Store, "commit", lambda commit, self, *given, **named: commit(_any_owner(self), *given, **named))


@mutant("store", scenarios=("payment",), tests=LAYER)
def release_for_any_owner(patch: Patch) -> None:
    wrap(patch, Store, "release", lambda release, self, *given, **named: release(_any_owner(self), *given, **named))


@mutant("store", scenarios=("email", "payment"), tests=LAYER)
def claim_during_another_lease(patch: Patch) -> None:
    patch.setattr(store, "_FREE", f"{store._FREE} OR (#status = :inprogress AND validation = :fingerprint)")


@mutant("store", tests=LAYER)
def claim_of_another_request_taken_over(patch: Patch) -> None:
    patch.setattr(store, "_FREE", f"{store._FREE} OR (#status = :inprogress AND in_progress_expiration <= :now_ms)")


@mutant("store", scenarios=("payment-other-create",), tests=LAYER)
def key_free_for_its_old_owner(patch: Patch) -> None:
    """The owner clause is missing."""
    patch.setattr(store, "_FREE", store._FREE.replace("#owner <> :owner", "(#owner <> :owner OR #owner = :owner)"))


@mutant("store", scenarios=("payment-other-create",), tests=LAYER)
def forgotten_key_free_during_its_lease(patch: Patch) -> None:
    """The lease clause is missing."""
    no_lease = f"(attribute_not_exists(in_progress_expiration) OR {store._NO_LEASE})"
    patch.setattr(store, "_FREE", store._FREE.replace(no_lease, "attribute_exists(id)"))


@mutant("store", scenarios=("email",), tests=LAYER)
def expired_lease_never_taken_over(patch: Patch) -> None:
    patch.setattr(store, "_FREE", f"({store._FREE}) AND (attribute_not_exists(id) OR expiration <= :now_s)")


@mutant("store", scenarios=("email",), tests=LAYER)
def unsettled_not_set(patch: Patch) -> None:
    """No claim leaves a trace of its attempt, so that the next attempt is not uncertain."""

    def claim(original: Callable[..., Any], *given: Any, **named: Any) -> Claim | StoredResult:
        found = original(*given, **named)
        return msgspec.structs.replace(found, uncertain=False) if isinstance(found, Claim) else found

    wrap(patch, Store, "claim", claim)


@mutant("store", tests=LAYER)
def release_clears_uncertain(patch: Patch) -> None:
    def update(original: Callable[..., Any], self: Store, claim: Claim, expression: str, *given: Any) -> Any:
        return original(self, claim, expression.replace("unsettled = uncertain", "unsettled = attempt"), *given)

    wrap(patch, Store, "_update", update)


@mutant("store", tests=LAYER)
def takeover_keeps_an_old_outbox(patch: Patch) -> None:
    patch.setattr(store, "_TAKE", store._TAKE.replace("REMOVE #data, outbox", "REMOVE #data"))


@mutant("store", scenarios=("pipeline",), tests=LAYER)
def record_completed_without_outbox(patch: Patch) -> None:
    def commit(original: Callable[..., bool], self: Store, claim: Claim, data: str, _: str | None, *given: Any) -> bool:
        return original(self, claim, data, None, *given)

    wrap(patch, Store, "commit", commit)


@mutant("store", tests=LAYER)
def new_token_for_each_resend(patch: Patch) -> None:
    numbers = itertools.count()

    def send(
        original: Callable[..., Any], self: Store, call: Callable[..., Any], request: Any, deadline_ms: int
    ) -> Any:
        def call_with_new_token(**request: Any) -> Any:
            return call(**request | ({"ClientRequestToken": f"{next(numbers)}"} if "TransactItems" in request else {}))

        return original(self, call_with_new_token, request, deadline_ms)

    wrap(patch, Store, "_send", send)


@mutant("store", scenarios=("order", "email"), tests=LAYER)
def cancelled_transaction_taken_for_applied(patch: Patch) -> None:
    def send(
        original: Callable[..., Any], self: Store, call: Callable[..., Any], request: Any, deadline_ms: int
    ) -> Any:
        def call_without_cancellation(**request: Any) -> Any:
            try:
                return call(**request)
            except ClientError as error:
                if error.response["Error"]["Code"] == "TransactionCanceledException":
                    return {}
                raise

        return original(self, call_without_cancellation, request, deadline_ms)

    wrap(patch, Store, "_send", send)


@mutant("store", scenarios=("payment",), tests=LAYER)
def order_written_outside_the_transaction(patch: Patch) -> None:
    def send(
        original: Callable[..., Any], self: Store, call: Callable[..., Any], request: Any, deadline_ms: int
    ) -> Any:
        for item in reversed(request.get("TransactItems", [])):
            answer = original(self, call, {"TransactItems": [item]}, deadline_ms)
        return answer if "TransactItems" in request else original(self, call, request, deadline_ms)

    wrap(patch, Store, "_send", send)


@mutant("store", tests=LAYER)
def refusal_by_the_row_ignored(patch: Patch) -> None:
    def complete(original: Callable[..., Any], self: Store, record: Any, owner: str, found: Any, *given: Any) -> Any:
        agreeable = [msgspec.structs.replace(write, on_conflict=lambda _: None) for write in found]
        return original(self, record, owner, agreeable, *given)

    wrap(patch, Store, "_complete", complete)


@mutant("store", tests=LAYER)
def own_claim_not_recognised(patch: Patch) -> None:
    def claim_of(image: Image, _: str) -> Claim:
        raise Busy(int(image["in_progress_expiration"]["N"]))

    patch.setattr(store, "claim_of", claim_of)


@mutant("store", scenarios=("payment", "email"), tests=LAYER)
def superseded_commit_taken_for_done(patch: Patch) -> None:
    def commit(original: Callable[..., bool], *given: Any, **named: Any) -> bool:
        try:
            return original(*given, **named)
        except Superseded:
            return False

    wrap(patch, Store, "commit", commit)


# Existing records


@mutant("records", scenarios=("api-reused",), tests=LAYER)
def fingerprint_not_compared(patch: Patch) -> None:
    def resolve(original: Callable[..., StoredResult], image: Image, **named: Any) -> StoredResult:
        return original(image, **{**named, "fingerprint": text(image, "validation")})

    wrap(patch, store, "resolve_existing_record", resolve)


@mutant("records", scenarios=("email", "payment"), tests=LAYER)
def claim_in_progress_taken_for_done(patch: Patch) -> None:
    def resolve(original: Callable[..., StoredResult], *given: Any, **named: Any) -> StoredResult:
        try:
            return original(*given, **named)
        except Busy:
            return StoredResult(None)

    wrap(patch, store, "resolve_existing_record", resolve)


@mutant("records", scenarios=("order",), tests=LAYER)
def duplicate_replays_none(patch: Patch) -> None:
    def decode_result(_: Image, __: str) -> None:
        return None

    patch.setattr(records, "decode_result", decode_result)


@mutant("records", tests=LAYER)
def saved_result_ignored(patch: Patch) -> None:
    def saved_result_of(_: Image, __: str) -> None:
        return None

    for module in (records, store):
        patch.setattr(module, "saved_result_of", saved_result_of)


# The engine


@mutant("steps", scenarios=("payment-forgotten", "email-forgotten"), tests=LAYER)
def guard_skipped(patch: Patch) -> None:
    def run(original: Callable[..., Outcome | Done], self: Step[Any], event: Any, attempt: Attempt) -> Outcome | Done:
        found = original(self, event, attempt)
        facts = Orders(client("dynamodb"), "orders").get(event.order_id) if isinstance(found, Done) else None
        return self.function(event, attempt, facts) if facts else found

    wrap(patch, Step, "__call__", run)


@mutant("engine", scenarios=("email", "payment"), tests=LAYER)
def one_owner_for_all_attempts(patch: Patch) -> None:
    def run(original: Callable[..., StepResult], self: Engine, *given: Any, **named: Any) -> StepResult:
        return original(msgspec.structs.replace(self, new_owner=lambda: "worker"), *given, **named)

    wrap(patch, Engine, "run", run)


@mutant("engine", scenarios=("email", "payment"), tests=LAYER)
def lease_of_zero(patch: Patch) -> None:
    wrap(patch, Engine, "lease_end", lambda _, self, __: self.clock.now_ms())


@mutant("engine", tests=LAYER)
def lease_without_skew(patch: Patch) -> None:
    wrap(patch, Engine, "lease_end", lambda _, __, deadline_ms: deadline_ms)


@mutant("engine", tests=("tests/schedules/test_hanging.py",))
def old_time_budgets(patch: Patch) -> None:
    """Claim, step and commit may use the worker's whole life."""

    def run(original: Callable[..., StepResult], self: Engine, *arguments: Any, **named: Any) -> StepResult:
        return original(msgspec.structs.replace(self, step_needs_s=0.0, reserve_s=0.0), *arguments, **named)

    wrap(patch, Engine, "run", run)
    wrap(patch, Engine, "left_s", lambda original, self, deadline_ms: original(self, deadline_ms) + self.reserve_s)
    patch.setattr(Engine, "_request_ms", 0)


@mutant("engine", scenarios=("email",), tests=LAYER)
def claim_released_after_unknown(patch: Patch) -> None:
    def perform(
        original: Callable[..., Outcome], self: Engine, step: Any, event: Event, attempt: Attempt, claim: Claim
    ) -> Outcome:
        try:
            return original(self, step, event, attempt, claim)
        except Unknown as error:
            self._release(claim, True, attempt.deadline_ms, error)
            raise

    wrap(patch, Engine, "_perform", perform)


@mutant("engine", tests=LAYER)
def forgotten_although_uncertain(patch: Patch) -> None:
    def release(original: Callable[..., None], self: Engine, claim: Claim, _: bool, *given: Any) -> None:
        original(self, claim, True, *given)

    wrap(patch, Engine, "_release", release)


@mutant("engine", scenarios=("payment-another",), tests=LAYER)
def another_request_keeps_the_key(patch: Patch) -> None:
    def release(original: Callable[..., None], self: Engine, claim: Claim, _: bool, *given: Any) -> None:
        original(self, claim, not claim.uncertain, *given)

    wrap(patch, Engine, "_release", release)


@mutant("engine", tests=LAYER)
def unexpected_error_taken_for_not_done(patch: Patch) -> None:
    def run(original: Callable[..., StepResult], *given: Any, **named: Any) -> StepResult:
        try:
            return original(*given, **named)
        except Unknown as error:
            if error.__cause__ is None or isinstance(error.__cause__, StepError):
                raise
            raise NotDone(str(error)) from error

    wrap(patch, Engine, "run", run)


@mutant("engine", tests=LAYER)
def claim_kept_ignored(patch: Patch) -> None:
    def run(original: Callable[..., StepResult], *given: Any, **named: Any) -> StepResult:
        try:
            return original(*given, **named)
        except StepError as error:
            error.claim_kept = False
            raise

    wrap(patch, Engine, "run", run)


@mutant("engine", tests=("tests/unit/idempotency", "tests/unit/orders"))
def new_id_for_each_emission(patch: Patch) -> None:
    numbers = itertools.count()
    patch.setattr(Event, "id", property(lambda self: f"{self.subject}/{self.type}/{next(numbers)}"))


# The batch


@mutant("sqs", scenarios=("payment",), tests=LAYER)
def failed_record_acknowledged(patch: Patch) -> None:
    def retry(original: Callable[..., None], self: Batch, job: Job) -> None:
        original(self, job)
        job.retry_in_s = None

    wrap(patch, Batch, "_retry", retry)


@mutant("sqs", scenarios=("email", "payment"), tests=LAYER)
def busy_record_acknowledged(patch: Patch) -> None:
    def run_job(original: Callable[..., None], self: Batch, job: Job, event: Event) -> None:
        original(self, job, event)
        if job.counts[telemetry.BUSY]:
            job.retry_in_s = None

    wrap(patch, Batch, "_run_job", run_job)


@mutant("sqs", tests=LAYER)
def first_failure_of_a_batch_reported_only(patch: Patch) -> None:
    def run(original: Callable[..., Any], self: Batch, found: Any) -> dict[str, Any]:
        return {"batchItemFailures": original(self, found)["batchItemFailures"][:1]}

    wrap(patch, Batch, "run", run)


@mutant("sqs", tests=LAYER)
def acknowledged_before_it_is_parked(patch: Patch) -> None:
    def park(original: Callable[..., None], self: Batch, job: Job, error: Any) -> None:
        try:
            original(self, job, error)
        except Exception:
            job.retry_in_s = None

    wrap(patch, Batch, "_park", park)


@mutant("sqs", scenarios=("order-batch",), tests=LAYER)
def batch_returns_while_a_step_runs(patch: Patch) -> None:
    def run(_: Callable[..., Any], self: Batch, found: list[Any]) -> dict[str, Any]:
        pool = self.consumer.runtime.pool(self.consumer.concurrency)
        for chain in sqs.chains_of(Job(record) for record in found):
            pool.submit(self._run_chain, chain)
        return {"batchItemFailures": []}

    wrap(patch, Batch, "run", run)


@mutant("sqs", tests=LAYER)
def key_in_use_ignored(patch: Patch) -> None:
    """Two jobs of one key run side by side."""
    wrap(patch, Keys, "take", lambda *_: True)
    wrap(patch, Keys, "release", lambda *_: [])


@mutant("sqs", tests=LAYER)
def step_started_without_time(patch: Patch) -> None:
    wrap(patch, Batch, "_has_time", lambda *_: True)


@mutant("sqs", tests=LAYER)
def body_limit_off(patch: Patch) -> None:
    wrap(patch, sqs, "decode_cloudevent", lambda decode, body, _: decode(body, 2**40))


# Orders


@mutant("orders", tests=(*ORDERS, *PAYMENT))
def settled_from_any_state(patch: Patch) -> None:
    wrap(patch, writes, "_settle", lambda settle, *given: always(settle(*given), "order_id"))


@mutant("order", tests=("tests/unit/order",))
def order_placed_twice(patch: Patch) -> None:
    wrap(patch, order, "record_placed", lambda record, *given, **named: always(record(*given, **named), "order_id"))


@mutant("orders", scenarios=("payment-forgetful",), tests=(*ORDERS, *PAYMENT))
def intent_on_the_row_overwritten(patch: Patch) -> None:
    def save_intent_id(self: Orders, order_id: str, intent_id: str) -> str:
        self.client.update_item(
            TableName=self.table,
            Key={"order_id": {"S": order_id}},
            UpdateExpression="SET intent_id = :intent",
            ExpressionAttributeValues={":intent": {"S": intent_id}},
        )
        return intent_id

    patch.setattr(Orders, "save_intent_id", save_intent_id)


# Payment


@mutant("payment", scenarios=("payment",), tests=PAYMENT)
def intent_confirmed_before_it_is_fixed(patch: Patch) -> None:
    def intent_on_row(original: Callable[..., Intent], row: Order, attempt: Attempt) -> Intent:
        if row.intent_id is None:
            created = provider.provider().create(row, attempt)
            provider.provider().confirm(row, created, attempt)
        return original(row, attempt)

    wrap(patch, payment, "_intent_on_row", intent_on_row)


@mutant("payment", scenarios=("payment-forgetful",), tests=PAYMENT)
def own_intent_confirmed_instead_of_the_rows(patch: Patch) -> None:
    def save_intent_id(original: Callable[..., str | None], self: Orders, order_id: str, intent_id: str) -> str | None:
        return intent_id if original(self, order_id, intent_id) else None

    wrap(patch, Orders, "save_intent_id", save_intent_id)


@mutant("orders", scenarios=("payment-settled",), tests=(*ORDERS, *PAYMENT))
def intent_saved_on_a_marked_row(patch: Patch) -> None:
    def save_intent_id(original: Callable[..., str | None], self: Orders, order_id: str, intent_id: str) -> str | None:
        found = self.get(order_id)
        if found is None or not found.settling or found.intent_id:
            return original(self, order_id, intent_id)
        self.client.update_item(
            TableName=self.table,
            Key={"order_id": {"S": order_id}},
            UpdateExpression="SET intent_id = :intent",
            ConditionExpression="#state = :placed",
            ExpressionAttributeNames={"#state": "state"},
            ExpressionAttributeValues={":intent": {"S": intent_id}, ":placed": {"S": "placed"}},
        )
        return intent_id

    wrap(patch, Orders, "save_intent_id", save_intent_id)


@mutant("settle", scenarios=("payment-settled",), tests=("tests/unit/operate",))
def settled_without_reading_the_intent_back(patch: Patch) -> None:
    patch.setattr(settle, "_cancel", lambda ledger, intent_id, _: ledger.cancel(intent_id))


@mutant("payment", tests=PAYMENT)
def confirmed_although_the_row_is_marked(patch: Patch) -> None:
    patch.setattr(payment, "_mark_of", lambda _: None)


@mutant("payment", scenarios=("payment-refused-at-confirm",), tests=PAYMENT)
def refusals_of_the_customers_fault_parked(patch: Patch) -> None:
    def to_step_error(original: Callable[..., StepError], *given: Any, **named: Any) -> StepError:
        error = original(*given, **named)
        return Permanent(error.reason) if isinstance(error, Permanent) else error

    wrap(patch, provider, "to_step_error", to_step_error)


@mutant("payment", scenarios=("payment-other-create", "payment-other-retrieve"), tests=PAYMENT)
def intent_answers_unchecked(patch: Patch) -> None:
    wrap(patch, provider, "mismatch", lambda *_: None)


@mutant("payment", tests=PAYMENT)
def decline_not_cancelled(patch: Patch) -> None:
    def cancel(_: Callable[..., Intent], __: Any, ___: Order, intent: Intent, ____: Attempt) -> Intent:
        return replace(intent, status="canceled")

    wrap(patch, provider.Provider, "cancel", cancel)


@mutant("payment", scenarios=("payment-deleted",), tests=PAYMENT)
def confirmed_under_one_key(patch: Patch) -> None:
    def confirm(original: Callable[..., Intent], self: Any, event: Any, intent: Intent, attempt: Attempt) -> Intent:
        return original(self, event, intent, msgspec.structs.replace(attempt, number=1))

    wrap(patch, provider.Provider, "confirm", confirm)


@mutant("payment", tests=PAYMENT)
def settled_by_an_open_intent(patch: Patch) -> None:
    def outcome(original: Callable[..., Outcome], row: Order, intent: Intent, attempt: Attempt) -> Outcome:
        status = intent.status if intent.status == "succeeded" else "canceled"
        return original(row, replace(intent, status=status), attempt)

    wrap(patch, payment, "_outcome", outcome)


@mutant("payment", tests=PAYMENT)
def lost_answer_of_the_provider_taken_for_not_done(patch: Patch) -> None:
    def to_step_error(original: Callable[..., StepError], *given: Any, **named: Any) -> StepError:
        error = original(*given, **named)
        return NotDone(str(error)) if isinstance(error, Unknown) else error

    wrap(patch, provider, "to_step_error", to_step_error)


# Email


@mutant("email", scenarios=("email",), tests=("tests/unit/email",))
def lost_answer_of_ses_taken_for_not_sent(patch: Patch) -> None:
    def send_email(original: Callable[..., str], *given: Any, **named: Any) -> str:
        try:
            return original(*given, **named)
        except Unknown as error:
            raise NotDone(str(error)) from error

    wrap(patch, email, "send_email", send_email)


@mutant("email", scenarios=("email-forgotten",), tests=("tests/unit/email",))
def email_sent_although_mailed(patch: Patch) -> None:
    wrap(patch, Orders, "get", lambda get, *given: msgspec.structs.replace(get(*given), mailed_at=None))


# The relay and the sweep


@mutant("relay", scenarios=("relay",), tests=("tests/unit/relay",))
def unsent_event_acknowledged(patch: Patch) -> None:
    def send(original: Callable[..., Mapping[Any, Any]], *given: Any) -> Mapping[Any, Any]:
        original(*given)
        return {}

    wrap(patch, relay, "send", send)


@mutant("relay", tests=("tests/unit/relay",))
def batch_acknowledged_when_time_runs_out(patch: Patch) -> None:
    def handler(original: Callable[..., None], *given: Any) -> None:
        try:
            original(*given)
        except relay.NotRelayed:
            return

    wrap(patch, relay, "handler", handler)


@mutant("sweep", tests=("tests/unit/sweep",))
def sweep_ends_at_the_first_failed_shard(patch: Patch) -> None:
    def serve_shard(original: Callable[..., bool], self: sweep.Run, *given: Any) -> bool:
        if original(self, *given) or not self.has_time():
            return True
        raise sweep.NotSwept("a shard")

    wrap(patch, sweep.Run, "serve_shard", serve_shard)


@mutant("sweep", tests=("tests/unit/sweep",))
def sweep_recorded_before_the_event_is_sent(patch: Patch) -> None:
    class RecordsFirst(Orders):
        def get(self, order_id: str) -> Order | None:
            found = Orders.get(self, order_id)
            if found and found.open_since is not None:
                Orders.record_sweep(self, found, found.open_since + 3600)
            return found

        def record_sweep(self, order: Order, until_s: int) -> None:
            pass

    def serve(original: Callable[..., Any], self: sweep.Run, order_id: str) -> Any:
        table = RecordsFirst(self.table.client, self.table.table)
        return original(replace(self, table=table), order_id)

    wrap(patch, sweep.Run, "_serve", serve)


# The API


@mutant("api", tests=("tests/unit/api",))
def order_in_doubt_accepted(patch: Patch) -> None:
    def run(original: Callable[..., StepResult], event: Any, *given: Any) -> StepResult:
        try:
            return original(event, *given)
        except RequestInDoubt:
            accepted = create_order.Accepted(event.order_id, "requested", event.total, event.currency)
            return StepResult(accepted, replayed=False)

    wrap(patch, create_order, "_run", run)


@mutant("api", tests=("tests/unit/api",))
def order_ids_of_two_callers_equal(patch: Patch) -> None:
    wrap(patch, create_order, "order_id_of", lambda make, _, *scope: make("caller", *scope))


@mutant("api", tests=("tests/unit/api",))
def body_limit_of_the_api_off(patch: Patch) -> None:
    patch.setattr(api_request, "BODY_LIMIT_BYTES", 2**40)


# The explorer


@mutant("explorer", tests=("tests/schedules/test_late.py",))
def late_request_applied_at_once(patch: Patch) -> None:
    def send_late(original: Callable[..., None], self: Run, *given: Any) -> None:
        original(self, *given)
        *others, late = self.late
        self.late = tuple(others)
        self._apply_late(late)

    wrap(patch, Run, "_send_late", send_late)


def by_module() -> Counter[str]:
    """The number of mutants of each module."""
    return Counter(each.module for each in MUTANTS.values())
