"""What the functions ask AWS for, as IAM sees it: each request as actions on resources, by function."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Params = Mapping[str, Any]


class Use(NamedTuple):
    """A right that a function used. The resource by the name that it has where the functions ran."""

    function: str
    action: str
    resource: str


def _queue(params: Params) -> str:
    return "queue " + str(params["QueueUrl"]).rsplit("/", 1)[1]


def _table(params: Params) -> str:
    index = f"/index/{params['IndexName']}" if "IndexName" in params else ""
    return f"table {params['TableName']}{index}"


def _object(params: Params) -> str:
    return f"bucket {params['Bucket']}/{params['Key']}"


def _identity(params: Params) -> str:
    return f"identity {params['FromEmailAddress']}"


def _secret(params: Params) -> str:
    return "secret " + str(params["SecretId"]).rpartition(":")[2].rpartition("-")[0]


# Requests whose action is called otherwise, or is on something else than a table. IAM knows no batches of SQS.
# https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsqs.html
REQUESTS: dict[str, tuple[str, Callable[[Params], str]]] = {
    "sqs.SendMessage": ("sqs:SendMessage", _queue),
    "sqs.SendMessageBatch": ("sqs:SendMessage", _queue),
    "sqs.ChangeMessageVisibility": ("sqs:ChangeMessageVisibility", _queue),
    "sqs.ChangeMessageVisibilityBatch": ("sqs:ChangeMessageVisibility", _queue),
    "s3.PutObject": ("s3:PutObject", _object),
    "sesv2.SendEmail": ("ses:SendEmail", _identity),
    "secrets-manager.GetSecretValue": ("secretsmanager:GetSecretValue", _secret),
    "dynamodb.GetItem": ("dynamodb:GetItem", _table),
    "dynamodb.PutItem": ("dynamodb:PutItem", _table),
    "dynamodb.UpdateItem": ("dynamodb:UpdateItem", _table),
    "dynamodb.DeleteItem": ("dynamodb:DeleteItem", _table),
    "dynamodb.Query": ("dynamodb:Query", _table),
}
# A transaction is no action: each of its items is judged as the request that it stands for.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html
ITEMS = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}


def rights(request: str, params: Params) -> Iterator[tuple[str, str]]:
    """Actions and resources of a request (`dynamodb.GetItem`); one that is not known here is an action of its own."""
    if request == "dynamodb.TransactWriteItems":
        for item in params["TransactItems"]:
            ((kind, write),) = item.items()
            yield f"dynamodb:{ITEMS[kind]}", _table(write)
        return
    action, resource_of = REQUESTS.get(request, (request.replace(".", ":"), lambda _: "?"))
    yield action, resource_of(params)


@dataclass
class Wiretap:
    """Listens to clients, and knows which function is at work."""

    uses: set[Use] = field(default_factory=set)
    running: str | None = None  # a test's own requests are nobody's

    def during(self, function: str | None, handler: Callable[..., Any]) -> Callable[..., Any]:
        """The handler, with what it asks for put down to the function. They run one at a time, or one in another."""

        def call(*given: Any) -> Any:
            before, self.running = self.running, function
            try:
                return handler(*given)
            finally:
                self.running = before

        return call

    @contextmanager
    def on(self, client: Any, function: str | None = None) -> Iterator[None]:
        """Listen to a client; `function` is whose it is where it belongs to one alone."""

        def hear(params: Params, event_name: str, **_: Any) -> None:
            asks = function or self.running
            if asks:
                request = event_name.removeprefix("before-parameter-build.")
                self.uses |= {Use(asks, *right) for right in rights(request, params)}

        client.meta.events.register("before-parameter-build", hear)
        try:
            yield
        finally:
            client.meta.events.unregister("before-parameter-build", hear)
