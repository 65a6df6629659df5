"""The API function as deployed."""

from tests.harness.api_fixtures import api

__all__ = ["api"]
