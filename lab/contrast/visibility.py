"""Brings a dead worker's messages back sooner than in a deployment, in every lane alike.

A deployment hides a message for six timeouts of its function, as AWS advises for functions that are throttled; nothing
throttles a laptop's. One timeout and the skew of two clocks is the least at which no running worker loses its message.
"""

from collections.abc import Iterable

from tools.local.running import Running

from lab.demo.lanes import Lane

FUNCTION_OF = {"Orders": "Order", "Payments": "Payment", "Emails": "Email"}
ROUNDED_S = 1


def bring_back_sooner(running: Running, lanes: Iterable[Lane]) -> dict[str, int]:
    """Set it on all queues. Answers the seconds, by queue; they are the same in each lane."""
    sqs, functions = running.client("sqs"), running.client("lambda")
    seconds: dict[str, int] = {}
    for lane in lanes:
        outputs = lane.of(running).outputs
        for queue, function in FUNCTION_OF.items():
            configuration = functions.get_function_configuration(FunctionName=outputs[f"{function}FunctionName"])
            skew_s = float(configuration["Environment"]["Variables"]["LEASE_SKEW_S"])
            seconds[queue] = int(configuration["Timeout"] + skew_s) + ROUNDED_S
            url = outputs[f"{queue}QueueUrl"]
            sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": str(seconds[queue])})
    return seconds
