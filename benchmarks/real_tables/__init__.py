"""What `compare` finds on ten real tables, and what knowing environments buys there; docs/real-tables.md shows it."""
