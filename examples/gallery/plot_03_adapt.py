"""Adapt to a new environment, and when not to
===========================================

A new hospital has sent rows without labels. Can they make the predictions for that hospital better? They say which
training environments it resembles as a whole, and :meth:`~eber.EBERClassifier.adapt` reweighs them so. It can only mix
what is known, and where that is not enough, its guard says so.
"""

import warnings

from matplotlib import pyplot as plt

from eber import AdaptationDisplay, EBERClassifier
from eber.datasets.prototypes import PrototypeParameters, draw
from eber.evaluation.metrics import score

# %%
# A case that it is made for
# --------------------------
# Four kinds of rows, six training environments that mix them in different shares, and a new one with shares that are
# beyond those of all six: there, what the first coordinate says about the label is reversed.

data = draw(random_state=0)
clf = EBERClassifier(epochs=20, random_state=0)
clf.fit(data.train.X, data.train.y, environments=data.train.environments)
adapted = clf.adapt(data.test.X)  # a copy; no label is used


def nll(proba):
    """Negative log-likelihood in the new environment."""
    return score(data.test.y, proba, [0, 1], ["nll"])["nll"]


steps = {
    "as fitted": nll(clf.predict_proba(data.test.X)),
    "adapted": nll(adapted.predict_proba(data.test.X)),
    "its own rule, if one knew it": nll(data.parameters.own_label_proba(data.test.X)),
}
for name, value in steps.items():
    print(f"{name:<30} NLL {value:.3f}")
print("reasons not to trust it:", adapted.adaptation_.reasons)

# %%
# Three cases in which the guard speaks
# -------------------------------------
# Twenty rows; rows that look like the training rows; and environments that x does not tell apart.

few = data.test.X[:20]
like_training = draw(random_state=1).train.X[::3]
blurred = draw(PrototypeParameters(scale=6.0), random_state=0)
unsure = EBERClassifier(epochs=20, random_state=0)

with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    unsure.fit(blurred.train.X, blurred.train.y, environments=blurred.train.environments)
    cases = {
        "20 rows": clf.adapt(few),
        "rows like the training rows": clf.adapt(like_training),
        "x hardly tells environments apart": unsure.adapt(blurred.test.X),
    }
for name, copy in cases.items():
    print(f"\n{name}:")
    for reason in copy.adaptation_.reasons:
        print("  -", reason)

# %%
# What it did to the mixture
# --------------------------
# On the left the weight goes to the sixth environment, the one nearest to the new one. On the right 20 rows have moved
# the mixture about as far, and the title says that they were too few to be believed.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
AdaptationDisplay.from_estimator(adapted, ax=left)
AdaptationDisplay.from_estimator(cases["20 rows"], ax=right)
left.set_ylabel("training environment")
left.text(0.97, 0.45, "2000 rows", transform=left.transAxes, ha="right")
right.text(0.97, 0.45, "20 rows", transform=right.transAxes, ha="right")
plt.show()
