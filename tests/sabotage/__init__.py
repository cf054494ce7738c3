"""Every promise of docs/promises.md broken on purpose, to see that its test fails then.

A sabotage is a mistake that a programmer might make, as data: see `sabotage.py`. ``python -m tests.sabotage`` makes
each of them in a copy of the tree and runs the promise's test there.
"""
