"""Where uncertainty comes from
============================

A prediction of 50 % can mean two things: that nobody could tell from this row, or that the answer depends on the
environment and the row does not say which it is. :meth:`~eber.EBERClassifier.explain_uncertainty` splits the entropy of
each prediction into these parts. The first would stay if we knew the environment; the second would go.
"""

import numpy as np
from matplotlib import pyplot as plt

from eber import EBERClassifier, UncertaintySplitDisplay
from eber.datasets.parametric import draw

# %%
# In this simulation six environments sit on six branches of a spiral. Two columns show the phase, and a third, a noisy
# cue, tells the branches apart. Neighbouring branches have opposite labels.

data = draw(random_state=0)
clf = EBERClassifier(epochs=20, random_state=0)
clf.fit(data.train.X, data.train.y, environments=data.train.environments)

# %%
# Along the cue
# -------------
# One row after the other, from the lowest branch to the highest, the phase held fixed and the noise columns at zero.
# Between two branches the environments disagree about the label and the cue does not tell which of them it is: there
# the uncertainty lies between environments. On a branch it lies within: the label is noisy even for those who know all.

cue = np.linspace(-1.9, 1.6, 400)
rows = np.zeros((len(cue), data.train.X.shape[1]))
rows[:, 1] = 1.0  # cos and sin of the phase pi/2 are 0 and 1
rows[:, 2] = cue
split = clf.explain_uncertainty(rows)

figure, axes = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
axes.stackplot(
    cue,
    split["within_environments"],
    split["between_environments"],
    colors=("#0072B2", "#D55E00"),
    labels=("within: x does not tell y", "between: environments disagree"),
)
axes.axhline(np.log(2), color="#24292f", linewidth=1, linestyle=":")
axes.text(cue[-1], np.log(2), "a coin", ha="right", va="bottom")
axes.set(xlabel="cue $x_3$", ylabel="entropy of p(y|x), nats", xlim=(cue[0], cue[-1]))
axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
axes.spines[["top", "right"]].set_visible(False)

# %%
# Over the rows of new environments
# ---------------------------------
# The same split as means over the rows of new environments, and for rows whose cue was lost (set to its mean). Without
# the cue, most of what the model does not know lies between environments: it is worth measuring what tells them apart.

test = data.test.select(np.isin(data.test.environments, data.test.environment_names[:3]))
lost = test.X.copy()
lost[:, 2] = data.train.X[:, 2].mean()
both = np.concatenate([test.X, lost])
names = np.concatenate([np.repeat("as measured", len(lost)), np.repeat("cue lost", len(lost))])
display = UncertaintySplitDisplay.from_estimator(clf, both, environments=names)
share = display.means["between_environments"] / display.means.sum(axis=1)
print((100 * share).round().astype(int).rename("% between environments").to_string())
plt.show()
