"""Claim, commit, release and once: one conditional write each, sent again until it is settled.

Every answer that can be lost is recognised afterwards by the owner, which is fresh for each try. botocore's own
retries are off for this client (shared/aws.py): they would hide whether an answer was lost or the write refused.
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

from shared.idempotency.clock import Clock
from shared.idempotency.errors import (
    Conflict,
    EffectWithoutState,
    NotWritten,
    OutcomeUnknown,
    StepError,
    StoreError,
    Superseded,
    TokenMismatch,
)
from shared.idempotency.records import (
    COMPLETED,
    INPROGRESS,
    Claim,
    Duplicate,
    Image,
    claim_of,
    effect_of,
    flag,
    judge,
    noted_in,
    number,
    text,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

RESEND_BASE_S = 0.05
RESEND_CAP_S = 1.0
FORGOTTEN_S = 86_400

T = TypeVar("T")

# Free to take: absent, expired (TTL deletes late, so it is judged here), or a lapsed lease on the same request.
_FREE = (
    "attribute_not_exists(id) OR expiration <= :now_s OR "
    "(#status = :inprogress AND in_progress_expiration <= :now_ms AND validation = :fingerprint)"
)
# `unsettled` says what the next claim is told: true from here until commit or release.
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
_MINE = "#owner = :owner AND #status = :inprogress"
_COMPLETE = "SET #status = :completed, #data = :data, expiration = :expiration, unsettled = :false REMOVE effect"
_COMPLETE_AND_PUBLISH = _COMPLETE.replace(" REMOVE", ", outbox = :outbox REMOVE")
_COMPLETE_CONSTANTS = {
    ":inprogress": {"S": INPROGRESS},
    ":completed": {"S": COMPLETED},
    ":false": {"BOOL": False},
}


class Write(msgspec.Struct, frozen=True):
    """One business write of a step: performed only together with its record.

    `request` is an entry of TransactWriteItems with its condition. `judge` gets the item that refused it (None: no
    such item) and answers None where the same facts already hold, else the error that it means.
    """

    request: dict[str, dict[str, Any]]
    judge: Callable[[Image | None], StepError | None]


class Store(msgspec.Struct, frozen=True):
    """The idempotency table. Safe to share between threads.

    `ttl_s`: seconds that a record lives; `request_s`: the longest that one request takes, connect and read.
    """

    client: "DynamoDBClient"
    table: str
    clock: Clock
    rng: random.Random
    ttl_s: int
    request_s: float

    def claim(
        self, key: str, fingerprint: str, *, owner: str, lease_until_ms: int, correlation_id: str, deadline_ms: int
    ) -> Claim | Duplicate:
        """Take the key, or say what was done under it.

        Raises KeyReused, Damaged, Busy; StoreError where no answer came before the deadline (epoch ms).
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
            return judge(image, key=key, fingerprint=fingerprint, now_ms=now_ms)
        old = answer.get("Attributes")
        if not old:
            return Claim(key, owner, attempt=1, uncertain=False)
        noted = noted_in(old, fingerprint)
        return Claim(key, owner, (number(old, "attempt") or 0) + 1, flag(old, "unsettled"), noted)

    def commit(self, claim: Claim, data: str, outbox: str | None, writes: Sequence[Write], deadline_ms: int) -> bool:
        """Complete the claimed record, with the step's writes and events, or do nothing.

        True where the row already held these facts. Raises Superseded, EffectWithoutState, StoreError.
        """

        def recognise(image: Image) -> bool:
            if text(image, "owner") != claim.owner or text(image, "status") != COMPLETED:
                raise Superseded(claim.key)
            return False  # my own commit, its answer was lost

        update = {
            "TableName": self.table,
            "Key": {"id": {"S": claim.key}},
            "ConditionExpression": _MINE,
            "UpdateExpression": _COMPLETE_AND_PUBLISH if outbox else _COMPLETE,
            "ExpressionAttributeNames": _NAMES,
            "ExpressionAttributeValues": {
                **_COMPLETE_CONSTANTS,
                ":owner": {"S": claim.owner},
                ":data": {"S": data},
                ":expiration": self._expiration(self.clock.now_ms()),
                **({":outbox": {"S": outbox}} if outbox else {}),
            },
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
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
    ) -> Duplicate | bool:
        """A step with no outside effect, whole, in one transaction.

        Answers what was stored before, or whether the row already held these facts.
        Raises KeyReused, Damaged, Busy, StoreError, and what a write's own judge says.
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
            "ExpressionAttributeNames": {"#status": "status"},
            "ExpressionAttributeValues": {
                ":inprogress": {"S": INPROGRESS},
                ":fingerprint": {"S": fingerprint},
                ":now_s": {"N": str(now_ms // 1000)},
                ":now_ms": {"N": str(now_ms)},
            },
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }

        def recognise(image: Image) -> Duplicate | bool:
            if text(image, "owner") == owner:
                return False  # my own write, its answer was lost
            return judge(image, key=key, fingerprint=fingerprint, now_ms=now_ms)

        return self._complete({"Put": put}, owner, writes, deadline_ms, recognise)

    def release(self, claim: Claim, *, forget: bool, deadline_ms: int) -> None:
        """End the lease now, because it is known that this try did nothing. The attempt count stays.

        `forget`: nothing was ever done under this key, so it is free for another request too.
        Raises Superseded (nothing released), StoreError.
        """
        now_ms = self.clock.now_ms()
        try:
            self._send(
                self.client.update_item,
                {
                    "TableName": self.table,
                    "Key": {"id": {"S": claim.key}},
                    "ConditionExpression": _MINE,
                    "UpdateExpression": (
                        "SET in_progress_expiration = :now_ms, unsettled = uncertain"
                        + (", expiration = :past" if forget else "")
                    ),
                    "ExpressionAttributeNames": {"#status": "status", "#owner": "owner"},
                    "ExpressionAttributeValues": {
                        ":inprogress": {"S": INPROGRESS},
                        ":owner": {"S": claim.owner},
                        ":now_ms": {"N": str(now_ms)},
                        # Well past, so that the key is free for a worker whose clock is behind too.
                        **({":past": {"N": str(now_ms // 1000 - FORGOTTEN_S)}} if forget else {}),
                    },
                },
                deadline_ms,
            )
        except _Refused as refused:
            raise Superseded(claim.key) from refused

    def note(self, claim: Claim, fingerprint: str, data: str, *, deadline_ms: int) -> None:
        """Keep the result of an effect that happened and could not be committed: the next try need not repeat it.

        Claim and lease stay as they are. Raises Superseded (or it is committed after all), StoreError.
        """
        try:
            self._send(
                self.client.update_item,
                {
                    "TableName": self.table,
                    "Key": {"id": {"S": claim.key}},
                    "ConditionExpression": _MINE,
                    "UpdateExpression": "SET effect = :effect",
                    "ExpressionAttributeNames": {"#status": "status", "#owner": "owner"},
                    "ExpressionAttributeValues": {
                        ":inprogress": {"S": INPROGRESS},
                        ":owner": {"S": claim.owner},
                        ":effect": {"S": effect_of(fingerprint, data)},
                    },
                },
                deadline_ms,
            )
        except _Refused as refused:
            raise Superseded(claim.key) from refused

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
        """Record and writes in one transaction; writes whose facts already hold are left out of a second one."""
        left = list(writes)
        while True:
            request = {
                "TransactItems": [record, *(_with_old_image(write.request) for write in left)],
                # Within ten minutes DynamoDB answers a resend with the first outcome. The same request, the same
                # token; a transaction with fewer writes is another request and needs another.
                "ClientRequestToken": owner if len(left) == len(writes) else f"{owner}-{len(left)}",
            }
            try:
                self._send(self.client.transact_write_items, request, deadline_ms)
            except _Refused as refused:
                if 0 in refused.images:
                    return recognise(refused.images[0] or {})
                for position, row in refused.images.items():
                    if error := left[position - 1].judge(row):
                        raise error from refused
                left = [write for position, write in enumerate(left, 1) if position not in refused.images]
            else:
                return len(left) < len(writes)

    def _send(self, call: Callable[..., Any], request: dict[str, Any], deadline_ms: int) -> Any:
        """Send one request, the same each time, until an answer settles it or the deadline (epoch ms) is near.

        Raises _Refused where a condition failed, else a StoreError that says what is known.
        """
        maybe_applied = False
        resends = 0
        while True:
            try:
                return call(**request)
            except (ClientError, BotoCoreError) as error:
                trouble, resend = _read(error, len(request.get("TransactItems", ())))
                maybe_applied |= isinstance(trouble, OutcomeUnknown)
                wait_s = self.rng.uniform(0, min(RESEND_CAP_S, RESEND_BASE_S * 2**resends))
                in_time = self.clock.now_ms() + (wait_s + self.request_s) * 1000 <= deadline_ms
                if not (resend and in_time):
                    # A refusal of the last try says nothing of an earlier one whose answer was lost.
                    hidden = maybe_applied and not isinstance(trouble, OutcomeUnknown)
                    raise (OutcomeUnknown(str(trouble)) if hidden else trouble) from error
                self.clock.sleep(wait_s)
                resends = min(resends + 1, 10)


class _Refused(Exception):
    """Conditions failed: the items in their way, by position in the request; None where there is no item."""

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


def _read(error: ClientError | BotoCoreError, items: int) -> tuple[StoreError, bool]:
    """What an error says of the request, and whether the same request is worth sending again at once.

    Raises _Refused where a condition failed: that is an answer.
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
    """
    if not isinstance(error, ClientError):
        never_sent = isinstance(error, (ConnectTimeoutError, EndpointConnectionError))
        what = type(error).__name__
        return (NotWritten(what) if never_sent else OutcomeUnknown(what)), True
    answer: dict[str, Any] = dict(error.response)
    code = answer["Error"]["Code"]
    if code in _FAILED:
        raise _Refused({0: answer.get("Item")}) from error
    if code == "TransactionCanceledException":
        return _read_reasons(answer.get("CancellationReasons", []), items)
    if code in _CONFLICT:
        return Conflict(code), True
    if code in _THROTTLED:
        return NotWritten(code), True
    if code == "IdempotentParameterMismatchException":
        return TokenMismatch(code), False
    if code == "TransactionInProgressException" or answer["ResponseMetadata"]["HTTPStatusCode"] >= 500:
        return OutcomeUnknown(code), True
    return NotWritten(code), False  # access denied, no such table, …: mended by people, so the message waits


def _read_reasons(reasons: list[dict[str, Any]], items: int) -> tuple[StoreError, bool]:
    """Why a transaction was cancelled: one reason an item, by position; nothing of it was written.

    https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
    """
    codes = [reason.get("Code") or "None" for reason in reasons]
    if len(codes) != items:
        return NotWritten(f"cancelled for {codes}, {items} items sent"), True
    images = {n: reasons[n].get("Item") for n, code in enumerate(codes) if code in _FAILED}
    if 0 in images:  # the record has the first word: it may be my own write, or say that the work is done
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
