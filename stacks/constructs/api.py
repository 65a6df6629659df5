"""The HTTP API: two routes, signed requests only."""

from aws_cdk import CfnOutput, RemovalPolicy, Stack
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk import aws_apigatewayv2_authorizers as authorizers
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_logs as logs
from aws_cdk.aws_apigateway import AccessLogFormat
from constructs import Construct

from stacks.constructs.endpoints import api_url
from stacks.constructs.function import AppFunction, allow, step_environment
from stacks.settings import Settings
from stacks.stateful import StatefulStack
from stacks.times import Calls, require

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
        timing = settings.times.timing(Calls(aws=2))  # the write and, where it is refused, a look at the row
        require(
            timing.timeout_s < GIVES_UP_S,
            f"the API's function may take {timing.timeout_s} s, an HTTP API gives up after {GIVES_UP_S} s",
        )
        self.function = AppFunction(
            self,
            "api",
            settings=settings,
            timeout_s=timing.timeout_s,
            environment=step_environment(
                settings, timing, idempotency=data.idempotency.table_name, orders=data.orders.table_name
            ),
            may=[
                allow(data.idempotency.table_arn, "dynamodb:PutItem"),
                allow(data.orders.table_arn, "dynamodb:PutItem", "dynamodb:GetItem"),
            ],
        )
        api = apigatewayv2.HttpApi(
            self,
            "Orders",
            create_default_stage=False,
            default_authorizer=authorizers.HttpIamAuthorizer(),
        )
        ours = integrations.HttpLambdaIntegration("Function", self.function)
        api.add_routes(path="/orders", methods=[apigatewayv2.HttpMethod.POST], integration=ours)
        api.add_routes(path="/orders/{id}", methods=[apigatewayv2.HttpMethod.GET], integration=ours)
        access_log = logs.LogGroup(
            self,
            "AccessLog",
            retention=logs.RetentionDays[settings.log_retention],
            removal_policy=RemovalPolicy.RETAIN if settings.keep_data else RemovalPolicy.DESTROY,
        )
        apigatewayv2.HttpStage(
            self,
            "Stage",
            http_api=api,
            auto_deploy=True,
            throttle=apigatewayv2.ThrottleSettings(rate_limit=settings.api_rate, burst_limit=settings.api_burst),
            access_log_settings={
                "destination": apigatewayv2.LogGroupLogDestination(access_log),
                "format": AccessLogFormat.custom(Stack.of(self).to_json_string(ACCESS_LOG)),
            },
        )
        CfnOutput(Stack.of(self), "ApiUrl", value=api_url(api, settings.endpoint))
