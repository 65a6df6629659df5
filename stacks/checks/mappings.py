"""Event source mappings: a failed record is retried alone, and no record is dropped by how they are set.

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
            continue  # a function outside the app
        visibility = queue.number("VisibilityTimeout", default=VISIBILITY_DEFAULT_S)
        timeout = source.function.number("Timeout", default=TIMEOUT_DEFAULT_S)
        window = source.mapping.number("MaximumBatchingWindowInSeconds", default=0)
        why = "While Lambda is throttled it holds a batch and tries again; a message back too soon runs twice at once."
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
                "What it says of single records is then not heard: a batch that failed in part is deleted whole.",
                "Set report_batch_item_failures=True.",
            )


def queue_mapping_has_no_filter(model: Model) -> Iterator[Finding]:
    """Lambda deletes what a filter on a queue turns down, as if it were done.

    https://docs.aws.amazon.com/lambda/latest/dg/with-sqs-filtering.html
    """
    for source in queue_sources(model):
        if filters := source.mapping.get("FilterCriteria", "Filters"):
            yield Finding(
                source.mapping.path,
                f"reads the queue {source.mapping.get('EventSourceArn') if not source.reads else source.reads.path} "
                f"through the filter {shown(filters)}",
                "A message that does not match is deleted in silence: an order or a payment vanishes, in no DLQ.",
                "Remove FilterCriteria, and let the function decide.",
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
        wanted = [mapping.number("ScalingConfig", "MaximumConcurrency", default=float("inf")) for mapping in mine]
        why = "Batches beyond it are throttled, and each time costs their messages a receive on the way to the DLQ."
        if reserved is None or None in wanted:
            values = [function.get("ReservedConcurrentExecutions"), *(m.get("ScalingConfig") for m in mine)]
            says = f"concurrency {shown(values)} is not known before the deployment"
            yield Finding(function.path, says, why, "Write the numbers.")
        elif (total := sum(filter(None, wanted))) > reserved:
            each = " + ".join(f"{_limit(value)} ({m.path})" for m, value in zip(mine, wanted, strict=True))
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
