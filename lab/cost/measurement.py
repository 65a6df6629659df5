"""Run the real handlers for orders and their duplicates, and count by stage what AWS bills.

Counts are of one invocation, with one order (`alone`) or ten (`tens`). Each stage is counted for a new message, and for
the same message again (`again`).
"""

import importlib
import io
import json
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from typing import Any

import boto3
import pytest
from tests.harness import api_fixtures as clients
from tests.harness import driver, samples
from tests.harness.driver import Pipeline
from tests.harness.interceptor import Wire
from tests.harness.moto_world import new_consumer
from tests.harness.observations import Log
from tests.harness.payment_fixtures import API_KEY, sandbox_client

from lab.cost.meter import Meter
from lab.cost.units import item_bytes

Counts = dict[str, Any]

TENS = 10
STAGES = {"order": "orders", "payment": "payments", "email": "emails"}  # function → queue
APART_S = 2  # between the stages of an order: its marks in the index are in seconds
THEIR_MODULES = {name: f"lab.with_powertools.{name}" for name in STAGES}


def measure(pipeline: Pipeline, patch: pytest.MonkeyPatch) -> Counts:
    """All counts of this repository and of Powertools. Fails unless every order was charged and emailed once."""
    run = Run(pipeline, patch)
    with run.meter.listening():
        this_repo = {"alone": run.this_repo(1, "a"), "tens": run.this_repo(TENS, "b")}
        sweep = run.sweep()
        theirs = {"alone": run.theirs(1, "c"), "tens": run.theirs(TENS, "d")}
    return {
        "this-repo": this_repo,
        "powertools": theirs,
        "sweep": sweep,
        "metrics": sorted(run.metrics),
        "bytes": run.sizes(this_repo["alone"]["orders"]),
    }


def _unload_powertools() -> None:
    """Let the next import build the clients anew, with the environment of that moment."""
    for name in [name for name in sys.modules if name.startswith("lab.with_powertools")]:
        del sys.modules[name]


class NotAsItShouldBe(Exception):
    """An order did not come out as it must: there is nothing to count."""


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise NotAsItShouldBe(otherwise)


class Run:
    """One world, with a meter in it."""

    def __init__(self, pipeline: Pipeline, patch: pytest.MonkeyPatch) -> None:
        self.pipeline = pipeline
        self.world = pipeline.world
        self.patch = patch
        patch.setenv("STAGE", "prod")
        self.log = Log(patch)
        self.logged = 0
        self.metrics: set[str] = set()
        probe: Any = boto3.client("dynamodb")
        Wire().put_on(probe)
        self.meter = Meter(probe, [sandbox_client(service) for service in ("dynamodb", "secretsmanager")])
        for module, name in ((clients, "handler"), (driver, "relay"), (driver, "sweep")):
            patch.setattr(module, name, self.meter.during(getattr(module, name)))
        for queue in STAGES.values():
            patch.setattr(driver.CONSUMERS[queue], "handler", self.meter.during(driver.CONSUMERS[queue].handler))

    def this_repo(self, orders: int, prefix: str) -> Counts:
        """Orders by the API, all the way; then each stage's messages once more."""
        self.patch.setenv("CONCURRENCY", str(TENS))
        keys = [f"{prefix}-{n}" for n in range(orders)]
        mails_before = len(self.pipeline.mailbox.mails)
        ids: list[str] = []
        first = {"api": self._of("api", lambda: ids.extend(self.pipeline.post(key) for key in keys))}
        again = {"api": self._of("api", lambda: [self.pipeline.post(key) for key in keys])}
        for before, (function, queue) in zip(("api", "order", "payment"), STAGES.items(), strict=True):
            start = self.pipeline.streamed
            first[f"relay after {before}"] = self._of("relay", self.pipeline.relay)
            self.pipeline.streamed = start
            again[f"relay after {before}"] = self._of("relay", self.pipeline.relay)
            bodies = self._sent_twice(queue, orders)
            self.world.clock.advance(APART_S)
            self._put(queue, bodies)
            first[function] = self._of(function, partial(self.pipeline.deliver, queue))
            self._put(queue, bodies)
            again[function] = self._of(function, partial(self.pipeline.deliver, queue))
        for order_id in ids:
            self.pipeline.settled_once(order_id, "paid")
        _require(len(self.pipeline.mailbox.mails) - mails_before == orders, "not one mail an order")
        return {"orders": ids, "first": first, "again": again}

    def _sent_twice(self, queue: str, orders: int) -> list[str]:
        """Take off what the relay has sent to a queue, each event twice."""
        sent = self._taken_off(queue)
        bodies = list(dict.fromkeys(sent))
        _require((len(sent), len(bodies)) == (2 * orders, orders), f"{len(sent)} messages, {len(bodies)} unlike")
        return bodies

    def _taken_off(self, queue: str) -> list[str]:
        """All messages of a queue, which is empty then."""
        messages = self.world.messages(queue)
        for message in messages:
            self.world.sqs.delete_message(QueueUrl=self.world.queues[queue], ReceiptHandle=message["ReceiptHandle"])
        return [message["Body"] for message in messages]

    def _put(self, queue: str, bodies: list[str]) -> None:
        for body in bodies:
            self.pipeline.put(body, queue)

    def sweep(self) -> Counts:
        """A sweep that finds nothing to do."""
        return self._of("sweep", self.pipeline.sweep)

    def theirs(self, orders: int, prefix: str) -> Counts:
        """The same orders, put on the queue, with Powertools' idempotency."""
        for name, value in {
            "STRIPE_API_KEY": API_KEY,
            "AWS_LAMBDA_FUNCTION_NAME": "with-powertools",
        }.items():
            self.patch.setenv(name, value)
        _unload_powertools()
        mails_before = len(self.pipeline.mailbox.mails)
        bodies = [samples.body_of(samples.requested(f"ord_{prefix}_{n}")) for n in range(orders)]
        first: Counts = {}
        again: Counts = {}
        try:
            for function, queue in (("order", "payments"), ("payment", "emails"), ("email", "")):
                self.patch.setenv("NEXT_QUEUE_URL", self.world.queues.get(queue, ""))
                handler = self.meter.during(importlib.import_module(THEIR_MODULES[function]).handler)
                for counted in (first, again):
                    counted[function] = self._of(function, partial(self._given, handler, bodies))
                if queue:
                    bodies = self._taken_off(queue)
                    _require(len(bodies) == orders, f"{len(bodies)} events for {queue}")
        finally:
            _unload_powertools()
            self.patch.delenv("AWS_LAMBDA_FUNCTION_NAME")
        _require(len(self.pipeline.mailbox.mails) - mails_before == orders, "not one mail an order")
        for n in range(orders):
            row = self.world.row(f"ord_{prefix}_{n}")
            _require(row is not None and row["state"]["S"] == "paid", f"the row is {row}")
        return {"first": first, "again": again}

    def _given(self, handler: Callable[..., Any], bodies: list[str]) -> None:
        answered = handler(samples.sqs_event(*bodies), self.world.context(60))
        _require(answered == {"batchItemFailures": []}, f"answered {answered}")

    def _of(self, function: str, happens: Callable[[], object]) -> Counts:
        """What one happening came to."""
        new_consumer()
        self.meter.take()
        calls = len(self.pipeline.payments.connection.calls)
        logged = len(self.log.text)
        printed = io.StringIO()
        self.patch.setenv("POWERTOOLS_SERVICE_NAME", function)
        with redirect_stdout(printed):
            happens()
        emitted = [line for line in printed.getvalue().splitlines() if line.startswith('{"_aws"')]
        for line in emitted:
            for block in json.loads(line)["_aws"]["CloudWatchMetrics"]:
                self.metrics |= {f"{function} {metric['Name']}" for metric in block["Metrics"]}
        text = self.log.text[logged:]
        counts: Counter[str] = self.meter.take()
        counts["log_lines"] = len(text.splitlines()) + len(emitted)
        counts["log_bytes"] = len(text.encode()) + sum(len(line.encode()) for line in emitted)
        counts["provider.calls"] = len(self.pipeline.payments.connection.calls) - calls
        return dict(sorted((name, count) for name, count in counts.items() if count))

    def sizes(self, ids: list[str]) -> Counts:
        """Bytes that an order leaves behind, by table; what its receipt has; what its events and results have."""
        order_id = ids[0]
        row = self.world.row(order_id) or {}
        keys = [f"{operation}#{order_id}" for operation in ("order.place", "payment.charge", "email.send")]
        records = [record for key in keys if (record := self.world.record(key))]
        requests = [
            item
            for item in self.world.dynamodb.scan(TableName="idempotency")["Items"]
            if order_id in item["id"]["S"] or order_id in item.get("outbox", {}).get("S", "")
        ]
        receipt = boto3.client("s3").get_object(Bucket="receipts", Key=f"receipts/{order_id}.html")
        return {
            "row": item_bytes(row),
            "records": sum(item_bytes(item) for item in requests),
            "receipt": len(receipt["Body"].read()),
            "results": sum(len(record.get("data", {}).get("S", "")) for record in records),
            "request": len(samples.body_of(samples.requested(order_id)).encode()),
        }
