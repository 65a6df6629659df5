"""Has payment sandboxes' workers start before the first payment: a cold one takes longer than a client waits."""

import urllib.request
from concurrent.futures import ThreadPoolExecutor

from tools.local.errors import LocalStackError
from tools.local.running import Running

WITHIN_S = 30.0
SANDBOX = "PaymentSandboxUrl"


def warm_up(running: Running) -> None:
    """Ask each as often at once as payments may run at once. Raises LocalStackError if one does not answer."""
    for name, url in running.outputs.items():
        if name.endswith(SANDBOX):
            _warm_up(f"{url}/v1/charges?limit=1", payments_at_once(running, name.removesuffix(SANDBOX)))


def _warm_up(url: str, at_once: int) -> None:
    request = urllib.request.Request(url, headers={"Authorization": "Bearer sk_test_warm_up"})  # noqa: S310 - loopback

    def ask(_: int) -> None:
        urllib.request.urlopen(request, timeout=WITHIN_S).close()  # noqa: S310

    try:
        with ThreadPoolExecutor(at_once) as clients:
            list(clients.map(ask, range(at_once)))
    except OSError as error:
        raise LocalStackError(f"The payment sandbox does not answer at {url}: {error}") from error


def payments_at_once(running: Running, prefix: str) -> int:
    """The records of a batch in each of the workers that the queue's mapping may start. Ours has no prefix."""
    (mapping,) = running.client("lambda").list_event_source_mappings(
        FunctionName=running.outputs[f"{prefix}PaymentFunctionName"]
    )["EventSourceMappings"]
    return int(mapping["BatchSize"]) * int(mapping["ScalingConfig"]["MaximumConcurrency"])
