"""The cost of an order: counted in a run of the real handlers, priced with one dated table."""
