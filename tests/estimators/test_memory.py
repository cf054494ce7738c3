"""What a fit needs beside the table that it is given."""

from __future__ import annotations

import subprocess
import sys

ROWS, COLUMNS = 1_000_000, 30
TABLE = 4 * ROWS * COLUMNS / 2**20

FIT = f"""
import warnings
import numpy as np
from eber import EBERClassifier

def resident(which):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith(which))

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
fit = EBERClassifier(epochs=1, batch_size=4096, random_state=0).fit
fit(rng.normal(size=(20, 2)), np.arange(20) % 2, environments=np.arange(20) % 3)  # imports what a fit imports
X = np.empty(({ROWS}, {COLUMNS}), np.float32)
for rows in np.array_split(X, 100):
    rows[:] = rng.normal(size=rows.shape)
e = np.arange(len(X)) % 12
y = (X[:, 0] > 0).astype(np.int64)
before = resident("VmRSS")
fit(X, y, environments=e)
print(resident("VmHWM") - before)
"""


def test_a_fit_needs_little_more_than_its_table() -> None:
    """An index of each row's class, of its environment and of its turn, and arrays of a moderate, fixed size.

    All rows in float64 would be twice the table, a mask of its cells a quarter of it, eight bytes for each row's class,
    environment and turn a fifth. Seen: 65 to 68.
    """
    found = subprocess.run([sys.executable, "-c", FIT], capture_output=True, text=True, check=True)
    assert float(found.stdout) < 0.3 * TABLE + 130
