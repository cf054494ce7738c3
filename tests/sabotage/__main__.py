"""``python -m tests.sabotage [SUBSTRING]``: break every promise, and see that its test fails.

With a substring, only the sabotages in whose test or sentence it stands, or that are of the section of this name.
"""

from __future__ import annotations

import resource
import sys
import time

from tests.sabotage.catalogue import SABOTAGES, SECTIONS
from tests.sabotage.isolated_run import copied_tree, run_test

MEMORY = 1 << 36
"""Bytes that a process may ask for: a mistake that fills the memory must not fill the machine's."""


def main(wanted: str) -> int:
    """Try the sabotages, say what came of each, and return how many went unnoticed."""
    section = next((section.SABOTAGES for section in SECTIONS if section.__name__.endswith(f".{wanted}")), ())
    chosen = [s for s in SABOTAGES if s in section or (not section and (wanted in s.test or wanted in s.broken))]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.RLIM_INFINITY))
    start, unnoticed = time.monotonic(), 0
    for test in dict.fromkeys(sabotage.test for sabotage in chosen):
        with copied_tree() as root:
            untouched = run_test(test, root)
        print(f"\n{test}\n  {untouched.kind:<9} {untouched.seconds:5.1f} s  with nothing broken  {untouched.reason}")
        for sabotage in chosen:
            if sabotage.test != test:
                continue
            with copied_tree(sabotage) as root:
                outcome = run_test(test, root)
            noticed = untouched.kind == "passed" and outcome.kind == "failed"
            unnoticed += not noticed
            print(f"  {'noticed' if noticed else 'UNNOTICED':<9} {outcome.seconds:5.1f} s  {sabotage.broken}")
            print(f"  {'':<19}{outcome.kind}: {outcome.reason[:120]}", flush=True)
    promises = {sabotage.promise for sabotage in chosen}
    minutes = (time.monotonic() - start) / 60
    print(f"\n{len(chosen)} sabotages of {len(promises)} promises, {unnoticed} unnoticed, in {minutes:.1f} minutes")
    return unnoticed


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1] if len(sys.argv) > 1 else "")))
