"""Checks of request parameters, made before the endpoint executes. Each raises InvalidRequest with the parameter."""

import re
from collections.abc import Mapping

from functions.payment_sandbox.errors import InvalidRequest

LARGEST_AMOUNT = 99_999_999  # minor units: Stripe accepts eight digits
LARGEST_PAGE = 100

Params = Mapping[str, str]


def reject_unknown(params: Params, *known: str) -> None:
    """Refuse unknown parameters. To ignore `capture_method=manual` would be a wrong answer."""
    for name in params:
        if name.partition("[")[0] not in known:
            raise InvalidRequest(f"Received unknown parameter: {name}", code="parameter_unknown", param=name)


def require(params: Params, name: str) -> str:
    """Return a parameter that must be present and not empty."""
    if not params.get(name):
        raise InvalidRequest(f"Missing required param: {name}.", code="parameter_missing", param=name)
    return params[name]


def parse_integer(text: str, name: str, largest: int) -> int:
    """Parse a whole number from 1 to `largest`."""
    # ASCII digits only: `int` would also accept "1_000", " 7" and the digits of other alphabets.
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise InvalidRequest(f"Invalid integer: {text}", code="parameter_invalid_integer", param=name)
    if not 1 <= int(text) <= largest:
        message = f"Invalid integer: {name} must be from 1 to {largest}."
        raise InvalidRequest(message, code="parameter_invalid_integer", param=name)
    return int(text)


def parse_amount(params: Params) -> int:
    """Return the amount in minor units of the currency."""
    return parse_integer(require(params, "amount"), "amount", LARGEST_AMOUNT)


def parse_currency(params: Params) -> str:
    """Return the three-letter currency code in lower case, like Stripe."""
    code = require(params, "currency")
    if not re.fullmatch(r"[A-Za-z]{3}", code):
        raise InvalidRequest(f"Invalid currency: {code}", param="currency")
    return code.lower()


def parse_metadata(params: Params) -> dict[str, str]:
    """Collect the parameters `metadata[name]=value`. Limits: https://docs.stripe.com/api/metadata"""
    metadata = {}
    for name, value in params.items():
        if name.partition("[")[0] != "metadata":
            continue
        key = re.fullmatch(r"metadata\[([^\[\]]{1,40})\]", name)
        if not key or len(value) > 500:
            message = "Invalid metadata: keys have 1 to 40 characters and no brackets, values up to 500."
            raise InvalidRequest(message, param=name)
        metadata[key[1]] = value
    if len(metadata) > 50:
        raise InvalidRequest("Invalid metadata: up to 50 keys.", param="metadata")
    return metadata


def parse_choice(params: Params, name: str, choices: tuple[str, ...]) -> str | None:
    """Return a parameter that must be one of the choices, or None if it is absent."""
    value = params.get(name)
    if value is not None and value not in choices:
        raise InvalidRequest(f"Invalid {name}: must be one of {', '.join(choices)}", param=name)
    return value
