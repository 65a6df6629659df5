"""What the decorator is good at, and what is left to whoever uses it."""

from tests.harness.interceptor import answer_lost, killed_after, killed_before, refused

from lab.tests.variants.steps import PAID, Shop, check_done_once

LAPSED_S = -1.0  # a worker so late that its claim lapses as soon as it is made


def test_an_order_in_two_messages_is_charged_once_and_mailed_once(powertools: Shop) -> None:
    for _ in range(2):
        assert powertools.deliver(powertools.order())
        powertools.finish()
    check_done_once(powertools, "paid", [PAID])


def test_a_send_whose_answer_is_lost_is_sent_again_by_the_sdk_and_charged_once(powertools: Shop) -> None:
    powertools.world.wire.plan("SendMessage", answer_lost)
    assert powertools.deliver(powertools.order())
    powertools.finish()
    check_done_once(powertools, "paid", [PAID])


def test_a_payment_whose_worker_dies_after_the_charge_is_in_progress_until_its_claim_lapses(powertools: Shop) -> None:
    message = powertools.to_payment()
    powertools.world.wire.plan("UpdateItem", killed_before)
    powertools.deliver_and_die(message, seconds=3600)
    assert not powertools.deliver(message)
    assert powertools.state == "placed"


def test_a_payment_whose_worker_dies_after_the_charge_is_charged_once_and_recorded_then(powertools: Shop) -> None:
    message = powertools.to_payment()
    powertools.world.wire.plan("UpdateItem", killed_before)
    powertools.deliver_and_die(message, LAPSED_S)
    assert powertools.deliver(message)
    powertools.finish()
    check_done_once(powertools, "paid", [PAID])


def test_an_error_after_the_charge_deletes_the_claim_and_a_day_later_the_provider_has_forgotten(
    powertools: Shop,
) -> None:
    message = powertools.to_payment()
    powertools.world.wire.plan("SendMessage", refused("AccessDenied", 403))
    assert not powertools.deliver(message)
    powertools.forget()
    assert powertools.deliver(message)
    assert powertools.charges == [PAID, PAID]


def test_a_provider_that_fails_after_the_charge_replays_that_all_day_so_the_charge_is_not_recorded(
    either: Shop,
) -> None:
    message = either.to_payment("pm_sandbox_error_after")
    assert [either.deliver(message) for _ in range(5)] == [False] * 5
    assert either.charges == [PAID]
    assert either.state == "placed"


def test_a_mail_whose_worker_dies_after_the_send_is_sent_again(powertools: Shop) -> None:
    message = powertools.to_email()
    powertools.world.wire.plan("SendEmail", killed_after)
    powertools.deliver_and_die(message, LAPSED_S)
    assert powertools.deliver(message)
    assert powertools.mails == 2
