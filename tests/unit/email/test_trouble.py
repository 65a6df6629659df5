"""Email: throttled, refused, suppressed and unknown are told apart."""

import json

import pytest

from functions.email.handler import handler
from functions.email.ses import tag_value
from shared.idempotency import Event
from tests.harness import samples
from tests.harness.interceptor import Fault, Killed, answer_lost, killed_after, killed_before, never_sent, refused
from tests.harness.moto_world import World
from tests.harness.observations import Log, Mailbox, Metrics

KEY = "email.send#ord_1"

# Known not to have been sent, and mended by waiting or by people.
NOT_SENT = {
    "too many requests": refused("TooManyRequestsException", 429),
    "quota used up": refused("LimitExceededException"),
    "throttled by the gateway": refused("ThrottlingException", 503),
    "sending paused": refused("SendingPausedException"),
    "account suspended": refused("AccountSuspendedException"),
    "not allowed": refused("AccessDeniedException", 403),
    "no such configuration": refused("NotFoundException", 404),
    "never sent": never_sent,
}
REFUSED = {
    "content": (refused("MessageRejected"), "mail_rejected"),
    "recipient in SES's sandbox": (
        refused("MessageRejected", message=f"Email address is not verified. {samples.ADDRESS}"),
        "address_not_verified",
    ),
    "sender's domain": (refused("MailFromDomainNotVerifiedException"), "address_not_verified"),
    "address": (refused("BadRequestException", message=f"Illegal address {samples.ADDRESS}"), "mail_invalid"),
}
UNKNOWN = {
    "answer lost": answer_lost,
    "internal error": refused("InternalServiceErrorException", 500),
    "unavailable": refused("ServiceUnavailableException", 503),
}


def deliver(world: World, event: Event, *, receive_count: int = 1) -> bool:
    message = samples.sqs_event(samples.body_of(event), receive_count=receive_count)
    return handler(message, world.context()) == {"batchItemFailures": []}


def flags(world: World) -> tuple[str, bool, bool]:
    """Of the record: status, uncertain, unsettled."""
    record = world.record(KEY)
    assert record is not None
    return record["status"]["S"], record["uncertain"]["BOOL"], record["unsettled"]["BOOL"]


@pytest.mark.parametrize("fault", NOT_SENT.values(), ids=NOT_SENT)
def test_a_mail_that_is_known_not_to_be_sent_is_retried_and_never_uncertain(
    world: World, mailbox: Mailbox, metrics: Metrics, fault: Fault
) -> None:
    event = samples.pay(world, samples.requested())
    world.wire.plan("SendEmail", fault)

    assert not deliver(world, event)
    assert flags(world) == ("INPROGRESS", False, False)
    assert deliver(world, event, receive_count=2)

    assert len(mailbox.mails) == 1
    assert flags(world) == ("COMPLETED", False, False)
    assert metrics.of("email.send") == {"Retried": 1, "FirstRun": 1}
    assert world.messages("dlq") == []


@pytest.mark.parametrize(
    ("operation", "code"), [("PutObject", "AccessDenied"), ("GetItem", "ResourceNotFoundException")]
)
def test_trouble_before_the_mail_is_never_uncertain(world: World, mailbox: Mailbox, operation: str, code: str) -> None:
    event = samples.pay(world, samples.requested())
    world.wire.always(operation, refused(code, 403))
    for receive_count in (1, 2, 3):
        assert not deliver(world, event, receive_count=receive_count)
    world.wire.always(operation, None)
    assert flags(world) == ("INPROGRESS", False, False)

    assert deliver(world, event, receive_count=4)

    assert len(mailbox.mails) == 1
    assert world.messages("dlq") == []


@pytest.mark.parametrize(("fault", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_mail_refused_for_good_is_parked_with_its_reason_and_finishes_on_redrive(
    world: World, mailbox: Mailbox, log: Log, fault: Fault, reason: str
) -> None:
    event = samples.pay(world, samples.requested())
    world.wire.plan("SendEmail", fault)

    assert deliver(world, event)

    (parked,) = world.messages("dlq")
    assert parked["MessageAttributes"]["reason"]["StringValue"] == reason
    row = world.row("ord_1")
    assert row is not None
    assert row["state"] == {"S": "paid"}  # payment knows nothing of it
    assert "mailed_at" not in row
    assert samples.ADDRESS not in log.text
    assert deliver(world, event)
    assert len(mailbox.mails) == 1


def test_a_mail_to_a_suppressed_address_finishes_the_order(world: World, mailbox: Mailbox) -> None:
    event = samples.pay(world, samples.requested())
    world.wire.plan("SendEmail", refused("MessageRejected", message="Address is on the suppression list."))

    assert deliver(world, event)
    assert deliver(world, event)

    assert mailbox.mails == []
    row = world.row("ord_1")
    assert row is not None
    assert (row["mail"], row["mail_id"]) == ({"S": "receipt"}, {"S": "suppressed"})
    assert "open_since" not in row
    assert world.wire.count("SendEmail") == 1
    assert world.messages("dlq") == []


@pytest.mark.usefixtures("mailbox")
@pytest.mark.parametrize("fault", UNKNOWN.values(), ids=UNKNOWN)
def test_after_an_unknown_outcome_one_more_mail_is_sent_and_counted(
    world: World, metrics: Metrics, log: Log, fault: Fault
) -> None:
    event = samples.pay(world, samples.requested())
    world.wire.plan("SendEmail", fault)
    assert not deliver(world, event)
    assert flags(world) == ("INPROGRESS", False, True)
    assert not deliver(world, event, receive_count=2)  # its lease still runs
    assert world.wire.count("SendEmail") == 1

    world.clock.advance(33)
    assert deliver(world, event, receive_count=3)
    assert deliver(world, event, receive_count=4)

    assert world.wire.count("SendEmail") == 2
    assert flags(world) == ("COMPLETED", True, False)
    assert metrics.of("email.send") == {"Retried": 1, "Busy": 1, "FirstRun": 1, "Takeover": 1, "DuplicateReplayed": 1}
    assert len(log.saying("an earlier attempt may have sent this email: it is sent once more")) == 1


@pytest.mark.parametrize(
    ("operation", "death", "mails"),
    [
        ("PutObject", killed_before, 1),
        ("SendEmail", killed_before, 1),
        ("SendEmail", killed_after, 2),
        ("TransactWriteItems", killed_before, 2),
        ("TransactWriteItems", killed_after, 1),
    ],
    ids=["before the receipt", "before the mail", "after the mail", "before the commit", "after the commit"],
)
def test_a_worker_that_dies_costs_one_mail_at_most(
    world: World, mailbox: Mailbox, operation: str, death: Fault, mails: int
) -> None:
    event = samples.pay(world, samples.requested())
    world.wire.plan(operation, death)
    with pytest.raises(Killed):
        deliver(world, event)

    world.clock.advance(33)
    assert deliver(world, event, receive_count=2)
    assert deliver(world, event, receive_count=3)

    assert len(mailbox.mails) == mails
    # An earlier try's claim ended without commit or release, unless it was the commit's answer that got lost.
    assert flags(world) == ("COMPLETED", death is not killed_after or operation == "SendEmail", False)


def test_uncertainty_outlives_a_throttled_try(world: World, mailbox: Mailbox) -> None:
    event = samples.pay(world, samples.requested())
    world.wire.plan("SendEmail", answer_lost, refused("TooManyRequestsException", 429))
    assert not deliver(world, event)
    world.clock.advance(33)
    assert not deliver(world, event, receive_count=2)

    assert deliver(world, event, receive_count=3)

    assert len(mailbox.mails) == 2
    assert flags(world) == ("COMPLETED", True, False)


def test_a_lost_answer_to_the_commit_is_no_second_mail(world: World, mailbox: Mailbox) -> None:
    event = samples.pay(world, samples.requested())
    world.wire.plan("TransactWriteItems", answer_lost)

    assert deliver(world, event)

    assert len(mailbox.mails) == 1
    assert flags(world) == ("COMPLETED", False, False)


def test_trouble_with_one_mail_leaves_its_neighbours_alone(world: World, mailbox: Mailbox) -> None:
    orders = [samples.requested(f"ord_{n}") for n in range(5)]
    bodies = [samples.body_of(samples.pay(world, order)) for order in orders]
    world.wire.plan("SendEmail", refused("TooManyRequestsException", 429), refused("MessageRejected"))

    answer = handler(samples.sqs_event(*bodies), world.context())

    assert len(answer["batchItemFailures"]) == 1
    assert len(world.messages("dlq")) == 1
    assert len(mailbox.mails) == 3


def test_the_tag_says_which_effect_in_the_characters_that_ses_takes() -> None:
    keys = ["email.send#ord_1", "email.send#ord-1", "email.send#ORD_1"]

    values = [tag_value(key) for key in keys]

    assert values == ["email_send_ord_1", "email_send_ord-1", "email_send_ORD_1"]
    assert len(tag_value("email.send#" + 64 * "x")) <= 256


@pytest.mark.usefixtures("mailbox")
def test_a_result_names_nobody(world: World) -> None:
    deliver(world, samples.pay(world, samples.requested()))

    record = world.record(KEY)
    assert record is not None
    assert set(json.loads(record["data"]["S"])) == {"order_id", "mail", "mail_id"}


def test_a_commit_that_is_not_allowed_is_no_reason_to_mail_again(world: World, mailbox: Mailbox) -> None:
    event = samples.pay(world, samples.requested())
    world.wire.always("TransactWriteItems", refused("AccessDeniedException"))
    for receive_count in (1, 2, 3):
        assert not deliver(world, event, receive_count=receive_count)
        world.clock.advance(33)
    world.wire.always("TransactWriteItems", None)

    assert deliver(world, event, receive_count=4)

    assert len(mailbox.mails) == 1
    row = world.row("ord_1")
    record = world.record(KEY)
    assert row is not None
    assert record is not None
    assert json.loads(record["data"]["S"])["mail_id"] == row["mail_id"]["S"]
