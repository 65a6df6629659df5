"""The HTTP API: two routes, signed requests only."""

import json

from aws_cdk import ArnFormat, CfnOutput, Fn, RemovalPolicy, Stack
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk import aws_apigatewayv2_authorizers as authorizers
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks.constructs.endpoints import api_url
from stacks.constructs.function import AppFunction, allow, step_environment
from stacks.settings import Settings
from stacks.stateful import StatefulStack
from stacks.times import RequestBudget

GIVES_UP_S = 30  # an HTTP API answers for its function after this long, and can not be told otherwise

# Which request, what came of it, how long it took: no address, no caller, and the route instead of the path.
ACCESS_LOG = {
    name: f"$context.{name}"
    for name in (
        "requestId",
        "requestTimeEpoch",
        "routeKey",
        "status",
        "responseLatency",
        "integrationErrorMessage",
        "authorizer.error",
    )
}


class Api(Construct):
    def __init__(self, scope: Construct, *, settings: Settings, data: StatefulStack) -> None:
        super().__init__(scope, "Http")
        # The transaction, and once more without the writes whose facts hold already.
        calls = RequestBudget(aws=2)
        timing = settings.times.timing(calls, limit_s=GIVES_UP_S - 1)
        self.function = AppFunction(
            self,
            "api",
            settings=settings,
            timeout_s=timing.timeout_s,
            environment=step_environment(
                settings, timing, idempotency=data.idempotency.table_name, orders=data.orders.table_name
            ),
            permissions=[
                allow(data.idempotency.table_arn, "dynamodb:PutItem"),
                allow(data.orders.table_arn, "dynamodb:PutItem", "dynamodb:GetItem"),
            ],
        )
        self.function.add_calls_metadata(calls)
        self.http = api = apigatewayv2.HttpApi(
            self,
            "Orders",
            create_default_stage=False,
            default_authorizer=authorizers.HttpIamAuthorizer(),
        )
        ours = integrations.HttpLambdaIntegration("Function", self.function)
        api.add_routes(path="/orders", methods=[apigatewayv2.HttpMethod.POST], integration=ours)
        api.add_routes(path="/orders/{id}", methods=[apigatewayv2.HttpMethod.GET], integration=ours)
        stack = Stack.of(self)
        # Under this prefix one grant of AWS's to itself does for all groups; else each new name makes the account's
        # policy longer, until it is full. The stack's own id in it, so that a group that was kept is in nobody's way.
        # https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/AWS-logs-and-resource-policy.html
        unique = Fn.select(2, Fn.split("/", stack.stack_id))
        access_log = logs.LogGroup(
            self,
            "AccessLog",
            log_group_name=f"/aws/vendedlogs/{stack.stack_name}/{unique}",
            retention=logs.RetentionDays[settings.log_retention],
            removal_policy=RemovalPolicy.RETAIN if settings.keep_data else RemovalPolicy.DESTROY,
        )
        apigatewayv2.CfnStage(  # the plain resource, since the CDK's own takes no log settings from Python
            self,
            "Stage",
            api_id=api.api_id,
            stage_name="$default",
            auto_deploy=True,
            default_route_settings={
                "throttlingRateLimit": settings.api_rate,
                "throttlingBurstLimit": settings.api_burst,
            },
            access_log_settings={
                "destinationArn": stack.format_arn(
                    service="logs",
                    resource="log-group",
                    resource_name=access_log.log_group_name,
                    arn_format=ArnFormat.COLON_RESOURCE_NAME,  # without the `:*` of the group's own ARN attribute
                ),
                "format": json.dumps(ACCESS_LOG),
            },
        )
        CfnOutput(stack, "ApiUrl", value=api_url(api, settings.endpoint))
