"""Injected faults: a plan from a seed, a wrapper around handlers, a table and a journal."""
