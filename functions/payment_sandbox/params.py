"""Checks of what the caller sent. Each raises Invalid, naming the parameter, before anything is executed."""

import re
from collections.abc import Mapping

from functions.payment_sandbox.errors import Invalid

LARGEST_AMOUNT = 99_999_999  # minor units; Stripe takes eight digits
LARGEST_PAGE = 100

Params = Mapping[str, str]


def only(params: Params, *known: str) -> None:
    """Refuse what is not known: silence about `capture_method=manual` would be a lie."""
    for name in params:
        if name.partition("[")[0] not in known:
            raise Invalid(f"Received unknown parameter: {name}", code="parameter_unknown", param=name)


def required(params: Params, name: str) -> str:
    """A parameter that must be there."""
    if not params.get(name):
        raise Invalid(f"Missing required param: {name}.", code="parameter_missing", param=name)
    return params[name]


def integer(text: str, name: str, largest: int) -> int:
    """A whole number from 1 to the largest."""
    # ASCII digits only: `int` would also take "1_000", " 7" and other alphabets' digits.
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise Invalid(f"Invalid integer: {text}", code="parameter_invalid_integer", param=name)
    if not 1 <= int(text) <= largest:
        message = f"Invalid integer: {name} must be from 1 to {largest}."
        raise Invalid(message, code="parameter_invalid_integer", param=name)
    return int(text)


def amount(params: Params) -> int:
    """Minor units of the currency."""
    return integer(required(params, "amount"), "amount", LARGEST_AMOUNT)


def currency(params: Params) -> str:
    """A three-letter code, lower-cased as at Stripe."""
    code = required(params, "currency")
    if not re.fullmatch(r"[A-Za-z]{3}", code):
        raise Invalid(f"Invalid currency: {code}", param="currency")
    return code.lower()


def metadata(params: Params) -> dict[str, str]:
    """`metadata[name]=value` as an object. Limits: https://docs.stripe.com/api/metadata"""
    found = {}
    for name, value in params.items():
        if name.partition("[")[0] != "metadata":
            continue
        key = re.fullmatch(r"metadata\[([^\[\]]{1,40})\]", name)
        if not key or len(value) > 500:
            message = "Invalid metadata: keys have 1 to 40 characters and no brackets, values up to 500."
            raise Invalid(message, param=name)
        found[key[1]] = value
    if len(found) > 50:
        raise Invalid("Invalid metadata: up to 50 keys.", param="metadata")
    return found


def one_of(params: Params, name: str, choices: tuple[str, ...]) -> str | None:
    """A choice, or None if it was not made."""
    value = params.get(name)
    if value is not None and value not in choices:
        raise Invalid(f"Invalid {name}: must be one of {', '.join(choices)}", param=name)
    return value
