"""The paper's experiments, one file each, declared as data."""
