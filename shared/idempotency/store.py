"""Claim, commit, release and once: one conditional write each. A write is sent again until an answer settles it.

If an answer is lost, the next one shows by the owner whether the write was applied: the owner is new for each attempt.
botocore's own retries are off (runtime.py): they would hide whether an answer was lost or the write was refused.
"""

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
)

from .errors import (
    Conflict,
    EffectWithoutState,
    NotWritten,
    RequestInDoubt,
    StepError,
    StoreError,
    Superseded,
)
from .records import (
    COMPLETED,
    INPROGRESS,
    Claim,
    Image,
    StoredResult,
    claim_of,
    flag,
    number,
    resolve_existing_record,
    saved_result_attribute,
    saved_result_of,
    text,
)
from .runtime import Clock
from .steps import Write

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

RESEND_BASE_S = 0.05
RESEND_CAP_S = 1.0
FORGOTTEN_S = 86_400

T = TypeVar("T")

# A key is free if there is no record. It is also free if the record has another owner and no lease at this time, and is
# either expired or in progress for the same request. TTL deletes late, so the condition compares the expiration.
# The network may deliver a copy of a claim after the claim's release. Then the record has the copy's owner, or its
# lease ended later than the copy's own time.
_NO_LEASE = "in_progress_expiration <= :now_ms"
_FREE = (
    "attribute_not_exists(id) OR (#owner <> :owner AND ("
    f"(expiration <= :now_s AND (attribute_not_exists(in_progress_expiration) OR {_NO_LEASE})) OR "
    f"(#status = :inprogress AND validation = :fingerprint AND {_NO_LEASE})))"
)
# The next claim is `uncertain` if this one leaves `unsettled` true: from the claim until commit or release.
_TAKE = (
    "SET #status = :inprogress, #owner = :owner, validation = :fingerprint, "
    "expiration = :expiration, in_progress_expiration = :lease, correlation_id = :correlation, "
    "attempt = if_not_exists(attempt, :zero) + :one, "
    "uncertain = if_not_exists(unsettled, :false), unsettled = :true "
    "REMOVE #data, outbox"
)
_TAKE_CONSTANTS = {
    ":inprogress": {"S": INPROGRESS},
    ":zero": {"N": "0"},
    ":one": {"N": "1"},
    ":true": {"BOOL": True},
    ":false": {"BOOL": False},
}
_NAMES = {"#status": "status", "#owner": "owner", "#data": "data"}
_OWNED = "#owner = :owner AND #status = :inprogress"
_COMPLETE = "SET #status = :completed, #data = :data, expiration = :expiration, unsettled = :false REMOVE effect"
_COMPLETE_AND_PUBLISH = _COMPLETE.replace(" REMOVE", ", outbox = :outbox REMOVE")


class Store(msgspec.Struct, frozen=True):
    """The idempotency table. Safe to share between threads.

    `ttl_s` is the life of a record, `request_s` the longest time of one request (connect and read), both in seconds.
    """

    client: "DynamoDBClient"
    table: str
    clock: Clock
    rng: random.Random
    ttl_s: int
    request_s: float

    def claim(
        self, key: str, fingerprint: str, *, owner: str, lease_until_ms: int, correlation_id: str, deadline_ms: int
    ) -> Claim | StoredResult:
        """Claim the key, or return the result that is stored under it.

        Raises KeyReused, Damaged or Busy, and StoreError if no answer came before the deadline (epoch milliseconds).
        """
        now_ms = self.clock.now_ms()
        try:
            answer = self._send(
                self.client.update_item,
                {
                    "TableName": self.table,
                    "Key": {"id": {"S": key}},
                    "ConditionExpression": _FREE,
                    "UpdateExpression": _TAKE,
                    "ExpressionAttributeNames": _NAMES,
                    "ExpressionAttributeValues": {
                        **_TAKE_CONSTANTS,
                        ":owner": {"S": owner},
                        ":fingerprint": {"S": fingerprint},
                        ":expiration": self._expiration(now_ms),
                        ":lease": {"N": str(lease_until_ms)},
                        ":correlation": {"S": correlation_id},
                        ":now_s": {"N": str(now_ms // 1000)},
                        ":now_ms": {"N": str(now_ms)},
                    },
                    "ReturnValues": "ALL_OLD",
                    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                },
                deadline_ms,
            )
        except _Refused as refused:
            image = refused.images[0] or {}
            if text(image, "owner") == owner:
                return claim_of(image, key)
            return resolve_existing_record(image, key=key, fingerprint=fingerprint, now_ms=now_ms)
        old = answer.get("Attributes")
        if not old:
            return Claim(key, owner, attempt=1, uncertain=False)
        saved_result = saved_result_of(old, fingerprint)
        return Claim(key, owner, (number(old, "attempt") or 0) + 1, flag(old, "unsettled"), saved_result)

    def commit(self, claim: Claim, data: str, outbox: str | None, writes: Sequence[Write], deadline_ms: int) -> bool:
        """Complete the claimed record, with the step's writes and events, or do nothing.

        Returns whether the row already held these facts. Raises Superseded, EffectWithoutState or StoreError.
        """

        def recognise(image: Image) -> bool:
            if text(image, "owner") != claim.owner or text(image, "status") != COMPLETED:
                raise Superseded(claim.key)
            return False  # this commit was applied and its answer was lost

        update = self._update(
            claim,
            _COMPLETE_AND_PUBLISH if outbox else _COMPLETE,
            {
                ":completed": {"S": COMPLETED},
                ":false": {"BOOL": False},
                ":data": {"S": data},
                ":expiration": self._expiration(self.clock.now_ms()),
                **({":outbox": {"S": outbox}} if outbox else {}),
            },
            "#status, #owner, #data",
        )
        update["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        if not writes:
            try:
                self._send(self.client.update_item, update, deadline_ms)
            except _Refused as refused:
                recognise(refused.images[0] or {})
            return False
        try:
            return self._complete({"Update": update}, claim.owner, writes, deadline_ms, recognise)
        except (StoreError, Superseded):
            raise
        except StepError as error:
            raise EffectWithoutState(f"{claim.key}: {error}") from error

    def once(
        self,
        key: str,
        fingerprint: str,
        *,
        owner: str,
        data: str,
        outbox: str | None,
        writes: Sequence[Write],
        correlation_id: str,
        deadline_ms: int,
    ) -> StoredResult | bool:
        """Store a step without external effect in one transaction: record, writes and events.

        Returns the result that was stored before, or whether the row already held these facts.
        Raises KeyReused, Damaged, Busy or StoreError, and what a write's `on_conflict` returns.
        """
        now_ms = self.clock.now_ms()
        put = {
            "TableName": self.table,
            "Item": {
                "id": {"S": key},
                "status": {"S": COMPLETED},
                "validation": {"S": fingerprint},
                "owner": {"S": owner},
                "attempt": {"N": "1"},
                "uncertain": {"BOOL": False},
                "unsettled": {"BOOL": False},
                "correlation_id": {"S": correlation_id},
                "expiration": self._expiration(now_ms),
                "data": {"S": data},
                **({"outbox": {"S": outbox}} if outbox else {}),
            },
            "ConditionExpression": _FREE,
            "ExpressionAttributeNames": {"#status": "status", "#owner": "owner"},
            "ExpressionAttributeValues": {
                ":inprogress": {"S": INPROGRESS},
                ":owner": {"S": owner},
                ":fingerprint": {"S": fingerprint},
                ":now_s": {"N": str(now_ms // 1000)},
                ":now_ms": {"N": str(now_ms)},
            },
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }

        def recognise(image: Image) -> StoredResult | bool:
            if text(image, "owner") == owner:
                return False  # this write was applied and its answer was lost
            return resolve_existing_record(image, key=key, fingerprint=fingerprint, now_ms=now_ms)

        return self._complete({"Put": put}, owner, writes, deadline_ms, recognise)

    def release(self, claim: Claim, *, forget: bool, deadline_ms: int) -> None:
        """End the lease now, because it is known that this attempt had no effect. The attempt count stays.

        `forget`: no attempt under this key had an effect, so the key becomes free for other requests too.
        The lease must end after the deadline. Raises Superseded (nothing was released) or StoreError.
        """
        now_ms = self.clock.now_ms()
        update = self._update(
            claim,
            "SET in_progress_expiration = :now_ms, unsettled = uncertain" + (", expiration = :past" if forget else ""),
            {
                ":now_ms": {"N": str(now_ms)},
                # A day in the past. A worker with a slow clock still waits until the released lease is over.
                **({":past": {"N": str(now_ms // 1000 - FORGOTTEN_S)}} if forget else {}),
            },
        )
        try:
            self._send(self.client.update_item, update, deadline_ms)
        except _Refused as refused:
            # Another owner can have the key before the lease ends only if the first copy of this release was applied.
            if not (refused.maybe_applied and self.clock.now_ms() <= deadline_ms):
                raise Superseded(claim.key) from refused

    def save_result(self, claim: Claim, fingerprint: str, data: str, *, deadline_ms: int) -> None:
        """Save the result of an effect whose commit failed, so that the next attempt need not repeat the effect.

        Claim and lease do not change. Raises Superseded if another owner took over
        or the commit was applied after all. Raises StoreError.
        """
        saved = {":effect": {"S": saved_result_attribute(fingerprint, data)}}
        try:
            self._send(self.client.update_item, self._update(claim, "SET effect = :effect", saved), deadline_ms)
        except _Refused as refused:
            raise Superseded(claim.key) from refused

    def _update(self, claim: Claim, expression: str, values: dict[str, Any], names: str = "#status, #owner") -> Any:
        """Build an update of the claimed record, on condition that the claim still has its owner."""
        return {
            "TableName": self.table,
            "Key": {"id": {"S": claim.key}},
            "ConditionExpression": _OWNED,
            "UpdateExpression": expression,
            "ExpressionAttributeNames": {name: _NAMES[name] for name in names.split(", ")},
            "ExpressionAttributeValues": {":inprogress": {"S": INPROGRESS}, ":owner": {"S": claim.owner}, **values},
        }

    def _expiration(self, now_ms: int) -> dict[str, str]:
        return {"N": str(now_ms // 1000 + self.ttl_s)}

    def _complete(
        self,
        record: dict[str, dict[str, Any]],
        owner: str,
        writes: Sequence[Write],
        deadline_ms: int,
        recognise: Callable[[Image], T],
    ) -> T | bool:
        """Write the record and the business writes in one transaction.

        A write whose facts the row already holds is left out of a second transaction. Raises NotWritten if the deadline
        is too near for another transaction.
        """
        left = list(writes)
        while True:
            request = {
                "TransactItems": [record, *(_with_old_image(write.request) for write in left)],
                # Within ten minutes DynamoDB answers a repeated token with the first outcome. A transaction with fewer
                # writes is another request and needs another token.
                "ClientRequestToken": owner if len(left) == len(writes) else f"{owner}-{len(left)}",
            }
            try:
                self._send(self.client.transact_write_items, request, deadline_ms)
            except _Refused as refused:
                if 0 in refused.images:
                    return recognise(refused.images[0] or {})
                for position, row in refused.images.items():
                    if error := left[position - 1].on_conflict(row):
                        raise error from refused
                left = [write for position, write in enumerate(left, 1) if position not in refused.images]
                if self.clock.now_ms() + self.request_s * 1000 > deadline_ms:
                    raise NotWritten("no time for a transaction without the applied writes") from refused
            else:
                return len(left) < len(writes)

    def _send(self, call: Callable[..., Any], request: dict[str, Any], deadline_ms: int) -> Any:
        """Send the same request until an answer settles it or the deadline (epoch milliseconds) is near.

        Raises _Refused if a condition failed, and otherwise a StoreError that says what is known.
        """
        maybe_applied = False
        resends = 0
        while True:
            try:
                return call(**request)
            except (ClientError, BotoCoreError) as error:
                try:
                    store_error, resend = classify_error(error, len(request.get("TransactItems", ())))
                except _Refused as refused:
                    refused.maybe_applied = maybe_applied
                    raise
                maybe_applied |= isinstance(store_error, RequestInDoubt)
                wait_s = self.rng.uniform(0, min(RESEND_CAP_S, RESEND_BASE_S * 2**resends))
                in_time = self.clock.now_ms() + (wait_s + self.request_s) * 1000 <= deadline_ms
                if not (resend and in_time):
                    # The refusal of the last request does not settle an earlier one whose answer was lost.
                    in_doubt = maybe_applied and not isinstance(store_error, RequestInDoubt)
                    raise (RequestInDoubt(str(store_error)) if in_doubt else store_error) from error
                self.clock.sleep(wait_s)
                resends = min(resends + 1, 10)


class _Refused(Exception):
    """Conditions failed. `images`: the items that are there, by position in the request; None if there is no item.

    `maybe_applied`: the answer to an earlier copy of the request was lost.
    """

    maybe_applied = False

    def __init__(self, images: dict[int, Image | None]) -> None:
        super().__init__(f"refused at {sorted(images)}")
        self.images = images


_THROTTLED = {
    "ThrottlingException",
    "ThrottlingError",
    "ProvisionedThroughputExceededException",
    "ProvisionedThroughputExceeded",
    "RequestLimitExceeded",
}
_CONFLICT = {"TransactionConflictException", "TransactionConflict"}
_FAILED = {"ConditionalCheckFailedException", "ConditionalCheckFailed"}


def classify_error(error: ClientError | BotoCoreError, items: int) -> tuple[StoreError, bool]:
    """Return what an error says about the request, and whether to send the same request again at once.

    Raises _Refused if a condition failed, because a failed condition is an answer.
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
    """
    if not isinstance(error, ClientError):
        never_sent = isinstance(error, (ConnectTimeoutError, EndpointConnectionError))
        what = type(error).__name__
        return (NotWritten(what) if never_sent else RequestInDoubt(what)), True
    answer: dict[str, Any] = dict(error.response)
    code = answer["Error"]["Code"]
    if code in _FAILED:
        raise _Refused({0: answer.get("Item")}) from error
    if code == "TransactionCanceledException":
        return _classify_reasons(answer.get("CancellationReasons", []), items)
    if code in _CONFLICT:
        return Conflict(code), True
    if code in _THROTTLED:
        return NotWritten(code), True
    if code == "IdempotentParameterMismatchException":  # a bug of this layer, never to be read as done
        return RequestInDoubt(code), False
    if code == "TransactionInProgressException" or answer["ResponseMetadata"]["HTTPStatusCode"] >= 500:
        return RequestInDoubt(code), True
    return NotWritten(code), False  # access denied, no such table, …: people repair it, and the message waits


def _classify_reasons(reasons: list[dict[str, Any]], items: int) -> tuple[StoreError, bool]:
    """Classify a cancelled transaction, of which nothing was written. There is one reason for each item, by position.

    https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
    """
    codes = [reason.get("Code") or "None" for reason in reasons]
    if len(codes) != items:
        return NotWritten(f"cancelled for {codes}, {items} items sent"), True
    images = {n: reasons[n].get("Item") for n, code in enumerate(codes) if code in _FAILED}
    if 0 in images:  # the record comes first: it may show this very write, or that the work is done
        raise _Refused({0: images[0]})
    if any(code in _CONFLICT for code in codes):
        return Conflict(str(codes)), True
    if any(code in _THROTTLED for code in codes):
        return NotWritten(str(codes)), True
    if images and all(code == "None" or code in _FAILED for code in codes):
        raise _Refused(images)
    return NotWritten(str(codes)), False


def _with_old_image(request: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {kind: {**body, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"} for kind, body in request.items()}
