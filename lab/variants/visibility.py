"""Shorten the visibility timeout of all queues, by the same rule in every variant.

A deployment hides a message for six timeouts of its function, as AWS advises for functions that are throttled. Nothing
throttles a function on a laptop. One timeout plus the clock skew is the least that hides a message from others while
its worker runs.
"""

from collections.abc import Iterable

from tools.local.local_deployment import LocalDeployment

from lab.variants import Variant

FUNCTION_OF = {"Orders": "Order", "Payments": "Payment", "Emails": "Email"}
ROUNDED_S = 1


def shorten_visibility(running: LocalDeployment, variants: Iterable[Variant]) -> dict[str, int]:
    """Set the visibility timeout of all queues. Returns the seconds by queue, which are the same in each variant."""
    sqs, functions = running.client("sqs"), running.client("lambda")
    seconds: dict[str, int] = {}
    for variant in variants:
        outputs = variant.of(running).outputs
        for queue, function in FUNCTION_OF.items():
            configuration = functions.get_function_configuration(FunctionName=outputs[f"{function}FunctionName"])
            skew_s = float(configuration["Environment"]["Variables"]["LEASE_SKEW_S"])
            seconds[queue] = int(configuration["Timeout"] + skew_s) + ROUNDED_S
            url = outputs[f"{queue}QueueUrl"]
            sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": str(seconds[queue])})
    return seconds
