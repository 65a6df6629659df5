"""Lists: newest first, by pages."""

from collections import Counter
from itertools import product
from typing import Any

import pytest
import stripe

from functions.payment_sandbox import store
from tests.unit.payment_sandbox.conftest import TABLE, Clock, Shop, one_client, seen


def test_intents_are_listed_newest_first_ten_a_page_unless_said_otherwise(shop: Shop) -> None:
    ids = [shop.intent(order_id=f"ord_{n}").id for n in range(12)]
    page = shop.intents.list()
    assert (seen(page).object, page.url, page.has_more) == ("list", "/v1/payment_intents", True)
    assert [intent.id for intent in page.data] == ids[:1:-1]
    rest = shop.intents.list(params={"starting_after": page.data[-1].id})
    assert ([intent.id for intent in rest.data], rest.has_more) == ([ids[1], ids[0]], False)
    assert page.data[0].metadata["order_id"] == "ord_11"


def test_a_page_that_ends_with_the_last_entry_has_no_more(shop: Shop) -> None:
    for _ in range(2):
        shop.intent()
    assert shop.intents.list(params={"limit": 2}).has_more is False
    assert shop.intents.list(params={"limit": 1}).has_more is True


def test_the_sdks_own_paging_sees_every_charge_once(shop: Shop, api: stripe.StripeClient) -> None:
    intents = [shop.confirm(shop.intent(order_id=f"ord_{n}")).id for n in range(7)]
    charges = list(api.v1.charges.list(params={"limit": 3}).auto_paging_iter())
    assert [charge.payment_intent for charge in charges] == intents[::-1]


def test_pages_go_on_over_the_periods_that_the_ledger_is_divided_into(
    shop: Shop, api: stripe.StripeClient, clock: Clock
) -> None:
    ids = []
    for n in range(9):
        ids.append(shop.confirm(shop.intent(order_id=f"ord_{n}")).id)
        clock.now_s += 0 if n % 3 else 20  # a period is 17 s
    charges = api.v1.charges.list(params={"limit": 2}).auto_paging_iter()
    assert [charge.payment_intent for charge in charges] == ids[::-1]
    intents = shop.intents.list(params={"limit": 4}).auto_paging_iter()
    assert [intent.id for intent in intents] == ids[::-1]
    ledger = one_client("dynamodb").scan(TableName=TABLE)["Items"]
    sizes = Counter(item["pk"]["S"] for item in ledger if item["pk"]["S"].startswith("charge#"))
    assert max(sizes.values()) == 3, "so that a page costs the same however long the ledger is"


def test_periods_in_which_nothing_of_a_kind_was_made_cost_its_list_nothing(
    shop: Shop, api: stripe.StripeClient, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.confirm(shop.intent())
    for _ in range(20):
        clock.now_s += 20
        shop.intent()
    asked: list[str] = []
    query = seen(store)._query_descending

    def counted(pk: str, *condition: str | None) -> Any:
        asked.append(pk)
        return query(pk, *condition)

    monkeypatch.setattr(store, "_query_descending", counted)
    assert len(api.v1.charges.list(params={"limit": 10}).data) == 1
    assert len(asked) == 2, "the periods of charges, and the one that there is"


def test_a_page_larger_than_one_answer_of_the_table_is_whole(shop: Shop) -> None:
    """DynamoDB ends an answer at 1 MB; 100 intents with all the metadata they may have are more."""
    bulky = {f"note_{n}": "x" * 500 for n in range(40)}
    for _ in range(55):
        shop.intents.create(params={"amount": 1, "currency": "eur", "metadata": bulky})
    page = shop.intents.list(params={"limit": 100})
    assert (len(page.data), page.has_more) == (55, False)


def test_the_charges_of_one_intent_are_its_own(shop: Shop, api: stripe.StripeClient) -> None:
    declined, paid = shop.intent("pm_card_chargeDeclined", "ord_1"), shop.intent(order_id="ord_2")
    for _ in range(2):
        with pytest.raises(stripe.CardError):
            shop.intents.confirm(declined.id, params={"payment_method": "pm_card_chargeDeclined"})
    shop.confirm(paid)
    charges = api.v1.charges.list(params={"payment_intent": declined.id, "limit": 1})
    assert (charges.has_more, charges.data[0].payment_intent) == (True, declined.id)
    rest = api.v1.charges.list(params={"payment_intent": declined.id, "starting_after": charges.data[0].id})
    assert [(charge.payment_intent, charge.status) for charge in rest.data] == [(declined.id, "failed")]
    (only,) = api.v1.charges.list(params={"payment_intent": paid.id}).data
    assert only.status == "succeeded"


def test_what_a_list_can_not_start_from_or_filter_by_is_refused(shop: Shop, api: stripe.StripeClient) -> None:
    for param, id_ in product(("starting_after", "payment_intent"), ("none", "", "x" * 1025)):
        with pytest.raises(stripe.InvalidRequestError) as refused:
            api.v1.charges.list(params=seen({param: id_}))
        assert (refused.value.code, refused.value.param) == ("resource_missing", param)
    for limit in (0, 101, -1):
        with pytest.raises(stripe.InvalidRequestError) as refused:
            shop.intents.list(params={"limit": limit})
        assert (refused.value.code, refused.value.param) == ("parameter_invalid_integer", "limit")
