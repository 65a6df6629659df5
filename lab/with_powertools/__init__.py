"""The three steps with Powertools' idempotency utility, set up as its documentation advises.

It is good at what it is for: copies of an order, in whatever messages, are done once, and a dead worker's claim
lapses. What is left is what a decorator around a function can not do: complete in one transaction with the order's
row and the next event, and tell the next try that this one may have had its effect. README.md has the list, with
tests.
"""
