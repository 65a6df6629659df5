"""A payment provider to try things on: Stripe's wire protocol over its own ledger. Not for production."""
