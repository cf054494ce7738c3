"""A scientist's own table: reading it, finding its columns, and turning them into features."""
