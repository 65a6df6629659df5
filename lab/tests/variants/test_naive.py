"""What each naive habit costs."""

from tests.harness.interceptor import answer_lost, killed_after, killed_before, meanwhile, refused
from tests.harness.provider_connection import refuses, through

from lab.tests.variants.steps import PAID, Shop


def test_an_order_in_two_messages_is_charged_twice_and_mailed_twice(naive: Shop) -> None:
    for _ in range(2):
        assert naive.deliver(naive.order())
        naive.finish()
    assert naive.charges == [PAID, PAID]
    assert naive.mails == 2


def test_an_order_whose_worker_dies_after_the_send_and_before_the_record_is_charged_twice(naive: Shop) -> None:
    order = naive.order()
    naive.world.wire.plan("SendMessage", killed_after)
    naive.deliver_and_die(order)
    assert naive.deliver(order)
    naive.finish()
    assert naive.charges == [PAID, PAID]


def test_an_order_that_two_workers_look_up_at_once_is_charged_twice(naive: Shop) -> None:
    order = naive.order()
    naive.world.wire.plan("PutItem", meanwhile(lambda: naive.deliver(order)))
    assert naive.deliver(order)
    naive.finish()
    assert naive.charges == [PAID, PAID]


def test_a_send_whose_answer_is_lost_is_sent_again_by_the_sdk_and_charged_twice(naive: Shop) -> None:
    naive.world.wire.plan("SendMessage", answer_lost)
    assert naive.deliver(naive.order())
    naive.finish()
    assert naive.charges == [PAID, PAID]


def test_an_order_that_is_stored_again_is_no_longer_known_as_paid(naive: Shop) -> None:
    assert naive.deliver(naive.order())
    naive.finish()
    assert naive.deliver(naive.order())
    assert naive.charges == [PAID]
    assert naive.state == "placed"


def test_a_payment_whose_worker_dies_before_the_charge_is_skipped_ever_after_and_the_order_is_lost(naive: Shop) -> None:
    message = naive.to_payment()
    naive.world.wire.plan("PutItem", killed_after)
    naive.deliver_and_die(message)
    assert naive.deliver(message)  # SQS deletes it
    assert naive.charges == []
    assert naive.state == "placed"
    assert naive.sent("emails") == []


def test_a_payment_whose_worker_dies_after_the_charge_is_never_recorded(naive: Shop) -> None:
    message = naive.to_payment()
    naive.world.wire.plan("UpdateItem", killed_before)
    naive.deliver_and_die(message)
    assert naive.deliver(message)
    assert naive.charges == [PAID]
    assert naive.state == "placed"


def test_a_copy_that_fails_deletes_the_record_of_the_one_that_worked_and_the_customer_is_told_twice(
    naive: Shop,
) -> None:
    message = naive.to_payment()
    # The copy has looked and not yet written when the other one does all of it; then the provider is busy.
    naive.world.wire.plan("PutItem", meanwhile(lambda: naive.deliver(message)))
    naive.connection.plan("confirm", through, refuses(429))
    assert not naive.deliver(message)
    assert not naive.remembers(message)
    assert naive.deliver(message)
    naive.finish()
    assert naive.charges == [PAID]  # by the grace of the provider's memory
    assert naive.mails == 2


def test_an_error_after_the_charge_forgets_it_and_a_day_later_so_has_the_provider(naive: Shop) -> None:
    message = naive.to_payment()
    naive.world.wire.plan("SendMessage", refused("AccessDenied", 403))
    assert not naive.deliver(message)
    naive.forget()
    assert naive.deliver(message)
    assert naive.charges == [PAID, PAID]


def test_a_mail_whose_worker_dies_before_the_record_is_sent_again(naive: Shop) -> None:
    message = naive.to_email()
    naive.world.wire.plan("SendEmail", killed_after)
    naive.deliver_and_die(message)
    assert naive.deliver(message)
    assert naive.mails == 2
