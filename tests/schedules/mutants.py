"""Named mutations of the core, the handlers and the relay. Each must be killed by the explorer or by the unit tests.

A mutation is a patch of one place in the source, made in a copy of the tree. The explorer has the first go: it searches
the named scenarios with one fault. What survives it is for the unit tests named. A survivor fails the run.
"""

from dataclasses import dataclass

STORE = "shared/idempotency/store.py"
ENGINE = "shared/idempotency/engine.py"
RECORDS = "shared/idempotency/records.py"
BATCH = "shared/idempotency/sqs.py"
REPOSITORY = "shared/orders/repository.py"
WRITES = "shared/orders/writes.py"
PAYMENT = "functions/payment/handler.py"
PROVIDER = "functions/payment/provider.py"
TROUBLES = "functions/payment/troubles.py"
EMAIL = "functions/email/handler.py"
SES = "functions/email/ses.py"
RELAY = "functions/relay/handler.py"
SENDING = "shared/idempotency/sending.py"
PLACING = "functions/api/placing.py"


CORE_TESTS = ("tests/unit/idempotency",)
PAYMENT_TESTS = ("tests/unit/payment", "tests/unit/pipeline")


@dataclass(frozen=True)
class Mutant:
    """`before` stands once in the file. `hunts`: scenarios for the explorer; `tests`: for what survives that."""

    name: str
    file: str
    before: str
    after: str
    hunts: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()

    def apply(self, source: str) -> str:
        """The mutated source. Raises ValueError where the place is gone, or there are several."""
        if source.count(self.before) != 1:
            raise ValueError(f"{self.name}: found {source.count(self.before)} times in {self.file}: {self.before!r}")
        return source.replace(self.before, self.after)


# A condition that always holds, and still uses its placeholders, which DynamoDB demands.
_ANY = "(#owner = :owner OR attribute_exists(id)) AND #status = :inprogress"

MUTANTS = (
    Mutant(
        "commit without the owner condition",
        STORE,
        """            "ConditionExpression": _MINE,
            "UpdateExpression": _COMPLETE""",
        f'''            "ConditionExpression": "{_ANY}",
            "UpdateExpression": _COMPLETE''',
        ("email", "payment"),
        CORE_TESTS,
    ),
    Mutant(
        "release without the owner condition",
        STORE,
        """                    "ConditionExpression": _MINE,
                    "UpdateExpression": (
                        "SET in_progress_expiration""",
        f'''                    "ConditionExpression": "{_ANY}",
                    "UpdateExpression": (
                        "SET in_progress_expiration''',
        ("payment",),
        CORE_TESTS,
    ),
    Mutant(
        "take over a claim whose lease runs",
        STORE,
        "AND in_progress_expiration <= :now_ms AND",
        "AND (in_progress_expiration <= :now_ms OR attribute_exists(id)) AND",
        ("email", "payment"),
        CORE_TESTS,
    ),
    Mutant(
        "take over a lapsed claim with another fingerprint",
        STORE,
        "AND validation = :fingerprint)",
        "AND (validation = :fingerprint OR attribute_exists(id)))",
        (),
        CORE_TESTS,
    ),
    Mutant(
        "never take over a lapsed claim",
        STORE,
        "AND in_progress_expiration <= :now_ms AND",
        "AND in_progress_expiration <= :now_ms AND attribute_not_exists(id) AND",
        ("email",),
        CORE_TESTS,
    ),
    Mutant(
        "take an expired record for done",
        STORE,
        '"attribute_not_exists(id) OR expiration <= :now_s OR "',
        '"attribute_not_exists(id) OR (expiration <= :now_s AND attribute_not_exists(id)) OR "',
        (),
        CORE_TESTS,
    ),
    Mutant(
        "judge the status before the fingerprint",
        RECORDS,
        "    if found != fingerprint:",
        '    if found != fingerprint and text(image, "status") != COMPLETED:',
        ("api-reused",),
        CORE_TESTS,
    ),
    Mutant(
        "take a claim in progress for done",
        RECORDS,
        "    raise Busy(max(until_ms, now_ms))",
        "    return Duplicate(None)",
        ("email", "payment"),
        CORE_TESTS,
    ),
    Mutant(
        "hand out a duplicate's own result instead of the stored one",
        RECORDS,
        "return Duplicate(decode_result(image, key))",
        "return Duplicate(None)",
        ("order",),
        CORE_TESTS,
    ),
    Mutant(
        "forget that an earlier try may have had its effect",
        STORE,
        '(number(old, "attempt") or 0) + 1, flag(old, "unsettled"), noted)',
        '(number(old, "attempt") or 0) + 1, False, noted)',
        ("email",),
        CORE_TESTS,
    ),
    Mutant(
        "let a release clear what was uncertain",
        STORE,
        "unsettled = uncertain",
        "unsettled = attempt",
        (),
        CORE_TESTS,
    ),
    Mutant(
        "let a commit leave the claim unsettled",
        STORE,
        "expiration = :expiration, unsettled = :false",
        "expiration = :expiration, unsettled = if_not_exists(missing, unsettled), was = :false",
        (),
        CORE_TESTS,
    ),
    Mutant(
        "keep an old outbox through a takeover",
        STORE,
        '"REMOVE #data, outbox"',
        '"REMOVE #data"',
        (),
        CORE_TESTS,
    ),
    Mutant(
        "a new token for each resend",
        STORE,
        "return call(**request)",
        'return call(**request | ({"ClientRequestToken": f"{resends}"} if "TransactItems" in request else {}))',
        (),
        CORE_TESTS,
    ),
    Mutant(
        "take a cancelled transaction for done",
        STORE,
        """            except _Refused as refused:
                if 0 in refused.images:
                    return recognise""",
        """            except NotWritten:
                return False
            except _Refused as refused:
                if 0 in refused.images:
                    return recognise""",
        (),
        CORE_TESTS,
    ),
    Mutant(
        "take a conflict for done",
        STORE,
        """    if any(code in _CONFLICT for code in codes):
        return Conflict(str(codes)), True
    if any""",
        """    if any(code in _CONFLICT for code in codes):
        raise _Refused({n: images.get(n) for n in range(1, items)})
    if any""",
        ("order", "email"),
        CORE_TESTS,
    ),
    Mutant(
        "take a refusal by the row for done whatever the row says",
        STORE,
        """                    if error := left[position - 1].judge(row):
                        raise error from refused""",
        "                    left[position - 1].judge(row)",
        (),
        CORE_TESTS,
    ),
    Mutant(
        "not know one's own claim again",
        STORE,
        """            if text(image, "owner") == owner:
                return claim_of(image, key)""",
        """            if text(image, "owner") == owner and not owner:
                return claim_of(image, key)""",
        (),
        CORE_TESTS,
    ),
    Mutant(
        "take somebody else's completed record for one's own commit",
        STORE,
        'if text(image, "owner") != claim.owner or text(image, "status") != COMPLETED:',
        'if text(image, "status") != COMPLETED:',
        ("payment", "email"),
        CORE_TESTS,
    ),
    Mutant(
        "write the order outside the record's transaction",
        STORE,
        """            try:
                self._send(self.client.transact_write_items, request, deadline_ms)
            except _Refused as refused:""",
        """            try:
                for entry in request["TransactItems"][::-1]:
                    self._send(self.client.transact_write_items, {"TransactItems": [entry]}, deadline_ms)
            except _Refused as refused:""",
        ("payment",),
        CORE_TESTS,
    ),
    Mutant(
        "publish outside the transaction",
        STORE,
        """                self._send(self.client.transact_write_items, request, deadline_ms)
            except""",
        """                whole = str(request).find("outbox")
                late = dict(record.get("Put", {}).get("Item", {}))
                if whole > 0 and late:
                    del record["Put"]["Item"]["outbox"]
                self._send(self.client.transact_write_items, request, deadline_ms)
                if whole > 0 and late:
                    self.client.put_item(TableName=self.table, Item=late)
            except""",
        ("order", "chain"),
        CORE_TESTS,
    ),
    Mutant(
        "one owner for the whole process",
        ENGINE,
        "default=lambda: os.urandom(16).hex()",
        'default=lambda: "worker"',
        ("email", "payment"),
        CORE_TESTS,
    ),
    Mutant(
        "a lease of zero",
        ENGINE,
        "return deadline_ms + int(self.skew_s * 1000)",
        "return self.clock.now_ms()",
        ("email", "payment"),
        CORE_TESTS,
    ),
    Mutant(
        "a lease that ends with the deadline",
        ENGINE,
        "return deadline_ms + int(self.skew_s * 1000)",
        "return deadline_ms",
        (),
        CORE_TESTS,
    ),
    Mutant(
        "release after an ambiguous error",
        ENGINE,
        "        except (NotDone, Permanent) as error:",
        "        except (NotDone, Permanent, Unknown) as error:",
        ("email",),
        CORE_TESTS,
    ),
    Mutant(
        "forget a refused request whatever came before it",
        ENGINE,
        "forget = not claim.uncertain or isinstance(error, KeyReused)",
        "forget = True",
        (),
        CORE_TESTS,
    ),
    Mutant(
        "hold the key for a false request whose earlier try died",
        ENGINE,
        "forget = not claim.uncertain or isinstance(error, KeyReused)",
        "forget = not claim.uncertain",
        ("payment-another",),
        CORE_TESTS,
    ),
    Mutant(
        "take an unexpected error for nothing done",
        ENGINE,
        '            unknown = Unknown(f"{type(error).__name__} in {step.operation}")',
        '            unknown = NotDone(f"{type(error).__name__} in {step.operation}")',
        (),
        CORE_TESTS,
    ),
    Mutant(
        "leave no note where the order row refused the effect's state",
        ENGINE,
        "except (StoreError, EffectWithoutState) as error:",
        "except StoreError as error:",
        (),
        CORE_TESTS,
    ),
    Mutant(
        "read the time once per process",
        STORE,
        """        Raises KeyReused, Damaged, Busy; StoreError where no answer came before the deadline (epoch ms).
        \"""
        now_ms = self.clock.now_ms()""",
        """        Raises KeyReused, Damaged, Busy; StoreError where no answer came before the deadline (epoch ms).
        \"""
        now_ms = globals().setdefault("_started_ms", self.clock.now_ms())""",
        ("email",),
        CORE_TESTS,
    ),
    Mutant(
        "acknowledge busy",
        BATCH,
        "job.retry_in_s = max(free_in_s, _delay_s(consumer, job))",
        "job.retry_in_s = None",
        ("email", "payment"),
        CORE_TESTS,
    ),
    Mutant(
        "acknowledge what is to be retried",
        BATCH,
        """            job.counts[telemetry.LEASE_LOST] += 1
        job.counts[telemetry.TAKEOVER]""",
        """            job.counts[telemetry.LEASE_LOST] += 1
        job.retry_in_s = None
        return
        job.counts[telemetry.TAKEOVER]""",
        ("payment",),
        CORE_TESTS,
    ),
    Mutant(
        "acknowledge a step whose outcome is unknown",
        BATCH,
        "job.retry_in_s = max(job.retry_in_s or 0, _seconds_until(consumer, consumer.engine.lease_end(deadline_ms)))",
        "job.retry_in_s = None",
        ("email", "payment"),
        CORE_TESTS,
    ),
    Mutant(
        "acknowledge although parking failed",
        BATCH,
        """    parking.park(consumer.sqs, consumer.dlq_url, job.record, error.reason, consumer.clock.now_ms())
    job.counts[telemetry.PARKED] += 1
    job.counts[telemetry.TAKEOVER] += error.uncertain
    job.retry_in_s = None""",
        """    with __import__("contextlib").suppress(Exception):
        parking.park(consumer.sqs, consumer.dlq_url, job.record, error.reason, consumer.clock.now_ms())
    job.retry_in_s = None""",
        (),
        CORE_TESTS,
    ),
    Mutant(
        "return from the batch runner while a step runs",
        BATCH,
        """    with ThreadPoolExecutor(max_workers=min(consumer.concurrency, len(chains)) or 1) as pool:
        futures = [pool.submit(_run_chain, step, consumer, chain, keys, deadline_ms) for chain in chains]
    for future in futures:
        future.result()""",
        """    pool = ThreadPoolExecutor(max_workers=min(consumer.concurrency, len(chains)) or 1)
    for chain in chains:
        pool.submit(_run_chain, step, consumer, chain, keys, deadline_ms)
    return
    for future in ():
        future.result()""",
        ("order-batch",),
        CORE_TESTS,
    ),
    Mutant(
        "report the first failure of a batch only",
        BATCH,
        "failed = [job for job in jobs if job.retry_in_s is not None]",
        "failed = [job for job in jobs if job.retry_in_s is not None][:1]",
        ("order-batch",),
        CORE_TESTS,
    ),
    Mutant(
        "start a step that has no time",
        BATCH,
        "    if left_s < consumer.step_needs_s:",
        "    if left_s < 0:",
        (),
        CORE_TESTS,
    ),
    Mutant(
        "confirm the intent that was just made, not the one on the row",
        PAYMENT,
        "if standing == created.id and not attempt.uncertain:",
        "if not attempt.uncertain:",
        ("payment-forgetful",),
        PAYMENT_TESTS,
    ),
    Mutant(
        "fix the intent's id over another",
        REPOSITORY,
        "#state = :placed AND attribute_not_exists(intent_id)",
        "#state = :placed",
        ("payment",),
        ("tests/unit/orders", *PAYMENT_TESTS),
    ),
    Mutant(
        "skip the order row's guard: settle from any state",
        WRITES,
        '"#state = :placed AND intent_id = :intent"',
        '"(#state = :placed OR attribute_exists(order_id)) AND intent_id = :intent"',
        (),
        ("tests/unit/orders", *PAYMENT_TESTS),
    ),
    Mutant(
        "skip the order row's guard: settle by any intent",
        WRITES,
        '"#state = :placed AND intent_id = :intent"',
        '"#state = :placed AND (intent_id = :intent OR attribute_exists(order_id))"',
        (),
        ("tests/unit/orders", *PAYMENT_TESTS),
    ),
    Mutant(
        "skip the order row's guard: place an order that is there",
        WRITES,
        'condition, conditioned = "attribute_not_exists(order_id)", {}',
        'condition, conditioned = "attribute_not_exists(order_id) OR attribute_exists(order_id)", {}',
        ("order",),
        ("tests/unit/orders", "tests/unit/order"),
    ),
    Mutant(
        "drop the provider's key for a new intent",
        PROVIDER,
        '{"idempotency_key": key},',
        "{},",
        (),
        PAYMENT_TESTS,
    ),
    Mutant(
        "use an answer of the provider unchecked",
        PROVIDER,
        "        if wrong := mismatch(what, intent, order, intent_id):",
        "        if (wrong := mismatch(what, intent, order, intent_id)) and not intent:",
        ("payment-other-create", "payment-other-retrieve", "payment-other-confirm", "payment-other-cancel"),
        PAYMENT_TESTS,
    ),
    Mutant(
        "believe the status of a created intent",
        PAYMENT,
        '        if created.status != "requires_confirmation":',
        '        if created.status == "no status":',
        (),
        PAYMENT_TESTS,
    ),
    Mutant(
        "believe a succeeded intent without its charge",
        TROUBLES,
        "(received or not succeeded)",
        "(received or True)",
        (),
        PAYMENT_TESTS,
    ),
    Mutant(
        "wait forever for an intent that the provider does not know",
        PROVIDER,
        "            if attempt.number < MISSING_ATTEMPTS:",
        "            if attempt.number:",
        (),
        PAYMENT_TESTS,
    ),
    Mutant(
        "leave a declined intent open",
        PAYMENT,
        "        intent = provider().cancel(order, intent, attempt)",
        '        intent = __import__("dataclasses").replace(intent, status="canceled")',
        (),
        PAYMENT_TESTS,
    ),
    Mutant(
        "settle by an intent that is not terminal",
        PAYMENT,
        '    if intent.status == "canceled":',
        '    if intent.status != "succeeded":',
        (),
        PAYMENT_TESTS,
    ),
    Mutant(
        "take a lost answer of the provider for nothing done",
        TROUBLES,
        "        return NotDone(text)\n    return Unknown(text)",
        "        return NotDone(text)\n    return NotDone(text)",
        (),
        PAYMENT_TESTS,
    ),
    Mutant(
        "take a lost answer of SES for not sent",
        SES,
        "        raise Unknown(type(error).__name__) from error",
        "        raise NotDone(type(error).__name__) from error",
        ("email",),
        ("tests/unit/email",),
    ),
    Mutant(
        "mail again although the row says mailed",
        EMAIL,
        "        if order.mailed_at:",
        "        if order.mailed_at is None and order.mailed_at:",
        (),
        ("tests/unit/email",),
    ),
    Mutant(
        "mark an order mailed without the mail's own condition",
        WRITES,
        '"#state = :told AND attribute_not_exists(mailed_at)"',
        '"#state = :told"',
        (),
        ("tests/unit/orders", "tests/unit/email"),
    ),
    Mutant(
        "relay: drop what the queue refused",
        RELAY,
        "                    left.append(post)",
        "                    pass",
        ("relay",),
        ("tests/unit/relay",),
    ),
    Mutant(
        "relay: call the batch done when time runs out",
        RELAY,
        '        raise NotRelayed(f"{left_s:.1f} s left")',
        "        raise SystemExit",
        (),
        ("tests/unit/relay",),
    ),
    Mutant(
        "relay: take a lost answer for sent",
        SENDING,
        """    except BotoCoreError as error:
        return dict.fromkeys(batch, Refusal(type(error).__name__, for_good=False))""",
        "    except BotoCoreError:\n        return {}",
        (),
        ("tests/unit/relay",),
    ),
    Mutant(
        "a new id for each emission of an event",
        "shared/idempotency/events.py",
        '        return f"{self.subject}/{self.type}"',
        "        return f\"{self.subject}/{self.type}/{__import__('uuid').uuid4()}\"",
        ("relay",),
        ("tests/unit/idempotency", "tests/unit/orders"),
    ),
    Mutant(
        "API: call an order accepted whose outcome is unknown",
        PLACING,
        "        raise _problem(error) from error",
        """        if isinstance(error, OutcomeUnknown):
            return Response(202, "application/json", "{}", {})
        raise _problem(error) from error""",
        (),
        ("tests/unit/api",),
    ),
)
