"""Arrivals, three stages, and the relay between them, on simpy.

A stage is a queue and a mapping: up to so many workers, each of which runs a batch with a thread a message, and deletes
what was done when the whole batch is. What failed comes back as shared/idempotency/backoff.py says.

Large rates are simulated as a slice: 1/k of the arrivals on 1/k of every capacity. Pools that are k times smaller queue
a little more, so a slice errs towards longer waits.
"""

import random
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import simpy
from shared.idempotency.sqs import delay_s

from lab.simulate.sqs import Message, Queue

Process = Generator[simpy.Event, Any, None]

SPREAD = 8  # shape of the gamma distribution that service times are drawn from: a coefficient of variation of 0.35
START_WORKERS = 5  # with which a mapping starts
RAMP_PER_S = 300 / 60  # workers that it adds while messages wait
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
POLL_S = 0.25  # how often Lambda looks at a shard that had nothing
RELAY_BATCH = 50  # as in stacks/constructs/senders.py
SEND_BATCH = 10
HANGS_S, REFUSED_S = 12.0, 0.05  # a call into a dead line: connect and read timeouts of stacks/settings.py; an answer


@dataclass(frozen=True)
class Stage:
    """`service_s`: one message's mean; `workers`: the mapping's maximum concurrency, its variants together."""

    name: str
    service_s: float
    workers: int
    batch: int
    window_s: float
    max_receives: int
    mappings: int = 1  # queues with a mapping each that share the stage's load


@dataclass(frozen=True)
class Outage:
    """Who is behind a stage answers nothing, or only errors. Seconds."""

    of: str
    start_s: float
    end_s: float
    hangs: bool


@dataclass(frozen=True)
class Setup:
    """What is simulated. `rate_at`: orders a second at a time; `slice_of`: k."""

    stages: Sequence[Stage]
    rate_at: Callable[[float], float]
    top_rate: float  # the most that `rate_at` ever says
    arrivals_s: float
    shards: int = 4
    relays_per_shard: int = 1  # ParallelizationFactor
    send_s: float = 0.012
    overhead_s: float = 0.005
    in_flight_limit: int = 120_000
    takes: Mapping[str, float] = field(default_factory=dict)  # orders a second that who is behind a stage takes
    outage: Outage | None = None
    backoff_base_s: int = 2
    backoff_cap_s: int = 900
    slice_of: int = 1
    seed: int = 1
    horizon_s: float = 24 * 3600


@dataclass
class Result:
    """All orders by number, in seconds from the start; samples every `sample_s`."""

    arrived: list[float] = field(default_factory=list)
    done: dict[int, float] = field(default_factory=dict)
    parked: dict[str, int] = field(default_factory=dict)
    backlog: dict[str, list[int]] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)
    in_system_s: float = 0.0  # ∫ orders in the system dt, while they arrive
    most_receives: dict[str, int] = field(default_factory=dict)  # by stage, of tries that failed
    most_in_flight: dict[str, int] = field(default_factory=dict)
    throttled: dict[str, int] = field(default_factory=dict)  # by stage: tries that who is behind it refused
    ended_s: float = 0.0

    @property
    def latencies(self) -> list[float]:
        return sorted(self.done[order] - self.arrived[order] for order in self.done)


class Simulation:
    """One run."""

    def __init__(self, setup: Setup, sample_s: float) -> None:
        self.setup = setup
        self.rng = random.Random(setup.seed)  # noqa: S311 - a model
        self.env = simpy.Environment()
        self.result = Result()
        self.sample_s = sample_s
        limit = setup.in_flight_limit
        self.queues = {
            s.name: Queue(self.env, max(s.batch, limit * s.mappings // setup.slice_of)) for s in setup.stages
        }
        self.shards: list[deque[tuple[Message, str]]] = [deque() for _ in range(_slice(setup.shards, setup.slice_of))]
        self.shard_idle: list[deque[simpy.Event]] = [deque() for _ in self.shards]
        self.tokens: dict[str, tuple[float, float]] = {}  # by stage: how many, and when that was

    def run(self) -> Result:
        """Until every order is done or parked, or the horizon."""
        setup = self.setup
        self.env.process(self._arrivals())
        self.env.process(self._sampling())
        for number in range(len(self.shards)):
            for _ in range(setup.relays_per_shard):
                self.env.process(self._relay(number))
        for stage in setup.stages:
            self.env.process(self._mapping(stage))
        self.env.run(until=self.env.any_of([self.env.process(self._until_quiet()), self.env.timeout(setup.horizon_s)]))
        self._sample()
        self.result.parked = {name: len(queue.parked) for name, queue in self.queues.items()}
        self.result.most_in_flight = {name: queue.most_in_flight for name, queue in self.queues.items()}
        self.result.ended_s = self.env.now
        return self.result

    @property
    def open(self) -> int:
        """Orders that are neither done nor parked."""
        parked = sum(len(queue.parked) for queue in self.queues.values())
        return len(self.result.arrived) - len(self.result.done) - parked

    def _until_quiet(self) -> Process:
        yield self.env.timeout(self.setup.arrivals_s)
        while self.open:
            yield self.env.timeout(1)

    def _arrivals(self) -> Process:
        """A Poisson process, thinned to the rate of the moment."""
        setup = self.setup
        first = setup.stages[0].name
        while True:
            yield self.env.timeout(self.rng.expovariate(setup.top_rate / setup.slice_of))
            if self.env.now >= setup.arrivals_s:
                return
            if self.rng.random() * setup.top_rate < setup.rate_at(self.env.now):
                self._emit(Message(len(self.result.arrived)), first)
                self.result.arrived.append(self.env.now)

    def _sampling(self) -> Process:
        while True:
            self._sample()
            if self.env.now < self.setup.arrivals_s:
                self.result.in_system_s += self.open * self.sample_s
            yield self.env.timeout(self.sample_s)

    def _sample(self) -> None:
        self.result.times.append(self.env.now)
        for name, queue in self.queues.items():
            self.result.backlog.setdefault(name, []).append(queue.backlog * self.setup.slice_of)

    # The relay

    def _emit(self, message: Message, queue: str) -> None:
        """A completed record shows up in a shard of the stream."""
        number = self.rng.randrange(len(self.shards))
        self.shards[number].append((message, queue))
        if self.shard_idle[number]:
            self.shard_idle[number].popleft().succeed()

    def _relay(self, number: int) -> Process:
        shard = self.shards[number]
        while True:
            if not shard:
                event = self.env.event()
                self.shard_idle[number].append(event)
                yield event
                yield self.env.timeout(self.rng.uniform(0, POLL_S))
            taken = [shard.popleft() for _ in range(min(RELAY_BATCH, len(shard)))]
            by_queue: dict[str, int] = {}
            for _, queue in taken:
                by_queue[queue] = by_queue.get(queue, 0) + 1
            sends = sum(-(-count // SEND_BATCH) for count in by_queue.values())
            yield self.env.timeout(self.setup.overhead_s + sends * self.setup.send_s)
            for message, queue in taken:
                self.queues[queue].send(message)

    # The stages

    def _mapping(self, stage: Stage) -> Process:
        """Adds workers while messages wait, as fast as Lambda does."""
        most = _slice(stage.workers, self.setup.slice_of)
        running = 0
        target = float(min(most, max(1.0, START_WORKERS * stage.mappings / self.setup.slice_of)))
        while running < most:
            while running < int(target):
                self.env.process(self._worker(stage))
                running += 1
            yield self.env.timeout(1)
            if self.queues[stage.name].receivable > 0:
                target = min(float(most), target + RAMP_PER_S * stage.mappings / self.setup.slice_of)

    def _worker(self, stage: Stage) -> Process:
        queue, after = self.queues[stage.name], self._after(stage)
        while True:
            if queue.receivable <= 0:
                yield queue.waiting()
                continue
            if stage.window_s and queue.receivable < stage.batch:
                yield self.env.timeout(stage.window_s)
            batch = queue.receive(stage.batch)
            ended = [(message, *self._serve(stage)) for message in batch]
            yield self.env.timeout(self.setup.overhead_s + max((seconds for _, seconds, _ in ended), default=0))
            for message, _, ok in ended:
                if not ok:
                    self._failed(stage, queue, message)
                    continue
                queue.delete(message)
                if after is None:
                    self.result.done[message.order] = self.env.now
                else:
                    self._emit(Message(message.order), after)

    def _failed(self, stage: Stage, queue: Queue, message: Message) -> None:
        most = self.result.most_receives
        most[stage.name] = max(most.get(stage.name, 0), message.receives)
        if message.receives >= stage.max_receives:
            queue.park(message)
            return
        wait_s = delay_s(message.receives, self.setup.backoff_base_s, self.setup.backoff_cap_s, self.rng)
        queue.hide(message, wait_s)

    def _after(self, stage: Stage) -> str | None:
        names = [other.name for other in self.setup.stages]
        following = names[names.index(stage.name) + 1 :]
        return following[0] if following else None

    def _serve(self, stage: Stage) -> tuple[float, bool]:
        """How long a message takes, and whether it is done then."""
        down = self.setup.outage
        if down and stage.name == down.of and down.start_s <= self.env.now < down.end_s:
            return (HANGS_S if down.hangs else REFUSED_S), False
        if not self._is_taken(stage):
            self.result.throttled[stage.name] = self.result.throttled.get(stage.name, 0) + 1
            return REFUSED_S, False
        return self.rng.gammavariate(SPREAD, stage.service_s / SPREAD), True

    def _is_taken(self, stage: Stage) -> bool:
        """By a token bucket of one second."""
        if stage.name not in self.setup.takes:
            return True
        each_s = self.setup.takes[stage.name] / self.setup.slice_of
        tokens, since = self.tokens.get(stage.name, (each_s, 0.0))
        tokens = min(max(1.0, each_s), tokens + (self.env.now - since) * each_s)
        taken = tokens >= 1
        self.tokens[stage.name] = (tokens - taken, self.env.now)
        return taken


def _slice(capacity: int, k: int) -> int:
    return max(1, round(capacity / k))


def simulate(setup: Setup, sample_s: float = 1.0) -> Result:
    return Simulation(setup, sample_s).run()


def quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def drained_s(result: Result, queue: str, since: float, usual: float) -> float | None:
    """Seconds after `since` until the queue's backlog is down to `usual`; None where it never is."""
    for at, backlog in zip(result.times, result.backlog[queue], strict=True):
        if at >= since and backlog <= usual:
            return at - since
    return None
