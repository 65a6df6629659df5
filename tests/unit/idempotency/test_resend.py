"""What is sent again, how, until when, and what is known in the end: for each of the store's calls."""

import json

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ReadTimeoutError

from shared.idempotency import Conflict, NotWritten, RequestInDoubt, StoreError
from shared.idempotency.store import RESEND_BASE_S, RESEND_CAP_S
from tests.harness.interceptor import Apply, Fault, answer_lost, cancelled, meanwhile, never_sent, refused, through
from tests.harness.layer_world import ROWS_TABLE, World
from tests.unit.idempotency.core_helpers import CALLS, KEY, TRANSACTIONS, Call, once, put_row, record, row, write


def unanswered(request: AWSPreparedRequest, _: Apply) -> AWSResponse:
    """No answer, and this time it was not applied."""
    raise ReadTimeoutError(endpoint_url=request.url)


throttled = refused("ProvisionedThroughputExceededException")
conflict = refused("TransactionConflictException")
broken = refused("InternalServerError", status=500)
in_progress = refused("TransactionInProgressException")
denied = refused("AccessDeniedException")
TRANSIENT: dict[str, Fault] = {
    "answer lost": answer_lost,
    "never sent": never_sent,
    "throttled": throttled,
    "throttled by the account": refused("ThrottlingException"),
    "conflict": conflict,
    "server error": broken,
    "unavailable": refused("ServiceUnavailable", status=503),
    "in progress": in_progress,
}
LEFT_FOR_PEOPLE = [
    "AccessDeniedException",
    "ResourceNotFoundException",
    "ValidationException",
    "UnrecognizedClientException",
    "ExpiredTokenException",
]

FORMS = [CALLS[0], CALLS[2]]  # one write, one transaction
each_form = pytest.mark.parametrize("call", FORMS, ids=str)
COMMON = ["answer lost", "throttled", "conflict"]


@pytest.mark.parametrize(
    ("call", "fault"),
    [(call, fault) for call in CALLS for fault in (TRANSIENT if call in FORMS else COMMON)],
    ids=str,
)
def test_a_transient_error_is_met_by_the_same_request_byte_for_byte(world: World, call: Call, fault: str) -> None:
    ask = call.prepare(world)
    world.wire.sent.clear()
    world.wire.plan(call.operation, *[TRANSIENT[fault]] * 2)

    ask(20)

    bodies = world.wire.bodies(call.operation)
    assert len(bodies) == 3
    assert len(set(bodies)) == 1
    assert record(world)["owner"] == "me"


@pytest.mark.parametrize("call", TRANSACTIONS, ids=str)
@pytest.mark.parametrize("code", ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"])
@pytest.mark.parametrize("at", [0, 1])
def test_a_transaction_cancelled_in_passing_is_sent_again_with_its_token(
    world: World, call: Call, code: str, at: int
) -> None:
    ask = call.prepare(world)
    world.wire.sent.clear()
    world.wire.plan(call.operation, cancelled(*[code if n == at else "None" for n in (0, 1)]))

    ask(20)

    first, second = world.wire.bodies(call.operation)
    assert first == second
    assert json.loads(first)["ClientRequestToken"] == "me"
    assert row(world) == "mine"


@each_form
def test_a_wait_between_two_sends_is_drawn_and_grows_to_a_bound(world: World, call: Call) -> None:
    ask = call.prepare(world)
    world.wire.plan(call.operation, *[throttled] * 12)

    ask(60)

    waits = world.clock.slept
    assert len(waits) == 12
    assert all(0 <= wait <= min(RESEND_CAP_S, RESEND_BASE_S * 2**n) for n, wait in enumerate(waits))
    assert len(set(waits)) == 12
    assert max(waits[6:]) > RESEND_CAP_S / 4


@each_form
def test_nothing_is_sent_that_could_not_be_answered_by_the_deadline(world: World, call: Call) -> None:
    ask = call.prepare(world)
    begun: list[int] = []
    last_ms = world.clock.now_ms() + 20_000

    def takes_three_seconds() -> None:
        begun.append(world.clock.now_ms())
        world.clock.advance(3)

    world.wire.always(call.operation, meanwhile(takes_three_seconds, throttled))

    with pytest.raises(NotWritten):
        ask(20)

    assert len(begun) > 3
    assert begun[-1] + 3_000 <= last_ms < world.clock.now_ms() + 3_000 + RESEND_CAP_S * 1000


@each_form
def test_a_request_is_sent_once_however_late_it_is(world: World, call: Call) -> None:
    ask = call.prepare(world)
    world.wire.sent.clear()

    ask(-5)

    assert world.wire.count(call.operation) == 1


ENDS: dict[str, tuple[list[Fault], Fault, type[StoreError]]] = {
    "throttled to the end": ([], throttled, NotWritten),
    "never sent": ([], never_sent, NotWritten),
    "conflicts to the end": ([], conflict, Conflict),
    "throttled, then conflicts": ([throttled], conflict, Conflict),
    "conflict, then throttled": ([conflict], throttled, NotWritten),
    "no answer to the end": ([], unanswered, RequestInDoubt),
    "server errors": ([], broken, RequestInDoubt),
    "in progress to the end": ([], in_progress, RequestInDoubt),
    "an answer lost, then throttled": ([unanswered], throttled, RequestInDoubt),
    "an answer lost, then conflicts": ([broken], conflict, RequestInDoubt),
    "an answer lost, then no connection": ([throttled, broken, throttled], never_sent, RequestInDoubt),
    "an answer lost, then denied": ([broken], denied, RequestInDoubt),
}


@each_form
@pytest.mark.parametrize(("first", "then", "known"), ENDS.values(), ids=ENDS.keys())
def test_at_the_deadline_the_error_says_what_is_known(
    world: World, call: Call, first: list[Fault], then: Fault, known: type[StoreError]
) -> None:
    ask = call.prepare(world)
    world.wire.plan(call.operation, *first)
    world.wire.always(call.operation, then)

    with pytest.raises(StoreError) as error:
        ask(20)

    assert type(error.value) is known


@each_form
@pytest.mark.parametrize("code", LEFT_FOR_PEOPLE)
def test_what_only_people_can_mend_is_told_at_once_as_not_written(world: World, call: Call, code: str) -> None:
    ask = call.prepare(world)
    before = record(world)
    world.wire.sent.clear()
    world.wire.plan(call.operation, refused(code))

    with pytest.raises(StoreError) as error:
        ask(20)

    assert type(error.value) is NotWritten
    assert code in str(error.value)
    assert world.wire.count(call.operation) == 1
    assert record(world) == before


@pytest.mark.parametrize("call", TRANSACTIONS, ids=str)
@pytest.mark.parametrize("first", [through, broken], ids=["at once", "after a lost answer"])
def test_a_token_used_for_two_requests_is_an_error_of_its_own(world: World, call: Call, first: Fault) -> None:
    ask = call.prepare(world)
    before = record(world)
    mismatch = refused("IdempotentParameterMismatchException")
    world.wire.plan(call.operation, *[first] * (first is broken), mismatch)

    with pytest.raises(RequestInDoubt):
        ask(20)

    assert record(world) == before


def test_a_lost_answer_at_each_call_leaves_the_same_record_as_none(world: World) -> None:
    for call in CALLS:
        ends = []
        for fault in (through, answer_lost):
            world.empty("idempotency", "id")
            world.empty(ROWS_TABLE, "row_id")
            ask = call.prepare(world)
            world.wire.plan(call.operation, fault)
            answer = ask(20)
            ends.append((answer, record(world)["status"], record(world)["attempt"], record(world)["unsettled"]))
        assert ends[0] == ends[1], call
    assert record(world)["id"] == KEY


@pytest.mark.parametrize(("seconds", "sent"), [(4.999, 1), (5, 2)])
def test_a_transaction_without_the_applied_writes_is_sent_only_in_time(world: World, seconds: float, sent: int) -> None:
    put_row(world)
    world.wire.plan("TransactWriteItems", meanwhile(lambda: world.clock.advance(2)))

    if sent == 1:
        with pytest.raises(NotWritten, match="no time"):
            once(world, writes=[write()], seconds=seconds)
    else:
        assert once(world, writes=[write()], seconds=seconds) is True

    assert world.wire.count("TransactWriteItems") == sent
