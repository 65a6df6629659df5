"""No straw men: undisturbed, the other variants do an order once, and a message that comes again does nothing more."""

from lab.tests.variants.steps import PAID, Message, Shop, check_done_once


def test_an_order_is_charged_once_and_mailed_once(either: Shop) -> None:
    assert either.deliver(either.order())
    either.finish()
    check_done_once(either, "paid", [PAID])


def test_a_declined_card_is_a_result_and_emailed_once(either: Shop) -> None:
    assert either.deliver(either.order("pm_card_chargeDeclined"))
    either.finish()
    check_done_once(either, "declined", [("failed", 2500)])


def test_each_message_delivered_twice_one_after_the_other_does_nothing_more(either: Shop) -> None:
    order = either.order()
    passed: list[Message] = [order]
    for queue in ("payments", "emails", None):
        assert either.deliver(passed[0])
        assert either.deliver(passed[0])
        if queue:
            passed = either.sent(queue)
            assert len(passed) == 1
    check_done_once(either, "paid", [PAID])


def test_one_bad_message_does_not_fail_its_step_for_others(either: Shop) -> None:
    assert not either.deliver(Message("order", "message-bad", "no JSON"))
    assert either.deliver(either.order())


def test_a_worker_that_fails_before_the_charge_is_tried_again_and_charges_once(either: Shop) -> None:
    message = either.to_payment("pm_sandbox_error_before")
    while not either.deliver(message):
        assert either.charges == []
    assert either.deliver(message)
    assert either.charges == [PAID]
    assert either.state == "paid"
