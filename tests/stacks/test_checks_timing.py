"""Times in the environment of functions, on a copier's plain constructs."""

from pathlib import Path
from typing import cast

import pytest
from aws_cdk import CfnResource

from stacks.checks.timing import (
    batches_fit_the_function_timeout,
    messages_are_parked_before_they_expire,
    receives_ride_out_the_outage,
    requests_of_a_step_fit_its_lease,
)
from stacks.times import CALLS
from tests.stacks.minimal_app import TIMES, Break, Fine, MinimalApp

RIDE, PARKED = receives_ride_out_the_outage, messages_are_parked_before_they_expire
LEASE, BATCH = requests_of_a_step_fit_its_lease, batches_fit_the_function_timeout
NEEDED = TIMES.max_receives(60)


def calls(app: MinimalApp, aws: int, provider: int = 0) -> None:
    cast(CfnResource, app.function.node.default_child).add_metadata(CALLS, {"aws": aws, "provider": provider})


def provider(app: MinimalApp, read_s: str) -> MinimalApp:
    app.env("PROVIDER_CONNECT_TIMEOUT_S", "1")
    return app.env("PROVIDER_READ_TIMEOUT_S", read_s)


def receives(app: MinimalApp, count: int) -> None:
    app.override(app.queue, "RedrivePolicy.maxReceiveCount", count)


def without_the_core(app: MinimalApp, receives_: int) -> None:
    """An ordinary function: a message comes back after the visibility timeout of 60 s."""
    app.override(app.function, "Environment", None)
    receives(app, receives_)


BREAKS = [
    Break(
        RIDE,
        "one receive too few",
        lambda app: receives(app, NEEDED - 1),
        "small/Queue",
        (f"maxReceiveCount {NEEDED - 1}", "an outage of 7200 s", f"takes {NEEDED} receives"),
    ),
    Break(
        RIDE,
        "a shorter back-off",
        lambda app: app.env("BACKOFF_CAP_S", "20"),
        "small/Queue",
        ("BACKOFF_CAP_S 20", "takes 7"),
    ),
    Break(
        RIDE,
        "no back-off and too few receives",
        lambda app: without_the_core(app, 120),
        "small/Queue",
        ("maxReceiveCount 120", "no back-off", "takes 121 receives"),
    ),
    Break(
        RIDE,
        "half a back-off",
        lambda app: app.env("BACKOFF_CAP_S", None),
        "small/Mapping",
        ("BACKOFF_CAP_S None cannot be read",),
    ),
    Break(
        RIDE,
        "a back-off in parts of seconds, which the function can not read",
        lambda app: app.env("BACKOFF_BASE_S", "2.5"),
        "small/Mapping",
        ("BACKOFF_BASE_S 2.5",),
    ),
    Break(
        RIDE,
        "a back-off known only when it is deployed",
        lambda app: app.env("BACKOFF_BASE_S", app.parameter()),
        "small/Mapping",
        ("BACKOFF_BASE_S ${Unknown}",),
    ),
    Break(
        RIDE,
        "a back-off whose cap is below its base",
        lambda app: app.env("BACKOFF_CAP_S", "1"),
        "small/Queue",
        ("base 2 s and cap 1 s",),
    ),
    Break(
        RIDE,
        "an outage that takes more receives than SQS counts",
        lambda app: app.env("BACKOFF_CAP_S", "2"),
        "small/Queue",
        ("takes 7201 receives",),
    ),
    Break(
        PARKED,
        "so many receives that messages expire first",
        lambda app: receives(app, 700),
        "small/Queue",
        ("700 receives of up to 900 s each = 630000 s", "604800 s"),
    ),
    Break(
        PARKED,
        "a retention shorter than all receives",
        lambda app: app.override(app.queue, "MessageRetentionPeriod", 3600),
        "small/Queue",
        ("900 s each", "MessageRetentionPeriod 3600 s"),
    ),
    Break(
        LEASE,
        "a longer read timeout",
        lambda app: app.env("CLIENT_READ_TIMEOUT_S", "0.6"),
        "small/Worker",
        ("3 requests of 1.1 s", "the answer take 3.55 s", "RESERVE_S 3.25"),
    ),
    Break(
        LEASE,
        "a longer connect timeout",
        lambda app: app.env("CLIENT_CONNECT_TIMEOUT_S", "0.7"),
        "small/Worker",
        ("3 requests of 1.2 s", "RESERVE_S 3.25"),
    ),
    Break(
        LEASE,
        "a reserve that is too short for the requests after the commit",
        lambda app: app.env("RESERVE_S", "3"),
        "small/Worker",
        ("3 requests of 1 s after the last commit", "3.25 s, RESERVE_S 3"),
    ),
    Break(
        LEASE,
        "a batch whose visibilities take two requests",
        lambda app: (app.override(app.mapping, "BatchSize", 11), app.env("CONCURRENCY", "11")),
        "small/Worker",
        ("4 requests of 1 s after the last commit", "RESERVE_S 3.25"),
    ),
    Break(
        LEASE,
        "no reserve",
        lambda app: app.env("RESERVE_S", None),
        "small/Worker",
        ("RESERVE_S", "cannot be read before the deployment"),
    ),
    Break(
        LEASE,
        "more requests than there is time for",
        lambda app: calls(app, aws=7),
        "small/Worker",
        ("7 requests of 1 s", "= 7 s, STEP_NEEDS_S 6"),
    ),
    Break(
        LEASE,
        "a slower provider",
        lambda app: provider(app, "80"),
        "small/Worker",
        ("1 to a provider of 81 s = 82 s", "STEP_NEEDS_S 6"),
    ),
    Break(
        LEASE,
        "a step that needs all that the reserve leaves",
        lambda app: app.env("STEP_NEEDS_S", "6.75"),
        "small/Worker",
        ("STEP_NEEDS_S 6.75, RESERVE_S 3.25, function timeout 10 s",),
    ),
    Break(
        LEASE,
        "no skew between clocks",
        lambda app: app.env("LEASE_SKEW_S", "0"),
        "small/Worker",
        ("LEASE_SKEW_S 0",),
    ),
    Break(
        LEASE,
        "a lease longer than the visibility timeout",
        lambda app: app.env("LEASE_SKEW_S", "50"),
        "small/Worker",
        ("10 s timeout + LEASE_SKEW_S 50", "small/Queue 60 s"),
    ),
    Break(
        LEASE,
        "a timeout known only when it is deployed",
        lambda app: app.env("CLIENT_READ_TIMEOUT_S", app.parameter()),
        "small/Worker",
        ("CLIENT_READ_TIMEOUT_S", "${Unknown}", "cannot be read before the deployment"),
    ),
    Break(
        LEASE,
        "a provider without its connect timeout written down",
        lambda app: (provider(app, "1"), app.env("PROVIDER_CONNECT_TIMEOUT_S", "fast")),
        "small/Worker",
        ("PROVIDER_CONNECT_TIMEOUT_S", "fast"),
    ),
    Break(
        BATCH,
        "fewer threads than records",
        lambda app: app.env("CONCURRENCY", "5"),
        "small/Worker",
        ("batch of 10 in 5 threads (CONCURRENCY) at 6 s a step, with RESERVE_S 3.25 = 15.25 s, function timeout 10 s",),
    ),
    Break(
        BATCH,
        "a larger batch",
        lambda app: app.override(app.mapping, "BatchSize", 20),
        "small/Worker",
        ("batch of 20 in 10 threads",),
    ),
    Break(
        BATCH,
        "a batch size known only when it is deployed",
        lambda app: app.override(app.mapping, "BatchSize", app.parameter()),
        "small/Worker",
        ("BatchSize ${Unknown} cannot be read",),
    ),
]

FINE = [
    Fine("no back-off and enough receives", lambda app: without_the_core(app, 121)),
    Fine("requests that just fit", lambda app: calls(app, aws=6)),
    Fine("a provider that just fits", lambda app: provider(app, "4")),
    Fine("an outage of a minute, on a laptop", lambda app: app.override(app.queue, "VisibilityTimeout", 60), "local"),
]


@pytest.mark.parametrize("broken", BREAKS, ids=str)
def test_found_and_quoted(broken: Break, tmp_path: Path) -> None:
    broken.assert_found(tmp_path)


@pytest.mark.parametrize("fine", FINE, ids=str)
def test_no_false_alarm(fine: Fine, tmp_path: Path) -> None:
    fine.assert_fine(tmp_path)
