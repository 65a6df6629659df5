"""A long run of this repository and the naive variant, in legs that can be resumed."""
