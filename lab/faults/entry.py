"""The other entry point of a function, in its handler's stead: the real one, with faults around it."""

import importlib
import os
from typing import Any

import boto3
from botocore.config import Config

from lab.faults.arm import Faults
from lab.faults.journal import journaled
from lab.faults.worker import Handler, Setup, Worker


def _named(path: str) -> Handler:
    module, _, name = path.rpartition(".")
    found: Handler = getattr(importlib.import_module(module), name)
    return found


_config = Config(connect_timeout=1, read_timeout=2)
_dynamodb: Any = boto3.client("dynamodb", config=_config)
_sqs: Any = boto3.client("sqs", config=_config)

_setup = Setup.of(os.environ)

handler: Handler = Worker(
    _named(os.environ["FAULTS_HANDLER"]), Faults(_dynamodb, os.environ["FAULTS_TABLE"]), _sqs, _setup
)
if "FAULTS_JOURNAL" in os.environ:  # on a laptop
    handler = journaled(handler, os.environ["FAULTS_JOURNAL"], _setup.lane, _setup.function)
