"""The HTTP API: two routes that accept signed requests only."""

import json

from aws_cdk import ArnFormat, CfnOutput, Fn, Stack
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk import aws_apigatewayv2_authorizers as authorizers
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks.constructs.function import AppFunction, allow, step_environment
from stacks.settings import Settings
from stacks.stateful import StatefulStack, removal_policy
from stacks.times import RequestBudget

INTEGRATION_TIMEOUT_S = 30  # the maximum of an HTTP API, which then answers with an error itself

# Request, result and latency. No IP address, no caller, and the route instead of the path: no personal data.
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
        # The transaction, and a second one without the writes that are already applied.
        calls = RequestBudget(aws=2)
        timing = settings.times.timing(calls, limit_s=INTEGRATION_TIMEOUT_S - 1)
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
        self.function.describe_step(calls)
        self.http = api = apigatewayv2.HttpApi(
            self,
            "Orders",
            create_default_stage=False,
            default_authorizer=authorizers.HttpIamAuthorizer(),
        )
        integration = integrations.HttpLambdaIntegration("Function", self.function)
        api.add_routes(path="/orders", methods=[apigatewayv2.HttpMethod.POST], integration=integration)
        api.add_routes(path="/orders/{id}", methods=[apigatewayv2.HttpMethod.GET], integration=integration)
        stack = Stack.of(self)
        # For names with this prefix, AWS keeps one statement in the account's log resource policy. Any other name adds
        # a statement, and the policy has a maximum size. The stack id in the name avoids a conflict with a log group
        # that an earlier stack retained.
        # https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/AWS-logs-and-resource-policy.html
        unique = Fn.select(2, Fn.split("/", stack.stack_id))
        access_log = logs.LogGroup(
            self,
            "AccessLog",
            log_group_name=f"/aws/vendedlogs/{stack.stack_name}/{unique}",
            retention=logs.RetentionDays[settings.log_retention],
            removal_policy=removal_policy(settings),
        )
        apigatewayv2.CfnStage(  # the L1 resource: the L2 stage does not accept log settings from Python
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
                    arn_format=ArnFormat.COLON_RESOURCE_NAME,  # the ARN attribute of the log group ends with `:*`
                ),
                "format": json.dumps(ACCESS_LOG),
            },
        )
        CfnOutput(stack, "ApiUrl", value=_url(api, settings.endpoint))


def _url(api: apigatewayv2.HttpApi, endpoint: str | None) -> str:
    """Return the URL of the API, without a slash at the end. The local AWS serves it under a path."""
    return f"{endpoint}/_aws/execute-api/{api.api_id}/$default" if endpoint else api.api_endpoint
