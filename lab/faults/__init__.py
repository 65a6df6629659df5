"""Faults, injected on purpose and from outside: no line of the code that suffers them knows. Never in production."""
