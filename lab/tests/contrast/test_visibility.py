"""A dead worker's message is back after one timeout, the skew and a second, and never while a worker may have it."""

from typing import Any

from lab.contrast.visibility import bring_back_sooner
from lab.demo.lanes import NAIVE, OURS

TIMEOUTS = {"order": 3, "payment": 15, "email": 12}


class Aws:
    """Functions with their timeouts, and queues whose visibility can be set."""

    def __init__(self) -> None:
        names = ("Order", "Payment", "Email")
        outputs = {f"{name}FunctionName": name.lower() for name in names}
        outputs |= {f"{name}sQueueUrl": f"{name.lower()}s" for name in names}
        self.outputs = {f"{prefix}{name}": value for prefix in ("", "Naive") for name, value in outputs.items()}
        self.set: list[tuple[str, str]] = []

    def client(self, _: str) -> "Aws":
        return self

    def get_function_configuration(self, **asked: str) -> dict[str, Any]:
        return {"Timeout": TIMEOUTS[asked["FunctionName"]], "Environment": {"Variables": {"LEASE_SKEW_S": "1"}}}

    def set_queue_attributes(self, **asked: Any) -> None:
        self.set.append((asked["QueueUrl"], asked["Attributes"]["VisibilityTimeout"]))


def test_it_is_the_same_in_every_lane(monkeypatch: Any) -> None:
    aws: Any = Aws()
    monkeypatch.setattr(type(OURS), "of", lambda *_: aws)
    assert bring_back_sooner(aws, [OURS, NAIVE]) == {"Orders": 5, "Payments": 17, "Emails": 14}
    assert aws.set == [("orders", "5"), ("payments", "17"), ("emails", "14")] * 2
