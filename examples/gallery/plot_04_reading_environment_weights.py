"""Reading p(e|x)
==============

Which of the known hospitals do these patients resemble? EBER answers with p(e|x), a weight for each training
environment and each row. This is what the numbers mean, and what they do not.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from eber import EBERClassifier, EnvironmentWeightsDisplay, TablePreprocessor
from eber.datasets.hospitals import MIXTURES, NEW_MIXTURE, draw_hospitals, draw_new_hospital

table, new = draw_hospitals(), draw_new_hospital()
given = ["sepsis", "hospital"]
preprocessor = TablePreprocessor().fit(table.drop(columns=given))
X, X_new = (preprocessor.transform(part.drop(columns=given)) for part in (table, new))
clf = EBERClassifier(epochs=30, random_state=0)
clf.fit(X, table["sepsis"], environments=table["hospital"])

# %%
# One patient says little
# -----------------------
# The weights of single patients of Kingsbridge, a hospital that was not in the training data. Hospitals overlap: a well
# patient may come from any of them, and p(e|x) says so.

p_e = pd.DataFrame(clf.predict_environment_proba(X_new), columns=clf.environments_)
print(p_e.head(4).round(2).to_string(index=False))
print(f"\nlargest weight of a patient, on average: {p_e.max(axis=1).mean():.2f}; if all weighed alike: {1 / 8:.2f}")

# %%
# Many patients say more
# ----------------------
# Means over the patients of each hospital. The diagonal stands out, but not by much; off it one sees who resembles
# whom. The last line is Kingsbridge.

everything = np.concatenate([X, X_new])
where = pd.concat([table["hospital"], new["hospital"] + " (new)"])
names = [*clf.environments_, "Kingsbridge (new)"]
display = EnvironmentWeightsDisplay.from_estimator(clf, everything, environments=where)
order = [display.groups.index(name) for name in names]  # the new hospital last
plt.close(display.figure_)
display = EnvironmentWeightsDisplay(display.weights[order], names, display.environments, display.counts[order]).plot()
plt.show()

# %%
# Is it true?
# -----------
# These hospitals are simulated: they differ in their mixture of four kinds of patients, which we know. So we can ask
# whether hospitals that have like mixtures get like weights.

mixtures = np.vstack([MIXTURES, NEW_MIXTURE])
distance = np.abs(mixtures[:, None] - MIXTURES[None]).sum(2) / 2  # share of patients that would have to change kind
weights = display.weights / np.mean(display.weights[:8], axis=0)  # how much more than usual
other = ~np.eye(9, 8, dtype=bool)
rank = pd.Series(distance[other]).corr(pd.Series(weights[other]), method="spearman")
print(f"rank correlation of distance and weight, over pairs of different hospitals: {rank:.2f}")

figure, axes = plt.subplots(figsize=(5.6, 3.8), layout="constrained")
axes.plot(distance[:8][other[:8]], weights[:8][other[:8]], "o", color="#0072B2", alpha=0.7, label="known hospitals")
axes.plot(distance[8], weights[8], "D", color="#D55E00", label="Kingsbridge, the new one")
axes.axhline(1, color="#7d8590", linewidth=1, linestyle=":")
axes.set(xlabel="distance of the true mixtures", ylabel="weight, as a multiple of the usual")
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# What p(e|x) is not: it is no statement that the row comes from one of these hospitals, since it always sums to one. A
# hospital unlike all others gets weights too, and ``eber predict`` therefore also counts rows that are unlike training.
