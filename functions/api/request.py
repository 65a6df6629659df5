"""HTTP requests of the orders API: what the client sent, checked, and the answers to it.

Powertools' resolver does this for every kind of API. Its import costs half as much of a cold start as boto3's, and this
API has two routes.
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
"""

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec

from shared.idempotency import BODY_LIMIT_BYTES, decode_as
from shared.orders import API_ID_PREFIX, Customer, Item, NewOrder, smallest_charge

# Names, not addresses: nothing is served under them. Replace the prefix with the address of your own documentation.
PROBLEM_TYPES = "urn:effectively-once:problem:"

# The draft asks for a link to the documentation of the key (section 2.7).
KEY_HELP = {
    "Link": "<https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header>; "
    'rel="describedby"; type="text/html"'
}
# The engine has already waited and sent its requests again. Clients add their own jitter.
RETRY_AFTER = {"Retry-After": "1"}


class Request(msgspec.Struct, frozen=True):
    """The part of Lambda's event (payload format 2.0) that the API uses.

    Header names are lower case. `iam` is what API Gateway's IAM authoriser found about the caller. `route` is the route
    that API Gateway matched, such as `GET /orders/{id}`. `path` also has the mapping key of a custom domain.
    """

    id: str
    method: str
    route: str
    parameters: Mapping[str, str]
    path: str
    headers: Mapping[str, str]
    body: str
    is_base64: bool
    iam: Mapping[str, Any]


def parse_request(event: Mapping[str, Any]) -> Request:
    """Parse Lambda's event. Raises KeyError for an event that no HTTP API sends."""
    context = event["requestContext"]
    return Request(
        id=context["requestId"],
        method=context["http"]["method"],
        route=event["routeKey"],
        parameters=event.get("pathParameters") or {},
        path=event["rawPath"],
        headers={name.lower(): value for name, value in event.get("headers", {}).items()},
        body=event.get("body") or "",
        is_base64=event.get("isBase64Encoded", False),
        iam=(context.get("authorizer") or {}).get("iam") or {},
    )


class Response(msgspec.Struct, frozen=True):
    """An answer with a body."""

    status: int
    content_type: str
    body: str
    headers: Mapping[str, str] = {}

    def to_lambda(self, **more: str) -> dict[str, Any]:
        """Return the form that Lambda hands to the API, with `more` headers."""
        headers = {"Content-Type": self.content_type, **self.headers, **more}
        return {"statusCode": self.status, "headers": headers, "body": self.body, "isBase64Encoded": False}


class FieldError(msgspec.Struct, frozen=True):
    """One broken rule: the field, such as `items[0].sku`, and the rule. Never the value."""

    field: str
    rule: str


class Problem(Exception):
    """An answer other than success, as RFC 9457 problem details. https://www.rfc-editor.org/rfc/rfc9457

    `name` is the last part of the problem's type, and the outcome in the log.
    """

    def __init__(
        self,
        status: int,
        name: str,
        title: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        errors: Sequence[FieldError] = (),
    ) -> None:
        super().__init__(f"{status} {name}")
        self.status = status
        self.name = name
        self._headers = headers
        self._body = {
            "type": PROBLEM_TYPES + name,
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


# Caller. https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-prefixes
ROLE = "AROA"


def caller_of(request: Request) -> str:
    """Return the account and the role or user that signed the request. All sessions of a role are one caller.

    Raises Problem if there is no caller, as on a route without the authoriser.
    """
    account, user = request.iam.get("accountId"), request.iam.get("userId") or ""
    principal, _, _ = user.partition(":")
    if not (account and principal):
        raise Problem(403, "no-caller", "Forbidden", "The request was not signed with AWS credentials.")
    # The session follows a role's id. The id of a federated user is `account:name`, where the name belongs to it.
    # https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html#principaltable
    caller = f"{account}/{principal if principal.startswith(ROLE) else user}"
    # All users of a Cognito identity pool share one role.
    identity = (request.iam.get("cognitoIdentity") or {}).get("identityId")
    return f"{caller}/{identity}" if identity else caller


# Idempotency-Key. https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header (07)
MAX_KEY_LENGTH = 255
# A Structured Field String, the form of the draft: https://www.rfc-editor.org/rfc/rfc9651#section-3.3.3
_QUOTED = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"')
# The form that most clients send. Without a comma, because API Gateway joins two headers of one name with a comma.
_BARE = re.compile(r'[^",]*')
_KEY = re.compile(rf"[!-~]{{1,{MAX_KEY_LENGTH}}}")
_KEY_RULE = (
    f"Send one Idempotency-Key of 1 to {MAX_KEY_LENGTH} visible ASCII characters, best a UUID, in double quotes: "
    'Idempotency-Key: "8e03978e-40d5-43e8-bc93-6894a57f9324". The quotes may be left out if the key has no quote and '
    "no comma in it. Every repetition of a request carries the key of the first request."
)


def idempotency_key_of(header: str | None) -> str:
    """Return the key without its quotes: a quoted and a bare key are the same key. Raises Problem."""
    if header is None:
        raise Problem(400, "key-missing", "Idempotency-Key is missing", _KEY_RULE, headers=KEY_HELP)
    text = header.strip(" \t")
    if quoted := _QUOTED.fullmatch(text):
        key = re.sub(r"\\(.)", r"\1", quoted[1])
    else:
        key = text if _BARE.fullmatch(text) else ""
    if not _KEY.fullmatch(key):
        raise Problem(400, "key-malformed", "Idempotency-Key is malformed", _KEY_RULE, headers=KEY_HELP)
    return key


def order_id_of(*scope: str) -> str:
    """Derive an order id from caller, method, route and key: more than 128 bits of SHA-256."""
    # Each part is preceded by its length, so that no two scopes have the same text.
    named = "".join(f"{len(part)}:{part}" for part in scope)
    digest = hashlib.sha256(named.encode()).digest()
    return API_ID_PREFIX + base64.b32encode(digest).decode().lower()[:26]


# Body. A misspelt field may be the quantity. So the API refuses unknown fields instead of ignoring them.
class PostedCustomer(Customer, frozen=True, forbid_unknown_fields=True):
    """The customer as a client sends it."""


class PostedItem(Item, frozen=True, forbid_unknown_fields=True):
    """One line of the order as a client sends it."""


class PostedOrder(NewOrder, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """The order as a client sends it."""

    customer: PostedCustomer
    items: Annotated[tuple[PostedItem, ...], msgspec.Meta(min_length=1, max_length=100)]

    def __post_init__(self) -> None:
        """Also refuse a total that the provider would not charge. A smaller order from the queue is declined."""
        super().__post_init__()
        smallest = smallest_charge(self.currency)
        if self.total < smallest:
            raise ValueError(f"Expected a total of at least {smallest}, got {self.total} - at `$.items`")


# The meaning of each field's pattern.
PATTERNS = {
    "name": "1 to 200 characters, no control characters and no line breaks",
    "email": "one plain email address in ASCII",
    "currency": "an ISO 4217 code in capitals",
    "sku": "1 to 64 of A-Z a-z 0-9 . _ - and not one of . _ - in front",
    "payment_method": "pm_ and 1 to 64 of A-Z a-z 0-9 _",
}
SERVER_FIELDS = {"order_id": "must not be sent: the API makes it", "total": "must not be sent: the API computes it"}
SHOWN_FIELDS = 20  # of the repeated fields: the size of an answer is bounded


def posted_order(request: Request) -> PostedOrder:
    """Return the order in the request's body. Raises Problem, which names each broken rule and its field."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise Problem(415, "not-json", "Unsupported media type", "Send the order as application/json.")
    # Compared before the body is decoded: Base64 takes four characters for three bytes.
    if len(request.body) > BODY_LIMIT_BYTES * (4 / 3 if request.is_base64 else 1) + 4:
        raise _too_large()
    try:
        raw = base64.b64decode(request.body, validate=True) if request.is_base64 else request.body.encode()
        raw.decode()
    except UnicodeError as error:
        raise _invalid("The body is not UTF-8.") from error
    except ValueError as error:
        raise _invalid("The body is not Base64.") from error
    if len(raw) > BODY_LIMIT_BYTES:
        raise _too_large()
    return _decode(raw)


def _too_large() -> Problem:
    return Problem(413, "too-large", "Content too large", f"An order has at most {BODY_LIMIT_BYTES} bytes of JSON.")


def _decode(raw: bytes) -> PostedOrder:
    repeated: Counter[str] = Counter()

    def count_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = Counter(name for name, _ in pairs)
        repeated.update(name for name, count in names.items() if count > 1)
        return dict(pairs)

    try:
        order = decode_as(raw, PostedOrder)
        json.loads(raw, object_pairs_hook=count_names)
    except msgspec.ValidationError as error:
        raise _invalid(_EACH_ERROR, [_field_error(str(error))]) from error
    except (ValueError, RecursionError) as error:  # the errors of msgspec and json are ValueErrors
        raise _invalid("The body is not JSON, or it is nested too deep.") from error
    if repeated:
        raise _invalid(_EACH_ERROR, [FieldError(_printable(name), "sent once") for name in [*repeated][:SHOWN_FIELDS]])
    return order


_EACH_ERROR = "Each of `errors` names a field and the rule that it breaks."


def _invalid(detail: str, errors: Sequence[FieldError] = ()) -> Problem:
    detail += " Nothing was stored: the same key is free for the corrected order."
    return Problem(400, "invalid-order", "Invalid order", detail, errors=errors)


def _field_error(message: str) -> FieldError:
    """Convert msgspec's ``rule - at `$.path` ``, or a rule about a field that is named in it."""
    rule, _, path = message.rpartition(" - at `$") if " - at `$" in message else (message, "", "")
    field = path.rstrip("`").lstrip(".")
    if missing := re.fullmatch(r"Object missing required field `(\w+)`", rule):
        return FieldError(f"{field}.{missing[1]}".lstrip("."), "required")
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", rule, re.DOTALL):
        name = f"{field}.{_printable(unknown[1])}".lstrip(".")
        return FieldError(name, SERVER_FIELDS.get(name, "unknown field"))
    if " matching regex " in rule:
        rule = PATTERNS.get(field.rpartition(".")[2], "another form")
    # Only the kind of the value may stay, which msgspec writes in backticks.
    return FieldError(_printable(field) or "body", re.sub(r", got (?!`).*", "", rule))


def _printable(name: str) -> str:
    """Return a field's name as it was sent, in printable ASCII and at most 64 characters."""
    return "".join(each for each in name[:64].encode("ascii", "backslashreplace").decode() if each.isprintable())
