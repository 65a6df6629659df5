"""Tables, queues and clients on moto, for every unit test."""

from tests.harness.moto_world import world

__all__ = ["world"]
