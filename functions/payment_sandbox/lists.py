"""Lists, newest first: https://docs.stripe.com/api/pagination"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from functions.payment_sandbox import params, store
from functions.payment_sandbox.errors import Missing
from functions.payment_sandbox.objects import JsonObject
from functions.payment_sandbox.wire import Answer, Request


def payment_intents(request: Request) -> Answer:
    """All intents."""
    params.only(request.params, "limit", "starting_after")
    return _page(request, store.INTENTS, partial(store.newest_first, store.INTENTS))


def charges(request: Request) -> Answer:
    """The ledger: every charge that was executed, paid or declined; or those of one intent."""
    params.only(request.params, "limit", "starting_after", "payment_intent")
    intent_id = request.params.get("payment_intent")
    if intent_id is None:
        return _page(request, store.CHARGES, partial(store.newest_first, store.CHARGES))
    if not store.find(store.INTENTS, intent_id):
        raise Missing("payment_intent", intent_id, "payment_intent")
    return _page(request, store.CHARGES, partial(store.objects, store.charges_of(intent_id)))


def _page(request: Request, kind: str, entries: Callable[[str | None], Iterator[JsonObject]]) -> Answer:
    limit = params.integer(request.params.get("limit", "10"), "limit", params.LARGEST_PAGE)
    after = request.params.get("starting_after")
    if after is not None and not store.find(kind, after):
        raise Missing(kind, after, "starting_after")
    found = list(islice(entries(after), limit + 1))
    data, more = found[:limit], len(found) > limit
    return Answer(200, {"object": "list", "url": request.path, "has_more": more, "data": data})
