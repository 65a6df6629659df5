"""What an order costs: counted from a run of the real handlers, priced with one dated table."""
