"""The commands behind make, and what they share."""
