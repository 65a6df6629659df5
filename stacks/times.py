"""How long everything waits, and what follows from it: each derived number is computed here, once.

A contradiction is refused with both values, because CloudFormation accepts most of them in silence.
"""

import math
from dataclasses import dataclass

from shared.idempotency.sqs import receives_to_ride_out

DAY_S = 24 * 3600
LAMBDA_LIMIT_S = 900
SQS_RETENTION_LIMIT_S = 14 * DAY_S
SQS_RECEIVE_LIMIT = 1000
STREAM_AGE_LEAST_S = 60
CALLS = "effectively-once:calls"  # a function's metadata in the template: the requests that STEP_NEEDS_S is for


class SettingsError(ValueError):
    """Settings that can not keep the promise, or something that only a person can supply is missing."""


def require(holds: bool, otherwise: str) -> None:
    """Raises SettingsError with the text unless the condition holds."""
    if not holds:
        raise SettingsError(otherwise)


def visibility_for(timeout_s: int, window_s: int) -> int:
    """Seconds that a message stays hidden from others once it was received.

    Six times as AWS advises: a batch that Lambda holds while the function is throttled must not come back.
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
    """Requests that one step may have to wait for, one after the other."""

    aws: int = 0
    provider: int = 0

    def longest_s(self, aws: Client, provider: Client) -> float:
        """Seconds, when every single one runs into its timeout."""
        return round(self.aws * aws.request_s + self.provider * provider.request_s, 3)


@dataclass(frozen=True)
class Timing:
    """What follows for a function from the requests that one run of it makes."""

    step_needs_s: float
    timeout_s: int
    visibility_s: int
    max_receives: int


@dataclass(frozen=True)
class Times:
    """What one stage waits for; the rest follows."""

    aws: Client
    provider: Client
    spare_s: float  # above what a step needs: start-up, and room for requests that are sent again
    lease_skew_s: int  # how far two clocks may differ before a lease is thought over too early
    outage_s: int  # how long everything around may be down without a message being parked
    backoff_base_s: int
    backoff_cap_s: int
    sweep_age_s: int  # how old an unfinished order is before its event is sent again
    sweep_every_min: int
    source_retention_s: int = 7 * DAY_S
    dlq_retention_s: int = 14 * DAY_S

    def __post_init__(self) -> None:
        require(self.spare_s >= 1, f"spare time of {self.spare_s} s: a function needs at least 1 s to start up")
        require(self.lease_skew_s >= 1, f"lease skew of {self.lease_skew_s} s: clocks differ, so at least 1 s")
        require(
            1 <= self.backoff_base_s <= self.backoff_cap_s,
            f"back-off base {self.backoff_base_s} s and cap {self.backoff_cap_s} s: need 1 <= base <= cap",
        )
        require(
            self.source_retention_s < self.dlq_retention_s <= SQS_RETENTION_LIMIT_S,
            f"DLQ retention {self.dlq_retention_s} s, source retention {self.source_retention_s} s: a parked message "
            f"keeps its age, so the DLQ must keep it longer than the source, and SQS at most {SQS_RETENTION_LIMIT_S} s",
        )
        require(
            self.sweep_age_s < self.record_ttl_s,
            f"sweep age {self.sweep_age_s} s, record TTL {self.record_ttl_s} s: the sweep must come before the TTL",
        )

    @property
    def record_ttl_s(self) -> int:
        """A message can be as old as both retentions together; the day is for the time the step itself waited."""
        return self.source_retention_s + self.dlq_retention_s + DAY_S

    @property
    def stream_age_s(self) -> int:
        """Records older than this the relay gives up at the latest: by then the sweep sends their events."""
        return max(self.sweep_age_s, STREAM_AGE_LEAST_S)

    @property
    def sweep_timeout_s(self) -> int:
        """A sweep may go on until the next one starts, with what it left."""
        return min(self.sweep_every_min * 60, LAMBDA_LIMIT_S)

    def timing(
        self, calls: RequestBudget, *, window_s: int = 0, extra_s: float = 0, limit_s: int = LAMBDA_LIMIT_S
    ) -> Timing:
        """The times of a function that makes `calls` and takes `extra_s` apart from them, all in seconds.

        Raises SettingsError when the timeout is past `limit_s`, or a message would come back, or vanish, at a
        time that hurts.
        """
        needs = round(calls.longest_s(self.aws, self.provider) + extra_s, 3)
        timeout = math.ceil(needs + self.spare_s)
        require(timeout <= limit_s, f"timeout {timeout} s for {calls}, limit {limit_s} s: fewer or shorter requests")
        visibility = visibility_for(timeout, window_s)
        lease = timeout + self.lease_skew_s
        require(
            visibility > lease,
            f"visibility {visibility} s, lease up to {lease} s: the message of a killed worker would come back "
            "while it still counts as running",
        )
        return Timing(needs, timeout, visibility, self.max_receives(visibility))

    def max_receives(self, visibility_s: int) -> int:
        """Receives before a message is parked: the least that outlive the outage, however they go.

        A failed step waits as its back-off says, at least half of what it may. A function that dies before it can
        say anything, as when a deploy breaks its imports, gives its messages back after the visibility timeout,
        which may be sooner: then the shortest wait is that of a back-off capped at twice that timeout.
        """
        shortest_cap = min(self.backoff_cap_s, 2 * visibility_s)
        receives = receives_to_ride_out(self.outage_s, self.backoff_base_s, shortest_cap)
        require(
            receives <= SQS_RECEIVE_LIMIT,
            f"an outage of {self.outage_s} s takes {receives} receives, but SQS counts only to {SQS_RECEIVE_LIMIT}: "
            f"longer waits than a back-off of {self.backoff_base_s} to {self.backoff_cap_s} s",
        )
        longest = receives * max(visibility_s, self.backoff_cap_s)
        require(
            longest < self.source_retention_s,
            f"{receives} receives take up to {longest} s, source retention is {self.source_retention_s} s: "
            "a message would vanish before it is parked",
        )
        return receives
