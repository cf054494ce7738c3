"""``python -m tests.trust.fuzzing [--minutes M] [--out FOLDER] [TARGET ...]``: the targets one after the other.

An input may take 30 seconds and the process 2 GB. An input that ends the process all the same is tried alone in a new
one: what ends that too is a finding, and otherwise the process had grown old. Ends with 1 where there are findings.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

from tests.trust.fuzzing.targets import TARGETS

LIMITS = ["-timeout=30", "-rss_limit_mb=2048", "-malloc_limit_mb=1024", "-max_len=60000", "-print_final_stats=1"]


def fuzz(target: str, seconds: float, out: Path) -> tuple[int, int, list[Path]]:
    """Inputs tried, edges of the code reached, and findings."""
    out.mkdir(parents=True, exist_ok=True)
    corpus, end = out / "corpus", time.monotonic() + seconds
    tried = edges = number = 0
    while (left := end - time.monotonic()) > 1:
        number += 1
        log = out / f"run-{number}.log"
        options = [f"-max_total_time={int(left)}", f"-artifact_prefix={out}/ended-{number}-"]
        with log.open("wb") as file:
            _run(target, [*LIMITS, *options], corpus, file)
        text = log.read_text(errors="replace")
        tried += max([0, *map(int, re.findall(r"^#(\d+)\t", text, re.MULTILINE))])
        edges = max([edges, *map(int, re.findall(r"cov: (\d+)", text))])
        for ended in sorted(out.glob(f"ended-{number}-*")):
            if not _ends_again(target, ended, out):
                ended.unlink()
    return tried, edges, [path for path in _findings(out) if not path.name.endswith(".txt")]


def _findings(out: Path) -> list[Path]:
    return [*sorted((out / "findings").glob("*")), *sorted(out.glob("ended-*"))]


def _run(target: str, options: list[str], corpus: Path, log: IO[bytes]) -> int:
    with tempfile.TemporaryDirectory(dir=corpus.parent) as scratch:
        command = [sys.executable, "-m", "tests.trust.fuzzing.fuzz", target, scratch, *options, str(corpus)]
        return subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False).returncode


def _ends_again(target: str, ended: Path, out: Path) -> bool:
    with (out / "again.log").open("ab") as log:
        return _run(target, [*LIMITS, "-runs=1"], ended, log) != 0


def main() -> int:
    """Print a line for each target."""
    parser = argparse.ArgumentParser(prog="python -m tests.trust.fuzzing", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--minutes", type=float, default=20, help="for each target")
    parser.add_argument("--out", type=Path, default=Path("fuzzing"), help="corpus, logs and findings")
    arguments = parser.parse_args()
    if unknown := set(arguments.targets) - set(TARGETS):
        parser.error(f"there is no target {', '.join(sorted(unknown))}")
    found = False
    for target in arguments.targets or TARGETS:
        tried, edges, findings = fuzz(target, 60 * arguments.minutes, arguments.out / target)
        print(f"{target}: {tried:,} inputs, {edges:,} edges, {len(findings)} findings", flush=True)
        for finding in findings:
            print(f"  {finding}", flush=True)
        found = found or bool(findings)
    return int(found)


if __name__ == "__main__":
    sys.exit(main())
