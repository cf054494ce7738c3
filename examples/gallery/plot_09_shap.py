"""SHAP values of an EBER model
============================

Which columns drive a prediction? `SHAP <https://shap.readthedocs.io>`_ asks any function of the rows, so it works for
EBER as for everything else. And it can be asked something that other models have no answer to: which columns decide
*which hospital* a patient resembles.
"""

import numpy as np
import shap
from matplotlib import pyplot as plt

from eber import EBERClassifier, TablePreprocessor
from eber.datasets.hospitals import draw_hospitals, draw_new_hospital

table, new = draw_hospitals(), draw_new_hospital(60)
given = ["sepsis", "hospital"]
preprocessor = TablePreprocessor().fit(table.drop(columns=given))
X, X_new = (preprocessor.transform(part.drop(columns=given)) for part in (table, new))
names = preprocessor.get_feature_names_out()
clf = EBERClassifier(epochs=30, random_state=0)
clf.fit(X, table["sepsis"], environments=table["hospital"])

# %%
# Two functions to explain
# ------------------------
# The log-odds of sepsis, and the log-odds of the plainest question about environments: does this patient look like one
# of Ashford, where most are well? Thirty training rows stand for what is usual.


def log_odds(p):
    """Logit of a probability."""
    return np.log(p) - np.log1p(-p)


def sepsis(rows):
    """Log-odds of p(y=1|x)."""
    return log_odds(clf.predict_proba(rows)[:, 1])


def ashford(rows):
    """Log-odds of p(e|x) for Ashford."""
    return log_odds(clf.predict_environment_proba(rows)[:, list(clf.environments_).index("Ashford")])


background = shap.sample(X, 30, random_state=0)
explanations = {}
for name, function in (("sepsis", sepsis), ("resembles Ashford", ashford)):
    explainer = shap.PermutationExplainer(function, background, seed=0)
    explanations[name] = explainer(X_new, max_evals=4 * X.shape[1] + 2, silent=True)

# %%
# SHAP values add up to what is explained, here in the first patient:

for name, function in (("sepsis", sepsis), ("resembles Ashford", ashford)):
    found = explanations[name]
    total = found.base_values[0] + found.values[0].sum()
    print(f"{name:<18} {total:.3f} = {function(X_new[:1])[0]:.3f}")

# %%
# Two questions, two answers
# --------------------------
# The mean size of the SHAP values over 60 patients of a new hospital. The columns that matter for sepsis and those that
# tell Ashford apart are not the same, nor in the same order.

sizes = {name: np.abs(found.values).mean(0) for name, found in explanations.items()}
order = np.argsort(sizes["sepsis"])[-10:]
figure, panels = plt.subplots(1, 2, figsize=(9.5, 4), sharey=True, layout="constrained")
for axes, (name, size), colour in zip(panels, sizes.items(), ("#0072B2", "#D55E00")):
    axes.barh(names[order], size[order], color=colour)
    axes.set(title=name, xlabel="mean |SHAP value|, log-odds")
    axes.spines[["top", "right"]].set_visible(False)
plt.show()
