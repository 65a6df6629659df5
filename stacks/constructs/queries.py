"""Saved queries of CloudWatch Logs Insights. Each reads the logs of all functions of the pipeline.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/CWL_QuerySyntax.html
"""

from collections.abc import Sequence

from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks.settings import Settings

ORDER = "ORDER_ID"  # to be replaced by the id of an order

STORY = (
    *("@timestamp", "service", "message", "outcome", "state", "status", "reason", "detail", "error"),
    *("attempt", "uncertain", "receive_count", "event_id", "correlation_id"),
)

QUERIES = {
    "duplicates by correlation id": (
        'filter message = "replayed" or outcome = "replayed"',
        "stats count(*) as replays, min(@timestamp) as first, max(@timestamp) as last by correlation_id, service",
        "sort replays desc",
    ),
    "the story of one order": (
        f'filter key = "{ORDER}" or key like /#{ORDER}$/ or order_id = "{ORDER}" or event_id like "{ORDER}/"',
        f"fields {', '.join(STORY)}",
        "sort @timestamp asc",
        "limit 1000",
    ),
    "takeovers": (
        "filter uncertain = 1",  # Logs Insights writes true as 1
        "fields @timestamp, service, operation, key, attempt, message, receive_count, correlation_id",
        "sort @timestamp desc",
    ),
    "parked messages by reason": (
        'filter message = "parked"',
        "stats count(*) as parked, min(@timestamp) as first, max(@timestamp) as last by operation, reason",
        "sort parked desc",
    ),
}


class Queries(Construct):
    def __init__(self, scope: Construct, *, settings: Settings, log_groups: Sequence[logs.ILogGroup]) -> None:
        super().__init__(scope, "Queries")
        for name, lines in QUERIES.items():
            logs.CfnQueryDefinition(
                self,
                "".join(word.capitalize() for word in name.split()),
                name=f"effectively-once/{settings.stage}/{name}",
                query_string="\n| ".join(lines),
                log_group_names=[group.log_group_name for group in log_groups],
            )
