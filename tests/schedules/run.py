"""One schedule, move by move, until no work is left.

A schedule is written as its moves. `p`: a source starts a delivery. `A`: worker A sends its next request. `A?`: the
same with a fault (faults.py). `t`: time passes until the next message is visible. `l`: the late request that was sent
first is applied; `l2`: the second one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from tests.harness.interceptor import FakeClock, Killed
from tests.schedules import provider
from tests.schedules.dynamodb import TOKEN_LIFE_MS, Change, digest
from tests.schedules.facts import NOBODY, Facts
from tests.schedules.faults import MAKE_LATE, Fault, possible
from tests.schedules.green_threads import JOIN
from tests.schedules.handler_runs import HandlerRuns, Process, Start, Thread
from tests.schedules.model import Answer, Call, Model, answered, refusal
from tests.schedules.services import Message
from tests.schedules.sources import Delivery, Source, StreamSource
from tests.schedules.trace import line

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
WRONG_KEY = "sk_test_of_another_account"
START_MS = 1_800_000_000_000


LOST_S = 0.6  # seconds that a worker waits for a lost answer
SKEW_S = 2.0  # seconds from a worker's deadline to the end of its lease
ALL_KINDS = frozenset(Fault)


class Environment(Protocol):
    """What a run needs from its environment."""

    @property
    def clock(self) -> FakeClock:
        """The clock of the run."""

    @property
    def runs(self) -> HandlerRuns:
        """The runs of the production handlers."""

    @property
    def provider_answers(self) -> provider.Answers:
        """The answers of the payment provider."""


@dataclass
class Invocation:
    """A process and the delivery that it works on."""

    process: Process
    source: Source
    delivery: Delivery

    def copy(self) -> "Invocation":
        """Return a copy that continues by itself."""
        return Invocation(self.process.copy(), self.source, self.delivery)


LATE = "l"  # the move of a late request, and the end of the name of its thread


@dataclass(frozen=True)
class LateRequest:
    """A request that is on its way after its sender gave it up, died, or got the answer to another copy."""

    worker: str
    by: str  # the thread
    call: Call
    past: bytes  # of the thread, which decides the request
    claims: frozenset[tuple[str, tuple[str, str]]]  # made before the request was sent: Facts.claims
    overtaken: bool = False  # another worker has sent a request since, a millisecond later

    @property
    def key(self) -> tuple[str, ...]:
        """The record that the request claims. Empty if the request is not a claim."""
        body = self.call.body
        return (body["Key"]["id"]["S"],) if ":lease" in body.get("ExpressionAttributeValues", {}) else ()


class Stuck(Exception):
    """The work does not end."""


@dataclass
class Run:
    """The state of one schedule."""

    environment: Environment
    faults_left: int
    max_running: int = 2
    kinds: frozenset[Fault] = ALL_KINDS  # of the faults that may happen
    sources: list[Source] = field(default_factory=list)
    active: list[Invocation] = field(default_factory=list)
    started: int = 0
    warm: bool = True  # workers have already fetched the provider's API key
    redrives_left: int = 0  # how often a person redrives the oldest message of a DLQ when no work is left
    forgetful: bool = False  # the provider forgets its idempotency keys at once, not after a day
    other_fields: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # call → what the provider answers
    refuses: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # call → the error of each answer, a 400
    wrong_key: bool = False  # the secret holds the key of another account until a person redrives
    later_s: float = 0  # seconds by which the next delivery is late when no worker runs
    skew_ms: int = 0  # error of the next worker's clock
    last: str = ""  # the thread that moved last
    most: int = len(LETTERS)  # deliveries; with more of them the work counts as endless
    trace: list[str] | None = None
    faults: list[str] = field(default_factory=list)
    late: tuple[LateRequest, ...] = ()
    aged: bool = False  # the tokens of late requests have been forgotten, after all other work
    unchanged: bool = False  # the last move applied a late request that changed nothing

    def __post_init__(self) -> None:
        self.clock = self.environment.clock
        self.clock.ms = START_MS
        self.facts = Facts()
        self._asking: Thread | None = None  # whose request is applied now
        self.model = Model(lambda: self.clock.ms, self._by, self.new_id, self._applied, self._accepted)

    # Requests of the production code

    def _meet(self, thread: Thread, call: Call, fault: Fault) -> Answer | None:
        """Apply a request with its fault. Returns None if the answer is lost or too late. Raises Killed."""
        if fault in (Fault.DIES_BEFORE, Fault.DIES_LATE):
            self._trace_call(thread, call, fault, "")
            raise Killed
        if fault is Fault.LATE:
            self.clock.advance(LOST_S)
            self._trace_call(thread, call, fault, "")
            thread.saw("lost", self.clock.ms)
            return None
        try:
            answer = self._answer(call, fault)
        except provider.TooLate:
            self.clock.advance(LOST_S)
            self._trace_call(thread, call, fault, "no answer in time")
            thread.saw("late", self.clock.ms)
            return None
        if fault is Fault.DIES_AFTER:
            self._trace_call(thread, call, fault, answer.said)
            raise Killed
        if fault is Fault.ANSWER_LOST:
            self.clock.advance(LOST_S)
            self._trace_call(thread, call, fault, answer.said)
            thread.saw("lost", self.clock.ms)
            return None
        self._trace_call(thread, call, fault, answer.said)
        thread.saw(answer.said, self.clock.ms)
        return answer

    def _answer(self, call: Call, fault: Fault) -> Answer:
        if call.service == "provider":
            return self._ask_provider(call, fault)
        if call.operation == "GetSecretValue" and self.wrong_key and self.redrives_left and fault is Fault.NONE:
            return answered({"SecretString": WRONG_KEY})
        if fault is Fault.THROTTLED:
            return _throttled(call)
        if fault is Fault.CONFLICT:
            return _cancelled(call, "TransactionConflict")
        if fault is Fault.HALF:
            return self._partly(call)
        return self.model.answer(call)

    def _ask_provider(self, call: Call, fault: Fault) -> Answer:
        if fault is Fault.THROTTLED:
            return provider.throttled()
        if fault is Fault.HALF:
            return provider.half(call, self.clock, self.model)
        assert self._asking
        named = provider.call_of(call.operation)
        if named in self.refuses:
            return provider.refused(self.refuses[named])
        if ("Authorization", f"Bearer {WRONG_KEY}") in call.headers:
            return provider.refused({"code": "resource_missing", "param": "payment_method"})
        answer = self.environment.provider_answers.ask(call, self.clock, self.model, self._asking)
        if self.forgetful:
            provider.forget_keys(self.model)
        if answer is None:
            raise provider.TooLate
        return provider.with_other_fields(answer, self.other_fields.get(provider.call_of(call.operation), {}))

    def _partly(self, call: Call) -> Answer:
        """Answer a batch. The first entry is refused."""
        first, *rest = call.body["Entries"]
        failed = [{"Id": first["Id"], "Code": "InternalError", "SenderFault": False}]
        done = self.model.queues.call(call.operation, {**call.body, "Entries": rest}) if rest else {"Successful": []}
        return answered({"Successful": done["Successful"], "Failed": failed})

    def _overtake(self, worker: str) -> None:
        """Let a millisecond pass before a worker's request if another worker's claim is late."""
        if any(late.key and late.worker != worker and not late.overtaken for late in self.late):
            self.late = tuple(replace(it, overtaken=it.overtaken or it.worker != worker) for it in self.late)
            self.clock.ms += 1

    def _send_late(self, worker: str, thread: Thread) -> None:
        claims = frozenset(self.facts.claims.items())
        self.late += (LateRequest(worker, thread.name, thread.parked_at, thread.past, claims),)

    def _apply_late(self, late: LateRequest) -> None:
        """Apply a late request. Nobody reads its answer."""
        before = self._outside()
        records = self.model.tables.items["idempotency"]
        record = records.get(late.key)
        since = {key for _, (key, _) in self.facts.claims.items() - late.claims}
        thread = self._asking = Thread(late.by + LATE, past=late.past)
        try:
            answer = self._answer(late.call, Fault.NONE).said
        except provider.TooLate:
            answer = "no answer in time"
        finally:
            self._asking = None
        self._trace_call(thread, late.call, Fault.NONE, answer)
        self.unchanged = self._outside() == before
        if record and records[late.key] != record and since & {*late.key}:
            self.facts.offences.add(f"a_late_claim_is_refused: {late.by} claimed {late.key[0]} after a later claim")

    # Moves of the explorer

    def moves(self) -> list[str]:
        """Return all possible moves, the simplest first."""
        plain = [thread.name for thread in self._ready()]
        plain.sort(key=lambda name: name != self.last)
        starting: list[str] = []
        passing: list[str] = []
        if len(self.active) < self.max_running:
            starting = [source.label for source in self.sources if self._due(source)]
            if not starting and self._may_wait():
                passing = ["t"]
        late = [LATE + (str(number) if number > 1 else "") for number, _ in enumerate(self.late, 1)]
        faults = []
        if self.faults_left:
            for thread in self._ready():
                if isinstance(thread.parked_at, Call):
                    kinds = [fault for fault in possible(thread.parked_at) if fault in self.kinds]
                    faults += [thread.name + fault.value for fault in kinds]
        return plain + starting + passing + late + faults

    def move(self, move: str) -> None:
        """Perform a move."""
        self.unchanged = False
        if move == "t":
            self._wait()
        elif move[0] == LATE:
            number = int(move[1:] or 1) - 1
            late = self.late[number]
            self.late = self.late[:number] + self.late[number + 1 :]
            self._apply_late(late)
        elif move[0].islower():
            self._start(next(source for source in self.sources if source.label == move))
        else:
            name = move.rstrip("".join(fault.value for fault in Fault))
            self._go_on(name, Fault(move[len(name) :]))
        for it in [it for it in self.active if it.process.over]:
            self._end(it)

    def settle(self) -> bool:
        """If no worker runs, let time pass until there is work. Returns False if there will be no more work.

        While a request is late, time passes by a move, since the request may be applied before.
        """
        if self._next_ms() is None and self.redrives_left:
            self.redrives_left -= 1
            self._redrive()
        if self._next_ms() is None:
            return False
        if not self.late and not any(self._due(source) for source in self.sources):
            self._wait()
        return True

    def save(self) -> Any:
        """Return a copy of everything that a move changes, for `restore`."""
        return (
            {name: getattr(self, name) for name in _CHANGES},
            self.clock.ms,
            list(self.faults),
            self.model.save(),
            self.facts.save(),
            [source.save() for source in self.sources],
            [it.copy() for it in self.active],
        )

    def restore(self, saved: Any) -> None:
        """Return to what was saved."""
        fields, self.clock.ms, faults, model, facts, sources, active = saved
        vars(self).update(fields)
        self.faults = list(faults)
        self.model.restore(model)
        self.facts.restore(facts)
        for source, found in zip(self.sources, sources, strict=True):
            source.restore(found)
        self.active = [it.copy() for it in active]

    def state(self) -> bytes:
        """Return a digest of everything that decides what can happen, and of everything that invariants read."""
        seen = (
            self.clock.ms,
            self.faults_left,
            self.redrives_left,
            self.started,
            self.aged,
            [(late.by, late.past, late.overtaken) for late in self.late],
            self._outside(),
            [(it.process.name, it.process.deadline_ms, it.process.stalled, _threads(it.process)) for it in self.active],
        )
        return digest(repr(seen).encode())

    # Inside

    def _outside(self) -> object:
        """Return everything outside the workers that a request can change. Comparable."""
        return (
            sorted(self.model.tables.sums.items()),
            self.model.tables.tokens_sum,
            [(name, [message.state for message in found]) for name, found in self.model.queues.waiting.items()],
            sorted((key, digest(body)) for key, body in self.model.rest.objects.items()),
            [mail.digest for mail in self.model.rest.mails],
            [source.state() for source in self.sources],
            self.facts.state(),
        )

    def _ready(self) -> list[Thread]:
        return [thread for it in self.active for thread in it.process.ready]

    def _stalled(self) -> list[Process]:
        """Return the stalled processes. Each may stall until one more message is visible."""
        return [it.process for it in self.active if it.process.stalled]

    def _due(self, source: Source) -> bool:
        next_ms = source.next_ms()
        return next_ms is not None and next_ms <= self.clock.ms

    def _next_ms(self) -> int | None:
        return min((ms for source in self.sources if (ms := source.next_ms()) is not None), default=None)

    def _may_wait(self) -> bool:
        """Return whether time may pass: a process stalls, or no worker runs and a request is late."""
        late = bool(self.late) and not self.active
        return bool(self._stalled() or late) if self._next_ms() is not None else late and not self.aged

    def _wait(self) -> None:
        """Let time pass until the next message is visible. If there is none, DynamoDB forgets its tokens."""
        next_ms = self._next_ms()
        if self.active:
            self._stalled()[0].stalled = False
        elif next_ms is None:
            self.aged = True
            next_ms = self.clock.ms + TOKEN_LIFE_MS
        else:
            self.clock.advance(self.later_s)
        assert next_ms is not None
        self.clock.ms = max(self.clock.ms, next_ms)
        self._trace(f"          time passes: {self._elapsed()}")

    def _redrive(self) -> None:
        """https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html"""
        queues = self.model.queues
        for name, waiting in queues.waiting.items():
            if name.endswith("-dlq") and waiting:
                message = waiting.pop(0)
                again = {"MessageBody": message.body, "MessageAttributes": message.attributes}
                queues.put(name.removesuffix("-dlq"), again)
                self._trace(f"          {message.id} is put back from {name}")
                return

    def _start(self, source: Source) -> None:
        if self.started == self.most:
            raise Stuck("deliveries without end")
        name = _name(self.started)
        self.started += 1
        delivery = source.take()
        deadline_ms = self.clock.ms + int(source.timeout_s * 1000)
        self._trace(f"{source.label:<4} {name:<4} {source.function} starts: {delivery.about}")
        about = (source.function, name, self.clock.ms, deadline_ms, self.skew_ms, self.warm)
        moment = self.environment.runs.start(Start(*about, delivery.event, digest(repr(delivery.event).encode())))
        self.last = name
        process = Process(name, deadline_ms, moment)
        self.active.append(Invocation(process, source, delivery))
        process.enter(moment, self.facts, self.clock)
        process.threads[0].saw(delivery.event)

    def _go_on(self, name: str, fault: Fault) -> None:
        it, thread = next((it, thread) for it in self.active for thread in it.process.threads if thread.name == name)
        if fault is not Fault.NONE:
            self.faults_left -= 1
            self.faults.append(name + fault.value)
        if fault is Fault.STALLS:
            end_ms = it.process.deadline_ms + int(SKEW_S * 1000) + 1000
            self.clock.ms = max(self.clock.ms, end_ms)
            it.process.stalled = True
            self._trace(f"{name + '~':<4} {name:<4} stalls past its lease: {self._elapsed()}")
            return
        self.last = name
        answer = None
        if thread.parked_at is not JOIN:
            self._overtake(it.process.name)
            if fault in MAKE_LATE:
                self._send_late(it.process.name, thread)
            self._asking = thread
            try:
                answer = self._meet(thread, thread.parked_at, fault)
            except Killed:
                it.process.dead = True
                return
            finally:
                self._asking = None
        it.process.enter(self.environment.runs.go_on(it.process.moment, name, answer), self.facts, self.clock)

    def _end(self, it: Invocation) -> None:
        process = it.process
        in_flight = [thread.name for thread in process.threads if not thread.ended]
        if process.returned and in_flight:
            self.facts.offences.add(f"acknowledged_is_done: {process.name} returned while {in_flight} was at work")
        died = process.dead and not process.returned
        self.active.remove(it)
        if died:
            self._trace(f"          {process.name} is dead")
            it.delivery.died()
        elif process.crashed is not None:
            self._trace(f"          {process.name} raised {type(process.crashed).__name__}")
            it.delivery.died()
        else:
            self._trace(f"          {process.name} returned {process.result}")
            it.delivery.returned(process.result)

    def _by(self) -> str:
        return self._asking.name.removesuffix(LATE) if self._asking else NOBODY

    def new_id(self) -> str:
        """Return an id that a service makes."""
        return self._asking.new_id() if self._asking else f"m{sum(map(len, self.model.queues.sent.values())) + 1}"

    def _applied(self, changes: list[Change]) -> None:
        self.facts.changed(self._by(), changes)
        for change in changes:
            if change.table == "idempotency":
                for source in self.sources:
                    if isinstance(source, StreamSource):
                        source.changed(dict(change.new) if change.new else None)

    def _accepted(self, queue: str, message: Message) -> None:
        if self._by() != NOBODY and not queue.endswith("-dlq"):
            self.facts.sent(message)

    def _trace_call(self, thread: Thread, call: Call, fault: Fault, answer: str) -> None:
        if self.trace is not None:
            self.trace.append(line(thread.name, call, fault, answer))

    def _trace(self, text: str) -> None:
        if self.trace is not None:
            self.trace.append(text)

    def _elapsed(self) -> str:
        return f"{(self.clock.ms - START_MS) / 1000:.1f} s since the start"


_CHANGES = ("faults_left", "redrives_left", "started", "last", "late", "aged", "unchanged")


def _name(number: int) -> str:
    """A to Z, as schedules are spelled; then AA, and so on, for stories."""
    before, last = divmod(number, len(LETTERS))
    return (_name(before - 1) if before else "") + LETTERS[last]


def _threads(process: Process) -> object:
    return [
        (thread.name, thread.past, thread.ids, thread.ended, thread.parked_at is JOIN) for thread in process.threads
    ]


def _throttled(call: Call) -> Answer:
    match call.service:
        case "dynamodb" if call.operation == "TransactWriteItems":
            return _cancelled(call, "ThrottlingError")
        case "dynamodb":
            return refusal(call, "ProvisionedThroughputExceededException")
        case "s3":
            return refusal(call, "SlowDown", 503)
        case "sesv2":
            return refusal(call, "TooManyRequestsException", 429)
        case _:
            return refusal(call, "ThrottlingException")


def _cancelled(call: Call, code: str) -> Answer:
    """A transaction is cancelled by its first item; a single write has an error of its own for it."""
    if call.operation != "TransactWriteItems":
        return refusal(call, f"{code}Exception")
    reasons: Sequence[dict[str, str]] = [{"Code": code}, *[{"Code": "None"}] * (len(call.body["TransactItems"]) - 1)]
    return refusal(call, "TransactionCanceledException", CancellationReasons=reasons)
