"""Leaks: has the held-out hospital been seen in training?
=======================================================

A score in a held-out hospital is worth nothing when some of its patients were also trained on. That happens: a
patient is transferred, a table is merged twice, a cohort is published again under another name. The audit looks for
shared identifiers, identical rows, and rows that are nearer to a training row than chance allows. It needs no
threshold to be set: what is near by chance is read off the training hospitals.
"""

import numpy as np
from matplotlib import pyplot as plt

from eber import MultiEnvironmentData, TablePreprocessor
from eber.datasets.hospitals import draw_hospitals
from eber.leaks.audit import leak_audit

table = draw_hospitals(2000)
X = TablePreprocessor().fit_transform(table.drop(columns=["sepsis", "hospital"]))
data = MultiEnvironmentData(X, table["sepsis"].to_numpy(), table["hospital"].to_numpy(), name="hospitals")

# %%
# First an honest split: Harbour against the others.

train, harbour = data.split("Harbour")
honest = leak_audit(train, harbour)
print(*honest.summary)

# %%
# Now forty patients of Harbour are in Ashford's table as well, exported by other software: their rows are also in the
# training data, every number a little different, and without an identifier that would give them away.

rng = np.random.default_rng(0)
transferred = rng.choice(len(harbour), size=40, replace=False)
again = harbour.X[transferred] + 0.01 * rng.normal(size=(40, X.shape[1]))
leaky = MultiEnvironmentData(
    np.concatenate([train.X, again]),
    np.concatenate([train.y, harbour.y[transferred]]),
    np.concatenate([train.environments, np.repeat("Ashford", 40)]),
    name="hospitals with transfers",
)
audit = leak_audit(leaky, harbour)
print(*audit.summary)
found = np.isin(transferred, audit.leaked_rows).sum()
print(f"{found} of the 40 were found, and {len(audit.leaked_rows) - found} rows were accused wrongly.")

# %%
# The picture
# -----------
# Each patient's p-value: how often a row would have so near a neighbour by chance. Nearly all clean rows lie close to
# one, since the audit would rather miss a copy than accuse a patient; the transferred ones lie apart at the lower end.

figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
clean = np.setdiff1d(np.arange(len(harbour)), transferred)
bins = np.linspace(-6, 0, 31)
powers = np.log10(np.maximum(audit.p_values, 1e-6))
axes.hist(powers[clean], bins, color="#7d8590", label=f"{len(clean)} clean patients")
axes.hist(powers[transferred], bins, color="#D55E00", alpha=0.8, label="40 transferred patients")
axes.set(xlabel="p-value of the nearest training row, as a power of ten", ylabel="patients")
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
