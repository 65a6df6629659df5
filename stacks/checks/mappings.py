"""Event source mappings: a failed record is retried alone, and no setting drops a record.

https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
"""

from collections.abc import Iterator

from stacks.checks.model import Finding, Model, listed, number, shown
from stacks.checks.wiring import consumed_queues, queue_sources, stream_sources
from stacks.times import visibility_for

TIMEOUT_DEFAULT_S, VISIBILITY_DEFAULT_S = 3, 30


def visibility_outlasts_the_retries_of_a_batch(model: Model) -> Iterator[Finding]:
    """Visibility >= 6 x function timeout + batching window.

    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
    """
    for queue, source in consumed_queues(model):
        if source.function is None:
            continue  # the function is not in the app
        visibility = queue.number("VisibilityTimeout", default=VISIBILITY_DEFAULT_S)
        timeout = source.function.number("Timeout", default=TIMEOUT_DEFAULT_S)
        window = source.mapping.number("MaximumBatchingWindowInSeconds", default=0)
        why = "A throttled batch is held and retried by Lambda. A message that comes back early is processed twice."
        if visibility is None or timeout is None or window is None:
            values = {
                "VisibilityTimeout": queue.get("VisibilityTimeout"),
                "Timeout": source.function.get("Timeout"),
                "MaximumBatchingWindowInSeconds": source.mapping.get("MaximumBatchingWindowInSeconds"),
            }
            tokens = ", ".join(f"{name} {v}" for name, v in values.items() if v is not None and number(v) is None)
            yield Finding(queue.path, f"{tokens} is not known before the deployment", why, "Write the seconds.")
        elif visibility < (needed := visibility_for(int(timeout), int(window))):
            yield Finding(
                queue.path,
                f"visibility timeout {shown(visibility)} s, but 6 x {shown(timeout)} s timeout of "
                f"{source.function.path} + {shown(window)} s batching window = {needed} s",
                why,
                f"Set VisibilityTimeout to {needed} s or more.",
            )


def failed_records_are_reported_singly(model: Model) -> Iterator[Finding]:
    """ReportBatchItemFailures on every SQS and stream mapping."""
    for source in [*queue_sources(model), *stream_sources(model)]:
        types = list(listed(source.mapping.get("FunctionResponseTypes")))
        if "ReportBatchItemFailures" not in types:
            yield Finding(
                source.mapping.path,
                f"FunctionResponseTypes {shown(types)}, without ReportBatchItemFailures",
                "Lambda ignores reports about single records: a batch that failed in part is deleted.",
                "Set report_batch_item_failures=True.",
            )


def queue_mapping_has_no_filter(model: Model) -> Iterator[Finding]:
    """No filter on the mapping of a queue: Lambda deletes messages that do not match.

    https://docs.aws.amazon.com/lambda/latest/dg/with-sqs-filtering.html
    """
    for source in queue_sources(model):
        if filters := source.mapping.get("FilterCriteria", "Filters"):
            yield Finding(
                source.mapping.path,
                f"reads the queue {source.mapping.get('EventSourceArn') if not source.reads else source.reads.path} "
                f"through the filter {shown(filters)}",
                "Lambda deletes a message that does not match. Its order or payment is lost, without a copy in a DLQ.",
                "Remove FilterCriteria. Let the function ignore such messages.",
            )


def mappings_fit_the_reserved_concurrency(model: Model) -> Iterator[Finding]:
    """The sum of a function's MaximumConcurrency is at most its ReservedConcurrentExecutions.

    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
    """
    for function in model.of_type("AWS::Lambda::Function"):
        mine = [source.mapping for source in queue_sources(model) if source.function == function]
        if function.get("ReservedConcurrentExecutions") is None or not mine:
            continue
        reserved = function.number("ReservedConcurrentExecutions", default=0)
        limits = [mapping.number("ScalingConfig", "MaximumConcurrency", default=float("inf")) for mapping in mine]
        why = "Lambda throttles the batches above the reserved concurrency, and each throttle costs a receive."
        if reserved is None or None in limits:
            values = [function.get("ReservedConcurrentExecutions"), *(m.get("ScalingConfig") for m in mine)]
            says = f"concurrency {shown(values)} is not known before the deployment"
            yield Finding(function.path, says, why, "Write the numbers.")
        elif (total := sum(filter(None, limits))) > reserved:
            each = " + ".join(f"{_limit(value)} ({m.path})" for m, value in zip(mine, limits, strict=True))
            yield Finding(
                function.path,
                f"reserved concurrency {shown(reserved)}, maximum concurrency of its mappings {each}",
                why,
                f"Reserve {shown(total) if total < float('inf') else 'a sum'} or more, or lower MaximumConcurrency.",
            )


def _limit(value: float | None) -> str:
    return "none" if value == float("inf") else shown(value)


CHECKS = (
    visibility_outlasts_the_retries_of_a_batch,
    failed_records_are_reported_singly,
    queue_mapping_has_no_filter,
    mappings_fit_the_reserved_concurrency,
)
