"""Helpers for tests: the request interceptor, builders of events and records, functions on moto, kills."""
