"""A redrive loses nothing, whenever it ends, and moves what was asked for."""

import json
from typing import Any

import pytest

from shared.idempotency import BODY_LIMIT_BYTES, park, runtime
from stacks.constructs.queues import SQS_MESSAGE_LIMIT_BYTES, message_limit_bytes
from tests.harness import samples
from tests.harness.interceptor import FakeClock, Killed, killed_after, killed_before, meanwhile, refused
from tests.harness.lost_messages import answer
from tests.harness.moto_world import World
from tests.unit.operate.test_dlq import parked
from tools.account import Stop
from tools.operate.deployment import Deployment
from tools.operate.redrive import Redriven, Selection, redrive


@pytest.fixture(autouse=True)
def _no_move_tasks(world: World) -> None:
    """As on a laptop."""
    world.wire.always("ListMessageMoveTasks", refused("InvalidAction"))


def redriven(deployment: Deployment, **wish: Any) -> Redriven:
    return redrive(deployment, Selection("payments", **wish))


def orders_in(world: World, queue: str) -> list[str]:
    """Takes the messages off."""
    return sorted(json.loads(message["Body"])["subject"] for message in world.messages(queue))


def test_all_that_an_outage_parked_goes_back_and_the_dlq_is_empty(world: World, deployment: Deployment) -> None:
    wanted = sorted(f"ord_{n}" for n in range(25))
    for order_id in wanted:
        parked(world, "payments", order_id)

    done = redriven(deployment)

    assert (done.moved.total(), done.succeeded) == (25, True)
    assert orders_in(world, "payments") == wanted
    assert orders_in(world, "payments-dlq") == []


def test_what_was_parked_for_a_reason_stays_unless_asked_for(world: World, deployment: Deployment) -> None:
    for n in range(12):
        parked(world, "payments", f"bad_{n:02}", "key_reused" if n % 2 else "intent_mismatch")
    parked(world, "payments", "ord_1")

    done = redriven(deployment)
    assert orders_in(world, "payments") == ["ord_1"]
    assert done.left == {"key_reused": 6, "intent_mismatch": 6}

    redriven(deployment, reason="key_reused")
    assert orders_in(world, "payments") == [f"bad_{n:02}" for n in range(1, 12, 2)]

    redriven(deployment, everything=True)
    assert orders_in(world, "payments") == [f"bad_{n:02}" for n in range(0, 12, 2)]
    assert orders_in(world, "payments-dlq") == []


def test_a_dry_run_says_the_same_and_moves_nothing(world: World, deployment: Deployment) -> None:
    parked(world, "payments", "ord_1")
    parked(world, "payments", "ord_2", "key_reused")

    done = redriven(deployment, dry_run=True)

    assert (done.moved, done.left) == ({"none": 1}, {"key_reused": 1})
    assert world.wire.count("DeleteMessage") == 0
    assert (orders_in(world, "payments"), orders_in(world, "payments-dlq")) == ([], ["ord_1", "ord_2"])


def test_it_stops_at_the_number_asked_for(world: World, deployment: Deployment) -> None:
    for n in range(12):
        parked(world, "payments", f"ord_{n}")

    done = redriven(deployment, limit=3)

    assert (done.moved.total(), done.complete) == (3, False)
    assert (len(orders_in(world, "payments")), len(orders_in(world, "payments-dlq"))) == (3, 9)


def test_attributes_and_trace_go_with_the_message(world: World, deployment: Deployment) -> None:
    body = samples.body_of(samples.requested())
    world.sqs.send_message(
        QueueUrl=world.queues["payments-dlq"],
        MessageBody=body,
        MessageAttributes={
            "partner": {"DataType": "String", "StringValue": "p-1"},
            "count": {"DataType": "Number", "StringValue": "3"},
            "seal": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
        },
        MessageSystemAttributes={"AWSTraceHeader": {"DataType": "String", "StringValue": samples.TRACE}},
    )

    redriven(deployment)

    (message,) = world.messages("payments")
    assert message["Body"] == body
    assert message["MessageAttributes"]["partner"]["StringValue"] == "p-1"
    assert message["MessageAttributes"]["count"] == {"DataType": "Number", "StringValue": "3"}
    assert message["MessageAttributes"]["seal"]["BinaryValue"] == b"\x00\xff"
    assert message["Attributes"]["AWSTraceHeader"] == samples.TRACE


def test_the_largest_message_that_is_read_is_parked_and_redriven(world: World, deployment: Deployment) -> None:
    """The queues refuse what SQS would refuse: MaximumMessageSize counts the attributes."""
    sizes = {"payments": message_limit_bytes(BODY_LIMIT_BYTES), "payments-dlq": SQS_MESSAGE_LIMIT_BYTES}

    def refuse_larger(request: Any, apply: Any) -> Any:
        sent = json.loads(request.body)
        size = len(sent["MessageBody"].encode()) + sum(
            len(name) + len(value["DataType"]) + len(value["StringValue"].encode())
            for name, value in sent["MessageAttributes"].items()
        )
        if size > sizes[sent["QueueUrl"].rpartition("/")[2]]:
            return refused("InvalidParameterValue")(request, apply)
        return apply()

    world.wire.always("SendMessage", refuse_larger)
    body = samples.body_of(samples.requested()).ljust(BODY_LIMIT_BYTES)
    own = {"dataType": "String", "stringValue": "x" * (8 * 1024 - len("own" + "String"))}
    record = {"messageId": "m" * 100, "body": body, "attributes": {}, "messageAttributes": {"own": own}}
    park(world.sqs, world.queues["payments-dlq"], record, "intent_mismatch", 1)

    done = redriven(deployment, reason="intent_mismatch")

    assert (done.moved, done.failed) == ({"intent_mismatch": 1}, {})
    assert [message["Body"] for message in world.messages("payments")] == [body]


@pytest.mark.parametrize(
    ("operation", "fault", "copies"),
    [
        ("SendMessage", killed_before, 1),
        ("SendMessage", killed_after, 2),
        ("DeleteMessage", killed_before, 2),
        ("DeleteMessage", killed_after, 1),
    ],
)
def test_killed_between_any_two_calls_it_loses_nothing_and_the_next_run_ends_it(
    world: World, deployment: Deployment, operation: str, fault: Any, copies: int
) -> None:
    parked(world, "payments", "ord_1")
    world.wire.plan(operation, fault)
    with pytest.raises(Killed):
        redriven(deployment)

    redriven(deployment)

    assert orders_in(world, "payments") == ["ord_1"] * copies
    assert orders_in(world, "payments-dlq") == []


def test_what_its_queue_refuses_stays_parked_and_is_told(world: World, deployment: Deployment) -> None:
    for n in range(3):
        parked(world, "payments", f"ord_{n}")
    world.wire.plan("SendMessage", refused("AccessDenied", 403))

    done = redriven(deployment)

    assert (done.moved.total(), done.failed, done.succeeded) == (2, {"AccessDenied": 1}, False)
    assert len(orders_in(world, "payments-dlq")) == 1


def test_where_nothing_can_be_sent_it_soon_gives_up(world: World, deployment: Deployment) -> None:
    for n in range(15):
        parked(world, "payments", f"ord_{n:02}")
    world.wire.always("SendMessage", refused("AccessDenied", 403))

    done = redriven(deployment)

    assert (done.failed, done.complete) == ({"AccessDenied": 10}, False)
    assert len(orders_in(world, "payments-dlq")) == 15


def test_a_message_that_is_parked_again_at_once_does_not_go_round_for_ever(
    world: World, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime.current(), "clock", FakeClock(0))  # every parked message came later
    parked(world, "payments", "ord_1")

    done = redriven(deployment)

    assert (done.moved.total(), done.returned) == (0, 1)


def test_nothing_of_the_relays_is_redriven(deployment: Deployment) -> None:
    with pytest.raises(Stop, match="REPAIR=1"):
        redrive(deployment, Selection("relay"))


# With move tasks, as on AWS


class MoveTasks:
    """SQS's own redrive, which moto does not know."""

    def __init__(self, world: World, *ends: dict[str, Any], running: dict[str, Any] | None = None) -> None:
        self.started: list[dict[str, Any]] = []
        self._world = world
        self._answers = [running] if running else []
        self._ends = list(ends)
        world.wire.always("ListMessageMoveTasks", self._list)
        world.wire.always("StartMessageMoveTask", self._start)

    def _start(self, request: Any, _: Any) -> Any:
        self.started.append(json.loads(request.body))
        return answer(request, {"TaskHandle": "t-1"})

    def _list(self, request: Any, _: Any) -> Any:
        first = not self._answers and not self.started
        task = {} if first else (self._answers or self._ends).pop(0)
        return answer(request, {"Results": [task] if task else []})


RUNNING = {"Status": "RUNNING", "StartedTimestamp": 2, "ApproximateNumberOfMessagesMoved": 1}
COMPLETED = {"Status": "COMPLETED", "StartedTimestamp": 2, "ApproximateNumberOfMessagesMoved": 2}


def arn(queue: str) -> str:
    return f"arn:aws:sqs:eu-west-1:123456789012:{queue}"


def test_sqs_moves_them_itself_where_it_can_and_all_are_wanted(world: World, deployment: Deployment) -> None:
    parked(world, "payments", "ord_1")
    parked(world, "payments", "ord_2")
    tasks = MoveTasks(world, {}, RUNNING, COMPLETED)

    done = redriven(deployment)

    assert tasks.started == [{"SourceArn": arn("payments-dlq"), "DestinationArn": arn("payments")}]
    assert (done.by_task, done.moved, done.succeeded) == (True, {"all": 2}, True)
    assert world.wire.count("SendMessage") == 2  # the two above
    assert world.clock.slept == [2.0, 2.0]


@pytest.mark.parametrize("wish", [{}, {"limit": 1}, {"reason": "key_reused"}, {"dry_run": True}])
def test_it_goes_message_by_message_where_not_all_are_wanted(
    world: World, deployment: Deployment, wish: dict[str, Any]
) -> None:
    parked(world, "payments", "ord_1")
    parked(world, "payments", "ord_2", "key_reused")
    tasks = MoveTasks(world)

    done = redriven(deployment, **wish)

    assert (tasks.started, done.by_task, done.moved.total()) == ([], False, 1)


def test_where_not_all_were_looked_at_it_goes_message_by_message(world: World, deployment: Deployment) -> None:
    for n in range(12):
        parked(world, "payments", f"ord_{n}")
    tasks = MoveTasks(world)

    done = redrive(deployment, Selection("payments"), limit=10)

    assert (tasks.started, done.moved.total()) == ([], 12)


def test_where_another_look_hides_a_message_it_goes_message_by_message(world: World, deployment: Deployment) -> None:
    parked(world, "payments", "ord_1", "key_reused")
    world.sqs.receive_message(QueueUrl=world.queues["payments-dlq"])  # somebody looks at it
    parked(world, "payments", "ord_2")
    tasks = MoveTasks(world)

    done = redriven(deployment)

    assert (tasks.started, done.moved) == ([], {"none": 1})


def test_permanent_ones_are_moved_by_a_task_only_when_asked(world: World, deployment: Deployment) -> None:
    parked(world, "payments", "ord_1", "key_reused")
    tasks = MoveTasks(world, COMPLETED)

    assert redriven(deployment, everything=True).by_task
    assert len(tasks.started) == 1


def test_a_task_that_an_interrupted_redrive_left_running_is_followed(world: World, deployment: Deployment) -> None:
    parked(world, "payments", "ord_1")
    tasks = MoveTasks(world, running=RUNNING)
    world.wire.plan(
        "ListMessageMoveTasks",
        meanwhile(lambda: None, lambda request, _: answer(request, {"Results": [RUNNING]})),
        lambda request, _: answer(request, {"Results": [COMPLETED]}),
    )

    done = redriven(deployment)

    assert (tasks.started, done.moved) == ([], {"all": 2})


def test_a_task_that_fails_is_told_with_its_reason(world: World, deployment: Deployment) -> None:
    parked(world, "payments", "ord_1")
    MoveTasks(world, {**COMPLETED, "Status": "FAILED", "FailureReason": "AccessDenied"})

    done = redriven(deployment)

    assert (done.failed, done.succeeded) == ({"AccessDenied": 1}, False)


def test_a_refused_task_moves_nothing(world: World, deployment: Deployment) -> None:
    parked(world, "payments", "ord_1")
    MoveTasks(world)
    world.wire.always("StartMessageMoveTask", refused("AccessDeniedException", 403))

    with pytest.raises(Exception, match="AccessDenied"):
        redriven(deployment)

    assert orders_in(world, "payments-dlq") == ["ord_1"]
