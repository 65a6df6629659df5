"""A payment provider for tests and demonstrations: Stripe's wire protocol over its own ledger. Not for production."""
