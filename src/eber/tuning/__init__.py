"""What leaving training environments out decides: settings, weights of a pool, how far a new environment may differ."""
