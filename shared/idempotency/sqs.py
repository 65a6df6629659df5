"""Runs a step over a batch of SQS records. Each record is done, or reported for a retry, or parked in the DLQ.

The handler returns only when no step is running: Lambda freezes a worker after its answer, and a thread that it
resumes later would be a zombie in the middle of an effect.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
"""

import base64
import os
import random
import threading
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from . import runtime, telemetry
from .engine import Engine, current_engine
from .errors import Busy, EffectWithoutState, KeyReused, Permanent, StepError, Superseded
from .events import BODY_LIMIT_BYTES, Event, decode_cloudevent, decode_event
from .runtime import iso
from .steps import Step
from .telemetry import logger

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

# SQS refuses a longer visibility timeout, and counts it from the receive.
MAX_VISIBILITY_S = 11 * 3600
# SQS accepts ten attributes a message. Parking adds three.
MAX_KEPT_ATTRIBUTES = 7
# All attributes of a parked message together, in bytes. A source queue accepts this much beside the largest body
# (stacks/constructs/queues.py), so that each parked message that was read can be redriven.
ATTRIBUTES_LIMIT_BYTES = 8 * 1024
# Parking never writes a value longer than this: SQS's message ids have up to 100 characters.
MAX_PARKING_VALUE = 100

Record: TypeAlias = dict[str, Any]  # as in Lambda's SQS event


def delay_bounds(receive_count: int, base_s: int, cap_s: int) -> tuple[int, int]:
    """Return the least and most seconds to wait after the receive with this number (1 = the first).

    The delay grows exponentially. Half of it is jitter, so that the least delay is known: outages are planned with it.
    https://aws.amazon.com/builders-library/timeouts-retries-and-backoff-with-jitter/
    """
    # The cap is reached long before 2**20. The bound keeps the power small for any receive count.
    high = min(cap_s, base_s * 2 ** min(max(receive_count, 1) - 1, 20))
    return (high + 1) // 2, high


def delay_s(receive_count: int, base_s: int, cap_s: int, rng: random.Random) -> int:
    """Return the seconds to wait after the receive with this number."""
    return rng.randint(*delay_bounds(receive_count, base_s, cap_s))


def receives_to_ride_out(outage_s: int, base_s: int, cap_s: int) -> int:
    """Return the least maxReceiveCount with which a message survives an outage of this many seconds.

    Raises ValueError for a base or cap below one second: such a message would use up its receives at once.
    """
    if base_s < 1 or cap_s < base_s:
        raise ValueError(f"back-off of base {base_s} s and cap {cap_s} s: need 1 <= base <= cap")
    receives, waited = 1, 0
    while waited < outage_s:
        waited += delay_bounds(receives, base_s, cap_s)[0]
        receives += 1
    return receives


def park(sqs: "SQSClient", dlq_url: str, record: Record, reason: str, now_ms: int) -> None:
    """Send a record to the dead-letter queue with its reason, and with the attributes that fit.

    Raises botocore's errors: then the record is not parked.
    """
    found = record.get("messageAttributes", {})
    attributes = {
        "reason": {"DataType": "String", "StringValue": reason},
        # Both keep the values of the first time if a redriven message is parked again.
        "original_message_id": _first(found, "original_message_id", record.get("messageId", "unknown")),
        "first_parked_at": _first(found, "first_parked_at", iso(now_ms)),
    }
    request: dict[str, Any] = {
        "QueueUrl": dlq_url,
        "MessageBody": record["body"],
        "MessageAttributes": {**_kept_attributes(found, attributes), **attributes},
    }
    system = record.get("attributes", {})
    if trace := system.get("AWSTraceHeader"):
        request["MessageSystemAttributes"] = {"AWSTraceHeader": {"DataType": "String", "StringValue": trace}}
    if dlq_url.endswith(".fifo"):
        request["MessageGroupId"] = system["MessageGroupId"]
        request["MessageDeduplicationId"] = record["messageId"]
    sqs.send_message(**request)


def _kept_attributes(found: dict[str, Any], added: dict[str, dict[str, str]]) -> dict[str, dict[str, Any]]:
    """Return the message's own attributes, up to SQS's number and the limit of bytes."""
    kept: dict[str, dict[str, Any]] = {}
    bytes_left = ATTRIBUTES_LIMIT_BYTES - sum(_size(name, value) for name, value in added.items())
    for name in found:
        if name in added or len(kept) == MAX_KEPT_ATTRIBUTES:
            continue
        attribute = _as_sent(found[name])
        size = _size(name, attribute)
        if size <= bytes_left:
            kept[name] = attribute
            bytes_left -= size
    return kept


def _size(name: str, attribute: dict[str, Any]) -> int:
    """Return bytes as SQS counts them: name, type and value."""
    value = attribute["BinaryValue"] if "BinaryValue" in attribute else attribute["StringValue"].encode()
    return len(name.encode()) + len(attribute["DataType"].encode()) + len(value)


def _first(found: dict[str, Any], name: str, default: str) -> dict[str, str]:
    value = found.get(name, {}).get("stringValue") or default
    return {"DataType": "String", "StringValue": value if len(value) <= MAX_PARKING_VALUE else default}


def _as_sent(found: dict[str, Any]) -> dict[str, Any]:
    """Convert a message attribute of Lambda's event into the form of SendMessage."""
    if found.get("binaryValue") is not None:
        return {"DataType": found["dataType"], "BinaryValue": base64.b64decode(found["binaryValue"])}
    return {"DataType": found["dataType"], "StringValue": found["stringValue"]}


@dataclass(slots=True, eq=False)
class Job:
    """One record and its state. `retry_in_s` is None once the record is done."""

    record: Record
    event: Event | None = None  # None until the record is decoded
    correlation_id: str = ""
    key: str = ""
    retry_in_s: int | None = 0
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def group(self) -> str | None:
        """The FIFO message group, or None on a standard queue."""
        group: str | None = self.record.get("attributes", {}).get("MessageGroupId")
        return group if self.record.get("eventSourceARN", "").endswith(".fifo") else None

    @property
    def receive_count(self) -> int:
        """How often SQS has delivered the message, this delivery included."""
        return int(self.record.get("attributes", {}).get("ApproximateReceiveCount", 1))


Chain: TypeAlias = deque[Job]


def chains_of(jobs: Iterable[Job]) -> list[Chain]:
    """Split a batch into chains: all jobs of a FIFO group in the order received, or one job without a group."""
    chains: list[Chain] = []
    of_group: dict[str, Chain] = {}
    for job in jobs:
        if job.group in of_group:
            of_group[job.group].append(job)
            continue
        chain = deque([job])
        chains.append(chain)
        if job.group is not None:
            of_group[job.group] = chain
    return chains


class Keys:
    """The business keys in use. Two jobs of one key never run at the same time.

    A chain whose next job needs a key in use waits for that key. The thread that releases the key continues the
    chain, so that no thread of the pool is blocked.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, list[Chain]] = {}

    def take(self, key: str, chain: Chain) -> bool:
        """Take a key for the next job of a chain. Returns False if the key is in use: then the chain waits."""
        with self._lock:
            if key in self._waiting:
                self._waiting[key].append(chain)
                return False
            self._waiting[key] = []
            return True

    def release(self, key: str) -> list[Chain]:
        """Release a key. Returns the chains that waited for it, in the order in which they came."""
        with self._lock:
            return self._waiting.pop(key)


class Consumer(msgspec.Struct, frozen=True):
    """The settings of a queue's consumer."""

    engine: Engine
    runtime: runtime.Runtime
    queue_url: str
    dlq_url: str
    concurrency: int  # steps at a time
    backoff_base_s: int
    backoff_cap_s: int
    body_limit_bytes: int  # a larger message is parked without being read

    @property
    def sqs(self) -> "SQSClient":
        """Made when the first message is parked or delayed: a successful invocation needs no SQS client."""
        sqs: SQSClient = self.runtime.client("sqs")
        return sqs

    def delay_s(self, job: Job) -> int:
        """Return the seconds until a job is retried, by its receive count."""
        return delay_s(job.receive_count, self.backoff_base_s, self.backoff_cap_s, self.runtime.rng)

    def seconds_until(self, until_ms: int) -> int:
        """Return whole seconds until then plus jitter, so that waiting messages do not all come back at once."""
        left_ms = max(0, until_ms - self.runtime.clock.now_ms())
        return -(-left_ms // 1000) + self.runtime.rng.randint(0, self.backoff_base_s)


def current_consumer() -> Consumer:
    """Return the process's consumer, made from its environment. Raises KeyError naming a variable that is not set."""
    here = runtime.current()
    return here.single(current_consumer, lambda: _from_environment(here))


def _from_environment(here: runtime.Runtime) -> Consumer:
    return Consumer(
        engine=current_engine(),
        runtime=here,
        queue_url=os.environ["QUEUE_URL"],
        dlq_url=os.environ["DLQ_URL"],
        concurrency=int(os.environ["CONCURRENCY"]),
        backoff_base_s=int(os.environ["BACKOFF_BASE_S"]),
        backoff_cap_s=int(os.environ["BACKOFF_CAP_S"]),
        body_limit_bytes=int(os.environ.get("BODY_LIMIT_BYTES", BODY_LIMIT_BYTES)),
    )


def sqs_handler(step: Step[Any]) -> Callable[[dict[str, Any], Any], dict[str, Any]]:
    """Make a Lambda handler for an SQS event source mapping with ReportBatchItemFailures.

    The handler raises, so that the whole batch comes back, only if a failed record cannot be named.
    """
    if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
        current_consumer()  # the DynamoDB client is made during Lambda's init phase, which has its own CPU and time

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        deadline_ms = runtime.epoch_ms() + context.get_remaining_time_in_millis()
        return Batch(step, current_consumer(), deadline_ms).run(event["Records"])

    return handler


@dataclass(frozen=True, slots=True)
class Batch:
    """One invocation: a step over a batch of records. `deadline_ms` is in epoch milliseconds."""

    step: Step[Any]
    consumer: Consumer
    deadline_ms: int
    keys: Keys = field(default_factory=Keys)

    def run(self, records: list[Record]) -> dict[str, Any]:
        """Run all records and return the failed ones in the form that Lambda expects."""
        jobs = [Job(record) for record in records]
        chains = chains_of(jobs)
        with self.consumer.runtime.pool(min(self.consumer.concurrency, len(chains)) or 1) as pool:
            futures = [pool.submit(self._run_chain, chain) for chain in chains]
        for future in futures:
            future.result()  # _reported handles every Exception; anything else must end the worker
        failed = [job for job in jobs if job.retry_in_s is not None]
        self._delay(failed)
        telemetry.count(self.step.operation, sum((job.counts for job in jobs), Counter()))
        return {"batchItemFailures": [{"itemIdentifier": job.record["messageId"]} for job in failed]}

    def _run_chain(self, first: Chain) -> None:
        """Run the jobs of a chain in order, then of every chain that waited for one of their keys.

        Each job decodes its own record, so that the time for decoding counts against the deadline of this job only.
        """
        chains = deque([first])
        while chains:
            chain = chains.popleft()
            while chain:
                job = chain[0]
                if job.event is None:
                    with self._reported(job):
                        self._decode(job)
                if job.event is not None:
                    if not self.keys.take(job.key, chain):
                        break  # the thread that releases the key continues this chain
                    with self._reported(job):
                        self._run_job(job, job.event)
                    chains.extend(self.keys.release(job.key))
                chain.popleft()
                if job.retry_in_s is not None and job.group is not None:
                    break  # FIFO: no job overtakes the first failure of its group

    @contextmanager
    def _reported(self, job: Job) -> Iterator[None]:
        """Log under the ids of the job. After an unexpected error the record is reported, so that it is not lost."""
        logger.thread_safe_append_keys(
            message_id=job.record.get("messageId"),
            receive_count=job.receive_count,
            correlation_id=job.correlation_id or None,
            key=job.key or None,
        )
        try:
            yield
        except Exception as error:
            # The text of the error is not logged: it may quote the message, and so name a person.
            logger.error(
                "the runner failed",
                operation=self.step.operation,
                error=type(error).__name__,
                stack=traceback.format_tb(error.__traceback__),
            )
            self._retry(job)
        finally:
            logger.thread_safe_clear_keys()

    def _decode(self, job: Job) -> None:
        """Decode the record into the job. Parks a record that no step can take."""
        if not self._has_time(job):
            return
        try:
            cloudevent = decode_cloudevent(job.record.get("body") or "", self.consumer.body_limit_bytes)
            job.correlation_id = cloudevent.correlation_id
            logger.thread_safe_append_keys(correlation_id=job.correlation_id)
            event = decode_event(cloudevent, self.step.kinds)
        except Permanent as error:
            self._park(job, error)
            return
        job.key = self.step.key(event)
        job.event = event

    def _has_time(self, job: Job) -> bool:
        """Return whether the step can still commit in time. Otherwise the job is retried."""
        engine = self.consumer.engine
        left_s, needs_s = engine.left_s(self.deadline_ms), engine.step_needs_s
        if left_s < needs_s:
            job.counts[telemetry.NOT_STARTED] += 1
            logger.info("not started", operation=self.step.operation, left_s=left_s, needs_s=needs_s)
            self._retry(job)
            return False
        return True

    def _run_job(self, job: Job, event: Event) -> None:
        if not self._has_time(job):
            return
        trace = job.record.get("attributes", {}).get("AWSTraceHeader") or telemetry.trace_header()
        try:
            result = self.consumer.engine.run(
                self.step, event, self.deadline_ms, correlation_id=job.correlation_id, trace=trace
            )
        except Permanent as error:
            self._park(job, error)
        except Busy as error:
            job.counts[telemetry.BUSY] += 1
            logger.info("busy", operation=self.step.operation, until_ms=error.until_ms)
            # At least the back-off: copies that find each other busy must not use up their receives in an outage.
            job.retry_in_s = max(self.consumer.seconds_until(error.until_ms), self.consumer.delay_s(job))
        except StepError as error:
            if isinstance(error, Superseded):
                job.counts[telemetry.LEASE_LOST] += 1
            job.counts[telemetry.TAKEOVER] += error.uncertain
            logger.warning(
                "to be retried",
                operation=self.step.operation,
                error=type(error).__name__,
                detail=_detail(error),
                uncertain=error.uncertain,
            )
            self._retry(job)
            if error.claim_kept:  # a delivery before the lease expires would fail with Busy and waste one receive
                lease_end_ms = self.consumer.engine.lease_end(self.deadline_ms)
                job.retry_in_s = max(job.retry_in_s or 0, self.consumer.seconds_until(lease_end_ms))
        else:
            job.retry_in_s = None
            job.counts[telemetry.DUPLICATE_REPLAYED if result.replayed else telemetry.FIRST_RUN] += 1
            job.counts[telemetry.TAKEOVER] += result.uncertain
            logger.info(
                "replayed" if result.replayed else "done",
                operation=self.step.operation,
                attempt=result.attempt,
                uncertain=result.uncertain,
            )

    def _park(self, job: Job, error: Permanent) -> None:
        """Park first, acknowledge second: a message twice in the DLQ is better than a lost message."""
        park(self.consumer.sqs, self.consumer.dlq_url, job.record, error.reason, self.consumer.runtime.clock.now_ms())
        job.counts[telemetry.PARKED] += 1
        job.counts[telemetry.KEY_REUSED] += isinstance(error, KeyReused)
        job.counts[telemetry.EFFECT_WITHOUT_STATE] += isinstance(error, EffectWithoutState)
        job.counts[telemetry.TAKEOVER] += error.uncertain
        job.retry_in_s = None
        logger.error(
            "parked",
            operation=self.step.operation,
            reason=error.reason,
            detail=_detail(error),
            uncertain=error.uncertain,
        )

    def _retry(self, job: Job) -> None:
        job.counts[telemetry.RETRIED] += 1
        job.retry_in_s = self.consumer.delay_s(job)

    def _delay(self, failed: list[Job]) -> None:
        """Set the visibility of each failed record. Without time, or if a call fails, the records come back later."""
        entries = [
            {
                "Id": str(n),
                "ReceiptHandle": job.record["receiptHandle"],
                "VisibilityTimeout": min(job.retry_in_s or 0, MAX_VISIBILITY_S),
            }
            for n, job in enumerate(failed)
        ]
        for start in range(0, len(entries), 10):
            # Only a step that overran its deadline leaves too little time. Then the answer comes first.
            if self.deadline_ms - self.consumer.runtime.clock.now_ms() < self.consumer.engine.store.request_s * 1000:
                logger.warning("no back-off", error="no time left")
                return
            try:
                answer = self.consumer.sqs.change_message_visibility_batch(
                    QueueUrl=self.consumer.queue_url,
                    Entries=entries[start : start + 10],  # type: ignore[arg-type]
                )
                if answer.get("Failed"):
                    logger.warning("no back-off", codes=[entry["Code"] for entry in answer["Failed"]])
            except Exception as error:  # any error: the records are reported as failed
                logger.warning("no back-off", error=type(error).__name__)


def _detail(error: StepError) -> str:
    """Return the error's text with its notes, such as a failed release."""
    return "; ".join([str(error), *getattr(error, "__notes__", ())])
