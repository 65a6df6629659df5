"""What a batch leaves behind for people: counts by operation, and log lines that name the case and nobody."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from shared.idempotency import (
    Attempt,
    EffectWithoutState,
    KeyReused,
    NotDone,
    Outcome,
    Permanent,
    Unknown,
    fingerprint,
    logger,
)
from shared.idempotency.outbox import unpack
from tests.harness.interceptor import answer_lost, cancelled, never_sent, refused
from tests.harness.layer_world import World
from tests.unit.idempotency.conftest import Lines, Metrics
from tests.unit.idempotency.core_helpers import (
    ParcelSent,
    ParcelWanted,
    completed,
    does,
    external,
    internal,
    put_record,
    put_row,
    record,
    write,
)
from tests.unit.idempotency.messages import deliver, sqs_record, wanted

NAME, MAIL, CARD = "Åsa Buyer", "buyer@example.com", "4242424242424242"
SEND = "parcel.send#p"
DONE = Outcome("done")


def found(world: World, **attributes: Any) -> None:
    put_record(world, SEND, **{"validation": fingerprint(wanted("p"))} | attributes)


Prepare = Callable[[World], object]
CASES: dict[str, tuple[Prepare, Outcome | Exception, dict[str, int]]] = {
    "a first run": (lambda _: None, DONE, {"FirstRun": 1}),
    "a duplicate": (lambda world: found(world, **completed()), DONE, {"DuplicateReplayed": 1}),
    "a row that was first": (put_row, Outcome("done", writes=[write()]), {"DuplicateReplayed": 1}),
    "a busy one": (found, DONE, {"Busy": 1}),
    "a takeover": (lambda world: found(world, in_progress_expiration=1), DONE, {"FirstRun": 1, "Takeover": 1}),
    "a takeover that fails too": (
        lambda world: found(world, in_progress_expiration=1),
        Unknown("?"),
        {"Retried": 1, "Takeover": 1},
    ),
    "a takeover that breaks": (
        lambda world: found(world, in_progress_expiration=1),
        ValueError("?"),
        {"Retried": 1, "Takeover": 1},
    ),
    "a takeover that is refused": (
        lambda world: found(world, in_progress_expiration=1),
        Permanent("bad_card"),
        {"Parked": 1, "Takeover": 1},
    ),
    "another request": (lambda world: found(world, validation="v1:x"), DONE, {"KeyReused": 1, "Parked": 1}),
    "another request by the row": (lambda _: None, KeyReused(), {"KeyReused": 1, "Parked": 1}),
    "a damaged record": (lambda world: found(world, validation=None), DONE, {"Parked": 1}),
    "a refused one": (lambda _: None, Permanent("bad_card"), {"Parked": 1}),
    "an effect without state": (
        lambda world: put_row(world, facts="theirs"),
        Outcome("done", writes=[write()]),
        {"EffectWithoutState": 1, "Parked": 1},
    ),
    "one not done": (lambda _: None, NotDone("no"), {"Retried": 1}),
    "one unknown": (lambda _: None, Unknown("?"), {"Retried": 1}),
    "a surprise": (lambda _: None, ValueError("?"), {"Retried": 1}),
    "a throttle": (lambda world: world.wire.plan("UpdateItem", refused("AccessDenied")), DONE, {"Retried": 1}),
    "a parking that failed": (
        lambda world: world.wire.plan("SendMessage", never_sent),
        Permanent("bad_card"),
        {"Retried": 1},
    ),
    "a reused key whose parking failed": (
        lambda world: world.wire.plan("SendMessage", never_sent),
        KeyReused("x"),
        {"Retried": 1},
    ),
}


@pytest.mark.parametrize(("prepare", "end", "counts"), CASES.values(), ids=CASES.keys())
def test_each_case_is_counted_by_its_name(
    world: World, metrics: Metrics, lines: Lines, prepare: Prepare, end: Outcome | Exception, counts: dict[str, int]
) -> None:
    prepare(world)

    deliver(world, external(does(end)), sqs_record("m1", wanted("p")))

    assert metrics() == {"parcel.send": counts}
    about = [line for line in lines() if line["message"] != "no back-off"]
    assert about
    for line in about:
        assert (line["correlation_id"], line["message_id"], line["key"]) == ("c-1", "m1", "p")
        assert (line["operation"], line["receive_count"]) == ("parcel.send", 1)


def test_a_lost_lease_is_counted(world: World, metrics: Metrics) -> None:
    def stalls(_: ParcelWanted, __: Attempt) -> Outcome:
        found(world, owner="another")
        return DONE

    assert deliver(world, external(stalls), sqs_record("m1", wanted("p"))) == ["m1"]

    assert metrics() == {"parcel.send": {"LeaseLost": 1, "Retried": 1}}


def test_a_claim_that_could_not_be_released_is_told(world: World, lines: Lines) -> None:
    def fails(_: ParcelWanted, __: Attempt) -> Outcome:
        world.wire.plan("UpdateItem", refused("AccessDenied"))
        raise NotDone("no")

    deliver(world, external(fails), sqs_record("m1", wanted("p")))

    assert "no; not released: NotWritten" in lines()[0]["detail"]


def test_what_was_not_started_is_counted(world: World, metrics: Metrics) -> None:
    deliver(world, internal(does(DONE)), *[sqs_record(f"m{n}", wanted("p")) for n in range(3)], seconds=5)

    assert metrics() == {"parcel.note": {"NotStarted": 3, "Retried": 3}}


def test_a_batch_is_counted_as_a_whole_and_nothing_is_counted_for_none(world: World, metrics: Metrics) -> None:
    records = [*[sqs_record(f"m{n}", wanted(f"p{n}")) for n in range(3)], sqs_record("m3", wanted("p0"))]

    deliver(world, external(does(DONE)), *records)
    assert metrics() == {"parcel.send": {"FirstRun": 3, "DuplicateReplayed": 1}}
    deliver(world, external(does(DONE)))
    assert metrics() == {}


def test_a_message_that_breaks_its_schema_is_logged_under_its_own_correlation_id(world: World, lines: Lines) -> None:
    deliver(world, external(does(DONE)), sqs_record("m1", ParcelSent(parcel_id="p"), correlation_id="c-7"))

    (line,) = lines()
    assert (line["message"], line["reason"], line["correlation_id"]) == ("parked", "schema_invalid", "c-7")


def test_every_thread_logs_under_its_own_correlation_id(world: World, lines: Lines) -> None:
    together = threading.Barrier(4, timeout=10)

    def talk(event: ParcelWanted, _: Attempt) -> Outcome:
        for n in range(20):
            if n in (0, 10):
                together.wait()
            logger.info("working", parcel=event.parcel_id)
        return DONE

    records = [sqs_record(f"m{n}", wanted(f"p{n}"), correlation_id=f"c-{n}") for n in range(8)]
    assert deliver(world, external(talk), *records) == []

    assert len(lines()) == 8 * 21
    for line in lines():
        n = line["message_id"][1:]
        assert (line["correlation_id"], line["key"], line.get("parcel", f"p{n}")) == (f"c-{n}", f"p{n}", f"p{n}")


def test_no_key_of_one_message_is_left_for_the_next(world: World, lines: Lines) -> None:
    def says(_: ParcelWanted, attempt: Attempt) -> Outcome:
        if attempt.correlation_id == "c-1":
            logger.thread_safe_append_keys(intent="pi_1")
        raise NotDone("so that the next one of the lane runs too")

    deliver(world, external(says), *[sqs_record(f"m{n}", wanted("p"), correlation_id=f"c-{n}") for n in (1, 2)])
    logger.info("afterwards")

    first, second, *_, last = lines()
    assert (first["correlation_id"], first["intent"]) == ("c-1", "pi_1")
    assert second["correlation_id"] == "c-2"
    assert "intent" not in second
    assert not {"correlation_id", "message_id", "key", "receive_count", "intent"} & last.keys()


@pytest.mark.parametrize(
    ("of_the_message", "of_the_invocation", "sent"),
    [("Root=1-m", "Root=1-i", "Root=1-m"), (None, "Root=1-i", "Root=1-i"), (None, None, None)],
)
def test_the_trace_of_a_message_goes_on_with_its_events_or_else_that_of_the_invocation(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    of_the_message: str | None,
    of_the_invocation: str | None,
    sent: str | None,
) -> None:
    message = sqs_record("m1", wanted("p"))
    if of_the_message:
        message["attributes"]["AWSTraceHeader"] = of_the_message
    if of_the_invocation:
        monkeypatch.setenv("_X_AMZN_TRACE_ID", of_the_invocation)

    deliver(world, external(does(Outcome("done", publish=[ParcelSent(parcel_id="p")]))), message)

    (entry,) = unpack(record(world, SEND)["outbox"])
    assert entry.trace == sent


def test_a_failed_back_off_is_told(world: World, lines: Lines) -> None:
    deliver(world, external(does(NotDone("no"))), sqs_record("m1", wanted("p")))  # moto does not know the handle
    world.wire.plan("ChangeMessageVisibilityBatch", never_sent)
    deliver(world, external(does(NotDone("no"))), sqs_record("m1", wanted("p")))

    told = [line for line in lines() if line["message"] == "no back-off"]
    assert told[-1]["error"] == "ConnectTimeoutError"
    assert len(told) == 2


def test_a_surprise_of_the_runners_own_is_told_with_its_place(world: World, lines: Lines) -> None:
    deliver(world, internal(does(LookupError(MAIL))), sqs_record("m1", wanted("p")))

    (line,) = [line for line in lines() if line["message"] == "the runner failed"]
    assert line["error"] == "LookupError"
    assert "core_helpers.py" in str(line["stack"])


def test_no_log_line_or_metric_names_a_person_or_a_card_whatever_goes_wrong(
    world: World, lines: Lines, capsys: pytest.CaptureFixture[str]
) -> None:
    secret: dict[str, Any] = {"note": f"{NAME} {MAIL} {CARD}"}
    whole = sqs_record("m0", wanted("p", **secret))
    surprise = RuntimeError(f"{NAME} <{MAIL}> {CARD}")
    ends: list[Outcome | Exception] = [
        DONE,
        NotDone("no"),
        Unknown("?"),
        surprise,
        Permanent("bad_card"),
        EffectWithoutState("?"),
        KeyReused(),
        Outcome("done", writes=[write(facts=MAIL)]),
        Outcome({"mail": MAIL}, publish=[surprise]),  # type: ignore[list-item]
    ]
    broken = [
        sqs_record("bad", whole["body"][:-1]),
        sqs_record("odd", whole["body"].replace('"parcel_id":"p"', f'"parcel_id":5,"name":"{NAME}"')),
        sqs_record("fat", whole["body"].replace('"source":"tests"', f'"source":"{NAME}"')),
        sqs_record("new", ParcelSent(parcel_id="p", **secret)),
        sqs_record("att", "{", messageAttributes={"to": {"dataType": MAIL, "stringValue": CARD}}),
        sqs_record("not", "{", messageAttributes={"to": {"dataType": "String", "stringValue": 5, "x": MAIL}}),
    ]
    put_row(world, facts="theirs")

    for go in (external, internal):
        for n, end in enumerate(ends):
            deliver(world, go(does(end)), sqs_record(f"m{n}", wanted(f"p{n}", **secret)))
            deliver(world, go(does(end)), sqs_record(f"m{n}", wanted(f"p{n}", weight=9, **secret)))
        deliver(world, go(does(DONE)), *broken)
    for fault in (refused("ValidationException", message=MAIL), cancelled("None", "ValidationError"), answer_lost):
        for operation in ("UpdateItem", "TransactWriteItems", "SendMessage", "ChangeMessageVisibilityBatch"):
            world.wire.always(operation, fault)
        deliver(world, external(does(DONE)), sqs_record("m1", wanted("q", **secret)), *broken)
        deliver(world, internal(does(DONE)), sqs_record("m1", wanted("q", **secret)))

    written = str(lines()) + "".join(capsys.readouterr())
    assert len(lines()) > 50
    for personal in (NAME, "Buyer", MAIL, "buyer", CARD):
        assert personal not in written
    assert record(world, "parcel.send#p0")["status"] == "COMPLETED"
