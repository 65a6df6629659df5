"""Side-by-side measurements: `make bench`. Each figure runs the real code and checks what it did."""
