"""What a copier does first: add a stage to the pipeline."""

import json
from pathlib import Path

from aws_cdk import App, Stack
from aws_cdk.assertions import Annotations, Match

from stacks.constructs.queue_consumer import QueueConsumer
from stacks.constructs.senders import Relay, Sweep
from stacks.settings import settings_from
from stacks.stateful import StatefulStack
from stacks.times import NO_GUARD, RequestBudget
from tests.harness.synth import new_app, read
from tests.stacks.test_functions import allowed

SETTINGS = settings_from(lambda _: None)


def with_surveys(outdir: Path, no_guard: str | None = None) -> tuple[App, Stack]:
    """Return an app with one new stage, and the stage's stack."""
    app = new_app(outdir, "local")
    data, pipeline = StatefulStack(app, "new-stateful", SETTINGS), Stack(app, "new-pipeline")
    QueueConsumer(
        pipeline,
        "survey",
        "surveys",
        settings=SETTINGS,
        data=data,
        consumes=["order.reviewed"],
        calls=RequestBudget(aws=2),
        permissions=[],
        no_guard=no_guard,
    )
    return app, pipeline


def test_a_new_stage_is_one_line_and_all_the_rest_is_derived(tmp_path: Path) -> None:
    app, _ = with_surveys(tmp_path)

    found = read(app, tmp_path, "local")
    queue = found.one("AWS::SQS::Queue", "Surveys/Queue")
    assert queue["VisibilityTimeout"] == 30
    assert queue["RedrivePolicy"] == {"deadLetterTargetArn": "<Surveys/Dlq.Arn>", "maxReceiveCount": 32}
    function = found.one("AWS::Lambda::Function", "Surveys/SurveyFunction")
    assert function["Timeout"] == 5
    assert function["Handler"] == "functions.survey.handler.handler"
    assert found.environment("Surveys/SurveyFunction")["STEP_NEEDS_S"] == "1.2"
    assert found.environment("Surveys/SurveyFunction")["RESERVE_S"] == "2.05"
    assert set(found.outputs()) >= {"SurveysQueueUrl", "SurveysDlqUrl", "SurveyFunctionName"}


def test_relay_and_sweep_send_an_event_to_every_stage_that_consumes_it(tmp_path: Path) -> None:
    app = new_app(tmp_path, "local")
    data, pipeline = StatefulStack(app, "new-stateful", SETTINGS), Stack(app, "new-pipeline")
    consumers = [
        QueueConsumer(
            pipeline, name, queue, settings=SETTINGS, data=data, consumes=types, calls=RequestBudget(), permissions=[]
        )
        for name, queue, types in (
            ("email", "emails", ["order.paid"]),
            ("survey", "surveys", ["order.paid", "order.reviewed"]),
        )
    ]
    for sender in (Relay, Sweep):
        sender(pipeline, settings=SETTINGS, data=data, consumers=consumers)

    found = read(app, tmp_path, "local")
    assert json.loads(found.environment("Relaying/RelayFunction")["ROUTES"]) == {
        "order.paid": "<Emails/Queue> <Surveys/Queue>",
        "order.reviewed": "<Surveys/Queue>",
    }
    assert json.loads(found.environment("Sweeping/SweepFunction")["ROUTES"]) == {
        "order.paid": "<Emails/Queue> <Surveys/Queue>"
    }
    both = {"<Emails/Queue.Arn>", "<Surveys/Queue.Arn>"}
    assert both & set(allowed(found, "relay")) == both
    assert both & set(allowed(found, "sweep")) == both


def test_a_step_without_a_guard_is_a_warning_of_every_synthesis(tmp_path: Path) -> None:
    app, pipeline = with_surveys(tmp_path, no_guard="the survey service cannot be asked")

    [warning] = Annotations.from_stack(pipeline).find_warning("*", Match.any_value())
    assert "The step has no guard: the survey service cannot be asked." in str(warning.entry.data)
    function = read(app, tmp_path, "local").metadata("Surveys/SurveyFunction")
    assert function[NO_GUARD] == "the survey service cannot be asked"
