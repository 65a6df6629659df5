"""What a request can come to instead of an answer: RFC 9457 problem details.

https://www.rfc-editor.org/rfc/rfc9457
"""

from collections.abc import Mapping, Sequence

import msgspec

from functions.api.http import Response

# Names, not addresses: nothing is served under them. Whoever copies this puts the address of their own docs here.
TYPES = "urn:effectively-once:problem:"

# The draft wants answers about the key to point to what a key is for (section 2.7).
KEY_HELP = {
    "Link": "<https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header>; "
    'rel="describedby"; type="text/html"'
}

# Where the core gave up it has waited and tried again itself; clients add their own jitter.
RETRY_AFTER_S = 1
LATER = {"Retry-After": str(RETRY_AFTER_S)}


class Wrong(msgspec.Struct, frozen=True):
    """One broken rule: which field, as `items[0].sku`, and what the rule is. Never the value."""

    field: str
    rule: str


class Problem(Exception):
    """An answer other than success. `name` is its type's last part, and the outcome in the log."""

    def __init__(
        self,
        status: int,
        name: str,
        title: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        errors: Sequence[Wrong] = (),
    ) -> None:
        super().__init__(f"{status} {name}")
        self.status = status
        self.name = name
        self._headers = headers
        self._body = {
            "type": TYPES + name,
            "title": title,
            "status": status,
            "detail": detail,
            **({"errors": errors} if errors else {}),
        }

    @property
    def response(self) -> Response:
        """The problem as it is sent."""
        body = msgspec.json.encode(self._body).decode()
        return Response(self.status, "application/problem+json", body, self._headers or {})


def no_such_order() -> Problem:
    """The same for an order that is not there and for one of somebody else: an id gives nothing away."""
    return Problem(404, "no-such-order", "No such order", "There is no order of yours under this id.")
