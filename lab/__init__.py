"""Demonstrations and measurements. Nothing outside this folder imports it, so it can be deleted."""
