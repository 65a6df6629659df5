"""Finds a deployed stage: what its stacks put out, what its functions are told, and clients that reach it."""

import functools
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.config import Config
from botocore.exceptions import ClientError

from tools import deployed
from tools.account import Stop, current_account
from tools.local import state
from tools.local.errors import LocalStackError

RELAY = "relay"  # its failure queue has no source: nothing of it is redriven
PROVIDER = "payment_sandbox"  # outside the pipeline: it is asked itself, and no log of its own is read
# An operator can wait; botocore sends again what was throttled, slower each time.
CONFIG = Config(connect_timeout=5, read_timeout=30, retries={"mode": "standard", "total_max_attempts": 6})


@dataclass(frozen=True, eq=False)
class Deployment:
    """A deployed stage. `where` says to a person which one it is."""

    stage: str
    where: str
    outputs: Mapping[str, str]
    session: Any
    endpoint: str | None = None

    @functools.cache  # noqa: B019 - one deployment a process
    def client(self, service: str) -> Any:
        """A boto3 client."""
        return self.session.client(service, endpoint_url=self.endpoint, config=CONFIG)

    def output(self, name: str) -> str:
        """Raises Stop where the stacks have no such output."""
        if name not in self.outputs:
            raise Stop(f"The stacks of stage {self.stage} have no output {name}: deploy this version first.")
        return self.outputs[name]

    @property
    def queues(self) -> Sequence[str]:
        """The pipeline's queues: each has its address and its DLQ's among the outputs. Raises Stop where none has."""
        found = [title.lower() for title in self._titles("QueueUrl") if f"{title}DlqUrl" in self.outputs]
        if not found:
            raise Stop(f"The stacks of stage {self.stage} put out no queues: deploy this version first.")
        return found

    @property
    def functions(self) -> Sequence[str]:
        """The pipeline's functions, called as their folders are."""
        names = [re.sub(r"(?<!^)(?=[A-Z])", "_", title).lower() for title in self._titles("FunctionName")]
        return [name for name in names if name != PROVIDER]

    def require_queue(self, queue: str) -> None:
        """Raises Stop where the stage has no such queue, naming those that it has."""
        if queue not in self.queues:
            raise Stop(f"Stage {self.stage} has no queue {queue!r}. QUEUE={'|'.join(self.queues)}")

    def queue_url(self, queue: str) -> str:
        """Of a source queue."""
        self.require_queue(queue)
        return self.output(f"{queue.capitalize()}QueueUrl")

    def dlq_url(self, queue: str) -> str:
        """Of a queue's DLQ; of the relay's failure queue."""
        if queue == RELAY:
            return self.told(RELAY)["DLQ_URL"]
        self.require_queue(queue)
        return self.output(f"{queue.capitalize()}DlqUrl")

    @functools.cache  # noqa: B019
    def configuration(self, function: str) -> Mapping[str, Any]:
        """Of `functions/<function>`, as Lambda has it."""
        title = "".join(word.capitalize() for word in function.split("_"))
        name = self.output(f"{title}FunctionName")
        found: Mapping[str, Any] = self.client("lambda").get_function_configuration(FunctionName=name)
        return found

    def told(self, function: str) -> Mapping[str, str]:
        """The function's environment: what the stage's settings came to."""
        found: Mapping[str, str] = self.configuration(function)["Environment"]["Variables"]
        return found

    def _titles(self, ending: str) -> Sequence[str]:
        return sorted(name.removesuffix(ending) for name in self.outputs if name.endswith(ending))

    @property
    def routes(self) -> Mapping[str, str]:
        """Queue URLs by event type, of the events that an order may wait for."""
        found: Mapping[str, str] = json.loads(self.told("sweep")["ROUTES"])
        return found


def find(stage: str) -> Deployment:
    """The stage's stacks; for `local` those of `make up`, unless the environment names an endpoint.

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
        raise Stop(f"The stacks can not be asked for: {error}") from None
    if not outputs:
        raise Stop(f"There are no stacks of stage {stage} in account {account.account}, region {account.region}{at}.")
    return Deployment(stage, f"{stage} in {account.name}{at}", outputs, account.session)
