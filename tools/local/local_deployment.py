"""A deployed application on the local AWS, and clients for it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from tools.local import processes
from tools.local.gateway import LOCAL_KEY, TOKEN_VARIABLE
from tools.local.ministack import aws_environment


@dataclass(frozen=True)
class LocalDeployment:
    """A deployed application on the local AWS. `tmp` holds the folders of this AWS's workers.

    `token` is the session token that this local AWS requires.
    """

    endpoint: str
    outputs: dict[str, str]
    tmp: Path
    token: str = field(default="", repr=False)

    @property
    def environment(self) -> dict[str, str]:
        """The variables that a client needs."""
        return aws_environment(self.endpoint, self.token)

    @property
    def local_key(self) -> dict[str, str]:
        """The header of requests to `/_ministack/...`."""
        return {LOCAL_KEY: self.token}

    @property
    def session(self) -> Any:  # Any: the stubs know a client by its literal name only
        """A boto3 session with the credentials of this local AWS. It ignores the AWS settings of the caller."""
        environment = self.environment
        return boto3.session.Session(
            aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
            aws_session_token=environment[TOKEN_VARIABLE],
            region_name=environment["AWS_REGION"],
        )

    def client(self, service: str) -> Any:
        """Return a boto3 client of this local AWS."""
        config = Config(connect_timeout=2, read_timeout=20, max_pool_connections=32)
        return self.session.client(service, endpoint_url=self.endpoint, config=config)

    def workers(self, function_name: str) -> list[int]:
        """Return the pids of the function's running workers."""
        return processes.find(f"{self.tmp}/ministack-lambda-{function_name}-")
