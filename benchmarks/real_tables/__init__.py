"""What `compare` finds on real tables, and what knowing environments buys there; docs/real-tables.md shows it."""
