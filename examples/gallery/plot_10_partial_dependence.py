"""Partial dependence and calibration by environment
=================================================

Two pictures that reviewers ask for: how the risk changes with one column, and whether probabilities can be believed, in
each hospital and not only on average. Both come from scikit-learn's conventions: an EBER classifier in a pipeline is a
classifier like any other.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.inspection import PartialDependenceDisplay
from sklearn.pipeline import make_pipeline

from eber import EBERClassifier, EnvironmentCalibrationDisplay, TablePreprocessor
from eber.datasets.hospitals import draw_hospitals

table = draw_hospitals(2000)
numbers = ["temperature", "heart_rate", "respiratory_rate", "systolic_pressure", "lactate", "white_cells"]
for name in numbers:  # "<0.5" is read as 0.5; what was not measured stays missing
    table[name] = table[name].replace("", np.nan).astype(str).str.lstrip("<").astype(float)
X, y, hospital = table[[*numbers, "age"]].astype(float), table["sepsis"], table["hospital"]

held_out = ["Birchwood", "Dunmore", "Harbour"]
new = hospital.isin(held_out)
pipeline = make_pipeline(TablePreprocessor(), EBERClassifier(epochs=30, random_state=0))
pipeline.fit(X[~new], y[~new], eberclassifier__environments=hospital[~new])

# %%
# How risk changes with a column
# ------------------------------
# Over the rows of three hospitals that were held out. Temperature matters in both directions: some patients answer an
# infection with fever, others, mostly old ones, with a fall in temperature.

figure, axes = plt.subplots(1, 3, figsize=(9.5, 3), sharey=True, layout="constrained")
dependence = PartialDependenceDisplay.from_estimator(
    pipeline, X[new], ["temperature", "heart_rate", "age"], ax=axes, grid_resolution=30, line_kw={"color": "#0072B2"}
)
for panel, label in zip(dependence.axes_.ravel(), ("mean p(sepsis)", "", "")):
    panel.set_ylabel(label)
    panel.spines[["top", "right"]].set_visible(False)

curve = dependence.pd_results[0]
temperatures, risk = curve["grid_values"][0], curve["average"][0]
print(f"risk is lowest at {temperatures[risk.argmin()]:.1f} degrees: {risk.min():.2f}")
print(f"at {temperatures[0]:.1f} degrees it is {risk[0]:.2f}, at {temperatures[-1]:.1f} degrees {risk[-1]:.2f}")

# %%
# Calibration in hospitals that nobody has seen
# ---------------------------------------------
# On the diagonal, of the patients who were promised 30 % so many have sepsis; vertical lines are 95 % intervals. ECE,
# the mean distance from the diagonal, is larger in each hospital than over all three. Part of that is the noise of
# fewer rows; part is that probabilities are too high in one hospital and too low in another, which cancels when they
# are pooled.

display = EnvironmentCalibrationDisplay.from_estimator(
    pipeline, X[new], y[new], environments=hospital[new], n_bins=5, intervals=True
)
pooled = EnvironmentCalibrationDisplay.from_estimator(pipeline, X[new], y[new], n_bins=5)
plt.close(pooled.figure_)
for name, error in {**display.errors, **pooled.errors}.items():
    print(f"{name:<10} ECE {error:.3f}")
plt.show()
