"""Lists: the newest object first, in pages. https://docs.stripe.com/api/pagination"""

from itertools import product

import pytest
import stripe

from tests.unit.payment_sandbox.conftest import Clock, Sandbox, untyped


def test_a_list_has_the_newest_first_and_ten_a_page(sandbox: Sandbox) -> None:
    ids = [sandbox.create_intent(order_id=f"ord_{n}").id for n in range(12)]
    page = sandbox.intents.list()
    assert (untyped(page).object, page.url, page.has_more) == ("list", "/v1/payment_intents", True)
    assert [intent.id for intent in page.data] == ids[:1:-1]
    rest = sandbox.intents.list(params={"starting_after": page.data[-1].id})
    assert ([intent.id for intent in rest.data], rest.has_more) == ([ids[1], ids[0]], False)
    assert page.data[0].metadata["order_id"] == "ord_11"


def test_a_page_that_ends_with_the_last_entry_has_no_more(sandbox: Sandbox) -> None:
    for _ in range(2):
        sandbox.create_intent()
    assert sandbox.intents.list(params={"limit": 2}).has_more is False
    assert sandbox.intents.list(params={"limit": 1}).has_more is True


def test_pages_continue_across_the_periods_of_the_ledger(
    sandbox: Sandbox, api: stripe.StripeClient, clock: Clock
) -> None:
    ids = []
    for n in range(6):
        ids.append(sandbox.confirm(sandbox.create_intent(order_id=f"ord_{n}")).id)
        clock.now_s += 0 if n % 3 else 20  # a period has 17 s
    charges = api.v1.charges.list(params={"limit": 2}).auto_paging_iter()
    assert [charge.payment_intent for charge in charges] == ids[::-1]
    intents = sandbox.intents.list(params={"limit": 4}).auto_paging_iter()
    assert [intent.id for intent in intents] == ids[::-1]


def test_a_list_of_one_intents_charges_has_no_other_charges(sandbox: Sandbox, api: stripe.StripeClient) -> None:
    declined, paid = sandbox.create_intent("pm_card_chargeDeclined", "ord_1"), sandbox.create_intent(order_id="ord_2")
    for _ in range(2):
        with pytest.raises(stripe.CardError):
            sandbox.intents.confirm(declined.id, params={"payment_method": "pm_card_chargeDeclined"})
    sandbox.confirm(paid)
    charges = api.v1.charges.list(params={"payment_intent": declined.id, "limit": 1})
    assert (charges.has_more, charges.data[0].payment_intent) == (True, declined.id)
    rest = api.v1.charges.list(params={"payment_intent": declined.id, "starting_after": charges.data[0].id})
    assert [(charge.payment_intent, charge.status) for charge in rest.data] == [(declined.id, "failed")]
    (charge,) = api.v1.charges.list(params={"payment_intent": paid.id}).data
    assert charge.status == "succeeded"


def test_an_unknown_start_or_filter_and_a_wrong_limit_are_refused(sandbox: Sandbox, api: stripe.StripeClient) -> None:
    for param, id_ in product(("starting_after", "payment_intent"), ("none", "", "x" * 1025)):
        with pytest.raises(stripe.InvalidRequestError) as refused:
            api.v1.charges.list(params=untyped({param: id_}))
        assert (refused.value.code, refused.value.param) == ("resource_missing", param)
    for limit in (0, 101):
        with pytest.raises(stripe.InvalidRequestError) as refused:
            sandbox.intents.list(params={"limit": limit})
        assert (refused.value.code, refused.value.param) == ("parameter_invalid_integer", "limit")
