"""A hospital table, from start to report
======================================

A table with a column to predict and a column that says where each row comes from: which method predicts a hospital that
nobody has seen, how sure is that, and what does it say about new patients? These are the commands of the README, typed
one after the other in an empty folder; the same can be done from Python with :func:`eber.compare_table`,
:func:`eber.fit_table` and :meth:`eber.TableModel.predict_table`.
"""

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
from matplotlib import pyplot as plt

folder = Path(tempfile.mkdtemp())
COMMAND = [sys.executable, "-c", "from eber.cli import main; main()"]


def type_in(line):
    """Type a command in the folder, and print what it answers without its progress."""
    answer = subprocess.run([*COMMAND, *shlex.split(line)], cwd=folder, capture_output=True, text=True, check=True)
    print(f"$ eber {line}\n{answer.stdout}")


# %%
# The table
# ---------
# Eight hospitals, and a ninth without labels. Numbers, categories, dates, an identifier, missing values, and a
# laboratory value that at times reads "<0.5": all of that may stay as it is.

type_in("example hospitals.csv --rows 700")
print(pd.read_csv(folder / "hospitals.csv").iloc[:3, :9].to_string(index=False))

# %%
# Which method?
# -------------
# Every hospital is held out in turn. ``--quick`` is a first look; leave it out before you decide, and leave out
# ``--methods`` to have all of them.

columns = "--label sepsis --environment hospital --quick"
type_in(f"compare hospitals.csv {columns} --methods 'EBER,Logistic regression'")

# %%
# The page ``results/hospitals-quick/report.html`` has all of this with charts. Every score is in ``cells.csv``:

cells = pd.read_csv(folder / "results" / "hospitals-quick" / "cells.csv")
scores = cells[(cells["metric"] == "nll") & cells["variant"].isin(["main"])]
by_hospital = scores.pivot_table(index="setting", columns="method", values="value").sort_values("EBER")

# %%
# A model, and new patients
# -------------------------

type_in(f"fit hospitals.csv {columns} --no-scores --out model")
type_in("predict model new_hospital.csv --out predictions.csv")
predictions = pd.read_csv(folder / "predictions.csv")

# %%
# On the left, what to expect in a new hospital: the spread over hospitals is far larger than the difference between the
# two methods. On the right, the risk of the new hospital's patients.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), width_ratios=(1.4, 1), layout="constrained")
for method, mark, colour in (("EBER", "D", "#0072B2"), ("Logistic regression", "o", "#D55E00")):
    left.plot(by_hospital[method], by_hospital.index, mark, color=colour, label=method)
left.set(xlabel="NLL in the held-out hospital (lower is better)")
left.legend(frameon=False)
left.grid(axis="x", alpha=0.25)
right.hist(predictions["p(1)"], bins=20, range=(0, 1), color="#0072B2")
right.set(xlabel="p(sepsis) in the new hospital", ylabel="patients")
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()
