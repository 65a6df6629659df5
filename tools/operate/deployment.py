"""A deployed stage: its outputs, the environment of its functions, and clients and readers for it."""

import functools
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.config import Config
from botocore.exceptions import ClientError

from shared.orders import KeyUnusable, parse_api_key
from tools import deployed
from tools.account import Stop, current_account
from tools.domain import PROVIDER
from tools.ledger import Ledger
from tools.local import state
from tools.local.ministack import LocalStackError
from tools.tables import Tables

RELAY = "relay"  # its failure queue has no source queue, so its messages cannot be redriven
# An operator can wait: botocore repeats throttled requests, more slowly each time.
CONFIG = Config(connect_timeout=5, read_timeout=30, retries={"mode": "standard", "total_max_attempts": 6})


@dataclass(frozen=True, eq=False)
class Deployment:
    """A deployed stage. `where` names it for a person."""

    stage: str
    where: str
    outputs: Mapping[str, str]
    session: Any
    endpoint: str | None = None

    @functools.cache  # noqa: B019 - one deployment a process
    def client(self, service: str) -> Any:
        """Return a boto3 client."""
        return self.session.client(service, endpoint_url=self.endpoint, config=CONFIG)

    def output(self, name: str) -> str:
        """Return an output of the stacks. Raises Stop if there is no such output."""
        if name not in self.outputs:
            raise Stop(f"The stacks of stage {self.stage} have no output {name}: deploy this version first.")
        return self.outputs[name]

    @property
    def queues(self) -> Sequence[str]:
        """The queues of the pipeline: those with a URL and a DLQ's URL in the outputs. Raises Stop if there is none."""
        found = [title.lower() for title in self._titles("QueueUrl") if f"{title}DlqUrl" in self.outputs]
        if not found:
            raise Stop(f"The stacks of stage {self.stage} have no queues in their outputs: deploy this version first.")
        return found

    @property
    def functions(self) -> Sequence[str]:
        """The functions of the pipeline, named as their folders."""
        names = [re.sub(r"(?<!^)(?=[A-Z])", "_", title).lower() for title in self._titles("FunctionName")]
        return [name for name in names if name != PROVIDER]

    def _titles(self, ending: str) -> Sequence[str]:
        return sorted(name.removesuffix(ending) for name in self.outputs if name.endswith(ending))

    def require_queue(self, queue: str) -> None:
        """Raise Stop with the names of all queues if the stage has no such queue."""
        if queue not in self.queues:
            raise Stop(f"Stage {self.stage} has no queue {queue!r}. QUEUE={'|'.join(self.queues)}")

    def queue_url(self, queue: str) -> str:
        """Return the URL of a source queue."""
        self.require_queue(queue)
        return self.output(f"{queue.capitalize()}QueueUrl")

    def dlq_url(self, queue: str) -> str:
        """Return the URL of a queue's DLQ, or of the relay's failure queue."""
        if queue == RELAY:
            return self.environment(RELAY)["DLQ_URL"]
        self.require_queue(queue)
        return self.output(f"{queue.capitalize()}DlqUrl")

    @functools.cache  # noqa: B019
    def configuration(self, function: str) -> Mapping[str, Any]:
        """Return Lambda's configuration of `functions/<function>`."""
        title = "".join(word.capitalize() for word in function.split("_"))
        name = self.output(f"{title}FunctionName")
        found: Mapping[str, Any] = self.client("lambda").get_function_configuration(FunctionName=name)
        return found

    def environment(self, function: str) -> Mapping[str, str]:
        """Return the environment variables of a function."""
        variables: Mapping[str, str] = self.configuration(function)["Environment"]["Variables"]
        return variables

    @property
    def routes(self) -> Mapping[str, str]:
        """The queue URLs by event type, for the events that an order can wait for."""
        routes: Mapping[str, str] = json.loads(self.environment("sweep")["ROUTES"])
        return routes

    def tables(self) -> Tables:
        """Return a reader of the two tables."""
        return Tables(
            self.client("dynamodb"), orders=self.output("OrdersTableName"), records=self.output("IdempotencyTableName")
        )

    def ledger(self) -> Ledger:
        """Return a reader of the provider's ledger, with the address and the key of the payment function.

        Raises Stop if the secret holds no key.
        """
        variables = self.environment("payment")
        secret = self.client("secretsmanager").get_secret_value(SecretId=variables["PROVIDER_SECRET_ARN"])
        try:
            return Ledger(variables["PROVIDER_URL"], parse_api_key(secret))
        except KeyUnusable as unusable:
            raise Stop(f"The provider's secret cannot be used: {unusable}.") from None


def find(stage: str) -> Deployment:
    """Return a stage by its stacks. `local` is what `make up` started, unless AWS_ENDPOINT_URL is set.

    Raises Stop saying what is missing.
    """
    if stage == "local" and not os.environ.get("AWS_ENDPOINT_URL"):
        try:
            running = state.running()
        except LocalStackError as error:
            raise Stop(f"{error} For an account: STAGE=sandbox or STAGE=prod.") from None
        return Deployment("local", f"local at {running.endpoint}", running.outputs, running.session, running.endpoint)
    account = current_account()
    at = f" at {endpoint}" if (endpoint := os.environ.get("AWS_ENDPOINT_URL")) else ""
    try:
        outputs = deployed.outputs(account.session.client("cloudformation", config=CONFIG), stage)
    except ClientError as error:
        raise Stop(f"Cannot read the stacks of stage {stage}: {error}") from None
    if not outputs:
        raise Stop(f"There are no stacks of stage {stage} in account {account.account}, region {account.region}{at}.")
    return Deployment(stage, f"{stage} in {account.name}{at}", outputs, account.session)
