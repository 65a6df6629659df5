"""Addresses that a client can resolve. The one place that knows the emulated AWS has other ones."""

from aws_cdk import Fn
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk import aws_lambda as lambda_

# Host names under amazonaws.com and on.aws do not lead to the emulator; it serves both under paths of its own.


def api_url(api: apigatewayv2.HttpApi, endpoint: str | None) -> str:
    """Without a slash at the end."""
    return f"{endpoint}/_aws/execute-api/{api.api_id}/$default" if endpoint else api.api_endpoint


def function_url(url: lambda_.FunctionUrl, endpoint: str | None) -> str:
    """Without a slash at the end, which the provider's SDK would double."""
    host = Fn.select(2, Fn.split("/", url.url))
    return f"{endpoint}/_aws/lambda-url/{Fn.select(0, Fn.split('.', host))}" if endpoint else f"https://{host}"
