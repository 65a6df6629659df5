"""What QueueConsumer derives, beyond what the checks require."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from shared.idempotency.sqs import delay_bounds
from shared.orders.row import NextEvent
from stacks import application
from stacks.settings import Settings, Throughput, settings_from
from tests.harness.synth import OPERATOR, PARTNER, STAGES, Consumer, Properties, Synthesised, new_app, read


def settings_of(found: Synthesised) -> Settings:
    return settings_from({"stage": found.stage, **STAGES[found.stage]}.get)


def queue_of(found: Synthesised, consumer: Consumer) -> Properties:
    return found.one("AWS::SQS::Queue", f"{consumer.path}/Queue")


def mapping_of(found: Synthesised, consumer: Consumer) -> Properties:
    return found.one("AWS::Lambda::EventSourceMapping", f"{consumer.path}/Mapping")


def statements(found: Synthesised, queue: str) -> list[dict[str, Any]]:
    policy = found.one("AWS::SQS::QueuePolicy", f"{queue}/Policy")
    return list(policy["PolicyDocument"]["Statement"])


def test_the_visibility_timeout_includes_the_batching_window(tmp_path: Path) -> None:
    app = new_app(tmp_path, "prod", **STAGES["prod"])
    settings = settings_from(app.node.try_get_context)
    throughputs = {"email": Throughput(batch_size=5, window_s=1)}
    application.synthesise(app, application.build(app, replace(settings, throughputs=throughputs)))
    found = read(app, tmp_path, "prod")
    [email] = [consumer for consumer in found.consumers if consumer.function == "email"]

    timeout = found.one("AWS::Lambda::Function", email.function_path)["Timeout"]
    assert mapping_of(found, email)["MaximumBatchingWindowInSeconds"] == 1
    assert queue_of(found, email)["VisibilityTimeout"] == 6 * timeout + 1


def test_the_receive_count_is_the_smallest_that_covers_the_outage(any_stage: Synthesised) -> None:
    times = settings_of(any_stage).times
    for consumer in any_stage.consumers:
        queue = queue_of(any_stage, consumer)
        waits = [
            min(delay_bounds(receive, times.backoff_base_s, times.backoff_cap_s)[0], queue["VisibilityTimeout"])
            for receive in range(1, queue["RedrivePolicy"]["maxReceiveCount"])  # no wait after the last receive
        ]
        assert sum(waits) >= times.outage_s > sum(waits[:-1])


def test_a_dlq_admits_only_its_source_queue(any_stage: Synthesised) -> None:
    for consumer in any_stage.consumers:
        source = f"arn:<AWS::Partition>:sqs:<AWS::Region>:<AWS::AccountId>:{queue_of(any_stage, consumer)['QueueName']}"
        dlq = any_stage.one("AWS::SQS::Queue", f"{consumer.path}/Dlq")
        assert dlq["RedriveAllowPolicy"] == {"redrivePermission": "byQueue", "sourceQueueArns": [source]}


def test_each_consumer_knows_its_own_queue_and_dlq(any_stage: Synthesised) -> None:
    for consumer in any_stage.consumers:
        environment = any_stage.environment(consumer.function_path)
        assert environment["QUEUE_URL"] == f"<{consumer.path}/Queue>"
        assert environment["DLQ_URL"] == f"<{consumer.path}/Dlq>"
        dlq = queue_of(any_stage, consumer)["RedrivePolicy"]["deadLetterTargetArn"]
        assert dlq == f"<{consumer.path}/Dlq.Arn>"


def test_the_settings_limit_the_concurrency_of_each_consumer(any_stage: Synthesised) -> None:
    for consumer in any_stage.consumers:
        throughput, mapping = settings_of(any_stage).throughput(consumer.function), mapping_of(any_stage, consumer)
        assert mapping["BatchSize"] == throughput.batch_size
        assert mapping["ScalingConfig"] == {"MaximumConcurrency": throughput.max_concurrency}


def test_every_queue_is_encrypted_and_requires_tls(any_stage: Synthesised) -> None:
    queues = any_stage.of_type("AWS::SQS::Queue")
    assert len(queues) == 2 * len(any_stage.consumers) + 1  # and the failure queue of the relay
    for path, queue in queues.items():
        assert queue["SqsManagedSseEnabled"] is True
        assert {
            "Action": "sqs:*",
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            "Effect": "Deny",
            "Principal": {"AWS": "*"},
            "Resource": f"<{path}.Arn>",
        } in statements(any_stage, path)


def test_only_the_first_queue_allows_other_senders_and_only_the_named_producers(any_stage: Synthesised) -> None:
    first = f"{any_stage.consumers[0].path}/Queue"
    producers = {
        "Action": "sqs:SendMessage",
        "Effect": "Allow",
        "Principal": {"AWS": PARTNER},
        "Resource": f"<{first}.Arn>",
    }
    for queue in any_stage.of_type("AWS::SQS::Queue"):
        allowed = [statement for statement in statements(any_stage, queue) if statement["Effect"] != "Deny"]
        assert allowed == ([producers] if any_stage.stage == "prod" and queue == first else [])


def test_in_prod_the_other_queues_deny_all_senders_except_relay_sweep_and_operators(prod: Synthesised) -> None:
    senders = ["<Relaying/RelayRole.Arn>", "<Sweeping/SweepRole.Arn>", OPERATOR]
    for consumer in prod.consumers[1:]:
        assert {
            "Action": "sqs:SendMessage",
            "Condition": {"ArnNotLike": {"aws:PrincipalArn": senders}},
            "Effect": "Deny",
            "Principal": {"AWS": "*"},
            "Resource": f"<{consumer.path}/Queue.Arn>",
        } in statements(prod, f"{consumer.path}/Queue")


def test_the_relay_sends_to_every_consumer_and_the_sweep_to_the_first_of_each_pending_event(
    any_stage: Synthesised,
) -> None:
    relayed, swept = (
        json.loads(any_stage.environment(path)["ROUTES"])
        for path in ("Relaying/RelayFunction", "Sweeping/SweepFunction")
    )
    assert set(swept) == {event.type for event in get_args(NextEvent)}
    assert {kind: urls.split()[0] for kind, urls in relayed.items() if kind in swept} == swept
    queues = {f"<{consumer.path}/Queue>" for consumer in any_stage.consumers}
    assert {url for urls in relayed.values() for url in urls.split()} == queues
