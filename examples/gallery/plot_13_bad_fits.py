"""Learning curves, and the signs of a bad fit
===========================================

Did the fit work? Scores on held-out environments say it best, but often one would like to know before. Every fit
keeps its loss terms pass by pass (``history_``) and looks at itself once at the end (``diagnostics_``): signs that
were seen in bad fits, each with what to do. Those that are alarming are also warned of.
"""

import warnings

from matplotlib import pyplot as plt

from eber import EBERClassifier, TrainingHistoryDisplay
from eber.datasets.parametric import draw
from eber.evaluation.metrics import score

# %%
# Four fits of the same rows: one as it should be, and three with something wrong.

data = draw(random_state=0)
train, test = data.train, data.test
fits = {
    "good": EBERClassifier(epochs=20, random_state=0),
    "too short": EBERClassifier(epochs=2, random_state=0),
    "step too large": EBERClassifier(epochs=20, learning_rate=0.3, random_state=0),
    "environments not learned": EBERClassifier(epochs=20, env_loss_weight=0.0, random_state=0),
}
scores = {}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what would be warned of is printed below
    for name, clf in fits.items():
        clf.fit(train.X, train.y, environments=train.environments)
        scores[name] = score(test.y, clf.predict_proba(test.X), [0, 1], ["nll"])["nll"]

for name, clf in fits.items():
    print(f"{name}: NLL in 50 new environments {scores[name]:.3f}")
    for sign in clf.diagnostics_:
        if sign.alarming:
            print(f"  - {sign.name} = {sign.value:.3g} (threshold {sign.threshold:.3g})")
            print(f"    {sign.advice.split('. ')[0]}.")

# %%
# The curves
# ----------
# On the left all terms of the good fit: within six passes the environment loss falls and the likelihood rises, and then
# little happens. On the right the likelihood of all four. The fit that has not learned the environments has the highest
# likelihood of all in the end, and is far worse in new environments: its signs give it away, its curve does not.

figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 3.8), layout="constrained")
TrainingHistoryDisplay.from_estimator(fits["good"], ax=left)
for name, clf in fits.items():
    TrainingHistoryDisplay.from_estimator(clf, terms=["likelihood"], name=f"{name} (NLL {scores[name]:.2f})", ax=right)
left.set_title("a good fit, term by term", loc="left")
right.set_title("likelihood of four fits, and NLL in new environments", loc="left")
plt.show()
