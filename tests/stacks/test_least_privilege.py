"""Each function may do what its code does on some path, what Lambda does in its name, and nothing else.

The real handlers are driven through every path (every_path.py), and what they ask AWS for is compared with the
policies of the synthesised templates, both ways. moto judges no rights, so this does not show that AWS reads a policy
as we do. MiniStack with AUTH=true would be a second reader, since it judges each request by the function's role; but
it knows no mapping of a batch to its action: it refuses SendMessageBatch under a grant of sqs:SendMessage, which AWS
allows, so the relay would need a right there that it must not have. It finds a right that is missing, on the paths
that a run takes, and never one too many.
"""

from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase

import pytest

from tests.harness.every_path import EveryPath
from tests.harness.synth import SECRET_ARN, Synthesised
from tests.harness.wiretap import Use
from tests.stacks.test_functions import allowed

# What no code of ours asks for: by whom it is used, and where AWS says that it is needed.
POLLS_A_QUEUE = {
    # https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html#events-sqs-permissions
    "sqs:ReceiveMessage": "the mapping fetches messages in the function's name",
    "sqs:DeleteMessage": "… takes off what is done",
    "sqs:GetQueueAttributes": "… and watches how much there is",
}
POLLS_A_STREAM = {
    # https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html
    "dynamodb:DescribeStream": "the mapping finds the shards in the function's name",
    "dynamodb:GetShardIterator": "… where it was in each",
    "dynamodb:GetRecords": "… and reads on",
    "dynamodb:ListStreams": "… Lambda refuses to make a mapping without it",
}
LOGS = {
    # https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs.html
    "logs:CreateLogStream": "Lambda writes the function's log in its name, a stream for each worker",
    "logs:PutLogEvents": "… line by line",
}
TRACES = {
    # https://docs.aws.amazon.com/lambda/latest/dg/services-xray.html; X-Ray has no resources to name
    "xray:PutTraceSegments": "Lambda sends the function's traces in its name",
    "xray:PutTelemetryRecords": "… and how that went",
}

Right = tuple[str, str]  # action, resource


def in_its_name(found: Synthesised, function: str) -> dict[Right, str]:
    """What Lambda does with the function's role, and why."""
    logs = found.functions[function].removesuffix("Function") + "Logs"
    rights = {f"<{logs}.Arn>": LOGS, "*": TRACES}
    for consumer in found.consumers:
        if consumer.function == function:
            rights[f"<{consumer.path}/Queue.Arn>"] = POLLS_A_QUEUE
    if function == "relay":
        rights["<Idempotency.StreamArn>"] = POLLS_A_STREAM
    return {(action, resource): why for resource, actions in rights.items() for action, why in actions.items()}


def deployed_as(found: Synthesised) -> Mapping[str, str]:
    """Where the functions ran → what it stands for in the stage's templates."""
    queues = {
        f"queue {consumer.queue}{ending}": f"<{consumer.path}/{kind}.Arn>"
        for consumer in found.consumers
        for ending, kind in (("", "Queue"), ("-dlq", "Dlq"))
    }
    return queues | {
        "queue relay-dlq": "<Relaying/Failures.Arn>",
        "table idempotency": "<Idempotency.Arn>",
        "table orders": "<Orders.Arn>",
        "table orders/index/open-orders": "<Orders.Arn>/index/open-orders",
        "table ledger": "<Ledger.Arn>",
        "secret ours": SECRET_ARN if found.stage == "prod" else "<ApiKey>",
        "secret theirs": "<ApiKey>",
        "identity shop@example.com": "arn:<AWS::Partition>:ses:<AWS::Region>:<AWS::AccountId>:identity/<Sender>",
    }


def used(uses: set[Use], function: str, found: Synthesised) -> set[Right]:
    """What the function's own code asked for."""

    known = deployed_as(found)

    def arn(resource: str) -> str:
        if resource.startswith("bucket receipts/"):
            return f"<Receipts.Arn>/{resource.removeprefix('bucket receipts/')}"
        return known.get(resource, resource)

    return {(use.action, arn(use.resource)) for use in uses if use.function == function}


def faults(function: str, granted: set[Right], used: set[Right]) -> Iterator[str]:
    """Rights that are granted and not used, or used and not granted."""

    def covers(grant: Right, right: Right) -> bool:
        return grant[0] == right[0] and fnmatchcase(right[1], grant[1])

    for grant in granted:
        if not any(covers(grant, right) for right in used):
            yield f"{function} is granted and never uses {grant[0]} on {grant[1]}"
    for right in used:
        if not any(covers(grant, right) for grant in granted):
            yield f"{function} uses and is not granted {right[0]} on {right[1]}"


@pytest.mark.parametrize("stage", ["prod", "sandbox"])
def test_a_function_is_granted_exactly_what_is_used_of_it(
    synthesised: Callable[[str], Synthesised], every_path: EveryPath, stage: str
) -> None:
    found, told = synthesised(stage), list[str]()
    assert len(found.functions) > len(found.consumers) >= 3
    for function in found.functions:
        granted = {(action, on) for on, actions in allowed(found, function).items() for action in actions}
        told += faults(function, granted, used(every_path.uses, function, found) | set(in_its_name(found, function)))

    if told:
        pytest.fail("\n".join(sorted(told)))


def test_a_right_too_many_and_a_right_too_few_are_both_told_by_function_action_and_resource() -> None:
    granted = {("s3:PutObject", "<Receipts.Arn>/receipts/*"), ("s3:GetObject", "<Receipts.Arn>/receipts/*")}
    used = {("s3:PutObject", "<Receipts.Arn>/receipts/ord_1.html"), ("s3:PutObject", "<Receipts.Arn>/ord_1.html")}

    assert list(faults("email", granted, used)) == [
        "email is granted and never uses s3:GetObject on <Receipts.Arn>/receipts/*",
        "email uses and is not granted s3:PutObject on <Receipts.Arn>/ord_1.html",
    ]


def test_no_function_uses_a_right_that_lambda_uses_in_its_name_too(sandbox: Synthesised, every_path: EveryPath) -> None:
    for function in sandbox.functions:
        assert not used(every_path.uses, function, sandbox) & set(in_its_name(sandbox, function))
