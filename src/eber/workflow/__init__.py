"""What the command line does, as functions: each takes plain arguments and returns a value that shows itself."""
