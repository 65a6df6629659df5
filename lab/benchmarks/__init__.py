"""Measurements side by side: `make bench`. Each figure runs the real code and checks its effects."""
