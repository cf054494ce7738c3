"""Conformal sets by environment, with MAPIE
=========================================

A conformal set holds every label that cannot be ruled out, and promises to hold the true one in 90 % of cases. The
promise is for rows like those it was calibrated on. Does it hold in a hospital that nobody has seen? Here `MAPIE
<https://mapie.readthedocs.io>`_ calibrates EBER's probabilities, and coverage is measured in each hospital in turn,
which was held out of everything.
"""

import numpy as np
from mapie.classification import SplitConformalClassifier
from matplotlib import pyplot as plt
from scipy.stats import binomtest

from eber import EBERClassifier, TablePreprocessor
from eber.datasets.hospitals import HOSPITALS, draw_hospitals

LEVEL = 0.9
table = draw_hospitals()
X = TablePreprocessor().fit_transform(table.drop(columns=["sepsis", "hospital"]))
y, hospital = table["sepsis"].to_numpy(), table["hospital"].to_numpy()

# %%
# Two ways to calibrate
# ---------------------
# On patients of the seven known hospitals whom the fit has not seen: all together, as one usually does; or each
# hospital apart, keeping a label that *any* of the seven calibrations would keep.


def sets_of(clf, calibrates, new):
    """Which labels are in the set of each new patient, (n, 2)."""
    conformal = SplitConformalClassifier(clf, confidence_level=LEVEL, prefit=True)
    conformal.conformalize(X[calibrates], y[calibrates])
    return conformal.predict_set(X[new])[1][:, :, 0]


results = {"all together": {}, "each hospital apart": {}}
for held_out in HOSPITALS:
    known, new = np.flatnonzero(hospital != held_out), np.flatnonzero(hospital == held_out)
    fits = np.random.default_rng(0).random(len(known)) < 0.5
    used, calibrates = known[fits], known[~fits]
    clf = EBERClassifier(epochs=20, random_state=0).fit(X[used], y[used], environments=hospital[used])
    apart = [calibrates[hospital[calibrates] == name] for name in HOSPITALS if name != held_out]
    sets = {
        "all together": sets_of(clf, calibrates, new),
        "each hospital apart": np.any([sets_of(clf, own, new) for own in apart], axis=0),
    }
    for name, labels in sets.items():
        results[name][held_out] = labels[np.arange(len(new)), y[new]], labels.sum(1)

# %%
# What was promised, and what came
# --------------------------------

figure, axes = plt.subplots(figsize=(7.5, 4), layout="constrained")
for shift, (name, found), mark, colour in zip((-0.15, 0.15), results.items(), "oD", ("#0072B2", "#D55E00")):
    hits = np.array([inside.sum() for inside, _ in found.values()])
    sizes = np.array([len(inside) for inside, _ in found.values()])
    bounds = [binomtest(int(k), int(n)).proportion_ci() for k, n in zip(hits, sizes)]
    places = np.arange(len(found)) + shift
    axes.hlines(places, [b.low for b in bounds], [b.high for b in bounds], color=colour, linewidth=1.5)
    axes.plot(hits / sizes, places, mark, color=colour, label=f"calibrated {name}")
    both = np.mean(np.concatenate([size for _, size in found.values()]) == 2)
    print(
        f"calibrated {name:<20} coverage {(hits / sizes).min():.2f} to {(hits / sizes).max():.2f} by hospital, "
        f"mean {np.mean(hits / sizes):.3f}; {both:.0%} of the sets hold both labels"
    )
axes.axvline(LEVEL, color="#24292f", linewidth=1, linestyle=":")
axes.set_yticks(range(len(HOSPITALS)), HOSPITALS)
axes.invert_yaxis()
axes.set(xlabel=f"share of patients whose set holds the true label ({LEVEL:.0%} was promised)")
axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Calibrated all together, the promise holds on average over hospitals and not in each of them: that is all that it was.
# Calibrated apart, it holds nearly everywhere, and is paid for with more sets that hold both labels and so say nothing.
# Neither is a guarantee for a hospital that is unlike all seven.
