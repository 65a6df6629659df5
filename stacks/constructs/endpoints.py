"""URLs that a client can resolve. The local AWS serves APIs and function URLs under paths of its endpoint."""

from aws_cdk import Fn
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk import aws_lambda as lambda_


def api_url(api: apigatewayv2.HttpApi, endpoint: str | None) -> str:
    """Return the URL of the API, without a slash at the end."""
    return f"{endpoint}/_aws/execute-api/{api.api_id}/$default" if endpoint else api.api_endpoint


def function_url(url: lambda_.FunctionUrl, endpoint: str | None) -> str:
    """Return the URL of the function, without a slash at the end: the SDK of the provider adds one."""
    host = Fn.select(2, Fn.split("/", url.url))
    return f"{endpoint}/_aws/lambda-url/{Fn.select(0, Fn.split('.', host))}" if endpoint else f"https://{host}"
