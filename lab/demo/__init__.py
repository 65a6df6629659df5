"""The demo: a local AWS with all variants, orders, faults and kills, and an audit."""
