"""What a copier does first: add a stage to the pipeline."""

from pathlib import Path

import pytest
from aws_cdk import Stack

from stacks.constructs.queue_consumer import QueueConsumer
from stacks.constructs.senders import Relay
from stacks.settings import settings_from
from stacks.stateful import StatefulStack
from stacks.times import Calls, SettingsError
from tests.stacks.synth import new_app, read

SETTINGS = settings_from(lambda _: None)


def test_a_new_stage_is_one_line_and_all_the_rest_is_derived(tmp_path: Path) -> None:
    app = new_app(tmp_path, "local")
    data, pipeline = StatefulStack(app, "new-stateful", SETTINGS), Stack(app, "new-pipeline")

    QueueConsumer(
        pipeline,
        "shipping",
        "shipments",
        settings=SETTINGS,
        data=data,
        takes=["order.packed"],
        calls=Calls(aws=2),
        may=[],
    )

    found = read(app, tmp_path, "local")
    queue = found.one("AWS::SQS::Queue", "Shipments/Queue")
    assert queue["VisibilityTimeout"] == 18
    assert queue["RedrivePolicy"] == {"deadLetterTargetArn": "<Shipments/Dlq.Arn>", "maxReceiveCount": 32}
    function = found.one("AWS::Lambda::Function", "Shipments/ShippingFunction")
    assert function["Timeout"] == 3
    assert function["Handler"] == "functions.shipping.handler.handler"
    assert found.environment("Shipments/ShippingFunction")["STEP_NEEDS_S"] == "1.2"
    assert set(found.outputs()) >= {"ShipmentsQueueUrl", "ShipmentsDlqUrl", "ShippingFunctionName"}


def test_an_event_that_two_stages_take_is_refused_naming_both(tmp_path: Path) -> None:
    app = new_app(tmp_path, "local")
    data, pipeline = StatefulStack(app, "new-stateful", SETTINGS), Stack(app, "new-pipeline")
    both = [
        QueueConsumer(
            pipeline, name, f"{name}s", settings=SETTINGS, data=data, takes=["order.paid"], calls=Calls(), may=[]
        )
        for name in ("email", "parcel")
    ]
    with pytest.raises(SettingsError, match=r"order\.paid is taken by Emails and by Parcels"):
        Relay(pipeline, settings=SETTINGS, data=data, consumers=both)
