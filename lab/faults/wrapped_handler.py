"""The entry point of a wrapped function: its real handler, with faults around it."""

import importlib
import os
from typing import Any

import boto3
from botocore.config import Config

from lab.faults.fault_table import FaultTable
from lab.faults.journal import journaled
from lab.faults.worker import Handler, Setup, Worker


def _load(path: str) -> Handler:
    module, _, name = path.rpartition(".")
    handler_function: Handler = getattr(importlib.import_module(module), name)
    return handler_function


_config = Config(connect_timeout=1, read_timeout=2)
_dynamodb: Any = boto3.client("dynamodb", config=_config)
_sqs: Any = boto3.client("sqs", config=_config)

_setup = Setup.of(os.environ)

handler: Handler = Worker(
    _load(os.environ["FAULTS_HANDLER"]), FaultTable(_dynamodb, os.environ["FAULTS_TABLE"]), _sqs, _setup
)
if "FAULTS_JOURNAL" in os.environ:  # on a laptop
    handler = journaled(handler, os.environ["FAULTS_JOURNAL"], _setup.variant, _setup.function)
