"""The provider's API key as Secrets Manager holds it. No error and no log line contains a part of the key."""

import json
import re
from collections.abc import Mapping
from typing import Any

_KEY = re.compile(r"[!-~]+")
# Secret and restricted keys, of live mode and of test mode: https://docs.stripe.com/keys
_MODE = re.compile(r"(?:sk|rk)_(live|test)_")


class KeyUnusable(Exception):
    """The secret holds no API key. The text says what is wrong with the secret."""


def parse_api_key(secret: Mapping[str, Any]) -> str:
    """Return the key in an answer of GetSecretValue. White space around the key is removed.

    The secret is the key itself, or JSON with one string value, as the console of Secrets Manager stores it.
    Raises KeyUnusable.
    """
    text = secret.get("SecretString")
    if not isinstance(text, str):
        raise KeyUnusable("the secret holds binary data and no text")
    key = text.strip()
    if key.startswith("{"):
        key = _only_value(key).strip()
    if not _KEY.fullmatch(key):
        raise KeyUnusable("the API key is empty, or has a character that is not printable ASCII")
    return key


def is_live_key(key: str) -> bool | None:
    """Return whether the key's prefix names live mode, or None if the prefix names no mode."""
    mode = _MODE.match(key)
    return None if mode is None else mode[1] == "live"


def _only_value(text: str) -> str:
    try:
        found = json.loads(text)
    except ValueError:
        raise KeyUnusable("the secret begins like JSON and is not JSON") from None
    values = list(found.values())
    if len(values) != 1 or not isinstance(values[0], str):
        raise KeyUnusable(f"the secret is JSON with {len(values)} values instead of one text")
    value: str = values[0]
    return value
