"""Runs a step over a batch of SQS records: each is proven done, or reported, or parked and then done.

The handler returns only when no step is in flight: a thread that Lambda froze and thawed later would be a zombie
with an effect in its hand.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
"""

import os
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from shared.idempotency import telemetry
from shared.idempotency import parking, runtime
from shared.idempotency.backoff import delay_s
from shared.idempotency.chains import Chain, Keys, chains_of
from shared.idempotency.engine import Message
from shared.idempotency.errors import (
    Busy,
    EffectWithoutState,
    KeyReused,
    Permanent,
    StepError,
    Superseded,
)
from shared.idempotency.events import event_in, open_envelope
from shared.idempotency.runtime import Consumer
from shared.idempotency.steps import Step
from shared.idempotency.telemetry import logger

# SQS refuses a longer visibility timeout, and counts it from the receive.
MAX_VISIBILITY_S = 11 * 3600

Record = dict[str, Any]  # as in Lambda's SQS event


@dataclass(slots=True)
class Job:
    """One record and what became of it. `retry_in_s` is None once it is done."""

    record: Record
    message: Message | None = None  # None until the record is read
    key: str = ""
    retry_in_s: int | None = 0
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def group(self) -> str | None:
        """The FIFO message group; None on a standard queue."""
        group: str | None = self.record.get("attributes", {}).get("MessageGroupId")
        return group if self.record.get("eventSourceARN", "").endswith(".fifo") else None

    @property
    def receive_count(self) -> int:
        """How often SQS has handed the message out, this time included."""
        return int(self.record.get("attributes", {}).get("ApproximateReceiveCount", 1))


def sqs_handler(step: Step[Any]) -> Callable[[dict[str, Any], Any], dict[str, Any]]:
    """A Lambda handler for an SQS mapping with ReportBatchItemFailures.

    It raises, so that the whole batch comes back, only where a failed record can not be named.
    """
    if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
        runtime.consumer()  # DynamoDB's client is made while Lambda starts the worker, outside the function's timeout

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        consumer = runtime.consumer()
        deadline_ms = consumer.clock.now_ms() + context.get_remaining_time_in_millis()
        jobs = [Job(record) for record in event["Records"]]
        _run_chains(step, consumer, chains_of(jobs), deadline_ms)
        failed = [job for job in jobs if job.retry_in_s is not None]
        _back_off(consumer, failed)
        telemetry.count(step.operation, sum((job.counts for job in jobs), Counter()))
        return {"batchItemFailures": [{"itemIdentifier": job.record["messageId"]} for job in failed]}

    return handler


def _run_chains(step: Step[Any], consumer: Consumer, chains: list[Chain[Job]], deadline_ms: int) -> None:
    """Run chains side by side, the jobs of one chain in order. Joins every thread, also when one raises."""
    keys: Keys[Job] = Keys()
    with ThreadPoolExecutor(max_workers=min(consumer.concurrency, len(chains)) or 1) as pool:
        futures = [pool.submit(_run_chain, step, consumer, chain, keys, deadline_ms) for chain in chains]
    for future in futures:
        future.result()  # _reported handles every Exception; what is left ends the worker


def _run_chain(step: Step[Any], consumer: Consumer, chain: Chain[Job], keys: Keys[Job], deadline_ms: int) -> None:
    """Run the jobs of a chain, and of each chain that waits for one of their keys.

    Each record is read by its own job. The time for reading counts against the deadline of this job only.
    """
    chains = deque([chain])
    while chains:
        chain = chains.popleft()
        while chain:
            job = chain[0]
            if job.message is None:
                with _reported(step, consumer, job):
                    _read(step, consumer, job, deadline_ms)
            if job.message is not None:
                if not keys.take(job.key, chain):
                    break  # the thread that releases the key continues this chain
                with _reported(step, consumer, job):
                    _run_job(step, consumer, job, job.message, deadline_ms)
                chains.extend(keys.release(job.key))
            chain.popleft()
            if job.retry_in_s is not None and job.group is not None:
                break  # FIFO: no job overtakes the first failure of its group


@contextmanager
def _reported(step: Step[Any], consumer: Consumer, job: Job) -> Iterator[None]:
    """Log under the ids of the job. After an unexpected error the record is reported, so that it is not lost."""
    logger.thread_safe_append_keys(
        message_id=job.record.get("messageId"),
        receive_count=job.receive_count,
        correlation_id=job.message.correlation_id if job.message else None,
        key=job.key or None,
    )
    try:
        yield
    except Exception as error:
        # The text of the error is left out: it may quote the message, and so name a person.
        logger.error(
            "the runner failed",
            operation=step.operation,
            error=type(error).__name__,
            stack=traceback.format_tb(error.__traceback__),
        )
        _retry(consumer, job)
    finally:
        logger.thread_safe_clear_keys()


def _read(step: Step[Any], consumer: Consumer, job: Job, deadline_ms: int) -> None:
    """Read the record into `message` and `key`. Parks a record that no step can take."""
    if not _has_time(step, consumer, job, deadline_ms):
        return
    try:
        envelope = open_envelope(job.record.get("body") or "", consumer.body_limit_bytes)
        logger.thread_safe_append_keys(correlation_id=envelope.correlation_id)
        event = event_in(envelope, step.kinds)
    except Permanent as error:
        _park(step, consumer, job, error)
        return
    job.key = step.key(event)
    trace = job.record.get("attributes", {}).get("AWSTraceHeader")
    job.message = Message(event, envelope.correlation_id, trace or telemetry.trace_header())


def _has_time(step: Step[Any], consumer: Consumer, job: Job, deadline_ms: int) -> bool:
    """Answer whether the step can still end before the deadline. Otherwise the job is retried."""
    left_s = (deadline_ms - consumer.clock.now_ms()) / 1000
    if left_s < consumer.step_needs_s:
        job.counts[telemetry.NOT_STARTED] += 1
        logger.info("not started", operation=step.operation, left_s=left_s, needs_s=consumer.step_needs_s)
        _retry(consumer, job)
        return False
    return True


def _run_job(step: Step[Any], consumer: Consumer, job: Job, message: Message, deadline_ms: int) -> None:
    if not _has_time(step, consumer, job, deadline_ms):
        return
    try:
        ran = consumer.engine.run(step, message, deadline_ms)
    except Permanent as error:
        _park(step, consumer, job, error)
    except Busy as error:
        job.counts[telemetry.BUSY] += 1
        logger.info("busy", operation=step.operation, until_ms=error.until_ms)
        # By its receive count too: copies that find each other busy must not burn their receives in an outage.
        free_in_s = _seconds_until(consumer, error.until_ms)
        job.retry_in_s = max(free_in_s, _delay_s(consumer, job))
    except StepError as error:
        if isinstance(error, Superseded):
            job.counts[telemetry.LEASE_LOST] += 1
        job.counts[telemetry.TAKEOVER] += error.uncertain
        logger.warning(
            "to be retried",
            operation=step.operation,
            error=type(error).__name__,
            detail=_detail(error),
            uncertain=error.uncertain,
        )
        _retry(consumer, job)
        if error.held:  # a receive before the lease ends would only find the claim busy
            job.retry_in_s = max(job.retry_in_s or 0, _seconds_until(consumer, consumer.engine.lease_end(deadline_ms)))
    else:
        job.retry_in_s = None
        job.counts[telemetry.DUPLICATE_REPLAYED if ran.replayed else telemetry.FIRST_RUN] += 1
        job.counts[telemetry.TAKEOVER] += ran.uncertain
        logger.info(
            "replayed" if ran.replayed else "done",
            operation=step.operation,
            attempt=ran.attempt,
            uncertain=ran.uncertain,
        )


def _park(step: Step[Any], consumer: Consumer, job: Job, error: Permanent) -> None:
    """Park first, acknowledge second: a message twice in the DLQ is better than one nowhere."""
    job.counts[telemetry.KEY_REUSED] += isinstance(error, KeyReused)
    job.counts[telemetry.EFFECT_WITHOUT_STATE] += isinstance(error, EffectWithoutState)
    parking.park(consumer.sqs, consumer.dlq_url, job.record, error.reason, consumer.clock.now_ms())
    job.counts[telemetry.PARKED] += 1
    job.counts[telemetry.TAKEOVER] += error.uncertain
    job.retry_in_s = None
    logger.error(
        "parked", operation=step.operation, reason=error.reason, detail=_detail(error), uncertain=error.uncertain
    )


def _detail(error: StepError) -> str:
    """With its notes: that the claim could not be released, for one."""
    return "; ".join([str(error), *getattr(error, "__notes__", ())])


def _retry(consumer: Consumer, job: Job) -> None:
    job.counts[telemetry.RETRIED] += 1
    job.retry_in_s = _delay_s(consumer, job)


def _delay_s(consumer: Consumer, job: Job) -> int:
    return delay_s(job.receive_count, consumer.backoff_base_s, consumer.backoff_cap_s, consumer.rng)


def _seconds_until(consumer: Consumer, until_ms: int) -> int:
    """Whole seconds until then, and a little more, so that not all who wait come at once."""
    left_ms = max(0, until_ms - consumer.clock.now_ms())
    return -(-left_ms // 1000) + consumer.rng.randint(0, consumer.backoff_base_s)


def _back_off(consumer: Consumer, failed: list[Job]) -> None:
    """Let each failed record come back in its own time. If the call fails the verdict stands: it comes back later."""
    entries = [
        {
            "Id": str(n),
            "ReceiptHandle": job.record["receiptHandle"],
            "VisibilityTimeout": min(job.retry_in_s or 0, MAX_VISIBILITY_S),
        }
        for n, job in enumerate(failed)
    ]
    for start in range(0, len(entries), 10):
        try:
            answer = consumer.sqs.change_message_visibility_batch(
                QueueUrl=consumer.queue_url,
                Entries=entries[start : start + 10],  # type: ignore[arg-type]
            )
            if answer.get("Failed"):
                logger.warning("no back-off", codes=[entry["Code"] for entry in answer["Failed"]])
        except Exception as error:  # whatever it is, the records are reported
            logger.warning("no back-off", error=type(error).__name__)
