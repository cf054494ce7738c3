"""``python -m benchmarks.scale --rows 100000000 --folder DISK``: a table larger than memory, prepared and fitted.

Parquet files sorted by environment are written in chunks, prepared by `eber.prepare_table` and fitted by
`eber.fit_table`, three passes, each in a process of its own whose anonymous memory is watched. What comes out is
compared with a fit in memory of a tenth of the rows, by its NLL in environments that no fit has seen, and by rows a
second. Figures are kept in the folder after each step: stopped, the same command goes on with the step that is next.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eber.datasets.parametric import ParametricParameters, draw

COLUMNS, ENVIRONMENTS, PASSES = 20, 50, 3
FILE_ROWS, GROUP_ROWS, TEST_ROWS = 1_000_000, 250_000, 50_000
PERIOD = 0.1
"""Seconds between two looks at a process."""

PREPARE = """
import sys, eber
if __name__ == "__main__":
    eber.prepare_table(sys.argv[1], sys.argv[2], label="y", environment="site", progress=True)
"""
FIT = """
import sys, warnings, eber
warnings.simplefilter("ignore")
if __name__ == "__main__":
    effort = {"quick": True, "epochs": int(sys.argv[3]), "scores": False}
    eber.fit_table(sys.argv[1], label="y", environment="site", out=sys.argv[2], progress=True, **effort)
"""


def write_table(folder: Path, n_rows: int) -> None:
    """Parquet files sorted by environment; the simulation's columns, a chunk of rows of one environment at a time."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    each, writer, written, number = n_rows // ENVIRONMENTS, None, 0, 0
    for rows in _rows(each):
        if writer is None or written >= FILE_ROWS:
            if writer is not None:
                writer.close()
            path, written, number = folder / f"part-{number:04d}.parquet", 0, number + 1
            # Numbers that are all different have no use for a dictionary.
            writer = pq.ParquetWriter(path, rows.schema, compression="none", use_dictionary=["site"])
        writer.write_table(rows, row_group_size=GROUP_ROWS)
        written += rows.num_rows
    assert writer is not None
    writer.close()


def _rows(each: int) -> Iterator[pa.Table]:
    for site in range(ENVIRONMENTS):
        for start in range(0, each, GROUP_ROWS):
            size = min(GROUP_ROWS, each - start)
            # The environment's centre is that of its seed; its rows differ from chunk to chunk.
            yield _table(_chunk(site, size, start), f"site {site:02d}")


def _chunk(site: int, size: int, start: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the parametric simulation in one environment."""
    p = ParametricParameters(d=COLUMNS)
    rng = np.random.default_rng([7, site, start])
    branch = p.branches[site % len(p.branches)]
    centre = p.Delta * branch + p.phi_0 + p.sigma_delta * np.random.default_rng([8, site]).standard_normal()
    z = centre + p.sigma_z * rng.standard_normal(size)
    X = p.sigma_noise * rng.standard_normal((size, COLUMNS), dtype=np.float32)
    means = np.stack([np.cos(z), np.sin(z), p.rho * z], 1)
    X[:, :3] = means + np.array([p.sigma_phase, p.sigma_phase, p.sigma_branch]) * rng.standard_normal((size, 3))
    y = rng.random(size) < 1 / (1 + np.exp(-p.label_logit(z)))
    return X, y


def _table(rows: tuple[np.ndarray, np.ndarray], site: str) -> pa.Table:
    X, y = rows
    columns = {f"x{j + 1}": pa.array(X[:, j].astype(np.float32)) for j in range(COLUMNS)}
    sites = pa.DictionaryArray.from_arrays(np.zeros(len(y), np.int32), [site])
    return pa.table({**columns, "y": pa.array(y.astype(np.int8)), "site": sites})


def watched(code: str, *arguments: object) -> dict[str, float]:
    """Run a program; its processor seconds, seconds, and most anonymous memory in MiB."""
    start = time.monotonic()
    process = subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], stderr=sys.stderr)
    peak, seconds = 0.0, 0.0
    while process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
            fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            break
        found = [int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("RssAnon")]
        peak, seconds = max([peak, *found]), (int(fields[11]) + int(fields[12])) / 100
        time.sleep(PERIOD)
    if process.wait():
        raise RuntimeError(f"A step ended with status {process.returncode}.")
    return {"processor seconds": seconds, "seconds": time.monotonic() - start, "most anonymous memory, MiB": peak}


def nll(model: Path) -> float:
    """In environments of the simulation that no fit has seen."""
    import eber

    new = draw(ParametricParameters(d=COLUMNS, n=TEST_ROWS // 50), random_state=3).test
    frame = {f"x{j + 1}": new.X[:, j] for j in range(COLUMNS)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = eber.load_model(model).predict_table(pa.table(frame)).frame
    p = np.where(new.y == 1, found["p(1)"].to_numpy(), found["p(0)"].to_numpy())
    return float(-np.log(np.clip(p, 1e-12, None)).mean())


def scale(n_rows: int, folder: Path) -> dict[str, dict[str, float]]:
    """All figures; the large files are removed, the models stay."""
    source, prepared, tenth = folder / "source", folder / "prepared", folder / "tenth"
    kept = _Kept(folder / f"figures-{n_rows}.json")
    kept.step("written", lambda: _timed(lambda: write_table(source, n_rows)))
    kept.step("prepare", lambda: watched(PREPARE, source, prepared))
    kept.step("written, a tenth", lambda: _timed(lambda: write_table(tenth, n_rows // 10)))
    kept.step("fit, a tenth in memory", lambda: _fit(tenth, folder / "model-tenth", n_rows // 10))
    kept.step("fit, from disk", lambda: _fit(prepared, folder / "model", n_rows))
    for path in (source, prepared, tenth):
        shutil.rmtree(path, ignore_errors=True)
    return kept.figures


class _Kept:
    """Figures of steps that are done, on disk; these steps are not done again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.figures: dict[str, dict[str, float]] = json.loads(path.read_text()) if path.exists() else {}

    def step(self, name: str, measure: Callable[[], dict[str, float]]) -> None:
        if name not in self.figures:
            self.figures[name] = measure()
            self._path.write_text(json.dumps(self.figures, indent=1))


def _timed(work: Callable[[], object]) -> dict[str, float]:
    start, processor = time.monotonic(), time.process_time()
    work()
    return {"processor seconds": time.process_time() - processor, "seconds": time.monotonic() - start}


def _fit(table: Path, model: Path, n_rows: int) -> dict[str, float]:
    figures = watched(FIT, table, model, PASSES)
    figures["rows a processor second"] = PASSES * n_rows / figures["processor seconds"]
    figures["NLL in new environments"] = nll(model)
    return figures


def tenth_of_the_large_run() -> dict[str, dict[str, float]]:
    """The figures of 10 million rows: a tenth of 100 million, for which this is run by itself."""
    with tempfile.TemporaryDirectory() as folder:
        return scale(10_000_000, Path(folder))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, required=True, help="With room for three times the table.")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    print(json.dumps({"rows": arguments.rows, **scale(arguments.rows, arguments.folder)}, indent=1))


if __name__ == "__main__":
    main()
