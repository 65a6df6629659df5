"""What QueueConsumer derives, read from the finished templates."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from shared.idempotency.sqs import delay_bounds
from stacks import application
from stacks.settings import AWS_TIMES, LAPTOP_TIMES, Throughput, settings_from
from tests.harness.synth import OPERATOR, PARTNER, STAGES, Synthesised, new_app, read

DAY_S = 24 * 3600
CONSUMERS = {"Orders": "order", "Payments": "payment", "Emails": "email"}


@dataclass
class Consumer:
    """One stage of the pipeline as it was synthesised."""

    queue: dict[str, Any]
    dlq: dict[str, Any]
    function: dict[str, Any]
    environment: dict[str, str]
    mapping: dict[str, Any]


def consumer(synthesised: Synthesised, name: str) -> Consumer:
    path = f"{name}/{CONSUMERS[name].capitalize()}Function"
    return Consumer(
        queue=synthesised.one("AWS::SQS::Queue", f"{name}/Queue"),
        dlq=synthesised.one("AWS::SQS::Queue", f"{name}/Dlq"),
        function=synthesised.one("AWS::Lambda::Function", path),
        environment=synthesised.environment(path),
        mapping=synthesised.one("AWS::Lambda::EventSourceMapping", f"{name}/Mapping"),
    )


@pytest.fixture(params=list(CONSUMERS))
def each(request: pytest.FixtureRequest, any_stage: Synthesised) -> Consumer:
    return consumer(any_stage, request.param)


def statements(synthesised: Synthesised, queue: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = synthesised.one("AWS::SQS::QueuePolicy", f"{queue}/Policy")["PolicyDocument"][
        "Statement"
    ]
    return found


def test_a_message_stays_invisible_for_six_timeouts_and_the_batching_window(each: Consumer) -> None:
    window = each.mapping["MaximumBatchingWindowInSeconds"]
    assert each.queue["VisibilityTimeout"] == 6 * each.function["Timeout"] + window


def test_a_queue_whose_function_waits_for_fuller_batches_stays_invisible_for_that_too(tmp_path: Path) -> None:
    app = new_app(tmp_path, "prod", **STAGES["prod"])
    settings = replace(
        settings_from(app.node.try_get_context), throughputs={"email": Throughput(batch_size=5, window_s=1)}
    )
    application.synthesise(app, application.build(app, settings))
    email = consumer(read(app, tmp_path, "prod"), "Emails")

    assert email.mapping["MaximumBatchingWindowInSeconds"] == 1
    assert email.queue["VisibilityTimeout"] == 6 * email.function["Timeout"] + 1


def test_a_killed_workers_message_comes_back_after_the_lease(each: Consumer) -> None:
    lease = each.function["Timeout"] + int(each.environment["LEASE_SKEW_S"])
    assert each.queue["VisibilityTimeout"] > lease


def test_a_step_has_a_second_more_than_all_its_requests_may_take(each: Consumer) -> None:
    assert each.function["Timeout"] >= float(each.environment["STEP_NEEDS_S"]) + 1


@pytest.mark.parametrize(
    ("stage", "name", "needs", "timeout", "visibility"),
    [
        ("local", "Orders", "0.6", 3, 18),
        ("local", "Payments", "5.4", 7, 42),  # 4 requests of 0.6 s and 3 of 1 s
        ("local", "Emails", "3", 5, 30),
        ("prod", "Orders", "3", 8, 48),
        ("prod", "Payments", "48", 53, 318),  # 4 requests of 3 s and 3 of 12 s
        ("prod", "Emails", "15", 20, 120),
    ],
)
def test_what_a_step_needs_is_the_sum_of_its_requests_timeouts(
    synthesised: Any, stage: str, name: str, needs: str, timeout: int, visibility: int
) -> None:
    found = consumer(synthesised(stage), name)
    assert found.environment["STEP_NEEDS_S"] == needs
    assert found.function["Timeout"] == timeout
    assert found.queue["VisibilityTimeout"] == visibility


def test_a_source_keeps_messages_a_week_and_its_dlq_two(each: Consumer) -> None:
    assert each.queue["MessageRetentionPeriod"] == 7 * DAY_S
    assert each.dlq["MessageRetentionPeriod"] == 14 * DAY_S


def test_a_record_outlives_every_message_about_it(each: Consumer) -> None:
    retentions = each.queue["MessageRetentionPeriod"] + each.dlq["MessageRetentionPeriod"]
    assert int(each.environment["RECORD_TTL_S"]) > retentions


def test_a_message_outlives_the_outage_and_not_much_more_however_its_tries_end(
    each: Consumer, any_stage: Synthesised
) -> None:
    outage = (LAPTOP_TIMES if any_stage.stage == "local" else AWS_TIMES).outage_s
    base, cap = int(each.environment["BACKOFF_BASE_S"]), int(each.environment["BACKOFF_CAP_S"])

    def least_wait(receive: int) -> int:
        visibility: int = each.queue["VisibilityTimeout"]
        return min(delay_bounds(receive, base, cap)[0], visibility)

    receives = each.queue["RedrivePolicy"]["maxReceiveCount"]
    waits = [least_wait(receive) for receive in range(1, receives)]  # none after the last
    assert sum(waits) >= outage > sum(waits[:-1])


def test_an_account_rides_out_two_hours_and_a_laptop_a_minute(sandbox: Synthesised, local: Synthesised) -> None:
    assert (AWS_TIMES.outage_s, LAPTOP_TIMES.outage_s) == (7200, 60)
    assert consumer(sandbox, "Payments").environment["BACKOFF_CAP_S"] == "900"
    assert consumer(local, "Payments").queue["RedrivePolicy"]["maxReceiveCount"] == 32


def test_a_message_is_parked_before_its_retention_is_over(each: Consumer) -> None:
    longest_wait = max(int(each.environment["BACKOFF_CAP_S"]), each.queue["VisibilityTimeout"])
    receives = each.queue["RedrivePolicy"]["maxReceiveCount"]
    assert receives * longest_wait < each.queue["MessageRetentionPeriod"]


def test_only_its_own_source_may_use_a_dlq(each: Consumer) -> None:
    source = f"arn:<AWS::Partition>:sqs:<AWS::Region>:<AWS::AccountId>:{each.queue['QueueName']}"
    assert each.dlq["RedriveAllowPolicy"] == {"redrivePermission": "byQueue", "sourceQueueArns": [source]}


def test_each_queue_parks_in_its_own_dlq(any_stage: Synthesised) -> None:
    for name in CONSUMERS:
        found = consumer(any_stage, name)
        assert found.queue["RedrivePolicy"]["deadLetterTargetArn"] == f"<{name}/Dlq.Arn>"
        assert found.environment["QUEUE_URL"] == f"<{name}/Queue>"
        assert found.environment["DLQ_URL"] == f"<{name}/Dlq>"
        assert found.mapping["EventSourceArn"] == f"<{name}/Queue.Arn>"


def test_failed_records_are_reported_one_by_one(each: Consumer) -> None:
    assert each.mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_a_queue_accepts_the_largest_body_with_attributes_and_a_dlq_all_that_sqs_has(each: Consumer) -> None:
    assert each.queue["MaximumMessageSize"] == 64 * 1024 + 8 * 1024
    assert each.dlq["MaximumMessageSize"] == 1024 * 1024


def test_no_filter_may_drop_an_order(each: Consumer) -> None:
    assert "FilterCriteria" not in each.mapping


def test_every_record_of_a_batch_has_a_thread(each: Consumer) -> None:
    assert each.environment["CONCURRENCY"] == str(each.mapping["BatchSize"])


@pytest.mark.parametrize(("name", "batch", "workers"), [("Orders", 10, 10), ("Payments", 5, 5), ("Emails", 1, 2)])
def test_concurrency_in_prod_is_bounded_as_the_settings_say(
    prod: Synthesised, name: str, batch: int, workers: int
) -> None:
    mapping = consumer(prod, name).mapping
    assert mapping["BatchSize"] == batch
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": workers}


def test_concurrency_is_bounded_everywhere_else_by_the_usual_flow(local: Synthesised) -> None:
    usual = Throughput()
    for name in CONSUMERS:
        assert consumer(local, name).mapping["ScalingConfig"] == {"MaximumConcurrency": usual.max_concurrency}


def test_every_queue_is_encrypted_and_takes_tls_only(any_stage: Synthesised) -> None:
    queues = any_stage.of_type("AWS::SQS::Queue")
    assert len(queues) == 2 * len(any_stage.consumers) + 1  # the relay's
    for path, queue in queues.items():
        assert queue["SqsManagedSseEnabled"] is True
        assert {
            "Action": "sqs:*",
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            "Effect": "Deny",
            "Principal": {"AWS": "*"},
            "Resource": f"<{path}.Arn>",
        } in statements(any_stage, path)


def test_the_orders_queue_admits_the_producers_that_a_person_named(prod: Synthesised) -> None:
    allowed = [s for s in statements(prod, "Orders/Queue") if s["Effect"] == "Allow"]
    assert allowed == [
        {
            "Action": "sqs:SendMessage",
            "Effect": "Allow",
            "Principal": {"AWS": PARTNER},
            "Resource": "<Orders/Queue.Arn>",
        }
    ]


def test_no_queue_admits_anybody_else(any_stage: Synthesised) -> None:
    queues = set(any_stage.of_type("AWS::SQS::Queue"))
    if any_stage.stage == "prod":
        queues.remove("Orders/Queue")
    for queue in queues:
        assert [s["Effect"] for s in statements(any_stage, queue) if s["Effect"] != "Deny"] == []


@pytest.mark.parametrize("name", ["Payments", "Emails"])
def test_in_prod_only_relay_sweep_and_operators_send_to_the_queues_behind_the_first(
    prod: Synthesised, name: str
) -> None:
    senders = ["<Relaying/RelayRole.Arn>", "<Sweeping/SweepRole.Arn>", OPERATOR]
    assert {
        "Action": "sqs:SendMessage",
        "Condition": {"ArnNotLike": {"aws:PrincipalArn": senders}},
        "Effect": "Deny",
        "Principal": {"AWS": "*"},
        "Resource": f"<{name}/Queue.Arn>",
    } in statements(prod, f"{name}/Queue")


def test_the_names_of_the_events_lead_to_their_queues(any_stage: Synthesised) -> None:
    relayed, swept = (
        json.loads(any_stage.environment(path)["ROUTES"])
        for path in ("Relaying/RelayFunction", "Sweeping/SweepFunction")
    )
    assert swept == {
        "order.requested": "<Orders/Queue>",
        "order.placed": "<Payments/Queue>",
        "order.paid": "<Emails/Queue>",
        "order.declined": "<Emails/Queue>",
    }
    assert {kind: urls.split()[0] for kind, urls in relayed.items() if kind in swept} == swept
    assert {url for urls in relayed.values() for url in urls.split()} == {
        f"<{consumer.path}/Queue>" for consumer in any_stage.consumers
    }
