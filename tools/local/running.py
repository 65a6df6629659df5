"""A deployed app and how to reach it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from tools.local import processes
from tools.local.ministack import aws_environment


@dataclass(frozen=True)
class Running:
    """A deployed app and how to reach it. `tmp` holds the workers' folders of this local AWS and of no other."""

    endpoint: str
    outputs: dict[str, str]
    tmp: Path

    @property
    def environment(self) -> dict[str, str]:
        return aws_environment(self.endpoint)

    def client(self, service: str) -> Any:
        """A boto3 client of this local AWS, whatever the caller's own AWS settings say."""
        environment = self.environment
        session: Any = boto3.session.Session(  # Any: the stubs know a client by its literal name only
            aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
            region_name=environment["AWS_REGION"],
        )
        config = Config(connect_timeout=2, read_timeout=20, max_pool_connections=32)
        return session.client(service, endpoint_url=self.endpoint, config=config)

    def workers(self, function_name: str) -> list[int]:
        """The pids of the function's running workers."""
        return processes.find(f"{self.tmp}/ministack-lambda-{function_name}-")
