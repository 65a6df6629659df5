"""All times of a stage, and the numbers derived from them.

CloudFormation accepts most contradictions between times. So this module rejects them with both values.
"""

import math
from dataclasses import dataclass

from shared.idempotency.sqs import receives_to_ride_out

DAY_S = 24 * 3600
LAMBDA_LIMIT_S = 900
SQS_RETENTION_LIMIT_S = 14 * DAY_S
SQS_RECEIVE_LIMIT = 1000
STREAM_AGE_LEAST_S = 60
CALLS = "effectively-once:calls"  # key in the metadata of a function: the requests that STEP_NEEDS_S allows for
ANSWER_S = 0.25  # for the answer of a function, its log lines and its metrics
NO_GUARD = "effectively-once:no-guard"  # key in the metadata of a function: why its step has no guard


class SettingsError(ValueError):
    """A setting contradicts a guarantee or another setting, or a value that only a person knows is missing."""


def require(holds: bool, otherwise: str) -> None:
    """Raise SettingsError with the text `otherwise` unless `holds`."""
    if not holds:
        raise SettingsError(otherwise)


def visibility_for(timeout_s: int, window_s: int) -> int:
    """Return the visibility timeout in seconds for a function timeout and a batching window in seconds.

    AWS advises six times the function timeout: a batch that Lambda holds while it is throttled must not come back.
    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
    """
    return 6 * timeout_s + window_s


@dataclass(frozen=True)
class Client:
    """Timeouts of one request, in seconds."""

    connect_s: float
    read_s: float

    @property
    def request_s(self) -> float:
        return self.connect_s + self.read_s


@dataclass(frozen=True)
class RequestBudget:
    """The number of requests that one step may have to wait for, one after the other."""

    aws: int = 0
    provider: int = 0

    def longest_s(self, aws: Client, provider: Client) -> float:
        """Return the seconds that all requests take if each of them times out."""
        return round(self.aws * aws.request_s + self.provider * provider.request_s, 3)


# What a queue's consumer may have to wait for after its last commit: save the result or release the claim, park the
# message, set the visibilities of all failed records.
AFTER_COMMIT = 3


@dataclass(frozen=True)
class Timing:
    """The times of a function and its queue, derived from the requests that one step makes.

    An invocation has three deadlines, each earlier than the next by the requests that follow it:
    step, one request, commit, `reserve_s`, worker. A step starts only if `step_needs_s` remain until the commit
    deadline. All its requests are counted, from the claim to the commit.
    """

    step_needs_s: float
    reserve_s: float
    timeout_s: int
    visibility_s: int
    max_receives: int


def reserve_s(after: int, aws: Client) -> float:
    """Return the seconds from the commit deadline to the end of the worker: `after` AWS requests and the answer."""
    return round(after * aws.request_s + ANSWER_S, 3)


@dataclass(frozen=True)
class Times:
    """The times of one stage. Other times are derived from them."""

    aws: Client
    provider: Client
    spare_s: float  # in addition to all counted requests: start-up and resent requests
    lease_skew_s: int  # largest difference between two clocks: a lease ends this much later
    outage_s: int  # an outage of this length parks no message
    backoff_base_s: int
    backoff_cap_s: int
    sweep_age_s: int  # age at which the sweep sends the event of an unfinished order again
    sweep_every_min: int
    source_retention_s: int = 7 * DAY_S
    dlq_retention_s: int = 14 * DAY_S

    def __post_init__(self) -> None:
        require(self.spare_s >= 1, f"spare time of {self.spare_s} s: a function needs at least 1 s to start")
        require(self.lease_skew_s >= 1, f"lease skew of {self.lease_skew_s} s: at least 1 s, because clocks differ")
        require(
            1 <= self.backoff_base_s <= self.backoff_cap_s,
            f"back-off base {self.backoff_base_s} s and cap {self.backoff_cap_s} s: required: 1 <= base <= cap",
        )
        require(
            self.source_retention_s < self.dlq_retention_s <= SQS_RETENTION_LIMIT_S,
            f"DLQ retention {self.dlq_retention_s} s, source retention {self.source_retention_s} s: a parked message "
            "keeps its age, so the DLQ must keep it longer than the source, and SQS allows "
            f"at most {SQS_RETENTION_LIMIT_S} s",
        )
        require(
            self.sweep_age_s < self.record_ttl_s,
            f"sweep age {self.sweep_age_s} s, record TTL {self.record_ttl_s} s: the sweep must run before the TTL",
        )

    @property
    def record_ttl_s(self) -> int:
        """A message can be as old as both retentions together. The extra day covers the time that a step waits."""
        return self.source_retention_s + self.dlq_retention_s + DAY_S

    @property
    def stream_age_s(self) -> int:
        """Age at which the relay gives up a stream record. From this age on, the sweep sends the events."""
        return max(self.sweep_age_s, STREAM_AGE_LEAST_S)

    @property
    def sweep_timeout_s(self) -> int:
        """A sweep may run until the next sweep starts."""
        return min(self.sweep_every_min * 60, LAMBDA_LIMIT_S)

    def timing(
        self,
        calls: RequestBudget,
        *,
        after: int = 0,
        window_s: int = 0,
        extra_s: float = 0,
        limit_s: int = LAMBDA_LIMIT_S,
    ) -> Timing:
        """Return the times of a function whose step makes the requests `calls` and takes `extra_s` in addition.

        `after`: the AWS requests after its commit.

        Raises SettingsError if the timeout exceeds `limit_s`, if a message would come back before its lease ends, or
        if a message would expire before it is parked.
        """
        needs = round(calls.longest_s(self.aws, self.provider) + extra_s, 3)
        reserve = reserve_s(after, self.aws)
        timeout = math.ceil(needs + reserve + self.spare_s)
        require(
            timeout <= limit_s, f"timeout {timeout} s for {calls}, limit {limit_s} s: use fewer or shorter requests"
        )
        visibility = visibility_for(timeout, window_s)
        lease = timeout + self.lease_skew_s
        require(
            visibility > lease,
            f"visibility {visibility} s, lease up to {lease} s: the message of a killed worker would come back "
            "before its lease ends",
        )
        return Timing(needs, reserve, timeout, visibility, self.max_receives(visibility))

    def max_receives(self, visibility_s: int) -> int:
        """Return the smallest receive count with which a message outlives the outage.

        After a failed step, a message waits for its back-off, which is at least half of the nominal delay. If a
        function fails before it can set a back-off (a deploy broke its imports), the message waits for the visibility
        timeout. If this is shorter, it equals the shortest wait of a back-off capped at twice the timeout.
        """
        shortest_cap = min(self.backoff_cap_s, 2 * visibility_s)
        receives = receives_to_ride_out(self.outage_s, self.backoff_base_s, shortest_cap)
        require(
            receives <= SQS_RECEIVE_LIMIT,
            f"an outage of {self.outage_s} s takes {receives} receives, and SQS allows {SQS_RECEIVE_LIMIT}: "
            f"use longer waits than a back-off of {self.backoff_base_s} to {self.backoff_cap_s} s",
        )
        longest = receives * max(visibility_s, self.backoff_cap_s)
        require(
            longest < self.source_retention_s,
            f"{receives} receives take up to {longest} s, source retention is {self.source_retention_s} s: "
            "a message would expire before it is parked",
        )
        return receives
