"""Queues with a customer managed key: functions that receive or send must be allowed to use the key.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
"""

from collections.abc import Iterator
from typing import Any

from stacks.checks.model import Finding, Model, Resource, listed, unknown, within
from stacks.checks.wiring import FUNCTION, QUEUE, Statement, consumed_queues, role_of, statements

AWS_MANAGED = "alias/aws/"


def queue_keys_are_granted(model: Model) -> Iterator[Finding]:
    """kms:Decrypt for consumers; kms:GenerateDataKey and kms:Decrypt for senders, also to DLQs and failure queues.

    The role or the key policy grants them. The policy of a key outside the app is unknown, so the role must grant them.
    """
    consumers = {(source.function, queue) for queue, source in consumed_queues(model)}
    for queue in model.of_type(QUEUE):
        key_id = queue.get("KmsMasterKeyId")
        if key_id is None or str(key_id).startswith(AWS_MANAGED) or f":{AWS_MANAGED}" in str(key_id):
            continue
        for function in model.of_type(FUNCTION):
            role = role_of(model, function)
            if role is None:
                continue
            allowed = list(statements(model, role))
            needed = {"kms:Decrypt"} if (function, queue) in consumers else set()
            if any(s.allows("sqs:SendMessage") and _covers(model, s, queue) for s in allowed):
                needed |= {"kms:Decrypt", "kms:GenerateDataKey"}
            allowed += _of_key_policy(model, key_id, role)
            missing = {action for action in needed if not _granted(model, allowed, action, key_id)}
            if missing:
                uses = "reads" if (function, queue) in consumers else "sends to"
                yield Finding(
                    function.path,
                    f"{uses} {queue.path}, which is encrypted with {model.show(key_id)}, "
                    f"and may not {' or '.join(sorted(missing))}",
                    "SQS refuses each receive or send: messages expire in the queue, and no message can be parked.",
                    f"Allow the role of the function {', '.join(sorted(missing))} on the key.",
                )


def _covers(model: Model, statement: Statement, queue: Resource) -> bool:
    return any(resource == "*" or model.find(resource) == queue for resource in statement.resources)


def _granted(model: Model, allowed: list[Statement], action: str, key_id: Any) -> bool:
    key = _key(model, key_id)
    for statement in allowed:
        if not statement.allows(action):
            continue
        for resource in statement.resources:
            if resource == "*" or resource == key_id or (key and _key(model, resource) == key):
                return True
            if str(resource).endswith(f"/{key_id}"):  # the ARN of a literal key id
                return True
            if key is None and model.find(resource) is None and unknown(resource) and unknown(key_id):
                return True  # both are outside the app, and may be the same key
    return False


def _key(model: Model, value: Any) -> Resource | None:
    """Return the key that a reference, an ARN or an alias refers to."""
    found = model.find(value)
    if found and found.type == "AWS::KMS::Alias":
        found = model.find(found.get("TargetKeyId"))
    return found if found and found.type == "AWS::KMS::Key" else None


def _of_key_policy(model: Model, key_id: Any, role: Resource) -> list[Statement]:
    """Return the statements of the key policy that name the role. A statement for the account grants nothing."""
    key = _key(model, key_id)
    return [
        Statement(role, tuple(listed(within(s, "Action"))), ("*",), None, inverted=False)
        for s in listed(key.get("KeyPolicy", "Statement") if key else None)
        if within(s, "Effect") == "Allow" and role in map(model.find, listed(within(s, "Principal", "AWS")))
    ]


CHECKS = (queue_keys_are_granted,)
