"""The three steps with Powertools' idempotency utility, set up as its documentation advises.

Copies of an order run once, and the claim of a dead worker expires. A decorator around a function cannot complete in
one transaction with the order row and the next event, and cannot tell the next attempt that this one is in doubt.
"""
