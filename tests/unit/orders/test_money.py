"""Money: integer minor units with an ISO 4217 code."""

import pytest

from shared.orders.money import DECIMALS, format_amount


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        (2500, "EUR", "25.00 EUR"),
        (5, "EUR", "0.05 EUR"),
        (0, "EUR", "0.00 EUR"),
        (2500, "JPY", "2500 JPY"),
        (2500, "KWD", "2.500 KWD"),
        (7, "KWD", "0.007 KWD"),
        (99_999_999, "USD", "999999.99 USD"),
    ],
)
def test_an_amount_is_written_with_its_currencys_own_decimals(amount: int, currency: str, text: str) -> None:
    assert format_amount(amount, currency) == text


def test_every_currency_is_three_capitals_and_stands_once() -> None:
    assert all(len(code) == 3 and code.isascii() and code.isupper() for code in DECIMALS)
    assert set(DECIMALS.values()) == {0, 2, 3}
    assert len(DECIMALS) > 150
    assert {"EUR": 2, "JPY": 0, "TND": 3}.items() <= DECIMALS.items()
    assert not {"XXX", "XTS", "XAU"} & DECIMALS.keys()
