"""Tables, queues and clients on moto."""

from tests.harness.moto_world import world

__all__ = ["world"]
