"""Simulations with their oracles, loaders of the real data, downloads."""
