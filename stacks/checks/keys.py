"""Queues under a customer's key: who reads or sends must be allowed to use it.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
"""

from collections.abc import Iterator
from typing import Any

from stacks.checks.model import Finding, Model, Resource, listed, unknown, within
from stacks.checks.wiring import FUNCTION, QUEUE, Statement, consumed_queues, role_of, statements

OF_AWS = "alias/aws/"


def queue_keys_are_granted(model: Model) -> Iterator[Finding]:
    """kms:Decrypt for consumers; kms:GenerateDataKey and kms:Decrypt for whoever sends, DLQ and failure queue included.

    Granted by the role or by the key's own policy. Of a key outside the app only the role is seen, so it must be there.
    """
    consumers = {(source.function, queue) for queue, source in consumed_queues(model)}
    for queue in model.of_type(QUEUE):
        key_id = queue.get("KmsMasterKeyId")
        if key_id is None or str(key_id).startswith(OF_AWS) or f":{OF_AWS}" in str(key_id):
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
                    "Each receive or send is refused: messages wait until they expire, and nothing can be parked.",
                    f"Allow its role {', '.join(sorted(missing))} on the key.",
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
            if str(resource).endswith(f"/{key_id}"):  # a literal key id, and its ARN
                return True
            if key is None and model.find(resource) is None and unknown(resource) and unknown(key_id):
                return True  # both outside the app: may be the same
    return False


def _key(model: Model, value: Any) -> Resource | None:
    """The key that a reference, an ARN or an alias leads to."""
    found = model.find(value)
    if found and found.type == "AWS::KMS::Alias":
        found = model.find(found.get("TargetKeyId"))
    return found if found and found.type == "AWS::KMS::Key" else None


def _of_key_policy(model: Model, key_id: Any, role: Resource) -> list[Statement]:
    """What the key's policy allows the role by name; that it lets the account decide grants nothing by itself."""
    key = _key(model, key_id)
    return [
        Statement(role, tuple(listed(within(s, "Action"))), ("*",), None, inverted=False)
        for s in listed(key.get("KeyPolicy", "Statement") if key else None)
        if within(s, "Effect") == "Allow" and role in map(model.find, listed(within(s, "Principal", "AWS")))
    ]


CHECKS = (queue_keys_are_granted,)
