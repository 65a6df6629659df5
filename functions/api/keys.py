"""The Idempotency-Key header, and the order id that follows from it.

https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header (07)
"""

import base64
import hashlib
import re

from functions.api.problems import KEY_HELP, Problem
from shared.orders.row import API_ID_PREFIX

MAX_LENGTH = 255

# A Structured Field String, the draft's form: https://www.rfc-editor.org/rfc/rfc9651#section-3.3.3
_QUOTED = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"')
# What most clients send. Not with a comma: that is how API Gateway joins two headers of one name.
_BARE = re.compile(r'[^",]*')
_KEY = re.compile(rf"[!-~]{{1,{MAX_LENGTH}}}")

_HOW = (
    f"Send one Idempotency-Key of 1 to {MAX_LENGTH} visible ASCII characters, best a UUID, in double quotes: "
    'Idempotency-Key: "8e03978e-40d5-43e8-bc93-6894a57f9324". The quotes may be left out where it has no quote and '
    "no comma in it. Every repetition of a request carries the key of the first."
)


def key_of(header: str | None) -> str:
    """The key without its quotes; quoted or bare, it is the same key. Raises Problem."""
    if header is None:
        raise Problem(400, "key-missing", "Idempotency-Key is missing", _HOW, headers=KEY_HELP)
    text = header.strip(" \t")
    if quoted := _QUOTED.fullmatch(text):
        key = re.sub(r"\\(.)", r"\1", quoted[1])
    else:
        key = text if _BARE.fullmatch(text) else ""
    if not _KEY.fullmatch(key):
        raise Problem(400, "key-malformed", "Idempotency-Key is malformed", _HOW, headers=KEY_HELP)
    return key


def order_id_of(*scope: str) -> str:
    """The id of the order that is asked for by this caller, method, route and key: 128 bits and more of SHA-256."""
    # With its length before each part no two scopes are written alike.
    named = "".join(f"{len(part)}:{part}" for part in scope)
    digest = hashlib.sha256(named.encode()).digest()
    return API_ID_PREFIX + base64.b32encode(digest).decode().lower()[:26]
