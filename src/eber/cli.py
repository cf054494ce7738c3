"""The `eber` command."""
