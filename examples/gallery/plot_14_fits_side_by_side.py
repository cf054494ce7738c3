"""Many fits side by side
======================

One seed is an anecdote. But twenty fits take twenty times as long, or do they? A step of a small network costs more
in overhead than in arithmetic; :func:`eber.fit_many` trains fits of one shape side by side, so that they share the
overhead, and gives the numbers that they would get alone.
"""

import time

import numpy as np
from matplotlib import pyplot as plt

from eber import EBERClassifier, ERMClassifier, fit_many
from eber.datasets.parametric import ParametricParameters, draw
from eber.evaluation.metrics import score

data = draw(ParametricParameters(m_test=12), random_state=0)
SEEDS = range(16)


def seeds_of(cls):
    """Classifiers that differ in their seed."""
    return [cls(epochs=10, random_state=seed) for seed in SEEDS]


# %%
# Together, and three of them alone
# ---------------------------------

start = time.process_time()
together = seeds_of(EBERClassifier)
fit_many(together, data.train)
each_together = (time.process_time() - start) / len(SEEDS)

start = time.process_time()
alone = seeds_of(EBERClassifier)[:3]
for clf in alone:
    clf.fit(data.train.X, data.train.y, environments=data.train.environments)
each_alone = (time.process_time() - start) / len(alone)

difference = max(
    np.abs(a.predict_proba(data.test.X) - b.predict_proba(data.test.X)).max() for a, b in zip(alone, together)
)
print(f"a fit alone costs {each_alone / each_together:.1f} times as much as one of {len(SEEDS)} (processor time)")
print(f"largest difference in a probability: {difference:.0e}")

# %%
# What sixteen seeds say
# ----------------------
# The same rows every time; only the first weights, the order of rows and the draws of z differ. Each dot is a fit, its
# NLL in twelve new environments.

erm = seeds_of(ERMClassifier)
fit_many(erm, data.train)
figure, axes = plt.subplots(figsize=(7, 2.8), layout="constrained")
for place, (name, fits, colour) in enumerate((("EBER", together, "#0072B2"), ("ERM", erm, "#D55E00"))):
    found = [score(data.test.y, clf.predict_proba(data.test.X), [0, 1], ["nll"])["nll"] for clf in fits]
    heights = place + np.linspace(-0.2, 0.2, len(found))
    axes.plot(found, heights, "o", color=colour, alpha=0.8)
    axes.plot(np.mean(found), place, "|", color="#24292f", markersize=34, markeredgewidth=2)
    print(f"{name:<5} NLL {np.mean(found):.3f} ± {np.std(found, ddof=1):.3f} over seeds")
axes.set_yticks([0, 1], ["EBER", "ERM"])
axes.set(ylim=(1.6, -0.6), xlabel="NLL in new environments (lower is better); bars are means")
axes.spines[["top", "right"]].set_visible(False)
plt.show()
