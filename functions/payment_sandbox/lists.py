"""Lists, newest first: https://docs.stripe.com/api/pagination"""

from itertools import islice

from functions.payment_sandbox import params, store
from functions.payment_sandbox.errors import Missing
from functions.payment_sandbox.wire import Answer, Request


def payment_intents(request: Request) -> Answer:
    """All intents."""
    params.only(request.params, "limit", "starting_after")
    return _page(request, store.INTENTS, store.INTENTS)


def charges(request: Request) -> Answer:
    """The ledger: every charge that was executed, paid or declined; or those of one intent."""
    params.only(request.params, "limit", "starting_after", "payment_intent")
    intent_id = request.params.get("payment_intent")
    if intent_id is None:
        return _page(request, store.CHARGES, store.CHARGES)
    if not store.get(store.INTENTS, intent_id):
        raise Missing("payment_intent", intent_id, "payment_intent")
    return _page(request, store.CHARGES, store.charges_of(intent_id))


def _page(request: Request, kind: str, partition: str) -> Answer:
    limit = params.integer(request.params.get("limit", "10"), "limit", params.LARGEST_PAGE)
    after = request.params.get("starting_after")
    if after is not None and not store.get(kind, after):
        raise Missing(kind, after, "starting_after")
    found = list(islice(store.newest_first(partition, after), limit + 1))
    data, more = found[:limit], len(found) > limit
    return Answer(200, {"object": "list", "url": request.path, "has_more": more, "data": data})
