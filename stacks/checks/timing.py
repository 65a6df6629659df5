"""Times in the environment of functions: they fit each other, the function timeout and the outage.

The checks read the numbers from the finished templates, and use the arithmetic of stacks/times.py and of the layer.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

from stacks.checks.mappings import TIMEOUT_DEFAULT_S, VISIBILITY_DEFAULT_S
from stacks.checks.model import Finding, Model, Resource, number, shown
from stacks.checks.queues import retention_s
from stacks.checks.wiring import FUNCTION, Source, consumed_queues, environment
from stacks.times import AFTER_COMMIT, CALLS, Client, RequestBudget, SettingsError, reserve_s

BATCH_DEFAULT = 10


def receives_ride_out_the_outage(model: Model) -> Iterator[Finding]:
    """maxReceiveCount covers the outage of the stage, with the back-off of the function or the visibility timeout.

    https://aws.amazon.com/builders-library/timeouts-retries-and-backoff-with-jitter/
    """
    times = model.settings.times
    for queue, source in consumed_queues(model):
        count = queue.number("RedrivePolicy", "maxReceiveCount", default=0)
        visibility = queue.number("VisibilityTimeout", default=VISIBILITY_DEFAULT_S)
        if not count or visibility is None:
            continue  # other checks report this
        base, cap, how = _waits(source, visibility)
        why = f"An outage of up to {times.outage_s} s must not park correct messages."
        if base is None or cap is None or base % 1 or cap % 1:
            yield Finding(source.mapping.path, f"{how} cannot be read", why, "Write both as whole seconds.")
            continue
        try:
            changed = replace(times, backoff_base_s=int(base), backoff_cap_s=int(cap))
            needed = changed.max_receives(int(visibility))
        except SettingsError as contradiction:
            yield Finding(queue.path, str(contradiction), why, "Lengthen the back-off or the visibility timeout.")
            continue
        if count < needed:
            yield Finding(
                queue.path,
                f"maxReceiveCount {shown(count)}, {how} and visibility timeout {shown(visibility)} s; "
                f"an outage of {times.outage_s} s takes {needed} receives",
                why,
                f"Set maxReceiveCount to {needed}, or lengthen the back-off.",
            )


def _waits(source: Source, visibility_s: float) -> tuple[float | None, float | None, str]:
    variables = environment(source.function)
    if "BACKOFF_BASE_S" not in variables and "BACKOFF_CAP_S" not in variables:
        return visibility_s * 2, visibility_s * 2, "no back-off"  # the shortest wait is the visibility timeout
    base, cap = variables.get("BACKOFF_BASE_S"), variables.get("BACKOFF_CAP_S")
    return number(base), number(cap), f"BACKOFF_BASE_S {base}, BACKOFF_CAP_S {cap}"


def messages_are_parked_before_they_expire(model: Model) -> Iterator[Finding]:
    """maxReceiveCount x the longest wait < retention of the source."""
    for queue, source in consumed_queues(model):
        count = queue.number("RedrivePolicy", "maxReceiveCount", default=0)
        visibility = queue.number("VisibilityTimeout", default=VISIBILITY_DEFAULT_S)
        retention, cap = retention_s(queue), _waits(source, visibility or 0)[1]
        if count is None or visibility is None or retention is None or cap is None:
            continue  # other checks report this
        cap = cap if "BACKOFF_CAP_S" in environment(source.function) else visibility
        if (longest := count * max(visibility, cap)) >= retention:
            yield Finding(
                queue.path,
                f"{shown(count)} receives of up to {shown(max(visibility, cap))} s each = {shown(longest)} s, "
                f"MessageRetentionPeriod {shown(retention)} s",
                "A message that always fails would expire before it reaches the DLQ.",
                "Lower maxReceiveCount or lengthen MessageRetentionPeriod.",
            )


def requests_of_a_step_fit_its_lease(model: Model) -> Iterator[Finding]:
    """Client timeouts x requests <= STEP_NEEDS_S, and STEP_NEEDS_S + RESERVE_S < function timeout.

    RESERVE_S covers the requests after the last commit, and the lease ends before the message is back.
    The metadata of a function contains the number of requests of one step. Without this metadata, the check counts
    one request of each client. The clients of the layer never retry by themselves.
    """
    for function in model.of_type(FUNCTION):
        variables = environment(function)
        if "STEP_NEEDS_S" not in variables:
            continue
        names = ["CLIENT_CONNECT_TIMEOUT_S", "CLIENT_READ_TIMEOUT_S", "STEP_NEEDS_S", "RESERVE_S", "LEASE_SKEW_S"]
        provider = [name for name in ("PROVIDER_CONNECT_TIMEOUT_S", "PROVIDER_READ_TIMEOUT_S") if name in variables]
        times_s = {name: number(variables.get(name)) for name in names + provider}
        timeout = function.number("Timeout", default=TIMEOUT_DEFAULT_S)
        why = (
            "A worker that waits for an answer after its lease has expired loses its claim, and its effect may happen."
        )
        if timeout is None or None in times_s.values():
            tokens = {name: variables.get(name) for name, value in times_s.items() if value is None}
            says = f"{shown(tokens or function.get('Timeout'))} cannot be read before the deployment"
            yield Finding(function.path, says, why, "Write the numbers.")
            continue
        yield from (
            Finding(
                function.path, says, why, "Change the times in stacks/settings.py. All others are derived from them."
            )
            for says in _contradictions(model, function, {k: v or 0 for k, v in times_s.items()}, timeout)
        )


def _contradictions(model: Model, function: Resource, times_s: dict[str, float], timeout: float) -> Iterator[str]:
    client = Client(times_s["CLIENT_CONNECT_TIMEOUT_S"], times_s["CLIENT_READ_TIMEOUT_S"])
    provider = Client(times_s.get("PROVIDER_CONNECT_TIMEOUT_S", 0), times_s.get("PROVIDER_READ_TIMEOUT_S", 0))
    calls = RequestBudget(**function.body.get("Metadata", {}).get(CALLS) or {"aws": 1, "provider": 1})
    requests_s, needs = calls.longest_s(client, provider), times_s["STEP_NEEDS_S"]
    skew, reserve = times_s["LEASE_SKEW_S"], times_s["RESERVE_S"]
    sources = [(queue, source) for queue, source in consumed_queues(model) if source.function == function]
    after = _requests_after_the_commit([source for _, source in sources])
    if requests_s > needs:
        yield (
            f"{calls.aws} requests of {shown(client.request_s)} s and {calls.provider} to a provider of "
            f"{shown(provider.request_s)} s = {shown(requests_s)} s, STEP_NEEDS_S {shown(needs)}"
        )
    if reserve < (least := reserve_s(after, client)):
        yield (
            f"{after} requests of {shown(client.request_s)} s after the last commit and the answer take "
            f"{shown(least)} s, RESERVE_S {shown(reserve)}"
        )
    if needs + reserve >= timeout:
        yield (
            f"STEP_NEEDS_S {shown(needs)}, RESERVE_S {shown(reserve)}, function timeout {shown(timeout)} s: "
            "no step has enough time to start"
        )
    if skew < 1:
        yield f"LEASE_SKEW_S {shown(skew)}: must be at least 1, because clocks differ"
    for queue, _ in sources:
        visibility = queue.number("VisibilityTimeout", default=VISIBILITY_DEFAULT_S)
        if visibility is not None and visibility <= timeout + skew:
            yield (
                f"lease of up to {shown(timeout)} s timeout + LEASE_SKEW_S {shown(skew)}, visibility timeout of "
                f"{queue.path} {shown(visibility)} s: the message of a killed worker comes back before its lease ends"
            )


def _requests_after_the_commit(sources: list[Source]) -> int:
    """Return the number of requests of a queue's consumer. One request sets the visibilities of ten messages."""
    batches = [source.mapping.number("BatchSize", default=BATCH_DEFAULT) or BATCH_DEFAULT for source in sources]
    return max((AFTER_COMMIT - 1 + math.ceil(batch / 10) for batch in batches), default=0)


def batches_fit_the_function_timeout(model: Model) -> Iterator[Finding]:
    """ceil(BatchSize / CONCURRENCY) x STEP_NEEDS_S + RESERVE_S <= function timeout."""
    for _, source in consumed_queues(model):
        variables = environment(source.function)
        if source.function is None or "CONCURRENCY" not in variables:
            continue
        threads = number(variables["CONCURRENCY"])
        needs, reserve = number(variables.get("STEP_NEEDS_S")), number(variables.get("RESERVE_S"))
        batch = source.mapping.number("BatchSize", default=BATCH_DEFAULT)
        timeout = source.function.number("Timeout", default=TIMEOUT_DEFAULT_S)
        if not threads or needs is None or reserve is None or batch is None or timeout is None:
            size = source.mapping.get("BatchSize")
            says = f"CONCURRENCY {variables['CONCURRENCY']}, BatchSize {size} cannot be read before the deployment"
        elif (needed_s := math.ceil(batch / threads) * needs + reserve) > timeout:
            says = (
                f"batch of {shown(batch)} in {shown(threads)} threads (CONCURRENCY) at {shown(needs)} s a step, "
                f"with RESERVE_S {shown(reserve)} = {shown(needed_s)} s, function timeout {shown(timeout)} s"
            )
        else:
            continue
        yield Finding(
            source.function.path,
            says,
            "Records that are not started in time are handed back, and each costs a receive.",
            "Set BatchSize and CONCURRENCY to the same number, or a longer Timeout.",
        )


CHECKS = (
    receives_ride_out_the_outage,
    messages_are_parked_before_they_expire,
    requests_of_a_step_fit_its_lease,
    batches_fit_the_function_timeout,
)
