"""The promises of docs/promises.md, kept: faults, bad input, extreme numbers, statistics, saved models.

The default suite runs a short version with fixed seeds; ``make trust`` runs the same code with larger counts and prints
the figures of the page.
"""
