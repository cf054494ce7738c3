"""``python -m tests.sabotage [SUBSTRING]``: break every promise, and see that its test fails.

With a substring, only the sabotages in whose test or sentence it stands, or that are of the section of this name.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.sabotage.catalogue import SABOTAGES, SECTIONS
from tests.sabotage.isolated_run import Outcome, copied_tree, run_test
from tests.sabotage.sabotage import Sabotage

MEMORY = 1 << 36
"""Bytes that a process may ask for: a mistake that fills the memory must not fill the machine's."""
AT_ONCE = 2
"""Tests at once, as in `make test`."""


def main(wanted: str) -> int:
    """Try the sabotages, say what came of each, and return how many went unnoticed."""
    section = next((section.SABOTAGES for section in SECTIONS if section.__name__.endswith(f".{wanted}")), ())
    chosen = [s for s in SABOTAGES if s in section or (not section and (wanted in s.test or wanted in s.broken))]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.RLIM_INFINITY))
    start, unnoticed = time.monotonic(), 0
    by_test: dict[str, list[Sabotage]] = {}
    for sabotage in chosen:
        by_test.setdefault(sabotage.test, []).append(sabotage)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for said, missed in pool.map(try_all, by_test.values()):
            print(said, flush=True)
            unnoticed += missed
    promises = {sabotage.promise for sabotage in chosen}
    minutes = (time.monotonic() - start) / 60
    print(f"\n{len(chosen)} sabotages of {len(promises)} promises, {unnoticed} unnoticed, in {minutes:.1f} minutes")
    return unnoticed


def try_all(sabotages: Sequence[Sabotage]) -> tuple[str, int]:
    """What came of the sabotages of one test, and how many of them went unnoticed."""
    test = sabotages[0].test
    with copied_tree() as root:
        untouched = run_test(test, root)
    said, unnoticed = f"\n{test}\n  {_row(untouched, untouched.kind, 'with nothing broken')}", 0
    for sabotage in sabotages:
        with copied_tree(sabotage) as root:
            outcome = run_test(test, root)
        noticed = untouched.kind == "passed" and outcome.kind == "failed"
        unnoticed += not noticed
        said += f"\n  {_row(outcome, 'noticed' if noticed else 'UNNOTICED', sabotage.broken)}"
        said += f"\n  {'':<19}{outcome.kind}: {outcome.reason[:120]}"
    return said, unnoticed


def _row(outcome: Outcome, word: str, what: str) -> str:
    return f"{word:<9} {outcome.seconds:5.1f} s  {what}"


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1] if len(sys.argv) > 1 else "")))
