"""EBER's default objective with its gradient by hand; `eber.objectives.eber` is its readable judge."""
